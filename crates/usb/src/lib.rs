//! Switches a USB disk between UAS and BOT while the machine runs, and back; claims a disk for UAS in user space ([`claim`], [`drive`]).
//!
//! The kernel protects nothing here: it unbinds the driver of a mounted disk, and `uas` does not flush the
//! disk's cache when it is unbound (observed on Linux 6.1 and 6.12). So [`plan`] checks everything first:
//! whether the disk is in use, whether the other driver exists, whether the switch can be undone. Each step
//! is recorded before it is taken ([`SwitchState`]), so that the next run finishes or undoes an interrupted switch
//! ([`resume`]). A disk that does not return is bound to its previous driver ([`execute`]).
//!
//! Only one interface is touched. The quirk string, which names a whole model, is changed only while the
//! interface is probed and then restored; another disk of the same model keeps its driver.
//!
//! Operations that need a running machine belong to the trait [`Hands`]. Tests implement it with a recorder
//! that behaves as the kernel does.
//!
//! Cannot see: data lost by a disk that never responds again; other machines that use the disk.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod build;
mod claim;
mod drive;
mod execute;
mod hands;
mod keeper;
mod lock;
mod persist;
mod plan;
mod served;
mod spk;
mod state;

pub use build::{BuildError, BuildPlan, FILES, build, plan_build, usual_headers, verify, why_not_loadable};
pub use claim::{Barred, Claim, ClaimFailure, Claimed, claim, plan_claim};
pub use drive::{DriveError, Driven, drive, plan_of, take_over};
pub use execute::{Outcome, execute, resume};
pub use hands::{Hands, LiveHands, WAIT};
pub use keeper::{Guarded, Keeper, keep};
pub use lock::{STATES, is_locked, take_lock};
pub use persist::{PersistError, Persisted, persist, plan_persist, plan_unpersist};
pub use plan::{Plan, PlanBlock, Refusal, entry_to_keep, plan};
pub use served::{SERVED, ServedDisk, ServedError};
pub use spk::{Spk, architecture, pack};
pub use state::{StateError, Step, SwitchState, pending};
