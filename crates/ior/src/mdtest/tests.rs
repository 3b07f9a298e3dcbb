//! Command lines of mdtest as jobs, and those that are refused.

use super::*;
use crate::job_file;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn lowered(line: &str) -> Lowered {
    let mut notes = Vec::new();
    let mdtest = Mdtest::read(&words(line), &mut notes).unwrap_or_else(|error| panic!("{line}: {error}"));
    mdtest.lower(notes)
}

fn names(line: &str) -> Vec<String> {
    lowered(line).jobs.into_iter().map(|job| job.name).collect()
}

#[test]
fn files_of_tasks_in_one_tree_become_a_job_for_each_phase() {
    let text = job_file(&lowered("-n 90 -F -C -T -r -z 2 -b 2 -L -N 1 -d /mnt/out -w 8").jobs);
    let common = "[defaults]\ncreate_directories = true\nname_directory = \"/mnt/out/trueio-mdtest\"\n";
    assert!(text.contains("nrfiles = 88\n") && text.contains("name_leaves = true\n"), "{text}");
    for part in [
        "[job.tree-create]\nranks = \"0\"\nname_tree = true\nioengine = \"dircreate\"\n",
        "[job.file-create]\nname_bytes = 8\nstonewall = true\nioengine = \"filecreate\"\n",
        "[job.file-stat]\nrank_shift = 1\nrank_shift_by = \"host\"\nstonewall = true\nioengine = \"filestat\"\n",
        "[job.file-remove]\nrank_shift = 3\nrank_shift_by = \"host\"\nstonewall = true\nioengine = \"filedelete\"\n",
        "[job.tree-remove]\nranks = \"0\"\nname_tree = true\nstonewall = true\nioengine = \"dirdelete\"\n",
    ] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
    assert!(common.lines().all(|line| text.contains(line)), "{text}");
}

#[test]
fn the_phases_are_those_that_are_chosen_or_all() {
    assert_eq!(names("-n 10 -F -C"), ["tree-create", "file-create"]);
    assert_eq!(names("-n 10 -D -T"), ["directory-stat"]);
    assert_eq!(
        names("-n 10"),
        [
            "tree-create",
            "directory-create",
            "directory-stat",
            "directory-remove",
            "file-create",
            "file-stat",
            "file-read",
            "file-remove",
            "tree-remove"
        ]
    );
    assert_eq!(names("-n 10 -F -C -r -i 2").last().map(String::as_str), Some("tree-remove-2"));
    let jobs = lowered("-n 10 -F -C -r -i 2").jobs;
    let directories: Vec<&str> = jobs.iter().map(|job| job.options["name_directory"].text.as_str()).collect();
    assert_eq!((directories[0], directories[7]), ("./out/trueio-mdtest-1", "./out/trueio-mdtest-2"));
}

#[test]
fn a_stride_beyond_the_largest_is_refused_as_it_was_typed() {
    let read = |stride: &str| Mdtest::read(&["-n", "4", "-N", stride].map(str::to_owned), &mut Vec::new()).map(drop);
    assert_eq!(read("349525"), Ok(()));
    let error = read("99999999999").expect_err("too large");
    assert_eq!(error, "`-N 99999999999` is more than the largest stride, 349525");
}

#[test]
fn items_are_those_of_each_task_or_of_each_directory() {
    let items = |line: &str| lowered(line).jobs[0].options["nrfiles"].text.clone();
    assert_eq!(items("-n 100 -z 1 -b 2"), "99");
    assert_eq!(items("-I 10 -z 2 -b 3"), "130");
    assert_eq!(items("-I 10 -z 2 -b 3 -L"), "90");
    assert_eq!(
        lowered("-n 100 -z 1 -b 2 -C").notes,
        ["`-n 100`: 99 items, which 3 directories share evenly, as in mdtest"]
    );
}

#[test]
fn without_removal_the_names_stay_and_a_private_tree_is_made_by_each_task() {
    let jobs = lowered("-n 10 -F -C -u").jobs;
    assert!(jobs.iter().all(|job| job.options["unlink"].text == "false" && job.options["name_private"].text == "true"));
    assert!(!jobs[0].options.contains_key("ranks"));
    assert_eq!(lowered("-n 10 -F -T -R --random-seed=7").jobs[0].options["randseed"].text, "7");
}

#[test]
fn what_is_not_done_is_refused_by_name_with_an_alternative() {
    for (line, parts) in [
        ("-n 1 -a MPIIO", ["`-a MPIIO`", "use `-a POSIX`"]),
        ("-n 1 -U", ["`-U`", "`-C -T -r`"]),
        ("-n 1 -R -W 10", ["`-R`", "`-W`"]),
        ("-n 1 -k", ["`-k`", "open(2)"]),
        ("-n 1 -S", ["`-S`", "trueio ior"]),
        ("-n 4 -I 2", ["`-n` with `-I 2`", "only one"]),
        ("-F", ["number of items", "`-n 1000`"]),
        ("-n 2 -z 2 -b 2", ["`-n 2`", "7 directories"]),
        ("-n 1 -C -E -e 8 -w 4", ["`-e 8`", "`-w 4`"]),
    ] {
        let error = Mdtest::read(&words(line), &mut Vec::new()).expect_err(line);
        assert!(parts.iter().all(|part| error.contains(part)), "{line}: {error}");
    }
}

