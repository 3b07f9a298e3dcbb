//! The calls of usbfs, as Linux `include/uapi/linux/usbdevice_fs.h` defines them.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

const READ: u64 = 2;
const WRITE: u64 = 1;

const fn call(direction: u64, number: u64, size: usize) -> u64 {
    direction << 30 | (size as u64) << 16 | (b'U' as u64) << 8 | number
}

#[repr(C)]
pub(super) struct SetInterface {
    pub(super) interface: u32,
    pub(super) setting: u32,
}

#[repr(C)]
pub(super) struct DisconnectClaim {
    pub(super) interface: u32,
    /// 0: disconnect whichever driver is bound.
    pub(super) flags: u32,
    pub(super) driver: [u8; 256],
}

#[repr(C)]
pub(super) struct GetDriver {
    pub(super) interface: u32,
    pub(super) driver: [u8; 256],
}

#[repr(C)]
pub(super) struct Streams {
    pub(super) stream_count: u32,
    pub(super) endpoint_count: u32,
    pub(super) endpoints: [u8; 3],
}

#[repr(C)]
pub(super) struct DriverCall {
    pub(super) interface: i32,
    pub(super) code: i32,
    pub(super) data: *mut c_void,
}

/// `struct usbdevfs_urb` without packets; `stream` is the union with `number_of_packets`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Urb {
    pub(super) kind: u8,
    pub(super) endpoint: u8,
    pub(super) status: i32,
    pub(super) flags: u32,
    pub(super) buffer: *mut u8,
    pub(super) buffer_bytes: i32,
    pub(super) actual_bytes: i32,
    pub(super) start_frame: i32,
    pub(super) stream: u32,
    pub(super) error_count: i32,
    pub(super) signal: u32,
    pub(super) context: usize,
}

impl Urb {
    /// `USBDEVFS_URB_TYPE_BULK`.
    pub(super) const BULK: u8 = 3;

    pub(super) const NONE: Urb = Urb {
        kind: Self::BULK,
        endpoint: 0,
        status: 0,
        flags: 0,
        buffer: std::ptr::null_mut(),
        buffer_bytes: 0,
        actual_bytes: 0,
        start_frame: 0,
        stream: 0,
        error_count: 0,
        signal: 0,
        context: 0,
    };
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Urb>() == 56 && size_of::<DriverCall>() == 16);
const _: () = assert!(size_of::<DisconnectClaim>() == 264 && size_of::<GetDriver>() == 260);

pub(super) const SET_INTERFACE: u64 = call(READ, 4, size_of::<SetInterface>());
pub(super) const GET_DRIVER: u64 = call(WRITE, 8, size_of::<GetDriver>());
pub(super) const SUBMIT_URB: u64 = call(READ, 10, size_of::<Urb>());
pub(super) const DISCARD_URB: u64 = call(0, 11, 0);
pub(super) const REAP_URB_NO_DELAY: u64 = call(WRITE, 13, size_of::<*mut c_void>());
pub(super) const RELEASE_INTERFACE: u64 = call(READ, 16, 4);
pub(super) const DRIVER_CALL: u64 = call(READ | WRITE, 18, size_of::<DriverCall>());
pub(super) const RESET: u64 = call(0, 20, 0);
/// The code of [`DriverCall`] that lets the kernel bind a driver.
pub(super) const CONNECT: i32 = call(0, 23, 0) as i32;
pub(super) const DISCONNECT_CLAIM: u64 = call(READ, 27, 264);
/// The header of `struct usbdevfs_streams`, without the endpoints.
pub(super) const ALLOC_STREAMS: u64 = call(READ, 28, 8);
pub(super) const FREE_STREAMS: u64 = call(READ, 29, 8);

/// Makes a call and returns its result.
///
/// # Safety
/// `argument` is what the call takes, valid while it runs; what a submitted URB points to, until it is reaped.
pub(super) unsafe fn ioctl<T>(file: &File, number: u64, argument: *mut T) -> io::Result<i32> {
    // SAFETY: the caller's contract.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), number as _, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that `strace` prints for these calls on x86-64.
    #[test]
    fn the_calls_have_the_numbers_of_the_kernel() {
        assert_eq!(SET_INTERFACE, 0x8008_5504);
        assert_eq!(GET_DRIVER, 0x4104_5508);
        #[cfg(target_pointer_width = "64")]
        assert_eq!((SUBMIT_URB, REAP_URB_NO_DELAY, DRIVER_CALL), (0x8038_550a, 0x4008_550d, 0xc010_5512));
        assert_eq!((DISCARD_URB, RELEASE_INTERFACE, RESET), (0x550b, 0x8004_5510, 0x5514));
        assert_eq!((CONNECT, DISCONNECT_CLAIM), (0x5517, 0x8108_551b));
        assert_eq!((ALLOC_STREAMS, FREE_STREAMS), (0x8008_551c, 0x8008_551d));
    }
}
