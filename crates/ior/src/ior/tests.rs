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
         \n[job.write]\nrw = \"write\"\nfallocate = \"truncate\"\nend_fsync = true\n\
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
fn each_repetition_writes_a_file_of_its_own_and_the_last_has_the_name() {
    let jobs = lowered("-i 2 -w -r -k -o f").jobs;
    let of = |index: usize, option: &str| jobs[index].options[option].text.as_str();
    assert_eq!(
        jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(),
        ["write-1", "read-1", "write-2", "read-2"]
    );
    assert_eq!([of(0, "filename"), of(2, "filename")], ["f.repetition1", "f"]);
    assert_eq!([of(0, "unlink"), of(2, "unlink")], ["true", "false"]);
    // What is only read is one file.
    assert!(lowered("-i 2 -r -o f").jobs.iter().all(|job| job.options["filename"].text == "f"));
}

#[test]
fn directives_are_the_options_that_they_name() {
    let one = |line: &str| Ior::read(&words(line), &mut Vec::new()).expect("it is read");
    assert_eq!(
        one("-O blockSize=2m,transferSize=1m,filePerProc=1,useO_DIRECT=1,fsync=0"),
        one("-b 2m -t 1m -F --posix.odirect")
    );
    assert_eq!(one("-Cg -Q 2").reorder, Some(2));
}

/// Goal: no option of IOR is misread in silence.
#[test]
fn what_is_not_done_is_refused_by_name_with_an_alternative() {
    for (line, parts) in [
        ("-a MPIIO", ["`-a MPIIO`", "use `-a POSIX`"]),
        ("-c", ["`-c`", "leave it out"]),
        ("-Z", ["`-Z`", "use `-C`"]),
        ("-R", ["`-R`", "verify = \"crc32c\""]),
        ("-f script", ["`-f script`", "job file"]),
        ("-N 4", ["`-N 4`", "mpirun -n N"]),
        ("-z -z", ["`-z -z`", "norandommap"]),
        ("-z -s 2 -b 4m", ["`-z` with `-s 2`", "-b 8388608"]),
        ("-O summaryFormat=JSON", ["`-O summaryFormat`", "--json FILE"]),
        ("-O stoneWallingStatusFile=x", ["`-O stoneWallingStatusFile`", "`-w -r`"]),
        ("-O stoneWallingWearOut=1", ["stoneWallingWearOut", "`-D 60`"]),
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
