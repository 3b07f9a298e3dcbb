//! `trueio usb switch`: the plan, the refusals, and what became of it.
//!
//! `trueio-usb` does the work; this file reads who uses the disk and prints the steps.

use super::explain::find;
use crate::failure::Failure;
use crate::output;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use std::fmt::Write as _;
use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use trueio_device::usb::{Decision, PERSIST_FILE, decide, kernel_log, usb_report};
use trueio_device::{System, who_has_open, who_holds};
use trueio_model::{UsbDisk, UsbReport, UsbTransport, units};
use trueio_report::wrap;
use trueio_run::watch_signals;
use trueio_usb::{
    LiveHands, Outcome, Persisted, Plan, Refusal, State, Step, entry_to_keep, execute, pending, persist, plan,
    plan_persist, plan_unpersist, resume,
};

/// Where it is noted how far a switch is. A restart empties it, and undoes every switch.
const STATES: &str = "/run/trueio/usb-switch";

/// The command line of `trueio usb switch`.
pub(super) fn arguments() -> Command {
    super::recorded(Command::new("switch"))
        .about("Move a disk to UAS or BOT, safely, and back")
        .long_about(
            "Moves a disk to UAS or BOT while the machine runs. The plan is shown first. It is refused while anything \
             on the disk is mounted, swap, stacked on or open, and where there is no way back. The disk's cache is \
             flushed; only this disk's interface is touched; a disk that does not come back is given back to the driver \
             it had. A switch that was interrupted is finished or undone by the next one, whatever that is for.",
        )
        .arg(super::disk("A disk: /dev/sdX, sdX, a port (2-1), or a serial number"))
        .arg(
            Arg::new("transport")
                .value_name("TRANSPORT")
                .help("Where to")
                .value_parser(PossibleValuesParser::new(["uas", "bot"])),
        )
        .arg(super::switch("dry-run", "Show the plan, and do nothing"))
        .arg(super::switch("persist", "Keep it over a restart, too: a line in /etc/modprobe.d/trueio-usb.conf"))
        .arg(
            super::switch("unpersist", "Take this model's entry out of that file; switches only if a transport is named")
                .conflicts_with("persist"),
        )
        .arg(
            super::switch("restore", "Finish or undo what was interrupted; with a disk, put it back where it was before")
                .conflicts_with_all(["persist", "unpersist", "transport"]),
        )
        .arg(
            Arg::new("wait")
                .long("wait")
                .value_name("TIME")
                .help("How long the disk may take to come back, 1s to 10m; a cold hard disk may need a minute")
                .default_value("30s"),
        )
}

/// How long a disk may take to come back.
fn wait(matches: &ArgMatches) -> Result<Duration, Failure> {
    let text = matches.get_one::<String>("wait").expect("it has a default");
    let ns = units::parse_duration_ns(text).map_err(|e| Failure::refused(format!("--wait `{text}`: {e}")))?;
    let time = Duration::from_nanos(ns);
    if time < Duration::from_secs(1) || time > Duration::from_secs(600) {
        return Err(Failure::refused(format!("--wait `{text}`: from 1s to 10m is expected")));
    }
    Ok(time)
}

/// `trueio usb switch`.
pub(super) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    if let Some(refusal) = refused_by_system(std::env::consts::OS) {
        return Err(refusal);
    }
    let system = super::system(matches)?;
    let is_dry = matches.get_flag("dry-run");
    if !system.is_live() && !is_dry {
        return Err(Failure::refused("a recorded machine can be switched with --dry-run only"));
    }
    let name = matches.get_one::<String>("disk");
    let transport = matches.get_one::<String>("transport").map(|name| match name.as_str() {
        "uas" => UsbTransport::Uas,
        _ => UsbTransport::Bot,
    });
    let (keeps, drops) = (matches.get_flag("persist"), matches.get_flag("unpersist"));
    let restores = matches.get_flag("restore");
    let wait = wait(matches)?;
    if !restores && (name.is_none() || (transport.is_none() && !drops)) {
        return Err(Failure::refused("a disk and a transport are needed: `trueio usb switch sdX uas`"));
    }
    if is_dry {
        let (Some(name), Some(to)) = (name, transport) else {
            return Err(Failure::refused("--dry-run shows the plan of a disk and a transport"));
        };
        let look = look(&system, name, to)?;
        let plan = look.plan.as_ref().map_err(|refusal| refused(name, refusal))?;
        let mut text = shown(plan);
        for planned in
            [if keeps { Some(kept(&system, &look, to)?) } else { None }, drops.then(|| dropped(&system, &look))]
        {
            text.extend(planned.map(|planned| format!("{}\n", in_file(&planned, "will be"))));
        }
        output::print_all(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::refused(
            "drivers can be bound and unbound by root only\n\nhint: --dry-run shows the plan",
        ));
    }
    let _alone = alone()?;
    // Ctrl-C must not stop between two steps; the flag is not looked at.
    watch_signals();
    let worst = finish_interrupted(&system, wait)?;
    if restores {
        let code = name.map_or(Ok(0), |name| put_back(&system, name, wait))?;
        return Ok(ExitCode::from(worst.max(code)));
    }
    let name = name.expect("checked above");
    let code = match transport {
        Some(to) => switch_to(&system, name, to, Keep { keeps, drops }, wait)?,
        None => {
            let report = usb_report(&system);
            let (vendor, product) = ids(find(&system, &report, name)?)?;
            write_down(&system, &plan_unpersist(&system, vendor, product))?;
            0
        }
    };
    Ok(ExitCode::from(worst.max(code)))
}

