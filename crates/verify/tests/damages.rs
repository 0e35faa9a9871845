//! Every kind of damage, done to a file of two that were written under verification, is found and named.

use loadstone_content::{Content, Wanted};
use loadstone_verify::{
    About, Before, Blocks, Checker, Damage, Findings, Ledger, Swept, Verifier, When, Wrong,
};
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

const UNIT: usize = 4096;
const BLOCKS: u64 = 64;

fn blocks(marked: bool) -> Blocks {
    if marked {
        return Blocks::marked(9, UNIT);
    }
    let wanted = Wanted { dedupe: 1.5, compress: 2.0, unit: UNIT };
    Blocks::of_content(Content::new(9, &wanted, 2 * BLOCKS).unwrap())
}

/// Two files, filled and written to.
struct Bench {
    verifier: Arc<Verifier>,
    files: Vec<File>,
    _dir: tempfile::TempDir,
}

impl Bench {
    fn new(marked: bool) -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let (blocks, mut files, mut ledgers) = (blocks(marked), Vec::new(), Vec::new());
        for number in 0..2 {
            let path = dir.path().join(number.to_string());
            let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
            let mut bytes = vec![0; UNIT];
            for block in 0..BLOCKS {
                let at = loadstone_verify::Block { file: number, block };
                blocks.fill(at, 0, 0, &mut bytes, &mut Vec::new());
                file.write_all_at(&bytes, block * UNIT as u64).unwrap();
            }
            let size = BLOCKS * UNIT as u64;
            let about =
                About { path, size, before: Before::Filled, stable: false, discards: false, mapped: false };
            ledgers.push(Ledger::new(about, UNIT));
            files.push(file);
        }
        Bench { verifier: Arc::new(Verifier::new(blocks, ledgers)), files, _dir: dir }
    }

    fn write(&self, file: usize, block: u64) {
        let mut checker = Checker::new(self.verifier.clone());
        let mut bytes = vec![0; UNIT];
        checker.write(file as u64, block * UNIT as u64, UNIT as u64);
        checker.fill(&mut bytes);
        self.files[file].write_all_at(&bytes, block * UNIT as u64).unwrap();
        checker.ended(UNIT as i64, false, |_, _| &[]);
    }

    fn sync(&self, file: usize) {
        let mut checker = Checker::new(self.verifier.clone());
        checker.sync(file as u64);
        checker.ended(0, false, |_, _| &[]);
    }

    fn bytes(&self, file: usize, block: u64) -> Vec<u8> {
        let mut bytes = vec![0; UNIT];
        self.files[file].read_exact_at(&mut bytes, block * UNIT as u64).unwrap();
        bytes
    }

    fn put(&self, file: usize, block: u64, bytes: &[u8]) {
        self.files[file].write_all_at(bytes, block * UNIT as u64).unwrap();
    }

    fn sweep(&self, when: When) -> (Findings, Swept) {
        let mut swept = Swept::default();
        for (number, file) in self.files.iter().enumerate() {
            swept = self.verifier.sweep(number as u64, file, when, |_| ControlFlow::Continue(()));
        }
        (self.verifier.findings(), swept)
    }

    fn only(&self, when: When) -> Damage {
        let mut found = self.sweep(when).0;
        assert_eq!(found.damages.len(), 1, "{:?}", found.damages);
        found.damages.remove(0)
    }
}

#[test]
fn nothing_is_wrong_with_what_was_written() {
    for marked in [true, false] {
        let bench = Bench::new(marked);
        for block in [0, 1, 1, 5, 63, 1] {
            bench.write(1, block);
        }
        let (found, _) = bench.sweep(When::Ended);
        assert_eq!((found.counts.checked, found.counts.unknown, found.wrong.len()), (2 * BLOCKS, 0, 0));
    }
}

#[test]
fn lost_writes_are_stale_or_zeros() {
    for marked in [true, false] {
        let bench = Bench::new(marked);
        bench.write(1, 7);
        let old = bench.bytes(1, 7);
        bench.write(1, 7);
        bench.write(1, 7);
        bench.put(1, 7, &old);
        let damage = bench.only(When::Ended);
        assert_eq!((damage.wrong, damage.file, damage.at, damage.low), (Wrong::Stale, 1, 7 * 4096, 3));
        assert_eq!(damage.found, [1]);
        let bench = Bench::new(marked);
        bench.put(0, 3, &[0; UNIT]);
        assert_eq!(bench.only(When::Ended).wrong, Wrong::Lost);
    }
}

