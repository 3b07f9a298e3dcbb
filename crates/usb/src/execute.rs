//! Carries out a plan step by step, and undoes it if the disk does not return.
//!
//! Cannot see: whether a disk that does not respond will do so later. The time limit is [`Hands::wait`],
//! usually longer than `usb-storage` waits before it probes (`delay_use`, 1 s) and a disk needs to spin up.

use crate::hands::Hands;
use crate::plan::{Plan, driver_of, in_use};
use crate::state::{Step, SwitchState};
use std::path::PathBuf;
use std::time::Duration;
use trueio_device::usb::{QUIRKS, quirk_string, quirks, usb_disk};
use trueio_device::{HolderKind, System, who_has_open, who_holds};
use trueio_model::{UsbDisk, UsbTransport};

/// Interval between two checks.
const LOOK: Duration = Duration::from_millis(100);
/// Time for which a disk may be open before it counts as used. Programs that examine each new disk (udev)
/// close it earlier.
const OPEN: Duration = Duration::from_secs(5);
/// Interval between two checks for processes that have the disk open.
const OPEN_LOOK: Duration = Duration::from_millis(500);

/// The outcome of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The disk is on the other transport and is the same disk.
    Switched {
        /// Its present block devices.
        blocks: Vec<String>,
    },
    /// The switch was not possible; nothing was touched.
    NotStarted {
        /// The reason.
        reason: String,
    },
    /// The switch failed; the disk is on its previous transport again and is the same disk.
    RolledBack {
        /// The reason.
        reason: String,
        /// Its present block devices.
        blocks: Vec<String>,
    },
    /// The disk was unplugged during the switch. The quirk string is restored.
    Unplugged {
        /// When it was unplugged, and the consequence.
        reason: String,
    },
    /// The switch had to be undone, but the disk is in use, so it was left as it is. The state is kept; the
    /// next run tries again.
    InUse {
        /// The reason for undoing it.
        reason: String,
        /// The users, one sentence each; never empty.
        users: Vec<String>,
        /// The present transport.
        on: UsbTransport,
    },
    /// The disk is on neither transport. The state is kept; the next run tries again.
    Lost {
        /// The reason.
        reason: String,
        /// The reason why it did not return.
        back: String,
    },
}

/// Carries out `plan`. `earlier` is the recorded state of this interface ([`crate::pending`]). Calls `say`
/// before each step.
pub fn execute(
    system: &System,
    plan: Plan,
    earlier: Option<SwitchState>,
    hands: &mut dyn Hands,
    say: &mut dyn FnMut(&str),
) -> Outcome {
    let mut state = SwitchState::new(plan, earlier);
    if let Err(reason) = prepare(&mut state, hands, say) {
        hands.release();
        return Outcome::NotStarted { reason };
    }
    match forward(system, &mut state, hands, say) {
        Ok(blocks) => {
            state.step = Step::Done;
            save(&state, hands, say);
            Outcome::Switched { blocks }
        }
        Err(reason) => roll_back(system, &mut state, reason, hands, say),
    }
}

/// Finishes or undoes an interrupted switch, depending on what sysfs shows.
pub fn resume(system: &System, mut state: SwitchState, hands: &mut dyn Hands, say: &mut dyn FnMut(&str)) -> Outcome {
    let plan = state.plan.clone();
    say(&format!(
        "a switch of {} from {} to {} was interrupted at {}",
        plan.interface,
        plan.from,
        plan.to,
        state.step.words()
    ));
    let found = usb_disk(system, &plan.interface);
    if let Some(disk) = &found
        && let Err(other) = is_same_device(&plan, disk)
    {
        restore_quirks(system, &plan, hands, say);
        clear(&plan, hands, say);
        let reason = format!("another disk is in {} now ({other}); it was not changed", plan.device);
        return Outcome::Unplugged { reason };
    }
    if found.is_some_and(|disk| disk.usb.transport == plan.to) && state.step != Step::Undo {
        restore_quirks(system, &plan, hands, say);
        say(&format!("{} is bound to {}: waiting for the disk", plan.interface, driver_of(plan.to)));
        return match returned(system, &state, plan.to, hands, &mut Err) {
            Ok(blocks) => {
                state.step = Step::Done;
                save(&state, hands, say);
                Outcome::Switched { blocks }
            }
            Err(reason) => roll_back(system, &mut state, reason, hands, say),
        };
    }
    let reason = format!("the switch was interrupted at {}", state.step.words());
    roll_back(system, &mut state, reason, hands, say)
}

