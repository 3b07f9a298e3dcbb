//! The options of the language: their names, rows and effects.

use super::{World, line, words, wrong};
use std::collections::BTreeSet;
use std::path::Path;
use trueio_fio::language::options::{Fate, FioOption, find, options_of_fio};
use trueio_fio::language::{FioRequest, Refused, read, render_refusals, render_table};
use trueio_job::TABLE;

/// Goal: no option that fio has is called unknown.
/// Method: the list of fio 3.42's options, made from `fio --cmdhelp=all`, against the table.
#[test]
fn every_option_of_fio_is_known_by_its_name_and_its_alias() {
    for names in include_str!("../../fio-names.txt").lines() {
        let mut names = names.split_whitespace();
        let first = names.next().expect("a name");
        assert_eq!(find(first).map(|option| option.name()), Some(first));
        assert!(find(first).is_some_and(|option| option.is_in_fio()), "{first}");
        for alias in names {
            assert_eq!(find(alias).map(|option| option.name()), Some(first), "{alias}");
        }
    }
    assert_eq!(include_str!("../../fio-names.txt").lines().count(), 238);
}

#[test]
fn every_option_has_a_row_or_a_reason_and_an_alternative() {
    for option in options_of_fio() {
        let name = option.name();
        match option.fate() {
            Fate::Row => assert!(option.row().is_some(), "{name}"),
            Fate::Rule(sentence) | Fate::Output(sentence) | Fate::NoEffect(sentence) => {
                assert!(sentence.len() > 9 && !sentence.ends_with('.'), "{name}");
            }
            Fate::Only { reason, instead, .. } | Fate::Refused { reason, instead } => {
                assert!(reason.len() > 9 && !reason.ends_with('.'), "{name}");
                assert!(instead.len() > 6 && !instead.ends_with('.'), "{name}");
            }
        }
    }
}

/// Values, other than fio's defaults, that do not change the job of the next test: values that it has, switches that are off,
/// and low marks without effect in fio, too (0, and more than the depth).
const WITHOUT_CHANGE: &[(&str, &[&str])] = &[
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

/// Options with an effect only next to others, or on the process.
const DEPENDENT: &[&str] = &[
    "kb_base",
    "allow_file_create",
    "cpus_allowed_policy",
    "exec_prerun",
    "exec_postrun",
    "unique_filename",
    "opendir",
    "dedupe_working_set_percentage",
    "bs_is_seq_rand",
    "lockmem",
    "cgroup_weight",
];

/// Returns true if the value is fio's default, in any spelling.
fn is_default(option: FioOption, value: &str) -> bool {
    let default = option.default_text();
    let canonical = |text: &str| option.row().and_then(|row| row.canonical(text).ok());
    value == default || canonical(value).is_some_and(|value| canonical(&default) == Some(value))
}

/// Goal: no option is ignored without a message.
/// Method: each option is set to values of its kind, in a job after another one. Some value changes the specification, is kept
/// for the outputs, adds a note, or is refused, according to the table. For an option that the language applies, every value
/// does one of these, unless it changes nothing.
#[test]
fn no_option_is_ignored_without_a_message() {
    let plain = |request: &FioRequest| {
        let mut jobs = request.jobs.clone();
        jobs.iter_mut().filter_map(|job| job.fio.as_mut()).for_each(|fio| fio.given.clear());
        jobs
    };
    let base = "--size=1m --name=i --name=j --ioengine=io_uring --iodepth=4 --rw=randrw --runtime=5 --numjobs=2";
    let before = line(base);
    let mut silent = Vec::new();
    for option in options_of_fio() {
        let name = option.name();
        // `--profile` on a command line is the program's option, and refused.
        let of_others = ["program", "arguments", "grace_time", "cmdprio_class", "cmdprio", "cmdprio_hint", "profile"];
        if DEPENDENT.contains(&name) || of_others.contains(&name) {
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
            "write:8",
        ];
        let within = if name == "verify_interval" { &["512"][..] } else { &[] };
        let mut outcomes = BTreeSet::new();
        let mut idle = Vec::new();
        for value in candidates.iter().chain(within).copied().chain(option.words()) {
            let outcome = match read(&words(&format!("{base} --{name}={value}")), &World::default()) {
                Err(_) => "refused",
                Ok(after) if after.notes != before.notes => "noted",
                Ok(after) if plain(&after) != plain(&before) => "done",
                Ok(_) => "nothing",
            };
            outcomes.insert(outcome);
            if outcome == "nothing" && !is_default(option, value) {
                idle.push(value);
            }
        }
        // Every value of an option that is done counts: not one of them alone.
        if matches!(option.fate(), Fate::Row | Fate::Rule(_)) {
            let known = WITHOUT_CHANGE.iter().find(|known| known.0 == name).map_or(&[][..], |known| known.1);
            idle.retain(|value| !known.contains(value));
            silent.extend((!idle.is_empty()).then(|| format!("`{name}` with {idle:?}")));
        }
        let expected = match option.fate() {
            // Only for jobs that write at random.
            Fate::Rule(_) if name == "sprandom" => "refused",
            // Done, but not for the operations of this job, or only next to another option.
            Fate::Row | Fate::Rule(_)
                if [
                    "donorname",
                    "create_on_open",
                    "random_generator",
                    "random_sequence_stride",
                    "io_submit_mode",
                    "num_range",
                    "spr_cs",
                    "spr_num_regions",
                    "spr_op",
                    "rw_sequencer",
                    "verify_only",
                ]
                .contains(&name) =>
            {
                "noted"
            }
            Fate::Row | Fate::Rule(_) => "done",
            Fate::Output(_) => "nothing",
            Fate::NoEffect(_) => "noted",
            Fate::Only { .. } | Fate::Refused { .. } => "refused",
        };
        assert!(outcomes.contains(expected), "`{name}` is not {expected}: {outcomes:?}");
        if let Fate::Output(_) = option.fate() {
            let kept = line(&format!("{base} --{name}={}", option.words().first().unwrap_or(&"1")));
            assert!(kept.jobs[1].fio.as_ref().unwrap().word(name).is_some(), "{name}");
        }
    }
    assert!(silent.is_empty(), "no effect and no message: {}", silent.join(", "));
}

/// Compares the rendered part of a page of `docs` with what the rows give; with `TRUEIO_BLESS=1`, rewrites it.
fn compare_rendered(name: &str, rendered: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("docs/{name}: {error}"));
    let begin = page.find("<!-- begin: rendered").expect("the begin of the rendered part");
    let end = page.find("<!-- end -->").expect("its end") + "<!-- end -->".len();
    if std::env::var_os("TRUEIO_BLESS").is_some() {
        let whole = format!("{}{}{}", &page[..begin], rendered.trim_end(), &page[end..]);
        return std::fs::write(&path, whole).unwrap_or_else(|error| panic!("docs/{name}: {error}"));
    }
    assert!(page[begin..end] == *rendered.trim_end(), "docs/{name} is stale; TRUEIO_BLESS=1 rewrites it");
}

