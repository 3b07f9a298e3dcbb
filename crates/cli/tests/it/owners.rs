//! Files, links and variables of another user decide nothing for the user who runs the program.
//!
//! Goal: each case was a way from an unprivileged user to root, or to a lost file.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use trueio_testkit::{NOBODY, Ran, Running, Sandbox, Sysctl, copy_program, lacks, roots_folder};

/// A run that takes no time.
const RUN: [&str; 6] = ["run", "--ioengine", "null", "--size", "64k", "--no-evidence"];
/// A run that ends only by a signal.
const LONG_RUN: [&str; 9] =
    ["run", "--ioengine", "null", "--size", "1m", "--runtime", "10m", "--time_based", "--no-evidence"];

/// A directory of another user in the sandbox.
fn foreign(sandbox: &Sandbox, name: &str) -> PathBuf {
    let path = sandbox.path(name);
    fs::create_dir(&path).expect("a directory");
    chown(&path, Some(NOBODY), Some(NOBODY)).expect("root may");
    path
}

fn planted(path: &Path, mode: u32) {
    fs::write(path, "planted").expect("a file");
    chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

fn run(sandbox: &Sandbox, arguments: &[&[&str]]) -> Ran {
    sandbox.run(&arguments.concat())
}

/// Method: `touch out; chmod 4777 out` as another user, then root writes each kind of output to that name.
#[test]
fn no_output_replaces_a_file_of_another_user() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let record = sandbox.path("record.json");
    run(&sandbox, &[&RUN, &["--json", "record.json"]]).assert_code(0);
    foreign(&sandbox, "shared");
    for protection in ["0", "2"] {
        let _setting = Sysctl::set("fs/protected_regular", protection);
        for mode in [0o4777, 0o2777, 0o666] {
            let out = sandbox.path("shared/out");
            planted(&out, mode);
            let record = record.to_str().expect("a path");
            let outputs = ["--json", "--html", "--markdown", "--csv", "--prom", "--junit", "--hdr"];
            let of_report = outputs.iter().map(|option| vec!["report", record, option, "shared/out"]);
            let of_run = outputs.iter().map(|option| [&RUN[..], &[*option, "shared/out"]].concat());
            let others = [
                vec!["compare", record, record, "--json", "shared/out"],
                vec!["history", "export", "--format", "csv", "shared/out"],
                [&RUN[..], &["--trace", "shared/out"]].concat(),
            ];
            for arguments in of_report.chain(of_run).chain(others) {
                let ran = sandbox.run(&arguments);
                assert_ne!(ran.code, Some(0), "{arguments:?}: {ran:?}");
                assert!(ran.err.contains("belongs to another user (UID 65534)"), "{arguments:?}: {ran:?}");
            }
            let ran = sandbox.run(&["fio", "--name=a", "--ioengine=null", "--size=64k", "--output=shared/out"]);
            assert!(ran.code != Some(0) && ran.err.contains("belongs to another user"), "{ran:?}");
            let found = fs::metadata(&out).expect("it stays");
            assert_eq!((found.uid(), found.mode() & 0o7777), (NOBODY, mode));
            assert_eq!(fs::read(&out).expect("it stays"), b"planted");
        }
    }
}

#[test]
fn a_log_of_another_user_or_one_with_another_name_is_not_written() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    foreign(&sandbox, "shared");
    let log = sandbox.path("shared/t_bw.1.log");
    fs::write(&log, "1, 2, 0, 4096, 0\n").expect("a file");
    chown(&log, Some(NOBODY), None).expect("root may");
    let arguments = ["fio", "--name=a", "--ioengine=null", "--size=64k", "--write_bw_log=shared/t"];
    let ran = sandbox.run(&arguments);
    assert!(ran.code != Some(0) && ran.err.contains("belongs to another user (UID 65534)"), "{ran:?}");
    chown(&log, Some(0), None).expect("root may");
    fs::hard_link(&log, sandbox.path("kept")).expect("another name");
    let ran = sandbox.run(&arguments);
    assert!(ran.code != Some(0) && ran.err.contains("it has 2 names (hard links)"), "{ran:?}");
    assert_eq!(fs::read_to_string(&log).expect("it stays"), "1, 2, 0, 4096, 0\n");
}

