//! The kernel's decision between UAS and BOT, replayed rule by rule for a disk.
//!
//! Both drivers evaluate the same rules when they probe an interface, each with its own table: `usb-storage` ignores a
//! disk that `uas` supports, and `uas`, if it is loaded, binds to it. [`decide`] evaluates the same rules in the same
//! order on the same facts; [`Decision::expected`] is the result.
//!
//! Cannot see: rules that a vendor added to its kernel, except Synology's; whether a host controller supports streams,
//! unless its driver, its PCI ID or the log shows it; whether the interface was bound by hand, except that the present
//! transport differs from the expected one.
//!
//! Source: Linux `drivers/usb/storage/uas-detect.h` (`uas_use_uas_driver`), `usb.c` (`storage_probe`,
//! `usb_stor_adjust_quirks`), `drivers/usb/host/xhci-pci.c` (`XHCI_BROKEN_STREAMS`). The lab's test `usb_rules` compares
//! each rule with the decision of Debian's 6.1 and 6.12, with four exceptions: a kernel without UAS and Synology's switch
//! (Debian's kernels have UAS and no such switch), scatter-gather, and host controllers known by their PCI ID (QEMU
//! emulates none of these). `tests/it/usb_rules.rs` tests those four with edited recordings of sysfs.

use super::descriptors::parse_descriptors;
use super::disks::{DEVICES, SUPERSPEED_MBIT_PER_S, controller};
use super::kernel_log::{LogLine, lines_of, probe_failed};
use super::modules::{Driver, MatchedDevice, built_in_flags, config_uas, files_that_bar_uas};
use super::quirks::{self, IGNORE_DEVICE, IGNORE_UAS, MAX_SECTORS_240, NO_ATA_1X};
use crate::system::{System, why_not};
use trueio_model::{Fact, UsbAnswer, UsbDisk, UsbReport, UsbRule, UsbRuleName as Rule, UsbTransport};

/// The file of the quirk string in effect.
pub const QUIRKS: &str = "/sys/module/usb_storage/parameters/quirks";

/// The evaluated rules of a disk and their result.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The rules in the order of evaluation.
    pub rules: Vec<UsbRule>,
    /// The transport that the rules lead to; `None` if it depends on an unknown fact.
    pub expected: Option<UsbTransport>,
    /// The rule that decided; the first one if several forbid UAS.
    pub decided_by: Option<Rule>,
    /// The flags that `uas` uses, with the user's entry and the driver's heuristics applied.
    pub uas_flags: FlagsInForce,
    /// The flags that `usb-storage` uses.
    pub storage_flags: FlagsInForce,
    /// The quirk string in effect.
    pub quirks: Fact<String>,
    /// The driver `uas`.
    pub uas: Driver,
    /// The driver `usb-storage`.
    pub storage: Driver,
    /// The files and options that keep modprobe from loading `uas`.
    pub barred_by: Vec<String>,
}

impl Decision {
    /// Returns whether one of these rules forbids UAS.
    pub fn forbids(&self, names: &[Rule]) -> bool {
        self.rules.iter().any(|rule| rule.answer == UsbAnswer::Forbids && names.contains(&rule.name))
    }
}

/// A driver's flags for a device.
#[derive(Debug, Clone)]
pub struct FlagsInForce {
    /// The flags in effect; `None` if the driver's table could not be read and no entry replaces it.
    pub flags: Option<u64>,
    /// The flags of the driver's own table.
    pub built_in: Fact<u64>,
    /// The flags that the driver adds by heuristics.
    pub thumb: u64,
}

impl FlagsInForce {
    fn of(driver: &Driver, device: &MatchedDevice, thumb: u64, entry: Option<&str>) -> Self {
        let table = driver.table.value.as_ref();
        let built_in =
            Fact { value: table.map(|table| built_in_flags(table, device)), source: driver.table.source.clone() };
        // An entry replaces all flags of the table that have a letter; no other flag is read here.
        let flags = match (built_in.value, entry) {
            (Some(flags), entry) => Some(quirks::applied(flags | thumb, entry)),
            (None, Some(letters)) => Some(quirks::flags(letters)),
            (None, None) => None,
        };
        Self { flags, built_in, thumb }
    }
}

/// Collects evaluated rules.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) found: Vec<UsbRule>,
}

impl Rules {
    fn add(&mut self, name: Rule, answer: UsbAnswer, fact: impl Into<String>, source: impl Into<String>) {
        self.found.push(UsbRule { name, answer, fact: fact.into(), source: source.into() });
    }

