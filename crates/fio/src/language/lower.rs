//! From sections of words to specifications: fio's defaults, its clones, its names of files.
//!
//! Each clone of `numjobs` becomes a job of its own, because that is what it is in fio: it has files
//! and a seed of its own, and its own entry in the results unless `group_reporting` joins them.

use super::clones::{files, of_clone, unique_name};
use super::command_line::Asked;
use super::options::{Fate, FioOption, Kind};
use super::problem::{FioProblem, Problems};
use super::value::{BadValue, KbBase, drawn_files, listed, read_number, read_time_ns, translate};
use super::{JOBS_MAX, PRESET, Section, Settings, Surroundings, Word, engines, pattern};
use std::collections::{BTreeMap, BTreeSet};
use trueio_job::option::OptionRow;
use trueio_job::plan::join_path;
use trueio_job::table::{overlay, row, value_hint};
use trueio_job::value::{write_bytes, write_duration};
use trueio_model::{EngineKind, FioJob, FioWord, JobSpec, Origin, SpecValue};

/// Most words that all jobs keep together.
const GIVEN_MAX: usize = 500_000;

/// The values that fio uses where nothing is set, and we do not.
const DEFAULTS: &[(&str, &str)] = &[
    ("create_directories", "true"),
    ("direct", "off"),
    ("fadvise_hint", "pattern"),
    ("fixedbufs", "false"),
    ("invalidate", "each_pass"),
    ("name_accounting", "blocks"),
    ("registerfiles", "false"),
    ("unlink", "false"),
];

pub(super) fn preset() -> Origin {
    Origin::Preset { name: PRESET.to_owned() }
}

/// What is carried from job to job.
pub(super) struct Run<'a> {
    pub(super) settings: &'a Settings,
    pub(super) around: &'a dyn Surroundings,
    jobs: Vec<JobSpec>,
    names: BTreeMap<String, u64>,
    group: u32,
    /// fio's names of the jobs that run at the same time as the next.
    together: Vec<String>,
    /// The first of them.
    phase_from: usize,
    /// fio's names of all jobs before those.
    before: BTreeSet<String>,
    /// Files of all jobs so far.
    pub(super) files: u64,
    given: usize,
    notes: &'a mut Vec<String>,
    remarks: Vec<String>,
}

impl Run<'_> {
    pub(super) fn note(&mut self, job: &str, sentence: String) {
        let note = format!("job `{job}`: {sentence}");
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

impl Run<'_> {
    /// What is no news to a user of fio's, and stands in the record all the same.
    fn remark(&mut self, remark: String) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }
}

/// Makes the jobs. `notes` are what fio warns about.
pub(super) fn lower(
    sections: &[Section],
    settings: &Settings,
    around: &dyn Surroundings,
    problems: &mut Problems,
    notes: &mut Vec<String>,
) -> Vec<JobSpec> {
    let mut run = Run {
        settings,
        around,
        jobs: Vec::new(),
        names: BTreeMap::new(),
        group: 0,
        together: Vec::new(),
        phase_from: 0,
        before: BTreeSet::new(),
        files: 0,
        given: 0,
        notes,
        remarks: Vec::new(),
    };
    for section in sections {
        if problems.is_full() || !job(section, &mut run, problems) {
            break;
        }
    }
    let Run { mut jobs, remarks, notes, .. } = run;
    let is_on = |job: &JobSpec| job.options.get("exitall").is_some_and(|exitall| exitall.text == "true");
    if jobs.iter().any(is_on) {
        let reason = "`exitall` of one job holds for all, as in fio: whichever ends first ends those beside it";
        for job in jobs.iter_mut().filter(|job| !is_on(job)) {
            job.set("exitall", "true", Origin::Derived { reason: reason.to_owned() });
        }
    }
    if !settings.are_warnings_fatal {
        notes.extend(remarks);
    }
    jobs
}

/// The words of a section, sorted by who has them.
pub(super) struct Said<'a> {
    pub(super) section: &'a Section,
    /// What `k` means in each of them.
    bases: BTreeMap<&'static str, KbBase>,
    /// What the reader handles: the last word on each, and whether it is the job's own.
    pub(super) words: BTreeMap<&'static str, (&'a Word, bool)>,
    spec: JobSpec,
}

