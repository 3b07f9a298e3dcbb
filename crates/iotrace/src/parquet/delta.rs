//! The encoding DELTA_BINARY_PACKED of Parquet, written for columns that are known in advance.
//!
//! A block has 128 differences between a value and the one before it. The least difference is stored once. The rest of each difference is
//! packed: each 32 of them have the width, in bits, that the largest of them needs. The encoder of the crate `parquet` takes single values of any
//! type, and took most of the time of a trace with its ten columns. This encoder takes whole blocks, in vectors where the processor has AVX2;
//! a column with equal values is only compared; and each width has its own code for packing, without branches.
//!
//! What is read may have blocks of up to 2,048 differences: those of earlier traces have 128 or 256, those of DuckDB 2,048.
//!
//! Cost: `cargo xtask gate` counts the instructions of a traced I/O.
//!
//! Source: Apache Parquet, "Parquet encoding definitions", section "Delta Encoding (DELTA_BINARY_PACKED = 5)". Differences wrap around in the
//! width of the column, as that section demands.

use super::thrift::{Damaged, Reader, append_varint, append_zigzag};

/// Values of a block.
const BLOCK: usize = 128;
/// Values that are packed with one width: a fourth of a block.
const MINIBLOCK: usize = 32;
const MINIBLOCKS: usize = BLOCK / MINIBLOCK;

/// A value of a column: 32 or 64 bits.
pub(crate) trait Value: Copy + Ord + Default {
    /// Returns the difference, which wraps around in the width of the type.
    fn minus(self, other: Self) -> Self;
    /// Returns the bits of a difference that is not negative, as a number of the type's width without a sign.
    fn bits(self) -> u64;
    fn wide(self) -> i64;

    /// Computes a block whose predecessor is `before`.
    fn block(before: Self, values: &[Self; BLOCK]) -> Block {
        plain_block(before, values)
    }
}

impl Value for i64 {
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    fn bits(self) -> u64 {
        self as u64
    }

    fn wide(self) -> i64 {
        self
    }

    #[cfg(target_arch = "x86_64")]
    fn block(before: Self, values: &[Self; BLOCK]) -> Block {
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { avx2_block(before, values) };
        }
        plain_block(before, values)
    }
}

impl Value for i32 {
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    fn bits(self) -> u64 {
        u64::from(self as u32)
    }

    fn wide(self) -> i64 {
        i64::from(self)
    }
}

/// The differences of a block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The least of them.
    least: i64,
    /// Each difference without the least.
    above: [u64; BLOCK],
    /// The bits that are set in any of a part.
    any: [u64; MINIBLOCKS],
}

// Inlined, so that the compiler uses the vectors of the function that calls it.
#[inline(always)]
fn plain_block<V: Value>(before: V, values: &[V; BLOCK]) -> Block {
    let mut deltas = [values[0].minus(before); BLOCK];
    for (delta, pair) in deltas[1..].iter_mut().zip(values.windows(2)) {
        *delta = pair[1].minus(pair[0]);
    }
    let least = deltas.iter().copied().min().unwrap_or_default();
    let above = deltas.map(|delta| delta.minus(least).bits());
    let mut any = [0; MINIBLOCKS];
    for (any, part) in any.iter_mut().zip(above.chunks(MINIBLOCK)) {
        *any = part.iter().fold(0, |any, above| any | above);
    }
    Block { least: least.wide(), above, any }
}

/// Computes a block with the vectors of most x86-64 processors: a third of the instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2_block(before: i64, values: &[i64; BLOCK]) -> Block {
    plain_block(before, values)
}

/// Appends `values`, encoded.
pub(crate) fn encode<V: Value>(values: &[V], out: &mut Vec<u8>) {
    append_varint(out, BLOCK as u64);
    append_varint(out, MINIBLOCKS as u64);
    append_varint(out, values.len() as u64);
    let Some((first, rest)) = values.split_first() else {
        append_zigzag(out, 0);
        return;
    };
    append_zigzag(out, first.wide());
    // Each is the one before: they are all the same. Slices are compared in the system's fastest way.
    if *rest == values[..rest.len()] {
        // A block whose least difference is 0, and whose widths are 0.
        out.resize(out.len() + rest.len().div_ceil(BLOCK) * (1 + MINIBLOCKS), 0);
        return;
    }
    let mut before = *first;
    for values in rest.chunks(BLOCK) {
        match <&[V; BLOCK]>::try_from(values) {
            Ok(values) => append_block(&V::block(before, values), MINIBLOCKS, out),
            Err(_) => append_short_block(before, values, out),
        }
        before = values[values.len() - 1];
    }
}

