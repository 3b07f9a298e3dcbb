//! What is planned and what is refused, on targets that are described and not touched.

use std::collections::{BTreeMap, BTreeSet};
use trueio_job::value::ValueKind;
use trueio_job::{
    CommandFiles, DeviceUse, EngineAvailability, EngineState, FactsSource, FileUse, Identity, InUse, Machine, Mark,
    PathUse, Refusal, Role, Rule, TABLE, Target, UseKind, explain, explain_refusal, parse_job_file, plan,
};
use trueio_model::*;

mod direct;
mod engine;
mod files;
mod limits;
mod outputs;
mod programs;
mod replay;
mod rows;
mod source;
mod verify;
mod without_io;

fn machine() -> Machine {
    Machine {
        memory_bytes: Some(8 << 30),
        cpus: vec![0, 1, 2, 3],
        entropy: 42,
        may_be_real_time: Some(true),
        idle_baseline_ns: 500_000_000,
        programs: vec!["dd".into()],
        ..Machine::unknown()
    }
}

fn facts(path: &str, kind: TargetKind, size: Option<u64>) -> TargetFacts {
    TargetFacts {
        path: path.into(),
        kind,
        size_bytes: size.map_or_else(|| Fact::unknown("not read"), |size| Fact::known(size, "statx")),
        filesystem: (kind != TargetKind::BlockDevice).then(|| FilesystemFacts {
            kind: "ext4".into(),
            mount_point: "/mnt".into(),
            source: "/dev/vda1".into(),
            options: "rw,relatime".into(),
            size_bytes: Fact::known(100 << 30, "statvfs"),
            available_bytes: Fact::known(10 << 30, "statvfs"),
            block_bytes: Fact::known(4096, "statvfs"),
            uuid: Fact::unknown("not read"),
        }),
        stack: Vec::new(),
        disks: Vec::new(),
        direct: DirectFacts {
            support: DirectSupport::Direct,
            reason: "statx reports an alignment".into(),
            memory_alignment_bytes: Fact::known(512, "statx DIOALIGN"),
            write_alignment_bytes: Fact::known(512, "statx DIOALIGN"),
            read_alignment_bytes: Fact::known(512, "statx DIOALIGN"),
            atomic_write: Fact::unknown("not read"),
        },
        io_limits: Fact::not_recorded(),
        driven: None,
    }
}

/// `.` and `/mnt` on ext4, `/mnt/old` of 1 MiB, `/dev/vdb` of 1 GiB, `/tmp` on tmpfs, `/dev`, a
/// read-only `/cdrom`; nothing else exists.
fn look(path: &str) -> Target {
    let present = |facts| Target::Present(Box::new(facts));
    match path {
        "." | "/mnt" | "/mnt/dir" => present(facts(path, TargetKind::Directory, None)),
        "/mnt/old" | "/mnt/./old" | "/mnt/old2" => present(facts(path, TargetKind::File, Some(1 << 20))),
        "/mnt/empty" => present(facts(path, TargetKind::File, Some(0))),
        "/dev/vdb" | "/dev/vdc" | "/dev/vdd" | "/dev/vde" | "/dev/vdf" | "/dev/vdg" => {
            present(facts(path, TargetKind::BlockDevice, Some(1 << 30)))
        }
        "usb:2-1" | "usb:2-2" | "usb:2-3" => {
            let mut facts = facts(path, TargetKind::BlockDevice, Some(1 << 30));
            facts.driven = Some(DrivenDisk {
                write_cache: Fact::known(WriteCache::WriteBack, "MODE SENSE"),
                has_fua: Fact::known(path != "usb:2-3", "MODE SENSE"),
                can_trim: Fact::known(path != "usb:2-2", "VPD pages"),
            });
            present(facts)
        }
        "/dev/null" => present(facts(path, TargetKind::CharacterDevice, None)),
        "/tmp" | "/dev" | "/cdrom" => {
            let mut facts = facts(path, TargetKind::Directory, None);
            let filesystem = facts.filesystem.as_mut().expect("a directory has a filesystem");
            filesystem.mount_point = path.into();
            match path {
                "/tmp" => {
                    filesystem.kind = "tmpfs".into();
                    facts.direct.support = DirectSupport::SilentlyBuffered;
                    facts.direct.reason = "tmpfs lives in the page cache".into();
                }
                "/dev" => filesystem.kind = "devtmpfs".into(),
                _ => filesystem.options = "ro,relatime".into(),
            }
            present(facts)
        }
        "/secret" => Target::Unreadable("Permission denied (os error 13)".into()),
        _ => Target::Missing,
    }
}

