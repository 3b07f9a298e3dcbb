//! fio's rules for single options of a job: runtime, cache, rates, priorities, content, programs.

use super::Word;
use super::lowering::{JobWords, Lowering, preset, set_default, writes};
use super::priority::shares;
use super::problem::Problems;
use super::refusals::Refused;
use super::targets::{lays_out, needs_data};
use super::value::{BadValue, listed, read_number, read_time_ns};
use trueio_job::option::{OptionRow, Words};
use trueio_job::options::content::rows::{
    BUFFER_COMPRESS_CHUNK, BUFFER_COMPRESS_PERCENTAGE, BUFFER_PATTERN, DEDUPE_PERCENTAGE,
    DEDUPE_WORKING_SET_PERCENTAGE, DO_VERIFY, TRIM_BACKLOG, TRIM_BACKLOG_BATCH, TRIM_PERCENTAGE, VERIFY,
    VERIFY_BACKLOG, VERIFY_BACKLOG_BATCH, VERIFY_EACH_LOOP, VERIFY_FATAL, VERIFY_INTERVAL, VERIFY_ONLY, VERIFY_PATTERN,
    VERIFY_PATTERN_INTERVAL, VERIFY_STATE_LOAD, VERIFY_STATE_SAVE, VerifyMethod, ZERO_BUFFERS,
};
use trueio_job::options::durability::rows::{DIRECT, SYNC, UNCACHED};
use trueio_job::options::limits::rows::{IO_SIZE, LOOPS, NUMBER_IOS, SHORT_RAMP};
use trueio_job::options::pace::rows::{RATE_IOPS_MIN, RATE_MIN, RATE_SETTLE_TIME};
use trueio_job::options::pattern::rows::{
    BS, BSRANGE, BSSPLIT, Direction, NORANDOMMAP, PERCENTAGE_RANDOM, RANDOM_DISTRIBUTION, RANDOM_EVERY, RW,
    RW_SEQUENCER, ZONEMODE, ZoneMode,
};
use trueio_job::options::process::rows::{CONTINUE_ON_ERROR, ContinueOnError};
use trueio_job::options::target::rows::{FALLOCATE, FILE_APPEND, FILESIZE, Fallocate, OFFSET, OVERWRITE, SIZE};
use trueio_job::value::{Extent, Value, write_bytes, write_duration};
use trueio_model::{BlockSizes, Checksum, DirectPolicy, EngineKind, JobSpec, Origin, SyncMode, switch_of};

/// Applies the rules of this file, except [`flushes`].
pub(super) fn apply(job: &mut JobWords, lowering: &mut Lowering, problems: &mut Problems) {
    limits(job, lowering);
    sizes_by_order(job, problems);
    cache(job, lowering);
    rates(job, problems);
    priorities(job, lowering, problems);
    working_set(job, lowering, problems);
    exec_commands(job, lowering, problems);
    exec_engine(job, lowering, problems);
    create_on_open(job, lowering);
    file_sizes(job, lowering);
    generator(job, lowering);
    sequence(job, lowering);
    preconditioning(job, lowering, problems);
    sequencer(job, lowering);
    issue_times(job, problems);
    trim_ranges(job, lowering, problems);
    compressible(job, lowering);
    repeats(job, lowering);
    fixed_twice(job, lowering);
    implied_verify(job);
    compressible_of_verified(job);
    without_writing(job, lowering);
    verification(job, lowering);
    backlog_of_trims(job, lowering);
    reads_only(job, lowering);
}

/// Drops what has no effect in a job that reads or appends, and would contradict other options.
fn reads_only(job: &mut JobWords, lowering: &mut Lowering) {
    let direction = RW.value_in(&job.spec).direction;
    let appends = job.spec.options.get(FILE_APPEND.name).is_some_and(|set| set.text == "true");
    let bytes = |row: &OptionRow| match row.kind.read(&job.spec.options.get(row.name)?.text) {
        Ok(Value::Extent(Extent::Bytes(bytes))) => Some(bytes),
        _ => None,
    };
    let is_beyond = bytes(IO_SIZE.row()).zip(bytes(SIZE.row())).is_some_and(|(all, pass)| all > pass);
    if appends && is_beyond && job.spec.options.remove(IO_SIZE.name).is_some() {
        lowering.remark("`io_size` above `size` has no effect next to `file_append`, as in fio".to_owned());
    }
    if appends && job.spec.options.remove(OFFSET.name).is_some_and(|offset| offset.text != "0") {
        lowering.remark("`offset` has no effect next to `file_append`, as in fio".to_owned());
    }
    if appends && job.spec.options.remove(LOOPS.name).is_some_and(|loops| loops.text != "1") {
        lowering.remark("`loops` has no effect next to `file_append`, as in fio".to_owned());
    }
    if appends && job.spec.options.remove(OVERWRITE.name).is_some_and(|overwrite| overwrite.text == "true") {
        lowering.remark("`overwrite` has no effect next to `file_append`, as in fio".to_owned());
    }
    if direction != Direction::Read {
        return;
    }
    let flushes = ["fsync", "fdatasync", "sync_file_range"];
    if flushes.iter().filter(|name| job.spec.options.contains_key(**name)).count() > 1 {
        flushes.iter().for_each(|name| drop(job.spec.options.remove(*name)));
        lowering.remark("flushes have no effect: the job only reads, as in fio".to_owned());
    }
}

