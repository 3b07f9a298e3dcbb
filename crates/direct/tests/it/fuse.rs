//! A filesystem of FUSE: `O_DIRECT` is accepted, and nothing reports its effect. *(Linux)*
//!
//! Goal: such a file is granted as `Unconfirmed`, by `open`, by `from_file` and by a probe, and its transfers work.
//! Method: a daemon in this process serves one file of 8 KiB through `/dev/fuse`.
//!
//! Needs root and `/dev/fuse`; prints why it is skipped otherwise.
//!
//! Source: Linux `include/uapi/linux/fuse.h`; mount(2).
#![cfg(target_os = "linux")]

use crate::support;

use crate::support::skip;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::JoinHandle;
use trueio_direct::{AlignedBuffer, DirectFile, Granted, OpenOptions, Policy, Support, probe};

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const WRITE: u32 = 16;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
const FSYNC: u32 = 20;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const BATCH_FORGET: u32 = 42;

const ROOT: u64 = 1;
const FILE: u64 = 2;
const HEADER_BYTES: usize = 40;

/// The file "data" in the root directory.
struct Daemon {
    device: File,
    content: Vec<u8>,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

impl Daemon {
    /// Serves until the filesystem is unmounted, which ends the reads of the device.
    fn serve(mut self) {
        let mut request = vec![0; (1 << 20) + 4096];
        while let Ok(length) = self.device.read(&mut request) {
            let (opcode, unique, node) = (u32_at(&request, 4), u64_at(&request, 8), u64_at(&request, 16));
            if opcode == FORGET || opcode == BATCH_FORGET {
                continue;
            }
            let (error, body) = match self.answer(opcode, node, &request[HEADER_BYTES..length]) {
                Ok(body) => (0, body),
                Err(errno) => (-errno, Vec::new()),
            };
            let mut reply = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
            reply.extend(error.to_ne_bytes());
            reply.extend(unique.to_ne_bytes());
            reply.extend(body);
            // The caller may have been interrupted; the kernel then wants no reply.
            let _ = self.device.write(&reply);
        }
    }

    fn answer(&mut self, opcode: u32, node: u64, body: &[u8]) -> Result<Vec<u8>, i32> {
        let mut reply = Vec::new();
        match opcode {
            INIT => {
                // Version 7.31 without any flag; writes of at most 1 MiB less the header.
                reply.extend([7u32, 31, 0, 0, 0, 1 << 19, 1].map(u32::to_ne_bytes).concat());
                reply.resize(64, 0);
            }
            LOOKUP if node == ROOT && body == b"data\0" => {
                reply.extend([FILE, 0, 0, 0, 0].map(u64::to_ne_bytes).concat());
                reply.extend(self.attributes(FILE));
            }
            LOOKUP => return Err(libc::ENOENT),
            GETATTR => {
                reply.extend([0u64, 0].map(u64::to_ne_bytes).concat());
                reply.extend(self.attributes(node));
            }
            OPEN => reply.resize(16, 0),
            READ => {
                let start = (u64_at(body, 8) as usize).min(self.content.len());
                let end = (start + u32_at(body, 16) as usize).min(self.content.len());
                reply.extend(&self.content[start..end]);
            }
            WRITE => {
                let (start, data) = (u64_at(body, 8) as usize, &body[40..]);
                self.content.resize(self.content.len().max(start + data.len()), 0);
                self.content[start..start + data.len()].copy_from_slice(data);
                reply.extend([data.len() as u32, 0].map(u32::to_ne_bytes).concat());
            }
            STATFS => {
                reply.resize(40, 0);
                reply.extend([4096u32, 255, 4096].map(u32::to_ne_bytes).concat());
                reply.resize(80, 0);
            }
            RELEASE | FSYNC | FLUSH => {}
            _ => return Err(libc::ENOSYS),
        }
        Ok(reply)
    }

    fn attributes(&self, node: u64) -> Vec<u8> {
        let (mode, size) = match node {
            ROOT => (libc::S_IFDIR | 0o755, 0),
            _ => (libc::S_IFREG | 0o644, self.content.len() as u64),
        };
        let mut bytes = [node, size, size.div_ceil(512), 0, 0, 0].map(u64::to_ne_bytes).concat();
        bytes.extend([0, 0, 0, mode, 1, 0, 0, 0, 4096, 0].map(u32::to_ne_bytes).concat());
        bytes
    }
}

/// A mounted daemon; unmounted on drop.
struct Fuse {
    folder: tempfile::TempDir,
    daemon: Option<JoinHandle<()>>,
}

impl Fuse {
    fn mount(content: Vec<u8>) -> Result<Self, String> {
        let device = File::options().read(true).write(true).open("/dev/fuse").map_err(|e| format!("/dev/fuse: {e}"))?;
        let folder = support::folder();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0\0", device.as_raw_fd());
        let path = c_path(folder.path());
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        // SAFETY: all texts are ended by a zero and outlive the call.
        let code = unsafe {
            libc::mount(c"trueio".as_ptr(), path.as_ptr().cast(), c"fuse".as_ptr(), flags, options.as_ptr().cast())
        };
        if code != 0 {
            return Err(format!("mount of fuse: {}", std::io::Error::last_os_error()));
        }
        let daemon = Some(std::thread::spawn(move || Daemon { device, content }.serve()));
        Ok(Self { folder, daemon })
    }
}

fn c_path(path: &Path) -> Vec<u8> {
    [path.as_os_str().as_encoded_bytes(), b"\0"].concat()
}

impl Drop for Fuse {
    fn drop(&mut self) {
        // SAFETY: the path is ended by a zero and outlives the call.
        unsafe { libc::umount2(c_path(self.folder.path()).as_ptr().cast(), libc::MNT_DETACH) };
        if let Some(daemon) = self.daemon.take() {
            daemon.join().expect("the daemon of the test");
        }
    }
}

#[test]
fn a_file_of_fuse_is_accepted_with_unknown_effect() {
    let fuse = match Fuse::mount((0..8192).map(|index| (index % 251) as u8).collect()) {
        Ok(fuse) => fuse,
        Err(reason) => return skip("fuse", &reason),
    };
    let path = fuse.folder.path().join("data");
    let probe = probe(&path).unwrap();
    assert!(matches!(&probe.support, Support::Unknown { reason } if reason.contains("FUSE")), "{:?}", probe.support);
    for policy in [Policy::Require, Policy::Prefer] {
        let file = OpenOptions::new().read(true).write(true).policy(policy).open(&path).unwrap();
        assert_eq!(file.granted(), Granted::Unconfirmed, "{}", file.reason());
        assert_eq!(file.granted().to_string(), "accepted, effect unknown");
        let mut buffer = AlignedBuffer::new(4096, 4096).unwrap();
        file.read_exact_at(&mut buffer, 4096).unwrap();
        assert!(buffer.iter().enumerate().all(|(index, byte)| *byte == ((index + 4096) % 251) as u8));
        file.write_all_at(&buffer, 4096).unwrap();
    }
    let raw = File::options().read(true).custom_flags(libc::O_DIRECT).open(&path).unwrap();
    let adopted = DirectFile::from_file(raw).unwrap();
    assert_eq!(adopted.granted(), Granted::Unconfirmed, "{}", adopted.reason());
    let plain = DirectFile::from_file(File::open(&path).unwrap()).unwrap();
    assert_eq!(plain.granted(), Granted::Buffered);
}
