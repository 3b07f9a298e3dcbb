//! The kernel's decision between UAS and BOT on recorded machines, rule by rule.
//!
//! The trees were recorded in virtual machines whose kernels took these decisions, so each rule is compared with a
//! kernel: in an unedited tree, the transport that the rules lead to is the recorded one. The recorded machines have no
//! module files; [`install`] creates modules with the entries of Debian's 6.1 that the rules need.

use crate::staged;

use crate::tree::{Machine, recorded};
use std::fs;
use trueio_device::usb::{DriverFlags, driver_flags, explain, quirks, unauthorized_disks, usb_report};
use trueio_model::{UsbAnswer, UsbExplanation, UsbRuleName as Rule, UsbTransport, UsbTroubleKind as Kind};

const RELEASE: &str = "6.1.0-56-amd64";
const IGNORE_UAS: u64 = quirks::IGNORE_UAS;

/// Entries of (match, vendor, product, lowest and highest release, flags) from the modules of Debian's 6.1.192: those
/// that the tests below need, of 26 and 362.
const OF_BOTH: [(u16, u16, u16, u16, u16, u64); 3] = [
    (0x0f, 0x2537, 0x1068, 0x0000, 0x9999, IGNORE_UAS),
    (0x0f, 0x0984, 0x0301, 0x0128, 0x0128, IGNORE_UAS),
    (0x0f, 0x152d, 0x0578, 0x0000, 0x9999, quirks::BROKEN_FUA),
];
const OF_STORAGE: (u16, u16, u16, u16, u16, u64) = (0x0f, 0x2109, 0x0715, 0x9999, 0x9999, IGNORE_UAS);

/// Puts the two modules where Debian has them.
fn install(machine: &Machine) {
    let release = machine.folder.path().join("proc/sys/kernel/osrelease");
    let release = fs::read_to_string(release).unwrap_or_else(|_| RELEASE.to_owned());
    let folder = machine.folder.path().join(format!("lib/modules/{}/kernel/drivers/usb/storage", release.trim()));
    fs::create_dir_all(&folder).expect("a folder");
    let of_storage = [&OF_BOTH[..], &[(0x0f, 0x2109, 0x0715, 0x0000, 0x9999, OF_STORAGE.5)]].concat();
    for (name, entries) in [("uas", &OF_BOTH[..]), ("usb-storage", &of_storage[..])] {
        let symbol = format!("__mod_usb__{}_usb_ids_device_table", name.replace('-', "_"));
        fs::write(folder.join(format!("{name}.ko")), staged::module(entries, &symbol, true)).expect("a module");
    }
}

fn explained(machine: &Machine, serial: &str) -> UsbExplanation {
    let report = usb_report(&machine.system);
    let disk = report.disks.iter().find(|disk| disk.usb.serial.value.as_deref() == Some(serial));
    explain(&machine.system, &report, disk.unwrap_or_else(|| panic!("{serial} is not among {:?}", report.disks)))
}

/// With modules installed.
fn of(name: &str, serial: &str) -> UsbExplanation {
    let machine = recorded(&format!("usb/{name}"));
    install(&machine);
    explained(&machine, serial)
}

#[track_caller]
fn answer(explanation: &UsbExplanation, rule: Rule) -> UsbAnswer {
    let found = explanation.rules.iter().find(|found| found.name == rule);
    found.unwrap_or_else(|| panic!("no rule {rule} in {:#?}", explanation.rules)).answer
}

/// Asserts that the rules lead to the transport that the kernel chose, and that this rule decided.
#[track_caller]
fn assert_decided(explanation: &UsbExplanation, transport: UsbTransport, rule: Option<Rule>) {
    assert_eq!(explanation.disk.usb.transport, transport, "what the kernel did");
    assert_eq!(explanation.expected, Some(transport), "{:#?}", explanation.rules);
    assert_eq!(explanation.decided_by, rule, "{:#?}", explanation.rules);
    assert!(!explanation.conclusion.contains("but the kernel's rules"), "{}", explanation.conclusion);
}

use UsbTransport::{Bot, None as NoDriver, Uas};

#[test]
fn a_disk_that_no_rule_forbids_runs_on_uas() {
    for name in ["dual", "linux-6.12"] {
        let found = of(name, "SIM1");
        assert_decided(&found, Uas, None);
        assert_eq!(found.conclusion.split(' ').nth(1), Some("runs"), "{}", found.conclusion);
    }
}

