//! Models changed and combined: the load of twice as many users, or of two applications on one store.
//!
//! A model is counts of cells, so most of this is arithmetic on counts. What is asked for in fractions is
//! apportioned without chance: the same change of the same model is always the same model, and every total is the
//! nearest whole number to what it should be.

mod common_stream;
pub mod publish;
mod reweight;
mod scale;
mod stretch;
mod superpose;

pub use scale::Scale;
pub use superpose::superposed;

/// Hands out whole numbers whose running total is always the nearest to what it should be.
#[derive(Debug, Clone, Copy, Default)]
struct Apportion {
    due: f64,
    given: u64,
}

impl Apportion {
    /// The whole number for a share; shares are not negative.
    fn next(&mut self, share: f64) -> u64 {
        self.due += share;
        let given = (self.due.round() as u64).max(self.given);
        let now = given - self.given;
        self.given = given;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn running_totals_are_never_half_a_request_off(shares in proptest::collection::vec(0.0f64..9.0, 1..200)) {
            let (mut apportion, mut due, mut given) = (Apportion::default(), 0.0, 0);
            for share in shares {
                due += share;
                given += apportion.next(share);
                prop_assert!((given as f64 - due).abs() <= 0.5 + 1e-9, "{} of {}", given, due);
            }
        }
    }
}
