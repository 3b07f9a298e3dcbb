//! The first process of a lab machine: loads the modules, then executes the host's requests.
//!
//! It is `/init` of the initramfs, statically linked. It mounts what a Linux program expects, loads
//! the modules that `/lab/modules` lists in that order, opens the virtio serial port and runs one
//! request after the other with busybox's shell. Output goes to files, so that a program left
//! in the background does not delay the reply.
//!
//! Cannot do: udev's work. Devices have the kernel's names, and `/dev/disk` is empty.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};
use trueio_lab::wire::{PORT_NAME, Reply, Request};

fn main() {
    let error = serve().err();
    // Only the console is available.
    println!("lab: the agent ends: {error:?}");
    // SAFETY: a plain call; the sync before it writes all data to the disks.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn serve() -> io::Result<()> {
    for (kind, target) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp"), ("tmpfs", "/run")]
    {
        mount(kind, target)?;
    }
    Command::new("/bin/busybox").args(["--install", "-s", "/bin"]).status()?;
    for path in fs::read_to_string("/lab/modules")?.lines() {
        if let Err(error) = load_module(path) {
            println!("lab: {path}: {error}");
        }
    }
    let mut port = open_port()?;
    // The first message: the agent is running.
    Reply { code: 0, out: fs::read("/proc/uptime")?, err: Vec::new() }.write(&mut port)?;
    loop {
        let request = Request::read(&mut port)?;
        let reply = carry_out(&request).unwrap_or_else(|error| Reply {
            code: 127,
            out: Vec::new(),
            err: format!("the agent cannot run it: {error}").into_bytes(),
        });
        reply.write(&mut port)?;
    }
}

fn mount(kind: &str, target: &str) -> io::Result<()> {
    fs::create_dir_all(target)?;
    let (kind, target) = (CString::new(kind)?, CString::new(target)?);
    // SAFETY: the strings end with zero and live through the call; no data is passed.
    let result = unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Calls finit_module(2). A module that is already loaded is not an error.
fn load_module(path: &str) -> io::Result<()> {
    let (path, parameters) = path.split_once(' ').unwrap_or((path, ""));
    let (file, parameters) = (File::open(path)?, CString::new(parameters)?);
    // SAFETY: the descriptor is open and the string ends with zero; both live through the call.
    let result = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), parameters.as_ptr(), 0) };
    match io::Error::last_os_error() {
        error if result < 0 && error.raw_os_error() != Some(libc::EEXIST) => Err(error),
        _ => Ok(()),
    }
}

/// Finds the device of the port: the port has a name, the device only a number.
fn open_port() -> io::Result<File> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        for entry in fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten() {
            if fs::read_to_string(entry.path().join("name")).is_ok_and(|name| name.trim() == PORT_NAME) {
                let device = std::path::Path::new("/dev").join(entry.file_name());
                return OpenOptions::new().read(true).write(true).open(device);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(io::Error::other("no virtio serial port has our name"))
}

fn carry_out(request: &Request) -> io::Result<Reply> {
    let [stdin, out, err] = ["/run/lab.in", "/run/lab.out", "/run/lab.err"];
    // New files: programs in the background still write to theirs.
    for path in [stdin, out, err] {
        if let Err(error) = fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
    }
    File::create(stdin)?.write_all(&request.stdin)?;
    let mut command = Command::new("/bin/busybox");
    command
        .args(["sh", "-c", &request.script])
        .env_clear()
        // There is no udev, so the device mapper's library must create its device nodes itself.
        .envs([("DM_DISABLE_UDEV", "1"), ("PATH", "/sbin:/usr/sbin:/bin"), ("HOME", "/root"), ("LC_ALL", "C.UTF-8")])
        .stdin(File::open(stdin)?)
        .stdout(File::create(out)?)
        .stderr(File::create(err)?)
        .process_group(0);
    let pid = command.spawn()?.id().cast_signed();
    let code = wait(pid, request.limit)?;
    Ok(Reply { code, out: fs::read(out)?, err: fs::read(err)? })
}

/// Waits for `pid`, and reaps orphaned processes. A process that hangs in the kernel cannot be killed: it is given up
/// after five seconds.
fn wait(pid: libc::pid_t, limit: Duration) -> io::Result<i32> {
    let begin = Instant::now();
    let mut is_late = false;
    loop {
        let mut status = 0;
        // SAFETY: `status` lives through the call.
        let reaped = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if reaped < 0 {
            return Err(io::Error::last_os_error());
        }
        if reaped == pid {
            return Ok(match status {
                _ if is_late => Reply::LATE,
                status if libc::WIFEXITED(status) => libc::WEXITSTATUS(status),
                status => 128 + libc::WTERMSIG(status),
            });
        }
        let elapsed = begin.elapsed();
        if elapsed > limit && !is_late {
            is_late = true;
            // SAFETY: the group is that of our child, which is not reaped.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
        if elapsed > limit + Duration::from_secs(5) {
            return Ok(Reply::LATE);
        }
        if reaped == 0 {
            // The interval grows: short steps are answered soon, long ones are not disturbed.
            std::thread::sleep((elapsed / 20).clamp(Duration::from_micros(500), Duration::from_millis(20)));
        }
    }
}
