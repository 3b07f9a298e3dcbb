//! USB disks that jobs drive in user space (`usb:2-1`): claimed once for planner, jobs and evidence together.
//!
//! A disk is claimed when the planner looks at it first, because its size and signatures can only be read through the
//! transport, and is given back to the kernel when the last user has dropped it. Writes are sent only after a plan that
//! names the disk for them was accepted.
//!
//! Cannot see: a disk that is plugged in again during the run, which is another device for the kernel; its jobs fail.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use trueio_device::usb::usb_report;
use trueio_device::{System, signatures_through};
use trueio_engine::TargetFile;
use trueio_evidence::UsbTransfers;
use trueio_job::{InUse, Mark};
use trueio_model::{
    DirectFacts, DirectSupport, DrivenDisk, Fact, Layer, LayerKind, NamedFact, TargetFacts, TargetKind, UsbTargetName,
    UsbTransport, WriteCache, error_line, units,
};
use trueio_uas::ata::Ata;
use trueio_uas::disk::Facts;
use trueio_uas::queue::{Disk, Queue, Seen};
use trueio_uas::serve::{Discard, Served};
use trueio_uas::session::Limits;
use trueio_uas::usbfs::Usbfs;
use trueio_usb::{Barred, Claim, Driven, drive, plan_of};

/// A disk that this process drives.
#[derive(Debug)]
pub(crate) struct UsbDisk {
    queue: Arc<Queue<Usbfs>>,
    /// The device's node.
    node: Arc<File>,
    facts: TargetFacts,
    is_write_protected: bool,
    unseen: Vec<String>,
}

/// The disks that are claimed now, by their names.
static CLAIMED: Mutex<BTreeMap<String, Weak<UsbDisk>>> = Mutex::new(BTreeMap::new());

/// Returns a disk, which is claimed unless it is already.
///
/// # Errors
/// A sentence: why it cannot be claimed.
pub(crate) fn open(name: &str) -> Result<Arc<UsbDisk>, String> {
    // An entry is added whole or not at all.
    let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(disk) = claimed.get(name).and_then(Weak::upgrade) {
        return Ok(disk);
    }
    let disk = Arc::new(UsbDisk::claim(name)?);
    claimed.insert(name.to_owned(), Arc::downgrade(&disk));
    Ok(disk)
}

/// A claim of a USB disk: while it is held, jobs of this process on the disk find it claimed. When the last one is dropped,
/// the kernel's driver gets the disk back.
#[derive(Debug)]
pub struct UsbClaim(Arc<UsbDisk>);

impl UsbClaim {
    /// The facts of the disk as a target.
    pub fn facts(&self) -> TargetFacts {
        self.0.facts()
    }

    /// Reads what the disk behind the bridge reports about itself: identity and SMART data, as facts.
    pub fn ata_facts(&self) -> Vec<NamedFact> {
        const SOURCE: &str = "ATA PASS-THROUGH";
        let named = |name: String, fact| NamedFact { name, fact };
        let Ata { model, serial, firmware, rotation_rate, attributes } = match self.0.queue.ata() {
            Ok(Some(ata)) => ata,
            Ok(None) => {
                let why = "the bridge does not pass ATA commands on, or the disk is not an ATA disk";
                return vec![named("SMART".to_owned(), Fact::unknown(why))];
            }
            Err(failure) => return vec![named("SMART".to_owned(), Fact::unknown(format!("{SOURCE}: {failure}")))],
        };
        let rotation = match rotation_rate {
            0 => "not reported".to_owned(),
            1 => "does not rotate".to_owned(),
            rate => format!("{rate} rotations per minute"),
        };
        let identity = [("model", model), ("serial", serial), ("firmware", firmware), ("rotation", rotation)];
        let identity = identity.map(|(name, text)| named(format!("ATA {name}"), Fact::known(text, "IDENTIFY DEVICE")));
        let smart = attributes.iter().map(|attribute| {
            let text = format!("{} (value {}, worst {})", attribute.raw_in_words(), attribute.value, attribute.worst);
            named(format!("SMART {} {}", attribute.id, attribute.name()), Fact::known(text, "SMART READ DATA"))
        });
        identity.into_iter().chain(smart).collect()
    }
}

