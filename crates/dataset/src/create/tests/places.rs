//! Which chunks files keep, where, and what they have in common.

use super::*;
use crate::profile::tests::scanned_by;
use std::collections::HashSet;

#[test]
fn what_lies_behind_changes_that_keep_the_length_stays_in_place() {
    let snapshot = |i: u64| {
        let part = |at: u64| (if at % 20 == 7 { 1000 * (i + 1) + at } else { at }, 8192);
        vec![("0.c".to_string(), (0..400).map(part).collect())]
    };
    let mut asked = Profile::with_runs(&scanned(&[snapshot(0), snapshot(1), snapshot(2)])).unwrap();
    for chunking in [asked.chunking, Chunking::default()] {
        for share in [1.0, 0.7, 0.4, 0.1] {
            asked.chunking = chunking;
            let row = asked.steps[2].changed[0];
            let wanted = 4 * (f64::from(row.kept) * share) as u32;
            asked.steps[2].changed[0].in_place = wanted / 4;
            let made = |seed| Profile::with_runs(&make(&asked, &options(3, seed, 1.0)).0).unwrap();
            let each = [1, 2, 3, 4].map(|seed| made(seed).steps[2].changed[0].in_place);
            assert!(each.iter().all(|found| 20 * found >= 4 * wanted), "{each:?} of {wanted} in four series");
            let found: u32 = each.iter().sum();
            assert!(5 * found >= 4 * wanted, "{found} of {wanted} with {chunking:?}");
            // Blocks of one size are in place whenever as many come as go.
            assert!(chunking != Chunking::default() || 5 * found <= 6 * wanted, "{found} of {wanted}");
        }
    }
}

#[test]
fn twins_change_alike() {
    let twin = |name: &str, i: u64| -> Parts {
        let part = |at: u64| if at % 50 == 9 { (9000 * i + at, 5000) } else { (at, 5000) };
        (name.into(), (0..300).map(part).collect())
    };
    let snapshot = |i| vec![twin("1.c", i), twin("2.c", i)];
    let profile = Profile::with_runs(&scanned(&[snapshot(1), snapshot(2), snapshot(3)])).unwrap();
    let (series, _) = make(&profile, &options(3, 5, 1.0));
    for tree in &series.trees {
        assert_eq!(tree.chunks_of(0), tree.chunks_of(1));
    }
}

#[test]
fn a_file_with_more_in_it_changes_where_the_other_does() {
    // The second is the first and 45 parts more; a release changes six parts of both.
    let file = |name: &str, i: u64, count: u64| -> Parts {
        let part = |at: u64| (if at % 50 == 9 && at < 300 { 9000 * i + at } else { at }, 8192);
        (name.into(), (0..count).map(part).collect())
    };
    let snapshot = |i| vec![file("1.c", i, 300), file("2.c", i, 345)];
    let profile = Profile::with_runs(&scanned(&[snapshot(1), snapshot(2), snapshot(3)])).unwrap();
    assert_ne!(profile.steps[1].changed[0], profile.steps[1].changed[1]);
    for seed in 0..4 {
        let (series, _) = make(&profile, &options(3, seed, 1.0));
        for tree in &series.trees {
            let starts = |file: u32| {
                let mut at = 0;
                let mut start = |chunk: &u32| {
                    at += u64::from(series.chunks.size(*chunk));
                    (at, *chunk)
                };
                tree.chunks_of(file).iter().map(&mut start).collect::<HashSet<_>>()
            };
            let (one, other) = (starts(0), starts(1));
            let aligned = one.intersection(&other).count();
            let apart = one.len() - aligned;
            assert!(apart <= 4, "seed {seed}: {apart} of {} are elsewhere", one.len());
        }
    }
}

