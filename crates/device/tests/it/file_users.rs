//! A regular file that the kernel uses is recognised without its name: loop devices, mounts and swap of real files. *(as root)*
//!
//! Each case was staged against names: before `LOOP_GET_STATUS64` and the write lease, no user was found, and a job overwrote a mounted
//! filesystem.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use trueio_device::{HolderKind, Holders, System, who_holds, who_uses_file, who_writes};
use trueio_testkit::{Loop, Mount, copy_program, folder, lacks, tool};

fn users(path: &Path) -> Holders {
    who_uses_file(&System::live(), path).expect("a file")
}

#[track_caller]
fn assert_carries_loop(path: &Path) {
    let found = users(path).found;
    assert!(found.iter().any(|holder| matches!(holder.kind, HolderKind::Stacked { .. })), "{path:?}: {found:?}");
}

/// Waits until a file has no users. A concurrent test that reads all loop devices keeps a detached one until it closes it. A child process
/// that a test starts has all files of this process open until it executes its program.
#[track_caller]
fn assert_becomes_free(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while users(path) != Holders::default() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(users(path), Holders::default(), "{path:?}");
}

fn image(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    File::create_new(&path).and_then(|file| file.set_len(16 << 20)).expect("an image");
    path
}

/// A process that is ended on drop, and what it printed first.
struct Process {
    child: Child,
    line: String,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        while !line.starts_with('=') {
            line.clear();
            assert_ne!(output.read_line(&mut line).expect("text"), 0, "it ended early");
        }
        Self { child, line: line.trim_start_matches('=').trim().to_owned() }
    }

    /// A shell in a mount namespace of its own, which prints a line and waits.
    fn in_namespace(script: &str) -> Self {
        let script = format!("{script} && exec sleep 300");
        Self::start(Command::new("unshare").args(["--mount", "--propagation", "private", "sh", "-ec", &script]))
    }

    /// This program in [`helper`].
    fn helping(how: &str, path: &Path) -> Self {
        let program = std::env::current_exe().expect("this program");
        // A copy: other runs of this program may share a file.
        let copy = folder();
        let copied = copy.path().join("other-program");
        copy_program(program, &copied);
        let mut command = Command::new(&copied);
        command.args(["--exact", "file_users::helper", "--nocapture"]).env("HELPER", how).env("HELPER_FILE", path);
        Self::start(&mut command)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In another process: opens a file as `HELPER` names it, and waits. Without the variable: nothing.
#[test]
fn helper() {
    let (Ok(how), Some(path)) = (std::env::var("HELPER"), std::env::var_os("HELPER_FILE")) else { return };
    let is_written = how != "read" && how != "map for reading";
    let file = File::options().read(true).write(is_written).open(path).expect("a file");
    let protection = if how == "map for writing" { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    let kept = if how.starts_with("map") {
        // SAFETY: a new mapping at an address that the kernel chooses, and that nothing uses.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(at, libc::MAP_FAILED);
        // The mapping alone is left.
        drop(file);
        None
    } else {
        Some(file)
    };
    println!("\n=ready");
    std::thread::sleep(std::time::Duration::from_secs(300));
    drop(kept);
}

/// A loop device that another mount namespace set up; detached on drop.
struct Detached(String);

impl Drop for Detached {
    fn drop(&mut self) {
        let _ = tool("losetup", &["--detach", &self.0]);
    }
}

#[test]
fn a_loop_device_of_another_mount_namespace_is_found() {
    if lacks("loop") {
        return;
    }
    let folder = folder();
    let path = image(&folder, "image");
    let script = format!(
        "mount --bind {} /mnt && device=$(losetup --find --show /mnt/image) && echo =$device",
        folder.path().display()
    );
    let elsewhere = Process::in_namespace(&script);
    let _device = Detached(elsewhere.line.clone());
    assert!(!Path::new("/mnt/image").exists(), "the path that sysfs has leads to no file here");
    assert_carries_loop(&path);
}

#[test]
fn a_loop_device_is_found_by_another_hard_link_when_the_first_name_is_gone() {
    if lacks("loop") {
        return;
    }
    let folder = folder();
    let path = image(&folder, "first");
    let device = Loop::try_over(&path, &[]).expect("a loop device");
    let other = folder.path().join("other");
    fs::hard_link(&path, &other).expect("a link");
    fs::remove_file(&path).expect("removed");
    assert_carries_loop(&other);
    // Another file gets the first name: it is free.
    image(&folder, "first");
    assert_becomes_free(&path);
    drop(device);
    assert_becomes_free(&other);
}

#[test]
fn a_loop_device_is_found_whose_directory_a_mount_hides() {
    if lacks("loop") {
        return;
    }
    let (folder, aside) = (folder(), folder());
    let below = folder.path().join("hidden");
    fs::create_dir(&below).expect("a directory");
    let path = below.join("image");
    File::create_new(&path).and_then(|file| file.set_len(16 << 20)).expect("an image");
    let _device = Loop::try_over(&path, &[]).expect("a loop device");
    let _bind = Mount::try_bind(&aside.path().join("seen"), &below).expect("a mount");
    let _hides = Mount::try_new("tmpfs", "size=1m", "none", &below).expect("a mount");
    assert!(!path.exists());
    assert_carries_loop(&aside.path().join("seen/image"));
}

/// Also a name that is no text.
#[test]
fn a_loop_device_is_found_whose_file_has_a_name_that_ends_in_a_blank_or_is_no_text() {
    if lacks("loop") {
        return;
    }
    let folder = folder();
    for name in [&b"image "[..], b" image\n", b"image\xff"] {
        let path = folder.path().join(std::ffi::OsStr::from_bytes(name));
        File::create_new(&path).and_then(|file| file.set_len(16 << 20)).expect("an image");
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&path).output().expect("losetup");
        let _device = Detached(String::from_utf8(made.stdout).expect("text").trim().to_owned());
        assert_carries_loop(&path);
    }
}

/// Goal: a file below overlayfs and the same file above are one, for loop devices on either, also after a copy from the lower directory,
/// which keeps the inode number of the lower file above, and other devices' twins.
#[test]
fn a_loop_device_is_found_through_overlayfs_in_both_directions() {
    if lacks("loop") {
        return;
    }
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(at(name)).expect("a directory");
    }
    for name in ["lower/copied", "upper/new"] {
        File::create_new(at(name)).and_then(|file| file.set_len(16 << 20)).expect("an image");
    }
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower").display(),
        at("upper").display(),
        at("work").display()
    );
    let _overlay = Mount::try_new("overlay", &options, "none", &at("merged")).expect("a mount");
    let copied = File::options().write(true).open(at("merged/copied")).expect("a file");
    copied.write_all_at(b"copied up", 0).expect("written");
    drop(copied);
    for name in ["new", "copied"] {
        let (above, below) = (at("merged").join(name), at("upper").join(name));
        for (backing, target) in [(&above, &below), (&below, &above)] {
            let device = Loop::try_over(backing, &[]).expect("a loop device");
            assert_carries_loop(target);
            // A second device on the other name has the same bytes.
            let twin = Loop::try_over(target, &[]).expect("a loop device");
            let found = who_holds(&System::live(), twin.path()).expect("a device").found;
            let is_twin = |kind: &HolderKind| *kind == HolderKind::Twin { by: device.name().to_owned() };
            assert!(found.iter().any(|holder| is_twin(&holder.kind)), "{name}: {found:?}");
        }
        assert_becomes_free(&above);
        assert_becomes_free(&below);
    }
    // The path of the loop device's file leads nowhere, in no namespace that still exists.
    let script = format!("mount --bind {} /mnt && losetup --find --show /mnt/copied", at("upper").display());
    let device =
        tool("unshare", &["--mount", "--propagation", "private", "sh", "-ec", &script]).expect("a loop device");
    let _device = Detached(device);
    assert_carries_loop(&at("merged/copied"));
}

