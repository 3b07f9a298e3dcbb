//! `trueio powercut replay`: small programs whose writes are in a log, correct ones and ones with a mistake of each kind.
//!
//! The device of these programs has a directory in sector 0 (the number of the slot that is in use) and two slots with data. To replace
//! the data a program writes the unused slot, makes it durable, and then writes sector 0: a rename.

use crate::common::*;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use trueio_powercut::replay::LogWriter;

const SECTOR: usize = 512;
/// Sectors of a slot.
const SLOT: u64 = 4;
const ROUNDS: u8 = 6;

/// How a program makes a slot durable before it renames, and the rename after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Correct,
    /// The data with FUA instead of a flush.
    CorrectFua,
    /// It renames before the data are durable.
    RenamesFirst,
    /// It acknowledges before the rename is durable.
    AcknowledgesFirst,
    /// The directory has two sectors which must agree: a torn write shows.
    Torn,
}

/// Writes the log of a program; a mark states the last acknowledged round.
fn log_of(sandbox: &Sandbox, program: Program) -> PathBuf {
    let path = sandbox.path("writes.log");
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
    let mut log = LogWriter::new(file, SECTOR as u32).expect("a log");
    let directory_sectors = if program == Program::Torn { 2 } else { 1 };
    for round in 1..=ROUNDS {
        let at = 8 + u64::from(round % 2) * SLOT;
        let data = vec![round; SLOT as usize * SECTOR];
        log.write(at, &data, program == Program::CorrectFua).expect("written");
        if !matches!(program, Program::RenamesFirst | Program::CorrectFua) {
            log.flush().expect("written");
        }
        log.write(0, &vec![round; directory_sectors * SECTOR], false).expect("written");
        if program == Program::AcknowledgesFirst {
            log.mark(&round.to_string()).expect("written");
        }
        log.flush().expect("written");
        if program != Program::AcknowledgesFirst {
            log.mark(&round.to_string()).expect("written");
        }
    }
    log.finish().expect("written");
    path
}

/// Reads the directory, and compares every sector of its slot; what is acknowledged must be there.
const CHECK: &str = r#"
byte() { od -An -tu1 -j$(($1 * 512)) -N1 "$TRUEIO_IMAGE" | tr -d ' '; }
round=$(byte 0); acknowledged=${TRUEIO_MARK:-0}
[ "$TWO" = 1 ] && [ "$(byte 1)" != "$round" ] && { echo "the directory is torn"; exit 4; }
[ "$round" -ge "$acknowledged" ] || { echo "round $acknowledged was acknowledged, $round is there"; exit 3; }
[ "$round" = 0 ] && exit 0
for sector in 0 1 2 3; do
  found=$(byte $((8 + round % 2 * 4 + sector)))
  [ "$found" = "$round" ] || { echo "round $round has $found"; exit 5; }
done"#;

fn replay(sandbox: &Sandbox, program: Program, more: &[&str]) -> Ran {
    log_of(sandbox, program);
    let own = ["powercut", "replay", "writes.log", "--check", CHECK, "--seed", "7", "--images", "400"];
    let mut command = sandbox.command(&[&own[..], more].concat());
    command.env("TWO", if program == Program::Torn { "1" } else { "0" }).env("TMPDIR", sandbox.path(""));
    let ran = Ran::of(command.output().expect("it runs"));
    let left: Vec<_> = fs::read_dir(sandbox.path("")).expect("a folder").flatten().collect();
    assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("trueio-replay")), "{left:?}");
    ran
}

/// Goal: a correct program passes every image, with a flush or with FUA.
#[test]
fn a_correct_program_is_clean() {
    let sandbox = Sandbox::new();
    for program in [Program::Correct, Program::CorrectFua] {
        let ran = replay(&sandbox, program, &[]);
        ran.assert_code(0);
        assert!(ran.out.starts_with("Clean: ") && ran.out.contains("(seed 7)"), "{program:?}: {ran:?}");
        assert!(ran.out.contains("at 12 of 12 points of a crash passed"), "{program:?}: {ran:?}");
        assert!(ran.out.contains("at 12 of them every subset"), "{program:?}: {ran:?}");
    }
}

