use super::*;
use crate::State;
use crate::scan::{self, scan};
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

pub(crate) fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Seeds from which on content compresses to half.
pub(crate) const TEXT: u64 = 1 << 40;

/// Zeros for 0, or random bytes, of half as many bits from [`TEXT`] on.
fn content(seed: u64, length: usize) -> Vec<u8> {
    let mask = if seed >= TEXT { 0x0f } else { 0xff };
    if seed == 0 { vec![0; length] } else { random(seed, length).iter().map(|byte| byte & mask).collect() }
}

/// A file's path, and the seed and length of its content, one part after the other.
pub(crate) type Parts = (String, Vec<(u64, usize)>);

/// Snapshots of files.
pub(crate) fn scanned(snapshots: &[Vec<Parts>]) -> Series {
    scanned_by(Chunking::Fixed { size: 4096 }, snapshots)
}

/// The same with another chunking.
pub(crate) fn scanned_by(chunking: Chunking, snapshots: &[Vec<Parts>]) -> Series {
    let folder = tempfile::tempdir().unwrap();
    let mut paths: Vec<PathBuf> = Vec::new();
    for (i, files) in snapshots.iter().enumerate() {
        let root = folder.path().join(format!("{i}"));
        for (name, parts) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(
                path,
                parts.iter().flat_map(|(seed, length)| content(*seed, *length)).collect::<Vec<_>>(),
            )
            .unwrap();
        }
        paths.push(root);
    }
    let options = scan::Options { chunking, ..scan::Options::default() };
    scan(&paths, &options, &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap().0
}

fn file(name: &str, seeds: &[u64]) -> Parts {
    (name.into(), seeds.iter().map(|seed| (*seed, 4096)).collect())
}

/// Four snapshots in which everything happens that a profile tells of.
fn series() -> Series {
    scanned(&[
        vec![file("a.c", &[1]), file("d/b.c", &[2, 3, 4]), file("d/e", &[5, 5]), file("old", &[6, 7])],
        // a.c is modified, old is moved, b.c appended to, new comes with a copy of a chunk.
        vec![
            file("a.c", &[9]),
            file("d/b.c", &[2, 3, 4, 10]),
            file("d/e", &[5, 5]),
            file("moved", &[6, 7]),
            file("n", &[11, 2]),
        ],
        // a.c is modified again, e goes, n is modified in its middle.
        vec![
            file("a.c", &[12]),
            file("d/b.c", &[2, 3, 4, 10]),
            file("moved", &[6, 7]),
            file("n", &[11, 13, 2]),
        ],
        // e comes again.
        vec![
            file("a.c", &[12]),
            file("d/b.c", &[2, 3, 4, 10]),
            file("moved", &[6, 7]),
            file("n", &[11, 13, 2]),
            file("d/e", &[5, 5]),
        ],
    ])
}

