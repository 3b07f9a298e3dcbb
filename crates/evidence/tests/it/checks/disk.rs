//! Facts of the disk and of its content: `usb_link`, `declared_values`, `memory_backed`, `content`, `zero_blocks`,
//! `usb_transfers`.

use crate::support::*;
use trueio_evidence::{ContentSample, Observation, UsbTransfers};
use trueio_model::CheckOutcome::{Contradicted, NotApplicable, NotSeen, Passed, Suspect};
use trueio_model::{
    ContentKind, Distribution, EngineKind, EvidenceLevel, Fact, OpKind, Order, TargetKind, UsbFacts, Verdict,
};

/// Goal: a transport that hides the disk's facts, and a link that slows it, are suspect; correct USB disks
/// and other disks pass. Method: one disk, attached in every way.
#[test]
fn a_usb_disk_is_suspect_if_bot_hides_its_facts_or_a_usb_2_link_slows_it() {
    let with = |usb: Option<UsbFacts>, rotates: bool, sector: u32| {
        let mut phase = Phase::honest_reads();
        let mut disk = disk("vda", "usb");
        disk.is_rotational = Fact::known(rotates, "by hand");
        disk.physical_sector_bytes = Fact::known(sector, "by hand");
        disk.usb = usb;
        phase.targets[0].disks = vec![disk];
        phase.judge()
    };
    let usb = |transport, link: f64, port: f64, can: Option<bool>| {
        let none = || Fact::unknown("made by hand");
        let text = |text: &str| Fact::known(text.to_owned(), "by hand");
        Some(UsbFacts {
            device: "2-1".to_owned(),
            interface: "2-1:1.0".to_owned(),
            id: text("1209:0001"),
            release: none(),
            manufacturer: none(),
            product: none(),
            serial: none(),
            usb_version: none(),
            link_mbit_per_s: Fact::known(link, "by hand"),
            port_mbit_per_s: Fact::known(port, "by hand"),
            can_superspeed: Fact { value: can, source: "by hand".to_owned() },
            driver: none(),
            transport,
            offers: Fact::known(Vec::new(), "by hand"),
            queue_depth: Fact::known(30, "by hand"),
        })
    };
    use trueio_model::UsbTransport::{Bot, Uas};
    with(usb(Bot, 5000.0, 5000.0, Some(true)), true, 512).assert("usb_link", Suspect, "runs on BOT");
    with(usb(Uas, 480.0, 5000.0, Some(true)), false, 4096).assert("usb_link", Suspect, "try another cable");
    with(usb(Uas, 480.0, 480.0, Some(true)), false, 4096).assert("usb_link", Suspect, "use a USB 3 port");
    let both = with(usb(Bot, 480.0, 480.0, Some(true)), true, 512);
    both.assert("usb_link", Suspect, "runs on BOT");
    both.assert("usb_link", Suspect, "which is the limit");
    // A USB 2 stick that supports only BOT is not hidden by it.
    with(usb(Bot, 480.0, 5000.0, Some(false)), true, 512).assert("usb_link", Passed, "supports only BOT");
    // Before Linux 6.9 a disk's capabilities are unknown; its declared USB version may show them.
    let declares = |version: &str, transport, port: f64| {
        let facts = usb(transport, 480.0, port, None).expect("facts");
        Some(UsbFacts { usb_version: Fact::known(version.to_owned(), "by hand"), ..facts })
    };
    let likely = with(declares("2.10", Bot, 5000.0), true, 512);
    likely.assert("usb_link", Suspect, "declares USB 2.10 on a link of 480 Mbit/s");
    likely.assert("usb_link", Suspect, "try another cable");
    likely.assert("usb_link", Suspect, "runs on BOT");
    with(declares("2.10", Uas, 480.0), false, 4096).assert("usb_link", Suspect, "use a USB 3 port");
    with(declares("2.01", Bot, 5000.0), true, 512).assert("usb_link", NotSeen, "supports USB 3 is unknown");
    with(usb(Bot, 480.0, 480.0, None), true, 512).assert("usb_link", NotSeen, "supports USB 3 is unknown");
    with(usb(Uas, 480.0, 5000.0, None), false, 4096).assert("usb_link", NotSeen, "supports USB 3 is unknown");
    // Correct ones.
    with(usb(Uas, 5000.0, 5000.0, Some(true)), true, 512).assert("usb_link", Passed, "hides nothing");
    with(usb(Uas, 480.0, 480.0, Some(false)), false, 4096).assert("usb_link", Passed, "");
    with(usb(Bot, 5000.0, 5000.0, Some(true)), false, 4096).assert("usb_link", Passed, "");
    with(None, true, 512).assert("usb_link", NotApplicable, "no known USB disk");
}

