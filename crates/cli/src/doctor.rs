//! `trueio doctor` and `trueio device`: what works on this machine, and the facts of a target.

use crate::failure::Failure;
use crate::flags;
use crate::output;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use trueio_device::System;
use trueio_engine::{availability, choose_clock, measure_ruler};
use trueio_model::{TargetFacts, UsbTargetName};

/// A feature that the program uses if it is available.
struct Means {
    name: &'static str,
    is_there: bool,
    detail: String,
}

/// One-line description of `trueio doctor`.
pub(crate) const ABOUT: &str = "Show what works on this machine, and the tool's own cost";

/// One-line description of `trueio device`.
pub(crate) const ABOUT_DEVICE: &str =
    "Show the facts of a directory, file or block device, down to its disks, with the source of each";

/// The command line of `trueio doctor`.
pub(crate) fn arguments(command: Command) -> Command {
    command.arg(flags::json("Print JSON instead of text, or write it to FILE"))
}

/// The command line of `trueio device`.
pub(crate) fn device_arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("path")
                .value_name("PATH")
                .help("The directory, file or block device, or usb:PORT: a USB disk, claimed and read with UAS in user space")
                .default_value(".")
                .value_hint(ValueHint::AnyPath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(flags::json("Print every fact with its source as JSON, or write it to FILE"))
}

/// `trueio doctor`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let environment = trueio_device::environment(&System::live());
    let engines = availability();
    let ruler = measure_ruler(choose_clock());
    let means = means();
    let document = serde_json::json!({
        "environment": environment,
        "ruler": ruler,
        "engines": engines.iter().map(|e| serde_json::json!({
            "engine": e.engine, "works": e.works, "reason": e.reason,
        })).collect::<Vec<_>>(),
        "means": means.iter().map(|m| serde_json::json!({
            "name": m.name, "works": m.is_there, "reason": m.detail,
        })).collect::<Vec<_>>(),
    });
    if output::print_json(matches, || format!("{document:#}\n"))? {
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "machine    {}, {} processors usable", environment.system, environment.cpu.usable_count);
    if let Some(quota) = environment.cpu.quota {
        let _ = writeln!(text, "           the control group's quota allows {quota:.2} of them");
    }
    let _ = writeln!(
        text,
        "clock      {}: {:.1} ns per reading, smallest step {:.1} ns",
        ruler.clock, ruler.clock_cost_ns, ruler.clock_resolution_ns
    );
    let _ = writeln!(
        text,
        "tool       {:.0} ns of CPU per I/O on the null engine; it reports a median latency of {} ns there",
        ruler.null_cpu_ns_per_io, ruler.null_latency_ns_p50
    );
    if cfg!(debug_assertions) {
        let _ = writeln!(text, "           this is a debug build: use `cargo run --release`");
    }
    let _ = writeln!(text, "\nengines");
    for engine in engines {
        let _ = writeln!(text, "  {:3}  {:10} {}", word(engine.works), engine.engine.name(), engine.reason);
    }
    let _ = writeln!(text, "\nevidence and permissions");
    for means in means {
        let _ = writeln!(text, "  {:3}  {:10} {}", word(means.is_there), means.name, means.detail);
    }
    output::print_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// `trueio device`.
pub(crate) fn device(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let path = matches.get_one::<PathBuf>("path").expect("it has a default");
    let system = System::live();
    let name = path.to_string_lossy();
    let facts = match UsbTargetName::parse(&name) {
        Some(_) => usb_disk(&name)?,
        None => trueio_device::target_facts(&system, path).map_err(|e| Failure::refused_by(&e, None))?,
    };
    let text = if output::print_json(matches, || format!("{:#}\n", serde_json::json!(facts)))? {
        return Ok(ExitCode::SUCCESS);
    } else {
        let style = output::style_of(&std::io::stdout());
        let environment = trueio_device::environment(&system);
        trueio_report::target(&facts, &environment, &style) + &trueio_report::facts(&facts, &style)
    };
    output::print_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the facts of a USB disk, read with its own commands: it is claimed meanwhile.
fn usb_disk(name: &str) -> Result<TargetFacts, Failure> {
    let claim = trueio_run::claim_usb_disk(name)
        .map_err(|reason| Failure::refused(format!("`{name}` cannot be claimed\n  because: {reason}")))?;
    let mut facts = claim.facts();
    if let Some(layer) = facts.stack.first_mut() {
        layer.facts.extend(claim.ata_facts());
    }
    Ok(facts)
}

fn word(works: bool) -> &'static str {
    if works { "yes" } else { "no" }
}

fn means() -> Vec<Means> {
    let mut all = Vec::new();
    // SAFETY: a plain call without arguments.
    let is_root = unsafe { libc::geteuid() } == 0;
    let detail = if is_root {
        "runs as root"
    } else {
        "runs as an ordinary user; block devices and tracing need more privileges"
    };
    all.push(Means { name: "root", is_there: is_root, detail: detail.to_owned() });
    let disks = std::fs::read_dir("/sys/block").map(|d| d.count()).unwrap_or(0);
    all.push(Means {
        name: "counters",
        is_there: disks > 0,
        detail: format!("the requests of {disks} disks can be counted (/sys/block)"),
    });
    all.push(residency());
    // Tested by creating an instance and removing it.
    let why_not_traced = trueio_evidence::why_not_traced();
    all.push(Means {
        name: "tracefs",
        is_there: why_not_traced.is_none(),
        detail: why_not_traced.unwrap_or_else(|| "block requests can be traced (evidence level E3)".to_owned()),
    });
    let why_not_recorded = trueio_evidence::why_no_syscall_trace();
    all.push(Means {
        name: "sys calls",
        is_there: why_not_recorded.is_none(),
        detail: why_not_recorded.unwrap_or_else(|| "system calls can be recorded (`--trace-syscalls`)".to_owned()),
    });
    all.push(locked_memory());
    all
}

/// Tests whether cached pages can be counted, with this program's own file.
fn residency() -> Means {
    let result = std::env::current_exe()
        .and_then(std::fs::File::open)
        .and_then(|file| trueio_direct::residency(&file, 0, file.metadata()?.len()));
    match result {
        Ok(r) => {
            Means { name: "page cache", is_there: true, detail: format!("cached pages are counted by {}", r.source) }
        }
        Err(e) => Means { name: "page cache", is_there: false, detail: format!("cached pages cannot be counted: {e}") },
    }
}

/// Registered buffers need locked memory.
fn locked_memory() -> Means {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    match limit {
        None => Means { name: "memlock", is_there: true, detail: "locked memory is unlimited".to_owned() },
        Some(bytes) => Means {
            name: "memlock",
            is_there: bytes >= 8 << 20,
            detail: format!(
                "{} of memory can be locked; registered io_uring buffers need their size",
                trueio_model::units::format_bytes(bytes)
            ),
        },
    }
}
