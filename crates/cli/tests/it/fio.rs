//! `trueio fio`: command lines and job files of fio's users, as they are, in small size.
//!
//! Cannot see: whether the figures agree with fio's (`cargo xtask bench fio-agreement` compares them).

use crate::common::{Loop, Mount, Ran, Running, Sandbox, lacks};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Runs a command line of fio's, written as in a shell without quotes.
fn fio(sandbox: &Sandbox, line: &str) -> Ran {
    let mut words = vec!["fio"];
    words.extend(line.split_whitespace().filter(|word| *word != "\\"));
    sandbox.run(&words)
}

fn succeeds(sandbox: &Sandbox, line: &str) -> Ran {
    let ran = fio(sandbox, line);
    assert_eq!(ran.code, Some(0), "{line}\n{}", ran.err);
    assert_eq!(ran.err, "", "{line}");
    ran
}

#[test]
fn commands_from_scripts_run_unchanged() {
    let sandbox = Sandbox::new();
    for line in [
        // dbench, kubestr
        "--randrepeat=0 --verify=0 --ioengine=libaio --direct=1 --gtod_reduce=1 --name=read_iops --filename=f --bs=4K \
         --iodepth=16 --size=4M --readwrite=randread --time_based --ramp_time=0s --runtime=100ms",
        "--randrepeat=0 --verify=0 --ioengine=libaio --direct=1 --name=read_latency --filename=f --bs=4K --iodepth=4 \
         --size=4M --readwrite=randread --time_based --ramp_time=0s --runtime=100ms",
        "--randrepeat=0 --verify=0 --ioengine=libaio --direct=1 --gtod_reduce=1 --name=write_seq --filename=f --bs=1M \
         --iodepth=16 --size=4M --readwrite=write --time_based --ramp_time=0s --runtime=100ms --thread --numjobs=2 \
         --offset_increment=1M --end_fsync=1",
        // etcd
        "--rw=write --ioengine=sync --fdatasync=1 --directory=. --size=220k --bs=2300 --name=mytest",
        // yabs
        "--name=rand_rw_4k --ioengine=libaio --rw=randrw --rwmixread=50 --bs=4k --iodepth=64 --numjobs=2 --size=1M \
         --runtime=100ms --gtod_reduce=1 --direct=1 --filename=f --group_reporting --minimal",
    ] {
        succeeds(&sandbox, line);
    }
}

#[test]
fn a_job_file_runs_under_fio_and_under_run() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "job.fio",
        "# two jobs\n[global]\nioengine=null\nsize=1m\n\n[first]\nrw=read\n[second]\nstonewall\nrw=write\nbs=64k\n",
    );
    let ran = succeeds(&sandbox, "job.fio --bs=8k");
    assert!(ran.out.contains("first") && ran.out.contains("second"), "{}", ran.out);
    let one = succeeds(&sandbox, "--section=second job.fio");
    assert!(!one.out.contains("first"), "{}", one.out);
    let shown = succeeds(&sandbox, "--showcmd job.fio").out;
    assert!(shown.starts_with("fio --name=first --ioengine=null --size=1m --rw=read --name=second"), "{shown}");
    assert_eq!(succeeds(&sandbox, "--parse-only job.fio").out, "");
    let (ran, record) = sandbox.record(&["run", "job.fio", "--bs", "16k"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let sizes: Vec<String> = record.spec.iter().map(|job| job.options["bs"].text.clone()).collect();
    assert_eq!(sizes, ["16k", "16k"]);
}

#[test]
fn the_program_called_fio_is_fio() {
    let sandbox = Sandbox::new();
    let ran = Command::new(env!("CARGO_BIN_EXE_trueio")).arg0("/usr/bin/fio").arg("--version").output();
    let ran = ran.expect("the program starts");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "fio-3.42\n");
    assert!(ran.stderr.is_empty() && ran.status.success());
    assert!(succeeds(&sandbox, "--help").out.contains("json+"));
    assert!(succeeds(&sandbox, "--enghelp").out.lines().any(|line| line.trim() == "libaio"));
    assert!(succeeds(&sandbox, "--cmdhelp=blocksize").out.contains("4096"));
}

