//! Does what was planned, step by step, and undoes it when the disk does not come back.
//!
//! Cannot see: whether a disk that is silent will answer later. It is given [`Hands::wait`], usually more
//! than `usb-storage` waits before it looks (`delay_use`, 1 s) and a disk needs to spin up.

use crate::hands::Hands;
use crate::plan::{Plan, driver_of, in_use};
use crate::state::{State, Step};
use std::path::PathBuf;
use std::time::Duration;
use trueio_device::usb::{QUIRKS, quirks, usb_disk};
use trueio_device::{HolderKind, System, who_has_open, who_holds};
use trueio_model::{UsbDisk, UsbTransport};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// How long a disk may be open before it counts as used: whatever looks at each new disk (udev) is done by then.
const OPEN: Duration = Duration::from_secs(5);
/// Between two looks at who has it open.
const OPEN_LOOK: Duration = Duration::from_millis(500);

/// How a switch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The disk is on the other transport, and is the same.
    Switched {
        /// Its block devices now.
        blocks: Vec<String>,
    },
    /// It could not be done; nothing was touched.
    NotStarted {
        /// Why.
        reason: String,
    },
    /// It could not be done; the disk is on its old transport again, and is the same.
    RolledBack {
        /// Why.
        reason: String,
        /// Its block devices now.
        blocks: Vec<String>,
    },
    /// The disk was unplugged meanwhile. The quirk string is as it was.
    Unplugged {
        /// When, and what it means.
        reason: String,
    },
    /// It should be undone, and somebody uses the disk meanwhile: it was left as it is. The state is kept; the next run
    /// tries again.
    InUse {
        /// Why it should be undone.
        reason: String,
        /// Who uses it, a sentence each; never empty.
        users: Vec<String>,
        /// The transport that it is on.
        on: UsbTransport,
    },
    /// The disk is on neither transport. The state is kept; the next run tries again.
    Lost {
        /// Why.
        reason: String,
        /// Why it did not come back.
        back: String,
    },
}

/// Does `plan`. `earlier` is what is noted of this interface ([`crate::pending`]). `say` is told each step before it is
/// taken.
pub fn execute(
    system: &System,
    plan: Plan,
    earlier: Option<State>,
    hands: &mut dyn Hands,
    say: &mut dyn FnMut(&str),
) -> Outcome {
    let mut state = State::new(plan, earlier);
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

/// Finishes or undoes a switch that was interrupted: what sysfs shows decides which.
pub fn resume(system: &System, mut state: State, hands: &mut dyn Hands, say: &mut dyn FnMut(&str)) -> Outcome {
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
        let reason = format!("another disk is in {} now ({other}); it was left alone", plan.device);
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
    let reason = format!("it was interrupted at {}", state.step.words());
    roll_back(system, &mut state, reason, hands, say)
}

/// Everything that can fail while nothing is touched yet.
fn prepare(state: &mut State, hands: &mut dyn Hands, say: &mut dyn FnMut(&str)) -> Result<(), String> {
    let blocks = state.plan.blocks.clone();
    for block in &blocks {
        let name = &block.name;
        say(&format!("claiming {name} and flushing its cache"));
        hands.claim(name).map_err(|error| format!("{name} cannot be claimed: {error}"))?;
        hands.flush(name).map_err(|error| format!("the cache of {name} cannot be flushed: {error}"))?;
        let ends = hands.ends(name).map_err(|error| format!("{name} cannot be read: {error}"))?;
        state.ends.push(ends);
    }
    hands.save(state).map_err(|error| format!("where the switch stands cannot be written down: {error}"))
}

fn forward(
    system: &System,
    state: &mut State,
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
        bind(&plan.interface, plan.from, "unbind", hands, say)?;
    }
    // The old disk's name is free again only when nobody has it open.
    hands.release();
    begin(state, Step::Bind, hands, say);
    bind(&plan.interface, plan.to, "bind", hands, say)?;
    begin(state, Step::Restore, hands, say);
    restore_quirks(system, &plan, hands, say);
    begin(state, Step::Wait, hands, say);
    returned(system, state, plan.to, hands, &mut Err)
}

