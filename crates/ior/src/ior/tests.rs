//! Command lines of IOR as jobs, and those that are refused.

use super::*;
use crate::job_file;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn lowered(line: &str) -> Lowered {
    let mut notes = Vec::new();
    let ior = Ior::read(&words(line), &mut notes).unwrap_or_else(|error| panic!("{line}: {error}"));
    ior.lower(notes)
}

#[test]
fn the_common_options_become_a_job_that_writes_and_one_that_reads() {
    let text = job_file(&lowered("-a POSIX -b 1g -t 1m -s 4 -o /mnt/f -e -C -k -w -r -D 60").jobs);
    assert_eq!(
        text,
        "[defaults]\nbs = 1048576\nfilename = \"/mnt/f\"\nshared_file = true\nshared_segments = 4\nsize = 4294967296\n\
         unlink = false\nruntime = \"60s\"\nioengine = \"psync\"\ndirect = \"off\"\n\
         \n[job.write]\nrw = \"write\"\nfallocate = \"truncate\"\nnew_file_access = \"group\"\nend_fsync = true\n\
         \n[job.read]\nrw = \"read\"\nrank_shift = 1\nrank_shift_by = \"host\"\nrepeat_ios_of = \"write\"\nstonewall = true\n"
    );
}

#[test]
fn a_file_for_each_task_has_iors_eight_digits() {
    let jobs = lowered("-F -o /mnt/f -w -C -r").jobs;
    assert_eq!(jobs[0].options["filename"].text, "/mnt/f.${rank8}");
    assert_eq!(jobs[1].options["rank_shift"].text, "1");
    assert!(!jobs[0].options.contains_key("shared_segments"));
}

#[test]
fn without_w_and_r_it_does_both_and_the_sizes_are_iors() {
    let jobs = lowered("").jobs;
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["write", "read"]);
    let text = |option: &str| jobs[0].options[option].text.as_str();
    assert_eq!((text("filename"), text("size"), text("bs")), ("testFile", "1048576", "262144"));
    assert_eq!(lowered("-r").jobs.len(), 1);
    assert!(!lowered("-r").jobs[0].options.contains_key("repeat_ios_of"));
}

#[test]
fn wear_out_is_a_phase_that_completes_the_work_of_the_one_with_the_most() {
    let jobs = lowered("-w -r -D 5 -O stoneWallingWearOut=1").jobs;
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["write", "write-rest", "read"]);
    assert_eq!(jobs[1].options["complete_ios_of"].text, "write");
    assert!(!jobs[1].options.contains_key("runtime"));
    assert_eq!(jobs[2].options["repeat_ios_of"].text, "write-rest");
    assert_eq!(lowered("-w -r -D 5 -O stonewallingwearout=0").jobs.len(), 2);
}

#[test]
fn repetitions_write_one_file_anew_or_with_m_a_file_each() {
    let jobs = lowered("-i 2 -w -r -k -o f").jobs;
    let of = |index: usize, option: &str| jobs[index].options[option].text.as_str();
    assert_eq!(
        jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(),
        ["write-1", "read-1", "write-2", "read-2"]
    );
    assert!(jobs.iter().all(|job| job.options["filename"].text == "f" && job.options["unlink"].text == "false"));
    assert!(!jobs[0].options.contains_key("renew_files"));
    assert_eq!(of(2, "renew_files"), "true");
    let jobs = lowered("-i 2 -w -m -F -o d/f -u").jobs;
    let files: Vec<&str> = jobs.iter().map(|job| job.options["filename"].text.as_str()).collect();
    assert_eq!(files, ["d/$rank/f.${rank8}.0", "d/$rank/f.${rank8}.1"]);
    assert!(!jobs[1].options.contains_key("renew_files"));
    // What is only read is one file.
    assert!(lowered("-i 2 -r -o f").jobs.iter().all(|job| job.options["filename"].text == "f"));
}

#[test]
fn checks_read_blocks_with_a_checksum_that_the_writer_stored() {
    let jobs = lowered("-w -W -r -R -C -o f").jobs;
    let text = |job: usize, option: &str| jobs[job].options.get(option).map(|value| value.text.as_str());
    assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["write", "check-write", "read"]);
    assert!((0..3).all(|job| text(job, "verify") == Some("crc32c")));
    assert_eq!(
        (text(0, "do_verify"), text(1, "rank_shift"), text(2, "rank_shift")),
        (Some("false"), Some("2"), Some("1"))
    );
    // A later command can compare what `-G` wrote.
    assert_eq!(lowered("-w -k -G 27").jobs[0].options["verify"].text, "crc32c");
    assert!(!lowered("-w -k").jobs[0].options.contains_key("verify"));
}

#[test]
fn tasks_read_the_region_of_a_random_one() {
    let jobs = lowered("-i 2 -w -r -Z -X 7 -Q 2").jobs;
    let text = |job: usize, option: &str| jobs[job].options[option].text.as_str();
    assert_eq!((text(1, "rank_shift"), text(1, "rank_shift_by"), text(1, "rank_shift_seed")), ("2", "random", "7"));
    assert_eq!(text(3, "rank_shift_seed"), "8");
}

