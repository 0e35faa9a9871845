use super::*;

const UNIT: usize = 4096;

fn ledger(before: Before) -> Ledger {
    let path = PathBuf::from("f");
    let (stable, discards, mapped) = (false, false, false);
    Ledger::new(About { path, size: 10 * 4096 + 100, before, stable, discards, mapped }, UNIT)
}

/// Begins a write; tells the generation of each block.
fn write(ledger: &Ledger, at: u64, size: u64) -> Vec<u32> {
    let mut begun = Vec::new();
    ledger.begin_write(at, size, &mut begun);
    begun
}

fn read(ledger: &Ledger, at: u64) -> Allowed {
    let mut seen = Vec::new();
    ledger.begin_read(at, 4096, &mut seen);
    ledger.end_read(at, 4096, &mut seen);
    seen[0]
}

fn crash(ledger: &Ledger, at: u64) -> Allowed {
    let mut allowed = Vec::new();
    ledger.after_crash(at, 4096, &mut allowed);
    allowed[0]
}

fn strict(generation: u32) -> Allowed {
    Allowed { low: generation, high: generation, loose: false, open: false, skip: false, filled: 4096 }
}

fn loose(low: u32, high: u32) -> Allowed {
    Allowed { low, high, loose: true, open: false, skip: false, filled: 4096 }
}

fn open(low: u32, high: u32) -> Allowed {
    Allowed { open: true, ..loose(low, high) }
}

#[test]
fn a_write_that_is_alone_must_be_read() {
    let ledger = ledger(Before::Filled);
    assert_eq!(read(&ledger, 0), strict(0));
    assert_eq!(write(&ledger, 4096, 8192), [1, 1]);
    assert_eq!(read(&ledger, 4096), open(0, 1));
    ledger.end_write(4096, 8192, 8192, false);
    assert_eq!(
        (read(&ledger, 0), read(&ledger, 4096), read(&ledger, 8192)),
        (strict(0), strict(1), strict(1))
    );
    // The end of the file ends the last block.
    assert_eq!(write(&ledger, 40960, 100), [1]);
    ledger.end_write(40960, 100, 100, false);
    assert_eq!(read(&ledger, 40960), Allowed { filled: 100, ..strict(1) });
}

#[test]
fn failed_and_short_writes_may_have_arrived_or_not() {
    let ledger = ledger(Before::Filled);
    write(&ledger, 0, 12288);
    ledger.end_write(0, 12288, 5000, false);
    assert_eq!(
        (read(&ledger, 0), read(&ledger, 4096), read(&ledger, 8192)),
        (strict(1), loose(0, 1), loose(0, 1))
    );
    write(&ledger, 4096, 4096);
    ledger.end_write(4096, 4096, 4096, false);
    assert_eq!(read(&ledger, 4096), strict(2));
}

#[test]
fn of_writes_that_overlap_any_may_win_but_nothing_older() {
    let ledger = ledger(Before::Filled);
    write(&ledger, 0, 4096);
    ledger.end_write(0, 4096, 4096, false);
    write(&ledger, 0, 4096);
    write(&ledger, 0, 4096);
    ledger.end_write(0, 4096, 4096, false);
    assert_eq!(read(&ledger, 0), open(1, 3));
    ledger.end_write(0, 4096, 4096, false);
    assert_eq!(read(&ledger, 0), loose(2, 3));
    write(&ledger, 0, 4096);
    ledger.end_write(0, 4096, 4096, false);
    assert_eq!(read(&ledger, 0), strict(4));
}

#[test]
fn ends_of_files_that_overlap_leave_nobody_knows_what() {
    let path = PathBuf::from("f");
    let (before, stable, discards, mapped) = (Before::Zeros, false, false, false);
    let ledger = Ledger::growing(About { path, size: 0, before, stable, discards, mapped }, UNIT);
    write(&ledger, 0, 3000);
    write(&ledger, 0, 3500);
    ledger.end_write(0, 3000, 3000, false);
    ledger.end_write(0, 3500, 3500, false);
    assert!(read(&ledger, 0).skip);
}

