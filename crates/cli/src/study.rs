//! `trueio study`: published experiments, your figures next to the published ones.
//!
//! Exit codes: 0 the study ran, whatever its results, or the key `q` of `--live` ended it; 1 a row failed unexpectedly, or it was interrupted; 2
//! the request was refused. A figure that the evidence contradicts is a result here, not a failure.

use crate::failure::Failure;
use crate::live::{INTERIM, Live};
use crate::output::Outputs;
use crate::usb::Transports;
use crate::{flags, output, progress};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trueio_engine::Availability;
use trueio_job::{FactsSource, Machine};
use trueio_model::{DirectSupport, JobSpec, Outcome, Plan, StudyRecord, TargetKind, error_chain};
use trueio_report::message;
use trueio_run::machine::{MachineFacts, entropy, machine};
use trueio_run::planning::{may_run, planned};
use trueio_run::{BY_KEY, Event, Observer, watch_signals};
use trueio_study::{
    Brought, EMBEDDED, Head, JOURNAL_FORMAT, Journal, MODEST_DISK, Order, Refused, Samples, Standing, Study,
    Surroundings, Target, Variables, Watcher, conduct, embedded, from_folder, needs,
};

/// Length of the idle baseline before each row, in nanoseconds. Short, because there are many rows.
const IDLE_NS: u64 = 20_000_000;

/// One-line description of `trueio study`.
pub(crate) const ABOUT: &str = "Repeat a published experiment, and show your figures next to the published ones";

/// Adds the arguments of `trueio study`.
pub(crate) fn arguments(command: Command) -> Command {
    outputs(own_arguments(command))
}

