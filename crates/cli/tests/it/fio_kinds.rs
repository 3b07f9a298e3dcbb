//! What one job of a run cannot do leaves the others alone, links of device managers name their devices, and a mapping is written
//! back: as in fio's HEAD, whose values these are.

use crate::common::*;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

trait NotStarted {
    /// Asserts that nothing was run for this reason.
    fn assert_not_started(&self, sentence: &str);
}

impl NotStarted for Ran {
    #[track_caller]
    fn assert_not_started(&self, sentence: &str) {
        assert_eq!((self.code, self.out.as_str()), (Some(1), ""), "{self:?}");
        assert!(self.err.contains(sentence), "`{sentence}` is missing\n{self:?}");
    }
}

/// Returns the jobs of a document: name, error, bytes read and written.
#[track_caller]
fn jobs(ran: &Ran) -> Vec<(String, u64, u64, u64)> {
    let document: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let number = |value: &Value| value.as_u64().expect("a number");
    let of = |job: &Value| {
        let name = job["jobname"].as_str().expect("a name").to_owned();
        (name, number(&job["error"]), number(&job["read"]["io_bytes"]), number(&job["write"]["io_bytes"]))
    };
    document["jobs"].as_array().expect("jobs").iter().map(of).collect()
}

/// Goal: a job without a size fails alone; the jobs next to it, and behind a stonewall, run.
#[test]
fn a_job_without_a_size_does_not_refuse_its_neighbours() {
    let sandbox = Sandbox::new();
    let line = "--output-format=json --name=a --rw=write --filename=a --name=b --rw=write --filename=b --size=64k \
                --name=c --stonewall --rw=read --filename=b --name=d --size=50% --filename=d";
    let ran = sandbox.fio(line);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("job `a` was not started") && ran.err.contains("job `d` was not started"), "{ran:?}");
    assert_eq!(jobs(&ran), [("b".to_owned(), 0, 0, 65536), ("c".to_owned(), 0, 65536, 0)]);
    assert_eq!(sandbox.listing().len(), 1, "{:?}", sandbox.listing());
    // Without another job, and with one that is refused for another reason, nothing runs.
    sandbox.fio("--name=a --rw=write --filename=a").assert_not_started("rule: size_missing");
    let both =
        "--name=a --rw=write --filename=a --name=e --rw=write --filename=e --size=64k --ioengine=psync --nowait=1";
    let ran = sandbox.fio(both);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!sandbox.path("e").exists());
}