/// What is asked of the file that counts after a restart.
#[derive(Clone, Copy, Default)]
struct Keep {
    keeps: bool,
    drops: bool,
}

/// Why nothing can be switched on a system, by the name that Rust gives it; `None` on Linux.
pub(super) fn refused_by_system(os: &str) -> Option<Failure> {
    let why = trueio_device::usb::switch_refusal(os);
    let text = format!("a disk's USB transport cannot be switched here\n  because: {why}");
    (os != "linux").then(|| Failure::refused(text))
}

/// A disk, what the kernel's rules make of it, and the plan or the refusal.
pub(super) struct Look {
    pub(super) disk: UsbDisk,
    decision: Decision,
    pub(super) plan: Result<Plan, Refusal>,
}

pub(super) fn look(system: &System, name: &str, to: UsbTransport) -> Result<Look, Failure> {
    let report: UsbReport = usb_report(system);
    let disk = find(system, &report, name)?.clone();
    let log = kernel_log(system).ok();
    let decision = decide(system, &report, &disk, log.as_deref());
    let mut uses = Vec::new();
    for block in &disk.blocks {
        let node = PathBuf::from(format!("/dev/{}", block.name));
        let holders = who_holds(system, &node).map_err(|error| Failure::refused_by(&error, None))?;
        uses.push((holders, who_has_open(system, &block.name)));
    }
    let plan = plan(&disk, to, &decision, &uses);
    Ok(Look { disk, decision, plan })
}

pub(super) fn refused(name: &str, refusal: &Refusal) -> Failure {
    let mut text = format!("`{name}` is not switched");
    for reason in &refusal.reasons {
        let _ = write!(text, "\n  because: {}", trueio_report::clean(reason));
    }
    if let Some(hint) = &refusal.hint {
        let _ = write!(text, "\n\nhint: {hint}");
    }
    Failure::refused(text)
}

fn shown(plan: &Plan) -> String {
    let width = output::style(std::io::stdout().is_terminal()).width;
    let mut text = String::new();
    let serial = plan.serial.as_deref().map_or_else(String::new, |serial| format!(", serial {serial}"));
    let names: Vec<&str> = plan.blocks.iter().map(|block| block.name.as_str()).collect();
    let head =
        format!("{} at {} ({}{serial}): {} to {}", names.join(", "), plan.interface, plan.id, plan.from, plan.to);
    wrap(&mut text, "", 0, head.trim_start(), width);
    for (at, step) in plan.steps().iter().enumerate() {
        wrap(&mut text, &format!("  {}. ", at + 1), 5, step, width);
    }
    for warning in &plan.warnings {
        wrap(&mut text, "  ! ", 4, warning, width);
    }
    text
}

/// One switch at a time: two would put each other's quirk string back.
pub(super) fn alone() -> Result<File, Failure> {
    let open = || {
        std::fs::create_dir_all(STATES)?;
        let file = File::create(Path::new(STATES).join("lock"))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        Ok::<File, std::io::Error>(file)
    };
    open().map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Failure::refused("another `trueio usb switch` is at work"),
        _ => Failure::failed(format!("`{STATES}` cannot be used"), &error),
    })
}

