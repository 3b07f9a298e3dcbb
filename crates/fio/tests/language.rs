//! fio's language: what becomes of it, and what is said about what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trueio_fio::language::options::{Fate, OPTIONS, find};
use trueio_fio::language::{
    Action, Eta, FioError, FioRequest, OutputFormat, Surroundings, command_help, engine_help, program_help, read,
    read_job_file, render_table, show_command,
};
use trueio_job::TABLE;
use trueio_model::{JobSpec, Origin};

/// Files and variables that are only described.
#[derive(Default)]
struct World {
    files: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
}

impl World {
    fn with(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Self { files, ..Self::default() }
    }
}

impl Surroundings for World {
    fn read_file(&self, path: &str) -> Result<String, String> {
        self.files.get(path).cloned().ok_or_else(|| "there is none".to_owned())
    }
    fn read_bytes(&self, path: &str, most: usize) -> Result<(Vec<u8>, u64), String> {
        let bytes = self.read_file(path)?.into_bytes();
        Ok((bytes[..most.min(bytes.len())].to_vec(), bytes.len() as u64))
    }
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
    fn page_bytes(&self) -> u64 {
        4096
    }
    fn memory_bytes(&self) -> u64 {
        8 << 30
    }
    fn processors(&self) -> u64 {
        4
    }
    fn files_below(&self, directory: &str) -> Result<(Vec<String>, u64), String> {
        match directory {
            "tree" => Ok((vec!["tree/a".into(), "tree/b:c".into()], 1)),
            "bare" => Ok((Vec::new(), 3)),
            _ => Err("there is none".to_owned()),
        }
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn line(text: &str) -> FioRequest {
    read(&words(text), &World::default()).unwrap_or_else(|error| panic!("{text}\n{}", error.render()))
}

fn wrong(text: &str) -> FioError {
    match read(&words(text), &World::default()) {
        Err(error) => error,
        Ok(request) => panic!("{text} was accepted: {request:?}"),
    }
}

fn wrong_file(text: &str) -> String {
    match read_job_file("job.fio", text, &World::default()) {
        Err(error) => error.render(),
        Ok(request) => panic!("{text} was accepted: {request:?}"),
    }
}

fn text<'a>(job: &'a JobSpec, option: &str) -> &'a str {
    job.options.get(option).map_or("", |value| value.text.as_str())
}

// ---- the table ---------------------------------------------------------------------------------

/// Goal: no option that fio has is called unknown.
/// Method: the list of fio 3.42's options, made from `fio --cmdhelp=all`, against the table.
#[test]
fn every_option_of_fio_is_in_the_table_once_with_its_alias() {
    let mut seen = BTreeSet::new();
    for option in OPTIONS {
        for name in std::iter::once(&option.name).chain(option.aliases) {
            assert!(seen.insert(*name), "`{name}` stands twice");
        }
    }
    for names in include_str!("fio-names.txt").lines() {
        let mut names = names.split_whitespace();
        let first = names.next().expect("a name");
        assert_eq!(find(first).map(|option| option.name), Some(first));
        for alias in names {
            assert_eq!(find(alias).map(|option| option.name), Some(first), "{alias}");
        }
    }
    assert_eq!(include_str!("fio-names.txt").lines().count(), 238);
}

#[test]
fn what_is_done_has_a_row_and_what_is_not_has_a_reason_and_a_way_out() {
    for option in OPTIONS {
        match option.fate() {
            Fate::Row => assert!(option.row().is_some(), "{}", option.name),
            Fate::Reader(sentence) | Fate::Output(sentence) | Fate::NoEffect(sentence) => {
                assert!(sentence.len() > 9 && !sentence.ends_with('.'), "{}", option.name);
            }
            Fate::Only { reason, instead, .. } | Fate::Refused { reason, instead } => {
                assert!(reason.len() > 9 && !reason.ends_with('.'), "{}", option.name);
                assert!(instead.len() > 6 && !instead.ends_with('.'), "{}", option.name);
            }
        }
    }
}

/// Values, other than fio's defaults, that ask for what the job of the next test does anyway: what it says already, switches
/// that are off, and marks that fio, too, takes for none (0, and more than the depth).
const ASKS_FOR_WHAT_IS: &[(&str, &[&str])] = &[
    ("ioengine", &["io_uring"]),
    ("cmdprio_percentage", &["0"]),
    // A size without a share of its I/Os.
    ("cmdprio_bssplit", &["0", "1", "2", "7", "50"]),
    ("numjobs", &["2"]),
    ("rw", &["randrw"]),
    ("new_group", &["0"]),
    ("stonewall", &["0"]),
    ("time_based", &["0"]),
    ("iodepth_low", &["0", "7", "50"]),
];

