//! Recorded and hand-written machines (`machines/README.md`), and the machine the tests run on.

use crate::tree::{Machine, recorded};
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use trueio_device::{Holder, HolderKind, System, counters, disk_facts, environment, target_facts, who_holds};
use trueio_model::{DirectSupport, TargetFacts, TargetKind};

fn machine(name: &str) -> Machine {
    recorded(&format!("machines/{name}"))
}

fn facts(machine: &Machine, path: &str) -> TargetFacts {
    target_facts(&machine.system, Path::new(path)).expect(path)
}

/// The stack as lines: depth, kind, name.
fn stack(facts: &TargetFacts) -> Vec<String> {
    facts.stack.iter().map(|layer| format!("{} {} {}", layer.depth, layer.kind, layer.name)).collect()
}

fn disks(facts: &TargetFacts) -> Vec<&str> {
    facts.disks.iter().map(|disk| disk.name.as_str()).collect()
}

#[test]
fn a_virtio_guest_is_read_with_every_fact_and_its_source() {
    let machine = machine("firecracker-virtio");
    let facts = facts(&machine, "/home/user/data");
    assert_eq!(facts.kind, TargetKind::File);
    assert_eq!(facts.size_bytes.value, Some(1 << 30));
    assert_eq!(stack(&facts), ["0 file /home/user/data", "1 filesystem ext4 on /", "2 disk vda"]);
    let filesystem = facts.filesystem.as_ref().expect("a file lies on a filesystem");
    assert_eq!((filesystem.kind.as_str(), filesystem.source.as_str()), ("ext4", "/dev/vda"));
    assert!(filesystem.options.contains("relatime") && filesystem.options.contains("discard"));

    let disk = &facts.disks[0];
    assert_eq!((disk.name.as_str(), disk.device_number), ("vda", (254, 0)));
    assert_eq!(disk.size_bytes.value, Some(256 << 30));
    assert_eq!(disk.transport.value.as_ref().map(|fact| fact.as_str()), Some("virtio"));
    assert_eq!(disk.scheduler.value.as_deref(), Some("mq-deadline"));
    assert_eq!(disk.write_cache.value.as_ref().map(|fact| fact.as_str()), Some("write back"));
    assert_eq!(
        (disk.has_fua.value, disk.is_rotational.value, disk.counts_io.value),
        (Some(false), Some(true), Some(true))
    );
    assert_eq!((disk.logical_sector_bytes.value, disk.physical_sector_bytes.value), (Some(512), Some(4096)));
    assert_eq!((disk.max_request_bytes.value, disk.read_ahead_bytes.value), (Some(4 << 20), Some(8 << 20)));
    assert_eq!(disk.model.value, None);
    assert_eq!(disk.model.source, "/sys/block/vda/device/model does not exist");
    assert_eq!(disk.has_fua.source, "/sys/block/vda/queue/fua");

    // The kernel cannot be probed, so the logical sector is used, and the source names it.
    assert_eq!(facts.direct.support, DirectSupport::Unknown);
    assert_eq!(facts.direct.write_alignment_bytes.value, Some(512));
    assert!(facts.direct.write_alignment_bytes.source.contains("logical sector"));

    let environment = environment(&machine.system);
    assert_eq!(environment.system, "Linux 6.18.44 x86_64");
    assert_eq!(environment.cpu.model.value.as_deref(), Some("AMD EPYC"));
    assert_eq!(environment.cpu.usable_count, 2);
    assert_eq!(environment.clock_source.value.as_deref(), Some("tsc"));
    assert_eq!(environment.memory_bytes.value, Some(24_684_092 * 1024));
    assert!(environment.hypervisor.value.is_some_and(|name| name == "hypervisor unknown"));
    assert!(counters(&machine.system, "vda").expect("vda has counters").read_count > 0);
}

#[test]
fn a_file_on_tmpfs_has_no_disk_and_no_direct_io() {
    let machine = machine("firecracker-virtio");
    let facts = facts(&machine, "/dev/shm/data");
    assert_eq!(stack(&facts), ["0 file /dev/shm/data", "1 filesystem tmpfs on /dev/shm"]);
    assert_eq!(disks(&facts), [] as [&str; 0]);
    assert_eq!(facts.direct.support, DirectSupport::SilentlyBuffered);
}

