//! How much memory there is for what a file or a plan claims.

use std::fs;

/// Memory that can be had without swapping, bytes (`MemAvailable` of proc_meminfo(5)), and that this process may take
/// (getrlimit(2)); without limit where nothing tells.
pub fn available_memory() -> u64 {
    let of_host = told("/proc/meminfo", "MemAvailable:").unwrap_or(u64::MAX);
    limited_memory().map_or(of_host, |left| left.min(of_host))
}

/// Bytes that this process may still map by its limits (`ulimit -v`, `-d`; getrlimit(2)); `None` without a limit.
pub fn limited_memory() -> Option<u64> {
    let limits = [("VmSize:", libc::RLIMIT_AS), ("VmData:", libc::RLIMIT_DATA)];
    let left = limits.into_iter().filter_map(|(taken, resource)| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is plain data that the call fills in.
        if unsafe { libc::getrlimit(resource, &mut limit) } != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
            return None;
        }
        Some(limit.rlim_cur.saturating_sub(told("/proc/self/status", taken).unwrap_or(0)))
    });
    left.min()
}

/// What a file of /proc tells in kB under a name, in bytes.
fn told(file: &str, name: &str) -> Option<u64> {
    let told = fs::read_to_string(file).ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_some() {
        assert!(available_memory() > 1 << 20);
    }
}