/// Sets `time_based`, which has no effect without a runtime, and fio's treatment of ramps and minimum rates.
fn limits(job: &mut JobWords, lowering: &mut Lowering) {
    for (name, row) in [
        ("ramp_time", SHORT_RAMP.row()),
        ("rate_min", RATE_SETTLE_TIME.row()),
        ("rate_iops_min", RATE_SETTLE_TIME.row()),
    ] {
        if job.spec.options.contains_key(name) {
            set_default(&mut job.spec, row);
        }
    }
    if !job.is_on("time_based") {
        return;
    }
    let origin = job.word("time_based").map_or_else(preset, Word::origin);
    if job.spec.options.get("runtime").is_some_and(|runtime| runtime.text != "0s") {
        job.spec.set("time_based", "true", origin);
        // The job starts over, and its I/Os are counted again.
        if job.spec.options.remove(NUMBER_IOS.name).is_some_and(|count| count.text != "0") {
            lowering.remark("`number_ios` has no effect next to `time_based`, as in fio".to_owned());
        }
    } else {
        lowering.note(&job.section.name, "`time_based` has no effect without `runtime`, as in fio".to_owned());
    }
}

/// Applies `bs_is_seq_rand`: the first size is that of sequential I/Os, the second that of random ones.
fn sizes_by_order(job: &mut JobWords, problems: &mut Problems) {
    if !job.is_on("bs_is_seq_rand") {
        return;
    }
    if job.spec.options.contains_key(PERCENTAGE_RANDOM.name) {
        let message = "`bs_is_seq_rand` and `percentage_random` would give a job blocks of two sizes".to_owned();
        let kind = Refused::SizesByOrder;
        return job.complain_about(kind, "bs_is_seq_rand", message, kind.hint(), problems);
    }
    let index = usize::from(RW.value_in(&job.spec).is_random);
    for name in [BS.name, BSRANGE.name, BSSPLIT.name] {
        if let Some(sizes) = job.spec.options.get_mut(name) {
            let parts: Vec<&str> = sizes.text.split(',').collect();
            let part = parts.get(index).or(parts.last()).filter(|part| !part.is_empty());
            sizes.text = part.map_or("4k", |part| part).to_owned();
        }
    }
}

/// Sets `direct` from its opposite, `buffered`: the last of the two applies.
fn cache(job: &mut JobWords, lowering: &mut Lowering) {
    let last = |name: &str| {
        let mut words = job.section.globals.iter().chain(&job.section.words);
        words.by_ref().enumerate().filter(|(_, word)| word.option.name() == name).last()
    };
    if let Some((at, word)) = last("buffered") {
        let direct = if switch_of(word.text()) == Some(true) { DirectPolicy::Off } else { DirectPolicy::Require };
        let other = last("direct").map(|(other, word)| (other > at, word.origin()));
        if let Some((_, other)) = other.as_ref().filter(|_| DIRECT.value_in(&job.spec) != direct) {
            let (buffered, other) = (word.origin(), other.clone());
            lowering
                .remark(format!("`buffered` ({buffered}) and `direct` ({other}) differ: the last applies, as in fio"));
        }
        if !other.is_some_and(|(is_later, _)| is_later) {
            let origin = word.origin();
            DIRECT.set_in(&mut job.spec, direct, origin);
        }
    }
    if job.engine() == Some(EngineKind::Mmap) {
        mapped(job, lowering);
    }
    if UNCACHED.value_in(&job.spec) && DIRECT.value_in(&job.spec) == DirectPolicy::Require {
        // The kernel accepts the flag, and ignores it for direct I/O.
        job.spec.options.remove(UNCACHED.name);
        lowering.note(&job.section.name, "`uncached` has no effect next to `direct=1`, as in fio".to_owned());
    }
}

/// Sets what `direct` and `sync` are to a mapping, to which the flags of the open file do not apply: with `direct=1`, fio calls
/// `msync` after each I/O.
fn mapped(job: &mut JobWords, lowering: &mut Lowering) {
    if job.spec.options.remove(SYNC.name).is_some_and(|sync| sync.text != SyncMode::None.word()) {
        lowering.note(&job.section.name, "`sync` has no effect on a mapping, as in fio".to_owned());
    }
    let allocation = FALLOCATE.value_in(&job.spec);
    if writes(&job.spec) && matches!(allocation, Fallocate::None | Fallocate::Keep) {
        // A file is extended before it is mapped, whatever is set.
        job.spec.options.remove(FALLOCATE.name);
        let note =
            format!("`fallocate={}` has no effect: a mapping cannot extend a file, as in fio", allocation.word());
        lowering.note(&job.section.name, note);
    }
    if DIRECT.value_in(&job.spec) == DirectPolicy::Require {
        let reason = "with `direct=1`, `mmap` calls `msync` after each I/O, as in fio; reads come from the page cache";
        lowering.note(&job.section.name, reason.to_owned());
        let origin = || Origin::Derived { reason: reason.to_owned() };
        DIRECT.set_in(&mut job.spec, DirectPolicy::Off, origin());
        SYNC.set_in(&mut job.spec, SyncMode::Sync, origin());
    }
}

