//! `trueio usb` on recorded machines (`crates/device/tests/usb`), and on the machine the tests run on.

use crate::common;
use crate::tree;

use crate::common::{Ran, Sandbox};
use std::path::Path;
use trueio_model::{UsbReport, UsbTransport};

/// `trueio usb …` on a recorded machine.
fn on(machine: &str, arguments: &[&str]) -> Ran {
    let machine = tree::recorded(&format!("usb/{machine}"));
    let mut all = vec!["usb"];
    all.extend(arguments);
    all.extend(["--recorded", machine.folder.path().to_str().expect("UTF-8")]);
    Sandbox::new().run(&all)
}

/// Compares with `tests/usb/<name>.txt`, which `TRUEIO_BLESS=1` rewrites.
#[track_caller]
fn assert_text(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/usb").join(format!("{name}.txt"));
    if std::env::var_os("TRUEIO_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("the expected text");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{} (TRUEIO_BLESS=1 rewrites it)", path.display());
}

#[test]
fn the_list_shows_tree_table_and_sources() {
    for machine in ["four-kinds", "twins-in-use", "dual-unbound", "not-authorized", "none", "linux-6.12"] {
        let ran = on(machine, &["list"]);
        ran.assert_code(0);
        assert_text(&format!("list-{machine}"), &ran.out);
    }
}

#[test]
fn the_tree_and_the_table_can_be_printed_separately() {
    let (tree, table) = (on("four-kinds", &["list", "--tree"]), on("four-kinds", &["list", "--table"]));
    assert_eq!(on("four-kinds", &["list"]).out, format!("{}\n{}", tree.out, table.out));
}

#[test]
fn the_json_contains_every_fact_and_can_be_parsed() {
    let ran = on("dual-on-bot", &["list", "--json"]);
    ran.assert_code(0);
    let report: UsbReport = serde_json::from_str(&ran.out).expect("the document");
    assert_eq!(report.disks[0].usb.transport, UsbTransport::Bot);
    assert_eq!(report.disks[0].usb.offers_uas(), Some(true));
    assert!(ran.out.contains("/sys/bus/usb/devices/2-1/descriptors"), "each fact has its source");
}

#[test]
fn the_explanation_names_the_decisive_rule_errors_and_possible_changes() {
    for (machine, disk) in [
        ("dual", "sda"),
        ("user-quirk", "SIM1"),
        ("hung", "/dev/sda"),
        ("no-uas-module", "2-1"),
        ("no-streams", "VHCI1"),
        ("built-in-rules", "S2"),
        ("not-authorized", "2-1"),
    ] {
        let ran = on(machine, &["explain", disk]);
        ran.assert_code(0);
        assert_text(&format!("explain-{machine}"), &ran.out);
        assert!(!ran.out.to_lowercase().contains("blacklist"), "{ran:?}");
    }
}

#[test]
fn without_a_name_every_disk_is_explained_and_an_ambiguous_name_is_refused() {
    let ran = on("four-kinds", &["explain"]);
    ran.assert_code(0);
    assert_eq!(ran.out.matches("the kernel's rules\n").count(), 4, "{ran:?}");
    on("four-kinds", &["explain", "sdx"]).assert_refused(&["`sdx` is not a USB disk", "sda at 1-4:1.0, serial SIM3"]);
    on("none", &["explain", "sda"]).assert_refused(&["there is none"]);
    let none = on("none", &["explain"]);
    assert!(none.out.contains("There is no USB disk") && none.out.contains("/sys/bus/usb/devices"), "{none:?}");
}

/// Goal: a device that is not authorized has no interface; it is explained together with the others and by its name, and
/// notes about what is not visible are printed even if there is a disk.
#[test]
fn a_device_that_is_not_authorized_is_explained_with_its_command_and_undo() {
    for arguments in [&["explain"][..], &["explain", "2-1"]] {
        let ran = on("not-authorized", arguments);
        ran.assert_code(0);
        let out = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "2-1:1.0 has no driver because 2-1 is not authorized",
            "now echo 1 > /sys/bus/usb/devices/2-1/authorized",
            "to undo it echo 0 > /sys/bus/usb/devices/2-1/authorized",
        ] {
            assert!(out.contains(words), "`{words}` is not in {ran:?}");
        }
        assert!(!out.contains("devices/2-1:1.0/authorized"), "{ran:?}");
    }
    let all = on("not-authorized", &["explain"]).out;
    assert_eq!(all.matches("the kernel's rules\n").count(), 2, "{all}");
    on("not-authorized", &["switch", "2-1", "uas", "--dry-run"]).assert_refused(&["the disk in 2-1", "not authorized"]);

    let machine = tree::recorded("usb/not-authorized");
    // A device that the kernel did not configure for another reason is named below the disks.
    std::fs::write(machine.folder.path().join("sys/devices/pci0000:00/0000:00:02.0/usb2/2-1/authorized"), "1\n")
        .expect("");
    let folder = machine.folder.path().to_str().expect("UTF-8").to_owned();
    let ran = Sandbox::new().run(&["usb", "explain", "--recorded", &folder]);
    ran.assert_code(0);
    assert!(ran.out_joined().contains("the kernel did not configure it"), "{ran:?}");
}

