//! Refusals: requests that are not possible or not permitted.
//!
//! A refusal is found while planning, before anything is touched. It names the job, the rule, the reason and
//! a remedy. [`Rule::name`] is an identifier for programs and does not change.

mod cases;
mod hint;
mod values;

pub use cases::{Case, CaseRow};

use crate::in_use::{DeviceUse, Mark, UseKind, marks_in_words};
use trueio_model::units::format_bytes;
use trueio_model::{EngineKind, Origin, UserPlan};

/// A job that was not planned, and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", match job { Some(job) => format!("job `{job}` was not started"), None => "nothing was started".to_owned() })]
pub struct Refusal {
    /// The job; `None` if the rule is about all of them.
    pub job: Option<String>,
    /// The origin of the refused option, if one option is the reason.
    pub origin: Option<Origin>,
    /// The rule that refuses the job.
    #[source]
    pub rule: Box<Rule>,
}

impl Refusal {
    /// Returns the remedy.
    pub fn hint(&self) -> String {
        self.rule.hint()
    }
}

/// The rules by which a plan is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rule {
    /// No job at all.
    #[error("there is no job")]
    NoJobs,
    /// Jobs for which rounds cannot reach a steady state.
    #[error("`steady_state` is not possible: {reason}")]
    SteadyState {
        /// The reason.
        reason: String,
        /// The combination, with the remedy.
        case: Case,
    },
    /// A program without permission.
    #[error("`command` would start `{program}`, which a job file must not do")]
    CommandNotAllowed {
        /// The program.
        program: String,
    },
    /// A program next to the jobs without permission.
    #[error("`exec` would start `{program}` without permission")]
    ExecNotAllowed {
        /// The program.
        program: String,
    },
    /// A command that cannot be measured as the job requires.
    #[error("`command` is not possible: {reason}")]
    CommandImpossible {
        /// The reason.
        reason: String,
        /// The remedy.
        hint: &'static str,
    },
    /// A body that cannot be fetched, or not be written as the job requires.
    #[error("`source = {address}` is not possible: {reason}")]
    SourceImpossible {
        /// Its address.
        address: String,
        /// The reason.
        reason: String,
        /// The remedy.
        hint: &'static str,
    },
    /// A log that cannot be replayed, or not be written.
    #[error("the log `{log}` cannot be used: {reason}")]
    IologUnusable {
        /// The log.
        log: String,
        /// The reason, with the number of the invalid line.
        reason: String,
    },
    /// An output that would replace a measured or read file, or is the same file as another output.
    #[error(
        "{what} would replace `{other}`, which {other_use}{}",
        if path == other { String::new() } else { format!(": `{path}` is the same file") }
    )]
    OutputReplaces {
        /// The option that writes.
        what: String,
        /// Its path.
        path: String,
        /// The path of the other use.
        other: String,
        /// The other use.
        other_use: String,
    },
    /// An output that cannot or must not be written.
    #[error("{what} `{path}` cannot be written: {reason}")]
    OutputImpossible {
        /// The option that writes.
        what: String,
        /// Its path.
        path: String,
        /// The reason.
        reason: String,
    },
    /// An output of a job that would replace a file with other content.
    #[error("{what} would replace `{path}`, which is not {content} of trueio or fio")]
    OutputUnrecognised {
        /// The option that writes.
        what: String,
        /// Its path.
        path: String,
        /// What the option writes.
        content: &'static str,
    },
    /// An output that a job names would replace an existing file, which the command line does not permit.
    #[error("{what} would replace `{path}`, which exists")]
    OutputExists {
        /// The option that writes.
        what: String,
        /// Its path.
        path: String,
    },
    /// A name that cannot be part of a file's name.
    #[error("{reason}")]
    JobName {
        /// What is wrong with it.
        reason: String,
    },
    /// Two jobs of one name.
    #[error("two jobs have the name `{name}`")]
    JobNameTwice {
        /// The name.
        name: String,
    },
    /// An option that the table does not have.
    #[error("`{option}` is not an option")]
    UnknownOption {
        /// As typed.
        option: String,
        /// The probable option.
        suggestion: Option<String>,
    },
    /// A value that the option's row does not accept.
    #[error("`{option}`: {reason}")]
    BadValue {
        /// The option.
        option: &'static str,
        /// What is wrong with the value.
        reason: String,
    },
    /// Two options that exclude each other.
    #[error("{one} and {other} contradict each other: {reason}")]
    Contradiction {
        /// The first option, with its value.
        one: String,
        /// The second option, with its value.
        other: String,
        /// The reason.
        reason: &'static str,
        /// The combination, with the remedy.
        case: Case,
    },
    /// An option that has no meaning without another.
    #[error("{option} needs {needs}")]
    Incomplete {
        /// The option, with its value.
        option: String,
        /// What is missing.
        needs: &'static str,
        /// The combination, with the remedy.
        case: Case,
    },
    /// The engine does not work on this machine.
    #[error("the engine `{}` does not work here: {reason}", engine.name())]
    EngineUnavailable {
        /// The engine.
        engine: EngineKind,
        /// The reason.
        reason: String,
    },
    /// The engine does not support an option.
    #[error("the engine `{}` {lack}", engine.name())]
    EngineLacks {
        /// The engine.
        engine: EngineKind,
        /// The missing feature, as the rest of a sentence.
        lack: String,
        /// The combination, with the remedy.
        case: Case,
    },
    /// More than one I/O in flight on an engine that blocks.
    #[error("`iodepth = {depth}`, but the engine `{}` has one I/O in flight at a time", engine.name())]
    DepthOnBlockingEngine {
        /// The engine.
        engine: EngineKind,
        /// The requested depth, in I/Os.
        depth: u32,
    },
    /// Required direct I/O is not supported.
    #[error("`{path}` does not support direct I/O: {reason}")]
    DirectImpossible {
        /// The target.
        path: String,
        /// The source of the fact.
        reason: String,
    },
    /// Required direct I/O cannot transfer this size or offset.
    #[error(
        "{what} of {} is not a multiple of {alignment_bytes} bytes, which direct I/O on `{path}` requires ({source_text})",
        crate::value::write_bytes(*value_bytes)
    )]
    Misaligned {
        /// `a block` or `the offset`.
        what: &'static str,
        /// Its size, in bytes.
        value_bytes: u64,
        /// The alignment, in bytes.
        alignment_bytes: u64,
        /// The target.
        path: String,
        /// The source of the fact.
        source_text: String,
    },
    /// The target does not support atomic writes, or none of this length or at this offset.
    #[error("`{path}` does not support these atomic writes: {reason}")]
    AtomicImpossible {
        /// The target.
        path: String,
        /// The source of the fact.
        reason: String,
    },
    /// The disk has no queue that can be polled for completions.
    #[error("`hipri` is not possible on `{path}`: the disk `{disk}` has no queue that can be polled ({source_text})")]
    PollImpossible {
        /// The target.
        path: String,
        /// The disk under it.
        disk: String,
        /// The source of the fact.
        source_text: String,
    },
    /// An existing target would be written without having been named.
    #[error("`{path}` exists ({what}) and the job would {verb} it")]
    ExistingTargetNotNamed {
        /// The target.
        path: String,
        /// What it is.
        what: &'static str,
        /// `overwrite` or `trim`.
        verb: &'static str,
    },
    /// `overwrite_existing` names a path that is not a target of the job.
    #[error("`overwrite_existing` names `{path}`, which is not a target of this job")]
    NamedForOverwriteNotUsed {
        /// The path.
        path: String,
        /// The job's targets.
        targets: Vec<String>,
    },
    /// `overwrite_existing` names a missing path.
    #[error("`overwrite_existing` names `{path}`, which does not exist")]
    NamedForOverwriteMissing {
        /// The path.
        path: String,
    },
    /// A target to be written is mounted, swap, or used otherwise.
    #[error("`{path}` is in use: {} (source: {})", in_use.sentence(), in_use.source)]
    TargetInUse {
        /// The target.
        path: String,
        /// The use.
        in_use: DeviceUse,
    },
    /// A target that would be written is named by a symbolic link.
    #[error("`{path}` is a symbolic link to `{target}`, and a job writes through no link")]
    TargetIsLink {
        /// The link.
        path: String,
        /// Where it leads.
        target: String,
    },
    /// It is unknown whether the device or file to be written is free.
    #[error("it is unknown whether `{path}` is in use: {reason}")]
    DeviceNotExamined {
        /// The device.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The device to be written has signatures that were not named.
    #[error(
        "`{path}` has {}{}", marks_in_words(marks),
        if named.is_empty() { String::new() } else { format!(", but `overwrite_signature` names {}", quoted(named)) }
    )]
    SignatureNotNamed {
        /// The device.
        path: String,
        /// All signatures on it.
        marks: Vec<Mark>,
        /// The names in `overwrite_signature`.
        named: Vec<String>,
    },
    /// `overwrite_signature` names a signature that no target has.
    #[error(
        "`overwrite_signature` names `{name}`, which no target of this job has; found: {}",
        if found.is_empty() { "nothing".to_owned() } else { quoted(found) }
    )]
    SignatureNotThere {
        /// The name.
        name: String,
        /// The names of the signatures that were found.
        found: Vec<String>,
    },
    /// A generated name exists.
    #[error("`{path}`, which the job would create, already exists")]
    GeneratedNameTaken {
        /// The path.
        path: String,
    },
    /// The path is neither a file nor a block device.
    #[error("`{path}` is {what}, but {wanted} is needed")]
    WrongKindOfTarget {
        /// The path.
        path: String,
        /// What it is.
        what: &'static str,
        /// What is needed.
        wanted: &'static str,
    },
    /// The path could not be examined.
    #[error("`{path}` cannot be examined: {reason}")]
    TargetUnreadable {
        /// The path.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The directory of a file to be created does not exist.
    #[error("`{path}` cannot be created: the directory `{directory}` does not exist")]
    DirectoryMissing {
        /// The file.
        path: String,
        /// The directory.
        directory: String,
    },
    /// A file cannot or should not be created on this filesystem.
    #[error("`{path}` cannot be created: {reason}")]
    CannotCreateHere {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A missing file without a size.
    #[error("`{path}` does not exist yet and no `size` is given")]
    SizeMissing {
        /// The file.
        path: String,
    },
    /// A target of unknown size.
    #[error("the size of `{path}` is unknown: {reason}")]
    SizeUnknown {
        /// The target.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A percentage of a missing or empty file.
    #[error("`{option}` is a percentage of `{path}`, which does not exist yet or is empty")]
    PercentOfNothing {
        /// `size` or `offset`.
        option: &'static str,
        /// The file.
        path: String,
    },
    /// The region ends beyond an existing target.
    #[error("{}", beyond_target(path, [*offset_bytes, *size_bytes, *target_bytes], *filesize_bytes))]
    SizeBeyondTarget {
        /// The target.
        path: String,
        /// Begin of the region, in bytes.
        offset_bytes: u64,
        /// Length of the region, in bytes.
        size_bytes: u64,
        /// Size of the target, in bytes.
        target_bytes: u64,
        /// Where `filesize` ends the file, in bytes, if the target goes on after it; `None`: the target ends.
        filesize_bytes: Option<u64>,
    },
    /// The files do not fit.
    #[error(
        "the files to be created need {}, but `{mount_point}` has {} free",
        format_bytes(*needed_bytes), format_bytes(*available_bytes)
    )]
    SizeBeyondFreeSpace {
        /// Mount point of the filesystem.
        mount_point: String,
        /// Sum of the files, in bytes.
        needed_bytes: u64,
        /// Free space, in bytes.
        available_bytes: u64,
    },
    /// A block does not fit into the region.
    #[error("a block of {} does not fit into the region of {} in `{path}`", format_bytes(*block_bytes), format_bytes(*region_bytes))]
    BlockBeyondSize {
        /// The target.
        path: String,
        /// The largest block, in bytes.
        block_bytes: u64,
        /// The region, in bytes.
        region_bytes: u64,
    },
    /// Verification is not possible in this way.
    #[error("`verify` is not possible: {reason}")]
    VerifyImpossible {
        /// The reason.
        reason: String,
        /// The combination, with the remedy.
        case: Case,
    },
    /// The zones of `random_distribution` end beyond the region.
    #[error(
        "the zones of `random_distribution` are {}, but the region in `{path}` is {}",
        format_bytes(*zones_bytes), format_bytes(*region_bytes)
    )]
    SharesBeyondSize {
        /// The target.
        path: String,
        /// All zones together, in bytes.
        zones_bytes: u64,
        /// The region, in bytes.
        region_bytes: u64,
    },
    /// The job cannot write zones by their rules.
    #[error("`zonemode = zbd` is not possible: {reason}")]
    ZonesImpossible {
        /// The reason.
        reason: String,
        /// The combination, with the remedy.
        case: Case,
    },
    /// The target cannot be trimmed.
    #[error("`{path}` cannot be trimmed: {reason}")]
    TrimUnsupported {
        /// The target.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A processor that is not available to this process.
    #[error("`{option}` names processor {cpu}, which is not available to this process")]
    ProcessorNotThere {
        /// The option.
        option: &'static str,
        /// Number of the processor, as in `/sys/devices/system/cpu`.
        cpu: u32,
    },
    /// A node of memory that this machine does not have.
    #[error("`{option}` names node {node}, which does not exist or has no processor that this process can use")]
    NodeNotThere {
        /// The option.
        option: &'static str,
        /// Number of the node, as in `/sys/devices/system/node`.
        node: u32,
        /// The existing ones.
        there: Vec<u32>,
    },
    /// An I/O priority class that this user may not set.
    #[error("`{option}` sets the real-time class, which needs a privilege")]
    PriorityNotPermitted {
        /// The option.
        option: &'static str,
    },
    /// A user whose rights this process may not assume.
    #[error("{setting} is not possible: this process may not act as another user: {reason}")]
    UserNotPermitted {
        /// The option, with its value.
        setting: String,
        /// The system's error.
        reason: String,
    },
    /// A file that the job's user may not use.
    #[error("{user} may not {verb} `{path}`: {reason}")]
    UserMayNot {
        /// The job's user.
        user: UserPlan,
        /// The file.
        path: String,
        /// The kind of use.
        verb: &'static str,
        /// The reason.
        reason: String,
    },
    /// The buffers do not fit into memory.
    #[error("the buffers and workers of this phase need {}, but only {} can be used here (the machine's memory, or the limit of a control group)", format_bytes(*needed_bytes), format_bytes(*memory_bytes))]
    BuffersBeyondMemory {
        /// Workers × (depth × largest block + 64 KiB), in bytes.
        needed_bytes: u64,
        /// Memory, in bytes.
        memory_bytes: u64,
    },
    /// The maps of used blocks do not fit into memory.
    #[error(
        "the maps in which the workers of this phase note the blocks they have used need {}, but only {} can be used \
         here (the machine's memory, or the limit of a control group)",
        format_bytes(*needed_bytes), format_bytes(*memory_bytes)
    )]
    MapsBeyondMemory {
        /// All maps, in bytes.
        needed_bytes: u64,
        /// Memory, in bytes.
        memory_bytes: u64,
    },
}