/// Goal: a job writes to a file of another user only if it names it: its generated names may have been taken by anybody.
#[test]
fn a_job_of_fio_writes_no_file_of_another_user_under_a_generated_name() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    foreign(&sandbox, "shared");
    let planted = sandbox.path("shared/a.0.0");
    let job = |more: &[&str]| {
        fs::write(&planted, "planted").expect("a file");
        chown(&planted, Some(NOBODY), Some(NOBODY)).expect("root may");
        let ran = sandbox.run(&[&["fio", "--name=a", "--size=64k"], more].concat());
        (ran, fs::read(&planted).expect("it stays").len())
    };
    for rw in ["write", "randrw", "randtrim"] {
        let (ran, length) = job(&["--directory=shared", &format!("--rw={rw}")]);
        assert!(ran.code == Some(1) && ran.err.contains("belongs to another user (UID 65534)"), "{ran:?}");
        assert!(ran.err.contains("hint: name it (`filename=FILE`), or remove it"), "{ran:?}");
        assert_eq!(length, "planted".len());
    }
    // By name, and as that user.
    job(&["--filename=shared/a.0.0", "--rw=write"]).0.assert_code(0);
    job(&["--directory=shared", "--rw=write", "--uid=65534", "--gid=65534"]).0.assert_code(0);
    chown(&planted, Some(0), Some(0)).expect("root may");
    sandbox.run(&["fio", "--name=a", "--size=64k", "--directory=shared", "--rw=write"]).assert_code(0);
}

/// Method: `PMIX_PREFIX` names a directory of another user; the library there is no library, so that loading it fails in
/// other words.
#[test]
fn root_loads_no_launchers_library_of_another_user() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let evil = roots_folder();
    fs::create_dir(evil.path().join("lib")).expect("a directory");
    fs::write(evil.path().join("lib/libpmix.so.2"), "no library").expect("a file");
    chown(evil.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
    for name in
        ["PMIX_PREFIX", "PMIX_INSTALL_PREFIX", "PMIX_ROOT", "OPAL_PREFIX", "PMIX_MCA_mca_base_component_path", "HOME"]
    {
        let mut command = sandbox.command(&RUN);
        command.env("PMIX_NAMESPACE", "1").env("PMIX_RANK", "0").env(name, evil.path());
        let ran = Ran::of(command.output().expect("the program runs"));
        assert_ne!(ran.code, Some(0), "{name}: {ran:?}");
        assert!(ran.err.contains(&format!("and `{name}` is `")), "{name}: {ran:?}");
        assert!(ran.err.contains("belongs to another user (UID 65534)"), "{name}: {ran:?}");
    }
}