    fn forbids(&self, name: Rule) -> bool {
        self.found.iter().any(|rule| rule.name == name && rule.answer == UsbAnswer::Forbids)
    }
}

/// The device's own properties, as numbers.
pub(super) struct Numbers {
    pub(super) matched: MatchedDevice,
    max_power: Option<u8>,
    link: Option<f64>,
    stream_count: u32,
}

pub(super) fn numbers(system: &System, disk: &UsbDisk) -> Numbers {
    let usb = &disk.usb;
    let hexadecimal = |text: Option<&str>| text.and_then(|text| u16::from_str_radix(text, 16).ok()).unwrap_or(0);
    let (vendor, product) = usb.id.value.as_deref().and_then(|id| id.split_once(':')).unwrap_or_default();
    let d = |file: &str| format!("{DEVICES}/{}/{file}", usb.device);
    let class =
        |file: &str| system.read(&d(file)).ok().and_then(|text| u8::from_str_radix(&text, 16).ok()).unwrap_or(0);
    let configuration = system.number(&d("bConfigurationValue")).value;
    let bytes = system.read_bytes(&d("descriptors")).unwrap_or_default();
    let descriptors = parse_descriptors(&bytes).ok();
    let max_power = descriptors.as_ref().and_then(|all| all.configuration(configuration)).map(|c| c.max_power);
    let alternates = usb.offers.value.as_deref().unwrap_or_default();
    let first = alternates.iter().find(|alternate| alternate.number == 0).or(alternates.first());
    let interface_class = first.map_or([8, 0, 0], |first| [8, first.subclass, first.protocol]);
    let matched = MatchedDevice {
        vendor: hexadecimal(Some(vendor)),
        product: hexadecimal(Some(product)),
        release: hexadecimal(usb.release.value.as_deref()),
        device_class: [class("bDeviceClass"), class("bDeviceSubClass"), class("bDeviceProtocol")],
        interface_class,
        interface_number: usb.interface.rsplit('.').next().and_then(|n| n.parse().ok()).unwrap_or(0),
    };
    let stream_count = alternates.iter().find(|a| a.is_uas()).map_or(0, |a| a.stream_count);
    Numbers { matched, max_power, link: usb.link_mbit_per_s.value, stream_count }
}

/// Reads the quirk string as the kernel has it, without newlines at its end, which have no meaning. Spaces matter: the kernel
/// ignores an entry that begins with one, and the string is put back byte for byte.
pub fn quirk_string(system: &System) -> Fact<String> {
    match system.read_bytes(QUIRKS) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            Fact::known(text.trim_end_matches(['\0', '\n']).to_owned(), QUIRKS)
        }
        Err(error) => Fact::unknown(why_not(QUIRKS, &error)),
    }
}

/// Evaluates every rule for a disk. `report` covers all disks of its machine; `log` is the kernel's log, if it could be
/// read.
pub fn decide(system: &System, report: &UsbReport, disk: &UsbDisk, log: Option<&[LogLine]>) -> Decision {
    let numbers = numbers(system, disk);
    let uas = Driver::find(system, "uas");
    let storage = Driver::find(system, "usb-storage");
    let quirks_fact = quirk_string(system);
    let entry = quirks_fact
        .value
        .as_deref()
        .and_then(|quirks| quirks::entry_letters(quirks, numbers.matched.vendor, numbers.matched.product));
    let mut rules = Rules::default();
    authorized(&mut rules, system, disk);
    offers(&mut rules, disk);
    let barred_by = files_that_bar_uas(system);
    driver_there(&mut rules, system, (report, disk), &uas, &storage, &barred_by, quirks_fact.value.as_deref());
    synology(&mut rules, system);
    let (thumb, hiksemi) = rules_of_thumb(&mut rules, disk, &numbers);
    // The rule of the table uses the table's own flag; the rule of the user's entry may remove it below.
    let mut uas_flags = FlagsInForce::of(&uas, &numbers.matched, thumb | hiksemi, entry.as_deref());
    let mut storage_flags = FlagsInForce::of(&storage, &numbers.matched, thumb | hiksemi, entry.as_deref());
    built_in(&mut rules, disk, log, &uas_flags, &storage_flags, entry.as_deref());
    user_quirk(&mut rules, &quirks_fact, entry.as_deref(), &numbers, thumb | hiksemi, &uas_flags);
    controllers(&mut rules, system, report, disk, log);
    device_streams(&mut rules, disk, &numbers, log);
    link(&mut rules, disk);

    if uas_flags.flags.is_none() && disk.usb.transport == UsbTransport::Uas {
        // The disk runs on UAS, so its unread table cannot forbid that.
        uas_flags.flags = Some(thumb);
        storage_flags.flags = storage_flags.flags.or(Some(thumb));
    }
    let (expected, decided_by) = outcome(&rules, disk, &uas, &storage, &uas_flags, &storage_flags);
    let quirks = quirks_fact;
    Decision { rules: rules.found, expected, decided_by, uas_flags, storage_flags, quirks, uas, storage, barred_by }
}

