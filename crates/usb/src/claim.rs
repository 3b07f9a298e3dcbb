//! Claims a USB disk for UAS in user space, after the checks of a switch.
//!
//! The disk's block devices are claimed (`O_EXCL`) and flushed before the kernel's driver is disconnected, and released after
//! it: in between, nothing can be mounted. When the claim is dropped, the kernel chooses a driver again.
//!
//! Cannot see: whether the disk works with UAS. The caller reads its facts, and drops the claim if it does not.

use crate::hands::Hands;
use crate::plan::{Refusal, Uses, in_use};
use std::io;
use std::path::PathBuf;
use trueio_device::System;
use trueio_device::usb::{driver_flags, quirks, uas_interface};
use trueio_model::{UsbDisk, UsbTransport};
use trueio_uas::disk::Quirks;
use trueio_uas::usbfs::{self, Endpoints, Interface, Usbfs};

/// The speed from which UAS uses streams, in Mbit/s.
const STREAMS_MBIT_PER_S: f64 = 5000.0;

/// A claim that is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The interface.
    pub interface: Interface,
    /// The kernel's name of the interface (`2-1:1.0`).
    pub name: String,
    /// The block devices that the kernel removes.
    pub blocks: Vec<String>,
    /// The present transport.
    pub from: UsbTransport,
    /// What the driver avoids on this device.
    pub quirks: Quirks,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// A claimed disk.
#[derive(Debug)]
pub struct Claimed {
    /// The transport.
    pub transport: Usbfs,
    /// Bytes that all transfers of usbfs on this machine may use together; `None`: without limit.
    pub memory_bytes: Option<u64>,
}