/// Goal: a clone, or a job, that begins beyond the end of its device does nothing, and the others run. fio's clone is a success.
#[test]
fn a_clone_beyond_the_end_of_a_device_leaves_the_others_alone() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 64 << 20);
    for rw in ["read", "write"] {
        let line = format!(
            "--output-format=json --name=a --filename={} --rw={rw} --bs=1M --numjobs=3 --offset_increment=40M --size=10M",
            disk.device
        );
        let ran = sandbox.fio(&line);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let moved: Vec<u64> = jobs(&ran).iter().map(|job| job.2 + job.3).collect();
        assert_eq!(moved, [10 << 20, 10 << 20], "{rw}");
        assert!(ran.err.contains("job `a.2` was not started"), "{ran:?}");
    }
    // The last clone's rest is 1 MiB, less than its block: without a size a failure, as in fio.
    for (size, code) in [("--size=10M", 0), ("", 1)] {
        let line = format!(
            "--output-format=json --name=a --filename={} --rw=read --bs=2M --numjobs=4 --offset_increment=21M {size}",
            disk.device
        );
        let ran = sandbox.fio(&line);
        assert_eq!((ran.code, jobs(&ran).len()), (Some(code), 3), "{ran:?}");
        assert!(ran.err.contains("job `a.3` was not started"), "{ran:?}");
    }
    // Of several devices, those are used that have room; without a length the job fails, as in fio.
    let short = Loop::new(&sandbox, "short.img", 12 << 20);
    for (words, code, moved) in [
        ("--offset=20M --size=30M", 0, vec![15 << 20]),
        ("--offset=20M --filesize=30M", 0, vec![10 << 20]),
        ("--size=1g --numjobs=3 --offset_increment=8M", 0, vec![76 << 20, 48 << 20, 60 << 20]),
        ("--offset=20M", 1, vec![]),
    ] {
        let (disk, short) = (&disk.device, &short.device);
        let line = format!("--output-format=json --name=a --filename={disk}:{short} --rw=read --bs=64k {words}");
        let ran = sandbox.fio(&line);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let found: Vec<u64> = if moved.is_empty() { vec![] } else { jobs(&ran).iter().map(|job| job.2).collect() };
        assert_eq!(found, moved, "{ran:?}");
    }
    // A comparison leaves none out: what is missing was to be compared.
    let line = format!(
        "--name=a --filename={}:{} --rw=read --verify=crc32c --bs=64k --offset=20M --size=30M",
        disk.device, short.device
    );
    sandbox.fio(&line).assert_not_started("rule: size_beyond_target");
    // A size that is less than a block is a mistake of the line, and refuses it all.
    let line = format!("--filename={} --bs=64k --name=a --size=33k --filesize=700k --name=b --size=64k", disk.device);
    sandbox.fio(&line).assert_not_started("33k is less than one block of 64k");
    let line =
        format!("--output-format=json --bs=1M --filename={} --name=a --offset=80M --name=b --offset=60M", disk.device);
    let ran = sandbox.fio(&line);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(jobs(&ran), [("b".to_owned(), 0, 4 << 20, 0)]);
}

/// Goal: a job whose files are missing and may not be created does not refuse its neighbours, as in fio; clones have one message.
#[test]
fn missing_files_of_a_job_do_not_refuse_others() {
    for forbidden in ["--allow_file_create=0", "--readonly"] {
        let sandbox = Sandbox::new();
        fs::write(sandbox.path("f"), vec![7; 65536]).expect("a file");
        let ran = sandbox.fio(&format!(
            "--output-format=json {forbidden} --name=a --rw=read --size=4k --numjobs=2 --name=b --filename=f --rw=read"
        ));
        assert_eq!((ran.code, jobs(&ran)), (Some(2), vec![("b".to_owned(), 0, 65536, 0)]), "{ran:?}");
        assert_eq!(ran.err.matches("error:").count(), 1, "{ran:?}");
        let message = format!("`a.0.0` and 1 other file do not exist, and `{forbidden}` forbids their creation");
        assert!(ran.err.contains(&message), "{ran:?}");
        // Two jobs that have their files, or none that has, run or do not run as before.
        let ran = sandbox.fio(&format!("{forbidden} --rw=read --filename=f --name=a --name=b"));
        assert!(ran.code == Some(0) && !ran.err.contains("error:"), "{ran:?}");
        let ran = sandbox.fio(&format!("{forbidden} --rw=write --name=a --size=4k --name=b --filename=f"));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let is_refused = ran.err.contains("would write or trim");
        assert_eq!(is_refused, forbidden == "--readonly", "a job that writes refuses the request: {ran:?}");
    }
}

