//! The documents of trueio, and their arithmetic.
//!
//! The program's data are plain documents: a [`JobSpec`] (options as given, each with its origin),
//! [`TargetFacts`] (facts about the target, each with its source), a [`Plan`] (every value fixed), a [`RunRecord`] (all of that, the
//! measurements and the evidence), a [`Comparison`] of several sides, a [`StudyRecord`] of a published
//! experiment repeated, a [`PowercutRecord`] of cuts of power. Crates exchange only these documents, never live objects, so
//! a record can be reported, compared and gated a year later on another machine.
//!
//! No I/O, no clock, no operating system: everything in this crate is a pure function of its input.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod answer;
mod capacity;
mod cluster;
mod comparison;
mod control;
mod control_group;
mod disturbance;
mod error;
mod evidence;
mod fact;
mod facts;
mod failure;
mod foreign;
mod histogram;
mod identity;
mod io_limit;
mod iolog;
mod json;
mod latency;
mod latency_slices;
mod limit;
mod link;
mod mark;
mod numa;
mod operation;
mod origin;
mod output;
mod plan;
mod powercut;
mod priority;
mod record;
mod seed;
mod source;
mod spec;
mod steady;
mod study;
mod syscalls;
mod time;
mod trace;
mod trend;
pub mod units;
mod usage;
mod usb;
mod user;
mod verify;
mod zones;

