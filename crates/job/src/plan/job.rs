//! One job: from resolved options to a [`JobPlan`].

use super::Planner;
use super::command::{check_command, plan_command, plan_exec};
use super::control::plan_control;
use super::direct::{alignment_of, check_atomic, plan_direct, settle_buffers, settle_direct};
use super::durability::{plan_flush, plan_sync};
use super::engine::{check_polling, check_without_data, plan_cpu_load, plan_engine, plan_engine_options, plan_queue};
use super::files::{Use, plan_files};
use super::handling::{Remaking, has_further_cached_passes, plan_handling, plan_remaking};
use super::idle;
use super::limits::{Passing, plan_limits, plan_steady_state, plan_times};
use super::names::{CountedNames, plan_names};
use super::numa::plan_nodes;
use super::output::plan_output;
use super::pace::{plan_guard, plan_pace, plan_think};
use super::priority::{plan_own_priority, plan_shares};
use super::replay::{Replayed, plan_iolog, plan_replay};
use super::shares::{check_distribution, plan_file_selection, plan_order};
use super::source::plan_body;
use super::steps::plan_steps;
use super::tolerance::{plan_fill, plan_tolerance};
use super::user::plan_user;
use super::verify::{Verified, plan_verify};
use super::zones::{InZones, plan_zones, settle_sizes};
use crate::option::Opt;
use crate::option::OptionRow;
use crate::options::content::rows::{
    BUFFER_COMPRESS_CHUNK, BUFFER_COMPRESS_PERCENTAGE, BUFFER_OFFSET, BUFFER_PATTERN, DEDUPE_PERCENTAGE,
    DEDUPE_WORKING_SET_PERCENTAGE, REFILL_BUFFERS, TRIM_PERCENTAGE, VERIFY, VERIFY_ONLY, ZERO_BUFFERS,
};
use crate::options::durability::rows::{
    ATOMIC, DIRECT, END_FDATASYNC, END_FSYNC, FDATASYNC, FSYNC, FSYNC_ON_CLOSE, INVALIDATE, NOWAIT, PRE_READ,
    RWF_DSYNC, SYNC, SYNC_FILE_RANGE, UNCACHED,
};
use crate::options::engine::rows::{IOENGINE, NUMJOBS, SIMULATED};
use crate::options::limits::rows::{EXIT_WHAT, EXITALL, EXITALL_ON_ERROR, IO_SIZE};
use crate::options::output::rows::WRITE_IOLOG;
use crate::options::pattern::rows::{
    BS, BS_UNALIGNED, BSRANGE, BSSPLIT, NORANDOMMAP, RANDOM_DISTRIBUTION, RANDREPEAT, RANDSEED, READ_IOLOG, RW,
    RWMIXREAD, RWMIXWRITE,
};
use crate::options::process::rows::{
    CONTINUE_ON_ERROR, CPUS_ALLOWED, CPUS_ALLOWED_POLICY, NICE, PRIOHINT, STRACE, TRACE_SYSCALLS,
};
use crate::options::target::rows::FALLOCATE;
use crate::refusal::{Refusal, Rule};
use crate::value::write_bytes;
use crate::values::Values;
use trueio_model::{
    BlockSizes, Content, ContentKind, DirectPolicy, EngineKind, FileSelection, JobPlan, Limits, OpKind, OpMix, Pattern,
    Scheduling, WriteFlags,
};

/// The least alignment of buffers: a page, so that every engine and device is content.
const BUFFER_ALIGNMENT_BYTES_MIN: u32 = 4096;
/// Where default seeds begin. Any constant would do; that it is one makes runs repeatable.
const SEED_BASE: u64 = 0x7472_7565_696f_0001;

/// Which operations a job performs.
#[derive(Clone, Copy)]
pub(super) struct Ops {
    pub(super) mix: OpMix,
    pub(super) is_random: bool,
    /// Whether a log that is replayed reads, writes, trims.
    pub(super) replayed: Option<[bool; 3]>,
    /// Whether anything is trimmed: by the pattern, before each write (`trimwrite`), or after it (`trim_percentage`).
    pub(super) trims: bool,
}

