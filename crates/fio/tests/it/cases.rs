//! The combinations that a plan refuses, from command lines of fio.
//!
//! `docs/fio-refusals.md` lists the cases that a job in fio's language can meet. Each of them has a command line here that is refused
//! for it, and drawn command lines meet no other.

use crate::language::World;
use std::collections::BTreeMap;
use trueio_fio::language::options::options_of_fio;
use trueio_fio::language::{meet_targets, read};
use trueio_job::{Case, EngineAvailability, EngineState, FactsSource, InUse, Machine, Target, plan};
use trueio_model::{
    DirectFacts, DirectSupport, DiskFacts, DiskLimits, DrivenDisk, EngineKind, Fact, IologOps, IologSummary,
    ReplaySettings, TargetFacts, TargetKind, WriteCache, ZoneModel, mix64,
};

/// Files `f` and `g` of 1 MiB, the device `d`, `z` with zones of 64 KiB, `u` with zones of unknown length, a USB disk
/// without FUA, and the logs `log` and `rooted`.
struct Facts;

fn zoned(path: &str) -> DiskFacts {
    let limits = DiskLimits {
        zoned: Fact::known(ZoneModel::HostManaged, "queue/zoned"),
        chunk_bytes: if path == "z" { Fact::known(64 << 10, "queue/chunk_sectors") } else { Fact::unknown("no file") },
        ..DiskLimits::default()
    };
    DiskFacts {
        name: path.into(),
        device_number: (250, 0),
        model: Fact::not_recorded(),
        serial: Fact::not_recorded(),
        firmware: Fact::not_recorded(),
        wwid: Fact::not_recorded(),
        transport: Fact::not_recorded(),
        size_bytes: Fact::not_recorded(),
        logical_sector_bytes: Fact::known(512, "queue/logical_block_size"),
        physical_sector_bytes: Fact::not_recorded(),
        is_rotational: Fact::not_recorded(),
        scheduler: Fact::not_recorded(),
        write_cache: Fact::not_recorded(),
        has_fua: Fact::not_recorded(),
        request_count: Fact::not_recorded(),
        max_request_bytes: Fact::not_recorded(),
        read_ahead_bytes: Fact::not_recorded(),
        counts_io: Fact::not_recorded(),
        limits,
        usb: None,
        link: None,
    }
}

impl FactsSource for Facts {
    fn look(&self, path: &str) -> Target {
        let kind = match path {
            "f" | "g" => TargetKind::File,
            "d" | "z" | "u" | "usb:2-1" => TargetKind::BlockDevice,
            "." | "/" => TargetKind::Directory,
            _ => return Target::Missing,
        };
        let size_bytes = match kind {
            TargetKind::Directory => Fact::unknown("a directory"),
            _ => Fact::known(1 << 20, "the test"),
        };
        let unit = || Fact::known(512, "the test");
        Target::Present(Box::new(TargetFacts {
            path: path.to_owned(),
            kind,
            size_bytes,
            filesystem: None,
            stack: Vec::new(),
            disks: if path == "z" || path == "u" { vec![zoned(path)] } else { Vec::new() },
            direct: DirectFacts {
                support: DirectSupport::Direct,
                reason: "the test".to_owned(),
                memory_alignment_bytes: unit(),
                write_alignment_bytes: unit(),
                read_alignment_bytes: unit(),
                atomic_write: Fact::unknown("the test"),
            },
            io_limits: Fact::unknown("the test"),
            driven: (path == "usb:2-1").then(|| DrivenDisk {
                write_cache: Fact::known(WriteCache::WriteBack, "MODE SENSE"),
                has_fua: Fact::known(false, "MODE SENSE"),
                can_trim: Fact::known(false, "VPD pages"),
            }),
        }))
    }

    fn in_use(&self, _path: &str) -> Result<InUse, String> {
        Ok(InUse { uses: Vec::new(), marks: Vec::new(), unseen: Vec::new() })
    }

    fn iolog(&self, log: &str, _: &ReplaySettings) -> Result<IologSummary, String> {
        let name = match log {
            "log" => "f",
            "rooted" => "/f",
            _ => return Err("there is none".to_owned()),
        };
        let reads = IologOps { count: 1, bytes: 4096, length_bytes_max: 4096, unit_bytes: 4096 };
        let none = IologOps::default();
        Ok(IologSummary { files: vec![(name.to_owned(), 4096)], ops: [reads, none, none, none], end_ns: 0 })
    }
}

/// Returns the case for which a command line is refused; `None`: it is accepted, or refused for another reason.
fn case_of(line: &str, machine: &Machine) -> Option<Case> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let mut request = read(&words, &World::default()).ok()?;
    meet_targets(&mut request.jobs, &Facts, &request.settings).ok()?;
    plan(&request.jobs, &Facts, machine).err()?.rule.case()
}

