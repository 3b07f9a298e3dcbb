//! Reads that something between the program and the kernel delays: a filter of system calls passes some of them to a supervisor, here
//! this program, which lets them go on 2 ms later. A library that is preloaded can do the same.
//!
//! Needs root: only a trace (level E3) shows what the disk's part of a latency is.
//!
//! Source: seccomp(2), seccomp_unotify(2) (Linux 5.5).

use super::Selftest;
use super::own_run::OwnRun;
use super::rows::Row;
use super::stage::{disk_read_ns, findings_of, iops_text, measured_op, naive_quantile, waited_text};
use crate::failure::Failure;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use trueio_model::{CheckOutcome, RunRecord, units};

pub(super) const DELAYED: &str = "a filter of system calls delays 30 % of the reads by 2 ms, as a library can";
const UNDELAYED: &str = "the same reads without the filter";

/// Of each 16 blocks, those that are delayed: 31 % of the reads.
const DELAYED_OF_16: u32 = 5;
const DELAY: Duration = Duration::from_millis(2);
const OPTIONS: &[&str] = &["--runtime", "1s"];
const BLOCK_BYTES: u32 = 4096;
/// Part of the mean latency up to which the disk's own part leaves most of it to the delay.
const DISK_SHARE_MAX: f64 = 0.4;

/// `AUDIT_ARCH_*` of `<linux/audit.h>`.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};
/// Offsets in `struct seccomp_data`: number, architecture, the lower halves of the third and fourth argument (both architectures are
/// little-endian).
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const LENGTH: u32 = 32;
const OFFSET: u32 = 40;

const SET_MODE_FILTER: libc::c_uint = 1;
const NEW_LISTENER: libc::c_ulong = 1 << 3;
const RET_ALLOW: u32 = 0x7fff_0000;
const RET_USER_NOTIF: u32 = 0x7fc0_0000;
const NOTIF_RECV: libc::Ioctl = 0xc050_2100_u32 as libc::Ioctl;
const NOTIF_SEND: libc::Ioctl = 0xc018_2101_u32 as libc::Ioctl;
const CONTINUE: u32 = 1;

/// `struct seccomp_notif`.
#[repr(C)]
#[derive(Default)]
struct Notice {
    id: u64,
    process: u32,
    flags: u32,
    data: [u64; 8],
}
const _: () = assert!(size_of::<Notice>() == 80);

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}
const _: () = assert!(size_of::<Answer>() == 24);

/// Runs direct reads in `directory`, of which some are delayed if `is_delayed`, and returns their record.
fn run(directory: &Path, is_delayed: bool) -> io::Result<RunRecord> {
    if !is_delayed {
        // SAFETY: `precede` makes one system call.
        return unsafe { OwnRun::start(directory, 0, OPTIONS, precede) }?.finish();
    }
    let architecture =
        ARCHITECTURE.ok_or_else(|| io::Error::other("system calls of this architecture are not filtered"))?;
    let filter = filter(architecture);
    let (ours, theirs) = UnixStream::pair()?;
    let prepare = move || {
        precede()?;
        send(theirs.as_fd(), install(&filter)?.as_fd())
    };
    // SAFETY: `prepare` calls sched_setscheduler, prctl, seccomp and sendmsg with memory on its stack.
    let run = unsafe { OwnRun::start(directory, 0, OPTIONS, prepare) }?;
    let listener = receive(ours.as_fd())?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| supervise(&listener, &is_over));
        let record = run.finish();
        is_over.store(true, Relaxed);
        record
    })
}

/// Lets this process run before all ordinary programs, so that no wait for a processor hides the delay: such a wait would be what is
/// named. It mostly waits for I/O.
fn precede() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads a structure that outlives the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Passes `pread` of a block of the job to the supervisor if the block is one of those; all other calls go on.
fn filter(architecture: u32) -> [libc::sock_filter; 12] {
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |offset: u32| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    // `away` steps ahead is the answer that the call goes on.
    let unless_equal = |value: u32, away: u8| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, away, value);
    let arithmetic = |operation: u32, value: u32| step(libc::BPF_ALU | operation | libc::BPF_K, 0, 0, value);
    [
        load(ARCH),
        unless_equal(architecture, 9),
        load(NUMBER),
        unless_equal(libc::SYS_pread64 as u32, 7),
        load(LENGTH),
        unless_equal(BLOCK_BYTES, 5),
        load(OFFSET),
        arithmetic(libc::BPF_DIV, BLOCK_BYTES),
        arithmetic(libc::BPF_AND, 15),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, 0, DELAYED_OF_16),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, RET_USER_NOTIF),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, RET_ALLOW),
    ]
}

