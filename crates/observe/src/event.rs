//! What is worth telling of an observation.

/// Something worth telling, with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time: i64,
    /// `warning`, `reset`, `missed`, `probe`.
    pub kind: &'static str,
    /// In plain words.
    pub text: String,
}