/// Returns where a region ends, given by its offset, its length and the size of its target, and where it may end.
fn beyond_target(path: &str, [offset, size, target]: [u64; 3], filesize_bytes: Option<u64>) -> String {
    let [offset, size, target] = [offset, size, target].map(format_bytes);
    match filesize_bytes {
        Some(end) => {
            let end = format_bytes(end);
            format!("the job begins at {offset} of `{path}`, of which `filesize` uses the first {end}: nothing is left")
        }
        None => format!("the region of {size} from offset {offset} ends beyond `{path}`, whose size is {target}"),
    }
}

/// `` `a`, `b` ``.
fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

impl Rule {
    /// Returns the combination of options that is refused; `None`: the rule is about something else.
    pub fn case(&self) -> Option<Case> {
        match self {
            Rule::SteadyState { case, .. }
            | Rule::Contradiction { case, .. }
            | Rule::Incomplete { case, .. }
            | Rule::EngineLacks { case, .. }
            | Rule::ZonesImpossible { case, .. }
            | Rule::VerifyImpossible { case, .. } => Some(*case),
            _ => None,
        }
    }

    /// Returns the rule's identifier for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Rule::NoJobs => "no_jobs",
            Rule::SteadyState { .. } => "steady_state",
            Rule::CommandNotAllowed { .. } => "command_not_allowed",
            Rule::ExecNotAllowed { .. } => "exec_not_allowed",
            Rule::CommandImpossible { .. } => "command_impossible",
            Rule::SourceImpossible { .. } => "source_impossible",
            Rule::IologUnusable { .. } => "iolog_unusable",
            Rule::OutputReplaces { .. } => "output_replaces",
            Rule::OutputImpossible { .. } => "output_impossible",
            Rule::OutputUnrecognised { .. } => "output_unrecognised",
            Rule::OutputExists { .. } => "output_exists",
            Rule::JobName { .. } => "job_name",
            Rule::JobNameTwice { .. } => "job_name_twice",
            Rule::UnknownOption { .. } => "unknown_option",
            Rule::BadValue { .. } => "bad_value",
            Rule::Contradiction { .. } => "contradiction",
            Rule::Incomplete { .. } => "incomplete",
            Rule::EngineUnavailable { .. } => "engine_unavailable",
            Rule::EngineLacks { .. } => "engine_lacks",
            Rule::DepthOnBlockingEngine { .. } => "depth_on_blocking_engine",
            Rule::DirectImpossible { .. } => "direct_impossible",
            Rule::Misaligned { .. } => "misaligned",
            Rule::AtomicImpossible { .. } => "atomic_impossible",
            Rule::PollImpossible { .. } => "poll_impossible",
            Rule::ExistingTargetNotNamed { .. } => "existing_target_not_named",
            Rule::NamedForOverwriteNotUsed { .. } => "named_for_overwrite_not_used",
            Rule::NamedForOverwriteMissing { .. } => "named_for_overwrite_missing",
            Rule::TargetInUse { in_use, .. } => match in_use.kind {
                UseKind::Mounted => "target_mounted",
                UseKind::Member => "target_member_of_filesystem",
                UseKind::Swap => "target_is_swap",
                UseKind::Stacked | UseKind::Twin => "target_carries_device",
                UseKind::Claimed => "target_claimed",
                UseKind::OpenForWriting => "target_open_for_writing",
                UseKind::Unnamed => "target_open_elsewhere",
            },
            Rule::TargetIsLink { .. } => "target_is_link",
            Rule::DeviceNotExamined { .. } => "device_not_examined",
            Rule::SignatureNotNamed { .. } => "signature_not_named",
            Rule::SignatureNotThere { .. } => "signature_not_there",
            Rule::GeneratedNameTaken { .. } => "generated_name_taken",
            Rule::WrongKindOfTarget { .. } => "wrong_kind_of_target",
            Rule::TargetUnreadable { .. } => "target_unreadable",
            Rule::DirectoryMissing { .. } => "directory_missing",
            Rule::CannotCreateHere { .. } => "cannot_create_here",
            Rule::SizeMissing { .. } => "size_missing",
            Rule::SizeUnknown { .. } => "size_unknown",
            Rule::PercentOfNothing { .. } => "percent_of_nothing",
            Rule::SizeBeyondTarget { .. } => "size_beyond_target",
            Rule::SizeBeyondFreeSpace { .. } => "size_beyond_free_space",
            Rule::BlockBeyondSize { .. } => "block_beyond_size",
            Rule::SharesBeyondSize { .. } => "shares_beyond_size",
            Rule::VerifyImpossible { .. } => "verify_impossible",
            Rule::ZonesImpossible { .. } => "zones_impossible",
            Rule::TrimUnsupported { .. } => "trim_unsupported",
            Rule::ProcessorNotThere { .. } => "processor_not_there",
            Rule::NodeNotThere { .. } => "node_not_there",
            Rule::PriorityNotPermitted { .. } => "priority_not_permitted",
            Rule::UserNotPermitted { .. } => "user_not_permitted",
            Rule::UserMayNot { .. } => "user_may_not",
            Rule::BuffersBeyondMemory { .. } => "buffers_beyond_memory",
            Rule::MapsBeyondMemory { .. } => "maps_beyond_memory",
        }
    }
}