#[test]
fn histograms_have_what_happened() {
    let profile = Profile::of(&series()).unwrap();
    let of = |depth, extension, size, unique, dup1, dup2| File { depth, extension, size, unique, dup1, dup2 };
    let c = profile.extensions.iter().position(|one| one == "c").unwrap() as u32;
    let step = &profile.steps[1];
    assert_eq!(step.before, 4);
    assert_eq!(step.directories, [1, 1]);
    let class_of_two = class(8192);
    let moved = New { file: of(0, 0, 2, 0, 2, 0), class: class_of_two, moved: 2, count: 1, ..New::default() };
    let copied = New { file: of(0, 0, 2, 1, 1, 0), class: class_of_two, kind: 1, count: 1, ..New::default() };
    assert_eq!(step.new, [moved, copied]);
    assert_eq!(
        step.gone,
        [Gone { file: of(0, 0, 2, 2, 0, 0), class: class(8192), state: State::New as u32, count: 1 }]
    );
    let whole = Changed {
        file: of(0, c, 1, 1, 0, 0),
        class: class(4096),
        state: State::New as u32,
        becomes: class(4096),
        size: 1,
        unique: 1,
        dup1: 0,
        dup2: 0,
        kept: 0,
        in_place: 0,
        twice: 0,
        often: 0,
        kind: 0,
        runs: 0,
        pattern: Pattern::B,
        count: 1,
    };
    let appended = Changed {
        file: of(1, c, 3, 3, 0, 0),
        class: class(12_288),
        becomes: 0,
        size: 4,
        dup1: 3,
        kept: 3,
        in_place: 3,
        kind: 1,
        pattern: Pattern::E,
        ..whole
    };
    assert_eq!(step.changed, [whole, appended]);
    // In the first snapshot two chunks of e are one: there twice.
    let first = profile.steps[0].new.iter().find(|row| row.twice > 0).unwrap();
    assert_eq!((first.file, first.twice), (of(1, 0, 2, 2, 0, 0), 2));
    assert_eq!(
        profile.steps[2].changed.iter().map(|row| row.pattern).collect::<Vec<_>>(),
        [Pattern::M, Pattern::B]
    );
    let Step { only, inner, last, kinds, shared, .. } = &profile.steps[0];
    let once = kinds.iter().flat_map(|kind| [&kind.inner, &kind.last]).chain([only, inner, last]);
    let once: u32 = once.flat_map(|sizes| &sizes.cells).map(|cell| cell.2).sum();
    let again: Vec<_> = shared.inner.iter().map(|(times, .., count)| (*times, *count)).collect();
    assert_eq!((once, again), (6, vec![(2, 1)]), "5 is there twice, and is counted where it is met first");
    assert!(shared.only.is_empty() && shared.last.is_empty());
}

#[test]
fn what_became_of_chunks_is_told_by_how_often_they_were_there() {
    let profile = Profile::of(&series()).unwrap();
    let row = |seen, before, kept, count| Carried { size: 0, seen, before, kept, count };
    // 1 is gone, 6 and 7 are moved; 2, 3 and 4 stay; 5 stays where it is twice.
    let rows = [row(1, 1, 0, 3), row(1, 1, 1, 3), row(2, 2, 2, 1)];
    assert_eq!(profile.steps[1].carried, rows);
    assert_eq!(profile.steps[0].carried, []);
    for (step, before) in profile.steps[1..].iter().zip(&profile.measured) {
        let told: u32 = step.carried.iter().map(|row| row.count).sum();
        assert_eq!(u64::from(told), before.alone.distinct);
    }
    // Of the third snapshot 5 was there four times and more, and goes.
    assert!(profile.steps[2].carried.contains(&row(4, 2, 0, 1)));
}

#[test]
fn profiles_of_version_1_are_read() {
    let mut old = Profile::of(&series()).unwrap();
    old.version = 1;
    for step in &mut old.steps {
        step.carried.clear();
        (step.often, step.shared) = (vec![(3, 1)], Again::default());
        step.growth = None;
        step.new.iter_mut().for_each(|row| row.class = 0);
        step.gone.iter_mut().for_each(|row| row.class = 14);
        step.changed.iter_mut().for_each(|row| (row.class, row.becomes) = (14, 0));
    }
    let text = serde_json::to_string(&old).unwrap();
    assert!(
        !["carried", "becomes", "shared"].iter().any(|new| text.contains(new)),
        "there is nothing in it that was not"
    );
    let read = Profile::read_from(&mut &zstd::encode_all(text.as_bytes(), 1).unwrap()[..]).unwrap();
    old.steps.iter_mut().for_each(Step::renew);
    assert!((read.version, read.steps) == (1, old.steps));
}

#[test]
fn transitions_are_those_of_table_4_2() {
    let markov = Profile::of(&series()).unwrap().markov.unwrap();
    // Before: 4, 5 and 4 files. New: moved, n, e. Deleted: old, e. One of two comes again, a snapshot later.
    assert!((markov.n - 100.0 * 3.0 / 13.0).abs() < 1e-9 && (markov.d - 100.0 * 2.0 / 13.0).abs() < 1e-9);
    assert_eq!(markov.dn, 50.0);
    // New in the second: moved (unmodified), n (modified).
    assert_eq!((markov.nm, markov.nu, markov.nd), (50.0, 50.0, 0.0));
    // Modified in the second: a (again), b; in the third: a, n, neither again.
    assert_eq!((markov.mm, markov.mu, markov.md), (25.0, 75.0, 0.0));
    // Unmodified in the second: e, deleted; in the third: b and moved.
    assert!((markov.ud - 100.0 / 3.0).abs() < 1e-9 && markov.um == 0.0);
}

