//! Jobs whose I/O another program does: which programs, on what, and which options still mean something.
//!
//! A job file may come from anywhere, so nothing in one starts a program: only those start that the machine's
//! description names, and only a study puts names there.

use super::Planner;
use super::job::note_unused;
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use crate::value::write_bytes;
use trueio_model::{BlockSizes, CommandPlan, EngineKind, ExecPlan, FilePlan, OpKind, OpMix};

/// The options that mean something for a program that this one only starts.
const MEANINGFUL: &[&str] = &[
    "bs",
    "command",
    "directory",
    "end_fdatasync",
    "end_fsync",
    "fallocate",
    "filename",
    "fsync_on_close",
    "invalidate",
    "offset",
    "overwrite",
    "overwrite_existing",
    "overwrite_signature",
    "randrepeat",
    "randseed",
    "rw",
    "size",
    "startdelay",
    "stonewall",
    "unlink",
    "verify",
    "verify_pattern",
    "zero_buffers",
];

/// What may stand in a command for something else.
const PLACEHOLDERS: &[&str] = &["{file}", "{bs}", "{count}", "{size}"];

/// Whether the job is another program's, and may be.
pub(super) fn check_command(planner: &Planner, values: &Values, mix: OpMix, is_random: bool) -> Result<bool, Refusal> {
    let Some(words) = values.words("command") else { return Ok(false) };
    let refuse = |option: &str, reason: String, hint: &'static str| {
        Err(values.refuse(option, Rule::CommandImpossible { reason, hint }))
    };
    let program = &words[0];
    if !planner.machine.programs.contains(program) {
        return Err(values.refuse("command", Rule::CommandNotAllowed { program: program.clone() }));
    }
    if mix != OpMix::Only(OpKind::Write) || is_random {
        return refuse("rw", "what a program reads is counted for it and not for us".into(), "say `rw = \"write\"`");
    }
    if let Some(option) = values.said().find(|name| !MEANINGFUL.contains(name)) {
        let reason = format!("{} means nothing for another program", values.quote(option));
        return refuse(option, reason, "leave it out; what the program can do stands in its own arguments");
    }
    if values.choice("verify").is_some_and(|word| !["none", "pattern"].contains(&word)) {
        let reason = format!("{}: no header of ours is in what another program writes", values.quote("verify"));
        return refuse(
            "verify",
            reason,
            "say `verify = \"pattern\"` and what it writes as `verify_pattern`, or leave it out",
        );
    }
    if values.paths("filename").is_some_and(|paths| paths.len() > 1) {
        return refuse("filename", "a program is given one file".into(), "name one file");
    }
    if !words.iter().any(|word| word.contains("{file}")) {
        let hint = "write `{file}` where its path belongs; `{bs}`, `{count}` and `{size}` are numbers";
        return refuse("command", "it does not say where the file's path goes".into(), hint);
    }
    for word in words {
        let mut rest = word.as_str();
        while let Some(at) = rest.find('{') {
            let Some(known) = PLACEHOLDERS.iter().find(|name| rest[at..].starts_with(**name)) else {
                let hint = "there are `{file}`, `{bs}`, `{count}` and `{size}`";
                return refuse("command", format!("`{word}` holds a placeholder that is none"), hint);
            };
            rest = &rest[at + known.len()..];
        }
    }
    Ok(true)
}

/// The program with its arguments; the file's path is put in when it is known.
pub(super) fn plan_command(values: &Values, sizes: &BlockSizes, file: &FilePlan) -> Result<CommandPlan, Refusal> {
    let words = values.words("command").unwrap_or(&[]);
    let block = sizes.max_bytes();
    let uses_count = words.iter().any(|word| word.contains("{count}"));
    if uses_count && !file.size_bytes.is_multiple_of(block) {
        let reason = format!(
            "{} is no whole number of blocks of {}, which `{{count}}` would be",
            write_bytes(file.size_bytes),
            write_bytes(block)
        );
        return Err(values.refuse("command", Rule::CommandImpossible { reason, hint: "choose a `size` that is" }));
    }
    let put = |word: &String| {
        let word = word.replace("{bs}", &block.to_string()).replace("{size}", &file.size_bytes.to_string());
        word.replace("{count}", &(file.size_bytes / block).to_string())
    };
    Ok(CommandPlan { arguments: words.iter().map(put).collect() })
}

/// The program that `exec` runs, if it may.
pub(super) fn plan_exec(
    planner: &mut Planner,
    values: &Values,
    engine: EngineKind,
) -> Result<Option<ExecPlan>, Refusal> {
    if engine != EngineKind::Exec {
        note_unused(planner, values, &["program", "grace_time", "std_redirect"], "the engine is not `exec`");
        return Ok(None);
    }
    let Some(words) = values.words("program") else {
        let needs = "`program`: what it runs";
        let rule = Rule::Incomplete { option: values.quote("ioengine"), needs, hint: "say it beside the engine" };
        return Err(values.refuse("program", rule));
    };
    if !planner.machine.programs.contains(&words[0]) {
        return Err(values.refuse("program", Rule::ExecNotAllowed { program: words[0].clone() }));
    }
    Ok(Some(ExecPlan {
        arguments: words.to_vec(),
        grace_ns: values.duration_ns("grace_time").unwrap_or(0),
        output: values.bool("std_redirect").then(|| values.job.clone()),
    }))
}
