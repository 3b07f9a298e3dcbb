//! Reads facts about this machine and its paths for the planner.

use crate::credentials::{Access, may_use, user_of};
use crate::fill::{STILL, await_growth};
use crate::source::source_length;
use crate::usb_disks::{self, UsbDisk};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use trueio_device::{Holder, HolderKind, Holders, System};
use trueio_engine::availability;
use trueio_files::{Lease, LeaseKind, Leased, PathError, Problem, open_for_output};
use trueio_job::{
    CommandFiles, Content, DeviceUse, EngineAvailability, EngineState, FactsSource, Identity, InUse, Machine, Mark,
    PathUse, Target, UseKind,
};
use trueio_model::{
    DirectFacts, DirectSupport, Fact, IologSummary, ReplaySettings, SourceAddress, TargetFacts, TargetIdentity,
    TargetKind, UsbTargetName, UserPlan,
};

/// Length of the idle baseline before each phase, in nanoseconds.
pub const IDLE_BASELINE_NS: u64 = 250_000_000;

/// Returns the facts about this machine.
pub fn machine(idle_baseline_ns: u64) -> Machine {
    let engines = availability()
        .into_iter()
        .map(|a| if a.works { EngineState::works(a.engine) } else { EngineState::fails(a.engine, a.reason) })
        .collect();
    Machine {
        memory_bytes: usable_memory_bytes(),
        cpus: usable_cpus(),
        engines: EngineAvailability { engines },
        entropy: entropy(),
        may_be_real_time: may_be_real_time(),
        idle_baseline_ns,
        programs: Vec::new(),
        command_files: CommandFiles::default(),
        rank: None,
    }
}

/// Returns whether this process may submit I/Os of the real-time class (ioprio_set(2), NOTES). In a container
/// the kernel may still refuse; the worker then reports it.
fn may_be_real_time() -> Option<bool> {
    use rustix::thread::{CapabilitySet, capabilities};
    let effective = capabilities(None).ok()?.effective;
    Some(effective.intersects(CapabilitySet::SYS_NICE | CapabilitySet::SYS_ADMIN))
}

/// Returns 64 random bits.
pub fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library seeds its hasher from the system's random source.
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// Returns the memory that this process may use, in bytes: the machine's, or less if its control groups allow less.
fn usable_memory_bytes() -> Option<u64> {
    let limit = trueio_device::memory_limit_bytes(&System::live());
    memory_bytes().into_iter().chain(limit).min()
}

/// Returns the memory of this machine, in bytes.
pub fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn usable_cpus() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    // The set's size depends on the C library: libc has 1024 for glibc, 128 for musl.
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

/// Reads facts about paths and their users on the running machine. Opens nothing for writing, with one exception: a
/// probe of direct I/O in a directory creates a file without a name.
///
/// Identity, users and signatures of a target are read through one descriptor, so they are facts of one file or disk, even
/// if its path refers to another one meanwhile.
#[derive(Debug)]
pub struct MachineFacts {
    probes_directories: bool,
    has_skipped: Cell<bool>,
    opened: RefCell<BTreeMap<String, Opened>>,
    /// USB disks that are driven in user space, by their names.
    usb_disks: RefCell<BTreeMap<String, Arc<UsbDisk>>>,
}

/// A target whose identity was read.
#[derive(Debug)]
struct Opened {
    identity: TargetIdentity,
    /// Block devices are kept open, and the first [`FILES_MAX`] files.
    file: Option<Rc<File>>,
}

/// Largest number of files that are kept open while planning.
const FILES_MAX: usize = 256;

impl MachineFacts {
    /// Probes direct I/O, in directories too.
    pub fn probing() -> Self {
        Self { probes_directories: true, ..Self::without_probing() }
    }

    /// Does not probe direct I/O in directories; any alignment then counts as sufficient there.
    pub fn without_probing() -> Self {
        Self {
            probes_directories: false,
            has_skipped: Cell::new(false),
            opened: RefCell::default(),
            usb_disks: RefCell::default(),
        }
    }

