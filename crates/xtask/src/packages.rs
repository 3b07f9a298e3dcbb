//! Packages of the program: `cargo xtask dist`.
//!
//! Static binaries (musl) for x86-64 and ARM, and one that needs glibc 2.17; of these a `.deb`, an `.rpm`, tarballs, the files
//! of a container image, an SBOM, and the formula and expression of Homebrew and Nix with version and checksums filled in.
//! The same commit gives the same bytes: all times are the commit's, and paths of this machine are not in the binaries.
//! `--twice` builds each binary in two directories and compares. `--target` makes only the packages of one binary.
//!
//! Static binaries are linked by the compiler's own linker. C code, and the binary for glibc, need zig and cargo-zigbuild, from
//! PyPI. A target that cannot be linked here is skipped with its reason. Nothing is uploaded. CI packs the release build that it
//! has already (`in_ci`), which shows that a package installs, works and is removed; the binaries of a release are built with
//! `TRUEIO_DIST=1`.
//!
//! Cannot do: run the ARM binary, or sign.

mod binary;
mod deb;
mod install;
mod rpm;
mod sbom;
mod templates;
mod tree;

use crate::dist_folder::DistFolder;
use crate::publish;
use crate::setup;
use crate::step::Outcome;
use crate::workspace::{self, command, has_program};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folders of the packages and of everything else, below [`DistFolder`].
const FOLDER: &str = "program";
const SCRATCH: &str = "program-scratch";
/// The file with the name of the commit that the packages are made of, in the folder of everything else.
const COMMIT: &str = "commit";

/// Programs that make and check packages, by the Debian package of each. They bring a hundred packages with them.
const PACKAGERS: &[(&str, &str)] = &[("rpm", "rpmbuild"), ("lintian", "lintian"), ("rpmlint", "rpmlint")];

/// Unpacks the static program for an architecture (`x86_64`) into `to` and returns its path; `None`: [`run_all`] has not made it
/// of this commit.
pub(crate) fn static_program(dist: &DistFolder, arch: &str, to: &Path) -> Result<Option<PathBuf>> {
    let name = tree::archive_name(env!("CARGO_PKG_VERSION"), &format!("{arch}-unknown-linux-musl"));
    let archive = dist.path.join(FOLDER).join(format!("{name}.tar.gz"));
    let made_of = std::fs::read_to_string(dist.path.join(SCRATCH).join(COMMIT));
    if !archive.exists() || made_of.ok() != Some(commit()?) {
        return Ok(None);
    }
    run(command("tar").arg("--extract").arg("--gzip").arg("--file").arg(archive).arg("--directory").arg(to))?;
    Ok(Some(to.join(name).join("trueio")))
}

/// The name of the commit.
fn commit() -> Result<String> {
    output_of(command("git").args(["rev-parse", "HEAD"]))
}

/// What all packages of a commit share.
struct Release {
    version: String,
    /// Time of the commit, in seconds since 1970-01-01 UTC: the time of every file.
    commit_unix_s: u64,
    /// The folder of the finished packages.
    packages: PathBuf,
    /// The folder of everything else.
    scratch: PathBuf,
}

