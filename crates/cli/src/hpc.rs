//! `trueio ior` and `trueio mdtest`: the command lines of these programs, alone or on all ranks.

use crate::failure::Failure;
use crate::output::Outputs;
use crate::progress::Events;
use crate::request::accepting;
use crate::{flags, output, ranks, run};
use clap::{Arg, ArgMatches, Command};
use std::path::Path;
use std::process::ExitCode;
use trueio_cluster::{Member, Place, for_rank, host_name};
use trueio_ior::{Lowered, ior::Ior, job_file, mdtest::Mdtest, written};
use trueio_job::Machine;
use trueio_model::{JobSpec, RunRecord};
use trueio_report::message;
use trueio_run::machine::{IDLE_BASELINE_NS, machine};
use trueio_run::planning::{PlanningError, may_run, planned_and_claimed};

/// One-line description of `trueio ior`.
pub(crate) const ABOUT_IOR: &str = "IOR's command line, alone or under mpirun or srun, with IOR's summary";
/// One-line description of `trueio mdtest`.
pub(crate) const ABOUT_MDTEST: &str = "mdtest's command line, alone or under mpirun or srun, with mdtest's summary";

/// The program whose command line it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Ior,
    Mdtest,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Ior => "ior",
            Program::Mdtest => "mdtest",
        }
    }

    /// Returns a refusal with the options of the program.
    fn refused(self, error: PlanningError, words: &[String]) -> Failure {
        let language = if self == Program::Ior { &written::IOR } else { &written::MDTEST };
        Failure::refused(error.into_text_in(&language.of(words)))
    }
}

const HELP_IOR: &str = "\
IOR's options: -a POSIX, -b, -t, -s, -F, -e, -E, -Y, -D, -C, -Q, -k, -w, -r, -z, -i, -o, -A, -O NAME=VALUE, --posix.odirect.
Options of trueio come before those of IOR; --explain may stand anywhere. docs/ior-mdtest.md has the differences.";

const HELP_MDTEST: &str = "\
mdtest's options: -a POSIX, -n, -I, -d, -F, -D, -C, -T, -E, -r, -u, -L, -z, -b, -i, -N, -w, -e, -R, -P, -Z.
Options of trueio come before those of mdtest; --explain may stand anywhere. docs/ior-mdtest.md has the differences.";

/// The command line.
pub(crate) fn arguments(program: Program, command: Command) -> Command {
    flags::run_outputs(command)
        .arg(flags::switch("explain", "Print the jobs as TOML, for `trueio run`, and run nothing"))
        .arg(
            Arg::new("arguments")
                .value_name("ARGS")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .help("Options of the other program"),
        )
        .after_help(match program {
            Program::Ior => HELP_IOR,
            Program::Mdtest => HELP_MDTEST,
        })
}

/// A command line that was read.
enum Line {
    Ior(Box<Ior>),
    Mdtest(Box<Mdtest>),
}

impl Line {
    fn print(&self, record: &RunRecord) -> String {
        match self {
            Line::Ior(ior) => ior.print(record),
            Line::Mdtest(mdtest) => mdtest.print(record),
        }
    }
}

/// Runs the command line of another program.
pub(crate) fn command(program: Program, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut words: Vec<String> = matches.get_many::<String>("arguments").into_iter().flatten().cloned().collect();
    let count = words.len();
    words.retain(|word| word != "--explain");
    let explains = matches.get_flag("explain") || words.len() < count;
    let read = read(program, &words);
    let is_dry = matches!(&read, Ok((Line::Ior(ior), _)) if ior.is_dry);
    if explains || is_dry {
        let (_, lowered) = read?;
        show_notes(&lowered.notes);
        output::print_all(&job_file(&lowered.jobs))?;
        return Ok(ExitCode::SUCCESS);
    }
    let events = Events::of(matches)?;
    let Some(member) = ranks::join()? else {
        let (line, lowered) = read?;
        check_file(&line, 0)?;
        show_notes(&lowered.notes);
        return alone((program, &words), &line, lowered.jobs, events, matches);
    };
    let (line, jobs) = match read.and_then(|read| run::refuse_of_one_rank(matches).map(|()| read)) {
        Ok((line, lowered)) => {
            if member.is_first() {
                show_notes(&lowered.notes);
            }
            let found = check_file(&line, member.rank());
            (Some(line), found.map(|()| (lowered.jobs, ())))
        }
        Err(failure) => (None, Err(failure)),
    };
    let idle_ns = if matches.get_flag("no-evidence") { 0 } else { IDLE_BASELINE_NS };
    let plan = |member: &Member, mut spec: Vec<JobSpec>, (): ()| {
        for_rank(&mut spec, &member.place());
        let rank = Some(member.rank());
        let machine = Machine { command_files: ranks::command_files(rank, matches, &[]), rank, ..machine(idle_ns) };
        let claimed = planned_and_claimed(&spec, &machine, may_run).map_err(|e| program.refused(e, &words))?;
        let planned = accepting(claimed, program.name(), rank, matches)?;
        let outputs = ranks::outputs(member, matches, std::iter::empty::<&Path>())?;
        let has_evidence = !matches.get_flag("no-evidence");
        Ok(ranks::Planned { spec, planned, outputs, has_evidence, follow: ranks::Follow::of(member, matches)? })
    };
    let print = |record: &RunRecord| line.as_ref().map_or_else(String::new, |line| line.print(record));
    ranks::run(member, program.name(), jobs, plan, matches, Some(&print))
}

