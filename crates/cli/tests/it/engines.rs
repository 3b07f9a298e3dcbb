//! One job, any engine: the same offsets, the same content, the same totals.

use crate::common::*;
use std::fs;
use trueio_model::OpKind;

const ENGINES: [&str; 10] =
    ["psync", "sync", "vsync", "pvsync", "pvsync2", "splice", "posixaio", "libaio", "io_uring", "mmap"];

/// The engines that work on this machine, by the program's own word.
fn engines(sandbox: &Sandbox) -> Vec<&'static str> {
    let ran = sandbox.run(&["doctor", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let all = document["engines"].as_array().expect("engines");
    let works = |name: &str| all.iter().any(|e| e["engine"] == name && e["works"] == true);
    let (here, missing): (Vec<_>, Vec<_>) = ENGINES.into_iter().partition(|name| works(name));
    if !missing.is_empty() {
        eprintln!("not on this machine: {missing:?}");
    }
    assert!(here.contains(&"psync"));
    here
}

/// Goal: the same seed gives the same offsets and the same content on every engine.
/// Method: a job that draws half of the offsets with repetition writes a file with each engine; the
/// files are equal byte for byte, holes included. Another seed gives another file.
#[test]
fn the_same_seed_gives_the_same_file_with_every_engine() {
    let sandbox = Sandbox::new();
    let image = |engine: &str, seed: &str| {
        let name = format!("{engine}-{seed}");
        let ran = sandbox.run(&[
            "run",
            "--filename",
            &name,
            "--rw",
            "randwrite",
            "--size",
            "1m",
            "--norandommap",
            "--number_ios",
            "128",
            "--direct",
            if engine == "mmap" { "off" } else { "prefer" },
            "--ioengine",
            engine,
            "--randseed",
            seed,
            "--unlink=false",
            "--no-history",
            "--no-evidence",
        ]);
        ran.assert_code(0);
        fs::read(sandbox.path(&name)).expect("content")
    };
    let first = image("psync", "42");
    let blocks = |content: &[u8]| content.chunks(4096).filter(|block| block.iter().any(|&b| b != 0)).count();
    assert!((64..128).contains(&blocks(&first)), "{} of 256 blocks were written", blocks(&first));
    for engine in engines(&sandbox).into_iter().filter(|&engine| engine != "psync") {
        assert_eq!(hash(&image(engine, "42")), hash(&first), "{engine}");
    }
    assert_ne!(hash(&image("psync", "43")), hash(&first));
}

/// Goal: what one engine wrote, every other one finds.
/// Method: a verified file written by each engine is read and verified by the next one in the list.
#[test]
fn data_written_by_one_engine_is_verified_by_every_other() {
    let sandbox = Sandbox::new();
    let engines = engines(&sandbox);
    for (index, writer) in engines.iter().enumerate() {
        let name = format!("by-{writer}");
        let mut write = vec![
            "run",
            "--filename",
            &name,
            "--rw",
            "randwrite",
            "--bs",
            "8k",
            "--size",
            "1m",
            "--verify",
            "xxhash",
            "--ioengine",
            writer,
            "--unlink=false",
            "--no-evidence",
        ];
        if *writer == "mmap" {
            write.extend(["--direct", "off"]);
        }
        let (ran, record) = sandbox.record(&write);
        ran.assert_code(0);
        assert_eq!(totals(&record.phases[0], OpKind::Write), (128, 1 << 20), "{writer}");
        let reader = engines[(index + 1) % engines.len()];
        let (ran, record) = sandbox.record(&[
            "run",
            "--filename",
            &name,
            "--rw",
            "read",
            "--bs",
            "8k",
            "--verify",
            "xxhash",
            "--ioengine",
            reader,
            "--no-evidence",
        ]);
        ran.assert_code(0);
        assert_eq!(only_job(&record).verified_block_count, 128, "{writer} → {reader}");
    }
}

#[test]
fn every_engine_reads_each_block_once_and_records_each_io() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 2 << 20);
    for engine in engines(&sandbox) {
        let depth = if matches!(engine, "libaio" | "io_uring") { "16" } else { "1" };
        let job =
            ["run", "--filename", "data", "--rw", "randread", "--iodepth", depth, "--ioengine", engine, "--no-history"];
        let (ran, record) = sandbox.record(&job);
        ran.assert_code(0);
        assert_eq!(totals(&record.phases[0], OpKind::Read), (512, 2 << 20), "{engine}");
        assert_every_io_is_recorded(&record);
    }
}