#[test]
fn files_that_share_their_chunks_share_them_with_each_other() {
    let file =
        |n: u64, seeds: std::ops::Range<u64>| (format!("{n}.c"), seeds.map(|seed| (seed, 4096)).collect());
    // Two pairs of copies, three files that share two chunks, and one that has a chunk twice.
    let mut files: Vec<Parts> = vec![file(1, 0..30), file(2, 0..30), file(3, 50..62), file(4, 50..62)];
    for n in 5..8 {
        files.push(file(n, 100 * n..100 * n + 5));
        files.last_mut().unwrap().1.extend([(90, 4096), (91, 4096)]);
    }
    files.push(("8.c".into(), vec![(95, 4096), (96, 4096), (95, 4096)]));
    let profile = Profile::of(&scanned(&[files])).unwrap();
    let (made, _) = make(&profile, &options(1, 3, 1.0));
    let (tree, asked) = (&made.trees[0], profile.measured[0].alone);
    let found = measure(&made)[0].alone;
    assert_eq!((found.unique, found.dup1, found.dup2), (asked.unique, asked.dup1, asked.dup2));
    let mut differ: Vec<_> = Vec::new();
    for chunks in regular(tree).map(|file| tree.chunks_of(file)) {
        let own = chunks.iter().collect::<HashSet<_>>();
        assert!(own.len() == chunks.len() || chunks.len() == 3, "only one file has a chunk twice");
        differ.push(chunks.to_vec());
    }
    differ.sort();
    let pairs = differ.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0].len()).collect::<Vec<_>>();
    assert!(pairs.contains(&30) && pairs.contains(&12), "{pairs:?}");
}

#[test]
fn copies_with_something_of_their_own_are_made_alike() {
    // Five programs have more and more of one library, and two of them are one but for a part.
    let file = |name: &str, seeds: &mut dyn Iterator<Item = u64>| -> Parts {
        (name.into(), seeds.map(|seed| (seed, 4096)).collect())
    };
    let files = vec![
        file("1.c", &mut (0..40).chain(1000..1010)),
        file("2.c", &mut (0..60).chain(2000..2030)),
        file("3.c", &mut (0..100).chain([3000])),
        file("4.c", &mut (0..100).chain([4000])),
        file("5.c", &mut (0..100).chain(5000..5050)),
    ];
    let profile = Profile::of(&scanned(&[files])).unwrap();
    for seed in 0..8 {
        let (made, _) = make(&profile, &options(1, seed, 1.0));
        let tree = &made.trees[0];
        let twins: Vec<_> =
            regular(tree).map(|file| tree.chunks_of(file)).filter(|chunks| chunks.len() == 101).collect();
        let alike = twins[0].iter().zip(twins[1]).filter(|(one, other)| one == other).count();
        assert!(alike > 70, "seed {seed}: {alike} of 101");
    }
}

#[test]
fn another_version_under_another_name_keeps_chunks_in_place() {
    let file = |name: &str, count: u64, i: u64| -> Parts {
        let part = |at: u64| (1000 * count + if at % 20 == 7 { 100_000 * i + at } else { at }, 4096);
        (name.into(), (0..count).map(part).collect())
    };
    let snapshots = [
        vec![file("0/a.so", 100, 0), file("0/b.so", 300, 0)],
        vec![file("1/a.so", 100, 1), file("1/b.so", 300, 1)],
    ];
    let profile = Profile::with_runs(&scanned(&snapshots)).unwrap();
    assert_eq!(profile.steps[1].new.iter().map(|row| row.in_place).collect::<Vec<_>>(), [95, 285]);
    for seed in 0..4 {
        let (made, _) = make(&profile, &options(2, seed, 1.0));
        let told = Profile::with_runs(&made).unwrap().steps[1]
            .new
            .iter()
            .map(|row| row.in_place)
            .collect::<Vec<_>>();
        assert_eq!(told, [95, 285], "seed {seed}");
        assert_eq!(measure(&made)[1].together.chunks, profile.measured[1].together.chunks);
    }
}

