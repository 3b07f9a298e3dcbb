//! The Debian package, by dpkg-deb.
//!
//! Source: Debian Policy 4.6; deb-control(5), deb-changelog(5).

use super::tree::{self, Layout};
use super::{Release, output_of, run};
use anyhow::{Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};

const MAINTAINER: &str = "The trueio authors <trueio@users.noreply.github.com>";

/// Reasons stand in the file: lintian shows overrides with `--show-overrides`.
const OVERRIDES: &str = "\
# The same binary is in all packages, so the SQLite of the history is a part of it, not a library of the distribution.
trueio: embedded-library *
# trueio is not a package of Debian.
trueio: initial-upload-closes-no-bugs *
trueio: no-manual-page *
";

/// Makes the package.
pub(super) fn build(release: &Release, arch: &str, program: &Path) -> Result<PathBuf> {
    let root = release.scratch.join(format!("deb-{arch}"));
    let layout = Layout { zsh: "usr/share/zsh/vendor-completions", compresses: true };
    tree::fill(release, &root, program, &layout)?;
    let documents = root.join("usr/share/doc/trueio");
    tree::write(&documents.join("copyright"), copyright(), 0o644)?;
    let date = output_of(release.command("date").args(["-R", "-d"]).arg(format!("@{}", release.commit_unix_s)))?;
    let changelog = format!(
        "trueio ({}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {MAINTAINER}  {date}",
        release.version
    );
    tree::write(&documents.join("changelog"), changelog, 0o644)?;
    run(release.command("gzip").arg("-9n").arg(documents.join("changelog")))?;
    tree::write(&root.join("usr/share/lintian/overrides/trueio"), OVERRIDES, 0o644)?;
    let size_kib = output_of(release.command("du").args(["-sk", "--apparent-size"]).arg(&root))?;
    let size_kib = size_kib.split_whitespace().next().unwrap_or("0").to_owned();
    tree::write(&root.join("DEBIAN/control"), control(&release.version, arch, &size_kib), 0o644)?;
    let sums = "cd \"$1\" && find usr -type f | LC_ALL=C sort | xargs -d '\\n' md5sum > DEBIAN/md5sums && chmod 644 DEBIAN/md5sums \
                && find . -type d -exec chmod 755 {} +";
    run(release.command("sh").args(["-c", sums, "sh"]).arg(&root))?;
    let package = release.packages.join(format!("trueio_{}_{arch}.deb", release.version));
    run(release.command("dpkg-deb").args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(&package))?;
    Ok(package)
}

fn control(version: &str, arch: &str, size_kib: &str) -> String {
    format!(
        "Package: trueio\nVersion: {version}\nArchitecture: {arch}\nMaintainer: {MAINTAINER}\nInstalled-Size: {size_kib}\n\
         Depends: libc6 (>= 2.17)\nSection: utils\nPriority: optional\nHomepage: https://github.com/trueio/trueio\n\
         Description: measures storage and proves what it measured\n \
         trueio measures disks, volumes and filesystems, and compares its figures with\n \
         what the kernel and the device counted meanwhile. Each figure is supported,\n \
         suspect or contradicted, with the reasons.\n .\n \
         It reads job files in TOML and in the language of fio, compares two ways of\n \
         doing I/O with intervals, and keeps a history.\n"
    )
}

fn copyright() -> String {
    let indented = |text: &str| -> String {
        text.trim_end()
            .lines()
            .map(|line| if line.trim().is_empty() { " .\n".to_owned() } else { format!(" {line}\n") })
            .collect()
    };
    let mit = fs::read_to_string(crate::workspace::root().join("LICENSE-MIT")).unwrap_or_default();
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: trueio\n\
         Source: https://github.com/trueio/trueio\n\nFiles: *\nCopyright: the trueio authors\nLicense: Expat or Apache-2.0\n\n\
         License: Expat\n{}\nLicense: Apache-2.0\n On Debian systems, the text of this licence is in\n \
         /usr/share/common-licenses/Apache-2.0.\n",
        indented(&mit)
    )
}

/// Checks the package with lintian, which must report no error.
pub(super) fn lint(package: &Path) -> Result<String> {
    let mut lintian = crate::workspace::command("lintian");
    lintian.args(["--allow-root", "--no-tag-display-limit", "--fail-on", "none"]).arg(package);
    let text = output_of(&mut lintian)?;
    let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("E:")).collect();
    ensure!(errors.is_empty(), "lintian: {}", errors.join("\n"));
    let warnings = text.lines().filter(|line| line.starts_with("W:")).count();
    Ok(format!("lintian: no error, {warnings} warnings"))
}
