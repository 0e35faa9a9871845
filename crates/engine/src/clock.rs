//! Time: `CLOCK_MONOTONIC` in nanoseconds, read through the CPU's time-stamp counter where that holds.
//!
//! A request needs two readings. `clock_gettime` costs about 22 ns and `rdtsc` about 8 ns. The
//! counter is used when the CPU says that it ticks at one rate in every state (`constant_tsc`,
//! `nonstop_tsc`) and the kernel trusts it enough to be its own clock source. Each thread's
//! [`Clock`] is tied to `CLOCK_MONOTONIC` again a few times per second and follows it by slewing,
//! so it stays within a microsecond of it and never runs backwards.

use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::num::NonZeroU64;
use std::sync::OnceLock;

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn monotonic() -> i64 {
    read(ClockId::Monotonic)
}

/// Wall-clock time in nanoseconds since 1970.
pub fn unix() -> i64 {
    read(ClockId::Realtime)
}

/// CPU time of the calling thread, in the kernel and outside of it, nanoseconds.
pub fn thread_cpu_time() -> u64 {
    read(ClockId::ThreadCPUTime).max(0) as u64
}

fn read(clock: ClockId) -> i64 {
    let t = clock_gettime(clock);
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

/// One reading of both clocks at the same moment: the tightest of a few tries.
fn pair() -> (u64, i64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..5 {
        let before = ticks();
        let ns = monotonic();
        let after = ticks();
        if after - before < best.0 {
            best = (after - before, before + (after - before) / 2, ns);
        }
    }
    (best.1, best.2)
}

/// How the counter maps to nanoseconds: the first pair, and the first guess of the rate (ns per tick, 32.32).
#[derive(Clone, Copy)]
struct Calibration {
    origin: (u64, i64),
    mult: u64,
}

/// Measured once per process over 20 ms; `None` when the counter cannot be trusted.
fn calibration() -> Option<Calibration> {
    static ONCE: OnceLock<Option<Calibration>> = OnceLock::new();
    *ONCE.get_or_init(|| {
        if !trusted() {
            return None;
        }
        let origin = pair();
        std::thread::sleep(std::time::Duration::from_millis(20));
        Some(Calibration { origin, mult: rate(origin, pair())? })
    })
}

/// Nanoseconds per tick between two pairs, as a 32.32 fixed-point number.
fn rate(from: (u64, i64), to: (u64, i64)) -> Option<u64> {
    let ticks = to.0.checked_sub(from.0).filter(|t| *t > 0)?;
    let ns = u128::try_from(to.1 - from.1).ok()?;
    u64::try_from((ns << 32) / u128::from(ticks)).ok().filter(|m| *m > 0)
}

fn trusted() -> bool {
    if !cfg!(target_arch = "x86_64") {
        return false;
    }
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|l| l.starts_with("flags")).unwrap_or_default();
    let has = |name| flags.split_ascii_whitespace().any(|f| f == name);
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    has("constant_tsc")
        && has("nonstop_tsc")
        && matches!(source.unwrap_or_default().trim(), "tsc" | "kvm-clock")
}

/// A thread's own view of `CLOCK_MONOTONIC`.
#[derive(Clone)]
pub struct Clock {
    counter: Option<Calibration>,
    ticks: u64,
    ns: i64,
    mult: u64,
}

impl Clock {
    /// A clock in step with `CLOCK_MONOTONIC`; the first one of a process takes 20 ms.
    pub fn new() -> Clock {
        let counter = calibration();
        let (ticks, ns) = pair();
        let mult = counter.map_or(0, |c| rate(c.origin, (ticks, ns)).unwrap_or(c.mult));
        Clock { counter, ticks, ns, mult }
    }

    /// `CLOCK_MONOTONIC` now, nanoseconds.
    #[inline(always)]
    pub fn now(&self) -> i64 {
        if self.counter.is_some() { self.at(ticks()) } else { monotonic() }
    }

    #[inline(always)]
    fn at(&self, ticks: u64) -> i64 {
        // A counter a little behind (another core) must not wrap to the far future.
        let passed = (ticks as i64).wrapping_sub(self.ticks as i64).max(0) as u64;
        self.ns + ((u128::from(passed) * u128::from(self.mult)) >> 32) as i64
    }

    /// Ties the clock to `CLOCK_MONOTONIC` again; the difference is made good over the next second.
    pub fn resync(&mut self) {
        let Some(c) = self.counter else { return };
        let (ticks, ns) = pair();
        let here = self.at(ticks);
        let off = ns - here;
        self.ticks = ticks;
        // More than a millisecond is a machine that was stopped, not a slow drift.
        self.ns = if off > 1_000_000 { ns } else { here };
        if let Some(long) = rate(c.origin, (ticks, ns)) {
            let slew = if off > 1_000_000 { 0 } else { off.max(-500_000) };
            self.mult = (i128::from(long) * i128::from(1_000_000_000 + slew) / 1_000_000_000) as u64;
        }
    }

    /// Whether the CPU's counter is read instead of calling `clock_gettime`.
    pub fn uses_counter(&self) -> bool {
        self.counter.is_some()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}

/// Sleeps until `deadline` on `CLOCK_MONOTONIC`, or until a signal.
pub fn sleep_until(deadline: i64) {
    let t = Timespec { tv_sec: deadline / 1_000_000_000, tv_nsec: deadline % 1_000_000_000 };
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &t);
}

/// Asks the kernel to wake this thread on time instead of up to 50 us later (prctl(2), PR_SET_TIMERSLACK).
pub fn tight_timers() {
    // Failure only means the default slack.
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_kernel_and_never_runs_backwards() {
        let mut clock = Clock::new();
        let mut last = clock.now();
        for round in 0..20 {
            for _ in 0..2000 {
                let now = clock.now();
                assert!(now >= last);
                last = now;
            }
            if round % 5 == 4 {
                clock.resync();
            }
            // Bracketed by two kernel readings, so preemption between them does not matter.
            let (before, now, after) = (monotonic(), clock.now(), monotonic());
            assert!(now > before - 100_000 && now < after + 100_000, "{before} {now} {after}");
        }
    }
}
