//! The differences between the clones of a job: name, files, seed, delay, offset, processors.

use super::Word;
use super::lowering::{JobWords, Lowering, preset, writes};
use super::problem::Problems;
use super::refusals::Refused;
use super::value::{BadValue, KbBase, read_number, read_size, read_time_ns};
use std::collections::{BTreeMap, BTreeSet};
use trueio_job::option::Words;
use trueio_job::options::limits::rows::{IO_SIZE, LOOPS};
use trueio_job::options::process::rows::{CPUS_ALLOWED_POLICY, CpusPolicy};
use trueio_job::options::target::FILES_MAX as FILES_OF_JOB_MAX;
use trueio_job::options::target::rows::{FILE_APPEND, OFFSET_INCREMENT, REGION_NUMBER, SIZE};
use trueio_job::plan::plain;
use trueio_job::value::{Value, ValueKind, split_paths, write_bytes, write_duration, write_paths};
use trueio_model::{JobSpec, Origin, mix64};

/// Maximum number of files of all jobs together.
const FILES_MAX: u64 = 100_000;
/// Longest part of a job's name that becomes a part of ours, in bytes.
const NAME_BYTES_MAX: usize = 80;

/// Returns a unique name of permitted characters. `names` counts the requests for each name.
pub(super) fn unique_name(fios: &str, clone: Option<u64>, names: &mut BTreeMap<String, u64>) -> String {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut plain: String = fios.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    while plain.len() > NAME_BYTES_MAX {
        plain.pop();
    }
    let plain = plain.trim_start_matches(['.', '_']);
    let plain = if plain.is_empty() { "job" } else { plain };
    let wanted = clone.map_or_else(|| plain.to_owned(), |clone| format!("{plain}.{clone}"));
    loop {
        let count = names.entry(wanted.clone()).or_default();
        *count += 1;
        if *count == 1 {
            return wanted;
        }
        let name = format!("{wanted}-{count}");
        // A job may have that name.
        if !names.contains_key(&name) {
            names.insert(name.clone(), 1);
            return name;
        }
    }
}

/// Sets directory and files; false if reading must end.
pub(super) fn files(
    job: &JobWords,
    clone: u64,
    spec: &mut JobSpec,
    lowering: &mut Lowering,
    problems: &mut Problems,
) -> bool {
    if let Some(word) = directory(job, lowering) {
        set_in_turn("directory", word, clone, job, spec, problems);
    }
    if let Some(word) = job.word("read_iolog") {
        set_in_turn("read_iolog", word, clone, job, spec, problems);
        // As in fio, they have no effect: the log names the files.
        for name in ["filename", "nrfiles"].into_iter().filter(|name| job.word(name).is_some()) {
            lowering.note(&job.section.name, format!("`{name}` has no effect: the log names the files (`read_iolog`)"));
        }
        return true;
    }
    let Some(nrfiles) = job.count("nrfiles", problems) else { return true };
    if job.word("nrfiles").is_some_and(|word| word.text() == "0") {
        lowering.remark("`nrfiles=0` is 1, as in fio".to_owned());
    }
    if let Some(engine) = job.engine().filter(|engine| engine.works_on_names()) {
        // Such a job creates its files in a separate directory; fio would create them next to the user's.
        if let Some(word) = job.word("nrfiles") {
            spec.set("nrfiles", nrfiles.to_string(), word.origin());
        }
        for name in ["filename", "filename_format"].into_iter().filter(|name| job.word(name).is_some()) {
            lowering
                .note(&job.section.name, format!("`{name}` has no effect: `{}` creates its own files", engine.name()));
        }
        return true;
    }
    if let Some(word) = job.word("opendir").filter(|word| !word.text().is_empty()) {
        return files_below(job, word, spec, lowering, problems);
    }
    if job.word("filename").is_some() {
        named_files(job, nrfiles, spec, lowering, problems);
        return true;
    }
    if nrfiles > FILES_OF_JOB_MAX {
        let message = format!("a job has at most {FILES_OF_JOB_MAX} files");
        job.complain_about(Refused::TooMuch, "nrfiles", message, None, problems);
        return false;
    }
    lowering.files = lowering.files.saturating_add(nrfiles);
    if lowering.files > FILES_MAX {
        let message = format!("the jobs have more than {FILES_MAX} files together");
        job.complain_about(Refused::TooMuch, "nrfiles", message, None, problems);
        return false;
    }
    let format = job.word("filename_format").map_or("$jobname.$jobnum.$filenum", |word| word.text());
    let client = lowering.settings.client.as_deref();
    // Clients of one server may share a directory.
    let is_unique = client.is_some() && job.word("directory").is_some_and(|word| !word.text().is_empty());
    let is_unique = is_unique && job.word("unique_filename").is_none_or(|word| word.text() != "0");
    let before = client.filter(|_| is_unique).map_or(String::new(), |client| format!("{client}."));
    let client = client.unwrap_or_default();
    let name = |number| before.clone() + &format_name(format, &job.section.title, clone, number, client);
    let mut paths: Vec<String> = (0..nrfiles).map(name).collect();
    let count = paths.len() as u64;
    paths.dedup();
    if paths.len() == 1 && count > 1 {
        share_one_file(&job.section.name, count, spec, lowering);
    }
    match ValueKind::Paths.read(&write_paths(&paths)) {
        Ok(_) => spec.set("filename", write_paths(&paths), preset()),
        Err(reason) => {
            let message = format!("`filename_format`: {reason}");
            job.complain_about(Refused::FilenameFormat, "filename_format", message, None, problems);
        }
    }
    true
}