#[test]
fn torn_blocks_tell_their_generations() {
    for marked in [true, false] {
        let bench = Bench::new(marked);
        bench.write(0, 2);
        let old = bench.bytes(0, 2);
        bench.write(0, 2);
        let mut torn = bench.bytes(0, 2);
        torn[1024..2048].copy_from_slice(&old[1024..2048]);
        bench.put(0, 2, &torn);
        let damage = bench.only(When::Ended);
        assert_eq!((damage.wrong, damage.found), (Wrong::Torn, vec![2, 1]));
        // Without the rest of it, too.
        torn[1024..2048].fill(0);
        let bench = Bench::new(marked);
        bench.write(0, 2);
        bench.write(0, 2);
        bench.put(0, 2, &torn);
        let damage = bench.only(When::Ended);
        assert_eq!((damage.wrong, damage.found), (Wrong::Torn, vec![2]));
    }
}

#[test]
fn what_belongs_elsewhere_is_named() {
    for marked in [true, false] {
        for file in [0, 1] {
            let bench = Bench::new(marked);
            bench.write(file, 40);
            bench.put(0, 41, &bench.bytes(file, 40));
            let damage = bench.only(When::Ended);
            assert_eq!((damage.wrong, damage.at), (Wrong::Misplaced, 41 * 4096));
            let (of, at) = damage.belongs.unwrap();
            // Without marks it may be any block with this content.
            assert!(!marked || (of, at) == (file as u64, 40 * 4096));
            assert_eq!(bench.bytes(of as usize, at / 4096), bench.bytes(file, 40));
        }
    }
}

#[test]
fn flipped_bits_and_other_runs_are_told() {
    for marked in [true, false] {
        let bench = Bench::new(marked);
        let mut bytes = bench.bytes(0, 0);
        bytes[77] ^= 4;
        bench.put(0, 0, &bytes);
        let damage = bench.only(When::Ended);
        assert_eq!((damage.wrong, damage.differs), (Wrong::Corrupt, (77, 1)));
    }
    let bench = Bench::new(true);
    let mut bytes = vec![0; UNIT];
    Blocks::marked(10, UNIT).fill(
        loadstone_verify::Block { file: 0, block: 0 },
        0,
        0,
        &mut bytes,
        &mut Vec::new(),
    );
    bench.put(0, 0, &bytes);
    assert_eq!(bench.only(When::Ended).wrong, Wrong::Foreign);
    let bench = Bench::new(true);
    bytes.iter_mut().for_each(|byte| *byte = 7);
    bench.put(0, 0, &bytes);
    assert_eq!(bench.only(When::Ended).wrong, Wrong::Corrupt);
}

#[test]
fn blocks_that_are_read_together_are_told_apart() {
    for marked in [true, false] {
        let bench = Bench::new(marked);
        // Blocks 8 to 15 are of generation 1, all others of generation 0.
        (8..16).for_each(|block| bench.write(0, block));
        let mut wrong = bench.bytes(0, 21);
        wrong[700] ^= 1;
        bench.put(0, 21, &wrong);
        let read = |first: u64, blocks: u64, short: usize| {
            let (at, size) = (first * UNIT as u64, blocks as usize * UNIT - short);
            let mut bytes = vec![0; size];
            bench.files[0].read_exact_at(&mut bytes, at).unwrap();
            let before = bench.verifier.findings();
            let mut checker = Checker::new(bench.verifier.clone());
            checker.read(0, at, size as u64);
            checker.ended(size as i64, false, |_, _| &bytes);
            drop(checker);
            let after = bench.verifier.findings();
            let found = |findings: &Findings| findings.wrong.values().sum::<u64>();
            (after.counts.checked - before.counts.checked, found(&after) - found(&before))
        };
        // One generation each, several, and a part of the last block.
        assert_eq!(
            (read(0, 8, 0), read(8, 8, 0), read(4, 12, 0), read(0, 8, 100)),
            ((8, 0), (8, 0), (12, 0), (8, 0))
        );
        assert_eq!((read(16, 8, 0), read(16, 5, 0), read(21, 1, 0)), ((8, 1), (5, 0), (1, 1)));
        let damage = &bench.verifier.findings().damages[0];
        assert_eq!((damage.at, damage.differs), (21 * UNIT as u64, (21 * UNIT as u64 + 700, 1)));
        assert_eq!((damage.wrong, damage.times), (Wrong::Corrupt, 2));
    }
}