/// One section; false if reading must end.
#[expect(clippy::too_many_lines, reason = "until it is split")]
fn job(section: &Section, run: &mut Run, problems: &mut Problems) -> bool {
    let Some(mut said) = sort(section, run, problems) else { return true };
    let Some(clones) = said.count("numjobs", problems) else { return true };
    if run.jobs.len() + clones as usize > JOBS_MAX {
        let message = format!("there are more than {JOBS_MAX} jobs, clones included");
        said.complain_about("numjobs", message, None, problems);
        return false;
    }
    engine_and_queue(&mut said, run, problems);
    limits(&mut said, run, problems);
    cache(&mut said, problems);
    rates(&mut said, problems);
    priorities(&mut said, run, problems);
    working_set(&mut said, run, problems);
    exec(&said, run, problems);
    exec_engine(&mut said, run, problems);
    if said.is_on("create_on_open") {
        let engine = said.spec.options.get("ioengine").map_or("", |engine| engine.text.as_str());
        if EngineKind::ALL.iter().any(|kind| kind.name() == engine && kind.works_on_names()) {
            let note = format!("`create_on_open` has no effect: `{engine}` needs no content");
            run.note(&section.name, note);
        } else if operations(&said.spec) == "write" {
            let origin = Origin::Derived { reason: "`create_on_open`: nothing is prepared".to_owned() };
            said.spec.options.entry("fallocate".to_owned()).or_insert(SpecValue { text: "none".into(), origin });
        } else {
            let message = "`create_on_open`: only a job that just writes can begin with an empty file".to_owned();
            let hint = Some("leave it out: files are prepared before the measured time".to_owned());
            said.complain_about("create_on_open", message, hint, problems);
        }
    }
    if let Some(word) = said.word("hugepage-size") {
        match read_number(word.text(), said.base_of("hugepage-size")) {
            Ok(bytes) => said.spec.set("hugepage_size", write_bytes(bytes), word.origin()),
            Err(bad) => said.complain(word, &bad, problems),
        }
    }
    buffer_offset(&mut said, run, problems);
    flushes(&mut said, run);
    let group_begins = !run.jobs.is_empty() && (said.is_on("stonewall") || section.waits || said.is_on("new_group"));
    run.group += u32::from(group_begins);
    let (waits_for_others, waited_for) = waits_for(&said, run, problems);
    let waits = !run.jobs.is_empty() && (said.is_on("stonewall") || section.waits || waits_for_others);
    if waits {
        run.before.extend(run.together.drain(..));
        run.phase_from = run.jobs.len();
    }
    if let Some(directory) = &run.settings.aux_path {
        let logs =
            said.spec.options.iter_mut().filter(|(name, _)| name.starts_with("write_") && name.ends_with("_log"));
        logs.for_each(|(_, log)| log.text = join_path(Some(directory), &log.text));
    }
    let given = given(section);
    for clone in 0..clones {
        run.given = run.given.saturating_add(given.len());
        if run.given > GIVEN_MAX {
            let message = format!("the jobs have more than {GIVEN_MAX} options together");
            said.complain_about("numjobs", message, None, problems);
            return false;
        }
        let mut spec = said.spec.clone();
        spec.name = unique_name(&section.name, (clones > 1).then_some(clone), &mut run.names);
        if waits && clone == 0 {
            let origin = said.words.get("stonewall").or(said.words.get("wait_for")).map_or_else(
                || Origin::Derived { reason: "a further job file waits for the one before".to_owned() },
                |(word, _)| word.origin(),
            );
            spec.set("stonewall", "true", origin);
        }
        if let Some(word) = said.word("wait_for").filter(|_| !waits && !waited_for.is_empty()) {
            spec.set("wait_for", waited_for.join(","), word.origin());
        }
        if !files(&said, clone, &mut spec, run, problems) {
            return false;
        }
        of_clone(&said, (clone, run.jobs.len() as u64), &mut spec, problems);
        let is_percent = |offset: &SpecValue| offset.text.ends_with('%');
        if spec.options.get("offset").is_some_and(is_percent) && !spec.options.contains_key("offset_align") {
            spec.set("offset_align", "0", preset());
        }
        spec.fio = Some(Box::new(FioJob {
            name: section.name.clone(),
            clone: clone as u32,
            clones: clones as u32,
            number: run.jobs.len() as u32 + 1,
            group: run.group,
            is_from_command_line: section.is_from_command_line,
            given: given.clone(),
        }));
        run.jobs.push(spec);
    }
    run.together.push(section.name.clone());
    true
}

/// The words as typed, for the record.
fn given(section: &Section) -> Vec<FioWord> {
    let word = |word: &Word, is_global: bool| FioWord {
        name: word.asked.name().to_owned(),
        text: word.text().to_owned(),
        is_global,
        origin: word.origin(),
    };
    let globals = section.globals.iter().map(|w| word(w, true));
    globals.chain(section.words.iter().map(|w| word(w, false))).collect()
}