/// Goal: a declaration that the measurement contradicts is suspect if the drive made it, a note otherwise,
/// and correct disks are not flagged. Method: random reads of a given median over a given region, on disks
/// with different declarations.
#[test]
fn a_rotating_disk_that_is_too_fast_is_suspect_if_the_drive_declares_it_and_a_note_otherwise() {
    let with = |transport: &str, rotates: Option<bool>, median_ns: u64, region: u64| {
        let mut phase = Phase::honest_reads();
        phase.jobs[0].files[0].size_bytes = region;
        let (count, bytes) = (phase.records[0].ops[0].io_count, phase.records[0].ops[0].byte_count);
        phase.records[0].ops = vec![op(OpKind::Read, count, bytes, median_ns)];
        let mut disk = disk("vda", transport);
        disk.is_rotational = Fact { value: rotates, source: "by hand".to_owned() };
        phase.targets[0].disks = vec![disk];
        phase.environment.hypervisor = Fact::unknown("no flag of the processor says so");
        phase
    };
    let (quick, slow, large) = (58_000, 8_000_000, 4096 * MIB);
    with("sata", Some(true), quick, large).judge().assert(
        "declared_values",
        Suspect,
        "no rotating disk reads at random this fast",
    );
    with("sas", Some(true), quick, large).judge().assert("declared_values", Suspect, "the declaration is wrong");
    with("sata", Some(true), slow, large).judge().assert("declared_values", Passed, "agree with the declared");
    with("sata", Some(false), quick, large).judge().assert("declared_values", Passed, "latencies agree");
    with("usb", Some(false), slow, large).judge().assert(
        "declared_values",
        Passed,
        "as long as those of a rotating disk",
    );
    with("sata", Some(true), quick, 64 * MIB).judge().assert(
        "declared_values",
        NotApplicable,
        "cannot confirm or refute",
    );
    with("sata", None, quick, large).judge().assert("declared_values", NotApplicable, "cannot confirm or refute");
    with("loop", Some(true), quick, large).judge().assert("declared_values", NotApplicable, "cannot confirm or refute");
    for bus in ["virtio", "usb", "nvme", "iscsi"] {
        let judgement = with(bus, Some(true), quick, large).judge();
        judgement.assert("declared_values", Passed, "vda declares that it rotates");
        assert_eq!(judgement.objections(), [], "{bus}: a remark leaves the verdict alone");
    }
    // An emulated SATA disk is virtual.
    let mut emulated = with("sata", Some(true), quick, large);
    emulated.environment.hypervisor = Fact::known("KVM".to_owned(), "by hand");
    emulated.judge().assert("declared_values", Passed, "virtual disks and USB bridges often do not report it");
    // An SSD in front of a rotating disk may have completed the reads.
    let mut cached = with("sata", Some(true), quick, large);
    let mut ssd = disk("nvme0n1", "nvme");
    ssd.is_rotational = Fact::known(false, "by hand");
    cached.targets[0].disks.push(ssd);
    cached.judge().assert("declared_values", NotApplicable, "cannot confirm or refute");
    // Reads of popular blocks may come from the drive's cache.
    let mut favourites = with("sata", Some(true), quick, large);
    favourites.jobs[0].pattern.order =
        Order::Random { distribution: Distribution::Zipf { theta: 1.2, center: None }, each_block_once: false };
    favourites.judge().assert("declared_values", NotApplicable, "cannot confirm or refute");
}

