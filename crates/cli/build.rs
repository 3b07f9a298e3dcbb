//! Packs the schemas of the documents, which `trueio schema` prints, and the program's relative relocations where the system's
//! loader can read them.
//!
//! The schemas are 630 KB of text, 100 KB packed; the code that renders them from the types was 900 KB.
//!
//! A position-independent program of this size has some 19,000 pointers that the loader adjusts when
//! it starts. As a table of 24 bytes each they are 450 KiB that every start reads and keeps mapped;
//! packed (`DT_RELR`) they are a few. glibc reads that form since 2.36, so it is used only where the
//! program is built for the system that builds it, with its own linker, and only with such a glibc: another linker
//! (zig, by `cargo xtask dist`) may not know it, or link for an older glibc.
//!
//! Source: ld(1) `-z pack-relative-relocs`; glibc 2.36 release notes.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// The newest version of each document's schema, by name.
const SCHEMAS: [(&str, &str); 6] = [
    ("record", "record-v3.json"),
    ("comparison", "comparison-v1.json"),
    ("study", "study-v1.json"),
    ("trend", "trend-v1.json"),
    ("capacity", "capacity-v1.json"),
    ("powercut", "powercut-v1.json"),
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    pack_schemas();
    pack_relocations();
}

/// Packs `docs/schema/` for `src/schema.rs`.
fn pack_schemas() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folder = Path::new(&here).join("../../docs/schema");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
    for (name, file) in SCHEMAS {
        let path = folder.join(file);
        println!("cargo:rerun-if-changed={}", path.display());
        let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let packed = File::create(Path::new(&out).join(format!("{name}.deflate"))).expect("OUT_DIR can be written");
        let mut encoder = DeflateEncoder::new(packed, Compression::best());
        encoder.write_all(&text).and_then(|()| encoder.finish()).expect("OUT_DIR can be written");
    }
}

fn pack_relocations() {
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
