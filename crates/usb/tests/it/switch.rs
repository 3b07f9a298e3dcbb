//! Switches between UAS and BOT on recorded machines, with a simulated kernel that records writes: every
//! step, every refusal, every failure, and a kill before every single call.

use crate::staged;
use crate::tree;

use crate::fake::{Fake, Trouble};
use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use trueio_device::usb::QUIRKS;
use trueio_model::UsbTransport::{self, Bot, Uas};
use trueio_usb::{
    Hands, Outcome, PersistError, Persisted, Step, execute, persist, plan_persist, plan_unpersist, resume,
};

fn fake(machine: &str, interface: &str) -> Fake {
    Fake::new(tree::recorded(&format!("usb/{machine}")), interface)
}

/// Plans and executes a switch.
#[track_caller]
fn switch(fake: &mut Fake, to: UsbTransport) -> Outcome {
    let plan = fake.plan(to).expect("a plan");
    let system = fake.system.clone();
    let earlier = fake.states().pop();
    execute(&system, plan, earlier, fake, &mut |_| {})
}

#[track_caller]
fn transport(fake: &Fake) -> UsbTransport {
    fake.disk().expect("the disk is there").usb.transport
}

#[track_caller]
fn assert_switched(outcome: &Outcome, names: &[&str]) {
    assert_eq!(*outcome, Outcome::Switched { blocks: names.iter().map(|name| (*name).to_owned()).collect() });
}

#[test]
fn from_uas_to_bot_each_step_is_taken_once_and_in_order() {
    let mut fake = fake("dual", "2-1:1.0");
    assert_switched(&switch(&mut fake, Bot), &["sda"]);
    assert_eq!(
        fake.calls,
        [
            "claim sda",
            "flush sda",
            "read sda",
            "module/usb_storage/parameters/quirks < 1209:0001:u",
            "block/sda/device/delete < 1",
            "bus/usb/drivers/uas/unbind < 2-1:1.0",
            "bus/usb/drivers/usb-storage/bind < 2-1:1.0",
            "module/usb_storage/parameters/quirks < ",
            "read sda",
        ]
    );
    assert_eq!((transport(&fake), fake.quirks().as_str()), (Bot, ""));
    assert_eq!(fake.disk().expect("the disk").usb.queue_depth.value, Some(1));
}

#[test]
fn there_and_back_again_the_disk_and_the_quirk_string_are_as_before() {
    let mut fake = fake("dual", "2-1:1.0");
    fake.set(QUIRKS, "152d:0578:f\n");
    assert_switched(&switch(&mut fake, Bot), &["sda"]);
    assert!(fake.calls.contains(&"module/usb_storage/parameters/quirks < 1209:0001:u,152d:0578:f".to_owned()));
    fake.calls.clear();
    assert_switched(&switch(&mut fake, Uas), &["sda"]);
    let quirk_writes = fake.calls.iter().filter(|call| call.contains("quirks")).count();
    assert_eq!(quirk_writes, 0, "no rule forbids UAS, so none is needed: {:?}", fake.calls);
    assert_eq!((transport(&fake), fake.quirks().as_str()), (Uas, "152d:0578:f"));
}

/// An entry that begins with a space is ignored by the kernel. Another disk's switch must not trim it into one that applies.
#[test]
fn the_quirk_string_is_put_back_byte_for_byte() {
    let mut fake = fake("dual", "2-1:1.0");
    fake.set(QUIRKS, " 152d:0578:u,,0bc2:ab24:t \n");
    assert_switched(&switch(&mut fake, Bot), &["sda"]);
    let writes: Vec<&String> = fake.calls.iter().filter(|call| call.contains("quirks")).collect();
    assert_eq!(writes.len(), 2, "{writes:?}");
    assert!(writes[0].contains("1209:0001:u, 152d:0578:u,"), "{writes:?}");
    assert_eq!(writes[1], "module/usb_storage/parameters/quirks <  152d:0578:u,,0bc2:ab24:t ");
}

#[test]
fn a_users_quirk_is_removed_during_the_switch_and_restored_after_it() {
    let mut fake = fake("user-quirk", "2-1:1.0");
    let plan = fake.plan(Uas).expect("a plan");
    assert_eq!((plan.quirks_there.as_str(), plan.quirks_before.as_str()), ("1209:0001:", "1209:0001:u"));
    assert_eq!(plan.quirks_back, "1209:0001:u", "undoing it needs no new entry");
    assert!(matches!(switch(&mut fake, Uas), Outcome::Switched { .. }));
    assert_eq!((transport(&fake), fake.quirks().as_str()), (Uas, "1209:0001:u"));
}

