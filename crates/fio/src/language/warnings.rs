//! What fio warns of, which `--warnings-fatal` makes an error.
//!
//! Notes of this program are no warnings of fio's: a script that tests whether fio accepts an option (`--warnings-fatal
//! --parse-only`) must not fail for them. A job that has several of fio's warnings reports each.
//!
//! Limits: warnings about engines that do not exist here, and about platforms without `fdatasync`, are left out.
//!
//! Source: the places in `init.c` of fio 3.42 that read `warnings_fatal`.

use super::lowering::JobWords;
use super::problem::Problems;
use super::refusals::Refused;
use trueio_job::option::OptionRow;
use trueio_job::options::content::rows::{DO_VERIFY, VERIFY, VERIFY_BACKLOG, VerifyMethod};
use trueio_job::options::limits::rows::RUNTIME;
use trueio_job::options::pattern::rows::{BLOCKALIGN, BS, BSRANGE, BSSPLIT, Direction, NORANDOMMAP, RW};
use trueio_job::value::Value;
use trueio_model::{BlockSizes, JobSpec};

/// Adds a problem for each warning that fio prints about the job, which has this number of clones.
pub(super) fn refuse(job: &JobWords, clones: u64, problems: &mut Problems) {
    let spec = &job.spec;
    let is_set = |name: &str| job.section.globals.iter().chain(&job.section.words).any(|w| w.option.name() == name);
    let operations = RW.value_in(spec);
    let sizes = sizes(spec);
    let is_off_grid = operations.is_random
        && match value(spec, BLOCKALIGN.row()) {
            Some(Value::Numbers(align)) => {
                align.iter().zip(&sizes).any(|(align, sizes)| *align > 0 && *align != smallest(sizes))
            }
            _ => false,
        };
    let has_map = !NORANDOMMAP.value_in(spec);
    let is_verified = VERIFY.value_in(spec) != VerifyMethod::None;
    let writes_and_compares = is_verified
        && matches!(operations.direction, Direction::Write | Direction::ReadWrite | Direction::TrimWrite)
        && DO_VERIFY.value_in(spec);
    let has_runtime = spec.options.get(RUNTIME.name).is_some_and(|runtime| runtime.text != "0s");
    let has_files_of_its_own = !is_set("filename")
        && job.word("filename_format").is_none_or(|format| {
            ["$jobname", "$jobnum", "$filenum"].iter().all(|part| format.text().to_ascii_lowercase().contains(part))
        });
    let warnings = [
        ("write_iolog", is_set("write_iolog") && is_set("read_iolog"), "`read_iolog` overrides `write_iolog`"),
        ("blockalign", has_map && is_off_grid, "`blockalign` turns the random map off"),
        (
            "norandommap",
            !has_map && is_verified && sizes.iter().any(|sizes| !matches!(sizes, BlockSizes::Fixed(_))),
            "`verify` of blocks of several sizes without a random map is limited",
        ),
        ("time_based", job.is_on("time_based") && !has_runtime, "`time_based` has no effect without `runtime`"),
        (
            "verify",
            writes_and_compares && clones > 1 && !has_files_of_its_own,
            "several jobs write to one file, so `verify` may find blocks of another job",
        ),
        (
            "verify",
            writes_and_compares
                && has_runtime
                && job.is_on("time_based")
                && operations.direction != Direction::ReadWrite
                && VERIFY_BACKLOG.value_in(spec) == 0,
            "with `time_based` fio never reads back what it wrote",
        ),
    ];
    for (name, _, warning) in warnings.into_iter().filter(|(_, is_there, _)| *is_there) {
        let message = format!("job `{}`: {warning}, of which fio warns", job.section.name);
        job.complain_about(Refused::FioWarns, name, message, Refused::FioWarns.hint(), problems);
    }
}

/// Returns the value of an option that is set.
fn value(spec: &JobSpec, row: &OptionRow) -> Option<Value> {
    row.kind.read(&spec.options.get(row.name)?.text).ok()
}

/// Returns the block sizes of reads, writes and trims.
fn sizes(spec: &JobSpec) -> [BlockSizes; 3] {
    let given = [BSSPLIT.row(), BSRANGE.row(), BS.row()].into_iter().find_map(|row| value(spec, row));
    match given {
        Some(Value::Sizes(sizes)) => *sizes,
        _ => [const { BlockSizes::Fixed(4096) }; 3],
    }
}

/// Returns the smallest of the sizes, in bytes.
fn smallest(sizes: &BlockSizes) -> u64 {
    match sizes {
        BlockSizes::Fixed(bytes) => *bytes,
        BlockSizes::Range { min_bytes, .. } => *min_bytes,
        BlockSizes::Weighted(pairs) => pairs.iter().map(|pair| pair.0).min().unwrap_or(0),
    }
}