/// Returns the transport that the two drivers' probes lead to, and the rule that decides.
fn outcome(
    rules: &Rules,
    disk: &UsbDisk,
    uas: &Driver,
    storage: &Driver,
    uas_flags: &FlagsInForce,
    storage_flags: &FlagsInForce,
) -> (Option<UsbTransport>, Option<Rule>) {
    let forbids = |names: &[Rule]| names.iter().copied().find(|name| rules.forbids(*name));
    if let Some(name) = forbids(&[Rule::Authorized]) {
        return (Some(UsbTransport::None), Some(name));
    }
    if disk.usb.offers.value.is_none() {
        return (None, Some(Rule::Offers));
    }
    let has_bot = disk.usb.offers_bot() == Some(true);
    let has_storage = storage.is_loaded || storage.is_built_in;
    // `usb-storage` binds to a disk that it does not leave to `uas`, if the device offers BOT.
    let is_not_driven = storage_flags.flags.is_some_and(|flags| flags & IGNORE_DEVICE != 0);
    let bot = if has_bot && has_storage && !is_not_driven { UsbTransport::Bot } else { UsbTransport::None };
    let before_flags = [Rule::Offers, Rule::KernelWithoutUas, Rule::Synology, Rule::ScatterGather, Rule::Streams];
    if let Some(name) = forbids(&before_flags) {
        return (Some(bot), Some(name));
    }
    let ignored = |flags: &FlagsInForce| flags.flags.map(|flags| flags & IGNORE_UAS != 0);
    let by_flag = || {
        let names = [Rule::UserQuirk, Rule::Asmedia, Rule::Hiksemi, Rule::BuiltInTable];
        forbids(&names).or(Some(Rule::BuiltInTable))
    };
    match (ignored(storage_flags), ignored(uas_flags)) {
        (Some(true), _) => (Some(bot), by_flag()),
        // The table cannot be read, but the log shows the decision.
        (None, _) if forbids(&[Rule::BuiltInTable, Rule::Asmedia, Rule::Hiksemi]).is_some() => (Some(bot), by_flag()),
        // `usb-storage` leaves the disk to `uas`, which is missing or ignores it.
        (_, _) if rules.forbids(Rule::Module) => (Some(UsbTransport::None), Some(Rule::Module)),
        (Some(false), Some(true)) => (Some(UsbTransport::None), by_flag()),
        // Both drivers leave the disk: usb-storage to uas, whose probe fails.
        (Some(false), Some(false)) if rules.forbids(Rule::DeviceStreams) => {
            (Some(UsbTransport::None), Some(Rule::DeviceStreams))
        }
        (Some(false), Some(false)) if is_forced(uas_flags) && (uas.is_loaded || uas.is_built_in) => {
            (Some(UsbTransport::Uas), Some(Rule::UserQuirk))
        }
        (Some(false), Some(false)) if uas.is_loaded || uas.is_built_in => (Some(UsbTransport::Uas), None),
        // udev loads an installed module when the disk appears.
        (Some(false), Some(false)) if uas.file.is_some() => (Some(UsbTransport::Uas), None),
        (Some(false), Some(false)) => (None, Some(Rule::Module)),
        (None, _) | (_, None) => (None, Some(Rule::BuiltInTable)),
    }
}

/// Returns whether the user's entry removed the flag that would keep the disk from UAS.
fn is_forced(flags: &FlagsInForce) -> bool {
    (flags.built_in.value.unwrap_or(0) | flags.thumb) & IGNORE_UAS != 0
}