#[test]
fn a_loss_of_power_may_take_only_what_was_not_synced() {
    for marked in [true, false] {
        let bench = Bench::new(marked);
        let crashed = When::Crashed { running: false };
        bench.write(0, 10);
        bench.write(0, 11);
        bench.sync(0);
        let (ten, eleven) = (bench.bytes(0, 10), bench.bytes(0, 11));
        bench.write(0, 10);
        bench.write(0, 12);
        // Lost, torn, and arrived: all three may be.
        bench.put(0, 10, &ten);
        let (found, swept) = bench.sweep(crashed);
        assert_eq!((found.wrong.len(), swept.unsynced.older), (0, 0));
        let swept = bench.verifier.sweep(0, &bench.files[0], crashed, |_| ControlFlow::Continue(()));
        assert_eq!((swept.unsynced.newest, swept.unsynced.older, swept.unsynced.mixed), (1, 1, 0));
        // What was synced may not be lost.
        let mut old = vec![0; UNIT];
        bench.verifier.blocks.fill(
            loadstone_verify::Block { file: 0, block: 11 },
            0,
            0,
            &mut old,
            &mut Vec::new(),
        );
        bench.put(0, 11, &old);
        assert_eq!(bench.only(crashed).wrong, Wrong::Stale);
        bench.put(0, 11, &eleven);
        // Nor may that below a write that was not.
        let bench = Bench::new(marked);
        bench.write(0, 20);
        bench.sync(0);
        let synced = bench.bytes(0, 20);
        bench.write(0, 20);
        bench.put(0, 20, &[0; UNIT]);
        assert_eq!(bench.only(crashed).wrong, Wrong::Lost);
        bench.put(0, 20, &synced);
        let before = bench.verifier.findings().wrong;
        let after = bench.sweep(When::Crashed { running: true }).0.wrong;
        assert_eq!(before, after);
    }
}

#[test]
fn a_state_that_was_kept_knows_the_same() {
    let bench = Bench::new(true);
    bench.write(0, 1);
    bench.sync(0);
    bench.write(0, 1);
    let recipe = loadstone_verify::state::Recipe { unit: UNIT, key: 9, content: None };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state");
    loadstone_verify::state::save(&path, &recipe, &bench.verifier, false, false).unwrap();
    let state = loadstone_verify::state::load(&path).unwrap();
    assert_eq!(state.recipe, recipe);
    for (a, b) in bench.verifier.files.iter().zip(&state.verifier.files) {
        assert!(a.about == b.about && a.entries().eq(b.entries()) && a.syncs() == b.syncs());
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    whatever_is_wrong_is_an_error(&std::fs::read(&path).unwrap(), &path);
}

fn whatever_is_wrong_is_an_error(bytes: &[u8], path: &Path) {
    use loadstone_verify::state;
    for end in 0..bytes.len() {
        assert!(state::read(&bytes[..end]).is_err(), "cut at {end}");
    }
    for at in 0..bytes.len() {
        let mut other = bytes.to_vec();
        other[at] ^= 0x20;
        // The header's numbers may be others; its shape and all entries are checked.
        let _ = state::read(&other[..]);
    }
    let told = state::load(&path.with_file_name("none")).err().unwrap().to_string();
    assert!(told.contains("cannot be opened"), "{told}");
    let told = state::read(&b"something else"[..]).err().unwrap();
    assert!(told.contains("too short"), "{told}");
}

/// A file of which a part cannot be read.
struct Flaky<'a>(&'a File, std::ops::Range<u64>);

impl FileExt for Flaky<'_> {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> std::io::Result<usize> {
        let Flaky(file, bad) = self;
        if at < bad.end && at + buffer.len() as u64 > bad.start {
            return Err(std::io::Error::from_raw_os_error(5));
        }
        file.read_at(buffer, at)
    }

    fn write_at(&self, buffer: &[u8], at: u64) -> std::io::Result<usize> {
        self.0.write_at(buffer, at)
    }
}