pub use answer::{
    AnsweredFigure, AnsweredFinding, AnsweredPhase, Decision, DocumentAnswer, FoundDetail, FoundLoad, Ground,
    Objection, Quantity, RunAnswer, Statement, StatementKind, shown_checks,
};
pub use capacity::{
    CAPACITY_FORMAT, CAPACITY_VERSION, CapacityContent, CapacityCounts, CapacityCoverage, CapacityKind, CapacityRecord,
};
pub use cluster::{ClockOffset, ClusterPhase, CommonWindow, LostRank, RankSpan};
pub use comparison::{
    Answer, Basis, COMPARISON_FORMAT, COMPARISON_VERSION, Circumstance, Comparison, Conclusion, Figure, GateResult,
    GateVerdict, Method, Metric, Needs, Part, Ratio, Side, Slice, side_letter,
};
pub use control::{
    Control, Criterion, CriterionPlan, CriterionRecord, CriterionSpan, CriterionVariable, DepthSearch, DepthWindow,
    FlowPlan, LatencyTarget,
};
pub use control_group::ControlGroupPlan;
pub use disturbance::DisturbedSpan;
pub use error::{causes, error_chain, error_line};
pub use evidence::{Cause, Check, CheckOutcome, EvidenceLevel, Verdict};
pub use fact::Fact;
pub use facts::{
    AtomicWriteFacts, CpuFacts, DirectFacts, DirectSupport, DiskFacts, DiskLimits, DrivenDisk, Environment,
    FilesystemFacts, FilesystemKind, Layer, LayerKind, NamedFact, TargetFacts, TargetKind, Transport, WriteCache,
    ZoneModel,
};
pub use failure::{BlockPart, IoFailure, VerifyFailure};
pub use foreign::{ForeignDirection, ForeignJob, ForeignLatency, ForeignLatencyKind, ForeignOp, ForeignRun};
pub use histogram::{BUCKET_COUNT, Histogram, HistogramError, MAX_TRACKABLE_NS};
pub use identity::{DeviceIdentity, IdentityKind, Sameness};
pub use io_limit::{IoLimit, IoLimitKind};
pub use iolog::{
    IOLOG_HEADER, IologError, IologIo, IologOps, IologSummary, ReplayPlan, ReplaySettings, Replayer, scan as scan_iolog,
};
pub use json::Document;
pub use latency::LatencySet;
pub use latency_slices::{LatencySlices, SliceCount, SliceRecorder, SliceSum};
pub use limit::{
    JudgedLimit, LIMIT_FIGURES, Limit, LimitError, LimitFigure, LimitOutcome, LimitRow, LimitSet, LimitSign, LimitUnit,
    LimitValue, Reference, ReferenceLoad,
};
pub use link::DiskLink;
pub use mark::{Mark, STOPS, finding_words, is_reason, run_words, worst};
pub use numa::{MemoryMode, MemoryPolicy};
pub use operation::OpKind;
pub use origin::{Origin, Sourced};
pub use output::{
    AVERAGE_NS_DEFAULT, FileId, Grouping, LogKind, LogPlan, LogWindow, NameCounts, OutputPlan, PERCENTILES_DEFAULT,
    Unified,
};
pub use plan::{
    Advice, Arrivals, BlockIdentity, BlockSizes, CommandPlan, CommonContents, Content, ContentKind, CpuLoad,
    DelayStart, DirectPolicy, Distribution, EngineKind, ExecPlan, FileAccess, FilePlan, FileSelection, Flush, Follow,
    FollowKind, Guard, Handling, IgnoredError, JobPlan, Limits, Locking, Memory, NameSet, OpMix, Order, Pace, Pattern,
    Plan, PlanValue, Prepare, Queue, RangeSync, Scheduling, SimulatedDevice, StatCall, Steps, SyncMode, TargetIdentity,
    Think, Tolerance, UringOptions, WriteFlags, WriteHint, WriteSteps, Zones,
};
pub use powercut::{
    CUT_AT_RISK_MIN, POWERCUT_FORMAT, POWERCUT_VERSION, PowerLoss, PowercutFigures, PowercutMethod, PowercutReach,
    PowercutRecord, PowercutVerdict, PowercutWay, powercut_reach,
};
pub use priority::{IoPriority, PriorityRecord, PriorityShare};
pub use record::{
    ClusterRecord, CpuTime, Dependence, DeviceCounters, DeviceDelta, Estimate, Inflation, JobRecord, OpRecord, Outcome,
    Percentile, PhaseRecord, RECORD_FORMAT, RECORD_VERSION, RankRecord, ReadBack, Residency, Ruler, RunRecord,
    SeriesRow, ToolFacts,
};
pub use seed::{mix64, nth_mix64, rank_seed, round_seed, worker_seed};
pub use source::{SourceAddress, SourcePlan};
pub use spec::{FioJob, FioWord, JobSpec, SpecValue, bounded_switch_of, switch_of};
pub use steady::{SteadyPlan, SteadyRound, SteadyState, SteadyVariable};
pub use study::{
    Agreement, Contrast, Durability, DurabilityKind, Impossible, PublishedFigure, PublishedRatio, RatioHere,
    STUDY_FORMAT, STUDY_VERSION, SampleFigure, Statistic, StudyFigure, StudyMetric, StudyMode, StudyRecord, StudyRow,
    StudySample, StudySource, value_label,
};
pub use syscalls::{
    JobSyscalls, SyscallError, SyscallIo, SyscallPlaces, SyscallRow, SyscallSizes, SyscallTrace, SyscallUnit,
};
pub use time::{format_utc, format_utc_as, parse_utc};
pub use trace::{
    BelowTrace, LatencyParts, PartTimes, RequestPlaces, RequestSum, SampledIo, SyncOrder, TraceRecord, TracedProcess,
    TransferMatch,
};
pub use trend::{
    TREND_FORMAT, TREND_VERSION, Trend, TrendChange, TrendDevice, TrendLeftOut, TrendPoint, TrendRun, TrendSeries,
};
pub use usage::{ProcessorWait, QueueCounts, ThreadUsage};
pub use usb::{
    ScsiState, UsbAlternate, UsbAnswer, UsbBlock, UsbDisk, UsbExplanation, UsbFacts, UsbInterface, UsbNode, UsbReport,
    UsbRule, UsbRuleName, UsbTargetName, UsbTransport, UsbTrouble, UsbTroubleKind, UsbWay,
};
pub use user::UserPlan;
pub use verify::{BlockPattern, Checksum, TrimVerify, Verify};
pub use zones::{EarlyResets, ZonePlan, ZoneUse};
