//! Which runs are on the same device: by what the disk and the filesystem say of themselves, never by
//! a name. The machines are the recorded trees of `crates/device`, and the same trees with a disk
//! under another name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use trueio_device::{System, target_facts};
use trueio_model::{Fact, IdentityKind, RunRecord, TargetFacts};
use trueio_store::{Filter, Store};

/// A target of a recorded machine, after `edits` (from, to) of its tree.
fn target(name: &str, path: &str, edits: &[(&str, &str)]) -> TargetFacts {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device/tests/machines").join(name);
    let read = |name: &str| {
        let text = fs::read_to_string(source.join(name)).expect(name);
        edits.iter().fold(text, |text, (from, to)| text.replace(from, to))
    };
    let folder = tempfile::tempdir().expect("a folder");
    let place = |path: &str| -> PathBuf {
        let place = folder.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(place.parent().expect("below the folder")).expect("a folder");
        place
    };
    for line in read("tree.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((path, target)) = line.split_once(" -> ") {
            symlink(target, place(path)).expect(line);
        } else if let Some((path, text)) = line.split_once(" = ") {
            let before = fs::read_to_string(place(path)).unwrap_or_default();
            fs::write(place(path), format!("{before}{text}\n")).expect(line);
        } else {
            fs::create_dir_all(place(path_of(line))).expect(line);
        }
    }
    fs::write(folder.path().join("paths"), read("paths")).expect("paths");
    let system = System::recorded(folder.path()).expect("a recorded machine");
    target_facts(&system, Path::new(path)).expect(path)
}

fn path_of(line: &str) -> &str {
    line.strip_suffix('/').expect(line)
}

/// A history with a run on each target, in this order; the devices of each run.
fn devices_of(targets: &[TargetFacts]) -> (tempfile::TempDir, Store, Vec<Vec<i64>>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Store::open(folder.path()).expect("a history");
    let mut record: RunRecord = serde_json::from_str(include_str!("../records/v1.json")).expect("the kept record");
    let mut devices = Vec::new();
    for (n, target) in targets.iter().enumerate() {
        record.id = format!("{n:032x}");
        record.started_unix_s = n as u64;
        record.targets = vec![target.clone()];
        store.insert(&record).expect("inserted");
        devices.push(store.get(&record.id).expect("there").entry.devices);
    }
    (folder, store, devices)
}

const NVME: (&str, &str) = ("nvme-crypt", "/home/data");
const MIRROR: (&str, &str) = ("md-raid1-sata", "/srv/data");

#[test]
fn the_same_disk_under_another_name_is_the_same_device() {
    let first = target(NVME.0, NVME.1, &[]);
    let renamed = target(NVME.0, NVME.1, &[("nvme0", "nvme7"), ("259:", "260:")]);
    assert_eq!((first.disks[0].name.as_str(), renamed.disks[0].name.as_str()), ("nvme0n1", "nvme7n1"));
    let (_folder, store, devices) = devices_of(&[first, renamed]);
    assert_eq!(devices[0].len(), 1);
    assert_eq!(devices[0], devices[1]);
    let known = store.devices().expect("devices");
    assert_eq!(known.len(), 1);
    assert_eq!((known[0].run_count, known[0].newest_unix_s), (2, 1));
    assert_eq!(known[0].label, "Samsung SSD 980 PRO 1TB, 932 GiB");
    assert_eq!(
        known[0].keys,
        [
            (IdentityKind::Wwid, "eui.0025385b11b2f3a1".to_owned()),
            (IdentityKind::Serial, "Samsung SSD 980 PRO 1TB / S5GXNX0R000000".to_owned()),
            (IdentityKind::FilesystemUuid, "11111111-2222-3333-4444-555555555555".to_owned())
        ]
    );
}

#[test]
fn another_disk_with_the_same_name_is_another_device_even_with_a_cloned_filesystem() {
    let other = [("S5GXNX0R000000", "S5GXNX0R999999"), ("eui.0025385b11b2f3a1", "eui.002538ba11b0ffff")];
    let (_folder, store, devices) = devices_of(&[target(NVME.0, NVME.1, &[]), target(NVME.0, NVME.1, &other)]);
    assert_ne!(devices[0], devices[1]);
    assert_eq!(store.devices().expect("devices").len(), 2);
}

