//! The facts of a disk, read with its own commands.
//!
//! Limits: a page that the disk does not list is not asked for, because some bridges hang on it.

use crate::host::{Failure, Host, Transport};
use crate::request::{Data, Request};
use crate::scsi::{self, BlockLimits, Caching, Capacity, Cdb, Inquiry, Provisioning};
use crate::sense::key;

/// What a disk reports about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The logical unit.
    pub lun: u8,
    /// Vendor, product, revision.
    pub inquiry: Inquiry,
    /// The serial number of page 0x80.
    pub serial: Option<String>,
    /// Its size.
    pub capacity: Capacity,
    /// Its cache; `None`: it has no caching page, so a cache is assumed.
    pub caching: Option<Caching>,
    /// The limits of commands.
    pub limits: BlockLimits,
    /// The deallocating commands.
    pub provisioning: Provisioning,
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

/// Returns the logical units; 0 alone if the device does not support the command.
///
/// # Errors
/// The device does not answer.
pub fn logical_units<T: Transport>(host: &mut Host<T>) -> Result<Vec<u8>, Failure> {
    match ask(host, 0, scsi::report_luns(), scsi::ANSWER_BYTES) {
        Ok(data) => {
            let found = scsi::parse_luns(&data);
            Ok(if found.is_empty() { vec![0] } else { found })
        }
        Err(Failure::Gone) => Err(Failure::Gone),
        Err(Failure::NoAnswer) => Err(Failure::NoAnswer),
        Err(_) => Ok(vec![0]),
    }
}

/// Starts a disk if need be, and reads its facts.
///
/// # Errors
/// [`IdentifyError`]: it is no disk, is not ready, or has no valid size.
pub fn identify<T: Transport>(host: &mut Host<T>, lun: u8) -> Result<Facts, IdentifyError> {
    let failed = |command| move |failure| IdentifyError::Command { command, failure };
    let inquiry = ask(host, lun, scsi::inquiry(None, 36), 36).map_err(failed("INQUIRY"))?;
    let inquiry = scsi::parse_inquiry(&inquiry).ok_or(IdentifyError::Answer("INQUIRY"))?;
    // Disks, and those with simplified commands or host-managed zones.
    if !matches!(inquiry.device_type, 0x00 | 0x0e | 0x14) {
        return Err(IdentifyError::NoDisk(inquiry.device_type));
    }
    ask(host, lun, scsi::test_unit_ready(), 0).map_err(failed("TEST UNIT READY"))?;
    let capacity = capacity(host, lun)?;
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
    let caching = match optional(ask(host, lun, scsi::mode_sense_caching(), 192), "MODE SENSE")? {
        Some(data) => scsi::parse_caching(&data),
        None => None,
    };
    Ok(Facts { lun, inquiry, serial, capacity, caching, limits, provisioning })
}

/// An answer that a disk may refuse.
fn optional(answer: Result<Vec<u8>, Failure>, command: &'static str) -> Result<Option<Vec<u8>>, IdentifyError> {
    match answer {
        Ok(data) => Ok(Some(data)),
        Err(Failure::Sense(sense)) if sense.key == key::ILLEGAL_REQUEST => Ok(None),
        Err(failure) => Err(IdentifyError::Command { command, failure }),
    }
}

fn page<T: Transport>(host: &mut Host<T>, lun: u8, page: u8) -> Result<Option<Vec<u8>>, IdentifyError> {
    let answer = optional(ask(host, lun, scsi::inquiry(Some(page), 252), 252), "INQUIRY of a page")?;
    Ok(answer.and_then(|data| scsi::page_body(&data, page).map(<[u8]>::to_vec)))
}

fn capacity<T: Transport>(host: &mut Host<T>, lun: u8) -> Result<Capacity, IdentifyError> {
    if let Some(data) = optional(ask(host, lun, scsi::read_capacity_16(), 32), "READ CAPACITY(16)")? {
        return scsi::parse_capacity_16(&data).ok_or(IdentifyError::Answer("READ CAPACITY(16)"));
    }
    let failed = |failure| IdentifyError::Command { command: "READ CAPACITY(10)", failure };
    let data = ask(host, lun, scsi::read_capacity_10(), 8).map_err(failed)?;
    scsi::parse_capacity_10(&data).ok_or(IdentifyError::Answer("READ CAPACITY(10)"))
}