/// Carries out the steps that can fail before anything is touched.
fn prepare(state: &mut SwitchState, hands: &mut dyn Hands, say: &mut dyn FnMut(&str)) -> Result<(), String> {
    let blocks = state.plan.blocks.clone();
    for block in &blocks {
        let name = &block.name;
        say(&format!("claiming {name} and flushing its cache"));
        hands.claim(name).map_err(|error| format!("{name} cannot be claimed: {error}"))?;
        hands.flush(name).map_err(|error| format!("the cache of {name} cannot be flushed: {error}"))?;
        let ends = hands.ends(name).map_err(|error| format!("{name} cannot be read: {error}"))?;
        state.ends.push(ends);
    }
    hands.save(state).map_err(|error| format!("the state of the switch cannot be recorded: {error}"))
}

fn forward(
    system: &System,
    state: &mut SwitchState,
    hands: &mut dyn Hands,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<String>, String> {
    let plan = state.plan.clone();
    if plan.quirks_there != plan.quirks_before {
        begin(state, Step::Quirks, hands, say);
        set_quirks(system, &plan.quirks_there, hands)?;
    }
    begin(state, Step::Remove, hands, say);
    for block in &plan.blocks {
        say(&format!("removing {} from the kernel", block.name));
        let path = format!("/sys/block/{}/device/delete", block.name);
        hands.write(&path, "1").map_err(|error| format!("{} could not be removed: {error}", block.name))?;
    }
    if plan.from != UsbTransport::None {
        begin(state, Step::Unbind, hands, say);
        bind(&plan.interface, plan.from, DriverFile::Unbind, hands, say)?;
    }
    // The previous disk's name is free again only when no process has it open.
    hands.release();
    begin(state, Step::Bind, hands, say);
    bind(&plan.interface, plan.to, DriverFile::Bind, hands, say)?;
    begin(state, Step::Restore, hands, say);
    restore_quirks(system, &plan, hands, say);
    begin(state, Step::Wait, hands, say);
    returned(system, state, plan.to, hands, &mut Err)
}

fn begin(state: &mut SwitchState, step: Step, hands: &mut dyn Hands, say: &mut dyn FnMut(&str)) {
    state.step = step;
    save(state, hands, say);
}

/// Records the state. A failure in the middle of a switch must not prevent its end.
fn save(state: &SwitchState, hands: &mut dyn Hands, say: &mut dyn FnMut(&str)) {
    if let Err(error) = hands.save(state) {
        say(&format!("the state of the switch could not be recorded: {error}"));
    }
}

fn clear(plan: &Plan, hands: &mut dyn Hands, say: &mut dyn FnMut(&str)) {
    if let Err(error) = hands.clear(&plan.interface) {
        say(&format!("the recorded state of this switch could not be removed: {error}"));
    }
}

fn bind(
    interface: &str,
    transport: UsbTransport,
    file: DriverFile,
    hands: &mut dyn Hands,
    say: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let driver = driver_of(transport);
    let (name, doing, done) = match file {
        DriverFile::Bind => ("bind", "binding", "bound to"),
        DriverFile::Unbind => ("unbind", "unbinding", "unbound from"),
    };
    say(&format!("{doing} {interface}: {driver}"));
    let path = format!("/sys/bus/usb/drivers/{driver}/{name}");
    hands.write(&path, interface).map_err(|error| format!("{interface} could not be {done} {driver}: {error}"))
}

/// A file of a driver in sysfs to which the name of an interface is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DriverFile {
    Bind,
    Unbind,
}

/// Returns the quirk string in effect.
fn current_quirks(system: &System) -> Result<String, String> {
    let found = quirk_string(system);
    found.value.ok_or_else(|| format!("the quirk string cannot be read: {}", found.source))
}

fn set_quirks(system: &System, text: &str, hands: &mut dyn Hands) -> Result<(), String> {
    hands.write(QUIRKS, text).map_err(|error| format!("the quirk string cannot be set to `{text}`: {error}"))?;
    let found = current_quirks(system)?;
    if found == text { Ok(()) } else { Err(format!("the quirk string is `{found}` after `{text}` was written")) }
}

/// Restores the quirk string. If another program changed it meanwhile, only this device's entry is restored.
fn restore_quirks(system: &System, plan: &Plan, hands: &mut dyn Hands, say: &mut dyn FnMut(&str)) {
    let result = current_quirks(system).and_then(|current| {
        if current == plan.quirks_before {
            return Ok(());
        }
        let wanted = if current == plan.quirks_there || current == plan.quirks_back {
            plan.quirks_before.clone()
        } else {
            say("another program changed the quirk string meanwhile: only this device's entry is restored");
            with_own_entry(plan, &current, &plan.quirks_before)?
        };
        set_quirks(system, &wanted, hands)
    });
    if let Err(error) = result {
        say(&format!("the quirk string could not be restored to `{}`: {error}", plan.quirks_before));
    }
}

