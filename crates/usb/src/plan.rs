//! Plans a switch, or returns the reasons why it is refused: a pure function of facts.
//!
//! Cannot see: whether the disk works on the other transport. The switch tries it, and undoes it if it fails.

use serde::{Deserialize, Serialize};
use trueio_device::usb::{Decision, quirks};
use trueio_device::{HolderKind, Holders, Openers};
use trueio_model::{UsbAnswer, UsbDisk, UsbRuleName as Rule, UsbTransport};

/// Returns the driver of a transport.
pub(crate) fn driver_of(transport: UsbTransport) -> &'static str {
    match transport {
        UsbTransport::Uas => "uas",
        _ => "usb-storage",
    }
}

/// A block device that is removed and must return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanBlock {
    /// Its kernel name before the switch; it may get another.
    pub name: String,
    /// Its number among the logical units (the last part of `0:0:0:1`).
    pub unit: String,
    /// Its size, in bytes.
    pub size_bytes: Option<u64>,
}

/// A switch that is allowed.
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
    /// The present transport.
    pub from: UsbTransport,
    /// The requested transport.
    pub to: UsbTransport,
    /// Its block devices.
    pub blocks: Vec<PlanBlock>,
    /// The quirk string before and after the switch.
    pub quirks_before: String,
    /// The quirk string while the other driver is bound.
    pub quirks_there: String,
    /// The quirk string while the previous driver is bound again, if the switch is undone.
    pub quirks_back: String,
    /// The entry that is set during the switch; `None` if the kernel chooses the other driver without one.
    pub entry: Option<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl Plan {
    /// Returns the steps, one sentence each.
    pub fn steps(&self) -> Vec<String> {
        let names: Vec<&str> = self.blocks.iter().map(|block| block.name.as_str()).collect();
        let names = names.join(", ");
        let mut steps = Vec::new();
        if !self.blocks.is_empty() {
            steps.push(format!(
                "claim {names} (O_EXCL), so that it cannot be mounted meanwhile, and read both its ends"
            ));
            steps.push(format!("flush the cache of {names}"));
        }
        if self.quirks_there != self.quirks_before {
            let was = match self.quirks_before.as_str() {
                "" => "empty".to_owned(),
                text => format!("`{}`", text.escape_debug()),
            };
            steps.push(format!("set the quirk string to `{}` (it is {was})", self.quirks_there.escape_debug()));
        }
        if !self.blocks.is_empty() {
            steps.push(format!("remove {names} from the kernel, which flushes once more"));
        }
        if self.from != UsbTransport::None {
            steps.push(format!("unbind {} from {}", self.interface, driver_of(self.from)));
        }
        steps.push(format!("bind {} to {}", self.interface, driver_of(self.to)));
        if self.quirks_there != self.quirks_before {
            steps.push("restore the quirk string".to_owned());
        }
        steps.push(
            "wait for the disk, compare its serial number, size and both ends; if it does not return, bind the previous \
             driver again"
                .to_owned(),
        );
        steps
    }
}

/// The reasons why a switch is refused, and a remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Each reason in a sentence; never empty.
    pub reasons: Vec<String>,
    /// The remedy.
    pub hint: Option<String>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.reasons.join("; "))
    }
}

impl std::error::Error for Refusal {}

/// The holders and openers of each of a disk's block devices, in the same order.
pub(crate) type Uses = [(Holders, Openers)];

/// Plans the switch of `disk` to `to`.
///
/// # Errors
/// [`Refusal`] with every reason, so that the user can resolve them together.
pub fn plan(disk: &UsbDisk, to: UsbTransport, decision: &Decision, uses: &Uses) -> Result<Plan, Refusal> {
    let mut reasons = Vec::new();
    let mut hint = None;
    let usb = &disk.usb;
    if usb.transport == to {
        return Err(Refusal { reasons: vec![format!("{} is already on {to}", usb.interface)], hint: None });
    }
    if usb.transport == UsbTransport::Other {
        let driver = usb.driver.value.as_deref().unwrap_or("another driver");
        reasons.push(format!("{} is bound to {driver}, which this command does not unbind", usb.interface));
    }
    offered(&mut reasons, disk, to);
    rules_allow(&mut reasons, &mut hint, decision, to);
    drivers_there(&mut reasons, &mut hint, disk, decision, to);
    for (block, (holders, openers)) in disk.blocks.iter().zip(uses) {
        in_use(&mut reasons, &block.name, holders, openers);
        if let Some(state) = block.abnormal_state() {
            reasons.push(format!("{} is {state}: its cache cannot be flushed", block.name));
            hint.get_or_insert_with(|| "unplug the disk and plug it in again first".to_owned());
        }
    }
    if hint.is_none() && !reasons.is_empty() && uses.iter().any(|(h, o)| !h.found.is_empty() || !o.found.is_empty()) {
        hint = Some("unmount it, or end the program that uses it, and try again".to_owned());
    }
    if usb.id.value.as_deref() == Some("f400:f400") {
        reasons.push("f400:f400 is the boot stick of a Synology NAS".to_owned());
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
            "the entry may remove flags that the kernel sets for this device, because its table could not be read ({})",
            flags.built_in.source
        ));
    }
    if to == UsbTransport::Uas && decision.forbids(&[Rule::BuiltInTable, Rule::Asmedia, Rule::Hiksemi]) {
        warnings.push(
            "the kernel disables UAS for this device because such devices lost data or hung; make a backup first"
                .to_owned(),
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
        None => reasons.push(format!("it is unknown what the device offers: {}", disk.usb.offers.source)),
    }
}