#[test]
fn a_device_is_its_own_stack_and_dev_null_has_none() {
    let machine = machine("firecracker-virtio");
    let device = facts(&machine, "/dev/vda");
    assert_eq!((device.kind, device.filesystem.is_none()), (TargetKind::BlockDevice, true));
    assert_eq!(device.size_bytes.value, Some(256 << 30));
    assert_eq!(stack(&device), ["0 disk vda"]);
    let null = facts(&machine, "/dev/null");
    assert_eq!((null.kind, stack(&null).len()), (TargetKind::CharacterDevice, 0));
}

#[test]
fn a_subvolume_is_followed_through_btrfs_and_encryption_to_the_nvme_disk() {
    let machine = machine("nvme-crypt");
    let facts = facts(&machine, "/home/data");
    assert_eq!(
        stack(&facts),
        [
            "0 file /home/data",
            "1 filesystem btrfs on /home",
            "2 dm dm-0 (crypt root)",
            "3 partition nvme0n1p2",
            "4 disk nvme0n1"
        ]
    );
    let disk = &facts.disks[0];
    assert_eq!(disk.model.value.as_deref(), Some("Samsung SSD 980 PRO 1TB"));
    assert_eq!(disk.serial.value.as_deref(), Some("S5GXNX0R000000"));
    assert_eq!(disk.wwid.value.as_deref(), Some("eui.0025385b11b2f3a1"));
    assert_eq!(
        (disk.transport.value.as_ref().map(|fact| fact.as_str()), disk.has_fua.value),
        (Some("nvme"), Some(true))
    );
    let uuid = &facts.filesystem.as_ref().expect("a filesystem").uuid;
    assert_eq!(uuid.value.as_deref(), Some("11111111-2222-3333-4444-555555555555"));
    assert_eq!(uuid.source, "/sys/fs/btrfs/11111111-2222-3333-4444-555555555555");
    assert_eq!(counters(&machine.system, "nvme0n1").expect("counters").flush_count, Some(7));
}

#[test]
fn a_mirror_is_traced_to_both_of_its_disks() {
    let machine = machine("md-raid1-sata");
    let facts = facts(&machine, "/srv/data");
    assert_eq!(
        stack(&facts),
        [
            "0 file /srv/data",
            "1 filesystem xfs on /srv",
            "2 dm dm-0 (lvm vg-srv)",
            "3 md md0 (raid1)",
            "4 partition sda1",
            "5 disk sda",
            "4 partition sdb1",
            "5 disk sdb"
        ]
    );
    assert_eq!(disks(&facts), ["sda", "sdb"]);
    assert_eq!(facts.disks[0].model.value.as_deref(), Some("WDC WD40EFRX-68N"), "`ATA` is no vendor");
    assert_eq!(facts.disks[0].transport.value.as_ref().map(|fact| fact.as_str()), Some("sata"));
    assert_eq!(facts.disks[0].counts_io.value, Some(false));
    assert_eq!(counters(&machine.system, "sda").expect("eleven values").flush_count, None);
    let usb = disk_facts(&machine.system, "sdc").expect("sdc");
    assert_eq!(usb.model.value.as_deref(), Some("Samsung Portable SSD T7"));
    assert_eq!(usb.transport.value.as_ref().map(|fact| fact.as_str()), Some("usb"));
    let wwids: Vec<_> = facts.disks.iter().map(|disk| disk.wwid.value.as_deref()).collect();
    assert_eq!(wwids, [Some("naa.50014ee20e0d1c2b"), Some("naa.50014ee2b1c2d3f5")]);
    let uuid = &facts.filesystem.as_ref().expect("a filesystem").uuid;
    assert_eq!(uuid.value.as_deref(), Some("0b7fbb1e-3d2c-4b1a-9f08-a7c6e5d4f3b2"));
    assert!(uuid.source.starts_with("/dev/disk/by-uuid/"), "{}", uuid.source);
}

/// The words of a layer: `name = value`, what is not known left out.
fn words(facts: &TargetFacts, layer: &str) -> Vec<String> {
    let layer = facts.stack.iter().find(|found| found.name.starts_with(layer)).expect(layer);
    let known = layer.facts.iter().filter_map(|named| Some(format!("{} = {}", named.name, named.fact.value.as_ref()?)));
    known.collect()
}