/// [`look`], and the users of targets: `/dev/vdb` is free and bare, `/dev/vdc` carries a partition table and
/// a filesystem, `/dev/vdd` is mounted, `/dev/vde` cannot be examined; `/mnt/old` is free.
struct Described;

impl FactsSource for Described {
    fn look(&self, path: &str) -> Target {
        look(path)
    }

    fn in_use(&self, path: &str) -> Result<InUse, String> {
        let mark = |name: &str, offset_bytes| Mark { name: name.into(), offset_bytes };
        let is_mounted = DeviceUse {
            kind: UseKind::Mounted,
            device: "vdd1".into(),
            by: "/srv".into(),
            source: "/proc/1/mountinfo".into(),
        };
        match path {
            "/dev/vdc" | "usb:2-3" => {
                Ok(InUse { marks: vec![mark("ext4", 1080), mark("dos", 510)], ..InUse::default() })
            }
            "/dev/vdd" => Ok(InUse { uses: vec![is_mounted], marks: vec![mark("ext4", 1080)], ..InUse::default() }),
            "/dev/vde" => Err("its content cannot be read".into()),
            "/dev/vdg" => {
                let of = "btrfs 1111".to_owned();
                let member = DeviceUse { kind: UseKind::Member, device: "vdg".into(), by: of, source: "/sys".into() };
                Ok(InUse { uses: vec![member], ..InUse::default() })
            }
            "/dev/vdf" => Ok(InUse { unseen: vec!["mounts of 3 processes".into()], ..InUse::default() }),
            _ => Ok(InUse::default()),
        }
    }

    /// `http://known/` is 1,000,001 bytes long, `http://empty/` none; no other address answers.
    fn memory_nodes(&self) -> Result<Vec<(u32, Vec<u32>)>, String> {
        Ok(vec![(0, vec![0, 1]), (1, vec![2, 3, 9])])
    }

    fn source_length(&self, address: &SourceAddress) -> Result<u64, String> {
        match address.host.as_str() {
            "known" => Ok(1_000_001),
            "empty" => Ok(0),
            _ => Err("it cannot be reached".into()),
        }
    }

    /// The process is root's, but may not act as user 666; `/mnt/old` is for user 1000 to read, `/tmp` to write to.
    fn user(&self, uid: Option<u32>, gid: Option<u32>) -> Result<Option<UserPlan>, String> {
        let user = UserPlan { uid: uid.unwrap_or(0), gid: gid.unwrap_or(0) };
        match user {
            UserPlan { uid: 666, .. } | UserPlan { gid: 666, .. } => Err("Operation not permitted".into()),
            UserPlan { uid: 0, gid: 0 } => Ok(None),
            user => Ok(Some(user)),
        }
    }

    fn may_use(&self, user: UserPlan, path: &str, usage: PathUse) -> Result<(), String> {
        match (user.uid, path, usage) {
            (1000, "/mnt/old", PathUse::Write) | (1001, "/mnt/old" | "read.log", _) => Err("Permission denied".into()),
            (1001, ".", PathUse::MakeFilesIn) | (_, "/dev", _) => Err("Permission denied".into()),
            _ => Ok(()),
        }
    }

    fn iolog(&self, log: &str, settings: &ReplaySettings) -> Result<IologSummary, String> {
        let lines = match log {
            "read.log" => "0 /mnt/old read 0 4096\n5 /mnt/old read 8192 4096\n9 /mnt/old sync 0 0\n",
            "write.log" => "0 /mnt/old write 0 4096\n5 /mnt/old read 512 512\n",
            "odd.log" => "0 /mnt/old read 100 4096\n",
            "beyond.log" => "0 /mnt/old read 1048576 512\n",
            "marked.log" => "0 /dev/vdc write 0 512\n",
            "mounted.log" => "0 /dev/vdd trim 0 512\n",
            "dev.log" => "0 /dev/mistyped write 0 512\n",
            "twice.log" => "0 /mnt/old read 0 512\n0 /mnt//old read 0 512\n",
            "nothing.log" => "",
            "bad.log" => "0 /mnt/old read 0 512\n0 /mnt/old write 0 x\n",
            _ => return Err("No such file or directory (os error 2)".into()),
        };
        let files: BTreeSet<&str> = lines.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        let begin: String = files.iter().map(|file| format!("0 {file} add\n0 {file} open\n")).collect();
        let text = format!("fio version 3 iolog\n{begin}{lines}");
        scan_iolog(text.as_bytes(), settings).map_err(|error| error.to_string())
    }
}

