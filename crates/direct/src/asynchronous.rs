//! Direct I/O for asynchronous programs, enabled by features.
//!
//! A buffer belongs to the kernel until its transfer is over, even if the future is dropped, so all of these take buffers
//! by value and return them.

#[cfg(feature = "compio")]
mod compio;
#[cfg(feature = "tokio")]
mod tokio;
#[cfg(all(feature = "tokio-uring", target_os = "linux"))]
mod tokio_uring;

#[cfg(feature = "tokio")]
pub use tokio::AsyncDirectFile;
