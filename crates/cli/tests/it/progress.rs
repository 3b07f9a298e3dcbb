//! The progress line: on a terminal there is one, in a pipe there is none.

use crate::common::*;

const JOB: &[&str] = &[
    "run",
    "--rw",
    "randread",
    "--size",
    "16m",
    "--runtime",
    "1200ms",
    "--time_based",
    "--no-history",
    "--no-evidence",
];

/// The pieces that were drawn, without the sequences that move the cursor.
fn pieces(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find("\x1b[") {
        plain.push_str(&rest[..begin]);
        let sequence = &rest[begin + 2..];
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).map_or(sequence.len(), |end| end + 1);
        plain.push('\n');
        rest = &sequence[end..];
    }
    plain.push_str(rest);
    plain.split(['\r', '\n']).map(str::to_owned).collect()
}

#[test]
fn a_terminal_shows_rate_latency_and_the_time_left_of_the_phase_and_of_all() {
    let sandbox = Sandbox::new();
    let (text, code) = on_terminal(sandbox.command(JOB), 120);
    assert_eq!(code, Some(0), "{text}");
    let lines = pieces(&text);
    let line = lines.iter().find(|line| line.contains(" s of 2 s")).unwrap_or_else(|| panic!("no progress: {text}"));
    for word in ["> randread 4k", " IOPS", "p99 "] {
        assert!(line.contains(word), "`{word}` is missing in `{line}`");
    }
    assert!(lines.iter().any(|line| line.contains("last load, ") && line.contains(" left in all")), "{text}");
    assert!(text.contains("Details: add -v"), "the result is missing: {text}");
}

/// Goal: a finished load keeps its line while the next ones run. Method: the first word of the line of a load is drawn
/// before the second load begins.
#[test]
fn a_finished_load_keeps_its_line() {
    let sandbox = Sandbox::new();
    let job = "[defaults]\nioengine = \"simulated\"\nsize = \"1m\"\n[job.first]\nrw = \"read\"\n[job.second]\nrw = \"read\"\n\
               stonewall = true\n";
    sandbox.write("two.toml", job);
    let (text, code) = on_terminal(sandbox.command(&["run", "two.toml", "--no-history", "--no-evidence"]), 120);
    assert_eq!(code, Some(0), "{text}");
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("`{what}` is missing: {text:?}"));
    assert!(at("  first ") < at("> second"), "{text:?}");
    assert!(at("1 more load") < at("  first "), "{text:?}");
}

#[test]
fn a_terminal_shows_how_far_the_test_file_is_written() {
    let sandbox = Sandbox::new();
    let (text, _) = on_terminal(sandbox.command(JOB), 120);
    assert!(text.contains("writing the test file `trueio-job-0.dat` (16 MiB): "), "{text}");
}

/// A line that the terminal wraps cannot be redrawn.
#[test]
fn on_a_narrow_terminal_no_line_of_the_progress_is_wrapped() {
    let sandbox = Sandbox::new();
    let (text, code) = on_terminal(sandbox.command(JOB), 60);
    assert_eq!(code, Some(0), "{text}");
    // Each line is padded to the width, so the next one begins at a multiple of it.
    let drawn: Vec<String> = pieces(&text).into_iter().filter(|line| line.starts_with("> ")).collect();
    assert!(drawn.len() > 2, "{text:?}");
    for line in &drawn {
        let below = line.char_indices().position(|(at, _)| line[at..].starts_with("  last load"));
        assert!(below.is_none_or(|column| column % 60 == 0), "{line:?}");
    }
    assert!(drawn.iter().any(|line| line.contains("last load")), "{text:?}");
}

#[test]
fn idle_disks_are_observed_only_with_evidence() {
    let sandbox = Sandbox::new();
    let with_evidence: Vec<&str> = JOB.iter().copied().filter(|flag| *flag != "--no-evidence").collect();
    for (job, is_looking) in [(JOB, false), (&with_evidence, true)] {
        let (text, code) = on_terminal(sandbox.command(job), 120);
        assert_eq!((code, text.contains("observing the idle disk")), (Some(0), is_looking), "{text}");
    }
}

#[test]
fn a_pipe_gets_no_progress_and_no_colour() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(JOB);
    ran.assert_code(0);
    assert_eq!(ran.err, "");
    assert!(!ran.out.contains('\x1b') && !ran.out.contains('\r') && !ran.out.contains(" left"), "{ran:?}");
}

