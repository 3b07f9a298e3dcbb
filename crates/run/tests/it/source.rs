//! Jobs that fetch what they write: the file holds the body with every engine, and a file that differs is found.

use crate::common::{Job, KIB, MIB, Open, assert_clean, folder, has_direct, op, skip};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use trueio_engine::{SourceComparison, availability, compare_with_source};
use trueio_model::{EngineKind, OpKind, SourcePlan};
use trueio_run::{Body, BodyServer, HOST, open_body};

/// Whole blocks, a rest for direct I/O (8 KiB and 512 bytes), and one for the page cache.
const LENGTH: u64 = 37 * 32 * KIB + 8 * KIB + 512 + 77;
const BLOCK: u64 = 32 * KIB;

fn body(seed: u64, length: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    Body::new(seed, length).read_to_end(&mut bytes).unwrap();
    bytes
}

fn source(url: &str, length: u64, direct_unit: u64, is_verified: bool) -> SourcePlan {
    SourcePlan {
        address: url.parse().unwrap(),
        length_bytes: length,
        direct_bytes: length / direct_unit * direct_unit,
        is_verified,
    }
}

/// A job that writes a body to a file of as many zeros.
fn job(kind: EngineKind, depth: u32, path: &Path, source: SourcePlan, open: Open) -> Job {
    std::fs::write(path, vec![0; source.length_bytes as usize]).unwrap();
    let length = source.length_bytes;
    let job =
        Job { host: HOST, ..Job::new(kind) }.depth(depth).on(&[path], length, open).op(OpKind::Write).sequential();
    let job = job.sizes(trueio_model::BlockSizes::Fixed(BLOCK));
    job.with(|plan| {
        plan.source = Some(source);
        // As many at once as the depth allows: the more, the more a buffer could be filled too early.
        plan.queue.submit_batch = Some(depth);
    })
}

/// Compares a file with the body of `url`.
fn compare(file: &File, url: &str) -> SourceComparison {
    let mut body = open_body(&source(url, LENGTH, 1, true)).unwrap();
    compare_with_source(file, "file", 0, &mut *body, LENGTH, BLOCK as usize, &AtomicBool::new(false)).unwrap()
}

fn works(kind: EngineKind) -> bool {
    let found = availability().into_iter().find(|a| a.engine == kind).expect("every engine is probed");
    if !found.works {
        skip(kind.name(), &found.reason);
    }
    found.works
}

/// Goal: whatever the engine and the depth, a buffer is filled only when its last write has completed, in the
/// order of the body, and the rest of the body arrives too.
/// Method: the file is compared, byte by byte, with the body as its generator makes it, not as it was fetched.
#[test]
fn a_file_contains_the_body_with_every_engine_depth_and_page_cache_setting() {
    let folder = folder();
    let server = BodyServer::start(3, LENGTH).unwrap();
    let expected = body(3, LENGTH);
    let ways = [
        (EngineKind::Psync, 1),
        (EngineKind::Sync, 1),
        (EngineKind::Pvsync2, 1),
        (EngineKind::Mmap, 1),
        (EngineKind::Splice, 1),
        (EngineKind::Posixaio, 4),
        (EngineKind::Libaio, 8),
        (EngineKind::IoUring, 1),
        (EngineKind::IoUring, 8),
        (EngineKind::IoUring, 64),
    ];
    for (kind, depth) in ways.into_iter().filter(|(kind, _)| works(*kind)) {
        for open in [Open::ReadWrite, Open::Direct] {
            let name = format!("{} {depth} {open:?}", kind.name());
            let path = folder.path().join("file");
            std::fs::write(&path, b"something").unwrap();
            if open == Open::Direct && (kind == EngineKind::Mmap || !has_direct(&path)) {
                continue;
            }
            let unit = if open == Open::Direct { 512 } else { 1 };
            let report = job(kind, depth, &path, source(&server.url(), LENGTH, unit, true), open).run();
            assert_clean(&report, &name);
            assert!(std::fs::read(&path).unwrap() == expected, "{name}: another body");
            let rests = if open == Open::Direct { 2 } else { 1 };
            let writes = op(&report, OpKind::Write);
            assert_eq!((writes.io_count, writes.byte_count), (37 + rests, LENGTH), "{name}");
            assert_eq!(report.verified_block_count, LENGTH.div_ceil(BLOCK), "{name}");
            assert!(report.source_wait_ns > 0 && report.source_wait_ns < report.elapsed_ns, "{name}");
            let notes = report.engine_notes.join("\n");
            assert_eq!(notes.contains("the last 77 of its"), open == Open::Direct, "{name}: {notes}");
        }
    }
}

