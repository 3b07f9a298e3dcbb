//! A disk that is in use is not written, under any name and through any layers.
//!
//! Limits: dm, md and bcache, which this kernel may not have, are not tested here. `crates/device/tests/it/machines.rs`
//! reads recorded trees with them; the lab runs real ones.

use crate::common::*;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Refusals of each way in which a path can be written, with the rule and a sentence; what the
/// device holds is the same before and after. The permission and the signature are named, so that
/// nothing but the use is left to refuse it.
#[track_caller]
fn assert_not_written(sandbox: &Sandbox, path: &str, rule: &str, sentence: &str, holds: &dyn Fn() -> u64) {
    let before = holds();
    let named = ["--overwrite_existing", path, "--overwrite_signature", "ext4,dos"];
    for rw in ["write", "randwrite", "randrw", "randtrim"] {
        let job = [&["run", "--rw", rw, "--size", "64k", "--filename", path], &named[..]].concat();
        sandbox.run(&job).assert_refused(&[rule, sentence, "free it first"]);
    }
    let explained = [&["explain", "--rw", "write", "--filename", path], &named[..]].concat();
    sandbox.run(&explained).assert_refused(&[rule, sentence]);
    let baseline = ["baseline", "--quick", path, "--overwrite", path, "--overwrite-signature", "ext4,dos"];
    sandbox.run(&baseline).assert_refused(&[rule, sentence]);
    assert_eq!(holds(), before, "{path} was written");
}

/// A partition table of the PC with one Linux partition from 1 MiB to the end, in a file.
fn write_partition_table(image: &Path, bytes: u64) {
    let (begin, sectors) = (2048_u32, (bytes / 512) as u32 - 2048);
    let mut table = [0; 66];
    table[4] = 0x83;
    table[8..12].copy_from_slice(&begin.to_le_bytes());
    table[12..16].copy_from_slice(&sectors.to_le_bytes());
    table[64..].copy_from_slice(b"\x55\xaa");
    fs::OpenOptions::new().write(true).open(image).and_then(|f| f.write_all_at(&table, 446)).expect("a table");
}

/// The partition in that table, removed on drop. It is added explicitly, because the kernel may not read such tables,
/// and would keep the partition when the loop device is detached.
struct Partition<'a> {
    disk: &'a Loop,
    device: String,
}

impl<'a> Partition<'a> {
    fn of(disk: &'a Loop, bytes: u64) -> Self {
        let sectors = (bytes / 512 - 2048).to_string();
        tool("addpart", &[&disk.device, "1", "2048", &sectors]).expect("a partition");
        Self { disk, device: format!("{}p1", disk.device) }
    }
}

impl Drop for Partition<'_> {
    fn drop(&mut self) {
        if let Err(error) = tool("delpart", &[&self.disk.device, "1"]) {
            eprintln!("{error}");
        }
    }
}

/// A mount that writes nothing, so that what the disk holds can be compared.
fn mount_read_only(sandbox: &Sandbox, device: &str) -> Mount {
    Mount::try_new("ext4", "ro", device, &sandbox.path("mounted")).expect("a mount")
}

/// Another node of the same device, made by hand.
fn node_of(sandbox: &Sandbox, device: &str, name: &str) -> String {
    let number = tool("stat", &["-c", "%Hr %Lr", device]).expect("stat");
    let (major, minor) = number.split_once(' ').expect("two numbers");
    let path = sandbox.path(name).to_str().expect("UTF-8").to_owned();
    tool("mknod", &[&path, "b", major, minor]).expect("a node");
    path
}

/// Goal: the same device under another name, and other devices with the same bytes, are recognised.
/// Method: ext4 on a loop device, mounted; named by its path, a link, a node of mknod, an open
/// descriptor, a second loop device over the same file, a loop device over the loop device. The mount is
/// then moved to a bind mount, and the first unmounted.
#[test]
fn a_mounted_disk_is_not_written_under_any_name() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 64 << 20);
    disk.make_ext4();
    let mount = mount_read_only(&sandbox, &disk.device);
    let holds = || disk.content();
    let link = sandbox.path("by-id");
    symlink(&disk.device, &link).expect("a link");
    let node = node_of(&sandbox, &disk.device, "alias");
    let twin = Loop::over(&disk.backing, &[]);
    let above = Loop::over(Path::new(&disk.device), &[]);
    let aliases = [&disk.device, link.to_str().expect("UTF-8"), &node, &twin.device, &above.device];
    for path in aliases {
        assert_not_written(&sandbox, path, "rule: target_mounted", "is mounted at", &holds);
    }

    // An open descriptor of it, inherited.
    let by_descriptor = "/proc/self/fd/3";
    let script = format!(
        "exec 3<{}; exec {} run --rw write --filename {by_descriptor} --overwrite_existing {by_descriptor}",
        disk.device,
        env!("CARGO_BIN_EXE_trueio"),
    );
    let output = Command::new("sh").args(["-c", &script]).current_dir(sandbox.root()).output().expect("a shell");
    Ran::of(output).assert_refused(&["rule: target_mounted", "is mounted at"]);

    let bound = Mount::bind(&sandbox, "bound", &mount.path);
    drop(mount);
    assert_not_written(&sandbox, &disk.device, "rule: target_mounted", "bound", &holds);
    drop(bound);
    drop((twin, above));
    let job = ["run", "--rw", "write", "--size", "64k", "--filename", &disk.device, "--overwrite_existing"];
    let freed = [&job[..], &[&disk.device, "--overwrite_signature", "ext4"]].concat();
    sandbox.run(&freed).assert_code(0);
}