#[test]
fn rule_a_device_that_offers_no_uas_runs_on_bot() {
    let found = of("four-kinds", "SIM2");
    assert_decided(&found, Bot, Some(Rule::Offers));
    assert!(found.conclusion.contains("no alternate setting for UAS"), "{}", found.conclusion);
    assert!(found.ways.is_empty(), "nothing can be changed: {:?}", found.ways);
}

#[test]
fn rule_uas_without_its_four_pipes_is_not_offered() {
    let machine = recorded("usb/dual-on-bot");
    install(&machine);
    let path = machine.folder.path().join("sys/devices/pci0000:00/0000:00:02.0/usb2/2-1/descriptors");
    let mut bytes = fs::read(&path).expect("descriptors");
    // The last pipe usage descriptor is data-in again, not data-out.
    let at = bytes.len() - 2;
    assert_eq!(bytes[at - 2..], [4, 0x24, 4, 0]);
    bytes[at] = 3;
    fs::write(&path, bytes).expect("descriptors");
    assert_decided(&explained(&machine, "SIM1"), Bot, Some(Rule::Offers));
}

#[test]
fn rule_a_kernel_with_uas_whose_module_is_missing_leaves_the_disk_without_a_driver() {
    let machine = recorded("usb/no-uas-module");
    for serial in ["SIM0", "SIM1", "SIM3"] {
        let found = explained(&machine, serial);
        assert_decided(&found, NoDriver, Some(Rule::Module));
        assert!(found.ways[0].commands.iter().any(|command| command.contains("uas")), "{:?}", found.ways);
    }
    assert_decided(&explained(&machine, "SIM2"), Bot, Some(Rule::Offers));
    // The last way needs no driver of the kernel.
    let last = explained(&machine, "SIM0").ways.pop().expect("a way");
    assert_eq!(last.commands[0], "modprobe ublk_drv || modprobe nbd");
    assert!(last.commands[1].starts_with("trueio usb serve "), "{last:?}");
    // The kernel's configuration, if it is readable, leads to the same result.
    let boot = machine.folder.path().join("boot");
    fs::create_dir_all(&boot).expect("a folder");
    fs::write(boot.join(format!("config-{RELEASE}")), "CONFIG_USB_STORAGE=m\nCONFIG_USB_UAS=m\n").expect("a file");
    let found = explained(&machine, "SIM0");
    assert_decided(&found, NoDriver, Some(Rule::Module));
    assert!(found.conclusion.contains("was built with UAS, and no module"), "{}", found.conclusion);
}

#[test]
fn rule_a_module_that_modprobe_does_not_load_is_reported_with_file_and_line() {
    let machine = recorded("usb/no-uas-module");
    install(&machine);
    let folder = machine.folder.path().join("etc/modprobe.d");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("usb.conf"), "# from a forum\nblacklist uas\n").expect("a file");
    let found = explained(&machine, "SIM0");
    assert_decided(&found, NoDriver, Some(Rule::Module));
    assert!(found.conclusion.contains("/etc/modprobe.d/usb.conf line 2"), "{}", found.conclusion);
    assert!(found.ways[0].commands.iter().any(|command| command == "modprobe uas"), "{:?}", found.ways);
}

#[test]
fn rule_a_kernel_that_was_built_without_uas_gives_the_disk_to_bot() {
    let machine = recorded("usb/dual-on-bot");
    install(&machine);
    for path in ["sys/module/uas", "sys/bus/usb/drivers/uas"] {
        fs::remove_dir_all(machine.folder.path().join(path)).expect("a folder");
    }
    let module = format!("lib/modules/{RELEASE}/kernel/drivers/usb/storage/uas.ko");
    fs::remove_file(machine.folder.path().join(module)).expect("a module");
    // The disk on BOT shows how the kernel was built, if no quirk explains its transport.
    let quirks = machine.folder.path().join("sys/module/usb_storage/parameters/quirks");
    assert_eq!(fs::read_to_string(&quirks).expect("quirks").trim(), "1209:0001:u");
    assert_eq!(answer(&explained(&machine, "SIM1"), Rule::Module), UsbAnswer::NotSeen);
    fs::write(&quirks, "\n").expect("a file");
    assert_decided(&explained(&machine, "SIM1"), Bot, Some(Rule::KernelWithoutUas));
    // The kernel's configuration shows it, too.
    let boot = machine.folder.path().join("boot");
    fs::create_dir_all(&boot).expect("a folder");
    fs::write(boot.join(format!("config-{RELEASE}")), "CONFIG_USB_STORAGE=m\n# CONFIG_USB_UAS is not set\n").expect("");
    assert_decided(&explained(&machine, "SIM1"), Bot, Some(Rule::KernelWithoutUas));
}

