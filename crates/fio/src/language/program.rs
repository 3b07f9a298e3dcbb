//! The options of the program: what they set, and whether their values are correct.

use super::command_line::{PROGRAM, SHORT};
use super::problem::{Position, Problems};
use super::refusals::Refused;
use super::value::{KbBase, read_number, read_time_ns};
use super::{Action, Eta, IdleProf, OutputFormat, Settings};

/// The parts of the program whose details `--debug` prints.
pub(super) const DEBUGGED: &[&str] = &["all", "io", "random", "verify", "file", "parse", "job", "process"];

/// The parts of the program that `--debug` names in fio.
const DEBUG_PARTS: &[&str] = &[
    "process",
    "file",
    "io",
    "mem",
    "blktrace",
    "verify",
    "random",
    "parse",
    "diskutil",
    "job",
    "mutex",
    "profile",
    "time",
    "net",
    "rate",
    "compress",
    "steadystate",
    "helperthread",
    "zbd",
    "trim",
    "ramp_time",
    "all",
];

/// Returns what `--debug=help` prints.
pub fn debug_help() -> String {
    format!("fio: dumping debug options:{}\ndetails are printed of: {}\n", DEBUG_PARTS.join(","), DEBUGGED.join(", "))
}

/// What the options of the program have set so far.
pub(super) struct Program {
    pub(super) settings: Settings,
    pub(super) action: Action,
    pub(super) remarks: Vec<String>,
}

impl Program {
    /// Applies an option that [`PROGRAM`] lists.
    pub(super) fn apply(
        &mut self,
        name: &'static str,
        value: Option<&str>,
        position: Position,
        problems: &mut Problems,
    ) {
        let text = value.unwrap_or("");
        let settings = &mut self.settings;
        match name {
            "help" => self.action = Action::Help { is_short: text == SHORT },
            "version" => self.action = Action::Version,
            "cmdhelp" => self.action = Action::CommandHelp(value.map(str::to_owned)),
            "enghelp" => self.action = Action::EngineHelp(value.map(str::to_owned)),
            "inflate-log" => self.action = Action::InflateLog(text.to_owned()),
            "parse-only" => self.action = Action::ParseOnly,
            "showcmd" => self.action = Action::ShowCommand,
            "section" if text == "global" => {
                let kind = Refused::SectionGlobal;
                problems.add(kind, position, "`--section=global` is no job", kind.hint());
            }
            "section" => settings.sections.push(text.to_owned()),
            "readonly" => settings.is_readonly = true,
            "output" => settings.output = Some(text.to_owned()),
            "output-format" => self.formats(text, position, problems),
            "minimal" => settings.formats = vec![OutputFormat::Terse],
            "append-terse" => {
                if settings.formats.is_empty() {
                    settings.formats.push(OutputFormat::Normal);
                }
                settings.formats.push(OutputFormat::Terse);
                settings.formats.sort_unstable();
                settings.formats.dedup();
            }
            "terse-version" => match text.parse::<u32>() {
                Ok(version @ 2..=5) => settings.terse_version = Some(version),
                _ => {
                    let message = format!("`{text}` is not a version of the terse format: 2, 3, 4 or 5");
                    problems.add(Refused::Value, position, message, None)
                }
            },
            "status-interval" => {
                settings.status_interval_ns = time_from(name, text, 1_000_000, &position, problems);
            }
            "eta-newline" | "eta-interval" => {
                // fio's least intervals.
                let least_ns = if name == "eta-newline" { 1_000_000 } else { 250_000_000 };
                if time_from(name, text, least_ns, &position, problems).is_some() {
                    let remark = format!("`--{name}` has no effect: progress is one line, five times a second");
                    self.remarks.push(remark);
                }
            }
            "eta" => self.eta(text),
            "bandwidth-log" => settings.bandwidth_log = Some(value.unwrap_or("agg").to_owned()),
            "trigger-file" => settings.trigger.file = Some(text.to_owned()),
            "trigger-timeout" => settings.trigger.after_ns = time(name, text, &position, problems),
            "trigger" => settings.trigger.command = Some(text.to_owned()),
            "trigger-remote" => {
                self.remarks.push("`--trigger-remote` has no effect: a server runs no command of a client".to_owned());
            }
            "aux-path" => settings.aux_path = Some(text.to_owned()),
            "warnings-fatal" => settings.are_warnings_fatal = true,
            "allow-exec" => settings.allows_exec = true,
            "debug" => self.debug(text, position, problems),
            "idle-prof" => match text {
                "system" => settings.idle_prof = Some(IdleProf::System),
                "percpu" => settings.idle_prof = Some(IdleProf::EachProcessor),
                "calibrate" => self.action = Action::CalibrateIdleness,
                _ => {
                    let message = format!("`{text}` is not one of system, percpu, calibrate");
                    problems.add(Refused::Value, position, message, None);
                }
            },
            "max-jobs" | "alloc-size" => {
                if let Err(bad) = read_number(text, KbBase::Binary) {
                    problems.add(Refused::Value, position, format!("`--{name}`: {}", bad.message), None);
                }
            }
            _ => {
                let about = PROGRAM.iter().find(|(known, ..)| *known == name).map_or("", |(.., about)| about);
                let instead = about.strip_prefix("refused: ").unwrap_or(about);
                let message = format!("`--{name}` is not done here");
                problems.add(Refused::ProgramOption, position, message, Some(format!("instead: {instead}")));
            }
        }
    }