/// Sets an option of a list of paths of which each clone has one, in turn. As in fio, a path may be in the list several times.
fn set_in_turn(name: &str, word: &Word, clone: u64, job: &JobWords, spec: &mut JobSpec, problems: &mut Problems) {
    let paths = split_paths(word.text());
    match paths.iter().find_map(|path| ValueKind::Path.read(path).err()) {
        Some(message) => job.complain(word, &BadValue::whole(message, word.text()), problems),
        None => spec.set(name, paths[clone as usize % paths.len()].clone(), word.origin()),
    }
}

/// Returns the word that sets the directory. On a command line fio puts a directory in front of the names that follow it only.
fn directory<'a>(job: &'a JobWords, lowering: &mut Lowering) -> Option<&'a Word> {
    let last = job.word("directory")?;
    let names = job.all_words("filename");
    let is_after = |word: &&Word| names.iter().all(|name| precedes(name, word));
    if names.is_empty() || job.word("read_iolog").is_some() || !is_after(&last) {
        return Some(last);
    }
    lowering.note(
        &job.section.name,
        "`directory` has no effect on a `filename` before it on the command line, as in fio".to_owned(),
    );
    job.all_words("directory").into_iter().rev().find(|word| !is_after(word))
}

/// Returns true if `one` is before `other` on the command line.
fn precedes(one: &Word, other: &Word) -> bool {
    let (one, other) = (&one.position, &other.position);
    one.path.is_none() && other.path.is_none() && one.line < other.line
}