/// Sets rates of reads, writes and trims; in a mixed job each direction has its own.
fn rates(job: &mut JobWords, problems: &mut Problems) {
    let is_none = |part: &str| ["", "0"].contains(&part.trim());
    let is_limited = |name| job.spec.options.get(name).is_some_and(|least| !least.text.split(',').all(is_none));
    if is_limited("rate_min") && is_limited("rate_iops_min") {
        let message = "`rate_min` and `rate_iops_min` exclude each other, as in fio".to_owned();
        let kind = Refused::MinimumRates;
        return job.complain_about(kind, "rate_iops_min", message, kind.hint(), problems);
    }
    let both = job.words.get("rate").zip(job.words.get("rate_iops"));
    let dropped = match both {
        Some(((_, true), (_, false))) => Some("rate_iops"),
        Some(((_, false), (_, true))) => Some("rate"),
        _ => None,
    };
    for name in ["rate", "rate_iops"].into_iter().filter(|name| Some(*name) != dropped) {
        let Some(word) = job.word(name) else { continue };
        let [of_reads, of_writes, of_trims] = match rates_of(job, name, word) {
            Ok(each) => each,
            Err(bad) => return job.complain(word, &bad, problems),
        };
        let origin = word.origin();
        let text = |number: u64| if name == "rate" { write_bytes(number) } else { number.to_string() };
        let rate = match RW.value_in(&job.spec).direction {
            Direction::Read => text(of_reads),
            // Each write includes the trim of its block.
            Direction::Write | Direction::TrimWrite => text(of_writes),
            Direction::Trim => text(of_trims),
            Direction::ReadWrite if of_reads == 0 && of_writes == 0 => text(0),
            // Each direction keeps its own, or has none.
            Direction::ReadWrite => format!("{},{}", text(of_reads), text(of_writes)),
        };
        job.spec.set(name, rate, origin);
    }
    for (minimum, rate) in [(RATE_MIN.row(), "rate"), (RATE_IOPS_MIN.row(), "rate_iops")] {
        if Some(rate) != dropped && is_above(job, minimum, rate) {
            let name = minimum.name;
            let message = format!("`{name}` is above `{rate}`: the job could only fail");
            let kind = Refused::MinimumAboveRate;
            return job.complain_about(kind, name, message, kind.hint(), problems);
        }
    }
    if RW.value_in(&job.spec).direction == Direction::ReadWrite {
        // One number is the minimum of reads and of writes, each by itself.
        for name in ["rate_min", "rate_iops_min"] {
            if let Some(least) = job.spec.options.get_mut(name).filter(|least| !least.text.contains(',')) {
                least.text = format!("{0},{0}", least.text);
            }
        }
    }
}

/// Returns true if a minimum of reads, writes or trims is above their rate, whichever of them the job has. A value that cannot be read is
/// not above: its own problem is reported.
fn is_above(job: &JobWords, minimum: &OptionRow, rate: &str) -> bool {
    let least = match job.spec.options.get(minimum.name).map(|given| minimum.kind.read(&given.text)) {
        Some(Ok(Value::Rate(all))) => [all; 3],
        Some(Ok(Value::Rates(each))) => each,
        _ => return false,
    };
    let most = job.word(rate).and_then(|word| rates_of(job, rate, word).ok()).unwrap_or_default();
    least.into_iter().zip(most).any(|(least, most)| most > 0 && least > most as f64)
}

/// Reads the rates of reads, writes and trims: one number is for all, and of two, trims have the second.
fn rates_of(job: &JobWords, name: &str, word: &Word) -> Result<[u64; 3], BadValue> {
    let mut each = [0_u64; 3];
    let text = listed(word.text());
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(BadValue::whole("reads, writes and trims are three", word.text()));
    }
    let mut at = 0;
    for (index, part) in parts.iter().enumerate() {
        let value = match part.trim() {
            "" => 0,
            _ => read_number(part, job.base_of(name))
                .map_err(|bad| BadValue { at: bad.at.start + at..bad.at.end + at, ..bad })?,
        };
        each[index..].fill(value);
        at += part.len() + 1;
    }
    Ok(each)
}

/// Sets priorities of single I/Os: five options of fio are one of ours.
fn priorities(job: &mut JobWords, lowering: &mut Lowering, problems: &mut Problems) {
    let names = ["cmdprio_bssplit", "cmdprio_percentage", "cmdprio_class", "cmdprio", "cmdprio_hint"];
    let Some(word) = names.into_iter().find_map(|name| job.word(name)) else { return };
    let (name, origin) = (word.option.name(), word.origin());
    let Some(text) = shares(job, problems) else { return };
    if !text.is_empty() {
        job.spec.set("cmdprio_bssplit", text, origin);
    } else if !names[..2].contains(&name) {
        let note = format!("`{name}` has no effect without `cmdprio_percentage` or `cmdprio_bssplit`, as in fio");
        lowering.note(&job.section.name, note);
    }
}