#[test]
fn stores_to_memory_that_overlap_leave_nobody_knows_what() {
    let path = PathBuf::from("f");
    let (before, stable, discards, mapped) = (Before::Filled, false, false, true);
    let ledger = Ledger::new(About { path, size: 4096, before, stable, discards, mapped }, UNIT);
    write(&ledger, 0, 4096);
    write(&ledger, 0, 4096);
    ledger.end_write(0, 4096, 4096, false);
    ledger.end_write(0, 4096, 4096, false);
    assert!(read(&ledger, 0).skip);
    write(&ledger, 0, 4096);
    ledger.end_write(0, 4096, 4096, false);
    assert_eq!(read(&ledger, 0), strict(3));
}

#[test]
fn parts_repeat_what_is_there() {
    let ledger = ledger(Before::Filled);
    write(&ledger, 0, 4096);
    ledger.end_write(0, 4096, 4096, false);
    assert_eq!(write(&ledger, 100, 8000), [1, 0]);
    ledger.end_write(100, 8000, 0, false);
    assert_eq!((read(&ledger, 0), read(&ledger, 4096)), (strict(1), strict(0)));
    // A part that races with a whole may leave any mixture, inside of sectors, too.
    for (size, expected) in [(512, loose(1, 2)), (500, Allowed { skip: true, ..loose(1, 3) })] {
        write(&ledger, 0, 4096);
        write(&ledger, 0, size);
        ledger.end_write(0, 4096, 4096, false);
        ledger.end_write(0, size, size, false);
        assert_eq!(read(&ledger, 0), expected);
    }
    write(&ledger, 0, 4096);
    ledger.end_write(0, 4096, 4096, false);
    assert_eq!(read(&ledger, 0), strict(4));
}

#[test]
fn files_that_grow_are_known_as_far_as_they_were_written() {
    let path = PathBuf::from("f");
    let (before, stable, discards, mapped) = (Before::Filled, false, false, false);
    let ledger = Ledger::growing(About { path, size: 5000, before, stable, discards, mapped }, UNIT);
    let go = |at, size| {
        let told = write(&ledger, at, size);
        ledger.end_write(at, size, size, false);
        told
    };
    let known = |at| (read(&ledger, at).high, read(&ledger, at).filled, read(&ledger, at).skip);
    assert_eq!((known(0), known(4096), ledger.end()), ((0, 4096, false), (0, 904, false), 5000));
    // What is appended is of the generation that the block has.
    assert_eq!(go(5000, 5000), [0, 1]);
    assert_eq!((known(4096), known(8192), ledger.end()), ((0, 4096, false), (1, 1808, false), 10000));
    assert_eq!(go(10000, 100), [1]);
    // Behind a gap nobody knows.
    go(12388, 100);
    assert!(known(12288).2);
    // What was cut off never comes again.
    let cut = |size| {
        ledger.begin_cut(size);
        ledger.end_cut(size, true);
    };
    cut(9000);
    assert_eq!((known(8192), known(12288).1, ledger.end()), ((1, 808, false), 0, 9000));
    cut(0);
    assert_eq!(go(0, 8192), [1, 1]);
    assert_eq!(go(8192, 4096), [2]);
    // A write that did not arrive leaves an end that nobody knows.
    write(&ledger, 12288, 4096);
    ledger.end_write(12288, 4096, 0, false);
    assert!(known(12288).2);
}

/// A range beyond the end so far left nothing unknown, and what came behind it later made it zeros.
#[test]
fn what_was_copied_beyond_the_end_is_unknown() {
    let (path, before) = (PathBuf::from("f"), Before::Zeros);
    let about = About { path, size: 0, before, stable: false, discards: false, mapped: false };
    let ledger = Ledger::growing(about.clone(), UNIT);
    ledger.begin_discard(0, 16384);
    ledger.end_discard(0, 16384);
    write(&ledger, 8192, 4096);
    ledger.end_write(8192, 4096, 4096, false);
    assert_eq!([0, 4096, 8192, 12288].map(|at| read(&ledger, at).skip), [true, true, false, true]);
    // The same of a file of which nobody knows anything.
    let ledger = Ledger::growing(about, UNIT);
    ledger.forget();
    write(&ledger, 8192, 4096);
    ledger.end_write(8192, 4096, 4096, false);
    assert_eq!([0, 4096, 8192].map(|at| read(&ledger, at).skip), [true, true, false]);
}

