//! A run within a memory cgroup, so that the page cache can be outgrown by small files.
//!
//! The whole process moves into a group of its own for the run and back when it is over: memory is charged to processes,
//! not to threads. Pages count where they were read first; what was cached before must be dropped.

use crate::{Error, Result};
use loadstone_files::Mount;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// How long a group is busy after the last process has left it, at most.
const LEAVING: Duration = Duration::from_millis(20);

/// The memory controller as this process finds it.
#[derive(Debug, PartialEq)]
struct Hierarchy {
    /// 1 or 2.
    version: u8,
    /// Where cgroups are mounted.
    mount: PathBuf,
    /// The group of this process, below `mount`.
    home: PathBuf,
}

/// A group that this process is in, until it is dropped.
pub struct Limited {
    found: Hierarchy,
    group: PathBuf,
    limit: u64,
    over: bool,
}

impl Limited {
    /// Moves this process into a new group that gets `limit` bytes.
    ///
    /// # Errors
    /// When there is no memory cgroup, or it may not be used.
    pub fn enter(limit: u64) -> Result<Limited> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let found = Hierarchy::of(&read("/proc/self/cgroup"), &loadstone_files::mounts().unwrap_or_default())
            .ok_or_else(|| refused("no memory cgroup is mounted here (neither version 1 nor 2)", None))?;
        let parent = found.parent()?;
        sweep(&parent);
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let group = parent.join(format!("loadstone-{}-{number}", std::process::id()));
        fs::create_dir(&group)
            .map_err(|e| refused(&format!("the cgroup {} cannot be made", group.display()), Some(e)))?;
        // From here on whatever fails takes the group away again.
        let limited = Limited { found, group, limit, over: false };
        let limits = if limited.found.version == 1 { "memory.limit_in_bytes" } else { "memory.max" };
        limited.write(limits, &limit.to_string())?;
        // 0 is the process that writes it.
        limited.write("cgroup.procs", "0")?;
        Ok(limited)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.group.join(name);
        fs::write(&path, text).map_err(|e| refused(&format!("{} cannot be written", path.display()), Some(e)))
    }

    /// Leaves and removes the group; says in words what it was.
    ///
    /// # Errors
    /// When the process cannot be moved back, or the group not be removed.
    pub fn leave(mut self) -> Result<String> {
        let (peak, hits) = self.figures();
        self.undo()?;
        let version = self.found.version;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let mut note =
            format!("memory was limited to {:.1} MiB by a cgroup (version {version})", mib(self.limit));
        if let Some(peak) = peak {
            note += &format!(", {:.1} MiB were used at most", mib(peak));
        }
        if let Some(hits) = hits {
            note += &format!(", and the limit was met {hits} times");
        }
        Ok(note)
    }

    /// Most bytes that were used, and how often the limit was met.
    fn figures(&self) -> (Option<u64>, Option<u64>) {
        let read = |name: &str| fs::read_to_string(self.group.join(name)).unwrap_or_default();
        if self.found.version == 1 {
            let number = |name: &str| read(name).trim().parse().ok();
            return (number("memory.max_usage_in_bytes"), number("memory.failcnt"));
        }
        let events = read("memory.events");
        let hits = events.lines().find_map(|line| line.strip_prefix("max ")?.trim().parse().ok());
        (read("memory.peak").trim().parse().ok(), hits)
    }

    fn undo(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        let home = self.found.mount.join(&self.found.home).join("cgroup.procs");
        let back = fs::write(&home, "0")
            .map_err(|e| refused(&format!("{} cannot be written to go back", home.display()), Some(e)));
        if self.found.version == 1 {
            // Else the pages stay charged to a group that no longer has a name.
            let _ = fs::write(self.group.join("memory.force_empty"), "0");
        }
        let mut removed = fs::remove_dir(&self.group);
        for _ in 0..50 {
            if !removed.as_ref().is_err_and(|e| e.raw_os_error() == Some(libc::EBUSY)) {
                break;
            }
            std::thread::sleep(LEAVING);
            removed = fs::remove_dir(&self.group);
        }
        back?;
        removed
            .map_err(|e| refused(&format!("the cgroup {} cannot be removed", self.group.display()), Some(e)))
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = self.undo();
    }
}