#[test]
fn an_undeclared_cache_is_detected_by_flushes_and_by_fast_durable_writes() {
    let bare = |transport: &str, sync_ns: u64, flushes: u64| {
        let mut phase = Phase::honest_log();
        phase.records[0].ops = vec![op(OpKind::Write, 1_000, 4_096_000, 30_000), op(OpKind::Sync, 1_000, 0, sync_ns)];
        let mut disk = disk("vda", transport);
        disk.is_rotational = Fact::known(true, "by hand");
        disk.write_cache = Fact::known("write through".into(), "by hand");
        phase.targets[0].disks = vec![disk];
        phase.environment.hypervisor = Fact::unknown("no flag of the processor says so");
        phase.observation.devices[0].measured.flush_count = Some(flushes);
        phase
    };
    bare("sata", 100_000, 0).judge().assert("declared_values", Suspect, "loses its content at a power cut");
    bare("virtio", 100_000, 0).judge().assert("declared_values", Passed, "loses its content at a power cut");
    bare("sata", 8_000_000, 0).judge().assert("declared_values", NotApplicable, "cannot confirm or refute");
    bare("virtio", 8_000_000, 900).judge().assert(
        "declared_values",
        Suspect,
        "declares no volatile cache, but it was flushed",
    );
}

#[test]
fn memory_below_the_target_is_suspect_unless_named_as_the_target() {
    let with = |stack: Vec<trueio_model::Layer>, transport: &str| {
        let mut phase = Phase::honest_reads();
        phase.targets[0].stack = stack;
        phase.targets[0].disks = vec![disk("vda", transport)];
        phase
    };
    let file = || layer("file", "/data/file", 0);
    let tmpfs = with(vec![file(), layer("filesystem", "tmpfs on /data", 1)], "virtio");
    tmpfs.judge().assert("memory_backed", Suspect, "no disk was measured");
    let zram = with(vec![file(), layer("filesystem", "ext4 on /data", 1), layer("disk", "zram0", 2)], "zram");
    zram.judge().assert("memory_backed", Suspect, "is memory");
    let buffered = with(vec![file(), layer("loop", "loop0 (buffered)", 1), layer("disk", "vda", 4)], "loop");
    buffered.judge().assert("memory_backed", Suspect, "page cache of its backing file");
    let direct = with(vec![file(), layer("loop", "loop0 (direct)", 1), layer("disk", "vda", 4)], "loop");
    direct.judge().assert("memory_backed", Passed, "");
    let mut named = with(vec![layer("disk", "zram0", 0)], "zram");
    named.targets[0].kind = TargetKind::BlockDevice;
    named.judge().assert("memory_backed", Passed, "is memory");
}

#[test]
fn zeros_are_suspect_and_compressible_content_is_reported() {
    let mut phase = Phase::honest_writes();
    phase.jobs[0].content.compressible_percent = 50;
    phase.judge().assert("content", Passed, "hold for such content");
    phase.jobs[0].content.kind = ContentKind::Zero;
    phase.judge().assert("content", Suspect, "The job wrote zeros");
    phase.jobs[0].content.kind = ContentKind::Pattern;
    phase.jobs[0].content.pattern = vec![0xff];
    phase.judge().assert("content", Suspect, "The job wrote the same bytes repeatedly");
    Phase::honest_reads().judge().assert("content", NotApplicable, "");
}

#[test]
fn an_unwritten_device_is_suspect_and_a_few_zero_blocks_are_not() {
    let mut phase = Phase::honest_reads();
    let sample = |zeros: u64| {
        let blocks = (0..32).map(|block| (block * 4096, block < zeros)).collect();
        vec![ContentSample { path: "/data/file".to_owned(), blocks }]
    };
    phase.observation.samples = sample(30);
    phase.judge().assert("zero_blocks", Suspect, "Write them first");
    phase.observation.samples = sample(5);
    phase.judge().assert("zero_blocks", Passed, "contain data");
    // Of a file that is only written, the blocks are those before that.
    let mut beside = Phase::honest_reads();
    beside.observation.samples = sample(30);
    beside.observation.samples[0].path = "/data/written".to_owned();
    beside.judge().assert("zero_blocks", NotSeen, "No sampled block was read");
    phase.observation.samples = Vec::new();
    phase.judge().assert("zero_blocks", NotSeen, "do not support direct I/O");
    Phase::honest_writes().judge().assert("zero_blocks", NotApplicable, "Nothing is read");
}