fn spec(name: &str, options: &[(&str, &str)]) -> JobSpec {
    let mut spec = JobSpec::new(name);
    for (name, value) in options {
        spec.set(name, *value, Origin::Flag { flag: "--test".into() });
    }
    spec
}

fn plan_one(options: &[(&str, &str)]) -> Result<JobPlan, Refusal> {
    plan(&[spec("a", options)], &Described, &machine()).map(|mut plan| plan.jobs.remove(0))
}

fn refused(options: &[(&str, &str)]) -> Rule {
    *plan_one(options).expect_err("refused").rule
}

fn rule_name(options: &[(&str, &str)]) -> &'static str {
    plan_one(options).expect_err("refused").rule.name()
}

fn plan_with(engines: Vec<EngineState>, options: &[(&str, &str)]) -> Result<JobPlan, Refusal> {
    let machine = Machine { engines: EngineAvailability { engines }, ..machine() };
    plan(&[spec("a", options)], &Described, &machine).map(|mut plan| plan.jobs.remove(0))
}

fn with_facts(path: &'static str, change: impl Fn(&mut TargetFacts)) -> impl Fn(&str) -> Target {
    move |looked_up: &str| match look(looked_up) {
        Target::Present(mut facts) if looked_up == path => {
            change(&mut facts);
            Target::Present(facts)
        }
        other => other,
    }
}

fn a_disk(can_poll: Option<bool>, atomic_write_max_bytes: Option<u64>) -> DiskFacts {
    let fact = |value| Fact { value, source: "/sys/block/vdb/queue/io_poll".into() };
    let text = || Fact::unknown("not read");
    DiskFacts {
        name: "vdb".into(),
        device_number: (254, 16),
        model: text(),
        serial: text(),
        firmware: text(),
        wwid: text(),
        transport: Fact::unknown("not read"),
        size_bytes: Fact::unknown("not read"),
        logical_sector_bytes: Fact::known(512, "queue"),
        physical_sector_bytes: Fact::known(512, "queue"),
        is_rotational: Fact::unknown("not read"),
        scheduler: text(),
        write_cache: Fact::unknown("not read"),
        has_fua: Fact::unknown("not read"),
        request_count: Fact::unknown("not read"),
        max_request_bytes: Fact::unknown("not read"),
        read_ahead_bytes: Fact::unknown("not read"),
        counts_io: Fact::unknown("not read"),
        limits: DiskLimits {
            can_poll: fact(can_poll),
            atomic_write_max_bytes: Fact { value: atomic_write_max_bytes, source: "queue/atomic".into() },
            ..DiskLimits::default()
        },
        usb: None,
        link: None,
    }
}

/// Given facts, and the users of targets of [`Described`].
struct InUseOf<F>(F);

impl<F: Fn(&str) -> Target> FactsSource for InUseOf<F> {
    fn look(&self, path: &str) -> Target {
        (self.0)(path)
    }

    fn in_use(&self, path: &str) -> Result<InUse, String> {
        Described.in_use(path)
    }
}

/// [`Described`], where `/mnt/link` is `/mnt/old`, `./x` is `x`, nothing goes to `/dev`, and `/mnt/loop` is a disk.
struct WithLinks;

impl FactsSource for WithLinks {
    fn look(&self, path: &str) -> Target {
        look(if path == "/mnt/link" { "/mnt/old" } else { path })
    }

    fn in_use(&self, path: &str) -> Result<InUse, String> {
        if path != "/mnt/loop" {
            return Ok(InUse::default());
        }
        let (device, by) = ("/mnt/loop".to_owned(), "loop0".to_owned());
        let carries = DeviceUse { kind: UseKind::Stacked, device, by, source: "/sys".into() };
        Ok(InUse { uses: vec![carries], ..InUse::default() })
    }

    fn iolog(&self, log: &str, settings: &ReplaySettings) -> Result<IologSummary, String> {
        Described.iolog(log, settings)
    }

    fn identity(&self, path: &str) -> Identity {
        match path {
            "/mnt/old" | "/mnt/link" => Identity::Inode { device: 1, inode: 2 },
            "/mnt/loop" => Identity::Inode { device: 1, inode: 3 },
            // Of an earlier run.
            "earlier" | "earlier_bw.1.log" => Identity::Inode { device: 1, inode: 4 },
            path => Identity::Name(path.trim_start_matches("./").to_owned()),
        }
    }

    fn obstacle(&self, path: &str, is_document: bool) -> Option<String> {
        (path.starts_with("/dev/") || path == "pipe" && !is_document).then(|| "it is no regular file".to_owned())
    }
}
