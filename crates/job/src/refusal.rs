//! Refusals: what the user asked for and cannot have.
//!
//! A refusal is found while planning, before anything is touched. It names the job, the rule, why
//! the rule says no, and what to do. [`Rule::name`] is for machines and stays as it is.

use crate::in_use::{DeviceUse, Mark, UseKind, marks_in_words};
use miette::Diagnostic;
use std::fmt;
use trueio_model::units::format_bytes;
use trueio_model::{EngineKind, Origin, UserPlan};

/// A job that was not planned, and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", match job { Some(job) => format!("job `{job}` was not started"), None => "nothing was started".to_owned() })]
pub struct Refusal {
    /// The job; `None` if the rule is about all of them.
    pub job: Option<String>,
    /// Who said the word that cannot be kept, if it was one word.
    pub origin: Option<Origin>,
    /// The rule that says no.
    #[source]
    pub rule: Box<Rule>,
}

impl Refusal {
    /// What to do.
    pub fn hint(&self) -> String {
        self.rule.hint()
    }
}

impl Diagnostic for Refusal {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.rule.name()))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.hint()))
    }
}

/// The rules by which a plan is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rule {
    /// No job at all.
    #[error("there is no job")]
    NoJobs,
    /// Jobs that cannot come to a steady state by rounds.
    #[error("`steady_state` cannot be had: {reason}")]
    SteadyState {
        /// Why.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// A program that nobody allowed.
    #[error("`command` would start `{program}`, which a job file may not")]
    CommandNotAllowed {
        /// The program.
        program: String,
    },
    /// A program beside the jobs that nobody allowed.
    #[error("`exec` would start `{program}`, and nobody allowed that")]
    ExecNotAllowed {
        /// The program.
        program: String,
    },
    /// A command that cannot be measured as the job asks.
    #[error("`command` cannot be kept: {reason}")]
    CommandImpossible {
        /// Why.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// A body that cannot be fetched, or not be written as the job asks.
    #[error("`source = {address}` cannot be had: {reason}")]
    SourceImpossible {
        /// Where it is.
        address: String,
        /// Why.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// A log that cannot be replayed, or not be written.
    #[error("the log `{log}` cannot be used: {reason}")]
    IologUnusable {
        /// The log.
        log: String,
        /// Why, with the line if one is to blame.
        reason: String,
    },
    /// An output that would replace what is measured or read, or mix with another output.
    #[error(
        "{what} would replace `{other}`, which {who}{}",
        if path == other { String::new() } else { format!(": `{path}` is the same file") }
    )]
    OutputReplaces {
        /// Who would write.
        what: String,
        /// Where.
        path: String,
        /// The file's name in the other place.
        other: String,
        /// Who uses it there, and how.
        who: String,
    },
    /// An output that cannot or must not be written.
    #[error("{what} `{path}` cannot be written: {reason}")]
    OutputImpossible {
        /// Who would write.
        what: String,
        /// Where.
        path: String,
        /// Why not.
        reason: String,
    },
    /// A name that cannot be part of a file's name.
    #[error("{reason}")]
    JobName {
        /// What is wrong with it.
        reason: String,
    },
    /// Two jobs of one name.
    #[error("two jobs are called `{name}`")]
    JobNameTwice {
        /// The name.
        name: String,
    },
    /// An option that the table does not have.
    #[error("`{option}` is not an option")]
    UnknownOption {
        /// As it was written.
        option: String,
        /// What may have been meant.
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
    /// Two words that cannot both be kept.
    #[error("{one} and {other} contradict each other: {reason}")]
    Contradiction {
        /// The one, with its value.
        one: String,
        /// The other, with its value.
        other: String,
        /// Why.
        reason: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// A word that means nothing without another.
    #[error("{option} needs {needs}")]
    Incomplete {
        /// The option, with its value.
        option: String,
        /// What is missing.
        needs: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// The engine does not work on this machine.
    #[error("the engine `{}` does not work here: {reason}", engine.name())]
    EngineUnavailable {
        /// The engine.
        engine: EngineKind,
        /// Why.
        reason: String,
    },
    /// The engine lacks what was asked for.
    #[error("the engine `{}` {lack}", engine.name())]
    EngineLacks {
        /// The engine.
        engine: EngineKind,
        /// What it cannot do, as the rest of a sentence.
        lack: String,
        /// What to do.
        hint: &'static str,
    },
    /// More than one I/O in flight on an engine that blocks.
    #[error("`iodepth = {depth}`, and the engine `{}` holds one I/O at a time", engine.name())]
    DepthOnBlockingEngine {
        /// The engine.
        engine: EngineKind,
        /// The depth asked for.
        depth: u32,
    },
    /// Direct I/O was required where it cannot be had.
    #[error("`{path}` has no direct I/O: {reason}")]
    DirectImpossible {
        /// The target.
        path: String,
        /// Who says so.
        reason: String,
    },
    /// Direct I/O was required with a size or offset that it cannot transfer.
    #[error(
        "{what} of {} is not a multiple of {alignment_bytes} bytes, which direct I/O on `{path}` needs ({source_text})",
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
        /// Who says so.
        source_text: String,
    },
    /// Atomic writes were asked for where the target says that it has none, or none of this shape.
    #[error("`{path}` takes no such atomic writes: {reason}")]
    AtomicImpossible {
        /// The target.
        path: String,
        /// Who says so.
        reason: String,
    },
    /// Polling for completions was asked for on disks that have no queue for it.
    #[error("`hipri` cannot be kept on `{path}`: the disk `{disk}` has no queue that can be polled ({source_text})")]
    PollImpossible {
        /// The target.
        path: String,
        /// The disk under it.
        disk: String,
        /// Who says so.
        source_text: String,
    },
    /// Something that exists would be written without having been named.
    #[error("`{path}` exists ({what}) and the job would {verb} it")]
    ExistingTargetNotNamed {
        /// The target.
        path: String,
        /// What it is.
        what: &'static str,
        /// `overwrite` or `trim`.
        verb: &'static str,
    },
    /// `overwrite_existing` names what is no target of the job.
    #[error("`overwrite_existing` names `{path}`, which is no target of this job")]
    NamedForOverwriteNotUsed {
        /// The path.
        path: String,
        /// The job's targets.
        targets: Vec<String>,
    },
    /// `overwrite_existing` names what does not exist.
    #[error("`overwrite_existing` names `{path}`, which does not exist")]
    NamedForOverwriteMissing {
        /// The path.
        path: String,
    },
    /// What would be written is mounted, swapped on, or otherwise used.
    #[error("`{path}` is in use: {} (says {})", in_use.sentence(), in_use.source)]
    TargetInUse {
        /// The target.
        path: String,
        /// Who uses it, and how.
        in_use: DeviceUse,
    },
    /// Nobody could say whether the device that would be written is free.
    #[error("it is not known who uses `{path}`: {reason}")]
    DeviceNotExamined {
        /// The device.
        path: String,
        /// Why.
        reason: String,
    },
    /// The device that would be written carries what was not named.
    #[error(
        "`{path}` carries {}{}", marks_in_words(marks),
        if named.is_empty() { String::new() } else { format!(", and `overwrite_signature` names {}", quoted(named)) }
    )]
    SignatureNotNamed {
        /// The device.
        path: String,
        /// Everything that was found on it.
        marks: Vec<Mark>,
        /// What `overwrite_signature` names.
        named: Vec<String>,
    },
    /// `overwrite_signature` names what no target carries.
    #[error(
        "`overwrite_signature` names `{name}`, which no target of this job carries; found: {}",
        if found.is_empty() { "nothing".to_owned() } else { quoted(found) }
    )]
    SignatureNotThere {
        /// The name.
        name: String,
        /// The names of what was found.
        found: Vec<String>,
    },
    /// A name that the program would generate is taken.
    #[error("`{path}`, which the job would create, exists already")]
    GeneratedNameTaken {
        /// The path.
        path: String,
    },
    /// The path is neither a file nor a block device.
    #[error("`{path}` is {what}, and {wanted} is needed")]
    WrongKindOfTarget {
        /// The path.
        path: String,
        /// What it is.
        what: &'static str,
        /// What is needed.
        wanted: &'static str,
    },
    /// Nothing could be learnt about the path.
    #[error("`{path}` cannot be examined: {reason}")]
    TargetUnreadable {
        /// The path.
        path: String,
        /// Why.
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
        /// Why.
        reason: String,
    },
    /// No size for a file that does not exist.
    #[error("`{path}` does not exist yet and no `size` is given")]
    SizeMissing {
        /// The file.
        path: String,
    },
    /// A size that is not known.
    #[error("the size of `{path}` is not known: {reason}")]
    SizeUnknown {
        /// The target.
        path: String,
        /// Why.
        reason: String,
    },
    /// A percentage of what does not exist yet.
    #[error("`{option}` is a percentage, and `{path}` does not exist yet")]
    PercentOfNothing {
        /// `size` or `offset`.
        option: &'static str,
        /// The file.
        path: String,
    },
    /// The region ends beyond an existing target.
    #[error(
        "the region of {} from offset {} ends beyond `{path}`, which holds {}",
        format_bytes(*size_bytes), format_bytes(*offset_bytes), format_bytes(*target_bytes)
    )]
    SizeBeyondTarget {
        /// The target.
        path: String,
        /// Begin of the region, in bytes.
        offset_bytes: u64,
        /// Length of the region, in bytes.
        size_bytes: u64,
        /// Size of the target, in bytes.
        target_bytes: u64,
    },
    /// The files do not fit.
    #[error(
        "the files to be created take {}, and `{mount_point}` has {} left",
        format_bytes(*needed_bytes), format_bytes(*available_bytes)
    )]
    SizeBeyondFreeSpace {
        /// Where the filesystem is mounted.
        mount_point: String,
        /// Sum of the files, in bytes.
        needed_bytes: u64,
        /// What is free, in bytes.
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
    /// What was written cannot be verified in this way.
    #[error("`verify` cannot be kept: {reason}")]
    VerifyImpossible {
        /// Why.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// The zones of `random_distribution` end behind the region.
    #[error(
        "the zones of `random_distribution` are {}, and the region in `{path}` is {}",
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
    /// Zones that cannot be written by their rules as the job asks.
    #[error("`zonemode = zbd` cannot be kept: {reason}")]
    ZonesImpossible {
        /// Why.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// The target cannot be trimmed.
    #[error("`{path}` cannot be trimmed: {reason}")]
    TrimUnsupported {
        /// The target.
        path: String,
        /// Why.
        reason: String,
    },
    /// Too few processors for polling kernel threads.
    #[error("`sqthread_poll` needs two processors a worker: {needed} for this phase, and {there} may be used")]
    TooFewProcessors {
        /// How many are needed.
        needed: u64,
        /// How many there are.
        there: u64,
    },
    /// A processor that this process may not use.
    #[error("`cpus_allowed` names processor {cpu}, which this process may not use")]
    ProcessorNotThere {
        /// Its number.
        cpu: u32,
    },
    /// A node of memory that this machine does not have.
    #[error("`{option}` names node {node}, which is not there or has no processor that this process may use")]
    NodeNotThere {
        /// Which option.
        option: &'static str,
        /// Its number.
        node: u32,
        /// Those that are there.
        there: Vec<u32>,
    },
    /// A class of I/O priority that this user may not have.
    #[error("`{option}` asks for the class real time, and the kernel lets only the privileged have it")]
    PriorityNotPermitted {
        /// Which option.
        option: &'static str,
    },
    /// A user that this process may not act as.
    #[error("{said} cannot be kept: this process may not act as another user: {reason}")]
    UserNotPermitted {
        /// What was asked for.
        said: String,
        /// The system's answer.
        reason: String,
    },
    /// What a job's user may not use.
    #[error("{user} may not {verb} `{path}`: {reason}")]
    UserMayNot {
        /// Whom the job acts as.
        user: UserPlan,
        /// What it would use.
        path: String,
        /// How.
        verb: &'static str,
        /// Why not.
        reason: String,
    },
    /// The buffers do not fit into memory.
    #[error("the buffers of this phase take {}, and the machine has {}", format_bytes(*needed_bytes), format_bytes(*memory_bytes))]
    BuffersBeyondMemory {
        /// Workers × depth × largest block, in bytes.
        needed_bytes: u64,
        /// Memory, in bytes.
        memory_bytes: u64,
    },
}

/// `` `a`, `b` ``.
fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

impl Rule {
    /// The rule's name for machines.
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
                UseKind::Stacked => "target_carries_device",
                UseKind::Claimed => "target_claimed",
            },
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
            Rule::TooFewProcessors { .. } => "too_few_processors",
            Rule::ProcessorNotThere { .. } => "processor_not_there",
            Rule::NodeNotThere { .. } => "node_not_there",
            Rule::PriorityNotPermitted { .. } => "priority_not_permitted",
            Rule::UserNotPermitted { .. } => "user_not_permitted",
            Rule::UserMayNot { .. } => "user_may_not",
            Rule::BuffersBeyondMemory { .. } => "buffers_beyond_memory",
        }
    }

    /// What to do about it.
    #[expect(clippy::too_many_lines, reason = "until it is split")]
    pub fn hint(&self) -> String {
        match self {
            Rule::NoJobs => "add a table `[job.NAME]` to the job file".into(),
            Rule::IologUnusable { .. } => "docs/from-fio.md says what a log may hold".into(),
            Rule::OutputReplaces { .. } => "name another file for one of them".into(),
            Rule::OutputImpossible { .. } => "name another file for it".into(),
            Rule::JobName { .. } => "use letters, digits, `-`, `_` and `.`".into(),
            Rule::JobNameTwice { .. } => "rename one of them".into(),
            Rule::UnknownOption { suggestion, .. } => {
                suggestion.clone().unwrap_or_else(|| "the options stand in docs/job-options.md".into())
            }
            Rule::BadValue { option, reason } => match crate::table::row(option).map(|row| row.kind.takes()) {
                // The reason may have said it already.
                Some(takes) if !reason.contains(&takes) => format!("`{option}` takes {takes}"),
                _ => "the options stand in docs/job-options.md".into(),
            },
            Rule::NodeNotThere { there, .. } if there.is_empty() => "leave it out".into(),
            Rule::NodeNotThere { there, .. } => {
                let numbers: Vec<String> = there.iter().map(u32::to_string).collect();
                format!("there are: {}", numbers.join(", "))
            }
            Rule::PriorityNotPermitted { .. } => "say class 2 or 3, or run with CAP_SYS_NICE or CAP_SYS_ADMIN".into(),
            Rule::Contradiction { hint, .. }
            | Rule::Incomplete { hint, .. }
            | Rule::EngineLacks { hint, .. }
            | Rule::SteadyState { hint, .. }
            | Rule::SourceImpossible { hint, .. }
            | Rule::CommandImpossible { hint, .. }
            | Rule::ZonesImpossible { hint, .. }
            | Rule::VerifyImpossible { hint, .. } => (*hint).into(),
            Rule::ExecNotAllowed { .. } => {
                "only `trueio fio` starts it, with `--allow-exec` on the command line".into()
            }
            Rule::CommandNotAllowed { .. } => {
                "only a study starts other programs: those that come with this program their own ones, and one from a \
                 folder with `--allow-exec`"
                    .into()
            }
            Rule::EngineUnavailable { .. } => {
                "`trueio doctor` says which engines work here; without `ioengine` one that works is chosen".into()
            }
            Rule::DepthOnBlockingEngine { .. } => {
                "use `ioengine = \"io_uring\"` or \"libaio\" for a queue, or `numjobs` for more workers".into()
            }
            Rule::DirectImpossible { path, .. } => format!(
                "`direct = \"prefer\"` takes what there is; `trueio device {path}` shows what this filesystem offers"
            ),
            Rule::Misaligned { alignment_bytes, .. } => {
                format!("use multiples of {alignment_bytes}, or `direct = \"off\"`")
            }
            Rule::AtomicImpossible { path, .. } => format!(
                "`trueio device {path}` shows which atomic writes there are: a power of two, at multiples of itself; \
                 or leave `atomic` out"
            ),
            Rule::PollImpossible { .. } => {
                "leave `hipri` out, or give the driver queues to poll (nvme: the module's parameter `poll_queues`)"
                    .into()
            }
            Rule::ExistingTargetNotNamed { path, .. } => format!(
                "what it holds would be lost; if that is meant, say `overwrite_existing = \"{path}\"`; \
                 without `filename` the job makes a file of its own"
            ),
            Rule::NamedForOverwriteNotUsed { targets, .. } => {
                format!("spell it exactly as the target is: {}", quoted(targets))
            }
            Rule::NamedForOverwriteMissing { .. } => "correct the path; a new file needs no permission".into(),
            Rule::TargetInUse { .. } => {
                "free it first (unmount it, `swapoff`, stop what stands on it), or choose another target; no option \
                 makes it writable"
                    .into()
            }
            Rule::DeviceNotExamined { .. } => {
                "a block device is written only if it is known to be free and bare: run as a user who may read it"
                    .into()
            }
            Rule::SignatureNotNamed { marks, .. } => {
                let names: Vec<&str> = marks.iter().map(|mark| mark.name.as_str()).collect();
                let names = names.join(",");
                format!(
                    "what it holds would be lost; if that is meant, say `overwrite_signature = \"{names}\"` \
                     (baseline: `--overwrite-signature {names}`)"
                )
            }
            Rule::SignatureNotThere { .. } => {
                "correct the name, or leave it out; a wrong name may mean the wrong device".into()
            }
            Rule::GeneratedNameTaken { path } => {
                format!("remove `{path}` if an earlier run left it there, or say `filename` or `directory`")
            }
            Rule::WrongKindOfTarget { what: "a directory", .. } => {
                "say `directory` instead, and the job makes a file of its own in it".into()
            }
            Rule::WrongKindOfTarget { .. } => "name a file, a block device, or a directory by `directory`".into(),
            Rule::TargetUnreadable { .. } => "check the path and who may read it".into(),
            Rule::DirectoryMissing { directory, .. } => format!("create `{directory}` first, or correct the path"),
            Rule::CannotCreateHere { .. } => "choose another directory".into(),
            Rule::SizeMissing { .. } => "say `size`, such as `size = \"1g\"`".into(),
            Rule::SizeUnknown { .. } => "say `size`".into(),
            Rule::PercentOfNothing { .. } => "say it in bytes, such as `1g`".into(),
            Rule::SizeBeyondTarget { target_bytes, offset_bytes, .. } => format!(
                "at most {} are there from this offset: say a smaller `size`; an existing file is made longer only if \
                 `extend_existing`, an option of trueio's, names it",
                format_bytes(target_bytes.saturating_sub(*offset_bytes))
            ),
            Rule::SizeBeyondFreeSpace { .. } => "say a smaller `size`, or another `directory`".into(),
            Rule::BlockBeyondSize { .. } => "say a larger `size` or a smaller `bs`".into(),
            Rule::SharesBeyondSize { .. } => {
                "smaller zones, or `zoned`, whose zones are percentages of the region".into()
            }
            Rule::TrimUnsupported { .. } => "use writes, or another target".into(),
            Rule::TooFewProcessors { .. } => "leave `sqthread_poll` out, or use fewer workers".into(),
            Rule::ProcessorNotThere { .. } => "`trueio doctor` lists the processors".into(),
            Rule::UserNotPermitted { .. } => {
                "run as root, or with CAP_SETUID and CAP_SETGID; or start the whole command as that user (`sudo -u`), \
                 without `uid` and `gid`"
                    .into()
            }
            Rule::UserMayNot { .. } => {
                "let that user have it (`chown`, `chmod`; the directories above it must let that user pass, too), or \
                 leave out `uid` and `gid`"
                    .into()
            }
            Rule::BuffersBeyondMemory { .. } => "lower `iodepth`, `numjobs` or `bs`".into(),
        }
    }
}
