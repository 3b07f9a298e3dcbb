//! One job: from resolved options to a [`JobPlan`].

use super::Planner;
use super::command::{check_command, plan_command, plan_exec};
use super::control::plan_control;
use super::files::{JobFile, Use, plan_files};
use super::handling::plan_handling;
use super::names::plan_names;
use super::output::plan_output;
use super::replay::{Replayed, plan_iolog, plan_replay};
use super::source::plan_body;
use super::steps::plan_steps;
use super::values::Values;
use super::verify::{Verified, plan_verify};
use crate::refusal::{Refusal, Rule};
use crate::value::{Extent, write_bytes};
use trueio_model::{
    Arrivals, BlockSizes, Content, ContentKind, CpuLoad, DirectPolicy, DirectSupport, Distribution, EngineKind,
    FileSelection, Flush, Guard, JobPlan, Limits, OpKind, OpMix, Order, Pace, Pattern, Prepare, Queue, Scheduling,
    SteadyPlan, Steps, SyncMode, TargetFacts, TargetKind, Think, UringOptions, Verify, WriteFlags,
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

pub(super) fn plan_job(
    planner: &mut Planner,
    values: &mut Values,
    index: usize,
    phase: u32,
) -> Result<JobPlan, Refusal> {
    let replayed = plan_replay(planner, values)?;
    let (ops, (mut sizes, sizes_option)) = match &replayed {
        Some(replayed) => (replayed.ops(values), (replayed.sizes(), "read_iolog")),
        None => (plan_ops(planner, values)?, plan_sizes(values)?),
    };
    if sizes_option != "bs" {
        values.derive("bs", "", format!("`{sizes_option}` says the sizes"));
    }
    let steps = plan_steps(planner, values, ops, sizes_option)?;
    let order = plan_order(planner, values, ops, &steps);

    let write_flags = WriteFlags {
        dsync: values.bool("rwf_dsync"),
        dontcache: values.bool("uncached"),
        atomic: values.bool("atomic"),
        hipri: false,
    };
    let is_command = check_command(planner, values, ops.mix, ops.is_random)?;
    let engine = match is_command {
        true => {
            values.derive("ioengine", EngineKind::Command.name(), "`command` does the I/O");
            EngineKind::Command
        }
        false => plan_engine(planner, values, ops, write_flags)?,
    };
    if let Some(replayed) = &replayed {
        replayed.check_engine(values, engine)?;
    }
    if engine.works_on_names() {
        // A name has no size; what is counted is names.
        sizes = [const { BlockSizes::Fixed(1) }; 3];
        note_unused(planner, values, &["bs", "bsrange", "bssplit"], "names have no size");
    }
    let used: Vec<(OpKind, &BlockSizes)> =
        [OpKind::Read, OpKind::Write, OpKind::Trim].into_iter().zip(&sizes).filter(|(op, _)| ops.has(*op)).collect();
    let block_bytes_max = used.iter().map(|(_, sizes)| sizes.max_bytes()).max().unwrap_or(0);
    let (write_flags, uring) = plan_engine_options(planner, values, engine, ops, write_flags)?;
    let direct = plan_direct(values, engine, write_flags, uring)?;
    let sync = plan_sync(planner, values, engine, ops)?;
    let flush = plan_flush(planner, values)?;
    let queue = plan_queue(values, engine)?;

    let body = plan_body(planner, values, engine, (ops.mix, ops.is_random), &sizes[1], write_flags)?;

    let seed = plan_seed(planner, values, index);
    let is_offline = values.bool("verify_only");
    let usage = Use {
        reads: ops.has(OpKind::Read) || is_offline,
        writes: (ops.has(OpKind::Write) && !is_offline) || engine == EngineKind::Falloc,
        trims: ops.has(OpKind::Trim) || steps.trims_first,
        opens_files: engine.opens_files(),
        moves_no_data: engine.moves_no_data(),
        block_bytes_max,
        seed,
    };
    if engine == EngineKind::Mmap && usage.writes && values.choice("fallocate") == Some("none") {
        let lack = "cannot extend a file, as `fallocate = none` asks for".into();
        let rule = Rule::EngineLacks { engine, lack, hint: "leave `fallocate` out, or choose another engine" };
        return Err(values.refuse("fallocate", rule));
    }
    let files = match &replayed {
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
                one: values.quote("direct"),
                other: values.quote("bs_unaligned"),
                reason: "direct I/O transfers whole units only",
                hint: "leave one of them out",
            };
            return Err(values.refuse("bs_unaligned", rule));
        }
        (true, DirectPolicy::Prefer) => {
            values.derive("direct", "off", "preferred, and `bs_unaligned` has sizes that it cannot transfer");
            DirectPolicy::Off
        }
        _ => direct,
    };
    let direct = settle_direct(planner, values, &files, &used, sizes_option, direct)?;
    let buffer_offset_bytes = values.small("buffer_offset").unwrap_or(0);
    let direct = settle_buffers(planner, values, &files, buffer_offset_bytes, direct);
    if write_flags.atomic && usage.writes {
        check_atomic(values, &files, &sizes[1], sizes_option)?;
    }
    if uring.iopoll || write_flags.hipri {
        check_polling(values, &files)?;
    }
    let source = body.map(|body| {
        let facts = files.iter().filter_map(|file| file.facts.as_ref());
        let unit_bytes = facts.filter_map(|facts| Some(alignment_of(facts, OpKind::Write)?.0)).max();
        body.plan(planner, values, direct, unit_bytes)
    });
    let command = match is_command {
        true => Some(plan_command(values, &sizes[1], &files[0].plan)?),
        false => None,
    };
    let region_bytes = files.iter().map(|file| file.plan.size_bytes).fold(0, u64::saturating_add);
    let limits = match &replayed {
        Some(replayed) => {
            values.derive("io_size", write_bytes(replayed.bytes()), "what the log transfers");
            Limits { io_bytes: replayed.bytes(), loops: 1, io_count: None, ..plan_times(values) }
        }
        None => plan_limits(values, engine, region_bytes, block_bytes_max)?,
    };
    let verified = Verified {
        engine,
        ops,
        used: &used,
        order: &order,
        files: &files,
        limits: &limits,
        has_steps: !steps.is_none(),
    };
    let verify = plan_verify(planner, values, &verified)?;
    let content = plan_content(planner, values, ops)?;
    let pace = plan_pace(planner, values, ops.mix)?;
    let think = plan_think(planner, values);
    let cpus = values.cpus("cpus_allowed").unwrap_or(&[]).to_vec();
    if let Some(cpu) = cpus.iter().find(|cpu| !planner.machine.cpus.is_empty() && !planner.machine.cpus.contains(cpu)) {
        return Err(values.refuse("cpus_allowed", Rule::ProcessorNotThere { cpu: *cpu }));
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
    let file_selection = match values.choice("file_service_type") {
        Some("sequential") => FileSelection::Sequential,
        Some("random") => FileSelection::Random,
        _ => FileSelection::RoundRobin,
    };
    let simulated = match engine {
        EngineKind::Simulated => Some(values.simulated("simulated")),
        _ if values.is_said("simulated") => {
            let lack = "is no model of a disk".into();
            let rule = Rule::EngineLacks { engine, lack, hint: "say `ioengine = \"simulated\"`" };
            return Err(values.refuse("simulated", rule));
        }
        _ => None,
    };
    let steady_state = plan_steady_state(planner, values, &files, verify.as_ref())?;
    let paths: Vec<&str> = files.iter().map(|file| file.plan.path.as_str()).collect();
    let iolog = plan_iolog(values, &paths)?;
    if iolog.is_some() && (is_command || engine.works_on_names() || !engine.does_io()) {
        let lack = "issues nothing that a log could hold, as `write_iolog` asks for".into();
        let rule = Rule::EngineLacks { engine, lack, hint: "leave `write_iolog` out" };
        return Err(values.refuse("write_iolog", rule));
    }
    let mut output = plan_output(planner, values);
    output.logs.iolog = iolog;
    let [read_sizes, write_sizes, trim_sizes] = sizes;
    let nice = values.integer("nice").map(|nice| i32::try_from(nice).expect("the row's bounds keep it small"));
    Ok(JobPlan {
        name: values.job.clone(),
        phase,
        engine,
        workers: values.small("numjobs").unwrap_or(1),
        files: files.into_iter().map(|file| file.plan).collect(),
        file_selection,
        pattern: Pattern { mix: ops.mix, order, read_sizes, write_sizes, trim_sizes, steps },
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
        guard: plan_guard(planner, values, ops.mix),
        control: plan_control(planner, values)?,
        verify,
        uring,
        simulated,
        cpus,
        nice,
        scheduling: plan_scheduling(planner, values)?,
        handling: plan_handling(planner, values, engine, ops)?,
        invalidate: values.bool("invalidate"),
        pre_read: values.bool("pre_read"),
        seed,
        buffer_alignment_bytes,
        buffer_offset_bytes,
        continue_on_error: values.choice("continue_on_error") == Some("all"),
        trace_syscalls: values.bool("trace_syscalls"),
        strace: values.bool("strace"),
        output,
        values: take(values).into_plan_values(),
    })
}

