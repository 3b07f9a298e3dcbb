//! The needs of the tests: installs missing packages, and probes what this machine offers.
//!
//! Missing packages are installed through apt, as root, and printed. Then the needs that this machine meets are
//! probed; `TRUEIO_REQUIRE` lists them where a skipped test is a failure.

use crate::workspace::{command, has_program, is_root};
use std::process::Stdio;

/// A package, and the program by which it is recognised.
const PACKAGES: &[(&str, &str)] = &[
    ("xfsprogs", "mkfs.xfs"),
    ("btrfs-progs", "mkfs.btrfs"),
    ("bindfs", "bindfs"),
    ("valgrind", "valgrind"),
    ("strace", "strace"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("elvish", "elvish"),
    ("qemu-system-common", "qemu-storage-daemon"),
    ("sqlite3", "sqlite3"),
    ("mandoc", "mandoc"),
    ("openmpi-bin", "mpirun.openmpi"),
    ("mpich", "mpiexec.hydra"),
];

/// Installs the packages that the tests use.
pub(crate) fn install_packages() -> Result<String, String> {
    install(PACKAGES)
}

/// Installs missing packages; the error names those that are still missing, and the reason.
pub(crate) fn install(packages: &[(&'static str, &str)]) -> Result<String, String> {
    let missing = || -> Vec<&str> {
        packages.iter().filter(|(_, program)| !has_program(program)).map(|(package, _)| *package).collect()
    };
    let wanted = missing();
    if wanted.is_empty() {
        return Ok("nothing to install".into());
    }
    if !is_root() || !has_program("apt-get") {
        let why = if is_root() { "no apt-get" } else { "not root" };
        return Err(format!("{why}, and missing: {}", wanted.join(", ")));
    }
    println!("installing {}", wanted.join(", "));
    let apt = |args: &[&str]| {
        let mut apt = command("apt-get");
        apt.args(["-o", "DPkg::Lock::Timeout=120"]).args(args);
        apt.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).stdout(Stdio::null());
        apt.status().is_ok_and(|status| status.success())
    };
    // One by one, so that an unavailable package does not prevent the others.
    let install = |package: &str| apt(&["install", "--yes", "--no-install-recommends", package]);
    let failed: Vec<&str> = wanted.iter().copied().filter(|package| !install(package)).collect();
    if !failed.is_empty() && apt(&["update"]) {
        failed.iter().for_each(|package| {
            install(package);
        });
    }
    let left = missing();
    if left.is_empty() {
        Ok(format!("installed {}", wanted.join(", ")))
    } else {
        Err(format!("apt-get did not install {}", left.join(", ")))
    }
}

/// Installs the standard library for `target`, unless it is installed; the error is the reason of a failure.
pub(crate) fn add_target(target: &str) -> Result<(), String> {
    if !has_program("rustup") {
        return Err("no rustup, so the target cannot be installed".into());
    }
    // Does nothing if the target is installed.
    match command("rustup").args(["target", "add", target]).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            Err(format!("rustup cannot install the target: {}", stderr.lines().last().unwrap_or("")))
        }
        Err(error) => Err(format!("rustup: {error}")),
    }
}

/// The needs that a test may have, each with the reason why it is not met here; `None`: it is met.
pub(crate) fn needs() -> Vec<(&'static str, Option<String>)> {
    let root = (!is_root()).then(|| "this user is not root".to_owned());
    let loop_device = root.clone().or_else(|| {
        let is_there = std::fs::OpenOptions::new().read(true).write(true).open("/dev/loop-control").is_ok();
        (!is_there || !has_program("losetup")).then(|| "no /dev/loop-control or no losetup".to_owned())
    });
    let filesystem = |name: &str| {
        loop_device.clone().or_else(|| {
            let program = format!("mkfs.{name}");
            if !has_program(&program) {
                Some(format!("no {program}"))
            } else if !kernel_has_filesystem(name) {
                Some(format!("this kernel has no {name}"))
            } else {
                None
            }
        })
    };
    vec![
        ("root", root.clone()),
        ("loop", loop_device.clone()),
        ("xfs", filesystem("xfs")),
        ("btrfs", filesystem("btrfs")),
        ("io_uring", io_uring_refusal()),
        ("strace", strace_refusal()),
        ("zsh", missing_program("zsh")),
        ("fish", missing_program("fish")),
        ("elvish", missing_program("elvish")),
        ("mandoc", missing_program("mandoc")),
    ]
}

fn missing_program(name: &str) -> Option<String> {
    (!has_program(name)).then(|| format!("no {name}"))
}

/// Tests whether strace can trace, which a container may forbid.
fn strace_refusal() -> Option<String> {
    if !has_program("strace") {
        return Some("no strace".into());
    }
    let mut strace = command("strace");
    strace.args(["-o", "/dev/null", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
    (!strace.status().is_ok_and(|status| status.success())).then(|| "strace may not trace here".to_owned())
}

fn kernel_has_filesystem(name: &str) -> bool {
    let has = || {
        let list = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        list.lines().any(|line| line.split_whitespace().last() == Some(name))
    };
    // It may be a module that is not loaded yet.
    has() || {
        let load = command("modprobe").arg(name).stdout(Stdio::null()).stderr(Stdio::null()).status();
        load.is_ok_and(|status| status.success()) && has()
    }
}

/// Creates the smallest ring, to test whether the kernel allows it.
fn io_uring_refusal() -> Option<String> {
    // struct io_uring_params is 120 bytes, and zeros mean defaults. io_uring_setup(2).
    let mut params = [0u64; 15];
    // SAFETY: the kernel reads and writes 120 bytes at `params`, which is that long and aligned.
    let descriptor = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, params.as_mut_ptr()) };
    if descriptor < 0 {
        return Some(format!("io_uring_setup: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: the descriptor is new and has no other owner.
    unsafe { libc::close(descriptor as i32) };
    None
}