#[test]
fn a_device_with_uas_disabled_by_the_kernel_is_forced_by_an_entry_without_flags_with_a_warning() {
    let machine = tree::recorded("usb/built-in-rules");
    let folder = machine.folder.path().join("lib/modules/6.1.0-56-amd64/kernel/drivers/usb/storage");
    fs::create_dir_all(&folder).expect("a folder");
    for name in ["uas", "usb-storage"] {
        let symbol = format!("__mod_usb__{}_usb_ids_device_table", name.replace('-', "_"));
        let table = [(0x0f, 0x2537, 0x1068, 0, 0x9999, 0x0080_0000)];
        fs::write(folder.join(format!("{name}.ko")), staged::module(&table, &symbol, true)).expect("a module");
    }
    let mut fake = Fake::new(machine, "2-1:1.0");
    let plan = fake.plan(Uas).expect("a plan");
    assert_eq!(plan.entry.as_deref(), Some("2537:1068:"));
    assert!(plan.warnings.iter().any(|warning| warning.contains("make a backup")), "{:?}", plan.warnings);
    assert!(matches!(switch(&mut fake, Uas), Outcome::Switched { .. }));
    // And back: the table's own flag suffices.
    assert_eq!(fake.plan(Bot).expect("a plan").entry, None);
    assert!(matches!(switch(&mut fake, Bot), Outcome::Switched { .. }));
}

#[test]
fn a_mounted_disk_of_the_same_model_is_not_touched() {
    let mut fake = fake("twins-in-use", "2-2:1.0");
    let before = fake.listing("/sys/devices/pci0000:00/0000:00:02.0/usb2/2-1");
    assert_switched(&switch(&mut fake, Bot), &["sdb"]);
    assert_eq!(fake.listing("/sys/devices/pci0000:00/0000:00:02.0/usb2/2-1"), before);
    assert!(fake.calls.iter().all(|call| !call.contains("2-1:") && !call.contains("sda")), "{:?}", fake.calls);
}

#[test]
fn a_mounted_disk_or_swap_is_refused_with_every_reason_and_nothing_is_touched() {
    let fake = fake("twins-in-use", "2-1:1.0");
    let before = fake.listing("/sys");
    let refusal = fake.plan(Bot).expect_err("it is in use");
    let text = refusal.to_string();
    assert!(text.contains("sda1 is mounted at /mnt"), "{text}");
    assert!(text.contains("sda2 is swap"), "{text}");
    assert!(refusal.hint.is_some_and(|hint| hint.contains("unmount")));
    assert_eq!(fake.listing("/sys"), before);
}

#[test]
fn a_disk_below_another_device_is_refused_with_its_name() {
    let fake = fake("dual", "2-1:1.0");
    fake.set("/sys/devices/virtual/block/dm-0/dev", "253:0\n");
    let sda = fs::canonicalize(fake.system.locate("/sys/block/sda")).expect("sda");
    symlink("/sys/devices/virtual/block/dm-0", sda.join("holders/dm-0")).expect("a link");
    let text = fake.plan(Bot).expect_err("LVM is on it").to_string();
    assert!(text.contains("dm-0 is stacked on sda"), "{text}");
}

#[test]
fn an_open_disk_is_refused_with_the_id_and_the_name_of_the_process() {
    let fake = fake("dual", "2-1:1.0");
    fake.set("/proc/4711/comm", "smartd\n");
    fs::create_dir_all(fake.system.locate("/proc/4711/fd")).expect("a folder");
    symlink("/dev/sda", fake.system.locate("/proc/4711/fd/3")).expect("a link");
    let text = fake.plan(Bot).expect_err("it is open").to_string();
    assert!(text.contains("sda is open in process 4711 (smartd)"), "{text}");
}

