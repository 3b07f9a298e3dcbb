//! `trueio usb serve`: drives a disk with UAS in user space, and serves it as a block device.
//!
//! `trueio-usb` claims the disk, `trueio-uas` drives it; this file prints what happens and ends it in order. A second process
//! gives the disk back to the kernel if the first is killed.

mod attached;
mod detached;

use super::explain::find;
use super::switch::{refused, say};
use super::watchdog::{Systemd, watch};
use crate::failure::Failure;
use crate::output;
use attached::Attached;
use clap::{Arg, ArgMatches, Command, value_parser};
use detached::Detached;
use std::os::fd::RawFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use trueio_device::System;
use trueio_device::usb::{driver_flags, usb_report};
use trueio_model::{UsbTransport, units};
use trueio_report::message;
use trueio_run::{ignore_hangup, watch_signals};
use trueio_uas::block::{is_claimed, protect_process};
use trueio_uas::disk::Facts;
use trueio_uas::nbd::{Nbd, NbdError};
use trueio_uas::serve::socket::Socket;
use trueio_uas::serve::{End, Front, Served, Server};
use trueio_uas::session::{Counts, Limits};
use trueio_uas::ublk::{self, Queue, Ublk, UblkError};
use trueio_uas::usbfs::Usbfs;
use trueio_usb::{
    Barred, Claim, DriveError, Driven, Guarded, Keeper, SERVED, ServedDisk, drive, keep, plan_of, take_over,
};

/// The option that serves a disk on which the kernel does not use UAS.
const FORCE: &str = "force";

/// The command line of `trueio usb serve`.
pub(super) fn arguments() -> Command {
    Command::new("serve")
        .about("Drives a disk with UAS where the kernel has no driver for it, as a block device (experimental)")
        .long_about(
            "Drives a disk with UAS in user space and serves it to the system as a block device (/dev/ublkbN or /dev/nbdN). For \
             kernels without the driver uas. It needs root, and the kernel's ublk driver (`modprobe ublk_drv`) or NBD client \
             (`modprobe nbd`). The disk is refused while anything on it is mounted, swap, stacked on or open. It goes on in the \
             background until SIGTERM; unmount the block device first. If it is killed, the block device fails every I/O, or waits \
             for another server with --resumable. Experimental: keep a backup.",
        )
        .arg(super::disk("A disk: /dev/sdX, sdX, a port (2-1), or a serial number").required(true))
        .arg(super::switch("read-only", "Serve it without writing to it"))
        .arg(super::switch(FORCE, "Serve it although the kernel does not use UAS on this model, because it is known to fail"))
        .arg(super::switch("foreground", "Stay in the foreground, with messages on standard error: for a service manager"))
        .arg(super::switch(detached::OPTION, "Is the process in the background").hide(true))
        .arg(
            Arg::new("lun")
                .long("lun")
                .value_name("NUMBER")
                .help("The logical unit, if the device has several")
                .value_parser(value_parser!(u8)),
        )
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("TIME")
                .default_value("30s")
                .help("How long the disk may take for a command; then it is recovered: abort, reset of the unit, reset of the port"),
        )
        .arg(
            Arg::new("through")
                .long("through")
                .value_name("DRIVER")
                .help("The kernel's driver of the block device; by default ublk where it is loaded, else nbd")
                .value_parser(["ublk", "nbd"]),
        )
        .arg(
            Arg::new("resumable")
                .long("resumable")
                .value_name("TIME")
                .help("If the server dies, I/O waits this long for `usb serve DISK --resume` before it fails (ublk only)"),
        )
        .arg(crate::flags::json("Write the block device as JSON once it is there; without FILE to standard output"))
        .arg(
            super::switch("resume", "Go on with the block device whose server has died")
                .conflicts_with_all(["read-only", "lun", "through", "resumable"]),
        )
}

/// How a disk is attached to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Nbd,
    /// The time for which the block device outlives its server; zero: not at all.
    Ublk(Duration),
}

