//! The hot path of trueio: what is issued, how, and how long it took.
//!
//! A [`Worker`] is one thread of a job. It is generic over the engine and the clock, so that the
//! compiler sees one straight loop: take a request that the [`Generator`] prepared sixty-four at a
//! time, hand it to the engine, read the clock, count the latency. Nothing in that loop allocates,
//! locks, formats, or calls the kernel except for the I/O itself (and to wait, where a rate or a
//! pause asks for it; `lockfile` asks for locks).
//!
//! The crate knows nothing of phases, evidence or reports: it is handed open files and a job's
//! plan, and returns a [`WorkerReport`].

mod batch;
mod buffers;
mod clock;
mod content;
mod engines;
mod file_lock;
mod log;
mod pace;
mod pattern;
mod priority;
mod recorder;
mod replay;
mod request;
mod ruler;
mod sample;
mod seed;
mod snapshot;
mod source;
mod target;
mod verify;
mod worker;
mod zones;

pub use buffers::Buffers;
pub use clock::{AnyClock, Clock, ClockMark, MonotonicClock, TscClock, VirtualClock, choose_clock};
pub use content::RandomFill;
pub use engines::{
    Availability, BlockingEngine, Call, Completion, Dircreate, Dirdelete, Dirstat, Engine, EngineError, EngineSetup,
    Falloc, Filecreate, Filedelete, Filestat, Ftruncate, IoUringEngine, LibaioEngine, MmapEngine, NameCall,
    NamesEngine, NullEngine, PosixaioEngine, Psync, Pvsync, Pvsync2, SimulatedEngine, Splice, SyncCall, Vsync, advise,
    availability,
};
pub use file_lock::FileLock;
pub use log::{IoStep, IssuedIo, LogChunk, LogDoor, LoggedIo, log_channel};
pub use pattern::Generator;
pub use recorder::{FAILURES_MAX, Progress, WorkerReport};
pub use request::Request;
pub use ruler::measure_ruler;
pub use snapshot::Snapshot;
pub use source::{BodySource, SourceComparison, compare_with_source};
pub use target::{TargetFile, TrimCall};
pub use verify::{BLOCK_HEADER_BYTES, BlockHeader, BlockSeal, Difference};
pub use worker::{
    Flow, Gate, Host, Passed, SpanFigures, SpanJudge, Start, Worker, WorkerContext, operations, run_worker,
    thread_usage, usage_between, usage_of,
};
pub use zones::ZoneMap;