#[test]
fn rule_the_users_quirk_puts_the_disk_on_bot_and_the_undo_is_listed() {
    let found = of("user-quirk", "SIM1");
    assert_decided(&found, Bot, Some(Rule::UserQuirk));
    assert!(found.conclusion.contains("`1209:0001:u`"), "{}", found.conclusion);
    assert_eq!(found.ways[0].commands[0], "trueio usb switch sda uas");
    assert!(found.ways[0].undo.contains(&format!("echo '1209:0001:u' > {}", trueio_device::usb::QUIRKS)));
    assert_decided(&of("user-quirk", "SIM2"), Uas, None);
}

#[test]
fn rule_the_drivers_tables_are_read_from_the_installed_modules() {
    let found = of("built-in-rules", "S1");
    assert_decided(&found, Bot, Some(Rule::BuiltInTable));
    assert_eq!(found.ways[0].quirk.as_deref(), Some("2537:1068:"), "an entry without flags forces UAS");
    let of_storage_alone = of("more-built-in-rules", "S1");
    assert_decided(&of_storage_alone, Bot, Some(Rule::BuiltInTable));
    assert!(of_storage_alone.conclusion.contains("uas itself would accept it"), "{}", of_storage_alone.conclusion);
}

#[test]
fn without_the_modules_files_the_log_shows_that_a_table_decided() {
    let machine = recorded("usb/built-in-rules");
    let found = explained(&machine, "S1");
    assert_decided(&found, Bot, Some(Rule::BuiltInTable));
    assert!(found.conclusion.contains("the kernel logged"), "{}", found.conclusion);
    // A line that was written long after the disk was plugged in may result from a switch, so it is not used.
    let log = machine.folder.path().join("dev/kmsg");
    let text = fs::read_to_string(&log).expect("the log");
    let late = text.replace("[    2.387461] usb 2-1: UAS is ignored", "[   99.387461] usb 2-1: UAS is ignored");
    assert_ne!(text, late, "the line was recorded at that time");
    fs::write(&log, late).expect("the log");
    assert_eq!(explained(&machine, "S1").expected, None);
    // With neither source, the result is unknown and nothing is guessed.
    fs::remove_file(machine.folder.path().join("dev/kmsg")).expect("the log");
    let found = explained(&machine, "S1");
    assert_eq!(found.expected, None);
    assert_eq!(answer(&found, Rule::BuiltInTable), UsbAnswer::NotSeen);
    assert!(found.conclusion.contains("cannot be determined"), "{}", found.conclusion);
    assert!(found.unseen.iter().any(|line| line.contains("uas.ko")), "{:?}", found.unseen);
}

#[test]
fn rule_asmedias_chips_are_distinguished_by_power_link_and_streams() {
    assert_decided(&of("built-in-rules", "S2"), Bot, Some(Rule::Asmedia));
    let asm1153 = of("built-in-rules", "S3");
    assert_decided(&asm1153, Uas, None);
    assert_eq!(answer(&asm1153, Rule::Asmedia), UsbAnswer::Allows);
    let asm1053 = of("built-in-rules", "S4");
    assert_decided(&asm1053, Uas, None);
    assert_eq!(asm1053.ways[0].quirk.as_deref(), Some("174c:55aa:gu"), "the 240 sectors are kept");
    assert_decided(&of("more-built-in-rules", "S3"), Bot, Some(Rule::Asmedia));
}

#[test]
fn rule_one_enclosure_of_hiksemi_is_barred_by_its_names() {
    assert_decided(&of("more-built-in-rules", "S2"), Bot, Some(Rule::Hiksemi));
}

#[test]
fn rule_seagate_runs_on_uas_without_ata_pass_through() {
    let found = of("built-in-rules", "S5");
    assert_decided(&found, Uas, None);
    assert!(found.notes.iter().any(|note| note.contains("no ATA pass-through")), "{:?}", found.notes);
    assert_eq!(found.ways[0].quirk.as_deref(), Some("0bc2:1234:tu"), "the flag t is kept");
}

