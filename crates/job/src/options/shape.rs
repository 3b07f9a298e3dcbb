//! The shape of a job's I/O: operations, sizes, order. Most sections read it.

use crate::option::OptionRow;
use trueio_model::{BlockSizes, OpKind, OpMix, Order, Steps};

/// Which operations a job performs.
#[derive(Clone, Copy)]
pub(crate) struct Ops {
    pub(crate) mix: OpMix,
    pub(crate) is_random: bool,
    /// Whether a log that is replayed reads, writes, trims.
    pub(crate) replayed: Option<[bool; 3]>,
    /// Whether anything is trimmed: by the pattern, before each write (`trimwrite`), or after it (`trim_percentage`).
    pub(crate) trims: bool,
}

impl Ops {
    pub(crate) fn has(self, op: OpKind) -> bool {
        match self.mix {
            _ if let Some([reads, writes, trims]) = self.replayed => match op {
                OpKind::Read => reads,
                OpKind::Write => writes,
                OpKind::Trim => trims,
                OpKind::Sync => false,
            },
            OpMix::Only(only) => only == op,
            OpMix::ReadWrite { .. } => matches!(op, OpKind::Read | OpKind::Write),
        }
    }
}

/// What a job's I/O looks like, whatever engine does it and wherever.
pub(crate) struct Shape {
    pub(crate) ops: Ops,
    /// Sizes of reads, writes and trims.
    pub(crate) sizes: [BlockSizes; 3],
    /// The option that sets them.
    pub(crate) sizes_option: &'static OptionRow,
    pub(crate) steps: Steps,
    pub(crate) order: Order,
    pub(crate) seed: u64,
}

impl Shape {
    /// Returns the sizes of the operations that the job performs.
    pub(crate) fn used(&self) -> Vec<(OpKind, &BlockSizes)> {
        let each = [OpKind::Read, OpKind::Write, OpKind::Trim].into_iter().zip(&self.sizes);
        each.filter(|(op, _)| self.ops.has(*op)).collect()
    }

    /// Returns the largest block of them, in bytes.
    pub(crate) fn block_bytes_max(&self) -> u64 {
        self.used().iter().map(|(_, sizes)| sizes.max_bytes()).max().unwrap_or(0)
    }
}