/// Returns the names of the device and the interface, if they are not authorized.
///
/// # Errors
/// A name whose authorization cannot be read, and why.
pub(super) fn unauthorized_names(system: &System, disk: &UsbDisk) -> Result<Vec<String>, (String, String)> {
    let mut barred = Vec::new();
    for name in [&disk.usb.device, &disk.usb.interface] {
        let path = format!("{DEVICES}/{name}/authorized");
        match system.read(&path).as_deref() {
            Ok("0") => barred.push(name.clone()),
            Ok(_) => {}
            // A device that is not authorized has no interface.
            Err(_) if !barred.is_empty() => {}
            Err(error) => return Err((name.clone(), crate::system::why_not(&path, error))),
        }
    }
    Ok(barred)
}

fn authorized(rules: &mut Rules, system: &System, disk: &UsbDisk) {
    match unauthorized_names(system, disk) {
        Err((name, why)) => {
            rules.add(Rule::Authorized, UsbAnswer::NotSeen, format!("whether {name} is authorized"), why)
        }
        Ok(barred) => match barred.first() {
            Some(first) => {
                let verb = if barred.len() == 1 { "is" } else { "are" };
                let fact = format!("{} {verb} not authorized", barred.join(" and "));
                rules.add(Rule::Authorized, UsbAnswer::Forbids, fact, format!("{DEVICES}/{first}/authorized"));
            }
            None => {
                let source = format!("{DEVICES}/{}/authorized", disk.usb.interface);
                rules.add(Rule::Authorized, UsbAnswer::Allows, "device and interface are authorized", source);
            }
        },
    }
}

fn offers(rules: &mut Rules, disk: &UsbDisk) {
    let source = disk.usb.offers.source.clone();
    let Some(all) = &disk.usb.offers.value else {
        return rules.add(Rule::Offers, UsbAnswer::NotSeen, "the device's alternate settings are unknown", source);
    };
    if let Some(alternate) = all.iter().find(|alternate| alternate.is_uas()) {
        let fact = format!("alternate setting {} is UAS (08/06/62) with all four pipes", alternate.number);
        return rules.add(Rule::Offers, UsbAnswer::Allows, fact, source);
    }
    let fact = match all.iter().find(|alternate| alternate.claims_uas()) {
        Some(alternate) => format!(
            "alternate setting {} is UAS by its numbers (08/06/62) but has only the pipes {:?} of 1 to 4",
            alternate.number, alternate.pipes
        ),
        None => "the device has no alternate setting for UAS (08/06/62)".to_owned(),
    };
    rules.add(Rule::Offers, UsbAnswer::Forbids, fact, source);
}

/// Checks whether `uas` can bind to the disk. These are two rules with different results: a kernel built without UAS
/// binds `usb-storage` (BOT); a kernel whose module `uas` is missing leaves the disk without a driver.
fn driver_there(
    rules: &mut Rules,
    system: &System,
    (report, disk): (&UsbReport, &UsbDisk),
    uas: &Driver,
    storage: &Driver,
    barred_by: &[String],
    quirk_string: Option<&str>,
) {
    let aside = match barred_by {
        [] => String::new(),
        files => format!("; modprobe does not load it because of {}", files.join(", ")),
    };
    if uas.is_loaded {
        return rules.add(Rule::Module, UsbAnswer::Allows, format!("uas is loaded{aside}"), "/sys/module/uas");
    }
    if uas.is_built_in {
        let source = format!("{}/modules.builtin", uas.source);
        return rules.add(Rule::Module, UsbAnswer::Allows, "uas is part of the kernel", source);
    }
    let config = config_uas(system);
    if config.value == Some('n') {
        return rules.add(
            Rule::KernelWithoutUas,
            UsbAnswer::Forbids,
            "the kernel was built without UAS",
            config.source,
        );
    }
    if let Some(file) = &uas.file {
        if barred_by.is_empty() && disk.usb.transport == UsbTransport::None {
            // udev would have loaded it when the disk appeared.
            let fact = "uas is not loaded; the module is installed, but nothing loaded it when the disk appeared. \
                        usb-storage still leaves the disk to it";
            return rules.add(Rule::Module, UsbAnswer::Forbids, fact, file.clone());
        }
        if barred_by.is_empty() {
            let fact = "uas is not loaded; the module is installed, and is loaded when a disk needs it";
            return rules.add(Rule::Module, UsbAnswer::Allows, fact, file.clone());
        }
        let fact = format!("uas is not loaded{aside}. usb-storage still leaves the disk to it");
        return rules.add(Rule::Module, UsbAnswer::Forbids, fact, file.clone());
    }
    // How usb-storage treated other disks shows how the kernel was built.
    let left_alone = report.disks.iter().find(|other| {
        other.usb.transport == UsbTransport::None && other.usb.offers_uas() == Some(true) && storage.is_loaded
    });
    let taken = report.disks.iter().find(|other| {
        other.usb.transport == UsbTransport::Bot
            && other.usb.offers_uas() == Some(true)
            && !may_be_barred(system, other, storage, quirk_string)
    });
    match (config.value, left_alone, taken) {
        (Some(_), _, _) => {
            let fact = format!("the kernel was built with UAS, and no module uas is installed{aside}");
            rules.add(Rule::Module, UsbAnswer::Forbids, fact, format!("{}, {}", config.source, uas.source));
        }
        (None, Some(other), _) => {
            let fact = format!(
                "no module uas is loaded or installed, and usb-storage left {} to it: the kernel was built with UAS",
                other.usb.interface
            );
            rules.add(Rule::Module, UsbAnswer::Forbids, fact, uas.source.clone());
        }
        (None, None, Some(other)) => {
            let fact = format!(
                "no module uas is loaded or installed, and usb-storage still bound to {}: the kernel was probably \
                 built without UAS",
                other.usb.interface
            );
            rules.add(Rule::KernelWithoutUas, UsbAnswer::Forbids, fact, uas.source.clone());
        }
        (None, None, None) => {
            let fact = "no module uas is loaded or installed; whether the kernel was built with UAS is unknown";
            rules.add(Rule::Module, UsbAnswer::NotSeen, fact, config.source);
        }
    }
}

