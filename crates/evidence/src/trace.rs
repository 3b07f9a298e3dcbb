//! Traces single disk requests with the tracepoints of the block layer: level E3.
//!
//! Counters give totals; a trace gives single requests. In short windows ([`window`]) every request of the
//! disks under the measured files is traced in a separate instance ([`tracefs`]), and the workers sample the
//! I/Os of the same windows. The extents of the files ([`extents`]), and where layers passed I/O on to ([`places`]), relate the two
//! ([`matching`]): each
//! sampled transfer must have a request at its disk offset, and each sampled durable write a flush after its
//! data and before its return. Requests at other offsets belong to other processes or to the filesystem. Those of a loop device are followed
//! to the disk of its file ([`loops`], [`below`]).
//!
//! Needs root. Cannot see: what happens between windows, and inside the disk.

mod attribution;
mod below;
mod below_users;
mod carriers;
mod chunks;
mod extents;
pub(crate) mod format;
mod layers;
mod loops;
mod matching;
mod phase_trace;
mod piece;
mod places;
mod session;
pub(crate) mod tracefs;
mod users;
pub(crate) mod window;
mod write_back;

pub(crate) use attribution::{WRITE_BACK, moved_words, others_in};
pub use chunks::ChunkMap;
pub use extents::{FileExtents, MappedExtent};
pub use layers::{Layers, PassingDevice, TracedDisk};
pub use loops::{LoopFile, Loops};
pub(crate) use matching::{JobSamples, match_samples};
pub use phase_trace::PhaseTrace;
pub use places::AddressSpace;
pub use session::why_not_traced;
pub(crate) use session::{ObservedFile, TraceSession};
pub use users::{DiskUser, DiskUsers};
pub(crate) use window::WindowRequests;