/// Processors and I/O priority.
fn plan_scheduling(planner: &mut Planner, values: &Values) -> Result<Scheduling, Refusal> {
    if values.cpus("cpus_allowed").is_none() {
        note_unused(planner, values, &["cpus_allowed_policy"], "no processors are named");
    }
    let small =
        |name: &str| values.number(name).map(|number| u8::try_from(number).expect("the row's bounds keep it small"));
    let io_priority = match (small("prioclass"), small("prio")) {
        (None | Some(0), None | Some(0)) => None,
        (Some(0), Some(_)) => {
            return Err(values.refuse(
                "prio",
                Rule::Contradiction {
                    one: values.quote("prioclass"),
                    other: values.quote("prio"),
                    reason: "no class has no levels",
                    hint: "say `prioclass` 1, 2 or 3",
                },
            ));
        }
        (class, level) => Some((class.unwrap_or(2), level.unwrap_or(0))),
    };
    Ok(Scheduling {
        shares_cpus: values.choice("cpus_allowed_policy") == Some("shared"),
        io_priority,
        ends_others: values.bool("exitall"),
        ends_others_on_error: values.bool("exitall_on_error"),
    })
}

/// Moves the values out; the job's planning is over.
fn take(values: &mut Values) -> Values {
    std::mem::replace(values, Values::empty())
}

pub(super) fn note_unused(planner: &mut Planner, values: &Values, names: &[&str], because: &str) {
    for name in names.iter().filter(|name| values.is_asked(name)) {
        planner.note(&values.job, &format!("{} has no effect: {because}", values.quote(name)));
    }
}

fn plan_ops(planner: &mut Planner, values: &mut Values) -> Result<Ops, Refusal> {
    if values.is_said("rwmixread") && values.is_said("rwmixwrite") {
        let (read, write) = (values.number("rwmixread").unwrap_or(50), values.number("rwmixwrite").unwrap_or(50));
        if read + write != 100 {
            return Err(values.refuse(
                "rwmixwrite",
                Rule::Contradiction {
                    one: values.quote("rwmixread"),
                    other: values.quote("rwmixwrite"),
                    reason: "together they are not 100 percent",
                    hint: "say one of them",
                },
            ));
        }
    }
    let read_percent = match values.number("rwmixwrite") {
        Some(write) => {
            if !values.is_said("rwmixread") {
                values.derive("rwmixread", (100 - write).to_string(), "what `rwmixwrite` leaves");
            }
            100 - write
        }
        None => values.number("rwmixread").unwrap_or(50),
    };
    let word = values.choice("rw").expect("`rw` has a default");
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
    let ops = Ops { mix, is_random, replayed: None };
    if matches!(mix, OpMix::Only(_)) {
        note_unused(planner, values, &["rwmixread", "rwmixwrite"], "the job does not mix reads and writes");
    }
    if !is_random {
        note_unused(planner, values, &["norandommap", "random_distribution"], "the job is sequential");
    }
    if !ops.has(OpKind::Write) {
        let names = [
            "sync",
            "fsync",
            "fdatasync",
            "end_fsync",
            "end_fdatasync",
            "fsync_on_close",
            "rwf_dsync",
            "atomic",
            "zero_buffers",
            "buffer_pattern",
            "refill_buffers",
            "buffer_compress_percentage",
            "dedupe_percentage",
        ];
        note_unused(planner, values, &names, "the job does not write");
    }
    Ok(ops)
}

