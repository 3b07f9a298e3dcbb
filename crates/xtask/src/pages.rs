//! The pages in a browser: makes each kind of page with the program, opens it in headless Chromium on a phone and a desktop, light
//! and dark, and measures it. A step of `cargo xtask ci`, and `cargo xtask pages`.
//!
//! A page fails if it scrolls sideways, if a text is cut, clipped, overlapped or has too little contrast (folded and unfolded), on a
//! message on the console, and on any network request. Each of these is staged first and must be found, so that the check can
//! fail. Screenshots are kept in `target/pages/`.
//!
//! Limits: one browser; contrast inside heat maps is not measured.

mod browser;
mod captures;

use crate::setup;
use crate::step::Outcome;
use crate::workspace::{self, cargo, command};
use browser::Browser;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MEASURE: &str = include_str!("pages/measure.js");
const WIDTHS: [u32; 2] = [390, 1280];
const SCHEMES: [&str; 2] = ["light", "dark"];

/// Pages with one fault each, and a word of the finding.
const STAGED: [(&str, &str, &str); 6] = [
    ("sideways", "<div style=\"width:900px\">wide</div>", "scrolls sideways"),
    ("overlap", "<p>one</p><p style=\"margin-top:-2.2em\">two</p>", "overlap"),
    (
        "clipped",
        "<p style=\"width:4em;overflow:hidden;white-space:nowrap\">a text that is too long for it</p>",
        "clipped",
    ),
    ("contrast", "<p style=\"color:#999\">faint</p>", "contrast"),
    ("console", "<script>console.error('wrong')</script>", "console"),
    ("request", "<img src=\"http://127.0.0.1:9/a.png\" alt=\"\">", "request"),
];

/// Makes the pages with `program`, and opens them; with `writes`, keeps the captures in `docs/images/`.
pub(crate) fn run(program: &Path, writes: bool) -> Outcome {
    if let Err(why_not) = setup::install(&[("chromium", "chromium")]) {
        return Outcome::skipped(&why_not);
    }
    let folder = match workspace::target_dir() {
        Ok(target) => target.join("pages"),
        Err(error) => return Outcome::Failed(format!("{error:#}")),
    };
    match open_all(program, &folder, writes) {
        Ok((count, problems)) if problems.is_empty() => {
            Outcome::Passed(format!("{count} views, screenshots in {}", folder.display()))
        }
        Ok((_, problems)) => {
            problems.iter().for_each(|problem| println!("{problem}"));
            Outcome::Failed(format!("{} problems", problems.len()))
        }
        Err(why) => Outcome::Failed(why),
    }
}

fn open_all(program: &Path, folder: &Path, writes: bool) -> Result<(usize, Vec<String>), String> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let pages = make(program, folder)?;
    let mut browser = Browser::start(&folder.join("profile"))?;
    let mut problems = stage(&mut browser, folder)?;
    problems.extend(capture(program, folder, writes)?);
    let mut count = 0;
    for page in &pages {
        let name = page.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        for width in WIDTHS {
            for scheme in SCHEMES {
                let view = format!("{name}-{width}-{scheme}");
                let (found, picture) = browser.look(page, width, scheme, MEASURE)?;
                std::fs::write(folder.join(format!("{view}.png")), picture)
                    .map_err(|error| format!("{view}: {error}"))?;
                problems.extend(found.iter().map(|problem| format!("{view}: {problem}")));
                count += 1;
            }
        }
    }
    Ok((count, problems))
}

/// Captures terminals. Returns those in `docs/images/` that are stale; the recording differs each time, so it must only exist.
fn capture(program: &Path, folder: &Path, writes: bool) -> Result<Vec<String>, String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let printed = folder.join("fixture/baseline-screen.txt");
    let end = captures::end_of_run(&std::fs::read_to_string(&printed).map_err(|error| failed(&printed, error))?);
    let kept = workspace::root().join("docs/images");
    let (screen, live) = (kept.join("screen.svg"), kept.join("live.svg"));
    if writes {
        std::fs::create_dir_all(&kept).map_err(|error| failed(&kept, error))?;
        std::fs::write(&screen, &end).map_err(|error| failed(&screen, error))?;
        if let Some(recording) = captures::live(program, folder)? {
            std::fs::write(&live, recording).map_err(|error| failed(&live, error))?;
        }
    }
    let is_same = std::fs::read_to_string(&screen).is_ok_and(|known| known == end);
    let stale = [(&screen, is_same), (&live, live.is_file())].into_iter().filter(|(_, is_good)| !is_good);
    Ok(stale.map(|(path, _)| format!("{} is stale: run `cargo xtask pages --write`", path.display())).collect())
}

