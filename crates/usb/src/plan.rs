//! What a switch would do, or why it is not done: a pure function of facts.
//!
//! Cannot see: whether the disk works on the other transport; that is tried, and undone.

use serde::{Deserialize, Serialize};
use trueio_device::usb::{Decision, quirks};
use trueio_device::{HolderKind, Holders, Openers};
use trueio_model::{UsbAnswer, UsbDisk, UsbTransport};

/// The driver of a transport.
pub(crate) fn driver_of(transport: UsbTransport) -> &'static str {
    match transport {
        UsbTransport::Uas => "uas",
        _ => "usb-storage",
    }
}

/// A block device that goes and must come back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanBlock {
    /// Its kernel name before the switch; it may get another.
    pub name: String,
    /// Its number among the logical units (the last part of `0:0:0:1`).
    pub unit: String,
    /// Its size, in bytes.
    pub size_bytes: Option<u64>,
}

/// A switch that may be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The device (`2-1`).
    pub device: String,
    /// The interface (`2-1:1.0`).
    pub interface: String,
    /// `vendor:product`.
    pub id: String,
    /// The device's serial number, if it has one.
    pub serial: Option<String>,
    /// The transport it is on.
    pub from: UsbTransport,
    /// The transport it shall be on.
    pub to: UsbTransport,
    /// Its block devices.
    pub blocks: Vec<PlanBlock>,
    /// The quirk string as it was, and as it will be again.
    pub quirks_before: String,
    /// The quirk string while the other driver is bound.
    pub quirks_there: String,
    /// The quirk string while the old driver is bound again, should that be needed.
    pub quirks_back: String,
    /// The entry that is set meanwhile; `None` if the kernel chooses the other driver by itself.
    pub entry: Option<String>,
    /// What the user should know before.
    pub warnings: Vec<String>,
}

impl Plan {
    /// What will be done, one sentence a step.
    pub fn steps(&self) -> Vec<String> {
        let names: Vec<&str> = self.blocks.iter().map(|block| block.name.as_str()).collect();
        let names = names.join(", ");
        let mut steps = Vec::new();
        if !self.blocks.is_empty() {
            steps.push(format!(
                "claim {names} (O_EXCL), so that nobody can mount it meanwhile, and read both ends of it"
            ));
            steps.push(format!("flush the cache of {names}"));
        }
        if self.quirks_there != self.quirks_before {
            let was = if self.quirks_before.is_empty() { "empty" } else { &self.quirks_before };
            steps.push(format!("set the quirk string to `{}` (it is {was})", self.quirks_there));
        }
        if !self.blocks.is_empty() {
            steps.push(format!("remove {names} from the kernel, which flushes once more"));
        }
        if self.from != UsbTransport::None {
            steps.push(format!("unbind {} from {}", self.interface, driver_of(self.from)));
        }
        steps.push(format!("bind {} to {}", self.interface, driver_of(self.to)));
        if self.quirks_there != self.quirks_before {
            steps.push("put the quirk string back as it was".to_owned());
        }
        steps.push(
            "wait for the disk, compare its serial number, size and both ends; if it does not come back, bind the old \
             driver again"
                .to_owned(),
        );
        steps
    }
}

/// Why a switch is not done, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Each reason in a sentence; never empty.
    pub reasons: Vec<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.reasons.join("; "))
    }
}

impl std::error::Error for Refusal {}

/// Who uses each of a disk's block devices, in their order.
pub(crate) type Uses = [(Holders, Openers)];

/// Plans the switch of `disk` to `to`.
///
/// # Errors
/// [`Refusal`] with every reason found, so that they can be dealt with together.
pub fn plan(disk: &UsbDisk, to: UsbTransport, decision: &Decision, uses: &Uses) -> Result<Plan, Refusal> {
    let mut reasons = Vec::new();
    let mut hint = None;
    let usb = &disk.usb;
    if usb.transport == to {
        return Err(Refusal { reasons: vec![format!("{} is on {to} already", usb.interface)], hint: None });
    }
    if usb.transport == UsbTransport::Other {
        let driver = usb.driver.value.as_deref().unwrap_or("another driver");
        reasons.push(format!("{} is driven by {driver}, which is not ours to take away", usb.interface));
    }
    offered(&mut reasons, disk, to);
    rules_allow(&mut reasons, &mut hint, decision, to);
    drivers_there(&mut reasons, &mut hint, disk, decision, to);
    for (block, (holders, openers)) in disk.blocks.iter().zip(uses) {
        in_use(&mut reasons, &block.name, holders, openers);
        if let Some(state) = block.state.value.as_deref().filter(|state| *state != "running") {
            reasons.push(format!("{} is {state}: its cache cannot be flushed", block.name));
            hint.get_or_insert_with(|| "plug the disk in again first".to_owned());
        }
    }
    if hint.is_none() && !reasons.is_empty() && uses.iter().any(|(h, o)| !h.found.is_empty() || !o.found.is_empty()) {
        hint = Some("unmount it, or end what uses it, and try again".to_owned());
    }
    if usb.id.value.as_deref() == Some("f400:f400") {
        reasons.push("f400:f400 is the stick that a Synology starts from".to_owned());
    }
    match strings(disk, to, decision) {
        Ok((there, back, entry)) if reasons.is_empty() => {
            Ok(complete(disk, to, decision, Strings { there, back, entry }, uses))
        }
        Ok(_) => Err(Refusal { reasons, hint }),
        Err(reason) => {
            reasons.push(reason);
            Err(Refusal { reasons, hint })
        }
    }
}