/// Returns whether a flag may make `usb-storage` bind to a disk that offers UAS; `false` only if it is known that none
/// does.
fn may_be_barred(system: &System, disk: &UsbDisk, storage: &Driver, quirk_string: Option<&str>) -> bool {
    let Some(quirk_string) = quirk_string else { return true };
    let numbers = numbers(system, disk);
    let entry = quirks::entry_letters(quirk_string, numbers.matched.vendor, numbers.matched.product);
    let mut aside = Rules::default();
    let (thumb, hiksemi) = rules_of_thumb(&mut aside, disk, &numbers);
    let flags = FlagsInForce::of(storage, &numbers.matched, thumb | hiksemi, entry.as_deref());
    flags.flags.is_none_or(|flags| flags & IGNORE_UAS != 0)
}

/// Synology's kernels read a key of their own before all other rules, according to their published source.
fn synology(rules: &mut Rules, system: &System) {
    for path in ["/etc/synoinfo.conf", "/etc.defaults/synoinfo.conf"] {
        let Ok(text) = system.read(path) else { continue };
        let key = text.lines().find_map(|line| line.trim().strip_prefix("support_uasp="));
        let is_yes = key.is_some_and(|value| value.trim_matches('"') == "yes");
        let fact = match key {
            Some(value) => format!("DSM's switch support_uasp is {value}"),
            None => "DSM's switch support_uasp is not set".to_owned(),
        };
        let answer = if is_yes { UsbAnswer::Allows } else { UsbAnswer::Forbids };
        return rules.add(Rule::Synology, answer, fact, path);
    }
    let source = "neither /etc/synoinfo.conf nor /etc.defaults/synoinfo.conf exists";
    rules.add(Rule::Synology, UsbAnswer::DoesNotApply, "this system is not Synology DSM", source);
}

