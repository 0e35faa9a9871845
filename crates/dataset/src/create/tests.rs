use super::*;
use crate::measure;
use crate::profile::tests::{Parts, scanned};

/// A series of `count` snapshots of 300 files, in which files come, go, move, are copied and are modified.
fn real(count: u64) -> Series {
    let draw = &mut Draw::new(77, 0);
    let content =
        |seed: u64, parts: usize| (0..parts as u64).map(|i| (seed * 1000 + i, 4096)).collect::<Vec<_>>();
    let mut next = 0;
    let mut fresh = || {
        next += 1;
        next
    };
    let name = |n: u64| format!("{}/{}.{}", n % 7, n, ["c", "h", "txt"][n as usize % 3]);
    let mut files: Vec<Parts> = (0..300)
        .map(|_| {
            let n = fresh();
            (name(n), content(n, 1 + draw.below(12)))
        })
        .collect();
    let mut snapshots = vec![files.clone()];
    for _ in 1..count {
        for _ in 0..10 {
            let at = draw.below(files.len());
            files.swap_remove(at);
            let n = fresh();
            files.push((name(n), content(n, 1 + draw.below(12))));
        }
        for _ in 0..5 {
            let (at, n) = (draw.below(files.len()), fresh());
            files[at].0 = name(n);
            let copy = files[draw.below(files.len())].1.clone();
            files.push((name(fresh()), copy));
        }
        for _ in 0..20 {
            let (at, n) = (draw.below(files.len()), fresh());
            let parts = &mut files[at].1;
            let part = draw.below(parts.len());
            parts[part] = (n * 1000, 4096);
        }
        snapshots.push(files.clone());
    }
    scanned(&snapshots)
}

fn make(profile: &Profile, options: &Options) -> (Series, Vec<Generation>) {
    create(profile, options, &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap()
}

#[test]
fn a_made_series_is_like_the_real_one() {
    let profile = Profile::of(&real(6)).unwrap();
    for seed in 0..5 {
        let (made, told) = make(&profile, &Options { generations: 6, seed, scale: 1.0 });
        assert!(told.iter().all(|one| one.missing == 0));
        for (asked, found) in profile.measured.iter().zip(measure(&made)) {
            let (a, b) = (asked.together, found.together);
            assert_eq!((a.files, asked.directories), (b.files, found.directories));
            for (asked, found) in [
                (a.chunks, b.chunks),
                (a.unique, b.unique),
                (a.dup1, b.dup1),
                (a.dup2, b.dup2),
                (a.bytes, b.bytes),
            ] {
                // The thesis has 15 %; classes of few chunks are judged by three standard deviations.
                let off = (0.1 * asked as f64).max(3.0 * (asked as f64).sqrt());
                assert!(
                    (asked as f64 - found as f64).abs() <= off,
                    "seed {seed}: {asked} asked, {found} found"
                );
            }
        }
        let again = Profile::of(&made).unwrap();
        let (asked, found) = (profile.markov.unwrap(), again.markov.unwrap());
        for (asked, found) in
            [(asked.n, found.n), (asked.d, found.d), (asked.uu, found.uu), (asked.um, found.um)]
        {
            assert!((asked - found).abs() < 2.0, "{asked} {found}");
        }
        let (asked, found) = (profile.patterns.unwrap(), again.patterns.unwrap());
        assert!(asked.iter().zip(&found).all(|(a, b)| (a - b).abs() < 5.0), "{asked:?} {found:?}");
    }
}

#[test]
fn a_seed_makes_one_series() {
    let profile = Profile::of(&real(4)).unwrap();
    let bytes = |seed| {
        let mut bytes = Vec::new();
        make(&profile, &Options { generations: 5, seed, scale: 1.0 }).0.write_to(&mut bytes).unwrap();
        bytes
    };
    assert!(bytes(1) == bytes(1));
    assert!(bytes(1) != bytes(2));
}

#[test]
fn generations_go_on_beyond_what_was_seen() {
    let profile = Profile::of(&real(3)).unwrap();
    let (made, told) = make(&profile, &Options { generations: 12, seed: 1, scale: 2.0 });
    assert_eq!(made.trees.len(), 12);
    assert!(told[3..].iter().all(|one| (1..3).contains(&one.step)));
    let files = measure(&made).into_iter().map(|one| one.alone.files).collect::<Vec<_>>();
    assert!((590..=610).contains(&files[0]), "{files:?}");
    // Each step adds 5 of 300 files.
    let grown = (1.0 + 5.0 / 300.0_f64).powi(11);
    let off = files[11] as f64 / files[0] as f64 / grown - 1.0;
    assert!(off.abs() < 0.05, "{files:?}");
}

#[test]
fn chunks_are_such_as_the_chunker_cuts() {
    let mut profile = Profile::of(&real(4)).unwrap();
    let small = |series: &Series, least: u32| {
        let files = series.trees.iter().flat_map(|tree| regular(tree).map(move |file| tree.chunks_of(file)));
        files
            .flat_map(|chunks| chunks.split_last().map_or(&[][..], |(_, inner)| inner))
            .filter(|chunk| series.chunks.size(**chunk) < least)
            .count()
    };
    let options = Options { generations: 8, seed: 3, scale: 1.0 };
    assert_eq!(small(&make(&profile, &options).0, 4096), 0);
    // Sizes as FastCDC has them, small ones at the ends of files.
    profile.chunking = Chunking::default();
    for step in &mut profile.steps {
        let cells = step.last.cells.iter_mut().chain(&mut step.only.cells);
        cells.for_each(|(size, ..)| *size = 280);
    }
    assert_eq!(small(&make(&profile, &options).0, 2052), 0);
}

#[test]
fn what_cannot_be_made_is_refused() {
    let say = |profile: &Profile, generations, scale| {
        let options = Options { generations, seed: 0, scale };
        create(profile, &options, &mut |_, _| ControlFlow::Continue(())).err().unwrap().to_string()
    };
    let single = Profile::of(&real(1)).unwrap();
    assert!(say(&single, 2, 1.0).contains("single snapshot"));
    assert!(say(&single, 0, 1.0).contains("use 1 or more"));
    assert!(say(&single, 1, f64::NAN).contains("use 1 or more"));
    assert_eq!(make(&single, &Options { generations: 1, seed: 0, scale: 1.0 }).0.trees.len(), 1);
}