#[test]
fn rule_a_controller_without_streams_gives_a_superspeed_disk_to_bot() {
    let machine = recorded("usb/no-streams");
    install(&machine);
    let found = explained(&machine, "VHCI1");
    assert_decided(&found, Bot, Some(Rule::Streams));
    assert!(found.conclusion.contains("does not support streams"), "{}", found.conclusion);
    assert_eq!(found.ways[0].quirk, None, "no quirk helps");
    // Without the log, the driver's name decides.
    fs::remove_file(machine.folder.path().join("dev/kmsg")).expect("the log");
    assert_decided(&explained(&machine, "VHCI1"), Bot, Some(Rule::Streams));
}

#[test]
fn rule_a_controller_whose_streams_the_kernel_does_not_use_is_known_by_its_number() {
    let machine = recorded("usb/dual-on-bot");
    install(&machine);
    let pci = machine.folder.path().join("sys/devices/pci0000:00/0000:00:02.0");
    fs::write(pci.join("vendor"), "0x1b6f\n").expect("a file");
    fs::write(pci.join("device"), "0x7023\n").expect("a file");
    let found = explained(&machine, "SIM1");
    assert_decided(&found, Bot, Some(Rule::Streams));
    assert!(found.conclusion.contains("Etron EJ168"), "{}", found.conclusion);
}

#[test]
fn rule_a_controller_without_scatter_gather_gives_the_disk_to_bot() {
    let machine = recorded("usb/dual-on-bot");
    install(&machine);
    let driver = machine.folder.path().join("sys/devices/pci0000:00/0000:00:02.0/driver");
    fs::remove_file(&driver).expect("a link");
    std::os::unix::fs::symlink("../../../bus/platform/drivers/dwc2", &driver).expect("a link");
    assert_decided(&explained(&machine, "SIM1"), Bot, Some(Rule::ScatterGather));
}

#[test]
fn rule_synologys_own_switch_decides_where_it_is_not_yes() {
    let machine = recorded("usb/dual-on-bot");
    install(&machine);
    let folder = machine.folder.path().join("etc.defaults");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("synoinfo.conf"), "unique=\"synology_geminilake_920+\"\nsupport_uasp=\"no\"\n").expect("");
    assert_decided(&explained(&machine, "SIM1"), Bot, Some(Rule::Synology));
    fs::write(folder.join("synoinfo.conf"), "support_uasp=\"yes\"\n").expect("");
    assert_eq!(answer(&explained(&machine, "SIM1"), Rule::Synology), UsbAnswer::Allows);
}

#[test]
fn rule_an_interface_that_is_not_authorized_has_no_driver() {
    let found = of("interface-not-authorized", "SIM2");
    assert_decided(&found, NoDriver, Some(Rule::Authorized));
    // The device is authorized: it is neither authorized again nor barred by the undo.
    let authorized = |value: u8| format!("echo {value} > /sys/bus/usb/devices/2-2:1.0/authorized");
    assert_eq!(found.ways[0].commands, [authorized(1), "echo 2-2:1.0 > /sys/bus/usb/drivers_probe".to_owned()]);
    assert_eq!(found.ways[0].undo, [authorized(0)]);
}

#[test]
fn rule_a_device_that_is_not_authorized_is_explained_though_it_shows_no_interface() {
    let machine = recorded("usb/not-authorized");
    let report = usb_report(&machine.system);
    let disks = unauthorized_disks(&machine.system, &report);
    assert_eq!(disks.iter().map(|disk| disk.usb.interface.as_str()).collect::<Vec<_>>(), ["2-1:1.0"]);
    assert_eq!((disks[0].usb.offers_uas(), disks[0].usb.offers_bot()), (Some(true), Some(true)));
    let found = explain(&machine.system, &report, &disks[0]);
    assert_decided(&found, NoDriver, Some(Rule::Authorized));
    assert_eq!(found.ways[0].commands, ["echo 1 > /sys/bus/usb/devices/2-1/authorized"]);
    assert_eq!(found.ways[0].undo, ["echo 0 > /sys/bus/usb/devices/2-1/authorized"]);
    let other = recorded("usb/dual");
    assert_eq!(unauthorized_disks(&other.system, &usb_report(&other.system)), []);
}

