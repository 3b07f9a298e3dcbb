//! `trueio usb switch`: the plan, the refusals, and the outcome.
//!
//! `trueio-usb` does the work; this file reads the users of the disk and prints the steps.

use super::explain::find;
use crate::failure::Failure;
use crate::output;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use trueio_device::usb::{Decision, PERSIST_FILE, decide, kernel_log, usb_report};
use trueio_device::{System, who_has_open, who_holds};
use trueio_model::{UsbDisk, UsbReport, UsbTransport, units};
use trueio_report::message;
use trueio_report::wrap;
use trueio_run::watch_signals;
use trueio_usb::{
    LiveHands, Outcome, Persisted, Plan, Refusal, STATES, Step, SwitchState, entry_to_keep, execute, is_locked,
    pending, persist, plan, plan_persist, plan_unpersist, resume, take_lock,
};

/// The command line of `trueio usb switch`.
pub(super) fn arguments() -> Command {
    super::recorded(Command::new("switch"))
        .about("Moves a disk safely to UAS or BOT, and back")
        .long_about(
            "Moves a disk to UAS or BOT while the machine runs. The plan is printed first. It is refused while anything \
             on the disk is mounted, swap, stacked on or open, and if the switch could not be undone. The disk's cache is \
             flushed; only this disk's interface is touched; a disk that does not return is bound to its previous driver. \
             The next switch, of any disk, finishes or undoes an interrupted one.",
        )
        .arg(super::disk("A disk: /dev/sdX, sdX, a port (2-1), or a serial number"))
        .arg(
            Arg::new("transport")
                .value_name("TRANSPORT")
                .help("The transport")
                .value_parser(PossibleValuesParser::new(["uas", "bot"])),
        )
        .arg(super::switch("dry-run", "Print the plan and exit"))
        .arg(super::switch("persist", "Keep it across restarts: a line in /etc/modprobe.d/trueio-usb.conf"))
        .arg(
            super::switch("unpersist", "Remove this model's entry from that file; switches only if a transport is named")
                .conflicts_with("persist"),
        )
        .arg(
            super::switch("restore", "Finish or undo an interrupted switch; with a disk, return it to its previous transport")
                .conflicts_with_all(["persist", "unpersist", "transport"]),
        )
        .arg(
            Arg::new("wait")
                .long("wait")
                .value_name("TIME")
                .help("Time limit for the disk to return, 1s to 10m; a cold hard disk may need a minute")
                .default_value("30s"),
        )
        .arg(
            crate::flags::json("Write the plan and what became of it as JSON; without FILE to standard output")
                .conflicts_with("restore"),
        )
}

