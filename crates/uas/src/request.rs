//! A command as the session takes it, the transfers that it needs, and how it ends.

use crate::iu::ResponseCode;
use crate::scsi::{self, Cdb};
use crate::sense::Sense;

/// The data of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// None.
    None,
    /// At most this many bytes from the device.
    In(u32),
    /// This many bytes to the device.
    Out(u32),
}

impl Data {
    /// Its length, in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::None => 0,
            Self::In(bytes) | Self::Out(bytes) => bytes,
        }
    }
}

/// What a command does, as far as retries and the disk's cache are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads blocks: every byte must arrive.
    Read,
    /// Writes blocks. The same data may be written again as long as the write was not acknowledged.
    Write {
        /// The data is on the medium when the command ends.
        is_fua: bool,
    },
    /// Flushes the cache.
    Flush,
    /// Any other command that may be executed twice. Fewer bytes than asked for are no error.
    Repeatable,
    /// A command that must not be executed twice, such as ATA pass-through.
    Once,
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Number of the logical unit, from 0.
    pub lun: u8,
    /// The command.
    pub cdb: Cdb,
    /// Its data.
    pub data: Data,
    /// What it does.
    pub kind: Kind,
}

impl Request {
    /// Reads `count` blocks of `block_bytes`.
    pub fn read(lun: u8, block: u64, count: u32, block_bytes: u32) -> Self {
        Self { lun, cdb: scsi::read(block, count), data: Data::In(count * block_bytes), kind: Kind::Read }
    }

    /// Writes `count` blocks of `block_bytes`.
    pub fn write(lun: u8, block: u64, count: u32, block_bytes: u32, is_fua: bool) -> Self {
        let data = Data::Out(count * block_bytes);
        Self { lun, cdb: scsi::write(block, count, is_fua), data, kind: Kind::Write { is_fua } }
    }

    /// Flushes the disk's cache.
    pub fn flush(lun: u8) -> Self {
        Self { lun, cdb: scsi::synchronize_cache(), data: Data::None, kind: Kind::Flush }
    }

    /// The same write without forced unit access; any other command as it is.
    pub fn without_fua(mut self) -> Self {
        if let Kind::Write { is_fua } = &mut self.kind
            && std::mem::take(is_fua)
        {
            self.cdb[1] &= !scsi::FUA;
        }
        self
    }

    /// A command that may be executed twice.
    pub fn repeatable(lun: u8, cdb: Cdb, data: Data) -> Self {
        Self { lun, cdb, data, kind: Kind::Repeatable }
    }

    /// True if it may be sent again when it is unknown whether the device executed it.
    pub fn may_repeat(&self) -> bool {
        self.kind != Kind::Once
    }
}

/// Why a command failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The device is unplugged.
    #[error("the device was unplugged")]
    Gone,
    /// Neither the command nor the attempts to recover it were answered.
    #[error("the device does not answer: not the command, nor after abort, logical unit reset and port reset")]
    NoAnswer,
    /// It is unknown whether the device executed the command, and it must not be repeated.
    #[error("the command was interrupted, and it must not be repeated")]
    Interrupted,
    /// The device reported an error.
    #[error("{0}")]
    Sense(Sense),
    /// The device ended the command with another status than GOOD and CHECK CONDITION.
    #[error("the device ended the command with SCSI status {0:#04x}")]
    Status(u8),
    /// The device stayed busy or not ready.
    #[error("the device stayed busy (SCSI status {0:#04x})")]
    Busy(u8),
    /// The device refused the information unit.
    #[error("the device refused the unit ({0:?})")]
    Refused(ResponseCode),
    /// The device reported success but moved fewer bytes.
    #[error("the device reported success but transferred {got} of {wanted} bytes")]
    Short {
        /// Bytes that were asked for.
        wanted: u32,
        /// Bytes that were transferred.
        got: u32,
    },
    /// The device lost power while its cache may have held acknowledged writes.
    #[error("the device lost power or was reset by itself: acknowledged writes that were not flushed may be lost")]
    CacheLost,
}

impl Failure {
    /// Returns the error number that a block device would return.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Gone => libc::ENODEV,
            Self::NoAnswer => libc::ETIMEDOUT,
            Self::Sense(sense) if sense.key == crate::sense::key::DATA_PROTECT => libc::EROFS,
            Self::Sense(sense) if sense.asc == 0x21 => libc::EINVAL,
            Self::Sense(sense) if sense.asc == 0x3a => libc::ENOMEDIUM,
            _ => libc::EIO,
        }
    }
}

/// A command that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The caller's number of the command.
    pub user: u64,
    /// Bytes that were transferred, or why it failed.
    pub result: Result<u32, Failure>,
}

/// A pipe of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pipe {
    /// Information units to the device.
    Command,
    /// Information units from the device.
    Status,
    /// Data from the device.
    DataIn,
    /// Data to the device.
    DataOut,
}

/// A transfer on a pipe. Pipe and slot identify it as long as it is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The pipe.
    pub pipe: Pipe,
    /// The slot whose buffer it uses.
    pub slot: u16,
    /// The stream; 0: none.
    pub stream: u16,
    /// The length of the buffer, in bytes.
    pub bytes: u32,
}

/// What the session needs from the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Submit a transfer.
    Submit(Transfer),
    /// Cancel a pending transfer; its end is still reported.
    Cancel {
        /// Its pipe.
        pipe: Pipe,
        /// The slot of the request, from 0.
        slot: u16,
    },
    /// Reset the port and set the interface up again. No transfer is pending.
    Reset,
}

/// Why a transfer did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferError {
    /// It was cancelled.
    Cancelled,
    /// The device halted the pipe.
    Stall,
    /// The device is unplugged.
    Gone,
    /// Another error of the bus.
    Bus(i32),
}
