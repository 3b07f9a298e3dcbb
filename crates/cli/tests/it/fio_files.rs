//! fio's options about files, cached pages, overlaps and expected errors, compared with the installed fio where the results
//! are comparable.
//!
//! Limit: the installed fio may be 3.33, so differences of 3.42 are not tested.

use crate::common::*;
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Returns the first job of a document; fio may print lines before it.
#[track_caller]
fn first_job(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let begin = ran.out.find('{').unwrap_or_else(|| panic!("no document: {ran:?}"));
    let document: Value = serde_json::from_str(&ran.out[begin..]).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    document["jobs"][0].clone()
}

/// Returns the first job of our document, and of that of the installed fio if there is one.
#[track_caller]
fn both(sandbox: &Sandbox, line: &str) -> Vec<(&'static str, Value)> {
    let line = format!("{line} --output-format=json");
    let mut jobs = vec![("ours", first_job(&sandbox.fio(&line)))];
    if let Some(mut command) = real_fio(sandbox, &line) {
        jobs.push(("fio", first_job(&Ran::of(command.output().expect("fio starts")))));
    }
    jobs
}

#[track_caller]
fn refused(sandbox: &Sandbox, line: &str, words: &str) {
    let ran = sandbox.fio(line);
    assert_eq!(ran.code, Some(1), "{line}\n{}", ran.out);
    assert!(ran.err.contains(words), "{line}\n{}", ran.err);
}

/// Runs a command to its end and returns the bytes that were read from disks for it (`ru_inblock`, in units of 512).
#[expect(clippy::zombie_processes, reason = "wait4 reaps it, and returns its resource usage")]
fn bytes_read(command: &mut Command) -> u64 {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut status = 0;
    // SAFETY: `rusage` is plain numbers, for which zeros are valid; the kernel fills both arguments.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let pid = i32::try_from(child.id()).expect("a process number");
        assert_eq!(libc::wait4(pid, &raw mut status, 0, &raw mut usage), pid);
        usage
    };
    assert_eq!(status, 0, "{command:?}");
    u64::try_from(usage.ru_inblock).expect("a count") * 512
}

/// Goal: the second pass of a buffered job reads from the disk, as in fio, and not from memory.
/// Method: the bytes that the kernel read for the process; one pass shows whether this filesystem is on a disk.
#[test]
fn each_pass_of_a_buffered_job_begins_without_cached_pages() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 2 << 20);
    let line = |more: &str| format!("--name=p --filename=data --bs=16k --size=2m {more}");
    let of_ours = |more: &str| {
        let line = line(more);
        let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
        bytes_read(&mut sandbox.command(&words))
    };
    let file = fs::File::open(sandbox.path("data")).unwrap();
    file.sync_all().unwrap();
    if of_ours("--rw=read") < 2 << 20 {
        eprintln!("skipped: reads of {} come from no disk", sandbox.root().display());
        return;
    }
    for more in ["--rw=read --loops=2", "--rw=randread --loops=2", "--rw=read --io_size=4m"] {
        assert!(of_ours(more) >= 4 << 20, "{more}: {}", of_ours(more));
        if let Some(mut theirs) = real_fio(&sandbox, &format!("{} --thread", line(more))) {
            let read = bytes_read(&mut theirs);
            assert!(read >= 4 << 20, "fio {more}: {read}");
        }
    }
    // The passes of a job that ends by time only.
    let read = of_ours("--rw=read --time_based --runtime=2");
    assert!(read >= 4 << 20, "{read}");
    for more in ["--invalidate=0 --loops=2", "--pre_read=1 --loops=2"] {
        assert!(of_ours(&format!("--rw=read {more}")) < 4 << 20, "{more}");
    }
}

