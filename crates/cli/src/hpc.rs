//! `trueio ior` and `trueio mdtest`: the command lines of these programs, alone or on all ranks.

use crate::failure::Failure;
use crate::output::Outputs;
use crate::progress::Events;
use crate::request::accepting;
use crate::{flags, output, ranks, run};
use clap::{Arg, ArgMatches, Command};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use trueio_cluster::{Member, Place, for_rank, host_name};
use trueio_files::read_text;
use trueio_ior::{Lowered, ior::Ior, job_file, mdtest::Mdtest, warnings, written};
use trueio_job::{Content, Machine};
use trueio_model::{JobSpec, RunRecord};
use trueio_report::message;
use trueio_run::machine::{IDLE_BASELINE_NS, machine};
use trueio_run::planning::{PlanningError, may_run, planned_and_claimed};
use trueio_run::{Before, create_output};

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
IOR's options: -a POSIX, -b, -t, -s, -F, -u, -e, -E, -Y, -D, -C, -Z, -Q, -X, -k, -w, -r, -W, -R, -G, -z, -i, -m, -d, -o, -A, -N,
-O NAME=VALUE, --posix.odirect.
Options of trueio come before those of IOR; --explain may stand anywhere. docs/ior-mdtest.md has the differences.";

const HELP_MDTEST: &str = "\
mdtest's options: -a POSIX, -n, -I, -d, -F, -D, -C, -T, -E, -r, -u, -L, -z, -b, -i, -N, -w, -e, -R, -P, -Z, -W, -x, -X, -y, -Y,
-G, -p.
Options of trueio come before those of mdtest; --explain may stand anywhere. docs/ior-mdtest.md has the differences.";

/// Adds the arguments of `trueio ior` and `trueio mdtest`.
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

/// What a command line leaves besides its summary.
#[derive(Default)]
struct Around {
    /// The file that keeps how far the tasks came, as it was before the run.
    status: Option<(String, Before)>,
    /// The file that gets IOR's summary, as it was before the run.
    summary: Option<(String, Before)>,
    /// mdtest's directory, if it did not exist: it is removed with the names.
    made: Option<String>,
}

impl Around {
    fn of(line: &Line) -> Result<Self, Failure> {
        let mut around = Self::default();
        let (path, writes) = line.status();
        if let Some(path) = path.filter(|_| writes) {
            // A file that holds something else is no status file.
            read_status(line.program(), path)?;
            around.status = Some((path.to_owned(), Before::now(Path::new(path))));
        }
        if let Line::Ior(ior) = line
            && let Some(path) = &ior.summary_file
        {
            if ior.files_of_rank(0).contains(path) {
                return Err(Failure::refused(format!(
                    "`-O summaryFile={path}` and `-o` name the same file\n\nhint: name another file for the summary"
                )));
            }
            around.summary = Some((path.clone(), Before::now(Path::new(path))));
        }
        if let Line::Mdtest(mdtest) = line
            && mdtest.removes()
            && !Path::new(&mdtest.directory).exists()
        {
            around.made = Some(mdtest.directory.clone());
        }
        Ok(around)
    }

    /// Called when the run has ended, on rank 0: returns the text for stdout.
    fn conclude(&self, line: &Line, record: &RunRecord) -> String {
        if let (Some((path, before)), Some(count)) = (&self.status, line.reached(record)) {
            let written = create_output(path, Content::Printed, *before).and_then(|mut file| write!(file, "{count}"));
            if let Err(error) = written {
                message!("warning: the status file `{path}` was not written: {error}");
            }
        }
        if let Some(directory) = &self.made {
            // Only if it is empty.
            let _ = std::fs::remove_dir(directory);
        }
        let text = line.print(record);
        let Some((path, before)) = &self.summary else { return text };
        let written =
            create_output(path, Content::Printed, *before).and_then(|mut file| file.write_all(text.as_bytes()));
        match written {
            Ok(()) => format!("Writing output to {path}\n"),
            Err(error) => {
                message!("warning: the summary was not written to `{path}`: {error}");
                text
            }
        }
    }
}

/// Reads how far the tasks of an earlier command came; `None`: there is no such file.
fn read_status(program: Program, path: &str) -> Result<Option<u64>, Failure> {
    let option = if program == Program::Ior { "-O stoneWallingStatusFile=" } else { "-x " };
    if !Path::new(path).exists() {
        return Ok(None);
    }
    let text = read_text(Path::new(path), 64).map_err(|error| {
        Failure::refused(format!("`{option}{path}` cannot be read\n  cause: {}", trueio_model::error_line(&error)))
    })?;
    match text.trim().parse() {
        Ok(count) => Ok(Some(count)),
        Err(_) => Err(Failure::refused(format!(
            "`{option}{path}` holds no number, as a status file does\n\nhint: name another file, or remove it"
        ))),
    }
}