#[test]
fn an_impossible_fio_job_is_refused_with_exit_code_1_and_touches_nothing() {
    let sandbox = Sandbox::new();
    for (line, sentence) in [
        ("--name=a --size=1m --bfs=4k", "did you mean `bs`?"),
        ("--name=a --size=4kfoo", "`foo` after the number"),
        ("--name=a --size=1m --bssplit=4k/80:8k/80:16k/", "sum to 160"),
        ("--name=a --size=1m --filename=/dev/trueio-typo1p1 --rw=write", "is not for files"),
        ("--name=a --size=1m --exec_prerun=touch\u{a0}x", "--allow-exec"),
        ("--name=a", "no `--size` is given"),
        ("nosuch.fio", "cannot be read"),
        ("", "no job is defined"),
        ("--name=a --size=1m --readonly --rw=write", "forbids it"),
        ("--name=a --size=1m --readonly", "forbids its creation"),
        ("--name=a --size=1m --allow_file_create=0", "forbids its creation"),
    ] {
        let ran = fio(&sandbox, line);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{line}\n{}", ran.err);
        assert!(ran.err.contains(sentence), "{line}\n{}", ran.err);
    }
    assert_eq!(fs::read_dir(sandbox.root()).expect("the sandbox").count(), 0);
}

/// Goal: a file that is too small is made longer as fio does it, and what it holds is never destroyed to be read.
/// Method: an empty file for each kind of job, as scripts make it with `mktemp`; and one with content, which a job that
/// writes elsewhere keeps.
#[test]
fn a_file_that_is_too_small_is_extended_and_keeps_its_content() {
    let sandbox = Sandbox::new();
    for (name, words) in [
        ("read", "--rw=read"),
        ("prepared", "--rw=read --create_only=1"),
        ("write", "--rw=write"),
        ("sparse", "--rw=write --fallocate=truncate --io_size=4k"),
        ("appended", "--rw=write --fallocate=none"),
        ("reserved", "--rw=write --fallocate=keep"),
        ("mixed", "--rw=randrw --numjobs=2 --group_reporting"),
    ] {
        let path = sandbox.write(name, "");
        succeeds(&sandbox, &format!("--name=a --filename={name} --size=96k --bs=4k {words}"));
        let content = fs::read(&path).expect("the file stays");
        assert_eq!(content.len(), 96 << 10, "{name}");
        let written = content.chunks(4096).filter(|block| block.iter().any(|&byte| byte != 0)).count();
        assert_eq!(written, if name == "sparse" { 1 } else { 24 }, "{name}");
    }
    let path = sandbox.write("kept", "precious".repeat(1000));
    succeeds(&sandbox, "--name=a --filename=kept --rw=randread --size=8000 --bs=4000");
    succeeds(&sandbox, "--name=a --filename=kept --rw=write --offset=8k --size=56k --bs=4k");
    let content = fs::read(&path).expect("the file");
    assert_eq!(content.len(), 64 << 10);
    assert!(content.starts_with("precious".repeat(1000).as_bytes()), "what was there stays");
    // Nothing is made longer where nothing may be written.
    let empty = sandbox.write("empty", "");
    let ran = fio(&sandbox, "--readonly --name=a --filename=empty --rw=read --size=64k");
    assert_eq!((ran.code, fs::metadata(empty).expect("the file").len()), (Some(1), 0), "{}", ran.err);
}

/// fio empties and rewrites a file that is too small for a job that reads.
#[test]
fn a_file_is_never_overwritten_for_reading() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("u", "precious");
    let ran = fio(&sandbox, "--name=r --rw=read --filename=u --size=64k");
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("does not fit into the region of 8 B"), "{}", ran.err);
    assert_eq!(fs::read(path).expect("the file"), b"precious");
}

