//! Files that are written in addition to what is measured: logs, states, what programs print.
//!
//! Such a name comes from a job file, which may come from a stranger, and the file under it may have changed since
//! the plan was made. So the file is opened without being changed and without following a link. It must be the file
//! that the plan has seen under this name, a new one, or one that this process wrote before ([`Before`]). It is truncated,
//! through the same descriptor, only if it is a regular file that is empty or holds what an earlier run of trueio or
//! fio would have written there ([`Content`]).
//!
//! Cannot see: changed content of the same file. Of a large log only the
//! beginning and the end are read. The output of a program cannot be recognised, and any file is replaced by it.
//!
//! Sources: logs, iologs and states of fio 3.33; RFC 1950 (the header of a zlib stream).

use crate::reserved::{STICKY, check_owner, confirm_name, create_growing, create_next_to, taken};
use std::collections::BTreeSet;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use trueio_job::Content;
use trueio_model::{FileId, OutputPlan};

/// Length of what is read at each end of a file, in bytes. A line of histograms has up to 39 KiB (1,856 numbers of up
/// to 20 digits, with commas).
const WINDOW_BYTES: u64 = 64 << 10;

/// Flags with which outputs are opened: links are not followed, and a pipe without a reader does not block.
const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;

/// The set-user-ID, set-group-ID and sticky bits of a mode.
const SPECIAL: u32 = 0o7000;

/// The outputs that this process has created or emptied, with the time of their creation: a later phase, or a later slice of
/// a comparison, opens them again. The number of a file that was removed may be given to another one.
static OURS: Mutex<BTreeSet<(FileId, Option<SystemTime>)>> = Mutex::new(BTreeSet::new());

/// Locks [`OURS`]. Every change is one call, so a panic elsewhere leaves it whole.
fn ours() -> MutexGuard<'static, BTreeSet<(FileId, Option<SystemTime>)>> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file under an output's name when the run was planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// There was none.
    Missing,
    /// This file.
    File(FileId),
    /// This file, with the content of that time.
    Same(Seen),
    /// Not known: the output is opened right after it was planned, or its name comes from a server.
    Unknown,
}

