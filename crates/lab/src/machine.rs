//! A machine: QEMU with a kernel of Debian, our agent as its first process, and the requested disks.
//!
//! QEMU emulates the processor (TCG), so neither root nor virtualisation is needed. The host talks
//! to the agent over a virtio serial port, to QEMU over its monitor, and keeps the console's output
//! for a test that fails. Nothing of a machine outlives its process: the kernel kills QEMU when the
//! thread that started it ends, its files lie in a temporary folder, and the lock is a descriptor.
//!
//! Limit: it cannot measure. An emulated processor has no steady speed, even less with two machines at once, so
//! machines wait for each other, across all users of this computer.

use crate::disk::{Disk, words};
use crate::image::{self, Contents};
use crate::kernel::Kernel;
use crate::packages::Packages;
use crate::programs::{self, Tool};
use crate::qmp::Monitor;
use crate::sim::SimulatedDisk;
use crate::wire::{PORT_NAME, Reply, Request};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The emulator.
pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// A machine's folder, in the temporary one, while it boots.
const FOLDER_PREFIX: &str = "trueio-lab-";

/// The longest that a machine lives.
const LIFE: Duration = Duration::from_secs(900);
/// Time limit from QEMU's start to the agent's first message: it takes six seconds on an idle machine with two
/// processors.
const BOOT: Duration = Duration::from_secs(180);
/// Default time limit of a step.
const STEP: Duration = Duration::from_secs(120);
/// Time limit for another machine to end.
const TURN: Duration = Duration::from_secs(1800);

/// The configuration of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    series: String,
    disks: Vec<Disk>,
    modules: Vec<&'static str>,
    shelved: Vec<&'static str>,
    unwanted: Vec<&'static str>,
    tools: Vec<Tool>,
    command_line: String,
    memory_mib: u32,
    has_streams: bool,
}

impl Default for Spec {
    fn default() -> Self {
        Self::new()
    }
}

impl Spec {
    /// A machine without disks and with the kernel of `TRUEIO_LAB_KERNEL` (a series such as `6.12`;
    /// by default Debian 12's own, 6.1).
    pub fn new() -> Self {
        let series = std::env::var("TRUEIO_LAB_KERNEL").unwrap_or_else(|_| "6.1".into());
        Self {
            series,
            disks: Vec::new(),
            modules: Vec::new(),
            shelved: Vec::new(),
            unwanted: Vec::new(),
            tools: Vec::new(),
            command_line: String::new(),
            memory_mib: 1024,
            has_streams: true,
        }
    }

    /// With the newest kernel of this series that Debian has.
    pub fn kernel(mut self, series: &str) -> Self {
        self.series = series.to_owned();
        self
    }

    /// With a disk, and the modules that it needs.
    pub fn disk(mut self, disk: Disk) -> Self {
        self.disks.push(disk);
        self
    }

    /// With a module that is loaded at the start, after those of the disks.
    pub fn module(mut self, name: &'static str) -> Self {
        self.modules.push(name);
        self
    }

    /// With a module that lies in `/lib/modules`, for `modprobe`.
    pub fn shelved_module(mut self, name: &'static str) -> Self {
        self.shelved.push(name);
        self
    }

    /// Without a module that the disks would bring; it is not in `/lib/modules` either.
    pub fn without_module(mut self, name: &'static str) -> Self {
        self.unwanted.push(name);
        self
    }

    /// With a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds options to the kernel's command line.
    pub fn command_line(mut self, words: &str) -> Self {
        self.command_line = words.to_owned();
        self
    }

    /// Uses a USB 3 controller without streams.
    pub fn without_streams(mut self) -> Self {
        self.has_streams = false;
        self
    }

    /// Its kernel's series.
    pub(crate) fn series(&self) -> &str {
        &self.series
    }

    /// QEMU's controllers that the disks need.
    fn controllers(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        if self.disks.iter().any(Disk::is_usb) {
            // Fifteen ports of each kind: more disks would be attached to a USB 1 hub.
            let streams = if self.has_streams { "on" } else { "off" };
            arguments.extend(words(["-device", &format!("qemu-xhci,id=usb,p2=15,p3=15,streams={streams}")]));
        }
        if self.disks.iter().any(Disk::is_scsi) {
            arguments.extend(words(["-device", "virtio-scsi-pci,id=scsi"]));
        }
        arguments
    }
}

/// The directory of the lab's packages and images.
pub(crate) fn packages() -> Packages {
    Packages::below(&programs::target_dir().join("lab"))
}

/// A machine that runs.
#[derive(Debug)]
pub struct Machine {
    agent: UnixStream,
    monitor: Monitor,
    disks: Vec<(Disk, Option<SimulatedDisk>)>,
    /// The release of its kernel.
    pub kernel_release: String,
    /// Time from QEMU's start to the agent's first message.
    pub boot_time: Duration,
    words: Words,
    // Ended before the lock is given back.
    keeper: Keeper,
    _turn: File,
}

