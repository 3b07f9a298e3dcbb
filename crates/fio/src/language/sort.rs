//! Sorts the words of a section by what the language does with each: it sets a row, applies a rule, keeps the value for
//! fio's outputs, drops it with a note, or refuses it.

use super::lowering::{JobWords, Lowering, preset};
use super::number;
use super::options::{Fate, FioOption, Kind};
use super::problem::{FioProblem, Problems};
use super::refusals::Refused;
use super::value::{self, BadValue, KbBase, drawn_files, normal, read_number, read_time_ns, translate};
use super::{Section, Word, pattern};
use std::collections::BTreeMap;
use trueio_job::option::{FioDefault, FioUse, OptionRow, Words};
use trueio_job::options::durability::rows::Invalidate;
use trueio_job::options::limits::rows::IO_SIZE;
use trueio_job::options::pattern::rows::{Direction, Operations, RW, ZONESIZE, ZONESKIP};
use trueio_job::options::target::rows::{FILESIZE, SIZE};
use trueio_job::table::{TABLE, overlay};
use trueio_job::value::{EXTENT_BYTES_MAX, write_bytes, zones};
use trueio_model::{JobSpec, SpecValue, bounded_switch_of, switch_of};

/// Returns a job of a section with fio's defaults only.
fn spec_of_presets(section: &Section) -> JobSpec {
    let mut spec = JobSpec::new(section.name.clone());
    for row in TABLE {
        if let FioDefault::Preset(text) = row.fio_default {
            spec.set(row.name, text, preset());
        }
    }
    spec
}

/// Sorts the words of a section; `None`: a problem was added, and the section is not read further.
pub(super) fn sort<'a>(section: &'a Section, lowering: &mut Lowering, problems: &mut Problems) -> Option<JobWords<'a>> {
    let mut spec = spec_of_presets(section);
    let mut words: BTreeMap<&'static str, (&Word, bool)> = BTreeMap::new();
    let mut bases = BTreeMap::new();
    let mut base = KbBase::Binary;
    let mut share_of_file = None;
    let mut skipped_zones = None;
    for (level, is_own) in [(&*section.globals, false), (&section.words, true)] {
        let mut level_rows = LevelRows::default();
        // In a job file fio reads `kb_base` before any size of its section; on the command line it holds for what follows it.
        let mut of_file = None;
        for word in level.iter().filter(|word| word.position.path.is_some() && word.option.name() == "kb_base") {
            of_file = Some(kb_base(word, problems)?);
        }
        base = of_file.unwrap_or(base);
        for word in level {
            if word.position.path.is_none() && word.option.name() == "kb_base" {
                base = kb_base(word, problems)?;
            }
            let option = word.option;
            if let Some(why) = word.why_less() {
                let (name, typed, used) = (word.spelled(), word.typed(), word.text());
                let as_there = match number::is_whole_time_only(option, used) {
                    true => ", where fio reads microseconds",
                    false => ", as in fio",
                };
                problems.warn(format!("job `{}`: `{name}={typed}` is read as `{used}`{as_there}: {why}", section.name));
            }
            if let Some(problem) = without_value(word).or_else(|| out_of_bounds(word, base)) {
                problems.push(problem);
                continue;
            }
            if let Some((kind, message)) = foreign(word) {
                problems.add(kind, (*word.position).clone(), message, kind.hint());
                continue;
            }
            match option.fate() {
                Fate::Row => level_rows.take(word, &section.name, base, lowering, problems),
                Fate::Rule(_) => {
                    refuse_empty_name(word, problems);
                    check(option, word, base, problems);
                    words.insert(option.name(), (word, is_own));
                    bases.insert(option.name(), base);
                }
                Fate::Output(_) => check(option, word, base, problems),
                Fate::NoEffect(reason) => {
                    check(option, word, base, problems);
                    lowering.remark(format!("`{}` has no effect: {reason}", word.spelled()));
                }
                Fate::Only { values, reason, instead } => {
                    if !word.text().split(',').all(|part| values.contains(&part.trim())) {
                        refuse(word, reason, instead, problems);
                    }
                }
                Fate::Refused { reason, instead } => {
                    let is_off =
                        word.text() == "0" && !matches!(option.kind(), Kind::Text(_) | Kind::Size | Kind::Range);
                    if !is_off {
                        refuse(word, reason, instead, problems);
                    }
                }
            }
        }
        let LevelRows { mut values, has_no_size, share_of_file: share, skipped_zones: skipped } = level_rows;
        skipped_zones = skipped.or_else(|| skipped_zones.filter(|_| !values.contains_key(ZONESKIP.name)));
        share_of_file = share.or_else(|| share_of_file.filter(|_| !values.contains_key(FILESIZE.name)));
        // fio keeps all three, and applies the most specific one.
        let sizes: Vec<&str> =
            ["bssplit", "bsrange", "bs"].into_iter().filter(|name| values.contains_key(name)).collect();
        if let [counts, others @ ..] = &sizes[..] {
            for other in others {
                values.remove(other);
                lowering.remark(format!("`{other}` has no effect next to `{counts}`, as in fio"));
            }
        }
        last_mix(level, &mut values, lowering);
        overlay(&mut spec, &values);
        if has_no_size {
            spec.options.remove(SIZE.name);
        }
    }
    if let Some(word) = share_of_file {
        spec.options.remove(FILESIZE.name);
        percent_of_no_file(word, &spec, &section.name, lowering, problems);
    }
    if let Some(word) = skipped_zones {
        skip_zones(word, &mut spec, problems);
    }
    Some(JobWords { section, bases, words, spec })
}

