//! Drives a disk with UAS in user space: plan, claim, facts, and a process that gives the disk back if this one is killed.
//!
//! Limits: one logical unit of a device at a time.

use crate::claim::{Barred, Claim, ClaimFailure, claim, plan_claim};
use crate::hands::{LiveHands, WAIT};
use crate::keeper::{Guarded, Keeper};
use crate::lock::{STATES, take_lock};
use crate::plan::Refusal;
use crate::served::ServedDisk;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use trueio_device::{DeviceError, System, who_has_open, who_holds};
use trueio_model::UsbDisk;
use trueio_uas::disk::{self, Facts, IdentifyError};
use trueio_uas::host::{Failure, Host};
use trueio_uas::session::Limits;
use trueio_uas::usbfs::Usbfs;

/// A disk that this process drives. Fields are dropped in this order: the keeper waits until the interface is given back.
#[derive(Debug)]
pub struct Driven {
    /// The session with the disk.
    pub host: Host<Usbfs>,
    /// What the disk reports about itself.
    pub facts: Facts,
    /// Bytes that all transfers of usbfs on this machine may use together; `None`: without limit.
    pub memory_bytes: Option<u64>,
    /// The process that gives the interface back if this one is killed.
    pub keeper: Keeper,
}

/// Why a disk cannot be driven.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// This user may not.
    #[error("only root can claim a USB disk")]
    NotRoot,
    /// Another program changes drivers of USB disks now.
    #[error("a `trueio usb switch` is running")]
    Busy,
    /// The lock cannot be used.
    #[error("`{STATES}` cannot be used")]
    Lock(#[source] io::Error),
    /// The keeper cannot be started.
    #[error("the process that gives the disk back cannot be started")]
    Keeper(#[source] io::Error),
    /// It cannot be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimFailure),
    /// It does not report its logical units.
    #[error("the device does not report its logical units: {0}")]
    Units(Failure),
    /// The logical unit is missing, or has to be named.
    #[error("the device has the logical units {all}{}", if named.is_none() { ", and none was named" } else { "" })]
    Unit {
        /// The named one.
        named: Option<u8>,
        /// Those that the device has.
        all: String,
    },
    /// It is not the disk that a server has left, or it cannot be reset.
    #[error("the disk cannot be taken over: {0}")]
    TakeOver(String),
    /// It is no disk that can be used.
    #[error("the disk cannot be used")]
    Identify(#[source] IdentifyError),
}

/// Plans the claim of a disk from its present users. `barred`: what becomes of a disk on which the kernel does not use UAS.
///
/// # Errors
/// Its users cannot be read; inside, the refusal with every reason.
pub fn plan_of(system: &System, disk: &UsbDisk, barred: Barred) -> Result<Result<Claim, Refusal>, DeviceError> {
    let mut uses = Vec::new();
    for block in &disk.blocks {
        let node = PathBuf::from(format!("/dev/{}", block.name));
        uses.push((who_holds(system, &node)?, who_has_open(system, &block.name)));
    }
    Ok(plan_claim(system, disk, &uses, barred))
}

/// Claims a disk, and reads the facts of a logical unit: the named one, or the only one. `limits` hold for all commands.
///
/// # Errors
/// [`DriveError`]; then the disk is as it was before.
pub fn drive(plan: &Claim, lun: Option<u8>, limits: Limits) -> Result<Driven, DriveError> {
    start(plan, lun, limits, None).map(|(driven, _)| driven)
}

/// Claims a disk whose server has died, and resets it, so that it forgets the commands of that server. From the claim on, the
/// keeper of this process guards the block device that is left.
///
/// # Errors
/// [`DriveError`]; then the block device waits for another server, for its time again.
pub fn take_over(plan: &Claim, left: &ServedDisk, limits: Limits) -> Result<Driven, DriveError> {
    // Held until the port was reset: the keeper of the dead server would find no driver meanwhile.
    let (mut driven, _lock) = start(plan, Some(left.lun), limits, Some(left))?;
    if let Some(why) = left.differs_from_facts(&driven.facts) {
        return Err(DriveError::TakeOver(why));
    }
    driven.host.reset().map_err(|failure| DriveError::TakeOver(format!("its port cannot be reset: {failure}")))?;
    Ok(driven)
}

/// Returns the disk, and the lock that it was claimed under, if another server has left it.
fn start(
    plan: &Claim,
    lun: Option<u8>,
    limits: Limits,
    left: Option<&ServedDisk>,
) -> Result<(Driven, Option<File>), DriveError> {
    if !rustix::process::geteuid().is_root() {
        return Err(DriveError::NotRoot);
    }
    let mut keeper = Keeper::start(&plan.name).map_err(DriveError::Keeper)?;
    if let Some(left) = left {
        keeper.guard(Guarded::Ublk(left.number, left.wait())).map_err(DriveError::Keeper)?;
    }
    // A switch must not run meanwhile: it changes the kernel's choice of drivers.
    let lock = take_lock(Path::new(STATES)).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => DriveError::Busy,
        _ => DriveError::Lock(error),
    })?;
    let claimed = claim(plan, &mut LiveHands::new(PathBuf::new(), WAIT))?;
    let (transport, memory_bytes) = (claimed.transport, claimed.memory_bytes);
    let (depth, has_streams) = (transport.depth(), transport.has_streams());
    let mut host = Host::new(transport, depth, has_streams, limits);
    // Without a keeper that waits, the claim is enough.
    let lock = left.map(|_| lock);
    if left.is_some() {
        host.follow();
    }
    let units = disk::logical_units(&mut host, plan.quirks).map_err(DriveError::Units)?;
    let lun = match (lun, units.as_slice()) {
        (Some(lun), all) if all.contains(&lun) => lun,
        (None, [one]) => *one,
        (named, all) => {
            let all = all.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
            return Err(DriveError::Unit { named, all });
        }
    };
    let facts = disk::identify(&mut host, lun, plan.quirks).map_err(DriveError::Identify)?;
    Ok((Driven { host, facts, memory_bytes, keeper }, lock))
}
