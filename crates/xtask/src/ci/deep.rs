//! The deep tier: steps that take minutes and test a few folders only.
//!
//! `cargo xtask ci` runs a quarter of them, chosen by the commit's hash, and each whose folder changed in the last
//! [`RECENT`] commits; `cargo xtask ci deep` runs all and writes down the commit at which each passed ([`FILE`]).

use crate::step::{Counts, Outcome};
use crate::workspace::{command, root};
use crate::{arm, cluster, duckdb, fio_plot, fuzz, machete, manifests, nightly, node, packages, publish, site};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;

/// The file with the last commit at which each step passed, below the root of the repository.
const FILE: &str = "crates/xtask/deep-steps.txt";
/// How many commits a folder counts as changed.
const RECENT: usize = 30;
const QUARTERS: usize = 4;

/// How a step is run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Run {
    /// On the sources. A test that lacks one of the passed needs fails.
    Sources(fn(&[&str]) -> (Outcome, Option<Counts>)),
    /// On the release build.
    Release(fn(&Path) -> Outcome),
    /// The cases of a file of the lab.
    Lab(&'static str),
}

/// A step of the deep tier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) name: &'static str,
    /// The folders whose change makes the step run.
    folders: &'static [&'static str],
    pub(super) run: Run,
}

const fn step(name: &'static str, folders: &'static [&'static str], run: Run) -> Step {
    Step { name, folders, run }
}

const DIRECT: &[&str] = &["crates/direct/"];
const ENGINE: &[&str] = &["crates/engine/"];
/// Of a step of the lab its own file of cases counts, too.
const USB: &[&str] = &["crates/usb/", "crates/device/src/usb", "crates/lab/src/"];
const UAS: &[&str] = &["crates/uas/", "crates/lab/src/"];
const UAS_SERVE: &[&str] = &["crates/uas/", "crates/lab/src/", "crates/lab/tests/it/served.rs"];

/// All steps. The quarter of a step is its position, modulo four: neighbours are in different ones.
pub(super) const STEPS: &[Step] = &[
    step("tests of direct under Miri", DIRECT, Run::Sources(|_| nightly::miri())),
    step("tests of direct with AddressSanitizer", DIRECT, Run::Sources(nightly::address_sanitizer)),
    step("tests of engine under Miri", ENGINE, Run::Sources(|_| nightly::miri_of_engine())),
    step("tests of engine with AddressSanitizer", ENGINE, Run::Sources(nightly::address_sanitizer_of_engine)),
    step("tests of engine with ThreadSanitizer", ENGINE, Run::Sources(nightly::thread_sanitizer_of_engine)),
    step("Neon code of engine under emulation", &["crates/engine/src/content"], Run::Sources(|_| arm::tests())),
    step("tests of direct under Wine", DIRECT, Run::Sources(|_| super::tests_under_wine())),
    step("direct for other systems", DIRECT, Run::Sources(|_| super::other_systems())),
    step("package of direct: features", DIRECT, Run::Sources(|_| publish::run("features"))),
    step("package of direct: oldest-compiler", DIRECT, Run::Sources(|_| publish::run("oldest-compiler"))),
    step("package of direct: public-api", DIRECT, Run::Sources(|_| publish::run("public-api"))),
    step("package of direct: dry-run", DIRECT, Run::Sources(|_| publish::run("dry-run"))),
    step("package of direct: c-library", DIRECT, Run::Sources(|_| publish::run("c-library"))),
    step("recipes for bundlers of bindings/node", &["bindings/node/"], Run::Sources(|_| node::recipes())),
    step("unused dependencies", &["Cargo.lock", "fuzz/Cargo.lock"], Run::Sources(|_| (machete::run(), None))),
    step("fuzz targets", &["fuzz/"], Run::Sources(|_| (fuzz::in_ci(), None))),
    step("manifests of deploy", &["deploy/"], Run::Release(|_| manifests::run())),
    step("packages of the release build", &["packaging/", "crates/xtask/src/packages"], Run::Release(packages::in_ci)),
    step("documentation as a site", &["crates/xtask/src/site.rs"], Run::Release(site::in_ci)),
    step("fio-plot draws results", &["crates/fio/src/outputs"], Run::Release(fio_plot::run)),
    step("DuckDB reads a trace", &["crates/iotrace/"], Run::Release(duckdb::run)),
    step("ranks under launchers from wheels", &["crates/cluster/"], Run::Release(cluster::in_ci)),
    step("lab: uas_engine", UAS, Run::Lab("uas_engine")),
    step("lab: uas_serve", UAS_SERVE, Run::Lab("uas_serve")),
    step("lab: filesystems", &["crates/lab/src/", "crates/direct/src/os"], Run::Lab("filesystems")),
    step("lab: usb_explain", USB, Run::Lab("usb_explain")),
    step("lab: usb_rules", USB, Run::Lab("usb_rules")),
    step("lab: usb_study", USB, Run::Lab("usb_study")),
    step("lab: usb_switch", USB, Run::Lab("usb_switch")),
];

/// The steps that a run of the checks has.
#[derive(Debug)]
pub(super) struct Selection {
    is_whole: bool,
    commit: String,
    changed: Vec<String>,
    passed_at: BTreeMap<String, String>,
}

impl Selection {
    /// The selection for the commit that is checked out; all steps if `is_whole`.
    ///
    /// # Errors
    /// If git prints no commit.
    pub(super) fn new(is_whole: bool) -> Result<Self> {
        let commit = git(&["rev-parse", "HEAD"])?;
        let changed = git(&["log", &format!("-{RECENT}"), "--name-only", "--format="])?;
        let text = std::fs::read_to_string(root().join(FILE)).with_context(|| FILE.to_owned())?;
        Ok(Self {
            is_whole,
            commit: commit.trim().to_owned(),
            changed: changed.lines().map(str::to_owned).collect(),
            passed_at: parse(&text),
        })
    }

    /// True if all steps are selected.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn quarter(&self) -> usize {
        self.commit.get(..2).and_then(|digits| usize::from_str_radix(digits, 16).ok()).unwrap_or(0) % QUARTERS
    }

    fn is_changed(&self, step: &Step) -> bool {
        let cases = match step.run {
            Run::Lab(file) => Some(format!("crates/lab/tests/it/{file}.rs")),
            _ => None,
        };
        let is_of =
            |file: &String| step.folders.iter().any(|folder| file.starts_with(folder)) || cases.as_ref() == Some(file);
        self.changed.iter().any(is_of)
    }

    /// The selected steps, in order.
    pub(super) fn steps(&self) -> impl Iterator<Item = &'static Step> {
        let is_chosen = |(position, step): &(usize, &'static Step)| {
            self.is_whole || position % QUARTERS == self.quarter() || self.is_changed(step)
        };
        STEPS.iter().enumerate().filter(is_chosen).map(|(_, step)| step)
    }

    /// Returns which steps were selected and why, and which were not.
    pub(super) fn summary(&self) -> String {
        let commit = self.commit.get(..12).unwrap_or(&self.commit);
        if self.is_whole {
            return format!("deep tier: all {} steps, at {commit}\n", STEPS.len());
        }
        let chosen: Vec<&str> = self.steps().map(|step| step.name).collect();
        let mut text = format!(
            "deep tier: {} of {} steps ran, which are quarter {} of {QUARTERS}, by the hash of {commit}, and the steps whose \
             folder changed in the last {RECENT} commits\n",
            chosen.len(),
            STEPS.len(),
            self.quarter() + 1
        );
        for step in STEPS.iter().filter(|step| !chosen.contains(&step.name)) {
            let passed = self.passed_at.get(step.name).map_or("not recorded", String::as_str);
            text += &format!("not run: {} (last passed at: {passed})\n", step.name);
        }
        text
    }

    /// Writes down that these steps passed at the commit that is checked out.
    ///
    /// # Errors
    /// If the file cannot be written, or the sources are not those of the commit.
    pub(super) fn record(&mut self, passed: &[&str]) -> Result<()> {
        let dirty = git(&["status", "--porcelain", "--untracked-files=no"])?;
        ensure!(dirty.lines().all(|line| line.ends_with(FILE)), "changed files: the commit is not what passed");
        let mut text = String::from(
            "# The last commit at which each deep step passed; `cargo xtask ci deep` writes it: step, tab, commit.\n",
        );
        for step in STEPS {
            if passed.contains(&step.name) {
                self.passed_at.insert(step.name.to_owned(), self.commit.clone());
            }
            if let Some(commit) = self.passed_at.get(step.name) {
                text += &format!("{}\t{commit}\n", step.name);
            }
        }
        std::fs::write(root().join(FILE), text).with_context(|| FILE.to_owned())
    }
}

