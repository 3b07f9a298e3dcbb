//! Honest runs of several ranks whose figures are unusual: rank 0 compares the figures of each rank with each other, and refuses none of these.

use crate::common::*;
use crate::ranks_common::*;

/// Jobs of which each has figures of its own kind.
const JOBS: &[(&str, &str)] = &[
    (
        "paced",
        "ioengine = \"io_uring\"\niodepth = 8\nrw = \"randread\"\nrate_iops = 400\nruntime = \"400ms\"\ntime_based = true",
    ),
    (
        "open loop",
        "rw = \"randwrite\"\nrate_iops = 300\nrate_process = \"poisson\"\nruntime = \"400ms\"\ntime_based = true",
    ),
    ("deep", "ioengine = \"libaio\"\niodepth = 64\nrw = \"randrw\"\nruntime = \"400ms\"\ntime_based = true"),
    ("sizes", "ioengine = \"io_uring\"\niodepth = 4\nrw = \"randrw\"\nbssplit = \"4k/50:64k/50\""),
    ("range", "rw = \"randrw\"\nbsrange = \"1k-32k\"\nbs_unaligned = true"),
    ("verified", "rw = \"randwrite\"\nverify = \"crc32c\"\niodepth = 4\nioengine = \"libaio\""),
    ("verified meanwhile", "rw = \"write\"\nverify = \"crc32c\"\nverify_backlog = 8"),
    ("synced", "rw = \"write\"\nfsync = 4\nend_fsync = true"),
    ("trims", "rw = \"trimwrite\"\nnumber_ios = 20"),
    (
        "ramp",
        "ioengine = \"io_uring\"\niodepth = 16\nrw = \"randread\"\nramp_time = \"200ms\"\nruntime = \"300ms\"\ntime_based = true",
    ),
    ("workers", "numjobs = 3\ngroup_reporting = false\nrw = \"randread\"\nruntime = \"300ms\"\ntime_based = true"),
    ("pauses", "rw = \"read\"\nthinktime = \"20ms\"\nruntime = \"400ms\"\ntime_based = true"),
    ("loops", "rw = \"write\"\nloops = 3\nverify = \"md5\""),
    ("one", "rw = \"read\"\nnumber_ios = 1"),
    ("null", "ioengine = \"null\"\niodepth = 32\nruntime = \"300ms\"\ntime_based = true"),
    ("cpu", "ioengine = \"cpuio\"\ncpuload = 20\nruntime = \"200ms\""),
    ("names", "ioengine = \"filecreate\"\nnrfiles = 20"),
    ("simulated", "ioengine = \"simulated\"\nrw = \"randread\"\niodepth = 4\nnumber_ios = 1000\nsize = \"1g\""),
    ("delayed", "rw = \"read\"\nstartdelay = \"100ms\"\nruntime = \"200ms\"\ntime_based = true"),
    (
        "target",
        "ioengine = \"libaio\"\niodepth = 32\nrw = \"randread\"\nlatency_target = \"5ms\"\nlatency_window = \"100ms\"\nlatency_percentile = 99\nruntime = \"500ms\"\ntime_based = true",
    ),
];

/// Goal: no exact relation of figures is one that an honest run leaves.
/// Method: two ranks for each kind of job; both are in the sum, whatever the jobs' outcome.
#[test]
fn unusual_honest_results_are_in_the_sum() {
    let mut planned = 0;
    for (name, text) in JOBS {
        let sandbox = Sandbox::new();
        let job = sandbox.aside("job.toml");
        std::fs::write(&job, format!("[defaults]\nsize = \"1m\"\n[job.a]\n{text}\n")).expect("a job file");
        let path = sandbox.aside("record.json");
        let json = path.to_str().expect("UTF-8");
        let arguments = ["run", job.to_str().expect("UTF-8"), "--no-history", "--json", json];
        let ran = run_ranks(&sandbox, 2, |_| arguments.to_vec());
        assert_ne!(ran[0].code, Some(2), "{name} is refused: {}", ran[0].err);
        let record = record_at(&sandbox, "record.json");
        let cluster = record.cluster.as_ref().expect("two ranks");
        assert_eq!(cluster.lost, [], "{name}: {}", ran[0].err);
        assert_eq!(cluster.phases[0].ranks.len(), 2, "{name}");
        planned += 1;
    }
    assert_eq!(planned, JOBS.len());
}
