//! Who holds a device, and what is on it: real loop devices (root) and real filesystem tools.
//!
//! Nothing here opens a device for writing except the tools, on images of their own.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use trueio_device::{HolderKind, Holders, System, signatures, target_facts, who_holds};
use trueio_model::LayerKind;
use trueio_testkit::{Loop, Mount, folder, skip, tool as run};

fn image(folder: &TempDir, size_bytes: u64) -> String {
    let path = folder.path().join("image");
    File::create_new(&path).and_then(|file| file.set_len(size_bytes)).expect("an image");
    path.to_str().expect("a plain name").to_owned()
}

/// A process that is ended on drop, and with it its mount namespace.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn holders(path: &Path) -> Holders {
    who_holds(&System::live(), path).expect("a block device")
}

fn is_mounted(holders: &Holders, device: &str) -> bool {
    holders.found.iter().any(|holder| holder.device == device && matches!(holder.kind, HolderKind::Mounted { .. }))
}

/// Goal: a mounted device is detected under each of its names, and is free again after the unmount.
/// Method: ext4 on a loop device. The holders are read by the device, a link, a node with another name, a second loop
/// device on the same file, and a loop device on the loop device. It is mounted here, then only in the mount namespace
/// of another process.
#[test]
fn a_mounted_loop_device_is_held_in_every_disguise_and_free_afterwards() {
    let folder = folder();
    let image = image(&folder, 16 << 20);
    let device = match Loop::try_over(Path::new(&image), &[]) {
        Ok(device) => device,
        Err(why) => return skip("loop", &why),
    };
    device.make_ext4();
    assert_eq!(holders(device.path()), Holders::default(), "it is not in use yet");

    let link = folder.path().join("link");
    std::os::unix::fs::symlink(device.path(), &link).expect("a link");
    let node = folder.path().join("node");
    let number = run("stat", &["-c", "%Hr %Lr", &device.device]).expect("stat");
    let (major, minor) = number.split_once(' ').expect("two numbers");
    run("mknod", &[node.to_str().expect("a plain name"), "b", major, minor]).expect("mknod");
    let twin = Loop::over(Path::new(&image), &[]);
    let above = Loop::over(device.path(), &[]);
    let disguises = [device.path(), &link, &node, twin.path(), above.path()];

    let mount = Mount::create("ext4", &device.device, "ro").expect("a mount");
    for path in disguises {
        let found = holders(path);
        assert!(is_mounted(&found, device.name()), "{}: {found:?}", path.display());
    }
    assert!(holders(device.path()).found.iter().any(|holder| holder.kind == HolderKind::Claimed));
    let facts = target_facts(&System::live(), &mount.path).expect("facts");
    assert_eq!(facts.disks[0].name, device.name());
    assert!(facts.stack.iter().any(|layer| layer.kind == LayerKind::File && layer.name == image), "{:?}", facts.stack);
    drop(mount);
    assert!(!is_mounted(&holders(device.path()), device.name()));

    // Mounted in another namespace only: our own mountinfo does not have it.
    let script = format!("mount -o ro {} /mnt && echo ready && exec sleep 60", device.device);
    let mut elsewhere = match Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
    {
        Ok(child) => Process(child),
        Err(why) => return skip("root", &format!("unshare: {why}")),
    };
    let mut line = String::new();
    let output = elsewhere.0.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a line");
    assert_eq!(line, "ready\n", "mounted in a namespace of its own");
    let process = elsewhere.0.id();
    let found = holders(device.path());
    let there = HolderKind::Mounted { mount_point: "/mnt".to_owned(), process };
    assert!(found.found.iter().any(|holder| holder.kind == there), "{found:?}");
    drop(elsewhere);
}

/// Goal: the signatures that this machine's tools write are found under the names that `blkid` reports.
/// Method: each tool on an image of its own; `blkid -p`, which does not use its cache.
#[test]
fn the_signature_that_each_tool_writes_has_the_same_name_as_in_blkid() {
    let tools: [(&str, &[&str], &str, u64); 13] = [
        ("mkfs.ext2", &["-q"], "ext2", 16),
        ("mkfs.ext3", &["-q"], "ext3", 16),
        ("mkfs.ext4", &["-q"], "ext4", 16),
        ("mkfs.ext4", &["-q", "-O", "^has_journal"], "ext4", 16),
        ("mkfs.ext4", &["-q", "-O", "journal_dev"], "jbd", 16),
        ("mkfs.xfs", &["-q"], "xfs", 320),
        ("mkfs.btrfs", &["-q"], "btrfs", 128),
        ("mkfs.minix", &["-3"], "minix", 16),
        ("mkfs.bfs", &[], "bfs", 16),
        ("mkswap", &[], "swap", 16),
        ("mkfs.vfat", &[], "vfat", 16),
        ("mkfs.f2fs", &["-q"], "f2fs", 128),
        ("cryptsetup", &["luksFormat", "--batch-mode", "--key-file", "/proc/version"], "crypto_LUKS", 32),
    ];
    for (tool, arguments, kind, mebibytes) in tools {
        let folder = folder();
        let image = image(&folder, mebibytes << 20);
        assert_eq!(signatures(Path::new(&image)).expect("an image"), [], "nothing is on it yet");
        if let Err(why) = run(tool, &[arguments, &[image.as_str()]].concat()) {
            println!("{tool} is not looked at: {why}");
            continue;
        }
        let found = signatures(Path::new(&image)).expect("an image");
        let kinds: Vec<&str> = found.iter().map(|mark| mark.kind).collect();
        assert_eq!(kinds, [kind], "{tool} {arguments:?}");
        match run("blkid", &["--probe", "--output", "value", "--match-tag", "TYPE", &image]) {
            Ok(name) => assert_eq!(kind, name, "{tool} {arguments:?}"),
            Err(why) => println!("blkid is not asked: {why}"),
        }
    }
}

#[test]
fn a_file_is_no_device_and_a_missing_path_is_an_error() {
    let folder = folder();
    let image = image(&folder, 4096);
    assert!(who_holds(&System::live(), Path::new(&image)).is_err());
    assert!(who_holds(&System::live(), &folder.path().join("missing")).is_err());
}
