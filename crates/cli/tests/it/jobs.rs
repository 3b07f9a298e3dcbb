//! Job files and flags: errors are shown with their position, and options are applied.

use crate::common::*;
use std::fs;
use trueio_model::OpKind;

/// The whole of stderr for a job file that is refused.
#[track_caller]
fn refusal_of(text: &str) -> String {
    let sandbox = Sandbox::new();
    sandbox.write("job.toml", text);
    let ran = sandbox.run(&["run", "job.toml"]);
    ran.assert_refused(&[]);
    assert_eq!(ran.err, sandbox.run(&["explain", "job.toml"]).err, "run and explain say different things");
    ran.err
}

#[test]
fn an_unknown_key_is_shown_in_its_line_with_the_nearest_option() {
    let text = refusal_of("[defaults]\nbs = \"4k\"\n\n[job.a]\nrw = \"randread\"\niodpeth = 4\nsize = \"1m\"\n");
    assert_eq!(
        text,
        "\
error: `iodpeth` is not an option
 --> job.toml:6:1
  |
6 | iodpeth = 4
  | ^^^^^^^ did you mean `iodepth`?
"
    );
}

#[test]
fn a_flag_of_another_tool_is_refused_with_the_name_of_the_option() {
    let sandbox = Sandbox::new();
    for (flag, hint) in [
        ("--queue-depth", "hint: the queue depth is `iodepth`, as in fio\n"),
        ("--iodpeth", "hint: did you mean `iodepth`?\n"),
        ("--zzzzzz", "hint: `trueio reference` lists every option\n"),
    ] {
        let ran = sandbox.run(&["run", "--rw", "randread", flag, "3"]);
        ran.assert_refused(&[]);
        assert!(ran.err.ends_with(hint), "{flag}: {}", ran.err);
    }
}

#[test]
fn an_invalid_value_is_shown_in_its_line_with_the_nearest_value() {
    assert_eq!(
        refusal_of("[job.a]\nrw = \"randraed\"\nsize = \"1m\"\n"),
        "\
error: `rw`: `randraed` is not one of `read`, `write`, `trim`, `randread`, `randwrite`, `randtrim`, `rw`, `randrw`, `trimwrite`, `randtrimwrite`
 --> job.toml:2:6
  |
2 | rw = \"randraed\"
  |      ^^^^^^^^^^ did you mean `randread`?
"
    );
}

