//! Whether what is kept of blocks finds room in memory: a few bytes on disk may tell of very many.

use std::fs;

/// Bytes of memory that a block takes, with its share of locks.
const BLOCK: u64 = 26;

/// Memory that can be had without swapping, bytes (`MemAvailable` of proc_meminfo(5)), and that this process may take
/// (getrlimit(2)); without limit where nothing tells.
pub fn available() -> u64 {
    let of_host = told("/proc/meminfo", "MemAvailable:").unwrap_or(u64::MAX);
    let limits = [("VmSize:", libc::RLIMIT_AS), ("VmData:", libc::RLIMIT_DATA)];
    limits.into_iter().fold(of_host, |least, (taken, resource)| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is plain data that the call fills in.
        if unsafe { libc::getrlimit(resource, &mut limit) } != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
            return least;
        }
        least.min(limit.rlim_cur.saturating_sub(told("/proc/self/status", taken).unwrap_or(0)))
    })
}

/// What a file of /proc tells in kB under a name, in bytes.
fn told(file: &str, name: &str) -> Option<u64> {
    let told = fs::read_to_string(file).ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib.saturating_mul(1024))
}

/// Whether there is memory for what is known of so many blocks.
///
/// # Errors
/// How much it takes and how much there is, where that is less; for a sentence that says what has so many.
pub fn check(blocks: u64) -> Result<(), String> {
    fits(blocks, available())
}

fn fits(blocks: u64, available: u64) -> Result<(), String> {
    let taken = blocks.saturating_mul(BLOCK);
    if taken <= available {
        return Ok(());
    }
    let (taken, there) = (taken >> 20, available >> 20);
    Err(format!("{blocks} blocks, which take {taken} MiB of memory, and {there} MiB are available"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;

    #[test]
    fn a_block_takes_no_more_than_said() {
        // 32 of them share a lock.
        let shared = size_of::<std::sync::Mutex<Vec<Entry>>>() + 16;
        assert!((32 * size_of::<Entry>() + shared) as u64 <= 32 * BLOCK);
    }

    #[test]
    fn more_than_there_is_is_refused() {
        assert_eq!(fits(100, 2600), Ok(()));
        let told = fits(1 << 40, 8 << 30).unwrap_err();
        let blocks = 1u64 << 40;
        assert_eq!(
            told,
            format!("{blocks} blocks, which take {} MiB of memory, and 8192 MiB are available", 26 << 20)
        );
        assert!(fits(u64::MAX, 8 << 30).is_err());
        assert!(available() > 1 << 20 && check(1000).is_ok());
    }
}
