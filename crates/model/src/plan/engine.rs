//! How I/O is submitted: the engines, and io_uring's and the simulated disk's own settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The I/O engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// `lseek` if the position differs, then `read` or `write`.
    Sync,
    /// `pread` and `pwrite`. Records before version 2 call it `sync`.
    Psync,
    /// `lseek` if the position differs, then `readv` or `writev`.
    Vsync,
    /// `preadv` and `pwritev`.
    Pvsync,
    /// `preadv2` and `pwritev2` with RWF flags.
    Pvsync2,
    /// Linux native asynchronous I/O: `io_submit`, `io_getevents`.
    Libaio,
    /// io_uring.
    IoUring,
    /// Copies to and from a mapping.
    Mmap,
    /// `splice` and `vmsplice` through a pipe.
    Splice,
    /// A queue on threads that call `pread` and `pwrite`.
    Posixaio,
    /// `fallocate`: allocates space, transfers no data.
    Falloc,
    /// `ftruncate`: sets lengths, transfers no data.
    Ftruncate,
    /// `EXT4_IOC_MOVE_EXT`: exchanges the blocks of an ext4 file for those of another file, as defragmenting does.
    E4defrag,
    /// Creates files.
    Filecreate,
    /// Reads the status of files.
    Filestat,
    /// Opens, reads and closes files.
    Fileread,
    /// Removes files.
    Filedelete,
    /// Creates directories.
    Dircreate,
    /// Reads the status of directories.
    Dirstat,
    /// Removes directories.
    Dirdelete,
    /// Copies to and from new anonymous memory, whose pages are faulted in.
    PageFault,
    /// Keeps a processor busy.
    Cpuio,
    /// Runs another program.
    Exec,
    /// Drives a USB disk with UAS (USB Attached SCSI) in user space.
    Uas,
    /// Completes each I/O at once without doing it: measures the tool's own cost.
    Null,
    /// A modelled disk in virtual time: no real I/O, exact and repeatable.
    Simulated,
    /// Another program, which a study names. Not a value of `ioengine`, so not in [`EngineKind::ALL`].
    Command,
}

impl EngineKind {
    /// All values of `ioengine`, in the order of the documentation.
    pub const ALL: [EngineKind; 26] = [
        EngineKind::Psync,
        EngineKind::Sync,
        EngineKind::Vsync,
        EngineKind::Pvsync,
        EngineKind::Pvsync2,
        EngineKind::Libaio,
        EngineKind::IoUring,
        EngineKind::Mmap,
        EngineKind::Splice,
        EngineKind::Posixaio,
        EngineKind::Falloc,
        EngineKind::Ftruncate,
        EngineKind::E4defrag,
        EngineKind::Filecreate,
        EngineKind::Filestat,
        EngineKind::Fileread,
        EngineKind::Filedelete,
        EngineKind::Dircreate,
        EngineKind::Dirstat,
        EngineKind::Dirdelete,
        EngineKind::PageFault,
        EngineKind::Cpuio,
        EngineKind::Exec,
        EngineKind::Uas,
        EngineKind::Null,
        EngineKind::Simulated,
    ];