#[test]
fn each_layer_reports_the_properties_of_its_kind() {
    let machine = machine("md-raid1-sata");
    let facts = facts(&machine, "/srv/data");
    assert_eq!(
        words(&facts, "sda1"),
        ["begins at = 1 MiB", "size = 3.64 TiB", "aligned = to the disk's physical sectors"]
    );
    let crooked = words(&facts, "sdb1");
    assert_eq!(crooked[0], "begins at = 31.5 KiB");
    assert_eq!(crooked[2], "aligned = no: 512 bytes off the disk's physical sectors");
    let raid = words(&facts, "md0");
    for word in ["level = raid1", "members = 2", "missing members = 0", "state = clean", "doing = idle", "chunk = 0 B"]
    {
        assert!(raid.contains(&word.to_owned()), "{word} is not in {raid:?}");
    }
    let volume = words(&facts, "dm-0");
    assert!(volume.contains(&"name = vg-srv".to_owned()) && volume.contains(&"suspended = 0".to_owned()), "{volume:?}");
}

#[test]
fn facts_and_request_limits_of_a_sata_and_a_usb_disk_are_read() {
    let machine = machine("md-raid1-sata");
    let sata = disk_facts(&machine.system, "sda").expect("sda");
    assert_eq!(
        (sata.firmware.value.as_deref(), sata.wwid.value.as_deref()),
        (Some("0A82"), Some("naa.50014ee20e0d1c2b"))
    );
    assert_eq!(sata.firmware.source, "/sys/block/sda/device/rev");
    let limits = &sata.limits;
    assert_eq!(limits.max_hw_request_bytes.value, Some(32_767 << 10));
    assert_eq!(limits.dma_alignment_bytes.value, Some(4), "sysfs shows a mask");
    assert_eq!((limits.discard_max_bytes.value, limits.can_poll.value), (Some(0), Some(false)));
    assert_eq!(
        (limits.zoned.value.as_ref().map(|fact| fact.as_str()), limits.hardware_queue_count.value),
        (Some("none"), Some(1))
    );
    assert_eq!((limits.queue_depth.value, limits.tag_count.value), (Some(32), Some(32)), "a queue of SATA");
    assert_eq!(limits.atomic_write_max_bytes.value, None);
    assert!(limits.atomic_write_max_bytes.source.ends_with("queue/atomic_write_unit_max_bytes does not exist"));
    let usb = disk_facts(&machine.system, "sdc").expect("sdc");
    assert_eq!(usb.write_cache.value.as_ref().map(|fact| fact.as_str()), Some("write through"));
    assert_eq!(usb.limits.optimal_io_bytes.value, Some(33_553_920));
}

#[test]
fn an_nvme_disk_reports_polling_and_atomic_writes() {
    let machine = machine("nvme-crypt");
    let facts = facts(&machine, "/dev/nvme0n1");
    let disk = &facts.disks[0];
    assert_eq!(disk.firmware.value.as_deref(), Some("5B2QGXA7"));
    assert_eq!(
        (disk.wwid.value.as_deref(), disk.wwid.source.as_str()),
        (Some("eui.0025385b11b2f3a1"), "/sys/block/nvme0n1/wwid")
    );
    let limits = &disk.limits;
    assert_eq!((limits.can_poll.value, limits.hardware_queue_count.value), (Some(true), Some(4)));
    assert_eq!(limits.atomic_write_max_bytes.value, Some(16_384));
    assert_eq!(limits.write_zeroes_max_bytes.value, Some(131_072));
}

/// Goal: a cached disk is followed to both of its devices, and neither of them is free.
/// Method: a recorded tree of ext4 on bcache; who uses the backing disk, the cache, its whole disk.
#[test]
fn bcache_is_traced_to_the_disk_and_its_cache_and_both_are_held() {
    let machine = machine("bcache-writeback");
    let facts = facts(&machine, "/home/data");
    assert_eq!(
        stack(&facts),
        [
            "0 file /home/data",
            "1 filesystem ext4 on /",
            "2 bcache bcache0",
            "3 partition nvme0n1p3",
            "4 disk nvme0n1",
            "3 disk sda"
        ]
    );
    assert_eq!(disks(&facts), ["nvme0n1", "sda"]);
    let words = words(&facts, "bcache0");
    for word in ["state = dirty", "mode = writethrough [writeback] writearound none", "not written back = 3.1G"] {
        assert!(words.contains(&word.to_owned()), "{word} is not in {words:?}");
    }
    for (path, device) in [("/dev/sda", "sda"), ("/dev/nvme0n1p3", "nvme0n1p3"), ("/dev/nvme0n1", "nvme0n1p3")] {
        let held = holders(&machine, path);
        assert!(held.contains(&stacked(device, "bcache0")), "{path}: {held:?}");
        assert!(held.contains(&mounted("bcache0", "/", 1)), "{path}: {held:?}");
    }
}