#[test]
fn the_page_about_fio_contains_the_rendered_table() {
    compare_rendered("fio-options.md", &render_table());
}

/// Goal: no refusal of fio's language without a row of the page, and no row without a refusal.
/// Method: a problem is made with its row (`FioProblem::kind`), so the first half is the compiler's; each row must be used in the source,
/// and be complete.
#[test]
fn the_page_of_refusals_is_rendered_from_the_rows_that_refuse() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![source];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the source").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path if path.file_name().is_some_and(|name| name == "refusals.rs") => {}
                path => text += &std::fs::read_to_string(path).expect("a source file"),
            }
        }
    }
    for kind in Refused::ALL {
        let name = format!("Refused::{kind:?}");
        let is_used =
            text.match_indices(&name).any(|(at, _)| !text[at + name.len()..].starts_with(char::is_alphanumeric));
        let row = kind.row();
        assert!(is_used, "{name} refuses nothing");
        assert!(
            [row.refused, row.reason, row.instead].iter().all(|cell| !cell.is_empty() && !cell.contains('|')),
            "{row:?}"
        );
    }
    compare_rendered("fio-refusals.md", &render_refusals());
}

#[test]
fn a_problem_has_the_row_of_its_refusal() {
    for (words, kind) in [
        ("--name=a --nonsense=1", Refused::UnknownOption),
        ("--name=a --size=4kfoo", Refused::Value),
        ("--name=a --ioengine=rbd", Refused::Engine),
        ("--name=a --mem=mmapshared:f", Refused::SharedBuffers),
        ("--name=a --fdp=1", Refused::Option),
        ("--name=a --exec_prerun=true", Refused::Commands),
        ("--name=a --rate_min=1k --rate_iops_min=1", Refused::MinimumRates),
        ("--name=a --rate=1k --rate_min=2k", Refused::MinimumAboveRate),
        ("--name=a --wait_for=b", Refused::WaitFor),
        ("--server --name=a", Refused::OfServers),
    ] {
        let kinds: Vec<Refused> = wrong(words).problems.iter().map(|problem| problem.kind).collect();
        assert!(kinds.contains(&kind), "{words}: {kinds:?}");
    }
}

/// Goal: a user of fio finds its options under fio's names.
/// Method: the list of fio 3.42's options is in `tests/fio-names.txt` (name, alias), made
/// from `fio --cmdhelp`; the options of single engines, which that list lacks, are listed here.
#[test]
fn rows_marked_as_fio_options_are_exactly_those_in_fios_list() {
    const OF_ENGINES: [&str; 20] = [
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
        "inplace",
    ];
    /// Accepted by fio, which does not list them.
    const DEPRECATED: [&str; 1] = ["flow_watermark"];
    let listed = include_str!("../../fio-names.txt").split_whitespace();
    let known: BTreeSet<&str> = listed.chain(OF_ENGINES).chain(DEPRECATED).collect();
    for row in TABLE {
        assert_eq!(row.is_in_fio(), known.contains(row.fio_name()), "{}", row.name);
        for alias in row.fio_names {
            assert!(known.contains(alias), "{}: `{alias}` is not fio's", row.name);
        }
    }
}