/// The smallest EROFS: one block with an empty root directory. Source: Linux `fs/erofs/erofs_fs.h`.
fn erofs_image() -> Vec<u8> {
    let mut image = vec![0; 4096];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    // Magic number; bits of the block size; number of the root inode, in units of 32 bytes; blocks.
    put(1024, &0xe0f5_e1e2_u32.to_le_bytes());
    put(1024 + 12, &[12, 0]);
    put(1024 + 14, &36_u16.to_le_bytes());
    put(1024 + 36, &1_u32.to_le_bytes());
    // The inode: data follow it; a directory with two links and 27 bytes.
    put(1152, &4_u16.to_le_bytes());
    put(1152 + 4, &0o40755_u16.to_le_bytes());
    put(1152 + 6, &2_u16.to_le_bytes());
    put(1152 + 8, &27_u32.to_le_bytes());
    put(1152 + 20, &1_u32.to_le_bytes());
    // `.` and `..`: inode, offset of the name, kind.
    for (index, name_offset) in [24_u16, 25].into_iter().enumerate() {
        put(1184 + 12 * index, &36_u64.to_le_bytes());
        put(1184 + 12 * index + 8, &name_offset.to_le_bytes());
        put(1184 + 12 * index + 10, &[2]);
    }
    put(1184 + 24, b"...");
    image
}

