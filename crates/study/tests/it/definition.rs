//! Studies are data: a fault is reported with its position, and no input panics.

use proptest::prelude::*;
use trueio_model::value_label;
use trueio_study::{EMBEDDED, Study, Variables, embedded, rows};

/// A study that is as small as one can be.
const SMALL: &str = r#"
format = 1
title = "t"
question = "q?"
[source]
title = "s"
by = "b"
date = "2020"
setting = "m"
[published]
keys = { machine = "setting", way = "way" }
[[published.figure]]
column = "seconds"
metric = "elapsed"
unit = "s"
[[limit]]
metric = "elapsed"
bytes = 2000000000
mb_per_s_max = 600
why = "the cable carries 600 MB/s"
[set]
rw = "write"
size = "1m"
bs = "${block}"
[[axis]]
key = "way"
value = [
    { name = "plain", published = "normal", set = { direct = "off" }, var = { block = "4k" } },
    { name = "direct", set = { direct = "require" }, var = { block = "8k" } },
]
[mode.faithful]
title = "as it was"
place = 1
[[contrast]]
title = "direct against plain"
axis = "way"
of = "direct"
against = "plain"
metric = "elapsed"
"#;
const TABLE: &str = "machine,way,seconds\nssd,normal,4.0\nssd,direct,0.1\n";

fn read(definition: &str, published: &str) -> Result<Study, String> {
    Study::read("small", "studies/small", definition, published).map_err(|e| e.to_string())
}

fn wrong(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "`{from}` is not in the sample");
    read(&SMALL.replacen(from, to, 1), TABLE).expect_err("it is wrong")
}

#[test]
fn a_small_study_has_its_rows_with_their_options() {
    let study = read(SMALL, TABLE).unwrap();
    let rows = rows(&study, "faithful", false, &Variables::new(), &[]).unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["plain", "direct"]);
    assert_eq!(rows[0].job.options["bs"].text, "4k");
    assert_eq!(rows[1].job.options["bs"].text, "8k");
    assert_eq!(rows[1].job.options["direct"].text, "require");
    assert_eq!(rows[1].job.options["rw"].origin.to_string(), "preset study small faithful");
}

#[test]
fn what_the_user_adds_is_the_last_word() {
    let study = read(SMALL, TABLE).unwrap();
    let extra = [("bs".to_owned(), "64k".to_owned())];
    let rows = rows(&study, "faithful", false, &Variables::new(), &extra).unwrap();
    assert_eq!(rows[0].job.options["bs"].text, "64k");
}

#[test]
fn a_published_figure_beyond_a_limit_is_reported_with_its_implied_rate() {
    let study = read(SMALL, TABLE).unwrap();
    let [plain, direct] = &study.published.entries[..] else { panic!("two figures") };
    assert_eq!(plain.impossible, None);
    let impossible = direct.impossible.as_ref().expect("2 GB in 0.1 s");
    assert_eq!(impossible.implied_bytes_per_s, 2e10);
    assert_eq!(impossible.sentence, "ssd, direct: 0.1 s for 1.86 GiB is 18.6 GiB/s, but the cable carries 600 MB/s.");
}

/// Goal: a sentence that rests on an assumption states it, and when the figure would be possible.
#[test]
fn a_figure_that_is_beyond_a_limit_only_by_an_assumption_states_it() {
    let assumes = "bytes = 2000000000\nassumes = { what = \"1,000 calls\", why = \"why not\", call_bytes = 2000000 }";
    let study = read(&SMALL.replace("bytes = 2000000000", assumes), TABLE).unwrap();
    let impossible = study.published.entries[1].impossible.as_ref().expect("2 GB in 0.1 s");
    // 0.1 s at 600 MB/s are 60 MB, 30 calls of 2 MB.
    assert_eq!((impossible.assumption.as_deref(), impossible.possible_count_max), (Some("1,000 calls"), Some(30)));
    assert_eq!(
        impossible.sentence,
        "ssd, direct: 0.1 s for 1.86 GiB would be 18.6 GiB/s, but the cable carries 600 MB/s. Assumed: 1,000 calls, why \
         not; up to 30 calls would be possible."
    );
}

#[test]
fn a_published_figure_is_kept_as_the_source_prints_it() {
    let definition = SMALL.replace("[published]\n", "[published]\nasterisk = \"it went wrong\"\n");
    let table = "machine,way,seconds\na,normal,14.610\nb,normal,0.112*\nc,normal,\"58,265 ms\"\nd,normal,\"1,234.5\"\n";
    let study = read(&definition, table).unwrap();
    let found: Vec<(&str, f64)> = study.published.entries.iter().map(|e| (e.printed.as_str(), e.value)).collect();
    assert_eq!(found, [("14.610 s", 14.61), ("0.112* s", 0.112), ("58,265 ms", 58.265), ("1,234.5 s", 1234.5)]);
    let without = read(SMALL, table).expect_err("an asterisk without a note");
    assert!(without.contains("line 3: `0.112*`: [published] has no `asterisk`"), "{without}");
    let unused = read(&definition, TABLE).expect_err("a note without an asterisk");
    assert!(unused.contains("no figure has one"), "{unused}");
}

