//! Facts of a disk: size, sectors, serial number.
//!
//! Source: Linux `include/uapi/linux/fs.h` (BLK* ioctls), `include/scsi/sg.h`, SPC-4.

use crate::os::unix;
use crate::types::{DeviceError, DeviceFacts, tidy_serial};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;

pub(super) fn size_bytes(file: &File) -> Result<u64, Errno> {
    // The header has `size_t`, but the kernel writes eight bytes on every architecture.
    const BLKGETSIZE64: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<usize>(0x12, 114);
    // SAFETY: BLKGETSIZE64 fills one 64-bit number.
    unsafe { rustix::ioctl::ioctl(file, rustix::ioctl::Getter::<BLKGETSIZE64, u64>::new()) }
}

pub(crate) fn device_facts(file: &File) -> Result<DeviceFacts, DeviceError> {
    let failed = |call| move |errno: Errno| DeviceError::Io { call, source: errno.into() };
    let stat = rustix::fs::fstat(file).map_err(failed("fstat"))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => {}
        FileType::RegularFile => return Err(DeviceError::NotADevice { kind: "regular file" }),
        kind => return Err(DeviceError::NotADevice { kind: unix::unfit_kind(kind).unwrap_or("file") }),
    }
    const BLKIOMIN: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 120);
    const BLKIOOPT: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 121);
    const BLKROTATIONAL: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 126);
    // SAFETY: BLKIOMIN and BLKIOOPT each fill one 32-bit number, BLKROTATIONAL a 16-bit one.
    let (minimum, optimal, rotational) = unsafe {
        (
            rustix::ioctl::ioctl(file, rustix::ioctl::Getter::<BLKIOMIN, u32>::new()),
            rustix::ioctl::ioctl(file, rustix::ioctl::Getter::<BLKIOOPT, u32>::new()),
            rustix::ioctl::ioctl(file, rustix::ioctl::Getter::<BLKROTATIONAL, u16>::new()),
        )
    };
    let (serial, serial_source) = serial(file, stat.st_rdev).unzip();
    Ok(DeviceFacts {
        size_bytes: size_bytes(file).map_err(failed("BLKGETSIZE64"))?,
        logical_sector_bytes: rustix::fs::ioctl_blksszget(file).map_err(failed("BLKSSZGET"))?,
        physical_sector_bytes: rustix::fs::ioctl_blkpbszget(file).ok().filter(|bytes| *bytes > 0),
        minimum_io_bytes: minimum.ok().filter(|bytes| *bytes > 0),
        optimal_io_bytes: optimal.ok().filter(|bytes| *bytes > 0),
        is_rotational: rotational.ok().map(|number| number != 0),
        serial,
        serial_source,
    })
}

/// Reads the serial number from the disk itself, then from sysfs.
fn serial(file: &File, device: u64) -> Option<(String, &'static str)> {
    if let Some(serial) = scsi_serial(file) {
        return Some((serial, "SCSI page 0x80"));
    }
    let root = format!("/sys/dev/block/{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    // virtio-blk has `serial` next to the queue, NVMe and MMC in the device; the directory of a partition is in that
    // of its disk.
    ["serial", "device/serial", "../serial", "../device/serial"]
        .iter()
        .filter_map(|name| std::fs::read(format!("{root}/{name}")).ok())
        .find_map(|bytes| tidy_serial(&bytes))
        .map(|serial| (serial, "sysfs"))
}

/// `struct sg_io_hdr`. Source: Linux `include/scsi/sg.h`.
#[repr(C)]
struct SgIoHeader {
    interface_id: i32,
    direction: i32,
    command_length: u8,
    sense_length_max: u8,
    iovec_count: u16,
    data_length: u32,
    data: *mut u8,
    command: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack_id: i32,
    user_pointer: *mut u8,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_length: u8,
    host_status: u16,
    driver_status: u16,
    data_left: i32,
    duration_ms: u32,
    info: u32,
}
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<SgIoHeader>() == 88);

/// Page 0x80 of INQUIRY, "unit serial number"; [`None`] from everything that is not SCSI.
fn scsi_serial(file: &File) -> Option<String> {
    const SG_IO: libc::c_ulong = 0x2285;
    const SG_DXFER_FROM_DEV: i32 = -3;
    // INQUIRY, with EVPD, page 0x80, 255 bytes. Source: SPC-4, 6.6 and 7.8.15.
    let command = [0x12u8, 0x01, 0x80, 0x00, 0xff, 0x00];
    let mut page = [0u8; 255];
    let mut sense = [0u8; 32];
    let mut header = SgIoHeader {
        interface_id: i32::from(b'S'),
        direction: SG_DXFER_FROM_DEV,
        command_length: command.len() as u8,
        sense_length_max: sense.len() as u8,
        iovec_count: 0,
        data_length: page.len() as u32,
        data: page.as_mut_ptr(),
        command: command.as_ptr(),
        sense: sense.as_mut_ptr(),
        timeout_ms: 5000,
        flags: 0,
        pack_id: 0,
        user_pointer: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        message_status: 0,
        sense_length: 0,
        host_status: 0,
        driver_status: 0,
        data_left: 0,
        duration_ms: 0,
        info: 0,
    };
    // SAFETY: the header and the three buffers it points to outlive the call, with the lengths given.
    let code = unsafe { libc::ioctl(file.as_raw_fd(), SG_IO as _, &raw mut header) };
    let answered = code == 0 && header.status == 0 && header.host_status == 0 && header.driver_status == 0;
    if answered { serial_of_page(&page) } else { None }
}

/// Returns the serial number in an answer to INQUIRY, page 0x80. Byte 1 is the page, bytes 2 and 3 are the length of
/// the rest, big-endian. [`None`] if the length exceeds the answer.
fn serial_of_page(page: &[u8]) -> Option<String> {
    let length = match page {
        [_, 0x80, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => return None,
    };
    tidy_serial(page.get(4..4 + length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_page_is_read_within_its_length() {
        assert_eq!(serial_of_page(b"\0\x80\0\x06  AB12rest"), Some("AB12".to_owned()));
        assert_eq!(serial_of_page(b"\0\x83\0\x06  AB12"), None, "another page");
        assert_eq!(serial_of_page(b"\0\x80\0\x07  AB12"), None, "one byte more than there is");
        assert_eq!(serial_of_page(b"\0\x80\xff\xff  AB12"), None);
        assert_eq!(serial_of_page(b"\0\x80\0\0"), None);
        assert_eq!(serial_of_page(b"\0\x80"), None);
        assert_eq!(serial_of_page(b""), None);
    }
}
