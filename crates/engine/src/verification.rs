//! Verification of a run: set up from the plan, kept while it goes on, finished by reading every target.

use crate::host::target::{Open, uses};
use crate::metrics::progress::{Phase, Progress};
use crate::{Error, Result};
use loadstone_files::{Lock, lock_patiently, random_hex};
use loadstone_plan::{Backend, Plan, Prepare, Source, SyncMode, TargetKind};
use loadstone_verify::state::{self, Recipe, Remade};
use loadstone_verify::{About, Before, Findings, Kind, Ledger, Swept, Verifier, When, memory};
use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between the ends and beginnings of keeping the state: this, or ten times as long as it takes.
const KEEP: Duration = Duration::from_secs(5);

/// A verification that goes on.
pub struct Verification {
    /// What all threads share.
    pub verifier: Arc<Verifier>,
    recipe: Recipe,
    state: Option<Keeper>,
    /// A state that the run began with and does not go on keeping.
    outdated: Option<PathBuf>,
}

/// Refuses a state of targets that this run does not have, or of files in whose place it makes `new` ones: only with it
/// can these be verified.
fn refuse_of_others(state: &Path, abouts: &[About], new: &[&Path]) -> Result<()> {
    let Ok(kept) = state::load(state) else { return Ok(()) };
    let told = kept.verifier.files.iter().map(|ledger| &ledger.about.path);
    let other = told.filter(|path| !path.as_os_str().is_empty()).find(|path| {
        let is_new = new.iter().any(|new| std::path::absolute(new).is_ok_and(|new| new == **path));
        let same = |about: &&About| !is_new && (about.path == **path || same_file(&about.path, path));
        abouts.iter().find(same).is_none()
    });
    match other {
        None => Ok(()),
        Some(path) => Err(Error::Verify(format!(
            "{}: tells what {} holds, and would tell of this run's targets alone; name another file, or remove it",
            state.display(),
            path.display()
        ))),
    }
}

/// Whether two paths lead to one file.
fn same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// Keeps what is known in a file. What somebody else puts there meanwhile, another run for instance, stays.
struct Keeper {
    /// Where the user wants it.
    wanted: PathBuf,
    now: Mutex<Kept>,
}

/// Where it is kept, and the file there, if there is one. It is open, so that no other gets its number.
struct Kept {
    path: PathBuf,
    file: Option<File>,
    /// The one that was there was removed.
    outdated: bool,
}

impl Kept {
    fn at(path: &Path) -> Kept {
        let file = loadstone_files::open_regular(path, true).ok();
        Kept { path: path.into(), file, outdated: false }
    }

    /// Whether another file has its name now.
    fn is_taken(&self) -> bool {
        let mine = self.file.as_ref().and_then(|file| file.metadata().ok());
        let identity = |meta: &Metadata| (meta.dev(), meta.ino());
        std::fs::metadata(&self.path)
            .is_ok_and(|there| mine.is_none_or(|mine| identity(&mine) != identity(&there)))
    }
}

impl Keeper {
    fn new(wanted: &Path) -> Keeper {
        Keeper { wanted: wanted.into(), now: Mutex::new(Kept::at(wanted)) }
    }

    /// Keeps it, beside the wanted name where another file has that.
    fn save(&self, recipe: &Recipe, verifier: &Verifier, running: bool) -> loadstone_verify::Result<()> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.is_taken() {
            let mut names = (2..).map(|number| {
                let name = self.wanted.file_name().unwrap_or_default().to_string_lossy();
                self.wanted.with_file_name(format!("{name}.{number}"))
            });
            let free = names.find(|path| std::fs::symlink_metadata(path).is_err());
            *now = Kept { path: free.unwrap_or_default(), file: None, outdated: false };
        }
        state::save(&now.path, recipe, verifier, running, now.file.is_some())?;
        *now = Kept::at(&now.path);
        Ok(())
    }

    /// Keeps it when the run is over, in the directory of temporary files or the current one where nothing else can be.
    /// Says why it is not where the user wants it, if it is not.
    fn save_last(&self, recipe: &Recipe, verifier: &Verifier) -> Option<String> {
        let Err(cause) = self.save(recipe, verifier, false) else { return self.elsewhere() };
        let mut name = self.wanted.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", &random_hex()[..8]));
        let places = [Some(std::env::temp_dir()), std::env::current_dir().ok()];
        let saved = places
            .into_iter()
            .flatten()
            .map(|place| place.join(&name))
            .find(|path| state::save(path, recipe, verifier, false, false).is_ok());
        Some(match saved {
            Some(path) => format!("{cause}; the state is in {}", path.display()),
            None => cause.to_string(),
        })
    }

    /// Why it is not where the user wants it.
    fn elsewhere(&self) -> Option<String> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        (now.path != self.wanted).then(|| {
            let (wanted, path) = (self.wanted.display(), now.path.display());
            format!("{wanted}: something else, perhaps another run, put a file there during the run; the state is in {path}")
        })
    }
}