/// Job files with one mistake each: the text, and the complete message.
const MISTAKES: &[(&str, &str)] = &[
    (
        "[job.a]\nrw = \"randread\nsize = \"1m\"\n",
        "\
error: not TOML: a text has no closing quote
 --> job.toml:2:15
  |
2 | rw = \"randread
  |               ^ end it with `\"`
",
    ),
    (
        "[job.a]\nrw = randread # as in fio\n",
        "\
error: not TOML: `randread` has no quotes
 --> job.toml:2:6
  |
2 | rw = randread # as in fio
  |      ^^^^^^^^ write `rw = \"randread\"`
",
    ),
    (
        "[job.a]\nsize = 1g\n",
        "\
error: not TOML: `1g` has no quotes
 --> job.toml:2:8
  |
2 | size = 1g
  |        ^^ write `size = \"1g\"`
",
    ),
    (
        "[job.a]\nsize = \"1m\"\nrw = \"read\"\nsize = \"2m\"\n",
        "\
error: not TOML: `size` is set twice
 --> job.toml:4:1
  |
4 | size = \"2m\"
  | ^^^^ line 2 already has it: keep one of them
",
    ),
    (
        "[job.a]\nsize = \"1m\"\n[job.a]\n",
        "\
error: not TOML: `[job.a]` is set twice
 --> job.toml:3:6
  |
3 | [job.a]
  |      ^ line 1 already has it: keep one of them
",
    ),
    (
        "[job.a]\nsize: \"1m\"\n",
        "\
error: not TOML: key with no value, expected `=`
 --> job.toml:2:7
  |
2 | size: \"1m\"
  |       ^ a line is `option = value`
",
    ),
    (
        "[job.a]\nblocksize = \"4k\"\nbs = \"8k\"\n",
        "\
error: `bs` is given twice in `[job.a]`
 --> job.toml:3:1
  |
3 | bs = \"8k\"
  | ^^ `bs` is another name for it
",
    ),
    (
        "[jobs.reader]\nrw = \"read\"\n",
        "\
error: `[jobs]` is not a table here
 --> job.toml:1:2
  |
1 | [jobs.reader]
  |  ^^^^ did you mean `[job.reader]`?
",
    ),
    (
        "[Job.a]\nrw = \"read\"\n",
        "\
error: `[Job]` is not a table here
 --> job.toml:1:2
  |
1 | [Job.a]
  |  ^^^ did you mean `[job.a]`?
",
    ),
    (
        "[global]\nbs = \"4k\"\n[job.a]\n",
        "\
error: `[global]` is not a table here
 --> job.toml:1:2
  |
1 | [global]
  |  ^^^^^^ did you mean `[defaults]`?
",
    ),
    (
        "[job.a]\nqueue_depth = 4\n",
        "\
error: `queue_depth` is not an option
 --> job.toml:2:1
  |
2 | queue_depth = 4
  | ^^^^^^^^^^^ the queue depth is `iodepth`, as in fio
",
    ),
    (
        "[job.a]\niodepth = true\n",
        "\
error: `iodepth` cannot be true or false
 --> job.toml:2:11
  |
2 | iodepth = true
  |           ^^^^ it takes a whole number from 1 to 32768
",
    ),
    (
        "[job.a]\niodepth = -1\n",
        "\
error: `iodepth`: `-1` is not a whole number from 1 to 32768
 --> job.toml:2:11
  |
2 | iodepth = -1
  |           ^^
",
    ),
    (
        "[job.a]\nbs = \"4q\"\n",
        "\
error: `bs`: `q` is not a unit of size; use k, m, g, t (powers of 1024) or MB, GB (1000)
 --> job.toml:2:6
  |
2 | bs = \"4q\"
  |      ^^^^ it takes a size, such as `4k`, or three for read, write, trim: `4k,8k,1m`
",
    ),
    (
        "[job.a]\nruntime = \"30 secs\"\n",
        "\
error: `runtime`: `secs` is not a unit of time; use ns, us, ms, s, m, h or d
 --> job.toml:2:11
  |
2 | runtime = \"30 secs\"
  |           ^^^^^^^^^ it takes a duration, such as `30s` or `100ms`; a bare number is seconds
",
    ),
    (
        "[job.a]\ndirect = \"requires\"\n",
        "\
error: `direct`: `requires` is not one of `require`, `prefer`, `off`
 --> job.toml:2:10
  |
2 | direct = \"requires\"
  |          ^^^^^^^^^^ did you mean `require`?
",
    ),
    (
        "[job.\"a/b\"]\nsize = \"1m\"\n",
        "\
error: the job's name `a/b` contains '/'
 --> job.toml:1:6
  |
1 | [job.\"a/b\"]
  |      ^^^^^ use letters, digits, `-`, `_` and `.`
",
    ),
    (
        "rw = \"read\"\n[job.a]\n",
        "\
error: `rw` is outside of any table
 --> job.toml:1:1
  |
1 | rw = \"read\"
  | ^^ put it under `[defaults]` or under a `[job.NAME]`
",
    ),
    (
        "",
        "\
error: the file has no job
 --> job.toml:1:1
  |
1 |
  | ^ add a table `[job.NAME]`
",
    ),
];

#[test]
fn each_mistake_in_a_file_is_shown_at_its_line_and_key_with_what_to_do() {
    for (text, expected) in MISTAKES {
        let message = refusal_of(text);
        // A line that is empty is printed with the space after its bar.
        assert_eq!(message.replace("| \n", "|\n"), *expected, "{text}");
    }
}

/// Goal: a flag's value that is none is refused once, with the nearest word, and no list comes twice.
#[test]
fn an_invalid_value_of_a_flag_is_reported_once() {
    let sandbox = Sandbox::new();
    let rw = "one of `read`, `write`, `trim`, `randread`, `randwrite`, `randtrim`, `rw`, `randrw`, `trimwrite`, `randtrimwrite`";
    for (flag, value, expected) in [
        ("--rw", "randraed", format!("error: `--rw`: `randraed` is not {rw}\n\nhint: did you mean `randread`?\n")),
        ("--rw", "xyzxyz", format!("error: `--rw`: `xyzxyz` is not {rw}\n")),
        ("--iodepth", "x", "error: `--iodepth`: `x` is not a whole number from 1 to 32768\n".to_owned()),
        (
            "--size",
            "1q",
            "error: `--size`: `q` is not a unit of size; use k, m, g, t (powers of 1024) or MB, GB (1000)\n\n\
             hint: it takes a size, such as `10g`, a percentage, such as `50%`, or zones, such as `4z`\n"
                .to_owned(),
        ),
    ] {
        let ran = sandbox.run(&["run", flag, value]);
        ran.assert_refused(&[]);
        assert_eq!(ran.err, expected);
    }
    // Some words are checked by the parser of the command line, some by the table: no list twice.
    for flag in ["--ioengine", "--fallocate", "--verify", "--rate_process", "--sync", "--continue_on_error"] {
        let ran = sandbox.run(&["run", flag, "zzzzzz"]);
        ran.assert_refused(&["zzzzzz"]);
        let lists = ran.err.matches("one of `").count() + ran.err.matches("possible values").count();
        assert_eq!(lists, 1, "the values are listed {lists} times\n{}", ran.err);
    }
}

#[test]
fn an_unknown_flag_is_refused_with_the_nearest_option() {
    let sandbox = Sandbox::new();
    sandbox.run(&["run", "--iodpeth", "4"]).assert_refused(&["`--iodpeth`", "did you mean `iodepth`?"]);
    sandbox.run(&["run", "--rw", "randraed", "--size", "1m"]).assert_refused(&["`randraed`", "`randread`"]);
    sandbox
        .run(&["run", "nowhere.toml"])
        .assert_refused(&["job file `nowhere.toml` cannot be read", "because: No such"]);
}

#[test]
fn jobs_run_in_parallel_unless_one_waits_and_flags_have_precedence() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "jobs.toml",
        "[defaults]\nioengine = \"null\"\nnumber_ios = 10\n\n[job.a]\n[job.b]\nrw = \"randwrite\"\n\n\
         [job.c]\nstonewall = true\nnumber_ios = 30\n",
    );
    let (ran, record) = sandbox.record(&["run", "jobs.toml"]);
    ran.assert_code(0);
    let names: Vec<&str> = record.phases.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["a+b", "c"]);
    assert_eq!(totals(&record.phases[0], OpKind::Read), (10, 40 << 10));
    assert_eq!(totals(&record.phases[0], OpKind::Write), (10, 40 << 10));
    assert_eq!(totals(&record.phases[1], OpKind::Read), (30, 120 << 10));

    let (ran, record) = sandbox.record(&["run", "jobs.toml", "--number_ios", "5", "--bs=8k"]);
    ran.assert_code(0);
    assert_eq!(totals(&record.phases[0], OpKind::Write), (5, 40 << 10));
    assert_eq!(totals(&record.phases[1], OpKind::Read), (5, 40 << 10));
}

