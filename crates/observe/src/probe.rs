//! User probes: any command that prints `name=value` lines, such as a power meter or a disk's wear.
//!
//! Each has a thread of its own, so a slow or broken one delays nothing. A command is run again at
//! its interval; one that does not end is read as long as it prints. At the end it is killed with
//! its whole process group.

use crate::clock;
use crate::event::Event;
use crate::stop::Stop;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;

/// A user command.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Name before its values: `power` and `watts=3` give the series `power.watts`.
    pub name: String,
    /// Run by `sh -c`.
    pub command: String,
    /// Nanoseconds from one start to the next.
    pub interval_ns: u64,
}

/// One value a probe printed.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// `CLOCK_MONOTONIC` when its line was read, nanoseconds.
    pub time: i64,
    /// Probe and name, joined by a dot.
    pub name: String,
    /// The value.
    pub value: f64,
}

/// What all probes found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub readings: Vec<Reading>,
    pub events: Vec<Event>,
}

/// Faults of one probe that are told one by one; the rest is counted.
const TOLD: u64 = 5;
/// Longest line, bytes.
const LINE: usize = 4096;

struct Runner<'a> {
    probe: &'a Probe,
    found: &'a Mutex<Found>,
    faults: u64,
}

/// Runs a probe until the observation ends.
pub(crate) fn run(probe: &Probe, stop: &Stop, found: &Mutex<Found>) {
    let mut runner = Runner { probe, found, faults: 0 };
    let interval = probe.interval_ns.clamp(1_000_000, clock::MOST_INTERVAL) as i64;
    let mut due = clock::monotonic_ns();
    loop {
        let ended = runner.once(stop, due + interval);
        due += interval;
        let late = clock::monotonic_ns() - due;
        if late > 0 {
            due += (late / interval + 1) * interval;
        }
        if ended || stop.wait_until(due) {
            break;
        }
    }
    if runner.faults > TOLD {
        let all = runner.faults;
        runner.tell(format!("{all} faults in all"));
    }
}

impl Runner<'_> {
    fn tell(&self, text: String) {
        let text = format!("probe {}: {text}", self.probe.name);
        let event = Event { time: clock::monotonic_ns(), kind: "probe", text };
        self.found.lock().unwrap_or_else(|e| e.into_inner()).events.push(event);
    }

    fn fault(&mut self, text: String) {
        self.faults += 1;
        if self.faults <= TOLD {
            self.tell(text);
        }
    }

    /// One run of the command; `true` if the observation ended meanwhile.
    fn once(&mut self, stop: &Stop, slow_at: i64) -> bool {
        let mut command = Command::new("sh");
        command
            .args(["-c", &self.probe.command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // SAFETY: only one system call is made between fork and exec.
        unsafe {
            command.pre_exec(|| {
                // Ends with this thread, also where the process is killed.
                Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
            });
        }
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(e) => {
                self.fault(format!("sh cannot be started: {e}"));
                return false;
            }
        };
        let (ended, said) = self.listen(&mut child, stop, slow_at);
        if ended {
            kill_group(&child);
            let _ = child.wait();
            return true;
        }
        // Both pipes are closed: the command ends now, or lingers without a word until the end.
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {
                    if stop.wait_until(clock::monotonic_ns() + 10_000_000) {
                        kill_group(&child);
                        let _ = child.wait();
                        return true;
                    }
                }
                Err(_) => return false,
            }
        };
        if !status.success() {
            self.fault(format!("{}{}", fate(status), said));
        }
        false
    }

    /// Reads both pipes until they close or the observation ends (`true`); with it what was said on
    /// standard error.
    fn listen(&mut self, child: &mut Child, stop: &Stop, slow_at: i64) -> (bool, String) {
        let (Some(mut out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) else {
            return (false, String::new());
        };
        let (mut line, mut said, mut values) = (Vec::new(), Vec::new(), 0u64);
        let (mut open, mut slow) = ([true, true], false);
        let mut buffer = [0u8; 4096];
        while open[0] || open[1] {
            // In the place of a pipe that was closed.
            let watch =
                |fd, on: bool| PollFd::from_borrowed_fd(if on { fd } else { stop.fd() }, PollFlags::IN);
            let mut polls =
                [watch(out.as_fd(), open[0]), watch(err.as_fd(), open[1]), watch(stop.fd(), true)];
            let left = (slow_at - clock::monotonic_ns()).clamp(0, 60_000_000_000) + 1_000_000;
            let left = Timespec { tv_sec: left / 1_000_000_000, tv_nsec: left % 1_000_000_000 };
            let n = poll(&mut polls, (!slow).then_some(&left));
            let [from_out, from_err, ended] = polls.map(|poll| !poll.revents().is_empty());
            if ended {
                return (true, String::new());
            }
            if n == Ok(0) && !slow && clock::monotonic_ns() >= slow_at {
                slow = true;
                // A command that has printed is taken for one that prints on and on.
                if values == 0 {
                    self.fault(
                        "is slower than its interval; it is waited for, and runs that fall due are left out"
                            .into(),
                    );
                }
            }
            if from_out {
                match out.read(&mut buffer) {
                    Ok(n) if n > 0 => values += self.feed(&mut line, &buffer[..n]),
                    _ => open[0] = false,
                }
            }
            if from_err {
                match err.read(&mut buffer) {
                    Ok(n) if n > 0 => {
                        said.extend_from_slice(&buffer[..n.min(200usize.saturating_sub(said.len()))])
                    }
                    _ => open[1] = false,
                }
            }
        }
        if !line.is_empty() {
            values += self.line(&line);
        }
        if values == 0 {
            self.fault("printed no name=value line".into());
        }
        let said = String::from_utf8_lossy(&said).trim().to_string();
        (false, if said.is_empty() { said } else { format!(": {said}") })
    }

    /// Takes bytes of standard output; returns how many values their complete lines held.
    fn feed(&mut self, line: &mut Vec<u8>, bytes: &[u8]) -> u64 {
        let mut values = 0;
        for &byte in bytes {
            if byte == b'\n' {
                values += self.line(line);
                line.clear();
            } else if line.len() < LINE {
                line.push(byte);
            }
        }
        values
    }

    fn line(&mut self, line: &[u8]) -> u64 {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if text.is_empty() {
            return 0;
        }
        let parsed = text.split_once('=').and_then(|(name, value)| {
            let value: f64 = value.trim().parse().ok()?;
            let name = name.trim();
            (value.is_finite() && !name.is_empty()).then_some((name, value))
        });
        let Some((name, value)) = parsed else {
            let shown: String = text.chars().take(60).collect();
            self.fault(format!("{shown:?} is not name=value with a finite number"));
            return 0;
        };
        let name = format!("{}.{name}", self.probe.name);
        let reading = Reading { time: clock::monotonic_ns(), name, value };
        self.found.lock().unwrap_or_else(|e| e.into_inner()).readings.push(reading);
        1
    }
}

