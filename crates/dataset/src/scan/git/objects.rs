//! Objects of a repository, as `git cat-file --batch` gives them (git-cat-file(1)).

use crate::{Error, Result};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Objects that are asked for before the first is answered. So many names fit in a pipe, so asking never waits for
/// git while git waits to be read.
const AHEAD: usize = 400;
/// Longest line that tells of an object, bytes.
const LINE: u64 = 8192;
/// Of what git says of errors so many bytes are kept: the last ones.
const SAID: usize = 2048;
/// How long the rest of that is waited for after git has ended. Whoever git started may hold the pipe open.
const REST: Duration = Duration::from_secs(1);

/// Name of an object: 20 bytes of SHA-1 or 32 of SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id {
    bytes: [u8; 32],
    length: u8,
}

impl Id {
    pub fn new(bytes: &[u8]) -> Option<Id> {
        let mut id = Id { bytes: [0; 32], length: bytes.len() as u8 };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes[..usize::from(self.length)].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A git command on a repository: one that is at that very place, and as it is, whatever the environment says.
pub fn git(repo: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(repo);
    // What git sets for hooks, for one (git rev-parse --local-env-vars).
    for name in
        ["DIR", "WORK_TREE", "INDEX_FILE", "NAMESPACE", "OBJECT_DIRECTORY", "COMMON_DIR", "SHALLOW_FILE"]
    {
        command.env_remove(format!("GIT_{name}"));
    }
    if let Some(above) = repo.canonicalize().ok().as_deref().and_then(Path::parent) {
        command.env("GIT_CEILING_DIRECTORIES", above);
    }
    // Nothing is fetched, written or translated.
    // Older git fetches lazily all the same, and then through no protocol.
    command
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("LC_ALL", "C");
    command
}

/// What a git command prints.
pub fn ask(repo: &Path, arguments: &[&str]) -> Result<String> {
    let done = git(repo).args(arguments).stdin(Stdio::null()).output().map_err(|e| no_git(repo, e))?;
    if !done.status.success() {
        return Err(refused(repo, &done.stderr));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

fn no_git(repo: &Path, cause: io::Error) -> Error {
    Error::io("needs the program git, which cannot be run (install it)", repo, cause)
}

fn refused(repo: &Path, stderr: &[u8]) -> Error {
    let said = String::from_utf8_lossy(stderr);
    let said = said.trim().trim_start_matches("fatal: ");
    Error::file(
        repo,
        format!("git refuses: {}", if said.is_empty() { "it says nothing; try git fsck" } else { said }),
    )
}

/// An object as it comes.
pub struct Object<'a> {
    /// `blob`, `tree`, `commit` or `tag`.
    pub kind: &'a str,
    /// Bytes.
    pub size: u64,
    /// Its content.
    pub content: &'a mut dyn Read,
}

/// The end of what a command says of errors. It is read all the time: a full pipe would stop the command.
struct Said {
    end: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Said {
    fn new(mut from: ChildStderr) -> Said {
        let end = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&end);
        let reader = std::thread::spawn(move || {
            let mut room = [0; SAID];
            while let Ok(n @ 1..) = from.read(&mut room) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&room[..n]);
                let over = kept.len().saturating_sub(SAID);
                kept.drain(..over);
            }
        });
        Said { end, reader }
    }

    /// What it said last, when the command has ended: whole lines.
    fn last(&self) -> String {
        let until = Instant::now() + REST;
        while !self.reader.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let kept = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let is_cut = kept.len() == SAID;
        text.split_once('\n').filter(|_| is_cut).map_or(&*text, |(_, rest)| rest).trim().to_string()
    }
}

/// A running `git cat-file --batch`.
pub struct Objects {
    repo: PathBuf,
    child: Child,
    /// Where objects are asked for, until that ends.
    asked: Option<ChildStdin>,
    told: BufReader<ChildStdout>,
    said: Said,
}

impl Objects {
    pub fn open(repo: &Path) -> Result<Objects> {
        let mut command = git(repo);
        command.args(["cat-file", "--batch"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| no_git(repo, e))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(asked), Some(told), Some(said)) = pipes else {
            return Err(Error::file(repo, "git was started without pipes"));
        };
        let (told, said) = (BufReader::with_capacity(1 << 16, told), Said::new(said));
        Ok(Objects { repo: repo.into(), child, asked: Some(asked), told, said })
    }

