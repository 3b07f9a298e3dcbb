//! Files that a job writes its results to.

use super::*;

/// Goal: no output replaces a measured or read file, or another output, in whatever phase
/// and under whatever name.
#[test]
fn outputs_replace_no_measured_or_read_file_and_no_other_output() {
    let with = |jobs: &[&[(&str, &str)]], command_files: &[FileUse]| {
        let specs: Vec<_> = ["a", "b"].iter().zip(jobs).map(|(name, options)| spec(name, options)).collect();
        let files = command_files.to_vec();
        let machine =
            Machine { command_files: CommandFiles { files, sends_logs: false, may_replace: false }, ..machine() };
        plan(&specs, &WithLinks, &machine).map(drop).map_err(|refusal| (refusal.rule.name(), refusal.rule.to_string()))
    };
    let rule = |jobs: &[&[(&str, &str)]], command_files: &[FileUse]| {
        with(jobs, command_files).err().map_or("", |(rule, _)| rule)
    };
    let new = |more: &[(&'static str, &'static str)]| [&[("size", "1m")], more].concat();
    let reads: &[(&str, &str)] = &[("rw", "read"), ("filename", "/mnt/old")];
    for job in [
        // A target, under its name and another, of the same phase and a later one.
        &[reads, &new(&[("write_iolog", "/mnt/old")])][..],
        &[reads, &new(&[("write_iolog", "/mnt/link"), ("stonewall", "1")])],
        &[&new(&[("filename", "x"), ("write_iolog", "./x")])],
        &[&new(&[("filename", "x_bw.1.log"), ("write_bw_log", "./x")])],
        &[&new(&[("write_hist_log", "x"), ("log_hist_msec", "9")]), &new(&[("filename", "x_clat_hist.1.log")])],
        // A log that is replayed.
        &[&[("read_iolog", "read.log"), ("write_iolog", "./read.log")]],
        &[&[("read_iolog", "read.log")], &new(&[("write_iolog", "read.log"), ("stonewall", "1")])],
        // Each other.
        &[&new(&[("write_iolog", "l")]), &new(&[("write_iolog", "./l")])],
        &[&new(&[("write_iolog", "x_bw.2.log")]), &new(&[("write_bw_log", "x")])],
        &[
            &new(&[("rw", "write"), ("verify", "md5"), ("verify_state_save", "1")]),
            &new(&[("write_iolog", "local-a-0-verify.state")]),
        ],
    ] {
        assert_eq!(rule(job, &[]), "output_replaces", "{job:?}");
    }
    let (_, sentence) = with(&[reads, &new(&[("write_iolog", "/mnt/link")])], &[]).unwrap_err();
    assert_eq!(
        sentence,
        "`write_iolog` of job `b` would replace `/mnt/old`, which job `a` uses: `/mnt/link` is the same file"
    );
    // Logs of one name are one log if the jobs share it (`per_job_logs = false`).
    let shared = new(&[("write_bw_log", "x"), ("per_job_logs", "0")]);
    assert_eq!(with(&[&shared, &shared], &[]), Ok(()));
    assert_eq!(rule(&[&shared, &new(&[("write_iolog", "x_bw.log")])], &[]), "output_replaces");
    // With what the command reads and writes.
    let output = |path: &str| FileUse::new(path, "--json", Role::Document);
    let input = |path: &str| FileUse::new(path, "this command", Role::Input);
    let logs = new(&[("write_bw_log", "x"), ("write_iolog", "l")]);
    for path in ["l", "./l", "x_bw.1.log"] {
        assert_eq!(rule(&[&logs], &[output(path)]), "output_replaces", "{path}");
        assert_eq!(rule(&[&logs], &[input(path)]), "output_replaces", "{path}");
    }
    assert_eq!(rule(&[reads], &[output("/mnt/link")]), "output_replaces");
    assert_eq!(rule(&[&[("read_iolog", "read.log")]], &[output("read.log")]), "output_replaces");
    assert_eq!(rule(&[&new(&[])], &[output("a.fio"), input("a.fio")]), "output_replaces");
    assert_eq!(with(&[&logs, reads], &[output("out"), input("a.fio"), input("a.fio")]), Ok(()));
    // A server sends its logs: no file of these names is made there.
    let command_files = CommandFiles { files: vec![input("x_bw.1.log")], sends_logs: true, may_replace: false };
    let machine = Machine { command_files, ..machine() };
    assert!(plan(&[spec("a", &new(&[("write_bw_log", "x")]))], &WithLinks, &machine).is_ok());
}

