//! How long before a request is due a thread stops sleeping and looks at the clock instead.

/// Exceeding it takes a quarter more, anything else a 1024th less: one wake-up in some 250 is later than that.
const UP: i64 = 4;
const DOWN: i64 = 1024;

/// A time that follows how late wake-ups are on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Spin {
    /// The time now, ns; 0: never.
    pub ns: i64,
    least: i64,
    most: i64,
}

impl Spin {
    /// From `least` to `most` ns; both 0 where no CPU is to spare.
    pub fn new(least: i64, most: i64) -> Spin {
        Spin { ns: least, least, most: most.max(least) }
    }

    /// Takes note of how much later than asked for a sleep ended, ns.
    #[inline]
    pub fn learn(&mut self, late: i64) {
        let next = if late > self.ns { self.ns + self.ns / UP } else { self.ns - self.ns / DOWN };
        self.ns = next.clamp(self.least, self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_late_wake_ups_up_and_down_within_its_limits() {
        let mut spin = Spin::new(25_000, 200_000);
        (0..100).for_each(|_| spin.learn(60_000));
        assert!((60_000..76_000).contains(&spin.ns), "{}", spin.ns);
        (0..5_000).for_each(|_| spin.learn(1_000));
        assert_eq!(spin.ns, 25_000);
        (0..100).for_each(|_| spin.learn(5_000_000));
        assert_eq!(spin.ns, 200_000);
        // Every 100th wake-up is worth it, every 1000th is not.
        for (every, high) in [(100, true), (1000, false)] {
            (0..100_000).for_each(|i| spin.learn(if i % every == 0 { 150_000 } else { 1_000 }));
            assert_eq!(spin.ns > 100_000, high, "{every}: {}", spin.ns);
        }
    }

    #[test]
    fn without_a_cpu_to_spare_there_is_none() {
        let mut spin = Spin::new(0, 0);
        (0..100).for_each(|_| spin.learn(1_000_000));
        assert_eq!(spin.ns, 0);
    }
}