/// Sets the files that `filename` names.
fn named_files(job: &JobWords, nrfiles: u64, spec: &mut JobSpec, lowering: &mut Lowering, problems: &mut Problems) {
    let Some(last) = job.word("filename") else { return };
    // Each word adds its files, also one of a job to those of `[global]`.
    let mut named = Vec::new();
    for word in job.all_words("filename") {
        let paths = split_paths(word.text());
        let mut seen = BTreeSet::new();
        let distinct: Vec<String> = paths.iter().filter(|path| seen.insert(plain(path))).cloned().collect();
        if let Err(message) = ValueKind::Paths.read(&write_paths(&distinct)) {
            job.complain(word, &BadValue::whole(message, word.text()), problems);
        }
        named.extend(paths);
    }
    let nrfiles_word = job.word("nrfiles").filter(|word| precedes(last, word));
    if nrfiles_word.is_some() && nrfiles < named.len() as u64 {
        let sentence = format!(
            "the first {nrfiles} of the {} files of `filename` are used, as in fio: `nrfiles` follows it",
            named.len()
        );
        lowering.note(&job.section.name, sentence);
        named.truncate(nrfiles as usize);
    }
    if let Some(directory) = spec.options.get("directory").map(|directory| directory.text.clone()) {
        below(&directory, &mut named, &job.section.name, lowering);
    }
    let count = named.len();
    if let Some(note) = once_each(&mut named, spec) {
        lowering.note(&job.section.name, note);
    }
    spec.set("filename", write_paths(&named), last.origin());
    if nrfiles > 1 && nrfiles != count as u64 {
        let sentence = "`nrfiles` has no effect: `filename` names the files".to_owned();
        lowering.note(&job.section.name, sentence);
    }
}

/// Makes absolute names relative to the job's directory, as fio does: it puts the directory in front of every name.
fn below(directory: &str, named: &mut [String], job: &str, lowering: &mut Lowering) {
    if directory.is_empty() {
        return;
    }
    for name in named.iter_mut().filter(|name| name.starts_with('/')) {
        let relative = name.trim_start_matches('/').to_owned();
        lowering
            .note(job, format!("`filename={name}` is `{directory}/{relative}`: `directory` precedes it, as in fio"));
        *name = relative;
    }
}

/// Leaves each file in a list of names once, and repeats those that are named several times; returns a note if there are any. As in
/// fio, each name is a file with its part of the size, so the files are that much smaller, and as much is transferred.
pub(super) fn once_each(names: &mut Vec<String>, spec: &mut JobSpec) -> Option<String> {
    let count = names.len() as u64;
    let mut seen = BTreeSet::new();
    // (`x` and `./x` are one file.)
    names.retain(|name| seen.insert(plain(name)));
    let distinct = names.len() as u64;
    if distinct == count {
        return None;
    }
    let of = |reason: &str| Origin::Derived { reason: reason.to_owned() };
    let bytes = |name: &str| read_size(&spec.options.get(name)?.text, KbBase::Binary).ok();
    match bytes(SIZE.name) {
        Some(size) if !spec.options.contains_key("filesize") && size >= count => {
            if !spec.options.contains_key(IO_SIZE.name) {
                spec.set(IO_SIZE.name, write_bytes(size), of("the `size` of all names of files"));
            }
            spec.set(SIZE.name, write_bytes(size / count * distinct), of("the part of files that have several names"));
        }
        _ if !spec.options.contains_key(IO_SIZE.name) && count.is_multiple_of(distinct) => {
            let loops = bytes(LOOPS.name).unwrap_or(1).saturating_mul(count / distinct);
            spec.set(LOOPS.name, loops.to_string(), of("each name of a file is a pass"));
        }
        // Without a size, files of several lengths cannot be repeated each by its number of names.
        _ if !spec.options.contains_key(IO_SIZE.name) => {
            let files = "fewer files: each is read or written once, where fio uses it by each name";
            return Some(format!("`filename` has {count} names of {files}; `size` sets the amount"));
        }
        _ => {}
    }
    let files = if distinct == 1 { "one file: it is" } else { "fewer files: they are" };
    Some(format!("`filename` has {count} names of {files} used again, as in fio"))
}

/// Divides the size of `count` files that have one name, as in fio: each is that part of one file, and is used in turn.
fn share_one_file(job: &str, count: u64, spec: &mut JobSpec, lowering: &mut Lowering) {
    lowering
        .note(job, format!("`filename_format` gives {count} files one name: they are one file, used {count} times"));
    let Some(size) = spec.options.get("size").cloned() else { return };
    let Ok(bytes) = read_size(&size.text, KbBase::Binary) else { return };
    let of = |reason: &str| Origin::Derived { reason: reason.to_owned() };
    if !spec.options.contains_key("filesize") && bytes >= count {
        spec.set("size", write_bytes(bytes / count), of("the part of one of the files that have one name"));
        if !spec.options.contains_key("io_size") {
            spec.set("io_size", write_bytes(bytes), of("the `size` of all files that have one name"));
        }
    }
}