/// Gives each word to who has it: our rows, the reader, the outputs; refuses the rest.
fn sort<'a>(section: &'a Section, run: &mut Run, problems: &mut Problems) -> Option<Said<'a>> {
    let mut spec = JobSpec::new(section.name.clone());
    for (name, text) in DEFAULTS.iter().filter(|(name, _)| row(name).is_some()) {
        spec.set(name, *text, preset());
    }
    let mut words: BTreeMap<&'static str, (&Word, bool)> = BTreeMap::new();
    let mut bases = BTreeMap::new();
    let mut base = KbBase::Binary;
    for (level, is_own) in [(&*section.globals, false), (&section.words, true)] {
        let mut values: BTreeMap<&'static str, SpecValue> = BTreeMap::new();
        // In a job file fio reads `kb_base` before any size of its section; on the command line it holds from its place on.
        let mut of_file = None;
        for word in level.iter().filter(|word| word.place.path.is_some() && word.asked.name() == "kb_base") {
            of_file = Some(kb_base(word, problems)?);
        }
        base = of_file.unwrap_or(base);
        for word in level {
            if word.place.path.is_none() && word.asked.name() == "kb_base" {
                base = kb_base(word, problems)?;
            }
            let option = match word.asked {
                Asked::Ours(row) => {
                    if let Some((message, hint)) = foreign(row.name, word) {
                        problems.add((*word.place).clone(), message, Some(hint.to_owned()));
                        continue;
                    }
                    take(row, word, &section.name, base, &mut values, problems);
                    continue;
                }
                Asked::Fio(option) => option,
            };
            match option.fate() {
                Fate::Row => {
                    let Some(row) = option.row() else { continue };
                    if let Some(problem) = special(option, word) {
                        problems.push(problem);
                        continue;
                    }
                    let expanded = match option.name {
                        "buffer_pattern" | "verify_pattern" if word.text().contains('\'') => {
                            match pattern::with_files(word, &section.name, run, problems) {
                                Some(word) => Some(word),
                                None => continue,
                            }
                        }
                        "mem" => without_file(word, &section.name, run),
                        _ => None,
                    };
                    take(row, expanded.as_ref().unwrap_or(word), &section.name, base, &mut values, problems);
                }
                Fate::Reader(_) => {
                    if option.name == "name" && word.text().is_empty() {
                        let hint = Some("say how the job is called: `name=JOB`".to_owned());
                        problems.add((*word.place).clone(), "`name` is empty, and a job has a name", hint);
                    }
                    check(option, word, base, problems);
                    words.insert(option.name, (word, is_own));
                    bases.insert(option.name, base);
                }
                Fate::Output(_) => check(option, word, base, problems),
                Fate::NoEffect(reason) => {
                    check(option, word, base, problems);
                    run.remark(format!("`{}` has no effect: {reason}", option.name));
                }
                Fate::Only { values, reason, instead } => {
                    if !word.text().split(',').all(|part| values.contains(&part.trim())) {
                        refuse(option, word, reason, instead, problems);
                    }
                }
                Fate::Refused { reason, instead } => {
                    let is_off = word.text() == "0" && !matches!(option.kind, Kind::Text | Kind::Size | Kind::Range);
                    if !is_off {
                        refuse(option, word, reason, instead, problems);
                    }
                }
            }
        }
        // fio keeps all three, and the one that says most counts.
        let sizes: Vec<&str> =
            ["bssplit", "bsrange", "bs"].into_iter().filter(|name| values.contains_key(name)).collect();
        if let [counts, others @ ..] = &sizes[..] {
            for other in others {
                values.remove(other);
                run.remark(format!("`{other}` has no effect beside `{counts}`, as in fio"));
            }
        }
        overlay(&mut spec, &values);
    }
    Some(Said { section, bases, words, spec })
}

fn kb_base(word: &Word, problems: &mut Problems) -> Option<KbBase> {
    match word.text() {
        "1024" => Some(KbBase::Binary),
        "1000" => Some(KbBase::Decimal),
        other => {
            let message = format!("`kb_base` is 1000 or 1024, not `{other}`");
            problems.add(word.value_place(&(0..other.len())), message, None);
            None
        }
    }
}

fn refuse(option: &FioOption, word: &Word, reason: &str, instead: &str, problems: &mut Problems) {
    let shown = match word.text() {
        "" => option.name.to_owned(),
        text => format!("{}={text}", option.name),
    };
    let message = format!("`{shown}` is not done here: {reason}");
    problems.add((*word.place).clone(), message, Some(format!("instead: {instead}")));
}

/// Options of ours that do not belong into fio's language, where a file may come from a stranger: what starts
/// programs, what asks the network, and what permits to destroy.
fn foreign(name: &str, word: &Word) -> Option<(String, &'static str)> {
    let is_from_a_file = word.place.path.is_some();
    match name {
        "command" | "source" | "strace" => {
            Some((format!("`{name}` is no option of fio's language"), "it belongs into job files in TOML"))
        }
        "overwrite_signature" | "overwrite_existing" | "extend_existing" if is_from_a_file => {
            Some((format!("`{name}` in a job file permits nothing"), "say it on the command line"))
        }
        _ => None,
    }
}