fn fate(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended in an unknown way".into(),
    }
}

fn kill_group(child: &Child) {
    // The group is the one that this child leads, and the child is not yet reaped.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

#[cfg(test)]
mod tests {
    use crate::{Observation, Options, Probe, Samples};
    use std::time::{Duration, Instant};

    fn observe(commands: &[(&str, &str)], interval_ms: u64, ms: u64) -> Samples {
        let probes = commands
            .iter()
            .map(|(name, command)| Probe {
                name: name.to_string(),
                command: command.to_string(),
                interval_ns: interval_ms * 1_000_000,
            })
            .collect();
        let observation =
            Observation::start(Options { interval_ns: 10_000_000, probes, ..Options::default() }).unwrap();
        std::thread::sleep(Duration::from_millis(ms));
        observation.stop()
    }

    fn values<'a>(samples: &'a Samples, name: &str) -> Vec<&'a crate::Reading> {
        samples.readings.iter().filter(|r| r.name == name).collect()
    }

    #[test]
    fn values_are_read_and_faults_told() {
        let samples = observe(
            &[
                ("good", "echo watts=3.5; echo ' temp = 40 '"),
                ("bad", "echo no value; echo x=nan; echo grumble >&2; exit 3"),
                ("mute", "true"),
            ],
            20,
            400,
        );
        let watts = values(&samples, "good.watts");
        assert!(!watts.is_empty() && watts.iter().all(|r| r.value == 3.5));
        assert_eq!(values(&samples, "good.temp")[0].value, 40.0);
        let told = |part: &str| samples.events.iter().any(|e| e.kind == "probe" && e.text.contains(part));
        assert!(told("\"no value\" is not name=value") && told("x=nan"), "{:?}", samples.events);
        assert!(told("bad: exit status 3: grumble"), "{:?}", samples.events);
        assert!(told("mute: printed no name=value"));
        // On a busy host any command may take longer than that.
        let slow = |text: &str| text.contains("slower than its interval");
        assert!(
            !samples.events.iter().any(|e| e.text.contains("good") && !slow(&e.text)),
            "{:?}",
            samples.events
        );
        assert!(
            samples.events.iter().filter(|e| e.text.contains("bad")).count() <= 7,
            "repeated faults are counted"
        );
    }

    #[test]
    fn a_hanging_probe_delays_nobody_and_dies_with_its_children() {
        let mark = format!("{}.731", std::process::id() % 10_000 + 4000);
        let start = Instant::now();
        let samples =
            observe(&[("stuck", &format!("sleep {mark} & sleep {mark}")), ("good", "echo a=1")], 20, 300);
        assert!(start.elapsed() < Duration::from_secs(60));
        assert!(values(&samples, "good.a").len() >= 2);
        assert!(samples.events.iter().any(|e| e.text.contains("stuck: is slower than its interval")));
        let left = || {
            std::fs::read_dir("/proc").unwrap().flatten().any(|e| {
                std::fs::read(e.path().join("cmdline"))
                    .is_ok_and(|c| String::from_utf8_lossy(&c) == format!("sleep\0{mark}\0"))
            })
        };
        // A killed process is there until it runs once more, which a busy machine puts off.
        let killed = Instant::now();
        while left() && killed.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!left(), "a child of the probe outlived the observation");
    }

    #[test]
    fn a_probe_that_prints_on_and_on_is_read_as_it_prints() {
        let samples = observe(&[("stream", "while :; do echo n=1; sleep 0.02; done")], 60_000, 500);
        let times: Vec<i64> = values(&samples, "stream.n").iter().map(|r| r.time).collect();
        assert!(times.len() >= 3);
        assert!(times.windows(2).all(|w| w[1] > w[0]));
        assert!(!samples.events.iter().any(|e| e.text.contains("stream")), "{:?}", samples.events);
    }
}