/// Opens the pages with a fault; returns those whose fault was not found.
fn stage(browser: &mut Browser, folder: &Path) -> Result<Vec<String>, String> {
    let mut missed = Vec::new();
    for (name, body, word) in STAGED {
        let page = folder.join(format!("staged-{name}.html"));
        let head =
            "<!doctype html><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><body>";
        std::fs::write(&page, format!("{head}{body}")).map_err(|error| format!("{}: {error}", page.display()))?;
        let (found, _) = browser.look(&page, 390, "light", MEASURE)?;
        if !found.iter().any(|problem| problem.contains(word)) {
            missed.push(format!("the staged fault `{name}` was not found; found: {found:?}"));
        }
    }
    Ok(missed)
}

/// Makes a page of each kind: invented records of every situation, and documents that the program records now.
fn make(program: &Path, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let fixture = folder.join("fixture");
    let mut example = cargo();
    example.args(["run", "--quiet", "--package", "trueio-report", "--example", "fixture", "--"]).arg(&fixture);
    succeed("the example `fixture`", &mut example)?;
    let mut documents = vec![fixture.join("baseline.json"), fixture.join("troubled.json")];
    let trueio = |arguments: &[&str]| -> Result<(), String> {
        let mut trueio = command(&program.to_string_lossy());
        trueio.current_dir(folder).env("XDG_DATA_HOME", folder.join("data")).args(arguments).stdout(Stdio::null());
        succeed(&format!("trueio {}", arguments[0]), trueio.stderr(Stdio::null()))
    };
    let short = ["--runtime", "200ms", "--time_based", "--size", "4m", "--directory", "."];
    for _ in 0..4 {
        trueio(&[&["run", "--rw", "randread"][..], &short[..]].concat())?;
    }
    // A figure that the evidence contradicts, as on a busy machine, and an undecided gate are no success, but make a document.
    let grid = "compare --vary iodepth=1,4,16,64 --vary bs=4k,16k,64k --rw randread --size 16m --directory . --budget 4s \
                --slice 50ms --json grid.json";
    let two = "compare --vary fdatasync=1,0 --rw write --bs 4k --size 16m --directory . --budget 3s --slice 100ms --fail-if \
               iops<-99% --json compare.json";
    let study = "study write-flags . --quick --samples 1 --mode improved --json study.json";
    for line in ["baseline . --quick --json quick.json", grid, two, study] {
        let _ = trueio(&line.split_whitespace().collect::<Vec<_>>());
    }
    documents.extend(["quick.json", "grid.json", "compare.json", "study.json"].map(|name| folder.join(name)));
    let mut pages = Vec::new();
    for document in documents {
        let page = document.with_extension("html");
        trueio(&["report", &document.to_string_lossy(), "--html", &page.to_string_lossy()])?;
        pages.push(page);
    }
    // Of the invented record's disk, which is recognised on every machine: the same run on six days.
    let record = fixture.join("baseline.json");
    let text = std::fs::read_to_string(&record).map_err(|error| format!("{}: {error}", record.display()))?;
    for day in 0..6 {
        let copy = folder.join("day.json");
        let text = text.replace("3f9c21ab77d04e5c8b1f6a2d90e3c457", &format!("{day:032x}")).replace(
            "\"started_unix_s\": 1795206512",
            &format!("\"started_unix_s\": {}", 1_795_206_512 + day * 86_400),
        );
        std::fs::write(&copy, text).map_err(|error| format!("{}: {error}", copy.display()))?;
        trueio(&["history", "import", &copy.to_string_lossy()])?;
    }
    let trend = folder.join("trend.html");
    trueio(&["history", "trend", "EX0000000001", "--html", &trend.to_string_lossy()])?;
    pages.push(trend);
    Ok(pages)
}

fn succeed(what: &str, command: &mut Command) -> Result<(), String> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what}: {status}")),
        Err(error) => Err(format!("{what}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the check finds what it exists for. Method: six pages with one fault each, and one without a fault.
    #[test]
    fn staged_faults_are_found_and_a_plain_page_has_none() {
        if !workspace::has_program("chromium") {
            println!("skipped: no chromium");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut browser = Browser::start(&folder.path().join("profile")).unwrap();
        assert_eq!(stage(&mut browser, folder.path()).unwrap(), Vec::<String>::new());
        let plain = folder.path().join("plain.html");
        std::fs::write(
            &plain,
            "<!doctype html><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><p>fine</p>",
        )
        .unwrap();
        let (found, picture) = browser.look(&plain, 390, "dark", MEASURE).unwrap();
        assert_eq!(found, Vec::<String>::new());
        assert!(picture.starts_with(b"\x89PNG"));
    }
}
