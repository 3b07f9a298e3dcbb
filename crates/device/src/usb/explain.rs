//! Explains why a USB disk runs on its present transport, what that costs, and what can be changed.
//!
//! Turns the result of [`super::decide`] into sentences and commands. Advice concerns this disk only and includes the
//! undo. Blacklisting the module `uas` is never advised: `usb-storage` still leaves the disk to it, and the disk is then
//! without a driver.
//!
//! Cannot see: whether a change is worth it; `trueio study usb-transport` measures that.

use super::bridges;
use super::decision::{Decision, QUIRKS, decide, unauthorized_names};
use super::disks::{DEVICES, SUPERSPEED_MBIT_PER_S};
use super::kernel_log::{kernel_log, troubles};
use super::quirks;
use super::user_space::driver_flags;
use crate::disk::disk_facts;
use crate::system::System;
use trueio_model::{UsbAnswer, UsbDisk, UsbExplanation, UsbReport, UsbRuleName as Rule, UsbTransport, UsbWay};

/// The file that keeps a quirk over a restart.
pub const PERSIST_FILE: &str = "/etc/modprobe.d/trueio-usb.conf";

/// Explains one disk of a report.
pub fn explain(system: &System, report: &UsbReport, disk: &UsbDisk) -> UsbExplanation {
    let log = kernel_log(system);
    let decision = decide(system, report, disk, log.as_deref().ok());
    let kept = kept_entry(system, disk);
    let mut unseen = Vec::new();
    if let Err(why) = &log {
        unseen.push(format!("resets, timeouts and aborts: {why}"));
    }
    for rule in decision.rules.iter().filter(|rule| rule.answer == UsbAnswer::NotSeen) {
        unseen.push(format!("{} ({})", rule.fact, rule.source));
    }
    UsbExplanation {
        disk: disk.clone(),
        expected: decision.expected,
        decided_by: decision.decided_by,
        conclusion: conclusion(disk, &decision),
        troubles: log.as_deref().map(|log| troubles(log, disk)).unwrap_or_default(),
        notes: notes(disk, &decision).into_iter().chain(kept.as_deref().map(kept_note)).collect(),
        hidden: hidden(system, disk),
        ways: ways(system, disk, &decision, kept.as_deref()),
        unseen,
        rules: decision.rules,
    }
}

/// Returns the names of the disk's block devices, or of its interface if there are none.
fn name(disk: &UsbDisk) -> String {
    let names: Vec<&str> = disk.blocks.iter().map(|block| block.name.as_str()).collect();
    if names.is_empty() { disk.usb.interface.clone() } else { names.join(", ") }
}

fn runs(transport: UsbTransport) -> String {
    match transport {
        UsbTransport::None => "has no driver".to_owned(),
        UsbTransport::Other => "is driven by another driver".to_owned(),
        known => format!("runs on {known}"),
    }
}

fn conclusion(disk: &UsbDisk, decision: &Decision) -> String {
    let name = name(disk);
    let found = disk.usb.transport;
    let rule = |name: Rule| decision.rules.iter().find(|rule| rule.name == name).map(|rule| rule.fact.clone());
    let because = decision.decided_by.and_then(rule);
    let Some(expected) = decision.expected else {
        let missing = because.unwrap_or_else(|| "a fact".to_owned());
        return format!("{name} {}; the reason cannot be determined without this fact: {missing}.", runs(found));
    };
    if expected == found {
        return match because {
            Some(fact) => format!("{name} {} because {}.", runs(found), fact.trim_end_matches('.')),
            None => format!("{name} {}: no rule of the kernel forbids it.", runs(found)),
        };
    }
    let should = match because {
        Some(fact) => format!("{} ({fact})", what(expected)),
        None => what(expected).to_owned(),
    };
    format!(
        "{name} {}, but the kernel's rules lead to {should}. The kernel evaluates the rules when it probes the \
         interface: since then a quirk was changed, or the driver was bound by hand. Unplug the disk and plug it in \
         again to apply the rules.",
        runs(found)
    )
}

