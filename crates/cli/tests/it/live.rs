//! `--live` on a pseudo-terminal: what it draws, its keys, and the terminal after every way out.

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
    // Only cells that changed are drawn: after the pause, the name of the other metric is.
    let script = [("histogram", "m"), ("bytes/s", "p"), ("display paused", "pm"), ("IOPS", "q")];
    let ran = typing_on_terminal(sandbox.command(&with("600s")), 80, &script);
    assert_eq!(ran.code, Some(0), "an orderly end: {ran:?}");
    assert_given_back(&ran);
    let after = ran.text.split_once(LEAVE).expect("it was left").1;
    assert!(after.contains("INTERRUPTED by the key q") && after.contains("Details: add -v"), "{after:?}");
}

/// Goal: a study and a job of fio's language are followed like a run, and `q` is an orderly end of both.
#[test]
fn a_study_and_a_job_of_fio_are_drawn_and_end_with_the_key() {
    let sandbox = Sandbox::new();
    let study = ["study", "cache-bypass", "--live", "--no-journal", "--no-evidence", "--set", "size=16m"];
    let study = [&study[..], &["--set", "runtime=600s", "--set", "time_based=true"]].concat();
    let fio =
        ["fio", "--live", "--name=a", "--rw=randread", "--size=16m", "--time_based", "--runtime=600", "--filename=f"];
    for (words, result) in [(&study[..], "INTERRUPTED by the key q"), (&fio[..], "a: (groupid=0")] {
        let ran = typing_on_terminal(sandbox.command(words), 80, &[("histogram", "m"), ("bytes/s", "q")]);
        assert_eq!(ran.code, Some(0), "an orderly end: {ran:?}");
        assert_given_back(&ran);
        let after = ran.text.split_once(LEAVE).expect("it was left").1;
        assert!(after.contains(result), "{after:?}");
        let refused = sandbox.run(words);
        assert!(refused.code != Some(0) && refused.err.contains("--live needs a terminal"), "{refused:?}");
    }
    let both = [&fio[..], &["--status-interval=1"]].concat();
    let (text, code) = on_terminal(sandbox.command(&both), 80);
    assert!(code == Some(1) && text.contains("`--live` does not work with `--status-interval`"), "{text:?}");
}

/// Goal: `q` before the first I/O is an orderly end, too; no figure is missing, and there is nothing to do about it.
#[test]
fn the_key_before_any_io_is_an_orderly_end_that_measured_nothing() {
    let sandbox = Sandbox::new();
    // The workers' start is later than the key.
    let line = with("600s");
    let late: Vec<&str> = line.iter().copied().chain(["--startdelay", "600s"]).collect();
    let ran = typing_on_terminal(sandbox.command(&late), 80, &[("report", "q")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_given_back(&ran);
    let after = ran.text.split_once(LEAVE).expect("it was left").1;
    assert!(after.contains("INTERRUPTED by the key q") && after.contains("Nothing was measured."), "{after:?}");
    assert!(!after.contains("failed I/Os") && !after.contains('→'), "{after:?}");
}

/// Goal: a second signal ends the process at once, and gives the terminal back first.
#[test]
fn a_second_signal_gives_the_terminal_back() {
    let sandbox = Sandbox::new();
    let ran = typing_on_terminal(sandbox.command(&with("600s")), 80, &[("histogram", "qq")]);
    assert_given_back(&ran);
    // The first one may have ended the run before the second came.
    assert!(matches!(ran.code, Some(0 | 130)), "{ran:?}");
}

/// Goal: Ctrl-C ends the run, and its exit code shows that.
#[test]
fn ctrl_c_gives_the_terminal_back_and_fails() {
    let (text, _) = in_a_shell(with("600s"), &[("histogram", "\u{3}"), ("READY>", "echo c\\ode $?; exit\n")]);
    assert!(text.contains("INTERRUPTED by SIGINT") && text.contains("code 1"), "{text:?}");
    assert_eq!((text.matches(ENTER).count(), text.matches(LEAVE).count()), (1, 1), "{text:?}");
}

/// Types into a shell with job control: the line, then the script. The shell's prompt is `READY>`.
fn in_a_shell(line: Vec<&str>, script: &[(&str, &str)]) -> (String, Option<i32>) {
    let sandbox = Sandbox::new();
    let program = sandbox.command(&line);
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().expect("UTF-8"))).collect();
    let typed = format!("{}\n", words.join(" "));
    let mut shell = std::process::Command::new("setsid");
    shell.args(["-c", "-w", "bash", "--norc", "--noprofile", "-i"]).env("PS1", "READY>");
    shell.current_dir(sandbox.root());
    let settings = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
    shell.envs(settings);
    let all: Vec<(&str, &str)> = [("READY>", typed.as_str())].iter().chain(script).copied().collect();
    let ran = typing_on_terminal(shell, 80, &all);
    (ran.text, ran.code)
}