impl Hierarchy {
    /// From `/proc/self/cgroup` and the mounts.
    fn of(groups: &str, mounts: &[Mount]) -> Option<Hierarchy> {
        let mounted = |kind: &str, option: Option<&str>| {
            mounts.iter().find(|mount| {
                let mut options = mount.data.split(',');
                mount.kind == kind && option.is_none_or(|option| options.any(|one| one == option))
            })
        };
        let group = |wanted: &str| {
            groups.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                controllers.split(',').any(|one| one == wanted).then_some(path)
            })
        };
        // A container sees a part of the tree as if it were all of it.
        let below = |path: &str, root: &Path| {
            let path = Path::new(path);
            path.strip_prefix(root).or_else(|_| path.strip_prefix("/")).map(Path::to_path_buf).ok()
        };
        if let (Some(path), Some(at)) = (group("memory"), mounted("cgroup", Some("memory"))) {
            return Some(Hierarchy { version: 1, mount: at.at.clone(), home: below(path, &at.root)? });
        }
        let (path, at) = (group("")?, mounted("cgroup2", None)?);
        Some(Hierarchy { version: 2, mount: at.at.clone(), home: below(path, &at.root)? })
    }

    /// The group in which a new one gets the memory controller.
    fn parent(&self) -> Result<PathBuf> {
        if self.version == 1 {
            return Ok(self.mount.join(&self.home));
        }
        // Of version 2, a group with processes has no groups with controllers in it, so it is one further up.
        for above in self.home.ancestors() {
            let at = self.mount.join(above);
            let given = fs::read_to_string(at.join("cgroup.subtree_control")).unwrap_or_default();
            if given.split_ascii_whitespace().any(|one| one == "memory") {
                return Ok(at);
            }
        }
        let what = format!(
            "no cgroup from {} up hands on the memory controller (cgroup.subtree_control)",
            self.mount.join(&self.home).display()
        );
        Err(refused(&what, None))
    }
}

/// Removes groups that runs have left which were killed.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix("loadstone-").and_then(|rest| rest.split('-').next()) else {
            continue;
        };
        let ours = pid.bytes().all(|byte| byte.is_ascii_digit()) && !pid.is_empty();
        if ours && !Path::new("/proc").join(pid).exists() {
            // One that somebody is in after all stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn refused(what: &str, cause: Option<io::Error>) -> Error {
    let cause = cause.unwrap_or_else(|| io::Error::from(io::ErrorKind::Unsupported));
    Error::System {
        what: format!("limiting memory: {what}"),
        cause,
        help: "; run as root, or where cgroups are yours (systemd-run --user --scope -p Delegate=yes), or leave out \
               `memory_limit`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "35 31 0:31 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
        36 31 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const V2: &str = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn groups_are_found_of_both_versions_and_in_containers() {
        let found = |groups, mounts: &str| {
            let mounts = loadstone_files::mounts_in(mounts.as_bytes());
            Hierarchy::of(groups, &mounts).map(|f| (f.version, f.mount, f.home))
        };
        let one = found("9:name=systemd:/\n4:memory:/a/b\n0::/\n", V1);
        assert_eq!(one, Some((1, "/sys/fs/cgroup/memory".into(), "a/b".into())));
        let two = found("0::/user.slice/s.scope\n", V2);
        assert_eq!(two, Some((2, "/sys/fs/cgroup".into(), "user.slice/s.scope".into())));
        let inner = "35 31 0:31 /docker/x /cg rw - cgroup cgroup rw,memory\n";
        assert_eq!(found("4:cpu,memory:/docker/x/y\n", inner), Some((1, "/cg".into(), "y".into())));
        assert_eq!(found("0::/\n", ""), None);
        assert_eq!(found("", V2), None);
    }

    #[test]
    fn of_version_2_the_group_lies_where_the_controller_is_handed_on() {
        let dir = tempfile::tempdir().unwrap();
        let (mount, home) = (dir.path().to_path_buf(), PathBuf::from("a/b"));
        fs::create_dir_all(mount.join(&home)).unwrap();
        fs::write(mount.join("a/b/cgroup.subtree_control"), "").unwrap();
        fs::write(mount.join("a/cgroup.subtree_control"), "cpu pids\n").unwrap();
        let found = Hierarchy { version: 2, mount: mount.clone(), home };
        let refused = found.parent().unwrap_err().to_string();
        assert!(refused.contains("hands on the memory controller") && refused.contains("a/b"), "{refused}");
        fs::write(mount.join("a/cgroup.subtree_control"), "cpu memory pids\n").unwrap();
        assert_eq!(found.parent().unwrap(), mount.join("a"));
    }

    #[test]
    fn groups_of_the_dead_are_removed_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let alive = format!("loadstone-{}-0", std::process::id());
        for name in ["loadstone-999999999-0", alive.as_str(), "loadstone-x", "other"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        sweep(dir.path());
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [alive.as_str(), "loadstone-x", "other"]);
    }
}