/// Source: command lines in public repositories (CubeFS, DAOS, IO500, NERSC, Weka, C3SE), with other directories and sizes.
#[test]
fn public_command_lines_are_accepted() {
    for line in [
        "-n 1000 -w 1024 -e 1024 -y -u -i 3 -N 1 -F -R -d D",
        "-F -C -T -r -i 3 -n 10 -d D -N 1",
        "-F -C -T -r -n 16384 -d D -N 16",
        "-i 1 -I=500 -z 2 -b 2 -d D -C",
        "-a POSIX -z 0 -F -C -i 1 -n 3334 -e 4096 -d D -w 4096",
        "-Y -C -F -P -d D -n 1000000 -u -L -a POSIX -x D-stonewall -N 1 -W 300",
        "-C -F -d D -n 250 -u -L -x D-stonewall -W 10",
        "-v -N 136 -i 3 -n 18382 -F -u -d D",
        "-C -T -r -F -d D -i 3 -I 4096 -z 3 -b 7 -L -u",
        "-Y -i 3 -n 20000 -d D -u -z 3 -b 3 -a POSIX -N 0",
        "-Y -i 3 -n 20000 -d D -u -w 100 -e 100 -W 300 -a POSIX -N 0",
        "-F -T -P -d D -n 1000000 -u -L -a POSIX -x D-stonewall -N 1",
        "-X -E -P -d D -n 1000000 -t -w 3901 -e 3901 -F -N 1 -x D-stonewall -G 27",
        "-F -P -d D -n 1000000 -t -w 3901 -e 3901 -r -N 1 -x D-stonewall",
        "-n 1000 -i 3 -u -L -F -d D",
        "-n 10 -u -d D -Y -T",
    ] {
        Mdtest::read(&words(line), &mut Vec::new()).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn a_deadline_ends_the_creation_and_all_tasks_reach_the_work_of_the_one_with_the_most() {
    let jobs = lowered("-n 10 -F -C -T -r -W 5 -Y -y").jobs;
    let of = |name: &str| jobs.iter().find(|job| job.name == name).unwrap_or_else(|| panic!("no job {name}"));
    let text = |name: &str, option: &str| of(name).options.get(option).map(|value| value.text.clone());
    assert_eq!(text("file-create", "runtime").as_deref(), Some("5s"));
    assert_eq!(text("file-create-rest", "complete_ios_of").as_deref(), Some("file-create"));
    assert_eq!(text("file-create-rest", "runtime"), None);
    for name in ["file-stat", "file-remove"] {
        assert_eq!(text(name, "repeat_ios_of").as_deref(), Some("file-create-rest"), "{name}");
    }
    assert_eq!(text("file-create", "name_fsync").as_deref(), Some("true"));
    assert_eq!((text("file-create", "end_fsync").as_deref(), text("file-stat", "end_fsync")), (Some("true"), None));
    let mut later = Mdtest::read(&words("-n 10 -F -r -x s"), &mut Vec::new()).expect("it is read");
    later.reached_items = Some(7);
    let jobs = later.jobs();
    assert_eq!(jobs[0].options["number_ios"].text, "7");
    assert_eq!(jobs[0].options["overwrite_existing"].text, "./out/trueio-mdtest");
}

#[test]
fn every_option_of_mdtest_is_known() {
    // `mdtest --help` of 4.0.
    for letter in "abdBCTErUDefFGiIklLnNpPRsSctuvVwWxXyYzZ".chars() {
        assert!(KNOWN.iter().any(|known| known.letter == letter), "-{letter}");
    }
}

#[test]
fn a_refusal_names_options_and_values_as_they_were_typed() {
    let refused = |line: &str| Mdtest::read(&words(line), &mut Vec::new()).expect_err(line);
    for (line, tree) in [
        ("-z 200 -b 10 -I 10", "`-I 10` items in each of the directories of the tree (`-z 200 -b 10`)"),
        ("-L -z 40 -b 2 -I 3", "`-I 3` items in each of the leaves of the tree (`-z 40 -b 2`)"),
    ] {
        let error = refused(line);
        assert!(error.starts_with(&format!("{tree} are more than 4294967296, the most of a task")), "{error}");
    }
    assert!(refused("-n 5000000000").starts_with("`-n 5000000000` is more than 4294967296"));
    assert!(refused("-z 200 -b 10 -n 5").contains("`-n 5` are fewer items"));
    for line in ["-B -d /mnt", "-B -n 10", "-d /mnt -B -n 10"] {
        assert!(refused(line).starts_with("`-B` of mdtest is not done here\n"), "{}", refused(line));
    }
    assert!(refused("-B 1 -n 10").starts_with("`-B 1` of mdtest"));
}