impl Ops {
    pub(super) fn has(self, op: OpKind) -> bool {
        match self.mix {
            _ if let Some([reads, writes, trims]) = self.replayed => match op {
                OpKind::Read => reads,
                OpKind::Write => writes,
                OpKind::Trim => trims,
                OpKind::Sync => false,
            },
            OpMix::Only(only) => only == op,
            OpMix::ReadWrite { .. } => matches!(op, OpKind::Read | OpKind::Write),
        }
    }
}

#[expect(clippy::too_many_lines, reason = "until it is split")]
pub(super) fn plan_job(
    planner: &mut Planner,
    values: &mut Values,
    index: usize,
    phase: u32,
) -> Result<JobPlan, Refusal> {
    settle_sizes(planner, values)?;
    let replayed = plan_replay(planner, values)?;
    let (ops, (mut sizes, sizes_option)) = match &replayed {
        Some(replayed) => (replayed.ops(values), (replayed.sizes(), READ_IOLOG.row())),
        None => (plan_ops(planner, values)?, plan_sizes(values)?),
    };
    if sizes_option != BS.row() {
        values.derive(BS, "", format!("`{}` says the sizes", sizes_option.name));
    }
    let steps = plan_steps(planner, values, ops, &sizes, sizes_option)?;
    let order = plan_order(planner, values, ops, &steps);

    let write_flags = WriteFlags {
        dsync: values.get(RWF_DSYNC),
        dontcache: values.get(UNCACHED),
        atomic: values.get(ATOMIC),
        hipri: false,
        hipri_percent: None,
        nowait: values.get(NOWAIT),
    };
    let is_command = check_command(planner, values, ops.mix, ops.is_random)?;
    let engine = match is_command {
        true => {
            values.derive(IOENGINE, EngineKind::Command.name(), "`command` does the I/O");
            EngineKind::Command
        }
        false => plan_engine(planner, values, ops, write_flags)?,
    };
    if let Some(replayed) = &replayed {
        replayed.check_engine(values, engine)?;
    }
    let mut counted = None;
    if engine.works_on_names() {
        if values.is_fio {
            let each = [OpKind::Read, OpKind::Write, OpKind::Trim].into_iter().zip(&sizes);
            let used: Vec<&BlockSizes> = each.filter(|(op, _)| ops.has(*op)).map(|(_, sizes)| sizes).collect();
            counted = Some(CountedNames::of(values, engine, &used, sizes_option)?);
        } else {
            note_unused(planner, values, &[BS.row(), BSRANGE.row(), BSSPLIT.row()], "names have no size");
        }
        // A name has no size; what is counted is names.
        sizes = [const { BlockSizes::Fixed(1) }; 3];
    }
    let used: Vec<(OpKind, &BlockSizes)> =
        [OpKind::Read, OpKind::Write, OpKind::Trim].into_iter().zip(&sizes).filter(|(op, _)| ops.has(*op)).collect();
    let block_bytes_max = used.iter().map(|(_, sizes)| sizes.max_bytes()).max().unwrap_or(0);
    let (write_flags, mut uring) = plan_engine_options(planner, values, engine, ops, write_flags)?;
    let direct = plan_direct(values, engine, write_flags, uring)?;
    let sync = plan_sync(planner, values, engine, ops)?;
    let flush = plan_flush(planner, values, engine)?;
    let queue = plan_queue(planner, values, engine)?;

    let body = plan_body(planner, values, engine, (ops.mix, ops.is_random), &sizes[1], write_flags)?;

    let seed = plan_seed(planner, values, index);
    let is_offline = values.get(VERIFY_ONLY);
    let fills = plan_fill(values, engine, ops)?;
    let usage = Use {
        fills,
        writes: (ops.has(OpKind::Write) && !is_offline) || engine == EngineKind::Falloc,
        trims: ops.trims,
        needs_content: ops.has(OpKind::Read) || is_offline || ops.has(OpKind::Trim) || steps.trims_first,
        opens_files: engine.opens_files(),
        moves_no_data: engine.moves_no_data(),
        block_bytes_max,
        block_bytes_min: used.iter().map(|(_, sizes)| sizes.min_bytes()).min().unwrap_or(0),
        seed,
    };
    let word = Some(values.get(FALLOCATE)).filter(|word| ["none", "keep"].contains(word));
    if let Some(word) = word.filter(|_| engine == EngineKind::Mmap && usage.writes) {
        let lack = format!("cannot extend a file, as `fallocate = {word}` asks for");
        let rule = Rule::EngineLacks { engine, lack, hint: "leave `fallocate` out, or choose another engine" };
        return Err(values.refuse(FALLOCATE, rule));
    }
    let mut files = match &replayed {
        Some(replayed) => replayed.files(planner, values, &usage)?,
        None if engine.works_on_names() => vec![plan_names(planner, values, engine)?],
        None => plan_files(planner, values, &usage)?,
    };
    if engine.moves_no_data() {
        check_without_data(values, engine, ops, &files)?;
    }
    let direct = match (steps.is_unaligned, direct) {
        (true, DirectPolicy::Require) => {
            let rule = Rule::Contradiction {
                one: values.quote(DIRECT),
                other: values.quote(BS_UNALIGNED),
                reason: "direct I/O transfers whole units only",
                hint: "leave one of them out",
            };
            return Err(values.refuse(BS_UNALIGNED, rule));
        }
        (true, DirectPolicy::Prefer) => {
            values.derive(DIRECT, "off", "preferred, and `bs_unaligned` has sizes that it cannot transfer");
            DirectPolicy::Off
        }
        _ => direct,
    };
    let direct = settle_direct(planner, values, &files, (&used, ops.trims, &steps), sizes_option, direct)?;
    let buffer_offset_bytes = values.get(BUFFER_OFFSET);
    let mut direct = settle_buffers(planner, values, &files, buffer_offset_bytes, direct);
    let in_zones = InZones { engine, ops, sizes: &sizes, steps: &steps };
    let zones = plan_zones(planner, values, &in_zones, &mut files, &mut direct)?;
    if write_flags.atomic && usage.writes {
        check_atomic(values, &files, &sizes[1], sizes_option)?;
    }
    if uring.iopoll || write_flags.hipri {
        check_polling(values, &files)?;
    }
    let priorities = plan_shares(planner, values, (engine, direct), ops, &used)?;
    let source = body.map(|body| {
        let facts = files.iter().filter_map(|file| file.facts.as_ref());
        let unit_bytes = facts.filter_map(|facts| Some(alignment_of(facts, OpKind::Write)?.0)).max();
        body.plan(planner, values, direct, unit_bytes)
    });
    let command = match is_command {
        true => Some(plan_command(values, &sizes[1], &files[0].plan)?),
        false => None,
    };
    if replayed.is_none() {
        check_distribution(values, &order, &files)?;
    }
    let (file_selection, ios_per_file, files_at_a_time) = plan_file_selection(planner, values, files.len())?;
    let region_bytes = files.iter().map(|file| file.plan.size_bytes).fold(0, u64::saturating_add);
    let (mut limits, pass_bytes) = match &replayed {
        Some(replayed) => {
            values.derive(IO_SIZE, write_bytes(replayed.bytes()), "what the log transfers");
            (Limits { io_bytes: replayed.bytes(), loops: 1, io_count: None, ..plan_times(values) }, region_bytes)
        }
        None => {
            let ends_otherwise = zones.is_some() || source.is_some();
            let (order, steps, used, files) = (&order, &steps, &used, &files);
            let passing = Passing { engine, ops, order, steps, used, files, ends_otherwise };
            plan_limits(values, &passing)?
        }
    };
    if let Some(counted) = &counted {
        counted.limit(&mut limits);
        values.derive(IO_SIZE, limits.io_bytes.to_string(), "names, one byte each");
    }
    let verified = Verified {
        engine,
        ops,
        used: &used,
        order: &order,
        files: &files,
        limits: &limits,
        has_steps: !steps.is_none(),
        is_zoned: zones.is_some(),
        is_replayed: replayed.is_some(),
        draws_files: files.len() > 1 && matches!(file_selection, FileSelection::Drawn { .. }),
    };
    let verify = plan_verify(planner, values, &verified)?;
    let tolerance = plan_tolerance(values, fills, verify.as_ref())?;
    let mut content = plan_content(planner, values, ops)?;
    match values.get(DEDUPE_WORKING_SET_PERCENTAGE) {
        Some(percent) if percent + u64::from(content.duplicate_percent) > 100 => {
            let rule = Rule::Contradiction {
                one: values.quote(DEDUPE_WORKING_SET_PERCENTAGE),
                other: values.quote(DEDUPE_PERCENTAGE),
                reason: "the blocks of the set are different ones, and with the repeats they are more than all",
                hint: "lower one of them, to 100 together",
            };
            return Err(values.refuse(DEDUPE_WORKING_SET_PERCENTAGE, rule));
        }
        Some(percent) if content.duplicate_percent > 0 => {
            let bytes = u128::from(region_bytes) * u128::from(percent) / 100;
            content.duplicate_count = (bytes / u128::from(sizes[1].min_bytes().max(1))).max(1) as u64;
        }
        _ => note_unused(planner, values, &[DEDUPE_WORKING_SET_PERCENTAGE.row()], "no block repeats another"),
    }
    let mut handling = plan_handling(planner, values, engine, ops)?;
    // A file that is drawn goes on to its next pass while others are not done.
    let cached_pass_bytes = match file_selection {
        FileSelection::Drawn { .. } => files.iter().map(|file| file.plan.size_bytes).min().unwrap_or(0),
        _ => pass_bytes,
    };
    handling.invalidates_each_pass = values.get(INVALIDATE) == "each_pass"
        && has_further_cached_passes(values, engine, direct, &order, &limits, cached_pass_bytes);
    let remaking = Remaking {
        engine,
        ops,
        order: &order,
        limits: &limits,
        pass_bytes,
        files: &files,
        is_verified: verify.is_some(),
        uring: &mut uring,
    };
    handling.remakes_each_pass = plan_remaking(planner, values, remaking)?;
    let mut pace = plan_pace(planner, values, ops.mix, verify.as_ref())?;
    let mut guard = plan_guard(planner, values, ops.mix);
    if let Some(counted) = &counted {
        counted.slow(&mut pace, &mut guard);
    }
    let think = plan_think(planner, values);
    let (of_nodes, memory_policy) = plan_nodes(planner, values)?;
    let runs_on_nodes = of_nodes.is_some();
    let cpus = of_nodes.unwrap_or_else(|| values.get(CPUS_ALLOWED).unwrap_or(&[]).to_vec());
    if let Some(cpu) = cpus.iter().find(|cpu| !planner.machine.cpus.is_empty() && !planner.machine.cpus.contains(cpu)) {
        return Err(values.refuse(CPUS_ALLOWED, Rule::ProcessorNotThere { cpu: *cpu }));
    }
    note_memory(planner, values, engine, ops, direct, region_bytes);

    let alignments = files.iter().filter_map(|file| file.facts.as_ref()).flat_map(|facts| {
        let direct = &facts.direct;
        [&direct.memory_alignment_bytes, &direct.read_alignment_bytes, &direct.write_alignment_bytes]
            .map(|fact| fact.value.unwrap_or(1))
    });
    let buffer_alignment_bytes = alignments
        .fold(BUFFER_ALIGNMENT_BYTES_MIN, u32::max)
        .checked_next_power_of_two()
        .unwrap_or(BUFFER_ALIGNMENT_BYTES_MIN);
    let simulated = match engine {
        EngineKind::Simulated => Some(values.get(SIMULATED).clone()),
        _ if values.is_set(SIMULATED) => {
            let lack = "is no model of a disk".into();
            let rule = Rule::EngineLacks { engine, lack, hint: "say `ioengine = \"simulated\"`" };
            return Err(values.refuse(SIMULATED, rule));
        }
        _ => None,
    };
    let steady_state = plan_steady_state(planner, values, &files, verify.as_ref())?;
    let paths: Vec<&str> = files.iter().map(|file| file.plan.path.as_str()).collect();
    let iolog = plan_iolog(values, &paths)?;
    if iolog.is_some() && (is_command || engine.works_on_names() || !engine.does_io()) {
        let lack = "issues nothing that a log could hold, as `write_iolog` asks for".into();
        let rule = Rule::EngineLacks { engine, lack, hint: "leave `write_iolog` out" };
        return Err(values.refuse(WRITE_IOLOG, rule));
    }
    let mut output = plan_output(planner, values);
    output.logs.iolog = iolog;
    output.names = counted.map(|counted| counted.counts());
    let [read_sizes, write_sizes, trim_sizes] = sizes;
    let user = plan_user(planner, values)?;
    let nice = values.get(NICE).map(|nice| i32::try_from(nice).expect("the row's bounds keep it small"));
    idle::note_idle(planner, values, engine)?;
    let control = plan_control(planner, values)?;
    let scheduling = plan_scheduling(planner, values)?;
    let mut job = JobPlan {
        name: values.job.clone(),
        phase,
        engine,
        workers: values.get(NUMJOBS),
        files: files.into_iter().map(|file| file.plan).collect(),
        directories: std::mem::take(&mut planner.directories).into_iter().collect(),
        file_selection,
        ios_per_file,
        files_at_a_time,
        pattern: Pattern { mix: ops.mix, order, read_sizes, write_sizes, trim_sizes, steps },
        zones,
        queue,
        limits,
        steady_state,
        direct,
        sync,
        write_flags,
        flush,
        pace,
        think,
        content,
        source,
        replay: replayed.map(Replayed::into_plan),
        command,
        exec: plan_exec(planner, values, engine)?,
        cpu_load: plan_cpu_load(planner, values, engine)?,
        guard,
        control,
        verify,
        uring,
        simulated,
        cpus,
        nice,
        scheduling: Scheduling { shares_cpus: runs_on_nodes || scheduling.shares_cpus, ..scheduling },
        memory_policy,
        user,
        priorities,
        handling,
        invalidate: values.get(INVALIDATE) != "off",
        pre_read: values.get(PRE_READ),
        seed,
        buffer_alignment_bytes,
        buffer_offset_bytes,
        continue_on_error: values.get(CONTINUE_ON_ERROR) == "all",
        tolerance,
        trace_syscalls: values.get(TRACE_SYSCALLS),
        strace: values.get(STRACE),
        output,
        values: take(values).into_plan_values(),
    };
    idle::strip(&mut job);
    Ok(job)
}

