//! The numbers and structures of the kernel's ublk driver.
//!
//! Source: Linux `include/uapi/linux/ublk_cmd.h`; the commands are those encoded as ioctls, which Linux 6.4 and later have.

/// Returns the code of a command: direction, size of its structure, type `u`, number.
const fn code(direction: u32, bytes: usize, number: u32) -> u32 {
    direction << 30 | (bytes as u32) << 16 | (b'u' as u32) << 8 | number
}

const READ: u32 = 2;
const READ_WRITE: u32 = 3;

const fn control(direction: u32, number: u32) -> u32 {
    code(direction, size_of::<ControlCommand>(), number)
}

/// Commands to `/dev/ublk-control`.
pub(super) const GET_INFO: u32 = control(READ, 0x02);
pub(super) const ADD: u32 = control(READ_WRITE, 0x04);
pub(super) const DELETE: u32 = control(READ_WRITE, 0x05);
pub(super) const START: u32 = control(READ_WRITE, 0x06);
pub(super) const STOP: u32 = control(READ_WRITE, 0x07);
pub(super) const SET_PARAMETERS: u32 = control(READ_WRITE, 0x08);
pub(super) const START_RECOVERY: u32 = control(READ_WRITE, 0x10);
pub(super) const END_RECOVERY: u32 = control(READ_WRITE, 0x11);
/// Linux 6.9 and later.
pub(super) const DELETE_LATER: u32 = control(READ, 0x14);

/// Commands to `/dev/ublkcN`.
pub(super) const FETCH: u32 = code(READ_WRITE, size_of::<IoCommand>(), 0x20);
pub(super) const COMMIT_AND_FETCH: u32 = code(READ_WRITE, size_of::<IoCommand>(), 0x21);

/// When the server dies, requests wait for another one.
pub(super) const USER_RECOVERY: u64 = 1 << 3;
/// Requests that the dead server had received are sent to the other one.
pub(super) const USER_RECOVERY_REISSUE: u64 = 1 << 4;
pub(super) const IOCTL_ENCODE: u64 = 1 << 6;

/// The state of a device that is stopped.
pub(super) const DEAD: u16 = 0;

/// Operations of a request, in the lowest byte of `IoDescriptor::operation`.
pub(super) const READ_BLOCKS: u32 = 0;
pub(super) const WRITE_BLOCKS: u32 = 1;
pub(super) const FLUSH: u32 = 2;
pub(super) const DISCARD: u32 = 3;
/// Forced unit access.
pub(super) const FUA: u32 = 1 << 13;

pub(super) const IS_READ_ONLY: u32 = 1;
pub(super) const HAS_VOLATILE_CACHE: u32 = 1 << 2;
pub(super) const HAS_FUA: u32 = 1 << 3;

pub(super) const TYPE_BASIC: u32 = 1;
pub(super) const TYPE_DISCARD: u32 = 1 << 1;

/// `struct ublksrv_ctrl_cmd`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct ControlCommand {
    pub(super) device: u32,
    pub(super) queue: u16,
    pub(super) bytes: u16,
    pub(super) address: u64,
    pub(super) data: u64,
    pub(super) path_bytes: u16,
    pub(super) padding: u16,
    pub(super) reserved: u32,
}

/// `struct ublksrv_ctrl_dev_info`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Info {
    pub(super) queue_count: u16,
    pub(super) queue_depth: u16,
    pub(super) state: u16,
    pub(super) padding: u16,
    pub(super) request_bytes_max: u32,
    pub(super) device: u32,
    pub(super) server_pid: i32,
    pub(super) padding1: u32,
    pub(super) flags: u64,
    pub(super) server_flags: u64,
    pub(super) owner_uid: u32,
    pub(super) owner_gid: u32,
    pub(super) reserved: [u64; 2],
}

/// `struct ublk_params`, as far as it is used: its length says so.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Parameters {
    pub(super) bytes: u32,
    pub(super) types: u32,
    pub(super) attributes: u32,
    pub(super) logical_shift: u8,
    pub(super) physical_shift: u8,
    pub(super) optimal_shift: u8,
    pub(super) minimal_shift: u8,
    pub(super) sectors_max: u32,
    pub(super) chunk_sectors: u32,
    pub(super) sectors: u64,
    pub(super) virtual_boundary: u64,
    pub(super) discard_alignment: u32,
    pub(super) discard_granularity: u32,
    pub(super) discard_sectors_max: u32,
    pub(super) zeroes_sectors_max: u32,
    pub(super) discard_segments_max: u16,
    pub(super) padding: [u16; 3],
}

/// `struct ublksrv_io_desc`: a request, which the kernel writes into shared memory.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct IoDescriptor {
    pub(super) operation: u32,
    pub(super) sectors: u32,
    pub(super) first_sector: u64,
    pub(super) address: u64,
}

/// `struct ublksrv_io_cmd`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct IoCommand {
    pub(super) queue: u16,
    pub(super) tag: u16,
    pub(super) result: i32,
    pub(super) address: u64,
}

impl IoCommand {
    /// Returns its bytes, as a submission carries them.
    pub(super) fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&self.queue.to_ne_bytes());
        bytes[2..4].copy_from_slice(&self.tag.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.result.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.address.to_ne_bytes());
        bytes
    }
}

impl ControlCommand {
    /// Returns its bytes, as a submission carries them.
    pub(super) fn bytes(self) -> [u8; 80] {
        let mut bytes = [0; 80];
        bytes[..4].copy_from_slice(&self.device.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.queue.to_ne_bytes());
        bytes[6..8].copy_from_slice(&self.bytes.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.address.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.data.to_ne_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the kernel's header, as a C compiler gives them.
    #[test]
    fn codes_and_sizes_are_those_of_the_kernel() {
        assert_eq!((GET_INFO, ADD, DELETE), (0x8020_7502, 0xc020_7504, 0xc020_7505));
        assert_eq!((START, STOP, SET_PARAMETERS), (0xc020_7506, 0xc020_7507, 0xc020_7508));
        assert_eq!((START_RECOVERY, END_RECOVERY, DELETE_LATER), (0xc020_7510, 0xc020_7511, 0x8020_7514));
        assert_eq!((FETCH, COMMIT_AND_FETCH), (0xc010_7520, 0xc010_7521));
        assert_eq!((size_of::<Info>(), size_of::<IoDescriptor>(), size_of::<Parameters>()), (64, 24, 64));
        assert_eq!(std::mem::offset_of!(Parameters, sectors), 24);
        assert_eq!(std::mem::offset_of!(Parameters, discard_segments_max), 56);
    }
}