    /// Gives each of some objects to `take`, in their order; nothing where the repository has not got it. What `take`
    /// leaves of the content is passed over.
    pub fn each<A: fmt::Display>(
        &mut self,
        names: &[A],
        take: &mut dyn FnMut(usize, Option<Object<'_>>) -> Result<()>,
    ) -> Result<()> {
        let mut asked = 0;
        for (i, name) in names.iter().enumerate() {
            if asked - i < AHEAD / 2 {
                let more = &names[asked..names.len().min(i + AHEAD)];
                let lines: String = more.iter().map(|name| format!("{name}\n")).collect();
                asked += more.len();
                let ask =
                    |pipe: &mut ChildStdin| pipe.write_all(lines.as_bytes()).and_then(|()| pipe.flush());
                if self.asked.as_mut().is_none_or(|pipe| ask(pipe).is_err()) {
                    return Err(self.ended());
                }
            }
            self.next(i, name, take)?;
        }
        Ok(())
    }

    fn next(
        &mut self,
        i: usize,
        name: &dyn fmt::Display,
        take: &mut dyn FnMut(usize, Option<Object<'_>>) -> Result<()>,
    ) -> Result<()> {
        let mut line = Vec::new();
        let read = (&mut self.told).take(LINE).read_until(b'\n', &mut line);
        if read.is_err() || line.pop() != Some(b'\n') {
            return Err(self.ended());
        }
        let line = String::from_utf8_lossy(&line);
        let words: Vec<&str> = line.split(' ').collect();
        let [_, kind, size] = words[..] else {
            return match words.last() {
                Some(&"missing") => take(i, None),
                _ => Err(Error::file(&self.repo, format!("git says of {name}: {line}; try git fsck"))),
            };
        };
        let Ok(size) = size.parse() else {
            return Err(Error::file(&self.repo, format!("git says of {name}: {line}; try git fsck")));
        };
        let mut content = (&mut self.told).take(size);
        let done = take(i, Some(Object { kind, size, content: &mut content }));
        let left = content.limit();
        // The content and the line end after it.
        let passed = io::copy(&mut (&mut self.told).take(left + 1), &mut io::sink());
        done?;
        if passed.is_ok_and(|passed| passed == left + 1) { Ok(()) } else { Err(self.ended()) }
    }

    /// Nothing more is asked for; what git said last of errors, if it did.
    pub fn finish(&mut self) -> Option<String> {
        // Git ends where nothing more can be asked for.
        drop(self.asked.take());
        let _ = self.child.wait();
        Some(self.said.last()).filter(|said| !said.is_empty())
    }

    /// Why git ended, which it never does by itself.
    fn ended(&mut self) -> Error {
        let _ = self.child.kill();
        let _ = self.child.wait();
        refused(&self.repo, self.said.last().as_bytes())
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An entry of a tree object.
pub struct Item {
    pub mode: u32,
    pub name: Vec<u8>,
    pub id: Id,
}

/// Entries of a tree object: mode in octal, a space, the name, a zero byte, the bytes of the id (`length` of them);
/// otherwise the byte at which it is wrong.
pub fn items(bytes: &[u8], length: usize) -> std::result::Result<Vec<Item>, usize> {
    let (mut items, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let wrong = bytes.len() - rest.len();
        let item = (|| {
            let space = rest.iter().take(8).position(|byte| *byte == b' ')?;
            let mode = u32::from_str_radix(std::str::from_utf8(&rest[..space]).ok()?, 8).ok()?;
            let end = space + 1 + rest[space + 1..].iter().position(|byte| *byte == 0)?;
            let id = Id::new(rest.get(end + 1..end + 1 + length)?)?;
            let name = rest[space + 1..end].to_vec();
            rest = &rest[end + 1 + length..];
            Some(Item { mode, name, id })
        })();
        items.push(item.ok_or(wrong)?);
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_told_or_the_byte_at_which_they_are_wrong() {
        let mut bytes = b"100755 run\0".to_vec();
        bytes.extend_from_slice(&[7; 20]);
        let first = bytes.len();
        bytes.extend_from_slice(b"40000 sub dir\0");
        bytes.extend_from_slice(&[8; 20]);
        let told = items(&bytes, 20).ok().unwrap();
        let told: Vec<_> = told.iter().map(|item| (item.mode, &item.name[..], item.id.to_string())).collect();
        assert_eq!(told, [(0o100755, &b"run"[..], "07".repeat(20)), (0o40000, b"sub dir", "08".repeat(20))]);
        for cut in first + 1..bytes.len() {
            assert_eq!(items(&bytes[..cut], 20).err(), Some(first), "{cut}");
        }
        assert_eq!(items(b"10064x a\0", 0).err(), Some(0));
        assert!(items(&[], 20).ok().unwrap().is_empty());
    }
}