fn what(transport: UsbTransport) -> &'static str {
    match transport {
        UsbTransport::Uas => "UAS",
        UsbTransport::Bot => "BOT",
        UsbTransport::None => "no driver at all",
        UsbTransport::Other => "another driver",
    }
}

fn ids(disk: &UsbDisk) -> Option<(u16, u16)> {
    let (vendor, product) = disk.usb.id.value.as_deref()?.split_once(':')?;
    Some((u16::from_str_radix(vendor, 16).ok()?, u16::from_str_radix(product, 16).ok()?))
}

fn notes(disk: &UsbDisk, decision: &Decision) -> Vec<String> {
    let usb = &disk.usb;
    let mut notes = Vec::new();
    if let Some((vendor, product)) = ids(disk) {
        notes.extend(bridges::notes(vendor, product).into_iter().map(str::to_owned));
    }
    let link = usb.link_mbit_per_s.value.unwrap_or(f64::INFINITY);
    if link < SUPERSPEED_MBIT_PER_S {
        let port = usb.port_mbit_per_s.value;
        let where_to = match port {
            Some(port) if port >= SUPERSPEED_MBIT_PER_S => {
                "its port can do USB 3, too: try another cable, or plug it in again"
            }
            _ => "its port is USB 2: use a port that can do USB 3",
        };
        match usb.can_superspeed.value {
            Some(true) => notes.push(format!("a USB 3 disk on a link of {link} Mbit/s: {where_to}")),
            None if usb.speaks_as_superspeed() => notes.push(format!(
                "on a link of {link} Mbit/s it reports USB {}, as USB 3 disks do, so it probably is one (this kernel does \
                 not provide the capability descriptors that would prove it): {where_to}",
                usb.usb_version.value.as_deref().unwrap_or_default()
            )),
            None => notes.push(format!(
                "a link of {link} Mbit/s; this kernel does not show whether it is a USB 3 disk: if it is, {where_to}"
            )),
            Some(false) => {}
        }
    }
    let flags = match usb.transport {
        UsbTransport::Uas => decision.uas_flags.flags,
        _ => decision.storage_flags.flags,
    };
    for meaning in quirks::meanings(flags.unwrap_or(0) & !quirks::IGNORE_UAS) {
        notes.push(format!("the driver works around a defect of this device: {meaning}"));
    }
    for block in &disk.blocks {
        let value = |fact: &trueio_model::Fact<u64>| fact.value.unwrap_or(0);
        if value(&block.timeout_count) > 0 {
            notes.push(format!(
                "{}: {} of {} commands timed out",
                block.name,
                value(&block.timeout_count),
                value(&block.done_count)
            ));
        }
        if let Some(state) = block.abnormal_state() {
            notes.push(format!("{} is {state}: the kernel gave it up; plug it in again", block.name));
        }
    }
    notes
}

/// Returns the facts that BOT hides or falsifies: on BOT, Linux does not read the SCSI pages that contain them.
fn hidden(system: &System, disk: &UsbDisk) -> Vec<String> {
    if disk.usb.transport != UsbTransport::Bot {
        return Vec::new();
    }
    let mut hidden = Vec::new();
    for block in &disk.blocks {
        let Some(facts) = disk_facts(system, &block.name) else { continue };
        let name = &block.name;
        if facts.is_rotational.value == Some(true) {
            hidden.push(format!("{name} is marked as rotational; on BOT the kernel marks every disk so, even an SSD"));
        }
        if facts.physical_sector_bytes.value == facts.logical_sector_bytes.value
            && let Some(bytes) = facts.physical_sector_bytes.value
        {
            hidden.push(format!(
                "{name} is listed with physical sectors of {bytes} bytes; on BOT the kernel does not read their size"
            ));
        }
        if facts.serial.value.is_none() {
            let own = match &disk.usb.serial.value {
                Some(serial) => format!("the enclosure's is {serial}"),
                None => "and the enclosure has none".to_owned(),
            };
            hidden.push(format!("{name} shows no serial number of the disk itself; {own}"));
        }
        hidden.push(format!("{name} executes one command at a time: no native command queueing"));
    }
    hidden
}

