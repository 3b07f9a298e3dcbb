//! The pages in a browser: makes each kind of page with the program, opens it in headless Chromium on a phone, a tablet and a desktop,
//! light and dark, and on paper, and measures it. A step of `cargo xtask ci`, and `cargo xtask pages`.
//!
//! A page fails if it scrolls sideways, if a text is cut, clipped, overlapped or has too little contrast (folded and unfolded), on a
//! message on the console, and on any network request. Each of these is staged first and must be found, so that the check can
//! fail. Screenshots are kept in `target/pages/`; `--write` also keeps the few that the documents show in `docs/images/`.
//!
//! Limits: one browser; contrast inside heat maps is not measured.

pub(crate) mod browser;
mod captures;

use crate::setup;
use crate::step::Outcome;
use crate::workspace::{self, cargo, command};
use anyhow::{Context, Result, bail};
use browser::{Browser, PRINT};
use serde_json::Value;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MEASURE: &str = include_str!("pages/measure.js");
/// Width and colour scheme of each view. A4 is 210 mm wide, less margins of 1 cm at 96 dots per inch.
const VIEWS: [(u32, &str); 6] =
    [(390, "light"), (390, "dark"), (820, "light"), (1280, "light"), (1280, "dark"), (718, PRINT)];

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
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

fn open_all(program: &Path, folder: &Path, writes: bool) -> Result<(usize, Vec<String>)> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let pages = make(program, folder)?;
    let mut browser = Browser::start(&folder.join("profile"))?;
    let mut problems = stage(&mut browser, folder)?;
    problems.extend(capture(program, folder, writes)?);
    problems.extend(pictures(&mut browser, folder, writes)?);
    let mut count = 0;
    for page in &pages {
        let name = page.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        for (width, scheme) in VIEWS {
            let view = format!("{name}-{width}-{scheme}");
            let (found, picture) = browser.look(page, width, scheme, MEASURE)?;
            std::fs::write(folder.join(format!("{view}.png")), picture).with_context(|| view.clone())?;
            problems.extend(found.iter().map(|problem| format!("{view}: {problem}")));
            count += 1;
        }
        if ["baseline", "troubled"].contains(&name.as_str()) {
            match browser.sheet_count(page)? {
                0 => problems.push(format!("{name}: printed on no sheet")),
                sheets if sheets > SHEETS_MAX => problems.push(format!("{name}: printed on {sheets} sheets")),
                _ => {}
            }
        }
    }
    Ok((count, problems))
}

/// The most sheets on which a baseline is printed.
const SHEETS_MAX: usize = 8;

/// A picture in `docs/images/`: the beginning of a page, as wide and as high as this, reduced by `scale`.
struct Picture {
    name: &'static str,
    page: &'static str,
    size: (u32, u32),
    scheme: &'static str,
    scale: f64,
}

const PICTURES: [Picture; 4] = [
    Picture { name: "page.png", page: "fixture/baseline.html", size: (1100, 960), scheme: "light", scale: 0.8 },
    Picture { name: "page-phone.png", page: "fixture/troubled.html", size: (390, 1100), scheme: "dark", scale: 0.8 },
    Picture { name: "grid.png", page: "grid.html", size: (1100, 900), scheme: "light", scale: 0.7 },
    Picture { name: "trend.png", page: "trend.html", size: (1100, 700), scheme: "dark", scale: 0.7 },
];

/// The largest picture, so that a clone stays small.
const PICTURE_BYTES_MAX: u64 = 150 << 10;

/// Writes the pictures, if `writes`; returns what is wrong with those that are kept. They differ with the browser and its fonts, and
/// some show figures of this machine, so their content is not compared.
fn pictures(browser: &mut Browser, folder: &Path, writes: bool) -> Result<Vec<String>> {
    let kept = workspace::root().join("docs/images");
    let mut problems = Vec::new();
    for Picture { name, page, size, scheme, scale } in PICTURES {
        let (page, path) = (folder.join(page), kept.join(name));
        if writes {
            let picture = browser.picture(&page, size, scheme, scale)?;
            std::fs::write(&path, picture).with_context(|| path.display().to_string())?;
        }
        let problem = match std::fs::metadata(&path) {
            _ if !page.is_file() => "shows a page that is no longer made".to_owned(),
            Err(_) => "is missing: run `cargo xtask pages --write`".to_owned(),
            Ok(file) if file.len() > PICTURE_BYTES_MAX => {
                format!("has {} bytes, at most {PICTURE_BYTES_MAX}", file.len())
            }
            Ok(_) => continue,
        };
        problems.push(format!("{} {problem}", path.display()));
    }
    Ok(problems)
}