/// What could not be read.
#[derive(Debug, Default)]
pub struct Unread {
    /// Why not.
    pub reason: Option<String>,
    /// How many blocks of it.
    pub unreadable: u64,
}

/// Adds a reason to others.
pub fn also(reasons: &mut Option<String>, more: Option<String>) {
    match (reasons, more) {
        (Some(reasons), Some(more)) => *reasons = format!("{reasons}; {more}"),
        (reasons, more) => *reasons = reasons.take().or(more),
    }
}

/// Why not all of a target was read, if it was not.
fn unread_of(path: &Path, swept: &Swept) -> Option<String> {
    let told = if swept.stopped { Some("interrupted".into()) } else { swept.unreadable.tell() };
    told.map(|told| Error::target(path, told).to_string())
}

/// What came of a verification.
#[derive(Debug, Clone, Default)]
pub struct Verified {
    /// Bytes of a block.
    pub unit: usize,
    /// What was found while the load went on and after it.
    pub findings: Findings,
    /// Damaged blocks in words, in the same order.
    pub told: Vec<String>,
    /// Why targets were not read from end to end after the load, where they were not.
    pub unread: Option<String>,
    /// Blocks that could not be read.
    pub unreadable: u64,
    /// Why the state was not kept, where it should have been.
    pub unkept: Option<String>,
}

impl Verification {
    /// As the plan asks; `content`: blocks that content is made for.
    ///
    /// # Errors
    /// When targets are not what they should be. Nothing is written before.
    pub fn new(plan: &Plan, targets: &[Open], content: Option<u64>) -> Result<Option<Verification>> {
        let Some(asked) = &plan.verify else { return Ok(None) };
        let failed = |e: loadstone_verify::Error| Error::Verify(e.to_string());
        let mapped = plan.workers.iter().any(|worker| worker.backend == Backend::Mmap);
        let about = |(target, open): (&loadstone_plan::Target, &Open)| {
            let fill = open.prepare == Prepare::Fill;
            let before = match open.created {
                _ if fill => Before::Filled,
                true => Before::Zeros,
                false => Before::Unknown,
            };
            About {
                mapped,
                path: std::path::absolute(&open.path).unwrap_or_else(|_| open.path.clone()),
                size: open.size,
                before,
                stable: matches!(target.sync, SyncMode::Sync | SyncMode::Dsync),
                discards: uses(plan, &target.id).writes
                    && plan
                        .workers
                        .iter()
                        .any(|w| !matches!(w.source, Source::Uniform { .. } | Source::Cpu { .. })),
            }
        };
        let abouts: Vec<About> = plan.targets.iter().zip(targets).map(about).collect();
        if let Some(state) = asked.state.as_deref().filter(|state| asked.from.as_deref() != Some(*state)) {
            let new: Vec<&Path> = targets.iter().filter(|t| t.created).map(|t| t.path.as_path()).collect();
            refuse_of_others(state, &abouts, &new)?;
        }
        let (recipe, verifier) = match &asked.from {
            Some(from) => {
                let kept = state::load(from).map_err(failed)?;
                if kept.running {
                    return Err(Error::Verify(format!(
                        "{}: was kept while its run was going on, so it does not know the last writes; verify the target \
                         with `after_crash`, and fill it anew",
                        from.display()
                    )));
                }
                let verifier = go_on(from, kept.verifier, abouts)?;
                if kept.recipe.content.map(|c| (c.dedupe, c.compress))
                    != plan.content.as_ref().map(|c| (c.dedupe, c.compress))
                {
                    return Err(Error::Verify(format!(
                        "{}: was kept by a run with other content; give the same `dedupe`, `compress` and `content`",
                        from.display()
                    )));
                }
                (kept.recipe, verifier)
            }
            None => {
                for (about, (open, target)) in abouts.iter().zip(targets.iter().zip(&plan.targets)) {
                    if about.size > 0 && about.before == Before::Unknown && !uses(plan, &target.id).writes {
                        return Err(unknown(&open.path));
                    }
                }
                let key = RandomState::new().build_hasher().finish();
                let content = plan.content.as_ref().zip(content).map(|(c, blocks)| Remade {
                    seed: plan.seed,
                    dedupe: c.dedupe,
                    compress: c.compress,
                    blocks,
                });
                let unit = plan.content.as_ref().map_or(asked.unit, |content| content.unit) as usize;
                let recipe = Recipe { unit, key, content };
                let blocks = abouts.iter().map(|about| about.size.div_ceil(unit as u64));
                memory::check(blocks.fold(0, u64::saturating_add)).map_err(|what| {
                    Error::Verify(format!(
                        "there is no memory for {what}; use less of the target, or larger blocks"
                    ))
                })?;
                let ledgers = abouts.into_iter().map(|about| Ledger::new(about, unit)).collect();
                (recipe, Verifier::new(recipe.blocks().map_err(failed)?, ledgers))
            }
        };
        Ok(Some(Verification {
            verifier: Arc::new(verifier),
            recipe,
            state: asked.state.as_deref().map(Keeper::new),
            outdated: asked.from.clone().filter(|from| asked.state.as_ref() != Some(from)),
        }))
    }