/// Sets the set of blocks from which repeated blocks are drawn.
fn working_set(job: &mut JobWords, lowering: &mut Lowering, problems: &mut Problems) {
    let name = DEDUPE_WORKING_SET_PERCENTAGE.name;
    let is_set = job.word("dedupe_mode").is_some_and(|word| word.text() == "working_set");
    match job.word(name).map(Word::origin) {
        Some(_) if !is_set => {
            lowering.remark(format!("`{name}` has no effect without `dedupe_mode=working_set`, as in fio"));
        }
        None if !is_set => {}
        None => set_default(&mut job.spec, DEDUPE_WORKING_SET_PERCENTAGE.row()),
        Some(origin) => {
            if let Some(text) = job.by_row(name, problems) {
                job.spec.set(name, text, origin);
            }
        }
    }
}

/// Refuses commands unless the command line allows them.
fn exec_commands(job: &JobWords, lowering: &Lowering, problems: &mut Problems) {
    for name in ["exec_prerun", "exec_postrun"] {
        if job.word(name).is_some_and(|word| !word.text().is_empty()) && !lowering.settings.allows_exec {
            let message = format!("`{name}` would run a command of the job");
            job.complain_about(Refused::Commands, name, message, Refused::Commands.hint(), problems);
        }
    }
}

/// Sets the program of `ioengine=exec`, with its arguments.
fn exec_engine(job: &mut JobWords, lowering: &Lowering, problems: &mut Problems) {
    if job.engine() != Some(EngineKind::Exec) {
        if let Some(name) = ["program", "arguments", "grace_time"].into_iter().find(|name| job.word(name).is_some()) {
            let message = format!("`{name}` belongs to `ioengine=exec`, and the job has another engine");
            job.complain_about(Refused::OptionOfExec, name, message, Refused::OptionOfExec.hint(), problems);
        }
        return;
    }
    let Some(word) = job.word("program").filter(|word| !word.text().is_empty()) else {
        let message = "`ioengine=exec` has no `program`".to_owned();
        let kind = Refused::ProgramMissing;
        return job.complain_about(kind, "ioengine", message, kind.hint(), problems);
    };
    if !lowering.settings.allows_exec {
        let message = format!("`ioengine=exec` would run `{}`", word.text());
        return job.complain_about(Refused::Commands, "program", message, Refused::Commands.hint(), problems);
    }
    let runtime = job.spec.options.get("runtime").map_or("0s", |runtime| runtime.text.as_str());
    let seconds = trueio_model::units::parse_duration_ns(runtime).unwrap_or(0) / 1_000_000_000;
    let arguments = job.word("arguments").map_or("", Word::text);
    let arguments = arguments.replace("%r", &seconds.to_string()).replace("%n", &job.section.name);
    let text = format!("{} {arguments}", word.text());
    let origin = word.origin();
    job.spec.set("program", text.trim(), origin);
    if let Some(word) = job.word("grace_time") {
        match read_time_ns(word.text(), 1_000_000_000) {
            Ok(ns) => {
                let origin = word.origin();
                job.spec.set("grace_time", write_duration(ns), origin);
            }
            Err(bad) => job.complain(word, &bad, problems),
        }
    }
}

/// Applies `create_on_open`: a job that just writes begins with empty files. For another one the files must exist
/// (`targets.rs`).
fn create_on_open(job: &mut JobWords, lowering: &mut Lowering) {
    if !job.is_on("create_on_open") {
        return;
    }
    if let Some(engine) = job.engine().filter(|engine| engine.works_on_names()) {
        let note = format!("`create_on_open` has no effect: `{}` needs no content", engine.name());
        lowering.note(&job.section.name, note);
    } else if lays_out(&job.spec) {
        let reason = "its files are created with data before it, because reads of empty files transfer nothing";
        lowering.note(&job.section.name, format!("`create_on_open` has no effect for a job that reads: {reason}"));
    } else if needs_data(&job.spec) {
        lowering.note(&job.section.name, "`create_on_open`: files of a job that reads or trims must exist".to_owned());
    } else if job.engine() == Some(EngineKind::Mmap) {
        let note =
            "`create_on_open` has no effect: a mapping cannot extend a file (fio's job ends with SIGBUS)".to_owned();
        lowering.note(&job.section.name, note);
    } else {
        if job.spec.options.contains_key(FALLOCATE.name) && FALLOCATE.value_in(&job.spec) != Fallocate::None {
            let note = "`fallocate` has no effect: with `create_on_open` no space is allocated".to_owned();
            lowering.note(&job.section.name, note);
        }
        if job.spec.options.remove(OVERWRITE.name).is_some_and(|overwrite| overwrite.text == "true") {
            let note = "`overwrite` has no effect: with `create_on_open` nothing is laid out, as in fio".to_owned();
            lowering.note(&job.section.name, note);
        }
        let origin = Origin::Derived { reason: "`create_on_open`: nothing is prepared".to_owned() };
        FALLOCATE.set_in(&mut job.spec, Fallocate::None, origin);
    }
}

