//! The figures of a run across its ranks: clocks, spans, common windows. The record of such a run is
//! [`ClusterRecord`](crate::ClusterRecord).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rank without complete results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostRank {
    /// Number of the rank, from 0.
    pub rank: u32,
    /// Its host's name; empty: it never connected.
    pub host: String,
    /// Why: `its connection ended`.
    pub reason: String,
}

/// The offset of rank 0's clock from that of a rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockOffset {
    /// Rank 0's clock less the rank's, in nanoseconds.
    pub offset_ns: i64,
    /// Largest error of the offset, in nanoseconds: half of the shortest round trip.
    pub bound_ns: u64,
    /// Median round trip, in nanoseconds.
    pub round_trip_ns_median: u64,
    /// Number of pings.
    pub ping_count: u32,
}

/// One phase across ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterPhase {
    /// The phase's name.
    pub name: String,
    /// Planned length of the measured part, in nanoseconds; `None`: the work is fixed, not the time.
    pub nominal_ns: Option<u64>,
    /// One entry for each rank that took part, in their order.
    pub ranks: Vec<RankSpan>,
    /// Time from the first rank's start to the last one's, in nanoseconds.
    pub start_skew_ns: u64,
    /// Time from the first rank's end to the last one's, in nanoseconds.
    pub end_skew_ns: u64,
    /// The time in which all ranks measured; `None`: there is none.
    pub common: Option<CommonWindow>,
}

/// A rank's measured part, and its figures for a comparison of ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankSpan {
    /// Number of the rank, from 0.
    pub rank: u32,
    /// Start of its measured part, in nanoseconds of rank 0's clock after the agreed start.
    pub begin_ns: i64,
    /// End, on the same scale.
    pub end_ns: i64,
    /// How late the rank was at the agreed start, in nanoseconds; 0: it was there in time.
    pub late_ns: u64,
    /// Offset of the clocks before the phase.
    pub clock_before: ClockOffset,
    /// The same afterwards; `None`: the rank was gone.
    pub clock_after: Option<ClockOffset>,
    /// Operations that succeeded.
    pub io_count: u64,
    /// Bytes transferred.
    pub byte_count: u64,
    /// Operations in the common window, by its time series.
    pub common_io_count: f64,
    /// Bytes in the common window.
    pub common_bytes: f64,
}

/// The time in which all ranks measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommonWindow {
    /// Its start: the latest of the ranks, in nanoseconds of rank 0's clock after the agreed start.
    pub begin_ns: i64,
    /// Its end: the earliest of the ranks.
    pub end_ns: i64,
    /// Its share of the nominal length, or of the longest rank's span where the work is fixed.
    pub share: f64,
    /// Operations a second of all ranks in it.
    pub ios_per_s: f64,
    /// Bytes a second of all ranks in it.
    pub bytes_per_s: f64,
}
