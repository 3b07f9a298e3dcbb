//! The defaults on filesystems that a usual kernel does not have: F2FS, exFAT, NTFS3, and NFS from a server on the machine itself, in one
//! machine.
//!
//! `crates/cli/tests/it/filesystems.rs` does the same with those of this computer. docs/platforms.md holds what both found.

use crate::common::{assert_ended, record_of};
use std::path::Path;
use std::time::Duration;
use trueio_lab::{Disk, Machine, Spec, Tool, on};
use trueio_model::{DirectSupport, EvidenceLevel, Outcome, RunRecord};

/// The part of the note about space that was written instead of allocated.
const WRITTEN: &str = "its filesystem does not allocate space ahead";

fn machine() -> Spec {
    // Debian's 6.1 has no NTFS3 (`# CONFIG_NTFS3_FS is not set`).
    Spec::new()
        .kernel("6.12")
        .disk(Disk::virtio("f2fs").mib(400))
        .disk(Disk::virtio("exfat").mib(400))
        .disk(Disk::virtio("ntfs").mib(400))
        .disk(Disk::virtio("nfs").mib(400))
        .module("f2fs")
        .module("crc32_generic")
        .module("exfat")
        .module("nls_utf8")
        .module("ntfs3")
        .module("ext4")
        .module("nfsd")
        .module("nfsv4")
        .tool(Tool::MKFS_F2FS)
        .tool(Tool::MKFS_EXFAT)
        .tool(Tool::MKFS_NTFS)
        .tool(Tool::MKFS_EXT4)
}

/// Makes and mounts them: name in the table, and directory.
fn mount_all(machine: &mut Machine) -> Vec<(&'static str, &'static str)> {
    let [f2fs, exfat, ntfs, nfs] = ["f2fs", "exfat", "ntfs", "nfs"].map(|name| machine.device(name));
    machine.ok("mkdir -p /f2fs /exfat /ntfs");
    machine.ok(&format!("mkfs.f2fs -q -f {f2fs} > /dev/null && mount -t f2fs {f2fs} /f2fs"));
    machine.ok(&format!("LC_ALL=C mkfs.exfat {exfat} > /dev/null && mount -t exfat -o iocharset=utf8 {exfat} /exfat"));
    machine.ok(&format!("mkfs.ntfs -q -F -f {ntfs} > /dev/null && mount -t ntfs3 {ntfs} /ntfs"));
    serve_nfs(machine, &nfs);
    vec![("F2FS", "/f2fs"), ("exFAT", "/exfat"), ("NTFS3", "/ntfs"), ("NFS 4.2 (server over ext4)", "/nfs")]
}

/// Makes an ext4, exports it by the kernel's NFS server, and mounts it over the loopback interface.
///
/// The server's daemons (`rpc.mountd`, `exportfs`) answer the kernel's questions about clients and exports; the answers are written
/// ahead instead, in the form of Linux `fs/nfsd/export.c` and `net/sunrpc/svcauth_unix.c`: 9218 is insecure port, no
/// subtree check, and a filesystem number, which is 0, the root of NFS 4.
fn serve_nfs(machine: &mut Machine, device: &str) {
    machine.ok(&format!(
        "ip link set lo up && mkdir -p /export /nfs && \
         mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 {device} && mount {device} /export"
    ));
    machine.ok(
        "mount -t nfsd nfsd /proc/fs/nfsd && echo '-3 +4' > /proc/fs/nfsd/versions && until=$(( $(date +%s) + 86400 )) && \
         echo \"nfsd 127.0.0.1 $until local\" > /proc/net/rpc/auth.unix.ip/channel && \
         echo \"local /export $until 9218 65534 65534 0\" > /proc/net/rpc/nfsd.export/channel && \
         echo \"local 1 \\\\x00000000 $until /export\" > /proc/net/rpc/nfsd.fh/channel && \
         echo 4 > /proc/fs/nfsd/threads",
    );
    machine.sh("echo Y > /proc/fs/nfsd/v4_end_grace");
    machine.ok("mount -t nfs4 -o addr=127.0.0.1,clientaddr=127.0.0.1,vers=4.2,proto=tcp 127.0.0.1:/ /nfs");
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
    format!("| {kind} | {space} | {direct} | complete, 8 phases |")
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
        // On a busy computer they take longer than a step may by default.
        let ran = machine.sh_within(Duration::from_secs(400), &format!("{} wait", script.join(" ")));
        assert_eq!(ran.code, 0, "{ran:?}");
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
            assert_eq!(baseline.phases.len(), 8, "{kind}: {error}");
            // The server's disk is not one of its client.
            let has_disk = !kind.starts_with("NFS");
            assert_eq!(baseline.targets[0].disks.len(), usize::from(has_disk), "{kind}: {:#?}", baseline.targets[0]);
            let levels: Vec<EvidenceLevel> = baseline.phases.iter().map(|phase| phase.level).collect();
            let is_expected = |level: &EvidenceLevel| has_disk == (*level > EvidenceLevel::E0);
            assert!(levels.iter().all(is_expected), "{kind}: {levels:?}");
            rows.push(row(kind, &written, &baseline));
        }
        machine.ok("umount /f2fs /exfat /ntfs /nfs && echo 0 > /proc/fs/nfsd/threads && exportfs=/proc/net/rpc && \
                    for cache in auth.unix.ip nfsd.export nfsd.fh; do date +%s > $exportfs/$cache/flush; done; umount /export");
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