struct Strings {
    there: String,
    back: String,
    entry: Option<String>,
}

fn complete(disk: &UsbDisk, to: UsbTransport, decision: &Decision, strings: Strings, uses: &Uses) -> Plan {
    let mut warnings = Vec::new();
    let unseen = uses.iter().flat_map(|(holders, openers)| holders.unseen.iter().chain(&openers.unseen));
    for sentence in unseen {
        if !warnings.contains(sentence) {
            warnings.push(sentence.clone());
        }
    }
    let flags = if to == UsbTransport::Uas { &decision.uas_flags } else { &decision.storage_flags };
    if strings.entry.is_some() && flags.built_in.value.is_none() {
        warnings.push(format!(
            "the entry may take away flags that the kernel sets for this device: the table could not be read ({})",
            flags.built_in.source
        ));
    }
    let barred = ["built_in_table", "asmedia", "hiksemi"];
    let forbids =
        |name: &&str| decision.rules.iter().any(|rule| rule.name == **name && rule.answer == UsbAnswer::Forbids);
    if to == UsbTransport::Uas && barred.iter().any(forbids) {
        warnings.push(
            "the kernel bars this device from UAS because such devices lost data or hung; have a backup".to_owned(),
        );
    }
    let unit = |address: &str| address.rsplit(':').next().unwrap_or_default().to_owned();
    Plan {
        device: disk.usb.device.clone(),
        interface: disk.usb.interface.clone(),
        id: disk.usb.id.value.clone().unwrap_or_default(),
        serial: disk.usb.serial.value.clone(),
        from: disk.usb.transport,
        to,
        blocks: disk
            .blocks
            .iter()
            .map(|block| PlanBlock {
                name: block.name.clone(),
                unit: unit(&block.address),
                size_bytes: block.size_bytes.value,
            })
            .collect(),
        quirks_before: decision.quirks.value.clone().unwrap_or_default(),
        quirks_there: strings.there,
        quirks_back: strings.back,
        entry: strings.entry,
        warnings,
    }
}

fn offered(reasons: &mut Vec<String>, disk: &UsbDisk, to: UsbTransport) {
    let is_offered = if to == UsbTransport::Uas { disk.usb.offers_uas() } else { disk.usb.offers_bot() };
    match is_offered {
        Some(true) => {}
        Some(false) => reasons.push(format!("the device does not offer {to}")),
        None => reasons.push(format!("what the device offers is not known: {}", disk.usb.offers.source)),
    }
}

/// Rules that no quirk can change.
fn rules_allow(reasons: &mut Vec<String>, hint: &mut Option<String>, decision: &Decision, to: UsbTransport) {
    let forbidden = |names: &[&str]| {
        let rule =
            decision.rules.iter().find(|rule| rule.answer == UsbAnswer::Forbids && names.contains(&rule.name.as_str()));
        rule.map(|rule| rule.fact.clone())
    };
    if let Some(fact) = forbidden(&["authorized"]) {
        reasons.push(fact);
    }
    if to != UsbTransport::Uas {
        return;
    }
    if let Some(fact) = forbidden(&["kernel_without_uas", "synology", "scatter_gather", "streams"]) {
        reasons.push(format!("no quirk helps: {fact}"));
        hint.get_or_insert_with(|| "`trueio usb explain` says what would".to_owned());
    }
}

/// Both drivers: the one to go to, and the one to come back to.
fn drivers_there(
    reasons: &mut Vec<String>,
    hint: &mut Option<String>,
    disk: &UsbDisk,
    decision: &Decision,
    to: UsbTransport,
) {
    let there = |transport: UsbTransport| match transport {
        UsbTransport::Uas => decision.uas.is_loaded || decision.uas.is_built_in,
        UsbTransport::Bot => decision.storage.is_loaded || decision.storage.is_built_in,
        _ => true,
    };
    if !there(to) {
        let driver = driver_of(to);
        reasons.push(format!("the driver {driver} is not in the kernel"));
        hint.get_or_insert_with(|| format!("`modprobe {driver}` loads it, if it is installed"));
    }
    if !there(disk.usb.transport) {
        let driver = driver_of(disk.usb.transport);
        reasons.push(format!("there is no way back: the driver {driver} is not in the kernel"));
    }
    if decision.quirks.value.is_none() {
        reasons.push(format!("there is no way to tell the kernel what to choose: {}", decision.quirks.source));
    }
}

