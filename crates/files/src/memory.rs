//! How much memory there is for what a file or a plan claims.

use rustix::process::{Resource, getrlimit};
use std::fs;

/// Memory that can be had without swapping, bytes (`MemAvailable` of proc_meminfo(5)), and that this process may take
/// (getrlimit(2)); without limit where nothing tells.
pub fn available_memory() -> u64 {
    let of_host = told("/proc/meminfo", "MemAvailable:").unwrap_or(u64::MAX);
    let limits = [("VmSize:", Resource::As), ("VmData:", Resource::Data)];
    limits.into_iter().fold(of_host, |least, (taken, resource)| {
        let Some(limit) = getrlimit(resource).current else { return least };
        least.min(limit.saturating_sub(told("/proc/self/status", taken).unwrap_or(0)))
    })
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