/// Adds the arguments for the study and its target.
fn own_arguments(command: Command) -> Command {
    command
        .long_about(
            "Repeats a published experiment as published and with a corrected method, with evidence for every row. Shows your figures \
             next to the published ones, where they agree and differ, and which published figures are impossible.\n\n\
             `trueio study list` describes the studies. In a directory a study creates its own file, which is removed afterwards \
             whatever happens; an existing file or a block device is only read, unless --overwrite names it.",
        )
        .after_help("docs/studies.md describes what was published, what we found, and how to write a study.")
        .arg(
            Arg::new("name")
                .value_name("NAME")
                .required(true)
                .help("`list`, the name of a study, or a folder with study.toml and published.csv"),
        )
        .arg(
            Arg::new("target")
                .value_name("TARGET")
                .help("A directory, a file or a block device")
                .default_value(".")
                .value_hint(ValueHint::AnyPath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("second")
                .value_name("TARGET2")
                .help("A second USB disk, on the other transport: then none is switched (usb-transport)")
                .value_hint(ValueHint::AnyPath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(flags::switch("quick", "Run a smaller version, in less than two minutes; the output lists what is smaller"))
        .arg(
            Arg::new("mode")
                .long("mode")
                .value_name("NAME,…")
                .help("The modes to run [default: faithful, then improved]")
                .action(ArgAction::Append)
                .value_delimiter(','),
        )
        .arg(
            flags::switch("as-published", "Run the published loop with its mistakes (cache-bypass): --mode as-published")
                .conflicts_with("mode"),
        )
        .arg(
            Arg::new("samples")
                .long("samples")
                .value_name("NUMBER")
                .help("Samples of each row; intervals need 6 or more")
                .value_parser(value_parser!(u32).range(1..=10_000)),
        )
        .arg(
            Arg::new("set")
                .long("set")
                .value_name("OPTION=VALUE")
                .help("A job option for every row, instead of its own: size=256m")
                .action(ArgAction::Append),
        )
        .arg(
            Arg::new("only")
                .long("only")
                .value_name("AXIS=VALUE,…")
                .help("Run only the rows with these values of an axis; can be repeated: job=read_iops,read_depth_1")
                .action(ArgAction::Append),
        )
        .arg(Arg::new("seed").long("seed").value_name("NUMBER").help("Seed of the order [default: random]").value_parser(value_parser!(u64)))
        .arg(
            Arg::new("overwrite")
                .long("overwrite")
                .value_name("TARGET")
                .help("Write to this existing file or device, which destroys its content; must name TARGET again (and TARGET2)")
                .action(ArgAction::Append)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("overwrite-signature")
                .long("overwrite-signature")
                .value_name("NAMES")
                .help("Signatures on the device that may be destroyed, with the names of `wipefs`: gpt,ext4")
                .requires("overwrite"),
        )
        .arg(flags::switch("allow-exec", "Allow a study from a folder to start the programs that it names"))
        .arg(flags::switch("trace-syscalls", "Record every system call of every row, with its cost (as root); it slows them"))
        .arg(flags::switch("resume", "Continue the last interrupted attempt at this study").conflicts_with("no-journal"))
        .arg(flags::switch("no-journal", "Do not store samples for --resume"))
}

/// Adds the arguments for the outputs.
fn outputs(command: Command) -> Command {
    command
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .help("Output format: the table, or rows as the source prints them")
                .help_heading("Output")
                .default_value("table")
                .value_parser(PossibleValuesParser::new(["table", "rows"])),
        )
        .arg(flags::json("Write the study's record as JSON; without FILE to standard output"))
        .arg(flags::output_file("html", "Write a self-contained page with plots"))
        .arg(
            flags::switch("no-evidence", "Do not collect evidence; verdicts then use only the results of the calls")
                .help_heading("Output"),
        )
        .arg(flags::live())
}

/// `trueio study`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let name = matches.get_one::<String>("name").expect("it is required");
    if name == "list" {
        return list(matches);
    }
    if matches.get_flag("live") {
        Live::check().map_err(Failure::refused)?;
    }
    let study = find(name)?;
    let order = order(&study, name, matches)?;
    // From here on a signal ends the study in order: a switched disk is returned to its transport.
    let stop = watch_signals();
    let transports = transports(&study, &order)?;
    output::check(matches, target_paths(matches).into_iter())?;
    if matches.get_one::<String>("format").is_some_and(|f| f == "rows") && study.definition.row_format.is_none() {
        return Err(Failure::refused(format!("--format rows: the source of `{name}` has no row format")));
    }
    let (journal, earlier, order) = journal(&study, order, matches)?;
    let kept = journal.as_ref().map(|journal| journal.path().to_owned());
    let outputs = Outputs::reserve(matches, target_paths(matches).into_iter())?;
    let mut follower = Follower::of(matches)?;
    let mut services = StudyServices { matches, engines: OnceCell::new(), no_direct: OnceCell::new(), transports };
    let found = conduct(&study, &order, &mut services, journal, earlier, stop, &mut follower);
    // Before anything is printed, so that the terminal is as it was.
    follower.clear();
    let restored = services.transports.take().map_or(Ok(()), |mut transports| transports.restore());
    let mut record = match found {
        Ok(record) => record,
        Err(Refused(why)) => {
            // Nothing was measured: there is nothing to resume, except from an earlier attempt.
            if let Some(path) = kept.as_ref().filter(|_| !matches.get_flag("resume")) {
                let _ = std::fs::remove_file(path);
            }
            return Err(Failure::refused(why));
        }
    };
    record.power_loss = crate::kept::power_loss(&record.targets);
    deliver(&record, outputs, matches)?;
    if let Err(why) = &restored {
        message!("error: the study has ended, but its disk is not on its previous transport\n  because: {why}");
    }
    if let Some(path) = kept {
        if record.outcome != Outcome::Complete {
            message!("hint: `trueio study {name}` with the same arguments and --resume measures only the missing rows");
        } else if let Err(error) = std::fs::remove_file(&path) {
            message!("warning: the journal `{}` could not be removed: {error}", path.display());
        }
    }
    let has_ended = match &record.outcome {
        Outcome::Complete => true,
        // The key q of the live view is an orderly end.
        Outcome::Interrupted { signal } => signal == BY_KEY,
        Outcome::Failed { .. } => false,
    };
    let is_fine = has_ended && restored.is_ok();
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the USB transports that rows need; `None`: no row needs any.
fn transports(study: &Study, order: &Order) -> Result<Option<Transports>, Failure> {
    let needs = needs(study, order).map_err(|Refused(why)| Failure::refused(why))?;
    if needs.is_empty() && !order.others.is_empty() {
        return Err(Failure::refused(format!("`{}` takes one target, but two are named", study.name)));
    }
    let targets: Vec<Target> = std::iter::once(&order.target).chain(&order.others).cloned().collect();
    (!needs.is_empty()).then(|| Transports::new(&targets, &needs)).transpose()
}

/// Loads a study by its name, or from a folder.
fn find(name: &str) -> Result<Study, Failure> {
    if is_folder(name) {
        return from_folder(Path::new(name)).map_err(|e| Failure::refused(e.to_string()));
    }
    embedded(name).map_err(|why| Failure::refused(format!("{why}\n\nhint: `trueio study list` describes them")))
}

/// Returns true if a study's name is that of a folder, and not of a built-in study.
fn is_folder(name: &str) -> bool {
    name.contains('/') || (Path::new(name).is_dir() && !EMBEDDED.iter().any(|study| study.name == name))
}

fn target_path(matches: &ArgMatches) -> &Path {
    matches.get_one::<PathBuf>("target").expect("it has a default")
}

fn order(study: &Study, name: &str, matches: &ArgMatches) -> Result<Order, Failure> {
    let mut modes: Vec<String> = matches.get_many::<String>("mode").into_iter().flatten().cloned().collect();
    if matches.get_flag("as-published") {
        modes = vec!["as-published".to_owned()];
    } else if modes.is_empty() {
        modes = study.usual_modes().into_iter().map(str::to_owned).collect();
    }
    let mut extra = Vec::new();
    for text in matches.get_many::<String>("set").into_iter().flatten() {
        let (option, value) = text.split_once('=').ok_or_else(|| {
            Failure::refused(format!("--set `{text}`: an option and its value are expected, `size=256m`"))
        })?;
        if ["filename", "directory", "overwrite_existing", "overwrite_signature", "stonewall"].contains(&option) {
            return Err(Failure::refused(format!(
                "--set cannot set `{option}`; name the target, and --overwrite, instead"
            )));
        }
        extra.push((option.to_owned(), value.to_owned()));
    }
    if matches.get_flag("trace-syscalls") {
        extra.push(("trace_syscalls".to_owned(), "true".to_owned()));
    }
    let mut only = Vec::new();
    for text in matches.get_many::<String>("only").into_iter().flatten() {
        let (axis, values) = text.split_once('=').ok_or_else(|| {
            Failure::refused(format!("--only `{text}`: an axis and its values are expected, `job=read_iops`"))
        })?;
        only.extend(values.split(',').map(|value| (axis.to_owned(), value.to_owned())));
    }
    let paths = target_paths(matches);
    let named: Vec<&PathBuf> = matches.get_many("overwrite").into_iter().flatten().collect();
    let mut targets = Vec::new();
    for path in &paths {
        targets.push(target(path, &named, &paths, matches)?);
    }
    if targets.len() == 2 && targets[0] == targets[1] {
        return Err(Failure::refused("the two targets are the same"));
    }
    let others = targets.split_off(1);
    Ok(Order {
        modes,
        is_quick: matches.get_flag("quick"),
        samples: matches.get_one::<u32>("samples").copied(),
        seed: matches.get_one::<u64>("seed").copied().unwrap_or_else(entropy),
        target: targets.remove(0),
        others,
        extra,
        only,
        variables: Variables::new(),
        may_start_programs: !is_folder(name) || matches.get_flag("allow-exec"),
        has_evidence: !matches.get_flag("no-evidence"),
        interim_every: matches.get_flag("live").then_some(INTERIM),
        command: flags::as_typed(),
    })
}

/// One target or two, as typed.
fn target_paths(matches: &ArgMatches) -> Vec<&Path> {
    std::iter::once(target_path(matches)).chain(matches.get_one::<PathBuf>("second").map(PathBuf::as_path)).collect()
}

/// Classifies the target by its path. `named` are the paths that may be overwritten, `all` the targets.
fn target(path: &Path, named: &[&PathBuf], all: &[&Path], matches: &ArgMatches) -> Result<Target, Failure> {
    // Compared as text, because paths that differ in a slash would compare equal.
    let is_among = |named: &PathBuf, all: &[&Path]| all.iter().any(|path| path.as_os_str() == named.as_os_str());
    let other = named.iter().find(|named| !is_among(named, all));
    let is_left_out = !named.is_empty() && !named.iter().any(|named| is_among(named, &[path]));
    if let Some(other) = other.or(named.first().filter(|_| is_left_out)) {
        return Err(Failure::refused(format!(
            "--overwrite names `{}`, but the target is `{}`: both must be spelled the same",
            other.display(),
            path.display()
        )));
    }
    let overwrite = (!named.is_empty()).then_some(());
    let text = path.to_str().ok_or_else(|| Failure::refused(format!("`{}` is not UTF-8", path.display())))?;
    match MachineFacts::without_probing().look(text) {
        trueio_job::Target::Missing => Err(Failure::refused(format!(
            "`{text}` does not exist\n\nhint: name a directory, an existing file or a block device"
        ))),
        trueio_job::Target::Unreadable(why) => {
            Err(Failure::refused(format!("`{text}` cannot be examined\n  because: {why}")))
        }
        trueio_job::Target::Present(facts) => match facts.kind {
            TargetKind::Directory if overwrite.is_some() => Err(Failure::refused(format!(
                "`{text}` is a directory: a study creates its own file there and overwrites nothing"
            ))),
            TargetKind::Directory => {
                let name = format!("trueio-study-{:08x}.dat", entropy() as u32);
                Ok(Target::NewFile { path: path.join(name).to_string_lossy().into_owned() })
            }
            TargetKind::CharacterDevice => {
                Err(Failure::refused(format!("`{text}` is a character device: it is no disk")))
            }
            TargetKind::File | TargetKind::BlockDevice => Ok(Target::Existing {
                path: text.to_owned(),
                overwrite: overwrite.is_some(),
                signatures: matches.get_one::<String>("overwrite-signature").cloned(),
            }),
        },
    }
}

/// Opens the journal: a new one, the one to resume, or none. The order then has the seed of the resumed one.
fn journal(study: &Study, order: Order, matches: &ArgMatches) -> Result<(Option<Journal>, Samples, Order), Failure> {
    if matches.get_flag("no-journal") {
        return Ok((None, Samples::new(), order));
    }
    let failed = |error: &(dyn std::error::Error + 'static)| {
        Failure::refused(error_chain("the study's journal cannot be used", Some(error)))
    };
    let directory = trueio_store::default_directory().map_err(|e| failed(&e))?.join("studies");
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let targets: Vec<String> =
        target_paths(matches).iter().map(|path| absolute(path).to_string_lossy().into_owned()).collect();
    let mut head = Head {
        format: JOURNAL_FORMAT.to_owned(),
        version: trueio_model::STUDY_VERSION,
        study: study.name.clone(),
        definition: study.fingerprint.clone(),
        target: targets.join(" and "),
        modes: order.modes.clone(),
        is_quick: order.is_quick,
        extra: order.extra.clone(),
        only: order.only.clone(),
        samples: order.samples,
        seed: order.seed,
    };
    if matches.get_flag("resume") {
        let directory = trueio_store::private_directory(&directory).map_err(|e| failed(&e))?;
        let all = std::fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path());
        let journals = all.filter(|path| {
            path.extension().is_some_and(|end| end == "jsonl") && trueio_store::check_private(path).is_ok()
        });
        let path = Journal::newest(journals, &head).map_err(|other| match other {
            Some(error) => failed(&error),
            None => Failure::refused(format!("there is no interrupted attempt at `{}` to resume", study.name)),
        })?;
        let earlier = Journal::head(&path).map_err(|e| failed(&e))?;
        head.seed = earlier.seed;
        let (journal, samples) = Journal::resume(&path, &head).map_err(|e| failed(&e))?;
        let order = Order { seed: head.seed, ..order };
        return Ok((Some(journal), samples, order));
    }
    // A study without a directory for its journal runs anyway.
    let directory = match trueio_store::private_directory(&directory) {
        Ok(directory) => directory,
        Err(error) => {
            message!("warning: {}", error_chain("without a journal, --resume will not work", Some(&error)));
            return Ok((None, Samples::new(), order));
        }
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let path = directory.join(format!("{}-{now}-{:04x}.jsonl", study.name, entropy() as u16));
    let journal = Journal::create(&path, &head).map_err(|e| failed(&e))?;
    Ok((Some(journal), Samples::new(), order))
}

/// The services of the program that a study uses: planning, engines, USB transports.
struct StudyServices<'a> {
    matches: &'a ArgMatches,
    /// Determined once, when the first row names an engine.
    engines: OnceCell<Vec<Availability>>,
    /// Why the target has no direct I/O, determined when the first row needs it; `None` if it has.
    no_direct: OnceCell<Option<String>>,
    transports: Option<Transports>,
}

impl Surroundings for StudyServices<'_> {
    fn plan(&mut self, jobs: &[JobSpec], programs: &[String]) -> Result<Plan, Refused> {
        let idle_ns = if self.matches.get_flag("no-evidence") { 0 } else { IDLE_NS };
        let command_files = output::command_files(self.matches, &[]);
        let machine = Machine { programs: programs.to_vec(), command_files, ..machine(idle_ns) };
        planned(jobs, &machine, may_run).map_err(|e| Refused(e.into_text()))
    }

    fn lacks(&mut self, job: &JobSpec) -> Option<String> {
        // Options that the user set for every row are refused as a whole.
        let asks = |option: &str| {
            job.options
                .get(option)
                .is_some_and(|given| given.text == "true" && !matches!(given.origin, trueio_model::Origin::Flag { .. }))
        };
        let recording = || asks("trace_syscalls").then(trueio_evidence::why_no_syscall_trace).flatten();
        let strace = || asks("strace").then(trueio_run::why_no_strace).flatten();
        let program = || {
            let program = job.options.get("command")?.text.split_whitespace().next()?;
            (!is_installed(program)).then(|| format!("`{program}` is not installed"))
        };
        let engine = || engine_lacking(job, self.engines.get_or_init(trueio_engine::availability));
        let direct = || {
            let given = job.options.get("direct").filter(|given| given.text == "require")?;
            let is_users = matches!(given.origin, trueio_model::Origin::Flag { .. });
            (!is_users).then(|| self.no_direct.get_or_init(|| no_direct(self.matches)).clone()).flatten()
        };
        recording().or_else(strace).or_else(program).or_else(engine).or_else(direct)
    }

    fn holds(&mut self, needs: &BTreeMap<String, String>, target: &Target) -> Result<Option<Brought>, String> {
        self.transports.as_ref().map_or(Ok(None), |transports| transports.holds(needs, target))
    }

    fn bring(&mut self, needs: &BTreeMap<String, String>, _: &Target) -> Result<Brought, String> {
        let transports = self.transports.as_mut().ok_or("no disk was read before")?;
        transports.bring(needs)
    }
}

