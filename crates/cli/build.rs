//! Packs the program's relative relocations where the system's loader can read them.
//!
//! A position-independent program of this size has some 19,000 pointers that the loader adjusts when
//! it starts. As a table of 24 bytes each they are 450 KiB that every start reads and keeps mapped;
//! packed (`DT_RELR`) they are a few. glibc reads that form since 2.36, so it is used only where the
//! program is built for the system that builds it, with its own linker, and only with such a glibc: another linker
//! (zig, by `cargo xtask dist`) may not know it, or link for an older glibc.
//!
//! Source: ld(1) `-z pack-relative-relocs`; glibc 2.36 release notes.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let is_own = variable("TARGET") == variable("HOST") && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    let has_own_linker = std::env::var_os("RUSTC_LINKER").is_none();
    if is_own && has_own_linker && glibc_minor().is_some_and(|minor| minor >= 36) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// 36 of `glibc 2.36`; `None` if the system does not say.
fn glibc_minor() -> Option<u32> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    text.trim().strip_prefix("glibc 2.")?.parse().ok()
}
