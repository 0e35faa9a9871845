//! I/O priorities of single requests, drawn as their shares say.

use crate::host::scheduling;
use crate::request::{Request, op};
use crate::source::random::unit;
use loadstone_plan::RequestPriority;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// First bit of a hint in a priority (linux/ioprio.h).
const HINT_BIT: u16 = 3;

/// Which requests have a priority of their own.
pub struct Priorities {
    rows: Vec<Row>,
    random: Xoshiro256PlusPlus,
}

struct Row {
    op: u8,
    /// Bytes; 0: any.
    size: u64,
    share: f64,
    /// As the kernel has it.
    ioprio: u16,
}

impl Priorities {
    /// Of a worker's rows; nothing where it has none.
    pub fn new(rows: &[RequestPriority], seed: u64) -> Option<Priorities> {
        let row = |row: &RequestPriority| Row {
            op: if row.reads { op::READ } else { op::WRITE },
            size: row.size,
            share: row.share,
            ioprio: scheduling::number(row.ioprio) | row.hint << HINT_BIT,
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        (!rows.is_empty()).then(|| Priorities { rows, random: Xoshiro256PlusPlus::seed_from_u64(seed) })
    }

    /// The priority of a request; 0: that of its thread.
    #[inline]
    pub fn draw(&mut self, request: &Request) -> u16 {
        let mut left = unit(&mut self.random);
        for row in &self.rows {
            if row.op == request.op && (row.size == 0 || row.size == request.size) {
                if left < row.share {
                    return row.ioprio;
                }
                left -= row.share;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::{IoClass, IoPriority};

    #[test]
    fn shares_are_of_requests_of_their_op_and_size() {
        let row = |reads, size, share, class, level| RequestPriority {
            reads,
            size,
            share,
            ioprio: IoPriority { class, level },
            hint: if reads { 0 } else { 5 },
        };
        let rows = [
            row(true, 4096, 0.25, IoClass::Realtime, 1),
            row(true, 4096, 0.5, IoClass::Idle, 0),
            row(false, 0, 0.1, IoClass::BestEffort, 7),
        ];
        let mut priorities = Priorities::new(&rows, 7).unwrap();
        let mut share = |code, size, ioprio: u16| {
            let request = Request { op: code, size, ..Request::default() };
            (0..100_000).filter(|_| priorities.draw(&request) == ioprio).count() as f64 / 1e5
        };
        let (realtime, idle, last) = (1 << 13 | 1, 3 << 13, 2 << 13 | 5 << 3 | 7);
        // Five standard deviations of a share of 100,000 draws are below 0.008.
        for (code, size, ioprio, wanted) in [
            (op::READ, 4096, realtime, 0.25),
            (op::READ, 4096, idle, 0.5),
            (op::READ, 4096, 0, 0.25),
            (op::READ, 8192, 0, 1.0),
            (op::WRITE, 8192, last, 0.1),
            (op::WRITE, 4096, 0, 0.9),
            (op::DISCARD, 4096, 0, 1.0),
        ] {
            let found = share(code, size, ioprio);
            assert!((found - wanted).abs() < 0.008, "{code} {size} {ioprio}: {found}, not {wanted}");
        }
        assert!(Priorities::new(&[], 7).is_none());
    }
}