#[test]
fn sync_calls_follow_each_write_of_a_body_including_the_last() {
    let folder = folder();
    let server = BodyServer::start(3, LENGTH).unwrap();
    let path = folder.path().join("file");
    let mut job = job(EngineKind::Sync, 1, &path, source(&server.url(), LENGTH, 1, true), Open::ReadWrite);
    job.plan.flush.fdatasync_every = 1;
    job.plan.flush.end_fsync = true;
    let report = job.run();
    assert_clean(&report, "sync");
    assert_eq!((op(&report, OpKind::Write).io_count, op(&report, OpKind::Sync).io_count), (38, 39));
}

#[test]
fn the_engine_null_only_reads_a_body_and_bytes_after_its_region_stay() {
    let folder = folder();
    let server = BodyServer::start(3, LENGTH).unwrap();
    let mut to_nowhere = Job { host: HOST, ..Job::new(EngineKind::Null) }.op(OpKind::Write).sequential().region(LENGTH);
    to_nowhere = to_nowhere.sizes(trueio_model::BlockSizes::Fixed(BLOCK));
    to_nowhere.plan.source = Some(source(&server.url(), LENGTH, 1, false));
    let report = to_nowhere.run();
    assert_clean(&report, "null");
    assert_eq!(op(&report, OpKind::Write).byte_count, LENGTH);
    // A body within a larger file: the bytes before and after its region are not touched.
    let path = folder.path().join("file");
    let (before, after) = (64 * KIB, 10_000);
    let mut within = job(EngineKind::Sync, 1, &path, source(&server.url(), LENGTH, 1, true), Open::ReadWrite);
    std::fs::write(&path, vec![9; (before + LENGTH + after) as usize]).unwrap();
    within.plan.files[0].offset_bytes = before;
    assert_clean(&within.run(), "within");
    let found = std::fs::read(&path).unwrap();
    assert!(found[..before as usize].iter().all(|b| *b == 9));
    assert!(found[before as usize..][..LENGTH as usize] == body(3, LENGTH));
    assert!(found[(before + LENGTH) as usize..].iter().all(|b| *b == 9));
}

/// A file into which a body was written as the published io_uring writer does it: each write is submitted from
/// the one buffer that the next piece of the body is read into, without waiting for its completion.
fn racing_writer(file: &File, mut body: impl Read, in_flight: u32) {
    let mut ring = io_uring::IoUring::new(in_flight).unwrap();
    let mut buffer = vec![0u8; BLOCK as usize];
    let (mut offset, mut queued) = (0, 0);
    loop {
        let mut filled = 0;
        while filled < buffer.len() {
            match body.read(&mut buffer[filled..]).unwrap() {
                0 => break,
                n => filled += n,
            }
        }
        if filled > 0 {
            let fd = io_uring::types::Fd(file.as_raw_fd());
            let entry = io_uring::opcode::Write::new(fd, buffer.as_ptr(), filled as u32).offset(offset).build();
            // SAFETY: the buffer outlives the ring's use of it: everything is waited for below. That it is changed
            // meanwhile is what this is about.
            unsafe { ring.submission().push(&entry).unwrap() };
            offset += filled as u64;
            queued += 1;
        }
        if queued == in_flight || filled < buffer.len() {
            ring.submit_and_wait(queued as usize).unwrap();
            ring.completion().for_each(|done| assert!(done.result() > 0));
            queued = 0;
        }
        if filled < buffer.len() {
            return;
        }
    }
}