#[test]
fn outputs_are_regular_files_without_another_use() {
    let rule = |path: &str| {
        let options = [("size", "1m"), ("write_iolog", path)];
        plan(&[spec("a", &options)], &WithLinks, &machine()).err().map_or("", |refusal| refusal.rule.name())
    };
    assert_eq!(rule("/dev/vdb"), "output_impossible");
    assert_eq!(rule("pipe"), "output_impossible");
    assert_eq!(rule("/mnt/loop"), "output_impossible");
    assert_eq!(rule("log"), "");
}

/// Goal: an output that a job names replaces an existing file only if the command line permits it; the plan keeps which file it
/// has seen. What the command line itself names needs no permission.
#[test]
fn an_existing_output_of_a_job_needs_the_permission_of_the_command_line() {
    let planned = |name: &str, value: &str, may_replace: bool| {
        let command_files = CommandFiles { files: Vec::new(), sends_logs: false, may_replace };
        let machine = Machine { command_files, ..machine() };
        plan(&[spec("a", &[("size", "1m"), (name, value)])], &WithLinks, &machine)
    };
    for (name, file) in [("write_iolog", "earlier"), ("write_bw_log", "earlier_bw.1.log")] {
        let refusal = planned(name, "earlier", false).unwrap_err();
        assert_eq!(refusal.rule.name(), "output_exists");
        assert_eq!(refusal.rule.to_string(), format!("`{name}` of job `a` would replace `{file}`, which exists"));
        assert!(refusal.rule.hint().contains("`--replace`"), "{}", refusal.rule.hint());
        let plan = planned(name, "earlier", true).unwrap();
        let replaced: Vec<_> = plan.jobs[0].output.replaced.iter().collect();
        assert_eq!(replaced, [(&file.to_owned(), &FileId { device: 1, inode: 4 })]);
        for may_replace in [false, true] {
            let plan = planned(name, "new", may_replace).unwrap();
            assert!(plan.jobs[0].output.replaced.is_empty());
        }
    }
    let files = vec![FileUse::new("earlier", "--json", Role::Document)];
    let command_files = CommandFiles { files, sends_logs: false, may_replace: false };
    assert!(plan(&[spec("a", &[("size", "1m")])], &WithLinks, &Machine { command_files, ..machine() }).is_ok());
}

/// Goal: an option that names a file cannot be added without the filters of untrusted jobs.
/// Method: every option whose value is free text names a file, or is listed here as one that does not.
#[test]
fn every_option_that_names_a_file_is_marked_as_a_path() {
    let others = [
        // Names of marks on disks, of operations, of jobs.
        "overwrite_signature",
        "replay_skip",
        "wait_for",
        "repeat_ios_of",
        "complete_ios_of",
        // A program, and its arguments: permitted by name alone.
        "command",
        "program",
        // An address.
        "source",
    ];
    let is_text = |kind| {
        matches!(kind, ValueKind::Path | ValueKind::Paths | ValueKind::Names | ValueKind::Words | ValueKind::Address)
    };
    let named: Vec<&str> = TABLE.iter().filter(|row| row.names_path()).map(|row| row.name).collect();
    for row in TABLE.iter().filter(|row| is_text(row.kind)) {
        assert!(row.names_path() != others.contains(&row.name), "`{}`: does it name a file?", row.name);
    }
    for name in ["filename", "read_iolog", "write_iolog", "replay_redirect", "write_bw_log", "overwrite_existing"] {
        assert!(named.contains(&name), "{name}");
    }
}
