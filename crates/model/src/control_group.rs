//! The control group that a job's workers join.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A control group of the hierarchy that controls block I/O.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlGroupPlan {
    /// Its path below the mount point of the hierarchy.
    pub name: String,
    /// The weight that it is given; `None`: left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Whether a group that the run creates remains after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kept: bool,
}