/// Switches that are not at their end: what the next run will do about each. Needs no privileges.
pub(super) fn unfinished() -> Vec<String> {
    let states = match pending(Path::new(STATES)) {
        Ok(states) => states,
        Err(error) => return vec![trueio_model::error_line(&error)],
    };
    let is_at_work = File::open(Path::new(STATES).join("lock")).is_ok_and(|file| {
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared)
            == Err(rustix::io::Errno::WOULDBLOCK)
    });
    let sentence = |state: State| {
        let Plan { interface, from, to, .. } = &state.plan;
        let step = state.step.words();
        if is_at_work {
            format!("{interface}: a switch from {from} to {to} is under way, at {step}")
        } else {
            format!(
                "{interface}: a switch from {from} to {to} was interrupted at {step}; `trueio usb switch --restore` finishes \
                 or undoes it, and so does the next `trueio usb switch`"
            )
        }
    };
    states.into_iter().filter(|state| state.step != Step::Done).map(sentence).collect()
}

pub(super) fn say(sentence: &str) {
    eprintln!("{}", trueio_report::clean(sentence));
}

fn states() -> Result<Vec<State>, Failure> {
    pending(Path::new(STATES)).map_err(|error| Failure::refused_by(&error, None))
}

/// Finishes or undoes what an earlier run left; 1 if a disk is lost, or in use and so left as it is.
pub(super) fn finish_interrupted(system: &System, wait: Duration) -> Result<u8, Failure> {
    let mut worst = 0;
    for state in states()?.into_iter().filter(|state| state.step != Step::Done) {
        let interface = state.plan.interface.clone();
        let to = state.plan.to;
        let outcome = resume(system, state, &mut LiveHands::new(PathBuf::from(STATES), wait), &mut say);
        worst = worst.max(u8::from(matches!(outcome, Outcome::Lost { .. } | Outcome::InUse { .. })));
        // To stderr: stdout belongs to what was asked for now, which may be a record.
        say(&ended(&interface, to, &outcome));
    }
    Ok(worst)
}

/// Puts a disk back on the transport that it was on before `trueio` switched it.
fn put_back(system: &System, name: &str, wait: Duration) -> Result<u8, Failure> {
    let report = usb_report(system);
    let disk = find(system, &report, name)?.clone();
    let interface = &disk.usb.interface;
    let state = states()?.into_iter().find(|state| state.plan.interface == *interface && state.step == Step::Done);
    let is_it = |state: &State| {
        state.plan.serial == disk.usb.serial.value && disk.usb.id.value.as_ref() == Some(&state.plan.id)
    };
    match state.filter(is_it) {
        None => {
            say(&format!("{interface} was not switched by trueio since the last restart: nothing to put back"));
            Ok(0)
        }
        Some(state) if disk.usb.transport == state.plan.from || state.plan.from == UsbTransport::None => {
            say(&format!("{interface} is on {} as before", disk.usb.transport));
            forget(interface);
            Ok(0)
        }
        Some(state) => {
            let code = switch_to(system, name, state.plan.from, Keep::default(), wait)?;
            if code == 0 {
                forget(interface);
            }
            Ok(code)
        }
    }
}

fn forget(interface: &str) {
    if let Err(error) = State::clear(Path::new(STATES), interface) {
        say(&format!("the note of this switch could not be removed: {error}"));
    }
}

fn switch_to(system: &System, name: &str, to: UsbTransport, keep: Keep, wait: Duration) -> Result<u8, Failure> {
    let look = look(system, name, to)?;
    // Asked before the disk is touched: a refusal finds everything as it was. And the disk may have another name afterwards.
    let planned = match (keep.keeps, keep.drops) {
        (true, _) => Some(kept(system, &look, to)?),
        (_, true) => Some(dropped(system, &look)),
        _ => None,
    };
    if look.disk.usb.transport == to {
        say(&format!("{} is on {to} already", look.disk.usb.interface));
    } else {
        let plan = look.plan.as_ref().map_err(|refusal| refused(name, refusal))?;
        eprint!("{}", shown(plan));
        let outcome = carry_out(system, plan, wait, &mut say)?;
        let code = print_outcome(&plan.interface, to, &outcome);
        if code != 0 {
            if planned.is_some() {
                say(&format!("{PERSIST_FILE} was not touched"));
            }
            return Ok(code);
        }
    }
    match planned {
        Some(planned) => write_down(system, &planned)?,
        None => say("until it is plugged in again or the machine restarts; --persist keeps it"),
    }
    Ok(0)
}

/// Carries out a plan; `say` gets each step before it is taken. The note of an earlier switch is removed once the disk
/// is back where it was before that.
pub(super) fn carry_out(
    system: &System,
    plan: &Plan,
    wait: Duration,
    say: &mut dyn FnMut(&str),
) -> Result<Outcome, Failure> {
    let earlier = states()?.into_iter().find(|state| state.plan.interface == plan.interface);
    let is_back = earlier.as_ref().is_some_and(|state| state.plan.from == plan.to && state.plan.serial == plan.serial);
    let outcome = execute(system, plan.clone(), earlier, &mut LiveHands::new(PathBuf::from(STATES), wait), say);
    if is_back && matches!(outcome, Outcome::Switched { .. }) {
        forget(&plan.interface);
    }
    Ok(outcome)
}