#[test]
fn a_missing_driver_is_refused_in_both_directions() {
    let there = fake("user-quirk", "2-1:1.0");
    for path in ["sys/module/uas", "sys/bus/usb/drivers/uas"] {
        fs::remove_dir_all(there.folder.join(path)).expect("a folder");
    }
    let refusal = there.plan(Uas).expect_err("no uas");
    assert!(refusal.to_string().contains("the driver uas is not loaded"), "{refusal}");
    assert!(refusal.hint.as_deref().is_some_and(|hint| hint.contains("modprobe uas")), "{refusal:?}");

    let back = fake("dual", "2-1:1.0");
    fs::remove_dir_all(back.folder.join("sys/module/usb_storage")).expect("a folder");
    fs::remove_dir_all(back.folder.join("sys/bus/usb/drivers/usb-storage")).expect("a folder");
    let text = back.plan(Bot).expect_err("no usb-storage").to_string();
    assert!(text.contains("the driver usb-storage is not loaded"), "{text}");
    assert!(text.contains("choice of driver cannot be changed"), "the quirk string is missing, too: {text}");
}

#[test]
fn a_transport_that_is_not_offered_or_that_no_quirk_enables_is_refused() {
    let text = |machine: &str, interface: &str, to| fake(machine, interface).plan(to).expect_err("refused").to_string();
    assert!(text("four-kinds", "2-2:1.0", Bot).contains("does not offer BOT"));
    assert!(text("four-kinds", "2-3:1.0", Uas).contains("does not offer UAS"));
    assert!(text("dual", "2-1:1.0", Uas).contains("is already on UAS"));
    let streams = text("no-streams", "2-1:1.0", Uas);
    assert!(streams.contains("no quirk helps") && streams.contains("vhci_hcd"), "{streams}");
    let hung = text("hung", "2-1:1.0", Bot);
    assert!(hung.contains("sda is offline"), "{hung}");
}

#[test]
fn a_quirk_string_of_127_characters_is_written_and_one_of_128_is_refused() {
    let others: Vec<String> = (0..9).map(|n| format!("152d:{n:04x}:f")).collect();
    let others = others.join(",");
    // 107 characters; with a comma and our 11 there is room for a tenth entry of 8.
    let mut fits = fake("dual", "2-1:1.0");
    let full = format!("{others},0bc2:1:");
    fits.set(QUIRKS, &format!("{full}\n"));
    assert_eq!(fits.plan(Bot).expect("it fits").quirks_there.len(), 127);
    assert!(matches!(switch(&mut fits, Bot), Outcome::Switched { .. }));
    assert_eq!(fits.quirks(), full);

    let too_long = fake("dual", "2-1:1.0");
    too_long.set(QUIRKS, &format!("{others},0bc2:1:t\n"));
    let text = too_long.plan(Bot).expect_err("it does not fit").to_string();
    assert!(text.contains("128 bytes long") && text.contains("accepts 127"), "{text}");
}

#[test]
fn a_switch_that_cannot_be_undone_is_refused() {
    // Bound to UAS by hand despite a quirk `u` of ten letters. Undoing the switch needs the entry without
    // `u`, which is shorter; but the string is full, and the entry for the switch is longer.
    let fake = fake("dual", "2-1:1.0");
    let filler: Vec<String> = (0..10).map(|n| format!("152d:{n:04x}:f")).collect();
    fake.set(QUIRKS, &format!("{}\n", filler.join(",")));
    let text = fake.plan(Bot).expect_err("no room").to_string();
    assert!(text.contains("the quirk string would be"), "{text}");
}

#[test]
fn a_disk_that_cannot_be_flushed_is_not_switched() {
    let mut fake = fake("dual", "2-1:1.0");
    fake.trouble = Trouble { no_flush: true, ..Trouble::default() };
    let before = fake.listing("/sys");
    let outcome = switch(&mut fake, Bot);
    assert!(matches!(&outcome, Outcome::NotStarted { reason } if reason.contains("cannot be flushed")), "{outcome:?}");
    assert_eq!(fake.listing("/sys"), before);
    assert!(fake.states().is_empty());
}

#[test]
fn a_disk_that_the_new_driver_rejects_is_bound_to_the_previous_one() {
    let mut fake = fake("dual", "2-1:1.0");
    fake.trouble = Trouble { refused_by: vec!["usb-storage"], ..Trouble::default() };
    let outcome = switch(&mut fake, Bot);
    assert!(
        matches!(&outcome, Outcome::RolledBack { reason, .. } if reason.contains("could not be bound")),
        "{outcome:?}"
    );
    assert_eq!((transport(&fake), fake.quirks().as_str()), (Uas, ""));
    assert!(fake.states().is_empty(), "nothing is left to do");
}

