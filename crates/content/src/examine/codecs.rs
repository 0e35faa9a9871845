//! What codecs make of pieces: the ones that stores offer, at the levels they use where speed matters.

use crate::{Error, Result};
use flate2::{Compress, Compression, FlushCompress};

/// Bytes that codecs got, and what they made of them; the smaller of each is its own, headers included.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Codecs {
    /// Pieces they got.
    pub pieces: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Bytes that lz4 made of them (bare blocks).
    pub lz4: u64,
    /// Bytes that Zstandard made of them at level 1.
    pub zstd: u64,
    /// Bytes that zlib made of them at level 6.
    pub zlib: u64,
}

impl Codecs {
    /// Ratios by the codec's name; nothing where no codec got anything.
    pub fn ratios(&self) -> Option<[(&'static str, f64); 3]> {
        let ratio = |made| self.bytes as f64 / made as f64;
        (self.bytes > 0)
            .then(|| [("lz4", ratio(self.lz4)), ("zstd", ratio(self.zstd)), ("zlib", ratio(self.zlib))])
    }
}

/// Gives pieces to all codecs.
pub struct Meter {
    piece: usize,
    out: Vec<u8>,
    zstd: zstd::bulk::Compressor<'static>,
    zlib: Compress,
    codecs: Codecs,
}

impl Meter {
    /// For pieces of at most `piece` bytes.
    ///
    /// # Errors
    /// When there is no memory for the codecs.
    pub fn new(piece: usize) -> Result<Meter> {
        let failed = |e| Error::Option(format!("pieces of {piece} bytes: {e}"));
        // What makes pieces larger is less than a 255th and some bytes of each codec (LZ4_compressBound).
        let room =
            lz4::block::compress_bound(piece).map_err(failed)?.max(zstd::zstd_safe::compress_bound(piece));
        Ok(Meter {
            piece,
            out: vec![0; room],
            zstd: zstd::bulk::Compressor::new(1).map_err(failed)?,
            zlib: Compress::new(Compression::new(6), true),
            codecs: Codecs::default(),
        })
    }

    /// Bytes of a piece.
    pub fn piece(&self) -> usize {
        self.piece
    }

    /// One more piece.
    pub fn add(&mut self, piece: &[u8]) {
        // There is room for whatever a codec makes; one that failed nevertheless would have saved nothing.
        let whole = piece.len();
        let lz4 = lz4::block::compress_to_buffer(piece, None, false, &mut self.out).unwrap_or(whole);
        let zstd = self.zstd.compress_to_buffer(piece, &mut self.out[..]).unwrap_or(whole);
        self.zlib.reset();
        let zlib = match self.zlib.compress(piece, &mut self.out, FlushCompress::Finish) {
            Ok(_) => self.zlib.total_out(),
            Err(_) => whole as u64,
        };
        let codecs = &mut self.codecs;
        codecs.pieces += 1;
        codecs.bytes += whole as u64;
        codecs.lz4 += lz4 as u64;
        codecs.zstd += zstd as u64;
        codecs.zlib += zlib;
    }

    /// What they made.
    pub fn tell(self) -> Codecs {
        self.codecs
    }
}