/// Claims a USB disk by its name (`usb:2-1`).
///
/// # Errors
/// A sentence: why it cannot be claimed.
pub fn claim_usb_disk(name: &str) -> Result<UsbClaim, String> {
    open(name).map(UsbClaim)
}

impl UsbDisk {
    fn claim(name: &str) -> Result<Self, String> {
        let UsbTargetName { device, lun } = UsbTargetName::parse(name).ok_or("it is not the name of a USB disk")?;
        let system = System::live();
        let report = usb_report(&system);
        let Some(disk) = report.disks.iter().find(|disk| disk.usb.device == device) else {
            let there: Vec<String> = report.disks.iter().map(|disk| format!("usb:{}", disk.usb.device)).collect();
            let there = if there.is_empty() { "there is no USB disk".to_owned() } else { there.join(", ") };
            return Err(format!("no USB disk is at port {device}: {there} (`trueio usb list`)"));
        };
        let planned = plan_of(&system, disk, Barred::Refused).map_err(|error| error_line(&error))?;
        let plan = planned.map_err(|refusal| refusal.reasons.join("; "))?;
        let Driven { host, facts, memory_bytes, keeper } =
            drive(&plan, lun, Limits::default()).map_err(|error| match &error {
                trueio_usb::DriveError::Unit { .. } => format!("{error}; name one: `usb:{device}/NUMBER`"),
                _ => error_line(&error),
            })?;
        let served = Served::of(&facts, host.depth(), memory_bytes, false);
        let Some(served) = served else {
            return Err(format!(
                "all transfers of usbfs may use {} together, which is too little ({})",
                units::format_bytes(memory_bytes.unwrap_or(0)),
                trueio_uas::usbfs::MEMORY_PARAMETER
            ));
        };
        let node = File::open(&plan.interface.node).map_err(|error| error.to_string())?;
        let depth = host.depth();
        let is_write_protected = served.is_read_only;
        let facts = target_facts(name, &plan, &facts, &served, depth, memory_bytes);
        // The keeper waits until the interface is given back, so it is dropped after the host.
        let queue = Arc::new(Queue::new(host, served, Box::new(keeper)));
        Ok(Self { queue, node: Arc::new(node), facts, is_write_protected, unseen: plan.warnings })
    }

    /// The facts of the disk as a target.
    pub(crate) fn facts(&self) -> TargetFacts {
        self.facts.clone()
    }

    /// Returns the signatures on the disk, read through the transport. Nothing else uses it: it is claimed.
    ///
    /// # Errors
    /// A sentence: it is write-protected, or cannot be read.
    pub(crate) fn in_use(&self) -> Result<InUse, String> {
        if self.is_write_protected {
            return Err("the disk is write-protected".to_owned());
        }
        let mut reader = Reader { queue: &self.queue, position: 0 };
        let block_bytes = u64::from(self.queue.served().block_bytes);
        let found = signatures_through(&mut reader, block_bytes).map_err(|e| format!("it cannot be read ({e})"))?;
        let mark = |mark: trueio_device::Signature| Mark { name: mark.kind.to_owned(), offset_bytes: mark.offset };
        let marks = found.into_iter().map(mark).collect();
        Ok(InUse { uses: Vec::new(), marks, unseen: self.unseen.clone() })
    }

    /// From now on writes are sent.
    pub(crate) fn permit_writes(&self) {
        self.queue.permit_writes();
    }

    /// Flushes the disk's cache, if a job writes the disk.
    ///
    /// # Errors
    /// The disk's failure.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.queue.flush()
    }

    /// Returns the disk as a job's file.
    pub(crate) fn target(&self, end_bytes: u64) -> TargetFile {
        TargetFile {
            file: Arc::clone(&self.node),
            path: self.facts.path.clone(),
            trim_call: trueio_engine::TrimCall::Discard(None),
            end_bytes,
            lock: None,
            disk: Some(Arc::clone(&self.queue) as Arc<dyn Disk>),
        }
    }
}

