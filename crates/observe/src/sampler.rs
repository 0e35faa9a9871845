//! The thread that samples: files stay open, are read with one `pread` each and parsed without
//! allocation, so that a sample costs some tens of microseconds of one CPU.

use crate::device::Device;
use crate::event::Event;
use crate::parse::{self, BLOCK_FIELDS, MEM_FIELDS, ProcStat};
use crate::probe::{self, Probe, Reading};
use crate::stop::Stop;
use crate::{Error, Result, clock};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

/// Stands for a value that could not be read.
pub const NONE: i64 = i64::MIN;

/// How a column behaves over time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Only grows, unless it wraps or the device comes anew.
    Counter,
    /// Grows, but the kernel admits that it may step back a little (idle, iowait: proc(5)).
    Soft,
    /// A level.
    Gauge,
}

macro_rules! columns {
    ($($name:literal $kind:ident,)*) => {
        /// Names of the sampled columns. Times are in the kernel's own unit, told by the suffix: `_ms`,
        /// `_us`; `cpu_*` in clock ticks; sectors of 512 bytes; `mem_*` in bytes; the others are counts.
        pub const COLUMNS: &[&str] = &[$($name,)*];
        const KINDS: &[Kind] = &[$(Kind::$kind,)*];
    };
}

columns! {
    "progress" Counter,
    "disk_reads" Counter, "disk_reads_merged" Counter, "disk_read_sectors" Counter, "disk_read_ms" Counter,
    "disk_writes" Counter, "disk_writes_merged" Counter, "disk_write_sectors" Counter, "disk_write_ms" Counter,
    "disk_in_flight" Gauge, "disk_busy_ms" Counter, "disk_queue_ms" Counter,
    "disk_discards" Counter, "disk_discards_merged" Counter, "disk_discard_sectors" Counter, "disk_discard_ms" Counter,
    "disk_flushes" Counter, "disk_flush_ms" Counter,
    "cpu_user" Counter, "cpu_nice" Counter, "cpu_system" Counter, "cpu_idle" Soft, "cpu_iowait" Soft,
    "cpu_irq" Counter, "cpu_softirq" Counter, "cpu_steal" Counter,
    "interrupts" Counter, "context_switches" Counter, "procs_running" Gauge, "procs_blocked" Gauge,
    "mem_total" Gauge, "mem_free" Gauge, "mem_available" Gauge, "mem_buffers" Gauge, "mem_cached" Gauge,
    "mem_dirty" Gauge, "mem_writeback" Gauge,
    "io_some_us" Counter, "io_full_us" Counter,
    "process_user_us" Counter, "process_system_us" Counter, "observer_us" Counter,
}

const DISK: usize = 1;
const CPU: usize = DISK + BLOCK_FIELDS;
const KERNEL: usize = CPU + 8;
const MEM: usize = KERNEL + 4;
const PRESSURE: usize = MEM + MEM_FIELDS;
const PROCESS: usize = PRESSURE + 2;

/// Times a fault of one kind is told before it is only counted.
const TOLD: u64 = 3;

/// What to observe.
#[derive(Debug, Clone)]
pub struct Options {
    /// Nanoseconds between samples; at least a millisecond.
    pub interval_ns: u64,
    /// The device behind the target.
    pub device: Option<Device>,
    /// User commands that print `name=value`.
    pub probes: Vec<Probe>,
}

impl Default for Options {
    fn default() -> Self {
        Options { interval_ns: 1_000_000_000, device: None, probes: Vec::new() }
    }
}

/// Everything an observation saw.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// `CLOCK_MONOTONIC` of each sample, nanoseconds, ascending.
    pub time: Vec<i64>,
    /// One vector per name of [`COLUMNS`], as long as `time`; [`NONE`] where it could not be read.
    pub columns: Vec<Vec<i64>>,
    /// What the probes printed.
    pub readings: Vec<Reading>,
    /// What went wrong or should be known, in order of time.
    pub events: Vec<Event>,
    /// Samples that were due but not taken because the host was too busy.
    pub missed: u64,
}

impl Samples {
    /// One column by its name.
    pub fn column(&self, name: &str) -> Option<&[i64]> {
        COLUMNS.iter().position(|c| *c == name).and_then(|i| self.columns.get(i)).map(Vec::as_slice)
    }
}