/// Appends a block of which the first `count` parts have values.
fn append_block(block: &Block, count: usize, out: &mut Vec<u8>) {
    append_zigzag(out, block.least);
    let widths = block.any.map(|any| u64::BITS - any.leading_zeros());
    // A width of zero also for the parts without a value, which have no bytes.
    out.extend_from_slice(&widths.map(|width| width as u8));
    for (part, width) in block.above.as_chunks::<MINIBLOCK>().0[..count].iter().zip(widths) {
        append_packed(part, width, out);
    }
}

#[cold]
fn append_short_block<V: Value>(before: V, values: &[V], out: &mut Vec<u8>) {
    let mut deltas = [values[0].minus(before); BLOCK];
    for (delta, pair) in deltas[1..].iter_mut().zip(values.windows(2)) {
        *delta = pair[1].minus(pair[0]);
    }
    let least = deltas[..values.len()].iter().copied().min().unwrap_or_default();
    // What has no value is packed as 0, and not at all in a part without any value.
    deltas[values.len()..].fill(least);
    let above = deltas.map(|delta| delta.minus(least).bits());
    let mut any = [0; MINIBLOCKS];
    for (any, part) in any.iter_mut().zip(above.chunks(MINIBLOCK)) {
        *any = part.iter().fold(0, |any, above| any | above);
    }
    append_block(&Block { least: least.wide(), above, any }, values.len().div_ceil(MINIBLOCK), out);
}

/// Appends each value in `width` bits, the least significant first: `4 * width` bytes.
fn append_packed(values: &[u64; MINIBLOCK], width: u32, out: &mut Vec<u8>) {
    if width > 0 {
        let mut bytes = [0; MINIBLOCK * 8];
        PACKERS[width as usize](values, &mut bytes);
        out.extend_from_slice(&bytes[..width as usize * MINIBLOCK / 8]);
    }
}

/// Packs values; the bytes from `4 * width` on are 0.
type Packer = fn(&[u64; MINIBLOCK], &mut [u8; MINIBLOCK * 8]);