#[test]
fn what_a_new_version_repeats_more_often_is_repeated() {
    let file = |folder: u64, padding: usize| -> Parts {
        let seeds = (1..60).chain(std::iter::repeat_n(0, padding)).chain(60..100).chain([1000 * folder]);
        (format!("{folder}/a.so"), seeds.map(|seed| (seed, 4096)).collect())
    };
    let profile = Profile::with_runs(&scanned(&[vec![file(1, 6)], vec![file(2, 20)]])).unwrap();
    assert_eq!(profile.steps[1].new[0].own_more, 14);
    let (made, _) = make(&profile, &options(2, 1, 1.0));
    let tree = &made.trees[1];
    let mut counts = std::collections::HashMap::new();
    tree.refs.iter().for_each(|chunk| *counts.entry(chunk).or_insert(0) += 1);
    assert_eq!((tree.refs.len(), counts.values().max()), (120, Some(&20)));
    // Of one chunk three.
    let file = |folder: u64, seeds: &[u64]| -> Parts {
        (format!("{folder}/a.so"), seeds.iter().map(|seed| (*seed, 4096)).collect())
    };
    let profile = Profile::with_runs(&scanned(&[vec![file(1, &[5])], vec![file(2, &[5, 5, 5, 6])]])).unwrap();
    assert_eq!(profile.steps[1].new[0].own_more, 2);
    let (made, _) = make(&profile, &options(2, 1, 1.0));
    assert_eq!(made.trees[1].refs.len(), 4);
}

#[test]
fn what_files_share_is_in_as_many_stretches() {
    // Five programs with one code: ten stretches of 40 chunks, half of them in three of the programs, and own chunks between.
    let program = |n: u64, own: u64| -> Parts {
        let shared = (0..10).filter(|stretch| n < 3 || *stretch < 5);
        let seeds = shared.flat_map(|stretch| {
            let first = 1000 * (stretch + 1);
            (first..first + 40).chain(100_000 * (n + 1) + first..100_000 * (n + 1) + first + own)
        });
        (format!("{n}.js"), seeds.map(|seed| (seed, 4096)).collect())
    };
    for own in [8, 40] {
        let mut profile =
            Profile::with_runs(&scanned(&[(0..5).map(|n| program(n, own)).collect::<Vec<_>>()])).unwrap();
        let stretches = |profile: &Profile| {
            let rows = profile.steps[0].new.iter();
            rows.map(|row| row.stretches * row.count).sum::<u32>()
        };
        let asked = stretches(&profile);
        assert_eq!(asked, 3 * 10 + 2 * 5);
        let made = |profile: &Profile, seed| {
            let made = Profile::with_runs(&make(profile, &options(1, seed, 1.0)).0).unwrap();
            assert_eq!(made.measured[0].together.dup2, profile.measured[0].together.dup2, "seed {seed}");
            stretches(&made)
        };
        let told: u32 = (0..8).map(|seed| made(&profile, seed)).sum();
        assert!((6 * asked..10 * asked).contains(&told), "{told} in eight, {asked} in each");
        profile.steps[0].new.iter_mut().for_each(|row| row.stretches = 0);
        let untold: u32 = (0..8).map(|seed| made(&profile, seed)).sum();
        assert!(!(5 * asked..11 * asked).contains(&untold), "{untold} by chance");
    }
}

#[test]
fn few_files_share_what_as_many_have_and_where_they_had_it() {
    // Six programs of one code, each with more of it than the one before; all but the last two begin otherwise.
    let program = |n: u64| -> Parts {
        let own = (0..2).map(|at| (10_000 + 10 * n.min(4) + at, 5000 + 777 * n.min(4) as usize));
        let code = (0..40 * (n.min(4) + 1)).map(|at| (at, 8192));
        (format!("{n}.js"), own.chain(code).chain([(20_000 + n, 8192)]).collect())
    };
    let asked = vec![(0..6).map(program).collect()];
    let profile = Profile::with_runs(&scanned_by(Chunking::default(), &asked)).unwrap();
    let told = |profile: &Profile| {
        let rows = profile.steps[0].new.iter();
        rows.map(|row| (row.file.size, row.often, 10 * row.aligned / row.file.size, row.count))
            .collect::<Vec<_>>()
    };
    let aligned: Vec<_> = told(&profile).iter().map(|row| row.2).collect();
    assert_eq!(aligned[..4], [0; 4]);
    assert!(aligned[4..].iter().all(|aligned| *aligned >= 9), "{aligned:?}");
    for seed in 0..4 {
        let made = make(&profile, &options(1, seed, 1.0)).0;
        assert_eq!(told(&Profile::with_runs(&made).unwrap()), told(&profile), "seed {seed}");
        // Those that share a chunk are as many as in the real files: none has one twice.
        let tree = &made.trees[0];
        for file in regular(tree) {
            let chunks = tree.chunks_of(file);
            assert_eq!(chunks.iter().collect::<HashSet<_>>().len(), chunks.len(), "seed {seed}");
        }
    }
}

