//! fio's command line: options, their values, and job files.
//!
//! The conventions are those of `getopt_long_only`: one dash or two, a value after `=` or as the next argument, any unique
//! prefix of a name, options after job files. Flags take a value only after `=`; so do `--cmdhelp` and `--enghelp`. `--` ends
//! the options. fio's options of one letter (`-o FILE`) are accepted.
//!
//! Difference from fio: an option whose value would be the next option (`--write_bw_log
//! --write_lat_log`) is refused, where fio takes the option's name as the value.
//!
//! Source: fio 3.42's `--help` and HOWTO, "Command line options"; getopt_long_only(3).

use super::engines;
use super::options::{FioOption, Kind, find, options};
use super::problem::{Position, Problems};
use super::refusals::Refused;
use std::rc::Rc;

/// Maximum number of arguments of a command line.
const WORDS_MAX: usize = 100_000;

/// Whether an option of the program takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// None.
    Nothing,
    /// One.
    Value,
    /// One after `=`, or none.
    Optional,
}

/// Options of the program, which are no job's: name, whether they take a value, what they do.
pub(super) const PROGRAM: &[(&str, Takes, &str)] = &[
    ("help", Takes::Nothing, "print this page"),
    ("version", Takes::Nothing, "print the version of fio whose behaviour this is"),
    ("cmdhelp", Takes::Optional, "print an option of jobs; without a name or with `all`: each"),
    ("enghelp", Takes::Optional, "print the engines, or the options of one"),
    ("parse-only", Takes::Nothing, "read the jobs and end"),
    ("showcmd", Takes::Nothing, "print the jobs as a command line and end"),
    ("section", Takes::Value, "run this section of the job files only; may be repeated"),
    ("profile", Takes::Value, "refused: write the profile's jobs as a job file"),
    ("readonly", Takes::Nothing, "refuse jobs that write, trim or need a file to be made"),
    ("output", Takes::Value, "write the results to this file"),
    ("output-format", Takes::Value, "normal, terse, json, json+, or several with commas between them"),
    ("minimal", Takes::Nothing, "print terse results"),
    ("append-terse", Takes::Nothing, "print terse results, too"),
    ("terse-version", Takes::Value, "2, 3, 4 or 5"),
    ("status-interval", Takes::Value, "print results at this interval while running"),
    ("eta", Takes::Value, "never, always or auto"),
    ("eta-newline", Takes::Value, "accepted; progress is one line"),
    ("eta-interval", Takes::Value, "accepted; progress is updated five times a second"),
    (
        "bandwidth-log",
        Takes::Optional,
        "log the bandwidth of all jobs together, in NAME-read_bw.log, NAME-write_bw.log and NAME-trim_bw.log; default: agg",
    ),
    (
        "debug",
        Takes::Value,
        "io, random, verify, file: print each I/O; parse: what was read; job, process: and its origin, to stderr; job:N: of one; help",
    ),
    ("warnings-fatal", Takes::Nothing, "refuse a job with a warning or note"),
    ("max-jobs", Takes::Value, "accepted; no memory is reserved for jobs"),
    ("alloc-size", Takes::Value, "accepted; memory is allocated as it is needed"),
    (
        "aux-path",
        Takes::Value,
        "the directory of verify states and of the files of verify_dump; logs are written to the current one",
    ),
    ("allow-exec", Takes::Nothing, "let jobs run commands (exec_prerun, exec_postrun)"),
    ("client", Takes::Value, "let this server run the job files after it: HOST[,PORT], sock:PATH, a file of hosts"),
    ("server", Takes::Optional, "run the jobs of clients: [HOST][,PORT], sock:PATH; default: 127.0.0.1,8765"),
    ("daemonize", Takes::Value, "with `--server`: go into the background, and write the process number to this file"),
    (
        "token",
        Takes::Value,
        "the file with a server's token, which its clients over TCP must have; on 127.0.0.1 the server creates one",
    ),
    (
        "allow-write",
        Takes::Value,
        "with `--server`: clients' jobs may write this file or device, or below this directory",
    ),
    (
        "allow-read",
        Takes::Value,
        "with `--server`: clients' jobs may read this file or device, or below this directory",
    ),
    ("allow-user", Takes::Value, "with `--server=sock:PATH`: processes of this user (a number), too, may be clients"),
    (
        "allow-contents",
        Takes::Nothing,
        "with `--server`: send clients what a failed verification found, and let their jobs use opendir",
    ),
    (
        "allow-priority",
        Takes::Nothing,
        "with `--server`: clients' jobs may have real-time priority of I/O and a negative nice value",
    ),
    ("no-sandbox", Takes::Nothing, "with `--server`: check only the names of files, where the kernel has no Landlock"),
    ("remote-config", Takes::Value, "a job file on the server named before"),
    ("idle-prof", Takes::Value, "report how idle the processors were: system, percpu (each), or only calibrate"),
    ("inflate-log", Takes::Value, "print the lines of a log that was stored compressed (log_store_compressed)"),
    ("crctest", Takes::Optional, "refused: run a job with `verify` and read its CPU time per I/O"),
    ("cpuclock-test", Takes::Nothing, "refused: each run compares its clock (check `clock_and_cpu`)"),
    ("memcpytest", Takes::Optional, "refused: `trueio doctor` measures the tool"),
    ("trigger-file", Takes::Value, "end the run when this file exists, and remove the file"),
    ("trigger-timeout", Takes::Value, "end the run after this time"),
    ("trigger", Takes::Value, "a command to run when one of them has ended the run, and verify states are saved"),
    ("trigger-remote", Takes::Value, "accepted; a server runs no command of a client"),
    ("merge-blktrace-only", Takes::Nothing, "refused: traces are not merged"),
];

