//! Options of a refusal as fio's language writes them: `--size=1g` on the command line, `size=1g` in a job file.
//!
//! An option that was given is written by the name that was typed, and with the value that was typed.

use trueio_job::language::spec_of;
use trueio_job::option::{FioUse, OptionRow, Words};
use trueio_job::options::durability::rows::DIRECT;
use trueio_job::{Language, Native};
use trueio_model::{DirectPolicy, FioJob, FioWord, JobSpec, Origin};

/// The language of jobs: fio's, of those that were written in it; otherwise [`Native`].
#[derive(Debug, Clone, Copy)]
pub struct Written<'a>(pub &'a [JobSpec]);

impl Language for Written<'_> {
    fn write(&self, job: Option<&str>, row: &'static OptionRow, value: Option<&str>) -> Option<String> {
        let spec = spec_of(self.0, job)?;
        let Some(fio) = &spec.fio else { return Native(self.0).write(job, row, value) };
        if row.fio == FioUse::Absent {
            return None;
        }
        let given = word_of(fio, row, spec);
        let is_flag = match given {
            Some(word) => matches!(word.origin, Origin::Flag { .. }),
            None => fio.is_from_command_line,
        };
        let name = given.map_or(row.fio_name(), |word| word.spelled.as_deref().unwrap_or(&word.name));
        let dashes = if is_flag { "--" } else { "" };
        let is_given = |value: &str| spec.options.get(row.name).is_some_and(|set| set.text == value);
        let text = match (value, given) {
            (None, _) => String::new(),
            (Some(value), Some(word)) if is_given(value) => word.text.clone(),
            (Some(value), Some(word)) if word.name == BUFFERED => opposite(value).to_owned(),
            (Some(value), _) => value_of(row, value).to_owned(),
        };
        let equals = if text.is_empty() { "" } else { "=" };
        Some(format!("`{dashes}{name}{equals}{text}`"))
    }
}

/// Returns the word that set an option: the option itself, or another from which its value is derived (`buffered`, `verify_pattern`).
fn word_of<'a>(fio: &'a FioJob, row: &OptionRow, spec: &JobSpec) -> Option<&'a FioWord> {
    let origin = spec.options.get(row.name).map(|set| &set.origin);
    let of_origin = || fio.given.iter().rev().find(|word| Some(&word.origin) == origin);
    let implying = || {
        let (_, by) = IMPLIED.iter().find(|(name, _)| *name == row.name)?;
        fio.word(by).filter(|_| matches!(origin, Some(Origin::Derived { .. })))
    };
    fio.word(row.fio_name()).or_else(of_origin).or_else(implying)
}

/// Options, each with another one that sets it.
const IMPLIED: [(&str, &str); 1] = [("verify", "verify_pattern")];

/// The opposite of `direct`.
const BUFFERED: &str = "buffered";

/// Returns the value of `buffered` that is a value of `direct`.
fn opposite(direct: &str) -> &'static str {
    if direct == DirectPolicy::Off.word() { "1" } else { "0" }
}