impl Way {
    fn of(matches: &ArgMatches) -> Result<Self, Failure> {
        let wait = match matches.get_one::<String>("resumable") {
            None => None,
            Some(text) => {
                let refuse = |why| Failure::refused(format!("`--resumable {text}`: {why}"));
                let wait = Duration::from_nanos(units::parse_duration_ns(text).map_err(refuse)?);
                if wait < Duration::from_secs(1) {
                    return Err(refuse("a server needs 1 s or longer to take over".to_owned()));
                }
                Some(wait)
            }
        };
        let through = matches.get_one::<String>("through").map(String::as_str);
        let is_default = || wait.is_some() || (ublk::is_there() && ublk_works());
        let is_ublk = through.map_or_else(is_default, |through| through == "ublk");
        match (is_ublk, wait) {
            (true, wait) => Ok(Self::Ublk(wait.unwrap_or(Duration::ZERO))),
            (false, None) => Ok(Self::Nbd),
            (false, Some(_)) => Err(Failure::refused("`--resumable` needs ublk: an NBD device ends with its server")),
        }
    }
}

/// Whether this process can use ublk; if not, prints why the other driver is used.
fn ublk_works() -> bool {
    let error = ublk::check().err();
    if let Some(error) = &error {
        say(&format!(
            "{}; nbd is used",
            trueio_model::error_chain(&error.to_string(), std::error::Error::source(error))
        ));
    }
    error.is_none()
}

fn limits(matches: &ArgMatches) -> Result<Limits, Failure> {
    const LEAST: Duration = Duration::from_secs(1);
    let text = matches.get_one::<String>("timeout").expect("it has a default");
    let refuse = |why| Failure::refused(format!("`--timeout {text}`: {why}"));
    let limit = Duration::from_nanos(units::parse_duration_ns(text).map_err(refuse)?);
    if limit < LEAST {
        return Err(refuse("a disk may take 1 s or longer for a command".to_owned()));
    }
    Ok(Limits::of_commands(limit))
}

/// `trueio usb serve`.
pub(super) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let system = System::live();
    let name = matches.get_one::<String>("disk").expect("it is required");
    // A disk that was served is served on.
    let is_forced = matches.get_flag(FORCE) || matches.get_flag("resume");
    let barred = if is_forced { Barred::Forced } else { Barred::Refused };
    let plan = plan(&system, name, barred)?;
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::refused("only root can claim a USB disk and connect a block device"));
    }
    output::check(matches, std::iter::empty())?;
    let detached = match (matches.get_flag(detached::OPTION), matches.get_flag("foreground")) {
        (true, _) => Some(Detached::prepare(&format!("usb serve {}", plan.name))?),
        (false, true) => None,
        (false, false) => return detached::start(matches),
    };
    for warning in &plan.warnings {
        say(warning);
    }
    // Before the disk is claimed, so that a signal ends in giving it back.
    let stop = watch_signals();
    // A closed terminal sends several, and a second signal would end the block device although it is mounted.
    ignore_hangup();
    let limits = limits(matches)?;
    let manner = Manner { stop, limit: stall_limit(limits), detached: detached.as_ref(), matches };
    if matches.get_flag("resume") {
        return resume(&plan, limits, manner);
    }
    let way = Way::of(matches)?;
    let lun = matches.get_one::<u8>("lun").copied();
    let driven = drive(&plan, lun, limits).map_err(not_driven)?;
    // Dropped after the host, for which it waits.
    let mut keeper = driven.keeper;
    let Driven { host, facts, memory_bytes, .. } = driven;
    if detached.is_some() {
        keeper.detach().map_err(keeper_is_gone)?;
    }
    let served = Served::of(&facts, host.depth(), memory_bytes, matches.get_flag("read-only"));
    let served = served.ok_or_else(|| too_small(memory_bytes))?;
    let description = describe(&plan, &facts, &served);
    match way {
        Way::Nbd => {
            let (nbd, socket) = Nbd::connect(&served, request_limit(limits)).map_err(|error| not_attached(&error))?;
            match nbd.id() {
                Some(id) => keeper.guard(Guarded::Nbd(id)).map_err(keeper_is_gone)?,
                None => say(
                    "a suspend of the machine will end the block device with an error: netlink has no family nbd here (Linux before 4.12, or a \
                     network namespace of its own)",
                ),
            }
            let front = Socket::new(socket, host.depth(), served.request_bytes_max);
            let server = Server::new(host, served, front);
            let code = serve(server, Attached::Nbd(nbd), &description, manner);
            keeper.release();
            code
        }
        Way::Ublk(wait) => {
            if ublk::may_crash() {
                say(
                    "this kernel can crash if the server of a ublk device is killed under load (Linux before 6.15); end it with SIGTERM, \
                     or serve with `--through nbd`",
                );
            }
            let (ublk, front) =
                Ublk::add(&served, host.depth(), !wait.is_zero()).map_err(|error| not_attached(&error))?;
            keeper.guard(Guarded::Ublk(ublk.number(), wait)).map_err(keeper_is_gone)?;
            if !wait.is_zero() {
                let left = ServedDisk::new(&plan, &facts, ublk.number(), wait, served.is_read_only);
                left.save().map_err(|error| Failure::failed(format!("`{SERVED}` cannot be written"), &error))?;
            }
            let server = Server::new(host, served, front);
            serve_ublk(server, ublk, (&plan, keeper), &description, manner)
        }
    }
}

