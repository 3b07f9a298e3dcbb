//! `trueio powercut disk`: a file as a block device with a volatile cache, whose power can be cut.
//!
//! The kernel's NBD client is the front; the cache is in `trueio_powercut`. Requests are answered one after the other. The server has a
//! record lock on the file, by which `--cut` finds it.
//!
//! Limits: no TRIM, one device a file. Kept means that the file has it: the file is not flushed to the disk below.

use crate::failure::Failure;
use crate::output;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Flock, FlockOffsetType, FlockType, Pid, Signal, fcntl_getlk, kill_process};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_model::units::{self, format_count};
use trueio_powercut::replay::LogWriter;
use trueio_powercut::{CutLoss, LosableCache, Medium, SECTOR_BYTES};
use trueio_report::message;
use trueio_run::machine::entropy;
use trueio_run::{ignore_hangup, watch_signals, watch_status_signal};
use trueio_uas::nbd::Nbd;
use trueio_uas::serve::socket::Socket;
use trueio_uas::serve::{Asked, Command as Asks, Discard, Front, Received, Served};

pub(super) const ABOUT: &str = "Serve a file as a disk with a volatile cache, and cut its power (as root)";
/// Requests at a time.
const DEPTH: u16 = 32;
/// The longest request, in bytes.
const REQUEST_BYTES_MAX: u32 = 256 << 10;
/// The kernel ends the device if a request waits so long.
const REQUEST_LIMIT: Duration = Duration::from_secs(120);
/// The smallest disk, in bytes.
const SIZE_BYTES_MIN: u64 = 1 << 20;
/// Longest wait of `--cut` for the server.
const CUT_LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);
const SECTOR: u64 = SECTOR_BYTES as u64;

pub(super) fn arguments(command: Command) -> Command {
    command
        .long_about(
            "Serve a file as a block device (/dev/nbdN) with a volatile write cache, for tests of filesystems and databases. What is not \
             flushed is in the cache; a cut of power (`--cut`, or SIGUSR1) loses a part of it by seed, fails every request, and ends the \
             device. SIGTERM or Ctrl-C ends it in order: unmount it first. It needs root and the kernel's NBD client (`modprobe nbd`).",
        )
        .arg(
            Arg::new("image")
                .value_name("IMAGE")
                .required(true)
                .help("The file: it is read and written, as the disk of a virtual machine is")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("size")
                .long("size")
                .value_name("SIZE")
                .help("Create the file, with this size; it must not exist")
                .value_parser(|text: &str| units::parse_bytes(text)),
        )
        .arg(
            Arg::new("cache")
                .long("cache")
                .value_name("SIZE")
                .help("Size of the cache; when it is full, the oldest writes are stored")
                .default_value("64m")
                .value_parser(|text: &str| units::parse_bytes(text)),
        )
        .arg(
            Arg::new("log")
                .long("log")
                .value_name("FILE")
                .help("Write a log of all writes and flushes for `powercut replay` to this new file")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_name("NUMBER")
                .help("Which unflushed writes a cut loses [default: random]")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            crate::flags::switch("cut", "Cut the power of the disk that another process serves from IMAGE")
                .conflicts_with_all(["size", "log", "seed", "json"]),
        )
        .arg(crate::flags::json("Write the block device as JSON once it is there; without FILE to standard output"))
}

/// The file behind the cache.
#[derive(Debug)]
struct Image(File);

impl Medium for Image {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(data, offset)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }
}

/// `trueio powercut disk`.
pub(super) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let path = matches.get_one::<PathBuf>("image").expect("clap requires it");
    let shown = path.display();
    if matches.get_flag("cut") {
        return cut(path);
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::refused("`powercut disk` connects a block device, which needs root"));
    }
    let stop = watch_signals();
    let is_cut = watch_status_signal();
    ignore_hangup();
    let (image, size_bytes) = open(path, matches.get_one::<u64>("size").copied())?;
    match fcntl_lock(&image, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::AGAIN) => {
            return Err(Failure::refused(format!("`{shown}` is served or locked by another process")));
        }
        Err(error) => return Err(Failure::failed(format!("`{shown}` cannot be locked"), &error)),
    }
    let seed = matches.get_one::<u64>("seed").copied().unwrap_or_else(entropy);
    let cache_bytes = *matches.get_one::<u64>("cache").expect("it has a default");
    let served = served(size_bytes);
    let (nbd, socket) = Nbd::connect(&served, REQUEST_LIMIT)
        .map_err(|error| Failure::refused_by(&error, Some("`modprobe nbd` loads the kernel's NBD client")))?;
    // After all that can be refused: a file that stays would be in the way.
    let log = matches.get_one::<PathBuf>("log").map(|path| new_log(path)).transpose()?;
    let disk = Disk { cache: LosableCache::new(Image(image), cache_bytes as usize), log, size_bytes };
    serve(disk, nbd, socket, seed, (stop, is_cut), matches)
}

