//! The RPM package, by rpmbuild.
//!
//! Source: RPM documentation, "Spec file format"; rpmbuild(8).

use super::tree::{self, Layout};
use super::{Release, output_of, run};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// Makes the package.
pub(super) fn build(release: &Release, arch: &str, program: &Path) -> Result<PathBuf> {
    let top = release.scratch.join(format!("rpm-{arch}"));
    let _ = std::fs::remove_dir_all(&top);
    let files = top.join("files");
    tree::fill(release, &files, program, &Layout { zsh: "usr/share/zsh/site-functions", compresses: true })?;
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let text = std::fs::read(crate::workspace::root().join(licence))?;
        tree::write(&files.join("usr/share/licenses/trueio").join(licence), text, 0o644)?;
    }
    let date = release
        .command("date")
        .args(["-u", "+%a %b %d %Y", "-d"])
        .arg(format!("@{}", release.commit_unix_s))
        .output()?;
    let date = String::from_utf8_lossy(&date.stdout).into_owned();
    let spec = top.join("trueio.spec");
    std::fs::write(&spec, spec_of(&release.version, &files, date.trim()))?;
    let mut rpmbuild = release.command("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--target"]).arg(format!("{arch}-linux"));
    let define = |name: &str, value: &str| format!("{name} {value}");
    for text in [
        define("_topdir", &top.to_string_lossy()),
        define("_rpmdir", &release.packages.to_string_lossy()),
        define("_build_name_fmt", "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"),
        define("_buildhost", "trueio"),
        define("use_source_date_epoch_as_buildtime", "1"),
        define("clamp_mtime_to_source_date_epoch", "1"),
        define("_build_id_links", "none"),
        define("debug_package", "%{nil}"),
        // The binary is stripped, and its bytes are those that were tested.
        define("__os_install_post", "%{nil}"),
        define("_binary_payload", "w9.xzdio"),
    ] {
        rpmbuild.args(["--define", &text]);
    }
    run(rpmbuild.arg(&spec))?;
    let package = release.packages.join(format!("trueio-{}-1.{arch}.rpm", release.version));
    std::fs::metadata(&package).with_context(|| package.display().to_string())?;
    Ok(package)
}

fn spec_of(version: &str, files: &Path, date: &str) -> String {
    format!(
        "Name: trueio\nVersion: {version}\nRelease: 1\nSummary: Measures storage and proves what it measured\n\
         License: MIT OR Apache-2.0\nURL: https://github.com/trueio/trueio\nGroup: Applications/System\nPackager: The trueio authors <trueio@users.noreply.github.com>\n\n%description\n\
         trueio measures disks, volumes and filesystems, and compares its figures with\n\
         what the kernel and the device counted meanwhile. Each figure is supported,\n\
         suspect or contradicted, with the reasons.\n\n%install\ncp -a {}/. %{{buildroot}}/\n\n%files\n\
         %license /usr/share/licenses/trueio/*\n/usr/bin/trueio\n%doc /usr/share/doc/trueio\n%doc /usr/share/man/man1/*\n\
         %doc /usr/share/man/man5/*\n/usr/share/bash-completion/completions/trueio\n/usr/share/zsh/site-functions/_trueio\n\
         /usr/share/fish/vendor_completions.d/trueio.fish\n\n%changelog\n* {date} The trueio authors <trueio@users.noreply.github.com> - {version}-1\n- See CHANGELOG.md.\n",
        files.display()
    )
}

/// Checks the package with rpmlint, which must report no error, and what it requires. It is signed where it is published, not here.
pub(super) fn lint(package: &Path) -> Result<String> {
    let requires = output_of(crate::workspace::command("rpm").args(["-qp", "--requires"]).arg(package))?;
    let others: Vec<&str> = requires
        .lines()
        .filter(|line| {
            !["libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "ld-linux", "rpmlib(", "rtld("]
                .iter()
                .any(|part| line.starts_with(part))
        })
        // The library of the compiler, in builds that are not linked for a release.
        .filter(|line| !line.starts_with("libgcc_s.so"))
        .collect();
    ensure!(others.is_empty(), "the .rpm requires more than libc: {others:?}");
    let output = crate::workspace::command("rpmlint").arg(package).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors: Vec<&str> =
        text.lines().filter(|line| line.contains(": E: ") && !line.ends_with(": E: no-signature")).collect();
    ensure!(errors.is_empty(), "rpmlint: {}", errors.join("\n"));
    ensure!(text.contains("packages and"), "rpmlint printed no sum: {text}{}", String::from_utf8_lossy(&output.stderr));
    Ok("rpmlint: no error".to_owned())
}