/// `trueio usb serve --resume`.
fn resume(plan: &Claim, limits: Limits, manner: Manner) -> Result<ExitCode, Failure> {
    /// The kernel may need two of its timeouts to notice that a server has died.
    const NOTICED: Duration = Duration::from_secs(60);
    let left = ServedDisk::load(&plan.name).map_err(|error| Failure::refused_by(&error, None))?;
    if let Some(why) = left.differs_from(plan) {
        let ended = ublk::delete(left.number).and_then(|()| ServedDisk::clear(&plan.name));
        let number = left.number;
        let what = match ended {
            Ok(()) => format!("every I/O of /dev/ublkb{number} fails now; unmount it, and serve the disk again"),
            Err(error) => format!("/dev/ublkb{number} cannot be ended: {error}"),
        };
        return Err(Failure::refused(format!("`{}` is not taken over\n  because: {why}\n\nhint: {what}", plan.name)));
    }
    let driven = take_over(plan, &left, limits).map_err(not_driven)?;
    // Dropped after the host, for which it waits.
    let mut keeper = driven.keeper;
    if manner.detached.is_some() {
        keeper.detach().map_err(keeper_is_gone)?;
    }
    let Driven { host, facts, memory_bytes, .. } = driven;
    let served = Served::of(&facts, host.depth(), memory_bytes, left.is_read_only);
    let mut served = served.ok_or_else(|| too_small(memory_bytes))?;
    let (ublk, front) =
        Ublk::resume(left.number, &mut served, host.depth(), NOTICED).map_err(|error| not_attached(&error))?;
    let server = Server::new(host, served, front);
    let description = describe(plan, &facts, &served);
    serve_ublk(server, ublk, (plan, keeper), &description, manner)
}

/// Serves a ublk device, and tells the keeper when it has ended in order.
fn serve_ublk(
    server: Server<Usbfs, Queue>,
    ublk: Ublk,
    (plan, mut keeper): (&Claim, Keeper),
    description: &str,
    manner: Manner,
) -> Result<ExitCode, Failure> {
    let code = serve(server, Attached::Ublk(ublk), description, manner);
    keeper.release();
    // A file that stays names a device that is gone.
    let _ = ServedDisk::clear(&plan.name);
    code
}