/// Sets the files of `opendir`; false if reading must end.
fn files_below(
    job: &JobWords,
    word: &Word,
    spec: &mut JobSpec,
    lowering: &mut Lowering,
    problems: &mut Problems,
) -> bool {
    let mut complain = |kind: Refused, message: String| {
        job.complain_about(kind, "opendir", message, kind.hint(), problems);
        true
    };
    if writes(spec) {
        let message = "`opendir` names no file, and only files that are named are written".to_owned();
        return complain(Refused::OpendirWrites, message);
    }
    if let Some(name) = ["filename", "directory"].into_iter().find(|name| job.word(name).is_some()) {
        let message = format!("`opendir` and `{name}` both set the files");
        return complain(Refused::OpendirAndNames, message);
    }
    let (files, empty_count) = match lowering.around.files_below(word.text()) {
        Ok(found) => found,
        Err(reason) => {
            return complain(Refused::OpendirEmpty, format!("`opendir={}`: {reason}", word.text()));
        }
    };
    if empty_count > 0 {
        lowering.note(&job.section.name, format!("{empty_count} files below `{}` are empty: not read", word.text()));
    }
    if files.is_empty() {
        return complain(Refused::OpendirEmpty, format!("no file below `{}` holds anything", word.text()));
    }
    lowering.files = lowering.files.saturating_add(files.len() as u64);
    if lowering.files > FILES_MAX {
        complain(Refused::TooMuch, format!("the jobs have more than {FILES_MAX} files together"));
        return false;
    }
    if job.word("nrfiles").is_some() {
        lowering.note(&job.section.name, "`nrfiles` has no effect: `opendir` names the files".to_owned());
    }
    spec.set("filename", write_paths(&files), word.origin());
    true
}

/// Returns the name of a generated file.
fn format_name(format: &str, job: &str, clone: u64, number: u64, client: &str) -> String {
    let mut out = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let words = [
            ("jobname", job.to_owned()),
            ("jobnum", clone.to_string()),
            ("filenum", number.to_string()),
            ("clientuid", client.to_owned()),
        ];
        let is_here = |word: &str| rest.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
        match words.into_iter().find(|(word, _)| is_here(word)) {
            Some((word, text)) => {
                out.push_str(&text);
                rest = &rest[word.len()..];
            }
            None => out.push('$'),
        }
    }
    out.push_str(rest);
    out
}

/// Sets what differs from clone to clone, except the files. `index` is the position of the clone among all jobs.
pub(super) fn of_clone(job: &JobWords, clone: u64, index: u64, spec: &mut JobSpec, problems: &mut Problems) {
    if let Some(word) = job.word("randseed") {
        match translate_seed(word.text()) {
            Ok(seed) => {
                let seed = if clone == 0 { seed } else { mix64(seed.wrapping_add(clone)) };
                spec.options.remove("randrepeat");
                spec.set("randseed", seed.to_string(), word.origin());
            }
            Err(message) => job.complain(word, &BadValue::whole(message, word.text()), problems),
        }
    }
    if let Some(word) = job.word("startdelay") {
        let seed = spec.options.get("randseed").and_then(|seed| translate_seed(&seed.text).ok());
        match start_delay_ns(word.text(), seed.unwrap_or(index)) {
            Ok(0) => {}
            Ok(ns) => spec.set("startdelay", write_duration(ns), word.origin()),
            Err(bad) => job.complain(word, &bad, problems),
        }
    }
    // (With `file_append`, the region begins at the end of the file, and a log has its own offsets.)
    let has_offsets = FILE_APPEND.value_in(spec) || job.word("read_iolog").is_some();
    if let Some(word) = job.word(OFFSET_INCREMENT.name).filter(|_| !has_offsets)
        && let Some(text) = job.by_row(OFFSET_INCREMENT.name, problems)
    {
        spec.set(OFFSET_INCREMENT.name, text, word.origin());
        spec.set(REGION_NUMBER.name, clone.to_string(), word.origin());
    }
    processors(job, index, spec, problems);
}

