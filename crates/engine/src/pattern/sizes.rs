//! Sizes of I/Os: fixed, from a range, or drawn by weight.

use super::distribution::below;
use rand_xoshiro::Xoshiro256PlusPlus;
use trueio_model::{BlockSizes, OpKind};

/// Sizes of one operation, ready to be drawn.
#[derive(Debug, Clone)]
pub(super) enum Sizes {
    Fixed(u64),
    Range {
        step: u64,
        count: u64,
    },
    /// Any number of bytes from `min` to `max`.
    Any {
        min: u64,
        max: u64,
    },
    /// (cumulative weight, size); the last weight is the sum.
    Weighted(Vec<(u64, u64)>),
}

impl Sizes {
    pub(super) fn new(sizes: &BlockSizes, is_unaligned: bool) -> Self {
        match sizes {
            BlockSizes::Range { min_bytes, max_bytes } if is_unaligned => {
                Sizes::Any { min: *min_bytes, max: *max_bytes }
            }
            BlockSizes::Fixed(bytes) => Sizes::Fixed(*bytes),
            BlockSizes::Range { min_bytes, max_bytes } => {
                Sizes::Range { step: *min_bytes, count: max_bytes / min_bytes }
            }
            BlockSizes::Weighted(pairs) => {
                let mut sum = 0;
                Sizes::Weighted(
                    pairs
                        .iter()
                        .map(|&(bytes, weight)| {
                            sum += u64::from(weight);
                            (sum, bytes)
                        })
                        .collect(),
                )
            }
        }
    }

    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Range { step, count } => step * (1 + below(rng, *count)),
            Sizes::Any { min, max } => min + below(rng, max - min + 1),
            Sizes::Weighted(pairs) => {
                let (sum, last) = pairs[pairs.len() - 1];
                let at = below(rng, sum);
                pairs.iter().find(|p| at < p.0).map_or(last, |p| p.1)
            }
        }
    }

    /// The size that was drawn, or, as in fio, another one until it fits into what is left of a file; what fits if none
    /// was found.
    pub(super) fn fit(&self, mut size: u64, room: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        const TRIES: u32 = 64;
        for _ in 0..TRIES {
            if size <= room {
                return size;
            }
            size = self.draw(rng);
        }
        size.min(room)
    }

    pub(super) fn mean(&self) -> f64 {
        match self {
            Sizes::Fixed(bytes) => *bytes as f64,
            Sizes::Range { step, count } => *step as f64 * (*count as f64 + 1.0) / 2.0,
            Sizes::Any { min, max } => (*min as f64 + *max as f64) / 2.0,
            Sizes::Weighted(pairs) => {
                let weights = pairs.iter().scan(0, |before, &(sum, bytes)| {
                    let weight = sum - std::mem::replace(before, sum);
                    Some(weight as f64 * bytes as f64)
                });
                weights.sum::<f64>() / pairs[pairs.len() - 1].0 as f64
            }
        }
    }

    pub(super) fn each(&self) -> Vec<u64> {
        match self {
            Sizes::Fixed(bytes) => vec![*bytes],
            Sizes::Range { step, .. } => vec![*step],
            Sizes::Any { min, .. } => vec![*min],
            Sizes::Weighted(pairs) => pairs.iter().map(|p| p.1).collect(),
        }
    }
}

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the position of an operation in lists of sizes and offsets.
pub(super) fn op_index(op: OpKind) -> usize {
    match op {
        OpKind::Read => 0,
        OpKind::Write => 1,
        OpKind::Trim => 2,
        OpKind::Sync => unreachable!("sync calls have no size and no place"),
    }
}
