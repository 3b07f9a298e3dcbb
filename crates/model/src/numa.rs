//! Where a worker's memory comes from, on machines with several nodes.
//!
//! Source: set_mempolicy(2), numa(7).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule by which the kernel chooses the node of a thread's new pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPolicy {
    /// How.
    pub mode: MemoryMode,
    /// Which nodes; empty for those modes that take none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<u32>,
}

/// How the kernel chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMode {
    /// The policy of the system.
    Default,
    /// This node first, then others.
    Prefer,
    /// These nodes only.
    Bind,
    /// These nodes in turn.
    Interleave,
    /// The node of the processor that asks.
    Local,
}

impl MemoryMode {
    /// All of them.
    pub const ALL: [MemoryMode; 5] =
        [MemoryMode::Default, MemoryMode::Prefer, MemoryMode::Bind, MemoryMode::Interleave, MemoryMode::Local];

    /// Its word, as fio has it.
    pub fn name(self) -> &'static str {
        match self {
            MemoryMode::Default => "default",
            MemoryMode::Prefer => "prefer",
            MemoryMode::Bind => "bind",
            MemoryMode::Interleave => "interleave",
            MemoryMode::Local => "local",
        }
    }
}
