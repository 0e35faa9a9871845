//! The full log as a file: a request table with the columns `intended` and `result` besides.

use crate::Result;
use crate::metrics::log::{Row, Sink};
use loadstone_plan::Plan;
use loadstone_trace::{Batch, Info, Object, parquet};
use std::path::Path;

/// Quick to write; the log can be converted again to make it smaller.
const LEVEL: i32 = 3;

/// Writes the rows aside and names the file when it is whole.
pub struct LogFile {
    writer: parquet::Writer,
    batch: Batch,
    intended: Vec<i64>,
    result: Vec<i64>,
    info: Info,
}

impl LogFile {
    /// A log of `plan` at `path`, which must not exist yet.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: &Path, plan: &Plan) -> Result<LogFile> {
        let writer = parquet::Writer::with_columns(path, false, LEVEL, &["intended", "result"])?;
        let object = |(i, t): (usize, &loadstone_plan::Target)| Object {
            id: i as u32,
            name: if t.path.as_os_str().is_empty() { t.id.clone() } else { t.path.display().to_string() },
        };
        let info = Info {
            format: "loadstone-log".into(),
            layer: "engine".into(),
            clock_ns: 1,
            objects: plan.targets.iter().enumerate().map(object).collect(),
            ..Info::default()
        };
        Ok(LogFile { writer, batch: Batch::default(), intended: Vec::new(), result: Vec::new(), info })
    }
}

impl Sink for LogFile {
    fn rows(&mut self, rows: &[Row]) -> Result<()> {
        let b = &mut self.batch;
        b.clear();
        self.intended.clear();
        self.result.clear();
        for r in rows {
            b.time.push(r.time);
            b.op.push(r.op);
            b.object.push(u32::from(r.target));
            b.offset.push(r.offset);
            b.size.push(r.size);
            b.latency.push(r.latency);
            b.flags.push(r.flags);
            b.actor.push(r.actor);
            self.intended.push(r.intended);
            self.result.push(r.result);
        }
        Ok(self.writer.write_with(b, &[&self.intended, &self.result])?)
    }

    fn finish(mut self: Box<Self>, dropped: u64, started_unix_ns: i64) -> Result<()> {
        self.info.start_unix_ns = Some(started_unix_ns);
        self.info.counts.lost = dropped;
        if dropped > 0 {
            self.info.warnings.push(format!("{dropped} rows were dropped because the log could not keep up"));
        }
        self.writer.finish(self.info)?;
        Ok(())
    }
}