#[test]
fn a_partition_of_a_mounted_whole_disk_is_not_written() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let bare = Loop::new(&sandbox, "disk.img", 64 << 20);
    bare.make_ext4();
    let backing = bare.backing.clone();
    drop(bare);
    // ext4 leaves the first kilobyte alone, so a table and a filesystem share the disk.
    write_partition_table(&backing, 64 << 20);
    let disk = Loop::over(&backing, &[]);
    let partition = Partition::of(&disk, 64 << 20);
    let _mount = mount_read_only(&sandbox, &disk.device);
    let whole = format!("`{}` is mounted at", disk.device.trim_start_matches("/dev/"));
    assert_not_written(&sandbox, &partition.device, "rule: target_mounted", &whole, &|| disk.content());
}

#[test]
fn a_whole_disk_with_a_mounted_partition_is_not_written() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let bytes = 64 << 20;
    let backing = sandbox.aside("disk.img");
    fs::File::create(&backing).and_then(|f| f.set_len(bytes)).expect("a sparse file");
    write_partition_table(&backing, bytes);
    let disk = Loop::over(&backing, &[]);
    let partition = Partition::of(&disk, bytes);
    trueio_testkit::make_filesystem("ext4", &partition.device).expect("a filesystem");
    let mount = mount_read_only(&sandbox, &partition.device);
    let sentence = format!("`{}` is mounted at", partition.device.trim_start_matches("/dev/"));
    for path in [&disk.device, &partition.device] {
        assert_not_written(&sandbox, path, "rule: target_mounted", &sentence, &|| disk.content());
    }
    // A disk whose only partition is free still has a partition table.
    drop(mount);
    let job = ["run", "--rw", "write", "--size", "64k", "--filename", &disk.device, "--overwrite_existing"];
    sandbox.run(&[&job[..], &[&disk.device]].concat()).assert_refused(&["has dos", "rule: signature_not_named"]);
}

/// A process that is ended on drop, and its mount namespace with it.
struct Elsewhere(Child);

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_disk_that_is_mounted_in_another_namespace_only_is_not_written() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 64 << 20);
    disk.make_ext4();
    let script = format!("mount -o ro {} /mnt && echo ready && exec sleep 120", disk.device);
    let child = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .spawn();
    let mut elsewhere = Elsewhere(child.expect("unshare"));
    let mut line = String::new();
    BufReader::new(elsewhere.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    assert!(!fs::read_to_string("/proc/self/mountinfo").expect("mounts").contains(&disk.device));
    assert_not_written(&sandbox, &disk.device, "rule: target_mounted", "is mounted at `/mnt`", &|| disk.content());
}

/// Swap on a device; off again when dropped.
struct Swap<'a>(&'a str);

impl Drop for Swap<'_> {
    fn drop(&mut self) {
        tool("swapoff", &[self.0]).expect("swapoff");
    }
}

#[test]
fn swap_is_not_written() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 16 << 20);
    tool("mkswap", &[&disk.device]).expect("mkswap");
    if let Err(why) = tool("swapon", &["--priority", "0", &disk.device]) {
        eprintln!("skipped: {why}");
        return;
    }
    let _swap = Swap(&disk.device);
    let node = node_of(&sandbox, &disk.device, "alias");
    for path in [&disk.device, &node] {
        // The kernel may write pages of others, such as tests with little memory, but never the head; a job begins there.
        assert_not_written(&sandbox, path, "rule: target_is_swap", "is swap", &|| disk.head());
    }
}

#[test]
fn a_device_below_another_one_is_not_written() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 16 << 20);
    let above = Loop::over(Path::new(&disk.device), &[]);
    let sentence = format!("`{}` is stacked on", above.device.trim_start_matches("/dev/"));
    assert_not_written(&sandbox, &disk.device, "rule: target_carries_device", &sentence, &|| disk.content());
}

#[test]
fn a_claimed_device_is_not_written() {
    use std::os::unix::fs::OpenOptionsExt;
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 16 << 20);
    let claim = fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&disk.device).expect("a claim");
    let node = node_of(&sandbox, &disk.device, "alias");
    for path in [&disk.device, &node] {
        assert_not_written(&sandbox, path, "rule: target_claimed", "O_EXCL", &|| disk.content());
    }
    drop(claim);
    let job = ["run", "--rw", "write", "--size", "64k", "--filename", &disk.device, "--overwrite_existing"];
    sandbox.run(&[&job[..], &[&disk.device]].concat()).assert_code(0);
}

