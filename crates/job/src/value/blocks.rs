//! Sizes of blocks: one, a range or a weighted split, of reads, writes and trims.

use super::{Value, read_block_bytes, read_percent, write_bytes};
use trueio_model::BlockSizes;

/// Block size where a list of block sizes leaves one out (`bs = "8k,"`), in bytes.
const BLOCK_BYTES_DEFAULT: u64 = 4096;

/// Parses `read,write,trim`: one value is for all, of two the second is also for trims, and an empty one
/// keeps the default block size, as in fio.
pub(super) fn read_triple(text: &str, read: impl Fn(&str) -> Result<BlockSizes, String>) -> Result<Value, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err(format!("`{text}` has {} values; read, write and trim are three", parts.len()));
    }
    if parts.iter().all(|part| part.is_empty()) {
        return Err("no size is given".into());
    }
    let one = |index: usize| -> Result<BlockSizes, String> {
        match parts[index.min(parts.len() - 1)] {
            "" => Ok(BlockSizes::Fixed(BLOCK_BYTES_DEFAULT)),
            part => read(part),
        }
    };
    Ok(Value::Sizes(Box::new([one(0)?, one(1)?, one(2)?])))
}

pub(super) fn read_block_range(text: &str) -> Result<BlockSizes, String> {
    let (low, high) = text
        .split_once(['-', ':'])
        .ok_or_else(|| format!("`{text}` is not a range; write the smallest and the largest, such as `4k-64k`"))?;
    let (low, high) = (read_block_bytes(low)?, read_block_bytes(high)?);
    Ok(BlockSizes::Range { min_bytes: low.min(high), max_bytes: low.max(high) })
}

/// Parses `4k/60:64k/40`. A blank percentage gets an equal share of the rest; a remainder of the division
/// goes to the first blanks, so `4k/:8k/:16k/` is 34, 33, 33.
pub(super) fn read_block_split(text: &str) -> Result<BlockSizes, String> {
    let mut pairs: Vec<(u64, Option<u32>)> = Vec::new();
    for part in text.split(':') {
        let (size, weight) = part.split_once('/').unwrap_or((part, ""));
        let weight = match weight.trim() {
            "" => None,
            weight => Some(u32::from(read_percent(weight)?)),
        };
        pairs.push((read_block_bytes(size)?, weight));
    }
    let sum: u32 = pairs.iter().filter_map(|p| p.1).sum();
    let blanks = pairs.iter().filter(|p| p.1.is_none()).count() as u32;
    if sum > 100 || (blanks == 0 && sum != 100) {
        return Err(format!("the percentages of `{text}` sum to {sum}, not to 100"));
    }
    if blanks > 0 && 100 - sum < blanks {
        return Err(format!("the percentages of `{text}` sum to {sum} and leave nothing for the blank ones"));
    }
    let mut blank = 0;
    let weighted = pairs
        .into_iter()
        .map(|(size, weight)| {
            let weight = weight.unwrap_or_else(|| {
                blank += 1;
                (100 - sum) / blanks + u32::from(blank <= (100 - sum) % blanks)
            });
            (size, weight)
        })
        .collect();
    Ok(BlockSizes::Weighted(weighted))
}

pub(super) fn write_triple(sizes: &[BlockSizes; 3]) -> String {
    let one = |sizes: &BlockSizes| match sizes {
        BlockSizes::Fixed(bytes) => write_bytes(*bytes),
        BlockSizes::Range { min_bytes, max_bytes } => {
            format!("{}-{}", write_bytes(*min_bytes), write_bytes(*max_bytes))
        }
        BlockSizes::Weighted(pairs) => {
            pairs.iter().map(|(size, weight)| format!("{}/{weight}", write_bytes(*size))).collect::<Vec<_>>().join(":")
        }
    };
    if sizes[0] == sizes[1] && sizes[1] == sizes[2] {
        return one(&sizes[0]);
    }
    sizes.iter().map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::super::{Value, ValueKind, canonical};

    #[test]
    fn the_last_of_several_block_sizes_is_for_the_rest_and_a_blank_is_the_default() {
        let sizes = |text| match ValueKind::BlockSizes.read(text) {
            Ok(Value::Sizes(sizes)) => sizes.map(|s| s.max_bytes()),
            other => panic!("{other:?}"),
        };
        assert_eq!(sizes("8k"), [8192, 8192, 8192]);
        assert_eq!(sizes("8k,32k"), [8192, 32_768, 32_768]);
        assert_eq!(sizes("8k,"), [8192, 4096, 4096]);
        assert_eq!(sizes(",16k,1m"), [4096, 16_384, 1 << 20]);
    }

    #[test]
    fn blank_weights_of_a_split_share_the_rest_and_a_wrong_sum_is_named() {
        assert_eq!(canonical(ValueKind::BlockSplits, "4k/:8k/:16k/"), Ok("4k/34:8k/33:16k/33".into()));
        assert_eq!(canonical(ValueKind::BlockSplits, "4k/50:64k"), Ok("4k/50:64k/50".into()));
        let error = canonical(ValueKind::BlockSplits, "4k/80:8k/80").unwrap_err();
        assert_eq!(error, "the percentages of `4k/80:8k/80` sum to 160, not to 100");
        assert!(canonical(ValueKind::BlockSplits, "4k/100:8k/").is_err());
    }

    #[test]
    fn a_reversed_range_is_put_in_order() {
        assert_eq!(canonical(ValueKind::BlockRanges, "64k:4k"), Ok("4k-64k".into()));
        assert!(canonical(ValueKind::BlockRanges, "4k").is_err());
    }
}
