//! The checks, one per file: sources, limits, thresholds and sentences of each.
//!
//! `docs/checks.md` is rendered from the files' comments (`tests/it/page.rs`): a sentence, then a list. What follows the list is for developers.

pub(crate) mod achieved_depth;
pub(crate) mod block_layer_bytes;
pub(crate) mod call_results;
pub(crate) mod clock_and_cpu;
pub(crate) mod content;
pub(crate) mod declared_values;
pub(crate) mod direct_granted;
pub(crate) mod flush_order;
pub(crate) mod flushes;
pub(crate) mod foreign_io;
pub(crate) mod heat;
pub(crate) mod holes;
pub(crate) mod io_limits;
pub(crate) mod latency_floor;
pub(crate) mod latency_origin;
pub(crate) mod memory_backed;
pub(crate) mod pace;
pub(crate) mod page_cache;
pub(crate) mod process_read_bytes;
pub(crate) mod processor_wait;
pub(crate) mod source;
pub(crate) mod steadiness;
pub(crate) mod stops;
pub(crate) mod traced_requests;
pub(crate) mod usb_link;
pub(crate) mod usb_transfers;
mod wait_percentiles;
pub(crate) mod working_set;
pub(crate) mod zero_blocks;
