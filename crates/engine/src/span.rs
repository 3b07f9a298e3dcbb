//! Spans of equal length whose figures are judged while workers run (`steadystate`).

use std::fmt::Debug;

/// What a worker did in a span.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpanFigures {
    /// I/Os that completed; sync calls are none.
    pub io_count: u64,
    /// Bytes that they moved.
    pub byte_count: u64,
    /// Their latencies together, in nanoseconds.
    pub latency_sum_ns: u128,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
}

/// Judges the spans of one worker, or of several that are to end together. Called a few times a second at most.
pub trait SpanJudge: Debug + Send + Sync {
    /// A worker has ended its span number `index`, from 0; true if the job is over.
    fn span(&self, index: u64, figures: SpanFigures) -> bool;
    /// True if the job is over, because of another worker's span.
    fn is_over(&self) -> bool;
    /// A worker ends: of the spans from `index` on it gives none.
    fn leaves(&self, index: u64);
}