#[test]
fn a_disk_that_never_returns_is_bound_to_its_previous_driver() {
    let mut fake = fake("dual", "2-1:1.0");
    fake.trouble = Trouble { silent_on: vec!["usb-storage"], ..Trouble::default() };
    let outcome = switch(&mut fake, Bot);
    assert!(matches!(&outcome, Outcome::RolledBack { reason, .. } if reason.contains("did not return")), "{outcome:?}");
    assert_eq!((transport(&fake), fake.quirks().as_str()), (Uas, ""));
    assert_eq!(fake.disk().expect("the disk").blocks.len(), 1);
}

/// The disk appears at the fourth check; checks are 100 ms apart.
#[test]
fn a_disk_that_returns_after_the_time_limit_is_undone() {
    for (wait_ms, is_there) in [(300, false), (500, true)] {
        let mut fake = fake("dual", "2-1:1.0");
        fake.wait = Duration::from_millis(wait_ms);
        let outcome = switch(&mut fake, Bot);
        assert_eq!(matches!(outcome, Outcome::Switched { .. }), is_there, "{wait_ms} ms: {outcome:?}");
    }
}

/// Goal: after a later switch was undone, the transport before an earlier completed switch is still known.
/// Method: switch to BOT; then to UAS, on which the disk does not respond; then read the kept state.
#[test]
fn an_undone_switch_keeps_the_record_of_the_one_before() {
    let mut fake = fake("dual", "2-1:1.0");
    assert_switched(&switch(&mut fake, Bot), &["sda"]);
    fake.trouble = Trouble { silent_on: vec!["uas"], ..Trouble::default() };
    assert!(matches!(switch(&mut fake, Uas), Outcome::RolledBack { .. }));
    assert_eq!(transport(&fake), Bot);
    let [state] = &fake.states()[..] else { panic!("{:?}", fake.states()) };
    assert_eq!((state.step, state.plan.from, state.plan.to), (Step::Done, Uas, Bot));
}

#[test]
fn a_disk_with_different_content_is_bound_to_its_previous_driver() {
    let mut fake = fake("dual", "2-1:1.0");
    fake.trouble = Trouble { other_on: vec!["usb-storage"], ..Trouble::default() };
    let outcome = switch(&mut fake, Bot);
    assert!(
        matches!(&outcome, Outcome::RolledBack { reason, .. } if reason.contains("first or last bytes")),
        "{outcome:?}"
    );
    assert_eq!(transport(&fake), Uas);
}

#[test]
fn a_disk_that_returns_on_neither_driver_is_reported_lost_and_the_next_run_tries_again() {
    let mut fake = fake("dual", "2-1:1.0");
    fake.trouble = Trouble { silent_on: vec!["uas", "usb-storage"], ..Trouble::default() };
    let outcome = switch(&mut fake, Bot);
    assert!(matches!(&outcome, Outcome::Lost { .. }), "{outcome:?}");
    assert_eq!(fake.quirks(), "", "the quirk string is restored nevertheless");
    let state = fake.states().pop().expect("it is kept");
    // It responds again.
    fake.trouble = Trouble::default();
    let system = fake.system.clone();
    let outcome = resume(&system, state, &mut fake, &mut |_| {});
    assert!(matches!(&outcome, Outcome::RolledBack { .. }), "{outcome:?}");
    assert_eq!((transport(&fake), fake.states().len()), (Uas, 0));
}