/// Method: a copy of the program with the set-user-ID bit, run by another user with the variables of a launcher.
#[test]
fn a_program_with_more_rights_than_its_caller_ignores_the_launchers_variables() {
    if lacks("root") {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let program = folder.path().join("trueio");
    copy_program(env!("CARGO_BIN_EXE_trueio"), &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("a mode");
    let mut command = std::process::Command::new(&program);
    command.args(RUN).arg("--no-history").current_dir(folder.path()).uid(NOBODY).gid(NOBODY);
    command.env("PMIX_NAMESPACE", "1").env("PMIX_RANK", "0").env("PMIX_PREFIX", "/nonexistent");
    command.env("TRUEIO_ACCEPT", "processor_wait");
    let ran = Ran::of(command.output().expect("the program runs"));
    assert!(ran.err.contains("note: the launcher's variables are ignored"), "{ran:?}");
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn root_creates_nothing_in_the_home_of_another_user() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let home = foreign(&sandbox, "bob");
    for (name, words) in [("HOME", "the history in `"), ("XDG_DATA_HOME", "the history in `")] {
        let mut command = sandbox.command(&RUN);
        command.env_remove("XDG_DATA_HOME").env(name, &home);
        let ran = Ran::of(command.output().expect("the program runs"));
        ran.assert_code(0);
        assert!(ran.err.contains(words) && ran.err.contains("belongs to another user (UID 65534)"), "{name}: {ran:?}");
        assert_eq!(fs::read_dir(&home).expect("a directory").count(), 0, "{name}");
    }
    let mut command = sandbox.command(&["fio", "--server=127.0.0.1,0", "--allow-read=."]);
    command.env("XDG_RUNTIME_DIR", &home);
    let ran = Ran::of(command.output().expect("the program runs"));
    assert!(ran.code != Some(0) && ran.err.contains("belongs to another user (UID 65534)"), "{ran:?}");
    assert_eq!(fs::read_dir(&home).expect("a directory").count(), 0);
}

#[test]
fn the_history_is_created_through_no_link() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data/trueio");
    fs::create_dir_all(&data).expect("a directory");
    symlink(sandbox.path("elsewhere"), data.join("history.sqlite3")).expect("a link");
    let mut command = sandbox.command(&RUN);
    command.env("XDG_DATA_HOME", sandbox.path("data"));
    let ran = Ran::of(command.output().expect("the program runs"));
    ran.assert_code(0);
    assert!(ran.err.contains("history.sqlite3` is a symbolic link"), "{ran:?}");
    assert!(!sandbox.path("elsewhere").exists());
}

/// Method: `echo notes > out.json` while the run measures, which a signal then ends.
#[test]
fn an_output_that_is_filled_during_the_run_is_kept_and_so_is_the_record() {
    let sandbox = Sandbox::new();
    for is_new in [true, false] {
        if !is_new {
            sandbox.write("out.json", "an earlier record");
        }
        let running = Running::start(&mut sandbox.command(&[&LONG_RUN[..], &["--json", "out.json"]].concat()));
        running.wait_for_workers("job", 1);
        sandbox.write("out.json", "notes\n");
        running.signal(libc::SIGINT);
        let (ran, _) = running.wait();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("so `out.json` is left as it is; the output is kept in `.out.json."), "{ran:?}");
        assert_eq!(fs::read_to_string(sandbox.path("out.json")).expect("the notes"), "notes\n");
        let kept = ran.err.split('`').find(|word| word.ends_with(".tmp")).expect("its name");
        let record = fs::read_to_string(sandbox.path(kept)).expect("the record");
        assert!(record.starts_with("{\"format\":\"trueio-record\"") || record.contains("trueio-record"), "{record}");
        fs::remove_file(sandbox.path("out.json")).expect("removed");
    }
}

/// Method: the name of a trace, a log and fio's output is removed or taken while the run measures.
#[test]
fn a_trace_log_or_output_whose_name_was_taken_is_reported() {
    let trace = [&LONG_RUN[..], &["--trace", "out"]].concat();
    let fio = ["fio", "--name=job", "--ioengine=null", "--size=1m", "--time_based", "--runtime=600"];
    let output = [&fio[..], &["--output=out", "--status-interval=1"]].concat();
    let log = [&fio[..], &["--write_bw_log=t", "--log_avg_msec=100"]].concat();
    for (arguments, name) in [(trace, "out"), (output, "out"), (log, "t_bw.1.log")] {
        // A trace gets its name at the end: one that was removed is there again.
        for is_replaced in [false, true].into_iter().skip(usize::from(arguments[0] == "run")) {
            let sandbox = Sandbox::new();
            let running = Running::start(&mut sandbox.command(&arguments));
            running.wait_for_workers("job", 1);
            let path = sandbox.path(name);
            // Interim results begin fio's output.
            let is_begun = || name != "out" || arguments[0] == "run" || fs::metadata(&path).is_ok_and(|f| f.len() > 0);
            running.wait_until("the output", || path.exists() && is_begun());
            fs::remove_file(&path).expect("removed");
            if is_replaced {
                fs::write(&path, "notes").expect("a file");
            }
            running.signal(libc::SIGINT);
            let (ran, _) = running.wait();
            assert_ne!(ran.code, Some(0), "{arguments:?}: {ran:?}");
            assert!(
                ran.err.contains("another program removed or replaced it")
                    || ran.err.contains("another program replaced it"),
                "{arguments:?}: {ran:?}"
            );
            assert!(ran.err.contains(".tmp`"), "{arguments:?}: {ran:?}");
            assert!(!is_replaced || fs::read(&path).expect("the notes") == b"notes");
        }
    }
}