#[test]
fn a_dry_run_prints_the_plan_of_a_switch_and_changes_nothing() {
    let machine = tree::recorded("usb/dual");
    std::fs::write(machine.folder.path().join("paths"), "block 0:5 8:0 0 /dev/sda\n").expect("paths");
    let folder = machine.folder.path().to_str().expect("UTF-8").to_owned();
    let ran = Sandbox::new().run(&["usb", "switch", "sda", "bot", "--dry-run", "--recorded", &folder]);
    ran.assert_code(0);
    assert_text("switch-dual", &ran.out);
    let ran = Sandbox::new().run(&["usb", "switch", "sda", "bot", "--dry-run", "--json", "--recorded", &folder]);
    ran.assert_code(0);
    let planned: serde_json::Value = serde_json::from_str(&ran.out).expect("nothing but JSON");
    assert_eq!(
        (&planned["outcome"], &planned["blocks"]),
        (&"planned".into(), &serde_json::json!(["sda"])),
        "{planned}"
    );
    assert_eq!((&planned["plan"]["interface"], &planned["plan"]["to"]), (&"2-1:1.0".into(), &"bot".into()));
    assert!(planned["plan"]["steps"].as_array().is_some_and(|steps| steps.len() > 3), "{planned}");
    Sandbox::new()
        .run(&["usb", "switch", "sda", "--unpersist", "--json", "--dry-run", "--recorded", &folder])
        .assert_refused(&["--json needs a disk and a transport"]);
    let quirks = machine.folder.path().join("sys/module/usb_storage/parameters/quirks");
    assert_eq!(std::fs::read_to_string(quirks).expect("quirks").trim(), "");
    Sandbox::new()
        .run(&["usb", "switch", "sda", "uas", "--dry-run", "--recorded", &folder])
        .assert_refused(&["`sda` is not switched", "2-1:1.0 is already on UAS"]);
    Sandbox::new()
        .run(&["usb", "switch", "sda", "bot", "--recorded", &folder])
        .assert_refused(&["a recorded machine can be switched with --dry-run only"]);
}

/// Goal: what `--persist` cannot keep is refused before the disk is touched, and what it would write is shown; `--unpersist`
/// with a transport, too.
/// Method: dry runs on a recorded machine, with another's line, a driver that is part of the kernel, and a full file.
#[test]
fn persistence_is_checked_before_anything_is_changed() {
    let machine = tree::recorded("usb/dual");
    let place = |path: &str| machine.folder.path().join(path);
    let set = |path: &str, text: &str| {
        std::fs::create_dir_all(place(path).parent().expect("a folder")).expect("a folder");
        std::fs::write(place(path), text).expect("a file");
    };
    set("paths", "block 0:5 8:0 0 /dev/sda\n");
    let folder = machine.folder.path().to_str().expect("UTF-8").to_owned();
    let plan =
        |word: &str| Sandbox::new().run(&["usb", "switch", "sda", "bot", word, "--dry-run", "--recorded", &folder]);
    let ours = "etc/modprobe.d/trueio-usb.conf";
    let ran = plan("--persist");
    ran.assert_code(0);
    assert!(ran.out.contains("trueio-usb.conf will be `options usb-storage quirks=1209:0001:u`"), "{ran:?}");
    set(ours, "options usb-storage quirks=1209:0001:u\n");
    assert!(plan("--persist").out.contains("trueio-usb.conf needs no change"));
    let ran = plan("--unpersist");
    ran.assert_code(0);
    assert!(ran.out.contains("trueio-usb.conf will be removed"), "{ran:?}");

    let full: Vec<String> = (0..10).map(|n| format!("152d:{n:04x}:f")).collect();
    set(ours, &format!("options usb-storage quirks={}\n", full.join(",")));
    plan("--persist").assert_refused(&["the kernel accepts 127"]);
    std::fs::remove_file(place(ours)).expect("the file");
    set("etc/modprobe.d/mine.conf", "options usb-storage quirks=152d:0578:u\n");
    plan("--persist")
        .assert_refused(&["`/etc/modprobe.d/mine.conf` sets the quirks of usb-storage, too", "152d:0578:u"]);
    std::fs::remove_file(place("etc/modprobe.d/mine.conf")).expect("the file");
    set("lib/modules/6.1.0-56-amd64/modules.builtin", "kernel/drivers/usb/storage/usb-storage.ko\n");
    plan("--persist").assert_refused(&["`usb-storage.quirks=1209:0001:u` on the kernel's command line"]);
}