/// Installs the filter in this process for good, and returns the descriptor of its supervisor.
fn install(filter: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: plain calls; the kernel copies the program, which outlives the second.
    let listener = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, NEW_LISTENER, &raw const program)
    };
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(listener as i32) })
}

fn send(socket: BorrowedFd<'_>, listener: BorrowedFd<'_>) -> io::Result<()> {
    let descriptors = [listener];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    message.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[io::IoSlice::new(b"x")], &mut message, SendFlags::empty())?;
    Ok(())
}

fn receive(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [io::IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let mut rights = message.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
        _ => None,
    });
    rights.next().ok_or_else(|| io::Error::other("the run sent no descriptor"))
}

/// Lets each call go on after a delay, until the run is over.
fn supervise(listener: &OwnedFd, is_over: &AtomicBool) {
    let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !is_over.load(Relaxed) {
        let mut waiting = [PollFd::new(listener, PollFlags::IN)];
        let is_ready = poll(&mut waiting, Some(&wait)).is_ok() && waiting[0].revents().contains(PollFlags::IN);
        if !is_ready {
            if waiting[0].revents().contains(PollFlags::HUP) {
                return;
            }
            continue;
        }
        let mut notice = Notice::default();
        // SAFETY: the kernel writes a structure of this size, which is zeroed, as it requires.
        if unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_RECV, &raw mut notice) } != 0 {
            continue;
        }
        std::thread::sleep(DELAY);
        let answer = Answer { id: notice.id, value: 0, error: 0, flags: CONTINUE };
        // SAFETY: the kernel reads a structure of this size. An error means that the thread is gone.
        unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SEND, &raw const answer) };
    }
}

/// Returns why the disk's part of the latencies is unknown: on a busy machine too few requests may be traced.
fn why_not_traced(record: &RunRecord) -> Option<String> {
    let phase = record.phases.first()?;
    let missing = phase.trace.as_ref().and_then(|trace| trace.missing.as_ref());
    let unseen = || {
        let mut unseen = phase.checks.iter().filter(|check| check.outcome == CheckOutcome::NotSeen);
        Some(&unseen.find(|check| check.name == "latency_origin")?.sentence)
    };
    missing.or_else(unseen).map(|why| format!("requests are not traced: {why}"))
}

/// Returns why the delay is not most of the latencies: the disk's own part is as long. Loop devices are slow beside busy processors.
fn why_not_most(record: &RunRecord) -> Option<String> {
    let disk_ns = disk_read_ns(record)?;
    let mean_ns = measured_op(record)?.latency.total.mean_ns()?;
    (disk_ns >= mean_ns * DISK_SHARE_MAX).then(|| {
        let [disk, mean] = [disk_ns, mean_ns].map(|ns| units::format_duration_ns(ns as u64));
        format!("the disk was too slow: it took {disk} of the {mean} for a read")
    })
}

/// Runs the reads and builds their row.
fn row_of(name: &str, at: &Path, is_delayed: bool) -> Row {
    let record = match run(at, is_delayed) {
        Ok(record) => record,
        Err(error) => return Row::not_staged(!is_delayed, name, &format!("no run with a filter: {error}")),
    };
    let findings = findings_of(&record);
    if !is_delayed {
        return Row::correct(name, iops_text(&record), &findings, &["latency_origin"]);
    }
    let median = measured_op(&record).map_or_else(String::new, |op| naive_quantile(op, 500));
    let unchecked = format!("{}, median latency {median}", iops_text(&record));
    // A wait of the worker for its processor is then what is named.
    let why_not = why_not_traced(&record).or_else(|| waited_text(&record)).or_else(|| why_not_most(&record));
    Row::false_result(name, unchecked, findings, &[&["latency_origin"]]).unless(why_not)
}

impl Selftest {
    /// Reads of a further process, of which some are delayed, and the same without a delay.
    pub(super) fn delayed(&mut self, at: &Path) -> Result<(), Failure> {
        for (name, is_delayed) in [(DELAYED, true), (UNDELAYED, false)] {
            self.stage(|_| row_of(name, at, is_delayed))?;
        }
        Ok(())
    }
}
