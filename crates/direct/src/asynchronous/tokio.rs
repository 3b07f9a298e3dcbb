//! Direct files for programs on tokio: each call runs on tokio's threads for blocking work. *(feature `tokio`)*
//!
//! The kernel writes into a buffer until the call is over, so a call takes its buffer and returns it. A call whose
//! future is dropped runs to its end, and its buffer is dropped then.
//!
//! Limits: each call in flight takes a thread, at most 512 by default (`max_blocking_threads`).

use crate::transfer::{Transfer, TransferError};
use crate::types::{DirectFile, FlushLevel, Flushed, OpenError, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A [`DirectFile`] whose calls are asynchronous. A clone is the same open file.
///
/// The buffers are [`AlignedBuffer`](crate::AlignedBuffer), [`PooledBuffer`](crate::PooledBuffer), or anything else that
/// holds bytes at an aligned address.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("data");
/// use trueio_direct::{AlignedBuffer, AsyncDirectFile, FlushLevel, OpenOptions, Policy};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let options = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Prefer);
/// let file = AsyncDirectFile::open(options, &path).await?;
/// let mut buffer = AlignedBuffer::new(4096, 4096)?;
/// buffer.fill(7);
/// let (written, buffer) = file.write_all_at(buffer, 0).await;
/// written?;
/// file.flush(FlushLevel::Device).await?;
/// let (read, buffer) = file.read_at(buffer, 0).await;
/// assert_eq!((read?.bytes, buffer[4095]), (4096, 7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AsyncDirectFile {
    file: Arc<DirectFile>,
}

impl From<DirectFile> for AsyncDirectFile {
    fn from(file: DirectFile) -> Self {
        Self { file: Arc::new(file) }
    }
}

impl AsyncDirectFile {
    /// Opens `path`: see [`OpenOptions::open`].
    ///
    /// # Errors
    /// [`OpenError`].
    ///
    /// # Panics
    /// As every call here: outside of a runtime of tokio, and if the runtime is shut down meanwhile.
    pub async fn open(options: OpenOptions, path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        Ok(blocking(move || options.open(path)).await?.into())
    }

    /// The file, for any other call.
    pub fn file(&self) -> &DirectFile {
        &self.file
    }

    /// Reads into `buffer` until it is full or the file ends: see [`DirectFile::read_at`].
    ///
    /// # Errors
    /// [`TransferError`], next to the buffer.
    pub async fn read_at<B>(&self, mut buffer: B, offset: u64) -> (Result<Transfer, TransferError>, B)
    where
        B: AsMut<[u8]> + Send + 'static,
    {
        let file = Arc::clone(&self.file);
        blocking(move || (file.read_at(buffer.as_mut(), offset), buffer)).await
    }

    /// Fills `buffer`: see [`DirectFile::read_exact_at`].
    ///
    /// # Errors
    /// [`TransferError`], next to the buffer.
    pub async fn read_exact_at<B>(&self, mut buffer: B, offset: u64) -> (Result<Transfer, TransferError>, B)
    where
        B: AsMut<[u8]> + Send + 'static,
    {
        let file = Arc::clone(&self.file);
        blocking(move || (file.read_exact_at(buffer.as_mut(), offset), buffer)).await
    }

    /// Writes all of `buffer`: see [`DirectFile::write_all_at`].
    ///
    /// # Errors
    /// [`TransferError`], next to the buffer.
    pub async fn write_all_at<B>(&self, buffer: B, offset: u64) -> (Result<Transfer, TransferError>, B)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let file = Arc::clone(&self.file);
        blocking(move || (file.write_all_at(buffer.as_ref(), offset), buffer)).await
    }

    /// Makes what was written durable as far as `level`: see [`DirectFile::flush`].
    ///
    /// # Errors
    /// What the system reported.
    pub async fn flush(&self, level: FlushLevel) -> io::Result<Flushed> {
        let file = Arc::clone(&self.file);
        blocking(move || file.flush(level)).await
    }

    /// Returns the length of the file, or the capacity of the disk: see [`DirectFile::size`].
    ///
    /// # Errors
    /// What the system reported.
    pub async fn size(&self) -> io::Result<u64> {
        let file = Arc::clone(&self.file);
        blocking(move || file.size()).await
    }

    /// Sets the length of the file: see [`DirectFile::truncate`].
    ///
    /// # Errors
    /// As [`DirectFile::truncate`].
    pub async fn truncate(&self, length: u64) -> io::Result<()> {
        let file = Arc::clone(&self.file);
        blocking(move || file.truncate(length)).await
    }

    /// Reserves space: see [`crate::preallocate`].
    ///
    /// # Errors
    /// As [`crate::preallocate`].
    pub async fn preallocate(&self, offset: u64, len: u64) -> io::Result<()> {
        let file = Arc::clone(&self.file);
        blocking(move || crate::flush::preallocate(file.file(), offset, len)).await
    }
}

/// Runs `call` on a thread for blocking work; a panic goes on in the caller.
async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(call).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => panic!("the runtime was shut down before a direct file's call began"),
        },
    }
}