#[test]
fn rule_a_usb_2_link_does_not_prevent_uas_but_is_listed() {
    let found = of("linux-6.12", "SIM2");
    assert_decided(&found, Uas, None);
    assert!(found.notes.iter().any(|note| note.starts_with("a USB 3 disk on a link of 480")), "{:?}", found.notes);
    assert_eq!(answer(&found, Rule::Streams), UsbAnswer::DoesNotApply);
    // Linux 6.1 does not provide the capability descriptors; the USB version that the disk reports is a strong hint.
    let found = of("four-kinds", "SIM3");
    assert!(found.notes.iter().any(|note| note.contains("reports USB 2.10, as USB 3 disks do")), "{:?}", found.notes);
    // A lower version is no hint, and the note reports that it is unknown.
    let machine = recorded("usb/four-kinds");
    let version = fs::canonicalize(machine.folder.path().join("sys/bus/usb/devices/1-4")).expect("1-4").join("version");
    fs::write(version, " 2.01\n").expect("a file");
    let found = explained(&machine, "SIM3");
    assert!(found.notes.iter().any(|note| note.contains("this kernel does not show")), "{:?}", found.notes);
}

#[test]
fn rule_a_quirk_u_on_a_device_that_offers_nothing_else_leaves_it_without_a_driver() {
    let machine = recorded("usb/four-kinds");
    install(&machine);
    fs::write(machine.folder.path().join("sys/module/usb_storage/parameters/quirks"), "1209:0001:u\n").expect("");
    let found = explained(&machine, "SIM1");
    assert_eq!((found.expected, found.decided_by), (Some(NoDriver), Some(Rule::UserQuirk)));
    assert!(found.conclusion.contains("but the kernel's rules lead to no driver"), "{}", found.conclusion);
}

#[test]
fn an_entry_without_flags_removes_the_tables_flag_and_the_conclusion_reports_it() {
    let machine = recorded("usb/built-in-rules");
    install(&machine);
    let quirks = machine.folder.path().join("sys/module/usb_storage/parameters/quirks");
    fs::write(&quirks, "2537:1068:,174c:55aa:\n").expect("a file");
    for serial in ["S1", "S2"] {
        let found = explained(&machine, serial);
        assert_eq!(found.expected, Some(Uas), "{:#?}", found.rules);
        assert!(found.conclusion.contains("but the kernel's rules lead to UAS"), "{}", found.conclusion);
    }
}

/// Goal: the lines of a disk that was unplugged are not those of the disk that got its host number and name.
#[test]
fn lines_count_from_the_last_bind_and_not_by_host_number_and_name() {
    let machine = recorded("usb/dual");
    let log = machine.folder.path().join("dev/kmsg");
    let text = fs::read_to_string(&log).expect("the log");
    let disk = usb_report(&machine.system).disks[0].clone();
    let (address, name) = (&disk.blocks[0].address, &disk.blocks[0].name);
    let host = address.split(':').next().expect("a host");
    let bad = format!(
        "[  100.1] sd {address}: [{name}] Synchronize Cache(10) failed: Result: hostbyte=DID_ERROR\n\
         [  100.2] I/O error, dev {name}, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2\n"
    );
    // Staged: this disk's own error is reported …
    fs::write(&log, format!("{text}{bad}")).expect("the log");
    let kinds = |machine: &Machine| -> Vec<Kind> {
        explained(machine, "SIM1").troubles.into_iter().map(|trouble| trouble.kind).collect()
    };
    assert_eq!(kinds(&machine), [Kind::FlushFailed, Kind::IoError]);
    // … and that of a disk which had the same host and name before this one was bound to them is not.
    for driver in ["uas".to_owned(), "usb-storage 2-1:1.0".to_owned()] {
        let bound = format!("[  101.0] scsi host{host}: {driver}\n");
        fs::write(&log, format!("{text}{bad}{bound}")).expect("the log");
        assert_eq!(kinds(&machine), []);
        fs::write(&log, format!("{text}{bound}{bad}")).expect("the log");
        assert_eq!(kinds(&machine), [Kind::FlushFailed, Kind::IoError]);
    }
    // Another model at the same port.
    let other = "[  99.0] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd\n\
         [  99.1] usb 2-1: New USB device found, idVendor=dead, idProduct=beef, bcdDevice= 1.00\n\
         [  99.2] usb 2-1: reset SuperSpeed USB device number 3 using xhci_hcd\n\
         [  99.3] usb 2-1: New USB device found, idVendor=1209, idProduct=0001, bcdDevice= 1.00\n";
    fs::write(&log, format!("{text}{other}")).expect("the log");
    assert_eq!(kinds(&machine), []);
}