/// Several files are one list of jobs; a name that comes twice would make one record ambiguous.
#[test]
fn several_job_files_are_one_list_with_unique_names() {
    let sandbox = Sandbox::new();
    sandbox.write("one.toml", "[job.a]\nioengine = \"null\"\nnumber_ios = 1\n");
    sandbox.write("two.toml", "[job.b]\nioengine = \"null\"\nnumber_ios = 2\n");
    let (ran, record) = sandbox.record(&["run", "one.toml", "two.toml"]);
    ran.assert_code(0);
    assert_eq!(record.phases[0].name, "a+b");
    sandbox.run(&["run", "one.toml", "one.toml"]).assert_refused(&["`a`"]);
}

/// Rewritten with `TRUEIO_BLESS=1`. The engine is set, because the default depends on the kernel.
#[test]
fn explain_prints_every_value_with_its_origin() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "commit.toml",
        "[defaults]\nsize = \"64m\"\nioengine = \"sync\"\n\n[job.commit]\nrw = \"write\"\nbs = \"4k\"\nfdatasync = 1\n\
         fallocate = \"none\"\n",
    );
    let ran = sandbox.run(&["explain", "commit.toml", "--runtime", "30s", "--time_based", "--all"]);
    ran.assert_code(0);
    assert_eq!(ran.err, "");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explain.txt");
    if std::env::var_os("TRUEIO_BLESS").is_some() {
        fs::write(&path, &ran.out).expect("the expected text");
    }
    assert_eq!(ran.out, fs::read_to_string(path).expect("the expected text"));
    assert_eq!(sandbox.listing().len(), 1, "explain made a file");
}

