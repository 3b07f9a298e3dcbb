//! Numbers that text follows: what fio reads of them, and what it ignores.

use super::options::{FioOption, Kind};
use super::value::{KbBase, is_fios_switch, read_number};
use std::ops::Range;
use trueio_job::option::OptionRow;
use trueio_job::options::limits::rows::STARTDELAY;
use trueio_job::options::output::rows::PERCENTILE_LIST;
use trueio_job::options::pattern::rows::RW;
use trueio_job::value::{PERCENTILES_MAX, ValueKind};

/// Options without a largest value in fio. Above the largest here nothing changes in what is measured: as much is never
/// reached (a ring of the kernel holds 32768 I/Os), or is only kept in memory.
const CLAMPED: [&str; 12] = [
    "bwavgtime",
    "cpuload",
    "iodepth",
    "iopsavgtime",
    "log_avg_msec",
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

/// Options whose bounds in fio are narrower than here: the smallest and the largest value.
const BOUNDS: [(&str, u64, u64); 10] = [
    ("ba", 1, u64::MAX),
    ("job_max_open_zones", 0, 4096),
    ("log_compression", 1 << 10, 512 << 20),
    ("log_entries", 1 << 10, 1 << 20),
    ("log_hist_coarseness", 0, 6),
    ("max_open_zones", 0, 4096),
    ("num_range", 0, 256),
    ("significant_figures", 1, 10),
    ("verify_interval", 96, u64::MAX),
    ("verify_offset", 48, u64::MAX),
];

/// The largest placement identifier of fio.
const PLACEMENT_ID_MAX: u64 = 0xffff;
/// The most placement identifiers of a job in fio.
const PLACEMENT_IDS_MAX: u64 = 128;

/// Returns what is wrong with a list of placement identifiers (`1,4-7`), which fio checks wherever they are used.
fn bad_placement(text: &str) -> Option<String> {
    let mut count = 0;
    for part in text.split(',').take_while(|part| !part.is_empty()) {
        let mut ends = part.split('-').map(leading_number);
        let first = ends.next().unwrap_or(0);
        let last = ends.next_back().unwrap_or(first);
        if first > last {
            return Some(format!("`{part}` is no range"));
        }
        count += last - first + 1;
        if last > PLACEMENT_ID_MAX || count > PLACEMENT_IDS_MAX {
            return Some(format!(
                "`{text}` is out of range: at most {PLACEMENT_IDS_MAX} numbers, and none above {PLACEMENT_ID_MAX}, as in fio"
            ));
        }
    }
    None
}

/// Returns the number that a text begins with, as strtoull(3) reads it.
fn leading_number(text: &str) -> u64 {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = digits.map_or((text, 10), |digits| (digits, 16));
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 { 0 } else { u64::from_str_radix(&digits[..end], radix).unwrap_or(u64::MAX >> 1) }
}

/// Returns what is wrong with a number outside of its bounds in fio; `None`: nothing, or it is no number.
pub(super) fn out_of_bounds(name: &str, text: &str, base: KbBase) -> Option<String> {
    if name == "plids" {
        return bad_placement(text);
    }
    let number = read_number(text.split(SEPARATORS).next().unwrap_or(text), base).ok()?;
    let message = match BOUNDS.iter().find(|(other, ..)| *other == name) {
        Some((_, least, _)) if number < *least => format!("the least value is {least}"),
        Some((_, _, most)) if number > *most => format!("the largest value is {most}"),
        None if name == "replay_align" && !number.is_power_of_two() => "the value is a power of two".to_owned(),
        _ => return None,
    };
    Some(format!("`{text}` is out of range: {message}, as in fio"))
}

/// Characters that separate the numbers of a list.
const SEPARATORS: [char; 3] = [',', ':', '-'];

/// Options of one number that keep the last of a list; all others keep the first.
const KEEP_LAST: [&str; 9] = [
    "buffer_compress_percentage",
    "dedupe_percentage",
    "io_size",
    "offset",
    "offset_increment",
    "rwmixread",
    "rwmixwrite",
    "size",
    "zoneskip",
];

/// Returns the bytes of a value that are read: of a calculation (`128*1`, `40+30`) fio reads the first number, and of a list
/// (`4k-8k`) for an option of one number the first or the last.
///
/// Only what an operator separates from the number is ignored. A unit that does not exist (`4kfoo`) is a mistake of
/// another size than the one that was asked for, and is refused.
pub(super) fn used(option: FioOption, text: &str) -> Range<usize> {
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
        return if text.contains(SEPARATORS) { 0..text.len() } else { 0..used_of_part(text).len() };
    }
    let is_switch = match option.row() {
        // (fio has no further words for these two.)
        Some(row) => is_fios_switch(row),
        None => matches!(option.kind(), Kind::Flag | Kind::Bool),
    };
    // `per_job_logs=0/1`: of a switch fio reads the digits, and ignores all that follows.
    if is_switch && !text.starts_with("0x") && !text.starts_with("0X") {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        return if digits == 0 { 0..text.len() } else { 0..digits };
    }
    if !is_one_number || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0..text.len();
    }
    // (A range from which a delay is drawn.)
    if option.name() == STARTDELAY.name {
        return 0..used_of_part(text).trim_end().len();
    }
    let mut used = 0..0;
    let mut begin = 0;
    for part in text.split(SEPARATORS) {
        let is_number = part.starts_with(|c: char| c.is_ascii_digit());
        if is_number && (begin == 0 || KEEP_LAST.contains(&option.name())) {
            used = begin..begin + used_of_part(part).trim_end().len();
        }
        begin += part.len() + 1;
    }
    used
}