/// Goal: at most two writes to two blocks are in flight, as in fio.
/// Method: a modelled disk of eight channels, whose queue is full without the option; then a real file.
#[test]
fn writes_that_overlap_wait_for_each_other() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 8192);
    let line = "--name=o --filename=data --rw=randwrite --norandommap --bs=4k --size=8k --io_size=1m --iodepth=8 \
                --output-format=json";
    let modelled = format!("{line} --ioengine=simulated --simulated=service=1ms,channels=8");
    let depths = |job: &Value| ["4", "8"].map(|depth| job["iodepth_level"][depth].as_f64().expect("a share"));
    assert!(depths(&first_job(&sandbox.fio(&modelled)))[1] > 90.0);
    assert_eq!(depths(&first_job(&sandbox.fio(&format!("{modelled} --serialize_overlap=1")))), [0.0; 2]);
    let real = format!("{line} --ioengine=libaio --direct=1 --serialize_overlap=1");
    let ran = sandbox.fio(&real);
    if ran.code != Some(0) {
        eprintln!("skipped: no direct I/O here: {}", ran.err);
        return;
    }
    let theirs = real_fio(&sandbox, &real).map(|mut command| Ran::of(command.output().expect("fio starts")));
    for ran in [Some(ran), theirs].into_iter().flatten() {
        let job = first_job(&ran);
        assert_eq!(job["write"]["total_ios"], 256);
        assert_eq!(depths(&job), [0.0; 2], "{}", job["iodepth_level"]);
    }
}

#[test]
fn null_at_a_depth_of_1_has_no_submission_latency() {
    let sandbox = Sandbox::new();
    for (depth, class, share) in [(1, "4", 0.0), (2, "4", 100.0)] {
        for (who, job) in both(&sandbox, &format!("--name=n --ioengine=null --size=1m --iodepth={depth}")) {
            assert_eq!(job["iodepth_submit"][class], share, "{who} {depth}");
            assert_eq!(job["iodepth_complete"][class], share, "{who} {depth}");
        }
    }
}

/// Goal: if the lack of space is an expected error, the job continues, its errors are counted, and the run succeeds.
/// Method: a small tmpfs, and twice as many bytes.
#[test]
fn expected_errors_are_counted_and_do_not_fail_the_job() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let _mount = Mount::tmpfs(&sandbox, "small", "2m");
    let line = "--name=e --directory=small --rw=write --bs=64k --size=4m --fallocate=none";
    for (who, job) in both(&sandbox, &format!("{line} --ignore_error=,ENOSPC --error_dump=0")) {
        assert_eq!(job["write"]["io_bytes"], 2 << 20, "{who}");
        assert_eq!((job["total_err"].as_u64(), job["first_error"].as_u64()), (Some(32), Some(28)), "{who}");
    }
    fs::remove_file(sandbox.path("small/e.0.0")).unwrap();
    // Without the option, and with one about reads only, the job is refused because its file does not fit.
    for more in ["", "--ignore_error=ENOSPC,EIO"] {
        refused(&sandbox, &format!("{line} {more}"), "size_beyond_free_space");
    }
    // The record has the errors, and the I/Os that the figures are based on.
    let arguments = "run --rw write --bs 64k --size 4m --fallocate none --directory small --ignore_error ,ENOSPC";
    let (ran, record) = sandbox.record(&arguments.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let job = only_job(&record);
    assert_eq!((job.failures.len(), job.failures[0].errno, job.failures[0].count), (1, 28, 32));
    assert_eq!(job.ops[0].error_count, 32);
    assert!(ran.out_joined().contains("ignored as set by the job"), "{}", ran.out);
}