/// A file, and what changes if it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    identity: FileId,
    size_bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Seen {
    fn of(found: &Metadata) -> Self {
        Self {
            identity: FileId { device: found.dev(), inode: found.ino() },
            size_bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

impl Before {
    /// Returns what is under a name now.
    pub fn now(path: &Path) -> Self {
        match path.symlink_metadata() {
            Ok(found) => Self::Same(Seen::of(&found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Missing,
            Err(_) => Self::Unknown,
        }
    }

    /// Returns what the plan has seen under the name of a job's output.
    pub fn planned(plan: &OutputPlan, path: &Path) -> Self {
        path.to_str().and_then(|path| plan.replaced.get(path)).map_or(Self::Missing, |id| Self::File(*id))
    }

    fn permits(self, found: &Metadata) -> bool {
        let now = Seen::of(found);
        match self {
            Before::Unknown => true,
            Before::File(seen) if seen == now.identity => true,
            Before::Same(seen) if seen == now => true,
            Before::File(_) | Before::Same(_) | Before::Missing => {
                ours().contains(&(now.identity, found.created().ok()))
            }
        }
    }
}

/// An output that is open, with its former content.
#[derive(Debug)]
pub struct OutputFile(File);

impl OutputFile {
    /// Opens a file for an output with this content, or creates it; changes no existing file. Each write will go to
    /// its end.
    ///
    /// # Errors
    /// Links, anything but a regular file, another file than before, a file of another user or one with several names, and what
    /// the kernel refuses.
    pub fn open(path: impl AsRef<Path>, content: Content, before: Before) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // What cannot be recognised need not be read.
        options.read(content != Content::Printed).append(true).custom_flags(FLAGS);
        let path = path.as_ref();
        let (file, is_new) = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let created = create_growing(path, content != Content::Printed);
                let taken = |error: io::Error| match error.kind() {
                    io::ErrorKind::AlreadyExists => refused(TAKEN),
                    _ => error,
                };
                (created.map_err(taken)?, true)
            }
            opened => (opened.map_err(named)?, false),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(refused("it is no regular file"));
        }
        if !is_new {
            check_inherited(&metadata, path, false)?;
        }
        let file = Self(file);
        let (identity, created) = (file.identity()?, metadata.created().ok());
        if is_new {
            ours().insert((identity, created));
        } else if !before.permits(&metadata) {
            return Err(refused(TAKEN));
        }
        Ok(file)
    }

    /// Returns device and inode.
    ///
    /// # Errors
    /// The kernel's.
    pub fn identity(&self) -> io::Result<FileId> {
        let metadata = self.0.metadata()?;
        Ok(FileId { device: metadata.dev(), inode: metadata.ino() })
    }

    /// Removes what an earlier run left in the file, and the set-id and sticky bits of its mode.
    ///
    /// # Errors
    /// The file holds something else than this content; the kernel's.
    pub fn emptied(self, content: Content) -> io::Result<File> {
        if is_other(&self.0, content)? {
            return Err(refused(&format!(
                "it is not {} of trueio or fio, and would be lost; name another file, or move this one away",
                content.name()
            )));
        }
        let found = self.0.metadata()?;
        // The kernel keeps them while root writes.
        if found.mode() & SPECIAL != 0 {
            self.0.set_permissions(Permissions::from_mode(found.mode() & 0o777))?;
        }
        self.0.set_len(0)?;
        let created = found.created().ok();
        ours().insert((self.identity()?, created));
        Ok(self.0)
    }

    /// Keeps the content. For a file that this run has emptied before.
    pub fn appended(self) -> File {
        self.0
    }
}

/// Opens a file for an output, and removes what an earlier run left in it.
///
/// # Errors
/// As [`OutputFile::open`] and [`OutputFile::emptied`].
pub fn create_output(path: impl AsRef<Path>, content: Content, before: Before) -> io::Result<File> {
    OutputFile::open(path, content, before)?.emptied(content)
}

/// An output that was created, maybe under another name.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    /// Why it has another name, and which.
    pub(crate) problem: Option<String>,
}

/// Creates an output as [`create_output`] does. If its name was taken, the output has a name next to it.
pub(crate) fn create_or_next_to(path: &Path, content: Content, before: Before) -> io::Result<Created> {
    match create_output(path, content, before) {
        Ok(file) => Ok(Created { file, path: path.to_owned(), problem: None }),
        Err(why) => match create_next_to(path) {
            Ok((file, kept)) => {
                let problem = Some(format!("{why}; the output is kept in `{}`", kept.display()));
                Ok(Created { file, path: kept, problem })
            }
            Err(_) => Err(why),
        },
    }
}

/// An output that grows under its own name. If another program writes to it or truncates it, it is left to that program, and the output goes
/// on in a file next to it, with what is left of the beginning.
#[derive(Debug)]
pub struct GrowingFile {
    file: File,
    path: PathBuf,
    /// Its length, if no other program writes to it.
    length_bytes: u64,
    /// What was written first: a program that truncates the file removes it.
    head: Vec<u8>,
    moved: Option<Moved>,
}

/// The file next to an output that another program wrote to.
#[derive(Debug)]
struct Moved {
    file: File,
    /// What happened, and the name of this file.
    sentence: String,
}

impl GrowingFile {
    /// Takes an open output to whose end everything is written.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(file: File, path: impl Into<PathBuf>) -> io::Result<Self> {
        let length_bytes = file.metadata()?.len();
        Ok(Self { file, path: path.into(), length_bytes, head: Vec::new(), moved: None })
    }

    /// Checks at the end of all writes that the path still refers to this file, and that it holds what was written and no more.
    ///
    /// # Errors
    /// Another program removed, replaced, wrote or truncated it; the error names the file that has the content.
    pub fn confirm(&mut self) -> io::Result<()> {
        self.look()?;
        if self.moved.is_none() && self.has_other_head() {
            self.go_on_elsewhere()?;
        }
        match &self.moved {
            Some(moved) => Err(taken(moved.sentence.clone())),
            None => confirm_name(&self.file, &self.path),
        }
    }

    /// Goes on in another file if another program wrote to this one.
    fn look(&mut self) -> io::Result<()> {
        if self.moved.is_some() || self.file.metadata()?.len() == self.length_bytes {
            return Ok(());
        }
        self.go_on_elsewhere()
    }

    /// Leaves the file to the program that wrote to it, and goes on in a new one next to it.
    fn go_on_elsewhere(&mut self) -> io::Result<()> {
        let (mut file, kept) = create_next_to(&self.path)?;
        let mut whole = self.head.len() as u64 == self.length_bytes;
        match self.content().filter(|_| !whole && !self.has_other_head()) {
            Some(own) => whole = io::copy(&mut own.take(self.length_bytes), &mut file)? == self.length_bytes,
            None => file.write_all(&self.head)?,
        }
        let name = self.path.file_name().unwrap_or_default().display();
        let missing = if whole { "" } else { ", without a part that was removed" };
        let sentence = format!(
            "another program wrote to it or truncated it, so `{name}` is left as it is; the output is kept in `{}`{missing}",
            kept.display()
        );
        self.moved = Some(Moved { file, sentence });
        Ok(())
    }

    /// Whether the file begins with something else than what was written first. False if it may not be read.
    fn has_other_head(&self) -> bool {
        let Some(file) = self.content() else { return false };
        let mut begin = vec![0; self.head.len()];
        file.read_exact_at(&mut begin, 0)
            .map_or_else(|error| error.kind() == io::ErrorKind::UnexpectedEof, |()| begin != self.head)
    }

    /// Opens the file for reading.
    fn content(&self) -> Option<File> {
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd())).ok()
    }
}