    /// The name used in job files, output and records.
    pub const fn name(self) -> &'static str {
        match self {
            EngineKind::Sync => "sync",
            EngineKind::Psync => "psync",
            EngineKind::Vsync => "vsync",
            EngineKind::Pvsync => "pvsync",
            EngineKind::Pvsync2 => "pvsync2",
            EngineKind::Libaio => "libaio",
            EngineKind::IoUring => "io_uring",
            EngineKind::Mmap => "mmap",
            EngineKind::Splice => "splice",
            EngineKind::Posixaio => "posixaio",
            EngineKind::Falloc => "falloc",
            EngineKind::Ftruncate => "ftruncate",
            EngineKind::E4defrag => "e4defrag",
            EngineKind::Filecreate => "filecreate",
            EngineKind::Filestat => "filestat",
            EngineKind::Fileread => "fileread",
            EngineKind::Filedelete => "filedelete",
            EngineKind::Dircreate => "dircreate",
            EngineKind::Dirstat => "dirstat",
            EngineKind::Dirdelete => "dirdelete",
            EngineKind::PageFault => "page_fault",
            EngineKind::Cpuio => "cpuio",
            EngineKind::Exec => "exec",
            EngineKind::Uas => "uas",
            EngineKind::Null => "null",
            EngineKind::Simulated => "simulated",
            EngineKind::Command => "command",
        }
    }

    /// True if one thread can keep more than one I/O in flight.
    pub fn holds_a_queue(self) -> bool {
        use EngineKind::{IoUring, Libaio, Null, Posixaio, Simulated, Uas};
        matches!(self, Libaio | IoUring | Posixaio | Uas | Null | Simulated)
    }

    /// Returns true if it uses the position of an open file, which must then not be shared.
    pub fn moves_position(self) -> bool {
        matches!(self, EngineKind::Sync | EngineKind::Vsync)
    }

    /// True if the engine moves data to or from real files.
    pub fn touches_files(self) -> bool {
        self.opens_files() && !self.moves_no_data()
    }

    /// Returns true if its targets are USB disks, driven in user space, and not paths of the file system: the kernel's page
    /// cache, block layer and files are not involved.
    pub fn drives_usb_disks(self) -> bool {
        self == EngineKind::Uas
    }

    /// True if the engine works on real files, whether it moves data or not.
    pub fn opens_files(self) -> bool {
        self.does_io() && !self.is_without_files() && !self.works_on_names()
    }

    /// Returns true if its operations need no file or device.
    fn is_without_files(self) -> bool {
        matches!(self, EngineKind::Null | EngineKind::Simulated | EngineKind::PageFault)
    }

    /// True if a job of the engine has operations at all, which are measured.
    pub fn does_io(self) -> bool {
        !matches!(self, EngineKind::Cpuio | EngineKind::Exec)
    }

    /// Returns true if the engine does metadata operations in a directory of its own.
    pub fn works_on_names(self) -> bool {
        use EngineKind::{Dircreate, Dirdelete, Dirstat, Filecreate, Filedelete, Fileread, Filestat};
        matches!(self, Filecreate | Filestat | Fileread | Filedelete | Dircreate | Dirstat | Dirdelete)
    }

    /// Returns true if each name can be used only once: it is created or removed.
    pub fn uses_names_up(self) -> bool {
        self.works_on_names() && !matches!(self, EngineKind::Filestat | EngineKind::Fileread | EngineKind::Dirstat)
    }

    /// Returns true if the engine creates names.
    pub fn creates_names(self) -> bool {
        matches!(self, EngineKind::Filecreate | EngineKind::Dircreate)
    }

    /// True if the engine changes files without moving data of its own.
    pub fn moves_no_data(self) -> bool {
        matches!(self, EngineKind::Falloc | EngineKind::Ftruncate | EngineKind::E4defrag)
    }
}

/// Settings of io_uring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UringOptions {
    /// Register the buffers with the ring.
    pub registered_buffers: bool,
    /// Register the files with the ring.
    pub registered_files: bool,
    /// A kernel thread polls the submission queue.
    pub sqpoll: bool,
    /// Completions are polled for.
    pub iopoll: bool,
    /// Each I/O begins when all before it have completed (`IOSQE_IO_DRAIN`).
    #[serde(default)]
    pub drain: bool,
    /// The processor of the kernel thread that polls the submission queue; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sqpoll_cpu: Option<u32>,
    /// Every Nth transfer is submitted with `IOSQE_ASYNC`, for execution by kernel threads; 0: none.
    #[serde(default, skip_serializing_if = "crate::plan::is_zero")]
    pub async_every: u32,
    /// Transfers are `READV` and `WRITEV` with one piece, unless their buffers are registered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vectored: bool,
}

/// The modelled disk of the `simulated` engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedDevice {
    /// Service time of one I/O, in nanoseconds.
    pub service_ns: u64,
    /// Channels that serve at the same time.
    pub channels: u32,
    /// Spans in which nothing is served: (begin, length), nanoseconds of virtual time.
    pub stalls: Vec<(u64, u64)>,
    /// Factors of the service time from points in virtual time on: (begin in nanoseconds, factor), in order of
    /// time. They model a full write cache or a drive that throttles.
    #[serde(default)]
    pub slowdowns: Vec<(u64, f64)>,
    /// The I/Os (counted from 0) that fail with EIO.
    pub failing_ios: Vec<u64>,
}
