//! `trueio device`: every fact with its source, as text and as JSON; the plan follows these facts.

use crate::common::*;
use serde_json::Value;

/// Every object with `value` and `source` in a document, by its path.
fn facts<'a>(document: &'a Value, path: &str, found: &mut Vec<(String, &'a Value)>) {
    match document {
        Value::Object(map) if map.contains_key("value") && map.contains_key("source") => {
            found.push((path.to_owned(), document));
        }
        Value::Object(map) => map.iter().for_each(|(key, value)| facts(value, &format!("{path}/{key}"), found)),
        Value::Array(all) => all.iter().enumerate().for_each(|(i, value)| facts(value, &format!("{path}/{i}"), found)),
        _ => {}
    }
}

/// Goal: no fact without a source, none missing without a reason, and both outputs hold the same.
/// Method: a directory, a file and, as root, a loop device; each fact of the JSON is looked for in
/// the words by its source.
#[test]
fn every_fact_has_its_source_in_text_and_in_json() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    let disk = (!lacks("loop")).then(|| Loop::new(&sandbox, "disk.img", 16 << 20));
    let device = disk.iter().map(|disk| disk.device.as_str());
    for path in [".", "data"].into_iter().chain(device) {
        let words = sandbox.run(&["device", path]);
        words.assert_code(0);
        let json = sandbox.run(&["device", path, "--json"]);
        json.assert_code(0);
        let document: Value = serde_json::from_str(&json.out).expect("one document");
        let mut found = Vec::new();
        facts(&document, "", &mut found);
        assert!(found.len() >= 8, "{path}: {found:?}");
        let text = words.out_joined();
        for (name, fact) in &found {
            let source = fact["source"].as_str().expect("a text");
            assert!(!source.is_empty(), "{path} {name} has no source");
            // The free space may change between two calls; its source does not.
            assert!(text.contains(&joined(source)), "{path} {name}: `{source}` is not in the words\n{}", words.out);
            if fact["value"].is_null() {
                assert!(source.contains(' '), "{path} {name}: not known, and no reason: {source}");
            }
        }
        if document["disks"].as_array().is_some_and(|disks| !disks.is_empty()) {
            for limit in ["max_hw_request_bytes", "discard_max_bytes", "can_poll", "zoned", "minimum_io_bytes"] {
                assert!(found.iter().any(|(name, _)| name == &format!("/disks/0/limits/{limit}")), "{limit}");
            }
            for row in ["wwid", "firmware", "serial", "model", "rotates", "write cache", "FUA writes", "scheduler"] {
                assert!(words.out.lines().any(|line| line.starts_with(&format!("  {row}  "))), "{path}: {row}");
            }
        }
    }
}

#[test]
fn paths_that_are_no_targets_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.run(&["device", "nowhere"]).assert_refused(&["`nowhere` cannot be examined", "No such file"]);
}

/// Goal: a feature that a target does not support is refused while planning and not found at the first I/O.
/// Method: `device --json` on this directory and on a loop device: a job that needs an unsupported feature is
/// refused, and one that needs a supported feature is not.
#[test]
fn a_job_that_needs_a_missing_device_feature_is_refused_while_planning() {
    let sandbox = Sandbox::new();
    let disk = (!lacks("loop")).then(|| Loop::new(&sandbox, "disk.img", 16 << 20));
    for path in std::iter::once(".").chain(disk.iter().map(|disk| disk.device.as_str())) {
        let json = sandbox.run(&["device", path, "--json"]);
        let document: Value = serde_json::from_str(&json.out).expect("one document");
        let target = if path == "." { ["--directory", "."] } else { ["--filename", path] };
        let job = |options: &[&str]| {
            let all = [&["explain", "--size", "1m", "--direct", "require"], &target[..], options].concat();
            sandbox.run(&all)
        };
        let limits = &document["disks"][0]["limits"];
        match limits["can_poll"]["value"].as_bool() {
            Some(false) => {
                job(&["--rw", "read", "--hipri"]).assert_refused(&["rule: poll_impossible", "queue/io_poll is 0"])
            }
            Some(true) => job(&["--rw", "read", "--hipri"]).assert_code(0),
            None => eprintln!("skipped: it is unknown whether the disk under {path} can be polled"),
        }
        let by_statx = document["direct"]["atomic_write"]["value"]["max_bytes"].as_u64();
        let by_queue = limits["atomic_write_max_bytes"]["value"].as_u64();
        let write = ["--rw", "write", "--bs", "4k", "--atomic", "--overwrite_existing", path];
        let write = if path == "." { &write[..5] } else { &write[..] };
        match (by_statx, by_queue) {
            (Some(0), _) => job(write).assert_refused(&["rule: atomic_impossible"]),
            (None, Some(0)) if path != "." => job(write).assert_refused(&["rule: atomic_impossible"]),
            (Some(max), _) if max >= 4096 => job(write).assert_code(0),
            answer => eprintln!("skipped: atomic writes on {path}: {answer:?}"),
        }
    }
}
