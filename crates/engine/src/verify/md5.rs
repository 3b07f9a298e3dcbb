//! MD5 (RFC 1321), whose steps wait for each other as little as the algorithm allows.
//!
//! Each of its 64 steps needs the result of the step before, so its speed is the latency of that chain. The compiler orders
//! sums so that more of them are in the chain: for 4 KiB the crate `md-5` takes 5.9 µs, and this 4.8 µs (2026-11-27). [`apart`] keeps
//! out of the chain what does not depend on the step before.

/// The sines of 1 to 64, as RFC 1321 has them.
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];
const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
const BLOCK: usize = 64;

/// The first eight bytes of the digest of the pieces, one after another, as a big-endian number.
pub(super) fn first_bytes(pieces: [&[u8]; 2]) -> u64 {
    let mut state = START;
    let (mut rest, mut used) = ([0; 2 * BLOCK], 0);
    for mut piece in pieces {
        if used > 0 {
            let taken = piece.len().min(BLOCK - used);
            rest[used..used + taken].copy_from_slice(&piece[..taken]);
            (used, piece) = (used + taken, &piece[taken..]);
            if used < BLOCK {
                continue;
            }
            compress(&mut state, &rest[..BLOCK]);
        }
        let (blocks, tail) = piece.split_at(piece.len() / BLOCK * BLOCK);
        compress(&mut state, blocks);
        rest[..tail.len()].copy_from_slice(tail);
        used = tail.len();
    }
    // A one bit, zeros, and the number of bits, which end a block.
    let bit_count = pieces.iter().map(|piece| piece.len() as u64 * 8).sum::<u64>();
    let end = (used + 9).next_multiple_of(BLOCK);
    rest[used..].fill(0);
    rest[used] = 0x80;
    rest[end - 8..end].copy_from_slice(&bit_count.to_le_bytes());
    compress(&mut state, &rest[..end]);
    u64::from(state[0].swap_bytes()) << 32 | u64::from(state[1].swap_bytes())
}

/// Returns its argument, as a value that the compiler must have computed before it is used.
#[inline(always)]
fn apart(value: u32) -> u32 {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let mut value = value;
        // SAFETY: no instruction at all, only a comment that names the register.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            std::arch::asm!("/* {0:e} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            std::arch::asm!("/* {0:w} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
        }
        value
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    value
}

// The functions F, G, H and I of RFC 1321, with a sum that does not depend on `x`, the result of the step before.
#[inline(always)]
fn choose(x: u32, y: u32, z: u32, sum: u32) -> u32 {
    (z ^ (x & (y ^ z))).wrapping_add(sum)
}

#[inline(always)]
fn choose_other(x: u32, y: u32, z: u32, sum: u32) -> u32 {
    // A sum, as no bit is in both halves: the half without `x` is not in the chain.
    (x & z).wrapping_add(apart(sum.wrapping_add(y & !z)))
}

#[inline(always)]
fn parity(x: u32, y: u32, z: u32, sum: u32) -> u32 {
    (x ^ (y ^ z)).wrapping_add(sum)
}

#[inline(always)]
fn either(x: u32, y: u32, z: u32, sum: u32) -> u32 {
    (y ^ (x | !z)).wrapping_add(sum)
}

/// Adds whole blocks of 64 bytes to a state.
fn compress(state: &mut [u32; 4], blocks: &[u8]) {
    for block in blocks.chunks_exact(BLOCK) {
        let mut words = [0; 16];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        }
        *state = add_block(*state, &words);
    }
}

#[inline(always)]
fn add_block(state: [u32; 4], words: &[u32; 16]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = state;
    macro_rules! step {
        ($mix:ident, $a:ident, $b:ident, $c:ident, $d:ident, $sine:expr, $word:literal, $shift:literal) => {
            let sum = apart($a.wrapping_add(words[$word]).wrapping_add(SINES[$sine]));
            $a = $mix($b, $c, $d, sum).rotate_left($shift).wrapping_add($b);
        };
    }
    macro_rules! four {
        ($mix:ident, $at:literal, [$w0:literal, $w1:literal, $w2:literal, $w3:literal], [$s0:literal, $s1:literal, $s2:literal, $s3:literal]) => {
            step!($mix, a, b, c, d, $at, $w0, $s0);
            step!($mix, d, a, b, c, $at + 1, $w1, $s1);
            step!($mix, c, d, a, b, $at + 2, $w2, $s2);
            step!($mix, b, c, d, a, $at + 3, $w3, $s3);
        };
    }
    four!(choose, 0, [0, 1, 2, 3], [7, 12, 17, 22]);
    four!(choose, 4, [4, 5, 6, 7], [7, 12, 17, 22]);
    four!(choose, 8, [8, 9, 10, 11], [7, 12, 17, 22]);
    four!(choose, 12, [12, 13, 14, 15], [7, 12, 17, 22]);
    four!(choose_other, 16, [1, 6, 11, 0], [5, 9, 14, 20]);
    four!(choose_other, 20, [5, 10, 15, 4], [5, 9, 14, 20]);
    four!(choose_other, 24, [9, 14, 3, 8], [5, 9, 14, 20]);
    four!(choose_other, 28, [13, 2, 7, 12], [5, 9, 14, 20]);
    four!(parity, 32, [5, 8, 11, 14], [4, 11, 16, 23]);
    four!(parity, 36, [1, 4, 7, 10], [4, 11, 16, 23]);
    four!(parity, 40, [13, 0, 3, 6], [4, 11, 16, 23]);
    four!(parity, 44, [9, 12, 15, 2], [4, 11, 16, 23]);
    four!(either, 48, [0, 7, 14, 5], [6, 10, 15, 21]);
    four!(either, 52, [12, 3, 10, 1], [6, 10, 15, 21]);
    four!(either, 56, [8, 15, 6, 13], [6, 10, 15, 21]);
    four!(either, 60, [4, 11, 2, 9], [6, 10, 15, 21]);
    [a.wrapping_add(state[0]), b.wrapping_add(state[1]), c.wrapping_add(state[2]), d.wrapping_add(state[3])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use md5::Digest as _;

    /// Goal: the digest is MD5's, however the bytes lie in the two pieces.
    /// Method: another crate's digest, at all lengths around one and two blocks and at that of a block of 4 KiB.
    #[test]
    fn md5_has_the_value_of_another_implementation() {
        let bytes: Vec<u8> = (0..5_000_u32).map(|i| (i * 7 + i / 251) as u8).collect();
        for length in (0..200).chain([4_047, 4_048, 4_096, 5_000]) {
            let expected = u64::from_be_bytes(md5::Md5::digest(&bytes[..length])[..8].try_into().unwrap());
            for first in [0, 1, 40, 48, 63, 64, 65, 130] {
                let (one, other) = bytes[..length].split_at(first.min(length));
                assert_eq!(first_bytes([one, other]), expected, "{length} bytes, {first} of them in the first piece");
            }
        }
    }
}