/// Evaluates the heuristics for chips that share one ID. Returns the flags that they add.
pub(super) fn rules_of_thumb(rules: &mut Rules, disk: &UsbDisk, numbers: &Numbers) -> (u64, u64) {
    let (vendor, product) = (numbers.matched.vendor, numbers.matched.product);
    let source = format!("{DEVICES}/{}: idVendor, idProduct, descriptors", disk.usb.device);
    let mut thumb = 0;
    if vendor == 0x174c && matches!(product, 0x5106 | 0x55aa) {
        let is_super = numbers.link.is_some_and(|link| link >= SUPERSPEED_MBIT_PER_S);
        let (answer, fact) = match (numbers.max_power, is_super, numbers.stream_count) {
            (None, _, _) => (UsbAnswer::NotSeen, "which of ASMedia's chips it is".to_owned()),
            (Some(0), _, _) => (UsbAnswer::Allows, "an ASM1153: it requests no power from the bus".to_owned()),
            (Some(_), false, _) => {
                thumb |= IGNORE_UAS;
                (
                    UsbAnswer::Forbids,
                    "it is treated as an ASM1051: below SuperSpeed it has no streams to compare".to_owned(),
                )
            }
            (Some(_), true, 32) => {
                thumb |= IGNORE_UAS;
                (UsbAnswer::Forbids, "it is treated as an ASM1051: it has 32 streams".to_owned())
            }
            (Some(_), true, count) => {
                thumb |= MAX_SECTORS_240;
                (UsbAnswer::Allows, format!("an ASM1053: {count} streams; requests are limited to 240 sectors"))
            }
        };
        rules.add(Rule::Asmedia, answer, fact, source.clone());
    } else {
        rules.add(Rule::Asmedia, UsbAnswer::DoesNotApply, "not 174c:5106 or 174c:55aa", source.clone());
    }
    if vendor == 0x0bc2 {
        thumb |= NO_ATA_1X;
    }
    let mut hiksemi = 0;
    let is_hiksemi = (vendor, product) == (0x0bda, 0x9210)
        && disk.usb.manufacturer.value.as_deref() == Some("HIKSEMI")
        && disk.usb.product.value.as_deref() == Some("MD202");
    if !is_hiksemi {
        rules.add(Rule::Hiksemi, UsbAnswer::DoesNotApply, "not a HIKSEMI MD202 (0bda:9210)", source);
    } else if disk.usb.transport == UsbTransport::Uas {
        let fact = "a HIKSEMI MD202, on UAS: this kernel is older than the rule";
        rules.add(Rule::Hiksemi, UsbAnswer::Allows, fact, source);
    } else {
        hiksemi = IGNORE_UAS;
        rules.add(Rule::Hiksemi, UsbAnswer::Forbids, "a HIKSEMI MD202: UAS is known to fail on it", source);
    }
    (thumb, hiksemi)
}

/// The kernel's message when a flag of any origin prevents UAS.
const IGNORED_LINE: &str = "UAS is ignored for this device";

/// Returns the last line about a disk that contains these words.
fn last_line_with<'a>(log: Option<&'a [LogLine]>, disk: &UsbDisk, words: &str) -> Option<&'a LogLine> {
    lines_of(log?, disk).into_iter().rev().find(|line| line.text.contains(words))
}

/// The drivers probe a disk within this time after it is plugged in, in seconds.
const PROBE_S: f64 = 10.0;

/// Returns the log line that UAS is ignored, if it was written when the disk was plugged in. A later line may result
/// from a quirk that was set temporarily, as `usb switch` does.
fn ignored_when_plugged_in<'a>(log: Option<&'a [LogLine]>, disk: &UsbDisk) -> Option<&'a LogLine> {
    let plugged_s = last_line_with(log, disk, "New USB device found")?.at_s?;
    last_line_with(log, disk, IGNORED_LINE)
        .filter(|line| line.at_s.is_some_and(|at| (plugged_s..plugged_s + PROBE_S).contains(&at)))
}

/// Evaluates the drivers' own tables.
fn built_in(
    rules: &mut Rules,
    disk: &UsbDisk,
    log: Option<&[LogLine]>,
    uas: &FlagsInForce,
    storage: &FlagsInForce,
    entry: Option<&str>,
) {
    let is_explained = rules.forbids(Rule::Asmedia) || rules.forbids(Rule::Hiksemi);
    let ignores = |flags: &FlagsInForce| flags.built_in.value.map(|flags| flags & IGNORE_UAS != 0);
    let source = format!("{}; {}", uas.built_in.source, storage.built_in.source);
    let (answer, fact) = match (ignores(uas), ignores(storage)) {
        (Some(false), Some(false)) => {
            let meanings = quirks::meanings(uas.built_in.value.unwrap_or(0) | storage.built_in.value.unwrap_or(0));
            let aside = if meanings.is_empty() { String::new() } else { format!("; flags: {}", meanings.join(", ")) };
            (UsbAnswer::Allows, format!("the drivers' tables do not bar this device from UAS{aside}"))
        }
        (Some(true), _) => (UsbAnswer::Forbids, "the table of uas bars this device from UAS".to_owned()),
        (_, Some(true)) => {
            let fact = "the table of usb-storage bars this device from UAS; uas itself would accept it if it were \
                        bound by hand";
            (UsbAnswer::Forbids, fact.to_owned())
        }
        _ if disk.usb.transport == UsbTransport::Uas => {
            let fact = "the tables could not be read; the disk runs on UAS, so they do not bar it";
            (UsbAnswer::Allows, fact.to_owned())
        }
        // If a heuristic or an entry already explains the line, the table is not needed.
        _ => match ignored_when_plugged_in(log, disk).filter(|_| entry.is_none() && !is_explained) {
            Some(line) => (UsbAnswer::Forbids, format!("the kernel logged: {}", line.text)),
            None => (UsbAnswer::NotSeen, "the flags of this device in the drivers' tables".to_owned()),
        },
    };
    match (answer, entry) {
        // The entry replaces the table's flags, so the rule of the entry decides.
        (UsbAnswer::Forbids, Some(_)) => {
            let fact = format!("{fact}, and the user's quirk entry replaces that");
            rules.add(Rule::BuiltInTable, UsbAnswer::DoesNotApply, fact, source);
        }
        _ => rules.add(Rule::BuiltInTable, answer, fact, source),
    }
}

