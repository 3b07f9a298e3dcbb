//! Stages the false result of the published 0.112 s: direct writes of 128 KiB from a buffer returned by
//! `malloc`.
//!
//! Every `pwrite` returns EINVAL in a few microseconds, the loop ignores the result, and it is faster than
//! any disk. An engine of trueio can make such calls with `buffer_offset`, but it checks each result. So the
//! calls are made here; their results are counted as an engine counts them, and judged as in every phase.

use super::rows::{Finding, Row};
use super::scratch::nameless;
use super::stage::Stage;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};
use trueio_device::System;
use trueio_engine::RandomFill;
use trueio_evidence::{PhaseFacts, Watch, judge};
use trueio_model::{
    CheckOutcome, CpuTime, Fact, FilePlan, Histogram, IoFailure, JobRecord, LatencySet, OpKind, OpRecord, TargetKind,
    ThreadUsage, units,
};

pub(super) const NAME: &str = "every call fails and the results are ignored: direct writes from a misaligned buffer";
const BLOCK: usize = 128 << 10;
const BLOCK_COUNT: u64 = 128;
const CALL_COUNT: u64 = 4096;

/// The results of the calls.
struct Calls {
    elapsed: Duration,
    write: OpRecord,
    failures: Vec<IoFailure>,
}

pub(super) fn stage(stage: &Stage, directory: &Path) -> Row {
    match attempt(stage, directory) {
        Ok(row) => row,
        Err(why) => Row::not_staged(false, NAME, &why),
    }
}

fn attempt(stage: &Stage, directory: &Path) -> Result<Row, String> {
    let words = |what: &str, error: io::Error| format!("{what}: {error}");
    let spec = stage.spec(
        "misaligned",
        directory,
        &[("rw", "randwrite"), ("bs", "128k"), ("ioengine", "psync"), ("direct", "require")],
    );
    let plan = stage.plan(&spec).map_err(|finding| finding.sentence)?;
    let mut job = plan.jobs.into_iter().next().expect("one specification, one job");
    let path = job.files[0].path.clone();
    let system = System::live();
    let mut target = trueio_device::target_facts(&system, directory).map_err(|e| e.to_string())?;
    target.kind = TargetKind::File;
    target.path.clone_from(&path);
    target.size_bytes = Fact::known(BLOCK as u64 * BLOCK_COUNT, "by construction");

    let file = File::open(directory)
        .and_then(|folder| nameless(folder, OFlags::DIRECT))
        .map_err(|e| words("cannot create a file without a name", e))?;
    fill(&file).map_err(|e| words("the file could not be filled", e))?;
    let path_through_descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    let watched = FilePlan { path: path_through_descriptor, ..job.files[0].clone() };
    let targets = [target];
    let mut watch = Watch::new(&system, &targets, [&watched]);
    watch.baseline(Duration::from_nanos(stage.machine.idle_baseline_ns));
    watch.before(None);
    let calls = write_blindly(&file, &path);
    let mut observation = watch.after();
    observation.residency.iter_mut().for_each(|file| file.0.clone_from(&path));
    let maps = observation.maps.iter_mut().chain(&mut observation.maps_after);
    maps.for_each(|map| map.path.clone_from(&path));
    if calls.failures.is_empty() {
        return Err("direct writes from a misaligned buffer succeed on this filesystem".to_owned());
    }

    let seconds = calls.elapsed.as_secs_f64();
    let bytes = CALL_COUNT * BLOCK as u64;
    let unchecked = format!(
        "{} written in {:.3} s: {}, no error",
        units::format_bytes(bytes),
        seconds,
        units::format_bandwidth(bytes as f64 / seconds)
    );
    let elapsed_ns = calls.elapsed.as_nanos() as u64;
    job.limits.io_bytes = bytes;
    let record = JobRecord {
        name: job.name.clone(),
        ops: vec![calls.write],
        series: Vec::new(),
        elapsed_ns,
        achieved_depth: None,
        pacing_lateness: Histogram::new(),
        backlog_count: 0,
        failures: calls.failures,
        verify_failures: Vec::new(),
        verified_block_count: 0,
        verify_failure_count: 0,
        read_back: None,
        source_wait_ns: None,
        open_ns: None,
        close_ns: None,
        depth_searches: Vec::new(),
        criterion: None,
        zones: None,
        engine_notes: Vec::new(),
        threads: ThreadUsage::default(),
        queue: None,
        workers: Vec::new(),
    };
    let environment = trueio_device::environment(&system);
    let facts = PhaseFacts {
        targets: &targets,
        jobs: &[job],
        records: &[record],
        observation: &observation,
        trace: None,
        elapsed_ns,
        cpu: CpuTime::default(),
        worker_cpu: CpuTime::default(),
        ruler: None,
        environment: Some(&environment),
        steady_state: None,
        accepted_checks: &[],
    };
    let (_, _, checks) = judge(&facts);
    let findings = checks
        .into_iter()
        .filter(|check| check.outcome == CheckOutcome::Contradicted)
        .map(|check| Finding::new("contradicted", check.name, check.sentence))
        .collect();
    Ok(Row::false_result(NAME, unchecked, findings, &[&["call_results"]]))
}