/// Returns the entry of the disk's model in the file that keeps quirks over a restart.
fn kept_entry(system: &System, disk: &UsbDisk) -> Option<String> {
    let (vendor, product) = ids(disk)?;
    let text = system.read(PERSIST_FILE).ok()?;
    let mut strings = text.lines().filter_map(|line| {
        let rest = line.trim().strip_prefix("options")?.trim_start();
        let rest = rest.strip_prefix("usb-storage").or_else(|| rest.strip_prefix("usb_storage"))?;
        rest.split_whitespace().find_map(|word| word.strip_prefix("quirks="))
    });
    // modprobe uses the last line.
    let letters = quirks::entry_letters(strings.next_back()?, vendor, product)?;
    Some(format!("{vendor:04x}:{product:04x}:{letters}"))
}

fn kept_note(entry: &str) -> String {
    format!("{PERSIST_FILE} has the entry `{entry}` for this model: it applies when usb-storage is loaded next")
}

/// Returns the possible changes, without the advice to keep an entry that is kept already.
fn ways(system: &System, disk: &UsbDisk, decision: &Decision, kept: Option<&str>) -> Vec<UsbWay> {
    let mut ways = possible_ways(system, disk, decision);
    for way in ways.iter_mut().filter(|way| way.quirk.is_some() && way.quirk.as_deref() == kept) {
        way.persist = vec![format!("{PERSIST_FILE} has the entry already")];
    }
    ways
}

fn possible_ways(system: &System, disk: &UsbDisk, decision: &Decision) -> Vec<UsbWay> {
    let mut ways = Vec::new();
    let usb = &disk.usb;
    if decision.forbids(&[Rule::Authorized]) {
        let barred = unauthorized_names(system, disk).unwrap_or_default();
        let set = |value: u8| barred.iter().map(move |name| format!("echo {value} > {DEVICES}/{name}/authorized"));
        let mut commands: Vec<String> = set(1).collect();
        if barred.contains(&usb.interface) {
            // Authorizing an interface does not make the kernel probe it (Documentation/usb/authorization.rst).
            commands.push(format!("echo {} > /sys/bus/usb/drivers_probe", usb.interface));
        }
        ways.push(UsbWay {
            what: "Authorize it; the kernel then evaluates its rules".to_owned(),
            commands,
            quirk: None,
            persist: Vec::new(),
            undo: set(0).collect(),
        });
        return ways;
    }
    if decision.forbids(&[Rule::Module]) {
        let mut commands = Vec::new();
        if !decision.barred_by.is_empty() {
            commands.push("remove the lines from modprobe's configuration that keep uas from loading".to_owned());
        }
        if decision.uas.file.is_some() {
            commands.push("modprobe uas".to_owned());
        } else {
            commands.push(
                "install the package with the rest of this kernel's modules (uas.ko), then `modprobe uas`".to_owned(),
            );
        }
        ways.push(UsbWay {
            what: "Load uas: it binds to the disk at once".to_owned(),
            commands,
            quirk: None,
            persist: Vec::new(),
            undo: vec!["modprobe -r uas, while no disk on it is open".to_owned()],
        });
        // Without uas the flag `u` gives the disk to usb-storage.
        ways.extend(to_bot(disk, decision));
        if decision.uas.file.is_none() {
            ways.extend(to_user_space(system, disk));
        }
        return ways;
    }
    if decision.decided_by == Some(Rule::DeviceStreams) {
        // Without a driver BOT is the only way.
        ways.extend(to_bot(disk, decision));
        return ways;
    }
    match usb.transport {
        UsbTransport::Uas => ways.extend(to_bot(disk, decision)),
        UsbTransport::Bot | UsbTransport::None => {
            ways.extend(to_uas(disk, decision));
            if decision.decided_by == Some(Rule::KernelWithoutUas) && usb.offers_uas() == Some(true) {
                ways.push(to_own_driver(disk));
            }
            if matches!(decision.decided_by, Some(Rule::KernelWithoutUas | Rule::Synology)) {
                ways.extend(to_user_space(system, disk));
            }
        }
        UsbTransport::Other => {}
    }
    ways
}