#[test]
fn a_loop_device_is_counted_itself_and_is_seen_to_stand_in_memory() {
    let machine = machine("loop-on-tmpfs");
    let facts = facts(&machine, "/mnt/data");
    assert_eq!(
        stack(&facts),
        [
            "0 file /mnt/data",
            "1 filesystem ext4 on /mnt",
            "2 loop loop0 (buffered)",
            "3 file /tmp/image",
            "4 filesystem tmpfs on /tmp"
        ]
    );
    assert_eq!(disks(&facts), ["loop0"]);
    let twice = target_facts(&machine.system, Path::new("/dev/loop1")).expect("loop1");
    assert_eq!(stack(&twice)[..2], ["0 loop loop1 (direct)", "1 loop loop0 (buffered)"]);
    assert_eq!(disks(&twice), ["loop1"]);
}

#[test]
fn in_a_container_the_overlay_reports_hidden_layers_and_a_volume_is_followed() {
    let machine = machine("container-overlay");
    let overlay = facts(&machine, "/srv/data");
    assert_eq!(
        stack(&overlay),
        ["0 file /srv/data", "1 filesystem overlay on /", "2 directory /var/lib/containers/C/diff"]
    );
    assert!(overlay.stack[2].source.contains("another mount namespace"));
    assert!(overlay.disks.is_empty());
    assert_eq!(disks(&facts(&machine, "/data/table")), ["sda"]);
}

/// Goal: the facts of a file on NFS and on NTFS3, which the kernels of the tests' machines do not have: no disk is below the first, whose
/// server and options are kept; the second is followed to its disk. Method: a tree written by hand.
#[test]
fn nfs_has_no_disk_and_ntfs3_is_followed_to_its_own() {
    let machine = machine("nfs-and-ntfs3");
    let nfs = facts(&machine, "/mnt/nas/data");
    assert_eq!(stack(&nfs), ["0 file /mnt/nas/data", "1 filesystem nfs4 on /mnt/nas"]);
    assert_eq!(disks(&nfs), [] as [&str; 0]);
    let filesystem = nfs.filesystem.as_ref().expect("a filesystem");
    assert_eq!((filesystem.kind.as_str(), filesystem.source.as_str()), ("nfs4", "nas:/export/volume"));
    assert!(filesystem.options.contains("vers=4.2"), "{}", filesystem.options);
    assert_eq!(nfs.direct.support, DirectSupport::Unknown);
    assert_eq!(nfs.direct.write_alignment_bytes.value, None, "there is no sector");

    let ntfs = facts(&machine, "/mnt/win/data");
    assert_eq!(
        stack(&ntfs),
        ["0 file /mnt/win/data", "1 filesystem ntfs3 on /mnt/win", "2 partition sdb1", "3 disk sdb"]
    );
    assert_eq!(disks(&ntfs), ["sdb"]);
    assert_eq!(ntfs.filesystem.as_ref().map(|filesystem| filesystem.kind.as_str()), Some("ntfs3"));
    assert_eq!(ntfs.direct.support, DirectSupport::Unknown);
    assert_eq!(ntfs.direct.write_alignment_bytes.value, Some(512));
}

fn holders(machine: &Machine, path: &str) -> Vec<(String, HolderKind)> {
    let found = who_holds(&machine.system, Path::new(path)).expect(path).found;
    found.into_iter().map(|Holder { device, kind, .. }| (device, kind)).collect()
}

fn mounted(device: &str, mount_point: &str, process: u32) -> (String, HolderKind) {
    (device.to_owned(), HolderKind::Mounted { mount_point: mount_point.to_owned(), process })
}

fn stacked(device: &str, by: &str) -> (String, HolderKind) {
    (device.to_owned(), HolderKind::Stacked { by: by.to_owned() })
}

#[test]
fn a_disk_is_held_by_mounts_of_its_partitions_and_of_devices_stacked_on_them() {
    let machine = machine("nvme-crypt");
    let btrfs = HolderKind::Member { of: "btrfs 11111111-2222-3333-4444-555555555555".to_owned() };
    let expected_of_dm = [mounted("dm-0", "/", 1), mounted("dm-0", "/home", 1), ("dm-0".to_owned(), btrfs)];
    let of_disk = holders(&machine, "/dev/nvme0n1");
    for expected in &expected_of_dm {
        assert!(of_disk.contains(expected), "{expected:?} is missing in {of_disk:?}");
    }
    assert!(of_disk.contains(&mounted("nvme0n1p1", "/boot efi", 1)));
    assert!(of_disk.contains(&stacked("nvme0n1p2", "dm-0")));
    assert_eq!(of_disk.len(), 5);
    // A neighbouring partition shares no byte with this one.
    assert_eq!(holders(&machine, "/dev/nvme0n1p1"), [mounted("nvme0n1p1", "/boot efi", 1)]);
}