/// Goal: without a size, files that are missing or empty are left out if the job has another file, as in fio. A job that just reads, and
/// lacks a file, fails.
#[test]
fn of_several_files_those_without_a_length_are_left_out() {
    for (rw, more, code, moved) in [
        ("write", "", 0, [0, 65536]),
        ("write", "--size=50%", 0, [0, 32768]),
        ("read", "", 1, [0, 0]),
        ("write", "--allow_file_create=0", 1, [0, 0]),
    ] {
        let sandbox = Sandbox::new();
        fs::write(sandbox.path("f"), vec![7; 65536]).expect("a file");
        let ran = sandbox.fio(&format!("--output-format=json --name=j --filename=f:g:h --rw={rw} {more}"));
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(!sandbox.path("g").exists());
        if code == 0 {
            assert_eq!(jobs(&ran), [("j".to_owned(), 0, moved[0], moved[1])]);
            assert!(ran.out.contains("`g` and 1 other files are not used, as in fio"), "{ran:?}");
        }
    }
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("f"), vec![7; 65536]).expect("a file");
    fs::write(sandbox.path("g"), "").expect("a file");
    let ran = sandbox.fio("--output-format=json --name=j --filename=g:f --rw=read");
    assert_eq!((ran.code, jobs(&ran)), (Some(0), vec![("j".to_owned(), 0, 65536, 0)]), "{ran:?}");
    assert!(ran.out.contains("`g` is not used, as in fio"), "{ran:?}");
    // With a size both get their share, and without a file that has a length the job fails.
    let ran = sandbox.fio("--output-format=json --name=j --filename=f:new --rw=write --size=64k");
    assert_eq!((ran.code, jobs(&ran)[0].3), (Some(0), 65536), "{ran:?}");
    assert_eq!(fs::metadata(sandbox.path("new")).expect("a file").len(), 32768);
    sandbox.fio("--name=j --filename=g:x --rw=write").assert_not_started("rule: size_missing");
}

