//! Whom a job acts as, if not as who started the program.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A user and a group, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserPlan {
    /// The user's.
    pub uid: u32,
    /// The group's; there are no further groups.
    pub gid: u32,
}

impl fmt::Display for UserPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {} (group {})", self.uid, self.gid)
    }
}
