//! Builds the binaries of a release, and checks them: what they need, paths of this machine.

use super::{Release, output_of, run};
use crate::dist_folder::DistFolder;
use crate::workspace::{self, command};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A system that a binary is built for.
pub(super) struct Target {
    /// Its name for rustc.
    pub(super) triple: &'static str,
    /// Its name for zig, or for cargo-zigbuild, which adds the version of glibc.
    zig: &'static str,
    /// Its name for Debian and for RPM.
    pub(super) deb_arch: &'static str,
    pub(super) rpm_arch: &'static str,
    /// True if the binary needs no library.
    pub(super) is_static: bool,
    /// True if `.deb` and `.rpm` are made of it.
    pub(super) is_packaged: bool,
    /// True if this machine runs it.
    pub(super) runs_here: bool,
    /// True if a release can do without it.
    pub(super) is_optional: bool,
}

/// Flags with which a static binary is linked: by the linker that comes with the compiler.
const LINKER_OF_STATIC: &str = "-C linker=rust-lld -C linker-flavor=ld.lld";

pub(super) const TARGETS: &[Target] = &[
    Target {
        triple: "x86_64-unknown-linux-musl",
        zig: "x86_64-linux-musl",
        deb_arch: "amd64",
        rpm_arch: "x86_64",
        is_static: true,
        is_packaged: false,
        runs_here: cfg!(target_arch = "x86_64"),
        is_optional: false,
    },
    Target {
        triple: "x86_64-unknown-linux-gnu",
        zig: "x86_64-unknown-linux-gnu.2.17",
        deb_arch: "amd64",
        rpm_arch: "x86_64",
        is_static: false,
        is_packaged: true,
        runs_here: cfg!(target_arch = "x86_64"),
        is_optional: false,
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        zig: "aarch64-linux-musl",
        deb_arch: "arm64",
        rpm_arch: "aarch64",
        is_static: true,
        is_packaged: false,
        runs_here: cfg!(target_arch = "aarch64"),
        is_optional: true,
    },
];

/// Builds the program for a target; `copy` numbers the build directories.
pub(super) fn build(dist: &DistFolder, release: &Release, target: &Target, copy: u32) -> Result<PathBuf> {
    run(command("rustup").args(["target", "add", target.triple])).context("rustup has no such target")?;
    let build = dist.path.join(format!("cargo-{copy}"));
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    // Paths of this machine would differ elsewhere, and tell about it.
    let mut places = vec![(workspace::root(), "/trueio"), (build.clone(), "/build")];
    places.extend(home.map(|home| (home, "/cargo")));
    let flags = |option: &str| -> String {
        let each = places.iter().map(|(path, name)| format!("{option}={}={name}", path.display()));
        each.collect::<Vec<_>>().join(" ")
    };
    let mut cargo = if target.is_static {
        let mut cargo = dist.with_tools("cargo");
        let name = target.triple.replace('-', "_");
        // The compiler of SQLite; it needs no library of this machine.
        cargo.env(format!("CC_{name}"), format!("cargo-zigbuild zig cc -- -fno-sanitize=all -target {}", target.zig));
        cargo.env(format!("AR_{name}"), "cargo-zigbuild zig ar --");
        cargo.args(["build", "--target", target.triple]);
        cargo
    } else {
        let mut cargo = dist.program("cargo-zigbuild");
        cargo.args(["zigbuild", "--target", target.zig]);
        cargo
    };
    cargo.args(["--locked", "--profile", "dist", "--package", "trueio-cli", "--bin", "trueio"]);
    cargo.current_dir(workspace::root());
    cargo.env("CARGO_TARGET_DIR", &build).env("SOURCE_DATE_EPOCH", release.commit_unix_s.to_string());
    let linker = if target.is_static { LINKER_OF_STATIC } else { "" };
    cargo.env("RUSTFLAGS", format!("{} {linker}", flags("--remap-path-prefix")));
    cargo.env("CFLAGS", flags("-ffile-prefix-map"));
    cargo.stdout(std::process::Stdio::inherit());
    run(&mut cargo)?;
    Ok(build.join(target.triple).join("dist/trueio"))
}

/// Checks a binary and returns what was found, for people.
pub(super) fn check(program: &Path, target: &Target) -> Result<String> {
    let dynamic = output_of(Command::new("readelf").args(["--dynamic", "--program-headers", "--wide"]).arg(program))?;
    let needed: Vec<&str> = dynamic
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .filter_map(|line| line.split(['[', ']']).nth(1))
        .collect();
    if target.is_static {
        ensure!(needed.is_empty() && !dynamic.contains("INTERP"), "a static binary needs {needed:?}");
    } else {
        // Parts of glibc 2.17; the loader is one, too.
        let parts = ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"];
        let others: Vec<&&str> = needed.iter().filter(|name| !parts.contains(name)).collect();
        ensure!(others.is_empty(), "the binary needs more than libc: {others:?}");
        let script = workspace::root().join("bindings/node/scripts/glibc.js");
        run(command("node").arg(script).arg(program))?;
    }
    let bytes = std::fs::read(program)?;
    for place in [workspace::root(), PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo")] {
        let path = place.to_string_lossy().into_owned();
        ensure!(
            !bytes.windows(path.len()).any(|bytes| bytes == path.as_bytes()),
            "the binary has the path {path} in it"
        );
    }
    let needs = if needed.is_empty() { "static".to_owned() } else { needed.join(", ") };
    Ok(format!("{:.1} MiB, {needs}", mib(std::fs::metadata(program)?.len())))
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}
