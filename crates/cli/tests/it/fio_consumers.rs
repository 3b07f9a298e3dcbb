//! Who scripts fio, word for word: the command lines of clouds and scripts, and how each of them reads what comes out.
//!
//! Of the commands only `--size`, `--runtime` and `--ramp_time` are made smaller, and places are the sandbox's. fio-plot is run by
//! `cargo xtask fio-plot`.
//!
//! Cannot see: what these readers do with the figures.

use crate::common::*;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

/// A sandbox in which `fio` is our program.
fn sandbox_with_program() -> Sandbox {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.aside("bin")).expect("a directory");
    symlink(env!("CARGO_BIN_EXE_trueio"), sandbox.aside("bin/fio")).expect("a link");
    sandbox
}

/// Runs a shell script; any output on stderr is a failure.
fn shell(sandbox: &Sandbox, script: &str) -> String {
    let path = format!("{}:{}", sandbox.aside("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(sandbox.root()).env("PATH", path).env("LC_ALL", "C.UTF-8");
    let ran = Ran::of(command.output().expect("sh"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{script}\n{}", ran.out);
    ran.out
}

fn has(program: &str, argument: &str) -> bool {
    tool(program, &[argument]).map_err(|reason| eprintln!("skipped: {reason}")).is_ok()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Seed 002, which has them from Google Cloud's documentation: `write_throughput` and its like.
const GOOGLE: &str = "\
fio --name=write_throughput --directory=. --numjobs=8 --size=10G --time_based --runtime=60s --ramp_time=2s --ioengine=libaio --direct=1 --verify=0 --bs=1M --iodepth=64 --rw=write --group_reporting=1 --iodepth_batch_submit=64 --iodepth_batch_complete_max=64
fio --name=write_iops --directory=. --size=10G --time_based --runtime=60s --ramp_time=2s --ioengine=libaio --direct=1 --verify=0 --bs=4K --iodepth=256 --rw=randwrite --group_reporting=1 --iodepth_batch_submit=256 --iodepth_batch_complete_max=256
fio --name=read_throughput --directory=. --numjobs=8 --size=10G --time_based --runtime=60s --ramp_time=2s --ioengine=libaio --direct=1 --verify=0 --bs=1M --iodepth=64 --rw=read --group_reporting=1 --iodepth_batch_submit=64 --iodepth_batch_complete_max=64
fio --name=read_iops --directory=. --size=10G --time_based --runtime=60s --ramp_time=2s --ioengine=libaio --direct=1 --verify=0 --bs=4K --iodepth=256 --rw=randread --group_reporting=1 --iodepth_batch_submit=256 --iodepth_batch_complete_max=256
fio --name=rw_iops --directory=. --size=10G --time_based --runtime=60s --ramp_time=2s --ioengine=libaio --direct=1 --verify=0 --bs=4K --iodepth=256 --rw=randrw --group_reporting=1 --iodepth_batch_submit=256 --iodepth_batch_complete_max=256";

#[test]
fn the_commands_of_googles_documentation_and_seed_002_run_in_full() {
    let sandbox = sandbox_with_program();
    for line in GOOGLE.lines() {
        let line = line.replace("10G", "8M").replace("60s", "300ms").replace("=2s", "=50ms");
        let out = shell(&sandbox, &line);
        let (jobs, rw) = (if line.contains("numjobs=8") { 8 } else { 1 }, line.contains("randrw"));
        assert!(out.contains(&format!("(groupid=0, jobs={jobs}): err= 0: ")), "{out}");
        let directions = ["  read: IOPS=", "  write: IOPS="].iter().filter(|head| out.contains(**head)).count();
        assert_eq!(directions, if rw { 2 } else { 1 }, "{out}");
    }
}

/// Seed 003, in full but for the size: twice under strace, with its `-D`, once with libaio.
#[test]
fn the_commands_of_seed_003_run_in_full_and_under_strace() {
    if lacks("strace") {
        return;
    }
    let sandbox = sandbox_with_program();
    for (name, rw, calls) in [("randwrite", "randwrite", "pwrite64("), ("write", "write", "pwrite64(")] {
        let log = sandbox.aside(&format!("{name}.log"));
        let line = format!(
            "strace -f -tt -o {} -D fio -name={name} -rw={rw} -direct=1 -bs=4k -size=1M -numjobs=1 -group_reporting \
             -filename=./test.db",
            log.display()
        );
        let out = shell(&sandbox, &line);
        assert!(out.contains("err= 0") && out.contains("ioengine=psync"), "{out}");
        // strace is another process here, which may still write.
        let count = || fs::read_to_string(&log).unwrap_or_default().matches(calls).count();
        let begin = std::time::Instant::now();
        while count() < 256 && begin.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(count(), 256, "one call an I/O, and nothing else is written with it");
    }
    let out = shell(
        &sandbox,
        "fio -name=write -rw=write -ioengine=libaio -direct=1 -bs=4k -size=1M -numjobs=1 -group_reporting -filename=./test.db",
    );
    assert!(out.contains("slat (") && out.contains("WRITE: bw="), "{out}");
}

/// The documentation of Amazon's EBS: random I/O of 16 KiB by 16 clones, and the reading of a new volume.
#[test]
fn the_commands_of_amazons_documentation_run_in_full() {
    let sandbox = sandbox_with_program();
    for rw in ["randwrite", "randread"] {
        let line = format!(
            "fio --directory=. --ioengine=psync --name fio_test_file --direct=1 --rw={rw} --bs=16k --size=1M --numjobs=16 \
             --time_based --runtime=1 --group_reporting --norandommap"
        );
        let out = shell(&sandbox, &line);
        assert!(out.contains("(groupid=0, jobs=16): err= 0: "), "{out}");
    }
    if lacks("loop") {
        return;
    }
    let volume = Loop::new(&sandbox, "volume.img", 16 << 20);
    let line = format!(
        "fio --filename={} --rw=read --bs=1M --iodepth=32 --ioengine=libaio --direct=1 --name=volume-initialize",
        volume.device
    );
    assert!(shell(&sandbox, &line).contains("(16.0MiB/"), "the whole device is read");
}

/// The documentation of Azure's disks: job files, one with four writers, one with clones, and the time on the command line.
#[test]
fn the_job_files_of_azures_documentation_run() {
    let sandbox = sandbox_with_program();
    fs::create_dir(sandbox.path("nocache")).expect("a directory");
    let global = "[global]\nsize=4m\ndirect=1\niodepth=256\nioengine=libaio\nbs=4k\n";
    let writer = |n: u32| format!("[writer{n}]\nrw=randwrite\ndirectory=nocache\n");
    sandbox.write("four.ini", format!("{global}\n{}{}{}{}", writer(1), writer(2), writer(3), writer(4)));
    sandbox.write("clones.ini", format!("{global}numjobs=4\n\n{}", writer(1)));
    for file in ["four.ini", "clones.ini"] {
        let out = shell(&sandbox, &format!("fio --runtime 30 {file}"));
        assert_eq!(out.matches("err= 0").count(), 4, "{out}");
    }
}

/// etcd's check of a disk for its log, in full (22 MB, on tmpfs), and how OpenShift's and others' scripts read it.
#[test]
fn etcds_check_reads_its_percentile_with_jq() {
    if !has("jq", "--version") {
        return;
    }
    let sandbox = sandbox_with_program();
    let data = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let line = format!(
        "fio --rw=write --ioengine=sync --fdatasync=1 --directory={} --size=22m --bs=2300 --name=mytest --output-format=json",
        data.path().display()
    );
    fs::write(sandbox.path("out.json"), shell(&sandbox, &line)).expect("a file");
    let jq = |filter: &str| shell(&sandbox, &format!("jq '{filter}' out.json")).trim().to_owned();
    let p99: u64 = jq(".jobs[0].sync.lat_ns.percentile[\"99.000000\"]").parse().expect("a whole number");
    assert!(p99 > 0);
    assert_eq!(jq(".jobs[0].sync.lat_ns.percentile.\"99.000000\""), p99.to_string());
    // 22 MiB in whole blocks of 2,300 bytes.
    let writes = (22 << 20) / 2300;
    assert_eq!(jq(".jobs[0] | [.write.total_ios, .sync.total_ios, .sync.lat_ns.N] | unique | length"), "1");
    assert_eq!(jq(".jobs[0].sync.total_ios"), writes.to_string());
}

/// yabs: a file is made, then a line of terse output is searched for by the job's name, and cut by `awk`.
#[test]
fn yabs_finds_its_columns() {
    let sandbox = sandbox_with_program();
    let out = shell(
        &sandbox,
        "fio --name=setup --ioengine=libaio --rw=read --bs=64k --iodepth=64 --numjobs=2 --size=8M --runtime=1 --gtod_reduce=1 \
         --filename=./test.fio --direct=1 --minimal > /dev/null
         for bs in 4k 64k 512k 1m; do
           line=$(timeout 300 fio --name=rand_rw_$bs --ioengine=libaio --rw=randrw --rwmixread=50 --bs=$bs --iodepth=64 \
             --numjobs=2 --size=8M --runtime=30 --gtod_reduce=1 --direct=1 --filename=./test.fio --group_reporting --minimal \
             | grep rand_rw_$bs)
           for column in 7 8 48 49; do echo \"$line\" | awk -F';' \"{print \\$$column}\"; done
         done",
    );
    let figures: Vec<u64> = out.lines().map(|line| line.parse().expect("a whole number")).collect();
    assert_eq!(figures.len(), 16, "{out}");
    for (figures, kib) in figures.chunks(4).zip([4, 64, 512, 1024]) {
        let &[read_kib, read_iops, write_kib, write_iops] = figures else { panic!("{out}") };
        for (bandwidth, iops) in [(read_kib, read_iops), (write_kib, write_iops)] {
            assert!(iops > 0 && bandwidth.abs_diff(iops * kib) <= kib, "{bandwidth} KiB/s at {iops} I/Os of {kib} KiB");
        }
    }
}

/// Longhorn's kbench: how idle the processors were, by `jq`.
#[test]
fn kbench_finds_how_idle_the_processors_were() {
    let sandbox = sandbox_with_program();
    let line = "fio --idle-prof=percpu --output-format=json --name=bw --ioengine=null --rw=randread --bs=128k --size=1g \
                --rate_iops=100 --time_based --runtime=300ms";
    let document = json(&shell(&sandbox, line));
    let idle = document["cpu_idleness"]["system"].as_f64().expect("a fraction");
    assert!((0.0..=100.0).contains(&idle), "{idle}");
    assert!(document["cpu_idleness"]["cpu-0"].is_f64());
    assert!(json(&shell(&sandbox, &line.replace("percpu", "system")))["cpu_idleness"].get("cpu-0").is_none());
}

/// The scripts that Debian's package of fio has: buckets as a table, logs as data for gnuplot.
#[test]
fn fios_own_scripts_read_our_buckets_and_logs() {
    let sandbox = sandbox_with_program();
    let line = "fio --name=a --ioengine=null --iodepth=4 --rw=randrw --bs=4k --size=4m --numjobs=2 --output=o.json \
                --output-format=json+ --write_bw_log=x --write_iops_log=x --log_avg_msec=50 --time_based --runtime=300ms";
    shell(&sandbox, line);
    let document = json(&fs::read_to_string(sandbox.path("o.json")).expect("a document"));
    if has("which", "fio_jsonplus_clat2csv") {
        shell(&sandbox, "fio_jsonplus_clat2csv o.json table.csv");
        for job in 0..2 {
            let text = fs::read_to_string(sandbox.path(&format!("table_job{job}.csv"))).expect("a table");
            let cells = |line: &str| line.split(", ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
            let (head, rows) = text.split_once('\n').expect("a head");
            let column = cells(head).iter().position(|name| name == "write_clat_ns_count").expect("the column");
            let counts = rows.lines().filter_map(|row| cells(row).get(column)?.parse::<u64>().ok());
            assert_eq!(Some(counts.sum()), document["jobs"][job]["write"]["clat_ns"]["N"].as_u64(), "{text}");
        }
    }
    if has("which", "fio2gnuplot") {
        for log in ["bw", "iops"] {
            let out = shell(&sandbox, &format!("fio2gnuplot -p '*_{log}.*.log' -o {log} 2>&1"));
            assert!(out.contains("2 files Selected") && out.contains(&format!("x_{log}.2.log")), "{out}");
            assert!(sandbox.path("mymath").exists(), "{out}");
        }
    }
}

/// Phoronix' `pts/fio`: a job file, and the text between `IOPS=` and `, BW=` of the direction.
#[test]
fn phoronix_finds_its_figures_in_the_text() {
    let sandbox = sandbox_with_program();
    // `force_async` is an option of io_uring alone, in fio as well.
    let probe = ["run", "--ioengine=io_uring", "--rw=read", "--size=64k", "--no-history", "--no-evidence"];
    let ran = sandbox.run(&probe);
    if ran.code != Some(0) {
        eprintln!("skipped: io_uring does not work here: {}", ran.err);
        return;
    }
    for (rw, head) in [("randread", "read: IOPS="), ("write", "write: IOPS=")] {
        let job = format!(
            "[global]\nrw={rw}\nioengine=io_uring\niodepth=64\nsize=8m\ndirect=1\nbuffered=0\nstartdelay=50ms\nforce_async=4\n\
             ramp_time=50ms\nruntime=300ms\ntime_based\ndisk_util=0\nclat_percentiles=0\ndisable_lat=1\ndisable_clat=1\n\
             disable_slat=1\nfilename=fiofile\n[test]\nname=test\nbs=4k\nstonewall\n"
        );
        sandbox.write("test.fio", job);
        let out = shell(&sandbox, "fio test.fio");
        let line = out.lines().find_map(|line| line.trim_start().strip_prefix(head)).unwrap_or_else(|| panic!("{out}"));
        let (iops, rest) = line.split_once(", BW=").expect("a bandwidth");
        let number = |text: &str| text.trim_end_matches('k').parse::<f64>().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert!(number(iops) > 0.0, "{line}");
        let bandwidth = rest.split_once("iB/s").expect("a unit").0.trim_end_matches(['K', 'M', 'G']);
        assert!(number(bandwidth) > 0.0, "{line}");
    }
}

/// What KDiskMark, kubestr and fio-cdm read: whole numbers where their types are whole, and only the document.
#[test]
fn programs_that_read_json_by_type_find_whole_numbers_and_fractions_where_they_expect_them() {
    let sandbox = sandbox_with_program();
    // KDiskMark's line; its file is there already.
    sandbox.data_file("kdiskmark.tmp", 8 << 20);
    let line = "fio --output-format=json --ioengine=libaio --direct=1 --randrepeat=0 --refill_buffers --end_fsync=1 \
                --rwmixread=70 --filename=kdiskmark.tmp --name=RW --size=8m --zero_buffers=0 --bs=1024k --runtime=5 --rw=RW \
                --iodepth=8 --numjobs=2";
    for rw in ["read", "write", "randread", "randwrite", "randrw"] {
        let document = json(&shell(&sandbox, &line.replace("RW", rw)));
        let jobs = document["jobs"].as_array().expect("jobs");
        assert_eq!(jobs.len(), 2);
        for job in jobs {
            assert_eq!(job["error"].as_u64(), Some(0));
            for direction in ["read", "write"] {
                let of = &job[direction];
                for whole in
                    ["io_bytes", "io_kbytes", "bw_bytes", "bw", "runtime", "total_ios", "short_ios", "drop_ios"]
                {
                    assert!(of[whole].is_u64(), "{direction}.{whole}: {}", of[whole]);
                }
                for whole in ["bw_min", "bw_max", "bw_samples", "iops_min", "iops_max", "iops_samples"] {
                    assert!(of[whole].is_u64(), "{direction}.{whole}: {}", of[whole]);
                }
                for fraction in ["iops", "bw_agg", "bw_mean", "bw_dev", "iops_mean", "iops_stddev"] {
                    assert!(of[fraction].is_f64(), "{direction}.{fraction}: {}", of[fraction]);
                }
                for latency in ["slat_ns", "clat_ns", "lat_ns"] {
                    assert!(of[latency]["min"].is_u64() && of[latency]["N"].is_u64() && of[latency]["mean"].is_f64());
                }
            }
        }
    }
}

/// ezfio asks for the version as a number, and `--help` for `json+`; blktests and others cut the version out.
#[test]
fn version_and_feature_queries_of_scripts_work() {
    let sandbox = sandbox_with_program();
    let version = shell(&sandbox, "fio -v");
    let number: f64 = version.trim_end().strip_prefix("fio-").expect("a version").parse().expect("a number");
    assert!(number >= 3.0 && version.lines().count() == 1, "{version}");
    assert_eq!(shell(&sandbox, "fio --version | cut -c5-").trim(), "3.42");
    let help = shell(&sandbox, "fio --help");
    assert!(help.contains("json+") && !help.contains("--fail-if"), "{help}");
    let help = sandbox.run(&["fio", "--help"]);
    assert!(help.out.contains("Options that fio does not have:\n\n  --fail-if=LIMIT "), "{help:?}");
    assert!(help.out.contains("\n  --against=RECORD "), "{help:?}");
    // Of fio, both are one page; here the letter has the options that most people need.
    assert_eq!(shell(&sandbox, "fio -h"), shell(&sandbox, "fio --help"));
    let short = sandbox.run(&["fio", "-h"]);
    assert!(help.out.contains("EXAMPLES\n  trueio fio --name=reads ") && !short.out.contains("EXAMPLES"), "{short:?}");
    assert!(short.out.contains("  --output-format=VALUE ") && !short.out.contains("--inflate-log"), "{short:?}");
    assert!(short.out.contains("  --help                    print every option, and examples\n"), "{short:?}");
    for engine in ["libaio", "io_uring", "psync", "null"] {
        assert_eq!(shell(&sandbox, &format!("fio --enghelp | grep -cw {engine}")).trim(), "1", "{engine}");
    }
    // The buckets of json+, with the middles as keys: fio_jsonplus_clat2csv and ezfio read whole numbers.
    let line = "fio --name=a --ioengine=null --rw=randrw --size=4m --output-format=json+";
    let document = json(&shell(&sandbox, line));
    let latency = &document["jobs"][0]["write"]["clat_ns"];
    let bins = latency["bins"].as_object().expect("buckets");
    assert!(bins.keys().all(|key| key.parse::<u64>().is_ok()), "{bins:?}");
    let counted: u64 = bins.values().map(|count| count.as_u64().expect("a whole number")).sum();
    assert_eq!(counted, latency["N"].as_u64().expect("a whole number"));
}
