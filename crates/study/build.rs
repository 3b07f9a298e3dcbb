//! Puts every folder of `studies/` into the program: a new study needs no code.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    // Read when it runs: a target folder that was copied holds a program of another folder.
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&here).join("../../studies");
    println!("cargo:rerun-if-changed={}", root.display());
    println!("cargo:rerun-if-changed=build.rs");
    let mut names: Vec<String> = std::fs::read_dir(&root)
        .expect("studies/ can be read")
        .flatten()
        .filter(|entry| entry.path().join("study.toml").is_file())
        .map(|entry| entry.file_name().into_string().expect("a study's name is UTF-8"))
        .collect();
    names.sort();
    let mut out = String::from("[\n");
    for name in &names {
        for file in ["study.toml", "published.csv"] {
            println!("cargo:rerun-if-changed={}", root.join(name).join(file).display());
        }
        let path = |file: &str| format!("{:?}", root.join(name).join(file));
        writeln!(
            out,
            "    Embedded {{ name: {name:?}, definition: include_str!({}), published: include_str!({}) }},",
            path("study.toml"),
            path("published.csv")
        )
        .expect("writing to a string");
    }
    out.push(']');
    let target = Path::new(&std::env::var("OUT_DIR").expect("cargo sets it")).join("embedded.rs");
    std::fs::write(target, out).expect("the build directory can be written");
}
