//! Parsers of the kernel's text, without allocation; fields as in the kernel's documentation
//! (`Documentation/block/stat.rst`, `admin-guide/iostats.rst`, `filesystems/proc.rst`,
//! `accounting/psi.rst`). Unknown further fields and lines are ignored; a missing one stays unset.

/// Number of values the newest kernels print in a block device's `stat`.
pub const BLOCK_FIELDS: usize = 17;

/// The next unsigned decimal number of `text` from `at` on, and where it ended.
fn number(text: &[u8], mut at: usize) -> Option<(i64, usize)> {
    while at < text.len() && (text[at] == b' ' || text[at] == b'\t') {
        at += 1;
    }
    let start = at;
    let mut value: i64 = 0;
    while at < text.len() && text[at].is_ascii_digit() {
        // Saturating: 64-bit counters above 2^63 do not occur in a machine's life, but never panic.
        value = value.saturating_mul(10).saturating_add((text[at] - b'0') as i64);
        at += 1;
    }
    (at > start).then_some((value, at))
}

/// Fills `out` with the numbers of one line; returns how many there were.
fn numbers(line: &[u8], out: &mut [i64]) -> usize {
    let (mut at, mut n) = (0, 0);
    while n < out.len() {
        let Some((value, end)) = number(line, at) else { break };
        out[n] = value;
        (n, at) = (n + 1, end);
    }
    n
}

/// `/sys/dev/block/MAJ:MIN/stat`: 11 values, 15 since 4.18 (discards), 17 since 5.5 (flushes).
///
/// Returns how many of the known fields are there; `None` if it is not such a line (kernels before
/// 2.6.25 print 4 values for a partition, in another order).
pub fn block_stat(text: &[u8], out: &mut [i64; BLOCK_FIELDS]) -> Option<usize> {
    match numbers(text, out) {
        n @ 17.. => Some(n),
        15..=16 => Some(15),
        11..=14 => Some(11),
        _ => None,
    }
}

/// What is used of `/proc/stat`; fields that are absent keep their value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcStat {
    /// user nice system idle iowait irq softirq steal, in ticks, over all CPUs.
    pub cpu: [i64; 8],
    /// Interrupts serviced since boot, all kinds.
    pub interrupts: i64,
    /// Context switches since boot.
    pub context_switches: i64,
    /// Runnable tasks now.
    pub running: i64,
    /// Tasks waiting for I/O now.
    pub blocked: i64,
}

impl ProcStat {
    /// Every field set to `value`.
    pub fn filled(value: i64) -> ProcStat {
        ProcStat {
            cpu: [value; 8],
            interrupts: value,
            context_switches: value,
            running: value,
            blocked: value,
        }
    }
}

/// `/proc/stat`.
pub fn proc_stat(text: &[u8], out: &mut ProcStat) {
    for line in text.split(|&b| b == b'\n') {
        if let Some(rest) = line.strip_prefix(b"cpu ") {
            numbers(rest, &mut out.cpu);
        } else if let Some(rest) = line.strip_prefix(b"intr ") {
            first(rest, &mut out.interrupts);
        } else if let Some(rest) = line.strip_prefix(b"ctxt ") {
            first(rest, &mut out.context_switches);
        } else if let Some(rest) = line.strip_prefix(b"procs_running ") {
            first(rest, &mut out.running);
        } else if let Some(rest) = line.strip_prefix(b"procs_blocked ") {
            first(rest, &mut out.blocked);
        }
    }
}

fn first(line: &[u8], out: &mut i64) {
    if let Some((value, _)) = number(line, 0) {
        *out = value;
    }
}

/// What is used of `/proc/meminfo`, in this order: see [`MEM_KEYS`].
pub const MEM_FIELDS: usize = 7;

/// Keys of `/proc/meminfo` in the order of the output of [`meminfo`].
pub const MEM_KEYS: [&[u8]; MEM_FIELDS] =
    [b"MemTotal:", b"MemFree:", b"MemAvailable:", b"Buffers:", b"Cached:", b"Dirty:", b"Writeback:"];

/// `/proc/meminfo` in bytes (the kernel prints KiB under the name kB).
pub fn meminfo(text: &[u8], out: &mut [i64; MEM_FIELDS]) {
    for line in text.split(|&b| b == b'\n') {
        for (i, key) in MEM_KEYS.iter().enumerate() {
            if let Some((value, _)) = line.strip_prefix(*key).and_then(|rest| number(rest, 0)) {
                out[i] = value.saturating_mul(1024);
            }
        }
    }
}