/// A command line that was read.
enum Line {
    Ior(Box<Ior>),
    Mdtest(Box<Mdtest>),
}

impl Line {
    fn program(&self) -> Program {
        match self {
            Line::Ior(_) => Program::Ior,
            Line::Mdtest(_) => Program::Mdtest,
        }
    }

    /// Returns the status file, and whether this command writes it.
    fn status(&self) -> (Option<&str>, bool) {
        match self {
            Line::Ior(ior) => (ior.status_file.as_deref(), ior.writes),
            Line::Mdtest(mdtest) => (mdtest.status_file.as_deref(), mdtest.creates()),
        }
    }

    /// Returns how far the task with the most came, if the command created something.
    fn reached(&self, record: &RunRecord) -> Option<u64> {
        match self {
            Line::Ior(ior) => ior.reached(record),
            Line::Mdtest(mdtest) => mdtest.reached(record),
        }
    }

    /// Returns the summary for stdout, after warnings for stderr.
    fn print(&self, record: &RunRecord) -> String {
        for warning in warnings(record) {
            message!("WARNING: {warning}");
        }
        match self {
            Line::Ior(ior) => ior.print(record, &host_name()),
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
        let around = Around::of(&line)?;
        show_notes(&lowered.notes);
        return alone((program, &words), (&line, &around), lowered.jobs, events, matches);
    };
    let mut around = Around::default();
    let (line, jobs) = match read.and_then(|read| run::refuse_of_one_rank(matches).map(|()| read)) {
        Ok((line, lowered)) => {
            if member.is_first() {
                show_notes(&lowered.notes);
            }
            let found = check_file(&line, member.rank());
            let found = found.and_then(|()| if member.is_first() { Around::of(&line) } else { Ok(Around::default()) });
            let found = found.map(|it| around = it);
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
    let print = |record: &RunRecord| line.as_ref().map_or_else(String::new, |line| around.conclude(line, record));
    ranks::run(member, program.name(), jobs, plan, matches, Some(&print))
}

/// Runs the jobs in this process alone.
fn alone(
    (program, words): (Program, &[String]),
    (line, around): (&Line, &Around),
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
    run::execute(program.name(), spec, planned, events, outputs, matches, Some(&|record| around.conclude(line, record)))
}

/// Reads the words of another program.
fn read(program: Program, words: &[String]) -> Result<(Line, Lowered), Failure> {
    let mut notes = Vec::new();
    match program {
        Program::Ior => {
            let mut ior = Ior::read(words, &mut notes).map_err(Failure::refused)?;
            if let Some(path) = ior.status_file.as_deref().filter(|_| !ior.writes) {
                ior.iterations = earlier(program, path, &mut notes)?.unwrap_or(ior.iterations);
            }
            let lowered = ior.lower(notes);
            Ok((Line::Ior(Box::new(ior)), lowered))
        }
        Program::Mdtest => {
            let mut mdtest = Mdtest::read(words, &mut notes).map_err(Failure::refused)?;
            if let Some(path) = mdtest.status_file.as_deref().filter(|_| !mdtest.creates()) {
                mdtest.reached_items = earlier(program, path, &mut notes)?;
            }
            let lowered = mdtest.lower(notes);
            Ok((Line::Mdtest(Box::new(mdtest)), lowered))
        }
    }
}

/// Reads how far the tasks of an earlier command came; without a status file, all is used, with a note.
fn earlier(program: Program, path: &str, notes: &mut Vec<String>) -> Result<Option<u64>, Failure> {
    let found = read_status(program, path)?;
    if found.is_none() {
        notes.push(format!("the status file `{path}` does not exist, so all that the other options name is used"));
    }
    Ok(found)
}

/// Refuses to read a file that does not exist, which a job would create and fill, and to write one that exists, in the words of IOR;
/// and to use names that no run of mdtest created.
fn check_file(line: &Line, rank: u32) -> Result<(), Failure> {
    let ior = match line {
        Line::Ior(ior) => ior,
        Line::Mdtest(mdtest) => {
            let missing = mdtest.needed_directories().into_iter().find(|directory| !Path::new(directory).exists());
            return missing.map_or(Ok(()), |directory| {
                Err(Failure::refused(format!(
                    "without `-C`, mdtest uses the names in `{directory}`, which does not exist\n\nhint: create them in the same \
                     run: add `-C`"
                )))
            });
        }
    };
    for path in ior.files_of_rank(rank) {
        check_path(ior, &path)?;
    }
    Ok(())
}

/// The same for one file of IOR.
fn check_path(ior: &Ior, path: &str) -> Result<(), Failure> {
    let exists = Path::new(path).exists();
    if Path::new(path).is_dir() {
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