/// Returns the reason why the engine of a study's row does not work here. An engine that the user set for
/// every row is refused by the plan instead.
fn engine_lacking(job: &JobSpec, engines: &[Availability]) -> Option<String> {
    let given =
        job.options.get("ioengine").filter(|given| !matches!(given.origin, trueio_model::Origin::Flag { .. }))?;
    let found = engines.iter().find(|found| found.engine.name() == given.text && !found.works)?;
    Some(format!("the engine `{}` does not work here ({})", given.text, found.reason))
}

/// Returns the reason why the files of a directory have no direct I/O; `None` if they have, or if the target is none.
fn no_direct(matches: &ArgMatches) -> Option<String> {
    let path = target_path(matches).to_str()?;
    let trueio_job::Target::Present(facts) = MachineFacts::probing().look(path) else { return None };
    let is_without = matches!(facts.direct.support, DirectSupport::SilentlyBuffered | DirectSupport::Refused);
    let is_directory = facts.kind == TargetKind::Directory;
    (is_directory && is_without).then(|| format!("`{path}` has no direct I/O ({})", facts.direct.reason))
}

/// Returns true if a program is in PATH.
fn is_installed(program: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_program = |path: &std::path::Path| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_program(std::path::Path::new(program));
    }
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|at| is_program(&at.join(program))))
}