/// Sets `zoneskip` to a number of zones (`2z`), whose length is `zonesize`.
fn skip_zones(word: &Word, spec: &mut JobSpec, problems: &mut Problems) {
    let bytes = zones(word.text()).zip(ZONESIZE.value_in(spec)).and_then(|(count, bytes)| count.checked_mul(bytes));
    match bytes.filter(|bytes| *bytes <= EXTENT_BYTES_MAX) {
        Some(bytes) => spec.set(ZONESKIP.name, write_bytes(bytes), word.origin()),
        None => {
            let message = format!("`zoneskip={}` counts zones, whose length is not set", word.text());
            let hint = Some("set `zonesize`, or `zoneskip` to a size in bytes".to_owned());
            problems.add(Refused::Value, word.value_position(&(0..word.text().len())), message, hint);
        }
    }
}

/// Returns the problem of a word without the value that its option needs.
fn without_value(word: &Word) -> Option<FioProblem> {
    lacks_value(word).then(|| {
        let name = word.spelled();
        let alone = if word.option.may_stand_alone() { format!("`{name}`, or ") } else { String::new() };
        FioProblem {
            kind: Refused::ValueMissing,
            message: format!("`{name}=` has no value"),
            position: Some((*word.position).clone()),
            hint: Some(format!("write {alone}`{name}=VALUE`")),
        }
    })
}

/// Returns the problem of a number outside of its bounds in fio.
fn out_of_bounds(word: &Word, base: KbBase) -> Option<FioProblem> {
    let used = word.text();
    let message = number::out_of_bounds(word.option.name(), used, base)?;
    let position = Some(word.value_position(&(0..used.len())));
    Some(FioProblem { kind: Refused::Value, message: format!("`{}`: {message}", word.spelled()), position, hint: None })
}

/// Returns true for an `=` without a value, which fio refuses; in a job file it accepts it of logs and of placement identifiers.
fn lacks_value(word: &Word) -> bool {
    let (name, is_in_file) = (word.option.name(), word.position.path.is_some());
    let is_log = name.starts_with("write_") && name.ends_with("_log");
    let is_empty = word.value.as_deref().is_some_and(|value| value.trim().is_empty());
    is_empty && name != "name" && !(is_in_file && (is_log || name == "plids"))
}