    /// Sets the formats of `--output-format`.
    fn formats(&mut self, text: &str, position: Position, problems: &mut Problems) {
        let formats = &mut self.settings.formats;
        formats.clear();
        for format in text.split(',').map(str::trim) {
            formats.push(match format {
                "normal" => OutputFormat::Normal,
                "terse" | "minimal" | "csv" => OutputFormat::Terse,
                "json" => OutputFormat::Json,
                "json+" => OutputFormat::JsonPlus,
                "jsonl" => OutputFormat::JsonLines,
                _ => {
                    let hint = Some("it takes normal, terse, json, json+".to_owned());
                    let message = format!("`{format}` is not a format of results");
                    return problems.add(Refused::Value, position, message, hint);
                }
            });
        }
        formats.sort_unstable();
        formats.dedup();
    }

    /// Sets when progress is shown.
    fn eta(&mut self, text: &str) {
        self.settings.eta = match text {
            "auto" => Eta::Auto,
            "always" => {
                self.remarks.push("`--eta=always` shows progress on a terminal only".to_owned());
                Eta::Always
            }
            "never" => Eta::Never,
            _ => {
                self.remarks.push(format!("`--eta={text}` has no effect, as in fio: it takes auto, always, never"));
                return;
            }
        };
    }

    /// Sets the parts of `--debug`.
    fn debug(&mut self, text: &str, position: Position, problems: &mut Problems) {
        if text == "help" {
            self.action = Action::DebugHelp;
            return;
        }
        for part in text.split(',').map(str::trim) {
            let (part, number) = part.split_once(':').map_or((part, None), |(part, number)| (part, Some(number)));
            if let ("job", Some(number)) = (part, number) {
                let Ok(number) = number.parse::<usize>() else {
                    let message = format!("`{number}` is not the number of a job, counted from 0");
                    return problems.add(Refused::Value, position, message, None);
                };
                self.settings.debug_job = Some(number);
                continue;
            }
            if !DEBUG_PARTS.contains(&part) {
                let known = DEBUG_PARTS.join(", ");
                self.remarks.push(format!("`--debug={part}` has no effect, as in fio: it takes {known}"));
                continue;
            }
            self.settings.debug.push(part.to_owned());
        }
    }
}

/// Reads a duration; `None`: it is zero, or a problem was added.
fn time(name: &str, text: &str, position: &Position, problems: &mut Problems) -> Option<u64> {
    match read_time_ns(text, 1_000_000_000) {
        Ok(ns) => Some(ns).filter(|ns| *ns > 0),
        Err(bad) => {
            problems.add(Refused::Value, position.clone(), format!("`--{name}`: {}", bad.message), None);
            None
        }
    }
}

/// Reads a duration of at least `least_ns`; `None`: a problem was added.
fn time_from(name: &str, text: &str, least_ns: u64, position: &Position, problems: &mut Problems) -> Option<u64> {
    match read_time_ns(text, 1_000_000_000) {
        Ok(ns) if ns >= least_ns => return Some(ns),
        Ok(_) => {
            let least = least_ns / 1_000_000;
            let message = format!("`--{name}={text}` is too short: {least} ms is the least");
            problems.add(Refused::Value, position.clone(), message, None);
        }
        Err(bad) => problems.add(Refused::Value, position.clone(), format!("`--{name}`: {}", bad.message), None),
    }
    None
}