/// Opens or creates the file; returns its size in whole sectors.
fn open(path: &Path, size: Option<u64>) -> Result<(File, u64), Failure> {
    let shown = path.display();
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).mode(0o600);
    let file = options.create_new(size.is_some()).open(path).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => "`--size 1g` creates it",
            io::ErrorKind::AlreadyExists => "without `--size` the file is served as it is",
            _ => "name a file of yours",
        };
        Failure::refused(format!("`{shown}` cannot be opened\n  because: {error}\n\nhint: {hint}"))
    })?;
    let found = file.metadata().map_err(|error| Failure::failed(format!("`{shown}` cannot be examined"), &error))?;
    if !found.is_file() {
        return Err(Failure::refused(format!(
            "`{shown}` is not a file\n\nhint: a copy of the disk in a file can be served"
        )));
    }
    let size_bytes = size.unwrap_or(found.len()) / SECTOR * SECTOR;
    if size_bytes < SIZE_BYTES_MIN {
        if size.is_some() {
            let _ = std::fs::remove_file(path);
        }
        return Err(Failure::refused(format!(
            "`{shown}` would be a disk of {}; at least {} is needed",
            units::format_bytes(size_bytes),
            units::format_bytes(SIZE_BYTES_MIN)
        )));
    }
    if size.is_some() {
        file.set_len(size_bytes).map_err(|error| {
            let _ = std::fs::remove_file(path);
            Failure::failed(format!("`{shown}` cannot be created"), &error)
        })?;
    }
    Ok((file, size_bytes))
}

fn new_log(path: &Path) -> Result<LogWriter<File>, Failure> {
    let created = File::options().read(true).write(true).create_new(true).mode(0o600).open(path);
    created.and_then(|file| LogWriter::new(file, SECTOR_BYTES as u32)).map_err(|error| {
        Failure::refused(format!(
            "--log: `{}` cannot be created\n  because: {error}\n\nhint: name a new file",
            path.display()
        ))
    })
}

fn served(size_bytes: u64) -> Served {
    Served {
        lun: 0,
        block_bytes: SECTOR_BYTES as u32,
        physical_bytes: SECTOR_BYTES as u32,
        block_count: size_bytes / SECTOR,
        request_bytes_max: REQUEST_BYTES_MAX,
        is_read_only: false,
        has_cache: true,
        has_fua: true,
        discard: Discard::None,
        has_no_ata: true,
    }
}

/// `--cut`: signals the process that has the file locked, and waits until it has ended the disk.
fn cut(path: &Path) -> Result<ExitCode, Failure> {
    let shown = path.display();
    let opened = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| Failure::refused(format!("`{shown}` cannot be opened\n  because: {error}")))?;
    let ask = Flock { start: 0, length: 0, pid: None, typ: FlockType::WriteLock, offset_type: FlockOffsetType::Set };
    let owner = || -> Result<Option<Pid>, Failure> {
        let found = fcntl_getlk(&file, &ask);
        Ok(found
            .map_err(|error| Failure::failed(format!("the lock of `{shown}` cannot be read"), &error))?
            .and_then(|lock| lock.pid))
    };
    let server =
        owner()?.ok_or_else(|| Failure::refused(format!("`{shown}` is not served by `trueio powercut disk`")))?;
    let program = std::fs::read_link(format!("/proc/{}/exe", server.as_raw_pid()));
    let own = std::env::current_exe();
    let is_ours = |path: PathBuf| own.as_ref().is_ok_and(|own| own.file_name() == path.file_name());
    if !program.is_ok_and(is_ours) {
        return Err(Failure::refused(format!(
            "`{shown}` is locked by process {}, which is another program",
            server.as_raw_pid()
        )));
    }
    kill_process(server, Signal::USR1).map_err(|error| {
        Failure::failed(format!("process {}, which serves `{shown}`, cannot be asked", server.as_raw_pid()), &error)
    })?;
    let began = Instant::now();
    while owner()? == Some(server) {
        if began.elapsed() >= CUT_LIMIT {
            return Err(Failure::with_code(
                1,
                format!("process {} has not ended the disk of `{shown}`", server.as_raw_pid()),
            ));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(ExitCode::SUCCESS)
}

/// A disk, and the log of what it does.
struct Disk {
    cache: LosableCache<Image>,
    log: Option<LogWriter<File>>,
    size_bytes: u64,
}

impl Disk {
    /// Executes a request; `Err`: an error number.
    fn execute(&mut self, asked: Asked, data: &mut [u8]) -> Result<(), i32> {
        let failed = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        let Asked { command, offset, bytes } = asked;
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= self.size_bytes);
        let is_valid =
            is_inside && offset.is_multiple_of(SECTOR) && bytes.is_multiple_of(SECTOR) && bytes <= data.len() as u64;
        match command {
            Asks::Flush => {
                self.cache.flush().map_err(failed)?;
                match &mut self.log {
                    Some(log) => log.flush().and_then(|()| log.write_head()).map_err(failed),
                    None => Ok(()),
                }
            }
            Asks::Read | Asks::Write { .. } if !is_valid => Err(libc::EINVAL),
            Asks::Read => self.cache.read(offset, &mut data[..bytes as usize]).map_err(failed),
            Asks::Write { is_fua } => {
                let data = &data[..bytes as usize];
                self.cache.write(offset, data, is_fua).map_err(failed)?;
                match &mut self.log {
                    Some(log) => log.write(offset / SECTOR, data, is_fua).map_err(failed),
                    None => Ok(()),
                }
            }
            Asks::Discard | Asks::Unknown(_) => Err(libc::EINVAL),
        }
    }
}