/// Refuses an empty name.
fn refuse_empty_name(word: &Word, problems: &mut Problems) {
    if word.option.name() == "name" && word.text().is_empty() {
        let kind = Refused::NoName;
        problems.add(kind, (*word.position).clone(), "`name` is empty, and a job has a name", kind.hint());
    }
}

/// The options of `[global]`, or of a job, that set a row.
#[derive(Default)]
struct LevelRows<'a> {
    values: BTreeMap<&'static str, SpecValue>,
    /// The last `filesize`, if it is a percentage.
    share_of_file: Option<&'a Word>,
    /// The last `size` is 0, fio's default: as far as the files go.
    has_no_size: bool,
    /// The last `zoneskip`, if it is a number of zones.
    skipped_zones: Option<&'a Word>,
}

impl<'a> LevelRows<'a> {
    /// Takes a word that sets a row, or adds a problem.
    fn take(&mut self, word: &'a Word, section: &str, base: KbBase, lowering: &mut Lowering, problems: &mut Problems) {
        let option = word.option;
        let Some(row) = option.row() else { return };
        if let Some(problem) = special(option, word) {
            problems.push(problem);
            return;
        }
        // fio's default: as much as `size`.
        if option.name() == IO_SIZE.name && is_zero(word.text()) {
            self.values.remove(IO_SIZE.name);
            lowering.remark("`io_size=0` is as much as `size`, as in fio".to_owned());
            return;
        }
        if option.name() == SIZE.name {
            self.values.remove(SIZE.name);
            self.has_no_size = is_zero(word.text());
            if self.has_no_size {
                return;
            }
        }
        if option.name() == ZONESKIP.name {
            self.skipped_zones = Some(word).filter(|word| zones(word.text()).is_some());
            if self.skipped_zones.is_some() {
                self.values.remove(ZONESKIP.name);
                return;
            }
        }
        if option.name() == FILESIZE.name {
            self.share_of_file = Some(word).filter(|word| word.text().contains('%'));
            if self.share_of_file.is_some() {
                self.values.remove(FILESIZE.name);
                return;
            }
        }
        let expanded = match option.name() {
            "buffer_pattern" | "verify_pattern" if word.text().contains('\'') => {
                match pattern::with_files(word, section, lowering, problems) {
                    Some(word) => Some(word),
                    None => return,
                }
            }
            "mem" => without_file(word, section, lowering),
            "flow" => without_sign(word, section, lowering),
            "bssplit" => value::drawn_split(word.text(), base).map(|drawn| {
                lowering.note(section, format!("`bssplit={}` is drawn as `{drawn}`, as in fio", word.typed()));
                word.with_value(drawn)
            }),
            "size" => whole_target(word, section, lowering),
            "filesize" => number::file_range(word.text()).map(|range| {
                lowering.note(section, format!("`filesize={}` is read as `{range}`, as in fio", word.typed()));
                word.with_value(range)
            }),
            _ => clamp(row, word, section, base, lowering),
        };
        take(row, expanded.as_ref().unwrap_or(word), section, base, &mut self.values, problems);
    }
}

/// Keeps the last of `rwmixread` and `rwmixwrite`, as fio does where they do not sum to 100.
fn last_mix(level: &[Word], values: &mut BTreeMap<&'static str, SpecValue>, lowering: &mut Lowering) {
    let share = |name: &str| values.get(name).and_then(|value| value.text.parse::<u64>().ok());
    let (Some(reads), Some(writes)) = (share("rwmixread"), share("rwmixwrite")) else { return };
    let names = ["rwmixread", "rwmixwrite"];
    let last = level.iter().rev().find_map(|word| names.into_iter().find(|name| word.option.name() == *name));
    if reads + writes != 100
        && let Some(last) = last
    {
        let other = if last == names[0] { names[1] } else { names[0] };
        values.remove(other);
        lowering.remark(format!("`{other}` has no effect next to `{last}`, as in fio: they do not sum to 100"));
    }
}

