//! Encoding here, counting on a thread of its own: each takes about as long as the other.

use crate::error::{Error, ErrorKind, Result};
use crate::fit::counting::Counting;
use crate::fit::early::Ahead;
use crate::fit::encode::{Encoded, Encoder};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// Encoded batches between the two; they are passed around and never allocated again.
const IN_FLIGHT: usize = 4;

/// An encoder and what counts its keys.
pub(crate) struct Pipeline {
    encoder: Encoder,
    full: mpsc::SyncSender<Encoded>,
    empty: mpsc::Receiver<Encoded>,
    /// `None` once it has ended in an error.
    counter: Option<JoinHandle<Result<Counting>>>,
}

impl Pipeline {
    /// Starts the counter's thread.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn new(encoder: Encoder, mut counting: Counting) -> Result<Pipeline> {
        let (full, to_count) = mpsc::sync_channel::<Encoded>(IN_FLIGHT);
        let (counted, empty) = mpsc::channel();
        for _ in 0..IN_FLIGHT {
            let _ = counted.send(Encoded::default());
        }
        let count = move || {
            for encoded in to_count {
                counting.count(&encoded)?;
                let _ = counted.send(encoded);
            }
            Ok(counting)
        };
        let counter = std::thread::Builder::new()
            .name("loadstone-count".into())
            .spawn(count)
            .map_err(|e| Error::new(ErrorKind::Defect, format!("no thread could be started: {e}")))?;
        Ok(Pipeline { encoder, full, empty, counter: Some(counter) })
    }

    /// Takes the next batch, of which some columns go on to the counter. An error of the counter may come with a later call.
    ///
    /// # Errors
    /// Those of the encoder and of the counter.
    pub fn count(&mut self, ahead: &mut Ahead) -> Result<()> {
        // A counter that ended in an error takes and returns nothing any more.
        if let Ok(mut encoded) = self.empty.recv() {
            self.encoder.encode(ahead, &mut encoded)?;
            if self.full.send(encoded).is_ok() {
                return Ok(());
            }
        }
        Err(joined(self.counter.take()).err().unwrap_or_else(defect))
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// Those of the counter.
    pub fn end(self) -> Result<(Encoder, Counting)> {
        drop(self.full);
        Ok((self.encoder, joined(self.counter)?))
    }
}

fn joined(counter: Option<JoinHandle<Result<Counting>>>) -> Result<Counting> {
    counter.ok_or_else(defect)?.join().map_err(|_| defect())?
}

fn defect() -> Error {
    Error::new(ErrorKind::Defect, "counting failed; this is a defect of the program")
}