/// Goal: wherever the process is killed, the next run leaves a working disk and the original quirk string.
/// Method: a kill before the first call, before the second, and so on until one run is not killed; after
/// each, a new run resumes from the file alone.
#[test]
fn after_a_kill_before_any_call_the_next_run_finishes_or_undoes_the_switch() {
    for (machine, to, quirks) in [("dual", Bot, "152d:0578:f"), ("user-quirk", Uas, "1209:0001:u")] {
        let mut ended = (0, 0, 0);
        for killed_at in 0.. {
            let mut fake = fake(machine, "2-1:1.0");
            fake.set(QUIRKS, &format!("{quirks}\n"));
            let from = transport(&fake);
            fake.trouble = Trouble { killed_at: Some(killed_at), ..Trouble::default() };
            let is_killed = catch_unwind(AssertUnwindSafe(|| switch(&mut fake, to))).is_err();
            if !is_killed {
                assert!(killed_at > 7, "there is no such call: {:?}", fake.calls);
                break;
            }
            fake.trouble = Trouble::default();
            let states = fake.states();
            let Some(state) = states.into_iter().next() else {
                assert_eq!((transport(&fake), fake.quirks().as_str()), (from, quirks), "nothing was touched yet");
                ended.0 += 1;
                continue;
            };
            let system = fake.system.clone();
            let outcome = resume(&system, state, &mut fake, &mut |_| {});
            let context = format!("killed before call {killed_at}: {outcome:?} {:?}", fake.calls);
            let blocks = fake.disk().expect("the disk").blocks.len();
            match outcome {
                Outcome::Switched { .. } => {
                    assert_eq!(transport(&fake), to, "{context}");
                    assert_eq!(fake.states()[0].step, Step::Done, "{context}");
                    ended.1 += 1;
                }
                Outcome::RolledBack { .. } => {
                    assert_eq!(transport(&fake), from, "{context}");
                    assert!(fake.states().is_empty(), "{context}");
                    ended.2 += 1;
                }
                _ => panic!("{context}"),
            }
            assert_eq!((blocks, fake.quirks().as_str()), (1, quirks), "{context}");
        }
        assert!(ended.0 >= 3 && ended.1 >= 1 && ended.2 >= 3, "each ending was seen: {ended:?}");
    }
}

/// Resumes from the file alone, as the next run does.
#[track_caller]
fn next_run(fake: &mut Fake) -> Outcome {
    let state = fake.states().pop().expect("a note");
    let system = fake.system.clone();
    resume(&system, state, fake, &mut |_| {})
}

/// Goal: a disk that its owner mounted after a run was killed is never removed, whatever else differs. The
/// state stays, and the next run after unmounting resolves it. Method: a kill before each call; if the disk
/// is present then, on either driver, it is mounted and its first bytes change. The fake fails if a mounted
/// disk is removed or unbound.
#[test]
fn a_disk_that_was_mounted_after_a_kill_is_not_touched_until_it_is_unmounted() {
    let mut left = 0;
    for killed_at in 0.. {
        let mut fake = fake("dual", "2-1:1.0");
        fake.trouble = Trouble { killed_at: Some(killed_at), ..Trouble::default() };
        if catch_unwind(AssertUnwindSafe(|| switch(&mut fake, Bot))).is_ok() {
            break;
        }
        // The kernel continues without us: one second later the disk appears on the bound driver.
        fake.trouble = Trouble { other_on: vec!["usb-storage", "uas"], ..Trouble::default() };
        (0..5).for_each(|_| fake.pause(std::time::Duration::ZERO));
        let is_there = fake.disk().is_some_and(|disk| !disk.blocks.is_empty());
        if fake.states().is_empty() || !is_there {
            continue;
        }
        fake.mount("sda", "/mnt");
        let on = transport(&fake);
        let outcome = next_run(&mut fake);
        let context = format!("killed before call {killed_at}, on {on}: {outcome:?} {:?}", fake.calls);
        assert_eq!(fake.quirks(), "", "{context}");
        if on == Uas {
            // It was not removed yet, so there is nothing to undo.
            assert!(matches!(outcome, Outcome::RolledBack { .. }), "{context}");
            assert!(fake.states().is_empty(), "{context}");
            continue;
        }
        let Outcome::InUse { reason, users, on: Bot } = &outcome else { panic!("{context}") };
        assert!(reason.contains("first or last bytes") && users[0].contains("sda is mounted at /mnt"), "{context}");
        assert_eq!((transport(&fake), fake.states().len()), (Bot, 1), "{context}");
        left += 1;
        fake.unmount("/mnt");
        let outcome = next_run(&mut fake);
        assert!(matches!(outcome, Outcome::RolledBack { .. }), "{outcome:?}");
        assert_eq!((transport(&fake), fake.states().len()), (Uas, 0));
    }
    assert!(left > 0, "no kill left the disk on BOT");
}