/// Calls a macro with the numbers of all values of a part.
macro_rules! with_numbers {
    ($macro:ident) => {
        $macro!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
}

macro_rules! packers {
    ($($width:literal)*) => {
        [$(pack::<$width>,)* $(pack::<{ $width + 32 }>,)* pack::<64>]
    };
}

/// By width.
static PACKERS: [Packer; 65] = with_numbers!(packers);

fn pack<const WIDTH: usize>(values: &[u64; MINIBLOCK], bytes: &mut [u8; MINIBLOCK * 8]) {
    let mut words = [0_u64; MINIBLOCK];
    // Written out: each place is a constant, and no word is read back.
    macro_rules! place {
        ($($number:literal)*) => {$(
            let (word, shift) = ($number * WIDTH / 64, $number * WIDTH % 64);
            words[word] |= if WIDTH == 0 { 0 } else { values[$number] << shift };
            if shift + WIDTH > 64 {
                words[word + 1] = values[$number] >> (64 - shift);
            }
        )*};
    }
    with_numbers!(place);
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
}

/// The most differences of a block that is read.
const BLOCK_MAX: u64 = 2_048;

/// Appends the `count` values of a page, which are at least one; those of 32 bits keep their sign.
pub(crate) fn decode(page: &[u8], count: usize, is_wide: bool, out: &mut Vec<i64>) -> Result<(), Damaged> {
    let mut reader = Reader(page);
    let (block, parts, values) = (reader.varint()?, reader.varint()?, reader.varint()?);
    let is_sound = (1..=BLOCK_MAX).contains(&block) && (1..=block).contains(&parts) && block.is_multiple_of(parts);
    if !is_sound || !(block / parts).is_multiple_of(MINIBLOCK as u64) || values != count as u64 {
        return Err(Damaged);
    }
    let of_part = block / parts;
    // A number of 32 bits wraps around as one of 64 bits does, of which the lower half is kept.
    let whole = |value: i64| if is_wide { value } else { i64::from(value as i32) };
    let mut value = whole(reader.zigzag()?);
    out.push(value);
    let mut left = count.checked_sub(1).ok_or(Damaged)?;
    while left > 0 {
        let least = reader.zigzag()?;
        let widths = reader.bytes(parts)?;
        for width in widths {
            // A part without a value has no bytes, and any width.
            if left == 0 {
                break;
            }
            let width = Some(u32::from(*width)).filter(|width| *width <= u64::BITS).ok_or(Damaged)?;
            // Up to 64 bits, of which those of 32 values are whole words of 32 bits.
            let mut words = reader.bytes(of_part / 8 * u64::from(width))?.as_chunks::<4>().0.iter();
            let mask = u64::MAX.checked_shr(u64::BITS - width).unwrap_or(0);
            let (mut bits, mut held) = (0_u128, 0);
            for _ in 0..left.min(of_part as usize) {
                while held < width {
                    bits |= words.next().map_or(0, |word| u128::from(u32::from_le_bytes(*word))) << held;
                    held += u32::BITS;
                }
                value = whole(value.wrapping_add(least).wrapping_add((bits as u64 & mask) as i64));
                out.push(value);
                bits >>= width;
                held -= width;
            }
            left = left.saturating_sub(of_part as usize);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification: the numbers 1 to 5, and 7, 5, 3, 1, 2, 3, 4, 5; its blocks are of another size, so the bytes
    /// here were computed by hand from its rules.
    #[test]
    fn the_examples_of_the_specification_are_encoded_as_it_demands() {
        let mut out = Vec::new();
        encode(&[1_i64, 2, 3, 4, 5], &mut out);
        // Block 128, 4 parts, 5 values, first 1 (zigzag 2); least difference 1 (zigzag 2), widths 0: nothing is packed.
        assert_eq!(out, [0x80, 0x01, 4, 5, 2, 2, 0, 0, 0, 0]);
        out.clear();
        encode(&[7_i32, 5, 3, 1, 2, 3, 4, 5], &mut out);
        // Least difference -2 (zigzag 3); 0 0 0 3 3 3 3 in 2 bits: 0b11_00_00_00, 0b00_11_11_11, and six bytes of padding.
        assert_eq!(out, [0x80, 0x01, 4, 8, 14, 3, 2, 0, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0]);
        out.clear();
        encode::<i64>(&[], &mut out);
        assert_eq!(out, [0x80, 0x01, 4, 0, 0]);
    }

    /// Goal: blocks of any length, and the vectors of any processor, give the same bytes, which are read back. Method: columns of each
    /// length up to three blocks, which are the same, small or wrap around, next to an encoder that knows only the rules.
    #[test]
    fn every_length_gives_the_bytes_that_the_rules_give_and_is_read_back() {
        fn plain<V: Value>(values: &[V]) -> Vec<u8> {
            let mut out = vec![0x80, 1, 4];
            append_varint(&mut out, values.len() as u64);
            append_zigzag(&mut out, values.first().map_or(0, |first| first.wide()));
            let deltas: Vec<V> = values.windows(2).map(|pair| pair[1].minus(pair[0])).collect();
            for block in deltas.chunks(BLOCK) {
                let least = *block.iter().min().expect("a value");
                append_zigzag(&mut out, least.wide());
                let above: Vec<u64> = block.iter().map(|delta| delta.minus(least).bits()).collect();
                let widths: Vec<u32> = above
                    .chunks(MINIBLOCK)
                    .map(|part| 64 - part.iter().max().expect("a value").leading_zeros())
                    .collect();
                out.extend((0..MINIBLOCKS).map(|part| widths.get(part).map_or(0, |width| *width as u8)));
                for (part, width) in above.chunks(MINIBLOCK).zip(widths) {
                    let mut bits = part.iter().flat_map(|value| (0..width).map(move |bit| value >> bit & 1));
                    out.extend(
                        (0..4 * width).map(|_| (0..8).map(|at| (bits.next().unwrap_or(0) as u8) << at).sum::<u8>()),
                    );
                }
            }
            out
        }
        for length in 0..3 * BLOCK + 2 {
            for bits in [0, 1, 7, 20, 33, 64] {
                let number = |at: usize| {
                    trueio_model::mix64((at + length) as u64) & (u64::MAX.checked_shr(64 - bits).unwrap_or(0))
                };
                let wide: Vec<i64> = (0..length).map(|at| number(at) as i64).collect();
                let narrow: Vec<i32> = wide.iter().map(|value| *value as i32).collect();
                let mut out = Vec::new();
                encode(&wide, &mut out);
                assert_eq!(out, plain(&wide), "{length} values of {bits} bits");
                let mut read = Vec::new();
                if length > 0 {
                    decode(&out, length, true, &mut read).expect("values");
                    assert_eq!(read, wide, "{length} values of {bits} bits");
                }
                out.clear();
                encode(&narrow, &mut out);
                assert_eq!(out, plain(&narrow), "{length} narrow values of {bits} bits");
                if length > 0 {
                    read.clear();
                    decode(&out, length, false, &mut read).expect("values");
                    assert!(read.iter().eq(narrow.iter().map(|value| i64::from(*value)).collect::<Vec<_>>().iter()));
                }
                if let Some(block) = wide.first_chunk::<BLOCK>() {
                    let before = number(length);
                    let vectors = i64::block(before as i64, block);
                    assert_eq!(vectors, plain_block(before as i64, block), "{length} values of {bits} bits");
                }
            }
        }
    }

    /// Goal: a page that contradicts itself is damage: other blocks than there are, another number of values, a width that no number
    /// has, an early end.
    #[test]
    fn a_page_that_contradicts_itself_is_damage() {
        let mut sound = Vec::new();
        encode(&[7_i64, 5, 3, 1, 2, 3, 4, 5], &mut sound);
        let decoded = |page: &[u8], count| decode(page, count, true, &mut Vec::new());
        assert_eq!(decoded(&sound, 8), Ok(()));
        assert_eq!(decoded(&sound, 7), Err(Damaged));
        assert_eq!(decoded(&sound, 9), Err(Damaged));
        (0..sound.len()).for_each(|length| assert_eq!(decoded(&sound[..length], 8), Err(Damaged), "{length} bytes"));
        // The block: 0, 4,096 and 130 values. Parts: none, 3, 8 (of 16 values).
        for (at, bytes) in [(0, [0x80, 0]), (0, [0x80, 0x20]), (0, [0x82, 0x01])] {
            let mut forged = sound.clone();
            forged[at..at + 2].copy_from_slice(&bytes);
            assert_eq!(decoded(&forged, 8), Err(Damaged), "{bytes:?}");
        }
        for (at, byte) in [(2, 0), (2, 3), (2, 8), (6, 65), (6, 0xff)] {
            let mut forged = sound.clone();
            forged[at] = byte;
            assert_eq!(decoded(&forged, 8), Err(Damaged), "byte {at} is {byte}");
        }
    }

    /// Packing is undone bit by bit, for every width.
    #[test]
    fn values_are_packed_with_every_width() {
        for width in 1..=64_u32 {
            let values: [u64; MINIBLOCK] = std::array::from_fn(|number| {
                trueio_model::mix64(number as u64 ^ u64::from(width) << 32) >> (64 - width)
            });
            let mut out = vec![0xee];
            append_packed(&values, width, &mut out);
            assert_eq!(out.len(), 1 + 4 * width as usize);
            for (number, value) in values.iter().enumerate() {
                let bit = |bit: u32| {
                    let at = number as u32 * width + bit;
                    u64::from(out[1 + at as usize / 8] >> (at % 8) & 1)
                };
                let read = (0..width).fold(0, |read, at| read | bit(at) << at);
                assert_eq!(read, *value, "width {width}, value {number}");
            }
        }
    }
}
