//! The region of a target that a method writes, and the position of each write in it.
//!
//! Acknowledged writes are a prefix of the sequence numbers of a region. So the last acknowledged write to each position follows
//! from one number, and a test needs no memory per write.

use super::method::Method;
use serde::{Deserialize, Serialize};

/// The order in which a region is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// All positions in a scattered order, again and again.
    Overwrite,
    /// Each position once, ascending.
    Append,
}

/// The blocks that one method writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Its number, which each block carries.
    pub id: u32,
    /// The method.
    pub method: Method,
    /// The first block of the target; 0 if the region is files.
    pub start: u64,
    /// Positions, in blocks: a power of two.
    pub position_count: u64,
    /// The order.
    pub order: Order,
}

/// Odd, so that its multiples modulo a power of two are a permutation; about the golden ratio, so that neighbours are far apart.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the inverse of [`STRIDE`] modulo 2^64, by Newton's iteration: each step doubles the number of correct bits.
const fn stride_inverse() -> u64 {
    let (mut inverse, mut step) = (STRIDE, 0);
    while step < 6 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(STRIDE.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

const STRIDE_INVERSE: u64 = stride_inverse();
const _: () = assert!(STRIDE.wrapping_mul(STRIDE_INVERSE) == 1);

impl Region {
    /// Returns the position of a write, from sequence number 1 on; `None`: the region is full.
    pub fn position_of(&self, sequence: u64) -> Option<u64> {
        assert!(sequence > 0 && self.position_count.is_power_of_two());
        match self.order {
            Order::Append => Some(sequence - 1).filter(|position| *position < self.position_count),
            Order::Overwrite => Some((sequence - 1).wrapping_mul(STRIDE) & (self.position_count - 1)),
        }
    }

    /// Returns the last write to a position among those up to `through`; 0: there is none.
    pub fn last_at(&self, position: u64, through: u64) -> u64 {
        assert!(position < self.position_count);
        match self.order {
            Order::Append => {
                if position < through {
                    position + 1
                } else {
                    0
                }
            }
            Order::Overwrite => {
                let first = (position.wrapping_mul(STRIDE_INVERSE) & (self.position_count - 1)) + 1;
                match through.checked_sub(first) {
                    None => 0,
                    Some(after) => first + after / self.position_count * self.position_count,
                }
            }
        }
    }
}

/// Returns a region for each method, spread over a target of `block_count` blocks; `None`: it is too small. The first MiB stays as
/// it is. `position_max` limits the regions.
pub fn lay_out(methods: &[Method], block_count: u64, position_max: u64) -> Option<Vec<Region>> {
    const FIRST: u64 = 256;
    const POSITIONS_MIN: u64 = 64;
    let each = block_count.checked_sub(FIRST)? / (methods.len() as u64).max(1);
    let fits = each.min(position_max);
    if fits < POSITIONS_MIN {
        return None;
    }
    let position_count = 1 << fits.ilog2();
    let regions = methods.iter().zip(0_u32..).map(|(&method, id)| Region {
        id,
        method,
        start: FIRST + u64::from(id) * each,
        position_count,
        order: Order::Overwrite,
    });
    Some(regions.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Goal: the last write to a position is what a table of all writes says.
        #[test]
        fn the_last_write_to_a_position_follows_from_the_number_of_writes(bits in 6_u32..9, through in 0_u64..2000, is_append: bool) {
            let order = if is_append { Order::Append } else { Order::Overwrite };
            let region = Region { id: 0, method: Method::Direct, start: 0, position_count: 1 << bits, order };
            let mut table = vec![0; 1 << bits];
            for sequence in 1..=through {
                if let Some(position) = region.position_of(sequence) {
                    table[position as usize] = sequence;
                }
            }
            let through = if is_append { through.min(1 << bits) } else { through };
            let found: Vec<u64> = (0..1 << bits).map(|position| region.last_at(position, through)).collect();
            prop_assert_eq!(found, table);
        }

        #[test]
        fn regions_are_on_the_target_and_disjoint(count in 1_usize..14, blocks in 0_u64..1 << 34, most in 1_u64..1 << 20) {
            let methods = &Method::ALL[..count.min(13)];
            let mut at = 256;
            for region in lay_out(methods, blocks, most).into_iter().flatten() {
                prop_assert!(region.start >= at && region.position_count <= most);
                at = region.start + region.position_count;
                prop_assert!(at <= blocks);
            }
        }
    }
}