/// Raises the lower end of a range of `filesize` to a block: fio uses no file that is smaller, and creates it.
fn file_sizes(job: &mut JobWords, lowering: &mut Lowering) {
    let Some((least, most)) = FILESIZE.value_in(&job.spec) else { return };
    let block = block_sizes(&job.spec).iter().map(BlockSizes::max_bytes).max().unwrap_or(0);
    if job.engine().is_some_and(EngineKind::works_on_names) || !(least < block && block <= most && least < most) {
        return;
    }
    let range = format!("{}-{}", write_bytes(block), write_bytes(most));
    lowering.note(
        &job.section.name,
        format!("`filesize` is `{range}`: no file is smaller than a block, as none that fio uses"),
    );
    job.spec.set(FILESIZE.name, range, Origin::Derived { reason: "no file is smaller than a block".to_owned() });
}

/// Applies `random_generator=lfsr`, which visits each block once, with a map or without.
fn generator(job: &mut JobWords, lowering: &mut Lowering) {
    let Some(word) = job.word("random_generator") else { return };
    if word.text() == "lfsr" && job.spec.options.get(NORANDOMMAP.name).is_some_and(|set| set.text == "true") {
        let reason = "`random_generator=lfsr` visits each block once, also without a map".to_owned();
        job.spec.set(NORANDOMMAP.name, "false", Origin::Derived { reason });
    } else {
        let reason = "offsets come from one generator of 64 bits, which serves any size";
        lowering.remark(format!("`random_generator` has no effect: {reason}"));
    }
}

/// Drops a `rw_sequencer` of a job whose I/Os each have an offset of their own.
fn sequencer(job: &mut JobWords, lowering: &mut Lowering) {
    if !job.spec.options.contains_key(RANDOM_EVERY.name) && job.spec.options.remove(RW_SEQUENCER.name).is_some() {
        lowering.remark(
            "`rw_sequencer` has no effect without a number of I/Os in `rw` (`randread:8`), as in fio".to_owned(),
        );
    }
}

/// Refuses `log_issue_time` without the log and the column that it belongs to, as fio does.
fn issue_times(job: &JobWords, problems: &mut Problems) {
    let text = |name: &str| job.spec.options.get(name).map(|set| set.text.as_str());
    let is_complete = text("write_lat_log").is_some() && text("log_offset") == Some("true");
    if text("log_issue_time") == Some("true") && !is_complete {
        let message = "`log_issue_time` needs `write_lat_log` and `log_offset`".to_owned();
        job.complain_about(Refused::IssueTime, "log_issue_time", message, Refused::IssueTime.hint(), problems);
    }
}

/// Refuses trims of several ranges; other jobs do not read `num_range`.
fn trim_ranges(job: &mut JobWords, lowering: &mut Lowering, problems: &mut Problems) {
    let trims = matches!(RW.value_in(&job.spec).direction, Direction::Trim | Direction::TrimWrite);
    let Some((ranges, _)) = job.number("num_range", problems) else { return };
    if ranges <= 1 || !trims {
        let why = if trims { "an I/O is one trim of one range" } else { "the job does not trim" };
        lowering.remark(format!("`num_range` has no effect: {why}"));
    } else {
        let message = format!("`num_range={ranges}` is not done here: an I/O is one trim of one range");
        job.complain_about(Refused::TrimRanges, "num_range", message, Refused::TrimRanges.hint(), problems);
    }
}

/// Applies `random_sequence_stride`, by which the rounds of a sequence advance.
fn sequence(job: &mut JobWords, lowering: &mut Lowering) {
    if !job.is_on("random_sequence_stride") {
        return;
    }
    match job.spec.options.get_mut(RANDOM_DISTRIBUTION.name) {
        Some(set) if set.text.starts_with("sequence:") => set.text = format!("advancing_{}", set.text),
        _ => lowering.remark(
            "`random_sequence_stride` has no effect without `random_distribution=sequence:…`, as in fio".to_owned(),
        ),
    }
}