impl Write for GrowingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.look()?;
        if let Some(moved) = &mut self.moved {
            return moved.file.write(bytes);
        }
        let count = self.file.write(bytes)?;
        if self.length_bytes == self.head.len() as u64 && self.length_bytes + count as u64 <= WINDOW_BYTES {
            self.head.extend_from_slice(&bytes[..count]);
        }
        self.length_bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns true if a file exists and holds something else than this content. Opens it for reading only.
pub(crate) fn holds_other(path: &Path, content: Content) -> io::Result<bool> {
    if content == Content::Printed {
        return Ok(false);
    }
    match OpenOptions::new().read(true).custom_flags(FLAGS).open(path) {
        Ok(file) => is_other(&file, content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Refuses an existing file that another user could change, or whose content has another name. A document replaces the
/// name only.
pub(crate) fn check_inherited(found: &Metadata, path: &Path, is_document: bool) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_sticky = || parent.metadata().is_ok_and(|parent| parent.mode() & STICKY != 0);
    check_owner(found.uid(), found.mode(), is_sticky)?;
    match found.nlink() {
        0 | 1 => Ok(()),
        _ if is_document => Ok(()),
        count => Err(refused(&format!("it has {count} names (hard links), which would all have the new content"))),
    }
}

/// Another program gave the name to another file.
const TAKEN: &str = "another program created or replaced this file after the run was planned, so it is left as it is";

/// Names the errors of opening what is no regular file.
fn named(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ELOOP) => refused("it is a symbolic link, and outputs of jobs are not written through one"),
        // A pipe without a reader.
        Some(libc::ENXIO) => refused("it is no regular file"),
        _ => error,
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Returns true if an open file holds something else than this content. An empty file holds nothing else.
fn is_other(file: &File, content: Content) -> io::Result<bool> {
    // Its file may not be readable.
    if content == Content::Printed {
        return Ok(false);
    }
    let (length, begin) = (file.metadata()?.len(), window(file, 0)?);
    if begin.is_empty() {
        return Ok(false);
    }
    Ok(!match content {
        Content::Log => {
            let rest = if length > WINDOW_BYTES { window(file, length - WINDOW_BYTES)? } else { Vec::new() };
            let next_line = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
            begins_with_log_line(&begin) && has_only_log_lines(&begin) && has_only_log_lines(&rest[next_line..])
        }
        // The three levels of compression that zlib's users set. The fourth header, `x^`, may begin a text.
        Content::PackedLog => matches!(begin[..], [0x78, 0x01 | 0x9c | 0xda, ..]),
        Content::Iolog => is_iolog(&begin),
        Content::VerifyState => is_verify_state(&begin, length),
        Content::Printed => true,
    })
}

/// Reads up to [`WINDOW_BYTES`] from an offset.
fn window(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; WINDOW_BYTES as usize];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], offset + length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Whether a text begins with a complete line of a log.
fn begins_with_log_line(text: &[u8]) -> bool {
    text.iter().position(|byte| *byte == b'\n').is_some_and(|end| is_log_line(&text[..end]))
}

/// Whether a text consists of lines of a log. The last one may be incomplete, as a killed run leaves it.
fn has_only_log_lines(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    let last = lines.next_back().unwrap_or_default();
    lines.all(is_log_line) && last.iter().all(|byte| byte.is_ascii_hexdigit() || b"x-, ".contains(byte))
}

/// Whether a line is one of a log: at least four numbers with commas. One of the second to fourth is the direction (0 read,
/// 1 write, 2 trim): the second in a log of histograms, the third in others, the fourth next to two values.
fn is_log_line(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
    fields.len() >= 4
        && fields.iter().all(|field| is_number(field))
        && fields[1..4].iter().any(|field| matches!(field, [b'0'..=b'2']))
}

/// Whether a field is a number of at most 64 bits, in decimal or (priorities) hexadecimal digits.
fn is_number(field: &[u8]) -> bool {
    let has_only = |digits: &[u8], is_digit: fn(&u8) -> bool, most: usize| {
        (1..=most).contains(&digits.len()) && digits.iter().all(is_digit)
    };
    match field {
        [b'0', b'x', digits @ ..] => has_only(digits, u8::is_ascii_hexdigit, 16),
        [b'-', digits @ ..] => has_only(digits, u8::is_ascii_digit, 20),
        digits => has_only(digits, u8::is_ascii_digit, 20),
    }
}

/// Whether a text begins with the header of an iolog, of any version.
fn is_iolog(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"fio version ").unwrap_or_default();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && rest[digits..].starts_with(b" iolog\n")
}

