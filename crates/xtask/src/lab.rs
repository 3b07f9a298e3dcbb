//! The cases of the lab: what its machines need, and running them.
//!
//! The cases are tests of `crates/lab`; see docs/dev/lab.md. They are not run with the other tests,
//! because each waits for a machine that boots.

use crate::setup;
use crate::step::{Counts, Outcome, counted_to};
use crate::workspace::{cargo, root};
use std::time::Instant;

/// A package, and the program by which it is recognised. The lab itself fetches
/// kernels and the content of machines.
const PACKAGES: [(&str, &str); 4] =
    [("qemu-system-x86", "qemu-system-x86_64"), ("kmod", "depmod"), ("xz-utils", "xz"), ("binutils", "strip")];

/// Installs missing packages; prints those that are not available.
pub(crate) fn set_up() {
    match setup::install(&PACKAGES) {
        Ok(what) => println!("{what}"),
        // The cases print what they lack.
        Err(why_not) => println!("{why_not}"),
    }
}

/// Runs the cases of the file `case`, else of the files whose names begin with it (`uas`), else those whose name contains
/// it, or all. If `is_required`, a machine that cannot run is a failure. `say` receives the output line by line; cargo's
/// own messages go to standard error.
pub(crate) fn run(case: Option<&str>, is_required: bool, say: &mut dyn FnMut(&str)) -> (Outcome, Option<Counts>) {
    run_names(&case.map(|case| names_of(case, &files())).unwrap_or_default(), is_required, say)
}

/// The files of the pass over every kind of promise that `cargo xtask ci` makes: machines, facts and refusals, faults,
/// evidence through layers, a served disk, USB disks, zones. The others are steps of the deep tier.
pub(crate) const PASS: [&str; 7] = ["boot", "disks", "faults", "layers", "uas_ublk", "usb_disks", "zones"];

/// Runs the cases of these files. Otherwise as [`run`].
pub(crate) fn run_files(files: &[&str], is_required: bool, say: &mut dyn FnMut(&str)) -> (Outcome, Option<Counts>) {
    run_names(&files.iter().map(|file| format!("{file}::")).collect::<Vec<_>>(), is_required, say)
}

fn run_names(names: &[String], is_required: bool, say: &mut dyn FnMut(&str)) -> (Outcome, Option<Counts>) {
    let mut test = cargo();
    test.args(["test", "--package", "trueio-lab", "--no-fail-fast"]);
    if !names.is_empty() {
        test.args(["--test", "it"]);
    }
    // There is one machine at a time; in order, cases that share one come after each other.
    test.env("RUST_TEST_THREADS", "1");
    if is_required {
        test.env("TRUEIO_REQUIRE", "lab");
    }
    let begin = Instant::now();
    let result = counted_to(&mut test, &names.iter().map(String::as_str).collect::<Vec<_>>(), say);
    say(&format!("the lab took {} s, with building", begin.elapsed().as_secs()));
    result
}

/// The names of the files with cases, in order.
fn files() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("crates/lab/tests/it")).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| Some(entry.file_name().into_string().ok()?.strip_suffix(".rs")?.to_owned());
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort();
    names
}

/// The names of cases for the test program: all of the file `word`, else all of the files that begin with the word and an
/// underscore, else those that contain the word.
fn names_of(word: &str, files: &[String]) -> Vec<String> {
    let begins = |file: &&String| file.strip_prefix(word).is_some_and(|rest| rest.starts_with('_'));
    let found: Vec<&String> = match files.iter().find(|file| *file == word) {
        Some(file) => vec![file],
        None => files.iter().filter(begins).collect(),
    };
    match found.is_empty() {
        true => vec![word.to_owned()],
        false => found.iter().map(|file| format!("{file}::")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_names_a_file_or_all_that_begin_with_it() {
        let files = files();
        assert_eq!(names_of("boot", &files), ["boot::"]);
        assert_eq!(names_of("disks", &files), ["disks::"]);
        assert_eq!(names_of("uas", &files), ["uas_engine::", "uas_serve::", "uas_ublk::"]);
        assert!(names_of("usb", &files).len() >= 5);
        assert_eq!(names_of("a_written_sector", &files), ["a_written_sector"]);
        assert_eq!(names_of("ua", &files), ["ua"]);
    }
}
