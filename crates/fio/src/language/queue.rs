//! fio's rules for the engine and its queue: its name, depth, batches and buffers.

use super::engines;
use super::lowering::{JobWords, Lowering, preset, set_default};
use super::number::clamped;
use super::problem::Problems;
use super::refusals::Refused;
use super::value::{BadValue, read_number};
use trueio_job::option::Words;
use trueio_job::options::durability::rows::STAT_TYPE;
use trueio_job::options::engine::rows::{IODEPTH, IODEPTH_BATCH, IODEPTH_BATCH_COMPLETE_MAX, IOENGINE};
use trueio_model::{EngineKind, Origin};

use super::Word;

/// Sets engine, queue depth and batches.
pub(super) fn engine_and_queue(job: &mut JobWords, lowering: &mut Lowering, problems: &mut Problems) {
    let (name, origin) = match job.word("ioengine") {
        Some(word) => (word.text().split(':').next().unwrap_or("").to_owned(), word.origin()),
        None => (IOENGINE.fio_default().unwrap_or_default().to_owned(), preset()),
    };
    let Some(engine) = EngineKind::parse(&name) else {
        let (message, hint) = missing(&name);
        return job.complain_about(Refused::Engine, "ioengine", message, Some(hint), problems);
    };
    if engine != EngineKind::E4defrag && job.word("donorname").is_some() {
        lowering.remark("`donorname` has no effect: the engine is not `e4defrag`".to_owned());
    } else if engine == EngineKind::E4defrag && job.word("donorname").is_none_or(|word| word.text().is_empty()) {
        let message = "`ioengine=e4defrag` has no `donorname`".to_owned();
        let kind = Refused::DonorMissing;
        return job.complain_about(kind, "ioengine", message, kind.hint(), problems);
    }
    let is_offloaded = job.word("io_submit_mode").is_some_and(|word| word.text() == "offload");
    let (engine, origin) = match is_offloaded {
        // fio's threads call the engine, each for one I/O; of an engine of single calls they are a queue on threads.
        true if engines::makes_single_calls(engine) => {
            let reason = format!("`io_submit_mode=offload`: `iodepth` threads make the calls of `{name}`");
            lowering.note(&job.section.name, format!("{reason}; here they are pread and pwrite (`posixaio`)"));
            (EngineKind::Posixaio, Origin::Derived { reason })
        }
        true => {
            let submits = format!("`io_submit_mode=offload` has no effect: `{name}` submits its I/Os itself");
            let reason =
                "under a rate `lat_ns` counts from the time each I/O was due, which is the purpose of offloading";
            lowering.note(&job.section.name, format!("{submits}; {reason}"));
            (engine, origin)
        }
        false => (engine, origin),
    };
    if STAT_TYPE.fio_engines.contains(&engine.name()) && !job.spec.options.contains_key(STAT_TYPE.name) {
        set_default(&mut job.spec, STAT_TYPE.row());
    }
    job.spec.set(IOENGINE.name, engine.name(), origin);
    let depth = depth(job, &name, engine.holds_a_queue(), lowering, problems);
    batches(job, depth, engine.holds_a_queue(), lowering, problems);
}

/// Returns a message and a hint about an engine that does not exist here.
fn missing(name: &str) -> (String, String) {
    if let Some((reason, instead)) = engines::why_missing(name) {
        return (format!("the engine `{name}` is not here: {reason}"), format!("instead: {instead}"));
    }
    let near = engines::names()
        .map(|known| (strsim::osa_distance(name, known), known))
        .min()
        .filter(|(distance, _)| *distance <= 1 + name.chars().count() / 3)
        .map(|(_, known)| format!("did you mean `{known}`?"));
    let hint = near.unwrap_or_else(|| "`--enghelp` lists the engines".to_owned());
    (format!("the engine `{name}` is not known"), hint)
}

/// Most I/Os that the kernel queues for `libaio` (`fs.aio-max-nr`); fio's job fails with more.
const AIO_MAX: u64 = 65_536;