impl Drop for UsbDisk {
    /// What was written is on the disk before the kernel's driver gets it back: the owner may unplug it.
    fn drop(&mut self) {
        // An unplugged disk cannot be flushed; its jobs have failed.
        let _ = self.flush();
    }
}

/// Returns what the planner of a job asks of the disk's commands.
fn driven_facts(facts: &Facts, served: &Served) -> DrivenDisk {
    const SOURCE: &str = "MODE SENSE";
    let not_reported = "the disk has no caching page";
    let (write_cache, has_fua) = match facts.caching {
        None => (Fact::unknown(not_reported), Fact::unknown(not_reported)),
        Some(caching) => {
            let cache = if caching.has_write_cache { WriteCache::WriteBack } else { WriteCache::WriteThrough };
            (Fact::known(cache, SOURCE), Fact::known(caching.has_fua, SOURCE))
        }
    };
    let can_trim = Fact::known(served.discard != Discard::None, "VPD pages 0xb0 and 0xb2");
    DrivenDisk { write_cache, has_fua, can_trim }
}

/// What a disk reports about itself, as the facts of a target.
fn target_facts(
    name: &str,
    plan: &Claim,
    facts: &Facts,
    served: &Served,
    depth: u16,
    memory_bytes: Option<u64>,
) -> TargetFacts {
    let fact =
        |name: &str, text: String, source: &str| NamedFact { name: name.to_owned(), fact: Fact::known(text, source) };
    let capacity = &facts.capacity;
    let memory = memory_bytes.map_or_else(|| "without limit".to_owned(), units::format_bytes);
    let cache = match facts.caching {
        None => "not reported: write through is assumed".to_owned(),
        Some(caching) => format!(
            "{}, {}",
            if caching.has_write_cache { "write back" } else { "write through" },
            if caching.has_fua { "FUA" } else { "no FUA" }
        ),
    };
    let discard = match served.discard {
        Discard::None => "none",
        Discard::Unmap(_) => "UNMAP",
        Discard::WriteSame(_) => "WRITE SAME",
    };
    let serial = facts.serial.clone().unwrap_or_else(|| "not reported".to_owned());
    let streams = match plan.interface.stream_count {
        0 => "none (USB 2)".to_owned(),
        count => count.to_string(),
    };
    let properties = vec![
        fact("serial", serial, "VPD page 0x80"),
        fact("firmware", facts.inquiry.revision.clone(), "INQUIRY"),
        fact("logical sector", format!("{} B", capacity.block_bytes), "READ CAPACITY"),
        fact("physical sector", format!("{} B", capacity.physical_bytes), "READ CAPACITY"),
        fact("cache", cache, "MODE SENSE"),
        fact("trims", discard.to_owned(), "VPD pages 0xb0 and 0xb2"),
        fact("streams", streams, "descriptors"),
        fact("commands in flight", depth.to_string(), "USBDEVFS_ALLOC_STREAMS"),
        fact("longest command", units::format_bytes(served.request_bytes_max.into()), "VPD page 0xb0, usbfs_memory_mb"),
        fact("memory of usbfs", memory, trueio_uas::usbfs::MEMORY_PARAMETER),
        fact("kernel's driver before", plan.from.to_string(), "sysfs"),
    ];
    let model = format!("{} {}", facts.inquiry.vendor, facts.inquiry.product);
    let aligned = || Fact::known(capacity.block_bytes, "READ CAPACITY");
    TargetFacts {
        path: name.to_owned(),
        kind: TargetKind::BlockDevice,
        size_bytes: Fact::known(capacity.size_bytes(), "READ CAPACITY"),
        filesystem: None,
        stack: vec![Layer {
            kind: LayerKind::Disk,
            name: format!("{} at {}, {} in user space", model.trim(), plan.name, UsbTransport::Uas),
            source: "INQUIRY through usbfs".to_owned(),
            depth: 0,
            facts: properties,
        }],
        // The kernel has no block device of it while it is claimed, and so no counters.
        disks: Vec::new(),
        direct: DirectFacts {
            support: DirectSupport::Direct,
            reason: "commands to the disk pass no page cache".to_owned(),
            memory_alignment_bytes: Fact::known(1, "usbfs copies"),
            write_alignment_bytes: aligned(),
            read_alignment_bytes: aligned(),
            atomic_write: Fact::unknown("not read"),
        },
        io_limits: Fact::known(Vec::new(), "control groups do not limit transfers of usbfs"),
        driven: Some(driven_facts(facts, served)),
    }
}