/// Parses the time limit for the disk to return.
fn wait(matches: &ArgMatches) -> Result<Duration, Failure> {
    let text = matches.get_one::<String>("wait").expect("it has a default");
    let ns = units::parse_duration_ns(text).map_err(|e| Failure::refused(format!("--wait `{text}`: {e}")))?;
    let time = Duration::from_nanos(ns);
    if time < Duration::from_secs(1) || time > Duration::from_secs(600) {
        return Err(Failure::refused(format!("--wait `{text}`: a time from 1s to 10m is expected")));
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
    if transport.is_none() && matches.contains_id("json") {
        return Err(Failure::refused("--json needs a disk and a transport"));
    }
    output::check(matches, std::iter::empty())?;
    if is_dry {
        let (Some(name), Some(to)) = (name, transport) else {
            return Err(Failure::refused("--dry-run needs a disk and a transport"));
        };
        let look = look(&system, name, to)?;
        let plan = look.plan.as_ref().map_err(|refusal| refused(name, "switched", refusal))?;
        let planned =
            [if keeps { Some(kept(&system, &look, to)?) } else { None }, drops.then(|| dropped(&system, &look))];
        let files: Vec<String> = planned.iter().flatten().map(|planned| in_file(planned, "will be")).collect();
        let json = || json_of(plan, "planned", &names_of(plan), files.clone());
        if !output::print_json(matches, json)? {
            let files: String = files.iter().map(|sentence| format!("{sentence}\n")).collect();
            output::print_all(&(shown(plan) + &files))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::refused("only root can bind and unbind drivers\n\nhint: --dry-run prints the plan"));
    }
    let _alone = alone()?;
    // Ctrl-C must not stop between two steps, so the flag is not read.
    watch_signals();
    let worst = finish_interrupted(&system, wait)?;
    if restores {
        let code = name.map_or(Ok(0), |name| put_back(&system, name, wait, matches))?;
        return Ok(ExitCode::from(worst.max(code)));
    }
    let name = name.expect("checked above");
    let code = match transport {
        Some(to) => switch_to(&system, name, to, Keep { keeps, drops }, (wait, matches))?,
        None => {
            let report = usb_report(&system);
            let (vendor, product) = ids(find(&system, &report, name)?)?;
            write_down(&system, &plan_unpersist(&system, vendor, product))?;
            0
        }
    };
    Ok(ExitCode::from(worst.max(code)))
}

/// Plans the change of the file that applies after a restart.
#[derive(Clone, Copy, Default)]
struct Keep {
    keeps: bool,
    drops: bool,
}

/// Returns the reason why a system cannot switch, by Rust's name of the system; `None` on Linux.
pub(super) fn refused_by_system(os: &str) -> Option<Failure> {
    let why = trueio_device::usb::switch_refusal(os);
    let text = format!("a disk's USB transport cannot be switched here\n  because: {why}");
    (os != "linux").then(|| Failure::refused(text))
}

/// A disk, the decision of the kernel's rules about it, and the plan or the refusal.
pub(super) struct Look {
    pub(super) disk: UsbDisk,
    decision: Decision,
    pub(super) plan: Result<Plan, Refusal>,
}

impl Look {
    /// True if the kernel cannot drive any disk with UAS: no driver is loaded, built in or installed.
    pub(super) fn kernel_lacks_uas(&self) -> bool {
        let uas = &self.decision.uas;
        !uas.is_loaded && !uas.is_built_in && uas.file.is_none()
    }
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

/// Formats a refusal; `what` is `switched` or `served`.
pub(super) fn refused(name: &str, what: &str, refusal: &Refusal) -> Failure {
    let mut text = format!("`{name}` is not {what}");
    for reason in &refusal.reasons {
        let _ = write!(text, "\n  because: {}", trueio_report::clean(reason));
    }
    if let Some(hint) = &refusal.hint {
        let _ = write!(text, "\n\nhint: {hint}");
    }
    Failure::refused(text)
}

/// Returns the names of the disk's block devices before a switch.
fn names_of(plan: &Plan) -> Vec<String> {
    plan.blocks.iter().map(|block| block.name.clone()).collect()
}

/// Returns a plan and what became of it (`planned`, or as [`print_outcome`] names it) as a document, with the names of the block devices then.
fn json_of(plan: &Plan, outcome: &str, blocks: &[String], sentences: Vec<String>) -> String {
    let mut planned = serde_json::json!(plan);
    planned["steps"] = serde_json::json!(plan.steps());
    let document = serde_json::json!({ "plan": planned, "outcome": outcome, "blocks": blocks, "sentences": sentences });
    format!("{document:#}\n")
}

fn shown(plan: &Plan) -> String {
    let width = output::style_of(&std::io::stdout()).width;
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

/// Locks out other switches.
pub(super) fn alone() -> Result<File, Failure> {
    take_lock(Path::new(STATES)).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Failure::refused("another `trueio usb switch` is running"),
        _ => Failure::failed(format!("`{STATES}` cannot be used"), &error),
    })
}

/// Lists unfinished switches and what the next run will do about each. Needs no privileges.
pub(super) fn unfinished() -> Vec<String> {
    let states = match pending(Path::new(STATES)) {
        Ok(states) => states,
        Err(error) => return vec![trueio_model::error_line(&error)],
    };
    let is_at_work = is_locked(Path::new(STATES));
    let sentence = |state: SwitchState| {
        let Plan { interface, from, to, .. } = &state.plan;
        let step = state.step.words();
        if is_at_work {
            format!("{interface}: a switch from {from} to {to} is in progress, at {step}")
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
    message!("{}", trueio_report::clean(sentence));
}

fn states() -> Result<Vec<SwitchState>, Failure> {
    pending(Path::new(STATES)).map_err(|error| Failure::refused_by(&error, None))
}

/// Finishes or undoes switches of earlier runs; returns 1 if a disk is lost, or in use and therefore not
/// touched.
pub(super) fn finish_interrupted(system: &System, wait: Duration) -> Result<u8, Failure> {
    let mut worst = 0;
    for state in states()?.into_iter().filter(|state| state.step != Step::Done) {
        let interface = state.plan.interface.clone();
        let to = state.plan.to;
        let outcome = resume(system, state, &mut LiveHands::new(PathBuf::from(STATES), wait), &mut say);
        worst = worst.max(u8::from(matches!(outcome, Outcome::Lost { .. } | Outcome::InUse { .. })));
        // To stderr: stdout belongs to the present command's output, which may be a record.
        say(&ended(&interface, to, &outcome));
    }
    Ok(worst)
}

/// Returns a disk to the transport before `trueio` switched it.
fn put_back(system: &System, name: &str, wait: Duration, matches: &ArgMatches) -> Result<u8, Failure> {
    let report = usb_report(system);
    let disk = find(system, &report, name)?.clone();
    let interface = &disk.usb.interface;
    let state = states()?.into_iter().find(|state| state.plan.interface == *interface && state.step == Step::Done);
    let is_it = |state: &SwitchState| {
        state.plan.serial == disk.usb.serial.value && disk.usb.id.value.as_ref() == Some(&state.plan.id)
    };
    match state.filter(is_it) {
        None => {
            say(&format!("{interface} was not switched by trueio since the last restart: nothing to restore"));
            Ok(0)
        }
        Some(state) if disk.usb.transport == state.plan.from || state.plan.from == UsbTransport::None => {
            say(&format!("{interface} is on {}, its previous transport", disk.usb.transport));
            forget(interface);
            Ok(0)
        }
        Some(state) => {
            let code = switch_to(system, name, state.plan.from, Keep::default(), (wait, matches))?;
            if code == 0 {
                forget(interface);
            }
            Ok(code)
        }
    }
}

fn forget(interface: &str) {
    if let Err(error) = SwitchState::clear(Path::new(STATES), interface) {
        say(&format!("the recorded state of this switch could not be removed: {error}"));
    }
}

fn switch_to(
    system: &System,
    name: &str,
    to: UsbTransport,
    keep: Keep,
    (wait, matches): (Duration, &ArgMatches),
) -> Result<u8, Failure> {
    let look = look(system, name, to)?;
    // Checked before the disk is touched, so that a refusal changes nothing; also, the disk may have another
    // name afterwards.
    let planned = match (keep.keeps, keep.drops) {
        (true, _) => Some(kept(system, &look, to)?),
        (_, true) => Some(dropped(system, &look)),
        _ => None,
    };
    if look.disk.usb.transport == to {
        let sentence = format!("{} is already on {to}", look.disk.usb.interface);
        let blocks: Vec<&String> = look.disk.blocks.iter().map(|block| &block.name).collect();
        let document =
            serde_json::json!({ "plan": null, "outcome": "unchanged", "blocks": blocks, "sentences": [sentence] });
        print_document(matches, || format!("{document:#}\n"));
        say(&sentence);
    } else {
        let plan = look.plan.as_ref().map_err(|refusal| refused(name, "switched", refusal))?;
        message!("{}", shown(plan));
        let outcome = carry_out(system, plan, wait, &mut say)?;
        let code = print_outcome(plan, &outcome, matches);
        if code != 0 {
            if planned.is_some() {
                say(&format!("{PERSIST_FILE} was not touched"));
            }
            return Ok(code);
        }
    }
    match planned {
        Some(planned) => write_down(system, &planned)?,
        None if look.decision.expected == Some(to) => {
            say(&format!(
                "the kernel's rules choose {to} for this disk, so it stays there when it is plugged in again"
            ));
        }
        None => {
            say("this lasts until the disk is plugged in again or the machine restarts; --persist makes it permanent")
        }
    }
    Ok(0)
}

/// Carries out a plan; calls `say` before each step. The state of an earlier switch is removed once the disk
/// is on its original transport.
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

/// Prints the outcome; returns 0 if the disk is on the requested transport, else 1.
fn print_outcome(plan: &Plan, outcome: &Outcome, matches: &ArgMatches) -> u8 {
    let sentence = trueio_report::clean(&ended(&plan.interface, plan.to, outcome)).into_owned();
    let nothing = Vec::new();
    let (word, blocks) = match outcome {
        Outcome::Switched { blocks } => ("switched", blocks),
        Outcome::NotStarted { .. } => ("not_started", &names_of(plan)),
        Outcome::RolledBack { blocks, .. } => ("rolled_back", blocks),
        Outcome::Unplugged { .. } => ("unplugged", &nothing),
        Outcome::InUse { .. } => ("in_use", &nothing),
        Outcome::Lost { .. } => ("lost", &nothing),
    };
    let is_printed = print_document(matches, || json_of(plan, word, blocks, vec![sentence.clone()]));
    let is_switched = matches!(outcome, Outcome::Switched { .. });
    if !is_switched {
        message!("{sentence}");
    } else if !is_printed {
        drop(output::print_all(&format!("{sentence}\n")));
    }
    u8::from(!is_switched)
}

/// Prints a document or writes it to a file, as [`output::print_json`]. The disk has been switched by then, and what else was asked for is
/// still to be done, so a file that cannot be written is only reported.
fn print_document(matches: &ArgMatches, text: impl FnOnce() -> String) -> bool {
    output::print_json(matches, text).unwrap_or_else(|failure| {
        message!("{}", failure.into_text());
        false
    })
}

/// Describes the outcome.
pub(super) fn ended(interface: &str, to: UsbTransport, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Switched { blocks } => format!("{interface} is on {to}: {}", blocks.join(", ")),
        Outcome::NotStarted { reason } => format!("{interface} was not touched: {reason}"),
        Outcome::RolledBack { reason, blocks } => {
            let names = if blocks.is_empty() { "without a driver".to_owned() } else { blocks.join(", ") };
            format!("{interface} is not on {to}: {reason}. It is on its previous transport: {names}")
        }
        Outcome::Unplugged { reason } => reason.clone(),
        Outcome::InUse { reason, users, on } => format!(
            "{interface} should be bound to its previous driver ({reason}), but it is in use now: {}. It was not changed, \
             on {on}. When it is free, `trueio usb switch --restore` finishes or undoes the switch",
            users.join("; ")
        ),
        Outcome::Lost { reason, back } => format!(
            "{interface} is on no transport: {reason}; and it could not be restored: {back}. Unplug the disk and plug it in \
             again; `trueio usb switch --restore` tries once more"
        ),
    }
}

fn ids(disk: &UsbDisk) -> Result<(u16, u16), Failure> {
    let id = disk.usb.id.value.as_deref().and_then(|id| id.split_once(':'));
    id.and_then(|(v, p)| Some((u16::from_str_radix(v, 16).ok()?, u16::from_str_radix(p, 16).ok()?)))
        .ok_or_else(|| Failure::refused(format!("vendor and product are unknown: {}", disk.usb.id.source)))
}

/// Plans what keeps the transport across restarts: an entry, or the removal of a contrary one.
fn kept(system: &System, look: &Look, to: UsbTransport) -> Result<Persisted, Failure> {
    let (vendor, product) = ids(&look.disk)?;
    let entry = entry_to_keep(&look.disk, to, &look.decision);
    plan_persist(system, vendor, product, entry.as_deref()).map_err(|error| Failure::refused_by(&error, None))
}

/// Plans the removal of the entry of a disk's model.
fn dropped(system: &System, look: &Look) -> Persisted {
    // Without IDs it can have no entry.
    ids(&look.disk).map_or(Persisted::Unchanged, |(vendor, product)| plan_unpersist(system, vendor, product))
}

fn write_down(system: &System, planned: &Persisted) -> Result<(), Failure> {
    persist(system, planned).map_err(|error| Failure::failed("the file in /etc/modprobe.d was not changed", &error))?;
    say(&in_file(planned, "is"));
    Ok(())
}

/// Describes the change of the file; `be` is `is` or `will be`.
fn in_file(planned: &Persisted, be: &str) -> String {
    match planned {
        Persisted::Unchanged => format!("{PERSIST_FILE} needs no change"),
        Persisted::Removed => format!("{PERSIST_FILE} {be} removed; {REBUILD}"),
        Persisted::Written { line } => format!(
            "the line of {PERSIST_FILE} {be} `{line}`: it applies to every disk of this model when usb-storage is loaded next; \
             {REBUILD}"
        ),
    }
}

const REBUILD: &str = "the initramfs has a copy: `update-initramfs -u` (Debian, Ubuntu) or `dracut -f` (Fedora, SUSE)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_systems_refuse_with_their_reason() {
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
