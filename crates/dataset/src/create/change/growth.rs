//! A change keeps length: where as many chunks come as go, each is about as long as the one in whose place it is.
//!
//! So a file that changes keeps its size but for what the step says that such places grow by, and what compresses far still does.
//! Chunks of any size would let sizes of files drift from each other and from the characteristics that later steps ask for.

use crate::chunks::Ratio;
use crate::create::draw::Draw;
use crate::profile::{CLASSES, class};

/// Lengths of what comes in place of what goes.
pub(crate) struct Lengths {
    growth: Option<[f64; 2]>,
    /// Share of chunks that keep their length where nothing behind them tells.
    as_long: f64,
    /// Of a file of one chunk the class of its size after; 0 where that is not told.
    becomes: u32,
}

impl Lengths {
    pub fn of(growth: Option<[f64; 2]>, as_long: f64, becomes: u32) -> Lengths {
        Lengths { growth, as_long, becomes }
    }

    /// Size and ratio of what comes for one chunk. `stays`: what is behind its place stays where it was, `is_last`: nothing is
    /// behind it. Nothing where a step does not tell by how much places grow.
    pub fn next(
        &mut self,
        (size, ratio): (u32, Ratio),
        stays: bool,
        is_last: bool,
        draw: &mut Draw,
    ) -> Option<(u32, Ratio)> {
        let doublings = match self.becomes {
            0 => 0.0,
            becomes => (f64::from(becomes) - f64::from(class(u64::from(size)))) / CLASSES,
        };
        let [growth, packed] = self.growth?;
        let ratio = draw.times(ratio, growth / packed);
        if stays || (is_last && doublings == 0.0 && draw.happens(self.as_long)) {
            return Some((size, ratio));
        }
        let more = f64::from(size) * (growth * doublings.exp2() - 1.0);
        let mut more =
            more.trunc() as i64 + i64::from(draw.happens(more.fract().abs())) * more.signum() as i64;
        // What is another length is another by a byte at least.
        if more == 0 {
            more = if draw.happens(0.5) { 1 } else { -1 };
        }
        Some(((i64::from(size) + more).clamp(1, i64::from(u32::MAX)) as u32, ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(lengths: &mut Lengths, size: u32, stays: bool, is_last: bool, draw: &mut Draw) -> u32 {
        lengths.next((size, Ratio::nearest(2.0)), stays, is_last, draw).unwrap().0
    }

    #[test]
    fn what_comes_is_as_long_as_what_goes_but_for_growth() {
        let mut draw = Draw::new(1, 0, 0);
        let mut lengths = Lengths::of(Some([1.0, 1.0]), 0.0, 0);
        // Another length by a byte, or the same where what is behind stays.
        assert_eq!(next(&mut lengths, 5000, false, false, &mut draw).abs_diff(5000), 1);
        assert_eq!(next(&mut lengths, 5000, true, false, &mut draw), 5000);
        let mut lengths = Lengths::of(Some([1.1, 1.1]), 1.0, 0);
        assert_eq!(next(&mut lengths, 5000, false, false, &mut draw), 5500);
        assert_eq!(next(&mut lengths, 5000, false, true, &mut draw), 5000, "all last ones are as long");
        assert!(Lengths::of(None, 0.0, 0).next((1, Ratio::UNKNOWN), true, true, &mut draw).is_none());
    }

    #[test]
    fn a_file_of_one_chunk_becomes_what_its_row_says() {
        let mut draw = Draw::new(2, 0, 0);
        let mut lengths = Lengths::of(Some([1.0, 1.0]), 1.0, class(20_000));
        for size in [4000, 5000, 18_000] {
            let after = next(&mut lengths, size, false, true, &mut draw);
            assert!(class(u64::from(after)).abs_diff(class(20_000)) <= 1, "{size} {after}");
        }
    }

    #[test]
    fn what_comes_compresses_by_as_much_more_as_told() {
        let mut draw = Draw::new(3, 0, 0);
        let mut lengths = Lengths::of(Some([1.0, 0.98]), 0.0, 0);
        let ratio = Ratio::nearest(2.0);
        let sum: f64 = (0..4000)
            .map(|_| lengths.next((5000, ratio), true, false, &mut draw).unwrap().1.value() / ratio.value())
            .sum();
        assert!((sum / 4000.0 - 1.0 / 0.98).abs() < 0.002, "{sum}");
        assert_eq!(lengths.next((5, Ratio::UNKNOWN), true, true, &mut draw).unwrap().1, Ratio::UNKNOWN);
    }
}