/// Returns the value in fio's words; empty: the option stands alone.
fn value_of<'v>(row: &OptionRow, value: &'v str) -> &'v str {
    match value {
        "true" if row.is_switch() => {
            if row.is_flag_in_fio {
                ""
            } else {
                "1"
            }
        }
        "false" if row.is_switch() => "0",
        _ if row.name == DIRECT.name && value == DirectPolicy::Off.word() => "0",
        _ if row.name == DIRECT.name && value == DirectPolicy::Require.word() => "1",
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_job::{Case, Refusal, Rule, TABLE, explain_refusal_in};
    use trueio_model::EngineKind;

    /// A refusal of each rule whose text or hint names options.
    fn rules() -> Vec<Rule> {
        let path = || "/mnt/f".to_owned();
        let reason = || "of a reason".to_owned();
        let case = Case::AppendSize;
        let hint = case.hint();
        let engine = EngineKind::Psync;
        vec![
            Rule::SteadyState { reason: reason(), case },
            Rule::SourceImpossible { address: "http://h/f".to_owned(), reason: reason(), hint },
            Rule::ExecNotAllowed { program: "true".to_owned() },
            Rule::OutputExists { what: "`write_iolog` of job `a`".to_owned(), path: path() },
            Rule::BadValue { option: "bs", reason: reason() },
            Rule::Contradiction {
                one: "`fsync = 1` (--fsync)".to_owned(),
                other: "`fdatasync = 1`".to_owned(),
                reason: "a job makes one kind of sync call",
                case: Case::LeaveOneOut,
            },
            Rule::Incomplete { option: "`time_based = true`".to_owned(), needs: "`runtime`", case },
            Rule::EngineUnavailable { engine, reason: reason() },
            Rule::EngineLacks { engine, lack: "has no `hipri`".to_owned(), case },
            Rule::DepthOnBlockingEngine { engine, depth: 4 },
            Rule::DirectImpossible { path: path(), reason: reason() },
            Rule::Misaligned {
                what: "a block",
                value_bytes: 1000,
                alignment_bytes: 512,
                path: path(),
                source_text: reason(),
            },
            Rule::AtomicImpossible { path: path(), reason: reason() },
            Rule::PollImpossible { path: path(), disk: "nvme0n1".to_owned(), source_text: reason() },
            Rule::ExistingTargetNotNamed { path: path(), what: "a file", verb: "overwrite" },
            Rule::NamedForOverwriteNotUsed { path: path(), targets: vec![path()] },
            Rule::TargetIsLink { path: path(), target: path() },
            Rule::SignatureNotNamed { path: path(), marks: Vec::new(), named: vec!["ext4".to_owned()] },
            Rule::SignatureNotThere { name: "ext4".to_owned(), found: Vec::new() },
            Rule::GeneratedNameTaken { path: path() },
            Rule::WrongKindOfTarget { path: path(), what: "a directory", wanted: "a file" },
            Rule::SizeMissing { path: path() },
            Rule::SizeUnknown { path: path(), reason: reason() },
            Rule::PercentOfNothing { option: "size", path: path() },
            Rule::SizeBeyondTarget {
                path: path(),
                offset_bytes: 0,
                size_bytes: 2,
                target_bytes: 1,
                filesize_bytes: None,
            },
            Rule::SizeBeyondFreeSpace { mount_point: path(), needed_bytes: 2, available_bytes: 1 },
            Rule::BlockBeyondSize { path: path(), block_bytes: 2, region_bytes: 1 },
            Rule::SharesBeyondSize { path: path(), zones_bytes: 2, region_bytes: 1 },
            Rule::VerifyImpossible { reason: reason(), case },
            Rule::ZonesImpossible { reason: reason(), case },
            Rule::ProcessorNotThere { option: "sqthread_poll_cpu", cpu: 77 },
            Rule::NodeNotThere { option: "numa_cpu_nodes", node: 7, there: vec![0] },
            Rule::PriorityNotPermitted { option: "prioclass" },
            Rule::UserNotPermitted { setting: "`uid = 7`".to_owned(), reason: reason() },
            Rule::BuffersBeyondMemory { needed_bytes: 2, memory_bytes: 1 },
            Rule::MapsBeyondMemory { needed_bytes: 2, memory_bytes: 1 },
        ]
    }

    fn job(is_from_command_line: bool, given: Vec<FioWord>) -> JobSpec {
        let mut spec = JobSpec::new("a");
        spec.fio = Some(Box::new(FioJob { name: "a".to_owned(), is_from_command_line, given, ..FioJob::default() }));
        spec
    }

    fn text(rule: Rule, spec: JobSpec) -> String {
        let refusal = Refusal { job: Some("a".to_owned()), origin: None, rule: Box::new(rule) };
        explain_refusal_in(&refusal, &Written(&[spec]))
    }

    /// Goal: no refusal has an option in the notation of our job files, which fio's language does not accept.
    #[test]
    fn each_refusal_has_the_notation_of_the_command_line_or_of_a_job_file() {
        for rule in rules() {
            let lines = [false, true].map(|is_line| text(rule.clone(), job(is_line, Vec::new())));
            for row in TABLE.iter().filter(|row| row.fio != FioUse::Absent) {
                let (name, set) = (format!("`{}`", row.name), format!("`{} = ", row.name));
                assert!(!lines[1].contains(&name), "{name} in {}", lines[1]);
                assert!(lines.iter().all(|text| !text.contains(&set)), "{set} in {lines:?}");
            }
        }
    }

    #[test]
    fn an_option_is_named_and_valued_as_it_was_typed() {
        let word = |name: &str, spelled: Option<&str>, text: &str, origin: Origin| FioWord {
            name: name.to_owned(),
            spelled: spelled.map(str::to_owned),
            text: text.to_owned(),
            is_global: false,
            origin,
        };
        let flag = |flag: &str| Origin::Flag { flag: flag.to_owned() };
        let line = Origin::File { path: "j.fio".to_owned(), line: 2 };
        let too_large = || Rule::BlockBeyondSize { path: "/f".to_owned(), block_bytes: 2, region_bytes: 1 };
        let hint = |spec: JobSpec| text(too_large(), spec).lines().last().unwrap_or_default().to_owned();
        let of_line = job(true, vec![word("bs", Some("blocksize"), "1M", flag("--blocksize"))]);
        assert_eq!(hint(of_line), "hint: set a larger `--size` or a smaller `--blocksize`");
        let of_file = job(false, vec![word("bs", Some("blocksize"), "1M", line)]);
        assert_eq!(hint(of_file), "hint: set a larger `size` or a smaller `blocksize`");

        let mut deep = job(true, vec![word("iodepth", None, "0x4", flag("--iodepth"))]);
        deep.set("iodepth", "4", flag("--iodepth"));
        let engine = EngineKind::Psync;
        let deep = text(Rule::DepthOnBlockingEngine { engine, depth: 4 }, deep);
        assert!(deep.contains("`--iodepth=0x4`, but") && deep.contains("use `--ioengine=io_uring`"), "{deep}");

        let fixed = |case: Case| {
            let lacks = Rule::EngineLacks { engine, lack: "cannot poll".to_owned(), case };
            text(lacks, job(true, Vec::new())).lines().last().unwrap_or_default().to_owned()
        };
        assert_eq!(fixed(Case::EnginePolls), "hint: use `--ioengine=io_uring` or `--ioengine=pvsync2`");
        let removed = Rule::BadValue { option: "unlink_each_loop", reason: "`a` exists".to_owned() };
        assert!(text(removed, job(true, Vec::new())).contains("hint: leave `--unlink_each_loop` out"));

        let mut buffered = job(true, vec![word("buffered", None, "0", flag("--buffered"))]);
        buffered.set("direct", "require", flag("--buffered"));
        let lacks = Rule::EngineLacks { engine, lack: "has no `direct`".to_owned(), case: Case::DirectUsb };
        assert!(text(lacks, buffered.clone()).contains("has no `--buffered`"));
        buffered.set("direct", "off", flag("--buffered"));
        let polls = Rule::EngineLacks { engine, lack: "cannot poll".to_owned(), case: Case::DirectOff };
        assert!(text(polls, buffered).contains("hint: set `--buffered=0`"));
    }
}
