//! The defaults on each filesystem: `baseline --quick` and a write job run, and docs/platforms.md holds what they found.

use crate::common::*;
use std::path::Path;
use trueio_model::{DirectSupport, Outcome, RunRecord};
use trueio_testkit::on_loop;

const MIB: u64 = 1 << 20;
const KINDS: [(&str, u64); 5] =
    [("ext2", 320 * MIB), ("ext3", 320 * MIB), ("ext4", 320 * MIB), ("xfs", 600 * MIB), ("btrfs", 640 * MIB)];

/// The part of the note about space that was written instead of allocated.
const WRITTEN: &str = "its filesystem does not allocate space ahead";

/// Runs the defaults in a directory of a filesystem; returns its row of the table.
fn row(kind: &str, directory: &Path) -> String {
    let sandbox = Sandbox::new();
    let directory = directory.to_str().expect("UTF-8");
    let write = ["run", "--name", "w", "--rw", "write", "--bs", "64k", "--size", "1m", "--directory", directory];
    let (ran, written) = sandbox.record(&write);
    assert_eq!(written.outcome, Outcome::Complete, "{kind}: {ran:?}");
    assert_eq!(only_job(&written).ops[0].io_count, 16, "{kind}: {ran:?}");
    let is_written = only_job(&written).engine_notes.iter().any(|note| note.contains(WRITTEN));
    assert_eq!(ran.out_joined().contains(WRITTEN), is_written, "{kind}: the note is printed\n{ran:?}");
    let (ran, baseline) = sandbox.record(&["baseline", "--quick", directory]);
    assert_eq!(baseline.outcome, Outcome::Complete, "{kind}: {ran:?}");
    assert_eq!(baseline.phases.len(), 8, "{kind}: {ran:?}");
    let space = if is_written { "written out" } else { "allocated" };
    format!("| {kind} | {space} | {} | complete, 8 phases |", direct(&baseline))
}

fn direct(record: &RunRecord) -> &'static str {
    match record.targets[0].direct.support {
        DirectSupport::Direct => "yes",
        DirectSupport::SilentlyBuffered => "accepted, through the page cache",
        DirectSupport::Refused => "refused",
        DirectSupport::Unknown => "unknown",
    }
}

/// Goal: no filesystem needs an option. Method: those of this kernel on loop devices, tmpfs, and an overlay and a filesystem of
/// FUSE over ext4.
#[test]
fn the_defaults_run_on_every_filesystem_and_the_page_lists_what_they_found() {
    if lacks("root") || lacks("loop") {
        return;
    }
    let mut mounts: Vec<(&str, Mount)> = Vec::new();
    for (kind, size) in KINDS {
        match on_loop(kind, size, 512, "") {
            Ok(mount) => mounts.push((kind, mount)),
            Err(why) => println!("skipped: {kind}: {why}"),
        }
    }
    mounts.push(("tmpfs", Mount::create("tmpfs", "none", "size=400m").expect("a tmpfs")));
    let below = on_loop("ext4", 640 * MIB, 512, "").expect("ext4");
    let shown = below.path.join("shown");
    std::fs::create_dir(&shown).expect("a directory");
    match Mount::create("fuse.bindfs", shown.to_str().expect("UTF-8"), "") {
        Ok(mount) => mounts.push(("FUSE (bindfs over ext4)", mount)),
        Err(why) => println!("skipped: FUSE: {why}"),
    }
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| {
        let path = below.path.join(name);
        std::fs::create_dir(&path).expect("a directory");
        path.to_str().expect("UTF-8").to_owned()
    });
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    mounts.push(("overlay over ext4", Mount::create("overlay", "overlay", &options).expect("an overlay")));
    // At the same time: what they do is under test, not how fast.
    let rows: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = mounts.iter().map(|(kind, mount)| scope.spawn(|| row(kind, &mount.path))).collect();
        running.into_iter().map(|one| one.join().expect("a row")).collect()
    });
    // The overlay and the filesystem of FUSE lie on `below`.
    drop(mounts);

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/platforms.md");
    let page = std::fs::read_to_string(&path).expect("docs/platforms.md");
    let (before, rest) = page.split_once("<!-- filesystems -->\n").expect("the table begins");
    let (table, after) = rest.split_once("<!-- end of filesystems -->").expect("the table ends");
    if std::env::var_os("TRUEIO_BLESS").is_some() {
        let head = "| filesystem | space of new files | direct I/O | `baseline --quick` |\n|---|---|---|---|";
        let new =
            format!("{before}<!-- filesystems -->\n{head}\n{}\n<!-- end of filesystems -->{after}", rows.join("\n"));
        std::fs::write(&path, new).expect("the page");
        return;
    }
    for row in rows {
        assert!(table.lines().any(|line| line == row), "docs/platforms.md lacks {row} (TRUEIO_BLESS=1 rewrites it)");
    }
}

/// Goal: a file that a job extends is lengthened by writing where the filesystem does not allocate space, and keeps what it held.
#[test]
fn an_existing_file_is_extended_by_writing_where_space_is_not_allocated() {
    if lacks("root") || lacks("loop") {
        return;
    }
    let mount = match on_loop("ext2", 64 * MIB, 512, "") {
        Ok(mount) => mount,
        Err(why) => return println!("skipped: {why}"),
    };
    let file = mount.path.join("data");
    std::fs::write(&file, [7; 65536]).expect("a file");
    let name = file.to_str().expect("UTF-8");
    let sandbox = Sandbox::new();
    let (ran, record) = sandbox.record(&[
        "run",
        "--name",
        "w",
        "--rw",
        "write",
        "--bs",
        "64k",
        "--offset",
        "64k",
        "--size",
        "1m",
        "--filename",
        name,
        "--overwrite_existing",
        name,
        "--extend_existing",
        name,
    ]);
    assert_eq!(record.outcome, Outcome::Complete, "{ran:?}");
    assert!(only_job(&record).engine_notes.iter().any(|note| note.contains(WRITTEN)), "{ran:?}");
    let content = std::fs::read(&file).expect("content");
    assert_eq!(content.len(), 65536 + (1 << 20));
    assert!(content[..65536].iter().all(|byte| *byte == 7), "what it held is kept");
}
