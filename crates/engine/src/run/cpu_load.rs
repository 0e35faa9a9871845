//! A thread that takes CPU time and issues no requests.

use crate::clock;
use crate::issue::context::{Context, SLICE};
use crate::metrics::recorder::Recorder;
use loadstone_plan::Source;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;

/// Numbers that are sorted at once: 32 KiB, which the first-level cache holds.
const NUMBERS: usize = 8192;

/// How often it looks whether the others have ended, ns: their rates count up to the end of the run.
const LOOK: i64 = 1_000_000;

/// Is busy for a chunk and asleep for the rest of each period, until its time is over, the run stops or `ended` says so.
pub fn take_time(
    source: &Source,
    seed: u64,
    context: &mut Context,
    recorder: &mut Recorder,
    ended: impl Fn() -> bool,
) {
    let Source::Cpu { load, chunk_ns, sorts, with_others } = *source else { return };
    let slice = if with_others { LOOK } else { SLICE };
    let mut work = Work::new(sorts, seed);
    let mut begin = context.start;
    loop {
        let mut now = context.clock.now();
        let busy_until = begin.max(now).saturating_add(chunk_ns as i64).min(context.deadline);
        while now < busy_until && !context.stop.load(Relaxed) && !ended() {
            work.some();
            now = context.clock.now();
        }
        recorder.idle(now, &mut context.clock);
        begin = next(begin, now, chunk_ns, load);
        loop {
            if context.stop.load(Relaxed) || now >= context.deadline || ended() {
                return;
            }
            if now >= begin {
                break;
            }
            clock::sleep_until(begin.min(now + slice).min(context.deadline));
            now = context.clock.now();
        }
    }
}

/// When the next chunk begins: a period after this one, and at once where that is over.
fn next(begin: i64, now: i64, chunk_ns: u64, load: f64) -> i64 {
    begin.saturating_add((chunk_ns as f64 / load) as i64).max(now)
}

/// What the thread is busy with.
enum Work {
    /// Looking at the clock, without a pause: that would hand the CPU to others, also to another guest.
    Clock,
    /// Sorting.
    Sort(Vec<u32>, Xoshiro256PlusPlus),
}

impl Work {
    fn new(sorts: bool, seed: u64) -> Work {
        if sorts {
            Work::Sort(vec![0; NUMBERS], Xoshiro256PlusPlus::seed_from_u64(seed))
        } else {
            Work::Clock
        }
    }

    /// A little of it.
    fn some(&mut self) {
        if let Work::Sort(numbers, random) = self {
            numbers.iter_mut().for_each(|number| *number = random.next_u64() as u32);
            numbers.sort_unstable();
            black_box(numbers.as_slice());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_begins_a_period_after_the_one_before() {
        // 50 ms at half a CPU: every 100 ms; what overslept does not shift the rest.
        assert_eq!(next(0, 50_000_100, 50_000_000, 0.5), 100_000_000);
        assert_eq!(next(100_000_000, 150_000_900, 50_000_000, 0.5), 200_000_000);
        // A whole CPU never sleeps, and who comes too late begins at once.
        assert_eq!(next(0, 50_000_000, 50_000_000, 1.0), 50_000_000);
        assert_eq!(next(0, 130_000_000, 50_000_000, 0.5), 130_000_000);
    }

    #[test]
    fn what_is_sorted_is_drawn_anew_each_time() {
        let mut work = Work::new(true, 3);
        work.some();
        let Work::Sort(first, _) = &work else { panic!("sorts") };
        let first = first.clone();
        work.some();
        let Work::Sort(second, _) = &work else { panic!("sorts") };
        assert!(first.is_sorted() && second.is_sorted() && first != *second);
        assert_eq!(first.len(), NUMBERS);
    }
}
