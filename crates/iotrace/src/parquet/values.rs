//! Chunks of optional values: texts, integers and real numbers, with a dictionary where that is shorter.

use super::thrift::append_varint;
use super::{Chunk, Encoding};
use std::collections::HashMap;
use std::io;

/// A value of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Of [`super::Kind::Text`].
    Text(&'a str),
    /// Of [`super::Kind::Int64`].
    Integer(i64),
    /// Of [`super::Kind::Double`].
    Real(f64),
}

impl Value<'_> {
    fn append_plain(self, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Text(text) => {
                let length = u32::try_from(text.len()).map_err(io::Error::other)?;
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }
            Self::Integer(number) => out.extend_from_slice(&number.to_le_bytes()),
            Self::Real(number) => out.extend_from_slice(&number.to_le_bytes()),
        }
        Ok(())
    }
}

/// Encodes the values of an optional column, all of its type, as one page and maybe a dictionary.
///
/// # Errors
/// The page would be larger than 2 GiB.
pub fn chunk_of<'a>(values: impl Iterator<Item = Option<Value<'a>>>) -> io::Result<Chunk> {
    // Level 1: present, 0: absent. The values of absent ones are not written.
    let (mut levels, mut plain, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for value in values {
        levels.push(u32::from(value.is_some()));
        if let Some(value) = value {
            value.append_plain(&mut plain)?;
            ends.push(plain.len());
        }
    }
    let rows = levels.len();
    let mut numbers: HashMap<&[u8], u32> = HashMap::new();
    let (mut dictionary, mut indices, mut begin) = (Vec::new(), Vec::with_capacity(ends.len()), 0);
    for end in ends {
        let value = &plain[begin..end];
        let next = numbers.len() as u32;
        indices.push(*numbers.entry(value).or_insert_with(|| {
            dictionary.extend_from_slice(value);
            next
        }));
        begin = end;
    }
    let count = numbers.len();
    let width = u32::BITS - (count.saturating_sub(1) as u32).leading_zeros();
    let mut indexed = vec![width as u8];
    append_hybrid(&indices, width, &mut indexed);

    let mut page = vec![0; 4];
    append_hybrid(&levels, 1, &mut page);
    let length = (page.len() - 4) as u32;
    page[..4].copy_from_slice(&length.to_le_bytes());
    let mut chunk = Chunk::default();
    if dictionary.len() + indexed.len() < plain.len() {
        chunk.add_dictionary(count, &dictionary)?;
        page.append(&mut indexed);
        chunk.add_page(rows, Encoding::RleDictionary, &page)?;
    } else {
        page.append(&mut plain);
        chunk.add_page(rows, Encoding::Plain, &page)?;
    }
    Ok(chunk)
}

/// Values that are packed together, and the least that are worth a run of their own.
const GROUP: usize = 8;

/// Appends numbers of `width` bits as runs of the same number, and as packed groups where there is none (RLE).
fn append_hybrid(mut numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    while let Some(first) = numbers.first() {
        let same = run_of(numbers);
        if same >= GROUP {
            append_varint(out, (same as u64) << 1);
            out.extend_from_slice(&first.to_le_bytes()[..width.div_ceil(8) as usize]);
            numbers = &numbers[same..];
            continue;
        }
        // Groups up to the next one that begins a run.
        let groups = 1 + numbers.chunks(GROUP).skip(1).take_while(|group| run_of(group) < GROUP).count();
        let (packed, rest) = numbers.split_at(numbers.len().min(groups * GROUP));
        append_varint(out, (groups as u64) << 1 | 1);
        for group in packed.chunks(GROUP) {
            // Of a short group the rest is 0. Eight numbers of 32 bits are 256 bits.
            let (mut bits, mut held) = (0_u64, 0);
            for index in 0..GROUP {
                bits |= u64::from(group.get(index).copied().unwrap_or(0)) << held;
                held += width;
                while held >= 8 {
                    out.push(bits as u8);
                    (bits, held) = (bits >> 8, held - 8);
                }
            }
        }
        numbers = rest;
    }
}

/// Returns how many of the first numbers are the same.
fn run_of(numbers: &[u32]) -> usize {
    numbers.iter().take_while(|number| **number == numbers[0]).count()
}