/// Reports that the keeper has died.
fn keeper_is_gone(error: std::io::Error) -> Failure {
    Failure::failed("the process that would end the block device (`trueio usb give-back`) has ended", &error)
}

/// Reports why there is no block device.
fn not_attached(error: &(dyn std::error::Error + 'static)) -> Failure {
    let hint = match (error.downcast_ref::<NbdError>(), error.downcast_ref::<UblkError>()) {
        (Some(NbdError::NoModule), _) => {
            Some("`modprobe ublk_drv` (Linux 6.4 or later) or `modprobe nbd` loads a driver")
        }
        (_, Some(UblkError::Driver(error))) if error.kind() == std::io::ErrorKind::NotFound => {
            Some("`modprobe ublk_drv` loads it (Linux 6.4 or later)")
        }
        (_, Some(UblkError::Driver(_))) => Some("it needs io_uring; `--through nbd` does not"),
        _ => None,
    };
    Failure::refused_by(error, hint)
}

/// The longest turn of the server: its last flush, with every step of recovery, is one.
fn stall_limit(limits: Limits) -> Duration {
    Duration::from_secs(60) + 3 * Duration::from_nanos(limits.command_ns)
}

/// How long the kernel waits for an answer of an NBD device before it ends the device: the last resort if the server and its keeper were both killed,
/// or the whole server is stopped. Far longer than a slow disk needs, whose requests wait for each other.
fn request_limit(limits: Limits) -> Duration {
    Duration::from_secs(60) + 18 * Duration::from_nanos(limits.command_ns)
}

/// Reports why a disk cannot be driven.
fn not_driven(error: DriveError) -> Failure {
    let hint = match &error {
        DriveError::Unit { .. } => Some("--lun names the one to serve"),
        _ => None,
    };
    Failure::refused_by(&error, hint)
}

fn plan(system: &System, name: &str, barred: Barred) -> Result<Claim, Failure> {
    let report = usb_report(system);
    let disk = find(system, &report, name)?;
    if disk.usb.transport == UsbTransport::Uas {
        let interface = &disk.usb.interface;
        return Err(Failure::refused(format!(
            "`{name}` is not served\n  because: the kernel drives {interface} with UAS already; its own driver is faster and safer"
        )));
    }
    let planned = plan_of(system, disk, barred).map_err(|error| Failure::refused_by(&error, None))?;
    planned.map_err(|mut refusal| {
        if barred == Barred::Refused && refusal.hint.is_none() && driver_flags(system, disk).barred.is_some() {
            refusal.hint = Some("--force serves it nevertheless: keep a backup".to_owned());
        }
        refused(name, "served", &refusal)
    })
}

/// The command line of the process that outlives a server; started by it, not by people.
pub(super) fn give_back_arguments() -> Command {
    Command::new("give-back").hide(true).arg(Arg::new("interface").required(true))
}

/// Is the keeper of a server.
pub(super) fn give_back(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let interface = matches.get_one::<String>("interface").expect("it is required");
    if !interface.bytes().all(|byte| byte.is_ascii_digit() || b"-.:".contains(&byte)) {
        return Err(Failure::refused(format!("`{interface}` is not the name of an interface")));
    }
    // A service manager sends them to all processes of a service; this one ends when the server has ended.
    let _held = trueio_run::hold_signals();
    let detach = || match Detached::prepare(&format!("usb serve {interface}")) {
        Ok(detached) => detached.leave_terminal(),
        // Its message would be lost; it does its work nevertheless.
        Err(failure) => message!("{}", failure.into_text()),
    };
    let said = keep(interface, std::io::stdin().lock(), &detach);
    if let Some(sentence) =
        said.map_err(|error| Failure::failed(format!("{interface} cannot be given back to the kernel"), &error))?
    {
        say(&sentence);
    }
    Ok(ExitCode::SUCCESS)
}

fn too_small(memory_bytes: Option<u64>) -> Failure {
    let parameter = trueio_uas::usbfs::MEMORY_PARAMETER;
    let mib = memory_bytes.unwrap_or(0) >> 20;
    Failure::refused(format!(
        "all transfers of usbfs may use {mib} MiB together, which is too little\n\nhint: `echo 64 > {parameter}`"
    ))
}

fn describe(plan: &Claim, facts: &Facts, served: &Served) -> String {
    let model = [&facts.inquiry.vendor, &facts.inquiry.product].map(String::as_str).join(" ");
    let size = units::format_bytes(facts.capacity.size_bytes());
    let streams = match plan.interface.stream_count {
        0 => "without streams".to_owned(),
        count => format!("{count} streams"),
    };
    let mut text = format!("{}: {model}, {size}, UAS in user space, {streams}", plan.name);
    if served.is_read_only {
        text.push_str(", read-only");
    }
    if facts.caching.is_none() {
        text.push_str(", no caching page: write through is assumed");
    }
    trueio_report::clean(&text).into_owned()
}

/// How a server runs.
#[derive(Debug, Clone, Copy)]
struct Manner<'a> {
    /// A signal has asked it to end.
    stop: &'a AtomicBool,
    /// The longest turn.
    limit: Duration,
    /// It is in the background.
    detached: Option<&'a Detached>,
    /// Where the block device is written to.
    matches: &'a ArgMatches,
}

