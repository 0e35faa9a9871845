//! Whether what is kept of blocks finds room in memory: a few bytes on disk may tell of very many.

use loadstone_files::available_memory;

/// Bytes of memory that a block takes, with its share of locks.
pub const BLOCK: u64 = 26;

/// Whether there is memory for what is known of so many blocks.
///
/// # Errors
/// How much it takes and how much there is, where that is less; for a sentence that says what has so many.
pub fn check(blocks: u64) -> Result<(), String> {
    fits(blocks, available_memory())
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
        assert!(check(1000).is_ok());
    }
}