/// Source: command lines in public repositories (AWS workshops, Benchpark, CSCS, DAOS, IO500, Lustre, NERSC, Ramble, USC), with
/// other files.
#[test]
fn public_command_lines_are_accepted() {
    for line in [
        "-k -w -o f -t 1m -b 16m -s 16",
        "-w -r -o=f -b=256m -a=POSIX -i=5 -F -z -t=64m -C",
        "-a POSIX -w -k -o f -t 1k -b 32m -F -e -Y",
        "-F -e -g -vv -w -G 27 -k -t 1m -b 1g -o f",
        "-B -F -C -Q 1 -t 4m -D 30 -b 24g -a POSIX -o f -w -k",
        "-a POSIX -w -B -t 1m -b 40g -o f",
        "-a POSIX -b 26214400 -v -w -k -i 1 -o f -t 25M",
        "-a POSIX -b 5G -t 1M -v -W -w -r -R -i 1 -k -o f",
        "-a POSIX -t 1m -b 16g -s 1 -i 1 -g -w -k -e --posix.odirect -o f",
        "-a POSIX -o f -g -w -r -R -G 1234567 -k",
        "-a POSIX -F -i 1 -N 4 -b 16m -k -t 4m -s 1 -o f",
        "-a POSIX -b 1g -o f -t 2m -v -w -r -T 10 -k",
        "-a POSIX -i 4 -o f -t 128k -b 512m -F",
        "-a POSIX -t 4k -b 1g -z -r -o f",
        "-C -Q 1 -g -G 760427273 -k -e -o f -O stoneWallingStatusFile=s -t 512k -b 10g -u -F -w -D 300 -O \
         stoneWallingWearOut=300 -a POSIX",
        "--posix.odirect -t 1m -b 10000m -F -w -C -Q 1 -g -G 27 -k -e -o f -O stoneWallingStatusFile=s -O \
         stoneWallingWearOut=1 -D 300",
        "-o f -w -F -C -a Posix -O useO_DIRECT=1,keepFile=1 -e -t 1m -b 64m --dataPacketType=timestamp -D 30 -O \
         stoneWallingWearOut=1 -O stoneWallingStatusFile=s -O summaryFormat=JSON -O summaryFile=l",
        "-Cge -vv -F -i5 -b 16m -t 1m -a POSIX",
        "-Cge -wWr -F -b 16m -t 1m -a POSIX",
        "-vvv -t 4m -b 64m -s 16 -F -C -e -o f",
        "-v -w -r -i=10 -o f -t=1M -b=1M -s=128",
        "-z -F -i 1 -s 10240 -b 16m -t 16m",
        "-C -Q 1 -g -G 27 -k -e -t 47008 -b 47008 -s 400000 -w -O stoneWallingStatusFile=s -O stoneWallingWearOut=1 -D 300 \
         -a POSIX -o f",
        "-r -R -C -Q 1 -g -G 27 -k -e -t 47008 -b 47008 -s 400000 -O stoneWallingStatusFile=s -O stoneWallingWearOut=1 \
         -D 300 -a POSIX -o f",
        "-w -C -k -e -i1 -m -t 100k -b 200k",
        "-r -k -e -i1 -m -t 100k -b 200k -s 10 -z -z",
    ] {
        Ior::read(&words(line), &mut Vec::new()).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn directives_are_the_options_that_they_name() {
    let one = |line: &str| Ior::read(&words(line), &mut Vec::new()).expect("it is read");
    assert_eq!(
        one("-O blockSize=2m,transferSize=1m,filePerProc=1,useO_DIRECT=1,fsync=0"),
        one("-b 2m -t 1m -F --posix.odirect")
    );
    assert_eq!(one("-Cg -Q 2").reorder, Some(2));
    assert_eq!(
        one("-O checkRead=1,multiFile=1,uniqueDir=1,fileperproc=1,interTestDelay=3,randomOffset=1,numTasks=2"),
        one("-R -m -u -F -d 3 -z -N 2")
    );
    assert_eq!(one("-O randomOffset=2"), one("-z -z"));
    assert_eq!(one("-d 0 -T 0 -X 0 -N 0 -M 0"), one(""));
}

/// Goal: no option of IOR is misread in silence.
#[test]
fn what_is_not_done_is_refused_by_name_with_an_alternative() {
    for (line, parts) in [
        ("-a MPIIO", ["`-a MPIIO`", "use `-a POSIX`"]),
        ("-c", ["`-c`", "leave it out"]),
        ("-f script", ["`-f script`", "job file"]),
        ("-C -Z", ["`-C`", "`-Z`"]),
        ("-u", ["`-u`", "add `-F`"]),
        ("-W -r", ["`-W`", "`-R` reads"]),
        ("-z -z -R", ["`-z -z`", "use one `-z`"]),
        ("-T 10 -i 3", ["`-T 10`", "`-i 3`"]),
        ("-O summaryFormat=XML", ["`-O summaryFormat=XML`", "`CSV`"]),
        ("-O stoneWallingStatusFile=x -w", ["`-O stoneWallingStatusFile`", "add `-k`"]),
        ("-O minTimeDuration=3", ["`-O minTimeDuration`", "time_based"]),
        ("-O savePerOpDataCSV=x", ["`-O savePerOpDataCSV`", "--json FILE"]),
        ("-O fsync", ["`-O fsync`", "fsync=1"]),
        ("-b 3 -t 2", ["`-b` is 3 bytes", "no multiple of `-t`"]),
        ("-q", ["`-q`", "not an option of ior"]),
    ] {
        let error = Ior::read(&words(line), &mut Vec::new()).expect_err(line);
        assert!(parts.iter().all(|part| error.contains(part)), "{line}: {error}");
    }
}

#[test]
fn every_option_of_ior_is_known() {
    // `ior --help` of 4.0, without those of other interfaces.
    for letter in "aAbcCdDeEfFgGijkKlmMNoOQrRstTuvwWxXyYzZ".chars() {
        assert!(KNOWN.iter().any(|known| known.letter == letter), "-{letter}");
    }
    for (index, known) in KNOWN.iter().enumerate() {
        let is_same = |other: &Known| (other.letter, other.name) == (known.letter, known.name);
        assert!(!KNOWN[..index].iter().any(is_same), "-{} {} comes twice", known.letter, known.name);
    }
}