    /// Returns whether a directory was not probed.
    pub fn has_skipped(&self) -> bool {
        self.has_skipped.get()
    }

    /// Removes and returns the descriptor through which a path was examined, if it was kept.
    pub(crate) fn take(&self, path: &str) -> Option<File> {
        self.opened.borrow_mut().get_mut(path)?.file.take().and_then(|file| Rc::try_unwrap(file).ok())
    }

    /// Returns a USB disk that is driven in user space. It stays claimed as long as these facts.
    fn usb_disk(&self, name: &str) -> Result<Arc<UsbDisk>, String> {
        let mut disks = self.usb_disks.borrow_mut();
        if let Some(disk) = disks.get(name) {
            return Ok(Arc::clone(disk));
        }
        let disk = usb_disks::open(name)?;
        disks.insert(name.to_owned(), Arc::clone(&disk));
        Ok(disk)
    }

    /// Returns a descriptor of the target at a path: the one through which its identity was read, or a new one of the same
    /// file.
    fn descriptor(&self, path: &str) -> Result<(Rc<File>, TargetIdentity), String> {
        let opened = self.opened.borrow();
        let known = opened.get(path);
        if let Some((file, identity)) = known.and_then(|known| Some((known.file.clone()?, known.identity.clone()))) {
            return Ok((file, identity));
        }
        let (file, identity) =
            trueio_device::open_target(Path::new(path)).map_err(|e| format!("it cannot be opened ({e})"))?;
        match known {
            Some(known) if !known.identity.is_same(&identity) => {
                Err("another program replaced it meanwhile".to_owned())
            }
            _ => Ok((Rc::new(file), identity)),
        }
    }
}

impl FactsSource for MachineFacts {
    fn look(&self, path: &str) -> Target {
        if UsbTargetName::parse(path).is_some() {
            return match self.usb_disk(path) {
                Ok(disk) => Target::Present(Box::new(disk.facts())),
                Err(reason) => Target::Unreadable(reason),
            };
        }
        look_with(path, |path| {
            if self.probes_directories {
                return trueio_device::target_facts(&System::live(), path);
            }
            let mut facts = trueio_device::target_facts_unasked(&System::live(), path)?;
            if facts.kind == TargetKind::Directory {
                self.has_skipped.set(true);
                let any = || Fact::known(1, "not probed yet");
                facts.direct = DirectFacts {
                    support: DirectSupport::Unknown,
                    reason: "not probed yet".to_owned(),
                    memory_alignment_bytes: any(),
                    write_alignment_bytes: any(),
                    read_alignment_bytes: any(),
                    atomic_write: Fact::unknown("not probed yet"),
                };
            }
            Ok(facts)
        })
    }

    fn device_of_link(&self, path: &str) -> Option<String> {
        Some(trueio_device::device_of_link(Path::new(path))?.to_str()?.to_owned())
    }

    fn await_filled(&self, path: &str, end_bytes: u64) -> bool {
        await_growth(STILL, || growing(Path::new(path), end_bytes))
    }

    fn target_identity(&self, path: &str) -> Option<TargetIdentity> {
        let (file, identity) = trueio_device::open_target(Path::new(path)).ok()?;
        let mut opened = self.opened.borrow_mut();
        let is_kept = identity.block.is_some() || opened.len() < FILES_MAX;
        let file = is_kept.then(|| Rc::new(file));
        opened.insert(path.to_owned(), Opened { identity: identity.clone(), file });
        Some(identity)
    }

    fn other_owner(&self, path: &str) -> Option<u32> {
        let owner = std::fs::symlink_metadata(path).ok()?.uid();
        (owner != 0 && owner != rustix::process::geteuid().as_raw()).then_some(owner)
    }