/// Goal: only the named errors, in the named direction, are ignored.
/// Method: a modelled disk whose seventh I/O fails with EIO.
#[test]
fn errors_that_were_not_named_end_the_job() {
    let sandbox = Sandbox::new();
    let line = "--name=e --ioengine=simulated --simulated=service=1ms,fail=7 --rw=read --bs=4k --size=400k \
                --output-format=json";
    let job = first_job(&sandbox.fio(&format!("{line} --ignore_error=EIO:EREMOTEIO")));
    assert_eq!((job["total_err"].as_u64(), job["read"]["total_ios"].as_u64()), (Some(1), Some(99)));
    for more in ["", "--ignore_error=,EIO", "--ignore_error=ENOSPC", "--continue_on_error=write"] {
        let ran = sandbox.fio(&format!("{line} {more}"));
        assert_eq!(ran.code, Some(1), "{more}: {ran:?}");
        assert!(ran.out.contains("\"error\" : 5"), "{more}: {ran:?}");
    }
    // The job continues, but these errors are not expected, so the run fails.
    let ran = sandbox.fio(&format!("{line} --continue_on_error=read"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("\"total_err\" : 1,"), "{ran:?}");
}

#[test]
fn opendir_reads_all_files_below_a_directory() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("tree/deep/er")).unwrap();
    for (name, bytes) in [("tree/b", 16 << 10), ("tree/deep/a", 8 << 10), ("tree/deep/er/c", 4 << 10)] {
        fs::write(sandbox.path(name), vec![7; bytes]).unwrap();
    }
    fs::write(sandbox.path("tree/empty"), "").unwrap();
    fs::write(sandbox.path("outside"), vec![1; 64 << 10]).unwrap();
    symlink("../outside", sandbox.path("tree/link")).unwrap();
    symlink("..", sandbox.path("tree/deep/up")).unwrap();
    for (who, job) in both(&sandbox, "--name=o --opendir=tree --rw=read --bs=4k") {
        assert_eq!(job["read"]["io_bytes"], 28 << 10, "{who}");
    }
    let before = fs::read(sandbox.path("tree/b")).unwrap();
    refused(&sandbox, "--name=o --opendir=tree --rw=write --bs=4k", "only files that are named are written");
    assert_eq!(fs::read(sandbox.path("tree/b")).unwrap(), before);
    refused(&sandbox, "--name=o --opendir=outside --rw=read", "cannot be read");
}

#[test]
fn an_offset_in_percent_equals_that_of_fio() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    for (more, ios) in [("", 42), ("--offset_align=64k", 40), ("--offset_align=100", 42)] {
        for (who, job) in both(&sandbox, &format!("--name=a --filename=data --rw=read --bs=16k --offset=33% {more}")) {
            assert_eq!(job["read"]["total_ios"], ios, "{who} {more}");
        }
    }
}