/// Sizes of reads, writes and trims, and the option that says them.
fn plan_sizes(values: &Values) -> Result<([BlockSizes; 3], &'static str), Refusal> {
    let said: Vec<&'static str> =
        ["bssplit", "bsrange", "bs"].into_iter().filter(|name| values.is_said(name)).collect();
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
    let option = said.first().copied().unwrap_or("bs");
    Ok((values.sizes(option).expect("said, or `bs` by default").clone(), option))
}

fn plan_order(planner: &mut Planner, values: &Values, ops: Ops, steps: &Steps) -> Order {
    if !ops.is_random {
        return Order::Sequential;
    }
    let distribution = values.distribution("random_distribution");
    let is_uniform = distribution == Distribution::Uniform;
    if !is_uniform {
        note_unused(planner, values, &["norandommap"], "a distribution that is not uniform keeps no map anyway");
    }
    Order::Random { each_block_once: is_uniform && !values.bool("norandommap") && steps.is_none(), distribution }
}

fn engine_of(word: &str) -> EngineKind {
    let engine = EngineKind::ALL.into_iter().find(|engine| engine.name() == word);
    engine.expect("the words of `ioengine` are the engines' names")
}

fn plan_engine(
    planner: &Planner,
    values: &mut Values,
    ops: Ops,
    write_flags: WriteFlags,
) -> Result<EngineKind, Refusal> {
    let engines = &planner.machine.engines;
    let depth = values.small("iodepth").unwrap_or(1);
    if let Some(word) = values.choice("ioengine") {
        let engine = engine_of(word);
        let state = engines.of(engine);
        if let Some(reason) = state.unavailable {
            return Err(values.refuse("ioengine", Rule::EngineUnavailable { engine, reason }));
        }
        if depth > 1 && !engine.holds_a_queue() {
            return Err(values.refuse("iodepth", Rule::DepthOnBlockingEngine { engine, depth }));
        }
        if ops.has(OpKind::Trim) && !state.can_trim {
            let lack = "cannot trim here".into();
            return Err(values.refuse("rw", Rule::EngineLacks { engine, lack, hint: "use `ioengine = \"io_uring\"`" }));
        }
        return Ok(engine);
    }
    // io_uring first; what it cannot do here falls to libaio for a queue, and to a blocking engine
    // for one I/O at a time. The depth is never lowered to fit an engine.
    let needs_flags = write_flags != WriteFlags::default() || values.bool("hipri");
    let fallback = match (depth > 1, needs_flags) {
        (true, _) => EngineKind::Libaio,
        (false, true) => EngineKind::Pvsync2,
        (false, false) => EngineKind::Psync,
    };
    let mut reasons = Vec::new();
    for engine in [EngineKind::IoUring, fallback] {
        let state = engines.of(engine);
        match state.unavailable {
            Some(reason) => reasons.push(format!("{} does not work here ({reason})", engine.name())),
            None if ops.has(OpKind::Trim) && !state.can_trim => {
                reasons.push(format!("{} cannot trim", engine.name()));
            }
            None => {
                reasons.push(format!("{} works here", engine.name()));
                values.derive("ioengine", engine.name(), reasons.join("; "));
                return Ok(engine);
            }
        }
    }
    let rule = Rule::EngineUnavailable { engine: EngineKind::IoUring, reason: reasons.join("; ") };
    Err(values.refuse("iodepth", rule))
}

/// Flags and io_uring's own options, held against what the engine can do.
fn plan_engine_options(
    planner: &mut Planner,
    values: &mut Values,
    engine: EngineKind,
    ops: Ops,
    flags: WriteFlags,
) -> Result<(WriteFlags, UringOptions), Refusal> {
    let is_uring = engine == EngineKind::IoUring;
    let takes_flags = matches!(engine, EngineKind::Pvsync2 | EngineKind::Libaio | EngineKind::IoUring);
    for (name, is_set) in [("rwf_dsync", flags.dsync), ("uncached", flags.dontcache), ("atomic", flags.atomic)] {
        if is_set && !takes_flags {
            let lack = format!("takes no RWF flags, as `{name}` asks for");
            let hint = "use `ioengine = \"pvsync2\"`, \"libaio\" or \"io_uring\"";
            return Err(values.refuse(name, Rule::EngineLacks { engine, lack, hint }));
        }
    }
    let hipri = values.bool("hipri");
    if hipri && !matches!(engine, EngineKind::Pvsync2 | EngineKind::IoUring) {
        let lack = "cannot poll for completions".into();
        let hint = "use `ioengine = \"io_uring\"` or \"pvsync2\"";
        return Err(values.refuse("hipri", Rule::EngineLacks { engine, lack, hint }));
    }
    if hipri && ops.has(OpKind::Trim) {
        let lack = "cannot poll for trims".into();
        return Err(values.refuse("hipri", Rule::EngineLacks { engine, lack, hint: "leave `hipri` out" }));
    }
    for name in ["fixedbufs", "registerfiles", "sqthread_poll", "drain"] {
        if is_uring || !values.bool(name) {
            continue;
        }
        if values.is_said(name) {
            let lack = format!("has no ring, as `{name}` asks for");
            return Err(values.refuse(name, Rule::EngineLacks { engine, lack, hint: "use `ioengine = \"io_uring\"`" }));
        }
        values.derive(name, "false", format!("{} has no ring", engine.name()));
    }
    let force_async = values.small("force_async").unwrap_or(0);
    for (name, is_asked) in [("force_async", force_async > 0), ("nonvectored", !values.bool("nonvectored"))] {
        if is_asked && !is_uring {
            let lack = format!("has no ring, as `{name}` asks for");
            return Err(values.refuse(name, Rule::EngineLacks { engine, lack, hint: "use `ioengine = \"io_uring\"`" }));
        }
    }
    if !values.bool("sqthread_poll") {
        note_unused(planner, values, &["sqthread_poll_cpu"], "no kernel thread polls (`sqthread_poll`)");
    }
    let sqpoll_cpu = values.small("sqthread_poll_cpu");
    if let Some(cpu) = sqpoll_cpu.filter(|cpu| !planner.machine.cpus.is_empty() && !planner.machine.cpus.contains(cpu))
    {
        return Err(values.refuse("sqthread_poll_cpu", Rule::ProcessorNotThere { cpu }));
    }
    let uring = UringOptions {
        sqpoll_cpu: sqpoll_cpu.filter(|_| is_uring && values.bool("sqthread_poll")),
        async_every: force_async,
        vectored: is_uring && !values.bool("nonvectored"),
        registered_buffers: is_uring && values.bool("fixedbufs"),
        registered_files: is_uring && values.bool("registerfiles"),
        sqpoll: is_uring && values.bool("sqthread_poll"),
        iopoll: is_uring && hipri,
        drain: is_uring && values.bool("drain"),
    };
    if uring.drain && uring.iopoll {
        let rule = Rule::Contradiction {
            one: values.quote("drain"),
            other: values.quote("hipri"),
            reason: "a request that waits for those before it is not polled for meanwhile",
            hint: "leave one of them out",
        };
        return Err(values.refuse("drain", rule));
    }
    Ok((WriteFlags { hipri: hipri && engine == EngineKind::Pvsync2, ..flags }, uring))
}

