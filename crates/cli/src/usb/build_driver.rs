//! `trueio usb build-driver`: builds the kernel's own driver `uas` from a source tree, and loads it for one disk.
//!
//! `trueio-usb` checks and builds; this file prints each command, keeps the module, and moves the disk with the plan, the
//! refusals and the undo of `trueio usb switch`.

use super::explain::find;
use super::switch::{self, refused, say};
use crate::failure::Failure;
use crate::output;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trueio_device::System;
use trueio_device::usb::usb_report;
use trueio_files::shared_directory;
use trueio_model::UsbTransport;
use trueio_usb::{
    Barred, BuildPlan, Outcome, Refusal, Spk, WAIT, architecture, build, pack, plan_build, plan_of, verify,
    why_not_loadable,
};

/// The command line of `trueio usb build-driver`.
pub(super) fn arguments() -> Command {
    let directory = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("DIR")
            .help(help)
            .value_hint(ValueHint::DirPath)
            .value_parser(value_parser!(PathBuf))
    };
    let disk = |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("DISK").help(help);
    Command::new("build-driver")
        .about("Builds the kernel's own driver uas, for a kernel that was built without it")
        .long_about(
            "Builds the kernel's own driver uas for a kernel that was built without it, from a kernel's source tree that you \
             have: the manufacturer's GPL source of exactly this kernel. Version, configuration and exported symbols are \
             checked first; five files are copied and built against the headers of the running kernel; the module is compared \
             with the kernel's own modules. Each command is printed. With --load the module is loaded and one disk moved to \
             it, after the checks of `trueio usb switch`; --undo takes both back.",
        )
        .arg(directory("kernel-tree", "The source tree of the running kernel").required_unless_present_any(["undo", "spk"]))
        .arg(directory("headers", "Its headers and build files; by default /lib/modules/RELEASE/build"))
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("FILE")
                .help("Where the module is kept; it must not exist")
                .default_value("uas.ko")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(disk("load", "Load the module and move this disk to UAS").conflicts_with("undo"))
        .arg(
            Arg::new("spk")
                .long("spk")
                .value_name("FILE")
                .help("Pack a static program of trueio and its documentation as a package for Synology's DSM 7, without a driver")
                .conflicts_with_all(["kernel-tree", "headers", "output", "load", "undo"])
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("program")
                .long("program")
                .value_name("FILE")
                .help("The program for --spk; by default this one")
                .requires("spk")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(disk("undo", "Move this disk back to BOT and unload the module").conflicts_with("kernel-tree"))
}

/// `trueio usb build-driver`.
pub(super) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let system = System::live();
    if let Some(disk) = matches.get_one::<String>("undo") {
        return undo(&system, disk);
    }
    if let Some(output) = matches.get_one::<PathBuf>("spk") {
        return packed(output, matches.get_one::<PathBuf>("program"));
    }
    let tree = matches.get_one::<PathBuf>("kernel-tree").expect("it is required without --undo");
    let headers = matches.get_one::<PathBuf>("headers").map(PathBuf::as_path);
    let output = matches.get_one::<PathBuf>("output").expect("it has a default");
    let plan = plan_build(&system, tree, headers).map_err(|refusal| refused("uas", "built", &refusal))?;
    let load = matches.get_one::<String>("load");
    if let Some(disk) = load {
        may_load(&system, disk)?;
    }
    let module = built(&system, &plan, output)?;
    let module = fs::canonicalize(&module).unwrap_or(module);
    output::print_all(&format!("{}\n", module.display()))?;
    let Some(disk) = load else {
        say(&format!(
            "to use it: insmod {}; trueio usb switch DISK uas. To undo it: trueio usb build-driver --undo DISK",
            module.display()
        ));
        return Ok(ExitCode::SUCCESS);
    };
    say(&format!("insmod {}", module.display()));
    let file = File::open(&module).map_err(|error| Failure::failed("the module cannot be opened", &error))?;
    rustix::system::finit_module(&file, c"", 0)
        .map_err(|error| Failure::failed("the kernel does not load the module", &std::io::Error::from(error)))?;
    let moved = move_to(&system, disk, UsbTransport::Uas);
    if moved.is_err() {
        let _ = unload();
    }
    moved
}

/// The longest program that is packed, in bytes.
const PROGRAM_BYTES_MAX: u64 = 1 << 30;

