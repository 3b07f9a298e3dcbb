//! `--help`, `--cmdhelp`, `--enghelp`, `--showcmd`: what scripts ask fio about itself.

use super::command_line::{PROGRAM, Takes};
use super::options::{Fate, FioOption, OPTIONS, find};
use super::{FIO_VERSION, command_line, engines};
use std::fmt::Write as _;
use trueio_job::table::{TABLE, row};
use trueio_model::JobSpec;

/// `--help`.
pub fn program_help() -> String {
    let mut out = format!(
        "{FIO_VERSION} as trueio speaks it: fio [options] [job options] JOBFILE...\n\n\
         Options of jobs stand on the command line, too: `--name=JOB` begins a job, options before it hold for\n\
         all jobs. `--cmdhelp` lists them. Formats of results: normal, terse, json, json+.\n\n"
    );
    for (name, takes, about) in PROGRAM {
        let name = match takes {
            Takes::Nothing => format!("--{name}"),
            Takes::Value => format!("--{name}=VALUE"),
            Takes::Optional => format!("--{name}[=VALUE]"),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  {name:<26}{about}");
    }
    out
}

/// What becomes of an option, in a sentence.
pub(super) fn fate_sentence(option: &FioOption) -> String {
    match option.fate() {
        Fate::Row => option.row().map_or_else(String::new, |row| row.summary.to_owned()),
        Fate::Reader(sentence) => sentence.to_owned(),
        Fate::Output(sentence) => format!("for fio's outputs: {sentence}"),
        Fate::NoEffect(reason) => format!("no effect: {reason}"),
        Fate::Only { values, reason, instead } => {
            format!("only `{}`: {reason}; instead: {instead}", values.join("`, `"))
        }
        Fate::Refused { reason, instead } => format!("refused: {reason}; instead: {instead}"),
    }
}

/// `--cmdhelp`: every option, or all about one; of a name that is none, as in fio, about the one that is nearest.
/// `None`: there is no such option, and none is near.
pub fn command_help(name: Option<&str>) -> Option<String> {
    let mut out = String::new();
    let Some(name) = name.filter(|name| *name != "all") else {
        for option in OPTIONS {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{:<28}: {}", option.name, fate_sentence(option));
        }
        for row in TABLE.iter().filter(|row| !row.is_in_fio) {
            let _ = writeln!(out, "{:<28}: {}", row.name, row.summary);
        }
        return Some(out);
    };
    let Some(option) = find(name) else {
        let Some(row) = row(name).filter(|row| !row.is_in_fio) else {
            let near = command_line::nearest(name, false)?;
            return Some(format!("No such option: {name} - showing closest match\n{}", command_help(Some(near))?));
        };
        let _ = writeln!(out, "{:>20}: {}", row.name, row.summary);
        let _ = writeln!(out, "{:>20}: {}", "type", row.kind.takes());
        let _ = writeln!(out, "{:>20}: {}", "default", row.default_text());
        return Some(out);
    };
    let _ = writeln!(out, "{:>20}: {}", option.name, fate_sentence(option));
    if !option.aliases.is_empty() {
        let _ = writeln!(out, "{:>20}: {}", "alias", option.aliases.join(", "));
    }
    let _ = writeln!(out, "{:>20}: {}", "type", option.kind.name());
    let _ = writeln!(out, "{:>20}: {}", "default", if option.default.is_empty() { "none" } else { option.default });
    if option.name == "ioengine" {
        let names: Vec<&str> = engines::here().iter().map(|engine| engine.name).collect();
        let _ = writeln!(out, "{:>20}: {}", "valid values", names.join(" "));
    } else if let Some(row) = option.row().filter(|row| !row.choices().is_empty()) {
        let names: Vec<&str> =
            row.choices().iter().flat_map(|c| std::iter::once(&c.name).chain(c.aliases)).copied().collect();
        let _ = writeln!(out, "{:>20}: {}", "valid values", names.join(" "));
    } else if !option.words.is_empty() {
        let _ = writeln!(out, "{:>20}: {}", "valid values", option.words);
    }
    Some(out)
}

/// `--enghelp`: the engines, one a line, or what one is. `None`: there is no such engine here.
pub fn engine_help(name: Option<&str>) -> Option<String> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        let mut names: Vec<&str> = engines::here()
            .iter()
            .flat_map(|engine| std::iter::once(&engine.name).chain(engine.aliases))
            .copied()
            .collect();
        names.sort_unstable();
        let lines: String = names.iter().map(|name| format!("\t{name}\n")).collect();
        return Some(format!("Available IO engines:\n{lines}"));
    };
    // `--enghelp=libaio,nowait` asks about an option of it.
    let (engine, option) = match name.split_once(',') {
        Some((engine, option)) => (engine, Some(option)),
        None => (name, None),
    };
    let ours = engines::ours(engine)?;
    let sentence = engines::here().iter().find(|choice| choice.name == ours).map_or("", |choice| choice.sentence);
    let own: &[&str] = match ours {
        "io_uring" => &[
            "hipri",
            "fixedbufs",
            "registerfiles",
            "sqthread_poll",
            "sqthread_poll_cpu",
            "force_async",
            "nonvectored",
            "uncached",
            "nowait",
            "atomic",
        ],
        "exec" => &["program", "arguments", "grace_time", "std_redirect"],
        "cpuio" => &["cpuload", "cpuchunks", "cpumode", "exit_on_io_done"],
        "pvsync2" => &["hipri", "hipri_percentage", "uncached", "nowait", "atomic"],
        "libaio" => &["userspace_reap", "uncached", "nowait", "atomic"],
        "mmap" => &["thp"],
        "filestat" | "dirstat" => &["stat_type"],
        _ => &[],
    };
    let of_priority: &[&str] = match ours {
        "io_uring" | "libaio" => &["cmdprio_percentage", "cmdprio_class", "cmdprio", "cmdprio_hint", "cmdprio_bssplit"],
        _ => &[],
    };
    let own = [own, of_priority].concat();
    if let Some(option) = option {
        let own = own.iter().find(|own| find(option).is_some_and(|option| option.name == **own))?;
        return command_help(Some(own));
    }
    let mut out = format!("{engine}: {sentence}\n");
    for name in own {
        if let Some(option) = find(name) {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{name:<24}: {}", fate_sentence(option));
        }
    }
    Some(out)
}

/// `--showcmd`: the jobs as one command line, each with everything that holds for it.
pub fn show_command(jobs: &[JobSpec]) -> String {
    let mut out = String::from("fio");
    for fio in jobs.iter().filter_map(|job| job.fio.as_ref()).filter(|fio| fio.clone == 0) {
        out.push_str(&format!(" {}", quoted(&format!("--name={}", fio.name))));
        for word in fio.given.iter().filter(|word| word.name != "name") {
            let text = match (word.text.as_str(), command_line::asked(&word.name)) {
                ("", Some(asked)) if asked.may_stand_alone() && !word.name.starts_with("write_") => {
                    format!("--{}", word.name)
                }
                (text, _) => format!("--{}={text}", word.name),
            };
            out.push_str(&format!(" {}", quoted(&text)));
        }
    }
    out.push('\n');
    out
}

/// A word that a shell reads as it is.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