/// The load of `cpuio`, which nothing but its time ends.
fn plan_cpu_load(planner: &mut Planner, values: &Values, engine: EngineKind) -> Result<Option<CpuLoad>, Refusal> {
    if engine != EngineKind::Cpuio {
        note_unused(planner, values, &["cpuload", "cpuchunks"], "the engine is not `cpuio`");
        return Ok(None);
    }
    let incomplete = |option: &str, needs| {
        let rule = Rule::Incomplete { option: values.quote("ioengine"), needs, hint: "say it beside the engine" };
        Err(values.refuse(option, rule))
    };
    let Some(percent) = values.number("cpuload") else { return incomplete("cpuload", "`cpuload`: how busy it is") };
    if values.duration_ns("runtime").is_none() {
        return incomplete("runtime", "`runtime`: nothing else would end it");
    }
    let percent = u8::try_from(percent).expect("the row's bounds keep it small");
    Ok(Some(CpuLoad { percent, chunk_ns: values.duration_ns("cpuchunks").unwrap_or(50_000_000) }))
}

/// What the engines that move no data cannot do.
fn check_without_data(values: &Values, engine: EngineKind, ops: Ops, files: &[JobFile]) -> Result<(), Refusal> {
    let refuse =
        |option: &str, lack: String, hint| Err(values.refuse(option, Rule::EngineLacks { engine, lack, hint }));
    let is_device = |file: &&JobFile| file.facts.as_ref().is_some_and(|f| f.kind == TargetKind::BlockDevice);
    if let Some(file) = files.iter().find(is_device) {
        let lack = format!("works on files, and `{}` is a block device", file.plan.path);
        return refuse("filename", lack, "name a file, or choose another engine");
    }
    if engine == EngineKind::Ftruncate {
        if !matches!(ops.mix, OpMix::Only(OpKind::Write)) {
            return refuse(
                "rw",
                "changes the length of files, which is a write".into(),
                "say `rw = \"write\"` or \"randwrite\"",
            );
        }
        if let Some(file) = files.iter().find(|file| file.plan.prepare == Prepare::UseExisting) {
            let lack = format!("would change the length of `{}`, which exists", file.plan.path);
            return refuse("filename", lack, "let it make a file of its own; what exists is never cut or extended");
        }
    }
    Ok(())
}

/// What is wanted of the page cache, before the targets are asked.
fn plan_direct(
    values: &mut Values,
    engine: EngineKind,
    flags: WriteFlags,
    uring: UringOptions,
) -> Result<DirectPolicy, Refusal> {
    let wanted = match values.choice("direct") {
        Some("require") => DirectPolicy::Require,
        Some("off") => DirectPolicy::Off,
        _ => DirectPolicy::Prefer,
    };
    let contradiction = |values: &Values, name: &str, reason: &'static str, hint: &'static str| {
        let rule = Rule::Contradiction { one: values.quote("direct"), other: values.quote(name), reason, hint };
        values.refuse("direct", rule)
    };
    if !engine.touches_files() {
        values.derive("direct", "off", format!("{} moves no data", engine.name()));
        return Ok(DirectPolicy::Off);
    }
    if engine == EngineKind::Command {
        values.derive("direct", "off", "the program opens the file as it likes");
        return Ok(DirectPolicy::Off);
    }
    if engine == EngineKind::Mmap {
        if wanted == DirectPolicy::Require {
            let lack = "is the page cache and cannot go past it".into();
            let rule = Rule::EngineLacks { engine, lack, hint: "leave `direct` out, or choose another engine" };
            return Err(values.refuse("direct", rule));
        }
        if wanted != DirectPolicy::Off {
            values.derive("direct", "off", "mmap is the page cache");
        }
        return Ok(DirectPolicy::Off);
    }
    let needs_direct = if uring.iopoll || flags.hipri {
        Some("hipri")
    } else if flags.atomic {
        Some("atomic")
    } else {
        None
    };
    if flags.dontcache {
        if let Some(name) = needs_direct {
            let rule = Rule::Contradiction {
                one: values.quote("uncached"),
                other: values.quote(name),
                reason: "one goes through the page cache and the other past it",
                hint: "leave one of them out",
            };
            return Err(values.refuse("uncached", rule));
        }
        if wanted == DirectPolicy::Require {
            let reason = "RWF_DONTCACHE goes through the page cache";
            return Err(contradiction(values, "uncached", reason, "leave one of them out"));
        }
        if wanted == DirectPolicy::Prefer {
            values.derive("direct", "off", "`uncached` goes through the page cache");
        }
        return Ok(DirectPolicy::Off);
    }
    if let Some(name) = needs_direct {
        if wanted == DirectPolicy::Off {
            return Err(contradiction(values, name, "it works on direct I/O only", "say `direct = \"require\"`"));
        }
        if wanted == DirectPolicy::Prefer {
            values.derive("direct", "require", format!("`{name}` works on direct I/O only"));
        }
        return Ok(DirectPolicy::Require);
    }
    Ok(wanted)
}