/// Reads a value for a row of our table.
fn take(
    row: &'static OptionRow,
    word: &Word,
    job: &str,
    base: KbBase,
    values: &mut BTreeMap<&'static str, SpecValue>,
    problems: &mut Problems,
) {
    let drawn = Some(word.text()).filter(|_| row.name == "file_service_type").and_then(drawn_files);
    let text = match (row.name, word.text()) {
        ("rw", text) if text.contains(':') => {
            let (rw, steps) = text.split_once(':').unwrap_or((text, ""));
            if let Err(bad) = take_steps(rw, steps, word, base, values) {
                problems.add(word.value_place(&(rw.len() + 1..text.len())), format!("`rw`: {}", bad.message), None);
            }
            rw
        }
        ("file_service_type", _) if drawn.is_some() => {
            values.remove("file_service_ios");
            drawn.as_deref().expect("it is there")
        }
        ("file_service_type", text) => {
            // What an earlier word said is over.
            values.remove("file_service_ios");
            let (name, ios) = text.split_once(':').map_or((text, None), |(name, ios)| (name, Some(ios)));
            match ios.map(|ios| read_number(ios, base)) {
                // As in fio none means to the file's end.
                Some(Ok(0)) if name == "roundrobin" => "sequential",
                // It is to the end of each whatever is said.
                Some(Ok(_)) if name == "sequential" => name,
                Some(Ok(ios)) => {
                    let text = ios.max(1).to_string();
                    values.insert("file_service_ios", SpecValue { text, origin: word.origin() });
                    name
                }
                Some(Err(bad)) => {
                    let at = word.value_place(&(name.len() + 1..text.len()));
                    return problems.add(at, format!("`file_service_type`: {}", bad.message), None);
                }
                None => name,
            }
        }
        ("fallocate", "posix") => "native",
        // fio takes none for one.
        ("loops", "0") => "1",
        ("invalidate", "" | "1") => "each_pass",
        // fio looks whether the kernel knows them, and every kernel with io_uring that is still served does.
        ("nonvectored", "-1") => "1",
        // A log without a name is called after the job.
        (name, "") if name.starts_with("write_") && !job.is_empty() => job,
        (_, text) => text,
    };
    match translate(row, text, base) {
        Ok(text) => {
            values.insert(row.name, SpecValue { text, origin: word.origin() });
        }
        Err(bad) => {
            let hint = value_hint(row, text, &bad.message);
            problems.add(word.value_place(&bad.at), format!("`{}`: {}", word.asked.name(), bad.message), hint);
        }
    }
}

/// What stands behind `rw`: how many I/Os share a random offset, or how many bytes a sequential job skips.
fn take_steps(
    rw: &str,
    steps: &str,
    word: &Word,
    base: KbBase,
    values: &mut BTreeMap<&'static str, SpecValue>,
) -> Result<(), BadValue> {
    let (name, text) = match rw.starts_with("rand") {
        true => ("random_every", read_number(steps, base)?.max(1).to_string()),
        false => {
            let (sign, number) = steps.strip_prefix('-').map_or(("", steps), |number| ("-", number));
            ("sequential_skip", format!("{sign}{}", read_number(number, base)?))
        }
    };
    values.insert(name, SpecValue { text, origin: word.origin() });
    Ok(())
}

/// Values of our rows that fio has and we refuse, with reasons better than "not a word".
fn special(option: &FioOption, word: &Word) -> Option<FioProblem> {
    let text = word.text();
    let (message, hint) = match option.name {
        "mem" if text.starts_with("mmapshared:") => (
            format!(
                "`mem={text}` shares the buffers with a file: it loses what it holds, and writing it back is I/O beside \
                 what is measured"
            ),
            "`mem=mmapshared`, or `mem=mmaphuge:PATH` for huge pages",
        ),
        _ => return None,
    };
    let place = Some(word.value_place(&(0..text.len())));
    Some(FioProblem { message, place, hint: Some(format!("instead: {hint}")) })
}

/// Buffers that fio maps from a file, as they are mapped without one; `None`: no file is named.
///
/// With `mmap:PATH` fio's mapping is a private one: its pages are its own as soon as they are written, and nothing of
/// them comes to the file, which is only cut to their length. With `mmaphuge:PATH` the file is a way to huge pages, for
/// which there is a flag of mmap(2). The file is of no use for either, and is left alone.
fn without_file(word: &Word, section: &str, run: &mut Run) -> Option<Word> {
    let (kind, path) = word.text().split_once(':').filter(|(_, path)| !path.is_empty())?;
    let pages = match kind {
        "mmap" => "buffers",
        "mmaphuge" => "huge pages",
        _ => return None,
    };
    run.note(section, format!("`mem={kind}:{path}`: {pages} are mapped without a file, and `{path}` is not touched"));
    Some(Word { value: Some(kind.to_owned()), ..word.clone() })
}