/// Applies a percentage as `filesize`. fio reads it as a size of nearly 2^64 bytes, which `size` limits in a job that writes;
/// any other job fails, or fills the disk.
fn percent_of_no_file(word: &Word, spec: &JobSpec, job: &str, lowering: &mut Lowering, problems: &mut Problems) {
    let shown = format!("filesize={}", word.text());
    if spec.options.contains_key(SIZE.name) && RW.value_in(spec).direction == Direction::Write {
        return lowering.note(job, format!("`{shown}` has no effect next to `size`: `filesize` has no percentages"));
    }
    let message = format!("`{shown}`: `filesize` has no percentages; fio reads a size of nearly 2^64 bytes");
    let hint = Some("set `size` to the percentage, or `filesize` to a number of bytes".to_owned());
    problems.add(Refused::Value, word.value_position(&(0..word.text().len())), message, hint);
}

/// Returns true for a size of 0 in any unit.
fn is_zero(text: &str) -> bool {
    read_number(text.trim_end_matches('%'), KbBase::Binary) == Ok(0)
}

fn kb_base(word: &Word, problems: &mut Problems) -> Option<KbBase> {
    match word.text() {
        "1024" => Some(KbBase::Binary),
        "1000" => Some(KbBase::Decimal),
        other => {
            let message = format!("`kb_base` is 1000 or 1024, not `{other}`");
            problems.add(Refused::Value, word.value_position(&(0..other.len())), message, None);
            None
        }
    }
}

fn refuse(word: &Word, reason: &str, instead: &str, problems: &mut Problems) {
    let shown = match word.text() {
        "" => word.spelled().to_owned(),
        text => format!("{}={text}", word.spelled()),
    };
    let message = format!("`{shown}` is not done here: {reason}");
    problems.add(Refused::Option, (*word.position).clone(), message, Some(format!("instead: {instead}")));
}

/// Returns why an option of the table is refused in fio's language, where a file may come from a stranger: it starts a
/// program, contacts an address, or permits to destroy.
fn foreign(word: &Word) -> Option<(Refused, String)> {
    let row = word.option.row()?;
    match row.fio {
        FioUse::Absent => Some((Refused::NotFios, format!("`{}` is not an option of fio's language", row.name))),
        FioUse::CommandLine if word.position.path.is_some() => {
            Some((Refused::PermitsInFile, format!("`{}` in a job file permits nothing", row.name)))
        }
        _ => None,
    }
}

/// Words of rows that fio does not have.
const NOT_FIOS: [(&str, &str); 2] = [("log_window_value", "2"), ("zonemode", "0")];