/// Goal: cases that fio's guard misses are refused with exit code 1: links, trims, a second device on the same file.
/// Method: ext4 on a loop device, mounted read-only; the same jobs through its names. A loop device without
/// anything on it is then written and trimmed, because a job names it.
#[test]
fn a_mounted_device_is_neither_written_nor_trimmed_and_a_bare_one_is() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 16 << 20);
    disk.make_ext4();
    let job = "--ioengine=psync --size=64k --overwrite_signature=ext4";
    let marked = fio(&sandbox, &format!("--name=a --ioengine=psync --size=64k --rw=write --filename={}", disk.device));
    assert_eq!((marked.code, marked.err.contains("signature_not_named")), (Some(1), true), "{}", marked.err);
    let mount = Mount::try_new("ext4", "ro", &disk.device, &sandbox.path("mounted")).expect("a mount");
    let before = disk.content();
    let link = sandbox.path("by-id").to_str().expect("UTF-8").to_owned();
    std::os::unix::fs::symlink(&disk.device, &link).expect("a link");
    for path in [&disk.device, &link] {
        for rw in ["write", "randtrim", "randrw"] {
            let ran = fio(&sandbox, &format!("--name=a {job} --rw={rw} --filename={path}"));
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{rw} {path}");
            assert!(ran.err.contains("is mounted at"), "{rw} {path}: {}", ran.err);
        }
    }
    // `--name` of a device is the device.
    let ran = fio(&sandbox, &format!("--name={} {job} --rw=write", disk.device));
    assert!(ran.err.contains("is mounted at"), "{}", ran.err);
    assert_eq!(disk.content(), before);
    drop(mount);

    let bare = Loop::new(&sandbox, "bare.img", 16 << 20);
    for rw in ["write", "randtrim", "read"] {
        succeeds(&sandbox, &format!("--name=a --rw={rw} --size=1m --bs=64k --direct=1 --filename={}", bare.device));
    }
}

#[test]
fn a_signal_ends_the_run_with_its_results_and_exit_code_128() {
    let words =
        "fio --name=long --ioengine=psync --rw=randread --size=1m --time_based --runtime=60 --output-format=json";
    let words: Vec<&str> = words.split_whitespace().collect();
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let sandbox = Sandbox::new();
        let running = Running::start(sandbox.command(&words).arg("--write_iops_log").arg(sandbox.aside("seen")));
        running.wait_for_io(&sandbox.aside("seen_iops.1.log"));
        running.signal(signal);
        let (ran, by_signal) = running.wait();
        assert_eq!((ran.code, by_signal), (Some(128), None), "{}", ran.err);
        let document: serde_json::Value = serde_json::from_str(&ran.out).expect("nothing but a document");
        assert!(document["jobs"][0]["read"]["total_ios"].as_u64() > Some(0), "{}", ran.out);
        assert_eq!(ran.err, "");
    }
}

#[test]
fn logs_have_the_job_name_or_the_given_name_in_the_current_directory() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[global]\nioengine=null\nsize=64k\n[a]\nnumjobs=2\nwrite_bw_log\n[b]\nwrite_lat_log=l\n");
    fs::create_dir(sandbox.path("aux")).expect("a directory");
    succeeds(&sandbox, "job.fio --aux-path=aux");
    // As in fio, the directory of `--aux-path` is that of verify states.
    let logs = fs::read_dir(sandbox.root()).expect("the directory");
    let mut logs: Vec<_> = logs.map(|log| log.expect("a log").file_name().into_string().expect("UTF-8")).collect();
    logs.retain(|name| name.ends_with(".log"));
    logs.sort();
    assert_eq!(logs, ["a_bw.1.log", "a_bw.2.log", "l_clat.3.log", "l_lat.3.log", "l_slat.3.log"]);
}

#[test]
fn a_cpuio_job_succeeds_without_an_io() {
    succeeds(&Sandbox::new(), "--name=c --ioengine=cpuio --cpuload=10 --runtime=100ms --time_based");
}

/// A job that measures ends one that only makes noise, and this is neither a failure nor an interruption.
#[test]
fn a_job_with_exitall_ends_the_parallel_jobs_and_the_run_succeeds() {
    let sandbox = Sandbox::new();
    let ran = succeeds(
        &sandbox,
        "--ioengine=null --size=1m --time_based --runtime=300 --rate_iops=1000 --name=noise --output-format=json \
         --name=measured --runtime=300ms --exitall",
    );
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("a document");
    for job in document["jobs"].as_array().expect("jobs") {
        assert!(job["read"]["total_ios"].as_u64() > Some(50) && job["error"] == 0, "{}", ran.out);
        assert!(job["read"]["runtime"].as_u64() < Some(290_000), "its own time did not end it: {}", ran.out);
    }
    let (ran, by_signal) = {
        let words =
            "fio --ioengine=null --size=1m --time_based --runtime=60 --exitall --name=a --name=b --ramp_time=50";
        let words: Vec<&str> = words.split_whitespace().collect();
        let running = Running::start(&mut sandbox.command(&words));
        running.wait_for_worker("a-0");
        running.signal(libc::SIGINT);
        running.wait()
    };
    assert_eq!((ran.code, by_signal), (Some(128), None), "a signal is still one: {}", ran.err);
}