/// Returns the commands that keep a quirk entry over a restart, and those that remove it.
fn persisted(entry: &str) -> (Vec<String>, Vec<String>) {
    let keep = vec![
        format!(
            "a line `options usb-storage quirks={entry}` in {PERSIST_FILE}, then `update-initramfs -u` (Debian, Ubuntu) or `dracut -f` (Fedora, SUSE); one such line for all devices, their entries joined by commas"
        ),
        format!(
            "or, where usb-storage is built into the kernel: `usb-storage.quirks={entry}` on the kernel's command line"
        ),
    ];
    let drop = vec![format!("remove the line from {PERSIST_FILE} (or the command line) and rebuild the initramfs")];
    (keep, drop)
}

/// Returns the argument of `trueio usb switch`.
fn target(disk: &UsbDisk) -> &str {
    disk.blocks.first().map_or(&disk.usb.interface, |block| &block.name)
}

fn to_bot(disk: &UsbDisk, decision: &Decision) -> Option<UsbWay> {
    if disk.usb.offers_bot() != Some(true) {
        return None;
    }
    let (vendor, product) = ids(disk)?;
    let in_force = decision.storage_flags.flags;
    let entry = quirks::entry_for(vendor, product, in_force.unwrap_or(0), true);
    let (persist, mut undo) = persisted(&entry);
    let target = target(disk);
    undo.insert(0, format!("trueio usb switch {target} uas"));
    let caution = if in_force.is_none() {
        "; the driver's table could not be read, so the entry may drop flags that the kernel sets for this device"
    } else {
        ""
    };
    Some(UsbWay {
        what: format!(
            "Use BOT, if UAS causes trouble on this disk: slower with many requests, but more robust{caution}"
        ),
        commands: vec![format!("trueio usb switch {target} bot")],
        quirk: Some(entry),
        persist,
        undo,
    })
}

/// The ways where the kernel has no driver: measure what UAS would bring, then serve the disk.
fn to_user_space(system: &System, disk: &UsbDisk) -> Vec<UsbWay> {
    if disk.usb.offers_uas() != Some(true) {
        return Vec::new();
    }
    let way = |what: &str, commands: Vec<String>, undo: &str| UsbWay {
        what: what.to_owned(),
        commands,
        quirk: None,
        persist: Vec::new(),
        undo: vec![undo.to_owned()],
    };
    let device = &disk.usb.device;
    let (force, caution) = match driver_flags(system, disk).barred {
        Some(why) => (" --force", format!("; it needs --force, because {why}")),
        None => ("", String::new()),
    };
    let measured = if disk.usb.transport == UsbTransport::Bot {
        format!("trueio study usb-transport /dev/{}", target(disk))
    } else {
        format!("trueio baseline usb:{device}")
    };
    vec![
        way(
            "Measure first what UAS brings on this disk: trueio drives it while it measures, and only reads",
            vec![
                measured,
                format!(
                    "trueio run --ioengine uas --filename usb:{device} --rw randread --bs 4k --iodepth 30 --runtime 10"
                ),
            ],
            "nothing: the disk is given back when the command ends",
        ),
        way(
            &format!(
                "Use UAS without the kernel's driver: trueio drives the disk and serves it as another block device \
                 (experimental: keep a backup){caution}"
            ),
            vec!["modprobe ublk_drv || modprobe nbd".to_owned(), format!("trueio usb serve{force} {}", target(disk))],
            "unmount the block device, and end the command with Ctrl-C",
        ),
    ]
}