#[test]
fn what_changes_alike_has_the_same_at_the_same_places() {
    // Three programs with one code, changed in ten places: in the first of these one of them has a chunk of its own.
    let program = |n: u64, i: u64| -> Parts {
        let part = |at: u64| match at {
            5 if n == 0 => (90_000 + i, 8192),
            _ if at % 20 == 5 => (10_000 * (i + 1) + at, 8192),
            _ => (at, 8192),
        };
        (
            format!("{n}.js"),
            (0..200).map(part).chain((0..10).map(|own| (70_000 + 100 * n + own, 8192))).collect(),
        )
    };
    let snapshot = |i| (0..3).map(|n| program(n, i)).collect::<Vec<_>>();
    let profile = Profile::with_runs(&scanned_by(Chunking::default(), &[snapshot(0), snapshot(1)])).unwrap();
    for seed in 0..4 {
        let (made, _) = make(&profile, &options(2, seed, 1.0));
        let (before, tree) = (&made.trees[0], &made.trees[1]);
        let old: HashSet<_> = before.refs.iter().collect();
        let mut behind: std::collections::HashMap<u32, Vec<u32>> = std::collections::HashMap::new();
        for pair in regular(tree).flat_map(|file| tree.chunks_of(file).windows(2)) {
            if !old.contains(&pair[1]) && old.contains(&pair[0]) {
                behind.entry(pair[1]).or_default().push(pair[0]);
            }
        }
        let all: Vec<_> = behind.values().filter(|before| before.len() == 3).collect();
        let same = all.iter().filter(|before| before.iter().all(|one| one == &before[0])).count();
        assert!(all.len() >= 5 && 5 * same >= 4 * all.len(), "seed {seed}: {same} of {}", all.len());
    }
}

#[test]
fn large_chunks_change_more_often() {
    // Changes of a byte or so anywhere in large files.
    let draw = &mut Draw::new(5, 5, 5);
    let mut files: Vec<Parts> = (0..20)
        .map(|n| (format!("{n}.c"), (0..3000).map(|at| (10_000 * (n + 1) + at, 200)).collect()))
        .collect();
    let mut snapshots = vec![files.clone()];
    for i in 1..4 {
        for (_, parts) in &mut files {
            for change in 0..20 {
                parts[draw.below(3000)].0 = 1_000_000 * i + change;
            }
        }
        snapshots.push(files.clone());
    }
    let real = scanned_by(Chunking::default(), &snapshots);
    let profile = Profile::with_runs(&real).unwrap();
    // Mean size of what is kept in the last change, and bytes of the last tree.
    let told = |series: &Series| {
        let [.., before, last] = &series.trees[..] else { panic!() };
        let has: HashSet<_> = last.refs.iter().collect();
        let size = |chunk: &u32| f64::from(series.chunks.size(*chunk));
        let kept: Vec<_> = before.refs.iter().filter(|chunk| has.contains(chunk)).map(size).collect();
        (kept.iter().sum::<f64>() / kept.len() as f64, last.refs.iter().map(size).sum::<f64>())
    };
    let (kept, bytes) = told(&real);
    for seed in 0..3 {
        let made = told(&make(&profile, &options(4, seed, 1.0)).0);
        let off = (made.0 / kept - 1.0, made.1 / bytes - 1.0);
        assert!(off.0.abs() < 0.03 && off.1.abs() < 0.01, "seed {seed}: {off:?}");
    }
    let mut untold = profile.clone();
    untold.steps.iter_mut().flat_map(|step| &mut step.carried).for_each(|row| row.size = 0);
    let (made, _) = told(&make(&untold, &options(4, 0, 1.0)).0);
    assert!(made / kept - 1.0 > 0.04, "kept ones are larger where that is not told: {made} {kept}");
}