/// The result of a step inside.
#[derive(Clone, PartialEq, Eq)]
pub struct Ran {
    /// What was run.
    pub script: String,
    /// See [`Reply::code`].
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl std::fmt::Debug for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { script, code, out, err } = self;
        write!(f, "{script}\n--- exit code {code}\n--- stdout\n{out}\n--- stderr\n{err}")
    }
}

impl Ran {
    /// It ended with this code.
    #[track_caller]
    pub fn assert_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Asserts a refusal: exit code 2, and these words on standard error.
    #[track_caller]
    pub fn assert_refused(self, words: &[&str]) -> Self {
        let err = self.err.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(err.contains(word), "`{word}` is missing\n{self:?}");
        }
        self.assert_code(2)
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}\n{self:?}"))
    }
}

impl Machine {
    /// Builds what is missing, waits for its turn, and boots.
    ///
    /// # Errors
    /// If something is missing, or the machine does not boot; with the console's last lines.
    pub fn boot(spec: &Spec) -> Result<Self> {
        let packages = packages();
        let kernel = Kernel::get(&packages, &spec.series)?;
        let programs = programs::build()?;
        let mut modules = vec!["virtio_pci", "virtio_console"];
        modules.extend(spec.disks.iter().flat_map(Disk::modules));
        modules.extend(&spec.modules);
        modules.retain(|name| !spec.unwanted.contains(name));
        let contents = Contents {
            kernel: &kernel,
            packages: &packages,
            programs: &programs,
            modules: &modules,
            shelved: &spec.shelved,
            tools: &spec.tools,
        };
        let turn = wait_for_turn()?;
        remove_leftovers();
        let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir()?;
        let path = |name: &str| folder.path().join(name);
        image::write(&contents, &path("initramfs"))?;
        let mut command = Command::new(QEMU);
        command.args(["-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-smp", "1"]);
        command.args(["-m", &spec.memory_mib.to_string()]);
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
        command.arg("-kernel").arg(kernel.image()).arg("-initrd").arg(path("initramfs"));
        // On a busy computer the emulated timer may not tick while the kernel looks at it, which then panics.
        let line = "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check";
        command.args(["-append", &format!("{line} {}", spec.command_line)]);
        command.arg("-serial").arg(format!("file:{}", path("console").display()));
        command.arg("-qmp").arg(format!("unix:{},server=on,wait=off", path("monitor").display()));
        command.arg("-chardev").arg(format!("socket,id=agent,path={},server=on,wait=off", path("agent").display()));
        command.args(["-device", "virtio-serial-pci"]);
        command.args(["-device", &format!("virtserialport,chardev=agent,name={PORT_NAME}")]);
        command.args(spec.controllers());
        let mut disks = Vec::new();
        for disk in &spec.disks {
            let attached = disk.attach(folder.path())?;
            command.args(attached.arguments);
            disks.push((disk.clone(), attached.simulated));
        }
        let begin = Instant::now();
        let words = Words { qemu: create(&path("qemu"))?, console: create(&path("console"))? };
        let keeper = Keeper::start(command, words.qemu.try_clone()?)?;
        let connect = |name| connect(&path(name), begin + Duration::from_secs(30));
        let sockets = connect("agent").and_then(|agent| Ok((agent, Monitor::greet(connect("monitor")?)?)));
        let came_up = sockets.and_then(|(mut agent, monitor)| {
            agent.set_read_timeout(Some(BOOT))?;
            Reply::read(&mut agent).context("the agent inside does not reply")?;
            Ok((agent, monitor))
        });
        let (agent, monitor) = came_up.with_context(|| words.last())?;
        // All files are open and all sockets connected, so nothing remains after this process, in whichever way it
        // ends.
        folder.close()?;
        let (kernel_release, boot_time) = (kernel.release, begin.elapsed());
        Ok(Self { agent, monitor, disks, kernel_release, boot_time, words, keeper, _turn: turn })
    }

    /// Runs lines of shell inside.
    ///
    /// # Panics
    /// If the machine does not answer: then no case can go on.
    #[track_caller]
    pub fn sh(&mut self, script: &str) -> Ran {
        self.sh_within(STEP, script)
    }

    /// The same with another limit.
    ///
    /// # Panics
    /// As [`Machine::sh`].
    #[track_caller]
    pub fn sh_within(&mut self, limit: Duration, script: &str) -> Ran {
        let Reply { code, out, err } = self.ask(script, &[], limit);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran { script: script.to_owned(), code, out: text(out), err: text(err) }
    }

    /// Runs shell commands that must succeed, and returns their output, without the last newline.
    ///
    /// # Panics
    /// If they fail.
    #[track_caller]
    pub fn ok(&mut self, script: &str) -> String {
        self.sh(script).assert_code(0).out.trim_end().to_owned()
    }