fn user_quirk(
    rules: &mut Rules,
    quirks_fact: &Fact<String>,
    entry: Option<&str>,
    numbers: &Numbers,
    thumb: u64,
    uas: &FlagsInForce,
) {
    let source = quirks_fact.source.clone();
    let name = format!("{:04x}:{:04x}", numbers.matched.vendor, numbers.matched.product);
    let Some(letters) = entry else {
        let (answer, fact) = match &quirks_fact.value {
            Some(_) => (UsbAnswer::Allows, format!("the quirk string has no entry for {name}")),
            None => (UsbAnswer::NotSeen, "the quirk string".to_owned()),
        };
        return rules.add(Rule::UserQuirk, answer, fact, source);
    };
    let set = quirks::flags(letters);
    let before = uas.built_in.value.unwrap_or(0) | thumb;
    let lost = quirks::meanings(before & quirks::mask() & !set & !IGNORE_UAS);
    let aside = if lost.is_empty() {
        String::new()
    } else {
        format!("; it removes flags that the kernel sets for this device: {}", lost.join(", "))
    };
    if set & IGNORE_UAS != 0 {
        let fact = format!("the entry `{name}:{letters}` has the flag u: UAS is not used{aside}");
        return rules.add(Rule::UserQuirk, UsbAnswer::Forbids, fact, source);
    }
    let forced =
        if before & IGNORE_UAS != 0 { " and so forces UAS on a device that the kernel bars from it" } else { "" };
    if before & IGNORE_UAS != 0 {
        // These rules were evaluated before the entry removed their flag.
        for rule in rules.found.iter_mut().filter(|rule| matches!(rule.name, Rule::Asmedia | Rule::Hiksemi)) {
            if rule.answer == UsbAnswer::Forbids {
                rule.answer = UsbAnswer::DoesNotApply;
                rule.fact.push_str(", and the user's quirk entry replaces that");
            }
        }
    }
    let fact = format!("the entry `{name}:{letters}` has no flag u{forced}{aside}");
    rules.add(Rule::UserQuirk, UsbAnswer::Allows, fact, source);
}

/// Host controllers whose streams the kernel disables: PCI vendor, device, name.
const WITHOUT_STREAMS: [(&str, &str, &str); 6] = [
    ("0x1b73", "0x1000", "Fresco Logic PDK"),
    ("0x1b73", "0x1009", "Fresco Logic FL1009"),
    ("0x1b6f", "0x7023", "Etron EJ168"),
    ("0x1b6f", "0x7052", "Etron EJ188"),
    ("0x1106", "0x3432", "VIA VL80x"),
    ("0x1b21", "0x1042", "ASMedia ASM1042"),
];

