//! Datagrams put together from the fragments of the network layer (RFC 791, section 3.2; RFC 8200, section 4.5).

use etherparse::SlicedPacket;
use etherparse::defrag::{IpDefragPayloadVec, IpDefragPool};
use std::cell::Cell;

/// Fragments wait so long for the others, nanoseconds.
const PATIENCE: i64 = 30_000_000_000;
/// Most datagrams that wait for fragments, up to twice 64 KiB each.
const MOST: usize = 1 << 12;
/// Fragments between two looks at all that wait.
const STEP: usize = 1 << 10;

/// Datagrams of which some fragments have come.
pub struct Fragments {
    waiting: IpDefragPool<i64, ()>,
    /// Fragments since the last look.
    since: usize,
    /// When the last look was, nanoseconds since 1970.
    looked: i64,
    lost: u64,
}

impl Fragments {
    /// None yet.
    pub fn new() -> Fragments {
        Fragments { waiting: IpDefragPool::new(), since: 0, looked: i64::MIN, lost: 0 }
    }

    /// Takes a fragment; the datagram, where it is whole by that, which [`Fragments::done`] takes back.
    pub fn add(&mut self, time: i64, packet: &SlicedPacket<'_>) -> Option<IpDefragPayloadVec> {
        let whole = self.waiting.process_sliced_packet(packet, time, ()).ok()?;
        self.since += 1;
        if self.since >= STEP || time.saturating_sub(self.looked) >= PATIENCE {
            (self.since, self.looked) = (0, time);
            if self.keep(|since| time.saturating_sub(since) < PATIENCE) > MOST {
                self.keep(|_| false);
            }
        }
        whole
    }

    /// Takes back what held a datagram.
    pub fn done(&mut self, whole: IpDefragPayloadVec) {
        self.waiting.return_buf(whole);
    }

    /// Gives up all that wait.
    pub fn end(&mut self) {
        self.keep(|_| false);
    }

    /// Datagrams that were given up.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Gives up those that came first at other times; how many still wait.
    fn keep(&mut self, wanted: impl Fn(i64) -> bool) -> usize {
        let (kept, gone) = (Cell::new(0), Cell::new(0));
        // The pool asks twice where one has to go, so a pass of its own counts.
        self.waiting.retain(|&since| {
            let count = if wanted(since) { &kept } else { &gone };
            count.set(count.get() + 1);
            true
        });
        self.waiting.retain(|&since| wanted(since));
        self.lost += gone.get() as u64;
        kept.get()
    }
}
