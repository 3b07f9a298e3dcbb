//! Unpacks a recorded machine (`../machines/README.md`) into a folder. Tests of other crates use it by path.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trueio_device::System;

/// A machine of this directory, unpacked until it is dropped.
pub(crate) struct Machine {
    #[allow(dead_code, reason = "tests of the program give it the folder")]
    pub(crate) system: System,
    #[allow(dead_code, reason = "only some tests change what is unpacked")]
    pub(crate) folder: TempDir,
}

/// Unpacks `crates/device/tests/<name>`: `tree.txt`, and `paths` and `dmesg.txt` (as `/dev/kmsg`) if
/// they are there.
pub(crate) fn recorded(name: &str) -> Machine {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device/tests").join(name);
    let folder = TempDir::new().expect("a temporary folder");
    let tree = fs::read_to_string(source.join("tree.txt")).unwrap_or_else(|e| panic!("{name}/tree.txt: {e}"));
    let place = |path: &str| -> PathBuf {
        let place = folder.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(place.parent().expect("a path below the folder")).expect("a folder");
        place
    };
    for line in tree.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((path, target)) = line.split_once(" -> ") {
            symlink(target, place(path)).expect(line);
        } else if let Some((path, hexadecimal)) = line.split_once(" := ") {
            fs::write(place(path), bytes(hexadecimal)).expect(line);
        } else if let Some((path, text)) = line.split_once(" = ") {
            let place = place(path);
            let before = fs::read_to_string(&place).unwrap_or_default();
            fs::write(place, format!("{before}{text}\n")).expect(line);
        } else if let Some(path) = line.strip_suffix('/') {
            fs::create_dir_all(place(path)).expect(line);
        } else {
            panic!("{name}/tree.txt: not understood: `{line}`");
        }
    }
    let paths = fs::read_to_string(source.join("paths")).unwrap_or_default();
    fs::write(folder.path().join("paths"), paths).expect("paths");
    if let Ok(log) = fs::read_to_string(source.join("dmesg.txt")) {
        fs::write(place("/dev/kmsg"), log).expect("the log");
    }
    Machine { system: System::recorded(folder.path()).expect("a recorded machine"), folder }
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    assert!(hexadecimal.len().is_multiple_of(2), "half a byte: `{hexadecimal}`");
    let digits = hexadecimal.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("digits")).collect()
}