/// Reads a disk as a stream.
struct Reader<'a> {
    queue: &'a Queue<Usbfs>,
    position: u64,
}

impl Reader<'_> {
    fn size_bytes(&self) -> u64 {
        let Served { block_bytes, block_count, .. } = *self.queue.served();
        block_count * u64::from(block_bytes)
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size_bytes().saturating_sub(self.position);
        let length = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.queue.read_at(self.position, &mut buffer[..length])?;
        self.position += length as u64;
        Ok(length)
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.size_bytes().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// A disk of a phase, and what was counted before it.
#[derive(Debug)]
struct Watched {
    path: String,
    disk: Arc<dyn Disk>,
    before: Seen,
    kernel: Option<u64>,
}

/// What is counted of the disks of a phase, before it and after it.
#[derive(Debug)]
pub(crate) struct UsbWatch {
    disks: Vec<Watched>,
}

impl UsbWatch {
    /// Counts before the measured part.
    pub(crate) fn begin<'a>(files: impl Iterator<Item = &'a TargetFile>) -> Self {
        let mut disks: Vec<Watched> = Vec::new();
        for file in files {
            let Some(disk) = file.disk.clone() else { continue };
            if !disks.iter().any(|watched| watched.path == file.path) {
                // The kernel's count first here and last at the end, so that it holds at least ours.
                let kernel = kernel_count(&file.path);
                let before = disk.seen();
                disks.push(Watched { path: file.path.clone(), disk, before, kernel });
            }
        }
        Self { disks }
    }

    /// Counts after it.
    pub(crate) fn end(self) -> Vec<UsbTransfers> {
        self.disks.into_iter().map(Watched::end).collect()
    }
}

impl Watched {
    fn end(self) -> UsbTransfers {
        let Self { path, disk, before, kernel } = self;
        let after = disk.seen();
        let (counts, earlier) = (after.counts, before.counts);
        UsbTransfers {
            kernel_transfers: kernel.zip(kernel_count(&path)).map(|(before, after)| after.saturating_sub(before)),
            path,
            in_bytes: after.moved.in_bytes - before.moved.in_bytes,
            out_bytes: after.moved.out_bytes - before.moved.out_bytes,
            transfers: after.moved.transfers - before.moved.transfers,
            commands: counts.ended - earlier.ended,
            failed: after.failed - before.failed,
            short: after.short - before.short,
            repeated: counts.repeated - earlier.repeated,
            timeouts: counts.timeouts - earlier.timeouts,
            resets: counts.unit_resets + counts.port_resets - earlier.unit_resets - earlier.port_resets,
            violations: counts.violations - earlier.violations,
            queue_full: counts.queue_full - earlier.queue_full,
            attentions: counts.attentions - earlier.attentions,
            deferred: counts.deferred - earlier.deferred,
            last_failure: after.last.filter(|_| after.failed > before.failed).map(|failure| failure.to_string()),
        }
    }
}

/// Returns the kernel's count of the transfers that were submitted to a device, by any program.
///
/// Source: Linux `Documentation/ABI/testing/sysfs-bus-usb`, `urbnum`.
fn kernel_count(name: &str) -> Option<u64> {
    let device = UsbTargetName::parse(name)?.device;
    let path = format!("/sys/bus/usb/devices/{device}/urbnum");
    std::fs::read_to_string(System::live().locate(&path)).ok()?.trim().parse().ok()
}
