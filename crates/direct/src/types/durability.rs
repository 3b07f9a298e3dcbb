//! Levels of durability, and the result of a flush.

/// Level of durability of a flush, with the call that provides it:
///
/// | level   | Linux       | macOS            | FreeBSD: ZFS | FreeBSD: UFS | FreeBSD: disk | Windows            |
/// |---------|-------------|------------------|--------------|--------------|---------------|--------------------|
/// | Barrier | `fdatasync` | `F_BARRIERFSYNC` | `fsync`      | none         | `DIOCGFLUSH`  | `FlushFileBuffers` |
/// | Data    | `fdatasync` | `fsync`          | `fdatasync`  | `fdatasync`  | `DIOCGFLUSH`  | `FlushFileBuffers` |
/// | File    | `fsync`     | `fsync`          | `fsync`      | `fsync`      | `DIOCGFLUSH`  | `FlushFileBuffers` |
/// | Device  | `fsync`     | `F_FULLFSYNC`    | `fsync`      | none         | `DIOCGFLUSH`  | `FlushFileBuffers` |
///
/// None of them has an effect on a drive that ignores flushes, a controller that declares its cache safe, a filesystem
/// mounted with `nobarrier`, or an overlay mounted `volatile`. Data on tmpfs and ramfs are never durable.
///
/// `Device` includes `File`, which includes `Data`. `Barrier` concerns order only: `Device` includes it on every
/// system; `Data` and `File` include it on Linux and Windows, where they also flush the device, and not on macOS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FlushLevel {
    /// Earlier writes reach the medium before later writes.
    Barrier,
    /// The data, and the metadata needed to read them, are on the device.
    Data,
    /// All metadata of the file, too (times, permissions).
    File,
    /// The device has flushed its volatile cache. The default here and in the bindings.
    #[default]
    Device,
}

impl FlushLevel {
    /// Returns the name that the bindings use: "barrier", "data", "file" or "device".
    pub fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Data => "data",
            Self::File => "file",
            Self::Device => "device",
        }
    }
}

/// Result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flushed {
    /// Level that was reached; never below the requested one.
    pub level: FlushLevel,
    /// True if the call is specified to flush the device's volatile cache.
    pub device_cache_flushed: bool,
    /// The call ("fdatasync").
    pub call: &'static str,
}