/// Returns `current` with this device's entry as in `reference`.
fn with_own_entry(plan: &Plan, current: &str, reference: &str) -> Result<String, String> {
    let parse = |text: &str| u16::from_str_radix(text, 16).ok();
    let ids = plan.id.split_once(':').and_then(|(v, p)| Some((parse(v)?, parse(p)?)));
    let Some((vendor, product)) = ids else { return Err(format!("`{}` is not an ID", plan.id)) };
    match quirks::entry_letters(reference, vendor, product) {
        None => Ok(quirks::without_entry(current, vendor, product)),
        Some(letters) => quirks::with_entry(current, vendor, product, &format!("{}:{letters}", plan.id))
            .map_err(|error| error.to_string()),
    }
}

/// Returns `Ok` if serial number and IDs are the same; the error describes the disk that was found.
fn is_same_device(plan: &Plan, disk: &UsbDisk) -> Result<(), String> {
    let id = disk.usb.id.value.clone().unwrap_or_default();
    if id == plan.id && disk.usb.serial.value == plan.serial {
        return Ok(());
    }
    Err(format!("{id} serial {}", disk.usb.serial.value.as_deref().unwrap_or("none")))
}

/// Waits until the disk is back on `transport`, and compares it with the recorded facts. Calls `differs` if
/// the bytes at its ends differ.
fn returned(
    system: &System,
    state: &SwitchState,
    transport: UsbTransport,
    hands: &mut dyn Hands,
    differs: &mut dyn FnMut(String) -> Result<(), String>,
) -> Result<Vec<String>, String> {
    let plan = &state.plan;
    let count_min = plan.blocks.len().max(1);
    let mut last = String::new();
    for _ in 0..hands.wait().as_millis() / LOOK.as_millis() {
        match usb_disk(system, &plan.interface) {
            None => return Err(format!("{} is gone", plan.interface)),
            Some(disk) => {
                is_same_device(plan, &disk).map_err(|other| format!("another disk is there: {other}"))?;
                let sizes = disk.blocks.iter().all(|block| block.size_bytes.value.is_some_and(|size| size > 0));
                if disk.usb.transport == transport && disk.blocks.len() >= count_min && sizes {
                    return compared(state, &disk, hands, differs);
                }
                last = format!(
                    "after {} s it has {} and {} of {count_min} block devices",
                    hands.wait().as_secs(),
                    disk.usb.driver.value.as_deref().unwrap_or("no driver"),
                    disk.blocks.len()
                );
            }
        }
        hands.pause(LOOK);
    }
    Err(format!("the disk did not return: {last}"))
}

/// Compares sizes and the bytes at both ends, unit by unit.
fn compared(
    state: &SwitchState,
    disk: &UsbDisk,
    hands: &mut dyn Hands,
    differs: &mut dyn FnMut(String) -> Result<(), String>,
) -> Result<Vec<String>, String> {
    let unit = |address: &str| address.rsplit(':').next().unwrap_or_default().to_owned();
    for (block, ends) in state.plan.blocks.iter().zip(&state.ends) {
        let Some(now) = disk.blocks.iter().find(|now| unit(&now.address) == block.unit) else {
            return Err(format!("the logical unit {} ({}) did not return", block.unit, block.name));
        };
        if now.size_bytes.value != block.size_bytes {
            return Err(format!(
                "{} has {:?} bytes, but had {:?} before",
                now.name, now.size_bytes.value, block.size_bytes
            ));
        }
        let found = hands.ends(&now.name).map_err(|error| format!("{} cannot be read: {error}", now.name))?;
        if found != *ends {
            differs(format!("the first or last bytes of {} differ from those of {} before", now.name, block.name))?;
        }
    }
    Ok(disk.blocks.iter().map(|block| block.name.clone()).collect())
}

fn roll_back(
    system: &System,
    state: &mut SwitchState,
    reason: String,
    hands: &mut dyn Hands,
    say: &mut dyn FnMut(&str),
) -> Outcome {
    hands.release();
    let plan = state.plan.clone();
    let Some(disk) = usb_disk(system, &plan.interface) else {
        restore_quirks(system, &plan, hands, say);
        let when = state.step.words();
        clear(&plan, hands, say);
        let reason = format!(
            "{} was unplugged at {when}; when it is plugged in again, the kernel's rules choose its transport ({reason})",
            plan.device
        );
        return Outcome::Unplugged { reason };
    };
    let disk = if is_undone(&plan, &disk) {
        None
    } else {
        match hold(system, &plan, hands, say) {
            Ok(disk) => disk,
            Err(users) => {
                restore_quirks(system, &plan, hands, say);
                let on = usb_disk(system, &plan.interface).map_or(UsbTransport::None, |disk| disk.usb.transport);
                return Outcome::InUse { reason, users, on };
            }
        }
    };
    say(&format!("undoing: {reason}"));
    begin(state, Step::Undo, hands, say);
    let result = disk.map_or(Ok(()), |disk| undo(system, state, &disk, hands, say));
    hands.release();
    restore_quirks(system, &plan, hands, say);
    let result = result.and_then(|()| match plan.from {
        UsbTransport::None => Ok(Vec::new()),
        from => returned(system, state, from, hands, &mut |difference| {
            // The disk is on its previous transport, so other writes to it do not matter.
            say(&difference);
            Ok(())
        }),
    });
    match result {
        Ok(blocks) => {
            match &state.earlier {
                Some(earlier) => save(earlier, hands, say),
                None => clear(&plan, hands, say),
            }
            Outcome::RolledBack { reason, blocks }
        }
        Err(_) if usb_disk(system, &plan.interface).is_none() => {
            clear(&plan, hands, say);
            Outcome::Unplugged {
                reason: format!("{} was unplugged while the switch was undone ({reason})", plan.device),
            }
        }
        Err(back) => Outcome::Lost { reason, back },
    }
}

