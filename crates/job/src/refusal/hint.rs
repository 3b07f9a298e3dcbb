//! The remedy for each refusal.

use super::{Rule, quoted};
use crate::in_use::{Mark, UseKind};
use trueio_model::units::format_bytes;

const OPTIONS_PAGE: &str = "docs/job-options.md lists the options";
const COMMAND_NOT_ALLOWED: &str = "only a study starts other programs: built-in studies start their own, \
     those from a folder only with `--allow-exec`";
const ENGINE_UNAVAILABLE: &str =
    "`trueio doctor` lists the engines that work here; without `ioengine` one of them is chosen";
const DEPTH_ON_BLOCKING_ENGINE: &str =
    "use `ioengine = \"io_uring\"` or `ioengine = \"libaio\"` for a queue, or `numjobs` for more workers";
const MAPS_BEYOND_MEMORY: &str =
    "set `norandommap`, one size of blocks, larger blocks, or a smaller `size`: blocks of one size need no map";
const POLL_IMPOSSIBLE: &str =
    "leave out `hipri`, or configure poll queues in the driver (nvme: the module's parameter `poll_queues`)";
const TARGET_OPEN: &str = "free it first: end that program, or let it close the device; no option makes it writable";
const TARGET_OPEN_ELSEWHERE: &str = "free it first: the kernel may use it for a mount, a loop device, swap or an exported disk, also of another \
     container; as root, the processes of all users are compared; no option makes it writable";
const TARGET_IN_USE: &str = "free it first (unmount it, `swapoff`, stop the device on top of it), or choose another target; \
     no option makes it writable";
const DEVICE_NOT_EXAMINED: &str = "a block device is written only if it is known to be free and without signatures: run as a user with read permission";
const SIGNATURE_NOT_THERE: &str = "correct the name or leave it out; a wrong name may mean the wrong device";
const DIRECTORY_AS_FILE: &str = "set `directory` instead; the job then creates its own file there";
const SHARES_BEYOND_SIZE: &str = "use smaller zones, or `zoned`, whose zones are percentages of the region";
const USER_NOT_PERMITTED: &str = "run as root, or with CAP_SETUID and CAP_SETGID; or start the whole command as that \
     user (`sudo -u`), without `uid` and `gid`";
const USER_MAY_NOT: &str = "give that user permission (`chown`, `chmod`; also to search the directories above it), \
     or leave out `uid` and `gid`";