/// Why a disk was not claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimFailure {
    /// A block device of it cannot be claimed.
    #[error("{block} cannot be claimed: something uses it")]
    Block {
        /// The block device.
        block: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its cache cannot be flushed.
    #[error("the cache of {block} cannot be flushed")]
    Flush {
        /// The block device.
        block: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// usbfs has no limit, so it is not there.
    #[error("`{}` cannot be read", usbfs::MEMORY_PARAMETER)]
    Memory(#[source] io::Error),
    /// The interface cannot be claimed.
    #[error(transparent)]
    Interface(#[from] usbfs::ClaimError),
}

/// Whether a disk on which the kernel does not use UAS is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barred {
    /// It is refused.
    Refused,
    /// It is claimed, with a warning.
    Forced,
}

/// Returns what a driver avoids on a device with these flags.
///
/// # Source
/// Linux `drivers/usb/storage/uas.c` (`uas_sdev_configure`, `uas_target_alloc`, `uas_queuecommand`).
fn quirks_of(flags: u64) -> Quirks {
    const SECTOR_BYTES: u32 = 512;
    let has = |flag: u64| flags & flag != 0;
    Quirks {
        no_report_luns: has(quirks::NO_REPORT_LUNS),
        transfer_bytes_max: match flags {
            _ if has(quirks::MAX_SECTORS_64) => Some(64 * SECTOR_BYTES),
            _ if has(quirks::MAX_SECTORS_240) => Some(240 * SECTOR_BYTES),
            _ => None,
        },
        broken_fua: has(quirks::BROKEN_FUA),
        no_ata: has(quirks::NO_ATA_1X),
        no_read_capacity_16: has(quirks::NO_READ_CAPACITY_16),
        no_write_same: has(quirks::NO_SAME),
        assumes_cache: has(quirks::ALWAYS_SYNC),
        no_write_protection: has(quirks::NO_WP_DETECT),
        one_block_less: has(quirks::FIX_CAPACITY),
        even_block_count: has(quirks::CAPACITY_HEURISTICS),
    }
}

/// Plans the claim of a disk.
///
/// # Errors
/// [`Refusal`] with every reason.
pub fn plan_claim(system: &System, disk: &UsbDisk, uses: &Uses, barred: Barred) -> Result<Claim, Refusal> {
    let mut reasons = Vec::new();
    let usb = &disk.usb;
    let known = driver_flags(system, disk);
    let mut warnings = known.notes;
    if let Some(why) = known.barred {
        match barred {
            Barred::Refused => reasons.push(why),
            Barred::Forced => warnings.push(why),
        }
    }
    if usb.transport == UsbTransport::Other {
        let driver = usb.driver.value.as_deref().unwrap_or("another driver");
        reasons.push(match driver {
            "usbfs" => format!("another program has claimed {} (driver usbfs)", usb.interface),
            _ => format!("{} is bound to {driver}, which this command does not disconnect", usb.interface),
        });
    }
    let found = uas_interface(system, disk);
    if let Err(reason) = &found {
        reasons.push(reason.clone());
    }
    let is_super = usb.link_mbit_per_s.value.is_some_and(|link| link >= STREAMS_MBIT_PER_S);
    if let Ok(interface) = &found
        && is_super
        && interface.stream_count < 2
    {
        let count = interface.stream_count;
        reasons.push(format!("on a USB 3 link UAS needs streams, and the device offers {count}"));
    }
    for (block, (holders, openers)) in disk.blocks.iter().zip(uses) {
        in_use(&mut reasons, &block.name, holders, openers);
        if let Some(state) = block.abnormal_state() {
            reasons.push(format!("{} is {state}: its cache cannot be flushed", block.name));
        }
    }
    if usb.id.value.as_deref() == Some("f400:f400") {
        reasons.push("f400:f400 is the boot stick of a Synology NAS".to_owned());
    }
    let is_used = uses.iter().any(|(holders, openers)| !holders.found.is_empty() || !openers.found.is_empty());
    let Some(interface) = found.ok().filter(|_| reasons.is_empty()) else {
        let hint = is_used.then(|| "unmount it, or end the program that uses it, and try again".to_owned());
        return Err(Refusal { reasons, hint });
    };
    let [command, status, data_in, data_out] = interface.endpoints;
    for sentence in uses.iter().flat_map(|(holders, openers)| holders.unseen.iter().chain(&openers.unseen)) {
        if !warnings.contains(sentence) {
            warnings.push(sentence.clone());
        }
    }
    Ok(Claim {
        interface: Interface {
            node: PathBuf::from(interface.node),
            number: interface.number,
            setting: interface.setting,
            endpoints: Endpoints { command, status, data_in, data_out },
            stream_count: if is_super { interface.stream_count } else { 0 },
        },
        name: usb.interface.clone(),
        blocks: disk.blocks.iter().map(|block| block.name.clone()).collect(),
        from: usb.transport,
        quirks: quirks_of(known.flags),
        warnings,
    })
}

/// Claims a disk.
///
/// # Errors
/// [`ClaimFailure`]; then the disk is as it was before.
pub fn claim(plan: &Claim, hands: &mut dyn Hands) -> Result<Claimed, ClaimFailure> {
    let memory_bytes = usbfs::memory_bytes().map_err(ClaimFailure::Memory)?;
    let claimed = claim_with(plan, hands, Usbfs::claim);
    // The kernel has removed the block devices, or they are free again.
    hands.release();
    Ok(Claimed { transport: claimed?, memory_bytes })
}

fn claim_with<T>(
    plan: &Claim,
    hands: &mut dyn Hands,
    connect: impl FnOnce(&Interface) -> Result<T, usbfs::ClaimError>,
) -> Result<T, ClaimFailure> {
    for block in &plan.blocks {
        hands.claim(block).map_err(|source| ClaimFailure::Block { block: block.clone(), source })?;
    }
    // The driver `uas` does not flush when it is disconnected.
    for block in &plan.blocks {
        hands.flush(block).map_err(|source| ClaimFailure::Flush { block: block.clone(), source })?;
    }
    Ok(connect(&plan.interface)?)
}
