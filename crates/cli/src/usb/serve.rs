//! `trueio usb serve`: drives a disk with UAS in user space, and serves it as a block device.
//!
//! `trueio-usb` claims the disk, `trueio-uas` drives it; this file prints what happens and ends it in order. A second process
//! gives the disk back to the kernel if the first is killed.

use super::explain::find;
use super::switch::{refused, say};
use super::watchdog::{Systemd, watch};
use crate::failure::Failure;
use crate::output;
use clap::{Arg, ArgMatches, Command, value_parser};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use trueio_device::System;
use trueio_device::usb::usb_report;
use trueio_model::{UsbTransport, units};
use trueio_run::watch_signals;
use trueio_uas::block::{is_claimed, protect_process};
use trueio_uas::disk::Facts;
use trueio_uas::nbd::Nbd;
use trueio_uas::serve::socket::Socket;
use trueio_uas::serve::{End, Served, Server};
use trueio_uas::session::{Counts, Limits};
use trueio_uas::usbfs::Usbfs;
use trueio_usb::{Claim, DriveError, Driven, drive, plan_of};

/// The command line of `trueio usb serve`.
pub(super) fn arguments() -> Command {
    Command::new("serve")
        .about("Drives a disk with UAS where the kernel has no driver for it, as a block device (experimental)")
        .long_about(
            "Drives a disk with UAS in user space and serves it to the system as a block device (/dev/nbdN). For kernels \
             without the driver uas. It needs root, and the kernel's NBD client (`modprobe nbd`). The disk is refused while \
             anything on it is mounted, swap, stacked on or open. It runs until Ctrl-C or SIGTERM; unmount the block device \
             first. If it is killed, the block device fails every I/O. Experimental: keep a backup.",
        )
        .arg(super::disk("A disk: /dev/sdX, sdX, a port (2-1), or a serial number").required(true))
        .arg(super::switch("read-only", "Serve it without writing to it"))
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
    let plan = plan(&system, name)?;
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::refused("only root can claim a USB disk and connect a block device"));
    }
    for warning in &plan.warnings {
        say(warning);
    }
    // Before the disk is claimed, so that a signal ends in giving it back.
    let stop = watch_signals();
    let lun = matches.get_one::<u8>("lun").copied();
    let limits = limits(matches)?;
    let driven = drive(&plan, lun, limits).map_err(not_driven)?;
    // Dropped after the host, for which it waits.
    let _keeper = driven.keeper;
    let Driven { host, facts, memory_bytes, .. } = driven;
    let served = Served::of(&facts, host.depth(), memory_bytes, matches.get_flag("read-only"));
    let served = served.ok_or_else(|| too_small(memory_bytes))?;
    let (nbd, socket) = Nbd::connect(&served).map_err(|error| {
        let hint = matches!(error, trueio_uas::nbd::NbdError::NoModule).then_some("`modprobe nbd` loads it");
        Failure::refused_by(&error, hint)
    })?;
    let front = Socket::new(socket, host.depth(), served.request_bytes_max);
    let server = Server::new(host, served, front);
    serve(server, nbd, &describe(&plan, &facts, &served), stop, stall_limit(limits))
}

/// The longest turn of the server: its last flush, with every step of recovery, is one.
fn stall_limit(limits: Limits) -> Duration {
    Duration::from_secs(60) + 3 * Duration::from_nanos(limits.command_ns)
}

/// Reports why a disk cannot be driven.
fn not_driven(error: DriveError) -> Failure {
    let hint = match &error {
        DriveError::Unit { .. } => Some("--lun names the one to serve"),
        _ => None,
    };
    Failure::refused_by(&error, hint)
}

fn plan(system: &System, name: &str) -> Result<Claim, Failure> {
    let report = usb_report(system);
    let disk = find(system, &report, name)?;
    if disk.usb.transport == UsbTransport::Uas {
        let interface = &disk.usb.interface;
        return Err(Failure::refused(format!(
            "`{name}` is not served\n  because: the kernel drives {interface} with UAS already; its own driver is faster and safer"
        )));
    }
    let planned = plan_of(system, disk).map_err(|error| Failure::refused_by(&error, None))?;
    planned.map_err(|refusal| refused(name, "served", &refusal))
}

/// The command line of the process that outlives a server; started by it, not by people.
pub(super) fn give_back_arguments() -> Command {
    Command::new("give-back").hide(true).arg(Arg::new("interface").required(true))
}