fn begin(state: &mut State, step: Step, hands: &mut dyn Hands, say: &mut dyn FnMut(&str)) {
    state.step = step;
    save(state, hands, say);
}

/// A state that cannot be written in the middle must not stop the way to its end.
fn save(state: &State, hands: &mut dyn Hands, say: &mut dyn FnMut(&str)) {
    if let Err(error) = hands.save(state) {
        say(&format!("where the switch stands could not be written down: {error}"));
    }
}

fn clear(plan: &Plan, hands: &mut dyn Hands, say: &mut dyn FnMut(&str)) {
    if let Err(error) = hands.clear(&plan.interface) {
        say(&format!("the note of this switch could not be removed: {error}"));
    }
}

fn bind(
    interface: &str,
    transport: UsbTransport,
    verb: &str,
    hands: &mut dyn Hands,
    say: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let driver = driver_of(transport);
    let (doing, done) = if verb == "bind" { ("binding", "bound to") } else { ("unbinding", "unbound from") };
    say(&format!("{doing} {interface}: {driver}"));
    let path = format!("/sys/bus/usb/drivers/{driver}/{verb}");
    hands.write(&path, interface).map_err(|error| format!("{interface} could not be {done} {driver}: {error}"))
}

/// The quirk string in force.
fn current_quirks(system: &System) -> Result<String, String> {
    std::fs::read_to_string(system.locate(QUIRKS))
        .map(|text| text.trim_matches(['\0', '\n', ' ']).to_owned())
        .map_err(|error| format!("{QUIRKS} cannot be read: {error}"))
}

fn set_quirks(system: &System, text: &str, hands: &mut dyn Hands) -> Result<(), String> {
    hands.write(QUIRKS, text).map_err(|error| format!("the quirk string cannot be set to `{text}`: {error}"))?;
    let found = current_quirks(system)?;
    if found == text { Ok(()) } else { Err(format!("the quirk string is `{found}` after `{text}` was written")) }
}

/// Puts the quirk string back. If somebody else changed it meanwhile, only this device's entry is
/// put back.
fn restore_quirks(system: &System, plan: &Plan, hands: &mut dyn Hands, say: &mut dyn FnMut(&str)) {
    let result = current_quirks(system).and_then(|current| {
        if current == plan.quirks_before {
            return Ok(());
        }
        let wanted = if current == plan.quirks_there || current == plan.quirks_back {
            plan.quirks_before.clone()
        } else {
            say("somebody else changed the quirk string meanwhile: only this device's entry is put back");
            with_own_entry(plan, &current, &plan.quirks_before)?
        };
        set_quirks(system, &wanted, hands)
    });
    if let Err(error) = result {
        say(&format!("the quirk string could not be put back to `{}`: {error}", plan.quirks_before));
    }
}

/// `current` with this device's entry as it stands in `reference`.
fn with_own_entry(plan: &Plan, current: &str, reference: &str) -> Result<String, String> {
    let parse = |text: &str| u16::from_str_radix(text, 16).ok();
    let ids = plan.id.split_once(':').and_then(|(v, p)| Some((parse(v)?, parse(p)?)));
    let Some((vendor, product)) = ids else { return Err(format!("`{}` is no id", plan.id)) };
    match quirks::entry_letters(reference, vendor, product) {
        None => Ok(quirks::without_entry(current, vendor, product)),
        Some(letters) => quirks::with_entry(current, vendor, product, &format!("{}:{letters}", plan.id))
            .map_err(|error| error.to_string()),
    }
}

