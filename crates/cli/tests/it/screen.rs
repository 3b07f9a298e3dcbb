//! The first screen: what `run` and `baseline` print at their end, and what the command line accepts around it.

use crate::common::*;

const NULL: &[&str] = &["run", "--ioengine", "null", "--number_ios", "2000", "--no-history"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    NULL.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn a_run_ends_with_one_screen_and_v_q_and_report_choose_more_or_less() {
    let sandbox = Sandbox::new();
    let job = ["run", "--ioengine", "null", "--number_ios", "2000"];
    let ran = sandbox.run(&job);
    ran.assert_code(0);
    assert!(ran.out.contains("? unverified"), "no device is involved: {}", ran.out);
    let last = ran.out.lines().last().expect("lines");
    let id = last.strip_prefix("Details: trueio report -v ").unwrap_or_else(|| panic!("{}", ran.out));
    let again = sandbox.run(&["report", id]);
    assert_eq!(again.out, ran.out, "a report prints the screen of the run");
    let details = sandbox.run(&["report", "-v", id]);
    details.assert_code(0);
    assert!(details.out.contains("Cost of the tool itself"), "{}", details.out);
    let verbose = sandbox.run(&with(&["-v"]));
    assert!(verbose.out.contains("Cost of the tool itself"), "{}", verbose.out);
    for quiet in [sandbox.run(&with(&["-q"])), sandbox.run(&["report", id, "-q"])] {
        quiet.assert_code(0);
        assert_eq!(quiet.out.lines().count(), 1, "{}", quiet.out);
        assert!(quiet.out.contains("  p99 "), "{}", quiet.out);
    }
    // In a pipe COLUMNS sets the width: the last sentence has one line, or two.
    let last_sentence = |columns: &str| {
        let ran = sandbox.command(NULL).env("COLUMNS", columns).output().expect("it runs");
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        let at = text.find("The load is not confirmed").unwrap_or_else(|| panic!("{text}"));
        let lines = text[at..].lines().take_while(|line| !line.starts_with("Details"));
        lines.map(|line| line.chars().count()).collect::<Vec<_>>()
    };
    let (narrow, wide) = (last_sentence("60"), last_sentence("200"));
    assert!(narrow.len() == 2 && narrow.iter().all(|count| *count <= 60), "{narrow:?}");
    assert!(wide.len() == 1 && wide[0] > 60, "{wide:?}");
    // An export prints one line, and the text only with -v or -q.
    let (csv, page) = (sandbox.aside("x.csv"), sandbox.aside("x.html"));
    let files = ["--csv", csv.to_str().expect("UTF-8"), "--html", page.to_str().expect("UTF-8")];
    let export = sandbox.run(&[&["report", id][..], &files].concat());
    export.assert_code(0);
    assert_eq!(export.out, format!("wrote {}, {}\n", page.display(), csv.display()));
    assert_eq!(export.err, "");
    let quiet = sandbox.run(&[&["report", id, "-q"][..], &files].concat());
    assert!(quiet.out.contains("  p99 "), "{}", quiet.out);
    let unsaved = sandbox.run(NULL);
    assert_eq!(unsaved.out.lines().last(), Some("Details: add -v"), "{}", unsaved.out);
}

#[test]
fn json_on_stdout_is_the_only_output_of_a_run_that_succeeds() {
    let sandbox = Sandbox::new();
    let page = sandbox.aside("page.html");
    let ran = sandbox.run(&with(&["--json", "-", "--html", page.to_str().expect("UTF-8")]));
    ran.assert_code(0);
    assert_eq!(ran.err, "");
    trueio_report::parse(&ran.out).expect("one document");
    // On a terminal, too: no progress and no text.
    let (text, code) = on_terminal(sandbox.command(&with(&["--json", "-"])), 100);
    assert_eq!(code, Some(0));
    trueio_report::parse(&text.replace('\r', "")).unwrap_or_else(|e| panic!("{e}: {text}"));
}

#[test]
fn color_is_set_by_flag_environment_and_terminal() {
    let sandbox = Sandbox::new();
    let has_colour = |text: &str| text.contains("\x1b[2m") || text.contains("\x1b[1m");
    assert!(!has_colour(&sandbox.run(NULL).out), "a pipe");
    assert!(has_colour(&sandbox.run(&with(&["--color", "always"])).out), "always");
    let (text, _) = on_terminal(sandbox.command(NULL), 100);
    assert!(has_colour(&text), "a terminal: {text:?}");
    let (text, _) = on_terminal(sandbox.command(&with(&["--color", "never"])), 100);
    assert!(!has_colour(&text), "never: {text:?}");
    let mut dumb = sandbox.command(NULL);
    dumb.env("TERM", "dumb");
    let (text, _) = on_terminal(dumb, 100);
    assert!(!text.contains('\x1b') && text.is_ascii(), "a dumb terminal: {text:?}");
    sandbox.run(&with(&["--color", "sometimes"])).assert_code(2);
}

#[test]
fn a_path_alone_is_measured_as_baseline_would() {
    let sandbox = Sandbox::new();
    sandbox.data_file("small", 4096);
    let short = sandbox.run(&["small"]);
    short.assert_refused(&["the size of `small` is 4 KiB"]);
    assert_eq!(short.err, sandbox.run(&["baseline", "small"]).err);
    assert_eq!(short.err, sandbox.run(&["--color", "never", "small"]).err);
    // A command is a command although a file has its name.
    sandbox.data_file("doctor", 4096);
    sandbox.run(&["doctor"]).assert_code(0);
}

#[test]
fn a_typing_error_gets_one_suggestion_the_nearest() {
    let sandbox = Sandbox::new();
    for (words, expected) in [
        (
            &["baselin"][..],
            "error: `baselin` is neither a command nor an existing path\n\nhint: did you mean `baseline`?\n",
        ),
        (&["histroy"], "error: `histroy` is neither a command nor an existing path\n\nhint: did you mean `history`?\n"),
        (
            &["history", "trnd"],
            "error: `trnd` is neither a command nor an existing path\n\nhint: did you mean `trend`?\n",
        ),
        (
            &["baseline", "--quik"],
            "error: `--quik` is not an option of `trueio baseline`\n\nhint: did you mean `--quick`?\n",
        ),
        (
            &["run", "--iodepht", "4"],
            "error: `--iodepht` is not an option of `trueio run`\n\nhint: did you mean `iodepth`?\n",
        ),
    ] {
        let ran = sandbox.run(words);
        ran.assert_code(2);
        assert_eq!(ran.err, expected, "{words:?}");
    }
}

#[test]
fn help_of_run_has_the_options_that_matter_and_examples_and_help_all_has_the_rest() {
    let sandbox = Sandbox::new();
    let help = sandbox.run(&["run", "--help"]);
    help.assert_code(0);
    let listed = |text: &str, name: &str| text.lines().any(|line| line.trim_start().starts_with(&format!("--{name} ")));
    for name in ["rw", "bs", "iodepth", "runtime", "filename", "fdatasync"] {
        assert!(listed(&help.out, name), "--{name} is missing\n{}", help.out);
    }
    for name in ["zonemode", "bssplit", "thinktime"] {
        assert!(!listed(&help.out, name), "--{name} is listed\n{}", help.out);
    }
    assert!(help.out.contains("EXAMPLES") && help.out.contains("--help-all"), "{}", help.out);
    let all = sandbox.run(&["run", "--help-all"]);
    all.assert_code(0);
    for name in ["rw", "zonemode", "bssplit", "thinktime"] {
        assert!(listed(&all.out, name), "--{name} is missing\n{}", all.out);
    }
}

/// Goal: each command that prints a document takes `--json`, with FILE and without.
#[test]
fn json_goes_to_standard_output_or_into_a_file() {
    let sandbox = Sandbox::new();
    let id = {
        let ran = sandbox.run(&["run", "--ioengine", "null", "--number-ios", "2000", "--json"]);
        ran.assert_code(0);
        trueio_report::parse(&ran.out).expect("a record").id
    };
    for line in [
        &["run", "--ioengine", "null", "--number-ios", "2000", "--no-history"][..],
        &["explain", "--ioengine", "null", "--number-ios", "2000"],
        &["device", "."],
        &["doctor"],
        &["usb", "list"],
        &["usb", "explain"],
        &["history"],
        &["history", "list"],
        &["history", "devices"],
        &["report", &id],
        &["study", "list"],
    ] {
        let ran = sandbox.run(&[line, &["--json"]].concat());
        ran.assert_code(0);
        serde_json::from_str::<serde_json::Value>(&ran.out).unwrap_or_else(|e| panic!("{line:?}: {e}\n{}", ran.out));
        if line[0] == "study" {
            continue;
        }
        let file = sandbox.aside("document.json");
        let written = sandbox.run(&[line, &["--json", file.to_str().expect("UTF-8")]].concat());
        written.assert_code(0);
        let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{line:?}: {e}"));
        serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|e| panic!("{line:?}: {e}"));
        std::fs::remove_file(file).expect("the file");
    }
    // The word after it is the argument that is missing.
    let ran = sandbox.run(&["report", "--json", &id]);
    assert_eq!(trueio_report::parse(&ran.out).expect("a record").id, id);
}