fn controllers(rules: &mut Rules, system: &System, report: &UsbReport, disk: &UsbDisk, log: Option<&[LogLine]>) {
    let bus = disk.usb.device.split('-').next().unwrap_or_default();
    let root = format!("usb{bus}");
    let driver = controller(system, &root);
    let name = driver.value.clone().unwrap_or_else(|| "unknown".to_owned());
    if let Some(line) = last_line_with(log, disk, "does not support scatter-gather") {
        rules.add(Rule::ScatterGather, UsbAnswer::Forbids, format!("the kernel logged: {}", line.text), "/dev/kmsg");
    } else if matches!(name.as_str(), "dwc2" | "max3421-hcd" | "dwc_otg") {
        let fact = format!("the host controller's driver {name} has no scatter-gather");
        rules.add(Rule::ScatterGather, UsbAnswer::Forbids, fact, driver.source.clone());
    } else {
        let fact = format!("the host controller's driver is {name}, which is not known to lack scatter-gather");
        rules.add(Rule::ScatterGather, UsbAnswer::Allows, fact, driver.source.clone());
    }

    let is_super = disk.usb.link_mbit_per_s.value.is_some_and(|link| link >= SUPERSPEED_MBIT_PER_S);
    if !is_super {
        let fact = "below SuperSpeed UAS needs no streams";
        return rules.add(Rule::Streams, UsbAnswer::DoesNotApply, fact, disk.usb.link_mbit_per_s.source.clone());
    }
    let pci = system.resolve(&format!("{DEVICES}/{root}")).ok();
    let pci = pci.as_deref().and_then(|real| real.rsplit_once('/')).map(|(parent, _)| parent.to_owned());
    let id = |file: &str| pci.as_ref().and_then(|pci| system.read(&format!("{pci}/{file}")).ok()).unwrap_or_default();
    let (vendor, device) = (id("vendor"), id("device"));
    let listed = WITHOUT_STREAMS.iter().find(|(v, d, _)| *v == vendor && *d == device);
    let on_uas = report.disks.iter().find(|other| {
        other.usb.transport == UsbTransport::Uas
            && other.usb.device.split('-').next() == Some(bus)
            && other.usb.link_mbit_per_s.value.is_some_and(|link| link >= SUPERSPEED_MBIT_PER_S)
    });
    if let Some(other) = on_uas {
        let fact = format!("the host controller has streams: {} runs on UAS there", other.usb.interface);
        rules.add(Rule::Streams, UsbAnswer::Allows, fact, other.usb.driver.source.clone());
    } else if let Some(line) = last_line_with(log, disk, "does not support streams") {
        rules.add(Rule::Streams, UsbAnswer::Forbids, format!("the kernel logged: {}", line.text), "/dev/kmsg");
    } else if let Some((_, _, chip)) = listed {
        let fact = format!("the host controller is a {chip}, whose streams the kernel does not use");
        rules.add(Rule::Streams, UsbAnswer::Forbids, fact, format!("{}/vendor, device", pci.unwrap_or_default()));
    } else if matches!(name.as_str(), "vhci_hcd" | "dummy_hcd") {
        let fact = format!("the host controller's driver {name} has no streams");
        rules.add(Rule::Streams, UsbAnswer::Forbids, fact, driver.source);
    } else {
        let fact = format!("the host controller's driver is {name}, which is not known to lack streams");
        rules.add(Rule::Streams, UsbAnswer::Allows, fact, driver.source);
    }
}

/// From USB 3 on, `uas` needs more than two streams of the device: with none they cannot be allocated, and two are those that it
/// keeps for itself, so that the host would have no queue. The probe fails with -22, and no other driver is bound.
fn device_streams(rules: &mut Rules, disk: &UsbDisk, numbers: &Numbers, log: Option<&[LogLine]>) {
    const OWN_STREAMS: u32 = 2;
    let is_super = disk.usb.link_mbit_per_s.value.is_some_and(|link| link >= SUPERSPEED_MBIT_PER_S);
    if !is_super || disk.usb.offers_uas() != Some(true) || numbers.stream_count > OWN_STREAMS {
        return;
    }
    let count = numbers.stream_count;
    let mut fact =
        format!("the device's UAS pipes have {count} streams; on a USB 3 link the driver uas needs more than 2");
    let failed = log.and_then(|log| lines_of(log, disk).into_iter().rev().find(|line| probe_failed(line, disk)));
    if let Some(line) = failed {
        fact.push_str(&format!(". The kernel logged: {}", line.text));
    }
    rules.add(Rule::DeviceStreams, UsbAnswer::Forbids, fact, disk.usb.offers.source.clone());
}

/// Reports the link's speed. A slow link does not prevent UAS; the rule is listed to rule it out as a cause.
fn link(rules: &mut Rules, disk: &UsbDisk) {
    let usb = &disk.usb;
    let fact = match usb.link_mbit_per_s.value {
        None => {
            return rules.add(Rule::Link, UsbAnswer::NotSeen, "the link's speed", usb.link_mbit_per_s.source.clone());
        }
        Some(link) if link < 480.0 => format!("a link of {link} Mbit/s: UAS works, and is as slow as the link"),
        Some(link) if link < SUPERSPEED_MBIT_PER_S => {
            format!("a USB 2 link of {link} Mbit/s: UAS works without streams, and is as slow as the link")
        }
        Some(link) => format!("a USB 3 link of {link} Mbit/s"),
    };
    rules.add(Rule::Link, UsbAnswer::Allows, fact, usb.link_mbit_per_s.source.clone());
}