#[test]
fn nothing_of_names_and_content_survives() {
    let secret = "Zweckverband";
    let names =
        [format!("{secret}/{secret}.{}", "geheim"), format!("plan-{secret}.txt"), "x.zweckverban".into()];
    let files: Vec<_> = names.iter().map(|name| file(name, &[1, 2])).collect();
    let series = scanned(&[files.clone(), files]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.profile");
    Profile::of(&series).unwrap().save(&path, false).unwrap();
    let text = zstd::decode_all(&fs::read(path).unwrap()[..]).unwrap();
    let has = |what: &[u8]| text.windows(what.len()).any(|part| part.eq_ignore_ascii_case(what));
    assert!(has(b"txt") && has(b"fixed"));
    for word in [&b"zweck"[..], b"verband", b"geheim", b"plan", b"tmp"] {
        assert!(!has(word), "{}", String::from_utf8_lossy(word));
    }
    for chunk in 0..series.chunks.len() as u32 {
        let print = series.chunks.print(chunk);
        let hex: String = print.iter().map(|byte| format!("{byte:02x}")).collect();
        let list = print[..4].iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        assert!(!has(print) && !has(&hex.as_bytes()[..8]) && !has(list.as_bytes()));
        assert!(!has(&random(1 + u64::from(chunk), 8)));
    }
    // Every text in it is one of ours.
    let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(value["extensions"], serde_json::json!(["", "txt", "x2", "x3"]));
}

#[test]
fn what_was_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (path, profile) = (folder.path().join("x.profile"), Profile::of(&series()).unwrap());
    profile.save(&path, false).unwrap();
    let again = Profile::load(&path).unwrap();
    assert!(again.steps == profile.steps && again.measured == profile.measured);
    assert_eq!((again.chunking, again.extensions), (profile.chunking, profile.extensions.clone()));
    assert!(profile.save(&path, false).unwrap_err().to_string().contains("`force`"));
}

#[test]
fn damaged_profiles_are_refused() {
    let say = |bytes: &[u8]| Profile::read_from(&mut &bytes[..]).err().unwrap();
    assert!(say(b"").contains("is no profile"));
    assert!(say(b"LSFSTREE and more").contains("is no profile"));
    let profile = Profile::of(&series()).unwrap();
    let pack = |profile: &Profile| zstd::encode_all(&serde_json::to_vec(profile).unwrap()[..], 1).unwrap();
    let whole = pack(&profile);
    assert!(Profile::read_from(&mut &whole[..]).is_ok());
    for length in (0..whole.len()).step_by(7) {
        assert!(say(&whole[..length]).contains("is no profile"));
    }
    type Break = fn(&mut Profile);
    let cases: [(Break, &str); 20] = [
        (|p| p.lz4 = serde_json::from_str("[[8,9,0]]").ok(), "lz4"),
        (|p| p.resemblance = Some(crate::tree::Resemblance { near: 0.2, far: 1.5 }), "more than whole"),
        (|p| p.version = 9, "version is 9"),
        (|p| p.extensions[1] = "../x".into(), "letters and digits"),
        (|p| p.steps[1].new[0].file.unique = 9, "step 1: a file has more chunks"),
        (|p| p.steps[1].changed[0].kept = 2, "more chunks of some kind"),
        (|p| p.steps[1].changed[0].in_place = 2, "more chunks of some kind"),
        (|p| p.steps[1].growth = Some([1.0, 0.0]), "grow to nothing"),
        (|p| p.steps[1].carried[0].kept = 2, "more often in a part"),
        (|p| p.steps[1].carried[0].before = 0, "more often in a part"),
        (|p| p.steps[0].often.push((2, 1)), "there less often"),
        (|p| p.steps[0].often.push((3, 0)), "or there is none"),
        (|p| p.steps[0].shared.last.push((1, 300, 1, 1)), "there less often"),
        (|p| p.steps[0].shared.only.push((2, 300, 1, 0)), "or there is none"),
        (|p| p.steps[0].shared.inner.push((2, 800, 1, 1)), "16 MiB"),
        (|p| p.steps[2].directories.clear(), "no root"),
        (|p| p.steps[0].only.cells[0].0 = 900, "16 MiB"),
        (|p| p.steps[1].gone[0].count = 9, "step 1: it changes other files"),
        (|p| (p.steps[0].new[0].count, p.steps[0].new[0].file.size) = (1 << 31, 2), "step 0: it has 2^32"),
        (|p| p.steps.clear(), "no snapshot"),
    ];
    for (break_it, what) in cases {
        let mut wrong = profile.clone();
        break_it(&mut wrong);
        let told = say(&pack(&wrong));
        assert!(told.contains(what), "{told}, not {what}");
    }
}

