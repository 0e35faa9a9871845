//! Whether what a sampler remembers finds room in memory: a few bytes of a model may claim very many files or blocks.

use loadstone_files::available_memory;
use loadstone_trace::lru::blocks;
use loadstone_trace::{Batch, Error, ErrorKind, Result};

/// Bytes that a file that was made takes with its name, about.
pub(crate) const FILE: u64 = 512;

/// Below so many bytes nothing is asked.
const SMALL: u64 = 1 << 26;

/// Asks for memory each time what is remembered has doubled.
#[derive(Default)]
pub(crate) struct Room {
    asked: u64,
}

impl Room {
    /// Takes note of the bytes that are remembered now.
    ///
    /// # Errors
    /// There is not twice as much memory again, which growing takes.
    pub fn check(&mut self, held: u64) -> Result<()> {
        if held < SMALL.max(2 * self.asked) {
            return Ok(());
        }
        self.asked = held;
        self.fits(available_memory())
    }

    fn fits(&self, there: u64) -> Result<()> {
        if 2 * self.asked <= there {
            return Ok(());
        }
        let (held, there) = (self.asked >> 20, there >> 20);
        let what = format!(
            "the model's requests use so many files or blocks that they take {held} MiB of memory, and {there} MiB \
             are left"
        );
        Err(Error::new(ErrorKind::TooLarge, what)
            .help("make the model smaller with `loadstone model scale --rate`"))
    }
}

/// Bytes that a block takes that features remember, twice as many while there come more.
const BLOCK: u64 = 128;

/// Asks whether there is memory for what requests may make features remember: a few lines of a trace may claim very large
/// requests.
///
/// # Errors
/// There is not.
pub(crate) fn admits(batch: &Batch) -> Result<()> {
    let places = batch.offset.iter().zip(&batch.size);
    let counts = batch.op.iter().zip(places).map(|(&op, (&offset, &size))| {
        let blocks = blocks(op, offset, size);
        blocks.end - blocks.start
    });
    let held = counts.sum::<u64>().saturating_mul(BLOCK);
    if held < SMALL || held <= available_memory() {
        return Ok(());
    }
    let (held, there) = (held >> 20, available_memory() >> 20);
    let what = format!(
        "{} requests in a row may use so many blocks that they take {held} MiB of memory, and {there} MiB are left",
        batch.op.len()
    );
    Err(Error::new(ErrorKind::TooLarge, what).help("fit a part of the trace (`loadstone trace select`)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_requests_are_asked_for() {
        let mut batch = Batch::default();
        for n in 0..4096 {
            batch.op.push(0);
            batch.offset.push(n << 30);
            batch.size.push(1 << 20);
        }
        assert!(admits(&batch).is_ok());
        // A GiB each: 64 GiB of memory for what two hours of a fast disk move.
        batch.size.iter_mut().for_each(|size| *size = 1 << 36);
        assert!(admits(&batch).unwrap_err().to_string().contains("4096 requests in a row"));
    }

    #[test]
    fn it_asks_when_all_has_doubled() {
        let mut room = Room::default();
        assert!(room.check(SMALL - 1).is_ok() && room.asked == 0);
        assert!(room.check(SMALL).is_ok() && room.asked == SMALL);
        assert!(room.check(2 * SMALL - 1).is_ok() && room.asked == SMALL);
        assert!(room.check(u64::MAX / 4).is_err());
    }

    #[test]
    fn what_does_not_fit_twice_is_refused() {
        let room = Room { asked: 1 << 30 };
        assert!(room.fits(2 << 30).is_ok());
        let told = room.fits((2 << 30) - 1).unwrap_err().to_string();
        assert!(told.contains("1024 MiB") && told.contains("2047 MiB"), "{told}");
    }
}
