//! Every example is run as a program, and says what it should. Not under Wine, where examples are not built.
#![cfg(unix)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::{folder, loop_of, on_loop, skip};

/// Built beside the tests by `cargo test`; if only this test was asked for, it is built now.
fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    if !path.exists() {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.args(["build", "--quiet", "--package", "trueio-direct", "--examples"]);
        assert!(cargo.status().unwrap().success());
    }
    path
}

fn run(name: &str, argument: &Path) -> String {
    let output = Command::new(program(name)).arg(argument).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{name}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn assert_says(name: &str, argument: &Path, sentences: &[&str]) {
    let text = run(name, argument);
    for sentence in sentences {
        assert!(text.contains(sentence), "{name} does not say `{sentence}`:\n{text}");
    }
}

#[test]
fn every_example_is_run_by_a_test() {
    let mut names: Vec<String> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let tests = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples.rs")).unwrap();
    let tests: String = tests.split_whitespace().collect();
    let missing: Vec<&String> = names.iter().filter(|name| !tests.contains(&format!("says(\"{name}\","))).collect();
    assert!(names.len() >= 10 && missing.is_empty(), "{names:?} without a test: {missing:?}");
}

#[test]
fn examples_on_new_files_say_what_they_did() {
    let folder = folder();
    let new = |name: &str| folder.path().join(name);
    assert_says(
        "write_durably",
        &new("durable"),
        &["granted ", "wrote 1048576 bytes in 1 calls", "device cache emptied: true", "name is durable", "back: equal"],
    );
    assert_says(
        "unaligned_record",
        &new("record"),
        &["wrote 13 bytes at 4090", "the file has 4103 bytes", "at 4099: byte"],
    );
    assert_says(
        "lock",
        &new("lock"),
        &["whole file: the file is already locked", "bytes 100..110: locked", "exclusive: busy"],
    );
    assert_says("misaligned", &new("misaligned"), &["as it should be: 4096 bytes written"]);
    let is_direct = trueio_direct::probe(new("misaligned")).unwrap().support == trueio_direct::Support::Direct;
    if is_direct {
        let text = run("misaligned", &new("misaligned again"));
        for part in ["buffer: address is", "100 bytes: length is 100", "at offset 1: offset is 1, needed is a multiple"]
        {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[test]
fn examples_on_existing_files_say_what_is_in_them() {
    let folder = folder();
    let path = folder.path().join("data");
    let contents: Vec<u8> = (0..(3usize << 20) + 5).map(|index| (index % 251) as u8).collect();
    std::fs::write(&path, &contents).unwrap();
    let sum: u64 = contents.iter().map(|byte| u64::from(*byte)).sum();
    assert_says("read_with_threads", &path, &[&format!("{} bytes, sum {sum}", contents.len())]);
    assert_says("buffer_pool", &path, &["8 buffers, 4096 bytes apart, 32768 bytes in all", "block 7: 4096 bytes"]);
    assert_says("probe", &path, &["support     ", "alignment   memory"]);
    assert_says("page_cache", &path, &["769 pages cached, says", "pages left"]);
    std::fs::write(&path, [7; 5000]).unwrap();
    assert_says(
        "buffer_pool",
        &path,
        &["block 0: 4096 bytes, the first is 7", "block 1: 904 bytes, then the file ended"],
    );
}

#[test]
fn the_example_of_atomic_writes_makes_one_where_they_can_be_had() {
    let refused = "refused: the offset of an atomic write, 512, is not a multiple of its length, 4096";
    match on_loop("xfs", 512 << 20, 512, "") {
        Ok(mount) => {
            let text = run("atomic_write", &mount.path.join("data"));
            if text.starts_with("no atomic writes") {
                return skip("atomic", &text);
            }
            std::fs::remove_file(mount.path.join("data")).unwrap();
            assert_says("atomic_write", &mount.path.join("data"), &["overwritten atomically", refused]);
        }
        Err(reason) => skip("xfs", &reason),
    }
}

#[test]
fn the_example_of_disks_tells_size_and_sectors_and_who_uses_it() {
    match loop_of(16 << 20, 4096) {
        Ok(below) => assert_says(
            "disk",
            below.path(),
            &["size      16777216 bytes", "sectors   4096 logical", "serial    none told", "in use    by nobody"],
        ),
        Err(reason) => return skip("loop", &reason),
    }
    match on_loop("ext4", 64 << 20, 512, "") {
        Ok(mount) => assert_says("disk", mount.below.as_ref().unwrap().path(), &["in use    yes"]),
        Err(reason) => skip("loop", &reason),
    }
}
