//! fio's command line.

use super::{World, line, text, words, wrong};
use trueio_fio::language::{
    Action, Eta, FioRequest, OutputFormat, command_help, engine_help, program_help, read, show_command,
};
use trueio_model::JobSpec;

#[test]
fn one_dash_or_two_and_a_value_after_an_equals_sign_or_a_blank_are_equivalent() {
    let one = line("--name=a --rw=randread --bs=8k --size=1g");
    for other in ["-name=a -rw=randread -bs=8k -size=1g", "-name a -rw randread --blocksize 8k --size 1g"] {
        let other = line(other);
        for option in ["rw", "bs", "size"] {
            assert_eq!(text(&other.jobs[0], option), text(&one.jobs[0], option), "{option}");
        }
    }
}

#[test]
fn a_unique_prefix_of_a_name_is_that_option() {
    let job = &line("--name=a --size=1m --norandom --runt=5 --buffer_compress_p=30").jobs[0];
    assert_eq!((text(job, "norandommap"), text(job, "runtime")), ("true", "5s"));
    assert_eq!(text(job, "buffer_compress_percentage"), "30");
    let error = wrong("--name=a --iodepth_ba=3").render();
    assert!(error.contains("may mean `--iodepth_batch`"), "{error}");
}

#[test]
fn a_flag_never_takes_the_next_word_and_others_always_do() {
    let request = line("--group_reporting --name=a --time_based --runtime=5 --size=1m --thread");
    let fio = request.jobs[0].fio.as_ref().unwrap();
    assert!(fio.is_on("group_reporting") && fio.word("group_reporting").unwrap().is_global);
    assert_eq!(text(&request.jobs[0], "time_based"), "true");
    // fio would call the log `--write_lat_log`.
    let error = wrong("--name=a --size=1m --write_bw_log --write_lat_log").render();
    assert!(error.contains("needs a value, and `--write_lat_log` is the next option"), "{error}");
    assert!(wrong("--name=a --direct").render().contains("`--direct` needs a value"));
}

#[test]
fn options_before_the_first_name_apply_to_all_jobs_and_to_the_first_job_file() {
    let request = line("--bs=8k --size=1m --name=a --name=b --bs=16k --name=global --rw=write --name=c");
    let sizes: Vec<&str> = request.jobs.iter().map(|job| text(job, "bs")).collect();
    assert_eq!(sizes, ["8k", "16k", "8k"]);
    assert_eq!(text(&request.jobs[2], "rw"), "write");
    assert_eq!(text(&request.jobs[0], "rw"), "", "what comes later does not hold for what came before");

    let world = World::with(&[("a.fio", "[a]\nsize=1m\n[b]\nsize=1m\nbs=64k\n"), ("b.fio", "[c]\nsize=1m\n")]);
    let request = read(&words("a.fio --bs=8k b.fio"), &world).unwrap();
    let sizes: Vec<&str> = request.jobs.iter().map(|job| text(job, "bs")).collect();
    assert_eq!(sizes, ["8k", "64k", ""], "as in fio, not to further job files");
    let waits: Vec<&str> = request.jobs.iter().map(|job| text(job, "stonewall")).collect();
    assert_eq!(waits, ["", "", "true"], "a further job file waits for the one before");
}

#[test]
fn settings_of_the_program_may_be_anywhere() {
    let request = line(
        "--name=a --size=1m --output-format=json+,terse --output=x.json --eta=never --status-interval=2 --terse-version 4 \
         --max-jobs=8 --alloc-size=1024 --eta-newline=1 --readonly",
    );
    let settings = &request.settings;
    assert_eq!(settings.formats, [OutputFormat::Terse, OutputFormat::JsonPlus]);
    assert_eq!(settings.output.as_deref(), Some("x.json"));
    assert_eq!((settings.eta, settings.terse_version), (Eta::Never, Some(4)));
    assert_eq!(settings.status_interval_ns, Some(2_000_000_000));
    assert!(settings.is_readonly);
    assert_eq!(line("--minimal --name=a --size=1m").settings.formats, [OutputFormat::Terse]);
    assert_eq!(line("-v").action, Action::Version);
    assert_eq!(line("--cmdhelp=bs").action, Action::CommandHelp(Some("bs".into())));
    assert_eq!(line("--cmdhelp").action, Action::CommandHelp(None));
    assert_eq!(line("--parse-only --name=a --size=1m").action, Action::ParseOnly);
    for refused in
        ["--client=host --name=a", "--server --name=a", "--name=a --output-format=xml", "--terse-version=9 --name=a"]
    {
        assert!(!wrong(refused).problems.is_empty());
    }
}

#[test]
fn help_contains_the_lines_that_scripts_look_for() {
    assert!(program_help(None, false).contains("json+"));
    let engines = engine_help(None).unwrap();
    assert!(engines.lines().any(|line| line.trim() == "libaio") && engines.lines().any(|line| line.trim() == "psync"));
    assert!(engine_help(Some("io_uring")).unwrap().contains("fixedbufs"));
    assert_eq!(engine_help(Some("nosuch")), None);
    assert!(command_help(Some("blocksize")).unwrap().contains("4096"));
    assert!(command_help(Some("ramp_size")).unwrap().contains("refused"));
    assert_eq!(command_help(Some("nosuchthingatall")), None);
    // As in fio, an unknown name selects the nearest option.
    let near = command_help(Some("randreapeat")).unwrap();
    assert!(near.starts_with("No such option: randreapeat - showing closest match\n"), "{near}");
    assert!(near.contains("randrepeat: "), "{near}");
    // An engine's own options, and no others.
    let of_libaio = engine_help(Some("libaio")).unwrap();
    for name in ["nowait", "cmdprio_percentage", "cmdprio_bssplit", "userspace_reap"] {
        assert!(of_libaio.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {of_libaio}");
    }
    assert!(engine_help(Some("libaio,nowait")).unwrap().contains("RWF_NOWAIT"));
    assert_eq!(engine_help(Some("libaio,hipri")), None);
    assert_eq!(engine_help(Some("libaio,iodepth")), None);
    assert!(engine_help(Some("pvsync2,hipri")).is_some());
    assert!(command_help(None).unwrap().lines().count() > 250);
}

#[test]
fn a_shown_command_reads_as_the_same_jobs() {
    let arguments = "--bs=8k --group_reporting --name=a --rw=randrw --size=1m --numjobs=3 --name=b --size=2m --thread";
    let one = line(arguments);
    let shown = show_command(&one.jobs);
    let other = line(shown.strip_prefix("fio ").unwrap());
    let options = |request: &FioRequest| -> Vec<(String, Vec<(String, String)>)> {
        let of = |job: &JobSpec| {
            let options = job.options.iter().map(|(name, value)| (name.clone(), value.text.clone())).collect();
            (job.name.clone(), options)
        };
        request.jobs.iter().map(of).collect()
    };
    assert_eq!(options(&one), options(&other), "{shown}");
}

#[test]
fn options_of_one_letter_are_those_of_fio() {
    let request = line("-o out -F json -m -V 4 -e never -w --name=a --size=1m");
    let settings = &request.settings;
    assert_eq!((settings.output.as_deref(), settings.terse_version, settings.eta), (Some("out"), Some(4), Eta::Never));
    assert!(settings.are_warnings_fatal && settings.formats == [OutputFormat::Terse], "the last format applies");
    assert_eq!(line("-P --name=a --size=1m").action, Action::ParseOnly);
    assert!(wrong("-o").render().contains("needs a value"));
}