/// Goal: flags have hyphens, and the old spellings work, hidden.
#[test]
fn flags_have_hyphens_and_old_spellings_work() {
    let sandbox = Sandbox::new();
    let help = sandbox.run(&["run", "--help-all"]).out;
    let flags = help.lines().map(str::trim_start).filter(|line| line.starts_with("--"));
    let flags: Vec<&str> = flags.map(|line| line.split([' ', '[', '=']).next().expect("a flag")).collect();
    assert!(flags.len() > 150 && flags.contains(&"--time-based") && flags.contains(&"--overwrite"), "{flags:?}");
    assert!(!flags.iter().any(|flag| flag.contains('_')), "{flags:?}");
    let json = |words: &[&str]| {
        let ran = sandbox.run(&[&["explain", "--json", "-"], words].concat());
        ran.assert_code(0);
        ran.out
    };
    let new = json(&["--ioengine", "null", "--time-based", "--runtime", "1s", "--ramp-time", "1s", "--size", "1m"]);
    let old = json(&["--ioengine", "null", "--time_based", "--runtime", "1s", "--ramp_time", "1s", "--size", "1m"]);
    assert_eq!(new, old);
    std::fs::write(sandbox.path("file"), [0_u8; 65_536]).expect("a file");
    let write = ["run", "--rw", "write", "--bs", "4k", "--filename", "file", "--no-history", "--number-ios", "4"];
    sandbox.run(&write).assert_code(2);
    for name in ["--overwrite", "--overwrite_existing", "--overwrite-existing"] {
        let ran = sandbox.run(&[&write[..], &[name, "file", "--no-evidence"]].concat());
        ran.assert_code(0);
    }
}

