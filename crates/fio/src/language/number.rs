//! Numbers that text follows: what fio reads of them, and what it ignores.

use super::options::{FioOption, Kind};
use trueio_job::option::OptionRow;
use trueio_job::value::ValueKind;

/// Options without a largest value in fio. Above the largest here nothing changes in what is measured: as much is never
/// reached, or is only kept in memory.
const CLAMPED: [&str; 12] = [
    "bwavgtime",
    "cpuload",
    "iopsavgtime",
    "log_avg_msec",
    "log_hist_coarseness",
    "log_hist_msec",
    "openfiles",
    "trim_backlog",
    "trim_backlog_batch",
    "verify_async",
    "verify_backlog",
    "verify_backlog_batch",
];

/// Returns the largest value of an option that a number exceeds, if that value has the same effect.
pub(super) fn clamped(row: &OptionRow, number: u64) -> Option<u64> {
    match row.kind {
        ValueKind::Count { max, .. } if number > max && CLAMPED.contains(&row.name) => Some(max),
        _ => None,
    }
}

/// Returns how many bytes of a value are read: of a calculation (`128*1`, `40+30`) fio reads the first number.
///
/// Only what an operator separates from the number is ignored. A unit that does not exist (`4kfoo`) is a mistake of
/// another size than the one that was asked for, and is refused.
pub(super) fn used_bytes(option: FioOption, text: &str) -> usize {
    let is_one_number = match option.row() {
        Some(row) => matches!(
            row.kind,
            ValueKind::Count { .. }
                | ValueKind::Integer { .. }
                | ValueKind::Bytes
                | ValueKind::Extent
                | ValueKind::Percent
                | ValueKind::Duration
                | ValueKind::DurationMicros
        ),
        None => matches!(option.kind(), Kind::Number | Kind::Time | Kind::Size),
    };
    if option.name() == "filesize" {
        return if text.contains([',', ':', '-']) { text.len() } else { used_of_part(text).len() };
    }
    let is_switch = match option.row() {
        Some(row) => row.kind == ValueKind::Bool,
        None => matches!(option.kind(), Kind::Flag | Kind::Bool),
    };
    // `per_job_logs=0/1`: of a switch fio reads the digits, and ignores all that follows.
    if is_switch && !text.starts_with("0x") && !text.starts_with("0X") {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        return if digits == 0 { text.len() } else { digits };
    }
    if !is_one_number || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return text.len();
    }
    // `size=64k:64k`: a list of sizes, of which fio reads the first.
    let is_size = option.row().is_some_and(|row| row.kind == ValueKind::Extent);
    let ends = |c: char| ['*', '+', '/', '^'].contains(&c) || (is_size && c == ':');
    let end = text.find(ends).unwrap_or(text.len());
    text[..end].trim_end().len()
}

/// Returns the size or range that fio reads of a `filesize` with several parts; `None`: it reads the value as typed.
///
/// `,`, `:` and `-` separate parts. The first is the smallest size, the last the largest; a last part that is no number
/// (`4k-`, `4k-x`) leaves one size. Of a part, an operator ends the number (`16-8k/8M-512M` is `16-512M`).
pub(super) fn file_range(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split([',', ':', '-']).map(|part| used_of_part(part).trim()).collect();
    let [first, .., last] = parts[..] else { return None };
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    if !is_number(first) {
        return None;
    }
    let range = if is_number(last) { format!("{first}-{last}") } else { first.to_owned() };
    Some(range).filter(|range| range != text)
}

/// Returns the part of a size before an operator.
fn used_of_part(part: &str) -> &str {
    part.find(['*', '+', '/', '^']).filter(|end| *end > 0).map_or(part, |end| &part[..end])
}