/// Holds a value against its kind, where no row of ours does.
fn check(option: &FioOption, word: &Word, base: KbBase, problems: &mut Problems) {
    let text = word.text();
    let whole = |message: String| Err(BadValue::whole(message, text));
    let result = match option.kind {
        _ if text.is_empty() && word.value.is_some() && !word.asked.may_stand_alone() && option.kind != Kind::Text => {
            whole("has no value".to_owned())
        }
        Kind::Flag if !matches!(text, "" | "0" | "1") => whole(format!("`{text}` is not 0 or 1")),
        Kind::Bool if !matches!(text, "0" | "1") => whole(format!("`{text}` is not 0 or 1")),
        Kind::Number if matches!(option.name, "rate" | "rate_iops") => Ok(()),
        Kind::Number => text
            .split([',', ':'])
            .filter(|part| !part.is_empty())
            .try_for_each(|part| read_number(part, base).map(drop)),
        Kind::Time if option.name == "startdelay" => Ok(()),
        Kind::Time => read_time_ns(text, 1_000_000_000).map(drop),
        Kind::Floats => {
            let is_number = |part: &str| part.trim().parse::<f64>().is_ok_and(|n| (0.0..=100.0).contains(&n));
            match text.split(':').count() {
                0..=20 if text.split(':').all(is_number) => Ok(()),
                0..=20 => whole(format!("`{text}` is not a list of numbers from 0 to 100 with colons between them")),
                count => whole(format!("{count} numbers are more than 20")),
            }
        }
        Kind::Text if !option.words.is_empty() && option.name != "ioengine" => {
            let first = text.split([':', ',']).next().unwrap_or(text);
            match option.words.split(' ').any(|word| word == first) {
                true => Ok(()),
                false => whole(format!("`{first}` is not one of {}", option.words.replace(' ', ", "))),
            }
        }
        _ => Ok(()),
    };
    if let Err(bad) = result {
        problems.add(word.value_place(&bad.at), format!("`{}`: {}", option.name, bad.message), None);
    }
}

impl Said<'_> {
    pub(super) fn word(&self, name: &str) -> Option<&Word> {
        self.words.get(name).map(|(word, _)| *word)
    }

    /// What `k` means where a word that the reader handles stands.
    pub(super) fn base_of(&self, name: &str) -> KbBase {
        self.bases.get(name).copied().unwrap_or(KbBase::Binary)
    }

    /// True if a switch is on.
    fn is_on(&self, name: &str) -> bool {
        self.word(name).is_some_and(|word| matches!(word.text(), "" | "1"))
    }

    pub(super) fn complain_about(&self, name: &str, message: String, hint: Option<String>, problems: &mut Problems) {
        let place = match self.word(name) {
            Some(word) => Some((*word.place).clone()),
            None => self.section.place.as_deref().cloned(),
        };
        problems.push(FioProblem { message, place, hint });
    }

    pub(super) fn complain(&self, word: &Word, bad: &BadValue, problems: &mut Problems) {
        problems.add(word.value_place(&bad.at), format!("`{}`: {}", word.asked.name(), bad.message), None);
    }

    /// A value that one of our rows reads, though the reader handles it.
    fn by_row(&self, name: &'static str, problems: &mut Problems) -> Option<String> {
        let word = self.word(name)?;
        let row = row(name)?;
        match translate(row, word.text(), self.base_of(name)) {
            Ok(text) => Some(text),
            Err(bad) => {
                let hint = value_hint(row, word.text(), &bad.message);
                problems.add(word.value_place(&bad.at), format!("`{name}`: {}", bad.message), hint);
                None
            }
        }
    }

    /// A count of at least one; `None` after a problem.
    pub(super) fn count(&self, name: &'static str, problems: &mut Problems) -> Option<u64> {
        if self.word(name).is_none() {
            return Some(1);
        }
        self.by_row(name, problems)?.parse().ok()
    }
}

/// The word of `rw`, as our table has it.
fn operations(spec: &JobSpec) -> &str {
    spec.options.get("rw").map_or("read", |rw| rw.text.trim_start_matches("rand"))
}

pub(super) fn writes(spec: &JobSpec) -> bool {
    operations(spec) != "read"
}

fn holds_queue(engine: &str) -> bool {
    EngineKind::ALL.iter().any(|kind| kind.name() == engine && kind.holds_a_queue())
}