fn plan_sync(planner: &mut Planner, values: &Values, engine: EngineKind, ops: Ops) -> Result<SyncMode, Refusal> {
    let sync = match values.choice("sync") {
        Some("dsync") => SyncMode::Dsync,
        Some("sync") => SyncMode::Sync,
        _ => SyncMode::None,
    };
    if sync != SyncMode::None && engine == EngineKind::Mmap && ops.has(OpKind::Write) {
        let lack = "copies into memory, where O_SYNC and O_DSYNC mean nothing".into();
        let hint = "use `fsync = N` or `fdatasync = N`, or another engine";
        return Err(values.refuse("sync", Rule::EngineLacks { engine, lack, hint }));
    }
    if !engine.touches_files() {
        let because = format!("{} moves no data", engine.name());
        note_unused(planner, values, &["sync", "invalidate"], &because);
    }
    Ok(sync)
}

/// Sync calls between the writes and after them.
fn plan_flush(planner: &mut Planner, values: &Values) -> Result<Flush, Refusal> {
    let contradiction = |one, other, reason, hint| {
        let rule = Rule::Contradiction { one: values.quote(one), other: values.quote(other), reason, hint };
        Err(values.refuse(other, rule))
    };
    let flush = Flush {
        fsync_every: values.number("fsync").unwrap_or(0),
        fdatasync_every: values.number("fdatasync").unwrap_or(0),
        end_fsync: values.bool("end_fsync"),
        end_fdatasync: values.bool("end_fdatasync"),
        fsync_on_close: values.bool("fsync_on_close"),
    };
    if flush.fsync_every > 0 && flush.fdatasync_every > 0 {
        let hint = "say one of them: `fsync` includes what `fdatasync` does";
        return contradiction("fsync", "fdatasync", "a job makes one kind of sync call", hint);
    }
    for (name, is_set) in [("end_fsync", flush.end_fsync), ("fsync_on_close", flush.fsync_on_close)] {
        if flush.end_fdatasync && is_set {
            let reason = "the one call would take the work from the other, and neither would be measured";
            return contradiction(name, "end_fdatasync", reason, "say one of them");
        }
    }
    if flush.end_fsync && flush.fsync_on_close {
        note_unused(planner, values, &["fsync_on_close"], "`end_fsync` makes the call");
    }
    Ok(flush)
}

fn plan_queue(values: &mut Values, engine: EngineKind) -> Result<Queue, Refusal> {
    let depth = values.small("iodepth").unwrap_or(1);
    let submit_batch = values.small("iodepth_batch");
    let complete_min = values.small("iodepth_batch_complete_min").unwrap_or(1);
    let complete_max = values.small("iodepth_batch_complete_max").unwrap_or(0);
    let contradiction = |values: &Values, one: &'static str, other: &'static str, reason, hint| {
        let rule = Rule::Contradiction { one: values.quote(one), other: values.quote(other), reason, hint };
        values.refuse(one, rule)
    };
    if submit_batch.is_some_and(|batch| batch > depth) {
        let reason = "a batch cannot be larger than the queue";
        return Err(contradiction(values, "iodepth_batch", "iodepth", reason, "raise `iodepth` or lower the batch"));
    }
    if complete_min > depth {
        let reason = "more completions cannot come than are in flight";
        let hint = "raise `iodepth` or lower the batch";
        return Err(contradiction(values, "iodepth_batch_complete_min", "iodepth", reason, hint));
    }
    if complete_max > 0 && complete_max < complete_min {
        let (one, other) = ("iodepth_batch_complete_max", "iodepth_batch_complete_min");
        return Err(contradiction(values, one, other, "the most is less than the least", "raise the most"));
    }
    let low = values.small("iodepth_low").unwrap_or(0);
    if low > depth {
        let reason = "more than the depth are never in flight";
        return Err(contradiction(values, "iodepth_low", "iodepth", reason, "raise `iodepth` or lower the mark"));
    }
    if low > 0 && values.duration_ns("latency_target").is_some() {
        let reason = "the search for a depth keeps the queue at one depth, and the mark lets it swing";
        return Err(contradiction(values, "iodepth_low", "latency_target", reason, "leave one of them out"));
    }
    if submit_batch.is_none() {
        let reason = if engine.holds_a_queue() {
            "adapted to the device's latency, so that batching does not lengthen it"
        } else {
            "the engine holds one I/O at a time"
        };
        values.derive("iodepth_batch", if engine.holds_a_queue() { "adaptive" } else { "1" }, reason);
    }
    // At the depth itself, or one below, there is nothing to wait for: one completion makes room.
    let low = if low + 1 >= depth { 0 } else { low };
    Ok(Queue { depth, submit_batch, complete_min, complete_max, low })
}

/// What an operation's offset and length must be multiples of, past the page cache; and who says so.
fn alignment_of(facts: &TargetFacts, op: OpKind) -> Option<(u64, String)> {
    let fact = match op {
        OpKind::Read => &facts.direct.read_alignment_bytes,
        _ => &facts.direct.write_alignment_bytes,
    };
    if let Some(bytes) = fact.value {
        return Some((u64::from(bytes.max(1)), fact.source.clone()));
    }
    let sectors = facts.disks.iter().filter_map(|disk| Some((disk, disk.logical_sector_bytes.value?)));
    let (_, bytes, source) = sectors
        .map(|(disk, bytes)| (&disk.name, bytes, disk.logical_sector_bytes.source.clone()))
        .max_by_key(|(_, bytes, _)| *bytes)?;
    Some((u64::from(bytes.max(1)), source))
}

