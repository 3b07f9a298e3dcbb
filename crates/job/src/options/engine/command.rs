//! Jobs whose I/O another program does: the permitted programs, their files, and the options that still apply.
//!
//! A job file may come from a stranger, so it alone starts no program: the description of the machine must name the program,
//! and only a study adds names to it.

use crate::input::{Decisions, JobInput};
use crate::option::{OptionRow, Scope};
use crate::options::content::rows::{VERIFY, VerifyMethod};
use crate::options::engine::rows::{COMMAND, GRACE_TIME, IOENGINE, PROGRAM, STD_REDIRECT};
use crate::options::pattern::rows::RW;
use crate::options::target::rows::FILENAME;
use crate::refusal::{Case, Refusal, Rule};
use crate::value::write_bytes;
use crate::values::Values;
use trueio_model::{BlockSizes, Checksum, CommandPlan, EngineKind, ExecPlan, FilePlan, OpKind, OpMix};

/// The placeholders of a command.
const PLACEHOLDERS: &[&str] = &["{file}", "{bs}", "{count}", "{size}"];

/// Returns true if another program does the job's I/O; refuses programs that are not permitted.
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
        return refuse(RW.row(), "the reads of another program are not counted".into(), "set `rw = \"write\"`");
    }
    if let Some(option) = values.all_set().find(|row| !row.scope.contains(&Scope::WithCommand)) {
        let reason = format!("{} does not apply to another program", values.quote(option));
        return refuse(option, reason, "leave it out, and use the program's own arguments");
    }
    if !matches!(values.get(VERIFY), VerifyMethod::None | VerifyMethod::Checksum(Checksum::Pattern)) {
        let reason = format!("{}: another program writes no verification headers", values.quote(VERIFY));
        return refuse(
            VERIFY.row(),
            reason,
            "set `verify = \"pattern\"` and `verify_pattern` to what the program writes, or leave it out",
        );
    }
    if values.get(FILENAME).is_some_and(|paths| paths.len() > 1) {
        return refuse(FILENAME.row(), "a program gets one file".into(), "name one file");
    }
    if !words.iter().any(|word| word.contains("{file}")) {
        let hint = "write `{file}` for the path; `{bs}`, `{count}` and `{size}` are numbers";
        return refuse(COMMAND.row(), "it has no `{file}` for the file's path".into(), hint);
    }
    for word in words {
        let mut rest = word.as_str();
        while let Some(at) = rest.find('{') {
            let Some(known) = PLACEHOLDERS.iter().find(|name| rest[at..].starts_with(**name)) else {
                let hint = "the placeholders are `{file}`, `{bs}`, `{count}` and `{size}`";
                return refuse(COMMAND.row(), format!("`{word}` contains an unknown placeholder"), hint);
            };
            rest = &rest[at + known.len()..];
        }
    }
    Ok(true)
}

/// Plans the program with its arguments; `{file}` is replaced when the path is known.
pub(crate) fn plan_command(values: &Values, sizes: &BlockSizes, file: &FilePlan) -> Result<CommandPlan, Refusal> {
    let words = values.get(COMMAND).unwrap_or(&[]);
    let block = sizes.max_bytes();
    let uses_count = words.iter().any(|word| word.contains("{count}"));
    if uses_count && !file.size_bytes.is_multiple_of(block) {
        let reason = format!(
            "{} is not a whole number of blocks of {}, which `{{count}}` requires",
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

/// Plans the program that `exec` runs; refuses programs that are not permitted.
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
        let needs = "`program`: the program to run";
        let rule = Rule::Incomplete { option: values.quote(IOENGINE), needs, case: Case::ProgramMissing };
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
