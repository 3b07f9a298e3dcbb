//! Buffers of trueio-direct on the runtimes that bring their own files. *(Linux)*
//!
//! Goal: aligned buffers and buffers of a pool are accepted by compio and tokio-uring, whole and as slices, with
//! `O_DIRECT`, and come back.
#![cfg(all(test, target_os = "linux"))]

use trueio_direct::{AlignedBuffer, Granted, OpenOptions, Policy, SharedBufferPool};

/// A folder on the filesystem of the build directory, which takes direct I/O more often than `/tmp`.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
}

fn filled(mark: u8) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::new(8192, 4096).unwrap();
    buffer.fill(mark);
    buffer
}

/// io_uring may be forbidden in a container; compio then uses epoll, tokio-uring cannot run.
fn has_io_uring() -> bool {
    // struct io_uring_params is 120 bytes, and all zeros ask for nothing special. io_uring_setup(2).
    let mut params = [0u64; 15];
    // SAFETY: the kernel reads and writes 120 bytes at `params`, which is that long and aligned.
    let descriptor = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, params.as_mut_ptr()) };
    if descriptor >= 0 {
        // SAFETY: the descriptor was just created and has no other owner.
        unsafe { libc::close(descriptor as i32) };
    } else {
        println!("skipped: io_uring: {}", std::io::Error::last_os_error());
    }
    descriptor >= 0
}

#[test]
fn compio_takes_aligned_and_pooled_buffers() {
    use compio::buf::{IntoInner, IoBuf};
    use compio::io::{AsyncReadAt, AsyncReadAtExt, AsyncWriteAt, AsyncWriteAtExt};
    let folder = folder();
    let path = folder.path().join("data");
    compio::runtime::Runtime::new().unwrap().block_on(async {
        let mut options = compio::fs::OpenOptions::new();
        options.read(true).write(true).create_new(true).custom_flags(libc::O_DIRECT);
        let mut file = options.open(&path).await.unwrap();
        file.write_all_at(filled(1), 0).await.0.unwrap();
        let compio::BufResult(written, slice) = file.write_at(filled(2).slice(4096..), 8192).await;
        assert_eq!((written.unwrap(), slice.into_inner().len()), (4096, 8192));

        let pool = SharedBufferPool::new(1, 8192, 4096).unwrap();
        let compio::BufResult(read, buffer) = file.read_exact_at(pool.acquire(), 0).await;
        read.unwrap();
        assert!(buffer.len() == 8192 && buffer.iter().all(|byte| *byte == 1));
        let compio::BufResult(read, buffer) = file.read_at(buffer, 8192).await;
        assert_eq!((read.unwrap(), buffer[0], buffer[4095]), (4096, 2, 2));
        drop(buffer);
        assert_eq!(pool.free_count(), 1);
    });
}

#[test]
fn tokio_uring_takes_aligned_and_pooled_buffers() {
    use tokio_uring::buf::BoundedBuf;
    if !has_io_uring() {
        return;
    }
    let folder = folder();
    let options = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Prefer);
    let direct = options.open(folder.path().join("data")).unwrap();
    assert_ne!(direct.granted(), Granted::NotKept);
    tokio_uring::start(async {
        let file = tokio_uring::fs::File::from_std(direct.into_file());
        let (written, buffer) = file.write_at(filled(1), 0).submit().await;
        assert_eq!((written.unwrap(), buffer.len()), (8192, 8192));
        let (written, slice) = file.write_at(filled(2).slice(4096..), 8192).submit().await;
        assert_eq!((written.unwrap(), slice.into_inner().len()), (4096, 8192));

        let pool = SharedBufferPool::new(1, 8192, 4096).unwrap();
        let (read, buffer) = file.read_at(pool.acquire(), 0).await;
        assert!(read.unwrap() == 8192 && buffer.iter().all(|byte| *byte == 1));
        let (read, buffer) = file.read_at(buffer, 8192).await;
        assert_eq!((read.unwrap(), buffer[0], buffer[4095]), (4096, 2, 2));
        drop(buffer);
        file.close().await.unwrap();
        assert_eq!(pool.free_count(), 1);
    });
}