    /// What somebody should know who verifies later, if there is anything.
    pub fn note(&self) -> Option<String> {
        let from = self.outdated.as_ref()?.display();
        Some(format!(
            "{from}: tells of the target as it was before this run, and what this run wrote would be called damage; \
             `verify_state` keeps what is known now"
        ))
    }

    /// Removes the state that was there, before targets are filled: it tells of what is overwritten now. A run that is ended
    /// meanwhile leaves none.
    pub fn outdate(&self) {
        let Some(keeper) = &self.state else { return };
        let mut now = keeper.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.file.is_some() && !now.is_taken() && std::fs::remove_file(&now.path).is_ok() {
            (now.file, now.outdated) = (None, true);
        }
    }

    /// Does `work` while what is known is kept again and again.
    ///
    /// # Errors
    /// Those of `work`, or when no thread can be had that keeps it.
    pub fn keeping<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(state) = &self.state else { return work() };
        // What is there knows nothing of what comes now, and would call it damage.
        let outdated = state.now.lock().unwrap_or_else(PoisonError::into_inner).outdated;
        if outdated || state.wanted.exists() {
            state.save(&self.recipe, &self.verifier, true).map_err(|e| Error::Verify(e.to_string()))?;
        }
        let (ended, end) = channel::<()>();
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("loadstone-keep".into());
            let keeper = thread.spawn_scoped(scope, move || {
                let mut pause = KEEP;
                while end.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                    let began = Instant::now();
                    // The last one tells of what goes wrong.
                    let _ = state.save(&self.recipe, &self.verifier, true);
                    pause = KEEP.max(10 * began.elapsed());
                }
            });
            keeper.map_err(|e| Error::thread("that keeps the state", e))?;
            let done = work();
            drop(ended);
            done
        })
    }

    /// Reads every target from end to end, keeps what is known, and tells what was found. `before`: what of sets could
    /// not be read.
    pub fn finish(&self, targets: &[Open], progress: &Progress, before: Unread) -> Verified {
        // First of all: reading may take long, and may be what fails.
        let unkept = self.state.as_ref().and_then(|state| state.save_last(&self.recipe, &self.verifier));
        let Unread { reason: mut unread, mut unreadable } = before;
        if progress.stop.load(Relaxed) {
            unread = Some("the run was stopped".into());
        } else {
            progress.begin(Phase::Verifying, Some(targets.iter().map(|target| target.size).sum()));
            for (number, target) in targets.iter().enumerate().filter(|(_, target)| target.size > 0) {
                // Past the page cache where that can be; a pipe in its place is not waited for.
                let open = |flags| target.again(false, flags | libc::O_NONBLOCK);
                let file = open(libc::O_DIRECT).or_else(|_| open(0));
                let swept = sweep(&self.verifier, number, When::Ended, (&target.path, file), |bytes| {
                    progress.advance(bytes);
                    if progress.stop.load(Relaxed) {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                });
                let swept = swept.unwrap_or_else(|e| {
                    also(&mut unread, Some(e.to_string()));
                    Swept::default()
                });
                unreadable += swept.unreadable.blocks;
                also(&mut unread, unread_of(&target.path, &swept));
            }
        }
        Verified { unkept, unreadable, ..Verified::new(self.recipe.unit, &self.verifier, unread) }
    }
}

