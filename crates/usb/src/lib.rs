//! Switches a USB disk between UAS and BOT while the machine runs, and back.
//!
//! The kernel protects nothing here: it lets a driver be taken from a mounted disk, and `uas` does
//! not flush the disk's cache when it goes (seen on Linux 6.1 and 6.12). So everything is asked
//! first ([`plan`]): who uses the disk, is the other driver there, is there a way back. Then each
//! step is written down before it is taken ([`State`]), so that a switch that was interrupted is
//! finished or undone by the next run ([`resume`]); and a disk that does not come back is given back
//! to the driver that it had ([`execute`]).
//!
//! Only the one interface is touched. The quirk string, which names a whole model, is changed for
//! the moment in which the interface is probed, and put back; a twin of the disk keeps its driver.
//!
//! What only a running machine can do stands behind [`Hands`]. Tests give others, which note what is
//! written and behave as the kernel does.
//!
//! Cannot see: what a disk lost that never answers again; other machines that use the disk.

mod execute;
mod hands;
mod persist;
mod plan;
mod state;

pub use execute::{Outcome, execute, resume};
pub use hands::{Hands, LiveHands, WAIT};
pub use persist::{PersistError, Persisted, persist, plan_persist, plan_unpersist};
pub use plan::{Plan, PlanBlock, Refusal, entry_to_keep, plan};
pub use state::{State, StateError, Step, pending};
