//! `trueio run --live` on a pseudo-terminal: what it draws, its keys, and the terminal after every way out.

use crate::common::*;
use crate::ranks_common::{free_port, rank, record_at, run_ranks};
use trueio_testkit::{OnTerminal, typing_on_terminal};

const JOB: &[&str] = &[
    "run",
    "--live",
    "--rw",
    "randread",
    "--size",
    "16m",
    "--time_based",
    "--no-history",
    "--no-evidence",
    "--runtime",
];

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The terminal has its first buffer, its cursor, echo and line editing again.
#[track_caller]
fn assert_given_back(ran: &OnTerminal) {
    assert!(ran.is_as_before, "{ran:?}");
    assert_eq!((ran.text.matches(ENTER).count(), ran.text.matches("\x1b[?1049l").count()), (1, 1), "{ran:?}");
    assert!(ran.text.find(ENTER) < ran.text.find(LEAVE), "{ran:?}");
}

fn with(runtime: &str) -> Vec<&str> {
    JOB.iter().copied().chain([runtime]).collect()
}

#[test]
fn a_run_is_drawn_and_its_result_follows_on_the_terminal_as_it_was() {
    let sandbox = Sandbox::new();
    let ran = typing_on_terminal(sandbox.command(&with("2s")), 80, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_given_back(&ran);
    let (drawn, after) = ran.text.split_once(LEAVE).expect("it was left");
    // Spaces that are there already are not drawn again.
    for words in ["IOPS", "flight", "histogram", "latency", "report"] {
        assert!(drawn.contains(words), "`{words}` is missing in {drawn:?}");
    }
    assert!(after.contains("Details: add -v") && !after.contains("\x1b[?1049"), "{after:?}");
}

#[test]
fn keys_switch_the_metric_pause_and_end_the_run_with_its_result() {
    let sandbox = Sandbox::new();
    let script = [("histogram", "m"), ("bytes/s", "p"), ("display paused", "p"), ("IOPS", "q")];
    let ran = typing_on_terminal(sandbox.command(&with("600s")), 80, &script);
    assert_eq!(ran.code, Some(1), "an interrupted run: {ran:?}");
    assert_given_back(&ran);
    let after = ran.text.split_once(LEAVE).expect("it was left").1;
    assert!(after.contains("INTERRUPTED by SIGINT") && after.contains("Details: add -v"), "{after:?}");
}

/// Goal: a second signal ends the process at once, and gives the terminal back first.
#[test]
fn a_second_signal_gives_the_terminal_back() {
    let sandbox = Sandbox::new();
    let ran = typing_on_terminal(sandbox.command(&with("600s")), 80, &[("histogram", "qq")]);
    assert_given_back(&ran);
    // The first one may have ended the run before the second came.
    assert!(ran.code == Some(130) || ran.code == Some(1), "{ran:?}");
}

#[test]
fn without_a_terminal_the_view_is_refused_before_anything_is_measured() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&with("600s"));
    ran.assert_refused(&["--live needs a terminal"]);
    assert_eq!(sandbox.listing(), [""; 0]);
    let mut dumb = sandbox.command(&with("600s"));
    dumb.env("TERM", "dumb");
    let (text, code) = on_terminal(dumb, 80);
    assert!(code == Some(2) && text.contains("--live needs a terminal") && !text.contains('\x1b'), "{text:?}");
}

/// Goal: the jobs of a run are drawn together (`all: xx, yy`), and each alone. Method: only characters that change are drawn, so after
/// both names the first is drawn again only where it stands alone, and then the second.
#[test]
fn the_jobs_of_a_run_are_shown_together_and_each_alone() {
    let sandbox = Sandbox::new();
    let job =
        |name: &str| format!("[job.{name}]\nrw = \"randread\"\nsize = \"4m\"\nruntime = \"600s\"\ntime_based = true\n");
    sandbox.write("two.toml", job("xx") + &job("yy"));
    let command = sandbox.command(&["run", "--live", "--no-history", "--no-evidence", "two.toml"]);
    let ran = typing_on_terminal(command, 80, &[("all:", ""), ("yy", "j"), ("xx", "j"), ("yy", "q")]);
    assert_eq!(ran.code, Some(1), "an interrupted run: {ran:?}");
    assert_given_back(&ran);
    let after = ran.text.split_once(LEAVE).expect("it was left").1;
    assert!(after.contains("xx") && after.contains("yy"), "both have a line of the result: {after:?}");
}

/// Goal: rank 0 draws all ranks, together and each alone, and `q` ends all. Method: two processes; only the first has a terminal. Words are
/// awaited whose characters were all different before: others are not drawn again.
#[test]
fn rank_0_draws_all_ranks_together_and_each_alone() {
    let sandbox = Sandbox::new();
    let (port, json) = (free_port(), sandbox.aside("all.json"));
    let arguments = [&with("600s")[..], &["--json", json.to_str().expect("UTF-8")]].concat();
    let other = Running::start(&mut rank(&sandbox, 1, 2, port, &arguments));
    let host = format!("({})", trueio_cluster::host_name());
    let script = [("fastest", "r"), ("0 of 2", "r"), (host.as_str(), "q")];
    let ran = typing_on_terminal(rank(&sandbox, 0, 2, port, &arguments), 120, &script);
    assert_eq!((ran.code, other.wait().0.code), (Some(1), Some(1)), "an interrupted run: {ran:?}");
    assert_given_back(&ran);
    let after = ran.text.split_once(LEAVE).expect("it was left").1;
    assert!(after.contains("INTERRUPTED by SIGINT") && after.contains("2 ranks"), "{after:?}");
    let record = record_at(&sandbox, "all.json");
    assert!(record.plan.notes.iter().any(|note| note.starts_with("--live:")), "{:?}", record.plan.notes);
}

#[test]
fn a_run_of_ranks_is_refused_if_rank_0_has_no_terminal() {
    let sandbox = Sandbox::new();
    let ran = run_ranks(&sandbox, 2, |_| with("600s"));
    ran[0].assert_refused(&["rank 0 (", "--live needs a terminal", "`srun --pty`"]);
    assert_eq!((ran[1].code, ran[1].err.as_str()), (Some(2), ""));
    assert_eq!(sandbox.listing(), [""; 0]);
}