/// Whether a file is a verify state: it begins with its version (at most 7, fio 3.42's and ours) and the length after the
/// header of 24 bytes. Earlier versions of this program wrote JSON.
fn is_verify_state(begin: &[u8], length: u64) -> bool {
    let word = |at: usize| Some(u64::from_le_bytes(*begin.get(at..)?.first_chunk()?));
    let is_fios =
        word(0).is_some_and(|version| (1..=7).contains(&version)) && word(8).map(|rest| rest + 24) == Some(length);
    is_fios || begin.starts_with(br#"{"format":"trueio-verify-state","#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    /// Goal: an output has no set-id bits, also where it replaces a file of the same user that has them. Method: root's writes keep them,
    /// those of other users do not.
    #[test]
    fn an_output_has_no_special_bits() {
        let folder = tempfile::tempdir().expect("a folder");
        for (content, text) in [(Content::Log, "1, 2, 0, 4096, 0, 0\n"), (Content::Printed, "text")] {
            let path = folder.path().join(content.name());
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(&path, Permissions::from_mode(0o7757)).expect("a mode");
            let mut file = create_output(&path, content, Before::Unknown).expect("an output");
            let mode = || path.metadata().expect("it is there").mode() & 0o7777;
            assert_eq!((mode(), file.metadata().expect("open").len()), (0o757, 0), "{content:?}");
            file.write_all(text.as_bytes()).expect("written");
            assert_eq!(mode(), 0o757, "{content:?}");
        }
    }

    /// Goal: whatever stands under the name, only a regular file is replaced.
    #[test]
    fn only_a_regular_file_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("data"), "precious").expect("a file");
        symlink("data", path("link")).expect("a link");
        symlink("nothing", path("dangling")).expect("a link");
        let pipe = std::ffi::CString::new(path("pipe").to_str().expect("a path")).expect("no zero byte");
        // SAFETY: a plain call with a string that ends.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        for content in [Content::Log, Content::Printed] {
            for name in ["link", "dangling", "pipe", ".", "missing/file"] {
                assert!(create_output(path(name), content, Before::Unknown).is_err(), "{name}");
            }
            assert!(create_output("/dev/null", content, Before::Unknown).is_err());
        }
        assert_eq!(std::fs::read_to_string(path("data")).expect("it is there"), "precious");
        assert!(!path("nothing").exists());
        let mut file = OutputFile::open(path("data"), Content::Printed, Before::Unknown).expect("open").appended();
        file.write_all(b" data").expect("written");
        assert_eq!(std::fs::read_to_string(path("data")).expect("it is there"), "precious data");
        create_output(path("data"), Content::Printed, Before::Unknown).expect("replaced");
        assert_eq!(std::fs::read_to_string(path("data")).expect("it is there"), "");
    }

    /// Goal: a program that writes over the beginning of a growing output, whose length stays the same, is noticed at the end.
    #[test]
    fn notes_over_the_beginning_of_a_growing_output_are_kept_next_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        for (notes, is_kept) in [("notes", true), ("", false)] {
            let _ = std::fs::remove_file(&path);
            let file = create_output(&path, Content::Log, Before::Unknown).expect("an output");
            let mut growing = GrowingFile::new(file, &path).expect("a length");
            growing.write_all(b"1, 2, 0, 4096, 0\n").expect("written");
            let other = OpenOptions::new().write(true).open(&path).expect("open");
            other.write_at(notes.as_bytes(), 0).expect("written");
            growing.write_all(b"2, 2, 0, 4096, 0\n").expect("written");
            let told = growing.confirm().map_err(|error| error.to_string());
            assert_eq!(told.is_err(), is_kept, "{told:?}");
            let kept: Vec<_> =
                std::fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()).collect();
            assert_eq!(kept.len(), if is_kept { 2 } else { 1 });
            for path in kept.iter().filter(|kept| **kept != path) {
                let text = std::fs::read_to_string(path).expect("it is there");
                assert_eq!(text, "1, 2, 0, 4096, 0\n2, 2, 0, 4096, 0\n");
                std::fs::remove_file(path).expect("removed");
            }
        }
    }

    /// Goal: an output replaces the file that the plan has seen, even if another one under its name is an output, too.
    #[test]
    fn only_the_file_that_was_planned_or_written_before_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        const LINE: &str = "1, 2, 0, 4096, 0\n";
        let mut held = Vec::new();
        // A test that runs at the same time may have removed an output: a file that gets its number is put aside.
        let mut put = |text: &str| {
            loop {
                let new = folder.path().join("new");
                std::fs::write(&new, text).expect("a file");
                let found = std::fs::metadata(&new).expect("a file");
                let id = FileId { device: found.dev(), inode: found.ino() };
                // Kept open, so that its number is not used again.
                held.push(File::open(&new).expect("a file"));
                if !ours().iter().any(|(known, _)| *known == id) {
                    std::fs::rename(&new, &path).expect("renamed");
                    return id;
                }
                std::fs::remove_file(&new).expect("removed");
            }
        };
        let first = put(LINE);
        put(LINE);
        for before in [Before::Missing, Before::File(first)] {
            let error = create_output(&path, Content::Log, before).expect_err("another file").to_string();
            assert_eq!(error, TAKEN);
            assert_eq!(std::fs::read_to_string(&path).expect("a file"), LINE);
        }
        let third = put(LINE);
        create_output(&path, Content::Log, Before::File(third)).expect("the planned file");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "");
        // A later phase opens it again.
        create_output(&path, Content::Log, Before::Missing).expect("written before");
        std::fs::remove_file(&path).expect("removed");
        create_output(&path, Content::Log, Before::File(third)).expect("a new file");
        assert!(create_output(folder.path().join("other"), Content::Log, Before::Missing).is_ok());
    }

    /// Goal: an output of an earlier run, of trueio or fio, is replaced; a file with other content keeps every byte.
    #[test]
    fn only_an_output_of_the_same_kind_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let long = |line: &str| line.repeat(20_000).into_bytes();
        let histogram = format!("1000, 1, 4096{}\n", ", 18446744073709551615".repeat(1856));
        let fios_state = [[7_u64.to_le_bytes(), 8_u64.to_le_bytes(), [0; 8], [0; 8]].concat(), Vec::new()].concat();
        let replaced: [(Content, &[&[u8]]); 4] = [
            (
                Content::Log,
                &[
                    b"",
                    b"0, 40960, 0, 4096, 0\n1, 7, 2, 512, 0\n",
                    b"500, 81234, 1, 0, 0x0000\n",
                    b"500, 1, 99, 1, 0, 4096, 0x4001, 123456789\n500, 1, 99, 1, 40",
                    b"5, -3, 0, 4096\n",
                    histogram.as_bytes(),
                    &long("1, 2, 0, 4096, 0\n"),
                    &histogram.as_bytes().repeat(5),
                ],
            ),
            (Content::PackedLog, &[b"", &[0x78, 0x9c, 3, 0, 0, 0, 0, 1]]),
            (Content::Iolog, &[b"", b"fio version 2 iolog\na add\n", b"fio version 3 iolog\n"]),
            (Content::VerifyState, &[b"", b"{\"format\":\"trueio-verify-state\",\"version\":1}\n", &fios_state]),
        ];
        for (content, texts) in replaced {
            for text in texts {
                std::fs::write(&path, text).expect("a file");
                assert!(!holds_other(&path, content).expect("readable"), "{content:?}: {text:?}");
                create_output(&path, content, Before::Unknown).expect("replaced");
                assert_eq!(std::fs::read(&path).expect("it is there"), b"");
            }
        }
        let ends_otherwise = [long("1, 2, 0, 4096, 0\n"), b"my notes\n1, 2, 0, 4096, 0\n".to_vec()].concat();
        let kept: [&[u8]; 14] = [
            b"My thesis.\n",
            b"1234",
            b"1234\n",
            b"1, 2, 3\n",
            b"1.5, 2, 0, 4\n",
            b"2026, 11, 23, 14\n",
            b"a, 1, 2, 3\n",
            b"1, 2, 0, 4096, 0\nand my notes\n",
            b"\n",
            b"x^2 + 1 = 0\n",
            b"fio version 3 iologs are described here\n",
            b"{\"format\":\"another\"}",
            &[0; 4096],
            &ends_otherwise,
        ];
        for content in [Content::Log, Content::PackedLog, Content::Iolog, Content::VerifyState] {
            for text in kept {
                std::fs::write(&path, text).expect("a file");
                assert!(holds_other(&path, content).expect("readable"), "{content:?}: {text:?}");
                let error = create_output(&path, content, Before::Unknown).expect_err("other content").to_string();
                assert!(error.contains("would be lost"), "{error}");
                assert_eq!(std::fs::read(&path).expect("it is there"), text);
            }
        }
    }
}
