//! Where a file has bytes that no device holds.

use rustix::fs::{SeekFrom, seek};
use std::fs::File;
use std::os::fd::AsRawFd;

/// `FS_IOC_FIEMAP` of linux/fiemap.h.
const FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
/// Data that is still in memory is written first, as unwritten extents may have some.
const SYNC: u32 = 1;
const LAST: u32 = 1;
const UNWRITTEN: u32 = 0x800;
/// Extents that are asked for at once.
const EXTENTS: usize = 256;

#[repr(C)]
#[derive(Clone, Copy)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more: [u32; 3],
}

#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

/// The first byte of a hole or of an extent that was reserved and never written, as far as the file system tells.
///
/// To lseek(2) a page that was read from an unwritten extent is data, and to FIEMAP holes are what lies between extents.
pub fn first_hole(file: &File) -> Option<u64> {
    let hole = seek(file, SeekFrom::Hole(0)).ok();
    [hole, first_unwritten(file)].into_iter().flatten().min()
}

fn first_unwritten(file: &File) -> Option<u64> {
    let none = Extent { logical: 0, physical: 0, length: 0, reserved: [0; 2], flags: 0, more: [0; 3] };
    let mut start = 0;
    loop {
        let mut map = Box::new(Map {
            start,
            length: u64::MAX - start,
            flags: SYNC,
            mapped: 0,
            count: EXTENTS as u32,
            reserved: 0,
            extents: [none; EXTENTS],
        });
        // SAFETY: the map has room for as many extents as it says.
        if unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP, &raw mut *map) } != 0 {
            return None;
        }
        let found = &map.extents[..(map.mapped as usize).min(EXTENTS)];
        if let Some(unwritten) = found.iter().find(|extent| extent.flags & UNWRITTEN != 0) {
            return Some(unwritten.logical);
        }
        let last = found.last().filter(|extent| extent.flags & LAST == 0)?;
        start = last.logical.checked_add(last.length).filter(|next| *next > start)?;
    }
}