/// Reads a value for a row of the option table.
fn take(
    row: &'static OptionRow,
    word: &Word,
    job: &str,
    base: KbBase,
    values: &mut BTreeMap<&'static str, SpecValue>,
    problems: &mut Problems,
) {
    let drawn = match row.name {
        "file_service_type" => drawn_files(word.text()),
        "random_distribution" => normal(word.text()),
        _ => None,
    };
    let text = match (row.name, word.text()) {
        ("rw", text) if text.contains(':') => {
            let (rw, steps) = text.split_once(':').unwrap_or((text, ""));
            if let Err(bad) = take_steps(rw, steps, word, base, values) {
                let at = word.value_position(&(rw.len() + 1..text.len()));
                problems.add(Refused::Value, at, format!("`rw`: {}", bad.message), None);
            }
            rw
        }
        ("file_service_type", _) if drawn.is_some() => {
            values.remove("file_service_ios");
            drawn.as_deref().expect("it was drawn")
        }
        ("random_distribution", text) => drawn.as_deref().unwrap_or(text),
        ("file_service_type", text) => {
            // This word replaces an earlier one, its number of I/Os included.
            values.remove("file_service_ios");
            let (name, ios) = text.split_once(':').map_or((text, None), |(name, ios)| (name, Some(ios)));
            match ios.map(|ios| read_number(ios, base)) {
                // As in fio, 0 means to the end of the file.
                Some(Ok(0)) if name == "roundrobin" => "sequential",
                // Each file is used to its end, whatever the number.
                Some(Ok(_)) if name == "sequential" => name,
                Some(Ok(ios)) => {
                    let text = ios.max(1).to_string();
                    values.insert("file_service_ios", SpecValue { text, origin: word.origin() });
                    name
                }
                Some(Err(bad)) => {
                    let at = word.value_position(&(name.len() + 1..text.len()));
                    return problems.add(Refused::Value, at, format!("`file_service_type`: {}", bad.message), None);
                }
                None => name,
            }
        }
        // fio reads 0 as 1.
        ("loops" | "thinktime_blocks" | "rate_cycle" | "replay_scale", "0") => "1",
        // The least span, in milliseconds.
        ("bwavgtime" | "iopsavgtime", "0") => "1",
        ("invalidate", text) if text.is_empty() || bounded_switch_of(text) == Some(true) => Invalidate::EachPass.word(),
        // fio probes whether the kernel supports READ and WRITE; every kernel with io_uring that is still maintained does.
        ("nonvectored", "-1") => "1",
        // A log without a name has the name of the job.
        (name, "") if name.starts_with("write_") && !job.is_empty() => job,
        (_, text) => text,
    };
    let not_fios = || BadValue::whole(format!("`{text}` is no word of fio's"), text);
    match translate(row, text, base)
        .and_then(|read| if NOT_FIOS.contains(&(row.name, text)) { Err(not_fios()) } else { Ok(read) })
    {
        Ok(text) => {
            values.insert(row.name, SpecValue { text, origin: word.origin() });
        }
        Err(bad) => {
            let hint = value::hint(row, text, &bad.message);
            let message = format!("`{}`: {}", word.spelled(), bad.message);
            problems.add(Refused::Value, word.value_position(&bad.at), message, hint);
        }
    }
}

/// Reads what follows `rw`: the number of I/Os at a random offset, or the bytes that a sequential job skips.
fn take_steps(
    rw: &str,
    steps: &str,
    word: &Word,
    base: KbBase,
    values: &mut BTreeMap<&'static str, SpecValue>,
) -> Result<(), BadValue> {
    let (name, text) = match Operations::parse(rw).is_some_and(|operations| operations.is_random) {
        true => ("random_every", read_number(steps, base)?.max(1).to_string()),
        false => {
            let (sign, number) = steps.strip_prefix('-').map_or(("", steps), |number| ("-", number));
            ("sequential_skip", format!("{sign}{}", read_number(number, base)?))
        }
    };
    values.insert(name, SpecValue { text, origin: word.origin() });
    Ok(())
}

/// Returns the reason to refuse a value that fio accepts and that the row would only call unknown.
fn special(option: FioOption, word: &Word) -> Option<FioProblem> {
    let text = word.text();
    let (kind, message) = match option.name() {
        "mem" if text.starts_with("mmapshared:") => (
            Refused::SharedBuffers,
            format!(
                "`{}={text}` shares the buffers with a file: the file loses its content, and writing it back adds I/O \
                 to what is measured",
                word.spelled()
            ),
        ),
        _ => return None,
    };
    let position = Some(word.value_position(&(0..text.len())));
    Some(FioProblem { kind, message, position, hint: Some(format!("instead: {}", kind.row().instead)) })
}

/// Returns a word without the file from which fio maps buffers; `None`: the word names no file.
///
/// With `mmap:PATH` fio's mapping is private: pages that are written never reach the file, which is only truncated to
/// their length. With `mmaphuge:PATH` the file provides huge pages, for which mmap(2) has a flag. Neither needs the file,
/// so it is not touched.
fn without_file(word: &Word, section: &str, lowering: &mut Lowering) -> Option<Word> {
    let (kind, path) = word.text().split_once(':').filter(|(_, path)| !path.is_empty())?;
    let pages = match kind {
        "mmap" => "buffers",
        "mmaphuge" => "huge pages",
        _ => return None,
    };
    let name = word.spelled();
    lowering.note(
        section,
        format!("`{name}={kind}:{path}`: {pages} are mapped without a file, and `{path}` is not touched"),
    );
    Some(word.with_value(kind.to_owned()))
}

