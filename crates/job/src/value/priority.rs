//! Parses shares of the I/Os with separate priorities: `4k/10/2/1:*/5/3/0`, for reads and for writes.

use super::{read_block_bytes, read_percent, write_bytes};
use trueio_model::{IoPriority, OpKind, PriorityShare};

/// Maximum number of shares of one direction.
const SHARES_MAX: usize = 64;

/// Parses `READS[,WRITES]`; a single list is for both.
pub(super) fn read(text: &str) -> Result<Vec<PriorityShare>, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let (reads, writes) = match parts[..] {
        [both] => (both, both),
        [reads, writes] => (reads, writes),
        _ => return Err(format!("`{text}` has {} lists; reads and writes are two", parts.len())),
    };
    let mut shares = direction(reads, OpKind::Read)?;
    shares.extend(direction(writes, OpKind::Write)?);
    if shares.is_empty() {
        return Err(format!("`{text}` gives no I/O a priority"));
    }
    Ok(shares)
}

fn direction(text: &str, op: OpKind) -> Result<Vec<PriorityShare>, String> {
    let mut shares: Vec<PriorityShare> = Vec::new();
    for entry in text.split(':').map(str::trim).filter(|entry| !entry.is_empty()) {
        let share = share(entry, op)?;
        // A share of 0 % is omitted, as in fio.
        if share.percent > 0 {
            shares.push(share);
        }
    }
    for one in &shares {
        // A share of any size applies to this size, too.
        let concerns = |other: &&PriorityShare| {
            other.length_bytes.is_none() || one.length_bytes.is_none_or(|bytes| other.length_bytes == Some(bytes))
        };
        let sum: u32 = shares.iter().filter(concerns).map(|share| u32::from(share.percent)).sum();
        let is_each = one.length_bytes.is_some() || shares.iter().all(|share| share.length_bytes.is_none());
        if is_each && sum > 100 {
            let of = one.length_bytes.map_or("one size".to_owned(), |bytes| write_bytes(u64::from(bytes)));
            return Err(format!("the percentages of {of} sum to {sum}, which is more than 100"));
        }
    }
    if shares.len() > SHARES_MAX {
        return Err(format!("{} shares are more than {SHARES_MAX}", shares.len()));
    }
    Ok(shares)
}

fn share(entry: &str, op: OpKind) -> Result<PriorityShare, String> {
    let fields: Vec<&str> = entry.split('/').map(str::trim).collect();
    let (size, percent, class, level, hint) = match fields[..] {
        // As in fio, the highest priority.
        [size, percent] => (size, percent, "1", "0", "0"),
        [size, percent, class, level] => (size, percent, class, level, "0"),
        [size, percent, class, level, hint] => (size, percent, class, level, hint),
        _ => return Err(format!("`{entry}` is not SIZE/PERCENT/CLASS/LEVEL[/HINT], such as `4k/10/2/1`")),
    };
    let number = |what: &str, text: &str, least: u16, most: u16| {
        let number = text.parse::<u16>().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("the {what} `{text}` of `{entry}` is not a number from {least} to {most}"))
    };
    let length_bytes = match size {
        "*" => None,
        size => Some(read_block_bytes(size)? as u32),
    };
    let priority = IoPriority {
        class: number("class", class, 1, 3)? as u8,
        level: number("level", level, 0, 7)? as u8,
        hint: number("hint", hint, 0, 1023)?,
    };
    Ok(PriorityShare { op, length_bytes, percent: read_percent(percent)?, priority })
}

/// Returns the canonical text.
pub(super) fn write(shares: &[PriorityShare]) -> String {
    let of = |op: OpKind| {
        let shares = shares.iter().filter(|share| share.op == op).map(|share| {
            let size = share.length_bytes.map_or("*".to_owned(), |bytes| write_bytes(u64::from(bytes)));
            format!("{size}/{}/{}", share.percent, share.priority)
        });
        shares.collect::<Vec<_>>().join(":")
    };
    let (reads, writes) = (of(OpKind::Read), of(OpKind::Write));
    if reads == writes { reads } else { format!("{reads},{writes}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_and_written_for_reads_and_writes() {
        for (text, canonical) in [
            ("*/20", "*/20/1/0"),
            ("4096/10/2/1:64k/5/3/0", "4k/10/2/1:64k/5/3/0"),
            ("4k/10/2/1/7 , ", "4k/10/2/1/7,"),
            (",*/100/3/0", ",*/100/3/0"),
            ("4k/0:8k/1/2/7,8k/1/2/7", "8k/1/2/7"),
            ("4k/70/2/1:*/30/3/0", "4k/70/2/1:*/30/3/0"),
            ("4k/70/2/1:8k/70/2/1", "4k/70/2/1:8k/70/2/1"),
        ] {
            let shares = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(write(&shares), canonical, "{text}");
            assert_eq!(read(canonical).as_ref(), Ok(&shares), "{text}");
        }
    }

    #[test]
    fn impossible_priorities_and_sums_are_refused() {
        for (text, needle) in [
            ("", "no I/O a priority"),
            (",", "no I/O a priority"),
            ("4k/0", "no I/O a priority"),
            ("4k", "SIZE/PERCENT"),
            ("4k/10/2", "SIZE/PERCENT"),
            ("4k/10/4/0", "from 1 to 3"),
            ("4k/10/0/0", "from 1 to 3"),
            ("4k/10/2/8", "from 0 to 7"),
            ("4k/10/2/0/1024", "from 0 to 1023"),
            ("4k/101/2/0", "percentage"),
            ("0/10/2/0", "transfers nothing"),
            ("4k/70/2/0:4k/40/3/0", "sum to 110"),
            ("4k/70/2/0:*/40/3/0", "sum to 110"),
            ("*/70/2/0:*/40/3/0", "sum to 110"),
            ("a,b,c", "3 lists"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(needle), "{text}: {error}");
        }
    }
}