/// It took 26 bytes for each block up to there.
#[test]
fn a_place_far_away_takes_no_more_memory_than_there_is() {
    let (path, before) = (PathBuf::from("f"), Before::Zeros);
    let about = About { path, size: 8192, before, stable: false, discards: false, mapped: false };
    let ledger = Ledger::growing(about, UNIT);
    let far = 1 << 55;
    assert!(write(&ledger, far, 4096).is_empty());
    ledger.end_write(far, 4096, 4096, false);
    assert_eq!(write(&ledger, 4096, 4096), [1]);
    ledger.end_write(4096, 4096, 4096, false);
    assert_eq!(ledger.end(), 8192);
}

/// Whether a write came before a cut or behind it nobody sees.
#[test]
fn what_is_written_while_a_file_is_cut_is_unknown() {
    let (path, before) = (PathBuf::from("f"), Before::Filled);
    let about = About { path, size: 8192, before, stable: false, discards: false, mapped: false };
    let made = || Ledger::growing(about.clone(), UNIT);
    let go = |ledger: &Ledger, at| {
        write(ledger, at, 4096);
        ledger.end_write(at, 4096, 4096, false);
    };
    let skips = |ledger: &Ledger| [0, 4096].map(|at| read(ledger, at).skip);
    // Within, and behind the end so far.
    let ledger = made();
    ledger.begin_cut(4096);
    assert!(read(&ledger, 4096).skip);
    go(&ledger, 4096);
    go(&ledger, 8192);
    ledger.end_cut(4096, true);
    assert_eq!((skips(&ledger), read(&ledger, 8192).skip), ([false, true], true));
    go(&ledger, 4096);
    assert_eq!((skips(&ledger), read(&ledger, 8192).skip), ([false, false], true));
    // Begun before, ended behind it.
    let ledger = made();
    write(&ledger, 4096, 4096);
    ledger.begin_cut(100);
    ledger.end_cut(100, true);
    ledger.end_write(4096, 4096, 4096, false);
    assert_eq!(skips(&ledger), [false, true]);
    // Two cuts at once.
    let ledger = made();
    ledger.begin_cut(5000);
    ledger.begin_cut(4096);
    ledger.end_cut(5000, true);
    ledger.end_cut(4096, true);
    assert_eq!(skips(&ledger), [false, true]);
    // What a stream holds back is written behind it.
    let ledger = made();
    ledger.lag(1);
    ledger.begin_cut(4096);
    ledger.end_cut(4096, true);
    ledger.lag(-1);
    assert_eq!(skips(&ledger), [false, true]);
    // One that failed changes nothing.
    let ledger = made();
    ledger.begin_cut(0);
    ledger.end_cut(0, false);
    assert_eq!((skips(&ledger), ledger.end()), ([false, false], 8192));
}

#[test]
fn what_nobody_knows_is_not_judged() {
    let ledger = ledger(Before::Zeros);
    assert_eq!(read(&ledger, 0), Allowed { filled: 0, ..strict(0) });
    write(&ledger, 512, 512);
    ledger.end_write(512, 512, 512, false);
    assert!(read(&ledger, 0).skip && !read(&ledger, 4096).skip);
    ledger.begin_discard(4096, 4096);
    ledger.end_discard(4096, 4096);
    assert!(read(&ledger, 4096).skip && crash(&ledger, 4096).skip);
    write(&ledger, 0, 8192);
    ledger.end_write(0, 8192, 8192, false);
    assert_eq!((read(&ledger, 0), read(&ledger, 4096)), (strict(1), strict(1)));
    // What was given back may come back with the power, until the new data is stable.
    assert!(crash(&ledger, 4096).skip);
    ledger.end_sync(ledger.begin_sync());
    assert_eq!(crash(&ledger, 4096), strict(1));
}

#[test]
fn of_a_write_and_a_discard_that_overlap_either_may_win() {
    let ledger = ledger(Before::Filled);
    ledger.begin_discard(0, 4096);
    write(&ledger, 0, 4096);
    ledger.end_discard(0, 4096);
    ledger.end_write(0, 4096, 4096, false);
    assert!(read(&ledger, 0).skip);
}