fn unknown(path: &Path) -> Error {
    Error::Verify(format!(
        "{}: this run only reads it, and nothing tells what it should hold; fill it (`fill` `allow_destroy`), or give \
         the state of the run that wrote it (`verify_from`)",
        path.display()
    ))
}

/// Refuses a plan that would have nothing to compare with. `made`: what plans before it make.
///
/// # Errors
/// As those of [`Verification::new`].
pub fn rehearse(plan: &Plan, made: impl Fn(&Path) -> bool) -> Result<()> {
    if plan.verify.as_ref().is_none_or(|asked| asked.from.is_some()) {
        return Ok(());
    }
    let kinds = [TargetKind::File, TargetKind::Device];
    let holds = plan.targets.iter().filter(|target| kinds.contains(&target.kind));
    let unknown_one = holds
        .filter(|target| target.prepare != Prepare::Fill)
        .find(|target| !uses(plan, &target.id).writes && (made(&target.path) || target.path.exists()));
    unknown_one.map_or(Ok(()), |target| Err(unknown(&target.path)))
}

impl Verified {
    fn new(unit: usize, verifier: &Verifier, unread: Option<String>) -> Verified {
        let findings = verifier.findings();
        let told = findings.damages.iter().map(|damage| damage.tell(|file| verifier.path(file))).collect();
        Verified { unit, findings, told, unread, unreadable: 0, unkept: None }
    }
}

/// The ledgers of a run before, for a run that goes on from there.
fn go_on(from: &Path, mut kept: Verifier, abouts: Vec<About>) -> Result<Verifier> {
    let wrong = |what: String| Err(Error::Verify(format!("{}: {what}", from.display())));
    if kept.files.len() != abouts.len() {
        return wrong(format!(
            "tells of {} targets, and this run has {}; give the same targets",
            kept.files.len(),
            abouts.len()
        ));
    }
    for (ledger, about) in kept.files.iter_mut().filter_map(Arc::get_mut).zip(abouts) {
        if (&ledger.about.path, ledger.about.size) != (&about.path, about.size) {
            return wrong(format!(
                "tells of {} bytes of {}, and this run uses {} of {}; give the same targets in the same order",
                ledger.about.size,
                ledger.about.path.display(),
                about.size,
                about.path.display()
            ));
        }
        ledger.about.stable = about.stable;
        ledger.about.discards |= about.discards;
        ledger.about.mapped = about.mapped;
    }
    refuse_others(from, &kept)?;
    Ok(kept)
}

/// A file or device past the page cache, where it can be opened so. Anything else is an error, and not waited for: a state
/// may name a pipe.
fn open(path: &Path) -> std::io::Result<File> {
    let usual = libc::O_CLOEXEC | libc::O_NONBLOCK;
    let open = |flags| OpenOptions::new().read(true).custom_flags(flags | usual).open(path);
    let check = |meta: std::fs::Metadata| match meta.file_type() {
        kind if kind.is_file() || kind.is_block_device() => Ok(()),
        _ => Err(std::io::Error::other("it is neither a file nor a block device")),
    };
    // Looked at first, as opening some devices does something.
    check(std::fs::metadata(path)?)?;
    let file = open(libc::O_DIRECT).or_else(|_| open(0))?;
    check(file.metadata()?)?;
    Ok(file)
}

