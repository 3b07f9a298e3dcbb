//! Other programs that use the files of an honest run: they disturb it, and they do not contradict it.

use crate::common::*;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use trueio_model::{Cause, CheckOutcome, DisturbedSpan, RunRecord};

fn outcome_of(record: &RunRecord, name: &str) -> (CheckOutcome, String) {
    let check = record.phases[0].checks.iter().find(|check| check.name == name).expect("the check ran");
    (check.outcome, check.sentence.clone())
}

/// Evicts a file and reads it through the page cache, again and again, while `running` runs.
fn read_beside(path: &std::path::Path, running: Running) -> Ran {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::File::open(path).expect("the file");
            while !is_over.load(Relaxed) {
                rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("fadvise");
                std::io::Seek::rewind(&mut file).expect("seek");
                std::io::copy(&mut file, &mut std::io::sink()).expect("reads");
            }
        });
        let (ran, _) = running.wait();
        is_over.store(true, Relaxed);
        ran
    })
}

/// Writes a file through the page cache, again and again, while `running` runs.
fn write_beside(path: &std::path::Path, running: Running) -> Ran {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::File::options().write(true).open(path).expect("the file");
            while !is_over.load(Relaxed) {
                std::io::Seek::rewind(&mut file).expect("seek");
                std::io::Write::write_all(&mut file, &vec![7; 32 << 20]).expect("writes");
            }
        });
        let (ran, _) = running.wait();
        is_over.store(true, Relaxed);
        ran
    })
}

const READS: (Beside, &str) = (read_beside, "read");

/// What this process does with the file of a run.
type Beside = fn(&std::path::Path, Running) -> Ran;

/// Goal: a neighbour that reads or writes the file of an honest direct run does not withhold its figures.
/// Method: while the worker reads or writes the file or the device with direct I/O, this process evicts it and reads it, or writes it,
/// through the page cache, again and again. How many pages were left when the run ended is left to chance: the test
/// judges the finding that belongs to them.
#[track_caller]
fn assert_not_contradicted(
    situation: &str,
    sandbox: &Sandbox,
    file: &std::path::Path,
    options: &[&str],
    (beside, did): (Beside, &str),
) {
    let path = sandbox.aside("record.json");
    let job = [
        "run",
        "--name",
        "honest",
        "--bs",
        "4k",
        "--ioengine",
        "psync",
        "--direct",
        "require",
        "--size",
        "32m",
        "--runtime",
        "900ms",
        "--time_based",
        "--json",
        path.to_str().expect("UTF-8"),
        "--filename",
        file.to_str().expect("UTF-8"),
    ];
    let running = Running::start(&mut sandbox.command(&[&job, options].concat()));
    running.wait_for_worker("honest");
    let ran = beside(file, running);
    let record = read_record(&path);
    let (outcome, sentence) = outcome_of(&record, "page_cache");
    match outcome {
        CheckOutcome::Suspect => {
            // Other tests use this disk, too, and may have moved more than the neighbour.
            assert!(sentence.starts_with("Another process "), "{sentence}");
            if !sentence.starts_with(&format!("Another process {did} ")) {
                return println!("other programs did more: {sentence}");
            }
            assert_listed(situation, record.phases[0].checks.iter().find(|check| check.name == "page_cache"));
        }
        CheckOutcome::Passed => println!("the neighbour left few pages"),
        _ => panic!("{outcome:?}: {sentence}\n{ran:?}"),
    }
    ran.assert_code(0);
}

#[test]
fn a_neighbour_that_uses_the_same_file_does_not_contradict_direct_reads_or_writes() {
    let sandbox = Sandbox::new();
    if has_no_disk(&sandbox) {
        return;
    }
    let data = sandbox.data_file("data", 32 << 20);
    let situation = "another program reads the file that a job reads with direct I/O";
    assert_not_contradicted(situation, &sandbox, &data, &["--rw", "randread"], READS);
    let situation = "another program writes the file that a job reads with direct I/O";
    assert_not_contradicted(situation, &sandbox, &data, &["--rw", "randread"], (write_beside, "wrote"));
    let data = data.to_str().expect("UTF-8");
    let situation = "another program reads the file that a job writes with direct I/O";
    let writes = ["--rw", "randwrite", "--overwrite_existing", data];
    assert_not_contradicted(situation, &sandbox, data.as_ref(), &writes, READS);
}

#[test]
fn a_neighbour_that_reads_the_same_device_does_not_contradict_direct_reads() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(device) = Loop::attach(32 << 20) else { return };
    fs::write(device.path(), vec![7u8; 32 << 20]).expect("content");
    let situation = "another program reads the device that a job reads with direct I/O";
    assert_not_contradicted(situation, &sandbox, device.path(), &["--rw", "randread"], READS);
}

/// Goal: the time at which a neighbour used the disk is in the record and shaded in the page; a run alone has none.
/// Method: direct reads on a disk of their own for 1.8 s; in the middle third, this process writes to another file of
/// the same disk. Waiting for a processor, which other tests cause, does not count.
#[test]
fn the_time_at_which_a_neighbour_wrote_is_in_the_record_and_shaded_in_the_page() {
    if lacks("root") || lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk", 128 << 20);
    device.make_ext4();
    let mount = Mount::try_new("ext4", "noatime", &device.device, &sandbox.path("mount")).expect("a mount");
    let run = |name: &str, meanwhile: &dyn Fn()| {
        let (json, page) = (sandbox.aside(&format!("{name}.json")), sandbox.aside(&format!("{name}.html")));
        let job = "run --name reads --rw randread --bs 64k --ioengine psync --direct require --size 16m --runtime 1800ms \
                   --time_based --no-history";
        let mut arguments: Vec<&str> = job.split_whitespace().collect();
        let files = [("--json", &json), ("--html", &page), ("--directory", &mount.path)];
        files.iter().for_each(|(flag, path)| arguments.extend([flag, path.to_str().expect("UTF-8")]));
        let running = Running::start(&mut sandbox.command(&arguments));
        running.wait_for_worker("reads");
        meanwhile();
        running.wait();
        (read_record(&json), fs::read_to_string(&page).expect("the page"))
    };
    let neighbours = |record: &RunRecord| -> Vec<DisturbedSpan> {
        let spans = record.phases[0].disturbances.iter();
        spans.filter(|span| span.cause == Cause::Neighbour).cloned().collect()
    };

    let (record, page) = run("alone", &|| ());
    assert_eq!(neighbours(&record), [], "no other program used the disk");
    assert!(!page.contains("class=\"sh neighbour\""));

    let (record, page) = run("disturbed", &|| {
        std::thread::sleep(std::time::Duration::from_millis(600));
        let begin = std::time::Instant::now();
        let file = fs::File::create(mount.path.join("other")).expect("a file");
        let content = vec![7u8; 8 << 20];
        while begin.elapsed() < std::time::Duration::from_millis(600) {
            std::os::unix::fs::FileExt::write_all_at(&file, &content, 0).expect("written");
            file.sync_data().expect("flushed");
        }
    });
    let found = neighbours(&record);
    assert!(!found.is_empty(), "{:?}", record.phases[0].checks);
    assert!(page.contains("class=\"sh neighbour\""), "it is shaded");
    assert!(
        found
            .iter()
            .all(|span| span.from_ns < span.until_ns && span.until_ns <= record.phases[0].elapsed_ns + 1_000_000)
    );
}