fn translate_seed(text: &str) -> Result<u64, String> {
    // As in fio, a negative number is that much less than 2^64, and a number may have a suffix.
    if let Ok(seed) = text.parse::<i64>() {
        return Ok(seed as u64);
    }
    if let Ok(seed) = read_number(text, KbBase::Binary) {
        return Ok(seed);
    }
    match ValueKind::Seed.read(text)? {
        Value::Number(seed) => Ok(seed),
        _ => Err(format!("`{text}` is not a seed")),
    }
}

/// Returns a delay; a range is drawn from by the seed.
fn start_delay_ns(text: &str, seed: u64) -> Result<u64, BadValue> {
    const SECOND: u64 = 1_000_000_000;
    // As in fio, the first of these that the text has separates a range; a third number is of no effect.
    let separator = [',', ':', '-'].into_iter().find(|separator| text.contains(*separator));
    let mut parts = separator.map_or(vec![text], |separator| text.split(separator).collect()).into_iter();
    let low_text = parts.next().unwrap_or_default();
    let low = read_time_ns(low_text, SECOND)?;
    let Some(high_text) = parts.next().filter(|text| !text.is_empty()) else { return Ok(low) };
    let high = read_time_ns(high_text, SECOND)
        .map_err(|bad| BadValue { at: bad.at.start + low_text.len() + 1..bad.at.end + low_text.len() + 1, ..bad })?;
    let (low, high) = (low.min(high), low.max(high));
    let drawn = mix64(mix64(seed ^ 0x6465_6c61_7973));
    let span = u128::from(high - low) + 1;
    Ok(low + ((u128::from(drawn) * span) >> 64) as u64)
}

/// Sets the processors of the job at a position of the run, by which `cpus_allowed_policy=split` counts, as in fio.
fn processors(job: &JobWords, index: u64, spec: &mut JobSpec, problems: &mut Problems) {
    let from_mask = |word: &Word| -> Result<Vec<u32>, BadValue> {
        let mask = read_number(word.text(), KbBase::Binary)?;
        let cpus: Vec<u32> = (0..64).filter(|bit| mask >> bit & 1 == 1).collect();
        if cpus.is_empty() { Err(BadValue::whole("the mask names no processor", word.text())) } else { Ok(cpus) }
    };
    let from_list = |word: &Word| match ValueKind::Cpus.read(word.text()) {
        Ok(Value::Cpus(cpus)) => Ok(cpus),
        Ok(_) => Ok(Vec::new()),
        Err(message) => Err(BadValue::whole(message, word.text())),
    };
    // As in fio, the last of the two applies.
    let words = job.section.globals.iter().chain(&job.section.words);
    let Some(word) = words.rev().find(|word| ["cpus_allowed", "cpumask"].contains(&word.option.name())) else { return };
    let cpus = if word.option.name() == "cpumask" { from_mask(word) } else { from_list(word) };
    let cpus = match cpus {
        Ok(cpus) if !cpus.is_empty() => cpus,
        Ok(_) => return,
        Err(bad) => return job.complain(word, &bad, problems),
    };
    let policy = job.word("cpus_allowed_policy").and_then(|word| CpusPolicy::parse(word.text()));
    let text = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let (list, policy) = match policy {
        Some(CpusPolicy::Split) => (text(&[cpus[index as usize % cpus.len()]]), CpusPolicy::Split),
        Some(CpusPolicy::Shared) | None => (text(&cpus), CpusPolicy::Shared),
    };
    spec.set("cpus_allowed", list, word.origin());
    let origin = job.word("cpus_allowed_policy").map_or_else(preset, Word::origin);
    CPUS_ALLOWED_POLICY.set_in(spec, policy, origin);
}
