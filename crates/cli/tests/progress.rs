//! The progress line: on a terminal there is one, in a pipe there is none.

mod common;

use common::*;

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

#[test]
fn a_terminal_shows_bandwidth_iops_latency_and_the_time_left() {
    let sandbox = Sandbox::new();
    let (text, code) = on_terminal(sandbox.command(JOB), 120);
    assert_eq!(code, Some(0), "{text}");
    let lines: Vec<&str> = text.split(['\r', '\n']).collect();
    let line = lines.iter().find(|line| line.contains(" s left")).unwrap_or_else(|| panic!("no progress: {text}"));
    for word in ["1/1 job", "iB/s", " IOPS", "p50 ", "p99 "] {
        assert!(line.contains(word), "`{word}` is missing in `{line}`");
    }
    assert!(text.contains("bandwidth"), "the table is missing: {text}");
}

#[test]
fn a_terminal_shows_how_far_the_test_file_is_written() {
    let sandbox = Sandbox::new();
    let (text, _) = on_terminal(sandbox.command(JOB), 120);
    assert!(text.contains("writing the test file `trueio-job-0.dat` (16 MiB): "), "{text}");
}

/// A line that the terminal wraps cannot be redrawn.
#[test]
fn on_a_narrow_terminal_the_progress_stays_one_line() {
    let sandbox = Sandbox::new();
    let (text, code) = on_terminal(sandbox.command(JOB), 60);
    assert_eq!(code, Some(0), "{text}");
    // indicatif moves the cursor up when it has to erase more than one line.
    let before_the_table = text.split("trueio run").next().expect("the progress");
    assert!(!before_the_table.contains("\x1b[1A"), "{text:?}");
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