/// Returns a command line, after `--name=a --size=1m`, that is refused for this case; `None`: fio's language does not meet it.
#[expect(clippy::too_many_lines, reason = "one table")]
fn example(case: Case) -> Option<&'static str> {
    Some(match case {
        Case::EngineTrims => "--rw=trim --filename=d --ioengine=posixaio",
        Case::EngineFlags => "--rw=write --nowait=1",
        Case::EnginePolls => "--rw=write --direct=1 --hipri",
        Case::PolledTrims => "--rw=trim --filename=d --direct=1 --ioengine=io_uring --hipri",
        Case::PolledShare => "--rw=write --direct=1 --ioengine=io_uring --hipri --hipri_percentage=50",
        Case::EngineRing => "--rw=write --sqthread_poll=1",
        Case::CpuAlone => "--ioengine=cpuio",
        Case::EngineOfFiles => "--rw=write --ioengine=falloc --filename=d",
        Case::EngineOnlyWrites => "--rw=read --ioengine=ftruncate",
        Case::CutsData => "--rw=write --ioengine=ftruncate --filename=f --size=512k",
        Case::EngineRemakes => "--rw=write --ioengine=mmap --loops=2 --unlink_each_loop=1",
        Case::EngineFills => "--rw=write --ioengine=mmap --fill_device=1",
        Case::EngineRanges => "--ioengine=filecreate --sync_file_range=write:8",
        Case::EngineLogs => "--ioengine=filecreate --write_iolog=l",
        Case::EngineReplays => "--ioengine=falloc --read_iolog=log",
        Case::NamesOnce => "--ioengine=filecreate --loops=2",
        Case::NamesSized => "--ioengine=filecreate --bsrange=4k-8k",
        Case::NamesPaced => "--ioengine=filecreate --rate=1m",
        Case::NamesSteady => "--ioengine=filecreate --steadystate=bw:5% --steadystate_duration=10",
        Case::EnginePriorities => "--rw=write --cmdprio_percentage=50",
        Case::DirectUsb => "--rw=read --ioengine=uas",
        Case::UsbPorts => "--rw=read --ioengine=uas --direct=1",
        Case::UsbPaths => "--rw=read --filename=usb\\:2-1",
        Case::UsbLogs => "--ioengine=uas --direct=1 --read_iolog=log",
        Case::UsbRange => "--rw=write --ioengine=uas --direct=1 --filename=usb\\:2-1 --sync_file_range=write:8",
        Case::UsbPreRead => "--rw=read --ioengine=uas --direct=1 --filename=usb\\:2-1 --pre_read=1",
        Case::UsbZones => "--rw=read --ioengine=uas --direct=1 --filename=usb\\:2-1 --zonemode=zbd --zonesize=64k",
        Case::UsbUser => "--rw=read --ioengine=uas --direct=1 --filename=usb\\:2-1 --uid=0",
        Case::UsbGroup => "--rw=read --ioengine=uas --direct=1 --filename=usb\\:2-1 --gid=0",
        Case::UsbSync => "--rw=write --ioengine=uas --direct=1 --filename=usb\\:2-1 --sync=1",
        Case::DirectOff => "--rw=write --ioengine=io_uring --hipri",
        Case::UncachedPolled => "--rw=write --ioengine=pvsync2 --uncached=1 --atomic=1",
        Case::AppendSize => "--rw=write --filename=f --size=50% --file_append=1",
        Case::Remade => "--rw=read --loops=2 --unlink_each_loop=1",
        Case::FillsInOrder => "--rw=randwrite --fill_device=1",
        Case::FillsOverwritten => "--rw=write --fill_device=1 --overwrite=1",
        Case::DrawnFromOpen => "--rw=write --nrfiles=4 --openfiles=2 --file_service_type=zipf:1.2",
        Case::CreatesAndVerifies => "--rw=write --verify=md5 --create_only=1 --verify_only=1",
        Case::ReplayChanged => "--read_iolog=log --rate=1m",
        Case::ReplayDirectory => "--read_iolog=rooted --directory=.",
        Case::RateTwice => "--rw=write --rate=1m --rate_iops=100",
        Case::TargetPaced => "--rw=write --latency_target=1ms --latency_window=1s --rate=1m",
        Case::TargetDrained => {
            "--rw=write --ioengine=libaio --iodepth=8 --iodepth_low=2 --latency_target=1ms --latency_window=1s"
        }
        Case::TargetWindow => "--rw=write --latency_target=1ms",
        Case::SteadyGroup => {
            "--rw=read --filename=f --group_reporting --steadystate=iops:5% --steadystate_duration=10 --name=b --rw=read \
             --filename=f --group_reporting"
        }
        Case::NodesAndProcessors => "--rw=write --cpus_allowed=0 --numa_cpu_nodes=0",
        Case::WorkingSet => {
            "--rw=write --dedupe_percentage=60 --dedupe_mode=working_set --dedupe_working_set_percentage=60"
        }
        Case::VerifyAlone => "--rw=write --verify=pattern",
        Case::SourceMissing => "--rw=write --verify=source",
        Case::VerifyOnlyWith => "--rw=write --verify=md5 --verify_only=1 --verify_backlog=8",
        Case::VerifyEngine => "--rw=write --verify=md5 --ioengine=null",
        Case::VerifySizesRead => "--rw=write --bsrange=4k-8k --verify=md5 --zonemode=zbd --zonesize=64k",
        Case::VerifySmall => "--rw=write --verify=md5 --bs=32",
        Case::VerifyOverlap => "--rw=write:1k --verify=md5",
        Case::VerifyPartial => "--rw=randwrite --verify=null --bsrange=4k-8k --norandommap=1 --verify_backlog=8",
        Case::VerifyMixedSizes => "--rw=randrw --bsrange=4k-8k --verify_only=1",
        Case::VerifyAgain => {
            "--rw=randwrite --filename=f --verify=md5 --norandommap=1 --trim_percentage=50 --trim_backlog=8 --ioengine=io_uring"
        }
        Case::SyncedBefore => "--rw=write --verify=md5 --verify_policy=fsynced --fsync=8 --verify_backlog=8",
        Case::SyncedFiles => "--rw=write --verify=md5 --verify_policy=fsynced --fsync=8 --nrfiles=2",
        Case::SyncedOnce => "--rw=randwrite --verify=md5 --verify_policy=fsynced --fsync=8 --norandommap=1",
        Case::VerifyOneSided => "--rw=randrw --verify=md5 --rate=1m,0",
        Case::VerifyShared => {
            "--rw=write --filename=g --verify=md5 --verify_backlog=8 --name=b --size=1m --rw=write --filename=g"
        }
        Case::VerifyUnwritten => "--rw=read --verify=md5",
        Case::ZonesOfDistribution => {
            "--rw=randread --filename=f --random_distribution=zoned:50/50:50/50 --zonemode=strided --zonesize=64k"
        }
        Case::ZonesAlone => "--rw=read --filename=f --zonemode=strided",
        Case::ZonesUnused => "--rw=read --filename=f --zonesize=64k",
        Case::ZonesCounted => "--rw=read --filename=f --size=2z",
        Case::ZonesOfUnknownLength => "--rw=read --filename=f --zonemode=zbd --size=2z",
        Case::ZonesEngine => "--ioengine=filecreate --zonemode=zbd --zonesize=64k",
        Case::ZonesBuffered => "--rw=write --filename=z --zonemode=zbd",
        Case::ZonesTrimmed => "--rw=trim --filename=z --zonemode=zbd --direct=1 --ioengine=io_uring --bs=4k",
        Case::ZonesBlock => "--rw=read --filename=f --zonemode=zbd --zonesize=64k --bs=128k",
        Case::ZonesMany => "--rw=read --ioengine=null --zonemode=zbd --zonesize=512 --bs=512 --size=1t",
        Case::ZonesInOrder => "--rw=read:4k --filename=f --zonemode=zbd --zonesize=64k",
        Case::ZonesOfFile => "--rw=write --zonemode=zbd --zonesize=64k --fill_device=1",
        Case::ZonesRange => "--rw=write --zonemode=zbd --zonesize=64k --sync_file_range=write:8",
        Case::ZonesLocked => "--rw=write --zonemode=zbd --zonesize=64k --lockfile=exclusive",
        Case::ZonesFlow => "--rw=write --zonemode=zbd --zonesize=64k --flow=1",
        Case::ZonesVerified => "--rw=write --zonemode=zbd --zonesize=64k --verify=md5 --verify_only=1",
        Case::ZonesSynced => "--rw=write --zonemode=zbd --zonesize=64k --verify=md5 --verify_policy=fsynced --fsync=8",
        Case::ZonesVerifiedTrims => {
            "--rw=write --zonemode=zbd --zonesize=64k --verify=md5 --trim_percentage=10 --trim_backlog=8 --ioengine=io_uring"
        }
        Case::ZonesShared => {
            "--rw=read --filename=f --zonemode=zbd --zonesize=64k --name=b --size=1m --rw=read --filename=f --zonemode=zbd \
             --zonesize=32k"
        }
        Case::ZonesEmulated => "--rw=read --filename=f --zonemode=zbd",
        Case::ZonesMixed => "--rw=read --filename=z:d --zonemode=zbd",
        Case::ZonesUnknown => "--rw=read --filename=u --zonemode=zbd",
        Case::ZonesOfDevice => "--rw=read --filename=z --zonemode=zbd --zonesize=32k",
        Case::ZonesNone => "--rw=write --filename=z --zonemode=zbd --direct=1 --offset=4k --size=64k",
        Case::ZonesReset => "--rw=write --zonemode=zbd --zonesize=64k --zone_reset_threshold=0.5",
        Case::ProgramMissing
        | Case::VerifyTrims
        | Case::DirectMapped
        | Case::EngineExtends
        | Case::Simulated
        | Case::NamesFiles
        | Case::TimeBasedAlone
        | Case::SteadyVerify
        | Case::SteadyExtends
        | Case::SteadyTogether
        | Case::SizesTwice
        | Case::FilesAndCount
        | Case::RegionsOfOthers
        | Case::NoClass
        | Case::BatchBeyondDepth
        | Case::BatchMaximum
        | Case::LowBeyondDepth
        | Case::VerifyDedupe
        | Case::VerifyWorkers
        | Case::LeaveOneOut
        | Case::SetOnlyOne
        | Case::SetBoth => return None,
    })
}