/// Applies `sprandom`, with fio's conditions.
fn preconditioning(job: &mut JobWords, lowering: &mut Lowering, problems: &mut Problems) {
    let names = ["spr_op", "spr_num_regions", "spr_cs"];
    let Some(word) = job.word("sprandom").filter(|_| job.is_on("sprandom")) else {
        if let Some(name) = names.into_iter().find(|name| job.word(name).is_some()) {
            lowering.remark(format!("`{name}` has no effect without `sprandom`, as in fio"));
        }
        return;
    };
    let rw = RW.value_in(&job.spec);
    let other_generator = job.word("random_generator").filter(|word| word.text() != "lfsr");
    let map = job.all_words("norandommap");
    let has_map = map.last().filter(|word| word.text() == "0");
    let why = match (other_generator, has_map) {
        _ if rw.direction != Direction::Write || !rw.is_random => Some("writes at random (`rw=randwrite`)"),
        (Some(_), _) => Some("takes each block once (`random_generator=lfsr`)"),
        (_, Some(_)) => Some("writes blocks again (`norandommap=1`)"),
        _ => None,
    };
    if let Some(why) = why {
        let message = format!("`sprandom` {why}, and the job does not");
        return job.complain_about(Refused::NotSprandom, "sprandom", message, Refused::NotSprandom.hint(), problems);
    }
    let origin = word.origin();
    let regions = job.number("spr_num_regions", problems).map_or(100, |(count, _)| count);
    let cache = job.number("spr_cs", problems).map_or(0, |(bytes, _)| bytes);
    let over_provisioning = job.word("spr_op").map_or("0.15", Word::text);
    let text = format!("precondition:{over_provisioning}:{regions}:{}", write_bytes(cache));
    match RANDOM_DISTRIBUTION.row().canonical(&text) {
        Ok(text) => job.spec.set(RANDOM_DISTRIBUTION.name, text, origin),
        Err(message) => {
            job.complain_about(Refused::Value, "sprandom", format!("`sprandom`: {message}"), None, problems)
        }
    }
}

/// Applies `buffer_compress_percentage` next to fixed content: below 100 it replaces `zero_buffers`, and of 100 the fixed content
/// is all.
fn compressible(job: &mut JobWords, lowering: &mut Lowering) {
    let Some(percent) = job.spec.options.get(BUFFER_COMPRESS_PERCENTAGE.name).map(|set| set.text.clone()) else {
        return;
    };
    let zeros = job.spec.options.get(ZERO_BUFFERS.name).is_some_and(|set| set.text == "true");
    let has_pattern = job.spec.options.contains_key(BUFFER_PATTERN.name);
    let without = match &percent[..] {
        "0" => return,
        "100" if zeros || has_pattern => BUFFER_COMPRESS_PERCENTAGE.name,
        "100" => return,
        _ if zeros => ZERO_BUFFERS.name,
        _ => return,
    };
    job.spec.options.remove(without);
    let other = format!("`{}={percent}`", BUFFER_COMPRESS_PERCENTAGE.name);
    lowering.remark(match without == ZERO_BUFFERS.name {
        true => format!("`zero_buffers` has no effect next to {other}, as in fio: the compressible part is zero"),
        false => format!("{other} has no effect next to fixed content, as in fio"),
    });
}

/// Makes the end of each block compressible, not of each piece of it, in a job whose blocks `verify` fills.
fn compressible_of_verified(job: &mut JobWords) {
    let is_compressible = job.spec.options.get(BUFFER_COMPRESS_PERCENTAGE.name).is_some_and(|set| set.text != "0");
    let fills = !matches!(
        VERIFY.value_in(&job.spec),
        VerifyMethod::None | VerifyMethod::Checksum(Checksum::Null | Checksum::Pattern)
    );
    if is_compressible && fills && RW.value_in(&job.spec).direction != Direction::Read {
        let reason = "`verify` fills each block whole, as in fio".to_owned();
        job.spec.set(BUFFER_COMPRESS_CHUNK.name, "0", Origin::Derived { reason });
    }
}

/// Applies `dedupe_percentage` next to fixed content, which it replaces.
fn repeats(job: &mut JobWords, lowering: &mut Lowering) {
    let percent = |name: &str| job.spec.options.get(name).map(|set| set.text.clone()).filter(|text| text != "0");
    let Some(share) = percent(DEDUPE_PERCENTAGE.name) else { return };
    let is_compressible = percent(BUFFER_COMPRESS_PERCENTAGE.name).is_some();
    for name in [ZERO_BUFFERS.name, BUFFER_PATTERN.name] {
        // The compressible part holds the pattern.
        if is_compressible && name == BUFFER_PATTERN.name {
            continue;
        }
        if job.spec.options.remove(name).is_some_and(|set| set.text != "false") {
            let next_to = format!("{}={share}", DEDUPE_PERCENTAGE.name);
            lowering.remark(format!("`{name}` has no effect next to `{next_to}`, as in fio"));
        }
    }
}

/// Drops `zero_buffers` next to `buffer_pattern`, which replaces it.
fn fixed_twice(job: &mut JobWords, lowering: &mut Lowering) {
    let has_pattern = job.spec.options.contains_key(BUFFER_PATTERN.name);
    if has_pattern && job.spec.options.remove(ZERO_BUFFERS.name).is_some_and(|set| set.text == "true") {
        lowering.remark("`zero_buffers` has no effect next to `buffer_pattern`, as in fio".to_owned());
    }
}