/// The kernel ignores an entry that begins with a space, and compares no trimmed string.
#[test]
fn a_quirk_string_is_parsed_as_the_kernel_has_it() {
    let machine = recorded("usb/dual");
    install(&machine);
    let quirks = machine.folder.path().join("sys/module/usb_storage/parameters/quirks");
    fs::write(&quirks, " 1209:0001:u\n").expect("a file");
    assert_decided(&explained(&machine, "SIM1"), Uas, None);
    fs::write(&quirks, "1209:0001:u\n").expect("a file");
    assert_eq!(explained(&machine, "SIM1").expected, Some(Bot));
}

#[test]
fn rule_an_installed_module_that_nothing_loaded_leaves_the_disk_without_a_driver() {
    let machine = recorded("usb/no-uas-module");
    install(&machine);
    let found = explained(&machine, "SIM0");
    assert_decided(&found, NoDriver, Some(Rule::Module));
    assert!(found.conclusion.contains("nothing loaded it"), "{}", found.conclusion);
    assert_eq!(found.ways[0].commands, ["modprobe uas"]);
}

#[test]
fn a_forced_disk_and_a_kept_entry_are_named_and_not_advised_again() {
    let machine = recorded("usb/dual");
    let folder = machine.folder.path();
    install(&machine);
    fs::create_dir_all(folder.join("etc/modprobe.d")).expect("a folder");
    fs::write(
        folder.join("etc/modprobe.d/trueio-usb.conf"),
        "# x\noptions usb-storage quirks=152d:0578:f,1209:0001:u\n",
    )
    .expect("a file");
    let found = explained(&machine, "SIM1");
    assert!(found.notes.iter().any(|note| note.contains("has the entry `1209:0001:u`")), "{:?}", found.notes);
    let way = found.ways.iter().find(|way| way.quirk.as_deref() == Some("1209:0001:u")).expect("the way to BOT");
    assert_eq!(way.persist, ["/etc/modprobe.d/trueio-usb.conf has the entry already"]);
    // The same disk as a model that the table bars, forced by an entry without flags.
    fs::write(folder.join("sys/module/usb_storage/parameters/quirks"), "2537:1068:\n").expect("a file");
    let device = fs::canonicalize(folder.join("sys/bus/usb/devices/2-1")).expect("the device");
    fs::write(device.join("idVendor"), "2537\n").expect("a file");
    fs::write(device.join("idProduct"), "1068\n").expect("a file");
    let found = explained(&machine, "SIM1");
    assert_decided(&found, Uas, Some(Rule::UserQuirk));
    assert!(found.conclusion.contains("forces UAS on a device that the kernel bars from it"), "{}", found.conclusion);
}

/// The descriptors of a recorded SuperSpeed disk, with fewer streams, and the kernel's line about them.
#[test]
fn rule_a_superspeed_disk_with_too_few_streams_has_no_driver_and_bot_is_advised() {
    for (log2, count) in [(0u8, 0), (1, 2)] {
        let machine = recorded("usb/no-uas-module");
        install(&machine);
        let folder = machine.folder.path();
        let usb = explained(&machine, "SIM0").disk.usb;
        fs::create_dir_all(folder.join("sys/module/uas")).expect("uas is loaded");
        let device = folder.join("sys/bus/usb/devices").join(&usb.device);
        let descriptors = fs::canonicalize(device).expect("the device").join("descriptors");
        let mut bytes = fs::read(&descriptors).expect("descriptors");
        for at in 0..bytes.len() - 5 {
            if bytes[at..at + 2] == [6, 0x30] && bytes[at + 3] == 5 {
                bytes[at + 3] = log2;
            }
        }
        fs::write(&descriptors, bytes).expect("descriptors");
        let log = folder.join("dev/kmsg");
        let text = fs::read_to_string(&log).unwrap_or_default();
        let failed = format!("uas: probe of {} failed with error -22", usb.interface);
        fs::create_dir_all(folder.join("dev")).expect("a folder");
        fs::write(
            &log,
            format!(
                "{text}[  100.1] {failed}
"
            ),
        )
        .expect("the log");
        let found = explained(&machine, "SIM0");
        assert_decided(&found, NoDriver, Some(Rule::DeviceStreams));
        assert!(found.conclusion.contains(&format!("have {count} streams")), "{}", found.conclusion);
        assert!(found.conclusion.contains(&failed), "{}", found.conclusion);
        assert_eq!(found.ways[0].commands, [format!("trueio usb switch {} bot", usb.interface)]);
    }
}