/// Goal: a job may have more files than the soft limit of open files.
#[test]
fn the_limit_of_open_files_is_raised_for_a_job_of_many() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["fio", "--name=m", "--rw=read", "--bs=4k", "--size=1600k", "--nrfiles=400"]);
    let limit = || {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: both calls are async-signal-safe and touch the structure only.
        let is_set = unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && {
                limit.rlim_cur = limit.rlim_max.min(128);
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0
            }
        };
        if is_set { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(limit) };
    let ran = Ran::of(command.output().expect("it starts"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Goal: if not all files can be open at once, in any phase, the run ends before one is created, with a hint.
/// Method: the hard limit is lowered, and the privilege to exceed it dropped.
#[test]
fn a_job_with_too_many_open_files_is_refused_before_one_is_created() {
    let sandbox = Sandbox::new();
    let line = "--name=a --rw=write --bs=4k --size=4k --name=m --stonewall --rw=write --bs=4k --size=1600k --nrfiles=400 \
                --openfiles=4";
    let mut words = vec!["fio"];
    words.extend(line.split_whitespace());
    let mut command = sandbox.command(&words);
    let limit = || {
        const CAP_SYS_RESOURCE: libc::c_ulong = 24;
        let limit = libc::rlimit { rlim_cur: 300, rlim_max: 300 };
        // SAFETY: both calls are async-signal-safe and read the structure only.
        let is_set = unsafe {
            libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0);
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0
        };
        if is_set { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(limit) };
    let ran = Ran::of(command.output().expect("it starts"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let text = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("open files at once, and the limit is 300 (RLIMIT_NOFILE)"), "{text}");
    assert!(text.contains("independent of `openfiles`; use fewer files, or raise the limit (`ulimit -Hn "), "{text}");
    assert_eq!(sandbox.listing(), [""; 0]);
}

/// Goal: several files are used in fio's order: finished files wait for the others, and `openfiles` limits the number in use.
/// Method: the offsets that both tools read, from their logs of I/O.
#[test]
fn several_files_are_used_in_fios_order() {
    let sandbox = Sandbox::new();
    for (name, blocks) in [("a", 2), ("b", 9), ("c", 5), ("d", 5)] {
        sandbox.data_file(name, blocks << 12);
    }
    let places = |log: &str| {
        let log = fs::read_to_string(sandbox.path(log)).expect("the log");
        let places = log.lines().filter_map(|line| {
            // Version 3 has a time first.
            let words: Vec<&str> = line.split(' ').skip_while(|word| word.parse::<u64>().is_ok()).collect();
            (words.get(1) == Some(&"read")).then(|| format!("{}{}", words[0], words[2].parse::<u64>().unwrap() >> 12))
        });
        places.collect::<Vec<_>>().join(" ")
    };
    let line = "--name=a --filename=a:b:c:d --rw=read --bs=4k";
    let all = "a0 b0 c0 d0 a1 b1 c1 d1 b2 c2 d2 b3 c3 d3 b4 c4 d4 b5 b6 b7 b8";
    let two = "a0 b0 a1 b1 b2 c0 b3 c1 b4 c2 b5 c3 b6 c4 b7 d0 b8 d1 d2 d3 d4";
    for (more, expected) in [
        ("", all.to_owned()),
        ("--openfiles=0", all.to_owned()),
        ("--openfiles=2", two.to_owned()),
        ("--openfiles=2 --loops=2", format!("{two} {two}")),
        ("--openfiles=3", "a0 b0 c0 a1 b1 c1 b2 c2 d0 b3 c3 d1 b4 c4 d2 b5 d3 b6 d4 b7 b8".to_owned()),
        ("--openfiles=1", "a0 a1 b0 b1 b2 b3 b4 b5 b6 b7 b8 c0 c1 c2 c3 c4 d0 d1 d2 d3 d4".to_owned()),
    ] {
        let line = format!("{line} {more} --write_iolog=");
        let ran = sandbox.fio(&format!("{line}ours"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(places("ours"), expected, "{more}");
        if let Some(mut theirs) = real_fio(&sandbox, &format!("{line}theirs --thread")) {
            let _ = fs::remove_file(sandbox.path("theirs"));
            assert_eq!(theirs.output().expect("fio starts").status.code(), Some(0));
            assert_eq!(places("theirs"), expected, "fio {more}");
        }
    }
    // Each block of each file is written, so that a later job can verify all of them.
    let files = "--filesize=4k-64k --nrfiles=8 --filename_format=x.$filenum --bs=4k --verify=crc32c";
    for (index, writes) in ["--rw=write", "--rw=randwrite --file_service_type=random --ioengine=posixaio --iodepth=4"]
        .into_iter()
        .enumerate()
    {
        let files = files.replace("x.", &format!("x{index}."));
        let jobs =
            format!("--name=w {writes} --randseed=5 {files} --name=r --stonewall --rw=read --randseed=5 {files}");
        let ran = sandbox.fio(&jobs);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

/// Goal: data is appended after existing data, which stays, as in fio; clones append one after the other.
/// Method: an existing file whose length is not a multiple of the block; lengths and content, compared with the installed fio.
#[test]
fn appended_data_follows_existing_data() {
    let sandbox = Sandbox::new();
    let before: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
    let line = "--name=a --filename=data --rw=write --bs=16k --size=64k --file_append=1";
    for (more, clones) in
        [("", 1), ("--fallocate=none", 1), ("--rw=randwrite", 1), ("--numjobs=2", 2), ("--offset=8k", 1)]
    {
        let line = format!("{line} {more} --output-format=json");
        let check = |who: &str, ran: Ran| {
            assert_eq!(first_job(&ran)["write"]["io_bytes"], 64 << 10, "{who} {more}");
            let after = fs::read(sandbox.path("data")).unwrap();
            assert_eq!(after.len(), 100_000 + clones * (64 << 10), "{who} {more}");
            assert_eq!(after[..100_000], before, "{who} {more}");
            let holes = after[100_000..].chunks(16 << 10).filter(|block| block.iter().all(|byte| *byte == 0)).count();
            assert_eq!(holes, 0, "{who} {more}");
        };
        fs::write(sandbox.path("data"), &before).unwrap();
        check("ours", sandbox.fio(&line));
        if let Some(mut theirs) = real_fio(&sandbox, &format!("{line} --thread")) {
            fs::write(sandbox.path("data"), &before).unwrap();
            check("fio", Ran::of(theirs.output().expect("fio starts")));
        }
    }
    // fio unlinks the file to read beyond its end.
    fs::write(sandbox.path("data"), &before).unwrap();
    refused(&sandbox, &format!("{line} --rw=read"), "size_beyond_target");
    assert_eq!(fs::read(sandbox.path("data")).unwrap(), before);
}

/// Goal: jobs that lock a shared file complete, by bytes or by time, and transfer as many bytes as in fio. (That no two use it
/// at the same time is tested in `crates/engine/tests/it/locks.rs`.)
#[test]
fn jobs_that_lock_a_shared_file_complete() {
    let sandbox = Sandbox::new();
    let jobs = "--name=w --rw=write --name=r --rw=randread --name=m --rw=randrw";
    for locking in ["exclusive", "readwrite"] {
        for more in ["", "--ioengine=libaio --iodepth=4"] {
            let line = format!("--filename=shared --bs=16k --size=1m --lockfile={locking} {more} {jobs}");
            let done = |who: &str, ran: Ran| {
                first_job(&ran);
                let document: Value = serde_json::from_str(&ran.out[ran.out.find('{').unwrap()..]).unwrap();
                for job in document["jobs"].as_array().unwrap() {
                    let bytes = |op: &str| job[op]["io_bytes"].as_u64().unwrap();
                    assert_eq!(bytes("read") + bytes("write"), 1 << 20, "{who} {line}");
                }
            };
            done("ours", sandbox.fio(&format!("{line} --output-format=json")));
            if let Some(mut theirs) = real_fio(&sandbox, &format!("{line} --output-format=json")) {
                done("fio", Ran::of(theirs.output().expect("fio starts")));
            }
        }
        let timed = format!(
            "--filename=shared --bs=16k --size=1m --lockfile={locking} --time_based --runtime=1 {jobs} --output-format=json"
        );
        first_job(&sandbox.fio(&timed));
    }
}

/// Goal: a further pass begins with a new, empty file, as in fio, on every engine; without the option the file stays.
/// Method: the job ends in the middle of its second pass, so a recreated file is half as long.
#[test]
fn files_are_recreated_before_a_further_pass() {
    let sandbox = Sandbox::new();
    let line = "--name=u --filename=made --rw=write --bs=16k --size=64k --io_size=96k --output-format=json";
    let length = |who: &str, more: &str, ran: Ran| {
        assert_eq!(first_job(&ran)["write"]["total_ios"], 6, "{who} {more}");
        let content = fs::read(sandbox.path("made")).unwrap();
        assert!(!content.chunks(16 << 10).any(|block| block.iter().all(|byte| *byte == 0)), "{who} {more}");
        fs::remove_file(sandbox.path("made")).unwrap();
        content.len()
    };
    assert_eq!(length("ours", "", sandbox.fio(line)), 64 << 10);
    for engine in ["psync", "sync", "pvsync2", "posixaio", "libaio --iodepth=4", "io_uring --iodepth=4"] {
        let more = format!("--unlink_each_loop=1 --ioengine={engine}");
        let ran = sandbox.fio(&format!("{line} {more}"));
        if ran.code == Some(1) && ran.err.contains("does not work here") {
            eprintln!("skipped: {}", ran.err);
            continue;
        }
        assert_eq!(length("ours", &more, ran), 32 << 10, "{more}");
    }
    let more = "--unlink_each_loop=1";
    if let Some(mut theirs) = real_fio(&sandbox, &format!("{line} {more}")) {
        // (3.33 recreates the file before the pass that `io_size` requires, 3.42 only between `loops`.)
        let theirs = length("fio", more, Ran::of(theirs.output().expect("fio starts")));
        assert!([32 << 10, 64 << 10].contains(&theirs), "{theirs}");
    }
    // An existing file is never removed.
    fs::write(sandbox.path("made"), [7; 64 << 10]).unwrap();
    refused(&sandbox, &format!("{line} {more}"), "existing files are never removed");
    assert_eq!(fs::read(sandbox.path("made")).unwrap(), [7; 64 << 10]);
}

/// Goal: a file without a name is recreated, too, the space of the first one is freed, and later jobs use the last one.
/// Method: a tmpfs with room for little more than one pass; a later job reads the whole file.
#[test]
fn a_file_without_a_name_is_recreated_and_found_by_later_jobs() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let _mount = Mount::tmpfs(&sandbox, "small", "3m");
    for engine in ["psync", "sync"] {
        let both = format!("filename = \"small/f\"\nsize = \"2m\"\nbs = \"64k\"\nioengine = \"{engine}\"");
        let jobs = format!(
            "[job.a]\n{both}\nrw = \"write\"\nloops = 3\nunlink_each_loop = true\n\n\
             [job.b]\n{both}\nrw = \"read\"\nstonewall = true\n"
        );
        sandbox.write("remade.toml", &jobs);
        let (ran, record) = sandbox.record(&["run", "remade.toml"]);
        assert_eq!(ran.code, Some(0), "{engine} {ran:?}");
        let bytes: Vec<u64> = record.phases.iter().map(|phase| phase.jobs[0].ops[0].byte_count).collect();
        assert_eq!(bytes, [6 << 20, 2 << 20], "{engine}");
        assert_eq!(fs::read_dir(sandbox.path("small")).unwrap().count(), 0, "{engine}");
    }
}

/// Goal: `direct=1` on tmpfs runs, as in fio where the kernel accepts the flag, and the result is not the disk's.
#[test]
fn direct_on_tmpfs_runs_and_no_disk_was_measured() {
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let _mount = Mount::tmpfs(&sandbox, "memory", "8m");
    let is_accepted = Command::new("dd")
        .args(["if=/dev/zero", "of=memory/probe", "bs=4k", "count=1", "oflag=direct"])
        .current_dir(sandbox.path(""))
        .output()
        .is_ok_and(|dd| dd.status.success());
    for rw in ["write", "randread"] {
        let line = format!("--name=j --directory=memory --size=1m --bs=4k --rw={rw} --direct=1 --output-format=json");
        let ran = sandbox.fio(&line);
        ran.assert_code(i32::from(!is_accepted));
        if is_accepted {
            let document: Value = serde_json::from_str(&ran.out).expect("JSON");
            let trueio = document["trueio"].to_string();
            assert!(trueio.contains("has no effect on `memory/j.0.0`") && trueio.contains("no disk"), "{trueio}");
            assert!(!trueio.contains("\"supported\""), "{trueio}");
        }
    }
}

/// Goal: a sequential write continues until no space is free, and succeeds, as in fio; its files are removed unless kept.
/// Method: a tmpfs of 2 MiB.
#[test]
fn fill_device_ends_without_an_error_when_the_space_is_used_up() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let mount = Mount::tmpfs(&sandbox, "small", "2m");
    let line = "--name=f --directory=small --rw=write --bs=64k --fill_device=1 --unlink=1";
    for (more, bytes) in [
        ("", 2 << 20),
        ("--fill_fs=1 --size=1m", 1 << 20),
        ("--size=10m", 2 << 20),
        ("--ioengine=libaio --iodepth=8", 2 << 20),
        ("--nrfiles=2", 2 << 20),
        ("--loops=3", 2 << 20),
        ("--verify=crc32c", 2 << 20),
        ("--verify=md5 --ioengine=libaio --iodepth=8", 2 << 20),
    ] {
        for (who, job) in both(&sandbox, &format!("{line} {more}")) {
            assert_eq!(
                (job["write"]["io_bytes"].as_u64(), job["error"].as_u64()),
                (Some(bytes), Some(0)),
                "{who} {more}"
            );
            assert_eq!(fs::read_dir(sandbox.path("small")).unwrap().count(), 0, "{who} {more}");
        }
    }
    // All that was written is compared, and the write that found no space is not.
    let verified = first_job(&sandbox.fio(&format!("{line} --verify=crc32c --output-format=json")));
    assert_eq!((verified["read"]["io_bytes"].as_u64(), verified["error"].as_u64()), (Some(2 << 20), Some(0)));
    // A last block that fits in part counts with the bytes written (in fio not at all).
    let job = first_job(&sandbox.fio(&format!("{line} --bs=7000 --output-format=json")));
    assert_eq!(job["write"]["io_bytes"], 2 << 20);
    drop(mount);
    let words = "run --rw write --bs 64k --fill_device --directory small";
    let mount = Mount::tmpfs(&sandbox, "small", "1m");
    let (ran, record) = sandbox.record(&words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let job = only_job(&record);
    assert_eq!((job.ops[0].byte_count, job.failures[0].errno, job.failures[0].count), (1 << 20, 28, 1));
    assert!(ran.out_joined().contains("ignored as set by the job"), "{}", ran.out);
    assert_eq!(fs::read_dir(sandbox.path("small")).unwrap().count(), 0);
    drop(mount);
}

/// Returns the number of different blocks of 4 KiB in a file.
fn different_blocks(sandbox: &Sandbox, name: &str) -> usize {
    fs::read(sandbox.path(name)).unwrap().chunks(4096).map(<[u8]>::to_vec).collect::<HashSet<_>>().len()
}

#[test]
fn a_dedupe_working_set_has_as_many_different_blocks_as_in_fio() {
    let sandbox = Sandbox::new();
    let line = "--name=d --filename=set --rw=write --bs=4k --size=4m --dedupe_percentage=50 --dedupe_mode=working_set \
                --dedupe_working_set_percentage=25";
    assert_eq!(sandbox.fio(line).code, Some(0));
    // Half of 1024, within four standard deviations (64).
    let count = different_blocks(&sandbox, "set");
    assert!((448..=576).contains(&count), "{count}");
    fs::remove_file(sandbox.path("set")).unwrap();
    if let Some(mut theirs) = real_fio(&sandbox, line) {
        assert!(theirs.output().expect("fio starts").status.success());
        let count = different_blocks(&sandbox, "set");
        assert!((448..=576).contains(&count), "fio: {count}");
    }
}

/// Goal: the compressible part of a block that `verify` fills is its end, as in fio, and not that of each piece of 512 bytes.
#[test]
fn the_compressible_part_of_a_verified_block_is_its_end() {
    let sandbox = Sandbox::new();
    let check = |who: &str, verify: &str, random: [bool; 8]| {
        let content = fs::read(sandbox.path("data")).unwrap();
        for block in content.chunks(4096) {
            let is_random: Vec<bool> = block.chunks(512).map(|piece| piece.iter().any(|byte| *byte != 0)).collect();
            assert_eq!(is_random, random, "{who} {verify}");
        }
        fs::remove_file(sandbox.path("data")).unwrap();
    };
    let half = [true, true, true, true, false, false, false, false];
    for (verify, random) in [("meta", half), ("crc32c", half), ("null", [true; 8])] {
        let line = format!(
            "--name=c --filename=data --rw=write --size=64k --verify={verify} --buffer_compress_percentage=50 --verify_state_save=0"
        );
        first_job(&sandbox.fio(&format!("{line} --output-format=json")));
        check("ours", verify, random);
        if let Some(mut theirs) = real_fio(&sandbox, &line) {
            assert!(theirs.output().expect("fio starts").status.success());
            check("fio", verify, random);
        }
    }
}

#[test]
fn blocks_of_a_trim_backlog_are_trimmed_in_batches() {
    let sandbox = Sandbox::new();
    let line = "--name=t --rw=write --bs=4k --size=256k --verify=crc32c --trim_percentage=100 --trim_backlog=8";
    // After every eight writes. `number_ios` counts them: of 32 I/Os half are trims, as in fio 3.42.
    for (more, trims) in [
        ("", 64),
        ("--trim_backlog_batch=2", 16),
        ("--number_ios=32", 16),
        // As in fio 3.42, the job goes on as long as blocks wait for their trim.
        ("--number_ios=32 --trim_backlog_batch=2", 16),
        ("--number_ios=32 --trim_backlog_batch=8", 16),
    ] {
        let ran = sandbox.fio(&format!("{line} {more} --output-format=json"));
        assert_eq!(first_job(&ran)["trim"]["total_ios"], trims, "{more}");
        fs::remove_file(sandbox.path("t.0.0")).unwrap();
    }
}