/// Sets `verify=pattern` for a `verify_pattern` without `verify`.
fn implied_verify(job: &mut JobWords) {
    let is_set = |name: &str| job.spec.options.contains_key(name);
    if is_set(VERIFY_PATTERN.name) && !is_set(VERIFY.name) {
        let reason = "`verify_pattern` without `verify`, as in fio".to_owned();
        job.spec.set(VERIFY.name, Checksum::Pattern.name(), Origin::Derived { reason });
    }
}

/// Applies `verify_only` and `verify_state_load` to a job that reads: with a saved state it compares what the job of that
/// state wrote, in the order of its writes; without one it compares all that it reads, as ever.
fn without_writing(job: &mut JobWords, lowering: &mut Lowering) {
    let rw = RW.value_in(&job.spec);
    if VERIFY.value_in(&job.spec) == VerifyMethod::None {
        let is_on = job.spec.options.get(VERIFY_ONLY.name).is_some_and(|set| set.text == "true");
        if is_on && matches!(rw.direction, Direction::Write | Direction::ReadWrite) {
            // As in fio, nothing is written.
            let reason = "`verify_only` without `verify`: nothing is written, as in fio".to_owned();
            job.spec.set(VERIFY.name, Checksum::Null.name(), Origin::Derived { reason });
            let read =
                "`verify_only` without `verify`: blocks are read and compared with nothing, and nothing is written";
            return lowering.remark(read.to_owned());
        }
        if job.spec.options.remove(VERIFY_ONLY.name).is_some_and(|set| set.text == "true") {
            lowering.remark("`verify_only` has no effect without `verify`, as in fio".to_owned());
        }
        return;
    }
    let [is_only, loads_state] = [VERIFY_ONLY.name, VERIFY_STATE_LOAD.name]
        .map(|name| job.spec.options.get(name).is_some_and(|set| set.text == "true"));
    if is_only && !loads_state && job.spec.options.remove("time_based").is_some() {
        // Later passes could be steps that the job that wrote did not come to.
        lowering.remark("`time_based` has no effect next to `verify_only`, as in fio: there is one pass".to_owned());
    }
    if rw.direction == Direction::Trim {
        job.spec.options.remove(VERIFY.name);
        job.spec.options.remove(VERIFY_ONLY.name);
        return lowering.remark("`verify` has no effect: a job that only trims writes nothing, as in fio".to_owned());
    }
    if rw.direction != Direction::Read {
        return;
    }
    let is_null = matches!(VERIFY.value_in(&job.spec), VerifyMethod::Checksum(Checksum::Null));
    if is_null && !loads_state {
        let [reads, ..] = block_sizes(&job.spec).map(|sizes| sizes.min_bytes() != sizes.max_bytes());
        if reads {
            job.spec.options.remove(VERIFY.name);
            return lowering.remark("`verify=null` has no effect: it compares nothing".to_owned());
        }
    }
    if loads_state {
        let reason = "`verify_state_load`: the blocks that the job of the saved state wrote are read".to_owned();
        let word = if rw.is_random { "randwrite" } else { "write" };
        job.spec.set(RW.name, word, Origin::Derived { reason: reason.clone() });
        job.spec.set(VERIFY_ONLY.name, "true", Origin::Derived { reason });
    } else if is_only {
        job.spec.options.remove(VERIFY_ONLY.name);
        lowering.remark("`verify_only` has no effect: the job only reads, and compares what it reads".to_owned());
    }
}