/// How serving ended.
enum End {
    /// The kernel disconnected, and everything is stored.
    Disconnected,
    Cut(CutLoss),
}

/// Serves until the kernel disconnects or the power is cut.
fn run(disk: &mut Disk, front: &mut Socket, seed: u64, is_cut: &AtomicBool) -> io::Result<End> {
    loop {
        let descriptor = front.descriptor().map_or(-1, |descriptor| descriptor.as_raw_fd());
        let mut entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        // SAFETY: the entry lives while the call runs.
        let count = unsafe { libc::poll(&raw mut entry, 1, PAUSE.as_millis() as i32) };
        // What arrives after the cut, or the end of the connection with it, is not answered.
        if is_cut.load(Relaxed) {
            return disk.cache.cut(seed).map(End::Cut);
        }
        if count <= 0 {
            continue;
        }
        match front.receive()? {
            Received::Nothing => {}
            Received::Request(slot, asked) => {
                let result = disk.execute(asked, front.buffer(slot));
                front.answer(slot, result)?;
            }
            Received::End => {
                disk.cache.flush()?;
                return Ok(End::Disconnected);
            }
        }
    }
}

/// Serves a connected device, and prints its name when it can be used.
fn serve(
    mut disk: Disk,
    mut nbd: Nbd,
    socket: UnixStream,
    seed: u64,
    (stop, is_cut): (&'static AtomicBool, &'static AtomicBool),
    matches: &ArgMatches,
) -> Result<ExitCode, Failure> {
    let mut front = Socket::new(socket, DEPTH, REQUEST_BYTES_MAX);
    let device = nbd.device().display().to_string();
    let cannot = |error: io::Error| Failure::failed(format!("{device} cannot be served"), &error);
    nbd.run().and_then(|()| front.begin()).map_err(cannot)?;
    let has_ended = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        // Both calls wait for the server, so they have a thread of their own.
        let watcher = scope.spawn(|| {
            nbd.prepare_thread(&[])?;
            nbd.scan_partitions()?;
            // A reader that is gone does not end the disk.
            let json = || format!("{:#}\n", serde_json::json!({ "device": device }));
            match output::print_json(matches, json) {
                Ok(true) => {}
                Ok(false) => drop(output::print_all(&format!("{device}\n"))),
                Err(failure) => message!("{}", failure.into_text()),
            }
            while !has_ended.load(Relaxed) {
                if stop.load(Relaxed) {
                    return nbd.disconnect();
                }
                std::thread::sleep(PAUSE);
            }
            Ok(())
        });
        let ended = run(&mut disk, &mut front, seed, is_cut);
        has_ended.store(true, Relaxed);
        // From now on every request fails.
        nbd.fail();
        let watched = watcher.join().expect("no panic");
        match ended {
            Ok(End::Disconnected) => watched.map(|()| End::Disconnected),
            other => other,
        }
    });
    drop(nbd);
    if let Some(log) = disk.log {
        log.finish().map_err(|error| Failure::failed("the log could not be finished", &error))?;
    }
    match ended.map_err(cannot)? {
        End::Disconnected => {}
        End::Cut(CutLoss { at_risk, lost }) => message!(
            "the power is cut: {} of {} writes that were not flushed are lost (seed {seed})",
            format_count(lost),
            format_count(at_risk)
        ),
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use trueio_powercut::replay::WriteLog;

    /// The kernel's side of the socket.
    struct Kernel(UnixStream);

    impl Kernel {
        fn send(&mut self, command: u32, offset: u64, bytes: u32, data: &[u8]) {
            let head = [
                &0x2560_9513u32.to_be_bytes()[..],
                &command.to_be_bytes(),
                b"12345678",
                &offset.to_be_bytes(),
                &bytes.to_be_bytes(),
            ];
            self.0.write_all(&[&head.concat(), data].concat()).expect("the server reads");
        }

        /// Returns the error number and the data of an answer.
        fn answer(&mut self, bytes: usize) -> (u32, Vec<u8>) {
            let mut head = [0; 16];
            self.0.read_exact(&mut head).expect("an answer");
            let error = u32::from_be_bytes(head[4..8].try_into().expect("4 bytes"));
            let mut data = vec![0; if error == 0 { bytes } else { 0 }];
            self.0.read_exact(&mut data).expect("data");
            (error, data)
        }

        fn ask(&mut self, command: u32, offset: u64, bytes: u32, data: &[u8]) -> (u32, Vec<u8>) {
            self.send(command, offset, bytes, data);
            self.answer(if command == READ { bytes as usize } else { 0 })
        }
    }

    const READ: u32 = 0;
    const WRITE: u32 = 1;
    const FUA: u32 = 1 | 1 << 16;
    const END: u32 = 2;
    const FLUSH: u32 = 3;

    /// Serves a new disk of 1 MiB with a log while `use_it` runs; returns how it ended, its file, and its log.
    fn with_disk(is_cut: &AtomicBool, use_it: impl FnOnce(&mut Kernel)) -> (End, Vec<u8>, WriteLog) {
        let folder = trueio_testkit::folder();
        let (path, log_path) = (folder.path().join("disk.img"), folder.path().join("log"));
        let (file, size_bytes) = open(&path, Some(SIZE_BYTES_MIN)).expect("a file");
        let log = Some(new_log(&log_path).expect("a log"));
        let mut disk = Disk { cache: LosableCache::new(Image(file), 1 << 20), log, size_bytes };
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let mut front = Socket::new(ours, DEPTH, REQUEST_BYTES_MAX);
        let end = std::thread::scope(|scope| {
            let server = scope.spawn(|| run(&mut disk, &mut front, 3, is_cut).expect("no error"));
            use_it(&mut Kernel(theirs));
            server.join().expect("no panic")
        });
        disk.log.take().expect("a log").finish().expect("written");
        let log = WriteLog::read(&mut File::open(&log_path).expect("it is there")).expect("a log");
        (end, std::fs::read(&path).expect("the file"), log)
    }

    /// Goal: flushed writes and writes with FUA are in the file after a cut; of the others a part is lost, and reads see all of them before.
    #[test]
    fn a_cut_keeps_what_was_flushed_and_loses_a_part_of_the_rest() {
        let is_cut = AtomicBool::new(false);
        let (end, file, log) = with_disk(&is_cut, |kernel| {
            assert_eq!(kernel.ask(WRITE, 0, 4096, &[1; 4096]).0, 0);
            assert_eq!(kernel.ask(FLUSH, 0, 0, &[]).0, 0);
            assert_eq!(kernel.ask(FUA, 4096, 4096, &[2; 4096]).0, 0);
            for at in 2..18u8 {
                assert_eq!(kernel.ask(WRITE, u64::from(at) * 4096, 4096, &[at + 1; 4096]).0, 0);
                assert_eq!(kernel.ask(READ, u64::from(at) * 4096, 4096, &[]).1, vec![at + 1; 4096]);
            }
            is_cut.store(true, Relaxed);
        });
        let End::Cut(CutLoss { at_risk, lost }) = end else { panic!("it was cut") };
        assert!(at_risk == 16 && lost > 0, "{lost}");
        assert_eq!((&file[..4096], &file[4096..8192]), (&[1; 4096][..], &[2; 4096][..]));
        let kept =
            (2..18).filter(|at| file[at * 4096..(at + 1) * 4096].iter().all(|byte| *byte == *at as u8 + 1)).count();
        assert_eq!(kept as u64, 16 - lost);
        assert_eq!(log.entries.len(), 19);
        assert!(log.entries[1].flushes && log.entries[2].is_fua && !log.entries[3].is_fua);
        assert_eq!((log.entries[3].sector, log.entries[3].sector_count), (16, 8));
    }

    /// Goal: an end in order stores everything; requests that are impossible fail, and nothing else does.
    #[test]
    fn an_end_in_order_stores_everything_and_impossible_requests_fail() {
        let is_cut = AtomicBool::new(false);
        let (end, file, _) = with_disk(&is_cut, |kernel| {
            assert_eq!(kernel.ask(WRITE, 512, 512, &[7; 512]).0, 0);
            let beyond = SIZE_BYTES_MIN;
            for (command, offset, bytes) in
                [(READ, beyond, 512), (READ, 1, 512), (READ, 0, 100), (READ, u64::MAX - 511, 512), (4, 0, 512)]
            {
                assert_eq!(kernel.ask(command, offset, bytes, &[]).0, libc::EINVAL as u32, "{command} {offset}");
            }
            kernel.send(END, 0, 0, &[]);
        });
        assert!(matches!(end, End::Disconnected));
        assert_eq!(file[512..1024], [7; 512]);
    }
}