/// Fills the file with random content: on unwritten space each failure would take longer.
fn fill(file: &File) -> io::Result<()> {
    let mut block = trueio_direct::AlignedBuffer::new(BLOCK, 4096).map_err(io::Error::other)?;
    let mut content = RandomFill::new(1);
    for index in 0..BLOCK_COUNT {
        content.fill(&mut block);
        file.write_all_at(&block, index * BLOCK as u64)?;
    }
    file.sync_all()
}

/// A loop that ignores results; they are counted here for the record.
fn write_blindly(file: &File, path: &str) -> Calls {
    let buffer = vec![0u8; BLOCK + 1024];
    // 160 bytes past a multiple of 512, as measured for a `malloc` in C.
    let shift = (512 + 160 - buffer.as_ptr() as usize % 512) % 512;
    let address = buffer[shift..].as_ptr();
    let mut total = Histogram::new();
    let mut failures: Vec<IoFailure> = Vec::new();
    let (mut good, mut bad) = (0, 0);
    let begin = Instant::now();
    for call in 0..CALL_COUNT {
        // An odd stride visits every block of a power of two, and not in order.
        let offset = call * 37 % BLOCK_COUNT * BLOCK as u64;
        let at = Instant::now();
        // SAFETY: `address` points to `BLOCK` bytes of `buffer`, which outlives this blocking call.
        let returned = unsafe { libc::pwrite(file.as_raw_fd(), address.cast(), BLOCK, offset as libc::off_t) };
        if returned == BLOCK as isize {
            good += 1;
            total.record(at.elapsed().as_nanos() as u64);
            continue;
        }
        bad += 1;
        match failures.first_mut() {
            Some(first) => first.count += 1,
            None => failures.push(IoFailure {
                op: OpKind::Write,
                errno: io::Error::last_os_error().raw_os_error().unwrap_or(0),
                path: path.to_owned(),
                offset,
                length: BLOCK as u64,
                address: address as u64,
                returned: 0,
                count: 1,
                explanation: String::new(),
            }),
        }
    }
    let latency = LatencySet {
        submission: Histogram::new(),
        completion: Histogram::new(),
        total,
        from_intended: Histogram::new(),
    };
    let write = OpRecord {
        op: OpKind::Write,
        io_count: good,
        byte_count: good * BLOCK as u64,
        short_count: 0,
        error_count: bad,
        latency,
        priorities: Vec::new(),
        percentiles: Vec::new(),
        dependence: None,
        mean_latency_ns: None,
        ios_per_s: None,
    };
    Calls { elapsed: begin.elapsed(), write, failures }
}