/// Goal: nothing is ignored in silence.
/// Method: each option with values that its kind takes, in a job behind another: some value changes the
/// specification, is kept for the outputs, leaves a note, or is refused, as the table says of the option; and of an option
/// that is done no value is without any of it, unless it asks for what is done anyway.
#[test]
fn no_option_is_ignored_in_silence() {
    let plain = |request: &FioRequest| {
        let mut jobs = request.jobs.clone();
        jobs.iter_mut().filter_map(|job| job.fio.as_mut()).for_each(|fio| fio.given.clear());
        jobs
    };
    let base = "--size=1m --name=i --name=j --ioengine=io_uring --iodepth=4 --rw=randrw --runtime=5 --numjobs=2";
    let before = line(base);
    let mut silent = Vec::new();
    for option in OPTIONS {
        // What is read, and shows only beside other words.
        let beside = [
            "kb_base",
            "allow_file_create",
            "cpus_allowed_policy",
            "exec_prerun",
            "exec_postrun",
            "unique_filename",
            "opendir",
            "dedupe_working_set_percentage",
        ];
        let of_others = ["program", "arguments", "grace_time", "cmdprio_class", "cmdprio", "cmdprio_hint"];
        if beside.contains(&option.name) || of_others.contains(&option.name) {
            continue;
        }
        let candidates = [
            "1",
            "0",
            "2",
            "7",
            "i",
            "randwrite",
            "4k-8k",
            "4k/50:8k/50",
            "7%",
            "zipf:1.2",
            "dsync",
            "poisson",
            "50",
            "iops:1%",
            "bind:0",
        ];
        let mut outcomes = BTreeSet::new();
        let mut idle = Vec::new();
        for value in candidates.iter().copied().chain(option.words.split(' ').filter(|w| !w.is_empty())) {
            let outcome = match read(&words(&format!("{base} --{}={value}", option.name)), &World::default()) {
                Err(_) => "refused",
                Ok(after) if after.notes != before.notes => "noted",
                Ok(after) if plain(&after) != plain(&before) => "done",
                Ok(_) => "nothing",
            };
            outcomes.insert(outcome);
            if outcome == "nothing" && value != option.default {
                idle.push(value);
            }
        }
        // Every value of an option that is done counts: not one of them alone.
        if matches!(option.fate(), Fate::Row | Fate::Reader(_)) {
            let known = ASKS_FOR_WHAT_IS.iter().find(|known| known.0 == option.name).map_or(&[][..], |known| known.1);
            idle.retain(|value| !known.contains(value));
            silent.extend((!idle.is_empty()).then(|| format!("`{}` with {idle:?}", option.name)));
        }
        let expected = match option.fate() {
            // Done, but not of the engine of this job.
            Fate::Row | Fate::Reader(_) if ["create_on_open", "io_submit_mode"].contains(&option.name) => "refused",
            Fate::Row | Fate::Reader(_) => "done",
            Fate::Output(_) => "nothing",
            Fate::NoEffect(_) => "noted",
            Fate::Only { .. } | Fate::Refused { .. } => "refused",
        };
        assert!(outcomes.contains(expected), "`{}` is not {expected}: {outcomes:?}", option.name);
        if let Fate::Output(_) = option.fate() {
            let kept = line(&format!(
                "{base} --{}={}",
                option.name,
                option.words.split(' ').next().map_or("1", |w| if w.is_empty() { "1" } else { w })
            ));
            assert!(kept.jobs[1].fio.as_ref().unwrap().said(option.name).is_some(), "{}", option.name);
        }
    }
    assert!(silent.is_empty(), "they change nothing and say nothing: {}", silent.join(", "));
}

#[test]
fn the_page_about_fio_holds_what_the_table_renders() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/from-fio.md");
    let page = std::fs::read_to_string(&path).expect("docs/from-fio.md");
    let rendered = render_table();
    let begin = page.find("<!-- begin: rendered").expect("the begin of the rendered part");
    let end = page.find("<!-- end -->").expect("its end") + "<!-- end -->".len();
    if std::env::var_os("TRUEIO_BLESS").is_some() {
        let whole = format!("{}{}{}", &page[..begin], rendered.trim_end(), &page[end..]);
        std::fs::write(&path, whole).expect("docs/from-fio.md can be written");
        return;
    }
    assert!(page[begin..end] == *rendered.trim_end(), "docs/from-fio.md is stale; TRUEIO_BLESS=1 rewrites it");
}

// ---- the command line --------------------------------------------------------------------------

#[test]
fn one_dash_or_two_a_value_behind_an_equals_sign_or_apart_all_mean_the_same() {
    let one = line("--name=a --rw=randread --bs=8k --size=1g");
    for other in ["-name=a -rw=randread -bs=8k -size=1g", "-name a -rw randread --blocksize 8k --size 1g"] {
        let other = line(other);
        for option in ["rw", "bs", "size"] {
            assert_eq!(text(&other.jobs[0], option), text(&one.jobs[0], option), "{option}");
        }
    }
}

#[test]
fn a_beginning_that_only_one_option_has_is_that_option() {
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
    assert!(fio.is_on("group_reporting") && fio.said("group_reporting").unwrap().is_global);
    assert_eq!(text(&request.jobs[0], "time_based"), "true");
    // fio would call the log `--write_lat_log`.
    let error = wrong("--name=a --size=1m --write_bw_log --write_lat_log").render();
    assert!(error.contains("needs a value, and `--write_lat_log` is the next option"), "{error}");
    assert!(wrong("--name=a --direct").render().contains("`--direct` needs a value"));
}

#[test]
fn options_before_the_first_name_hold_for_all_jobs_and_for_job_files() {
    let request = line("--bs=8k --size=1m --name=a --name=b --bs=16k --name=global --rw=write --name=c");
    let sizes: Vec<&str> = request.jobs.iter().map(|job| text(job, "bs")).collect();
    assert_eq!(sizes, ["8k", "16k", "8k"]);
    assert_eq!(text(&request.jobs[2], "rw"), "write");
    assert_eq!(text(&request.jobs[0], "rw"), "", "what comes later does not hold for what came before");

    let world = World::with(&[("a.fio", "[a]\nsize=1m\n[b]\nsize=1m\nbs=64k\n"), ("b.fio", "[c]\nsize=1m\n")]);
    let request = read(&words("a.fio --bs=8k b.fio"), &world).unwrap();
    let sizes: Vec<&str> = request.jobs.iter().map(|job| text(job, "bs")).collect();
    assert_eq!(sizes, ["8k", "64k", "8k"]);
    let waits: Vec<&str> = request.jobs.iter().map(|job| text(job, "stonewall")).collect();
    assert_eq!(waits, ["", "", "true"], "a further job file waits for the one before");
}