    /// Runs `trueio` with these arguments. Words that hold spaces are quoted.
    ///
    /// # Panics
    /// As [`Machine::sh`].
    #[track_caller]
    pub fn trueio(&mut self, arguments: &str) -> Ran {
        self.sh(&format!("trueio {arguments}"))
    }

    /// The content of a file inside.
    ///
    /// # Panics
    /// If it cannot be read.
    #[track_caller]
    pub fn get(&mut self, path: &str) -> Vec<u8> {
        let reply = self.ask(&format!("cat '{path}'"), &[], STEP);
        assert_eq!(reply.code, 0, "`{path}`: {}", String::from_utf8_lossy(&reply.err));
        reply.out
    }

    /// Writes a file inside.
    ///
    /// # Panics
    /// If it cannot be written.
    #[track_caller]
    pub fn put(&mut self, path: &str, content: &[u8]) {
        let reply = self.ask(&format!("cat > '{path}'"), content, STEP);
        assert_eq!(reply.code, 0, "`{path}`: {}", String::from_utf8_lossy(&reply.err));
    }

    /// Returns a tar archive of paths below `folder`. Files that vanish or cannot be read meanwhile are
    /// left out. Files of sysfs report a size of 4096 but contain less, so they are copied first.
    ///
    /// # Panics
    /// If nothing could be packed.
    #[track_caller]
    pub fn tar(&mut self, folder: &str, paths: &[&str]) -> Vec<u8> {
        let script = format!(
            "rm -rf /tmp/lab-tar && mkdir /tmp/lab-tar && cd '{folder}' && find {} -print 2>/dev/null | \
             while read -r f; do if [ -L \"$f\" ]; then mkdir -p \"/tmp/lab-tar/${{f%/*}}\"; cp -P \"$f\" \"/tmp/lab-tar/$f\"; \
             elif [ -d \"$f\" ]; then mkdir -p \"/tmp/lab-tar/$f\"; \
             elif [ -f \"$f\" ] && [ -r \"$f\" ]; then mkdir -p \"/tmp/lab-tar/${{f%/*}}\"; \
             timeout 2 cat \"$f\" > \"/tmp/lab-tar/$f\" 2>/dev/null || rm -f \"/tmp/lab-tar/$f\"; fi; done; \
             cd /tmp/lab-tar && tar -cf - .; rm -rf /tmp/lab-tar",
            paths.join(" ")
        );
        let reply = self.ask(&script, &[], STEP);
        assert_eq!(reply.code, 0, "{folder}: {}", String::from_utf8_lossy(&reply.err));
        reply.out
    }

    #[track_caller]
    fn ask(&mut self, script: &str, stdin: &[u8], limit: Duration) -> Reply {
        let request = Request { script: script.to_owned(), stdin: stdin.to_vec(), limit };
        // The agent answers five seconds after the limit at the latest.
        let answer = self.agent.set_read_timeout(Some(limit + Duration::from_secs(30))).and_then(|()| {
            request.write(&mut self.agent)?;
            Reply::read(&mut self.agent)
        });
        answer.unwrap_or_else(|error| {
            panic!("the machine does not answer ({error}) to:\n{script}\n{}", self.words.last())
        })
    }

    /// The device of a disk, for example `/dev/nvme0n1`; waits until it is there.
    ///
    /// # Panics
    /// If it does not appear.
    #[track_caller]
    pub fn device(&mut self, name: &str) -> String {
        let serial = self.disk(name).0.serial_number().to_owned();
        // A USB disk on bulk-only has no serial number except that of its USB device. Names are listed and not
        // globbed: without a disk, a glob stays unexpanded and would match a disk that appears later.
        let script = format!(
            "for i in $(seq 200); do for d in $(ls /sys/block); do b=/sys/block/$d; \
             for f in $b/serial $b/device/serial $b/device/vpd_pg80 $b/device/../../../../serial; do \
             if [ -e $f ] && tr -d '\\0' < $f 2>/dev/null | grep -q '{serial}\\s*$'; then echo /dev/$d; exit; fi; \
             done; done; sleep 0.05; done; exit 1"
        );
        self.ok(&script)
    }

    fn disk(&self, name: &str) -> &(Disk, Option<SimulatedDisk>) {
        let names: Vec<&str> = self.disks.iter().map(|(disk, _)| &*disk.name).collect();
        let found = self.disks.iter().find(|(disk, _)| disk.name == name);
        found.unwrap_or_else(|| panic!("there is no disk `{name}` but {names:?}"))
    }

    /// Returns the controls of a simulated disk.
    ///
    /// # Panics
    /// If it is not simulated.
    pub fn simulated(&self, name: &str) -> &SimulatedDisk {
        self.disk(name).1.as_ref().unwrap_or_else(|| panic!("`{name}` is not simulated"))
    }

