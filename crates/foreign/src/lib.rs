//! Results that other tools measured, as they say them themselves.
//!
//! A foreign result is not a record: nobody watched the kernel while it was measured, so there is
//! no plan, no facts about the target and no evidence, and none is made up. What the other tool
//! wrote is read, named as its word, and can be listed, exported and compared as that: evidence
//! level E0, without a verdict.
//!
//! Pure functions of a text. Reading never panics, whatever the text.

mod fio;

pub use fio::{FioDirection, FioError, FioJob, FioLatency, FioLatencyKind, FioOp, FioRun, parse_fio};
