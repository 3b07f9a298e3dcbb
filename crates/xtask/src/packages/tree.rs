//! The files of a package besides the binary: manual pages, completions, documentation, licences.

use super::binary::Target;
use super::{Release, output_of, run};
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Files of the repository that are documentation.
const DOCUMENTS: &[&str] = &["README.md", "CHANGELOG.md", "SECURITY.md"];

/// Where a system keeps the completions of zsh.
pub(super) struct Layout {
    pub(super) zsh: &'static str,
    /// True if manual pages are compressed here; rpmbuild compresses them itself.
    pub(super) compresses: bool,
}

/// Writes a file with its folders.
pub(super) fn write(path: &Path, content: impl AsRef<[u8]>, mode: u32) -> Result<()> {
    let folder = path.parent().context("a file has a folder")?;
    fs::create_dir_all(folder)?;
    fs::write(path, content).with_context(|| path.display().to_string())?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// Fills `root` with everything that a package has. `program` prints the pages, so it must run here.
pub(super) fn fill(release: &Release, root: &Path, program: &Path, layout: &Layout) -> Result<()> {
    let _ = fs::remove_dir_all(root);
    write(&root.join("usr/bin/trueio"), fs::read(program)?, 0o755)?;
    for (file, text) in manual(program)? {
        let section = file.rsplit('.').next().unwrap_or("1");
        let path = root.join(format!("usr/share/man/man{section}/{file}"));
        write(&path, text, 0o644)?;
        if layout.compresses {
            run(release.command("gzip").args(["-9n"]).arg(&path))?;
        }
    }
    for (shell, path) in [
        ("bash", "usr/share/bash-completion/completions/trueio".to_owned()),
        ("zsh", format!("{}/_trueio", layout.zsh)),
        ("fish", "usr/share/fish/vendor_completions.d/trueio.fish".to_owned()),
    ] {
        write(&root.join(path), completions(program, shell)?, 0o644)?;
    }
    let documents = root.join("usr/share/doc/trueio");
    for name in DOCUMENTS {
        write(&documents.join(name), fs::read(workspace::root().join(name))?, 0o644)?;
    }
    copy_pages(&documents.join("docs"))
}

/// Copies `docs/` with its schemas.
fn copy_pages(to: &Path) -> Result<()> {
    let from = workspace::root().join("docs");
    for folder in [from.clone(), from.join("schema")] {
        for entry in fs::read_dir(&folder)?.flatten().filter(|entry| entry.path().is_file()) {
            write(&to.join(entry.path().strip_prefix(&from)?), fs::read(entry.path())?, 0o644)?;
        }
    }
    Ok(())
}

/// Returns the manual pages by their files.
fn manual(program: &Path) -> Result<Vec<(String, String)>> {
    let named = |arguments: &[&str]| output_of(named_program(program).args(["man"]).args(arguments));
    let list = named(&["--list"])?;
    list.lines()
        .map(|line| {
            let (file, words) = line.split_once('\t').context("`trueio man --list` prints a file and its arguments")?;
            Ok((file.to_owned(), named(&words.split_whitespace().collect::<Vec<_>>())?))
        })
        .collect()
}

fn completions(program: &Path, shell: &str) -> Result<String> {
    output_of(named_program(program).args(["completions", shell]))
}

/// The program, started by its name: scripts then call `trueio` of the PATH.
fn named_program(program: &Path) -> std::process::Command {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new(program);
    command.arg0("trueio");
    command
}

/// The name of a target's archive and of the folder in it.
pub(super) fn archive_name(version: &str, triple: &str) -> String {
    format!("trueio-{version}-{triple}")
}

/// Makes the archive of a target, which needs no package manager.
pub(super) fn tarball(release: &Release, target: &Target, program: &Path) -> Result<PathBuf> {
    let name = archive_name(&release.version, target.triple);
    let root = release.scratch.join("tarballs").join(&name);
    let _ = fs::remove_dir_all(&root);
    write(&root.join("trueio"), fs::read(program)?, 0o755)?;
    // Pages are the same on all systems; those of a program that does not run here come from one that does.
    let printer = if target.runs_here { program.to_owned() } else { release.scratch.join("printer") };
    if target.runs_here && !release.scratch.join("printer").exists() {
        write(&release.scratch.join("printer"), fs::read(program)?, 0o755)?;
    }
    ensure!(printer.exists(), "its manual pages are printed by a binary that runs here: build one of those first");
    for (file, text) in manual(&printer)? {
        write(&root.join("man").join(file), text, 0o644)?;
    }
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        write(&root.join("completions").join(format!("trueio.{shell}")), completions(&printer, shell)?, 0o644)?;
    }
    for name in [DOCUMENTS, &["LICENSE-APACHE", "LICENSE-MIT"]].concat() {
        write(&root.join(name), fs::read(workspace::root().join(name))?, 0o644)?;
    }
    copy_pages(&root.join("docs"))?;
    let archive = release.packages.join(format!("{name}.tar.gz"));
    let script = "cd \"$1\" && tar --sort=name --mtime=\"@$SOURCE_DATE_EPOCH\" --owner=0 --group=0 --numeric-owner --format=ustar \
                  -cf - \"$2\" | gzip -9n > \"$3\"";
    run(release
        .command("sh")
        .args(["-c", script, "sh"])
        .arg(release.scratch.join("tarballs"))
        .arg(&name)
        .arg(&archive))?;
    Ok(archive)
}