/// Prints how it ended: 0 on the requested transport, else 1.
fn print_outcome(interface: &str, to: UsbTransport, outcome: &Outcome) -> u8 {
    let text = format!("{}\n", trueio_report::clean(&ended(interface, to, outcome)));
    if matches!(outcome, Outcome::Switched { .. }) {
        drop(output::print_all(&text));
        0
    } else {
        eprint!("{text}");
        1
    }
}

/// How it ended, in words.
pub(super) fn ended(interface: &str, to: UsbTransport, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Switched { blocks } => format!("{interface} is on {to}: {}", blocks.join(", ")),
        Outcome::NotStarted { reason } => format!("{interface} was not touched: {reason}"),
        Outcome::RolledBack { reason, blocks } => {
            let names = if blocks.is_empty() { "without a driver".to_owned() } else { blocks.join(", ") };
            format!("{interface} is not on {to}: {reason}. It is where it was before: {names}")
        }
        Outcome::Unplugged { reason } => reason.clone(),
        Outcome::InUse { reason, users, on } => format!(
            "{interface} should be given back to the driver that it had ({reason}), but somebody uses it now: {}. It was left \
             alone, on {on}. When nobody uses it any more, `trueio usb switch --restore` finishes or undoes the switch",
            users.join("; ")
        ),
        Outcome::Lost { reason, back } => format!(
            "{interface} is on no transport: {reason}; and it could not be put back: {back}. Unplug the disk and plug it in \
             again; `trueio usb switch --restore` tries once more"
        ),
    }
}

fn ids(disk: &UsbDisk) -> Result<(u16, u16), Failure> {
    let id = disk.usb.id.value.as_deref().and_then(|id| id.split_once(':'));
    id.and_then(|(v, p)| Some((u16::from_str_radix(v, 16).ok()?, u16::from_str_radix(p, 16).ok()?)))
        .ok_or_else(|| Failure::refused(format!("vendor and product are not known: {}", disk.usb.id.source)))
}

/// What keeps the transport over a restart: an entry, or that there is none which would change it.
fn kept(system: &System, look: &Look, to: UsbTransport) -> Result<Persisted, Failure> {
    let (vendor, product) = ids(&look.disk)?;
    let entry = entry_to_keep(&look.disk, to, &look.decision);
    plan_persist(system, vendor, product, entry.as_deref()).map_err(|error| Failure::refused_by(&error, None))
}

/// What takes the entry of a disk's model out of the file.
fn dropped(system: &System, look: &Look) -> Persisted {
    // Without numbers it can have no entry.
    ids(&look.disk).map_or(Persisted::Unchanged, |(vendor, product)| plan_unpersist(system, vendor, product))
}

fn write_down(system: &System, planned: &Persisted) -> Result<(), Failure> {
    persist(system, planned)
        .map_err(|error| Failure::failed("the file that counts after a restart is as it was", &error))?;
    say(&in_file(planned, "is"));
    Ok(())
}

/// What is done to the file, in a sentence; `be` is `is` or `will be`.
fn in_file(planned: &Persisted, be: &str) -> String {
    match planned {
        Persisted::Unchanged => format!("{PERSIST_FILE} needs no change"),
        Persisted::Removed => format!("{PERSIST_FILE} {be} removed; {REBUILD}"),
        Persisted::Written { line } => format!(
            "the line of {PERSIST_FILE} {be} `{line}`: it counts for every disk of this model when usb-storage is loaded next; \
             {REBUILD}"
        ),
    }
}

const REBUILD: &str = "the initramfs has a copy: `update-initramfs -u` (Debian, Ubuntu) or `dracut -f` (Fedora, SUSE)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_system_refuses_with_its_reason() {
        let text = |os| refused_by_system(os).expect("a refusal").into_text();
        assert_eq!(
            text("freebsd"),
            "a disk's USB transport cannot be switched here\n  because: FreeBSD has no UAS driver: umass(4) drives every USB \
             disk with BOT"
        );
        assert!(text("macos").contains("macOS chooses IOUSBMassStorageUASDriver"));
        assert!(text("windows").contains("Windows chooses uaspstor.sys"));
        assert!(refused_by_system("linux").is_none());
    }
}
