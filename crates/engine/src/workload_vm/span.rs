//! Times of groups: what a thread did from the begin to the end of one.

/// All times of one group of one worker; kept by each thread for itself and merged at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// How many times it was done from begin to end.
    pub count: u64,
    /// Bytes moved in them.
    pub bytes: u64,
    /// Requests in them that succeeded.
    pub requests: u64,
    /// Nanoseconds in all.
    pub total_ns: u64,
    /// CPU time of the thread in them, ns.
    pub cpu_ns: u64,
    /// Shortest, ns.
    pub least_ns: u64,
    /// Longest, ns.
    pub most_ns: u64,
    /// When the first one began, ns from the start of the run.
    pub from_ns: u64,
    /// When the last one ended, ns from the start of the run.
    pub to_ns: u64,
}

impl Span {
    /// One that went from `from_ns` to `to_ns`.
    pub fn once(from_ns: u64, to_ns: u64, cpu_ns: u64, requests: u64, bytes: u64) -> Span {
        let time = to_ns.saturating_sub(from_ns);
        Span {
            count: 1,
            bytes,
            requests,
            total_ns: time,
            cpu_ns,
            least_ns: time,
            most_ns: time,
            from_ns,
            to_ns,
        }
    }

    /// Takes in others.
    pub fn merge(&mut self, other: &Span) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        self.count += other.count;
        self.bytes += other.bytes;
        self.requests += other.requests;
        self.total_ns += other.total_ns;
        self.cpu_ns += other.cpu_ns;
        self.least_ns = self.least_ns.min(other.least_ns);
        self.most_ns = self.most_ns.max(other.most_ns);
        self.from_ns = self.from_ns.min(other.from_ns);
        self.to_ns = self.to_ns.max(other.to_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_threads_add_up() {
        let mut one = Span::default();
        one.merge(&Span::once(100, 150, 40, 1, 4096));
        one.merge(&Span::once(200, 290, 30, 2, 8192));
        one.merge(&Span::once(50, 70, 5, 1, 1));
        one.merge(&Span::default());
        let wanted = Span {
            count: 3,
            bytes: 12_289,
            requests: 4,
            total_ns: 160,
            cpu_ns: 75,
            least_ns: 20,
            most_ns: 90,
            from_ns: 50,
            to_ns: 290,
        };
        assert_eq!(one, wanted);
        let mut none = Span::default();
        none.merge(&wanted);
        assert_eq!(none, wanted);
    }
}