/// Goal: a mistake is found, and the smallest set of lost writes is the one that makes it; the same seed finds the same.
#[test]
fn a_program_with_a_mistake_fails_with_the_smallest_set_of_lost_writes() {
    let sandbox = Sandbox::new();
    for (program, words) in [
        (
            Program::RenamesFirst,
            [
                "1 write is lost of the 2 that were not flushed",
                "entry 0: write of 4 sectors of 512 bytes at sector 12",
                "exit status 5",
            ],
        ),
        (
            Program::AcknowledgesFirst,
            [
                "1 write is lost of the 1 that were not flushed",
                "entry 2: write of 1 sectors of 512 bytes at sector 0",
                "after mark `1`",
            ],
        ),
        (
            Program::Torn,
            [
                "1 write is lost of the 1 that were not flushed",
                "entry 2: write of 2 sectors of 512 bytes at sector 0; torn, 1 of its sectors lost",
                "exit status 4",
            ],
        ),
    ] {
        let ran = replay(&sandbox, program, &["--keep", "failing.img"]);
        ran.assert_code(1);
        assert!(ran.out.starts_with("Failed: image "), "{program:?}: {ran:?}");
        for words in words {
            assert!(ran.out.contains(words), "{program:?}: {words}: {ran:?}");
        }
        let again = replay(&sandbox, program, &[]);
        assert_eq!(again.out, ran.out, "{program:?}");
        // The kept image fails, too.
        let image = sandbox.path("failing.img");
        let mut check = std::process::Command::new("sh");
        check
            .args(["-c", CHECK])
            .env("TRUEIO_IMAGE", &image)
            .env("TWO", if program == Program::Torn { "1" } else { "0" });
        check.env("TRUEIO_MARK", if program == Program::AcknowledgesFirst { "1" } else { "0" });
        assert!(!check.status().expect("it runs").success(), "{program:?}");
        replay(&sandbox, program, &["--keep", "failing.img"]).assert_refused(&["--keep: `failing.img` exists"]);
        fs::remove_file(image).expect("a file");
    }
}

/// Goal: `--json` has the numbers of the text, for a program that is right, and for one that is wrong; a log in which no crash is possible
/// leaves no document.
#[test]
fn what_was_found_is_a_document() {
    let sandbox = Sandbox::new();
    let found = |program| {
        let ran = replay(&sandbox, program, &["--json", "-"]);
        let found: serde_json::Value =
            serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        (found, ran)
    };
    let (clean, ran) = found(Program::Correct);
    ran.assert_code(0);
    assert_eq!((&clean["points_in_log"], &clean["point_count"], &clean["seed"]), (&12.into(), &12.into(), &7.into()));
    assert_eq!((&clean["failing"], &clean["is_stopped"]), (&serde_json::Value::Null, &false.into()));
    let text = replay(&sandbox, Program::Correct, &[]).out;
    assert!(text.starts_with(&format!("Clean: {} images ", clean["image_count"])), "{clean:#}\n{text}");
    let (wrong, ran) = found(Program::RenamesFirst);
    ran.assert_code(1);
    assert_eq!(wrong["failing"]["lost_entries"], serde_json::json!([0]), "{wrong:#}");
    assert_eq!(wrong["failing"]["reason"], "the command ended with exit status 5", "{wrong:#}");
    let mut empty = fs::read(log_of(&sandbox, Program::Correct)).expect("a log");
    empty.truncate(512);
    empty[16..24].fill(0);
    fs::write(sandbox.path("writes.log"), empty).expect("a log");
    let ran = sandbox.run(&["powercut", "replay", "writes.log", "--check", "true", "--json", "found.json"]);
    ran.assert_code(1);
    assert!(ran.err.contains("no crash is possible in `writes.log`"), "{ran:?}");
    assert!(!sandbox.path("found.json").exists(), "{ran:?}");
}