#[test]
fn a_quirk_that_removes_flags_of_the_kernels_table_is_reported() {
    let machine = recorded("usb/built-in-rules");
    install(&machine);
    fs::write(machine.folder.path().join("sys/module/usb_storage/parameters/quirks"), "0bc2:1234:u\n").expect("");
    let found = explained(&machine, "S5");
    let rule = found.rules.iter().find(|rule| rule.name == Rule::UserQuirk).expect("a rule");
    assert!(rule.fact.contains("removes") && rule.fact.contains("no ATA pass-through"), "{}", rule.fact);
}

#[test]
fn resets_and_aborts_are_counted_from_the_log_and_the_disk_that_was_given_up_is_named() {
    let found = of("hung", "SIM1");
    let count = |kind: Kind| found.troubles.iter().find(|trouble| trouble.kind == kind).map(|trouble| trouble.count);
    assert_eq!((count(Kind::Abort), count(Kind::Reset), count(Kind::BusReset)), (Some(2), Some(2), Some(2)));
    assert_eq!(count(Kind::Offlined), Some(1));
    assert!(found.notes.iter().any(|note| note.contains("1 of")), "{:?}", found.notes);
    assert!(found.notes.iter().any(|note| note.contains("sda is offline")), "{:?}", found.notes);
    assert!(of("dual", "SIM1").troubles.is_empty());
}

#[test]
fn the_troubles_of_one_twin_are_not_the_others() {
    let machine = recorded("usb/twins-in-use");
    let log = machine.folder.path().join("dev/kmsg");
    let mut text = fs::read_to_string(&log).expect("the log");
    text.push_str("[  100.1] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd\n");
    text.push_str("[  100.2] I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2\n");
    text.push_str("[  100.3] I/O error, dev sdab, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2\n");
    text.push_str("[  100.4] usb 2-1.1: reset high-speed USB device number 9 using xhci_hcd\n");
    fs::write(&log, text).expect("the log");
    let kinds = |serial: &str| -> Vec<(Kind, u64)> {
        explained(&machine, serial).troubles.into_iter().map(|trouble| (trouble.kind, trouble.count)).collect()
    };
    assert_eq!(kinds("TWIN1"), [(Kind::BusReset, 1), (Kind::IoError, 1)]);
    assert_eq!(kinds("TWIN2"), []);
}

#[test]
fn facts_that_bot_hides_are_listed_on_bot_only() {
    let hidden = of("user-quirk", "SIM1").hidden;
    let joined = hidden.join("\n");
    for words in ["rotational", "physical sectors of 512", "no serial number of the disk", "one command at a time"] {
        assert!(joined.contains(words), "`{words}` in {joined}");
    }
    assert!(of("user-quirk", "SIM2").hidden.is_empty());
}

/// Goal: no explanation advises to blacklist `uas`, which would leave the disk without a driver.
/// Method: the JSON document of every explanation of every recorded disk.
#[test]
fn keeping_the_module_from_loading_is_never_advised() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/usb");
    let mut count = 0;
    for entry in fs::read_dir(folder)
        .expect("recorded machines")
        .flatten()
        .filter(|entry| entry.path().join("tree.txt").exists())
    {
        for has_modules in [false, true] {
            let machine = recorded(&format!("usb/{}", entry.file_name().to_str().expect("UTF-8")));
            if has_modules {
                install(&machine);
            }
            let report = usb_report(&machine.system);
            for disk in &report.disks {
                let text = serde_json::to_string(&explain(&machine.system, &report, disk)).expect("a document");
                assert!(!text.to_lowercase().contains("blacklist"), "{text}");
                count += 1;
            }
        }
    }
    assert!(count > 40, "{count} explanations are too few to mean anything");
}