/// Engine, depth, batches.
fn engine_and_queue(said: &mut Said, run: &mut Run, problems: &mut Problems) {
    let (name, origin) = match said.word("ioengine") {
        Some(word) => (word.text().split(':').next().unwrap_or("").to_owned(), word.origin()),
        None => ("psync".to_owned(), preset()),
    };
    let Some(engine) = engines::ours(&name) else {
        let (reason, hint) = match engines::why_missing(&name) {
            Some((reason, instead)) => (format!("is not here: {reason}"), Some(format!("instead: {instead}"))),
            None => {
                let near = engines::names()
                    .map(|known| (strsim::osa_distance(&name, known), known))
                    .min()
                    .filter(|(distance, _)| *distance <= 1 + name.chars().count() / 3)
                    .map(|(_, known)| format!("did you mean `{known}`?"));
                ("is not known".to_owned(), near.or_else(|| Some("`--enghelp` lists the engines".to_owned())))
            }
        };
        return said.complain_about("ioengine", format!("the engine `{name}` {reason}"), hint, problems);
    };
    let is_offloaded = said.word("io_submit_mode").is_some_and(|word| word.text() == "offload");
    let (engine, origin) = match is_offloaded {
        // fio's threads call the engine, each for one I/O: of an engine of single calls they are a queue on threads.
        true if engines::makes_single_calls(engine) => {
            let reason = format!("`io_submit_mode=offload`: `iodepth` threads make the calls of `{name}`");
            run.note(&said.section.name, format!("{reason}; here they are pread and pwrite (`posixaio`)"));
            ("posixaio", Origin::Derived { reason })
        }
        true => {
            let message = format!("`io_submit_mode=offload` gives each I/O of `{name}` to a thread of its own");
            let hint = "leave it out: the engine holds a queue itself, and under `rate` or `rate_iops` `lat_ns` counts from \
                        the moment each I/O was due, which is what offloading is for (`inline`, too)";
            let hint =
                if engine == "posixaio" || holds_queue(engine) { hint } else { "leave it out, or choose `psync`" };
            return said.complain_about("io_submit_mode", message, Some(hint.to_owned()), problems);
        }
        false => (engine, origin),
    };
    if matches!(engine, "filestat" | "dirstat") && !said.spec.options.contains_key("stat_type") {
        said.spec.set("stat_type", "stat", preset());
    }
    said.spec.set("ioengine", engine, origin);
    let holds_a_queue = holds_queue(engine);
    let mut depth = 1_u64;
    if let Some(text) = said.by_row("iodepth", problems) {
        depth = text.parse().unwrap_or(1);
        let origin = said.word("iodepth").map_or_else(preset, Word::origin);
        if depth > 1 && !holds_a_queue {
            let reason = format!("`{name}` holds one I/O at a time; fio, too, lowers the depth to 1");
            run.note(&said.section.name, format!("`iodepth={depth}` becomes 1: the engine {reason}"));
            said.spec.set("iodepth", "1", Origin::Derived { reason: format!("the engine {reason}") });
            depth = 1;
        } else {
            said.spec.set("iodepth", text, origin);
        }
    }
    let number = |name: &str, problems: &mut Problems| -> Option<(u64, Origin)> {
        let word = said.word(name)?;
        match read_number(word.text(), said.base_of(name)) {
            Ok(number) => Some((number, word.origin())),
            Err(bad) => {
                said.complain(word, &bad, problems);
                None
            }
        }
    };
    let batch = number("iodepth_batch", problems);
    let complete = number("iodepth_batch_complete_min", problems);
    let low = number("iodepth_low", problems).filter(|(low, _)| holds_a_queue && (1..=depth).contains(low));
    match batch {
        Some((batch, origin)) if holds_a_queue => {
            // 0 is the whole depth, and more than it cannot be, as in fio.
            let batch = if batch == 0 { depth } else { batch.min(depth) };
            said.spec.set("iodepth_batch", batch.to_string(), origin);
        }
        None if holds_a_queue && depth > 1 => said.spec.set("iodepth_batch", "1", preset()),
        _ => {}
    }
    if let Some((low, origin)) = low {
        said.spec.set("iodepth_low", low.to_string(), origin);
    }
    // fio takes no more completions in one go than it waits for, so that the queue is refilled one by one and stays
    // full. All that are there are taken only if it polls.
    let least = complete.as_ref().map_or(1, |(least, _)| *least);
    if holds_a_queue && depth > 1 && least > 0 && !said.spec.options.contains_key("iodepth_batch_complete_max") {
        said.spec.set("iodepth_batch_complete_max", least.min(depth).to_string(), preset());
    }
    if let Some((least, origin)) = complete.filter(|_| holds_a_queue) {
        said.spec.set("iodepth_batch_complete_min", least.clamp(1, depth).to_string(), origin);
    }
}

/// Bytes between the beginning of a page and that of each buffer: what fio makes of `iomem_align`.
fn buffer_offset(said: &mut Said, run: &mut Run, problems: &mut Problems) {
    const PAGE_BYTES: u64 = 4096;
    let Some(word) = said.word("iomem_align") else { return };
    let bytes = match read_number(word.text(), said.base_of("iomem_align")) {
        Ok(bytes) => bytes % PAGE_BYTES,
        Err(bad) => return said.complain(word, &bad, problems),
    };
    let origin = word.origin();
    if said.spec.options.contains_key("buffer_offset") {
        let message = "`iomem_align` and `buffer_offset` say the same thing".to_owned();
        return said.complain_about("iomem_align", message, Some("say one of them".to_owned()), problems);
    }
    if bytes == 0 {
        run.remark("`iomem_align` has no effect: buffers begin with a page anyway".to_owned());
    }
    said.spec.set("buffer_offset", bytes.to_string(), origin);
}