/// Goal: Ctrl-Z leaves the shell a whole terminal, and `fg` draws the view again, to its end.
#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_draws_again() {
    let script = [
        ("histogram", "\u{1a}"),
        ("READY>", "stty -a\n"),
        (" icanon", "\n"),
        ("READY>", "fg\n"),
        ("histogram", "q"),
        ("READY>", "echo c\\ode $?; exit\n"),
    ];
    let (text, _) = in_a_shell(with("600s"), &script);
    assert!(
        text.contains("Stopped") && text.contains("INTERRUPTED by the key q") && text.contains("code 0"),
        "{text:?}"
    );
    assert_eq!((text.matches(ENTER).count(), text.matches(LEAVE).count()), (2, 2), "{text:?}");
    let settings = text.split("stty -a").nth(1).and_then(|rest| rest.split("READY>").next()).expect("its output");
    assert!(
        settings.contains(" echo ") && settings.contains("susp = ^Z") && !settings.contains("-icanon"),
        "{settings}"
    );
}

/// Goal: after a resize the view uses all of the terminal. Method: the terminal grows from 80×24 to 120×40 while it is drawn;
/// the last line is drawn at row 40.
#[test]
fn the_view_uses_a_terminal_that_grew() {
    let grow = "(sleep 2; stty rows 40 cols 120 < /dev/tty) & ";
    let sandbox = Sandbox::new();
    let program = sandbox.command(&with("20s"));
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().expect("UTF-8"))).collect();
    let mut shell = std::process::Command::new("setsid");
    shell.args(["-c", "-w", "bash", "-c", &format!("{grow}{}", words.join(" "))]).current_dir(sandbox.root());
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = typing_on_terminal(shell, 80, &[("histogram", ""), ("\u{1b}[40;1H", "q")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_given_back(&ran);
    let grown = ran.text.split("\u{1b}[40;1H").nth(1).expect("the last line");
    assert!(grown.chars().filter(|c| *c == '─').count() > 60, "{grown:?}");
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
    assert_eq!(ran.code, Some(0), "an orderly end: {ran:?}");
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
    assert_eq!((ran.code, other.wait().0.code), (Some(0), Some(0)), "an orderly end: {ran:?}");
    assert_given_back(&ran);
    let after = ran.text.split_once(LEAVE).expect("it was left").1;
    assert!(after.contains("INTERRUPTED by the key q") && after.contains("2 ranks"), "{after:?}");
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

/// Goal: `--live` of a comparison is the same view: its rounds are drawn, `q` ends it with the answer so far and exit code 0, and the
/// terminal is whole. Without a terminal the jobs run all the same. Method: a simulated device, so that the rounds are many.
#[test]
fn a_comparison_is_drawn_and_q_ends_it_with_its_answer() {
    let sandbox = Sandbox::new();
    for (file, depth) in [("a.toml", 1), ("b.toml", 4)] {
        let job = format!("[job.rr]\nrw = \"randread\"\nsize = \"8m\"\nioengine = \"psync\"\nnumjobs = {depth}\n");
        sandbox.write(file, &job);
    }
    let words = ["compare", "--live", "--no-evidence", "--until", "p999", "--margin", "0.01%", "--budget", "300s"];
    let words = [words.as_slice(), &["--slice", "100ms", "a.toml", "b.toml"]].concat();
    let ran =
        typing_on_terminal(sandbox.command(&words), 120, &[("histogram", ""), ("left at most", "m"), ("bytes/s", "q")]);
    assert_eq!(ran.code, Some(0), "an orderly end: {ran:?}");
    assert_given_back(&ran);
    let (drawn, after) = ran.text.split_once(LEAVE).expect("it was left");
    for words in ["comparing", "round", "IOPS", "a.toml", "b.toml"] {
        assert!(drawn.contains(words), "`{words}` is missing in {drawn:?}");
    }
    assert!(after.contains("INTERRUPTED by the key q") && after.contains("B to A"), "{after:?}");
    let piped = ["compare", "--live", "--no-evidence", "--budget", "10s", "--slice", "50ms", "a.toml", "b.toml"];
    let ran = sandbox.run(&piped);
    assert!(ran.code == Some(0) && ran.out.contains("B to A"), "{ran:?}");
}
