//! A line of strace's output taken apart: `pid time call(arguments) = result <seconds>`.

use crate::scan::{decimal, quote, uint};
use crate::{Error, Result};

const SECOND: u64 = 1_000_000_000;

/// The mark of a call that another process's line interrupts.
const UNFINISHED: &[u8] = b"<unfinished ...>";

/// The note of a new process, before its number.
const ATTACHED: &[u8] = b"strace: Process ";

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A call with its result.
    Whole,
    /// The start of a call whose end comes later.
    Started,
    /// The end of a call, whose start it goes on from.
    Resumed,
    /// A process or thread ended.
    Ended,
    /// A signal or another note, which has its time all the same.
    Noted,
}

/// A line of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    pub head: Head,
    pub what: What,
    /// All behind the time, without marks.
    pub text: &'a [u8],
}

/// Who and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Process or thread; 0 where strace followed only one.
    pub pid: u32,
    /// Nanoseconds.
    pub time: i64,
    /// What they count from.
    pub since: Since,
}

/// What the time of a line counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// 1970 (`-ttt`).
    Epoch,
    /// Midnight (`-tt`).
    Midnight,
    /// The line before (`-r`).
    Line,
}

/// A call with its result.
#[derive(Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its arguments, as they are printed.
    pub args: Vec<&'a [u8]>,
    /// What it returned; `None` for `?`.
    pub result: Option<i64>,
    /// What a returned descriptor is shown to be.
    pub returned: Shown,
    /// The errno of a call that failed, as far as its name is known.
    pub errno: Option<i64>,
    /// Nanoseconds it took (`-T`).
    pub took: Option<i64>,
}

fn bad(what: &str, line: &[u8]) -> Error {
    Error::malformed(format!("{what} in {}", quote(line))).help(
        "the line is damaged or cut short; `max_damaged` N passes over up to N such lines and counts them",
    )
}

/// A time of day, `HH:MM:SS.us`.
fn of_day(text: &[u8]) -> Option<i64> {
    let mut parts = text.split(|c| *c == b':');
    let (hours, minutes) = (uint(parts.next()?)?, uint(parts.next()?)?);
    let seconds = decimal(parts.next()?, SECOND).filter(|s| *s >= 0)?;
    let minutes = i64::try_from(hours.checked_mul(60)?.checked_add(minutes)?).ok()?;
    minutes.checked_mul(60 * SECOND as i64)?.checked_add(seconds)
}

/// Whether the time that ends before `rest` is padded as those of `-r` are: whole seconds in six places, six digits
/// behind the point. Since 1970 there are more, and behind a short process id there is a blank more.
fn is_padded(line: &[u8], time: &[u8], rest: &[u8]) -> bool {
    let Some(point) = memchr::memchr(b'.', time) else { return false };
    let before = &line[..line.len() - rest.len() - time.len()];
    let blanks = before.iter().rev().take_while(|c| **c == b' ').count();
    let separator = usize::from(blanks < before.len());
    point < 6 && time.len() - point == 7 && blanks + point >= 6 + separator
}