/// A file-backed mount, made by the system call: mount(8) would make a loop device. Unmounted on drop.
struct FileBacked(PathBuf);

impl FileBacked {
    fn mount(file: &Path, at: &Path) -> std::io::Result<Self> {
        fs::create_dir_all(at)?;
        let text = |path: &Path| std::ffi::CString::new(path.as_os_str().as_bytes()).expect("no zero byte");
        // SAFETY: the strings live until the call returns.
        let result = unsafe {
            libc::mount(text(file).as_ptr(), text(at).as_ptr(), c"erofs".as_ptr(), libc::MS_RDONLY, std::ptr::null())
        };
        if result == 0 { Ok(Self(at.to_owned())) } else { Err(std::io::Error::last_os_error()) }
    }
}

impl Drop for FileBacked {
    fn drop(&mut self) {
        let _ = tool("umount", &[self.0.to_str().expect("UTF-8")]);
    }
}

#[test]
fn a_file_that_is_mounted_without_a_loop_device_is_found() {
    if lacks("root") {
        return;
    }
    let folder = folder();
    let (path, other) = (folder.path().join("image"), folder.path().join("other"));
    fs::write(&path, erofs_image()).expect("an image");
    fs::hard_link(&path, &other).expect("a link");
    let at = folder.path().join("mounted");
    let mount = match FileBacked::mount(&path, &at) {
        Ok(mount) => mount,
        Err(error) => return trueio_testkit::skip("erofs", &format!("file-backed EROFS (Linux 6.12): {error}")),
    };
    for name in [&path, &other] {
        let found = users(name).found;
        assert!(found.iter().any(|holder| matches!(holder.kind, HolderKind::Mounted { .. })), "{name:?}: {found:?}");
    }
    // The name under which it was mounted is gone: only the lease is left.
    fs::remove_file(&path).expect("removed");
    let kinds: Vec<HolderKind> = users(&other).found.into_iter().map(|holder| holder.kind).collect();
    assert_eq!(kinds, [HolderKind::Unnamed]);
    drop(mount);
    assert_becomes_free(&other);
}

/// Swap on a file; off on drop.
struct Swap<'a>(&'a str);

impl Drop for Swap<'_> {
    fn drop(&mut self) {
        tool("swapoff", &[self.0]).expect("swapoff");
    }
}

/// By the path that the kernel has, by another hard link, and where a mount hides that path.
#[test]
fn swap_is_found_by_another_hard_link_and_behind_a_mount() {
    if lacks("root") {
        return;
    }
    let (folder, aside) = (folder(), folder());
    let below = folder.path().join("hidden");
    fs::create_dir(&below).expect("a directory");
    let (path, other) = (below.join("swap"), folder.path().join("other"));
    fs::write(&path, vec![0; 16 << 20]).expect("a file");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("a mode");
    fs::hard_link(&path, &other).expect("a link");
    let name = path.to_str().expect("UTF-8");
    tool("mkswap", &[name]).expect("mkswap");
    if let Err(why) = tool("swapon", &["--priority", "0", name]) {
        return trueio_testkit::skip("swap", &why);
    }
    let _bind = Mount::try_bind(&aside.path().join("seen"), &below).expect("a mount");
    let _swap = Swap(name);
    let kinds = |path: &Path| users(path).found.into_iter().map(|holder| holder.kind).collect::<Vec<_>>();
    assert_eq!((kinds(&path), kinds(&other)), (vec![HolderKind::Swap], vec![HolderKind::Swap]));
    let _hides = Mount::try_new("tmpfs", "size=1m", "none", &below).expect("a mount");
    assert_eq!(kinds(&aside.path().join("seen/swap")), [HolderKind::Unnamed]);
}