/// Applies fio's rules for `verify`: blocks of several sizes have a header for each piece of the smallest, an interval that
/// does not fit into the blocks is shortened, a block that differs ends the job unless `continue_on_error` covers it, and
/// a job that writes saves how far it came.
fn verification(job: &mut JobWords, lowering: &mut Lowering) {
    if VERIFY.value_in(&job.spec) == VerifyMethod::None {
        return;
    }
    let repeats = job.spec.options.get(DEDUPE_PERCENTAGE.name).is_some_and(|set| set.text != "0");
    let fills = VERIFY.value_in(&job.spec) != VerifyMethod::Checksum(Checksum::Null);
    if fills && job.spec.options.remove(ZERO_BUFFERS.name).is_some_and(|set| set.text == "true") {
        lowering.remark("`zero_buffers` has no effect next to `verify`, which fills each block, as in fio".to_owned());
    }
    if repeats && fills {
        job.spec.options.remove(DEDUPE_PERCENTAGE.name);
        job.spec.options.remove(DEDUPE_WORKING_SET_PERCENTAGE.name);
        lowering
            .remark("`dedupe_percentage` has no effect next to `verify`, which fills each block, as in fio".to_owned());
    }
    for [name, partner] in
        [[VERIFY_PATTERN_INTERVAL.name, VERIFY_PATTERN.name], [VERIFY_BACKLOG_BATCH.name, VERIFY_BACKLOG.name]]
    {
        let is_set = job.spec.options.get(partner).is_some_and(|set| set.text != "0");
        if !is_set && job.spec.options.remove(name).is_some_and(|set| set.text != "0") {
            lowering.remark(format!("`{name}` has no effect without `{partner}`, as in fio"));
        }
    }
    let [reads, writes, _] = block_sizes(&job.spec).map(|sizes| (sizes.min_bytes(), sizes.max_bytes()));
    let given = VERIFY_INTERVAL.value_in(&job.spec).filter(|given| *given > 0);
    let wanted = given.or((writes.0 != writes.1).then_some(writes.0));
    if let Some(wanted) = wanted {
        let reads_too = matches!(RW.value_in(&job.spec).direction, Direction::Read | Direction::ReadWrite);
        let fits = fitting_interval(wanted, writes, reads.0, reads_too);
        if given != Some(fits) {
            let reason = match given {
                Some(given) => format!("`verify_interval={given}` does not fit into the blocks; fio shortens it, too"),
                None => "blocks of several sizes have a header for each piece of the smallest, as in fio".to_owned(),
            };
            job.spec.set(VERIFY_INTERVAL.name, fits.to_string(), Origin::Derived { reason });
        }
    }
    let writes = RW.value_in(&job.spec).direction != Direction::Read && !VERIFY_ONLY.value_in(&job.spec);
    if writes && LOOPS.value_in(&job.spec) > 1 && DO_VERIFY.value_in(&job.spec) {
        let reason = "what each loop wrote is read back when it ends, as in fio".to_owned();
        job.spec.set(VERIFY_EACH_LOOP.name, "true", Origin::Derived { reason });
    }
    let saves = &VERIFY_STATE_SAVE;
    // Another user than root may not write to the current directory, and fio goes on without a state.
    let is_other = |name: &&str| job.spec.options.get(*name).is_some_and(|set| set.text != "0");
    let is_other_user = ["uid", "gid"].iter().any(is_other);
    if !writes && job.spec.options.get(saves.name).is_some_and(|set| set.text == "true") {
        job.spec.options.remove(saves.name);
    } else if writes
        && !is_other_user
        // The offsets of blocks depend on the write pointers, which a later run does not have.
        && ZONEMODE.value_in(&job.spec) != ZoneMode::Zbd
        && !job.spec.options.contains_key(saves.name)
        && lowering.around.client().is_none()
    {
        set_default(&mut job.spec, saves.row());
    }
    let goes_on = matches!(CONTINUE_ON_ERROR.value_in(&job.spec), ContinueOnError::All | ContinueOnError::Verify);
    if !goes_on && !VERIFY_FATAL.value_in(&job.spec) {
        let reason = "as in fio, a block that differs ends the job, unless `continue_on_error` covers it".to_owned();
        job.spec.set(VERIFY_FATAL.name, "true", Origin::Derived { reason });
    }
}

/// Drops what sets trims without a backlog, and `number_ios` next to batches that fall behind: fio ends a job only when nothing is left to trim.
fn backlog_of_trims(job: &mut JobWords, lowering: &mut Lowering) {
    let [percent, backlog, batch] =
        [TRIM_PERCENTAGE, TRIM_BACKLOG, TRIM_BACKLOG_BATCH].map(|option| option.value_in(&job.spec));
    let is_verified = VERIFY.value_in(&job.spec) != VerifyMethod::None;
    if is_verified && percent > 0 && backlog == 0 {
        job.spec.options.remove(TRIM_PERCENTAGE.name);
        lowering.remark("`trim_percentage` has no effect without `trim_backlog`, as in fio".to_owned());
    }
    if is_verified && batch > 0 && backlog == 0 {
        job.spec.options.remove(TRIM_BACKLOG_BATCH.name);
        lowering.remark("`trim_backlog_batch` has no effect without `trim_backlog`, as in fio".to_owned());
    }
    let falls_behind = is_verified && batch > 0 && percent.saturating_mul(backlog) > batch.saturating_mul(100);
    if falls_behind && job.spec.options.remove(NUMBER_IOS.name).is_some_and(|count| count.text != "0") {
        let batch = format!("{}={batch}", TRIM_BACKLOG_BATCH.name);
        lowering.remark(format!("`number_ios` has no effect next to `{batch}`, which falls behind, as in fio"));
    }
}

/// Returns the sizes of reads, writes and trims; those of an invalid text, which the plan refuses, are 4 KiB.
pub(super) fn block_sizes(spec: &JobSpec) -> [BlockSizes; 3] {
    let read = |row: &OptionRow| match row.kind.read(&spec.options.get(row.name)?.text) {
        Ok(Value::Sizes(sizes)) => Some(*sizes),
        _ => None,
    };
    let set = [BSSPLIT.row(), BSRANGE.row(), BS.row()].into_iter().find_map(read);
    set.unwrap_or_else(|| [0; 3].map(|_| BlockSizes::Fixed(4096)))
}

/// Returns the interval that fio uses where `given` does not divide the smallest and largest write.
fn fitting_interval(given: u64, (least, most): (u64, u64), least_read: u64, reads_too: bool) -> u64 {
    let fits = match given {
        _ if given > least => least,
        _ if reads_too && given > least_read => least_read,
        _ => given,
    };
    if least.is_multiple_of(fits) && most.is_multiple_of(fits) {
        return fits;
    }
    let (mut a, mut b) = (least, most);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