/// Goal: a unit that a desktop mounts while the command waits for another one is not removed if the other
/// does not return. Method: two units; the first is mounted as it returns and the second never returns; no
/// kill.
#[test]
fn a_unit_that_is_mounted_at_once_is_not_removed_when_another_unit_does_not_return() {
    let mut fake = Fake::with_two_units(tree::recorded("usb/dual"), "2-1:1.0");
    fake.trouble = Trouble { mounted_when_back: Some("sda"), missing: Some("sdb"), ..Trouble::default() };
    let outcome = switch(&mut fake, Bot);
    let Outcome::InUse { reason, users, on: Bot } = &outcome else { panic!("{outcome:?} {:?}", fake.calls) };
    assert!(reason.contains("1 of 2 block devices") && users[0].contains("mounted at /media/stick"), "{outcome:?}");
    assert_eq!((transport(&fake), fake.quirks().as_str(), fake.states().len()), (Bot, "", 1));
    // Without the mount both are undone, including the second unit.
    fake.unmount("/media/stick");
    fake.trouble = Trouble::default();
    let outcome = next_run(&mut fake);
    assert!(matches!(&outcome, Outcome::RolledBack { blocks, .. } if blocks.len() == 2), "{outcome:?}");
    assert_eq!(transport(&fake), Uas);
}

/// A program that has the disk open briefly, as udev does with every new disk, delays the undo. One that
/// keeps it open is named.
#[test]
fn an_open_disk_is_not_undone_and_the_process_is_named() {
    let mut fake = fake("dual", "2-1:1.0");
    fake.trouble = Trouble { other_on: vec!["usb-storage"], ..Trouble::default() };
    fake.set("/proc/4711/comm", "smartd\n");
    let plan = fake.plan(Bot).expect("a plan");
    fs::create_dir_all(fake.system.locate("/proc/4711/fd")).expect("a folder");
    symlink("/dev/sda", fake.system.locate("/proc/4711/fd/3")).expect("a link");
    let system = fake.system.clone();
    let outcome = execute(&system, plan, None, &mut fake, &mut |_| {});
    assert!(
        matches!(&outcome, Outcome::InUse { users, .. } if users[0].contains("process 4711 (smartd)")),
        "{outcome:?}"
    );
    assert_eq!(transport(&fake), Bot);
}

#[test]
fn a_disk_unplugged_before_any_call_is_reported_and_the_quirk_string_is_restored() {
    let mut unplugged = 0;
    for unplugged_at in 0.. {
        let mut fake = fake("dual", "2-1:1.0");
        fake.set(QUIRKS, "152d:0578:f\n");
        fake.trouble = Trouble { unplugged_at: Some(unplugged_at), ..Trouble::default() };
        let outcome = switch(&mut fake, Bot);
        let context = format!("unplugged before call {unplugged_at}: {outcome:?} {:?}", fake.calls);
        assert_eq!(fake.quirks(), "152d:0578:f", "{context}");
        match &outcome {
            Outcome::Switched { .. } => break,
            Outcome::NotStarted { .. } => assert!(unplugged_at < 3, "{context}"),
            Outcome::Unplugged { reason } => {
                assert!(reason.contains("unplugged"), "{context}");
                unplugged += 1;
            }
            _ => panic!("{context}"),
        }
        assert!(fake.states().is_empty(), "{context}");
    }
    assert!(unplugged >= 5, "{unplugged}");
}

#[test]
fn the_next_run_does_not_touch_another_disk_in_the_port() {
    let mut fake = fake("dual", "2-1:1.0");
    fake.trouble = Trouble { killed_at: Some(6), ..Trouble::default() };
    assert!(catch_unwind(AssertUnwindSafe(|| switch(&mut fake, Bot))).is_err());
    let serial = fs::canonicalize(fake.system.locate("/sys/bus/usb/devices/2-1")).expect("2-1").join("serial");
    fs::write(serial, "ANOTHER\n").expect("a file");
    fake.trouble = Trouble::default();
    fake.calls.clear();
    let state = fake.states().pop().expect("a state");
    let system = fake.system.clone();
    let outcome = resume(&system, state, &mut fake, &mut |_| {});
    assert!(matches!(&outcome, Outcome::Unplugged { reason } if reason.contains("another disk")), "{outcome:?}");
    assert_eq!(fake.calls, ["module/usb_storage/parameters/quirks < "], "only the quirk string is restored");
}