    fn in_use(&self, path: &str) -> Result<InUse, String> {
        if UsbTargetName::parse(path).is_some() {
            return self.usb_disk(path)?.in_use();
        }
        let (file, identity) = self.descriptor(path)?;
        let (system, path) = (System::live(), trueio_device::path_of_descriptor(&file));
        let is_device = identity.block.is_some();
        let holders_of = if is_device { trueio_device::who_holds } else { trueio_device::who_uses_file };
        let Holders { mut found, mut unseen } = holders_of(&system, &path).map_err(|e| trueio_model::error_line(&e))?;
        // The most useful first: a mount explains more than the claim that it causes.
        found.sort_by(|one, other| one.kind.cmp(&other.kind));
        let mut uses: Vec<DeviceUse> = found.into_iter().map(device_use).collect();
        if is_device {
            let writers = lasting_writers(&system, &path).map_err(|e| trueio_model::error_line(&e))?;
            uses.extend(writers.found.into_iter().map(open_for_writing));
            unseen.extend(writers.unseen);
        }
        let marks = match is_device && uses.is_empty() {
            true => trueio_device::signatures_of(&file).map_err(|e| format!("its content cannot be read ({e})"))?,
            false => Vec::new(),
        };
        let mark = |mark: trueio_device::Signature| Mark { name: mark.kind.to_owned(), offset_bytes: mark.offset };
        Ok(InUse { uses, marks: marks.into_iter().map(mark).collect(), unseen })
    }

    fn source_length(&self, address: &SourceAddress) -> Result<u64, String> {
        source_length(address).map_err(|e| trueio_model::error_line(&e))
    }

    fn memory_nodes(&self) -> Result<Vec<(u32, Vec<u32>)>, String> {
        let read = |file: &str| {
            let path = format!("/sys/devices/system/node/{file}");
            std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
        };
        let nodes = numbers(&read("online")?).into_iter();
        nodes.map(|node| Ok((node, numbers(&read(&format!("node{node}/cpulist"))?)))).collect()
    }

    fn iolog(&self, log: &str, settings: &ReplaySettings) -> Result<IologSummary, String> {
        // The log is read twice, now and for the replay; a pipe can be read only once.
        let path = if log == "-" { "/dev/stdin" } else { log };
        let is_file = std::fs::metadata(path).map_err(|e| e.to_string())?.is_file();
        if !is_file {
            return Err(match log {
                "-" => "standard input is not a regular file, and a log is read twice: while planning, to find the \
                        files that it uses, and during the replay; instead: save it to a file"
                    .to_owned(),
                _ => "it is not a regular file".to_owned(),
            });
        }
        let lines = crate::replayed::open_log(path).map_err(|e| e.to_string())?;
        trueio_model::scan_iolog(lines, settings).map_err(|e| e.to_string())
    }

    fn user(&self, uid: Option<u32>, gid: Option<u32>) -> Result<Option<UserPlan>, String> {
        user_of(uid, gid).map_err(|error| error.to_string())
    }

    fn may_use(&self, user: UserPlan, path: &str, usage: PathUse) -> Result<(), String> {
        let access = match usage {
            PathUse::Read => Access::READ_OK,
            PathUse::Write => Access::READ_OK | Access::WRITE_OK,
            PathUse::MakeFilesIn => Access::WRITE_OK | Access::EXEC_OK,
        };
        let path = if path == "-" { "/dev/stdin" } else { path };
        may_use(user, Path::new(path), access).map_err(|error| error.to_string())
    }

    fn identity(&self, path: &str) -> Identity {
        let path = Path::new(path);
        if let Ok(found) = std::fs::metadata(path) {
            return Identity::Inode { device: found.dev(), inode: found.ino() };
        }
        // The path does not exist, so it is not a link. Its directory may have several names, and may not exist yet
        // either: identifies the path by its nearest existing directory.
        for ancestor in path.ancestors().skip(1) {
            let directory = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
            let (Ok(found), Ok(rest)) = (std::fs::metadata(directory), path.strip_prefix(ancestor)) else { continue };
            let rest: PathBuf = rest.components().collect();
            return Identity::Name(format!("{}:{}/{}", found.dev(), found.ino(), rest.display()));
        }
        Identity::Name(path.to_string_lossy().into_owned())
    }