/// Prints the block device, or writes it as JSON.
fn print_device(device: &str, matches: &ArgMatches) -> Result<(), Failure> {
    let json = || format!("{:#}\n", serde_json::json!({ "device": device }));
    if output::print_json(matches, json)? { Ok(()) } else { output::print_all(&format!("{device}\n")) }
}

/// Serves until the end, and gives everything back.
fn serve<F: Front>(
    mut server: Server<Usbfs, F>,
    mut attached: Attached,
    description: &str,
    Manner { stop, limit, detached, matches }: Manner,
) -> Result<ExitCode, Failure> {
    for sentence in protect_process() {
        say(&sentence);
    }
    let cannot_run = |error: std::io::Error| Failure::failed("the block device cannot run", &error);
    attached.prepare().map_err(cannot_run)?;
    server.begin().map_err(cannot_run)?;
    let device = attached.device().display().to_string();
    let systemd = Systemd::of_environment();
    let state = State::default();
    let turns = AtomicU64::new(0);
    let announce = || {
        if let Some(detached) = detached {
            let process = std::process::id();
            say(&format!(
                "{description}; unmount {device} before you end this with `kill {process}`; later messages are in the kernel's log (`dmesg`)"
            ));
            let has_ended = |error| {
                Failure::failed(format!("{device} is not used: the command that waited for it has ended"), &error)
            };
            detached.announce(&device).map_err(has_ended)?;
            state.is_announced.store(true, Relaxed);
        } else {
            say(&format!("{description}; unmount {device} before you end this with Ctrl-C or SIGTERM"));
            print_device(&device, matches)?;
        }
        if let Some(systemd) = &systemd {
            systemd.send("READY=1");
        }
        Ok(())
    };
    let stalled = || {
        // Before anything that can block, such as a terminal that does not read.
        attached.fail();
        say(&format!("the server made no progress for {limit:?}: it ends, and every I/O of {device} fails"));
        std::process::abort();
    };
    let (end, counts, started) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let of_systemd = systemd.as_ref().map(Systemd::descriptor);
            let of_detached = detached.map(Detached::descriptors);
            let kept: Vec<_> = of_systemd.into_iter().chain(of_detached.into_iter().flatten()).collect();
            start_and_end(&attached, &kept, &announce, stop, &state)
        });
        let watchdog =
            scope.spawn(|| watch(&|| turns.load(Relaxed), &state.has_ended, limit, systemd.as_ref(), &stalled));
        let mut has_left = false;
        let mut turn = || {
            turns.fetch_add(1, Relaxed);
            // The watcher may have descriptors of its own.
            if !has_left
                && let Some(detached) = detached
                && state.is_announced.load(Relaxed)
            {
                detached.leave_terminal();
                has_left = true;
            }
        };
        let end = server.run(&mut turn, &mut |sentence| say(sentence));
        if let End::Disk(_) = end
            && attached.needs_answers()
        {
            state.is_lost.store(true, Relaxed);
            if let Err(error) = server.refuse(&mut turn) {
                say(&format!("{device} was not ended in order: {error}"));
            }
        }
        state.has_ended.store(true, Relaxed);
        // It uses the server's socket, so it ends first.
        watchdog.thread().unpark();
        let _ = watchdog.join();
        let counts = server.host().counts();
        // Closes the server's end, which ends the block device, and gives the interface back to the kernel.
        drop(server);
        // The watcher may wait for a request that was not answered.
        attached.close();
        // It ends by itself; a panic there has been printed.
        let started = watcher.join().unwrap_or(Ok(()));
        (end, counts, started)
    });
    drop(attached);
    if let Some(sentence) = recoveries(&counts) {
        say(&sentence);
    }
    started?;
    match end {
        End::Disconnected => Ok(ExitCode::SUCCESS),
        end => Err(Failure::failed(format!("{device} is gone"), &end)),
    }
}