/// Sets the queue depth, and returns it.
fn depth(
    job: &mut JobWords,
    engine: &str,
    holds_a_queue: bool,
    lowering: &mut Lowering,
    problems: &mut Problems,
) -> u64 {
    if let Some(word) = job.word(IODEPTH.name)
        && read_number(word.text(), job.base_of(IODEPTH.name)).is_ok_and(|number| number > AIO_MAX)
    {
        let message = format!("`{}` is not a whole number from 1 to {AIO_MAX}", word.text());
        job.complain(word, &BadValue::whole(message, word.text()), problems);
        return 1;
    }
    let beyond = job.word(IODEPTH.name).and_then(|word| {
        let number = read_number(word.text(), job.base_of(IODEPTH.name)).ok().filter(|number| *number <= AIO_MAX)?;
        let most = clamped(IODEPTH.row(), number)?;
        Some((most, format!("`{}={}` becomes {most}, the largest value here", word.spelled(), word.typed())))
    });
    let text = match beyond {
        Some((most, note)) => {
            lowering.note(&job.section.name, note);
            Some(most.to_string())
        }
        None => job.by_row(IODEPTH.name, problems),
    };
    let Some(text) = text else { return 1 };
    let depth = text.parse().unwrap_or(1);
    if depth > 1 && !holds_a_queue {
        let reason = format!("the engine `{engine}` holds one I/O at a time; fio, too, lowers the depth to 1");
        lowering.note(&job.section.name, format!("`iodepth={depth}` becomes 1: {reason}"));
        job.spec.set("iodepth", "1", Origin::Derived { reason });
        return 1;
    }
    let origin = job.word("iodepth").map_or_else(preset, Word::origin);
    job.spec.set("iodepth", text, origin);
    depth
}

/// Sets how many I/Os are submitted and reaped at a time.
fn batches(job: &mut JobWords, depth: u64, holds_a_queue: bool, lowering: &mut Lowering, problems: &mut Problems) {
    let batch = job.number("iodepth_batch", problems);
    let complete = job.number("iodepth_batch_complete_min", problems);
    let low = job.number("iodepth_low", problems);
    if !holds_a_queue {
        return;
    }
    match batch {
        // 0 is the whole depth, and the depth is the most, as in fio.
        Some((batch, origin)) => {
            let batch = if batch == 0 { depth } else { batch.min(depth) };
            job.spec.set(IODEPTH_BATCH.name, batch.to_string(), origin);
        }
        None if depth > 1 => set_default(&mut job.spec, IODEPTH_BATCH.row()),
        None => {}
    }
    if let Some((low, origin)) = low.filter(|(low, _)| (1..=depth).contains(low)) {
        job.spec.set("iodepth_low", low.to_string(), origin);
    }
    // fio reaps no more completions at a time than it waits for, so the queue is refilled one by one and stays full. It
    // reaps all that are there only if it polls.
    let least = complete.as_ref().map_or(1, |(least, _)| *least);
    if depth > 1 && least > 0 && !job.spec.options.contains_key("iodepth_batch_complete_max") {
        job.spec.set("iodepth_batch_complete_max", least.min(depth).to_string(), preset());
    }
    if let Some((least, origin)) = complete {
        let least = least.clamp(1, depth);
        let most = IODEPTH_BATCH_COMPLETE_MAX.value_in(&job.spec);
        if u64::from(most) < least && job.spec.options.contains_key(IODEPTH_BATCH_COMPLETE_MAX.name) {
            let reason = format!("`iodepth_batch_complete_max={most}` is less than the minimum, and becomes {least}");
            lowering.note(&job.section.name, format!("{reason}, as in fio"));
            job.spec.set(IODEPTH_BATCH_COMPLETE_MAX.name, least.to_string(), Origin::Derived { reason });
        }
        job.spec.set("iodepth_batch_complete_min", least.to_string(), origin);
    }
}

/// Sets the bytes between the beginning of a page and that of each buffer, which is how fio applies `iomem_align`.
pub(super) fn buffer_offset(job: &mut JobWords, lowering: &mut Lowering, problems: &mut Problems) {
    const PAGE_BYTES: u64 = 4096;
    let Some((bytes, origin)) = job.number("iomem_align", problems) else { return };
    let bytes = bytes % PAGE_BYTES;
    if job.spec.options.contains_key("buffer_offset") {
        let message = "`iomem_align` and `buffer_offset` set the same thing".to_owned();
        return job.complain_about(Refused::Alignments, "iomem_align", message, Refused::Alignments.hint(), problems);
    }
    if bytes == 0 {
        lowering.remark("`iomem_align` has no effect: buffers begin with a page by default".to_owned());
    }
    job.spec.set("buffer_offset", bytes.to_string(), origin);
}
