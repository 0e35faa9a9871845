//! How much memory there is for what a file or a plan claims.

use rustix::process::{Resource, getrlimit};
use std::fs;
use std::path::Path;

/// Of what a memory cgroup has left, the share that may be taken: the kernel's own structures and some pages of files need
/// the rest, and what outgrows a group is killed.
const OF_GROUP: f64 = 0.75;

/// Memory that can be had without swapping, bytes (`MemAvailable` of proc_meminfo(5)), and that this process may take
/// (getrlimit(2), cgroups(7)); without limit where nothing tells.
pub fn available_memory() -> u64 {
    let of_host = told("/proc/meminfo", "MemAvailable:").unwrap_or(u64::MAX);
    [limited_memory(), left_in_groups(Path::new("/"))].into_iter().flatten().fold(of_host, u64::min)
}

/// Bytes that the memory cgroups of this process still have, from its own outwards; `None` without a limit. `root`: where
/// /proc and /sys are.
fn left_in_groups(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let left = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let [base, limit, used] = match controllers {
            "" => ["sys/fs/cgroup", "memory.max", "memory.current"],
            one if one.split(',').any(|one| one == "memory") => {
                ["sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"]
            }
            _ => return None,
        };
        let base = root.join(base);
        let group = base.join(path.trim_start_matches('/'));
        // In a container the path may be the host's, of which only the top is there.
        group
            .ancestors()
            .take_while(|at| at.starts_with(&base))
            .filter_map(|at| left_in(at, limit, used))
            .min()
    });
    left.min()
}

/// What one group has left besides the pages of files, which the kernel takes back.
fn left_in(group: &Path, limit: &str, used: &str) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let (limit, used) = (number(limit)?, number(used)?);
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let pages = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0)
    };
    let of_files = pages("inactive_file") + pages("active_file");
    Some((limit.saturating_sub(used.saturating_sub(of_files)) as f64 * OF_GROUP) as u64)
}

/// Bytes that this process may still map by its limits (`ulimit -v`, `-d`; getrlimit(2)); `None` without a limit.
pub fn limited_memory() -> Option<u64> {
    let limits = [("VmSize:", Resource::As), ("VmData:", Resource::Data)];
    let left = limits.into_iter().filter_map(|(taken, resource)| {
        let limit = getrlimit(resource).current?;
        Some(limit.saturating_sub(told("/proc/self/status", taken).unwrap_or(0)))
    });
    left.min()
}

/// What a file of /proc tells in kB under a name, in bytes.
fn told(file: &str, name: &str) -> Option<u64> {
    let told = fs::read_to_string(file).ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_some() {
        assert!(available_memory() > 1 << 20);
    }

    #[test]
    fn the_tightest_group_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |at: &str, text: &str| {
            let at = root.path().join(at);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, text).unwrap();
        };
        assert_eq!(left_in_groups(root.path()), None);
        write("proc/self/cgroup", "9:cpu:/x\n0::/outer/inner\n");
        for (group, limit, used) in [("outer", "1000000", "500000"), ("outer/inner", "max", "400000")] {
            write(&format!("sys/fs/cgroup/{group}/memory.max"), limit);
            write(&format!("sys/fs/cgroup/{group}/memory.current"), used);
        }
        assert_eq!(left_in_groups(root.path()), Some(375_000));
        write("sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file 100000\nactive_file 100000\n");
        assert_eq!(left_in_groups(root.path()), Some(525_000));
        write("proc/self/cgroup", "4:memory,cpu:/m\n0::/\n");
        write("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n");
        write("sys/fs/cgroup/memory/m/memory.usage_in_bytes", "5\n");
        assert!(left_in_groups(root.path()).is_some_and(|left| left > 1 << 50));
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "4000\n");
        write("sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
        assert_eq!(left_in_groups(root.path()), Some(3000));
    }
}