/// Goal: a percentage above 100 of an offset is accepted: what begins there does no I/O in a file that exists, and begins at 0 in a new one.
#[test]
fn an_offset_of_more_than_a_whole_file_is_read_as_in_fio() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("f"), vec![7; 65536]).expect("a file");
    let line = "--output-format=json --name=j --filename=f --rw=read --numjobs=3 --offset_increment=";
    for percent in ["100%", "101%", "200%", "1000%"] {
        let ran = sandbox.fio(&format!("{line}{percent}"));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert_eq!(jobs(&ran), [("j".to_owned(), 0, 65536, 0)]);
    }
    sandbox.fio("--name=j --filename=f --rw=read --offset=120%").assert_not_started("nothing is left");
    let line = "--output-format=json --name=j --rw=write --size=64k --filename=";
    for (file, more) in [("new", "--offset_increment=200% --numjobs=2"), ("newer", "--offset=120% --numjobs=2")] {
        let ran = sandbox.fio(&format!("{line}{file} {more}"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(jobs(&ran).iter().map(|job| job.3).collect::<Vec<_>>(), [65536; 2]);
    }
}

/// Goal: of a list of percentiles 0 is left out, with a warning, and the others are reported.
#[test]
fn a_percentile_of_0_is_left_out_with_a_warning() {
    let sandbox = Sandbox::new();
    for (list, kept) in [("0:50", vec!["50.000000"]), ("50:0:99", vec!["50.000000", "99.000000"]), ("0.0", vec![])] {
        let ran = sandbox.fio(&format!("--output-format=json --name=j --size=64k --rw=write --percentile_list={list}"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.err.contains("0 is no percentile"), "{ran:?}");
        let document: Value = serde_json::from_str(&ran.out).expect("JSON");
        let found = document["jobs"][0]["write"]["clat_ns"]["percentile"].as_object().expect("percentiles");
        match kept.is_empty() {
            true => assert!(found.len() > 10, "fio's default: {found:?}"),
            false => assert_eq!(found.keys().collect::<Vec<_>>(), kept),
        }
    }
}

/// Goal: as in fio, a section's name is all but the last character of its line.
#[test]
fn a_section_with_text_after_its_bracket_has_fios_name() {
    let sandbox = Sandbox::new();
    for (header, name) in
        [("[a]b", "a]"), ("[a]]", "a]"), ("[a]bc", "a]b"), ("[a] # b", "a"), ("[é]ü", "é]"), ("[bs=64K", "bs=64")]
    {
        fs::write(sandbox.path("job.fio"), format!("[global]x\nsize=4k\n{header}\nrw=write\nfilename=f\n"))
            .expect("a file");
        let ran = sandbox.fio("--output-format=json job.fio");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(jobs(&ran)[0].0, name);
    }
}

/// Goal: a refusal names values as fio has them, and the option that ends the region.
#[test]
fn a_refused_value_is_explained_in_fios_words() {
    let sandbox = Sandbox::new();
    for word in ["direct=2", "direct=x", "invalidate=2", "do_verify=2", "end_fsync=x", "unlink=2"] {
        let ran = sandbox.fio(&format!("--name=j --size=4k --{word}"));
        let (name, value) = word.split_once('=').expect("a value");
        ran.assert_not_started(&format!("`{name}`: `{value}` is not 0 or 1"));
        assert!(
            !ran.err.contains("require`,") && !ran.err.contains("`true`") && !ran.err.contains("it takes"),
            "{ran:?}"
        );
    }
    // The option that was typed, not the one that it implies.
    let overlapping = "--name=j --rw=write --size=100k --bsrange=4k-16k --bs_unaligned=1 --verify_pattern=0xff";
    sandbox.fio(overlapping).assert_not_started("`--verify_pattern` is not possible");
    // (A depth up to that becomes the largest one, with a note.)
    let line = "--output-format=json --name=j --size=4k --ioengine=libaio --iodepth=";
    assert_eq!(sandbox.fio(&format!("{line}65536")).code, Some(0));
    sandbox.fio(&format!("{line}65537")).assert_not_started("`iodepth`: `65537` is not a whole number from 1 to 65536");
    if lacks("loop") {
        return;
    }
    let disk = Loop::new(&sandbox, "disk.img", 8 << 20);
    let line = format!("--name=j --rw=read --filename={} --filesize=2m --offset=", disk.device);
    for (offset, end) in [("2m", "the first 2 MiB"), ("4m", "the first 2 MiB"), ("16m", "whose size is 8 MiB")] {
        let ran = sandbox.fio(&format!("{line}{offset}"));
        ran.assert_not_started(end);
        assert!(!ran.err.contains("`--size`"), "{ran:?}");
    }
}

/// Goal: a link below `/dev` that only root can change is the name of its device; in a directory that others can write, it is a link.
/// Method: links as of device managers, in a directory of the test's own; to a link, and relative.
#[test]
fn a_link_below_dev_that_only_root_can_change_names_its_device() {
    if lacks("loop") || lacks("root") {
        return;
    }
    struct Removed(std::path::PathBuf);
    impl Drop for Removed {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 4 << 20);
    let directory = Removed(format!("/dev/trueio-links-{}", std::process::id()).into());
    let mode = |mode| fs::set_permissions(&directory.0, fs::Permissions::from_mode(mode)).expect("a mode");
    fs::create_dir(&directory.0).expect("a directory");
    mode(0o755);
    let name = disk.device.trim_start_matches("/dev/");
    symlink(format!("../{name}"), directory.0.join("volume")).expect("a link");
    symlink("volume", directory.0.join("by-id")).expect("a link");
    let file = sandbox.data_file("data", 1 << 20);
    symlink(&file, directory.0.join("file")).expect("a link");
    let write = |link: &str| {
        sandbox.fio(&format!("--name=a --rw=write --size=64k --filename={}/{link}", directory.0.display()))
    };
    let before = disk.content();
    write("volume").assert_code(0);
    assert_ne!(disk.content(), before);
    write("by-id").assert_code(0);
    let link = format!("{}/by-id", directory.0.display());
    let permitted = format!("--name=a --rw=write --size=64k --filename={link} --overwrite_existing={link}");
    sandbox.fio(&permitted).assert_code(0);
    write("file").assert_not_started("rule: target_is_link");
    let written = disk.content();
    for others in [0o777, 0o775, 0o1777] {
        mode(others);
        write("volume").assert_not_started("rule: target_is_link");
        write("by-id").assert_not_started("rule: target_is_link");
    }
    mode(0o755);
    std::os::unix::fs::lchown(directory.0.join("volume"), Some(65534), None).expect("an owner");
    write("volume").assert_not_started("rule: target_is_link");
    assert_eq!(disk.content(), written);
}

/// Goal: `mmap` with `direct=1` calls `msync` after each I/O, reads too, as fio does; `sync` alone has no effect there.
#[test]
fn a_mapping_is_written_back_after_each_io_with_direct() {
    if lacks("strace") {
        return;
    }
    let sandbox = Sandbox::new();
    for (words, count) in [
        ("--rw=write --direct=1", 256),
        ("--rw=randread --direct=1", 256),
        ("--rw=write --direct=1 --bs=1000 --number_ios=50", 50),
        ("--rw=write --direct=0", 0),
        ("--rw=write --sync=1", 0),
    ] {
        let trace = sandbox.aside("trace");
        let line = format!("fio --name=a --filename=f --size=1m --ioengine=mmap --output=o {words}");
        let plain = sandbox.command(&line.split_whitespace().collect::<Vec<_>>());
        let mut traced = std::process::Command::new("strace");
        traced.args(["-f", "-qq", "-e", "trace=msync", "-e", "signal=none", "-o"]).arg(&trace);
        traced.arg(plain.get_program()).args(plain.get_args()).current_dir(sandbox.root());
        traced.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Ran::of(traced.output().expect("strace")).assert_code(0);
        let calls =
            strace_lines(&trace).iter().filter(|line| line.contains("MS_SYNC") && line.ends_with("= 0")).count();
        assert_eq!(calls, count, "{words}");
    }
}

/// Goal: clones that write and verify one file through mappings find whole blocks.
/// Method: blocks of 1 MiB, whose copies take long; without the order of writers, each run found mixed blocks.
#[test]
fn four_clones_verify_one_file_through_mappings() {
    let sandbox = Sandbox::new();
    for round in 0..3 {
        let line = format!(
            "--name=a --filename=f --size=16m --bs=1m --rw=randwrite --ioengine=mmap --verify=crc32c --numjobs=4 --randseed={round}"
        );
        sandbox.fio(&line).assert_code(0);
    }
}

/// Goal: the time of reading back between loops, and after them, has no time of writes in it, as in fio.
/// Method: synchronous writes take several times as long as reads.
#[test]
fn the_time_of_reading_back_loops_excludes_the_writes() {
    let sandbox = Sandbox::new();
    let line = "--output-format=json --name=a --size=1m --bs=4k --rw=write --sync=dsync --verify=crc32c --loops=3";
    let ran = sandbox.fio(line);
    let document: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let runtime = |op: &str| document["jobs"][0][op]["runtime"].as_u64().expect("a time");
    let (read, write) = (runtime("read"), runtime("write"));
    assert!(read > 0 && write > 2 * read, "reads took {read} ms, writes {write} ms");
}

/// Goal: options that fio accepts and ignores are accepted, with a note.
#[test]
fn polling_and_uncached_io_are_no_contradictions() {
    let sandbox = Sandbox::new();
    for line in [
        "--parse-only --name=a --size=64k --ioengine=pvsync2 --hipri",
        "--parse-only --name=a --size=64k --ioengine=io_uring --hipri",
        "--parse-only --name=a --size=64k --ioengine=pvsync2 --uncached=1 --direct=1 --rw=write",
        "--name=a --size=64k --ioengine=pvsync2 --hipri --rw=read",
        "--name=a --size=64k --ioengine=mmap --sync=1 --rw=write",
        "--name=a --size=64k --ioengine=pvsync2 --uncached=1 --direct=1 --rw=write",
    ] {
        let ran = sandbox.fio(line);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}");
    }
    // In fio it is no option of these engines, with or without a run.
    for engine in ["libaio", "psync", "sync", "mmap", "null"] {
        for direct in [0, 1] {
            let line = format!("--parse-only --name=a --size=64k --ioengine={engine} --direct={direct} --hipri");
            sandbox.fio(&line).assert_not_started("rule: engine_lacks");
        }
    }
}

/// Goal: an interval that ends with the run has its document, and a file requests one.
#[test]
fn interim_documents_are_those_of_fio() {
    let sandbox = Sandbox::new();
    let line = "--name=a --ioengine=null --size=1g --rate_iops=100 --time_based --runtime=2 --status-interval=1 --output-format=json";
    let ran = sandbox.fio(line);
    assert_eq!(ran.out.matches("\"jobs\" :").count(), 3, "two and the result: {}", ran.out);

    let directory = sandbox.aside("tmp");
    fs::create_dir(&directory).expect("a directory");
    let line = "fio --name=a --ioengine=null --size=1g --rate_iops=100 --time_based --runtime=60 --output-format=json --output=o";
    let mut command = sandbox.command(&line.split_whitespace().collect::<Vec<_>>());
    let mut child = command.env("TMPDIR", &directory).spawn().expect("it starts");
    let file = directory.join("fio-dump-status");
    fs::write(&file, "").expect("a file");
    let output = sandbox.path("o");
    let documents = || fs::read_to_string(&output).map_or(0, |text| text.matches("\"jobs\" :").count());
    let began = std::time::Instant::now();
    while documents() == 0 && began.elapsed().as_secs() < 50 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(documents(), 1);
    assert!(!file.exists());
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

/// Goal: as in fio, a job with `group_reporting` joins the one before it in its group; errors of verification are counted.
#[test]
fn groups_and_counted_errors_are_those_of_fio() {
    let sandbox = Sandbox::new();
    sandbox.data_file("gr", 2 << 20);
    let line = "--output-format=json --name=a --filename=gr --size=1m --rw=read --group_reporting --name=b --filename=gr --size=1m \
                --rw=read --name=c --filename=gr --size=2m --rw=read --group_reporting --numjobs=2";
    let entries = jobs(&sandbox.fio(line));
    assert_eq!(entries, [("a".to_owned(), 0, 1 << 20, 0), ("b".to_owned(), 0, 5 << 20, 0)]);

    let all = "--continue_on_error=verify";
    for (words, count, ios) in [
        (format!("{all} --verify_fatal=1"), 1, 3),
        (format!("{all} --verify_fatal=0"), 3, 16),
        // These continue after failed I/Os, and after no block that differs.
        ("--continue_on_error=io".to_owned(), 1, 3),
        ("--continue_on_error=io --verify_fatal=0".to_owned(), 1, 3),
    ] {
        sandbox.fio("--name=w --filename=v --size=64k --rw=write --verify=crc32c --do_verify=0").assert_code(0);
        let file = fs::OpenOptions::new().write(true).open(sandbox.path("v")).expect("a file");
        for block in [2, 5, 9] {
            std::os::unix::fs::FileExt::write_all_at(&file, b"x", block * 4096 + 100).expect("a write");
        }
        let line = format!("--output-format=json --name=r --filename=v --size=64k --rw=read --verify=crc32c {words}");
        let ran = sandbox.fio(&line);
        let document: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        let job = &document["jobs"][0];
        let figures = [&job["error"], &job["total_err"], &job["first_error"], &job["read"]["total_ios"]];
        assert_eq!(figures.map(|figure| figure.as_u64()), [84, count, 84, ios].map(Some), "{words}");
        assert_eq!(ran.code, Some(1), "a run that found other bytes fails, unlike fio's: {words}");
    }
}

/// Goal: `write_hint` is set on the file, as by fio.
#[test]
fn the_lifetime_that_write_hint_sets_is_kept_with_the_file() {
    let sandbox = Sandbox::new();
    // An open file stays in the kernel's memory, and with it the hint.
    fs::write(sandbox.path("f"), "").expect("a file");
    let file = fs::File::open(sandbox.path("f")).expect("a file");
    let hint = || {
        const F_GET_RW_HINT: libc::c_int = 1024 + 11;
        let mut hint: u64 = u64::MAX;
        // SAFETY: the descriptor is open, and the kernel writes 64 bits.
        let result = unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), F_GET_RW_HINT, &raw mut hint) };
        (result, hint)
    };
    assert_eq!(hint(), (0, 0));
    for (word, number) in [("extreme", 5), ("short", 2), ("none", 1)] {
        sandbox.fio(&format!("--name=j --filename=f --size=16k --rw=write --write_hint={word}")).assert_code(0);
        assert_eq!(hint(), (0, number), "{word}");
    }
    sandbox.fio("--name=j --filename=f --size=16k --rw=write").assert_code(0);
    assert_eq!(hint(), (0, 1), "it is not changed");
    sandbox.fio("--name=j --size=16k --rw=write --write_hint=brief").assert_not_started("`brief` is not one of");
}