/// Goal: a file that backs a loop device, or is swap, is not written.
/// Method: the file by its name and by a hard link.
#[test]
fn a_file_below_a_loop_device_is_not_written() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let path = sandbox.data_file("image", 16 << 20);
    fs::hard_link(&path, sandbox.path("hard")).expect("a link");
    let disk = Loop::over(&path, &[]);
    for name in ["image", "hard"] {
        assert_not_written(&sandbox, name, "rule: target_carries_device", "is stacked on", &|| disk.content());
    }
    drop(disk);
    let job = ["run", "--rw", "write", "--size", "64k", "--filename", "hard", "--overwrite_existing", "hard"];
    sandbox.run(&job).assert_code(0);
}

/// Leaves a descriptor of a file in a message that is not received, so that no process has it. Closed with the sockets.
fn in_flight(file: fs::File) -> (UnixStream, UnixStream) {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let (one, other) = UnixStream::pair().expect("two sockets");
    let descriptors = [file.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    assert!(message.push(SendAncillaryMessage::ScmRights(&descriptors)));
    sendmsg(&one, &[std::io::IoSlice::new(b"x")], &mut message, SendFlags::empty()).expect("sent");
    (one, other)
}

/// Goal: a file is not written although its users cannot be found by a name: the kernel, and a program that has it open.
/// Method: a loop device of another mount namespace, by a path that leads nowhere here; a descriptor that no process has; a program that has
/// the file open for writing. The tests of `crates/device` stage the other cases.
#[test]
fn a_file_that_is_used_under_no_name_is_not_written() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let path = sandbox.data_file("image", 16 << 20);
    let holds = || hash(&fs::read(&path).expect("content"));
    let script = format!("mount --bind {} /mnt && losetup --find --show /mnt/image", sandbox.root().display());
    let device =
        tool("unshare", &["--mount", "--propagation", "private", "sh", "-ec", &script]).expect("a loop device");
    assert_not_written(&sandbox, "image", "rule: target_carries_device", "is stacked on", &holds);
    tool("losetup", &["--detach", &device]).expect("detached");

    let sent = in_flight(fs::File::open(&path).expect("a file"));
    assert_not_written(&sandbox, "image", "rule: target_open_elsewhere", "a write lease is refused", &holds);
    drop(sent);

    let mut writer = Command::new("sh");
    writer.args(["-c", "exec 3<>image; echo ready; exec sleep 300"]).current_dir(sandbox.root()).stdout(Stdio::piped());
    let mut writer = Elsewhere(writer.spawn().expect("a shell"));
    let mut line = String::new();
    BufReader::new(writer.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let named = format!("(process {})", writer.0.id());
    assert_not_written(&sandbox, "image", "rule: target_open_for_writing", &named, &holds);
    drop(writer);
    let job = ["run", "--rw", "write", "--size", "64k", "--filename", "image", "--overwrite_existing", "image"];
    sandbox.run(&job).assert_code(0);
}

/// Goal: neither a hidden `/sys` and `/dev` nor a program that reads the file hides the loop device on it, as in a small container.
/// Method: with the first process's `/dev` the device is read there; without that, nothing is known of it, and the reader explains no lease.
#[test]
fn a_file_under_a_loop_device_is_not_written_where_sysfs_and_dev_are_hidden() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let path = sandbox.data_file("image", 16 << 20);
    let before = hash(&fs::read(&path).expect("content"));
    let _device = Loop::over(&path, &[]);
    let job = sandbox.command(&[
        "run",
        "--rw",
        "write",
        "--size",
        "64k",
        "--filename",
        "image",
        "--overwrite_existing",
        "image",
    ]);
    for (hides, rule) in [
        ("true", "rule: target_carries_device"),
        ("mount -t proc -o subset=pid t /proc", "rule: target_carries_device"),
    ] {
        let script = format!(
            "mount -t tmpfs t /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9 && mount -t tmpfs t /sys && {hides}
             exec 3<image; \"$0\" \"$@\" 3<&-"
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "bash", "-c", &script]).arg(job.get_program());
        command.args(job.get_args()).current_dir(sandbox.root());
        command.envs(job.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = Ran::of(command.output().expect("it runs"));
        assert!(
            ran.code == Some(2) && (ran.err.contains(rule) || ran.err.contains("rule: target_open_elsewhere")),
            "{ran:?}"
        );
        assert_eq!(hash(&fs::read(&path).expect("content")), before);
    }
}

/// The other side of it: what shares no byte with the mounted filesystem is free.
#[test]
fn a_loop_device_over_a_file_on_a_mounted_disk_is_free() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 64 << 20);
    disk.make_ext4();
    let mount = Mount::ext4(&sandbox, "mounted", &disk.device);
    let file = mount.path.join("image");
    fs::File::create(&file).and_then(|f| f.set_len(8 << 20)).expect("a file");
    let inner = Loop::over(&file, &[]);
    let path = inner.device.as_str();
    let job = ["run", "--rw", "write", "--size", "64k", "--filename", path, "--overwrite_existing", path];
    sandbox.run(&job).assert_code(0);
    drop(inner);
}