/// `/proc/pressure/io`: microseconds in which some task, and all tasks, were stalled on I/O.
pub fn pressure(text: &[u8], out: &mut [i64; 2]) {
    for line in text.split(|&b| b == b'\n') {
        let slot = match line {
            _ if line.starts_with(b"some ") => 0,
            _ if line.starts_with(b"full ") => 1,
            _ => continue,
        };
        let key = b" total=";
        if let Some(at) = line.windows(key.len()).position(|w| w == key)
            && let Some((value, _)) = number(line, at + key.len())
        {
            out[slot] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Lines as printed by kernels 4.9 (11 values), 4.19 (15) and 6.18 (17, read on a machine).
    const V11: &[u8] = b"  992743    11577 15167026   189084    44506   101499 14938328    45430        0    14920   236238\n";
    const V15: &[u8] = b"     446      216    35506      101       28       21      384       17        0       96       79        3        0     4096        2\n";
    const V17: &[u8] = b"  992743    11577 15167026   189084    44506   101499 14938328    45430        0    14920   236238    13458       10  4212128     1607     6368      117\n";

    #[test]
    fn block_stat_of_several_kernels() {
        let mut out = [-1; BLOCK_FIELDS];
        assert_eq!(block_stat(V11, &mut out), Some(11));
        assert_eq!((out[0], out[9], out[10], out[11]), (992_743, 14_920, 236_238, -1));
        let mut out = [-1; BLOCK_FIELDS];
        assert_eq!(block_stat(V15, &mut out), Some(15));
        assert_eq!((out[11], out[13], out[15]), (3, 4096, -1));
        assert_eq!(block_stat(V17, &mut out), Some(17));
        assert_eq!((out[15], out[16]), (6368, 117));
        let more = [V17.trim_ascii_end(), b" 77 88\n"].concat();
        assert_eq!(block_stat(&more, &mut out), Some(17), "unknown trailing values are ignored");
        assert_eq!(block_stat(b"1 2 3 4\n", &mut out), None, "the four values of an old partition");
        assert_eq!(block_stat(b"", &mut out), None);
    }

    #[test]
    fn proc_stat_of_several_kernels() {
        // 2.6.32: eight values without guest; 6.18: ten.
        let old = b"cpu  10 20 30 40 50 60 70 80\ncpu0 1 2 3 4 5 6 7 8\nintr 999 1 2 3\nctxt 851525\nbtime 1\nprocesses 3\nprocs_running 4\nprocs_blocked 2\n";
        let new = b"cpu  10 20 30 40 50 60 70 80 90 100\nintr 999 1 2 3\nctxt 851525\nprocs_running 4\nprocs_blocked 2\nsoftirq 5 6 7\n";
        for text in [&old[..], &new[..]] {
            let mut stat = ProcStat::filled(-1);
            proc_stat(text, &mut stat);
            assert_eq!(stat.cpu, [10, 20, 30, 40, 50, 60, 70, 80]);
            assert_eq!(
                (stat.interrupts, stat.context_switches, stat.running, stat.blocked),
                (999, 851_525, 4, 2)
            );
        }
        let mut stat = ProcStat::filled(-1);
        proc_stat(b"cpu  1 2 3 4\nctxt \nintr", &mut stat);
        assert_eq!(stat.cpu, [1, 2, 3, 4, -1, -1, -1, -1], "what is not there stays unset");
        assert_eq!((stat.interrupts, stat.context_switches), (-1, -1));
    }

    #[test]
    fn meminfo_and_pressure() {
        let mut mem = [-1; MEM_FIELDS];
        meminfo(
            b"MemTotal:       24684096 kB\nMemFree:  2 kB\nSwapCached: 9 kB\nCached: 5 kB\nDirty:  0 kB\n",
            &mut mem,
        );
        assert_eq!(mem, [24_684_096 * 1024, 2048, -1, -1, 5120, 0, -1]);
        let mut psi = [-1; 2];
        pressure(b"some avg10=1.04 avg60=2.75 avg300=1.15 total=8036172\nfull avg10=0.14 avg60=2.40 avg300=1.05 total=7322083\n", &mut psi);
        assert_eq!(psi, [8_036_172, 7_322_083]);
        let mut psi = [-1; 2];
        pressure(b"some avg10=0.00 total=7\n", &mut psi);
        assert_eq!(psi, [7, -1]);
    }

    #[test]
    fn no_text_makes_a_parser_panic() {
        let mut seed = 1u64;
        for length in 0..2000usize {
            let text: Vec<u8> = (0..length % 200)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    b"cpu intr ctxt 0123456789999999999999\n=:kB some total"[(seed >> 33) as usize % 50]
                })
                .collect();
            block_stat(&text, &mut [0; BLOCK_FIELDS]);
            proc_stat(&text, &mut ProcStat::filled(0));
            meminfo(&text, &mut [0; MEM_FIELDS]);
            pressure(&text, &mut [0; 2]);
        }
    }
}
