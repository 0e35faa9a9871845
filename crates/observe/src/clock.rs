//! The clocks everything is stamped with.

fn read(clock: libc::clockid_t) -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec for the kernel to fill; both clocks always exist on Linux.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// `CLOCK_MONOTONIC` in nanoseconds: the time of every sample, comparable with the engine's.
pub fn monotonic_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_REALTIME` in nanoseconds since 1970.
pub fn unix_ns() -> i64 {
    read(libc::CLOCK_REALTIME)
}

/// Clock ticks per second of /proc/stat (`sysconf(_SC_CLK_TCK)`).
pub fn ticks_per_s() -> i64 {
    // SAFETY: sysconf takes no pointer.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks } else { 100 }
}

/// CPU time (user, system) in microseconds of the process or of the calling thread.
pub(crate) fn cpu_us(who: libc::c_int) -> (i64, i64) {
    // SAFETY: an all-zero rusage is valid, and the kernel fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing.
    unsafe { libc::getrusage(who, &mut usage) };
    let us = |t: libc::timeval| t.tv_sec * 1_000_000 + t.tv_usec;
    (us(usage.ru_utime), us(usage.ru_stime))
}
