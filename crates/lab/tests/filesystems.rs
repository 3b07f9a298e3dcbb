//! The defaults on filesystems that a usual kernel does not have: F2FS and exFAT, in one machine.
//!
//! `crates/cli/tests/filesystems.rs` does the same with those of this computer. docs/platforms.md holds what both found.

mod common;

use common::{assert_ended, record_of};
use std::path::Path;
use trueio_lab::{Disk, Machine, Spec, Tool, on};
use trueio_model::{DirectSupport, Outcome, RunRecord};

/// The part of the note about space that was written instead of allocated.
const WRITTEN: &str = "its filesystem does not allocate space ahead";

fn machine() -> Spec {
    Spec::new()
        .disk(Disk::virtio("f2fs").mib(400))
        .disk(Disk::virtio("exfat").mib(400))
        .module("f2fs")
        .module("crc32_generic")
        .module("exfat")
        .module("nls_utf8")
        .tool(Tool::MKFS_F2FS)
        .tool(Tool::MKFS_EXFAT)
}

/// Makes and mounts them: name in the table, and directory.
fn mount_all(machine: &mut Machine) -> Vec<(&'static str, &'static str)> {
    let [f2fs, exfat] = ["f2fs", "exfat"].map(|name| machine.device(name));
    machine.ok("mkdir -p /f2fs /exfat");
    machine.ok(&format!("mkfs.f2fs -q -f {f2fs} > /dev/null && mount -t f2fs {f2fs} /f2fs"));
    machine.ok(&format!("LC_ALL=C mkfs.exfat {exfat} > /dev/null && mount -t exfat -o iocharset=utf8 {exfat} /exfat"));
    vec![("F2FS", "/f2fs"), ("exFAT", "/exfat")]
}

/// Returns the row of the table of docs/platforms.md.
fn row(kind: &str, written: &RunRecord, baseline: &RunRecord) -> String {
    let notes = &written.phases[0].jobs[0].engine_notes;
    let space = if notes.iter().any(|note| note.contains(WRITTEN)) { "written out" } else { "allocated" };
    let direct = match baseline.targets[0].direct.support {
        DirectSupport::Direct => "yes",
        DirectSupport::SilentlyBuffered => "accepted, through the page cache",
        DirectSupport::Refused => "refused",
        DirectSupport::Unknown => "unknown",
    };
    format!("| {kind} | {space} | {direct} | complete, 7 phases |")
}

/// Goal: no filesystem needs an option. Method: a write job, and `baseline --quick` on all of them at the same time: what they do is
/// under test, not how fast.
#[test]
fn the_defaults_run_on_filesystems_of_other_kernels_and_the_page_lists_what_they_found() {
    on(&machine(), |machine| {
        let all = mount_all(machine);
        let command = |(_, directory): &(&str, &str)| {
            let out = format!("/tmp{directory}");
            format!(
                "(trueio run --name w --rw write --bs 64k --size 1m --directory {directory} --no-history --json {out}.write \
                 > /dev/null 2> {out}.error; trueio baseline --quick {directory} --no-history --json {out}.baseline \
                 > /dev/null 2>> {out}.error) &"
            )
        };
        let script: Vec<String> = all.iter().map(command).collect();
        machine.ok(&format!("{} wait", script.join(" ")));
        let mut rows = Vec::new();
        for (kind, directory) in &all {
            let error = String::from_utf8_lossy(&machine.get(&format!("/tmp{directory}.error"))).into_owned();
            let [written, baseline] = ["write", "baseline"].map(|what| {
                let ran = machine.sh(&format!("cat /tmp{directory}.{what}"));
                assert_eq!(ran.code, 0, "{kind}: {error}");
                record_of(&ran)
            });
            for record in [&written, &baseline] {
                assert_eq!(record.outcome, Outcome::Complete, "{kind}: {error}");
            }
            assert_ended(&written, 0, 0);
            assert_eq!(baseline.phases.len(), 7, "{kind}: {error}");
            rows.push(row(kind, &written, &baseline));
        }
        machine.ok("umount /f2fs /exfat");
        assert_page_has(&rows);
    });
}

/// docs/platforms.md has these rows; `TRUEIO_BLESS=1` writes them.
#[track_caller]
fn assert_page_has(rows: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/platforms.md");
    let page = std::fs::read_to_string(&path).expect("docs/platforms.md");
    let (begin, end) = ("<!-- filesystems of the lab -->\n", "<!-- end of filesystems of the lab -->");
    let (before, rest) = page.split_once(begin).expect("the table begins");
    let (table, after) = rest.split_once(end).expect("the table ends");
    if std::env::var_os("TRUEIO_BLESS").is_some() {
        let head = "| filesystem | space of new files | direct I/O | `baseline --quick` |\n|---|---|---|---|";
        std::fs::write(&path, format!("{before}{begin}{head}\n{}\n{end}{after}", rows.join("\n"))).expect("the page");
        return;
    }
    for row in rows {
        assert!(table.lines().any(|line| line == row), "docs/platforms.md lacks {row} (TRUEIO_BLESS=1 rewrites it)");
    }
}