/// Processors and I/O priority.
fn plan_scheduling(planner: &mut Planner, values: &Values) -> Result<Scheduling, Refusal> {
    if values.get(CPUS_ALLOWED).is_none() {
        note_unused(planner, values, &[CPUS_ALLOWED_POLICY.row()], "no processors are named");
    }
    if !values.get(EXITALL) {
        note_unused(planner, values, &[EXIT_WHAT.row()], "the job ends no others (`exitall`)");
    }
    let io_hint = u16::try_from(values.get(PRIOHINT)).unwrap_or(0);
    Ok(Scheduling {
        shares_cpus: values.get(CPUS_ALLOWED_POLICY) == "shared",
        io_priority: plan_own_priority(planner, values, io_hint)?,
        io_hint,
        ends_others: values.get(EXITALL),
        ends_others_on_error: values.get(EXITALL_ON_ERROR),
        ends_run: values.get(EXITALL) && values.get(EXIT_WHAT) == "all",
    })
}

/// Moves the values out; the job's planning is over.
fn take(values: &mut Values) -> Values {
    std::mem::replace(values, Values::empty())
}

pub(super) fn note_unused(planner: &mut Planner, values: &Values, names: &[&'static OptionRow], because: &str) {
    for name in names.iter().copied().filter(|name| values.is_explicit(name)) {
        planner.note(&values.job, &format!("{} has no effect: {because}", values.quote(name)));
    }
}

fn plan_ops(planner: &mut Planner, values: &mut Values) -> Result<Ops, Refusal> {
    if values.is_set(RWMIXREAD) && values.is_set(RWMIXWRITE) {
        let (read, write) = (values.get(RWMIXREAD), values.get(RWMIXWRITE).unwrap_or(50));
        if read + write != 100 {
            return Err(values.refuse(
                RWMIXWRITE,
                Rule::Contradiction {
                    one: values.quote(RWMIXREAD),
                    other: values.quote(RWMIXWRITE),
                    reason: "together they are not 100 percent",
                    hint: "say one of them",
                },
            ));
        }
    }
    let read_percent = match values.get(RWMIXWRITE) {
        Some(write) => {
            if !values.is_set(RWMIXREAD) {
                values.derive(RWMIXREAD, (100 - write).to_string(), "what `rwmixwrite` leaves");
            }
            100 - write
        }
        None => values.get(RWMIXREAD),
    };
    let word = values.get(RW);
    let is_random = word.starts_with("rand");
    let mix = match word.trim_start_matches("rand") {
        "read" => OpMix::Only(OpKind::Read),
        "write" => OpMix::Only(OpKind::Write),
        "trim" => OpMix::Only(OpKind::Trim),
        // The trims come with the writes.
        "trimwrite" => OpMix::Only(OpKind::Write),
        "rw" => OpMix::ReadWrite { read_percent: u8::try_from(read_percent).expect("a percentage") },
        other => unreachable!("`{other}` is no word of `rw`"),
    };
    let verifies = values.get(VERIFY) != "none" && !values.get(VERIFY_ONLY);
    let trims_later = verifies && values.get(TRIM_PERCENTAGE) > 0;
    let writes = matches!(mix, OpMix::Only(OpKind::Write) | OpMix::ReadWrite { .. });
    let trims = mix == OpMix::Only(OpKind::Trim) || word.ends_with("trimwrite") || (writes && trims_later);
    let ops = Ops { mix, is_random, replayed: None, trims };
    if matches!(mix, OpMix::Only(_)) {
        note_unused(planner, values, &[RWMIXREAD.row(), RWMIXWRITE.row()], "the job does not mix reads and writes");
    }
    if !is_random {
        note_unused(planner, values, &[NORANDOMMAP.row(), RANDOM_DISTRIBUTION.row()], "the job is sequential");
    }
    if !ops.has(OpKind::Write) {
        let names = [
            SYNC.row(),
            FSYNC.row(),
            FDATASYNC.row(),
            END_FSYNC.row(),
            END_FDATASYNC.row(),
            FSYNC_ON_CLOSE.row(),
            SYNC_FILE_RANGE.row(),
            RWF_DSYNC.row(),
            ATOMIC.row(),
            ZERO_BUFFERS.row(),
            BUFFER_PATTERN.row(),
            REFILL_BUFFERS.row(),
            BUFFER_COMPRESS_PERCENTAGE.row(),
            DEDUPE_PERCENTAGE.row(),
        ];
        note_unused(planner, values, &names, "the job does not write");
    }
    Ok(ops)
}

/// Sizes of reads, writes and trims, and the option that says them.
fn plan_sizes(values: &Values) -> Result<([BlockSizes; 3], &'static OptionRow), Refusal> {
    let said: Vec<&'static OptionRow> =
        [BSSPLIT.row(), BSRANGE.row(), BS.row()].into_iter().filter(|row| values.is_set(row)).collect();
    if let [one, other, ..] = said[..] {
        return Err(values.refuse(
            one,
            Rule::Contradiction {
                one: values.quote(one),
                other: values.quote(other),
                reason: "an I/O has one size",
                hint: "say one of `bs`, `bsrange`, `bssplit`",
            },
        ));
    }
    let alternatives = [(BSSPLIT, values.get(BSSPLIT)), (BSRANGE, values.get(BSRANGE))];
    let alternative = alternatives.into_iter().find_map(|(option, sizes)| Some((sizes?, option.row())));
    let (sizes, option) = alternative.unwrap_or((values.get(BS), BS.row()));
    Ok((sizes.clone(), option))
}

fn plan_content(planner: &mut Planner, values: &Values, ops: Ops) -> Result<Content, Refusal> {
    let percent = |option: Opt<u64>| u8::try_from(values.get(option)).expect("a percentage");
    let fixed = if values.get(ZERO_BUFFERS) {
        Some((ZERO_BUFFERS.row(), ContentKind::Zero))
    } else if values.get(BUFFER_PATTERN).is_some() {
        Some((BUFFER_PATTERN.row(), ContentKind::Pattern))
    } else {
        None
    };
    let content = Content {
        kind: fixed.map_or(ContentKind::Random, |fixed| fixed.1),
        pattern: values.get(BUFFER_PATTERN).unwrap_or_default().to_vec(),
        compressible_percent: percent(BUFFER_COMPRESS_PERCENTAGE),
        compressible_bytes: u32::try_from(values.get(BUFFER_COMPRESS_CHUNK)).unwrap_or(u32::MAX),
        duplicate_percent: percent(DEDUPE_PERCENTAGE),
        duplicate_count: 0,
        refill: values.get(REFILL_BUFFERS),
    };
    if content.compressible_percent == 0 {
        note_unused(planner, values, &[BUFFER_COMPRESS_CHUNK.row()], "no part compresses away");
    }
    let Some((fixed, _)) = fixed.filter(|_| ops.has(OpKind::Write)) else { return Ok(content) };
    let others = [
        (BUFFER_PATTERN.row(), fixed != BUFFER_PATTERN.row() && values.get(BUFFER_PATTERN).is_some()),
        (BUFFER_COMPRESS_PERCENTAGE.row(), percent(BUFFER_COMPRESS_PERCENTAGE) > 0),
        (DEDUPE_PERCENTAGE.row(), percent(DEDUPE_PERCENTAGE) > 0),
    ];
    if let Some((other, _)) = others.into_iter().find(|(_, is_set)| *is_set) {
        let rule = Rule::Contradiction {
            one: values.quote(fixed),
            other: values.quote(other),
            reason: "content that is always the same is no other",
            hint: "leave one of them out",
        };
        return Err(values.refuse(other, rule));
    }
    note_unused(planner, values, &[REFILL_BUFFERS.row()], "the content is always the same");
    Ok(content)
}

fn plan_seed(planner: &Planner, values: &mut Values, index: usize) -> u64 {
    if let Some(seed) = values.get(RANDSEED) {
        return seed;
    }
    let (base, reason) = match values.get(RANDREPEAT) {
        true => (SEED_BASE, "a constant and the job's place, the same in each run"),
        false => (planner.machine.entropy, "drawn for this run, since `randrepeat` is false"),
    };
    let seed = splitmix64(base.wrapping_add(index as u64));
    values.derive(RANDSEED, seed.to_string(), reason);
    seed
}

/// One step of SplitMix64: neighbouring numbers become unrelated seeds.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
pub(crate) fn splitmix64(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn note_memory(
    planner: &mut Planner,
    values: &Values,
    engine: EngineKind,
    ops: Ops,
    direct: DirectPolicy,
    region_bytes: u64,
) {
    if engine == EngineKind::Libaio && direct == DirectPolicy::Off {
        planner.note(&values.job, "libaio submits buffered I/O synchronously: the queue will not fill");
    }
    let Some(memory_bytes) = planner.machine.memory_bytes else { return };
    if engine.touches_files() && direct == DirectPolicy::Off && ops.has(OpKind::Read) && region_bytes < memory_bytes {
        let (files, memory) = (write_bytes(region_bytes), trueio_model::units::format_bytes(memory_bytes));
        let sentence = format!("reads of {files} can come from the page cache: the machine has {memory} of memory");
        planner.note(&values.job, &sentence);
    }
}