/// Every size that an operation may have, or whose multiples it has.
fn unit_sizes(sizes: &BlockSizes) -> Vec<u64> {
    match sizes {
        BlockSizes::Fixed(bytes) => vec![*bytes],
        BlockSizes::Range { min_bytes, .. } => vec![*min_bytes],
        BlockSizes::Weighted(pairs) => pairs.iter().map(|pair| pair.0).collect(),
    }
}

/// Holds what is wanted against what the targets say.
fn settle_direct(
    planner: &mut Planner,
    values: &mut Values,
    files: &[JobFile],
    used: &[(OpKind, &BlockSizes)],
    sizes_option: &'static str,
    policy: DirectPolicy,
) -> Result<DirectPolicy, Refusal> {
    let mut misaligned: Option<(&'static str, Rule)> = None;
    for file in files {
        let Some(facts) = &file.facts else { continue };
        let path = &file.plan.path;
        let has_no_direct = matches!(facts.direct.support, DirectSupport::SilentlyBuffered | DirectSupport::Refused);
        if policy == DirectPolicy::Require && has_no_direct {
            let rule = Rule::DirectImpossible { path: path.clone(), reason: facts.direct.reason.clone() };
            return Err(values.refuse("direct", rule));
        }
        // Operations of one job share a grid of offsets, so the strictest alignment is everyone's.
        // A device is trimmed in whole sectors, whatever the page cache does; a hole may begin
        // anywhere in a file.
        let is_trim = used.iter().any(|(op, _)| *op == OpKind::Trim);
        let must_align = if is_trim { facts.kind == TargetKind::BlockDevice } else { policy != DirectPolicy::Off };
        let alignments = used.iter().filter_map(|(op, _)| alignment_of(facts, *op));
        let Some((alignment_bytes, source_text)) = alignments.filter(|_| must_align).max_by_key(|(bytes, _)| *bytes)
        else {
            continue;
        };
        let sizes = used.iter().flat_map(|(_, sizes)| unit_sizes(sizes));
        let sizes = sizes.map(|bytes| (sizes_option, "a block", bytes));
        let offset = std::iter::once(("offset", "the offset", file.plan.offset_bytes));
        for (option, what, value_bytes) in sizes.chain(offset) {
            if value_bytes.is_multiple_of(alignment_bytes) {
                continue;
            }
            let (path, source_text) = (path.clone(), source_text.clone());
            let rule = Rule::Misaligned { what, value_bytes, alignment_bytes, path, source_text };
            if is_trim || policy == DirectPolicy::Require {
                return Err(values.refuse(option, rule));
            }
            misaligned.get_or_insert((option, rule));
        }
    }
    match misaligned {
        None => Ok(policy),
        Some((_, rule)) => {
            planner.note(&values.job, &format!("direct I/O is preferred and cannot be had: {rule}"));
            values.derive("direct", "off", "preferred, but sizes or offset are not aligned for direct I/O");
            Ok(DirectPolicy::Off)
        }
    }
}

/// Holds deliberately misaligned buffers against what direct I/O needs. Required, the calls are made and the
/// kernel refuses them: that is what was asked for. Preferred, direct I/O cannot be had.
fn settle_buffers(
    planner: &mut Planner,
    values: &mut Values,
    files: &[JobFile],
    offset_bytes: u32,
    policy: DirectPolicy,
) -> DirectPolicy {
    let facts = files.iter().filter_map(|file| file.facts.as_ref());
    let needed = facts.map(|facts| facts.direct.memory_alignment_bytes.value.unwrap_or(512).max(1));
    let Some(needed) = needed.max().filter(|needed| !offset_bytes.is_multiple_of(*needed)) else { return policy };
    let buffers = format!("{} puts the buffers at no multiple of {needed} bytes", values.quote("buffer_offset"));
    match policy {
        DirectPolicy::Off => policy,
        DirectPolicy::Prefer => {
            planner.note(&values.job, &format!("direct I/O is preferred and cannot be had: {buffers}"));
            values.derive("direct", "off", "preferred, but the buffers are not aligned for direct I/O");
            DirectPolicy::Off
        }
        DirectPolicy::Require => {
            planner.note(&values.job, &format!("{buffers}, which direct I/O needs: its calls may all fail"));
            policy
        }
    }
}

/// Holds atomic writes against what the targets say of them. Where nobody says, the kernel decides at
/// the first write.
///
/// Source: statx(2) `STATX_WRITE_ATOMIC`; pwritev2(2) `RWF_ATOMIC`: a power of two, within the limits,
/// at a multiple of its length.
fn check_atomic(
    values: &Values,
    files: &[JobFile],
    sizes: &BlockSizes,
    sizes_option: &'static str,
) -> Result<(), Refusal> {
    for file in files {
        let Some(facts) = &file.facts else { continue };
        let path = &file.plan.path;
        let refuse = |option: &str, reason: String| {
            Err(values.refuse(option, Rule::AtomicImpossible { path: path.clone(), reason }))
        };
        // statx says nothing of a block device without them, but its queue does.
        let limit = |disk: &trueio_model::DiskFacts| disk.limits.atomic_write_max_bytes.value;
        let is_bare = facts.kind == TargetKind::BlockDevice && !facts.disks.is_empty();
        if is_bare && facts.disks.iter().all(|disk| limit(disk) == Some(0)) {
            let source = &facts.disks[0].limits.atomic_write_max_bytes.source;
            return refuse("atomic", format!("the disk promises none ({source} is 0)"));
        }
        let atomic = &facts.direct.atomic_write;
        let Some(limits) = atomic.value else { continue };
        if limits.max_bytes == 0 {
            return refuse("atomic", format!("it has none ({})", atomic.source));
        }
        let BlockSizes::Fixed(bytes) = *sizes else {
            let reason = "blocks of several sizes do not stand at multiples of their own length".to_owned();
            return refuse(sizes_option, reason);
        };
        if !bytes.is_power_of_two() {
            return refuse(sizes_option, format!("{} is not a power of two", write_bytes(bytes)));
        }
        let (least, most) = (u64::from(limits.min_bytes), u64::from(limits.max_bytes));
        if !(least..=most).contains(&bytes) {
            let (bytes, least, most) = (write_bytes(bytes), write_bytes(least), write_bytes(most));
            return refuse(sizes_option, format!("{bytes} is not within {least} to {most} ({})", atomic.source));
        }
        if !file.plan.offset_bytes.is_multiple_of(bytes) {
            let (offset, bytes) = (write_bytes(file.plan.offset_bytes), write_bytes(bytes));
            return refuse("offset", format!("the offset of {offset} is not a multiple of a block of {bytes}"));
        }
    }
    Ok(())
}

/// Refuses to poll where no disk can be polled: io_uring's first I/O would fail with EOPNOTSUPP, and
/// `RWF_HIPRI` would be ignored in silence.
///
/// Source: Linux `Documentation/ABI/stable/sysfs-block`, `queue/io_poll`.
fn check_polling(values: &Values, files: &[JobFile]) -> Result<(), Refusal> {
    for file in files {
        let Some(facts) = &file.facts else { continue };
        let can_not = |disk: &&trueio_model::DiskFacts| disk.limits.can_poll.value == Some(false);
        if let Some(disk) = facts.disks.iter().find(can_not) {
            let rule = Rule::PollImpossible {
                path: file.plan.path.clone(),
                disk: disk.name.clone(),
                source_text: format!("{} is 0", disk.limits.can_poll.source),
            };
            return Err(values.refuse("hipri", rule));
        }
    }
    Ok(())
}

fn plan_limits(
    values: &mut Values,
    engine: EngineKind,
    region_bytes: u64,
    block_bytes_max: u64,
) -> Result<Limits, Refusal> {
    let runtime_ns = values.duration_ns("runtime");
    let is_time_based = values.bool("time_based");
    if is_time_based && runtime_ns.is_none() {
        let rule = Rule::Incomplete {
            option: values.quote("time_based"),
            needs: "`runtime`: nothing would end the job",
            hint: "say `runtime`, such as `runtime = \"30s\"`",
        };
        return Err(values.refuse("time_based", rule));
    }
    let size_is_io = values.is_said("filesize") && values.is_said("size");
    let (io_bytes, reason) = match (values.extent("io_size"), values.extent("size")) {
        _ if engine.works_on_names() => (region_bytes, Some("one for each name")),
        (Some(Extent::Bytes(bytes)), _) => (bytes, None),
        (Some(Extent::Percent(percent)), _) => ((u128::from(region_bytes) * u128::from(percent) / 100) as u64, None),
        (None, Some(Extent::Bytes(bytes))) if size_is_io => (bytes, Some("`size`, since `filesize` is said")),
        (None, _) => (region_bytes, Some("the files' regions once")),
    };
    if let Some(reason) = reason {
        values.derive("io_size", write_bytes(io_bytes), reason);
    }
    if io_bytes < block_bytes_max {
        let option = if values.is_said("io_size") { "io_size" } else { "size" };
        let reason = format!("{} is less than one block of {}", write_bytes(io_bytes), write_bytes(block_bytes_max));
        return Err(values.refuse(option, Rule::BadValue { option, reason }));
    }
    Ok(Limits { io_bytes, ..plan_times(values) })
}

/// What is said of times and counts.
fn plan_times(values: &Values) -> Limits {
    Limits {
        io_bytes: 0,
        loops: values.number("loops").unwrap_or(1),
        io_count: values.number("number_ios").filter(|count| *count > 0),
        runtime_ns: values.duration_ns("runtime"),
        is_time_based: values.bool("time_based"),
        ramp_ns: values.duration_ns("ramp_time").unwrap_or(0),
        start_delay_ns: values.duration_ns("startdelay").unwrap_or(0),
    }
}

/// Rounds repeat a job, so it must be one that can be repeated on the same bytes.
fn plan_steady_state(
    planner: &mut Planner,
    values: &Values,
    files: &[JobFile],
    verify: Option<&Verify>,
) -> Result<Option<SteadyPlan>, Refusal> {
    if !values.bool("steady_state") {
        let because = "`steady_state` is not asked for";
        note_unused(planner, values, &["steady_state_round", "steady_state_rounds"], because);
        return Ok(None);
    }
    let refuse = |reason: &str, hint| {
        let rule = Rule::SteadyState { reason: reason.to_owned(), hint };
        Err(values.refuse("steady_state", rule))
    };
    if verify.is_some() {
        return refuse(
            "the rounds write again what would be compared afterwards",
            "leave out `verify`, or compare in a job of its own",
        );
    }
    if files.iter().any(|file| file.plan.prepare == Prepare::CreateEmpty) {
        return refuse(
            "the job extends an empty file, and after the first round it would overwrite it",
            "let the file be filled first: `overwrite = true`",
        );
    }
    if files.iter().any(|f| matches!(f.plan.prepare, Prepare::CreateAllocated | Prepare::CreateSparse)) {
        let sentence = "nothing was written to the file yet: the rounds of `steady_state` write it, and what is measured then \
                        overwrites; `overwrite = true` says so from the beginning";
        planner.note(&values.job, sentence);
    }
    let round_ns = values.duration_ns("steady_state_round").unwrap_or(0);
    if round_ns < 100_000_000 {
        let reason = "a round shorter than 100 ms says little of a device".to_owned();
        let option = "steady_state_round";
        return Err(values.refuse(option, Rule::BadValue { option, reason }));
    }
    Ok(Some(SteadyPlan { round_ns, rounds_max: values.small("steady_state_rounds").unwrap_or(25) }))
}

fn plan_content(planner: &mut Planner, values: &Values, ops: Ops) -> Result<Content, Refusal> {
    let percent = |name: &str| u8::try_from(values.number(name).unwrap_or(0)).expect("a percentage");
    let fixed = if values.bool("zero_buffers") {
        Some(("zero_buffers", ContentKind::Zero))
    } else if values.pattern("buffer_pattern").is_some() {
        Some(("buffer_pattern", ContentKind::Pattern))
    } else {
        None
    };
    let content = Content {
        kind: fixed.map_or(ContentKind::Random, |fixed| fixed.1),
        pattern: values.pattern("buffer_pattern").unwrap_or_default().to_vec(),
        compressible_percent: percent("buffer_compress_percentage"),
        duplicate_percent: percent("dedupe_percentage"),
        refill: values.bool("refill_buffers"),
    };
    let Some((fixed, _)) = fixed.filter(|_| ops.has(OpKind::Write)) else { return Ok(content) };
    let said = |name: &'static str| match name {
        "buffer_pattern" => fixed != name && values.pattern(name).is_some(),
        _ => percent(name) > 0,
    };
    let others = ["buffer_pattern", "buffer_compress_percentage", "dedupe_percentage"];
    if let Some(other) = others.into_iter().find(|name| said(name)) {
        let rule = Rule::Contradiction {
            one: values.quote(fixed),
            other: values.quote(other),
            reason: "content that is always the same is no other",
            hint: "leave one of them out",
        };
        return Err(values.refuse(other, rule));
    }
    note_unused(planner, values, &["refill_buffers"], "the content is always the same");
    Ok(content)
}