/// Returns what a run kept next to an output, whose name its last message has.
fn kept(sandbox: &Sandbox, ran: &Ran) -> Vec<u8> {
    let name = ran.err.split('`').find(|word| word.ends_with(".tmp")).unwrap_or_else(|| panic!("{ran:?}"));
    fs::read(sandbox.path(name)).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Goal: notes that another program writes to an output during the run stay as they are, the output is next to them, and the run says so.
/// Method: `echo notes > OUTPUT` and `echo notes >> OUTPUT`, when the run has begun and when the output has.
#[test]
fn an_output_that_another_program_writes_to_meanwhile_is_reported_and_both_are_kept() {
    let trace = [&LONG_RUN[..], &["--trace", "out"]].concat();
    let fio =
        ["fio", "--name=job", "--ioengine=null", "--size=1m", "--time_based", "--runtime=600", "--rate_iops=1000"];
    let with = |options: &[&'static str]| [&fio[..], options].concat();
    let packed = ["--write_bw_log=t", "--log_compression=64k", "--log_store_compressed=1"];
    for (arguments, name, begins) in [
        (trace, "out", &b"PAR1"[..]),
        (with(&["--write_bw_log=t", "--log_avg_msec=100"]), "t_bw.1.log", b"1"),
        (with(&["--write_hist_log=t", "--log_hist_msec=100"]), "t_clat_hist.1.log", b""),
        (with(&packed), "t_bw.1.log.fz", b"\x78"),
        (with(&["--write_iolog=t"]), "t", b"fio version 3 iolog\n"),
        (with(&["--bandwidth-log"]), "agg-read_bw.log", b""),
        (with(&["--output=out"]), "out", b"job: (g=0)"),
    ] {
        for is_appended in [false, true] {
            let sandbox = Sandbox::new();
            let running = Running::start(&mut sandbox.command(&arguments));
            running.wait_for_workers("job", 1);
            let path = sandbox.path(name);
            running.wait_until("the output", || path.exists());
            if is_appended && name.ends_with(".log") {
                running.wait_until("the output", || fs::metadata(&path).is_ok_and(|found| found.len() > 0));
            }
            let before = fs::read(&path).expect("the output");
            let mut notes = fs::File::options().append(true).open(&path).expect("the output");
            if !is_appended {
                notes.set_len(0).expect("truncated");
            }
            std::io::Write::write_all(&mut notes, b"notes").expect("written");
            drop(notes);
            // Something is logged after the notes.
            std::thread::sleep(std::time::Duration::from_millis(300));
            running.signal(libc::SIGINT);
            let (ran, _) = running.wait();
            assert!(ran.code.is_some_and(|code| code != 0), "{arguments:?}: {ran:?}");
            let now = fs::read(&path).expect("the notes");
            assert!(now.ends_with(b"notes"), "{arguments:?}: {}", String::from_utf8_lossy(&now));
            assert!(is_appended || now == b"notes", "{arguments:?}: {}", String::from_utf8_lossy(&now));
            assert!(ran.err.contains("another program wrote to it"), "{arguments:?}: {ran:?}");
            let kept = kept(&sandbox, &ran);
            assert!(
                kept.starts_with(begins) && kept.starts_with(&before),
                "{arguments:?}: {}",
                String::from_utf8_lossy(&kept)
            );
            assert!(!kept.windows(5).any(|part| part == b"notes"), "{arguments:?}");
        }
    }
}

/// Method: the file for what a command or a program prints is replaced, or filled, while it runs.
#[test]
fn the_output_of_a_command_whose_file_was_taken_is_reported_and_kept() {
    const WAITS: &str = "echo before; touch begun; while [ ! -e go ]; do sleep 0.05; done; echo after";
    let before = ["--name=j", "--ioengine=null", "--size=1m", "--allow-exec", "--exec_prerun=sh wait.sh"];
    let engine = ["--name=j", "--ioengine=exec", "--allow-exec", "--program=/bin/sh", "--arguments=wait.sh"];
    for (arguments, name) in [(before, "j.prerun.txt"), (engine, "j.stdout")] {
        for is_replaced in [true, false] {
            let sandbox = Sandbox::new();
            sandbox.write("wait.sh", WAITS);
            let running = Running::start(&mut sandbox.command(&[&["fio"], &arguments[..]].concat()));
            let path = sandbox.path(name);
            running.wait_until("the command", || fs::metadata(&path).is_ok_and(|found| found.len() > 0));
            if is_replaced {
                sandbox.write("notes", "notes");
                fs::rename(sandbox.path("notes"), &path).expect("renamed");
            } else {
                fs::write(&path, "notes").expect("a file");
            }
            sandbox.write("go", "");
            let (ran, _) = running.wait();
            assert_eq!(ran.code, Some(1), "{arguments:?}: {ran:?}");
            assert!(ran.err.contains(name), "{arguments:?}: {ran:?}");
            assert_eq!(fs::read(&path).expect("the notes"), b"notes");
            assert_eq!(String::from_utf8_lossy(&kept(&sandbox, &ran)), "before\nafter\n", "{arguments:?}: {ran:?}");
        }
    }
}

/// Method: the file of a command that runs at the end is created, or changed, during the run; the command runs nevertheless.
#[test]
fn the_file_of_a_later_command_that_was_filled_during_the_run_is_kept() {
    let fio = ["fio", "--name=j", "--ioengine=null", "--size=1m", "--time_based", "--runtime=600", "--allow-exec"];
    for existed in [false, true] {
        let sandbox = Sandbox::new();
        if existed {
            sandbox.write("j.postrun.txt", "of an earlier run");
        }
        let mut command = sandbox.command(&[&fio[..], &["--exec_postrun=echo after"]].concat());
        let running = Running::start(&mut command);
        running.wait_for_workers("j", 1);
        sandbox.write("j.postrun.txt", "notes");
        running.signal(libc::SIGINT);
        let (ran, _) = running.wait();
        assert!(ran.code.is_some_and(|code| code != 0), "{ran:?}");
        assert!(ran.err.contains("another program created or replaced this file"), "{ran:?}");
        assert_eq!(fs::read(sandbox.path("j.postrun.txt")).expect("the notes"), b"notes");
        assert_eq!(kept(&sandbox, &ran), b"after\n");
    }
}

/// Method: the name of a verify state is taken during the run.
#[test]
fn a_verify_state_whose_name_was_taken_is_kept_next_to_it() {
    let sandbox = Sandbox::new();
    let job = ["--name=j", "--rw=randwrite", "--size=1m", "--verify=crc32c", "--verify_state_save=1", "--time_based"];
    let command = [&["fio"], &job[..], &["--runtime=600", "--rate_iops=1000", "--do_verify=0"]].concat();
    let running = Running::start(&mut sandbox.command(&command));
    running.wait_for_workers("j", 1);
    sandbox.write("local-j-0-verify.state", "notes");
    running.signal(libc::SIGINT);
    let (ran, _) = running.wait();
    assert!(ran.code.is_some_and(|code| code != 0), "{ran:?}");
    assert!(ran.err.contains("the verify state could not be written to `local-j-0-verify.state`"), "{ran:?}");
    assert_eq!(fs::read(sandbox.path("local-j-0-verify.state")).expect("the notes"), b"notes");
    assert!(kept(&sandbox, &ran).len() > 24);
}

#[test]
fn a_trigger_file_that_exists_at_the_start_ends_the_run_and_is_not_removed() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("thesis", "precious");
    let ran = sandbox.run(&[
        "fio",
        "--name=a",
        "--ioengine=null",
        "--size=1m",
        "--time_based",
        "--runtime=600",
        "--trigger-file=thesis",
    ]);
    ran.assert_code(0);
    assert!(ran.err.contains("the trigger file `thesis` existed before the run"), "{ran:?}");
    assert_eq!(fs::read_to_string(&path).expect("it stays"), "precious");
}

/// Goal: no other user decides when a command of this user runs, or asks for its results.
/// Method: a trigger file and `fio-dump-status` of another user, which appear once the run has begun.
#[test]
fn a_trigger_and_a_request_for_results_of_another_user_are_ignored() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let names = ["go", "fio-dump-status"].map(|name| (sandbox.write(&format!("{name}-later"), ""), sandbox.path(name)));
    for (path, _) in &names {
        chown(path, Some(NOBODY), None).expect("root may");
    }
    let words = "--name=a --ioengine=null --size=1m --time_based --runtime=2 --trigger-file=go --write_iolog=begun";
    let words: Vec<&str> = ["fio"].into_iter().chain(words.split(' ')).chain(["--trigger=touch ran"]).collect();
    let mut command = sandbox.command(&words);
    command.env("TMPDIR", sandbox.root()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let running = command.spawn().expect("it starts");
    // The log is reserved after the trigger file's name was checked.
    let begin = std::time::Instant::now();
    while !sandbox.path("begun").exists() && begin.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    for (path, name) in &names {
        fs::rename(path, name).expect("renamed");
    }
    let ran = Ran::of(running.wait_with_output().expect("it ends"));
    ran.assert_code(0);
    for name in ["the trigger file `go`", "fio-dump-status`"] {
        let note = format!("{name} is ignored: it belongs to another user (UID 65534)");
        assert_eq!(ran.err.matches(&note).count(), 1, "{ran:?}");
    }
    assert_eq!(ran.out.matches("groupid=").count(), 1, "{ran:?}");
    assert!(names.iter().all(|(_, name)| name.exists()) && !sandbox.path("ran").exists());
}

/// Goal: the state of another user decides nothing of a verification, nor does one behind a link.
#[test]
fn a_verify_state_of_another_user_or_behind_a_link_is_not_read() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let job = ["fio", "--name=j", "--filename=f", "--rw=write", "--size=64k", "--verify=crc32c"];
    run(&sandbox, &[&job, &["--verify_state_save=1"]]).assert_code(0);
    let state = sandbox.path("local-j-0-verify.state");
    let load = || run(&sandbox, &[&job, &["--verify_state_load=1", "--verify_only=1"]]);
    load().assert_code(0);
    chown(&state, Some(NOBODY), None).expect("root may");
    let ran = load();
    assert!(ran.code != Some(0) && ran.err.contains("it belongs to another user (UID 65534)"), "{ran:?}");
    chown(&state, Some(0), None).expect("root may");
    fs::rename(&state, sandbox.path("own")).expect("renamed");
    symlink("own", &state).expect("a link");
    let ran = load();
    assert!(ran.code != Some(0) && ran.err.contains("it is a link or a pipe"), "{ran:?}");
}