fn parse(text: &str) -> BTreeMap<String, String> {
    let rows = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'));
    rows.map(|(step, commit)| (step.to_owned(), commit.to_owned())).collect()
}

fn git(words: &[&str]) -> Result<String> {
    let output = command("git").args(words).output().context("git")?;
    ensure!(output.status.success(), "git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(commit: &str, changed: &[&str]) -> Selection {
        let changed = changed.iter().map(|&file| file.to_owned()).collect();
        Selection { is_whole: false, commit: commit.into(), changed, passed_at: parse("# x\nfuzz targets\tabc\n") }
    }

    #[test]
    fn the_four_quarters_are_all_steps_and_a_changed_folder_adds_its_own() {
        let of = |commit| selection(commit, &[]).steps().map(|step| step.name).collect::<Vec<_>>();
        let mut all: Vec<&str> = ["00", "01", "02", "03"].into_iter().flat_map(of).collect();
        assert_eq!((all.len(), of("07")), (STEPS.len(), of("ff")));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), STEPS.len(), "names are unique");
        let with = |file| selection("01", &[file]).steps().any(|step| step.name == "tests of engine under Miri");
        assert!(with("crates/engine/src/lib.rs") && !with("crates/enginex/src/lib.rs"));
        let cases = |file| selection("01", &[file]).steps().any(|step| step.name == "lab: filesystems");
        assert!(cases("crates/lab/tests/it/filesystems.rs") && cases("crates/lab/src/lib.rs"));
        assert!(!cases("crates/lab/tests/it/zones.rs"), "the cases of another step");
    }

    #[test]
    fn the_summary_names_what_did_not_run_and_where_it_passed_last() {
        let text = selection("00ff", &[]).summary();
        assert!(text.contains("quarter 1 of 4, by the hash of 00ff"), "{text}");
        assert!(text.contains("not run: fuzz targets (last passed at: abc)\n"), "{text}");
        assert!(text.contains("not run: tests of engine under Miri (last passed at: not recorded)\n"), "{text}");
        assert!(!text.contains("not run: tests of direct under Miri"), "{text}");
        assert_eq!(selection("01", &[]).summary().matches("not run").count(), STEPS.len() - 7);
    }

    #[test]
    fn the_folders_of_the_steps_and_the_files_of_the_lab_exist() {
        for step in STEPS {
            for folder in step.folders {
                assert!(root().join(folder).exists(), "{}: {folder}", step.name);
            }
            if let Run::Lab(file) = step.run {
                assert!(root().join("crates/lab/tests/it").join(format!("{file}.rs")).is_file(), "{file}");
            }
        }
    }
}
