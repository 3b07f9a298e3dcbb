//! The encoding DELTA_BINARY_PACKED of Parquet, written for columns that are known in advance.
//!
//! A block has 128 differences to the value before, of which the least is stored once; what each exceeds it by is packed into as many bits
//! as the largest of 32 needs. The crate `parquet` has an encoder that takes one value at a time and any type: for the ten columns of
//! a trace it took most of the time that a trace costs. This one takes whole slices, so that the compiler uses vectors.
//!
//! Source: Apache Parquet, "Parquet encoding definitions", section "Delta Encoding (DELTA_BINARY_PACKED = 5)". Differences wrap around in the
//! width of the column, as that section demands.

/// Values of a block.
const BLOCK: usize = 128;
/// Values that are packed with one width: a fourth of a block.
const MINIBLOCK: usize = 32;

/// A value of a column: 32 or 64 bits.
pub(crate) trait Value: Copy + Ord + Default {
    /// Returns the difference, which wraps around in the width of the type.
    fn minus(self, other: Self) -> Self;
    /// Returns the bits of a difference that is not negative, as a number of the type's width without a sign.
    fn bits(self) -> u64;
    fn wide(self) -> i64;
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

/// Appends `values`, encoded.
pub(crate) fn encode<V: Value>(values: &[V], out: &mut Vec<u8>) {
    append_varint(out, BLOCK as u64);
    append_varint(out, (BLOCK / MINIBLOCK) as u64);
    append_varint(out, values.len() as u64);
    let Some((first, rest)) = values.split_first() else {
        append_zigzag(out, 0);
        return;
    };
    append_zigzag(out, first.wide());
    let mut before = *first;
    for block in rest.chunks(BLOCK) {
        append_block(before, block, out);
        before = block[block.len() - 1];
    }
}

fn append_block<V: Value>(before: V, values: &[V], out: &mut Vec<u8>) {
    let mut deltas = [V::default(); BLOCK];
    let deltas = &mut deltas[..values.len()];
    deltas[0] = values[0].minus(before);
    for (delta, pair) in deltas[1..].iter_mut().zip(values.windows(2)) {
        *delta = pair[1].minus(pair[0]);
    }
    let least = deltas.iter().copied().min().unwrap_or_default();
    append_zigzag(out, least.wide());
    let widths_at = out.len();
    // A width of zero also for the quarters without a value, which have no bytes.
    out.extend_from_slice(&[0; BLOCK / MINIBLOCK]);
    for (number, quarter) in deltas.chunks(MINIBLOCK).enumerate() {
        let mut above = [0_u64; MINIBLOCK];
        let mut any = 0;
        for (above, delta) in above.iter_mut().zip(quarter) {
            *above = delta.minus(least).bits();
            any |= *above;
        }
        let width = u64::BITS - any.leading_zeros();
        out[widths_at + number] = width as u8;
        append_packed(&above, width, out);
    }
}

/// Appends each value in `width` bits, the least significant first: `4 * width` bytes.
fn append_packed(values: &[u64; MINIBLOCK], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let mut bytes = [0; MINIBLOCK * 8];
    let (mut word, mut filled, mut at) = (0, 0, 0);
    for value in values {
        word |= value << filled;
        filled += width;
        if filled >= u64::BITS {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            at += 8;
            filled -= u64::BITS;
            // The bits that did not fit; none of them if the value ended with the word.
            word = value.checked_shr(width - filled).unwrap_or(0);
        }
    }
    bytes[at..at + 8 * usize::from(filled > 0)].copy_from_slice(&word.to_le_bytes()[..8 * usize::from(filled > 0)]);
    out.extend_from_slice(&bytes[..width as usize * MINIBLOCK / 8]);
}

/// A number in groups of seven bits, the least significant first (ULEB128).
fn append_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A signed number as a varint: 0, -1, 1, -2, … become 0, 1, 2, 3, ….
fn append_zigzag(out: &mut Vec<u8>, number: i64) {
    append_varint(out, ((number << 1) ^ (number >> 63)) as u64);
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