/// Shows the progress of a study: one line, or with `--live` the whole terminal.
enum Follower {
    Line { line: progress::Line, standing: String },
    Whole(Live),
}

impl Follower {
    /// Takes over the terminal with `--live`.
    fn of(matches: &ArgMatches) -> Result<Self, Failure> {
        match matches.get_flag("live") {
            true => Live::start().map(Self::Whole).map_err(Failure::refused),
            false => Ok(Self::Line { line: progress::Line::new(), standing: String::new() }),
        }
    }

    /// Removes the line, or gives the terminal back.
    fn clear(self) {
        if let Self::Line { line, .. } = &self {
            line.clear();
        }
    }
}

impl Observer for Follower {
    fn notify(&mut self, event: Event<'_>) {
        match (self, event) {
            (Self::Whole(view), event) => view.notify(event),
            (Self::Line { line, .. }, event @ Event::Preparing { .. }) => line.notify(event),
            (Self::Line { line, standing }, Event::Progress(tick)) => {
                let rate = trueio_model::units::format_bandwidth(tick.bytes_per_s);
                line.show(&format!("{standing}  {rate}"));
            }
            _ => {}
        }
    }
}

impl Watcher for Follower {
    fn standing(&mut self, now: &Standing<'_>) {
        let text = trueio_report::study_progress(now.mode, now.row, now.done, now.count, now.left_ns);
        match self {
            Self::Whole(view) => view.show_line(text),
            Self::Line { line, standing } => {
                line.show(&text);
                *standing = text;
            }
        }
    }
}

fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let studies: Vec<Study> =
        EMBEDDED.iter().map(|study| embedded(study.name)).collect::<Result<_, _>>().map_err(Failure::refused)?;
    let bounds: Vec<u64> = studies.iter().map(quick_s).collect::<Result<_, _>>()?;
    if matches.get_one::<PathBuf>("json").is_some_and(|p| p == Path::new("-")) {
        let all: Vec<_> = studies
            .iter()
            .zip(&bounds)
            .map(|(study, quick_s)| {
                let source = &study.definition.source;
                serde_json::json!({
                    "name": study.name,
                    "title": study.definition.title,
                    "question": study.definition.question,
                    "source": { "title": source.title, "by": source.by, "date": source.date, "setting": source.setting },
                    "modes": study.definition.mode.iter().map(|(name, mode)| serde_json::json!({
                        "name": name, "title": mode.title, "samples": mode.samples,
                    })).collect::<Vec<_>>(),
                    "published_figures": study.published.entries.len(),
                    "quick_seconds_max": quick_s,
                })
            })
            .collect();
        let text = serde_json::to_string_pretty(&all)
            .map_err(|e| Failure::failed("the list cannot be written as JSON", &e))?;
        output::print_all(&format!("{text}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = output::style_of(&std::io::stdout()).width;
    let mut text = String::new();
    for (study, quick_s) in studies.iter().zip(&bounds) {
        let definition = &study.definition;
        text.push_str(&format!("{}\n", study.name));
        trueio_report::wrap(&mut text, "    ", 4, &definition.title, width);
        trueio_report::wrap(&mut text, "    ", 4, &definition.question, width);
        let source = &definition.source;
        let from =
            format!("{}, {}, {}: {} figures", source.title, source.by, source.date, study.published.entries.len());
        trueio_report::wrap(&mut text, "    from      ", 14, &from, width);
        for name in study
            .usual_modes()
            .into_iter()
            .chain(definition.mode.iter().filter(|(_, mode)| mode.place.is_none()).map(|(name, _)| name.as_str()))
        {
            trueio_report::wrap(&mut text, &format!("    {name:<9} "), 14, &definition.mode[name].title, width);
        }
        let quick = format!("{quick_s} s at most");
        trueio_report::wrap(&mut text, "    --quick   ", 14, &quick, width);
        text.push('\n');
    }
    let promise = format!(
        "`trueio study NAME [TARGET]` runs one. The limit of --quick is computed for an idle machine with a disk of {}.",
        MODEST_DISK.words()
    );
    trueio_report::wrap(&mut text, "", 0, &promise, width);
    output::print_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the upper limit of the quick mode's duration on a modest disk, in seconds.
fn quick_s(study: &Study) -> Result<u64, Failure> {
    let longest = study.longest(&study.usual_modes(), true, MODEST_DISK);
    Ok(longest.map_err(|e| Failure::refused(e.to_string()))?.as_secs_f64().ceil() as u64)
}

fn deliver(record: &StudyRecord, outputs: Outputs, matches: &ArgMatches) -> Result<(), Failure> {
    let json_to_stdout = matches.get_one::<PathBuf>("json").is_some_and(|p| p == Path::new("-"));
    let rows = matches.get_one::<String>("format").is_some_and(|f| f == "rows");
    let mut results = Vec::new();
    if json_to_stdout {
        results.push(output::print_all(&format!("{}\n", trueio_report::study_json(record))));
    } else if rows {
        results.push(output::print_all(&trueio_report::study_rows(record).unwrap_or_default()));
    } else {
        results.push(output::print_all(&trueio_report::study_terminal(record, &output::style_of(&std::io::stdout()))));
    }
    results.push(outputs.write(|name| {
        Ok(match name {
            "json" => format!("{}\n", trueio_report::study_json(record)),
            _ => trueio_report::study_html(record),
        })
    }));
    results.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{EngineKind, Origin};

    #[test]
    fn a_row_is_skipped_if_its_engine_does_not_work_here_unless_the_user_set_the_engine() {
        let uring = |works| Availability { engine: EngineKind::IoUring, works, reason: "EPERM".to_owned() };
        let with = |origin| {
            let mut job = JobSpec::new("a");
            job.set("ioengine", "io_uring", origin);
            job
        };
        let (studys, users) = (Origin::Preset { name: "study a b".into() }, Origin::Flag { flag: "--ioengine".into() });
        let words = "the engine `io_uring` does not work here (EPERM)";
        assert_eq!(engine_lacking(&with(studys.clone()), &[uring(false)]).as_deref(), Some(words));
        assert_eq!(engine_lacking(&with(studys), &[uring(true)]), None);
        assert_eq!(engine_lacking(&with(users), &[uring(false)]), None);
        assert_eq!(engine_lacking(&JobSpec::new("a"), &[uring(false)]), None);
    }
}
