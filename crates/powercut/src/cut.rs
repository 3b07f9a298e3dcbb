//! Whether acknowledged writes survive a loss of power: the pure part of `trueio powercut`.
//!
//! Each [`Method`] of writing has a [`Region`] of its own, so that one cut tests all of them. A [`Writer`] writes [`Stamp`]ed
//! blocks in epochs and counts an epoch as acknowledged after its sync returned 0 ([`RegionLog`]). After the cut, [`check`]
//! reads the blocks that were written, and [`Tally`] adds up cuts to a [`Standing`] per method.

mod check;
mod load;
mod log;
mod method;
mod region;
mod stamp;
mod standing;
mod witness;
mod writer;

pub use check::{CheckError, Checked, Loss, LossCounts, LossKind, Readback, check};
pub use load::{Ended, Load, Part, safe_ms};
pub use log::{Epoch, RISK_WINDOW_MS, RegionLog};
pub use method::{Method, Place};
pub use region::{Order, Region, lay_out};
pub use stamp::{SectorContent, Stamp};
pub use standing::{
    AT_RISK_MIN, CONFIDENCE as CUT_CONFIDENCE, Cut, Standing, Tally, Verdict, cuts_below, disk_standing, loss_bound,
};
pub use witness::{FromWitness, MESSAGE_BYTES_MAX, Offence, Round, RoundPlan, ToWitness, Witness, window_of};
pub use writer::{Medium, Phase, Refused, Step, Writer, phase_at};