#[test]
fn each_mistake_is_an_error_that_states_what_is_expected() {
    let cases = [
        ("format = 1", "format = 2", "its format is 2"),
        ("title = \"t\"", "titel = \"t\"", "unknown field `titel`"),
        ("rw = \"write\"", "rww = \"write\"", "`rww` is not a job option; did you mean `rw`?"),
        ("size = \"1m\"", "size = \"big\"", "[set]: `size`"),
        ("size = \"1m\"", "filename = \"/etc/passwd\"", "`filename` is reserved for the user"),
        ("size = \"1m\"", "overwrite_existing = \"/etc/passwd\"", "is reserved for the user"),
        ("size = \"1m\"", "unlink = false", "is reserved for the user"),
        ("size = \"1m\"", "write_bw_log = \"/etc/cron.d/x\"", "is reserved for the user"),
        ("size = \"1m\"", "write_hist_log = \"/etc/cron.d/x\"", "is reserved for the user"),
        ("size = \"1m\"", "write_iolog = \"/etc/cron.d/x\"", "is reserved for the user"),
        ("size = \"1m\"", "read_iolog = \"/etc/passwd\"", "is reserved for the user"),
        ("size = \"1m\"", "replay_redirect = \"/dev/sda\"", "is reserved for the user"),
        ("size = \"1m\"", "verify_dump = true", "is reserved for the user"),
        ("size = \"1m\"", "verify_state_save = true", "is reserved for the user"),
        ("size = \"1m\"", "source = \"http://example.org/1000\"", "fetches from its own server only"),
        ("size = \"1m\"", "source = \"${server}@example.org/\"", "fetches from its own server only"),
        ("var = { block = \"4k\" }", "var = { block = \"4k\", server = \"http://a.b\" }", "the variable `server`"),
        ("against = \"plain\"", "against = \"plain\"\nagainst_at = { colour = \"red\" }", "unknown axis `colour`"),
        ("name = \"direct\"", "name = \"plain\"", "the value `plain` is defined twice"),
        ("of = \"direct\"", "of = \"magic\"", "the axis `way` has no value `magic`"),
        ("axis = \"way\"", "axis = \"colour\"", "unknown axis `colour`"),
        ("place = 1", "", "no mode has a `place`"),
        (
            "metric = \"elapsed\"\nunit = \"s\"",
            "metric = \"elapsed\"\nunit = \"MiB/s\"",
            "`elapsed` cannot be in MiB/s",
        ),
        ("metric = \"elapsed\"\nunit = \"s\"", "metric = \"speed\"\nunit = \"s\"", "unknown variant `speed`"),
        ("machine = \"setting\", ", "", "the column `machine` must be named exactly once"),
        ("published = \"normal\", ", "", "no value that the source writes as `normal`"),
        ("bytes = 2000000000\n", "", "[[limit]] of `elapsed` needs `bytes`"),
        ("mb_per_s_max = 600", "mb_per_s_max = 0", "`mb_per_s_max` is a number above 0"),
        ("[[axis]]", "[[axis", "studies/small/study.toml:"),
        ("title = \"as it was\"", "title = \"x\"\nsamples = 0", "0 samples"),
        ("set = { direct = \"off\" }", "set = {}, needs = { luck = \"much\" }", "unknown need `luck`"),
        (
            "question = \"q?\"",
            "question = \"q?\"\nrow_format = \"{speed of light}\"",
            "`speed of light` is not a figure with its unit",
        ),
        ("question = \"q?\"", "question = \"q?\"\nrow_format = \"{way\"", "`{` without `}`"),
        ("against = \"plain\"", "against = \"plain\"\nagainst_at = { moon = \"full\" }", "unknown axis `moon`"),
        (
            "against = \"plain\"",
            "against = \"plain\"\nagainst_at = { way = \"plain\" }",
            "`against_at` may not name the axis `way` itself",
        ),
        ("place = 1", "place = 1\n[[mode.faithful.exclude]]\nway = \"magic\"", "the axis `way` has no value `magic`"),
        (
            "[[contrast]]",
            "[[sum]]\nwhole = \"lat_mean\"\nparts = [\"slat_mean\"]\ntolerance = 0.01\nlacking = \"\"\n[[contrast]]",
            "[[sum]] of `lat_mean` needs at least two parts",
        ),
        (
            "[[contrast]]",
            "[[sum]]\nwhole = \"lat_mean\"\nparts = [\"slat_mean\", \"clat_mean\"]\ntolerance = 2\nlacking = \"\"\n[[contrast]]",
            "a share from 0 to 1",
        ),
    ];
    for (from, to, expected) in cases {
        let found = wrong(from, to);
        assert!(found.contains(expected), "`{from}` → `{to}`: {found}");
    }
}