/// Goal: wrong content in a file of the right size is found, with its offset.
/// Method: the error of a published writer in its simplest form: the kernel reads the buffer after it was filled again.
/// With one write in flight there is no error, and nothing is found.
#[test]
fn a_buffer_that_is_reused_before_its_write_completed_is_detected_although_the_file_size_is_right() {
    if !works(EngineKind::IoUring) {
        return;
    }
    let folder = folder();
    let server = BodyServer::start(5, LENGTH).unwrap();
    for in_flight in [1, 4] {
        let path = folder.path().join("file");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        racing_writer(&file, Body::new(5, LENGTH), in_flight);
        assert_eq!(file.metadata().unwrap().len(), LENGTH, "the published check: the size is right");
        let found = compare(&file, &server.url());
        assert_eq!(found.block_count, LENGTH.div_ceil(BLOCK));
        if in_flight == 1 {
            assert_eq!((found.differing_count, &found.failures[..]), (0, &[][..]));
            continue;
        }
        // Of four writes in a row three carry the fourth's bytes.
        assert!(found.differing_count >= 27, "{}", found.differing_count);
        let first = &found.failures[0];
        assert!(first.offset < 4 && first.expected.contains("from the source"), "{first:?}");
        assert_ne!(first.expected.split(']').next(), first.found.split(']').next());
    }
}

#[test]
fn a_flipped_byte_and_a_file_that_ends_early_are_found_where_they_are() {
    let folder = folder();
    let server = BodyServer::start(6, LENGTH).unwrap();
    let path = folder.path().join("file");
    let mut bytes = body(6, LENGTH);
    bytes[500_000] ^= 1;
    bytes.truncate((LENGTH - 10) as usize);
    std::fs::write(&path, bytes).unwrap();
    let file = File::open(&path).unwrap();
    let found = compare(&file, &server.url());
    let offsets: Vec<(u64, &str)> = found.failures.iter().map(|f| (f.offset, f.found.as_str())).collect();
    assert_eq!(found.differing_count, 2);
    assert_eq!(offsets[0].0, 500_000);
    assert_eq!(offsets[1], (LENGTH - 10, "the end of the file"));
}

/// A server that announces `announced` bytes, sends `sent` of them, waits, and closes.
fn broken_server(announced: u64, sent: usize, pause: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {announced}\r\n\r\n").as_bytes());
        let _ = stream.write_all(&vec![7; sent]);
        std::thread::sleep(pause);
    });
    url
}

#[test]
fn a_source_that_breaks_off_fails_the_job_and_keeps_what_was_measured() {
    let folder = folder();
    for (kind, depth) in [(EngineKind::Sync, 1), (EngineKind::IoUring, 4)] {
        if !works(kind) {
            continue;
        }
        let url = broken_server(MIB, 100 * KIB as usize, Duration::ZERO);
        let path = folder.path().join("file");
        let report = job(kind, depth, &path, source(&url, MIB, 1, true), Open::ReadWrite).run();
        let reason = report.fatal.as_deref().unwrap_or("");
        assert!(reason.contains("ended after 102400 of 1048576 bytes"), "{reason}");
        assert_eq!(op(&report, OpKind::Write).io_count, 3);
        assert_eq!(report.verified_block_count, 0);
    }
    let report = job(
        EngineKind::Sync,
        1,
        &folder.path().join("file"),
        source("http://127.0.0.1:1/", MIB, 1, true),
        Open::ReadWrite,
    )
    .run();
    assert!(report.fatal.as_deref().unwrap_or("").contains("cannot be reached"), "{:?}", report.fatal);
}

/// A source that is silent: the time is counted as waiting, a request to stop is obeyed, and the I/Os before it
/// keep latencies of their own.
#[test]
fn waiting_for_a_silent_source_can_be_stopped_and_is_not_in_any_latency() {
    let folder = folder();
    for (kind, depth) in [(EngineKind::Sync, 1), (EngineKind::IoUring, 4)] {
        if !works(kind) {
            continue;
        }
        let url = broken_server(MIB, 3 * BLOCK as usize + 5, Duration::from_secs(50));
        let path = folder.path().join("file");
        let job = job(kind, depth, &path, source(&url, MIB, 1, true), Open::ReadWrite);
        let (report, obeyed) = job.run_and_stop(Duration::from_secs(3));
        assert!(report.was_stopped && report.fatal.is_none(), "{:?}", report.fatal);
        assert!(obeyed < Duration::from_secs(20), "{obeyed:?}");
        let writes = op(&report, OpKind::Write);
        assert_eq!(writes.io_count, 3);
        assert!(report.source_wait_ns > 1_000_000_000, "{}", report.source_wait_ns);
        let slowest = writes.latency.total.max_ns().unwrap();
        assert!(slowest < report.source_wait_ns, "{}: the source's silence is no write's: {slowest}", kind.name());
    }
}