#[test]
fn the_plan_as_json_is_the_plan_in_the_record() {
    let sandbox = Sandbox::new();
    let job = ["--ioengine", "null", "--number_ios", "3", "--rw", "randread", "--bs", "8k"];
    let mut explain = vec!["explain", "--json"];
    explain.extend(job);
    let ran = sandbox.run(&explain);
    ran.assert_code(0);
    let plan: trueio_model::Plan = serde_json::from_str(&ran.out).expect("one document");
    let mut run = vec!["run"];
    run.extend(job);
    // The harness accepts a check in every run (`TRUEIO_ACCEPT`).
    let recorded = trueio_model::Plan { accepted_checks: plan.accepted_checks.clone(), ..sandbox.record(&run).1.plan };
    assert_eq!(plan, recorded);
}

/// Goal: what was written is verified, in the same job and in a later run, and damage is named.
/// Method: both checksums on the real disk; then one byte is changed in the 300th block.
#[test]
fn verified_writes_read_back_and_a_changed_byte_is_found_at_its_offset() {
    for checksum in ["crc32c", "xxhash"] {
        let sandbox = Sandbox::new();
        let write = [
            "run",
            "--filename",
            "data",
            "--rw",
            "randwrite",
            "--size",
            "4m",
            "--iodepth",
            "8",
            "--verify",
            checksum,
            "--unlink=false",
        ];
        let (ran, record) = sandbox.record(&write);
        ran.assert_code(0);
        let job = only_job(&record);
        assert_eq!((job.verified_block_count, job.verify_failure_count), (1024, 0), "{checksum}");

        let read = ["run", "--filename", "data", "--rw", "randread", "--iodepth", "8", "--verify", checksum];
        let (ran, record) = sandbox.record(&read);
        ran.assert_code(0);
        assert_eq!(only_job(&record).verified_block_count, 1024, "{checksum}");

        let path = sandbox.path("data");
        let mut content = fs::read(&path).expect("content");
        content[300 * 4096 + 1234] ^= 1;
        fs::write(&path, content).expect("a change");
        let (ran, record) = sandbox.record(&read);
        ran.assert_code(1);
        let job = only_job(&record);
        assert_eq!((job.verified_block_count, job.verify_failure_count), (1024, 1), "{checksum}");
        let failure = &job.verify_failures[0];
        assert_eq!((failure.offset, failure.length, failure.path.as_str()), (300 * 4096, 4096, "data"), "{checksum}");
        assert!(ran.out_joined().contains("1 of 1,024 blocks differ from what was written"), "{ran:?}");
        assert!(ran.out.contains("offset 1,228,800"), "{ran:?}");
    }
}

#[test]
fn a_block_from_another_offset_is_detected() {
    let sandbox = Sandbox::new();
    let write = ["run", "--filename", "data", "--rw", "write", "--size", "1m", "--verify", "crc32c", "--unlink=false"];
    sandbox.run(&write).assert_code(0);
    let path = sandbox.path("data");
    let mut content = fs::read(&path).expect("content");
    content.copy_within(0..4096, 8192);
    fs::write(&path, content).expect("a misplaced block");
    let (ran, record) = sandbox.record(&["run", "--filename", "data", "--rw", "read", "--verify", "crc32c"]);
    ran.assert_code(1);
    let failures = &only_job(&record).verify_failures;
    assert_eq!(failures.iter().map(|f| f.offset).collect::<Vec<_>>(), [8192]);
    assert!(failures[0].expected.contains("8192") && failures[0].found.contains('0'), "{failures:?}");
}
