//! The clocks everything is stamped with.

use rustix::time::{ClockId, clock_gettime};

/// Longest time between two samples, ns.
pub(crate) const MOST_INTERVAL: u64 = 100 * 24 * 3600 * 1_000_000_000;

fn read(clock: ClockId) -> i64 {
    let t = clock_gettime(clock);
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// `CLOCK_MONOTONIC` in nanoseconds: the time of every sample, comparable with the engine's.
pub fn monotonic_ns() -> i64 {
    read(ClockId::Monotonic)
}

/// `CLOCK_REALTIME` in nanoseconds since 1970.
pub fn unix_ns() -> i64 {
    read(ClockId::Realtime)
}

/// Clock ticks per second of /proc/stat (`sysconf(_SC_CLK_TCK)`).
pub fn ticks_per_s() -> i64 {
    rustix::param::clock_ticks_per_second() as i64
}

/// CPU time (user, system) in microseconds of the process or of the calling thread.
pub(crate) fn cpu_us(who: libc::c_int) -> (i64, i64) {
    // SAFETY: an all-zero rusage is valid, and the kernel fills it. Rustix has no getrusage(2).
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing.
    unsafe { libc::getrusage(who, &mut usage) };
    let us = |t: libc::timeval| t.tv_sec * 1_000_000 + t.tv_usec;
    (us(usage.ru_utime), us(usage.ru_stime))
}