#[test]
fn a_mistake_in_the_figures_is_an_error_with_its_line() {
    for (table, expected) in [
        ("machine,way,seconds\nssd,normal,soon\n", "line 2: `soon` is not a number"),
        ("machine,way,seconds\nssd,normal,-1\n", "line 2: `-1` is not a number of 0 or more"),
        ("machine,way,seconds\nssd,normal,NaN\n", "line 2: `NaN` is not a number"),
        ("machine,way,seconds\nssd,normal,\"1,23\"\n", "line 2: `1,23` is not a number"),
        ("machine,way,seconds\nssd,normal,\"1.2,345\"\n", "line 2: `1.2,345` is not a number"),
        ("machine,way,seconds\nssd,normal,4 KiB/s\n", "line 2: `4 KiB/s`: `KiB/s` is no unit of this figure"),
        ("machine,way\nssd,normal\n", "there is no column `seconds`"),
        ("machine,way,seconds,more\n", "the column `more` must be named"),
        ("machine,way,seconds\nssd,normal\n", "line 2:"),
    ] {
        let found = read(SMALL, table).expect_err("it is wrong");
        assert!(found.starts_with("`studies/small/published.csv`") && found.contains(expected), "{found}");
    }
}

#[test]
fn an_unknown_variable_is_an_error_that_lists_the_known_ones() {
    let study = read(&SMALL.replace("${block}", "${blok}"), TABLE).unwrap();
    let found = rows(&study, "faithful", false, &Variables::new(), &[]).expect_err("it is wrong");
    assert_eq!(found, "row `plain` of mode `faithful`: `${blok}`: unknown variable `blok`; known are block, size");
}

#[test]
fn too_many_rows_are_refused_before_they_are_built() {
    let mut text = SMALL.to_owned();
    for axis in 0..6 {
        let values: Vec<String> = (0..100).map(|v| format!("{{ name = \"{v}\" }}")).collect();
        text.push_str(&format!("[[axis]]\nkey = \"a{axis}\"\nvalue = [{}]\n", values.join(", ")));
    }
    assert!(read(&text, TABLE).expect_err("it is wrong").contains("more than 10000 rows"));
}

#[test]
fn every_study_of_the_program_is_sound_in_every_mode() {
    assert!(!EMBEDDED.is_empty());
    for one in EMBEDDED {
        let study = embedded(one.name).unwrap_or_else(|e| panic!("{}: {e}", one.name));
        assert!(!study.published.entries.is_empty(), "{}: nothing was published", one.name);
        for mode in study.definition.mode.keys() {
            for is_quick in [false, true] {
                let variables = Variables::from([("server".to_owned(), "http://127.0.0.1:1".to_owned())]);
                let found =
                    rows(&study, mode, is_quick, &variables, &[]).unwrap_or_else(|e| panic!("{}: {e}", one.name));
                let mut names: Vec<&str> = found.iter().map(|row| row.job.name.as_str()).collect();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), found.len(), "{} {mode}: two jobs of one name", one.name);
                // A bare number is no name: the axis stands before it (`depth 16`).
                for row in &found {
                    for (axis, value) in &row.key {
                        let label = value_label(axis, value);
                        assert!(row.name.contains(&label), "{} {mode}: `{}` lacks `{label}`", one.name, row.name);
                        assert!(label.starts_with(|first: char| first.is_alphabetic()), "{label}");
                    }
                }
            }
        }
        assert!(study.usual_modes().contains(&"faithful"), "{}", one.name);
        assert!(study.usual_modes().contains(&"improved"), "{}", one.name);
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(definition in "\\PC{0,400}", published in "\\PC{0,200}") {
        let _ = read(&definition, &published);
    }

    #[test]
    fn no_change_of_a_character_makes_it_panic(at in 0..SMALL.len(), to in any::<char>()) {
        let mut text = SMALL.to_owned();
        if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
            text.replace_range(at..at + 1, &to.to_string());
        }
        if let Ok(study) = read(&text, TABLE) {
            for mode in study.definition.mode.keys() {
                let _ = rows(&study, mode, true, &Variables::new(), &[]);
            }
        }
    }
}