/// Gives an interface back to the kernel when standard input ends, which it does when the server has died, in whichever way.
pub(super) fn give_back(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    const LOOK: Duration = Duration::from_millis(50);
    let interface = matches.get_one::<String>("interface").expect("it is required");
    if !interface.bytes().all(|byte| byte.is_ascii_digit() || b"-.:".contains(&byte)) {
        return Err(Failure::refused(format!("`{interface}` is not the name of an interface")));
    }
    // An error is an end, too.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    let directory = format!("/sys/bus/usb/devices/{interface}");
    let driver = || std::fs::read_link(format!("{directory}/driver")).ok();
    // The kernel closes the server's descriptors one after the other.
    while driver().is_some_and(|link| link.ends_with("usbfs")) {
        std::thread::sleep(LOOK);
    }
    if driver().is_none() && std::path::Path::new(&directory).exists() {
        let probed = std::fs::write("/sys/bus/usb/drivers_probe", interface);
        probed.map_err(|error| Failure::failed(format!("{interface} cannot be given back to the kernel"), &error))?;
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
    trueio_report::clean(&text).into_owned()
}

/// Serves until the end, and gives everything back.
fn serve(
    mut server: Server<Usbfs, Socket>,
    mut nbd: Nbd,
    description: &str,
    stop: &AtomicBool,
    limit: Duration,
) -> Result<ExitCode, Failure> {
    for sentence in protect_process() {
        say(&sentence);
    }
    nbd.run().map_err(|error| Failure::failed("the block device cannot run", &error))?;
    let device = nbd.device().display().to_string();
    say(&format!("{description}; unmount {device} before you end this with Ctrl-C or SIGTERM"));
    output::print_all(&format!("{device}\n"))?;
    let systemd = Systemd::of_environment();
    if let Some(systemd) = &systemd {
        systemd.send("READY=1");
    }
    let (has_ended, turns) = (AtomicBool::new(false), AtomicU64::new(0));
    let stalled = || {
        // Before anything that can block, such as a terminal that does not read.
        nbd.fail();
        say(&format!("the server made no progress for {limit:?}: it ends, and every I/O of {device} fails"));
        std::process::abort();
    };
    let end = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| disconnect_at_signal(&nbd, stop, &has_ended));
        let watchdog = scope.spawn(|| watch(&|| turns.load(Relaxed), &has_ended, limit, systemd.as_ref(), &stalled));
        let mut turn = || {
            turns.fetch_add(1, Relaxed);
        };
        let end = server.run(&mut turn, &mut |sentence| say(sentence));
        has_ended.store(true, Relaxed);
        // It uses the server's socket, so it ends first.
        watchdog.thread().unpark();
        let _ = watchdog.join();
        let counts = server.host().counts();
        // Closes the socket, which ends the kernel's side, and gives the interface back to the kernel.
        drop(server);
        // It ends by itself; a panic there has been printed.
        let _ = watcher.join();
        (end, counts)
    });
    drop(nbd);
    let (end, counts) = end;
    if let Some(sentence) = recoveries(&counts) {
        say(&sentence);
    }
    match end {
        End::Disconnected => Ok(ExitCode::SUCCESS),
        end => Err(Failure::failed(format!("{device} is gone"), &end)),
    }
}

/// Disconnects the block device after a signal, when nothing uses it any more. Runs next to the server, because both checks
/// may read the device.
fn disconnect_at_signal(nbd: &Nbd, stop: &AtomicBool, has_ended: &AtomicBool) {
    const LOOK: Duration = Duration::from_millis(100);
    let mut has_said = false;
    if let Err(error) = nbd.prepare_thread() {
        say(&format!("Ctrl-C and SIGTERM cannot end this server in order: {error}"));
        return;
    }
    while !has_ended.load(Relaxed) {
        std::thread::sleep(LOOK);
        if !stop.load(Relaxed) || has_ended.load(Relaxed) {
            continue;
        }
        if !is_claimed(nbd.device()) {
            if let Err(error) = nbd.disconnect() {
                say(&format!("{} cannot be disconnected: {error}", nbd.device().display()));
            }
            return;
        }
        if !std::mem::replace(&mut has_said, true) {
            say(&format!(
                "{} is in use, and is served until it is unmounted; a second signal ends this at once, and every I/O fails",
                nbd.device().display()
            ));
        }
    }
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