    /// Unplugs a disk. NVMe and virtio use PCI hot-unplug, which the machine must acknowledge.
    ///
    /// # Errors
    /// If QEMU cannot, or the machine does not acknowledge it.
    pub fn unplug(&mut self, name: &str) -> Result<()> {
        if self.disk(name).0.is_redirected() {
            self.simulated(name).unplug();
            return Ok(());
        }
        self.monitor.command("device_del", json!({"id": name}))?;
        self.monitor.wait_for("DEVICE_DELETED", "device", name, Duration::from_secs(60))
    }

    /// QEMU's monitor.
    pub fn monitor(&mut self) -> &mut Monitor {
        &mut self.monitor
    }

    /// Returns the output of the console.
    pub fn console(&self) -> String {
        text_of(&self.words.console)
    }

    /// True if QEMU still runs.
    pub fn is_alive(&self) -> bool {
        self.keeper.is_alive()
    }
}

fn connect(path: &Path, deadline: Instant) -> Result<UnixStream> {
    loop {
        match UnixStream::connect(path) {
            Ok(stream) => return Ok(stream),
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => return Err(error).with_context(|| format!("QEMU did not open `{}`", path.display())),
        }
    }
}

/// Removes the folders of machines that were killed while they booted. The process that holds the lock has the only
/// valid one.
fn remove_leftovers() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX) && entry.path().is_dir() {
            // A folder of another user cannot be removed, which is harmless.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The output of QEMU and the console, in unlinked files.
#[derive(Debug)]
struct Words {
    qemu: File,
    console: File,
}

impl Words {
    /// Returns the end of the output, for error messages.
    fn last(&self) -> String {
        let end = |file| {
            let text = text_of(file);
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(40)..].join("\n")
        };
        format!("--- QEMU\n{}\n--- console\n{}", end(&self.qemu), end(&self.console))
    }
}

/// The whole of a file that another process writes.
fn text_of(file: &File) -> String {
    let mut bytes = vec![0; file.metadata().map_or(0, |metadata| metadata.len() as usize)];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("({error})"),
    }
}

fn create(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).read(true).append(true).open(path);
    file.with_context(|| format!("`{}`", path.display()))
}

/// Waits for the lock: one machine at a time. The lock ends with its descriptor, in whichever way this process ends.
fn wait_for_turn() -> Result<File> {
    let path = std::env::temp_dir().join("trueio-lab.lock");
    // Every user may wait for it: read access to another user's file is enough for a lock.
    let made = OpenOptions::new().create(true).append(true).mode(0o666).open(&path);
    let file = made.or_else(|_| File::open(&path)).with_context(|| format!("`{}`", path.display()))?;
    let deadline = Instant::now() + TURN;
    let mut has_told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                if !has_told {
                    eprintln!("another machine of the lab runs on this computer; waiting for its end");
                    has_told = true;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            Err(fs::TryLockError::WouldBlock) => bail!("another machine of the lab has run for {TURN:?}"),
            Err(fs::TryLockError::Error(error)) => return Err(error).with_context(|| format!("`{}`", path.display())),
        }
    }
}

/// The parent thread of QEMU. It lives as long as the machine: tests run in short-lived threads,
/// and the kernel sends a child its parent-death signal when its parent's *thread* ends
/// (prctl(2), PR_SET_PDEATHSIG).
#[derive(Debug)]
struct Keeper {
    stop: Sender<()>,
    ended: Receiver<()>,
}

impl Keeper {
    fn start(mut command: Command, log: File) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // SAFETY: between fork and exec the closure makes one system call, which is async-signal-safe.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let (stop, stopped) = channel::<()>();
        let (end, ended) = channel();
        let (began, begin) = channel();
        std::thread::spawn(move || {
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(error) => {
                    // The other end waits for this.
                    let _ = began.send(Err(error));
                    return;
                }
            };
            let _ = began.send(Ok(()));
            let deadline = Instant::now() + LIFE;
            while let Ok(None) = child.try_wait() {
                let is_over =
                    !matches!(stopped.recv_timeout(Duration::from_millis(100)), Err(RecvTimeoutError::Timeout));
                if is_over || Instant::now() > deadline {
                    // It may have ended already.
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
            // The receiver may be gone.
            let _ = end.send(());
        });
        begin.recv().context("QEMU's thread is gone")?.with_context(|| format!("`{QEMU}` cannot be started"))?;
        Ok(Self { stop, ended })
    }

    fn is_alive(&self) -> bool {
        matches!(self.ended.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // If the channel is closed, it has ended; otherwise its files are needed until then.
        let _ = self.stop.send(());
        let _ = self.ended.recv_timeout(Duration::from_secs(10));
    }
}