/// The value of `help` for `-h`.
pub(super) const SHORT: &str = "short";

/// fio's options of one letter, which its help does not list: a value is the next argument.
const LETTERS: &[(&str, &str)] = &[
    ("-a", "alloc-size"),
    ("-A", "merge-blktrace-only"),
    ("-b", "bandwidth-log"),
    ("-B", "trigger-timeout"),
    ("-c", "cmdhelp"),
    ("-C", "client"),
    ("-d", "debug"),
    ("-D", "daemonize"),
    ("-e", "eta"),
    ("-E", "eta-newline"),
    ("-f", "append-terse"),
    ("-F", "output-format"),
    ("-G", "crctest"),
    ("-h", "help"),
    ("-H", "trigger"),
    ("-i", "enghelp"),
    ("-I", "idle-prof"),
    ("-j", "max-jobs"),
    ("-J", "trigger-remote"),
    ("-K", "aux-path"),
    ("-L", "status-interval"),
    ("-m", "minimal"),
    ("-M", "memcpytest"),
    ("-o", "output"),
    ("-O", "eta-interval"),
    ("-p", "profile"),
    ("-P", "parse-only"),
    ("-r", "readonly"),
    ("-R", "remote-config"),
    ("-s", "showcmd"),
    ("-S", "server"),
    ("-T", "cpuclock-test"),
    ("-v", "version"),
    ("-V", "terse-version"),
    ("-w", "warnings-fatal"),
    ("-W", "trigger-file"),
    ("-x", "section"),
    ("-X", "inflate-log"),
];

/// A word of the command line, understood.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// An option of a job.
    Job { option: FioOption, value: Option<String>, position: Rc<Position>, value_column: Option<usize> },
    /// An option of the program.
    Program { name: &'static str, value: Option<String>, position: Position },
    /// A job file.
    File(String, Position),
}

enum Found {
    Job(FioOption),
    Program(&'static str, Takes),
}

/// What a name may mean: exactly, or as a beginning that only one option has.
fn resolve(name: &str) -> Result<Found, Vec<&'static str>> {
    if let Some((program, takes, _)) = PROGRAM.iter().find(|(known, ..)| *known == name) {
        return Ok(Found::Program(program, *takes));
    }
    if let Some(option) = find(name) {
        return Ok(Found::Job(option));
    }
    let mut matches: Vec<(&'static str, &'static str)> = Vec::new();
    let mut add = |known: &'static str, first: &'static str| {
        if known.starts_with(name) && !matches.iter().any(|(_, other)| *other == first) {
            matches.push((known, first));
        }
    };
    for (program, ..) in PROGRAM {
        add(program, program);
    }
    for option in options() {
        std::iter::once(option.name()).chain(option.aliases()).for_each(|known| add(known, option.name()));
    }
    matches.sort_unstable();
    match matches[..] {
        [(_, first)] => match PROGRAM.iter().find(|(known, ..)| *known == first) {
            Some((program, takes, _)) => Ok(Found::Program(program, *takes)),
            None => find(first).map(Found::Job).ok_or_else(Vec::new),
        },
        _ => Err(matches.into_iter().map(|(known, _)| known).collect()),
    }
}

/// Returns the kind of the refusal of a name that is not an option, written with `dashes`, its message and a hint.
pub(super) fn unknown(name: &str, dashes: &str) -> (Refused, String, Option<String>) {
    let plain = name.to_ascii_lowercase().replace('-', "_");
    if let Some((reason, instead)) = engines::why_option_missing(&plain) {
        let message = format!("`{dashes}{name}` {reason}");
        return (Refused::OptionOfEngine, message, Some(format!("instead: {instead}")));
    }
    let message = format!("`{dashes}{name}` is not an option");
    (Refused::UnknownOption, message, suggestion(name, !dashes.is_empty()))
}