#[test]
fn changes_of_the_quirk_string_by_others_are_kept() {
    let mut fake = fake("dual", "2-1:1.0");
    fake.trouble = Trouble { killed_at: Some(6), ..Trouble::default() };
    assert!(catch_unwind(AssertUnwindSafe(|| switch(&mut fake, Bot))).is_err());
    assert_eq!(fake.quirks(), "1209:0001:u");
    fake.set(QUIRKS, "1209:0001:u,0bc2:ab24:t\n");
    fake.trouble = Trouble::default();
    let state = fake.states().pop().expect("a state");
    let system = fake.system.clone();
    let _ = resume(&system, state, &mut fake, &mut |_| {});
    assert_eq!(fake.quirks(), "0bc2:ab24:t");
}

#[test]
fn an_invalid_state_file_prevents_every_switch() {
    let fake = fake("dual", "2-1:1.0");
    fake.set("/states/2-1:1.0.json", "{\"version\": 1");
    let error = trueio_usb::pending(&fake.folder.join("states")).expect_err("half a file");
    assert!(error.to_string().contains("2-1:1.0.json"), "{error}");
}

#[test]
fn persistent_quirks_share_one_line_and_can_be_removed() {
    let fake = fake("dual", "2-1:1.0");
    let file = fake.system.locate(trueio_device::usb::PERSIST_FILE);
    let line = |quirks: &str| Persisted::Written { line: format!("options usb-storage quirks={quirks}") };
    let done = |planned: Persisted| {
        persist(&fake.system, &planned).expect("it is done");
        planned
    };
    let keep = |entry: &str, v, p| done(plan_persist(&fake.system, v, p, Some(entry)).expect("it can be kept"));
    let drop_it = |v, p| done(plan_unpersist(&fake.system, v, p));
    assert_eq!(keep("1209:0001:u", 0x1209, 1), line("1209:0001:u"));
    assert_eq!(keep("0bc2:ab24:tu", 0x0bc2, 0xab24), line("0bc2:ab24:tu,1209:0001:u"));
    assert_eq!(keep("1209:0001:u", 0x1209, 1), line("1209:0001:u,0bc2:ab24:tu"));
    assert_eq!(keep("1209:0001:u", 0x1209, 1), Persisted::Unchanged);
    assert!(fs::read_to_string(&file).expect("the file").lines().filter(|l| !l.starts_with('#')).count() == 1);
    assert_eq!(drop_it(0x1209, 1), line("0bc2:ab24:tu"));
    assert_eq!(drop_it(0x1209, 1), Persisted::Unchanged);
    assert_eq!(drop_it(0x0bc2, 0xab24), Persisted::Removed);
    assert!(!file.exists());
}

#[test]
fn another_line_for_the_same_parameter_is_refused() {
    let fake = fake("dual", "2-1:1.0");
    fake.set("/etc/modprobe.d/mine.conf", "options usb_storage delay_use=1 quirks=152d:0578:u\n");
    let planned = |entry| plan_persist(&fake.system, 0x1209, 1, entry);
    let error = planned(Some("1209:0001:u")).expect_err("one would be lost");
    assert!(matches!(&error, PersistError::Other { path, .. } if path == "/etc/modprobe.d/mine.conf"), "{error}");
    // If no entry is needed, another line is a refusal only if it names this device.
    assert_eq!(planned(None).expect("it does not name this device"), Persisted::Unchanged);
    fake.set("/etc/modprobe.d/mine.conf", "options usb_storage quirks=1209:0001:u\n");
    planned(None).expect_err("the disk would not be on UAS after a restart");
    fs::remove_file(fake.system.locate("/etc/modprobe.d/mine.conf")).expect("the file");
    fake.set("/proc/cmdline", "quiet usb-storage.quirks=152d:0578:u\n");
    let error = planned(Some("1209:0001:u")).expect_err("modprobe uses the command line, too");
    assert!(matches!(&error, PersistError::Other { path, .. } if path == "/proc/cmdline"), "{error}");
    fake.set("/lib/modules/6.1.0-56-amd64/modules.builtin", "kernel/drivers/usb/storage/usb-storage.ko\n");
    let error = planned(Some("1209:0001:u")).expect_err("modprobe is not used");
    assert!(error.to_string().contains("`usb-storage.quirks=1209:0001:u` on the kernel's command line"), "{error}");
}
