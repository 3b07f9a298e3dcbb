//! The hot path of trueio: what is issued, how, and how long it took.
//!
//! A worker ([`run_worker`]) is one thread of a job. Its loop (`worker.rs`) is generic over the engine, the clock and the
//! stages, so that the compiler sees one straight loop: take a step that the [`Generator`] prepared sixty-four at a time,
//! submit it to the engine, read the clock, count the latency. Nothing in that loop allocates, locks, formats, or calls
//! the kernel except for the I/O itself. What only some jobs need between their I/Os (a rate, pauses, file locks, zones,
//! verification, logs) is a stage, one file each in `stages/`; stages see the loop through `view.rs`, and a job without
//! stages is compiled without them.
//!
//! The crate is independent of phases, evidence and reports: it takes open files and a job's plan, and returns a
//! [`WorkerReport`].

mod arrivals;
mod buffers;
mod clock;
mod content;
mod context;
mod engines;
mod excerpt;
mod file_lock;
mod flow;
mod log;
mod operations;
mod pattern;
mod priority;
mod recorder;
mod replay;
mod request;
mod ruler;
mod snapshot;
mod source;
mod span;
mod stages;
mod start;
mod target;
mod unlink;
mod usage;
mod verify;
mod view;
mod worker;
mod zones;

pub use buffers::Buffers;
pub use clock::{AnyClock, Clock, ClockMark, MonotonicClock, TscClock, VirtualClock, choose_clock};
pub use content::{FileFill, RandomFill};
pub use context::{CreateFile, Host, OpenLog, Passed, WorkerContext};
pub use engines::{
    Availability, BlockingEngine, Call, Completion, Dircreate, Dirdelete, Dirstat, E4defrag, Engine, EngineError,
    EngineSetup, Falloc, Filecreate, Filedelete, Fileread, Filestat, Ftruncate, IoUringEngine, LibaioEngine,
    MmapEngine, NameCall, NamesEngine, NullEngine, PosixaioEngine, Psync, Pvsync, Pvsync2, SimulatedEngine, Splice,
    SyncCall, UasEngine, Vsync, advise, availability, hint_writes,
};
pub use excerpt::Excerpt;
pub use file_lock::FileLock;
pub use flow::Flow;
pub use log::{DroppedIos, IoEvent, IssuedIo, LogChannel, LogChunk, LoggedIo, TraceChannel, TracedIo, log_channel};
pub use operations::operations;
pub use pattern::Generator;
pub use recorder::{FAILURES_MAX, OpSlices, Progress, WorkerReport};
pub use request::{Request, Step};
pub use ruler::measure_ruler;
pub use snapshot::Snapshot;
pub use source::{BodySource, SourceComparison, compare_with_source};
pub use span::{SpanFigures, SpanJudge};
pub use stages::save_empty_state;
pub use start::{Gate, Start};
pub use target::{TargetFile, TrimCall};
pub use unlink::unlink_same;
pub use usage::{thread_usage, usage_between, usage_of};
pub use verify::{BLOCK_HEADER_BYTES, BlockHeader, BlockSeal, Difference, checksum};
pub use worker::{run_worker, run_worker_on};
pub use zones::ZoneMap;
