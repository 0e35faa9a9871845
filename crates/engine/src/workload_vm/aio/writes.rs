//! Writes of one thread that are under way in its io_uring.

use crate::issue::context::SLICE;
use crate::payload::Payload;
use crate::payload::buffer::Pair;
use crate::workload_vm::code::Step;
use io_uring::{IoUring, opcode, types};
use std::os::fd::RawFd;

/// Most writes of a thread under way; one more waits for the end of another.
pub const MOST: usize = 4096;

/// A write under way, or room for one.
pub struct Flight<'a> {
    pub step: Option<&'a Step>,
    pub data: Pair,
    pub size: u64,
    pub issued: i64,
    pub intended: Option<i64>,
}

/// The writes of a thread.
pub struct Writes<'a> {
    pub ring: IoUring,
    pub flights: Vec<Flight<'a>>,
    pub free: Vec<u32>,
    payload: Payload,
}

/// A ring that threads may leave alone: completions come without being asked for.
fn ring(entries: u32, completions: u32) -> std::io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.dontfork().setup_cqsize(completions);
    builder.build(entries)
}

/// Whether writes can go on beside a thread here at all.
///
/// # Errors
/// Says why not and what to do.
pub fn available() -> Result<(), String> {
    ring(1, 2).map(drop).map_err(|cause| {
        format!(
            "aio_write needs io_uring, which this kernel or container refuses ({cause}); permit it \
             (kernel.io_uring_disabled, seccomp), or use write with more threads"
        )
    })
}

impl<'a> Writes<'a> {
    /// # Errors
    /// Says why the ring cannot be made.
    pub fn new(payload: &Payload) -> Result<Writes<'a>, String> {
        let ring = ring(8, 2 * MOST as u32)
            .map_err(|cause| format!("setting up io_uring for aio_write: {cause}"))?;
        Ok(Writes { ring, flights: Vec::new(), free: Vec::new(), payload: payload.clone() })
    }

    pub fn under_way(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    /// A place for one more write.
    pub fn place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let data = Pair::new(&self.payload.part(self.flights.len()));
            self.flights.push(Flight { step: None, data, size: 0, issued: 0, intended: None });
            self.flights.len() as u32 - 1
        })
    }

    /// Whether the kernel still has writes to end.
    pub fn is_busy(&mut self) -> bool {
        // What could not be handed over will never end.
        self.under_way() > self.ring.submission().len()
    }

    /// Hands a write to the kernel.
    ///
    /// # Errors
    /// When the kernel takes no more.
    pub fn submit(&mut self, place: u32, fd: RawFd, file: u64, at: u64) -> std::io::Result<()> {
        let flight = &mut self.flights[place as usize];
        let size = flight.size as usize;
        let zeros = flight.step.is_some_and(|step| step.zeros);
        let data = if zeros { flight.data.zeros(size) } else { flight.data.for_write(size, file, at).0 };
        let entry = opcode::Write::new(types::Fd(fd), data, flight.size as u32).offset(at).build();
        // SAFETY: the memory is the flight's own until its completion was seen; nobody drops it before.
        if unsafe { self.ring.submission().push(&entry.user_data(u64::from(place))) }.is_err() {
            return Err(std::io::Error::from_raw_os_error(libc::EBUSY));
        }
        loop {
            match self.ring.submit() {
                Ok(_) => return Ok(()),
                // The entry stays queued, and goes out with a later call.
                Err(e) if matches!(e.raw_os_error(), Some(libc::EBUSY | libc::EAGAIN)) => return Ok(()),
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Waits for a completion, `ns` at most.
    pub fn wait(&mut self, ns: i64) {
        let time = types::Timespec::new().nsec(ns.clamp(0, 999_999_999) as u32);
        // Whatever ended it, the completions are looked at next.
        let _ = self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&time));
    }
}

impl Drop for Writes<'_> {
    fn drop(&mut self) {
        // The kernel reads from the flights' memory until the last of them has ended.
        while self.is_busy() {
            self.wait(SLICE);
            let Writes { ring, free, .. } = self;
            free.extend(ring.completion().map(|done| done.user_data() as u32));
        }
    }
}