/// A worker's thread of a running program: the processors it may run on, and its class of I/O priority.
fn scheduling_of(running: &Running, name: &str) -> (String, libc::c_long) {
    let threads = fs::read_dir(format!("/proc/{}/task", running.id())).expect("its threads");
    for thread in threads.flatten() {
        let read = |file: &str| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        if read("comm").trim() == name {
            let status = read("status");
            let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("");
            let id: libc::c_long = thread.file_name().to_string_lossy().parse().expect("a number");
            // SAFETY: a plain call with integer arguments.
            let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, 1, id) };
            return (cpus.trim().to_owned(), priority >> 13);
        }
    }
    panic!("there is no thread `{name}`");
}

#[test]
fn clones_share_or_split_processors_and_have_the_given_priority() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("skipped: one processor cannot be shared or split");
        return;
    }
    let sandbox = Sandbox::new();
    for (policy, first, second) in [("", "0-1", "0-1"), ("--cpus_allowed_policy=split", "0", "1")] {
        let line = format!(
            "fio --name=p --ioengine=null --size=1m --time_based --runtime=60 --rate_iops=100 --numjobs=2 --cpus_allowed=0,1 \
             --prioclass=3 {policy}"
        );
        let words: Vec<&str> = line.split_whitespace().collect();
        let running = Running::start(&mut sandbox.command(&words));
        running.wait_for_worker("p.0-0");
        running.wait_for_worker("p.1-0");
        // A thread has its name before it sets its processors and its priority, in this order.
        for (worker, cpus) in [("p.0-0", first), ("p.1-0", second)] {
            running.wait_until("the priority", || scheduling_of(&running, worker).1 == 3);
            assert_eq!(scheduling_of(&running, worker).0, cpus);
        }
        running.signal(libc::SIGTERM);
        assert_eq!(running.wait().0.code, Some(128));
    }
}

/// Goal: a worker runs on the processors of its node and takes memory from it; the rest of the program does not.
#[test]
fn workers_run_and_allocate_memory_on_the_given_nodes() {
    if !std::path::Path::new("/proc/self/numa_maps").exists() {
        println!("skipped: this kernel knows no nodes");
        return;
    }
    let sandbox = Sandbox::new();
    let line = "fio --name=n --ioengine=null --size=1m --time_based --runtime=60 --rate_iops=100 --numa_cpu_nodes=0 \
                --numa_mem_policy=bind:0";
    let words: Vec<&str> = line.split_whitespace().collect();
    let running = Running::start(&mut sandbox.command(&words));
    running.wait_for_worker("n-0");
    let policy_of = |name: &str| {
        let threads = fs::read_dir(format!("/proc/{}/task", running.id())).expect("its threads");
        let read = |thread: &fs::DirEntry, file: &str| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        let thread = threads.flatten().find(|thread| read(thread, "comm").trim() == name)?;
        read(&thread, "numa_maps").split_whitespace().nth(1).map(str::to_owned)
    };
    running.wait_until("the policy", || policy_of("n-0").as_deref() == Some("bind:0"));
    let main = fs::read_to_string(format!("/proc/{}/numa_maps", running.id())).expect("its memory");
    assert_eq!(main.split_whitespace().nth(1), Some("default"));
    running.signal(libc::SIGTERM);
    assert_eq!(running.wait().0.code, Some(128));
    for refused in ["--numa_cpu_nodes=1023", "--numa_mem_policy=bind:1023"] {
        let ran = fio(&sandbox, &format!("--name=a --ioengine=null --size=1m {refused}"));
        assert_eq!(ran.code, Some(1), "{refused}");
        assert!(ran.err.contains("names node 1023"), "{}", ran.err);
    }
}

/// fio puts its notes before the document and, with `--output`, into its file.
#[test]
fn stdout_has_only_the_document_and_it_contains_the_notes() {
    let sandbox = Sandbox::new();
    let line = "--name=a --size=64k --iodepth=32 --thread --output-format=json";
    let ran = succeeds(&sandbox, line);
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("nothing but a document");
    let notes = document["trueio"]["warnings"].to_string();
    assert!(notes.contains("`iodepth=32` becomes 1") && notes.contains("`thread` has no effect"), "{notes}");
    assert_eq!(document["jobs"][0]["job options"]["iodepth"], "32");
    let ran = succeeds(&sandbox, &format!("{line} --output=result.json"));
    assert_eq!(ran.out, "");
    let written = fs::read_to_string(sandbox.path("result.json")).expect("the document");
    assert!(serde_json::from_str::<serde_json::Value>(&written).is_ok());
    // The output would replace a target.
    let ran = fio(&sandbox, "--name=a --size=64k --output=a.0.0");
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("would replace"), "{}", ran.err);
}