/// What stands in a line; `None` for a note that has no time.
///
/// # Errors
/// When it has no time, or is cut short.
pub fn line(text: &[u8]) -> Result<Option<Line<'_>>> {
    let text = text.trim_ascii_end();
    let mut rest = text.trim_ascii_start();
    // On a terminal the note of a new process breaks the line of the call that makes it; its mark follows alone.
    if rest.is_empty() || rest.starts_with(b"strace: ") || rest == UNFINISHED {
        return Ok(None);
    }
    let attached = rest.strip_suffix(b" attached").and_then(|text| {
        let at = memchr::memmem::rfind(text, ATTACHED)?;
        uint(&text[at + ATTACHED.len()..]).map(|_| at)
    });
    let text = match attached {
        Some(at) => &text[..text.len() - rest.len() + at],
        None => text,
    };
    rest = text.trim_ascii_start();
    let word = |rest: &mut &[u8]| {
        let trimmed = rest.trim_ascii_start();
        let end = trimmed.iter().position(|c| *c == b' ').unwrap_or(trimmed.len());
        let (word, after) = trimmed.split_at(end);
        *rest = after;
        word.to_vec()
    };
    let mut pid = 0;
    if let Some(inner) = rest.strip_prefix(b"[pid") {
        let end = memchr::memchr(b']', inner).ok_or_else(|| bad("no end of the process id", text))?;
        pid = uint(numbered(inner[..end].trim_ascii()))
            .and_then(|p| u32::try_from(p).ok())
            .ok_or_else(|| bad("no process id", text))?;
        rest = &inner[end + 1..];
    }
    let mut first = word(&mut rest);
    if let Some(found) = uint(numbered(&first)).and_then(|p| u32::try_from(p).ok())
        && pid == 0
    {
        pid = found;
        first = word(&mut rest);
    }
    let head = match of_day(&first) {
        Some(time) => Head { pid, time, since: Since::Midnight },
        None => {
            let time = decimal(&first, SECOND).filter(|time| *time >= 0 && first.contains(&b'.'));
            let time = time.ok_or_else(|| {
                Error::malformed(format!("no time in {}", quote(text))).help("capture with strace -f -ttt -T")
            })?;
            let padded = is_padded(text, &first, rest);
            Head { pid, time, since: if padded { Since::Line } else { Since::Epoch } }
        }
    };
    // Of `-r` beside another clock.
    let step = rest
        .trim_ascii_start()
        .strip_prefix(b"(+")
        .and_then(|step| Some(&step[memchr::memchr(b')', step)? + 1..]));
    let rest = step.unwrap_or(rest).trim_ascii();
    let (what, text) = if rest.starts_with(b"+++ exited") || rest.starts_with(b"+++ killed") {
        (What::Ended, rest)
    } else if rest.starts_with(b"+++") || rest.starts_with(b"---") {
        (What::Noted, rest)
    } else if let Some(resumed) = rest.strip_prefix(b"<... ") {
        let end =
            memchr::memmem::find(resumed, b" resumed>").ok_or_else(|| bad("no end of the mark", text))?;
        (What::Resumed, &resumed[end + b" resumed>".len()..])
    } else if let Some(start) = rest.strip_suffix(UNFINISHED) {
        (What::Started, start.trim_ascii_end())
    } else {
        (if attached.is_some() { What::Started } else { What::Whole }, rest)
    };
    Ok(Some(Line { head, what, text }))
}

/// A process id without the name that `-Y` shows behind it.
fn numbered(pid: &[u8]) -> &[u8] {
    match memchr::memchr(b'<', pid) {
        Some(at) if pid.ends_with(b">") => &pid[..at],
        _ => pid,
    }
}

