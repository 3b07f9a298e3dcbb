//! `AsyncDirectFile` on tokio. *(feature `tokio`)*
//!
//! Goal: asynchronous calls transfer what the others do, return their buffers, and may be dropped at any time.
#![cfg(feature = "tokio")]

use crate::support;

use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use trueio_direct::{
    AlignedBuffer, AsyncDirectFile, DirectFile, FlushLevel, OpenOptions, Policy, SharedBufferPool, TransferError,
};

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn new_file(folder: &std::path::Path) -> DirectFile {
    let options = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Prefer);
    options.open(folder.join("data")).unwrap()
}

/// Goal: many calls at once, with the buffers of a pool.
/// Method: 64 blocks are written by tasks of their own, and read back.
#[test]
fn many_transfers_run_at_once() {
    let folder = support::folder();
    let pool = SharedBufferPool::new(64, 8192, 4096).unwrap();
    let file = AsyncDirectFile::from(new_file(folder.path()));
    runtime().block_on(async {
        let write = |index: usize| {
            let (file, mut buffer) = (file.clone(), pool.try_acquire().unwrap());
            buffer.fill(index as u8 + 1);
            tokio::task::spawn(async move { file.write_all_at(buffer, index as u64 * 8192).await.0.unwrap().bytes })
        };
        let tasks: Vec<_> = (0..64).map(write).collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), 8192);
        }
        assert_eq!(pool.free_count(), 64, "each buffer went back");
        assert!(file.flush(FlushLevel::Data).await.unwrap().level >= FlushLevel::Data);
        assert_eq!(file.size().await.unwrap(), 64 * 8192);
        for index in 0..64 {
            let (read, buffer) = file.read_exact_at(pool.try_acquire().unwrap(), index * 8192).await;
            assert_eq!(read.unwrap().bytes, 8192);
            assert!(buffer.iter().all(|byte| u64::from(*byte) == index + 1));
        }
    });
}

#[test]
fn an_error_comes_with_the_buffer() {
    let folder = support::folder();
    runtime().block_on(async {
        let file = AsyncDirectFile::from(new_file(folder.path()));
        file.preallocate(0, 1000).await.unwrap();
        let (read, buffer) = file.read_exact_at(AlignedBuffer::new(4096, 4096).unwrap(), 0).await;
        assert!(matches!(read, Err(TransferError::EndOfFile { done: 1000, .. })), "{read:?}");
        let (read, buffer) = file.read_at(buffer, 0).await;
        assert_eq!((read.unwrap().bytes, buffer.len()), (1000, 4096));
        let missing = AsyncDirectFile::open(OpenOptions::new().read(true), folder.path().join("missing")).await;
        assert!(missing.is_err());
    });
}

/// A buffer that reports its drop, and waits for permission before it shows its bytes.
struct Watched {
    bytes: AlignedBuffer,
    begin: mpsc::Receiver<()>,
    dropped: mpsc::Sender<u8>,
}

impl AsMut<[u8]> for Watched {
    fn as_mut(&mut self) -> &mut [u8] {
        self.begin.recv().unwrap();
        &mut self.bytes
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.dropped.send(self.bytes[0]);
    }
}

/// Goal: a call whose future is dropped keeps its buffer until it is over.
/// Method: the call is held up before its transfer, its future is dropped, then the transfer runs.
#[test]
fn a_dropped_call_keeps_its_buffer_until_it_is_over() {
    let folder = support::folder();
    let file = new_file(folder.path());
    let mut data = AlignedBuffer::new(4096, 4096).unwrap();
    data.fill(7);
    file.write_all_at(&data, 0).unwrap();
    let file = AsyncDirectFile::from(file);
    let (go, begin) = mpsc::channel();
    let (dropped, is_dropped) = mpsc::channel();
    let runtime = runtime();
    runtime.block_on(async {
        let bytes = AlignedBuffer::new(4096, 4096).unwrap();
        let mut call = Box::pin(file.read_at(Watched { bytes, begin, dropped }, 0));
        // Polled once, so that the call is on its thread.
        let pending = std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context).is_pending()));
        assert!(pending.await);
        drop(call);
    });
    assert!(is_dropped.try_recv().is_err(), "the buffer is still in use");
    go.send(()).unwrap();
    assert_eq!(is_dropped.recv_timeout(Duration::from_secs(60)).unwrap(), 7, "dropped after the read");
}
