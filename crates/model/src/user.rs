//! The user as which a job acts, if it is not the user of the program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A user and a group, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserPlan {
    /// User ID.
    pub uid: u32,
    /// Group ID; there are no supplementary groups.
    pub gid: u32,
}

impl fmt::Display for UserPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {} (group {})", self.uid, self.gid)
    }
}