/// Goal: numbers of images and times are limits; what the log held before, and where crashes begin, can be named.
#[test]
fn images_times_base_and_begin_are_options() {
    let sandbox = Sandbox::new();
    let ran = replay(&sandbox, Program::Correct, &["--from", "5"]);
    assert!(ran.out.contains("at 2 of 2 points"), "{ran:?}");
    replay(&sandbox, Program::Correct, &["--from", "no such mark"]).assert_refused(&["--from `no such mark`"]);
    log_of(&sandbox, Program::Correct);
    let run = |more: &[&str]| {
        let ran = sandbox.run(&[&["powercut", "replay", "writes.log"][..], more].concat());
        (ran.out.clone(), ran)
    };
    let (out, ran) = run(&["--check", "true", "--images", "3"]);
    assert!(out.starts_with("Clean: 3 images at 3 of 12 points"), "{ran:?}");
    let (out, ran) = run(&["--check", "sleep 60 & sleep 60", "--timeout", "100ms", "--time", "1s"]);
    ran.assert_code(1);
    assert!(out.contains("did not end within 100 ms (`--timeout`)"), "{ran:?}");
    let (out, ran) = run(&["--check", "sleep 0.3", "--time", "1s"]);
    assert!(out.contains("The time of `--time` ended before the others."), "{ran:?}");
    // The check gets the path in both ways, and a mark that is not there is empty.
    let (_, ran) =
        run(&["--check", "test {} = \"$TRUEIO_IMAGE\" && test -z \"$TRUEIO_MOUNT\" && test $(stat -c %s {}) = 8192"]);
    ran.assert_code(0);
    fs::write(sandbox.path("base.img"), vec![9; 16 * 1024]).expect("a file");
    let (_, ran) = run(&["--check", "test $(od -An -tu1 -j12000 -N1 {}) = 9", "--base", "base.img"]);
    ran.assert_code(0);
    assert_eq!(fs::read(sandbox.path("base.img")).expect("a file"), vec![9; 16 * 1024], "it is not changed");
    fs::write(sandbox.path("base.img"), vec![9; 1024]).expect("a file");
    run(&["--check", "true", "--base", "base.img"]).1.assert_refused(&["`base.img` has 1 KiB", "writes up to 8 KiB"]);
}

/// Goal: a log, and what the disk held before, may be on block devices: dm-log-writes logs to one.
#[test]
fn a_log_and_a_base_on_block_devices_are_read() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let [log, base] = ["log.img", "base.img"].map(|name| Loop::new(&sandbox, name, 1 << 20));
    let device = |disk: &Loop| File::options().write(true).open(&disk.device).expect("the device");
    let whole = fs::read(log_of(&sandbox, Program::Correct)).expect("a log");
    device(&log).write_all(&whole).and_then(|()| device(&log).sync_all()).expect("written");
    device(&base).write_all(&[9; 16 * 1024]).and_then(|()| device(&base).sync_all()).expect("written");
    let check = "test $(stat -c %s {}) = 1048576 && test $(od -An -tu1 -j12000 -N1 {}) = 9";
    let ran = sandbox.run(&["powercut", "replay", &log.device, "--base", &base.device, "--check", check]);
    ran.assert_code(0);
    assert!(ran.out.contains("at 12 of 12 points"), "{ran:?}");
}

/// Goal: what is no whole log is refused by name, and before anything runs.
#[test]
fn bad_logs_are_refused() {
    let sandbox = Sandbox::new();
    let path = log_of(&sandbox, Program::Correct);
    let whole = fs::read(&path).expect("a log");
    let mut far = whole.clone();
    far[512..520].copy_from_slice(&(1u64 << 40).to_le_bytes());
    let mut count = whole.clone();
    count[16..24].copy_from_slice(&(1u64 << 60).to_le_bytes());
    for (bytes, words) in [
        (whole[..whole.len() - 1].to_vec(), "ends within entry 29 of 30"),
        (whole[..600].to_vec(), "ends within entry 0 of 30"),
        (vec![0; 4096], "no log of dm-log-writes or blklogwrites"),
        (Vec::new(), "no log of dm-log-writes or blklogwrites"),
        (far, "without `--base` at most 1 TiB"),
        (count, "entries; at most"),
    ] {
        fs::write(&path, bytes).expect("a file");
        let ran = sandbox.run(&["powercut", "replay", "writes.log", "--check", "touch ran"]);
        ran.assert_refused(&["writes.log", words]);
        assert!(!sandbox.path("ran").exists());
    }
    sandbox.run(&["powercut", "replay", "none", "--check", "true"]).assert_refused(&["`none` cannot be replayed"]);
    sandbox
        .run(&["powercut", "replay", "/dev/zero", "--check", "true"])
        .assert_refused(&["it is neither a file nor a block device"]);
    fs::write(&path, &whole).expect("a log");
    let ran = sandbox.run(&["powercut", "replay", "writes.log", "--check", "true", "--mount=-o x"]);
    ran.assert_refused(&["--mount `-o x` is not the name of a filesystem"]);
}
