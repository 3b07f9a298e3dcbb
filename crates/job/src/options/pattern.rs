//! The operations of a job: their kinds, offsets and sizes.

pub(crate) mod replay;
pub mod rows;
pub(crate) mod shares;
pub(crate) mod steps;
pub(crate) mod zones;

use crate::input::{Decisions, JobInput};
use crate::option::{OptionRow, Scope, Words};
use crate::options::content::rows::{TRIM_PERCENTAGE, VERIFY, VERIFY_ONLY, VerifyMethod};
use crate::options::shape::{Ops, Shape};
use crate::options::target::rows::{RANK_PLACE, RANK_STREAMS, RankStreams};
use crate::refusal::{Case, Refusal, Rule};
use crate::values::Values;
use replay::Replayed;
use rows::{
    BS, BSRANGE, BSSPLIT, Direction, NORANDOMMAP, Operations, RANDOM_DISTRIBUTION, RANDREPEAT, RANDSEED, READ_IOLOG,
    RW, RWMIXREAD, RWMIXWRITE,
};
use trueio_model::{BlockSizes, JobSpec, OpKind, OpMix, mix64, rank_seed};

/// The base of default seeds. Any constant would do: a constant makes runs repeatable.
const SEED_BASE: u64 = 0x7472_7565_696f_0001;

/// Returns true if the job sets operations that only read. A job that does not set them may run a command or a log.
pub fn only_reads(job: &JobSpec) -> bool {
    let operations = job.options.get(RW.row().name).and_then(|value| Operations::parse(&value.text));
    operations.is_some_and(|operations| operations.direction == Direction::Read)
}

/// Resolves the values on which other options depend: sizes that count zones, and the log that is replayed.
pub(crate) fn settle(job: &JobInput<'_>) -> Result<(Option<Replayed>, Decisions), Refusal> {
    let mut decisions = Decisions::default();
    zones::settle_sizes(job, &mut decisions)?;
    let replayed = replay::plan_replay(job, &mut decisions)?;
    Ok((replayed, decisions))
}

/// Plans operations, sizes and order.
pub(crate) fn plan(job: &JobInput<'_>, replayed: Option<&Replayed>) -> Result<(Shape, Decisions), Refusal> {
    let mut decisions = Decisions::default();
    let (ops, (sizes, sizes_option)) = match replayed {
        Some(replayed) => (replayed.ops(&mut decisions), (replayed.sizes(), READ_IOLOG.row())),
        None => (plan_ops(job, &mut decisions)?, plan_sizes(job)?),
    };
    if sizes_option != BS.row() {
        decisions.derive(BS, "", format!("`{}` sets the sizes", sizes_option.name));
    }
    let steps = steps::plan_steps(job, &mut decisions, ops, &sizes, sizes_option)?;
    let order = shares::plan_order(job, &mut decisions, ops, &steps);
    let seed = plan_seed(job, &mut decisions, job.index);
    Ok((Shape { ops, sizes, sizes_option, steps, order, seed }, decisions))
}

fn plan_ops(job: &JobInput<'_>, decisions: &mut Decisions) -> Result<Ops, Refusal> {
    if job.is_set(RWMIXREAD) && job.is_set(RWMIXWRITE) {
        let (read, write) = (job.get(RWMIXREAD), job.get(RWMIXWRITE).unwrap_or(50));
        if read + write != 100 {
            return Err(job.refuse(
                RWMIXWRITE,
                Rule::Contradiction {
                    one: job.quote(RWMIXREAD),
                    other: job.quote(RWMIXWRITE),
                    reason: "their sum is not 100 percent",
                    case: Case::SetOnlyOne,
                },
            ));
        }
    }
    let read_percent = match job.get(RWMIXWRITE) {
        Some(write) => {
            if !job.is_set(RWMIXREAD) {
                decisions.derive(RWMIXREAD, (100 - write).to_string(), "the rest of 100 percent after `rwmixwrite`");
            }
            100 - write
        }
        None => job.get(RWMIXREAD),
    };
    let Operations { direction, is_random } = job.get(RW);
    let mix = match direction {
        Direction::Read => OpMix::Only(OpKind::Read),
        Direction::Write => OpMix::Only(OpKind::Write),
        Direction::Trim => OpMix::Only(OpKind::Trim),
        // Each write includes the trim of its block.
        Direction::TrimWrite => OpMix::Only(OpKind::Write),
        Direction::ReadWrite => OpMix::ReadWrite { read_percent: u8::try_from(read_percent).expect("a percentage") },
    };
    let verifies = job.get(VERIFY) != VerifyMethod::None && !job.get(VERIFY_ONLY);
    let trims_later = verifies && job.get(TRIM_PERCENTAGE) > 0;
    let writes = matches!(mix, OpMix::Only(OpKind::Write) | OpMix::ReadWrite { .. });
    let trims = mix == OpMix::Only(OpKind::Trim) || direction == Direction::TrimWrite || (writes && trims_later);
    let ops = Ops { mix, is_random, replayed: None, trims };
    if matches!(mix, OpMix::Only(_)) {
        decisions.note_unused(job, &[RWMIXREAD.row(), RWMIXWRITE.row()], "the job does not mix reads and writes");
    }
    if !is_random {
        decisions.note_unused(job, &[NORANDOMMAP.row(), RANDOM_DISTRIBUTION.row()], "the job is sequential");
    }
    if !ops.has(OpKind::Write) {
        decisions.note_unused(job, &job.rows_of(Scope::Writes), "the job does not write");
    }
    Ok(ops)
}

/// Returns the sizes of reads, writes and trims, and the option that sets them.
fn plan_sizes(job: &Values) -> Result<([BlockSizes; 3], &'static OptionRow), Refusal> {
    let given: Vec<&'static OptionRow> =
        [BSSPLIT.row(), BSRANGE.row(), BS.row()].into_iter().filter(|row| job.is_set(row)).collect();
    if let [one, other, ..] = given[..] {
        return Err(job.refuse(
            one,
            Rule::Contradiction {
                one: job.quote(one),
                other: job.quote(other),
                reason: "an I/O has one size",
                case: Case::SizesTwice,
            },
        ));
    }
    let alternatives = [(BSSPLIT, job.get(BSSPLIT)), (BSRANGE, job.get(BSRANGE))];
    let alternative = alternatives.into_iter().find_map(|(option, sizes)| Some((sizes?, option.row())));
    let (sizes, option) = alternative.unwrap_or((job.get(BS), BS.row()));
    Ok((sizes.clone(), option))
}

/// Returns the seed of the job's stream. Rank 0, and a process that is alone, have the seed itself; another rank has one of its own.
fn plan_seed(job: &JobInput<'_>, decisions: &mut Decisions, index: usize) -> u64 {
    let rank = match job.get(RANK_STREAMS) {
        RankStreams::Own if job.has_value(RANK_PLACE) => job.get(RANK_PLACE),
        RankStreams::Own => job.machine.rank.unwrap_or(0),
        RankStreams::Equal => 0,
    };
    if let Some(seed) = job.get(RANDSEED) {
        return rank_seed(seed, rank);
    }
    let (base, reason) = match job.get(RANDREPEAT) {
        true => (SEED_BASE, "a constant and the job's position, the same in each run"),
        false => (job.machine.entropy, "drawn for this run, because `randrepeat` is false"),
    };
    let seed = mix64(base.wrapping_add(index as u64));
    decisions.derive(RANDSEED, seed.to_string(), reason);
    rank_seed(seed, rank)
}