#[test]
fn a_server_starts_no_session_in_a_temporary_directory_of_another_user() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let temporary = foreign(&sandbox, "temporary");
    sandbox.write("j.fio", "[j]\nioengine=null\nsize=4k\n");
    let mut command = sandbox.command(&["fio", "--server=sock:s", "--allow-read=."]);
    let mut server = command.env("TMPDIR", &temporary).stderr(std::process::Stdio::piped()).spawn().expect("it starts");
    let begin = std::time::Instant::now();
    while !sandbox.path("s").exists() && begin.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let ran = run(&sandbox, &[&["fio", "--client=sock:s", "j.fio"]]);
    let _ = server.kill();
    let mut text = String::new();
    let _ = std::io::Read::read_to_string(&mut server.stderr.take().expect("a pipe"), &mut text);
    let _ = server.wait();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(text.contains("belongs to another user (UID 65534)"), "{text}");
    assert_eq!(fs::read_dir(&temporary).expect("a directory").count(), 0);
}

/// Goal: who chooses a name writes no line of a refusal.
#[test]
fn a_line_feed_in_a_name_begins_no_line_of_a_refusal() {
    let sandbox = Sandbox::new();
    sandbox.write("x\nhint y", "text");
    let ran = sandbox.run(&["run", "--rw", "write", "--size", "64k", "--filename", "x\nhint y"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ran.err.lines().filter(|line| line.starts_with("hint")).count(), 1, "{ran:?}");
}