#[test]
fn commands_of_a_job_run_before_and_after_it_with_allow_exec() {
    let sandbox = Sandbox::new();
    let job = "[a]\nioengine=null\nsize=1m\nexec_prerun=echo before\nexec_postrun=echo after\n";
    sandbox.write("job.fio", job);
    assert_eq!(fio(&sandbox, "job.fio").code, Some(1));
    assert!(!sandbox.path("a.prerun.txt").exists());
    succeeds(&sandbox, "job.fio --allow-exec");
    succeeds(&sandbox, "job.fio --allow-exec");
    let printed = |name: &str| fs::read_to_string(sandbox.path(name)).expect("what the command printed");
    assert_eq!((printed("a.prerun.txt").as_str(), printed("a.postrun.txt").as_str()), ("before\n", "after\n"));
}

/// Goal: a phase whose `exec_prerun` fails does nothing, and `exec_postrun` runs for each job whose `exec_prerun` succeeded.
/// Method: of three jobs, the command of the first succeeds, that of the second fails, and the last is not reached.
#[test]
fn a_failed_prerun_command_prevents_its_phase() {
    let sandbox = Sandbox::new();
    let job = |name: &str, before: &str| {
        format!("[{name}]\nrw=write\nsize=64k\nexec_prerun={before}\nexec_postrun=echo undone\n")
    };
    sandbox.write("job.fio", [job("a", "true"), job("b", "echo no mount && false"), job("c", "true")].concat());
    let ran = fio(&sandbox, "--allow-exec --output-format=json job.fio");
    // The number of failed jobs: none of the three ran.
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert_eq!(
        ran.err.matches("the command `echo no mount && false` failed: exit status: 1").count(),
        1,
        "{}",
        ran.err
    );
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("a document all the same");
    for entry in document["jobs"].as_array().expect("jobs") {
        assert_eq!(entry["write"]["total_ios"], 0, "{entry}");
    }
    let printed = |name: &str| fs::read_to_string(sandbox.path(name)).ok();
    assert_eq!(printed("b.prerun.txt").as_deref(), Some("no mount\n"));
    let undone = |name: &str| printed(&format!("{name}.postrun.txt"));
    assert_eq!((undone("a").as_deref(), undone("b"), undone("c")), (Some("undone\n"), None, None));
    // `exec_postrun` also runs if the phase cannot begin: the directory of its logs is gone.
    fs::create_dir(sandbox.path("logs")).expect("a directory");
    let failing = "[d]\nrw=write\nsize=64k\nwrite_bw_log=logs/l\nexec_prerun=rmdir logs\nexec_postrun=echo\n";
    sandbox.write("failing.fio", failing);
    assert_eq!(fio(&sandbox, "--allow-exec failing.fio").code, Some(1));
    assert!(sandbox.path("d.postrun.txt").exists());
}

/// Goal: a command does not keep a run from being ended, and is ended with what it started.
/// Method: a shell that waits for a sleep of a day; the signal goes to this program alone.
#[test]
fn a_signal_ends_a_command_with_its_children() {
    let sandbox = Sandbox::new();
    sandbox.write("long.sh", "sleep 86400 &\necho $! > pid\nwait\n");
    sandbox.write("job.fio", "[a]\nioengine=null\nsize=1m\nexec_prerun=sh long.sh\nexec_postrun=echo after\n");
    let running = Running::start(&mut sandbox.command(&["fio", "--allow-exec", "job.fio"]));
    let pid = || fs::read_to_string(sandbox.path("pid")).unwrap_or_default().trim().parse::<u32>().ok();
    running.wait_until("the number of what the command starts", || pid().is_some());
    let sleeper = format!("/proc/{}/stat", pid().expect("a number"));
    running.signal(libc::SIGINT);
    let (ran, by_signal) = running.wait();
    assert_eq!((ran.code, by_signal), (Some(128), None), "{}", ran.err);
    let runs = || fs::read_to_string(&sleeper).is_ok_and(|stat| !stat.contains(") Z"));
    let begin = std::time::Instant::now();
    while runs() {
        assert!(begin.elapsed().as_secs() < 120, "what the command started goes on");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(!sandbox.path("a.postrun.txt").exists(), "there is nothing to be undone");
}