/// The way to the kernel's own driver, for a kernel that was built without it.
fn to_own_driver(disk: &UsbDisk) -> UsbWay {
    let target = target(disk);
    UsbWay {
        what: "Build the kernel's own driver from the manufacturer's source of exactly this kernel, and load it"
            .to_owned(),
        commands: vec![format!("trueio usb build-driver --kernel-tree DIR --load {target}")],
        quirk: None,
        persist: Vec::new(),
        undo: vec![format!("trueio usb build-driver --undo {target}")],
    }
}

fn to_uas(disk: &UsbDisk, decision: &Decision) -> Option<UsbWay> {
    if disk.usb.offers_uas() != Some(true) {
        return None;
    }
    let decided = decision.decided_by;
    if matches!(decided, Some(Rule::Streams | Rule::ScatterGather | Rule::KernelWithoutUas | Rule::Synology)) {
        return Some(UsbWay {
            what: match decided {
                Some(Rule::Streams | Rule::ScatterGather) => {
                    "Plug the disk into a port of another host controller: this one does not support UAS at this speed"
                }
                Some(Rule::Synology) => "Enable UAS in DSM: its switch decides before any quirk is read",
                _ => "Use a kernel that was built with CONFIG_USB_UAS",
            }
            .to_owned(),
            commands: Vec::new(),
            quirk: None,
            persist: Vec::new(),
            undo: Vec::new(),
        });
    }
    let (vendor, product) = ids(disk)?;
    let target = target(disk);
    let commands = vec![format!("trueio usb switch {target} uas")];
    let in_force = decision.uas_flags.flags;
    let old = decision.quirks.value.clone().unwrap_or_default();
    match decided {
        Some(Rule::UserQuirk) => {
            let entry = quirks::entry_letters(&old, vendor, product).unwrap_or_default();
            let without = quirks::letters(quirks::flags(&entry) & !quirks::IGNORE_UAS);
            let (new, quirk) = if without.is_empty() {
                (Some(quirks::without_entry(&old, vendor, product)), None)
            } else {
                let entry = format!("{vendor:04x}:{product:04x}:{without}");
                (quirks::with_entry(&old, vendor, product, &entry).ok(), Some(entry))
            };
            // `None` if the new string would be too long.
            let by_hand =
                new.map(|new| format!("echo '{new}' > {QUIRKS}, which applies to disks plugged in from now on"));
            Some(UsbWay {
                what: "Use UAS again: remove the flag u from the quirk string".to_owned(),
                commands: commands.into_iter().chain(by_hand).collect(),
                quirk,
                persist: vec![
                    "remove the entry where it is set: a line `options usb-storage quirks=…` in /etc/modprobe.d, or \
                     `usb-storage.quirks=…` on the kernel's command line"
                        .to_owned(),
                ],
                undo: vec![format!("trueio usb switch {target} bot"), format!("echo '{old}' > {QUIRKS}")],
            })
        }
        Some(Rule::BuiltInTable | Rule::Asmedia | Rule::Hiksemi) => {
            let entry = quirks::entry_for(vendor, product, in_force.unwrap_or(0), false);
            let (persist, mut undo) = persisted(&entry);
            undo.insert(0, format!("trueio usb switch {target} bot"));
            Some(UsbWay {
                what:
                    "Force UAS against the kernel's own rule. The rule exists because such a device lost data or hung \
                       on UAS: back up first, and watch `trueio usb explain` for resets"
                        .to_owned(),
                commands,
                quirk: Some(entry),
                persist,
                undo,
            })
        }
        _ => Some(UsbWay {
            what: "Use UAS: no rule forbids it, so plugging the disk in again has the same effect".to_owned(),
            commands,
            quirk: None,
            persist: Vec::new(),
            undo: vec![format!("trueio usb switch {target} bot")],
        }),
    }
}