/// Runs the jobs in this process alone.
fn alone(
    (program, words): (Program, &[String]),
    line: &Line,
    mut spec: Vec<JobSpec>,
    events: Option<Events>,
    matches: &ArgMatches,
) -> Result<ExitCode, Failure> {
    for_rank(&mut spec, &Place::alone(host_name()));
    output::check(matches, std::iter::empty())?;
    let idle_ns = if matches.get_flag("no-evidence") { 0 } else { IDLE_BASELINE_NS };
    let machine = Machine { command_files: output::command_files(matches, &[]), ..machine(idle_ns) };
    let planned = planned_and_claimed(&spec, &machine, may_run).map_err(|e| program.refused(e, words))?;
    let outputs = Outputs::reserve(matches, std::iter::empty())?;
    run::execute(program.name(), spec, planned, events, outputs, matches, Some(&|record| line.print(record)))
}

/// Reads the words of another program.
fn read(program: Program, words: &[String]) -> Result<(Line, Lowered), Failure> {
    let mut notes = Vec::new();
    match program {
        Program::Ior => {
            let ior = Ior::read(words, &mut notes).map_err(Failure::refused)?;
            let lowered = ior.lower(notes);
            Ok((Line::Ior(Box::new(ior)), lowered))
        }
        Program::Mdtest => {
            let mdtest = Mdtest::read(words, &mut notes).map_err(Failure::refused)?;
            let lowered = mdtest.lower(notes);
            Ok((Line::Mdtest(Box::new(mdtest)), lowered))
        }
    }
}

/// Refuses to read a file that does not exist, which a job would create and fill, and to write one that exists, in the words of IOR;
/// and to use names that no run of mdtest created.
fn check_file(line: &Line, rank: u32) -> Result<(), Failure> {
    let ior = match line {
        Line::Ior(ior) => ior,
        Line::Mdtest(mdtest) => {
            let missing = mdtest.needed_directory().filter(|directory| !Path::new(directory).exists());
            return missing.map_or(Ok(()), |directory| {
                Err(Failure::refused(format!(
                    "without `-C`, mdtest uses the names in `{directory}`, which does not exist\n\nhint: create them in the same \
                     run: add `-C`"
                )))
            });
        }
    };
    let path = ior.file_of_rank(rank);
    let exists = Path::new(&path).exists();
    if Path::new(&path).is_dir() {
        return Err(Failure::refused(format!(
            "`{path}` is a directory\n\nhint: name a file in it: `-o {}/FILE`",
            path.trim_end_matches('/')
        )));
    }
    if !ior.writes && !exists {
        return Err(Failure::refused(format!(
            "`-r` without `-w` reads `{path}`, which does not exist\n\nhint: write it first and keep it: `trueio ior -w -k …`"
        )));
    }
    if ior.writes && !ior.uses_existing && exists {
        return Err(Failure::refused(format!(
            "`{path}` exists, and `-w` would overwrite it\n\nhint: its content would be lost; if that is intended, add `-E`; otherwise \
             name another file with `-o`"
        )));
    }
    Ok(())
}

fn show_notes(notes: &[String]) {
    for note in notes {
        message!("note: {note}");
    }
}
