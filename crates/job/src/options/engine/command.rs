//! Jobs whose I/O another program does: which programs, on what, and which options still mean something.
//!
//! A job file may come from anywhere, so nothing in one starts a program: only those start that the machine's
//! description names, and only a study puts names there.

use crate::input::{Decisions, JobInput};
use crate::option::{OptionRow, Scope};
use crate::options::content::rows::VERIFY;
use crate::options::engine::rows::{COMMAND, GRACE_TIME, IOENGINE, PROGRAM, STD_REDIRECT};
use crate::options::pattern::rows::RW;
use crate::options::target::rows::FILENAME;
use crate::refusal::{Refusal, Rule};
use crate::value::write_bytes;
use crate::values::Values;
use trueio_model::{BlockSizes, CommandPlan, EngineKind, ExecPlan, FilePlan, OpKind, OpMix};

/// What may stand in a command for something else.
const PLACEHOLDERS: &[&str] = &["{file}", "{bs}", "{count}", "{size}"];

/// Whether the job is another program's, and may be.
pub(crate) fn check_command(values: &JobInput<'_>, mix: OpMix, is_random: bool) -> Result<bool, Refusal> {
    let Some(words) = values.get(COMMAND) else { return Ok(false) };
    let refuse = |option: &'static OptionRow, reason: String, hint: &'static str| {
        Err(values.refuse(option, Rule::CommandImpossible { reason, hint }))
    };
    let program = &words[0];
    if !values.machine.programs.contains(program) {
        return Err(values.refuse(COMMAND, Rule::CommandNotAllowed { program: program.clone() }));
    }
    if mix != OpMix::Only(OpKind::Write) || is_random {
        return refuse(
            RW.row(),
            "what a program reads is counted for it and not for us".into(),
            "say `rw = \"write\"`",
        );
    }
    if let Some(option) = values.all_set().find(|row| !row.scope.contains(&Scope::WithCommand)) {
        let reason = format!("{} means nothing for another program", values.quote(option));
        return refuse(option, reason, "leave it out; what the program can do stands in its own arguments");
    }
    if !["none", "pattern"].contains(&values.get(VERIFY)) {
        let reason = format!("{}: no header of ours is in what another program writes", values.quote(VERIFY));
        return refuse(
            VERIFY.row(),
            reason,
            "say `verify = \"pattern\"` and what it writes as `verify_pattern`, or leave it out",
        );
    }
    if values.get(FILENAME).is_some_and(|paths| paths.len() > 1) {
        return refuse(FILENAME.row(), "a program is given one file".into(), "name one file");
    }
    if !words.iter().any(|word| word.contains("{file}")) {
        let hint = "write `{file}` where its path belongs; `{bs}`, `{count}` and `{size}` are numbers";
        return refuse(COMMAND.row(), "it does not say where the file's path goes".into(), hint);
    }
    for word in words {
        let mut rest = word.as_str();
        while let Some(at) = rest.find('{') {
            let Some(known) = PLACEHOLDERS.iter().find(|name| rest[at..].starts_with(**name)) else {
                let hint = "there are `{file}`, `{bs}`, `{count}` and `{size}`";
                return refuse(COMMAND.row(), format!("`{word}` holds a placeholder that is none"), hint);
            };
            rest = &rest[at + known.len()..];
        }
    }
    Ok(true)
}

/// The program with its arguments; the file's path is put in when it is known.
pub(crate) fn plan_command(values: &Values, sizes: &BlockSizes, file: &FilePlan) -> Result<CommandPlan, Refusal> {
    let words = values.get(COMMAND).unwrap_or(&[]);
    let block = sizes.max_bytes();
    let uses_count = words.iter().any(|word| word.contains("{count}"));
    if uses_count && !file.size_bytes.is_multiple_of(block) {
        let reason = format!(
            "{} is no whole number of blocks of {}, which `{{count}}` would be",
            write_bytes(file.size_bytes),
            write_bytes(block)
        );
        return Err(values.refuse(COMMAND, Rule::CommandImpossible { reason, hint: "choose a `size` that is" }));
    }
    let put = |word: &String| {
        let word = word.replace("{bs}", &block.to_string()).replace("{size}", &file.size_bytes.to_string());
        word.replace("{count}", &(file.size_bytes / block).to_string())
    };
    Ok(CommandPlan { arguments: words.iter().map(put).collect() })
}

/// The program that `exec` runs, if it may.
pub(crate) fn plan_exec(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
) -> Result<Option<ExecPlan>, Refusal> {
    if engine != EngineKind::Exec {
        decisions.note_unused(
            values,
            &[PROGRAM.row(), GRACE_TIME.row(), STD_REDIRECT.row()],
            "the engine is not `exec`",
        );
        return Ok(None);
    }
    let Some(words) = values.get(PROGRAM) else {
        let needs = "`program`: what it runs";
        let rule = Rule::Incomplete { option: values.quote(IOENGINE), needs, hint: "say it beside the engine" };
        return Err(values.refuse(PROGRAM, rule));
    };
    if !values.machine.programs.contains(&words[0]) {
        return Err(values.refuse(PROGRAM, Rule::ExecNotAllowed { program: words[0].clone() }));
    }
    Ok(Some(ExecPlan {
        arguments: words.to_vec(),
        grace_ns: values.get(GRACE_TIME).unwrap_or(0),
        output: values.get(STD_REDIRECT).then(|| values.job.clone()),
    }))
}