/// A running observation; dropping it stops its threads and forgets what they saw.
pub struct Observation {
    stop: Arc<Stop>,
    progress: Arc<OnceLock<Arc<AtomicU64>>>,
    sampler: Option<JoinHandle<Samples>>,
    probes: Vec<JoinHandle<()>>,
    found: Arc<Mutex<probe::Found>>,
}

impl Observation {
    /// Starts sampling; the first sample is taken before this returns.
    ///
    /// # Errors
    /// [`Error::Option`] for an interval or a probe that cannot be, and what the system refuses.
    pub fn start(options: Options) -> Result<Observation> {
        if options.interval_ns < 1_000_000 {
            return Err(Error::Option(
                "the sampling interval is under a millisecond; use at least 1 ms".into(),
            ));
        }
        if options.interval_ns > clock::MOST_INTERVAL {
            return Err(Error::Option("the sampling interval is over 100 days; use less".into()));
        }
        let stop = Arc::new(Stop::new().map_err(|e| Error::io("eventfd", "anon_inode".as_ref(), e))?);
        let progress = Arc::new(OnceLock::new());
        let found = Arc::new(Mutex::new(probe::Found::default()));
        let mut sampler = Sampler::new(&options, progress.clone())?;
        sampler.sample();
        let mut this = Observation { stop: stop.clone(), progress, sampler: None, probes: Vec::new(), found };
        let interval = options.interval_ns as i64;
        let sampling = std::thread::Builder::new().name("observe".into());
        let thread = sampling.spawn({
            let stop = stop.clone();
            move || sampler.run(interval, &stop)
        });
        this.sampler = Some(thread.map_err(|e| Error::io("cannot start a thread", "observe".as_ref(), e))?);
        for probe in options.probes {
            let (stop, found) = (stop.clone(), this.found.clone());
            let thread = std::thread::Builder::new()
                .name("probe".into())
                .spawn(move || probe::run(&probe, &stop, &found));
            this.probes.push(thread.map_err(|e| Error::io("cannot start a thread", "probe".as_ref(), e))?);
        }
        Ok(this)
    }

    /// Samples this counter too, from now on, as the column `progress`; only the first call counts.
    pub fn attach(&self, progress: Arc<AtomicU64>) {
        let _ = self.progress.set(progress);
    }

    /// Takes a last sample, ends all threads and probe commands, and returns what was seen.
    pub fn stop(mut self) -> Samples {
        self.stop.set();
        let mut samples = self.sampler.take().and_then(|t| t.join().ok()).unwrap_or_default();
        for thread in self.probes.drain(..) {
            let _ = thread.join();
        }
        let found = std::mem::take(&mut *self.found.lock().unwrap_or_else(|e| e.into_inner()));
        samples.readings = found.readings;
        samples.readings.sort_by_key(|r| r.time);
        samples.events.extend(found.events);
        samples.events.sort_by_key(|e| e.time);
        samples
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.stop.set();
        for thread in self.probes.drain(..) {
            let _ = thread.join();
        }
        if let Some(thread) = self.sampler.take() {
            let _ = thread.join();
        }
    }
}

/// A file that is read again and again.
struct Source {
    path: PathBuf,
    file: File,
    failures: u64,
}

impl Source {
    fn open(path: PathBuf) -> io::Result<Source> {
        Ok(Source { file: File::open(&path)?, path, failures: 0 })
    }

