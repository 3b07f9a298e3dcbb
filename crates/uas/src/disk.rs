//! The facts of a disk, read with its own commands.
//!
//! An answer that the disk refuses or does not give is replaced as Linux does: READ CAPACITY(16) by READ CAPACITY(10), REPORT
//! LUNS by logical unit 0; without a caching page, write through is assumed.
//!
//! Limits: a page that the disk does not list is not asked for, because some bridges hang on it.
//!
//! Source: Linux `drivers/scsi/sd.c` (`sd_read_capacity`, `sd_read_cache_type`), `drivers/usb/storage/uas.c`
//! (`uas_sdev_configure`, `uas_target_alloc`).

use crate::host::{Failure, Host, Transport};
use crate::request::{Data, Request};
use crate::scsi::{self, BlockLimits, Caching, Capacity, Cdb, Inquiry, Provisioning};

/// What a disk reports about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Number of the logical unit, from 0.
    pub lun: u8,
    /// Vendor, product, revision.
    pub inquiry: Inquiry,
    /// The serial number of page 0x80.
    pub serial: Option<String>,
    /// Its size.
    pub capacity: Capacity,
    /// Its cache; `None`: it has no caching page, so write through is assumed, as Linux does.
    pub caching: Option<Caching>,
    /// The limits of commands.
    pub limits: BlockLimits,
    /// The deallocating commands.
    pub provisioning: Provisioning,
    /// What a driver avoids on this device.
    pub quirks: Quirks,
}

/// Commands and properties that a driver avoids on a device with a known defect. The default avoids nothing.
///
/// A driver of UAS in user space never sends REPORT SUPPORTED OPERATION CODES, so `NO_REPORT_OPCODES` needs no field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quirks {
    /// REPORT LUNS is not sent: the device has logical unit 0.
    pub no_report_luns: bool,
    /// The longest transfer, in bytes; `None`: as the disk reports.
    pub transfer_bytes_max: Option<u32>,
    /// Writes with FUA are not used.
    pub broken_fua: bool,
    /// ATA commands are not passed through.
    pub no_ata: bool,
    /// READ CAPACITY(16) is not sent.
    pub no_read_capacity_16: bool,
    /// WRITE SAME is not sent.
    pub no_write_same: bool,
    /// The caching page is not read, and a write cache is assumed.
    pub assumes_cache: bool,
    /// The reported write protection is ignored.
    pub no_write_protection: bool,
    /// The disk has one block less than it reports.
    pub one_block_less: bool,
    /// The disk has one block less than it reports if that number is odd.
    pub even_block_count: bool,
}

/// A command failed whose answer is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdentifyError {
    /// The command failed.
    #[error("{command} failed: {failure}")]
    Command {
        /// Its name.
        command: &'static str,
        /// Why.
        failure: Failure,
    },
    /// The answer makes no sense.
    #[error("the answer to {0} is not valid")]
    Answer(&'static str),
    /// The logical unit is no disk.
    #[error("the logical unit is no disk (peripheral device type {0:#04x})")]
    NoDisk(u8),
}

fn ask<T: Transport>(host: &mut Host<T>, lun: u8, cdb: Cdb, bytes: usize) -> Result<Vec<u8>, Failure> {
    let mut data = vec![0; bytes];
    let direction = if bytes > 0 { Data::In(bytes as u32) } else { Data::None };
    let received = host.execute(Request::repeatable(lun, cdb, direction), &mut data)?;
    data.truncate(received as usize);
    Ok(data)
}

/// Returns the logical units; 0 alone if the device does not support or answer the command, or must not get it.
///
/// # Errors
/// The device is gone, or answers nothing any more.
pub fn logical_units<T: Transport>(host: &mut Host<T>, quirks: Quirks) -> Result<Vec<u8>, Failure> {
    if quirks.no_report_luns {
        return Ok(vec![0]);
    }
    match ask(host, 0, scsi::report_luns(), scsi::ANSWER_BYTES) {
        Ok(data) => {
            let found = scsi::parse_luns(&data);
            Ok(if found.is_empty() { vec![0] } else { found })
        }
        Err(_) => host.has_failed().map_or(Ok(vec![0]), Err),
    }
}