/// Captures terminals. Returns those in `docs/images/` that are stale; the recording differs each time, so it must only exist.
fn capture(program: &Path, folder: &Path, writes: bool) -> Result<Vec<String>> {
    let printed = folder.join("fixture/baseline-screen.txt");
    let end = captures::end_of_run(&std::fs::read_to_string(&printed).with_context(|| printed.display().to_string())?);
    let kept = workspace::root().join("docs/images");
    let (screen, live) = (kept.join("screen.svg"), kept.join("live.svg"));
    if writes {
        std::fs::create_dir_all(&kept).with_context(|| kept.display().to_string())?;
        std::fs::write(&screen, &end).with_context(|| screen.display().to_string())?;
        if let Some(recording) = captures::live(program, folder)? {
            std::fs::write(&live, recording).with_context(|| live.display().to_string())?;
        }
    }
    let is_same = std::fs::read_to_string(&screen).is_ok_and(|known| known == end);
    let stale = [(&screen, is_same), (&live, live.is_file())].into_iter().filter(|(_, is_good)| !is_good);
    Ok(stale.map(|(path, _)| format!("{} is stale: run `cargo xtask pages --write`", path.display())).collect())
}

/// Opens the pages with a fault; returns those whose fault was not found.
fn stage(browser: &mut Browser, folder: &Path) -> Result<Vec<String>> {
    let mut missed = Vec::new();
    for (name, body, word) in STAGED {
        let page = folder.join(format!("staged-{name}.html"));
        let head =
            "<!doctype html><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><body>";
        std::fs::write(&page, format!("{head}{body}")).with_context(|| page.display().to_string())?;
        let (found, _) = browser.look(&page, 390, "light", MEASURE)?;
        if !found.iter().any(|problem| problem.contains(word)) {
            missed.push(format!("the staged fault `{name}` was not found; found: {found:?}"));
        }
    }
    Ok(missed)
}

/// Makes a page of each kind: invented records of every situation, and documents that the program records now.
fn make(program: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let fixture = folder.join("fixture");
    make_fixture(&fixture)?;
    let mut documents = vec![fixture.join("baseline.json"), fixture.join("troubled.json")];
    let prepared = |arguments: &[&str]| {
        let mut trueio = command(&program.to_string_lossy());
        // The pages show the command line: as a user types it.
        trueio.arg0("trueio").current_dir(folder).env("XDG_DATA_HOME", folder.join("data")).args(arguments);
        trueio.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        trueio
    };
    let trueio = |arguments: &[&str]| succeed(&format!("trueio {}", arguments[0]), &mut prepared(arguments));
    let short = ["--runtime", "200ms", "--time_based", "--size", "4m", "--directory", "."];
    for _ in 0..4 {
        trueio(&[&["run", "--rw", "randread"][..], &short[..]].concat())?;
    }
    // A figure that the evidence contradicts, as on a busy machine, and an undecided gate are no success, but make a document.
    let grid = "compare --vary iodepth=1,4,16,64 --vary bs=4k,16k,64k --rw randread --size 16m --directory . --budget 15s \
                --slice 50ms --json grid.json";
    let two = "compare --vary fdatasync=1,0 --rw write --bs 4k --size 16m --directory . --budget 3s --slice 100ms --fail-if \
               iops<-99% --json compare.json";
    let study = "study write-flags . --quick --samples 1 --mode improved --json study.json";
    let traced =
        "run --rw randrw --bs 4k --size 16m --directory . --number_ios 4000 --trace trace.parquet --no-history";
    for line in ["baseline . --quick --json quick.json", grid, two, study, traced] {
        let _ = trueio(&line.split_whitespace().collect::<Vec<_>>());
    }
    let ranks =
        "run --rw randread --bs 4k --size 16m --directory . --runtime 1s --time_based --no-history --json ranks.json";
    run_ranks(|| prepared(&ranks.split_whitespace().collect::<Vec<_>>()))?;
    documents.extend(
        ["quick.json", "grid.json", "compare.json", "study.json", "ranks.json", "trace.parquet"]
            .map(|name| folder.join(name)),
    );
    let mut pages = Vec::new();
    for document in documents {
        let page = document.with_extension("html");
        // Relative to the folder in which it runs.
        let name = |path: &Path| path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned();
        trueio(&["report", &name(&document), "--html", &name(&page)])?;
        pages.push(page);
    }
    pages.push(make_trend(&fixture.join("baseline.json"), folder, &trueio)?);
    Ok(pages)
}