/// Goal: a `size` above 100 % is the whole target, as on a device with fio; a file stays as it is.
#[test]
fn a_size_above_a_hundred_percent_is_the_whole_target() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("f"), vec![7; 1 << 20]).expect("a file");
    for (words, bytes) in [("--rw=read", 1 << 20), ("--rw=randwrite", 1 << 20), ("--rw=read --offset=512k", 512 << 10)]
    {
        let ran = sandbox.fio(&format!("--output-format=json --name=j --filename=f --size=150% {words}"));
        ran.assert_code(0);
        assert!(ran.out.contains("`size=150%` is the whole target"), "{ran:?}");
        let document: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        let job = &document["jobs"][0];
        let moved = ["read", "write"].map(|op| job[op]["io_bytes"].as_u64().expect("a number"));
        assert_eq!(moved.iter().sum::<u64>(), bytes, "{words}");
        assert_eq!(fs::metadata(sandbox.path("f")).expect("a file").len(), 1 << 20);
    }
    sandbox.fio("--name=j --filename=f --rw=read --io_size=150%").assert_not_started("`150%`");
    if lacks("loop") {
        return;
    }
    let disk = Loop::new(&sandbox, "disk.img", 8 << 20);
    let line = format!("--output-format=json --name=j --filename={} --size=200% --rw=write", disk.device);
    let document: Value = serde_json::from_str(&sandbox.fio(&line).out).expect("a document");
    assert_eq!(document["jobs"][0]["write"]["io_bytes"].as_u64(), Some(8 << 20));
}