/// Characters that separate the numbers of a list option; `None`: it is no list.
fn separators(option: FioOption) -> Option<&'static [char]> {
    let Some(row) = option.row() else {
        return (option.kind() == Kind::Floats).then_some(&[':']);
    };
    let separators: &[char] = match row.kind {
        ValueKind::BlockSizes | ValueKind::BytesEach | ValueKind::BlockRanges => &SEPARATORS,
        ValueKind::RateBytes | ValueKind::RateIops | ValueKind::Percents => &SEPARATORS,
        ValueKind::BlockSplits | ValueKind::Priorities => &[',', ':', '/'],
        ValueKind::Distribution | ValueKind::FileSelection => &[',', ':', '/'],
        ValueKind::Percentiles | ValueKind::Part | ValueKind::Criterion => &[':'],
        ValueKind::Cpus | ValueKind::Seed => &[',', '-'],
        ValueKind::RangeSync => &[':', ','],
        // The number of I/Os after the word (`rw=read:4k`).
        ValueKind::Choice(_) if row.name == RW.name => &[':'],
        _ => return None,
    };
    Some(separators)
}

/// Returns a list as fio reads it, and why it reads another one than was typed: of each calculation the first number, of more than
/// 20 percentiles the first 20. Numbers that are no percentiles, at which fio's list ends, are left out next to others; 0 alone is the default.
/// `None`: it reads the value as typed.
pub(super) fn list_read(option: FioOption, text: &str) -> Option<(String, &'static str)> {
    let separators = separators(option)?;
    let mut read = String::new();
    let mut rest = text;
    let mut count = 1;
    while let Some(at) = rest.find(separators) {
        read.push_str(used_of_item(&rest[..at]));
        if option.name() == PERCENTILE_LIST.name && count == PERCENTILES_MAX {
            return Some((read, "a list has at most 20 numbers"));
        }
        read.push_str(&rest[at..=at]);
        rest = &rest[at + 1..];
        count += 1;
    }
    read.push_str(used_of_item(rest));
    if option.name() == PERCENTILE_LIST.name {
        let number = |item: &str| item.trim().parse::<f64>().ok();
        let is_percentile = |item: &&str| number(item).is_none_or(|number| number > 0.0 && number <= 100.0);
        let kept: Vec<&str> = read.split(':').filter(is_percentile).collect();
        let has_only_zeros = || read.split(':').all(|item| number(item) == Some(0.0));
        if kept.len() < count && !kept.is_empty() {
            return Some((kept.join(":"), NO_PERCENTILE));
        } else if has_only_zeros() {
            return Some((option.default_text(), NO_PERCENTILE));
        }
    }
    (read != text).then_some((read, NOT_CALCULATED))
}

/// Why a number of a list of percentiles is left out.
const NO_PERCENTILE: &str = "a number that is not above 0 and up to 100 is no percentile, and ends fio's list";

/// Why fio reads the first number of a calculation only.
pub(super) const NOT_CALCULATED: &str = "nothing is calculated";

/// Returns true for a time of seconds or more with a unit (`1s`), which fio reads as microseconds if anything follows it.
pub(super) fn is_whole_time_only(option: FioOption, used: &str) -> bool {
    option.kind() == Kind::Time && used.ends_with(['s', 'S', 'm', 'M', 'h', 'H', 'd', 'D']) && {
        let unit = used.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
        unit.len() == 1
    }
}

/// Returns the part of an item of a list before an operator. A word, and a number such as `1e+1`, are whole.
fn used_of_item(item: &str) -> &str {
    let is_number = item.trim_start().starts_with(|c: char| c.is_ascii_digit());
    if !is_number || item.parse::<f64>().is_ok() { item } else { used_of_part(item).trim_end() }
}

/// Returns the size or range that fio reads of a `filesize` with several parts; `None`: it reads the value as typed.
///
/// `,`, `:` and `-` separate parts. The first is the smallest size, the last the largest; a last part that is no number
/// (`4k-`, `4k-x`) leaves one size. Of a part, an operator ends the number (`16-8k/8M-512M` is `16-512M`).
pub(super) fn file_range(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(SEPARATORS).map(|part| used_of_part(part).trim()).collect();
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
