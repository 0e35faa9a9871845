//! A file's fresh chunks in order: those that it shares, and those that it has alone.

use crate::Result;
use crate::chunks::Chunks;
use crate::create::content::shared::Place;
use crate::create::content::source::ChunkSource;
use crate::create::draw::Draw;

/// Of one file, the fresh chunks that are still to come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fresh {
    /// Those that are there once, twice and more often.
    once: u32,
    twice: u32,
    often: u32,
}

impl Fresh {
    /// So many, of which some are there twice and more often.
    pub fn of(fresh: u32, (twice, often): (u32, u32)) -> Fresh {
        let twice = twice.min(fresh);
        let often = often.min(fresh - twice);
        Fresh { once: fresh - twice - often, twice, often }
    }

    /// The next one.
    pub fn next(
        &mut self,
        source: &mut ChunkSource<'_>,
        chunks: &mut Chunks,
        place: Place,
        draw: &mut Draw,
    ) -> Result<u32> {
        if self.twice + self.often == 0 {
            self.once = self.once.saturating_sub(1);
            return source.once(chunks, place, draw);
        }
        let often = self.often > 0;
        if often {
            self.often -= 1;
        } else {
            self.twice -= 1;
        }
        source.again(chunks, often, place, draw)
    }
}