    /// The whole text, in `buffer`, which grows where it must.
    fn read<'a>(&mut self, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        loop {
            match self.file.read_at(buffer, 0) {
                Ok(n) if n == buffer.len() => buffer.resize(buffer.len() * 2, 0),
                Ok(n) => return Ok(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

struct Sampler {
    disk: Option<Source>,
    stat: Source,
    meminfo: Source,
    pressure: Option<Source>,
    progress: Arc<OnceLock<Arc<AtomicU64>>>,
    buffer: Vec<u8>,
    out: Samples,
    resets: Vec<u64>,
}

impl Sampler {
    fn new(options: &Options, progress: Arc<OnceLock<Arc<AtomicU64>>>) -> Result<Sampler> {
        let open =
            |path: PathBuf| Source::open(path.clone()).map_err(|e| Error::io("cannot be read", &path, e));
        let mut out = Samples { columns: vec![Vec::new(); COLUMNS.len()], ..Samples::default() };
        let now = clock::monotonic_ns();
        if let Some(device) = &options.device {
            out.events.extend(device.warnings().into_iter().map(|text| Event {
                time: now,
                kind: "warning",
                text,
            }));
        }
        // PSI is absent where it was not built in or is switched off (psi=0).
        let pressure = Source::open("/proc/pressure/io".into()).ok();
        if pressure.is_none() {
            let text = "/proc/pressure/io cannot be read: no pressure stall times".to_string();
            out.events.push(Event { time: now, kind: "warning", text });
        }
        Ok(Sampler {
            disk: options.device.as_ref().map(|d| open(d.stat_path())).transpose()?,
            stat: open("/proc/stat".into())?,
            meminfo: open("/proc/meminfo".into())?,
            pressure,
            progress,
            buffer: vec![0; 16 << 10],
            out,
            resets: vec![0; COLUMNS.len()],
        })
    }

    fn run(mut self, interval: i64, stop: &Stop) -> Samples {
        let mut due = self.out.time.last().copied().unwrap_or_else(clock::monotonic_ns) + interval;
        let mut gaps = 0;
        while !stop.wait_until(due) {
            self.sample();
            due += interval;
            let late = clock::monotonic_ns() - due;
            if late >= 0 {
                // The cadence stays absolute: what is overdue is left out, counted and told.
                let skipped = late / interval + 1;
                due += skipped * interval;
                self.out.missed += skipped as u64;
                gaps += 1;
                if gaps <= TOLD {
                    self.tell("missed", format!("{skipped} samples were not taken: the host was too busy"));
                }
            }
        }
        self.sample();
        if gaps > TOLD {
            self.tell(
                "missed",
                format!("{} samples in {gaps} places were not taken in all", self.out.missed),
            );
        }
        for (i, n) in self.resets.clone().into_iter().enumerate().filter(|(_, n)| *n > TOLD) {
            self.tell("reset", format!("{} went backwards {n} times in all", COLUMNS[i]));
        }
        self.out
    }

    fn tell(&mut self, kind: &'static str, text: String) {
        self.out.events.push(Event { time: clock::monotonic_ns(), kind, text });
    }

    /// Reads `source` and has it parsed; a failure is told and leaves the values unset.
    fn take(
        source: &mut Source,
        buffer: &mut Vec<u8>,
        events: &mut Vec<Event>,
        parse: impl FnOnce(&[u8]) -> bool,
    ) {
        let fault = match source.read(buffer) {
            Ok(text) if parse(text) => return,
            Ok(_) => "is not understood".to_string(),
            Err(e) => format!("cannot be read: {e}"),
        };
        source.failures += 1;
        if source.failures <= TOLD {
            let text = format!("{} {fault}", source.path.display());
            events.push(Event { time: clock::monotonic_ns(), kind: "warning", text });
        }
    }

    fn sample(&mut self) {
        let mut row = [NONE; COLUMNS_LEN];
        let time = clock::monotonic_ns();
        // First what moves fastest, so that it fits the time best.
        row[0] = self.progress.get().map_or(0, |p| p.load(Ordering::Relaxed) as i64);
        let (buffer, events) = (&mut self.buffer, &mut self.out.events);
        if let Some(disk) = &mut self.disk {
            let mut fields = [NONE; BLOCK_FIELDS];
            Self::take(disk, buffer, events, |text| parse::block_stat(text, &mut fields).is_some());
            row[DISK..CPU].copy_from_slice(&fields);
        }
        let mut stat = ProcStat::filled(NONE);
        Self::take(&mut self.stat, buffer, events, |text| {
            parse::proc_stat(text, &mut stat);
            stat.cpu[0] != NONE
        });
        row[CPU..KERNEL].copy_from_slice(&stat.cpu);
        row[KERNEL..MEM].copy_from_slice(&[
            stat.interrupts,
            stat.context_switches,
            stat.running,
            stat.blocked,
        ]);
        let mut mem = [NONE; MEM_FIELDS];
        Self::take(&mut self.meminfo, buffer, events, |text| {
            parse::meminfo(text, &mut mem);
            mem[0] != NONE
        });
        row[MEM..PRESSURE].copy_from_slice(&mem);
        if let Some(pressure) = &mut self.pressure {
            let mut psi = [NONE; 2];
            Self::take(pressure, buffer, events, |text| {
                parse::pressure(text, &mut psi);
                psi[0] != NONE
            });
            row[PRESSURE..PROCESS].copy_from_slice(&psi);
        }
        let (user, system) = clock::cpu_us(libc::RUSAGE_SELF);
        // The first sample is taken by the caller's thread, whose CPU time is not the observer's.
        let first = self.out.time.is_empty();
        let (own_user, own_system) = if first { (0, 0) } else { clock::cpu_us(libc::RUSAGE_THREAD) };
        row[PROCESS..].copy_from_slice(&[user, system, own_user + own_system]);
        self.keep(time, &row);
    }

    fn keep(&mut self, time: i64, row: &[i64; COLUMNS_LEN]) {
        for (i, value) in row.iter().enumerate() {
            let before = self.out.columns[i].last().copied().unwrap_or(NONE);
            if KINDS[i] == Kind::Counter && before != NONE && *value != NONE && *value < before {
                self.resets[i] += 1;
                if self.resets[i] <= TOLD {
                    let text = format!(
                        "{} went backwards from {before} to {value}; the difference is not used",
                        COLUMNS[i]
                    );
                    self.out.events.push(Event { time, kind: "reset", text });
                }
            }
            self.out.columns[i].push(*value);
        }
        self.out.time.push(time);
    }
}

const COLUMNS_LEN: usize = COLUMNS.len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_lie_where_they_are_written() {
        assert_eq!(COLUMNS[DISK], "disk_reads");
        assert_eq!(COLUMNS[CPU - 1], "disk_flush_ms");
        assert_eq!(COLUMNS[CPU], "cpu_user");
        assert_eq!(COLUMNS[KERNEL], "interrupts");
        assert_eq!(COLUMNS[MEM], "mem_total");
        assert_eq!(COLUMNS[PRESSURE], "io_some_us");
        assert_eq!(COLUMNS[PROCESS], "process_user_us");
        assert_eq!(COLUMNS.len(), PROCESS + 3);
    }

    #[test]
    fn samples_are_ordered_and_the_progress_is_among_them() {
        let options = Options { interval_ns: 2_000_000, ..Options::default() };
        let observation = Observation::start(options).unwrap();
        let counter = Arc::new(AtomicU64::new(0));
        observation.attach(counter.clone());
        for _ in 0..20 {
            counter.fetch_add(5, Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let samples = observation.stop();
        assert!(samples.time.len() >= 2);
        assert!(samples.time.is_sorted());
        assert!(samples.columns.iter().all(|c| c.len() == samples.time.len()));
        let progress = samples.column("progress").unwrap();
        assert!(progress.is_sorted());
        assert_eq!(
            (progress[0], progress[progress.len() - 1]),
            (0, 100),
            "the last sample is taken at the end"
        );
        let switches = samples.column("context_switches").unwrap();
        assert!(switches[0] > 0 && switches.is_sorted());
        assert_eq!(samples.column("disk_reads").unwrap()[0], NONE, "no device was asked for");
    }

    #[test]
    fn a_counter_that_steps_back_is_told() {
        let mut sampler = Sampler::new(&Options::default(), Arc::default()).unwrap();
        let mut row = [0; COLUMNS_LEN];
        row[DISK] = 10;
        sampler.keep(1, &row);
        row[DISK] = 4;
        sampler.keep(2, &row);
        row[CPU + 4] = -1;
        sampler.keep(3, &row);
        let told: Vec<_> = sampler.out.events.iter().filter(|e| e.kind == "reset").collect();
        assert_eq!(told.len(), 1, "idle and iowait may step back: {told:?}");
        assert!(told[0].text.contains("disk_reads") && told[0].text.contains("from 10 to 4"));
    }

    #[test]
    fn a_file_that_outgrows_the_buffer_is_read_whole() {
        let mut source = Source::open("/proc/stat".into()).unwrap();
        let mut buffer = vec![0; 8];
        let text = source.read(&mut buffer).unwrap().to_vec();
        assert!(text.len() > 100 && text.ends_with(b"\n"));
    }

    #[test]
    fn nonsense_options_are_refused() {
        let refused = Observation::start(Options { interval_ns: 10, ..Options::default() });
        assert!(refused.err().unwrap().to_string().contains("at least 1 ms"));
    }
}