/// What the threads of a server tell each other.
#[derive(Debug, Default)]
struct State {
    /// The server has ended.
    has_ended: AtomicBool,
    /// The disk is gone, and the block device has to end.
    is_lost: AtomicBool,
    /// The block device was announced to the command that waits for it.
    is_announced: AtomicBool,
}

/// Starts the block device, and ends it after a signal, when nothing uses it any more, or when the disk is gone. Runs next to the
/// server, because all of that may read and write the device. `kept`: the descriptors that `announce` uses, besides those of the output.
fn start_and_end(
    attached: &Attached,
    kept: &[RawFd],
    announce: &dyn Fn() -> Result<(), Failure>,
    stop: &AtomicBool,
    state: &State,
) -> Result<(), Failure> {
    const LOOK: Duration = Duration::from_millis(100);
    const AGAIN: Duration = Duration::from_secs(1);
    let device = attached.device().display();
    let prepared = attached.prepare_thread(kept).and_then(|()| attached.start());
    let started = match prepared {
        // The disk may be gone by now; the end of the server says why.
        Ok(()) if state.has_ended.load(Relaxed) => Ok(()),
        Ok(()) => announce(),
        Err(error) => Err(Failure::failed(format!("{device} cannot be started"), &error)),
    };
    let (mut has_said, mut ended) = (false, Ok(()));
    while !state.has_ended.load(Relaxed) {
        let must_end = started.is_err() || state.is_lost.load(Relaxed);
        if must_end || (stop.load(Relaxed) && !is_claimed(attached.device())) {
            match attached.end() {
                Ok(()) => break,
                // Tried again, as long as the server runs.
                Err(error) => {
                    say(&format!("{device} did not end in order: {error}"));
                    ended = Err(Failure::failed(format!("{device} did not end in order"), &error));
                    std::thread::sleep(AGAIN);
                }
            }
        }
        if stop.load(Relaxed) && !std::mem::replace(&mut has_said, true) {
            say(&format!(
                "{device} is in use, and is served until it is unmounted; a second signal ends this at once, and every I/O fails"
            ));
        }
        std::thread::sleep(LOOK);
    }
    started.and(ended)
}

/// Describes the recoveries, if there were any.
fn recoveries(counts: &Counts) -> Option<String> {
    let Counts { repeated, timeouts, aborts, unit_resets, port_resets, violations, .. } = *counts;
    (repeated + timeouts + violations > 0).then(|| {
        format!(
            "the disk had {timeouts} timeouts and {violations} protocol errors: {aborts} aborts, {unit_resets} logical unit \
             resets, {port_resets} port resets; {repeated} commands were sent again"
        )
    })
}