/// The rules that no quirk can change.
const NOT_BY_FLAG: [Rule; 4] = [Rule::KernelWithoutUas, Rule::Synology, Rule::ScatterGather, Rule::Streams];

/// Refuses a switch that a rule forbids and no quirk can enable.
fn rules_allow(reasons: &mut Vec<String>, hint: &mut Option<String>, decision: &Decision, to: UsbTransport) {
    let forbidden = |names: &[Rule]| {
        let rule = decision.rules.iter().find(|rule| rule.answer == UsbAnswer::Forbids && names.contains(&rule.name));
        rule.map(|rule| rule.fact.clone())
    };
    if let Some(fact) = forbidden(&[Rule::Authorized]) {
        reasons.push(fact);
    }
    if to != UsbTransport::Uas {
        return;
    }
    if let Some(fact) = forbidden(&NOT_BY_FLAG).or_else(|| forbidden(&[Rule::DeviceStreams])) {
        reasons.push(format!("no quirk helps: {fact}"));
        hint.get_or_insert_with(|| "`trueio usb explain` lists possible changes".to_owned());
    }
}

/// Checks both drivers: the requested one, and the present one for undoing.
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
        reasons.push(format!("the driver {driver} is not loaded"));
        hint.get_or_insert_with(|| format!("`modprobe {driver}` loads it, if it is installed"));
    }
    if !there(disk.usb.transport) {
        let driver = driver_of(disk.usb.transport);
        reasons.push(format!("the switch could not be undone: the driver {driver} is not loaded"));
    }
    if decision.quirks.value.is_none() {
        reasons.push(format!("the kernel's choice of driver cannot be changed: {}", decision.quirks.source));
    }
}

/// Returns the users of a block device, one sentence each.
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
            HolderKind::Stacked { by } => reasons.push(format!("{by} is stacked on {device}")),
            HolderKind::Twin { by } => reasons.push(format!("{by} has the same file as {device}")),
            HolderKind::Claimed => is_claimed = true,
            HolderKind::OpenForWriting { program, process } => {
                reasons.push(format!("{device} is open for writing in {program} (process {process})"));
            }
            HolderKind::Unnamed => reasons.push(format!("{device} is in use by the kernel")),
        }
    }
    for opener in &openers.found {
        is_named = true;
        reasons.push(format!("{} is open in process {} ({})", opener.device, opener.process, opener.name));
    }
    if is_claimed && !is_named {
        reasons.push(format!("another program has claimed {name} (O_EXCL), and it cannot be identified"));
    }
}

/// Returns the entry that keeps a disk on a transport across restarts; `None` if the kernel chooses it
/// without one.
///
/// Evaluates the rules without the user's entry, because the kept entry replaces it.
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

/// Returns both quirk strings and the entry that is set during the switch.
fn strings(disk: &UsbDisk, to: UsbTransport, decision: &Decision) -> Result<(String, String, Option<String>), String> {
    let before = decision.quirks.value.clone().unwrap_or_default();
    let Some((vendor, product)) = ids(disk) else {
        return Err(format!("vendor and product are unknown: {}", disk.usb.id.source));
    };
    let with = |entry: &str| quirks::with_entry(&before, vendor, product, entry).map_err(|error| error.to_string());
    let entry = entry_for(to, decision, vendor, product);
    let there = entry.as_deref().map_or_else(|| Ok(before.clone()), with)?;
    let back = match disk.usb.transport {
        UsbTransport::Uas | UsbTransport::Bot => entry_for(disk.usb.transport, decision, vendor, product)
            .as_deref()
            .map_or_else(|| Ok(before.clone()), with)
            .map_err(|error| format!("the switch could not be undone: {error}"))?,
        _ => before,
    };
    Ok((there, back, entry))
}

/// Returns the entry that makes the kernel choose a transport; `None` if it does so without one.
///
/// `usb-storage` ignores every disk that `uas` supports, so BOT needs the flag `u` unless a rule forbids UAS
/// already. UAS needs an entry if a flag forbids it.
fn entry_for(to: UsbTransport, decision: &Decision, vendor: u16, product: u16) -> Option<String> {
    if to == UsbTransport::Uas {
        let is_ignored = match decision.uas_flags.flags {
            Some(flags) => flags & quirks::IGNORE_UAS != 0,
            None => decision.forbids(&[Rule::BuiltInTable, Rule::Asmedia, Rule::Hiksemi, Rule::UserQuirk]),
        };
        return is_ignored.then(|| quirks::entry_for(vendor, product, decision.uas_flags.flags.unwrap_or(0), false));
    }
    let is_barred = decision.forbids(&NOT_BY_FLAG)
        || decision.storage_flags.flags.is_some_and(|flags| flags & quirks::IGNORE_UAS != 0);
    (!is_barred).then(|| quirks::entry_for(vendor, product, decision.storage_flags.flags.unwrap_or(0), true))
}