#[test]
fn runs_are_told_where_they_are_asked_for() {
    let snapshots = [
        vec![file("a", &[1, 2, 3, 4, 5, 6, 7, 8])],
        vec![file("a", &[1, 20, 3, 4, 50, 51, 7, 8]), file("b", &[3, 4, 90, 91, 92])],
    ];
    let series = scanned(&snapshots);
    let (plain, told) = (Profile::of(&series).unwrap(), Profile::with_runs(&series).unwrap());
    assert!(plain.steps[1].runs.is_empty() && plain.steps[1].changed[0].runs == 0);
    let step = &told.steps[1];
    assert_eq!(step.changed[0].runs, 2);
    assert_eq!((step.new[0].runs, step.new[0].gaps), (1, 1));
    assert_eq!(step.runs, [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(step.gaps, [(1, 1), (2, 3)]);
}

#[test]
fn chunks_that_begin_where_they_did_are_in_place() {
    // Of 40 parts one or two are others, longer by so many bytes.
    let parts = |others: &[(u64, i64)]| {
        let part = |at: u64| match others.iter().find(|other| other.0 == at) {
            Some((_, more)) => (1000 + at, (8192 + more) as usize),
            None => (at, 8192),
        };
        vec![("a".to_string(), (0..40).map(part).collect())]
    };
    let told = |others: &[(u64, i64)]| {
        let row = Profile::of(&scanned(&[parts(&[]), parts(others)])).unwrap().steps[1].changed[0];
        (row.in_place, row.kept)
    };
    let (all, kept) = told(&[(20, 0)]);
    assert_eq!(all, kept, "what keeps its length moves nothing");
    let (first, kept) = told(&[(20, 4096)]);
    assert!(first > 0 && first < kept, "{first} of {kept} are before");
    let (ends, kept) = told(&[(20, 4096), (30, -4096)]);
    assert!(ends > first && ends < kept, "{ends} of {kept} are before or behind both");
}

#[test]
fn classes_of_sizes_are_four_for_each_doubling() {
    assert_eq!([0, 1, 2, 4, 1024, 1 << 40].map(class), [0, 1, 5, 9, 41, 161]);
    for size in (1..5000).chain([1 << 20, (1 << 20) - 1, (1 << 30) + 1]) {
        let (least, most) = sizes_of_class(class(size));
        assert!((least..=most).contains(&size), "{size}: {least} to {most}");
    }
}

#[test]
fn profiles_with_a_class_of_sizes_for_each_doubling_are_read() {
    let profile = Profile::of(&series()).unwrap();
    let mut text = serde_json::to_value(&profile).unwrap();
    text["version"] = 3.into();
    let row = text["steps"][1]["gone"][0].as_object_mut().unwrap();
    row.remove("class");
    row.insert("bits".into(), 14.into());
    let packed = zstd::encode_all(&*serde_json::to_vec(&text).unwrap(), 1).unwrap();
    let read = Profile::read_from(&mut &packed[..]).unwrap();
    let (least, most) = sizes_of_class(read.steps[1].gone[0].class);
    assert!(8192 < least && most < 16_384, "{least} to {most}");
}