/// A phase of a USB disk that is driven in user space: 400 MiB in 102,400 reads, three transfers each.
fn driven_reads() -> Phase {
    let mut phase = Phase::honest_reads();
    phase.jobs[0].engine = EngineKind::Uas;
    phase.jobs[0].files[0].path = "usb:2-1".to_owned();
    phase.targets[0].path = "usb:2-1".to_owned();
    phase.targets[0].kind = TargetKind::BlockDevice;
    phase.targets[0].filesystem = None;
    phase.targets[0].stack = vec![layer("disk", "TEST DISK at 2-1:1.0", 0)];
    phase.targets[0].disks.clear();
    phase.observation = Observation {
        usb: vec![UsbTransfers {
            path: "usb:2-1".to_owned(),
            in_bytes: 400 * MIB,
            transfers: 307_200,
            kernel_transfers: Some(307_210),
            commands: 102_400,
            ..UsbTransfers::default()
        }],
        process_read_bytes: Some(0),
        ..Observation::default()
    };
    phase
}

#[test]
fn a_disk_that_is_driven_in_user_space_is_supported_by_the_transfers_on_its_bus() {
    let judgement = driven_reads().judge();
    assert_eq!(judgement.objections(), [], "{}", judgement.report());
    assert_eq!((judgement.verdict, judgement.level), (Verdict::Supported, EvidenceLevel::E1), "{}", judgement.report());
    judgement.assert("usb_transfers", Passed, "agree with the calls");
    judgement.assert("block_layer_bytes", NotSeen, "No disk is visible");
    // Without the kernel's count only this program's own results are known.
    let mut phase = driven_reads();
    phase.observation.usb[0].kernel_transfers = None;
    let judgement = phase.judge();
    judgement.assert("usb_transfers", NotSeen, "does not count them");
    assert_eq!((judgement.verdict, judgement.level), (Verdict::Unverified, EvidenceLevel::E0));
    // Of other engines it reports nothing.
    Phase::honest_reads().judge().assert("usb_transfers", NotApplicable, "in user space");
}

/// Goal: each lie about a disk that is driven in user space is found by its count.
#[test]
fn calls_without_transfers_lost_writes_and_recoveries_of_a_driven_disk_are_reported() {
    let with = |change: fn(&mut UsbTransfers)| {
        let mut phase = driven_reads();
        change(&mut phase.observation.usb[0]);
        phase.judge()
    };
    with(|one| one.in_bytes = 0).assert("usb_transfers", Contradicted, "moved 0 B from the disk");
    with(|one| one.kernel_transfers = Some(5)).assert("usb_transfers", Contradicted, "the kernel counted 5");
    let lost = with(|one| {
        one.deferred = 1;
        one.last_failure = Some("a write fault in the device".to_owned());
    });
    lost.assert("usb_transfers", Contradicted, "that it had reported as done. The last failure: a write fault");
    let recovered = with(|one| (one.timeouts, one.resets, one.repeated) = (2, 1, 9));
    recovered.assert("usb_transfers", Suspect, "2 timeouts, 1 resets; 9 commands were sent again");
    with(|one| one.kernel_transfers = Some(400_000)).assert(
        "usb_transfers",
        Suspect,
        "Other programs submitted 92,800",
    );
    // A full queue is how a disk holds its depth down: it is reported, and no fault.
    with(|one| one.queue_full = 3).assert("usb_transfers", Passed, "3 times that its queue was full");
    let mut written = driven_reads();
    written.jobs[0].pattern.mix = trueio_model::OpMix::Only(OpKind::Write);
    written.records = vec![record(vec![op(OpKind::Write, 102_400, 400 * MIB, 90_000)])];
    written.judge().assert("usb_transfers", Contradicted, "moved 0 B to the disk");
}