/// Where an argument or a list of them ends: at a comma or closing bracket outside of brackets, quotes and
/// comments.
fn end_of(text: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0);
    while at < text.len() {
        match text[at] {
            b'"' => {
                at += 1;
                while *text.get(at)? != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'/' if text.get(at + 1) == Some(&b'*') => {
                at += memchr::memmem::find(&text[at..], b"*/")? + 1;
            }
            b'<' if at > 0 && text[at - 1].is_ascii_alphanumeric() && text.get(at + 1) != Some(&b'<') => {
                at = shown_end(text, at)?;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b',' | b')' if depth == 0 => return Some(at),
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where what strace shows of a descriptor (`-y`, `-yy`) ends that begins at `<`: a path, in which newer versions
/// write `<` and `>` as escapes, with `<char 136:0>` or `<block 8:0>` behind it, or `TCP:[from->to]` and the like.
fn shown_end(text: &[u8], start: usize) -> Option<usize> {
    let is_path = text.get(start + 1) == Some(&b'/');
    let mut at = start + 1;
    loop {
        match *text.get(at)? {
            b'\\' => at += 1,
            b'<' if [&b"<char "[..], b"<block "].iter().any(|device| text[at..].starts_with(device)) => {
                at += memchr::memchr(b'>', &text[at..])?;
            }
            b'[' if !is_path => {
                while *text.get(at)? != b']' {
                    if text[at] == b'"' {
                        at += 1;
                        while *text.get(at)? != b'"' {
                            at += if text[at] == b'\\' { 2 } else { 1 };
                        }
                    }
                    at += 1;
                }
            }
            // Older versions write it in names, too, behind which other things stand than behind a descriptor.
            b'>' if text.get(at + 1).is_none_or(|next| b",) ]}(=".contains(next)) => return Some(at),
            _ => {}
        }
        at += 1;
    }
}

/// What strace shows that a descriptor stands for.
#[derive(Debug, PartialEq, Eq)]
pub enum Shown {
    /// Nothing is shown.
    Nothing,
    /// A file, directory or block device by its path.
    File(Vec<u8>),
    /// A pipe, socket, terminal or another thing that is no file.
    Other,
}

/// What stands in front of what is shown of a descriptor, and what that is.
pub fn shown(arg: &[u8]) -> (&[u8], Shown) {
    let Some(start) = memchr::memchr(b'<', arg) else { return (arg, Shown::Nothing) };
    let Some(end) = shown_end(arg, start) else { return (arg, Shown::Nothing) };
    let inner = &arg[start + 1..end];
    let device = |kind: &[u8]| memchr::memmem::rfind(inner, kind).filter(|_| inner.ends_with(b">"));
    let path = match (device(b"<char "), device(b"<block ")) {
        (Some(_), _) => None,
        (_, Some(at)) => Some(&inner[..at]),
        _ => Some(inner),
    };
    // What is only in memory has no name to be used again.
    let path = path.filter(|path| path.starts_with(b"/") && !path.starts_with(b"/memfd:"));
    let path = path.and_then(|path| unescaped(path.strip_suffix(b" (deleted)").unwrap_or(path)));
    (&arg[..start], path.map_or(Shown::Other, Shown::File))
}

/// The call of a text that begins with its name.
///
/// # Errors
/// When it is cut short.
pub fn call(text: &[u8]) -> Result<Call<'_>> {
    let (name, mut rest) = name(text).ok_or_else(|| bad("no call", text))?;
    let mut args = Vec::new();
    loop {
        let end = end_of(rest).ok_or_else(|| bad("arguments without an end", text))?;
        let arg = rest[..end].trim_ascii();
        if !arg.is_empty() {
            args.push(arg);
        }
        let closed = rest[end] == b')';
        rest = &rest[end + 1..];
        if closed {
            break;
        }
    }
    let result = rest.trim_ascii().strip_prefix(b"=").ok_or_else(|| bad("no result", text))?.trim_ascii();
    let took = result.strip_suffix(b">").and_then(|inner| {
        let start = memchr::memrchr(b'<', inner)?;
        decimal(&inner[start + 1..], SECOND).filter(|took| *took >= 0)
    });
    let cut = |at: usize| result[at + 2..].iter().all(|c| c.is_ascii_digit() || *c == b'.');
    if memchr::memmem::rfind(result, b" <").is_some_and(cut) {
        return Err(bad("cut short within the time that the call took", text));
    }
    let end = result.iter().position(|c| matches!(c, b' ' | b'<')).unwrap_or(result.len());
    // What stands behind a blank is the time that the call took.
    let returned = if result[end..].starts_with(b"<") { shown(result).1 } else { Shown::Nothing };
    let errno = result[end..].trim_ascii_start().split(|c| *c == b' ').next().and_then(super::errno::number);
    let result = match &result[..end] {
        b"?" => None,
        word => Some(number(word).ok_or_else(|| bad("no result", text))?),
    };
    Ok(Call { name, args, result, returned, errno, took })
}

/// The name of a call, and what stands behind its bracket.
pub fn name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let open = memchr::memchr(b'(', text)?;
    let name = &text[..open];
    let plain = !name.is_empty() && name.iter().all(|c| c.is_ascii_alphanumeric() || *c == b'_');
    plain.then(|| (name, &text[open + 1..]))
}

/// A decimal or hexadecimal number with a sign.
pub fn number(text: &[u8]) -> Option<i64> {
    if let Some(hex) = text.strip_prefix(b"0x") {
        return u64::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok().map(u64::cast_signed);
    }
    decimal(text, 1).filter(|_| !text.contains(&b'.'))
}

/// The bytes of a quoted argument; `None` for `NULL` and addresses, or where strace cut it.
pub fn text(arg: &[u8]) -> Option<Vec<u8>> {
    unescaped(arg.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// Text without strace's escapes.
fn unescaped(inner: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next()? {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'v' => out.push(0x0b),
            b'f' => out.push(0x0c),
            b'x' => {
                let digits = [bytes.next()?, bytes.next()?];
                out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
            }
            digit @ b'0'..=b'7' => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(next) = bytes.next_if(|c| (b'0'..=b'7').contains(c)) else { break };
                    value = value * 8 + u32::from(next - b'0');
                }
                out.push(value as u8);
            }
            other => out.push(other),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_with_brackets_quotes_and_comments() {
        let text = br#"read(3, "a\"), b"..., 832) = 832 <0.000016>"#;
        let found = call(text).unwrap();
        assert_eq!(
            (found.name, found.args.len(), found.result, found.took),
            (&b"read"[..], 3, Some(832), Some(16_000))
        );
        let text = br#"execve("/bin/x", ["x", "a)b"], 0x7ff /* 35 vars, more) */) = 0"#;
        assert_eq!(call(text).unwrap().args.len(), 3);
        let text = br#"newfstatat(AT_FDCWD</a b(>, "x", {st_mode=S_IFREG|0644, ...}, 0) = -1 ENOENT (No such file) <0.1>"#;
        let found = call(text);
        assert!(found.is_ok_and(|c| c.args.len() == 4 && c.result == Some(-1)));
        assert_eq!(call(b"capset(1<<CAP_CHOWN|1<<CAP_KILL, x) = 0").unwrap().args.len(), 2);
        let text = br"close(3</tmp/a, b)>) = 0";
        assert_eq!(call(text).unwrap().args, [&b"3</tmp/a, b)>"[..]]);
        assert_eq!(call(b"exit_group(0) = ?").unwrap().result, None);
        assert!(call(b"read(3, \"cut").is_err());
        assert_eq!(call(b"mmap(NULL, 8192) = 0x7ffff7fc0000").unwrap().result, Some(0x7fff_f7fc_0000));
    }

    #[test]
    fn heads_of_every_kind() {
        let head =
            |text: &str| line(text.as_bytes()).unwrap().map(|line| (line.head.pid, line.head.time)).unwrap();
        assert_eq!(head("29970 1795238828.760500 brk(NULL) = 0"), (29_970, 1_795_238_828_760_500_000));
        assert_eq!(head("[pid    77] 00:00:01.5 brk(NULL) = 0"), (77, 1_500_000_000));
        assert_eq!(head("1.25 brk(NULL <unfinished ...>"), (0, 1_250_000_000));
        assert_eq!(head("7 1.25 <... brk resumed>) = 0"), (7, 1_250_000_000));
        let both = line(b"7 1795628720.939260 (+     0.000448) brk(NULL) = 0").unwrap().unwrap();
        assert_eq!(
            (both.head.since, both.what, both.text),
            (Since::Epoch, What::Whole, &b"brk(NULL) = 0"[..])
        );
        let what = |text: &'static str| line(text.as_bytes()).unwrap().map(|line| (line.what, line.text));
        assert_eq!(what("7 1.25 +++ exited with 0 +++").unwrap().0, What::Ended);
        assert_eq!(what("7 1.25 +++ superseded by execve in pid 9 +++").unwrap().0, What::Noted);
        assert_eq!(what("7 1.25 --- SIGCHLD {si_signo=SIGCHLD} ---").unwrap().0, What::Noted);
        assert_eq!(what(" <unfinished ...>"), None);
        assert_eq!(what("1.25 vfork(strace: Process 9 attached"), Some((What::Started, &b"vfork("[..])));
        assert!(line(b"brk(NULL) = 0").unwrap_err().to_string().contains("-ttt"));
    }

    #[test]
    fn times_since_the_line_before_are_padded() {
        let since = |text: &str| line(text.as_bytes()).unwrap().map(|line| line.head.since).unwrap();
        for text in [
            "     0.000000 brk(NULL) = 0",
            " 99999.000123 brk(NULL) = 0",
            "8768       0.000000 brk(NULL) = 0",
            "18768      0.000000 brk(NULL) = 0",
            "[pid 18768]      0.000123 --- SIGCHLD {si_signo=SIGCHLD} ---",
            "     0.000123 vfork(strace: Process 9 attached",
        ] {
            assert_eq!(since(text), Since::Line, "{text}");
        }
        for text in [
            "1795238828.760500 brk(NULL) = 0",
            "7     1795238828.760500 brk(NULL) = 0",
            "7     100000.250000 brk(NULL) = 0",
            "7     1.250000 brk(NULL) = 0",
            "  1.25 brk(NULL) = 0",
        ] {
            assert_eq!(since(text), Since::Epoch, "{text}");
        }
        assert_eq!(since("7      00:00:01.500000 brk(NULL) = 0"), Since::Midnight);
    }

    #[test]
    fn strings_are_unescaped() {
        assert_eq!(text(br#""a\"b\n\1012\x41""#).unwrap(), b"a\"b\nA2A");
        assert_eq!(text(b"NULL"), None);
        assert_eq!(text(br#""cut"..."#), None);
    }
}