/// Returns true if the disk is on its previous driver, with all of its units.
fn is_undone(plan: &Plan, disk: &UsbDisk) -> bool {
    disk.usb.transport == plan.from && disk.blocks.len() >= plan.blocks.len()
}

/// Claims the disk's present block devices, so that they can be removed and cannot be mounted meanwhile. The
/// disk was released when it was bound to the other driver, so another program may use it since: a desktop
/// that mounts each new disk, or its owner after a run that was killed.
///
/// A disk that cannot be opened for another reason than a claim is not in use.
///
/// Returns the claimed disk; `None` if it is gone.
///
/// # Errors
/// The users; nothing is claimed then.
fn hold(
    system: &System,
    plan: &Plan,
    hands: &mut dyn Hands,
    say: &mut dyn FnMut(&str),
) -> Result<Option<UsbDisk>, Vec<String>> {
    let looks = OPEN.as_millis() / OPEN_LOOK.as_millis();
    let mut look = 0;
    loop {
        let Some(disk) = usb_disk(system, &plan.interface) else { return Ok(None) };
        let (mut users, mut is_lasting) = (Vec::new(), false);
        for name in disk.blocks.iter().map(|block| block.name.as_str()) {
            match who_holds(system, &PathBuf::from(format!("/dev/{name}"))) {
                Ok(holders) => {
                    is_lasting |= holders.found.iter().any(|holder| holder.kind != HolderKind::Claimed);
                    in_use(&mut users, name, &holders, &who_has_open(system, name));
                }
                // It may be disappearing: the next check shows it.
                Err(error) => users.push(format!("the users of {name} cannot be determined: {error}")),
            }
        }
        if users.is_empty() {
            for name in disk.blocks.iter().map(|block| block.name.as_str()) {
                match hands.claim(name) {
                    Ok(()) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                        users.push(format!("another program claimed {name} just now (O_EXCL)"));
                    }
                    Err(error) => say(&format!("{name} could not be claimed: {error}")),
                }
            }
        }
        if users.is_empty() {
            return Ok(Some(disk));
        }
        hands.release();
        look += 1;
        if is_lasting || look >= looks {
            return Err(users);
        }
        hands.pause(OPEN_LOOK);
    }
}

/// Binds the interface to its previous driver again. The disk's present block devices are claimed.
fn undo(
    system: &System,
    state: &SwitchState,
    disk: &UsbDisk,
    hands: &mut dyn Hands,
    say: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let plan = &state.plan;
    let found = disk.usb.transport;
    let current = current_quirks(system)?;
    let is_ours = current == plan.quirks_before || current == plan.quirks_there;
    let wanted = if is_ours { plan.quirks_back.clone() } else { with_own_entry(plan, &current, &plan.quirks_back)? };
    if wanted != current {
        set_quirks(system, &wanted, hands)?;
    }
    for block in &disk.blocks {
        // Removing it flushes its cache. A disk that does not respond is removed as well.
        if let Err(error) = hands.write(&format!("/sys/block/{}/device/delete", block.name), "1") {
            say(&format!("{} could not be removed: {error}", block.name));
        }
    }
    if matches!(found, UsbTransport::Uas | UsbTransport::Bot) {
        bind(&plan.interface, found, DriverFile::Unbind, hands, say)?;
    }
    // The previous disk's name is free again only when no process has it open.
    hands.release();
    if plan.from == UsbTransport::None {
        return Ok(());
    }
    bind(&plan.interface, plan.from, DriverFile::Bind, hands, say).or_else(|error| {
        say(&format!("{error}; letting the kernel choose"));
        hands
            .write("/sys/bus/usb/drivers_probe", &plan.interface)
            .map_err(|other| format!("{error}; and the kernel could not be made to choose: {other}"))
    })
}