/// Who uses a block device, a sentence each.
pub(crate) fn in_use(reasons: &mut Vec<String>, name: &str, holders: &Holders, openers: &Openers) {
    let mut is_claimed = false;
    let mut is_named = false;
    for holder in &holders.found {
        let device = &holder.device;
        is_named |= holder.kind != HolderKind::Claimed;
        match &holder.kind {
            HolderKind::Mounted { mount_point, process } => {
                reasons.push(format!("{device} is mounted at {mount_point} (seen by process {process})"));
            }
            HolderKind::Member { of } => reasons.push(format!("{device} is part of the mounted {of}")),
            HolderKind::Swap => reasons.push(format!("{device} is swap")),
            HolderKind::Stacked { by } => reasons.push(format!("{by} stands on {device}")),
            HolderKind::Claimed => is_claimed = true,
        }
    }
    for opener in &openers.found {
        is_named = true;
        reasons.push(format!("{} is open in process {} ({})", opener.device, opener.process, opener.name));
    }
    if is_claimed && !is_named {
        reasons.push(format!("somebody holds {name} for himself alone (O_EXCL), and it is not seen who"));
    }
}

/// The entry that keeps a disk on a transport over a restart; `None` if the kernel chooses it by
/// itself, so that no entry must stand.
///
/// Asked of the rules without the user's entry: what is kept must not rest on what it replaces.
pub fn entry_to_keep(disk: &UsbDisk, to: UsbTransport, decision: &Decision) -> Option<String> {
    let (vendor, product) = ids(disk)?;
    let built_in = |flags: &trueio_device::usb::FlagsInForce| flags.built_in.value.unwrap_or(0) | flags.thumb;
    let flags = if to == UsbTransport::Uas { built_in(&decision.uas_flags) } else { built_in(&decision.storage_flags) };
    let is_barred = (built_in(&decision.uas_flags) | built_in(&decision.storage_flags)) & quirks::IGNORE_UAS != 0;
    match to {
        UsbTransport::Uas => is_barred.then(|| quirks::entry_for(vendor, product, flags, false)),
        _ => (!is_barred).then(|| quirks::entry_for(vendor, product, flags, true)),
    }
}

fn ids(disk: &UsbDisk) -> Option<(u16, u16)> {
    let (vendor, product) = disk.usb.id.value.as_deref()?.split_once(':')?;
    Some((u16::from_str_radix(vendor, 16).ok()?, u16::from_str_radix(product, 16).ok()?))
}

/// The quirk strings there and back, and the entry that is set meanwhile.
fn strings(disk: &UsbDisk, to: UsbTransport, decision: &Decision) -> Result<(String, String, Option<String>), String> {
    let before = decision.quirks.value.clone().unwrap_or_default();
    let Some((vendor, product)) = ids(disk) else {
        return Err(format!("vendor and product are not known: {}", disk.usb.id.source));
    };
    let with = |entry: &str| quirks::with_entry(&before, vendor, product, entry).map_err(|error| error.to_string());
    let entry = entry_for(to, decision, vendor, product);
    let there = entry.as_deref().map_or_else(|| Ok(before.clone()), with)?;
    let back = match disk.usb.transport {
        UsbTransport::Uas | UsbTransport::Bot => entry_for(disk.usb.transport, decision, vendor, product)
            .as_deref()
            .map_or_else(|| Ok(before.clone()), with)
            .map_err(|error| format!("there is no way back: {error}"))?,
        _ => before,
    };
    Ok((there, back, entry))
}

/// The entry that makes the kernel choose a transport; `None` if it does so by itself.
///
/// `usb-storage` leaves every disk alone that `uas` would take, so BOT needs the flag `u` unless a
/// rule forbids UAS anyhow. UAS needs an entry where a flag forbids it.
fn entry_for(to: UsbTransport, decision: &Decision, vendor: u16, product: u16) -> Option<String> {
    let forbids = |names: &[&str]| {
        decision.rules.iter().any(|rule| rule.answer == UsbAnswer::Forbids && names.contains(&rule.name.as_str()))
    };
    if to == UsbTransport::Uas {
        let is_ignored = match decision.uas_flags.flags {
            Some(flags) => flags & quirks::IGNORE_UAS != 0,
            None => forbids(&["built_in_table", "asmedia", "hiksemi", "user_quirk"]),
        };
        return is_ignored.then(|| quirks::entry_for(vendor, product, decision.uas_flags.flags.unwrap_or(0), false));
    }
    let is_barred = forbids(&["kernel_without_uas", "synology", "scatter_gather", "streams"])
        || decision.storage_flags.flags.is_some_and(|flags| flags & quirks::IGNORE_UAS != 0);
    (!is_barred).then(|| quirks::entry_for(vendor, product, decision.storage_flags.flags.unwrap_or(0), true))
}