    fn obstacle(&self, path: &str, is_document: bool) -> Option<String> {
        let path = Path::new(path);
        if let Err(error @ PathError { problem: Problem::ForeignLink(_), .. }) = open_for_output(path) {
            return Some(error.to_string());
        }
        let is_link = match std::fs::symlink_metadata(path) {
            Ok(found) => found.is_symlink(),
            Err(error) => {
                return obstacle_to_making(path)
                    .or_else(|| (error.kind() != std::io::ErrorKind::NotFound).then(|| error.to_string()));
            }
        };
        match std::fs::metadata(path) {
            Ok(found) => obstacle_to_replacing(path, &found, is_document).or_else(|| {
                let why = "it is a symbolic link, and outputs of a job do not follow links";
                (is_link && !is_document).then(|| why.to_owned())
            }),
            Err(_) if is_link => Some("it is a symbolic link to nothing".to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }

    fn holds_other(&self, path: &str, content: Content) -> Result<bool, String> {
        crate::output_file::holds_other(Path::new(path), content).map_err(|error| error.to_string())
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns why no output can be created under an unused name.
fn obstacle_to_making(path: &Path) -> Option<String> {
    let directory = directory_of(path);
    if !directory.is_dir() {
        return Some(format!("`{}` is not a directory", directory.display()));
    }
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Some("its name ends with a slash, so it names a directory".to_owned());
    }
    // A mistyped device name would become a file in memory.
    let filesystem = |path: &Path| std::fs::metadata(path).ok().map(|found| found.dev());
    if directory.canonicalize().is_ok_and(|path| path.starts_with("/dev"))
        && filesystem(directory) == filesystem(Path::new("/dev"))
    {
        return Some("no files are created in /dev; check the name of the device".to_owned());
    }
    obstacle_of_kernel(directory).or_else(|| not_writable(directory))
}

/// Returns why an output must not replace an existing file.
fn obstacle_to_replacing(path: &Path, found: &Metadata, is_document: bool) -> Option<String> {
    let kind = found.file_type();
    if kind.is_dir() {
        return Some("it is a directory".to_owned());
    }
    if kind.is_block_device() {
        return Some("it is a block device, whose content would be lost".to_owned());
    }
    if kind.is_file() {
        let inherited = || crate::output_file::check_inherited(found, path, is_document).err();
        return obstacle_of_kernel(path)
            .or_else(|| inherited().map(|error| error.to_string()))
            .or_else(|| not_writable(path));
    }
    if is_document && (kind.is_fifo() || kind.is_char_device() && is_harmless(path, found)) {
        return not_writable(path);
    }
    Some("it is not a regular file".to_owned())
}

/// Whether a character device is safe as an output: the null device, the full device, a terminal. Others are tapes,
/// memory, raw disks.
fn is_harmless(path: &Path, found: &Metadata) -> bool {
    let number = found.rdev();
    let is_memory = |minor| number == rustix::fs::makedev(1, minor);
    is_memory(3) || is_memory(7) || std::fs::File::open(path).is_ok_and(|file| std::io::IsTerminal::is_terminal(&file))
}

/// Refuses the kernel's own filesystems, where a write changes the machine's state.
fn obstacle_of_kernel(path: &Path) -> Option<String> {
    const KERNELS: [(i64, &str); 10] = [
        (0x9fa0, "proc"),
        (0x6265_6572, "sysfs"),
        (0x6462_6720, "debugfs"),
        (0x7472_6163, "tracefs"),
        (0x0027_e0eb, "cgroup"),
        (0x6367_7270, "cgroup2"),
        (0x6265_6570, "configfs"),
        (0x7363_6673, "securityfs"),
        (0xde5e_81e4, "efivarfs"),
        (0xcafe_4a11, "bpf"),
    ];
    let magic = rustix::fs::statfs(path).ok()?.f_type as i64 & 0xffff_ffff;
    let (_, name) = KERNELS.iter().find(|(known, _)| *known == magic)?;
    Some(format!("no files are created in {name}"))
}

fn not_writable(path: &Path) -> Option<String> {
    let error = rustix::fs::access(path, rustix::fs::Access::WRITE_OK).err()?;
    Some(format!("`{}`: {}", path.display(), std::io::Error::from(error)))
}

/// Parses a list of the kernel's: `0,2-3`.
fn numbers(list: &str) -> Vec<u32> {
    let ranges = list.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

fn device_use(holder: Holder) -> DeviceUse {
    let (kind, by) = match holder.kind {
        HolderKind::Mounted { mount_point, .. } => (UseKind::Mounted, mount_point),
        HolderKind::Member { of } => (UseKind::Member, of),
        HolderKind::Swap => (UseKind::Swap, String::new()),
        HolderKind::Stacked { by } => (UseKind::Stacked, by),
        HolderKind::Twin { by } => (UseKind::Twin, by),
        HolderKind::Claimed => (UseKind::Claimed, String::new()),
        HolderKind::OpenForWriting { program, process } => {
            (UseKind::OpenForWriting, format!("`{program}` (process {process})"))
        }
        HolderKind::Unnamed => (UseKind::Unnamed, String::new()),
    };
    DeviceUse { kind, device: holder.device, by, source: holder.source }
}

/// Returns the processes that have a device open for writing and keep it open. Tools such as `losetup --find` open a
/// device only briefly, so a process counts only if each of several checks finds it.
fn lasting_writers(system: &System, path: &Path) -> Result<trueio_device::Openers, trueio_device::DeviceError> {
    let mut writers = trueio_device::who_writes(system, path)?;
    for _ in 0..5 {
        if writers.found.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        let now = trueio_device::who_writes(system, path)?;
        writers.found.retain(|writer| now.found.iter().any(|other| other.process == writer.process));
    }
    Ok(writers)
}

/// Returns the length of a regular file that is shorter than `end_bytes` and that a program has open for writing; `None`: it is
/// another file, or that is unknown.
fn growing(path: &Path, end_bytes: u64) -> Option<u64> {
    // Another user may put a pipe or a link there meanwhile.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
    std::fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok().filter(|found| found.is_file() && found.len() < end_bytes)?;
    // A lease for reading is refused while the file is open for writing, also in processes whose files are not shown.
    matches!(Lease::take(&file, LeaseKind::Read), Leased::Refused).then_some(found.len())
}

/// A process that has a device open for writing.
fn open_for_writing(opener: trueio_device::Opener) -> DeviceUse {
    let by = format!("`{}` (process {})", opener.name, opener.process);
    let source = format!("/proc/{}/fd", opener.process);
    DeviceUse { kind: UseKind::OpenForWriting, device: opener.device, by, source }
}

/// Returns what a path names; probes direct I/O.
pub fn look(path: &str) -> Target {
    MachineFacts::probing().look(path)
}

fn look_with(path: &str, facts: impl Fn(&Path) -> Result<TargetFacts, trueio_device::DeviceError>) -> Target {
    let path = Path::new(path);
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Target::Missing,
        Err(error) => return Target::Unreadable(error.to_string()),
        Ok(metadata) if metadata.is_symlink() && !path.exists() => {
            return Target::Unreadable("a symbolic link to nothing".to_owned());
        }
        Ok(_) => {}
    }
    match facts(path) {
        Ok(facts) => Target::Present(Box::new(facts)),
        Err(error) => Target::Unreadable(trueio_model::error_line(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only a short file that is open for writing is one that grows, in whatever process.
    #[test]
    fn a_short_file_that_is_open_for_writing_is_one_that_grows() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("shared");
        std::fs::write(&path, [1; 4096]).expect("a file");
        assert_eq!(growing(&path, 8192), None, "it is not open for writing");
        let filling = std::fs::OpenOptions::new().append(true).open(&path).expect("a file");
        let reader = File::open(&path).expect("a file");
        if let Leased::Impossible(error) = Lease::take(&reader, LeaseKind::Read) {
            return trueio_testkit::skip("leases", &error.to_string());
        }
        assert_eq!(growing(&path, 8192), Some(4096));
        assert_eq!(growing(&path, 4096), None, "it is whole");
        drop(filling);
        assert_eq!(growing(&path, 8192), None);
    }
}