#[test]
fn a_partition_is_held_by_those_that_overlap_it() {
    let machine = machine("nvme-crypt");
    let disk = "sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1";
    let start = |first: u64| {
        std::fs::write(machine.folder.path().join(disk).join("nvme0n1p1/start"), format!("{first}\n")).unwrap();
        holders(&machine, "/dev/nvme0n1p1")
    };
    // The second begins at sector 1,050,624, the first has 1,048,576 sectors.
    assert_eq!(start(2048), [mounted("nvme0n1p1", "/boot efi", 1)]);
    let overlapping = start(2049);
    assert!(overlapping.contains(&mounted("dm-0", "/", 1)), "{overlapping:?}");
    assert!(overlapping.contains(&stacked("nvme0n1p2", "dm-0")), "{overlapping:?}");
}

#[test]
fn a_mount_in_another_namespace_and_swap_hold_a_disk_and_an_idle_disk_is_free_by_any_name() {
    let machine = machine("md-raid1-sata");
    let of_sda = holders(&machine, "/dev/sda");
    assert!(of_sda.contains(&mounted("dm-0", "/elsewhere", 77)), "{of_sda:?}");
    assert!(of_sda.contains(&("sda2".to_owned(), HolderKind::Swap)));
    assert!(of_sda.contains(&stacked("sda1", "md0")) && of_sda.contains(&stacked("md0", "dm-0")));
    assert!(!holders(&machine, "/dev/sdb").contains(&("sda2".to_owned(), HolderKind::Swap)));
    assert_eq!(holders(&machine, "/dev/sda2"), [("sda2".to_owned(), HolderKind::Swap)]);
    for free in ["/dev/sdc", "/dev/disk/by-id/usb-Samsung_T7"] {
        assert_eq!(holders(&machine, free), [], "{free}");
    }
}

#[test]
fn a_loop_device_is_held_through_the_device_below_it_and_through_a_twin_on_the_same_file() {
    let machine = machine("loop-on-tmpfs");
    for path in ["/dev/loop0", "/dev/loop1", "/dev/loop2"] {
        let found = holders(&machine, path);
        assert!(found.contains(&mounted("loop0", "/mnt", 1)), "{path}: {found:?}");
    }
    assert!(who_holds(&machine.system, Path::new("/mnt/data")).is_err(), "a file is no block device");
}

#[test]
fn this_machine_answers_for_a_file_a_directory_and_a_missing_path() {
    let system = System::live();
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("with space");
    fs::write(&path, [7; 5000]).expect("a file");
    let file = target_facts(&system, &path).expect("facts of a file");
    assert_eq!((file.kind, file.size_bytes.value), (TargetKind::File, Some(5000)));
    let filesystem = file.filesystem.as_ref().expect("a filesystem");
    assert!(filesystem.size_bytes.value > Some(0) && !filesystem.kind.as_str().is_empty());
    let directory = target_facts(&system, folder.path()).expect("facts of a directory");
    assert_eq!(directory.kind, TargetKind::Directory);
    assert_eq!(directory.direct.support, file.direct.support, "a directory is asked for the files made in it");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1, "the file made to ask is gone");
    assert!(target_facts(&system, &folder.path().join("missing")).is_err());

    let before = trueio_device::process_io(&system).expect("/proc/self/io");
    let ticks = trueio_device::cpu_ticks(&system).expect("/proc/stat");
    assert!(ticks.total > ticks.steal && ticks.total > ticks.busy && ticks.busy > ticks.interrupts, "{ticks:?}");
    assert!(trueio_device::kernel_thread_ticks(&system) < ticks.total);
    let waited_ns = trueio_device::kernel_worker_wait_ns(&system);
    assert!(waited_ns <= trueio_device::kernel_worker_wait_ns(&system), "{waited_ns:?}");
    let each = trueio_device::processor_ticks(&system).expect("/proc/stat");
    assert!(each.iter().all(|of| of.idle <= of.total), "{each:?}");
    assert!(each.iter().map(|of| of.total).sum::<u64>() >= ticks.total / 2, "{each:?}: {ticks:?}");
    assert!(trueio_device::process_io(&system).expect("/proc/self/io").read_bytes >= before.read_bytes);
    assert!(environment(&system).cpu.usable_count > 0);
}