/// Reads a target from end to end.
fn sweep(
    verifier: &Verifier,
    number: usize,
    when: When,
    (path, file): (&Path, std::io::Result<File>),
    advance: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Swept> {
    let file = file.map_err(|e| Error::target_io(path, "cannot be read", &e))?;
    Ok(verifier.sweep(number as u64, &file, when, advance))
}

/// Refuses targets that hold nothing of what is known; `state` says so.
fn refuse_others(state: &Path, verifier: &Verifier) -> Result<()> {
    for (number, ledger) in verifier.files.iter().enumerate() {
        let path = &ledger.about.path;
        let file = open(path).map_err(|e| Error::target_io(path, "cannot be read", &e))?;
        if !verifier.recognises(number as u64, &file) {
            return Err(Error::Verify(format!(
                "{}: {} holds nothing of what it tells: it is another file, or somebody else has written it since",
                state.display(),
                path.display()
            )));
        }
    }
    Ok(())
}

/// Locks all targets with others who only read them, as long as the files are open.
fn lock_all(verifier: &Verifier) -> Result<Vec<File>> {
    let locked = verifier.files.iter().map(|ledger| {
        let path = &ledger.about.path;
        let failed = |e: std::io::Error| Error::target_io(path, "cannot be read", &e);
        let file = open(path).map_err(failed)?;
        match lock_patiently(&file, Lock::Shared).map_err(failed)? {
            true => Ok(file),
            false => Err(Error::target(path, "is being written by a run; verify it when that has ended")),
        }
    });
    locked.collect()
}

/// What reading targets told that an earlier run had written.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// As of a run.
    pub verified: Verified,
    /// What became of what was not stable when the power went.
    pub swept: Swept,
    /// The state was kept while the run was going on.
    pub running: bool,
}

/// Reads the targets of a state from end to end and compares; `paths` takes the place of the state's paths where it is
/// not empty. `crashed`: only what was stable must be there. `progress` is told of bytes that are done, of how many, and
/// may end it.
///
/// # Errors
/// When the state cannot be read, or a target is not there or somebody else's.
pub fn verify_later(
    from: &Path,
    paths: Vec<PathBuf>,
    crashed: bool,
    mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Told> {
    let mut kept = state::load(from).map_err(|e| Error::Verify(e.to_string()))?;
    let wrong = |what: String| Err(Error::Verify(format!("{}: {what}", from.display())));
    let verifier = &mut kept.verifier;
    if !paths.is_empty() && paths.len() != verifier.files.len() {
        let targets = verifier.files.len();
        return wrong(format!("tells of {targets} targets, and {} are named; name as many", paths.len()));
    }
    if kept.running && !crashed {
        let what = "was kept while its run was going on, which has not ended as it should; `after_crash` verifies what \
                    must have survived that";
        return wrong(what.into());
    }
    for (ledger, path) in verifier.files.iter_mut().filter_map(Arc::get_mut).zip(paths) {
        ledger.about.path = path;
    }
    let _locks = lock_all(verifier)?;
    // Without marks only trying tells a generation, and of these there may have been any number since.
    if !kept.running || matches!(verifier.blocks.kind(), Kind::Marked(_)) {
        refuse_others(from, verifier)?;
    }
    let when = if crashed { When::Crashed { running: kept.running } } else { When::Ended };
    let (mut told, mut done, mut unread) = (Told { running: kept.running, ..Told::default() }, 0, None);
    let of = verifier.files.iter().map(|ledger| ledger.about.size).sum();
    for (number, ledger) in verifier.files.iter().enumerate() {
        let path = &ledger.about.path;
        let swept = sweep(verifier, number, when, (path, open(path)), |bytes| {
            done += bytes;
            progress(done, of)
        });
        let swept = swept?;
        also(&mut unread, unread_of(&ledger.about.path, &swept));
        told.swept.add(&swept);
    }
    let unreadable = told.swept.unreadable.blocks;
    told.verified = Verified { unreadable, ..Verified::new(kept.recipe.unit, verifier, unread) };
    Ok(told)
}