/// Goal: `falloc` that reads works on a file that has its data, as in fio.
#[test]
fn a_reading_falloc_job_lays_its_file_out() {
    let sandbox = Sandbox::new();
    sandbox.fio("--name=a --filename=f --size=1m --rw=read --ioengine=falloc").assert_code(0);
    assert_eq!(fs::metadata(sandbox.path("f")).expect("a file").len(), 1 << 20);
}

/// Goal: a note reports that dirty pages of a named file were written out before the job.
#[test]
fn a_note_reports_dirty_pages_that_were_written_before_the_job() {
    let sandbox = Sandbox::new();
    let line = "--name=a --filename=f --size=4m --rw=read --output-format=json";
    // The kernel may write the pages by itself before the job does: once in five seconds.
    let has_note = (0..5).any(|_| {
        sandbox.write("f", vec![7; 4 << 20]);
        let ran = sandbox.fio(line);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out.contains("of dirty pages were written to the disk before the job")
    });
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release of the kernel");
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next().expect("a version"), numbers.next().unwrap_or(0));
    // Before Linux 6.5 the kernel does not report dirty pages.
    assert_eq!(has_note, version >= (6, 5), "Linux {release}");
    let again = sandbox.fio(line);
    assert!(!again.out.contains("of dirty pages were written"), "{again:?}");
}