/// Goal: a process that has a file open for writing is named, also if only a mapping is left; a reader is a note.
#[test]
fn a_process_that_writes_a_file_is_named_and_a_reader_is_noted() {
    if lacks("root") {
        return;
    }
    let folder = folder();
    let path = image(&folder, "image");
    assert_becomes_free(&path);
    for how in ["write", "map for writing", "map what was opened for writing"] {
        let process = Process::helping(how, &path);
        let found = users(&path).found;
        let kind = HolderKind::OpenForWriting { program: "other-program".to_owned(), process: process.child.id() };
        assert_eq!(found.into_iter().map(|holder| holder.kind).collect::<Vec<_>>(), [kind], "{how}");
    }
    for how in ["read", "map for reading"] {
        let process = Process::helping(how, &path);
        let Holders { found, unseen } = users(&path);
        assert_eq!(found, [], "{how}");
        assert!(unseen.len() == 1 && unseen[0].contains(&process.child.id().to_string()), "{how}: {unseen:?}");
    }
    let own = File::options().write(true).open(&path).expect("a file");
    // This process has it open, too.
    assert_becomes_free(&path);
    drop(own);
}

#[test]
fn a_process_that_writes_a_device_only_by_a_mapping_is_found() {
    if lacks("loop") {
        return;
    }
    let device = Loop::create(16 << 20, &[]).expect("a loop device");
    let writers = || who_writes(&System::live(), device.path()).expect("a device").found;
    // A process that another test has just forked has the descriptors of this one, until it runs its program.
    let assert_become = |expected: &[u32], how: &str| {
        let found = || writers().into_iter().map(|opener| opener.process).collect::<Vec<u32>>();
        let deadline = Instant::now() + Duration::from_secs(30);
        while found() != expected && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(found(), expected, "{how}");
    };
    for how in ["map for writing", "map what was opened for writing"] {
        let process = Process::helping(how, device.path());
        assert_become(&[process.child.id()], how);
    }
    if !lacks("root") {
        // By a node that is gone: the path of the mapping leads nowhere.
        let folder = tempfile::tempdir().expect("a folder");
        let node = folder.path().join("node");
        let number = rustix::fs::stat(device.path()).expect("a device").st_rdev;
        let (kind, mode) = (rustix::fs::FileType::BlockDevice, rustix::fs::Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(rustix::fs::CWD, &node, kind, mode, number).expect("a node");
        let process = Process::helping("map for writing", &node);
        std::fs::remove_file(&node).expect("removed");
        assert_become(&[process.child.id()], "a node that is gone");
    }
    let _reader = Process::helping("map for reading", device.path());
    assert_become(&[], "a reader");
}

/// A name that is no UTF-8 in one mount must not hide the others.
#[test]
fn a_mount_point_that_is_no_text_hides_no_mount() {
    if lacks("loop") {
        return;
    }
    let folder = folder();
    let device = Loop::create(16 << 20, &[]).expect("a loop device");
    device.make_ext4();
    let at = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    fs::create_dir(&at).expect("a directory");
    let status = Command::new("mount").args(["-t", "ext4", "-o", "ro", &device.device]).arg(&at).status();
    assert!(status.expect("mount").success());
    let found = who_holds(&System::live(), device.path()).expect("a device").found;
    let _ = Command::new("umount").arg(&at).status();
    assert!(found.iter().any(|holder| matches!(holder.kind, HolderKind::Mounted { .. })), "{found:?}");
}
