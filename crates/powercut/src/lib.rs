//! Whether a disk stores what it acknowledged: is it as large as it reports (`trueio capacity`), and does it keep what was synced
//! when its power goes ([`cut`])?
//!
//! An [`Examination`] writes unique blocks ([`Pattern`]) to a [`Layout`] of positions, reads all of them back afterwards, and
//! returns [`Findings`], of which [`judge`] makes a [`Verdict`]. What a block held before is kept in a [`Journal`] first, and
//! [`restore`] writes it back.
//!
//! Does no I/O of its own: the caller passes a [`Disk`], a writer and a reader. Targets are claimed and checked by
//! `trueio-run`, as for every command that writes.

mod cache;
pub mod cut;
mod examine;
mod layout;
mod pattern;
pub mod replay;
mod sector;
mod undo;
mod verdict;

pub use cache::{CutLoss, LosableCache, Medium};
pub use examine::{Disk, Examination, ExamineError, Findings, Keeper, Span, Stage, Watch};
pub use layout::{BLOCKS_MIN, CONFIDENCE, Extent, Layout, MISSING_SHARE, missing_share_max, sample_count};
pub use pattern::{Content, Pattern};
pub use sector::{BLOCK_BYTES, BLOCK_SECTORS, SECTOR_BYTES};
pub use undo::{DiskIdentity, Durable, Journal, JournalError, JournalHead, Restored, read_head, restore};
pub use verdict::{Verdict, coverage, judge, sentences};
