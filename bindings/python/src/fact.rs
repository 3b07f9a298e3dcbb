//! Results as small frozen objects with the field names of the Rust library.
//!
//! `None` means unknown. It never means "no", which is a word or a zero.

use crate::argument::{count, size};
use crate::error;
use crate::file::{flushed, granted};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use trueio_direct::{AlignmentSource, Answer};

/// `Name(field=value, …)` as Python would write it.
fn repr(object: &Bound<'_, PyAny>, name: &str, fields: &[&str]) -> PyResult<String> {
    let fields: PyResult<Vec<String>> =
        fields.iter().map(|field| Ok(format!("{field}={}", object.getattr(*field)?.repr()?))).collect();
    Ok(format!("{name}({})", fields?.join(", ")))
}

/// A class of read-only fields.
macro_rules! fact {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $kind:ty,)* } $($more:item)*) => {
        $(#[$about])*
        #[pyclass(frozen, get_all, eq, module = "trueio.direct")]
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $name { $($(#[$doc])* pub(crate) $field: $kind,)* }

        #[pymethods]
        impl $name {
            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                repr(slf.as_any(), stringify!($name), &[$(stringify!($field)),*])
            }
            $($more)*
        }
    };
}

/// The alignment that direct I/O on a file requires, in bytes. None: unknown; 1: no requirement.
///
/// Returned by a probe and by an open file. `Alignment(memory_bytes, write_offset_bytes, read_offset_bytes)` makes one
/// from your own numbers, with the source "assumed".
#[pyclass(frozen, eq, module = "trueio.direct")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Alignment(pub(crate) trueio_direct::Alignment);

/// A number of an alignment: above zero and of 32 bits.
fn demand(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u32>> {
    let Some(value) = value else { return Ok(None) };
    match count(name, value)? {
        0 => Err(PyValueError::new_err(format!("{name} must be above zero; use 1 for no demand and None for unknown"))),
        bytes => u32::try_from(bytes)
            .map(Some)
            .map_err(|_| PyValueError::new_err(format!("{name} is absurd: {bytes} bytes exceed 32 bits"))),
    }
}

#[pymethods]
impl Alignment {
    #[new]
    #[pyo3(signature = (memory_bytes, write_offset_bytes, read_offset_bytes))]
    fn new(
        memory_bytes: Option<&Bound<'_, PyAny>>,
        write_offset_bytes: Option<&Bound<'_, PyAny>>,
        read_offset_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let memory_bytes = demand("memory_bytes", memory_bytes)?;
        let write_offset_bytes = demand("write_offset_bytes", write_offset_bytes)?;
        let read_offset_bytes = demand("read_offset_bytes", read_offset_bytes)?;
        let source = AlignmentSource::Assumed;
        Ok(Self(trueio_direct::Alignment { memory_bytes, write_offset_bytes, read_offset_bytes, source }))
    }

    /// The address of every buffer must be a multiple of this; None: unknown.
    #[getter]
    fn memory_bytes(&self) -> Option<u32> {
        self.0.memory_bytes
    }

    /// Offset and length of every write must be multiples of this; None: unknown.
    #[getter]
    fn write_offset_bytes(&self) -> Option<u32> {
        self.0.write_offset_bytes
    }

    /// Offset and length of every read must be multiples of this, which may be smaller than for writes; None: unknown.
    #[getter]
    fn read_offset_bytes(&self) -> Option<u32> {
        self.0.read_offset_bytes
    }

    /// The source of these numbers, as a sentence without a full stop.
    #[getter]
    fn source(&self) -> String {
        self.0.source.to_string()
    }

    /// Returns the same with 4096 for every unknown number; `source` reports this.
    fn or_assumed(&self) -> Self {
        Self(self.0.or_assumed())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        repr(slf.as_any(), "Alignment", &["memory_bytes", "write_offset_bytes", "read_offset_bytes", "source"])
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

fact! {
    /// A completed transfer.
    Transfer {
        /// Number of bytes transferred.
        bytes: usize,
        /// Number of system calls; more than one means that some were short.
        calls: u32,
    }
}

impl From<trueio_direct::Transfer> for Transfer {
    fn from(transfer: trueio_direct::Transfer) -> Self {
        Self { bytes: transfer.bytes, calls: transfer.calls }
    }
}

fact! {
    /// Limits of writes that a power loss cannot tear: a power of two from `min_bytes` to `max_bytes`, at an offset
    /// that is a multiple of its length. *(Linux 6.11 or later)*
    AtomicWrite {
        /// The smallest, in bytes.
        min_bytes: u32,
        /// The largest, in bytes.
        max_bytes: u32,
        /// The largest that needs no slower path, in bytes; 0: not reported, and then it is `max_bytes`.
        max_fast_bytes: u32,
        /// The largest number of buffers in one such write.
        segments_max: u32,
    }

    /// Checks a write of `length` bytes at `offset` before it is made. Raises AtomicLimitError naming the first rule
    /// that is broken.
    fn check(&self, py: Python<'_>, length: &Bound<'_, PyAny>, offset: &Bound<'_, PyAny>) -> PyResult<()> {
        let (length, offset) = (size("length", length)?, count("offset", offset)?);
        self.limits().check(length, offset).map_err(|error| error::atomic(py, &error))
    }
}

impl AtomicWrite {
    pub(crate) fn limits(&self) -> trueio_direct::AtomicWrite {
        trueio_direct::AtomicWrite {
            min_bytes: self.min_bytes,
            max_bytes: self.max_bytes,
            max_fast_bytes: self.max_fast_bytes,
            segments_max: self.segments_max,
        }
    }
}

fact! {
    /// The result of a probe. A probe writes nothing.
    Probe {
        /// "direct", "silently-buffered" (accepted, but the page cache is used, or must be expected to be used),
        /// "refused", or "unknown" (accepted, effect unknown).
        support: &'static str,
        /// The source of that answer, as a sentence without a full stop.
        reason: String,
        /// The required alignment. If the page cache is used, nothing is required.
        alignment: Alignment,
        /// `support` for a file that is only read: btrfs reads past the cache and writes through it.
        read_support: &'static str,
        /// The alignment that those reads require.
        read_alignment: Alignment,
        /// Limits of atomic writes; None unless `atomic_write_answer` is "yes".
        atomic_write: Option<AtomicWrite>,
        /// Whether atomic writes are supported: "yes", "no" or "unknown".
        atomic_write_answer: &'static str,
        /// Whether buffered I/O that leaves nothing in the cache is supported: "yes", "no" or "unknown".
        uncached_buffered: &'static str,
        /// The type of the filesystem; "the block device" for a disk.
        filesystem: String,
    }
}

fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Unknown => "unknown",
    }
}

impl From<trueio_direct::Probe> for Probe {
    fn from(probe: trueio_direct::Probe) -> Self {
        let atomic_write = probe.atomic_write.map(|limits| AtomicWrite {
            min_bytes: limits.min_bytes,
            max_bytes: limits.max_bytes,
            max_fast_bytes: limits.max_fast_bytes,
            segments_max: limits.segments_max,
        });
        Self {
            support: probe.support.name(),
            read_support: probe.read_support.name(),
            read_alignment: Alignment(probe.read_alignment),
            reason: probe.reason,
            alignment: Alignment(probe.alignment),
            atomic_write,
            atomic_write_answer: answer(probe.atomic_write_answer),
            uncached_buffered: answer(probe.uncached_buffered),
            filesystem: probe.filesystem,
        }
    }
}

fact! {
    /// The result of a flush.
    Flushed {
        /// The level that was reached, never below the requested one: "barrier", "data", "file" or "device".
        level: &'static str,
        /// Whether the call is also specified to flush the device's volatile cache.
        device_cache_flushed: bool,
        /// The system call ("fdatasync").
        call: &'static str,
    }
}

fact! {
    /// A completed copy.
    Copied {
        /// Bytes that were read and written.
        data_bytes: u64,
        /// Bytes of holes that were not read. In an existing file or disk they were written as zeros.
        hole_bytes: u64,
        /// How the source was read: "direct", "unconfirmed", "not-kept" or "buffered".
        source: &'static str,
        /// How the destination was written: one of the same words.
        destination: &'static str,
        /// What the flush at the end did; None without one.
        flushed: Option<Flushed>,
    }
}

impl From<trueio_direct::Copied> for Copied {
    fn from(copied: trueio_direct::Copied) -> Self {
        Self {
            data_bytes: copied.data_bytes,
            hole_bytes: copied.hole_bytes,
            source: granted(copied.source),
            destination: granted(copied.destination),
            flushed: copied.flushed.map(flushed),
        }
    }
}

fact! {
    /// Pages of a range of a file in the page cache.
    Residency {
        /// Pages in the cache.
        cached_pages: u64,
        /// Of these, dirty and not yet under writeback; None: unknown.
        dirty_pages: Option<u64>,
        /// Of these, under writeback; None: unknown.
        writeback_pages: Option<u64>,
        /// Pages that were evicted from the cache, as far as the kernel remembers; None: unknown.
        evicted_pages: Option<u64>,
        /// The size of a page, in bytes.
        page_size_bytes: u64,
        /// Number of pages of the range, up to the end of the file.
        file_pages: u64,
        /// The source: "cachestat" or "mincore".
        source: &'static str,
    }
}

impl From<trueio_direct::Residency> for Residency {
    fn from(residency: trueio_direct::Residency) -> Self {
        Self {
            cached_pages: residency.cached_pages,
            dirty_pages: residency.dirty_pages,
            writeback_pages: residency.writeback_pages,
            evicted_pages: residency.evicted_pages,
            page_size_bytes: residency.page_size_bytes,
            file_pages: residency.file_pages,
            source: residency.source,
        }
    }
}

fact! {
    /// Facts that an open disk reports.
    DeviceFacts {
        /// Capacity in bytes.
        size_bytes: u64,
        /// Logical sector: offset and length of direct transfers are multiples of it.
        logical_sector_bytes: u32,
        /// Physical sector: a smaller write makes the disk read first. None: not reported.
        physical_sector_bytes: Option<u32>,
        /// The smallest transfer without extra cost (a RAID's chunk); None: not reported.
        minimum_io_bytes: Option<u32>,
        /// The preferred size of a transfer (a RAID's stripe); None: not reported.
        optimal_io_bytes: Option<u32>,
        /// Whether the disk rotates; None: not reported. Virtual disks often report it wrongly.
        is_rotational: Option<bool>,
        /// Serial number without surrounding spaces; None: not reported.
        serial: Option<String>,
        /// The source of the serial number ("SCSI page 0x80", "sysfs"); None without one.
        serial_source: Option<&'static str>,
    }
}

impl From<trueio_direct::DeviceFacts> for DeviceFacts {
    fn from(facts: trueio_direct::DeviceFacts) -> Self {
        Self {
            size_bytes: facts.size_bytes,
            logical_sector_bytes: facts.logical_sector_bytes,
            physical_sector_bytes: facts.physical_sector_bytes,
            minimum_io_bytes: facts.minimum_io_bytes,
            optimal_io_bytes: facts.optimal_io_bytes,
            is_rotational: facts.is_rotational,
            serial: facts.serial,
            serial_source: facts.serial_source,
        }
    }
}