#[test]
fn settings_of_the_program_stand_anywhere() {
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
fn help_says_what_scripts_look_for() {
    assert!(program_help().contains("json+"));
    let engines = engine_help(None).unwrap();
    assert!(engines.lines().any(|line| line.trim() == "libaio") && engines.lines().any(|line| line.trim() == "psync"));
    assert!(engine_help(Some("io_uring")).unwrap().contains("fixedbufs"));
    assert_eq!(engine_help(Some("nosuch")), None);
    assert!(command_help(Some("blocksize")).unwrap().contains("4096"));
    assert!(command_help(Some("cgroup")).unwrap().contains("refused"));
    assert_eq!(command_help(Some("nosuchthingatall")), None);
    // As in fio: of what is no option, the nearest one.
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
    let asked = "--bs=8k --group_reporting --name=a --rw=randrw --size=1m --numjobs=3 --name=b --size=2m --thread";
    let one = line(asked);
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

// ---- job files ---------------------------------------------------------------------------------

#[test]
fn sections_globals_comments_includes_and_variables_are_fios() {
    let mut world = World::with(&[
        (
            "dir/job.fio",
            "; a comment\n[global]\nsize=1m ; to the end of the line\ninclude common.inc\n\n[a]\nbs=${BS}\n\
          [global_too]\nrw=write\n[b]\nnumjobs=$ncpus*2\n[b]\nname=c\nthinktime=3*$ncpus\nstonewall\ndirect = 1\n",
        ),
        ("dir/common.inc", "iodepth=8\ninclude deeper.inc\n"),
        ("dir/deeper.inc", "ioengine=libaio\n"),
    ]);
    world.variables.insert("BS".into(), "64k".into());
    let text_of = world.files["dir/job.fio"].clone();
    let request = read_job_file("dir/job.fio", &text_of, &world).unwrap_or_else(|e| panic!("{}", e.render()));
    let names: Vec<&str> = request.jobs.iter().map(|job| job.fio.as_ref().unwrap().name.as_str()).collect();
    assert_eq!(names.len(), 10);
    assert_eq!((names[0], names[1], names[8], names[9]), ("a", "b", "b", "c"));
    let a = &request.jobs[0];
    assert_eq!((text(a, "bs"), text(a, "iodepth"), text(a, "ioengine")), ("64k", "8", "libaio"));
    assert_eq!(text(a, "rw"), "", "a later section for all does not reach back");
    assert_eq!(text(&request.jobs[1], "rw"), "write");
    let c = &request.jobs[9];
    assert_eq!((text(c, "thinktime"), text(c, "stonewall"), text(c, "direct")), ("12us", "true", "require"));
    assert_eq!(a.options["ioengine"].origin, Origin::File { path: "dir/deeper.inc".into(), line: 1 });
    assert_eq!(a.fio.as_ref().unwrap().said("bs").unwrap().text, "64k");
}

/// Goal: in a job file `kb_base` holds for all of its section, wherever it stands there, and for later ones.
#[test]
fn in_a_file_kb_base_holds_for_its_whole_section() {
    let file = "[global]\nsize=1m\nkb_base=1000\n[a]\nio_size=4k\n[b]\nkb_base=1024\n[c]\nio_size=4k\nkb_base=1024\n";
    let request = read_job_file("job.fio", file, &World::with(&[])).unwrap_or_else(|e| panic!("{}", e.render()));
    let sizes: Vec<[&str; 2]> = request.jobs.iter().map(|job| [text(job, "size"), text(job, "io_size")]).collect();
    assert_eq!(sizes, [["1000000", "4000"], ["1000000", ""], ["1000000", "4k"]]);
}

#[test]
fn mistakes_in_a_file_say_line_column_and_what_was_meant() {
    assert_eq!(
        wrong_file("[a]\nsize=1m\nbfs=4k\n[b\n"),
        "\
error: `bfs` is not an option
 --> job.fio:3:1
  |
3 | bfs=4k
  | ^^^ did you mean `bs`?

error: a section's name has no closing bracket
 --> job.fio:4:1
  |
4 | [b
  | ^^ write `[name]`
"
    );
    let error = wrong_file("[a]\nsize = 1m\n  iodepth = 4kfoo\n");
    assert!(error.contains("--> job.fio:3:15\n"), "{error}");
    assert!(error.contains("  |               ^^^"), "{error}");
    assert!(wrong_file("bs=4k\n").contains("stands before any section"));
    assert!(wrong_file("[a]\nbs\n").contains("`bs` has no value"));
    assert!(wrong_file("[a]\nbs=4k\u{1b}[31m\n").contains("a control character"));
    let mut world = World::default();
    world.variables.insert("X".into(), "1m\nfilename=/etc/passwd".into());
    let error = read_job_file("job.fio", "[a]\nsize=${X}\n", &world).unwrap_err().render();
    assert!(error.contains("a variable brings a control character"), "{error}");
    assert!(wrong_file("[a] x\n").contains("follows a section's name"));
    assert!(wrong_file("# nothing\n").contains("defines no job"));
    // An option of an engine that is not here is known by name, whether the engine is named before or after it.
    for file in ["[a]\nnfs_url=nfs://x/y\nioengine=nfs\n", "[a]\nioengine=nfs\nnfs_url=nfs://x/y\n"] {
        let error = wrong_file(file);
        assert!(error.contains("`nfs_url` belongs to an engine that is not here: storage across a network"), "{error}");
        assert!(error.contains("instead: mount or map it") && !error.contains("is not an option"), "{error}");
    }
    assert!(wrong_file("[a]\nsize=${X\n").contains("no closing brace"));
}

#[test]
fn a_file_that_includes_itself_ends() {
    let world = World::with(&[("a.fio", "[a]\nsize=1m\ninclude a.inc\n"), ("a.inc", "include a.inc\ninclude a.inc\n")]);
    let error = read(&words("a.fio"), &world).unwrap_err().render();
    assert!(error.contains("does a file include itself?"), "{error}");
}

// ---- meaning -----------------------------------------------------------------------------------

#[test]
fn what_fio_does_by_default_is_written_into_the_job_and_says_so() {
    let job = &line("--name=a --size=1m").jobs[0];
    for (option, value) in [("direct", "off"), ("unlink", "false"), ("ioengine", "psync"), ("filename", "a.0.0")] {
        assert_eq!(text(job, option), value);
        assert_eq!(job.options[option].origin, Origin::Preset { name: "fio".into() }, "{option}");
    }
}

#[test]
fn each_clone_is_a_job_with_files_and_a_seed_of_its_own() {
    let request = line("--name=a --size=1m --numjobs=3 --nrfiles=2 --directory=x:y --randseed=7 --offset_increment=1m");
    let files: Vec<&str> = request.jobs.iter().map(|job| text(job, "filename")).collect();
    assert_eq!(files, ["a.0.0:a.0.1", "a.1.0:a.1.1", "a.2.0:a.2.1"]);
    let directories: Vec<&str> = request.jobs.iter().map(|job| text(job, "directory")).collect();
    assert_eq!(directories, ["x", "y", "x"]);
    let seeds: BTreeSet<&str> = request.jobs.iter().map(|job| text(job, "randseed")).collect();
    assert!(seeds.len() == 3 && seeds.contains("7"));
    let offsets: Vec<&str> = request.jobs.iter().map(|job| text(job, "offset")).collect();
    assert_eq!(offsets, ["", "1m", "2m"]);
    let names: Vec<&str> = request.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a.0", "a.1", "a.2"]);
    let numbers: Vec<u32> = request.jobs.iter().map(|job| job.fio.as_ref().unwrap().number).collect();
    assert_eq!(numbers, [1, 2, 3]);

    let shared = line("--name=a --size=1m --numjobs=2 --filename=/dev/sdx");
    assert!(shared.jobs.iter().all(|job| text(job, "filename") == "/dev/sdx"));
    let named = line("--name=a --size=1m --filename_format=f.$FILENUM.$jobname --nrfiles=2");
    assert_eq!(text(&named.jobs[0], "filename"), "f.0.a:f.1.a");
}

/// Goal: jobs that are to begin at times of their own do, though they are called the same; and a seed of one's own changes
/// them.
#[test]
fn a_delay_from_a_range_is_drawn_by_the_jobs_place_or_its_seed() {
    let delays = |words: &str| {
        let request = line(&format!("--size=1m --startdelay=1-9 {words}"));
        request.jobs.iter().map(|job| text(job, "startdelay").to_owned()).collect::<Vec<_>>()
    };
    let of_place = delays("--name=a --name=a --name=b --numjobs=2");
    let different: BTreeSet<&String> = of_place.iter().collect();
    assert_eq!((of_place.len(), different.len()), (4, 4), "{of_place:?}");
    assert_eq!(delays("--name=c --name=a --name=b --numjobs=2"), of_place, "a name has no part in it");
    assert_ne!(delays("--randseed=5 --name=a"), delays("--randseed=6 --name=a"));
    assert_eq!(delays("--randseed=5 --name=a"), delays("--name=b --randseed=5"));
}

#[test]
fn groups_begin_at_a_stonewall_and_at_a_new_group_if_a_job_came_before() {
    let request =
        line("--size=1m --name=a --stonewall --name=b --new_group --name=c --stonewall --name=d --wait_for=c --name=e");
    let of = |job: &JobSpec| (job.fio.as_ref().unwrap().group, text(job, "stonewall") == "true");
    let groups: Vec<(u32, bool)> = request.jobs.iter().map(of).collect();
    assert_eq!(groups, [(0, false), (1, false), (2, true), (2, true), (2, false)]);
    let jobs = line("--size=1m --name=a --numjobs=2 --name=b --name=c --wait_for=a").jobs;
    assert_eq!(jobs[3].options["wait_for"].text, "a.0,a.1");
    assert!(jobs.iter().all(|job| !job.options.contains_key("stonewall")), "those beside it go on");
    assert!(wrong("--size=1m --name=a --name=b --wait_for=z").render().contains("names no job before this one"));
}

#[test]
fn a_depth_on_an_engine_that_blocks_becomes_one_and_says_so() {
    let request = line("--name=a --size=1m --iodepth=32");
    assert_eq!(text(&request.jobs[0], "iodepth"), "1");
    assert!(request.notes[0].contains("`iodepth=32` becomes 1"), "{:?}", request.notes);
    let request = line("--name=a --size=1m --iodepth=32 --ioengine=libaio --iodepth_batch=0");
    assert_eq!((text(&request.jobs[0], "iodepth"), text(&request.jobs[0], "iodepth_batch")), ("32", "32"));
    assert!(wrong("--name=a --size=1m --iodepth=32 --warnings-fatal").render().contains("becomes 1"));
}

#[test]
fn as_many_completions_are_taken_as_are_waited_for_unless_it_polls_or_says_more() {
    let of = |asked: &str| {
        let job = line(&format!("--name=a --size=1m --iodepth=8 --ioengine=libaio {asked}")).jobs.remove(0);
        text(&job, "iodepth_batch_complete_max").to_owned()
    };
    assert_eq!(of(""), "1");
    assert_eq!(of("--iodepth_batch_complete=4"), "4");
    assert_eq!(of("--iodepth_batch_complete_max=6"), "6");
    assert_eq!(of("--iodepth_batch_complete_min=0"), "", "all that are there");
    assert_eq!(of("--iodepth=1"), "");
}

#[test]
fn reads_and_writes_keep_their_own_rates() {
    let of = |asked: &str| {
        let job = line(&format!("--name=a --size=1m {asked}")).jobs.remove(0);
        (text(&job, "rate").to_owned(), text(&job, "rate_iops").to_owned(), text(&job, "rwmixread").to_owned())
    };
    let expect = |rate: &str, iops: &str, mix: &str| (rate.to_owned(), iops.to_owned(), mix.to_owned());
    assert_eq!(of("--rate=1m"), expect("1m", "", ""));
    assert_eq!(of("--rw=write --rate=1m,2m"), expect("2m", "", ""));
    assert_eq!(of("--rw=randrw --rate_iops=300,100"), expect("", "300,100", ""));
    assert_eq!(of("--rw=randrw --rwmixread=70 --rate_iops=100"), expect("", "100,100", "70"));
    let least = line("--name=a --size=1m --rw=rw --rate_min=1m --rate_iops_min=10,5").jobs.remove(0);
    assert_eq!((text(&least, "rate_min"), text(&least, "rate_iops_min")), ("1m,1m", "10,5,5"));
    let read = line("--name=a --size=1m --rate_min=1m").jobs.remove(0);
    assert_eq!(text(&read, "rate_min"), "1m");
    // One direction may have none, and what comes with the writes has theirs.
    assert_eq!(of("--rw=rw --rate=1m,"), expect("1m,0", "", ""));
    assert_eq!(of("--rw=randrw --rate_iops=,100"), expect("", "0,100", ""));
    assert_eq!(of("--rw=trimwrite --rate=,1m"), expect("1m", "", ""));
    assert_eq!(of("--rw=randtrimwrite --rate=1m,"), expect("0", "", ""));
}

#[test]
fn direct_and_buffered_must_agree() {
    assert_eq!(text(&line("--name=a --size=1m --buffered=0").jobs[0], "direct"), "require");
    assert_eq!(text(&line("--direct=1 --name=a --size=1m --buffered=1").jobs[0], "direct"), "off");
    let error = wrong_file("[a]\nsize=1m\ndirect=1\nbuffered=1\n");
    assert!(error.contains("`buffered=1` (job.fio:4) and `direct=1` (job.fio:3) contradict each other"), "{error}");
}

#[test]
fn commands_in_a_job_are_refused_unless_the_command_line_allows_them() {
    let error = wrong_file("[a]\nsize=1m\nexec_prerun=rm -rf /\n");
    assert!(error.contains("--allow-exec"), "{error}");
    let request = line("--allow-exec --name=a --size=1m --exec_prerun=true");
    assert!(request.settings.allows_exec);
}

#[test]
fn a_job_file_permits_no_destruction_starts_no_program_and_asks_no_network() {
    for option in
        ["overwrite_signature=ext4", "overwrite_existing=/dev/sdx", "command=rm", "source=http://x/y", "strace=1"]
    {
        let error = wrong_file(&format!("[a]\nsize=1m\n{option}\n"));
        assert!(error.contains("job.fio:3:1"), "{error}");
    }
    assert_eq!(text(&line("--name=a --size=1m --overwrite_signature=ext4").jobs[0], "overwrite_signature"), "ext4");
    assert!(wrong("--name=a --size=1m --source=http://x/y").render().contains("no option of fio's language"));
}

#[test]
fn what_is_not_done_is_refused_by_name_with_the_nearest_thing_that_works() {
    for (asked, sentence) in [
        ("--cgroup=x", "instead: `systemd-run"),
        ("--allow_mounted_write=1", "unmount it"),
        ("--ioengine=rados", "storage across a network"),
        ("--merge_blktrace_file=x", "`blkparse` prints a trace"),
        ("--bssplit=4k/80:8k/80", "sum to 160"),
    ] {
        let error = wrong(&format!("--name=a --size=1m {asked}")).render();
        assert!(error.contains(sentence), "{asked}: {error}");
    }
}

#[test]
fn what_has_no_effect_is_noted_and_what_asks_for_nothing_is_not() {
    let request = line("--name=a --size=1m --thread --random_generator=lfsr --verify=0 --zonemode=none --pre_read=0");
    assert_eq!(request.notes.len(), 2, "{:?}", request.notes);
    assert!(request.notes[0].starts_with("`thread` has no effect"));
}

#[test]
fn units_of_fio_are_kept_and_its_traps_are_not() {
    let of = |asked: &str, option: &str| text(&line(&format!("--name=a --size=1g {asked}")).jobs[0], option).to_owned();
    assert_eq!(of("--runtime=1min", "runtime"), "60s");
    assert_eq!(of("--runtime=1sec", "runtime"), "1s");
    assert_eq!(of("--io_size=1.5m", "io_size"), "1536k");
    assert_eq!(of("--io_size=1mib", "io_size"), "1000000");
    assert_eq!(of("--kb_base=1000 --io_size=4k", "io_size"), "4000");
    // On the command line it holds from its place on, also for what the reader handles itself.
    assert_eq!(of("--io_size=4k --kb_base=1000", "io_size"), "4k");
    assert_eq!(of("--rate=4k --kb_base=1000", "rate"), of("--rate=4096", "rate"));
    assert_eq!(of("--kb_base=1000 --rate=4k --kb_base=1024", "rate"), of("--rate=4000", "rate"));
    assert_eq!(of("--thinktime=50", "thinktime"), "50us");
    assert_eq!(of("--startdelay=2-2", "startdelay"), "2s");
    assert_eq!(of("--cpumask=5", "cpus_allowed"), "0,2");
    assert_eq!(of("--bs=4096B", "bs"), "4k");
}

// ---- engines without data ------------------------------------------------------------------------

#[test]
fn an_engine_on_names_gets_its_count_and_no_file_names_and_cpuio_its_load() {
    let job = &line("--name=n --ioengine=filecreate --nrfiles=500 --filesize=4k --rw=write").jobs[0];
    assert_eq!((text(job, "nrfiles"), text(job, "filename")), ("500", ""));
    let job = &line("--name=b --ioengine=cpuio --cpuload=30 --cpuchunks=1000 --runtime=1").jobs[0];
    assert_eq!((text(job, "cpuload"), text(job, "cpuchunks")), ("30", "1ms"));
}

#[test]
fn what_stands_behind_rw_becomes_steps() {
    let job = |text: &str| line(&format!("--name=j --size=1m {text}")).jobs[0].clone();
    assert_eq!(text(&job("--rw=randread:8"), "random_every"), "8");
    let skips = job("--rw=write:4k");
    assert_eq!((text(&skips, "rw"), text(&skips, "sequential_skip")), ("write", "4096"));
    assert_eq!(text(&job("--rw=read:-8k"), "sequential_skip"), "-8192");
    assert_eq!(text(&job("--rw=randtrimwrite"), "rw"), "randtrimwrite");
    assert_eq!(text(&job("--ba=512"), "blockalign"), "512");
    assert_eq!(text(&job("--ba=8k,16k"), "blockalign"), "8k,16k,16k");
    assert_eq!(text(&job("--percentage_random=100,0"), "percentage_random"), "100,0,0");
    assert!(wrong("--name=j --size=1m --rw=write:x").render().contains("is not a number"));
}

/// Goal: what fio takes of two numbers and of several sizes is taken, and means the same.
#[test]
fn numbers_for_each_direction_may_have_colons_and_the_size_that_says_most_counts() {
    let job = |text: &str| line(&format!("--name=j --size=1m {text}")).jobs[0].clone();
    for text_ in ["1m,2m", "1m:2m", "1m-2m"] {
        assert_eq!(text(&job(&format!("--rw=rw --rate={text_}")), "rate"), "1m,2m", "{text_}");
    }
    assert_eq!(text(&job("--rw=write --rate_iops=100-200"), "rate_iops"), "200");
    let sizes = |job: &JobSpec| ["bs", "bsrange", "bssplit"].map(|name| text(job, name).to_owned());
    // In whatever order they stand.
    for options in ["--bs=4k --bsrange=1k-2k", "--bsrange=1k-2k --bs=4k"] {
        assert_eq!(sizes(&job(options)), ["", "1k-2k", ""], "{options}");
    }
    let request = line("--name=j --size=1m --bs=4k --bsrange=1k-2k --bssplit=8k/50:16k/50");
    assert_eq!(sizes(&request.jobs[0]), ["", "", "8k/50:16k/50"]);
    assert!(
        request.notes.contains(&"`bs` has no effect beside `bssplit`, as in fio".to_owned()),
        "{:?}",
        request.notes
    );
    assert_eq!(text(&job("--loops=0"), "loops"), "1", "as in fio");
    // Counted with strace: where both are due fio calls fsync.
    let flushes = |options: &str| ["fsync", "fdatasync"].map(|name| text(&job(options), name).to_owned());
    assert_eq!(flushes("--rw=write --fsync=1 --fdatasync=1"), ["1", ""]);
    assert_eq!(flushes("--rw=write --fsync=2 --fdatasync=4"), ["2", ""]);
    assert_eq!(flushes("--rw=write --fsync=4 --fdatasync=2"), ["4", "2"]);
    assert_eq!(flushes("--rw=write --fsync=0 --fdatasync=2"), ["0", "2"]);
    // What is said for a job holds over what is said for all.
    let request = line("--bsrange=1k-2k --name=j --size=1m --bs=4k");
    assert_eq!(sizes(&request.jobs[0]), ["4k", "", ""]);
}

/// Goal: `iomem_align` is what fio makes of it: so many bytes behind the beginning of a page.
#[test]
fn buffers_begin_behind_a_page_as_far_as_iomem_align_says() {
    let offset =
        |options: &str| text(&line(&format!("--name=j --size=1m {options}")).jobs[0], "buffer_offset").to_owned();
    for (said, bytes) in [("512", "512"), ("4k", "0"), ("16k", "0"), ("3000", "3000"), ("5000", "904"), ("0", "0")] {
        assert_eq!(offset(&format!("--iomem_align={said}")), bytes, "{said}");
    }
    assert_eq!(offset("--mem_align=1"), "1");
    assert!(wrong("--name=j --size=1m --iomem_align=x").render().contains("not a number"));
    assert!(wrong("--name=j --size=1m --iomem_align=1 --buffer_offset=2").render().contains("say one of them"));
    assert!(wrong("--name=j --size=1m --ioengine=mmap --thp=1").render().contains("never reach the file"));
    let stat = |more: &str| text(&line(&format!("--name=j --size=1m {more}")).jobs[0], "stat_type").to_owned();
    assert_eq!(stat("--ioengine=filestat"), "stat", "as in fio");
    assert_eq!(stat("--ioengine=filestat --stat_type=statx"), "statx");
    assert_eq!(stat("--ioengine=psync"), "");
}

#[test]
fn a_job_has_a_name() {
    for (words, file) in [("--name= --rw=read --size=4k", None), ("j.fio", Some("[a]\nname=\nsize=4k\n"))] {
        let world = World::with(&file.map(|text| ("j.fio", text)).into_iter().collect::<Vec<_>>());
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let error = read(&words, &world).expect_err("a job without a name").render();
        assert!(error.contains("`name` is empty"), "{error}");
    }
}

#[test]
fn each_clone_replays_the_next_log_of_a_list() {
    let request = line("--name=a --read_iolog=x:y --numjobs=3 --read_iolog_chunked=1");
    let logs: Vec<&str> = request.jobs.iter().map(|job| job.options["read_iolog"].text.as_str()).collect();
    assert_eq!(logs, ["x", "y", "x"]);
    assert!(request.jobs.iter().all(|job| !job.options.contains_key("filename")), "the log names the files");
}

// ---- priorities of single I/Os -----------------------------------------------------------------

#[test]
fn the_five_options_of_priorities_become_one_of_ours() {
    let shares = |options: &str| {
        let request = line(&format!("--name=a --size=1m --ioengine=libaio --rw=randrw {options}"));
        text(&request.jobs[0], "cmdprio_bssplit").to_owned()
    };
    for (options, expected) in [
        ("--cmdprio_percentage=20", "*/20/1/0"),
        ("--cmdprio_percentage=20,0 --cmdprio_class=2 --cmdprio=1", "*/20/2/1,"),
        ("--cmdprio_percentage=20,30,40 --cmdprio_class=2,3 --cmdprio=1,2 --cmdprio_hint=0,7", "*/20/2/1,*/30/3/2/7"),
        ("--cmdprio_percentage=5 --cmdprio_class=0", "*/5/1/0"),
        ("--cmdprio_percentage=0", ""),
        ("--cmdprio_percentage=0 --cmdprio_bssplit=4k/10", "4k/10/1/0"),
        ("--cmdprio_bssplit=4k/10:64k/20/3/0,8k/50/2/1/4 --cmdprio_class=2", "4k/10/2/0:64k/20/3/0,8k/50/2/1/4"),
        ("--cmdprio_bssplit=4k/10, --cmdprio=3", "4k/10/1/3,"),
        ("--cmdprio_bssplit=4k/0:8k", ""),
        ("--cmdprio_bssplit=4k/1,8k/2,16k/3", "4k/1/1/0,8k/2/1/0"),
    ] {
        assert_eq!(shares(options), expected, "{options}");
    }
    let lonely = line("--name=a --size=1m --ioengine=libaio --cmdprio_class=2");
    assert!(lonely.notes.iter().any(|note| note.contains("`cmdprio_class` has no effect")), "{:?}", lonely.notes);
}

#[test]
fn priorities_that_contradict_each_other_or_cannot_be_are_refused() {
    for (options, needle) in [
        ("--cmdprio_percentage=20 --cmdprio_bssplit=4k/10", "contradict each other"),
        ("--cmdprio_percentage=101", "from 0 to 100"),
        ("--cmdprio_percentage=1,2,3,4", "are three"),
        ("--cmdprio=8", "from 0 to 7"),
        ("--cmdprio_class=4", "from 0 to 3"),
        ("--cmdprio_hint=1024", "from 0 to 1023"),
        ("--cmdprio_bssplit=4k/70:4k/40", "sum to 110"),
        ("--cmdprio_bssplit=4k/10/2/9", "from 0 to 7"),
        ("--cmdprio_bssplit=4k/10/2", "SIZE/PERCENT"),
        ("--cmdprio_bssplit=4kx/10", "no unit"),
    ] {
        let error = wrong(&format!("--name=a --size=1m --ioengine=libaio {options}")).render();
        assert!(error.contains(needle), "{options}: {error}");
    }
}

#[test]
fn opendir_names_files_to_read_and_none_to_write() {
    let request = line("--name=o --opendir=tree --rw=randread --nrfiles=3");
    assert_eq!(text(&request.jobs[0], "filename"), "tree/a:tree/b\\:c");
    assert_eq!(request.notes.len(), 2, "{:?}", request.notes);
    for (more, words) in [
        ("--opendir=tree --rw=randwrite", "only files that are named are written"),
        ("--opendir=tree --filename=x", "both say where the files are"),
        ("--opendir=bare", "no file below `bare`"),
        ("--opendir=gone", "there is none"),
    ] {
        let error = wrong(&format!("--name=o {more}")).render();
        assert!(error.contains(words), "{more}\n{error}");
    }
}

#[test]
fn options_that_have_an_own_row_under_conditions_get_it_only_then() {
    let of = |text: &str| line(&format!("--name=a --size=1m --rw=write {text}")).jobs.remove(0);
    let percent = "dedupe_working_set_percentage";
    assert_eq!(text(&of("--dedupe_mode=working_set"), percent), "5");
    assert_eq!(text(&of("--dedupe_mode=working_set --dedupe_working_set_percentage=20"), percent), "20");
    assert_eq!(text(&of("--dedupe_mode=repeat --dedupe_working_set_percentage=20"), percent), "");
    assert_eq!(text(&of("--offset=10%"), "offset_align"), "0");
    assert_eq!(text(&of("--offset=10% --offset_align=4k"), "offset_align"), "4k");
    assert_eq!(text(&of("--offset=4k"), "offset_align"), "");
    assert_eq!(text(&of(""), "invalidate"), "each_pass");
    assert_eq!(text(&of("--invalidate=0"), "invalidate"), "off");
    assert_eq!(text(&of("--ignore_error=,ENOSPC:EDQUOT --error_dump=0"), "ignore_error"), ",ENOSPC:EDQUOT");
    assert!(wrong("--name=a --size=1m --ignore_error=,,EILSEQ").render().contains("would pass over blocks"));
    for text in ["--write_barrier=8", "--experimental_verify=1 --verify=crc32c", "--continue_on_error=write"] {
        of(text);
    }
}

/// What stands in job files of fio's own examples.
#[test]
fn words_of_fios_own_examples_are_taken() {
    let names =
        line("--name=t0 --create_on_open=1 --nrfiles=31250 --ioengine=filecreate --fallocate=none --filesize=4k");
    assert!(names.notes.iter().any(|note| note.contains("`create_on_open` has no effect")), "{:?}", names.notes);
    let zones = line("--name=z --size=2g --rw=randread --norandommap --random_distribution=zoned:50/5:30/15:20/");
    assert_eq!(text(&zones.jobs[0], "random_distribution"), "zoned:50/5:30/15:20/80");
    let threads = line("--name=a --size=1m --threads=1 --threads");
    assert!(threads.notes.iter().any(|note| note.contains("always threads")), "{:?}", threads.notes);
    assert!(wrong("--name=a --size=1m --rw=randrw --create_on_open=1").render().contains("just writes"));
}

#[test]
fn what_stands_behind_the_choice_of_files_is_how_many_ios_each_has() {
    let said = |value: &str| {
        let job = line(&format!("--name=z --size=2m --nrfiles=4 --file_service_type={value}")).jobs.remove(0);
        let ios = job.options.get("file_service_ios").map_or(String::new(), |value| value.text.clone());
        format!("{} {ios}", text(&job, "file_service_type"))
    };
    assert_eq!(said("roundrobin:4"), "roundrobin 4");
    assert_eq!(said("random:8"), "random 8");
    assert_eq!(said("sequential:2"), "sequential ");
    assert_eq!(said("roundrobin:0"), "sequential ");
    assert_eq!(said("random:8 --file_service_type=roundrobin"), "roundrobin ");
    // Or where the popular file is.
    assert_eq!(said("zipf"), "zipf:1.1 ");
    assert_eq!(said("random:8 --file_service_type=zipf:1.2:0.3"), "zipf:1.2:0.3 ");
    assert_eq!(said("pareto:0.2"), "pareto:0.2 ");
    assert_eq!((said("gauss"), said("normal:20")), ("normal:8.33 ".into(), "normal:10.14 ".into()));
    for (bad, reason) in
        [("zipf:", "``"), ("pareto:1", "between 0 and 1"), ("normal:101", "at most 100"), ("zipf:1.1x", "`1.1x`")]
    {
        let problems = wrong(&format!("--name=z --size=2m --nrfiles=4 --file_service_type={bad}")).render();
        assert!(problems.contains(reason), "{problems}");
    }
}

#[test]
fn zones_of_bytes_are_read_with_fios_units() {
    let said = |value: &str| {
        text(&line(&format!("--name=z --size=2g --rw=randread {value}")).jobs[0], "random_distribution").to_owned()
    };
    assert_eq!(said("--random_distribution=zoned_abs:50/100k:30/200k:20/500k"), "zoned_abs:50/100k:30/200k:20/500k");
    assert_eq!(said("--random_distribution=zoned_abs:60/4M:40/1048576"), "zoned_abs:60/4m:40/1m");
    assert_eq!(said("--kb_base=1000 --random_distribution=zoned_abs:100/1MB"), "zoned_abs:100/1000000");
    let bad = wrong("--name=z --size=2g --rw=randread --random_distribution=zoned_abs:50/1m:50/2q").render();
    assert!(bad.contains("2q"), "{bad}");
}

/// Goal: the plan has a file's bytes where its name stood, the record what was typed, and what does not fit is told.
#[test]
fn a_files_bytes_are_the_pattern_that_names_it() {
    let around = World::with(&[("pat", "HELLO"), ("long", &"x".repeat(5000))]);
    let of = |text: &str| read(&words(text), &around);
    let request =
        of("--name=a --size=1m --rw=write --buffer_pattern=0x12'pat'\"it's\" --verify_pattern=%o'pat'").unwrap();
    let job = &request.jobs[0];
    assert_eq!(text(job, "buffer_pattern"), "0x1248454c4c4f69742773");
    assert_eq!(text(job, "verify_pattern"), "%o0x48454c4c4f");
    let fio = job.fio.as_ref().expect("of fio");
    assert_eq!(fio.said("verify_pattern").map(|word| word.text.as_str()), Some("%o'pat'"));
    assert!(request.notes.is_empty(), "{:?}", request.notes);
    let request = of("--name=a --size=1m --rw=write --buffer_pattern='long'").unwrap();
    assert_eq!(text(&request.jobs[0], "buffer_pattern").len(), 2 + 2 * 4096);
    assert!(request.notes[0].contains("of the 5000 bytes of `long` the first 4096"), "{:?}", request.notes);
    for wrong in ["'nosuch'", "'pat", "'pat'x", "%o'pat'"] {
        let error = of(&format!("--name=a --size=1m --rw=write --buffer_pattern={wrong}")).expect_err(wrong);
        assert!(error.render().contains("`buffer_pattern`") && error.render().contains('^'), "{}", error.render());
    }
    let file = "[global]\nbuffer_pattern='pat'\n[a]\nsize=1m\nrw=write\n";
    let request = read_job_file("job.fio", file, &around).unwrap();
    assert_eq!(text(&request.jobs[0], "buffer_pattern"), "0x48454c4c4f");
}

/// Goal: memory that fio maps from a file is mapped without it where that makes no difference, with a word about it.
#[test]
fn a_file_for_buffers_is_left_alone_or_refused() {
    for (said, taken) in [("mmap:b", "mmap"), ("mmaphuge:/huge/b", "mmaphuge"), ("mmapshared", "mmapshared")] {
        let request = line(&format!("--name=a --size=1m --rw=write --iomem={said}"));
        assert_eq!(text(&request.jobs[0], "mem"), taken);
        let told = request.notes.iter().filter(|note| note.contains("is not touched")).count();
        assert_eq!(told, usize::from(said.contains(':')), "{:?}", request.notes);
    }
    for said in ["mmapshared:b", "mmap:", "malloc:b"] {
        assert!(wrong(&format!("--name=a --size=1m --mem={said}")).render().contains(said), "{said}");
    }
}

/// Goal: a user of fio finds its options under fio's names.
/// Method: the list of fio 3.42's options stands in `tests/fio-names.txt` (name, alias), made
/// from `fio --cmdhelp`; the options of single engines, which that list lacks, stand here.
#[test]
fn rows_marked_as_fio_options_are_exactly_those_in_fios_list() {
    const OF_ENGINES: [&str; 19] = [
        "hipri",
        "fixedbufs",
        "registerfiles",
        "sqthread_poll",
        "sqthread_poll_cpu",
        "force_async",
        "nonvectored",
        "program",
        "grace_time",
        "std_redirect",
        "uncached",
        "cmdprio_bssplit",
        "nowait",
        "cpuload",
        "cpuchunks",
        "cpumode",
        "exit_on_io_done",
        "hipri_percentage",
        "stat_type",
    ];
    let known: BTreeSet<&str> = include_str!("fio-names.txt").split_whitespace().chain(OF_ENGINES).collect();
    for row in TABLE {
        assert_eq!(row.is_in_fio, known.contains(row.name), "{}", row.name);
        for alias in row.fio_names {
            assert!(known.contains(alias), "{}: `{alias}` is not fio's", row.name);
        }
    }
}