impl Rule {
    /// Returns the remedy.
    pub fn hint(&self) -> String {
        let fixed = match self {
            Rule::NoJobs => "add a table `[job.NAME]` to the job file",
            Rule::IologUnusable { .. } => "docs/from-fio.md describes the format of a log",
            Rule::OutputReplaces { .. } => "name another file for one of them",
            Rule::OutputImpossible { .. } => "name another file for it",
            Rule::OutputUnrecognised { .. } => "its content would be lost: name another file, or move this one away",
            Rule::OutputExists { .. } => {
                "name another file, move this one away, or permit it on the command line: `--replace`"
            }
            Rule::JobName { .. } => "use letters, digits, `-`, `_` and `.`",
            Rule::JobNameTwice { .. } => "rename one of them",
            Rule::UnknownOption { suggestion, .. } => suggestion.as_deref().unwrap_or(OPTIONS_PAGE),
            Rule::BadValue { option, reason } => return value_hint(option, reason),
            Rule::NodeNotThere { there, .. } => return nodes_hint(there),
            Rule::PriorityNotPermitted { .. } => "set class 2 or 3, or run with CAP_SYS_NICE or CAP_SYS_ADMIN",
            Rule::Contradiction { case, .. }
            | Rule::Incomplete { case, .. }
            | Rule::EngineLacks { case, .. }
            | Rule::SteadyState { case, .. }
            | Rule::ZonesImpossible { case, .. }
            | Rule::VerifyImpossible { case, .. } => case.hint(),
            Rule::SourceImpossible { hint, .. } | Rule::CommandImpossible { hint, .. } => hint,
            Rule::ExecNotAllowed { .. } => "only `trueio fio` starts it, with `--allow-exec` on the command line",
            Rule::CommandNotAllowed { .. } => COMMAND_NOT_ALLOWED,
            Rule::EngineUnavailable { .. } => ENGINE_UNAVAILABLE,
            Rule::DepthOnBlockingEngine { .. } => DEPTH_ON_BLOCKING_ENGINE,
            Rule::DirectImpossible { path, .. } => return direct_hint(path),
            Rule::Misaligned { alignment_bytes, .. } => {
                return format!("use multiples of {alignment_bytes}, or `direct = \"off\"`");
            }
            Rule::AtomicImpossible { path, .. } => return atomic_hint(path),
            Rule::PollImpossible { .. } => POLL_IMPOSSIBLE,
            Rule::ExistingTargetNotNamed { path, .. } => return overwrite_hint(path),
            Rule::NamedForOverwriteNotUsed { targets, .. } => {
                return format!("spell it exactly as the target: {}", quoted(targets));
            }
            Rule::NamedForOverwriteMissing { .. } => "correct the path; a new file needs no permission",
            Rule::TargetInUse { in_use, .. } if in_use.kind == UseKind::OpenForWriting => TARGET_OPEN,
            Rule::TargetInUse { in_use, .. } if in_use.kind == UseKind::Unnamed => TARGET_OPEN_ELSEWHERE,
            Rule::TargetInUse { .. } => TARGET_IN_USE,
            Rule::TargetIsLink { target, .. } => {
                return format!(
                    "name the link's target: `filename = \"{target}\"`, `overwrite_existing = \"{target}\"`"
                );
            }
            Rule::DeviceNotExamined { .. } => DEVICE_NOT_EXAMINED,
            Rule::SignatureNotNamed { marks, .. } => return signature_hint(marks),
            Rule::SignatureNotThere { .. } => SIGNATURE_NOT_THERE,
            Rule::GeneratedNameTaken { path } => {
                return format!("remove `{path}` if an earlier run left it, or set `filename` or `directory`");
            }
            Rule::WrongKindOfTarget { what: "a directory", .. } => DIRECTORY_AS_FILE,
            Rule::WrongKindOfTarget { .. } => "name a file, a block device, or a directory by `directory`",
            Rule::TargetUnreadable { .. } => "check the path and its permissions",
            Rule::DirectoryMissing { directory, .. } => {
                return format!("create `{directory}` first, or correct the path");
            }
            Rule::CannotCreateHere { .. } => "choose another directory",
            Rule::SizeMissing { .. } => "set `size`, such as `size = \"1g\"`",
            Rule::SizeUnknown { .. } => "set `size`",
            Rule::PercentOfNothing { .. } => "set it in bytes, such as `1g`",
            Rule::SizeBeyondTarget { filesize_bytes: Some(_), .. } => "set a larger `filesize`, or a smaller `offset`",
            Rule::SizeBeyondTarget { target_bytes, offset_bytes, .. } => {
                return size_hint(target_bytes.saturating_sub(*offset_bytes));
            }
            Rule::SizeBeyondFreeSpace { .. } => "set a smaller `size`, or another `directory`",
            Rule::BlockBeyondSize { .. } => "set a larger `size` or a smaller `bs`",
            Rule::SharesBeyondSize { .. } => SHARES_BEYOND_SIZE,
            Rule::TrimUnsupported { .. } => "use writes, or another target",
            Rule::ProcessorNotThere { .. } => "`trueio doctor` lists the processors",
            Rule::UserNotPermitted { .. } => USER_NOT_PERMITTED,
            Rule::UserMayNot { .. } => USER_MAY_NOT,
            Rule::BuffersBeyondMemory { .. } => "lower `iodepth`, `numjobs` or `bs`",
            Rule::MapsBeyondMemory { .. } => MAPS_BEYOND_MEMORY,
        };
        fixed.to_owned()
    }
}

/// Returns what `option` takes, unless the reason contains it already.
fn value_hint(option: &str, reason: &str) -> String {
    if crate::table::row(option).is_some_and(|row| row.is_switch()) {
        return format!("leave `{option}` out");
    }
    let row = crate::table::row(option);
    match row.map(|row| row.kind.takes()) {
        Some(takes) if !reason.contains(&takes) => format!("`{option}` takes {takes}"),
        Some(takes) if takes.contains(" from ") => "use a number within these bounds".to_owned(),
        _ => OPTIONS_PAGE.to_owned(),
    }
}

fn nodes_hint(nodes: &[u32]) -> String {
    if nodes.is_empty() {
        return "leave it out".to_owned();
    }
    let numbers: Vec<String> = nodes.iter().map(u32::to_string).collect();
    format!("there are: {}", numbers.join(", "))
}

fn direct_hint(path: &str) -> String {
    format!(
        "`direct = \"prefer\"` falls back to buffered I/O; `trueio device {path}` shows what this filesystem supports"
    )
}

fn atomic_hint(path: &str) -> String {
    format!(
        "`trueio device {path}` shows the supported atomic writes: a power of two, at multiples of itself; or leave \
         `atomic` out"
    )
}

fn overwrite_hint(path: &str) -> String {
    format!(
        "its content would be lost; if that is intended, set `overwrite_existing = \"{path}\"`; without `filename` the \
         job creates its own file"
    )
}

fn signature_hint(marks: &[Mark]) -> String {
    let mut names: Vec<&str> = Vec::new();
    // Several partitions may have the same signature.
    for mark in marks {
        if !names.contains(&mark.name.as_str()) {
            names.push(&mark.name);
        }
    }
    let names = names.join(",");
    format!(
        "its content would be lost; if that is intended, set `overwrite_signature = \"{names}\"` (baseline, \
         capacity, powercut: `--overwrite-signature {names}`)"
    )
}

fn size_hint(left_bytes: u64) -> String {
    if left_bytes == 0 {
        return "nothing is left from this offset: set a smaller `offset`".to_owned();
    }
    format!(
        "at most {} are left from this offset: set a smaller `size`; an existing file is extended only if \
         `extend_existing`, an option of trueio's, names it",
        format_bytes(left_bytes)
    )
}