fn plan_pace(planner: &mut Planner, values: &Values, mix: OpMix) -> Result<Option<Pace>, Refusal> {
    let (bytes, ios) = (values.rates("rate"), values.rates("rate_iops"));
    let arrivals = match values.choice("rate_process") {
        Some("poisson") => Arrivals::Poisson,
        _ => Arrivals::Linear,
    };
    let (option, rates) = match (bytes, ios) {
        (Some(_), Some(_)) => {
            let rule = Rule::Contradiction {
                one: values.quote("rate"),
                other: values.quote("rate_iops"),
                reason: "a job has one rate",
                hint: "say one of them",
            };
            return Err(values.refuse("rate_iops", rule));
        }
        (None, None) => {
            note_unused(planner, values, &["rate_process"], "no rate is given");
            return Ok(None);
        }
        (Some(rates), None) => ("rate", rates),
        (None, Some(rates)) => ("rate_iops", rates),
    };
    let (rate, of_writes) = rates.of(mix);
    if of_writes.is_some_and(|writes| writes <= 0.0 || rate <= 0.0) {
        let reason = "it leaves reads or writes of the job without a rate; two jobs can have that".to_owned();
        return Err(values.refuse(option, Rule::BadValue { option, reason }));
    }
    if rate <= 0.0 {
        return Ok(None);
    }
    if of_writes.is_some() {
        let because = "the rates say how many of the I/Os are reads";
        note_unused(planner, values, &["rwmixread", "rwmixwrite"], because);
    }
    let (ios_per_s, bytes_per_s) = if option == "rate" { (None, Some(rate)) } else { (Some(rate), None) };
    Ok(Some(Pace { ios_per_s, bytes_per_s, of_writes, arrivals }))
}