#[test]
fn what_cannot_be_read_is_counted_and_all_else_is_compared() {
    for marked in [true, false] {
        let bench = Bench::new(marked);
        bench.write(0, 3);
        let older = bench.bytes(0, 60);
        bench.write(0, 60);
        bench.put(0, 60, &older);
        let unit = UNIT as u64;
        for (bad, blocks) in
            [(5 * unit + 100..5 * unit + 101, 1), (7 * unit..17 * unit, 10), (0..u64::MAX, BLOCKS)]
        {
            let before = bench.verifier.findings();
            let flaky = Flaky(&bench.files[0], bad.clone());
            let mut told = 0;
            let swept = bench.verifier.sweep(0, &flaky, When::Ended, |bytes| {
                told += bytes;
                ControlFlow::Continue(())
            });
            assert_eq!((swept.unreadable.blocks, told), (blocks, BLOCKS * unit), "{bad:?}");
            assert_eq!(swept.unreadable.first[0], bad.start / unit * unit);
            assert!(swept.unreadable.first.len() as u64 == blocks.min(8));
            let found = bench.verifier.findings();
            assert_eq!(found.counts.checked - before.counts.checked, BLOCKS - blocks);
            let stale = u64::from(blocks < BLOCKS);
            assert_eq!(
                found.wrong.get(&Wrong::Stale).copied().unwrap_or(0),
                before.wrong.get(&Wrong::Stale).copied().unwrap_or(0) + stale
            );
        }
        let told = Flaky(&bench.files[0], 2 * unit..12 * unit);
        let swept = bench.verifier.sweep(0, &told, When::Ended, |_| ControlFlow::Continue(()));
        let said = swept.unreadable.tell().unwrap();
        assert!(said.starts_with("10 blocks cannot be read, at bytes 8192, 12288, "), "{said}");
        assert!(said.ends_with(" and more: Input/output error (os error 5)"), "{said}");
        // Of what is on either side it is told whose it is.
        assert!(bench.verifier.recognises(0, &told));
    }
}

#[test]
fn of_what_was_not_synced_only_bytes_of_its_generations_are_right() {
    let crashed = When::Crashed { running: false };
    let sectors = [0, 1, 4, 7];
    for marked in [true, false] {
        let bench = Bench::new(marked);
        bench.sync(0);
        let old = bench.bytes(0, 10);
        bench.write(0, 10);
        let new = bench.bytes(0, 10);
        // A copy that a loss of power cut short, at any byte.
        for cut in [0, 1, 511, 512, 700, 2048, 4090, 4096] {
            bench.put(0, 10, &[&new[..cut], &old[cut..]].concat());
            assert_eq!(bench.sweep(crashed).0.wrong.len(), 0, "{cut}");
        }
        // One byte, a sector, and all but one sector that nobody wrote.
        for sector in sectors {
            for (from, to) in [(100, 101), (481, 482), (505, 506), (511, 512), (0, 512)] {
                let mut bad = new.clone();
                bad[sector * 512 + from..sector * 512 + to].iter_mut().for_each(|byte| *byte ^= 0x5a);
                let bench = Bench::new(marked);
                bench.sync(0);
                bench.write(0, 10);
                bench.put(0, 10, &bad);
                assert_eq!(bench.only(crashed).wrong, Wrong::Corrupt, "{sector} {from}");
            }
        }
        let bench = Bench::new(marked);
        bench.write(0, 10);
        let garbage: Vec<u8> = (0..UNIT).map(|at| (at * at % 251) as u8).collect();
        bench.put(0, 10, &[&new[..512], &garbage[512..]].concat());
        assert_eq!(bench.only(crashed).wrong, Wrong::Corrupt);
    }
}

#[test]
fn of_more_generations_than_are_tried_marks_still_tell() {
    let crashed = When::Crashed { running: false };
    for running in [false, true] {
        let bench = Bench::new(true);
        bench.sync(0);
        let mut all = vec![bench.bytes(0, 10)];
        for _ in 0..200 {
            bench.write(0, 10);
            all.push(bench.bytes(0, 10));
        }
        let when = When::Crashed { running };
        bench.put(0, 10, &[&all[7][..700], &all[8][700..]].concat());
        assert_eq!(bench.sweep(when).0.wrong.len(), 0);
        let mut bad = all[9].clone();
        bad[1000] ^= 1;
        bench.put(0, 10, &bad);
        assert_eq!(bench.only(when).wrong, Wrong::Corrupt);
    }
    // Content has no marks, and of so many generations none is ruled out.
    let bench = Bench::new(false);
    bench.sync(0);
    (0..200).for_each(|_| bench.write(0, 10));
    let fifty = bench.bytes(0, 10);
    bench.put(0, 10, &fifty);
    assert_eq!(bench.sweep(crashed).0.wrong.len(), 0);
}

#[test]
fn a_file_whose_blocks_were_all_given_back_is_no_other_file() {
    for marked in [true, false] {
        let bench = Bench::new(marked);
        let all = BLOCKS * UNIT as u64;
        let mut checker = Checker::new(bench.verifier.clone());
        checker.discard(0, 0, all);
        checker.ended(0, false, |_, _| &[]);
        bench.files[0].write_all_at(&vec![0; all as usize], 0).unwrap();
        bench.files[1].write_all_at(&vec![0; all as usize], 0).unwrap();
        assert!(bench.verifier.recognises(0, &bench.files[0]));
        // Of the other one it is known what it should hold.
        assert!(!bench.verifier.recognises(1, &bench.files[1]));
    }
}