#[test]
fn what_was_synced_survives_a_loss_of_power() {
    let ledger = ledger(Before::Filled);
    let go = |at| {
        write(&ledger, at, 4096);
        ledger.end_write(at, 4096, 4096, false);
    };
    go(0);
    assert_eq!(crash(&ledger, 0), open(0, 1));
    let sync = ledger.begin_sync();
    go(4096);
    assert_eq!(crash(&ledger, 0), open(0, 1));
    ledger.end_sync(sync);
    assert_eq!((crash(&ledger, 0), crash(&ledger, 4096)), (strict(1), open(0, 1)));
    go(0);
    assert_eq!(crash(&ledger, 0), open(1, 2));
    go(0);
    assert_eq!(crash(&ledger, 0), open(1, 3));
    write(&ledger, 4096, 4096);
    ledger.end_write(4096, 4096, 4096, true);
    assert_eq!(crash(&ledger, 4096), strict(2));
    go(4096);
    assert_eq!(crash(&ledger, 4096), open(2, 3));
}

#[test]
fn a_ledger_that_was_kept_is_the_same() {
    let ledger = ledger(Before::Filled);
    write(&ledger, 0, 20480);
    ledger.end_write(0, 8192, 8192, false);
    ledger.end_sync(ledger.begin_sync());
    let mut kept = ledger.entries();
    let next = || kept.next().ok_or(());
    let again = Ledger::restore(ledger.about.clone(), UNIT, ledger.syncs(), next).unwrap();
    assert_eq!((read(&again, 0), crash(&again, 0), read(&again, 12288)), (strict(1), strict(1), loose(0, 1)));
    assert_eq!(again.entries().count(), 11);
}

/// A ledger whose first block has been written so often.
fn worn(generation: u32, syncs: u32) -> Ledger {
    let entry = |latest| Entry { latest, floor: latest, filled: 4096, epoch: syncs, ..Entry::default() };
    let mut entries = std::iter::once(entry(generation)).chain(std::iter::repeat_with(|| entry(1)));
    let about = ledger(Before::Filled).about.clone();
    Ledger::restore(about, UNIT, (syncs, syncs - 1), || entries.next().ok_or(())).unwrap()
}

#[test]
fn generations_begin_anew_when_they_are_used_up() {
    let ledger = worn(MOST_GENERATION - 1, 9);
    let go = || {
        let begun = write(&ledger, 0, 4096);
        ledger.end_write(0, 4096, 4096, false);
        begun[0]
    };
    assert_eq!((go(), read(&ledger, 0)), (MOST_GENERATION, strict(MOST_GENERATION)));
    // A read that began before does not know what it got.
    let mut seen = Vec::new();
    ledger.begin_read(0, 4096, &mut seen);
    assert_eq!(write(&ledger, 0, 4096), [1]);
    assert!(read(&ledger, 0).skip, "it may be of the last generation or of the first");
    ledger.end_write(0, 4096, 4096, false);
    ledger.end_read(0, 4096, &mut seen);
    assert!(seen[0].skip);
    assert_eq!(read(&ledger, 0), strict(1));
    assert!(crash(&ledger, 0).skip, "what was stable has a larger number");
    assert_eq!((go(), read(&ledger, 0)), (2, strict(2)));
    ledger.end_sync(ledger.begin_sync());
    assert_eq!(crash(&ledger, 0), strict(2));
}

#[test]
fn writes_that_overlap_at_the_last_generation_all_have_it() {
    let ledger = worn(MOST_GENERATION - 1, 9);
    for _ in 0..3 {
        assert_eq!(write(&ledger, 0, 4096), [MOST_GENERATION]);
    }
    assert_eq!(read(&ledger, 0), open(MOST_GENERATION - 1, MOST_GENERATION));
    for _ in 0..3 {
        ledger.end_write(0, 4096, 4096, false);
    }
    assert_eq!(read(&ledger, 0), strict(MOST_GENERATION));
    assert_eq!(write(&ledger, 0, 4096), [1]);
}

#[test]
fn syncs_that_are_no_longer_told_apart_make_nothing_stable() {
    let ledger = worn(5, MOST_SYNC - 1);
    let go = || {
        write(&ledger, 0, 4096);
        ledger.end_write(0, 4096, 4096, false);
        ledger.end_sync(ledger.begin_sync());
        crash(&ledger, 0)
    };
    assert_eq!(go(), strict(6));
    for generation in 7..9 {
        assert_eq!(go(), open(6, generation));
    }
}