/// Where both flushes are due fio makes the larger one only: `fdatasync` that never comes alone has no effect.
fn flushes(said: &mut Said, run: &mut Run) {
    let every = |name: &str| said.spec.options.get(name)?.text.parse::<u64>().ok().filter(|every| *every > 0);
    let (Some(fsync), Some(fdatasync)) = (every("fsync"), every("fdatasync")) else { return };
    if fdatasync.is_multiple_of(fsync) {
        said.spec.options.remove("fdatasync");
        run.remark(format!("`fdatasync={fdatasync}` has no effect beside `fsync={fsync}`, as in fio"));
    }
}

/// What repeated blocks are drawn from.
fn working_set(said: &mut Said, run: &mut Run, problems: &mut Problems) {
    const NAME: &str = "dedupe_working_set_percentage";
    let is_set = said.word("dedupe_mode").is_some_and(|word| word.text() == "working_set");
    if !is_set {
        if said.word(NAME).is_some() {
            run.remark(format!("`{NAME}` has no effect without `dedupe_mode=working_set`, as in fio"));
        }
        return;
    }
    match said.word(NAME) {
        None => said.spec.set(NAME, "5", preset()),
        Some(word) => {
            let origin = word.origin();
            if let Some(text) = said.by_row(NAME, problems) {
                said.spec.set(NAME, text, origin);
            }
        }
    }
}

/// `time_based` without a runtime.
fn limits(said: &mut Said, run: &mut Run, _problems: &mut Problems) {
    if !said.is_on("time_based") {
        return;
    }
    let origin = said.word("time_based").map_or_else(preset, Word::origin);
    if said.spec.options.get("runtime").is_some_and(|runtime| runtime.text != "0s") {
        said.spec.set("time_based", "true", origin);
    } else {
        run.note(&said.section.name, "`time_based` has no effect without `runtime`, as in fio".to_owned());
    }
}

/// `direct` and `buffered` are one thing said in two ways.
fn cache(said: &mut Said, problems: &mut Problems) {
    let Some(&(word, is_own)) = said.words.get("buffered") else { return };
    let direct = if word.text() == "1" { "off" } else { "require" };
    let other = said.spec.options.get("direct").filter(|other| other.origin != preset());
    let level = if is_own { &said.section.words } else { &*said.section.globals };
    let is_beside = level.iter().any(|word| word.asked.name() == "direct");
    match other {
        Some(other) if other.text != direct && is_beside => {
            let message = format!(
                "`buffered={}` ({}) and `direct={}` ({}) contradict each other",
                word.text(),
                word.origin(),
                u8::from(other.text == "require"),
                other.origin
            );
            let place = Some((*word.place).clone());
            problems.push(FioProblem { message, place, hint: Some("say one of them".to_owned()) });
        }
        // The job's own `direct` over a `buffered` of all.
        Some(_) if !is_own && !is_beside => {}
        _ => {
            let origin = word.origin();
            said.spec.set("direct", direct, origin);
        }
    }
}

/// Rates of reads, writes and trims: of a mixed job each keeps its own.
fn rates(said: &mut Said, problems: &mut Problems) {
    let both = said.words.get("rate").zip(said.words.get("rate_iops"));
    let dropped = match both {
        Some(((_, true), (_, false))) => Some("rate_iops"),
        Some(((_, false), (_, true))) => Some("rate"),
        _ => None,
    };
    for name in ["rate", "rate_iops"].into_iter().filter(|name| Some(*name) != dropped) {
        let Some(word) = said.word(name) else { continue };
        let mut each = [0_u64; 3];
        let text = listed(word.text());
        let parts: Vec<&str> = text.split(',').collect();
        let mut at = 0;
        if parts.len() > 3 {
            let bad = BadValue::whole("reads, writes and trims are three", word.text());
            return said.complain(word, &bad, problems);
        }
        for (index, part) in parts.iter().enumerate() {
            let value = match part.trim() {
                "" => Ok(0),
                _ => read_number(part, said.base_of(name)),
            };
            match value {
                // Of one, all have it; of two, trims have the second.
                Ok(value) => each[index..].fill(value),
                Err(bad) => {
                    let bad = BadValue { at: bad.at.start + at..bad.at.end + at, ..bad };
                    return said.complain(word, &bad, problems);
                }
            }
            at += part.len() + 1;
        }
        let origin = word.origin();
        let text = |number: u64| if name == "rate" { write_bytes(number) } else { number.to_string() };
        let [of_reads, of_writes, of_trims] = each;
        let rate = match operations(&said.spec) {
            "read" => of_reads,
            // The trims come with the writes.
            "write" | "trimwrite" => of_writes,
            "trim" => of_trims,
            _ if of_reads == 0 && of_writes == 0 => 0,
            // Each direction keeps its own, or has none.
            _ => {
                said.spec.set(name, format!("{},{}", text(of_reads), text(of_writes)), origin);
                continue;
            }
        };
        said.spec.set(name, text(rate), origin);
    }
    if matches!(operations(&said.spec), "rw") {
        // One number is asked of reads and of writes, each by itself.
        for name in ["rate_min", "rate_iops_min"] {
            if let Some(least) = said.spec.options.get_mut(name).filter(|least| !least.text.contains(',')) {
                least.text = format!("{0},{0}", least.text);
            }
        }
    }
}