/// What ends the job as failed because it is slow.
fn plan_guard(planner: &mut Planner, values: &Values, mix: OpMix) -> Guard {
    let rate = |name: &str| {
        let (rate, of_writes) = values.rates(name).map_or((0.0, None), |rates| rates.of(mix));
        (rate.ceil() as u64, of_writes.map(|rate| rate.ceil() as u64))
    };
    let ((bytes, bytes_of_writes), (ios, ios_of_writes)) = (rate("rate_min"), rate("rate_iops_min"));
    let guard = Guard {
        bytes_per_s_min: bytes,
        ios_per_s_min: ios,
        of_writes: match (bytes_of_writes, ios_of_writes) {
            (None, None) => None,
            // Said once for all, it is asked of each.
            (of_bytes, of_ios) => Some((of_bytes.unwrap_or(bytes), of_ios.unwrap_or(ios))),
        },
        cycle_ns: values.number("rate_cycle").unwrap_or(1000).saturating_mul(1_000_000),
        latency_ns_max: values.duration_ns("max_latency").unwrap_or(0),
    };
    if guard.bytes_per_s_min == 0 && guard.ios_per_s_min == 0 && guard.of_writes.is_none() {
        note_unused(planner, values, &["rate_cycle"], "neither `rate_min` nor `rate_iops_min` is given");
    }
    if guard.is_none() { Guard::default() } else { guard }
}

fn plan_think(planner: &mut Planner, values: &Values) -> Option<Think> {
    let Some(time_ns) = values.duration_ns("thinktime") else {
        let names = ["thinktime_blocks", "thinktime_spin", "thinktime_iotime"];
        note_unused(planner, values, &names, "no `thinktime` is given");
        return None;
    };
    let after_ns = values.duration_ns("thinktime_iotime").unwrap_or(0);
    let every = match values.is_said("thinktime_blocks") || after_ns == 0 {
        true => values.number("thinktime_blocks").unwrap_or(1),
        false => 0,
    };
    Some(Think { time_ns, every, after_ns, spin_ns: values.duration_ns("thinktime_spin").unwrap_or(0).min(time_ns) })
}

fn plan_seed(planner: &Planner, values: &mut Values, index: usize) -> u64 {
    if let Some(seed) = values.number("randseed") {
        return seed;
    }
    let (base, reason) = match values.bool("randrepeat") {
        true => (SEED_BASE, "a constant and the job's place, the same in each run"),
        false => (planner.machine.entropy, "drawn for this run, since `randrepeat` is false"),
    };
    let seed = splitmix64(base.wrapping_add(index as u64));
    values.derive("randseed", seed.to_string(), reason);
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