/// Starts a disk if need be, and reads its facts.
///
/// # Errors
/// [`IdentifyError`]: it is no disk, is not ready, or has no valid size.
pub fn identify<T: Transport>(host: &mut Host<T>, lun: u8, quirks: Quirks) -> Result<Facts, IdentifyError> {
    let failed = |command| move |failure| IdentifyError::Command { command, failure };
    let inquiry = ask(host, lun, scsi::inquiry(None, 36), 36).map_err(failed("INQUIRY"))?;
    let inquiry = scsi::parse_inquiry(&inquiry).ok_or(IdentifyError::Answer("INQUIRY"))?;
    // Disks, and those with simplified commands or host-managed zones.
    if !matches!(inquiry.device_type, 0x00 | 0x0e | 0x14) {
        return Err(IdentifyError::NoDisk(inquiry.device_type));
    }
    host.set_removable(inquiry.is_removable);
    ask(host, lun, scsi::test_unit_ready(), 0).map_err(failed("TEST UNIT READY"))?;
    let capacity = capacity(host, lun, quirks)?;
    let pages = page(host, lun, 0x00)?.unwrap_or_default();
    let serial = match pages.contains(&0x80) {
        true => page(host, lun, 0x80)?.map(|body| scsi::parse_serial(&body)).filter(|serial| !serial.is_empty()),
        false => None,
    };
    let limits = match pages.contains(&0xb0) {
        true => page(host, lun, 0xb0)?.map(|body| scsi::parse_block_limits(&body)).unwrap_or_default(),
        false => BlockLimits::default(),
    };
    let provisioning = match pages.contains(&0xb2) {
        true => page(host, lun, 0xb2)?.map(|body| scsi::parse_provisioning(&body)).unwrap_or_default(),
        false => Provisioning::default(),
    };
    let caching = match quirks.assumes_cache {
        true => Some(Caching { has_write_cache: true, has_fua: false, is_write_protected: false }),
        false => optional(host, lun, scsi::mode_sense_caching(), 192, "MODE SENSE")?
            .and_then(|data| scsi::parse_caching(&data)),
    };
    Ok(Facts { lun, inquiry, serial, capacity, caching, limits, provisioning, quirks })
}

/// An answer that a disk may refuse or not give.
fn optional<T: Transport>(
    host: &mut Host<T>,
    lun: u8,
    cdb: Cdb,
    bytes: usize,
    command: &'static str,
) -> Result<Option<Vec<u8>>, IdentifyError> {
    match ask(host, lun, cdb, bytes) {
        Ok(data) => Ok(Some(data)),
        Err(failure) => match host.has_failed() {
            None => Ok(None),
            Some(_) => Err(IdentifyError::Command { command, failure }),
        },
    }
}

fn page<T: Transport>(host: &mut Host<T>, lun: u8, page: u8) -> Result<Option<Vec<u8>>, IdentifyError> {
    let answer = optional(host, lun, scsi::inquiry(Some(page), 252), 252, "INQUIRY of a page")?;
    Ok(answer.and_then(|data| scsi::page_body(&data, page).map(<[u8]>::to_vec)))
}

fn capacity<T: Transport>(host: &mut Host<T>, lun: u8, quirks: Quirks) -> Result<Capacity, IdentifyError> {
    let mut capacity = reported_capacity(host, lun, quirks)?;
    let is_one_less = quirks.one_block_less || (quirks.even_block_count && capacity.block_count % 2 == 1);
    if is_one_less && capacity.block_count > 1 {
        capacity.block_count -= 1;
    }
    Ok(capacity)
}

fn reported_capacity<T: Transport>(host: &mut Host<T>, lun: u8, quirks: Quirks) -> Result<Capacity, IdentifyError> {
    if !quirks.no_read_capacity_16
        && let Some(data) = optional(host, lun, scsi::read_capacity_16(), 32, "READ CAPACITY(16)")?
    {
        return scsi::parse_capacity_16(&data).ok_or(IdentifyError::Answer("READ CAPACITY(16)"));
    }
    let failed = |failure| IdentifyError::Command { command: "READ CAPACITY(10)", failure };
    let data = ask(host, lun, scsi::read_capacity_10(), 8).map_err(failed)?;
    scsi::parse_capacity_10(&data).ok_or(IdentifyError::Answer("READ CAPACITY(10)"))
}