#[test]
fn no_color_removes_colours_and_not_text() {
    let sandbox = Sandbox::new();
    let job =
        &["run", "--ioengine", "simulated", "--simulated", "fail=3", "--size", "1m", "--no-history", "--no-evidence"];
    let colours = |text: &str| text.matches("\x1b[").filter(|_| true).count() > 0 && has_colour(text);
    let (coloured, _) = on_terminal(sandbox.command(job), 100);
    assert!(colours(&coloured), "no colour on a terminal: {coloured:?}");
    let mut command = sandbox.command(job);
    command.env("NO_COLOR", "1");
    let (plain, _) = on_terminal(command, 100);
    assert!(!colours(&plain), "{plain:?}");
    for text in [&coloured, &plain] {
        assert!(text.contains("# failed") && text.contains("FAILED"), "{text:?}");
    }
}

/// Whether there is a sequence that sets a colour: `ESC [ … m` with a number in it.
fn has_colour(text: &str) -> bool {
    text.split("\x1b[").skip(1).any(|rest| {
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        rest[end..].starts_with('m') && rest[..end].split(';').any(|n| n.parse::<u32>().is_ok_and(|n| n >= 30))
    })
}

/// Runs a job with progress on descriptor 3, which `redirection` prepares; returns what arrived there, and the run.
fn with_progress_fd(sandbox: &Sandbox, redirection: &str, runtime: &str) -> (String, Ran) {
    let job = "run --ioengine null --rw read --size 1m --time_based --no-history --runtime";
    command_with_progress_fd(sandbox, &format!("{job} {runtime}"), redirection)
}

/// The same for another command.
fn command_with_progress_fd(sandbox: &Sandbox, command: &str, redirection: &str) -> (String, Ran) {
    let program = sandbox.command(&[]).get_program().to_string_lossy().into_owned();
    let script = format!("'{program}' {command} --no-evidence --progress-fd 3 {redirection}");
    let output =
        std::process::Command::new("sh").args(["-c", &script]).current_dir(sandbox.root()).output().expect("sh");
    let events = std::fs::read_to_string(sandbox.path("events")).unwrap_or_default();
    (events, Ran::of(output))
}

#[test]
fn a_program_that_passes_a_pipe_gets_each_event_as_a_line_of_json() {
    let sandbox = Sandbox::new();
    let (events, _) = with_progress_fd(&sandbox, "3>&1 >/dev/null | cat > events", "1");
    let events: Vec<serde_json::Value> = events.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(events.first().map(|event| &event["event"]), Some(&"phase".into()), "{events:?}");
    let progress = events.iter().find(|event| event["event"] == "progress").expect("progress");
    assert!(progress["ios_per_s"].as_f64() > Some(0.0) && progress["phase"] == "job", "{progress}");
}

#[test]
fn a_comparison_reports_each_round_with_the_answers_so_far() {
    let sandbox = Sandbox::new();
    let command = "compare --vary iodepth=1,4 --ioengine simulated --rw randread --size 1m --slice 20ms --budget 1s";
    let (events, _) = command_with_progress_fd(&sandbox, command, "3>&1 >/dev/null | cat > events");
    let events: Vec<serde_json::Value> = events.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let rounds: Vec<_> = events.iter().filter(|event| event["event"] == "comparison").collect();
    let last = rounds.last().unwrap_or_else(|| panic!("no round in {events:?}"));
    assert!(rounds.len() > 1 && last["round"].as_u64() > rounds[0]["round"].as_u64(), "{rounds:?}");
    let answer = &last["answers"][0];
    assert!(answer["side"] == 1 && answer["metric"] == "iops" && answer["ratio"].is_number(), "{last}");
}

/// Goal: a descriptor cannot be used to write to a file that the plan does not know.
#[test]
fn a_descriptor_that_is_a_file_or_not_open_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("kept", "precious");
    let (_, ran) = with_progress_fd(&sandbox, "3>>kept", "1");
    ran.assert_refused(&["--progress-fd 3 cannot be used", "neither a pipe nor a socket", "hint: "]);
    assert_eq!(std::fs::read_to_string(sandbox.path("kept")).expect("the file"), "precious");
    let (_, ran) = with_progress_fd(&sandbox, "3>&-", "1");
    ran.assert_refused(&["Bad file descriptor"]);
}

/// Goal: a reader that does not read, or is gone, does not hold or end the run.
#[test]
fn a_reader_that_is_gone_does_not_end_the_run() {
    let sandbox = Sandbox::new();
    let (_, ran) = with_progress_fd(&sandbox, "3>&1 >out 2>&1 | true; test -s out", "1");
    ran.assert_code(0);
}