#[test]
fn two_namespaces_of_one_controller_are_two_devices() {
    let second = target(NVME.0, NVME.1, &[("eui.0025385b11b2f3a1", "eui.002538ba11b02b5d")]);
    let (_folder, _store, devices) = devices_of(&[target(NVME.0, NVME.1, &[]), second]);
    assert_ne!(devices[0], devices[1]);
}

#[test]
fn a_mirror_is_known_by_both_disks_whichever_comes_first() {
    let first = target(MIRROR.0, MIRROR.1, &[]);
    assert_eq!(first.disks.len(), 2);
    let mut swapped = first.clone();
    swapped.disks.reverse();
    let mut one_replaced = first.clone();
    one_replaced.disks[1].wwid = Fact::known("naa.50014ee2b1c20000".to_owned(), "test");
    let (_folder, _store, devices) = devices_of(&[first, swapped, one_replaced]);
    assert_eq!(devices[0], devices[1]);
    assert_ne!(devices[0], devices[2], "a mirror with another disk is another device");
}

#[test]
fn a_record_that_knows_less_belongs_to_the_device_it_agrees_with() {
    let full = target(NVME.0, NVME.1, &[]);
    // Written before trueio asked for the identifier and the UUID.
    let mut old = full.clone();
    old.disks[0].wwid = Fact::unknown("not asked");
    old.filesystem.as_mut().expect("a filesystem").uuid = Fact::unknown("not asked");
    // In a container that sees no disks.
    let mut blind = full.clone();
    blind.disks.clear();
    let (_folder, _store, devices) = devices_of(&[old.clone(), full, blind, old]);
    assert_eq!(devices, [vec![1], vec![1], vec![1], vec![1]]);
}

#[test]
fn a_record_that_fits_two_devices_equally_is_given_to_neither() {
    let first = target(NVME.0, NVME.1, &[]);
    let clone =
        target(NVME.0, NVME.1, &[("S5GXNX0R000000", "OTHER"), ("eui.0025385b11b2f3a1", "eui.0025000000000001")]);
    let mut blind = first.clone();
    blind.disks.clear();
    let (_folder, _store, devices) = devices_of(&[first, clone, blind.clone(), blind]);
    assert_eq!(devices, [vec![1], vec![2], vec![3], vec![3]], "the two that know only the filesystem are together");
}

#[test]
fn what_has_no_identity_has_no_device_although_its_name_is_the_same() {
    let bare = target("firecracker-virtio", "/dev/vda", &[]);
    assert_eq!(bare.disks[0].serial.value.as_deref(), Some("overlayblk"), "a word is no serial number");
    let (_folder, store, devices) = devices_of(&[bare.clone(), bare]);
    assert_eq!(devices, [vec![], vec![]] as [Vec<i64>; 2]);
    assert_eq!(store.devices().expect("devices"), []);
}

#[test]
fn runs_are_listed_by_device_and_a_device_is_forgotten_with_its_last_run() {
    let other = [("S5GXNX0R000000", "OTHER"), ("eui.0025385b11b2f3a1", "eui.0025000000000001")];
    let first = target(NVME.0, NVME.1, &[]);
    let (_folder, mut store, devices) = devices_of(&[first.clone(), target(NVME.0, NVME.1, &other), first]);
    let on = |store: &Store, device: i64| {
        let filter = Filter { device: Some(device), ..Filter::default() };
        store.list(&filter).expect("a list").iter().map(|e| e.started_unix_s).collect::<Vec<_>>()
    };
    assert_eq!(on(&store, devices[0][0]), [2, 0]);
    assert_eq!(on(&store, devices[1][0]), [1]);
    assert_eq!(store.delete(&[format!("{:032x}", 1)]).expect("deleted"), 1);
    assert_eq!(store.devices().expect("devices").iter().map(|d| d.id).collect::<Vec<_>>(), devices[0]);
    assert_eq!(on(&store, devices[0][0]), [2, 0]);
}