/// Days of the trend. Half of them are enough for a change to be shown.
const TREND_DAYS: u64 = 24;

/// Makes the page of a trend: the invented record on many days, with noise, a disturbed day, and a lower level from the middle on.
fn make_trend(record: &Path, folder: &Path, trueio: &impl Fn(&[&str]) -> Result<()>) -> Result<PathBuf> {
    let of_record = || record.display().to_string();
    let text = std::fs::read_to_string(record).with_context(of_record)?;
    let mut names = Vec::new();
    for day in 0..TREND_DAYS {
        let mut run: Value = serde_json::from_str(&text).with_context(of_record)?;
        run["id"] = format!("{day:032x}").into();
        run["started_unix_s"] = (1_793_491_200 + day * 86_400).into();
        // From 1 November 2026 on.
        run["started_at"] = format!("2026-11-{:02}T00:00:00Z", day + 1).into();
        let noise = [0.02, -0.015, 0.01, 0.0, -0.01, 0.015, -0.02][(day * day % 7) as usize];
        let factor = (1.0 + noise) * if day < TREND_DAYS / 2 { 1.0 } else { 0.85 };
        for phase in run["phases"].as_array_mut().into_iter().flatten() {
            if day == 5 {
                phase["verdict"] = "suspect".into();
            }
            let jobs = phase["jobs"].as_array_mut().into_iter().flatten();
            for op in jobs.filter_map(|job| job["ops"].as_array_mut()).flatten() {
                for count in ["io_count", "byte_count"] {
                    op[count] = ((op[count].as_f64().unwrap_or(0.0) * factor) as u64).into();
                }
            }
        }
        let name = format!("day-{day}.json");
        std::fs::write(folder.join(&name), run.to_string()).with_context(of_record)?;
        names.push(name);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    trueio(&[&["history", "import"], &names[..]].concat())?;
    trueio(&["history", "trend", "EX0000000001", "--html", "trend.html"])?;
    let trend = folder.join("trend.html");
    let page = std::fs::read_to_string(&trend).with_context(|| trend.display().to_string())?;
    // The page that is looked at must have what it is looked at for.
    if !page.contains("class=\"ring") || !page.contains(" fell ") {
        bail!("the trend of the invented record has no disturbed run, or shows no change");
    }
    Ok(trend)
}

/// Writes the invented records of the tests in every output.
pub(crate) fn make_fixture(folder: &Path) -> Result<()> {
    let mut example = cargo();
    example.args(["run", "--quiet", "--package", "trueio-report", "--example", "fixture", "--"]).arg(folder);
    succeed("the example `fixture`", &mut example)
}

/// Runs a command as three ranks of one run, which four variables connect.
fn run_ranks(command: impl Fn() -> Command) -> Result<()> {
    let what = "a run of three ranks";
    let listener = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = listener.context(what)?.port().to_string();
    let start = |rank: usize| {
        let variables =
            [("WORLD_SIZE", "3"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &port), ("TRUEIO_TOKEN", "of a page")];
        command().envs(variables).env("RANK", rank.to_string()).spawn()
    };
    let ranks: Vec<_> = (0..3).map(start).collect::<Result<_, _>>().context(what)?;
    for mut rank in ranks {
        // Ranks that share a disk contradict each other's figures, which is no success, but makes a document.
        rank.wait().context(what)?;
    }
    Ok(())
}

fn succeed(what: &str, command: &mut Command) -> Result<()> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("{what}: {status}"),
        Err(error) => Err(error).with_context(|| what.to_owned()),
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