/// Packs a program and the documentation for DSM 7.
fn packed(output: &Path, program: Option<&PathBuf>) -> Result<ExitCode, Failure> {
    let own =
        || std::env::current_exe().map_err(|error| Failure::failed("the path of this program is unknown", &error));
    let path = program.cloned().map_or_else(own, Ok)?;
    let failed = |path: &Path, error| Failure::failed(format!("`{}`", path.display()), &error);
    let program = trueio_files::read_bytes(&path, PROGRAM_BYTES_MAX).map_err(|error| failed(&path, error.into()))?;
    let name = path.display().to_string();
    let architecture = architecture(&program).map_err(|refusal| refused(&name, "packed", &refusal))?;
    let texts = [
        ("usb-serve.md", include_str!("../../../../docs/usb-serve.md")),
        ("LICENSE-MIT", include_str!("../../../../LICENSE-MIT")),
        ("LICENSE-APACHE", include_str!("../../../../LICENSE-APACHE")),
    ];
    let spk = Spk { program: &program, version: env!("CARGO_PKG_VERSION"), texts: &texts };
    let create = || OpenOptions::new().write(true).create_new(true).mode(0o644).open(output);
    let mut file = create().map_err(|error| failed(output, error))?;
    if let Err(error) = pack(&spk, architecture, &mut file) {
        // A part of a package is of no use, and would be refused as existing the next time.
        let _ = fs::remove_file(output);
        return Err(failed(output, error));
    }
    output::print_all(&format!("{}\n", output.display()))?;
    say(&format!(
        "a package for {architecture}: install it by hand in DSM's Package Center; a task (event \"Boot-up\", user root) runs \
         `/var/packages/trueio/target/bin/trueio usb serve DISK`. It was not tested on a NAS"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Builds the module in a directory of its own, and keeps it as `output` if the running kernel would load it.
fn built(system: &System, plan: &BuildPlan, output: &Path) -> Result<PathBuf, Failure> {
    let failed = |error: &(dyn std::error::Error + 'static)| Failure::failed("the driver was not built", error);
    let directory = Scratch::new().map_err(|error| failed(&error))?;
    let built = build(plan, &directory.0, &mut say).map_err(|error| failed(&error))?;
    let bytes = fs::read(&built).map_err(|error| failed(&error))?;
    let compared = verify(system, &bytes).map_err(|refusal| refused("the module", "used", &refusal))?;
    say(&compared);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        // No access control list of another user's directory lets anybody write to what root loads.
        .mode(0o644)
        .open(output)
        .map_err(|error| Failure::failed(format!("`{}` cannot be created (--output)", output.display()), &error))?;
    if let Err(error) = file.write_all(&bytes) {
        // A part of a module is of no use, and would be refused as existing the next time.
        let _ = fs::remove_file(output);
        return Err(failed(&error));
    }
    Ok(output.to_owned())
}

/// Refuses to load a module that the kernel would refuse, and to move a disk that is in use, before anything is built.
fn may_load(system: &System, disk: &str) -> Result<(), Failure> {
    let mut reasons = why_not_loadable(system);
    if !rustix::process::geteuid().is_root() {
        reasons.push("only root can load a module and bind drivers".to_owned());
    }
    if !reasons.is_empty() {
        return Err(refused("the module", "loaded", &Refusal { reasons, hint: None }));
    }
    let report = usb_report(system);
    let found = find(system, &report, disk)?;
    let planned = plan_of(system, found, Barred::Forced).map_err(|error| Failure::refused_by(&error, None))?;
    planned.map(|_| ()).map_err(|refusal| refused(disk, "moved", &refusal))
}

/// Moves a disk as `trueio usb switch` does.
fn move_to(system: &System, disk: &str, to: UsbTransport) -> Result<ExitCode, Failure> {
    let _alone = switch::alone()?;
    switch::finish_interrupted(system, WAIT)?;
    let look = switch::look(system, disk, to)?;
    let plan = look.plan.map_err(|refusal| refused(disk, "switched", &refusal))?;
    let outcome = switch::carry_out(system, &plan, WAIT, &mut say)?;
    say(&switch::ended(&plan.interface, to, &outcome));
    match outcome {
        Outcome::Switched { .. } => Ok(ExitCode::SUCCESS),
        _ => Err(Failure::refused(format!("`{disk}` is not on {to}"))),
    }
}

fn unload() -> Result<(), Failure> {
    say("rmmod uas");
    rustix::system::delete_module(c"uas", libc::O_NONBLOCK)
        .map_err(|error| Failure::failed("the module uas cannot be unloaded", &std::io::Error::from(error)))
}

/// Moves a disk back to BOT and unloads the module that was built.
fn undo(system: &System, disk: &str) -> Result<ExitCode, Failure> {
    let uas = trueio_device::usb::Driver::find(system, "uas");
    if let Some(file) = uas.file {
        return Err(Failure::refused(format!(
            "the disk was not moved back\n  because: the driver uas is the kernel's own ({file})"
        )));
    }
    if !uas.is_loaded {
        return Err(Failure::refused("the disk was not moved back\n  because: no driver uas is loaded"));
    }
    move_to(system, disk, UsbTransport::Bot)?;
    unload()?;
    Ok(ExitCode::SUCCESS)
}

/// A directory for the build, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    /// Creates it where no other user can exchange it: what it holds is built, and may be loaded into the kernel.
    fn new() -> std::io::Result<Self> {
        let path = shared_directory(&std::env::temp_dir())?.path()?.join(format!("trueio-uas-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of it is in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