/// Makes the recorded disk `SIM1` another model.
fn as_model(machine: &Machine, vendor: &str, product: &str, quirk_string: &str) {
    let folder = machine.folder.path();
    fs::write(folder.join("sys/module/usb_storage/parameters/quirks"), format!("{quirk_string}\n")).expect("a file");
    let device = fs::canonicalize(folder.join("sys/bus/usb/devices/2-1")).expect("the device");
    fs::write(device.join("idVendor"), format!("{vendor}\n")).expect("a file");
    fs::write(device.join("idProduct"), format!("{product}\n")).expect("a file");
}

fn flags_of(machine: &Machine) -> DriverFlags {
    flags_of_disk(machine, "SIM1")
}

fn flags_of_disk(machine: &Machine, serial: &str) -> DriverFlags {
    let report = usb_report(&machine.system);
    let disk = report.disks.iter().find(|disk| disk.usb.serial.value.as_deref() == Some(serial)).expect("the disk");
    driver_flags(&machine.system, disk)
}

/// Goal: a driver in user space keeps to what the kernel's driver knows of a model, also where no module is installed.
#[test]
fn a_driver_in_user_space_has_the_kernels_flags_without_its_module() {
    let machine = recorded("usb/dual");
    for (vendor, product, flags) in [
        ("152d", "0578", quirks::BROKEN_FUA),
        ("152d", "0567", quirks::BROKEN_FUA | quirks::NO_REPORT_OPCODES),
        ("0bc2", "331a", quirks::NO_REPORT_LUNS | quirks::NO_ATA_1X),
        ("0bc2", "ab24", quirks::NO_ATA_1X),
        ("4971", "8024", quirks::ALWAYS_SYNC),
        ("059f", "1061", quirks::NO_REPORT_OPCODES | quirks::NO_SAME),
        ("1209", "0001", 0),
    ] {
        as_model(&machine, vendor, product, "");
        let found = flags_of(&machine);
        assert_eq!((found.flags, found.barred), (flags, None), "{vendor}:{product}");
    }
    // The user's entry replaces the flags that have a letter.
    as_model(&machine, "0bc2", "331a", "0bc2:331a:g");
    assert_eq!(flags_of(&machine).flags, quirks::MAX_SECTORS_240);
    as_model(&machine, "152d", "0578", "152d:0578:f");
    assert_eq!(flags_of(&machine).flags, quirks::BROKEN_FUA | quirks::NO_REPORT_OPCODES, "no letter, not replaced");
}

#[test]
fn a_model_on_which_linux_does_not_use_uas_is_barred_unless_an_entry_lifts_that() {
    let machine = recorded("usb/dual");
    for (vendor, product) in [("0b05", "1932"), ("0781", "55e8"), ("357d", "7788"), ("4971", "1012")] {
        as_model(&machine, vendor, product, "");
        let barred = flags_of(&machine).barred.expect("barred");
        assert!(barred.contains(&format!("{vendor}:{product}")) && barred.contains("unusual_uas.h"), "{barred}");
        as_model(&machine, vendor, product, &format!("{vendor}:{product}:"));
        assert_eq!(flags_of(&machine).barred, None, "forced by the entry");
        as_model(&machine, vendor, product, &format!("{vendor}:{product}:u"));
        assert!(flags_of(&machine).barred.is_some(), "the entry hides the kernel's own rule");
        as_model(&machine, vendor, product, &format!("{vendor}:{product}:i"));
        assert!(flags_of(&machine).barred.is_some_and(|why| why.contains("flag i")));
    }
    // ASMedia's rule tells chips of one ID apart.
    let chips = recorded("usb/built-in-rules");
    assert!(flags_of_disk(&chips, "S2").barred.is_some_and(|why| why.contains("ASM1051")));
    assert_eq!(flags_of_disk(&chips, "S3"), DriverFlags::default(), "an ASM1153");
    assert_eq!(flags_of_disk(&chips, "S4").flags, quirks::MAX_SECTORS_240, "an ASM1053");
    // The user's own flag is a warning: without the module it is the way to BOT.
    as_model(&machine, "1209", "0001", "1209:0001:u");
    let found = flags_of(&machine);
    assert!(found.barred.is_none() && found.notes[0].contains("flag u"), "{found:?}");
    for (vendor, product) in [("152d", "0579"), ("152d", "0583"), ("174c", "235c"), ("125f", "a88a"), ("7825", "a2a4")]
    {
        as_model(&machine, vendor, product, "");
        let found = flags_of(&machine);
        assert!(found.barred.is_none() && found.notes[0].contains("trouble on UAS is reported"), "{found:?}");
    }
}