#[test]
fn a_switch_needs_an_existing_disk_and_a_transport() {
    let sandbox = Sandbox::new();
    sandbox.run(&["usb", "switch", "sda"]).assert_refused(&["a disk and a transport are needed"]);
    sandbox.run(&["usb", "switch", "sda", "bot", "--wait", "0"]).assert_refused(&["from 1s to 10m is expected"]);
    sandbox.run(&["usb", "switch", "sda", "bot", "--wait=5 parsecs"]).assert_refused(&["--wait `5 parsecs`"]);
    sandbox
        .run(&["usb", "switch", "no-such-disk", "uas", "--dry-run"])
        .assert_refused(&["`no-such-disk` is not a USB disk"]);
    assert_eq!(sandbox.run(&["usb", "switch", "sda", "usb3"]).code, Some(2));
}

#[test]
fn escape_sequences_in_a_device_name_do_not_control_the_terminal() {
    let machine = tree::recorded("usb/dual");
    let product = machine.folder.path().join("sys/devices/pci0000:00/0000:00:02.0/usb2/2-1/product");
    std::fs::write(product, "\u{1b}]0;owned\u{7}\u{202e}ksid").expect("a file");
    let folder = machine.folder.path().to_str().expect("UTF-8").to_owned();
    let ran = Sandbox::new().run(&["usb", "list", "--recorded", &folder]);
    ran.assert_code(0);
    assert!(!ran.out.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{ran:?}");
    assert!(ran.out.contains("owned"), "{ran:?}");
}

#[test]
fn descriptors_with_a_wrong_length_are_reported_and_the_disk_is_listed() {
    let machine = tree::recorded("usb/dual");
    let path = machine.folder.path().join("sys/devices/pci0000:00/0000:00:02.0/usb2/2-1/descriptors");
    let mut bytes = std::fs::read(&path).expect("descriptors");
    bytes[27] = 0;
    std::fs::write(&path, bytes).expect("a file");
    let folder = machine.folder.path().to_str().expect("UTF-8").to_owned();
    let ran = Sandbox::new().run(&["usb", "list", "--recorded", &folder]);
    ran.assert_code(0);
    assert!(ran.out.contains("sda") && ran.out.contains("unknown"), "{ran:?}");
    assert!(ran.out_joined().contains("the descriptor at byte 27 has a length of 0"), "{ran:?}");
}

#[test]
fn an_ordinary_user_gets_the_list_and_a_note_about_root() {
    use std::os::unix::process::CommandExt;
    if common::lacks("root") {
        return;
    }
    // The build may lie where others may not go.
    let program = std::env::temp_dir().join(format!("trueio-usb-{}", std::process::id()));
    trueio_testkit::copy_program(env!("CARGO_BIN_EXE_trueio"), &program);
    let mut command = std::process::Command::new(&program);
    command.args(["usb", "list"]).current_dir("/").uid(65534).gid(65534);
    let ran = Ran::of(command.output().expect("the program starts"));
    std::fs::remove_file(&program).expect("the copy");
    ran.assert_code(0);
    assert!(ran.out.contains("/sys/bus/usb/devices") && ran.out.contains("as root:"), "{ran:?}");
}

#[test]
fn the_list_of_this_machine_never_fails() {
    let ran = Sandbox::new().run(&["usb", "list"]);
    ran.assert_code(0);
    assert!(ran.out.contains("/sys/bus/usb/devices"), "{ran:?}");
}

/// Goal: a study that needs a USB transport is refused where there is no USB disk, before anything is written.
#[test]
fn a_study_of_transports_is_refused_on_other_targets_than_usb_disks() {
    let sandbox = Sandbox::new();
    let file = sandbox.data_file("precious", 1 << 20);
    let before = sandbox.listing();
    let name = file.to_str().unwrap();
    sandbox.run(&["study", "usb-transport", "."]).assert_refused(&["must be a USB disk", "name the disk"]);
    sandbox.run(&["study", "usb-transport", name]).assert_refused(&["is not a USB disk"]);
    sandbox.run(&["study", "usb-transport", name, name]).assert_refused(&["the same"]);
    sandbox.run(&["study", "usb-transport", ".", "--only", "job"]).assert_refused(&["an axis and its values"]);
    sandbox.run(&["study", "usb-transport", ".", "--only", "job=fast"]).assert_refused(&["no value `fast`"]);
    sandbox.run(&["study", "write-flags", ".", name]).assert_refused(&["two are named"]);
    let overwrite = ["study", "usb-transport", name, "--overwrite", "other"];
    sandbox.run(&overwrite).assert_refused(&["spelled the same"]);
    assert_eq!(sandbox.listing(), before);
}