/// Serial number and numbers are the same; else what is found.
fn is_same_device(plan: &Plan, disk: &UsbDisk) -> Result<(), String> {
    let id = disk.usb.id.value.clone().unwrap_or_default();
    if id == plan.id && disk.usb.serial.value == plan.serial {
        return Ok(());
    }
    Err(format!("{id} serial {}", disk.usb.serial.value.as_deref().unwrap_or("none")))
}

/// Waits until the disk is back on `transport`, and compares it with what it was. `differs` is told of other bytes at its
/// ends.
fn returned(
    system: &System,
    state: &State,
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
    Err(format!("the disk did not come back: {last}"))
}

/// The same sizes and the same bytes at both ends, unit by unit.
fn compared(
    state: &State,
    disk: &UsbDisk,
    hands: &mut dyn Hands,
    differs: &mut dyn FnMut(String) -> Result<(), String>,
) -> Result<Vec<String>, String> {
    let unit = |address: &str| address.rsplit(':').next().unwrap_or_default().to_owned();
    for (block, ends) in state.plan.blocks.iter().zip(&state.ends) {
        let Some(now) = disk.blocks.iter().find(|now| unit(&now.address) == block.unit) else {
            return Err(format!("the logical unit {} ({}) did not come back", block.unit, block.name));
        };
        if now.size_bytes.value != block.size_bytes {
            return Err(format!("{} has {:?} bytes, and had {:?}", now.name, now.size_bytes.value, block.size_bytes));
        }
        let found = hands.ends(&now.name).map_err(|error| format!("{} cannot be read: {error}", now.name))?;
        if found != *ends {
            differs(format!("{} reads differently at its ends than {} did before", now.name, block.name))?;
        }
    }
    Ok(disk.blocks.iter().map(|block| block.name.clone()).collect())
}

fn roll_back(
    system: &System,
    state: &mut State,
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
            "{} was unplugged at {when}; plugged in again it runs on what the kernel's rules choose ({reason})",
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
            // It is where it was, whoever wrote to it meanwhile.
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

/// The disk is where it was, with all of its units.
fn is_undone(plan: &Plan, disk: &UsbDisk) -> bool {
    disk.usb.transport == plan.from && disk.blocks.len() >= plan.blocks.len()
}

/// Claims what is there of the disk, so that it may be taken away and nobody mounts it meanwhile. It was given free when
/// it went to the other driver, and who found it since may use it: a desktop that mounts what it finds, or its owner after
/// a run that was killed.
///
/// A disk that cannot be opened, for another reason than that somebody has claimed it, is not in use.
///
/// Gives the disk as it was claimed; `None`: it is gone.
///
/// # Errors
/// Who uses it; nothing is claimed then.
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
                // It may be going just now: the next look tells.
                Err(error) => users.push(format!("who uses {name} cannot be asked: {error}")),
            }
        }
        if users.is_empty() {
            for name in disk.blocks.iter().map(|block| block.name.as_str()) {
                match hands.claim(name) {
                    Ok(()) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                        users.push(format!("somebody claimed {name} just now (O_EXCL)"));
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

/// Gives the interface back to the driver that it had. What is there of the disk is claimed.
fn undo(
    system: &System,
    state: &State,
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
        // So that what is in its cache is flushed; a disk that does not answer is taken away anyhow.
        if let Err(error) = hands.write(&format!("/sys/block/{}/device/delete", block.name), "1") {
            say(&format!("{} could not be removed: {error}", block.name));
        }
    }
    if matches!(found, UsbTransport::Uas | UsbTransport::Bot) {
        bind(&plan.interface, found, "unbind", hands, say)?;
    }
    // The old disk's name is free again only when nobody has it open.
    hands.release();
    if plan.from == UsbTransport::None {
        return Ok(());
    }
    bind(&plan.interface, plan.from, "bind", hands, say).or_else(|error| {
        say(&format!("{error}; letting the kernel choose"));
        hands
            .write("/sys/bus/usb/drivers_probe", &plan.interface)
            .map_err(|other| format!("{error}; and the kernel was not asked to choose: {other}"))
    })
}