#[test]
fn h_is_short_and_help_is_long() {
    let sandbox = Sandbox::new();
    for command in ["baseline", "run", "compare", "study", "history", "report", "capacity", "usb"] {
        let (short, long) = (sandbox.run(&[command, "-h"]), sandbox.run(&[command, "--help"]));
        short.assert_code(0);
        let (short, long) = (short.out.lines().count(), long.out.lines().count());
        assert!(short <= 60 && short + 3 < long, "{command}: {short} and {long} lines");
    }
}

#[test]
fn explain_prints_what_is_set_and_all_prints_the_rest() {
    let sandbox = Sandbox::new();
    let job = ["explain", "--ioengine", "null", "--size", "1m"];
    let short = sandbox.run(&job);
    short.assert_code(0);
    assert!(short.out.contains("ioengine") && short.out.contains("--all prints them"), "{}", short.out);
    assert!(!short.out.contains("rwmixread") && short.out.lines().count() < 24, "{}", short.out);
    let all = sandbox.run(&[&job[..], &["--all"]].concat());
    assert!(all.out.contains("rwmixread") && all.out.lines().count() > 100, "{}", all.out);
}

/// Goal: a run waits until another program no longer uses the disk, and fails with that program's name if that does not end.
/// Method: a loop device over memory, which has no disk below that other programs use; first it is idle, then `dd` reads it.
#[test]
fn a_run_waits_for_an_idle_disk_and_gives_up_after_the_limit() {
    if lacks("loop") {
        return;
    }
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return eprintln!("skipped: there is no /dev/shm") };
    let sandbox = Sandbox::new();
    let device = trueio_testkit::Loop::create_in(folder, 64 << 20, &[]).expect("a loop device");
    let job =
        ["run", "--filename", &device.device, "--rw", "read", "--bs", "64k", "--number_ios", "8", "--direct", "prefer"];
    let idle = sandbox.run(&[&job[..], &["--no-history", "--wait-idle=60s"]].concat());
    assert!(!idle.out.contains("not idle") && idle.out.contains("8 I/Os"), "{idle:?}");
    let mut reader = std::process::Command::new("sh");
    let script =
        format!("while :; do dd if={} of=/dev/null bs=64k iflag=direct 2>/dev/null || exit; done", device.device);
    let reader = Running::start(reader.args(["-c", &script]));
    let busy = sandbox.run(&[&job[..], &["--no-history", "--wait-idle=2s"]].concat());
    drop(reader);
    busy.assert_code(1);
    let text = busy.out_joined();
    assert!(text.contains("the disk was not idle within 2.00 s (--wait-idle)"), "{busy:?}");
    let disk = device.device.trim_start_matches("/dev/");
    assert!(text.contains(&format!(" uses {disk}: ")), "{busy:?}");
    let is_named = text.contains("dd (pid ") || text.contains("dd (thread ");
    assert!(is_named || text.contains("another process"), "{busy:?}");
}