/// A machine on which POSIX AIO cannot trim.
fn machine() -> Machine {
    let posixaio = EngineState { can_trim: false, ..EngineState::works(EngineKind::Posixaio) };
    Machine { engines: EngineAvailability { engines: vec![posixaio] }, ..Machine::unknown() }
}

/// Goal: each row of the table of combinations is met by a command line of fio.
/// Method: `example` is exhaustive; each of its lines is planned, and refused for its case.
#[test]
fn each_listed_combination_is_refused_from_a_command_line() {
    let mut wrong = Vec::new();
    for case in Case::ALL.iter().copied() {
        let line = example(case);
        if line.is_some() != case.row().is_some() {
            wrong.push(format!("{case:?}: a row and an example belong together"));
        }
        let Some(line) = line else { continue };
        let line = format!("--name=a --size=1m {line}");
        let met = case_of(&line, &machine());
        if met != Some(case) {
            wrong.push(format!("{case:?}: {line} met {met:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Values that options of several kinds take.
const VALUES: &[&str] =
    &["1", "2", "4k", "64k", "50", "1s", "10%", "f", "d", "log", "2z", "8k/50:4k/50", "4k-8k", "0x55", "write:8", "0"];

/// Goal: a job in fio's language meets no combination that the table does not list.
/// Method: command lines of two to five options with drawn values are planned. Of each option, the values that it takes alone are
/// drawn. The numbers of cases that were met keep the test from passing on lines that are all refused early.
#[test]
fn drawn_command_lines_meet_only_listed_combinations() {
    let machine = machine();
    let takes = |word: &String| {
        let words = ["--name=a".to_owned(), "--size=1m".to_owned(), word.clone()];
        read(&words, &World::default()).is_ok()
    };
    let options: Vec<Vec<String>> = options_of_fio()
        .into_iter()
        .map(|option| {
            let words = option.words().into_iter().chain(VALUES.iter().copied());
            words.map(|value| format!("--{}={value}", option.name())).filter(takes).collect::<Vec<_>>()
        })
        .filter(|words| !words.is_empty())
        .collect();
    let often: Vec<&Vec<String>> = options
        .iter()
        .filter(|words| {
            ["--rw=", "--ioengine=", "--verify=", "--zonemode=", "--filename="]
                .iter()
                .any(|name| words[0].starts_with(name))
        })
        .collect();
    let mut state = 44_u64;
    let mut draw = |below: usize| {
        state = mix64(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
        (state % below as u64) as usize
    };
    let mut met: BTreeMap<String, usize> = BTreeMap::new();
    let mut unlisted = Vec::new();
    for _ in 0..DRAWS {
        let mut line = "--name=a --size=1m".to_owned();
        for _ in 0..2 + draw(4) {
            let words = if draw(3) == 0 { often[draw(often.len())] } else { &options[draw(options.len())] };
            line = format!("{line} {}", words[draw(words.len())]);
        }
        if let Some(case) = case_of(&line, &machine) {
            unlisted.extend(case.row().is_none().then(|| format!("{case:?}: {line}")));
            *met.entry(format!("{case:?}")).or_default() += 1;
        }
    }
    assert!(unlisted.is_empty(), "{}", unlisted.join("\n"));
    assert!(met.len() > 20, "{met:?}");
}

const DRAWS: usize = 2_500;