/// Priorities of single I/Os: five options of fio's are one of ours.
fn priorities(said: &mut Said, run: &mut Run, problems: &mut Problems) {
    let names = ["cmdprio_bssplit", "cmdprio_percentage", "cmdprio_class", "cmdprio", "cmdprio_hint"];
    let Some(word) = names.into_iter().find_map(|name| said.word(name)) else { return };
    let (name, origin) = (word.asked.name().to_owned(), word.origin());
    let Some(text) = super::priority::shares(said, problems) else { return };
    if !text.is_empty() {
        said.spec.set("cmdprio_bssplit", text, origin);
    } else if !names[..2].contains(&name.as_str()) {
        let note = format!("`{name}` has no effect without `cmdprio_percentage` or `cmdprio_bssplit`, as in fio");
        run.note(&said.section.name, note);
    }
}

/// The program of `ioengine=exec`, with its arguments.
fn exec_engine(said: &mut Said, run: &Run, problems: &mut Problems) {
    let is_exec = said.spec.options.get("ioengine").is_some_and(|engine| engine.text == "exec");
    if !is_exec {
        if let Some(name) = ["program", "arguments", "grace_time"].into_iter().find(|name| said.word(name).is_some()) {
            let message = format!("`{name}` belongs to `ioengine=exec`, and the engine is another");
            said.complain_about(name, message, Some("leave it out".to_owned()), problems);
        }
        return;
    }
    let Some(word) = said.word("program").filter(|word| !word.text().is_empty()) else {
        let message = "`ioengine=exec` has no `program`".to_owned();
        return said.complain_about("ioengine", message, Some("say what it runs".to_owned()), problems);
    };
    if !run.settings.allows_exec {
        let message = format!("`ioengine=exec` would run `{}`", word.text());
        let hint = Some("if that is meant, say `--allow-exec` on the command line".to_owned());
        return said.complain_about("program", message, hint, problems);
    }
    let runtime = said.spec.options.get("runtime").map_or("0s", |runtime| runtime.text.as_str());
    let seconds = trueio_model::units::parse_duration_ns(runtime).unwrap_or(0) / 1_000_000_000;
    let arguments = said.word("arguments").map_or("", Word::text);
    let arguments = arguments.replace("%r", &seconds.to_string()).replace("%n", &said.section.name);
    let text = format!("{} {arguments}", word.text());
    let origin = word.origin();
    said.spec.set("program", text.trim(), origin);
    if let Some(word) = said.word("grace_time") {
        match read_time_ns(word.text(), 1_000_000_000) {
            Ok(ns) => {
                let origin = word.origin();
                said.spec.set("grace_time", write_duration(ns), origin);
            }
            Err(bad) => said.complain(word, &bad, problems),
        }
    }
}

/// Commands run only if the command line allows it.
fn exec(said: &Said, run: &Run, problems: &mut Problems) {
    for name in ["exec_prerun", "exec_postrun"] {
        if said.word(name).is_some_and(|word| !word.text().is_empty()) && !run.settings.allows_exec {
            let message = format!("`{name}` would run a command of the job's");
            let hint = Some("if that is meant, say `--allow-exec` on the command line".to_owned());
            said.complain_about(name, message, hint, problems);
        }
    }
}

/// Whether a job waits for all that run beside it, or only for some of them, by our names.
fn waits_for(said: &Said, run: &Run, problems: &mut Problems) -> (bool, Vec<String>) {
    let Some(word) = said.word("wait_for") else { return (false, Vec::new()) };
    let name = word.text();
    if !run.together.is_empty() && run.together.iter().all(|other| other == name) {
        return (true, Vec::new());
    }
    if run.together.iter().any(|other| other == name) {
        // The last that were made: those before have their phases behind them.
        let of_name = |spec: &&JobSpec| spec.fio.as_ref().is_some_and(|fio| fio.name == name);
        return (false, run.jobs[run.phase_from..].iter().filter(of_name).map(|spec| spec.name.clone()).collect());
    }
    if !run.before.contains(name) {
        let message = format!("`wait_for={name}` names no job before this one");
        let hint = Some("jobs wait for jobs that stand above them".to_owned());
        said.complain_about("wait_for", message, hint, problems);
    }
    (false, Vec::new())
}