fn suggestion(name: &str, with_program: bool) -> Option<String> {
    nearest(name, with_program).map(|best| format!("did you mean `{best}`?"))
}

/// Returns the option with the nearest name.
pub(super) fn nearest(name: &str, with_program: bool) -> Option<&'static str> {
    if name.len() > 100 {
        return None;
    }
    let plain = name.to_ascii_lowercase().replace('-', "_");
    let program = PROGRAM.iter().filter(|_| with_program).map(|(known, ..)| *known);
    let of_jobs = options().flat_map(|option| std::iter::once(option.name()).chain(option.aliases()));
    let (distance, best) =
        program.chain(of_jobs).map(|known| (strsim::osa_distance(&plain, &known.replace('-', "_")), known)).min()?;
    // As in fio: at most half of the letters may differ; and a name of one letter may mean anything.
    (distance <= plain.chars().count() / 2 && distance <= 4 && plain.chars().count() > 1).then_some(best)
}

/// Reads a command line without the program's own name.
pub(super) fn read(arguments: &[String], problems: &mut Problems) -> Vec<Item> {
    let mut items = Vec::new();
    if arguments.len() > WORDS_MAX {
        let position = Position::of_argument(1, "", 0..0);
        problems.add(Refused::TooMuch, position, format!("the command line has more than {WORDS_MAX} words"), None);
        return items;
    }
    let mut index = 0;
    let mut only_files = false;
    while index < arguments.len() && !problems.is_full() {
        let word = arguments[index].as_str();
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        index += 1;
        if let Some(control) = word.find(char::is_control) {
            let width = word[control..].chars().next().map_or(1, char::len_utf8);
            let position = Position::of_argument(number, word, control..control + width);
            problems.add(Refused::Control, position, "an argument contains a control character", None);
            continue;
        }
        if only_files || word == "-" || !word.starts_with('-') {
            items.push(Item::File(word.to_owned(), Position::of_argument(number, word, 0..word.len())));
            continue;
        }
        if word == "--" {
            only_files = true;
            continue;
        }
        let dashes = if word.starts_with("--") { 2 } else { 1 };
        let (name, value) = match word[dashes..].split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (&word[dashes..], None),
        };
        let position = Position::of_argument(number, word, 0..dashes + name.len());
        let name = LETTERS.iter().find(|(letter, _)| *letter == word).map_or(name, |(_, name)| name);
        let found = match resolve(name) {
            Ok(found) => found,
            Err(candidates) if candidates.is_empty() => {
                let (kind, message, hint) = unknown(name, "--");
                let hint = hint.or_else(|| Some("`--cmdhelp` lists every option".to_owned()));
                problems.add(kind, position, message, hint);
                // A value in the next argument would be read as a job file.
                if value.is_none() && arguments.get(index).is_some_and(|next| !next.starts_with('-')) {
                    index += 1;
                }
                continue;
            }
            Err(candidates) => {
                let shown: Vec<String> = candidates.iter().take(6).map(|known| format!("`--{known}`")).collect();
                let more = if candidates.len() > 6 { " …" } else { "" };
                let message = format!("`--{name}` may mean {}{more}", shown.join(", "));
                problems.add(Refused::UnknownOption, position, message, None);
                continue;
            }
        };
        let takes = match &found {
            Found::Program(_, takes) => *takes,
            Found::Job(option) if option.kind() == Kind::Flag => Takes::Optional,
            Found::Job(_) => Takes::Value,
        };
        let (value, value_column) = match (takes, value) {
            (Takes::Nothing, Some(_)) => {
                problems.add(Refused::ValueMissing, position, format!("`--{name}` takes no value"), None);
                continue;
            }
            // Both are the help; of the letter only what most people need.
            (Takes::Nothing, None) if word == "-h" => (Some(SHORT.to_owned()), None),
            (Takes::Nothing | Takes::Optional, None) => (None, None),
            (_, Some(value)) => (Some(value.to_owned()), Some(word[..word.len() - value.len()].chars().count() + 1)),
            (Takes::Value, None) => match arguments.get(index) {
                None => {
                    problems.add(Refused::ValueMissing, position, format!("`--{name}` needs a value"), None);
                    continue;
                }
                Some(next) if next.len() > 2 && next.starts_with("--") => {
                    let hint = Some(format!("write `--{name}=VALUE`"));
                    let message = format!("`--{name}` needs a value, and `{next}` is the next option");
                    problems.add(Refused::ValueMissing, position, message, hint);
                    continue;
                }
                Some(next) => {
                    index += 1;
                    (Some(next.clone()), None)
                }
            },
        };
        items.push(match found {
            Found::Program(name, _) => Item::Program { name, value, position },
            Found::Job(option) => Item::Job { option, value, position: Rc::new(position), value_column },
        });
    }
    items
}