/// Returns the weight of a negative `flow` without its sign, which no fio since 3.28 reads; `None`: it has none.
fn without_sign(word: &Word, section: &str, lowering: &mut Lowering) -> Option<Word> {
    let weight = word.text().strip_prefix('-')?;
    lowering.note(section, format!("`flow=-{weight}` is the weight {weight}: weights have no sign"));
    Some(word.with_value(weight.to_owned()))
}

/// Returns a word with all of the target, where the share is larger; `None`: it is not. fio reads a size of nearly 2^64 bytes,
/// which a device or `filesize` limits.
fn whole_target(word: &Word, section: &str, lowering: &mut Lowering) -> Option<Word> {
    let share = word.text().trim().strip_suffix('%')?;
    share.parse::<u64>().ok().filter(|share| *share > 100)?;
    lowering.note(section, format!("`size={}` is the whole target, as `100%`", word.typed()));
    Some(word.with_value("100%".to_owned()))
}

/// Returns a word with the largest value of its option, where a larger one has the same effect; `None`: it is not larger.
fn clamp(row: &OptionRow, word: &Word, section: &str, base: KbBase, lowering: &mut Lowering) -> Option<Word> {
    let most = number::clamped(row, read_number(word.text(), base).ok()?)?;
    let name = word.spelled();
    lowering.note(section, format!("`{name}={}` becomes {most}, the largest value here", word.typed()));
    Some(word.with_value(most.to_string()))
}

/// Checks a value against its kind, where no row does.
fn check(option: FioOption, word: &Word, base: KbBase, problems: &mut Problems) {
    let text = word.text();
    let whole = |message: String| Err(BadValue::whole(message, text));
    let result = match option.kind() {
        _ if text.is_empty()
            && word.value.is_some()
            && !option.may_stand_alone()
            && !matches!(option.kind(), Kind::Text(_)) =>
        {
            whole("has no value".to_owned())
        }
        Kind::Flag if switch_of(text).is_none() => whole(format!("`{text}` is not a whole number")),
        Kind::Bool if bounded_switch_of(text).is_none() => whole(format!("`{text}` is not 0 or 1")),
        Kind::Number if matches!(option.name(), "rate" | "rate_iops") => Ok(()),
        Kind::Number => text
            .split([',', ':'])
            .filter(|part| !part.is_empty())
            .try_for_each(|part| read_number(part, base).map(drop)),
        Kind::Time if option.name() == "startdelay" => Ok(()),
        Kind::Time => read_time_ns(text, 1_000_000_000).map(drop),
        Kind::Floats => {
            let is_number = |part: &str| part.trim().parse::<f64>().is_ok_and(|n| (0.0..=100.0).contains(&n));
            match text.split(':').count() {
                0..=20 if text.split(':').all(is_number) => Ok(()),
                0..=20 => whole(format!("`{text}` is not a list of numbers from 0 to 100 with colons between them")),
                count => whole(format!("{count} numbers are more than 20")),
            }
        }
        Kind::Text(_) if !option.words().is_empty() && option.name() != "ioengine" => {
            let (first, words) = (text.split([':', ',']).next().unwrap_or(text), option.words());
            match words.contains(&first) {
                true => Ok(()),
                false => whole(format!("`{first}` is not one of {}", words.join(", "))),
            }
        }
        _ => Ok(()),
    };
    if let Err(bad) = result {
        let message = format!("`{}`: {}", word.spelled(), bad.message);
        problems.add(Refused::Value, word.value_position(&bad.at), message, None);
    }
}
