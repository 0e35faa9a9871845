//! Loads and stores on mapped targets (mmap(2), msync(2)); what is no transfer goes to the descriptor.

use super::Perform;
use super::sync::{announce, control, discarded};
use crate::backend::mapped::Mapping;
use crate::host::descriptors::Descriptors;
use crate::host::target::Open;
use crate::payload::buffer::Pair;
use crate::payload::{Payload, of_target};
use crate::request::{Request, op};
use crate::{Error, Result};
use std::os::fd::RawFd;
use std::sync::Arc;

/// A target in memory, and whether each store to it is to be made stable.
#[derive(Debug)]
pub struct Mapped {
    map: Mapping,
    stable: bool,
}

/// Maps all targets that are files or devices; `stable`: those on which each write is synchronous.
///
/// # Errors
/// When one cannot be mapped.
pub fn map_all(targets: &[Open], stable: &[bool]) -> Result<Arc<[Option<Mapped>]>> {
    let one = |(target, stable): (&Open, &bool)| {
        if target.file.is_none() || target.size == 0 {
            return Ok(None);
        }
        let map = Mapping::new(target.fd(), target.size, target.writable).map_err(|errno| {
            let cause = std::io::Error::from_raw_os_error(errno);
            Error::target(&target.path, format!("cannot be mapped: {cause}; use --backend sync"))
        })?;
        Ok(Some(Mapped { map, stable: *stable }))
    };
    targets.iter().zip(stable).map(one).collect()
}

/// The mmap backend of one thread.
pub struct Mmap {
    maps: Arc<[Option<Mapped>]>,
    files: Descriptors,
    buffers: Pair,
}

impl Mmap {
    /// Performs on `maps`, which all threads share, in the calling thread, which may use no other descriptors than
    /// `files` from now on.
    pub fn new(maps: Arc<[Option<Mapped>]>, files: Vec<RawFd>, payload: &Payload) -> Mmap {
        Mmap { maps, files: Descriptors::new(files), buffers: Pair::new(payload) }
    }
}

impl Perform for Mmap {
    #[inline(always)]
    fn perform(&mut self, r: &Request) -> i64 {
        let Some(mapped) = &self.maps[usize::from(r.target)] else { return -i64::from(libc::ENODEV) };
        let (size, file) = (r.size as usize, of_target(r.target.into()));
        let result = match r.op {
            op::READ => {
                let (room, _) = self.buffers.for_read_of(size, file, r.offset);
                // SAFETY: the buffer has room for `size` bytes.
                unsafe { mapped.map.read(r.offset, room, size) }
            }
            op::WRITE => {
                let (data, _) = self.buffers.for_write(size, file, r.offset);
                // SAFETY: the buffer holds `size` bytes.
                let done = unsafe { mapped.map.write(r.offset, data, size) };
                match done > 0 && (r.is_stable() || mapped.stable) {
                    true => match mapped.map.flush(r.offset, size) {
                        flushed if flushed < 0 => flushed,
                        _ => done,
                    },
                    false => done,
                }
            }
            _ => {
                announce(r, &mut self.buffers);
                control(self.files.of(r.target), r)
            }
        };
        self.buffers.ended(result, r.is_stable());
        discarded(r, result)
    }
}