impl Release {
    fn new(packages: PathBuf, scratch: PathBuf) -> Result<Self> {
        let _ = std::fs::remove_dir_all(&packages);
        for folder in [&packages, &scratch] {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        std::fs::write(scratch.join(COMMIT), commit()?).context("the name of the commit")?;
        let time = output_of(command("git").args(["log", "-1", "--format=%ct"]))?;
        let commit_unix_s = time.trim().parse().context("git prints no time of the commit")?;
        Ok(Self { version: env!("CARGO_PKG_VERSION").into(), commit_unix_s, packages, scratch })
    }

    /// A program whose output has the time of the commit.
    fn command(&self, program: &str) -> Command {
        let mut command = command(program);
        command.env("SOURCE_DATE_EPOCH", self.commit_unix_s.to_string()).env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
        command
    }
}

/// Makes the packages that the command line names: `[--twice] [--target TRIPLE]`.
pub(crate) fn from_arguments(args: &[&str]) -> Result<bool> {
    let (is_twice, targets) = parse(args)?;
    run_all(is_twice, &targets)?;
    Ok(true)
}

fn parse(args: &[&str]) -> Result<(bool, Vec<&'static binary::Target>)> {
    let (is_twice, rest) = match args {
        ["--twice", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let targets: Vec<_> = match rest {
        [] => binary::TARGETS.iter().collect(),
        ["--target", triple] => binary::TARGETS.iter().filter(|target| target.triple == *triple).collect(),
        _ => bail!("expected `cargo xtask dist [--twice] [--target TRIPLE]`"),
    };
    ensure!(
        !targets.is_empty(),
        "not a target of a release: {}",
        binary::TARGETS.iter().map(|target| target.triple).collect::<Vec<_>>().join(", ")
    );
    Ok((is_twice, targets))
}

/// Makes the packages of `targets`. An optional target that cannot be linked here is skipped.
fn run_all(is_twice: bool, targets: &[&'static binary::Target]) -> Result<()> {
    setup::install(PACKAGERS).map_err(anyhow::Error::msg)?;
    let dist = DistFolder::new()?;
    dist.fetch_tools()?;
    let release = Release::new(dist.path.join(FOLDER), dist.path.join(SCRATCH))?;
    let mut tarballs = Vec::new();
    let mut of_image = None;
    for &target in targets {
        let program = match binary::build(&dist, &release, target, 0) {
            Ok(program) => program,
            Err(why) if target.is_optional => {
                println!("skipped {}: {why:#}", target.triple);
                continue;
            }
            Err(why) => return Err(why.context(target.triple)),
        };
        println!("{}: {}", target.triple, binary::check(&program, target)?);
        if is_twice {
            let again = binary::build(&dist, &release, target, 1)?;
            ensure!(std::fs::read(&program)? == std::fs::read(&again)?, "{}: the second build differs", target.triple);
            println!("{}: built twice, the same bytes", target.triple);
        }
        tarballs.push((target, tree::tarball(&release, target, &program)?));
        if target.is_packaged {
            let package = deb::build(&release, target.deb_arch, &program)?;
            println!("{}\n{}", deb::lint(&package)?, install::deb(&release, &package)?);
            println!("{}", rpm::lint(&rpm::build(&release, target.rpm_arch, &program)?)?);
        }
        if target.is_static && target.runs_here {
            println!("{}\n{}", install::alone(&release, &program)?, install::under_hydra(&release, &program)?);
            of_image = Some(program);
        }
    }
    sbom::write(&release)?;
    templates::write(&release, &tarballs)?;
    if let Some(program) = of_image {
        match install::image(&release, &program)? {
            Ok(done) => println!("{done}"),
            Err(why_not) => println!("skipped the image: {why_not}"),
        }
    }
    let mut sums = release.command("sh");
    sums.args(["-c", "cd \"$1\" && sha256sum -- * > SHA256SUMS && cat SHA256SUMS", "sh"]).arg(&release.packages);
    run(&mut sums)
}

/// Packs the release build, and installs, uses and removes the packages: what of [`run_all`] takes seconds.
pub(crate) fn in_ci(program: &Path) -> Outcome {
    if std::env::var_os("TRUEIO_DIST").is_some()
        && let Err(why_not) = setup::install(PACKAGERS)
    {
        return Outcome::optional(&why_not);
    }
    if !has_program("dpkg-deb") {
        return Outcome::optional("no dpkg-deb");
    }
    Outcome::from_lines(packed(program))
}

/// Runs a check whose program may be missing here; then returns a note.
fn if_installed(program: &str, check: impl FnOnce() -> Result<String>) -> Result<String> {
    if has_program(program) { check() } else { Ok(format!("no {program}: TRUEIO_DIST=1 installs it")) }
}

fn packed(program: &Path) -> Result<(Vec<String>, bool)> {
    let target = workspace::target_dir()?.join("packages-of-ci");
    let release = Release::new(target.join("packages"), target.join("scratch"))?;
    let stripped = release.scratch.join("trueio");
    run(command("strip").arg("-o").arg(&stripped).arg(program))?;
    let mut found = vec![format!("{:.1} MiB stripped", std::fs::metadata(&stripped)?.len() as f64 / (1 << 20) as f64)];
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        found.push(publish::links_with_old_c_library(program)?);
    }
    let package = deb::build(&release, "amd64", &stripped)?;
    found.push(if_installed("lintian", || deb::lint(&package))?);
    found.push(install::deb(&release, &package)?);
    let before = std::fs::read(&package)?;
    let again = deb::build(&release, "amd64", &stripped)?;
    ensure!(before == std::fs::read(&again)?, "the second .deb differs");
    found.push(if_installed("rpmbuild", || {
        let package = rpm::build(&release, "x86_64", &stripped)?;
        if_installed("rpmlint", || rpm::lint(&package))
    })?);
    found.push(format!("SBOM with {} components", sbom::write(&release)?));
    Ok((found, true))
}

fn run(command: &mut Command) -> Result<()> {
    output_of(command).map(drop)
}

/// Runs a program and returns what it printed; the error has the end of its messages.
fn output_of(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("`{name}` cannot be started"))?;
    if !output.status.success() {
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let lines: Vec<&str> = text.lines().collect();
        bail!("`{name}`: {}\n{}", output.status, lines[lines.len().saturating_sub(20)..].join("\n"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_another_commit_does_not_go_into_a_wheel() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let dist = DistFolder { path: folder.path().to_owned() };
        let name = tree::archive_name(env!("CARGO_PKG_VERSION"), "x86_64-unknown-linux-musl");
        for place in [&name, FOLDER, SCRATCH, "to"] {
            std::fs::create_dir(path(place)).unwrap();
        }
        std::fs::write(path(&name).join("trueio"), "the program").unwrap();
        let archive = path(FOLDER).join(format!("{name}.tar.gz"));
        run(command("tar").arg("-czf").arg(archive).arg("--directory").arg(folder.path()).arg(&name)).unwrap();
        let found = || static_program(&dist, "x86_64", &path("to")).unwrap();
        assert_eq!(found(), None, "of an unknown commit");
        std::fs::write(path(SCRATCH).join(COMMIT), "0000000\n").unwrap();
        assert_eq!(found(), None, "of another commit");
        std::fs::write(path(SCRATCH).join(COMMIT), commit().unwrap()).unwrap();
        assert_eq!(std::fs::read(found().expect("of this commit")).unwrap(), b"the program");
        assert_eq!(static_program(&dist, "aarch64", &path("to")).unwrap(), None, "it was not made");
    }

    #[test]
    fn all_targets_are_built_or_the_one_that_is_named() {
        let names = |args: &[&str]| {
            let (is_twice, targets) = parse(args)?;
            anyhow::Ok((is_twice, targets.iter().map(|target| target.triple).collect::<Vec<_>>()))
        };
        let musl = "x86_64-unknown-linux-musl";
        assert_eq!(names(&[]).unwrap().1.len(), binary::TARGETS.len());
        assert_eq!(names(&["--target", musl]).unwrap(), (false, vec![musl]));
        assert_eq!(names(&["--twice", "--target", musl]).unwrap(), (true, vec![musl]));
        for wrong in [&["--target"][..], &["--target", "sparc"], &["twice"], &["--target", musl, "--twice"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
