//! Runs every example as a program, and checks its output. Not under Wine, where examples are not built.
#![cfg(unix)]

use crate::support::{folder, loop_of, on_loop, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

/// `cargo test` builds the examples; if only this test is run, it builds them.
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
    run_with(name, &[argument.as_os_str()])
}

fn run_with(name: &str, arguments: &[&std::ffi::OsStr]) -> String {
    let output = Command::new(program(name)).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{name}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn assert_prints(name: &str, argument: &Path, sentences: &[&str]) {
    assert_call_prints(name, &[argument.as_os_str()], sentences);
}

fn assert_call_prints(name: &str, arguments: &[&std::ffi::OsStr], sentences: &[&str]) {
    let text = run_with(name, arguments);
    for sentence in sentences {
        assert!(text.contains(sentence), "{name} does not print `{sentence}`:\n{text}");
    }
}

#[test]
fn every_example_is_run_by_a_test() {
    let mut names: Vec<String> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let tests = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/examples.rs")).unwrap();
    let tests: String = tests.split_whitespace().collect();
    let missing: Vec<&String> = names.iter().filter(|name| !tests.contains(&format!("prints(\"{name}\","))).collect();
    assert!(names.len() >= 10 && missing.is_empty(), "{names:?} without a test: {missing:?}");
}

#[test]
fn examples_on_new_files_print_their_actions() {
    let folder = folder();
    let new = |name: &str| folder.path().join(name);
    assert_prints(
        "write_durably",
        &new("durable"),
        &["granted ", "wrote 1048576 bytes in 1 calls", "device cache emptied: true", "name is durable", "back: equal"],
    );
    assert_prints(
        "unaligned_record",
        &new("record"),
        &["wrote 13 bytes at 4090", "the file has 4103 bytes", "at 4099: byte"],
    );
    assert_prints(
        "lock",
        &new("lock"),
        &["whole file: the file is already locked", "bytes 100..110: locked", "exclusive: busy"],
    );
    assert_prints("misaligned", &new("misaligned"), &["as it should be: 4096 bytes written"]);
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
fn the_benchmark_writes_a_row_for_each_way_and_removes_its_file() {
    let folder = folder();
    let path = folder.path().join("rows");
    let arguments = ["--block-max=8192", "--size=65536", "--seconds=0.01"].map(std::ffi::OsStr::new);
    let arguments = [&arguments[..], &[path.as_os_str()]].concat();
    assert_call_prints("benchmark", &arguments, &["AMORTIZED_FSYNC + O_DIRECT + ALIGNED", "O_DSYNC + BUFFERED"]);
    assert!(!path.exists());
    let rows = run_with("benchmark", &arguments).lines().filter(|line| line.ends_with(" MiB/s")).count();
    assert_eq!(rows, 2 * 21);
    std::fs::write(&path, b"kept").unwrap();
    let output = Command::new(program("benchmark")).arg(&path).output().unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("the file exists"));
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
}

#[test]
fn the_copy_example_prints_what_it_copied() {
    let folder = folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::write(&from, vec![7; 100_001]).unwrap();
    assert_call_prints(
        "copy",
        &[from.as_os_str(), to.as_os_str()],
        &["100001 bytes of data, 0 bytes of holes", "durable"],
    );
    assert!(std::fs::read(&to).unwrap() == std::fs::read(&from).unwrap());
}

#[test]
fn examples_on_existing_files_print_their_contents() {
    let folder = folder();
    let path = folder.path().join("data");
    let contents: Vec<u8> = (0..(3usize << 20) + 5).map(|index| (index % 251) as u8).collect();
    std::fs::write(&path, &contents).unwrap();
    let sum: u64 = contents.iter().map(|byte| u64::from(*byte)).sum();
    assert_prints("read_with_threads", &path, &[&format!("{} bytes, sum {sum}", contents.len())]);
    assert_prints("buffer_pool", &path, &["8 buffers, 4096 bytes apart, 32768 bytes in all", "block 7: 4096 bytes"]);
    assert_prints("probe", &path, &["support     ", "alignment   memory"]);
    assert_prints("page_cache", &path, &["769 pages cached (", "pages left"]);
    std::fs::write(&path, [7; 5000]).unwrap();
    assert_prints(
        "buffer_pool",
        &path,
        &["block 0: 4096 bytes, the first is 7", "block 1: 904 bytes, then the file ended"],
    );
}

#[test]
fn the_atomic_write_example_writes_where_supported() {
    let refused = "refused: the offset of an atomic write, 512, is not a multiple of its length, 4096";
    match on_loop("xfs", 512 << 20, 512, "") {
        Ok(mount) => {
            let text = run("atomic_write", &mount.path.join("data"));
            if text.starts_with("no atomic writes") {
                return skip("atomic", &text);
            }
            std::fs::remove_file(mount.path.join("data")).unwrap();
            assert_prints("atomic_write", &mount.path.join("data"), &["overwritten atomically", refused]);
        }
        Err(reason) => skip("xfs", &reason),
    }
}

#[test]
fn the_disk_example_prints_size_sectors_and_use() {
    match loop_of(16 << 20, 4096) {
        Ok(below) => assert_prints(
            "disk",
            below.path(),
            &["size      16777216 bytes", "sectors   4096 logical", "serial    not reported", "in use    no"],
        ),
        Err(reason) => return skip("loop", &reason),
    }
    match on_loop("ext4", 64 << 20, 512, "") {
        Ok(mount) => assert_prints("disk", mount.below.as_ref().unwrap().path(), &["in use    yes"]),
        Err(reason) => skip("loop", &reason),
    }
}
