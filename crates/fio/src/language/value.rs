//! Values as fio writes them: numbers with its suffixes, times with its units.
//!
//! Differences from this program's own values: `kib` is 1000 where `k`, `ki` and `kb` are 1024 (and the other
//! way round with `kb_base=1000`); a number may be hexadecimal anywhere; a bare time is
//! microseconds in some options. Differences from fio: a fraction counts (`1.5m`), `sec`, `min` and
//! `hours` are units, and text after a number that is not a unit is refused with its position; fio ignores it.
//!
//! Source: HOWTO of fio 3.42, "Parameter types"; the three-letter forms as measured on 3.33 and 3.42.

use trueio_job::option::OptionRow;
use trueio_job::options::durability::rows::{DIRECT, INVALIDATE};
use trueio_job::options::target::rows::{OFFSET, OFFSET_INCREMENT};
use trueio_job::table::value_hint;
use trueio_job::value::{EXTENT_BYTES_MAX, ValueKind, write_bytes, write_duration, zones};
use trueio_model::{bounded_switch_of, switch_of};

/// An invalid value, and the invalid part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadValue {
    /// What is wrong.
    pub(super) message: String,
    /// The part that is wrong: bytes of the value.
    pub(super) at: std::ops::Range<usize>,
}

impl BadValue {
    pub(super) fn whole(message: impl Into<String>, text: &str) -> Self {
        Self { message: message.into(), at: 0..text.len() }
    }

    /// The same, of a value that begins `by` bytes later.
    fn moved(self, by: usize) -> Self {
        Self { at: self.at.start + by..self.at.end + by, ..self }
    }
}

/// What `k` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum KbBase {
    /// 1024, fio's default.
    #[default]
    Binary,
    /// 1000.
    Decimal,
}

/// Digits with at most one point, and what follows them.
fn split_number(text: &str) -> (&str, &str) {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let end = match digits {
        Some(hex) => 2 + hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len()),
        None => text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len()),
    };
    text.split_at(end)
}

/// `number · factor`; what is left of a unit is cut off, as the fraction of a whole number in fio (`numjobs=2.5`). `None`: no number, or too large.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    if let Some(hex) = number.strip_prefix("0x").or_else(|| number.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok()?.checked_mul(factor);
    }
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value = number.parse::<f64>().ok()? * factor as f64;
    // (0.3 · 1000 may be a little less than 300.)
    let whole = if (value - value.round()).abs() < 1e-6 { value.round() } else { value.floor() };
    (value.is_finite() && (0.0..=9.0e18).contains(&value)).then_some(whole as u64)
}

/// Returns where a number begins, and the text from there on, without blanks and the sign of a positive number.
fn without_sign(text: &str) -> (usize, &str) {
    let begin = text.trim_start();
    let begin = begin.strip_prefix('+').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(begin);
    (text.len() - begin.len(), begin.trim_end())
}

/// Reads a number with fio's suffixes.
pub(super) fn read_number(text: &str, base: KbBase) -> Result<u64, BadValue> {
    let (lead, trimmed) = without_sign(text);
    let (number, suffix) = split_number(trimmed);
    let suffix_at = lead + number.len()..lead + trimmed.len();
    if number.is_empty() {
        return Err(BadValue::whole(format!("`{text}` is not a number, such as `4096`, `4k` or `1.5g`"), text));
    }
    let (binary, decimal) = match base {
        KbBase::Binary => (1024_u64, 1000_u64),
        KbBase::Decimal => (1000, 1024),
    };
    let suffix = suffix.trim().to_ascii_lowercase();
    let (power, ending) = match suffix.chars().next() {
        None | Some('b') => (0, suffix.as_str()),
        Some(letter) => match "kmgtp".find(letter) {
            Some(at) => (at as u32 + 1, &suffix[1..]),
            None if suffix == "z" => {
                let message = format!(
                    "`{trimmed}` counts zones, which only `size`, `offset`, `io_size`, `offset_increment` and `zoneskip` do"
                );
                return Err(BadValue { message, at: suffix_at });
            }
            None => (0, suffix.as_str()),
        },
    };
    let unit = match (power, ending) {
        (0, "" | "b") => 1,
        (1.., "" | "b" | "i") => binary.pow(power),
        (1.., "ib") => decimal.pow(power),
        _ => {
            // The part after its longest prefix that is a unit.
            let good = usize::from(power > 0) + usize::from(power > 0 && ending.starts_with('i'));
            let at = suffix_at.start + good..suffix_at.end;
            let rest = text.get(at.clone()).unwrap_or(&suffix).trim();
            let message = format!("`{rest}` after the number is not a unit; units are k, m, g, t, p");
            return Err(BadValue { message, at });
        }
    };
    scaled(number, unit)
        .ok_or_else(|| BadValue::whole(format!("`{trimmed}` is not a number that fits into 64 bits"), text))
}

/// Reads a size in bytes.
pub(super) fn read_size(text: &str, base: KbBase) -> Result<u64, BadValue> {
    let bytes = read_number(text, base)?;
    if bytes > EXTENT_BYTES_MAX {
        return Err(BadValue::whole(format!("`{text}` is more than a file can hold (2^63 − 1 bytes)"), text));
    }
    Ok(bytes)
}

/// Reads a time as nanoseconds; a bare number counts units of `bare_ns`.
pub(super) fn read_time_ns(text: &str, bare_ns: u64) -> Result<u64, BadValue> {
    let (lead, trimmed) = without_sign(text);
    let (number, unit) = split_number(trimmed);
    if number.is_empty() {
        return Err(BadValue::whole(format!("`{text}` is not a time, such as `30s` or `100ms`"), text));
    }
    const SECOND: u64 = 1_000_000_000;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" => bare_ns,
        "ns" | "nsec" => 1,
        "us" | "usec" | "µs" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600 * SECOND,
        "d" | "day" | "days" => 86_400 * SECOND,
        _ => {
            let at = lead + number.len()..lead + trimmed.len();
            let message = format!("`{}` is not a unit of time; units are us, ms, s, m, h, d", unit.trim());
            return Err(BadValue { message, at });
        }
    };
    scaled(number, factor).ok_or_else(|| BadValue::whole(format!("`{trimmed}` is too long a time"), text))
}

/// Reads each part of `text` between `separator`s, and joins what becomes of them.
fn each(text: &str, separator: char, read: impl Fn(&str) -> Result<String, BadValue>) -> Result<String, BadValue> {
    let mut out = String::new();
    let mut at = 0;
    for (index, part) in text.split(separator).enumerate() {
        if index > 0 {
            out.push(separator);
        }
        out.push_str(&read(part).map_err(|bad| bad.moved(at))?);
        at += part.len() + separator.len_utf8();
    }
    Ok(out)
}

/// Returns a list of numbers for reads, writes and trims, separated by commas. After the last comma fio also accepts colons,
/// or if there are none, hyphens.
pub(super) fn listed(text: &str) -> String {
    let (head, last) = text.split_at(text.rfind(',').map_or(0, |at| at + 1));
    let separator = if last.contains(':') { ":" } else { "-" };
    // A sign does not separate.
    if last.trim_start().starts_with('-') { text.to_owned() } else { format!("{head}{}", last.replace(separator, ",")) }
}

/// Returns a distribution of `file_service_type` as the row accepts it; `None`: it is another word.
pub(super) fn drawn_files(text: &str) -> Option<String> {
    let name = text.split(':').next().unwrap_or(text);
    if ["zipf", "pareto"].contains(&name) { Some(text.to_owned()) } else { normal(text) }
}

/// Returns a normal distribution with the deviation that fio draws with; `None`: it is another distribution.
///
/// The deviation of fio's `normal:DEV` is not DEV: fio takes the mean of twelve numbers of the whole range, which alone has a
/// deviation of a twelfth of it, and adds one from DEV percent of it, at most from half of it. Sources: `gauss_next` of lib/gauss.c; the
/// shares of files that fio 3.33 gives.
pub(super) fn normal(text: &str) -> Option<String> {
    let (name, numbers) = text.split_once(':').map_or((text, None), |(name, numbers)| (name, Some(numbers)));
    if !["normal", "gauss"].contains(&name) {
        return None;
    }
    let (deviation, center) =
        numbers.map_or(("0", ""), |numbers| numbers.split_at(numbers.find(':').unwrap_or(numbers.len())));
    let percent = deviation.parse::<f64>().ok().filter(|percent| (0.0..100.0).contains(percent));
    Some(percent.map_or(text.to_owned(), |percent| {
        let percent = percent.min(50.0);
        let deviation = ((100.0 / 12.0_f64).powi(2) + percent * percent / 12.0).sqrt();
        format!("normal:{deviation:.2}{center}")
    }))
}

/// Returns a `bssplit` with the shares that fio draws, where given percentages do not sum to 100: the sizes are ordered by their
/// percentage, the shares end at 100, and the last size takes what is left. `None`: they do, one is blank, or one is invalid.
pub(super) fn drawn_split(text: &str, base: KbBase) -> Option<String> {
    let drawn = |list: &str| -> Option<String> {
        let mut shares = Vec::new();
        for part in list.split(':') {
            let (size, percent) = part.split_once('/')?;
            read_size(size, base).ok()?;
            shares.push((size, percent.parse::<u64>().ok().filter(|percent| *percent <= 100)?));
        }
        if shares.iter().map(|share| share.1).sum::<u64>() == 100 {
            return Some(list.to_owned());
        }
        shares.sort_by_key(|share| share.1);
        let (mut left, last) = (100, shares.len() - 1);
        let shares = shares.into_iter().enumerate().map(|(index, (size, percent))| {
            let share = if index == last { left } else { percent.min(left) };
            left -= share;
            format!("{size}/{share}")
        });
        Some(shares.collect::<Vec<_>>().join(":"))
    };
    let lists: Option<Vec<String>> = text.split(',').map(drawn).collect();
    lists.map(|lists| lists.join(",")).filter(|drawn| drawn != text)
}

/// Returns a percentage without a fraction of zeros (`70.0`), which fio ignores, and in decimal digits (`0x32` is 50).
fn whole_percent(text: &str) -> String {
    let digits = text.trim().trim_end_matches('%');
    if digits.starts_with("0x") || digits.starts_with("0X") {
        return scaled(digits, 1).map_or_else(|| text.to_owned(), |percent| percent.to_string());
    }
    let whole = text.split_once('.').filter(|(_, zeros)| zeros.bytes().all(|byte| byte == b'0'));
    whole.map_or(text, |(whole, _)| whole).to_owned()
}

/// Returns a limit of `steadystate` in the unit of its figure: bytes a second (`bw:4k`), nanoseconds (`lat:10us`).
///
/// Of a limit of IOPS fio reads the number in front of a unit, and of one of latencies it takes microseconds for nanoseconds.
fn criterion(text: &str, base: KbBase) -> Result<String, BadValue> {
    let Some((name, limit)) = text.split_once(':').filter(|(_, limit)| !limit.trim_end().ends_with('%')) else {
        return Ok(text.to_owned());
    };
    let is_plain = limit.trim().parse::<f64>().is_ok();
    let number = match name.strip_suffix("_slope").unwrap_or(name) {
        _ if is_plain => return Ok(text.to_owned()),
        "lat" => read_time_ns(limit, 1),
        _ => read_number(limit, base),
    };
    Ok(format!("{name}:{}", number.map_err(|bad| bad.moved(name.len() + 1))?))
}

/// Returns the canonical text of a value of fio's for a row of the option table.
pub(super) fn translate(row: &OptionRow, text: &str, base: KbBase) -> Result<String, BadValue> {
    let size = |part: &str| match part.trim() {
        "" => Ok(String::new()),
        part_text if part_text.ends_with('%') => Ok(part_text.to_owned()),
        _ => read_size(part, base).map(write_bytes),
    };
    let size_range = |range: &str| match range.find(['-', ':']) {
        Some(at) => {
            let low = size(&range[..at])?;
            let high = size(&range[at + 1..]).map_err(|bad| bad.moved(at + 1))?;
            Ok(format!("{low}-{high}"))
        }
        None => size(range),
    };
    let ours = match row.kind {
        // A switch without a value is on.
        ValueKind::Bool if text.is_empty() => "true".to_owned(),
        ValueKind::Bool if row.is_flag_in_fio => match switch_of(text) {
            Some(is_on) => is_on.to_string(),
            None => text.to_owned(),
        },
        _ if is_fios_switch(row) => match bounded_switch_of(text) {
            Some(is_on) => u8::from(is_on).to_string(),
            None => text.to_owned(),
        },
        ValueKind::Extent if zones(text).is_some() => text.to_owned(),
        // What begins at the end of a file or beyond it has nothing left: all shares from 100 % on are alike.
        ValueKind::Extent if [OFFSET.name, OFFSET_INCREMENT.name].contains(&row.name) => {
            let share = text.trim().strip_suffix('%').and_then(|share| share.parse::<u64>().ok());
            if share.is_some_and(|share| share > 100) { "100%".to_owned() } else { size(text)? }
        }
        ValueKind::Bytes | ValueKind::Extent => size(text)?,
        ValueKind::BlockSizes | ValueKind::BytesEach | ValueKind::RateBytes => each(&listed(text), ',', size)?,
        ValueKind::Percents => each(&listed(text), ',', |part| Ok(whole_percent(part)))?,
        ValueKind::RateIops => listed(text),
        ValueKind::BytesRange => size_range(text)?,
        ValueKind::BlockRanges => each(text, ',', size_range)?,
        ValueKind::BlockSplits => each(text, ',', |split| {
            each(split, ':', |part| match part.split_once('/') {
                Some((bytes, percent)) => Ok(format!("{}/{percent}", size(bytes)?)),
                None => size(part),
            })
        })?,
        ValueKind::Distribution if text.starts_with("zoned_abs:") => {
            each(text, ':', |part| match part.split_once('/') {
                Some((percent, bytes)) => {
                    Ok(format!("{percent}/{}", size(bytes).map_err(|bad| bad.moved(percent.len() + 1))?))
                }
                None => Ok(part.to_owned()),
            })?
        }
        ValueKind::Percent => whole_percent(text),
        ValueKind::Count { .. } => read_number(text, base)?.to_string(),
        ValueKind::Criterion => criterion(text, base)?,
        ValueKind::Duration => write_duration(read_time_ns(text, 1_000_000_000)?),
        ValueKind::DurationMicros => write_duration(read_time_ns(text, 1_000)?),
        _ => text.to_owned(),
    };
    row.canonical(&ours).map_err(|message| {
        let message = if is_fios_switch(row) { format!("`{text}` {NO_SWITCH}") } else { message };
        BadValue::whole(message, text)
    })
}

/// Why a value of a switch is refused. Its row has words of ours.
const NO_SWITCH: &str = "is not 0 or 1";

/// Returns true if fio has only 0 and 1 for an option.
pub(super) fn is_fios_switch(row: &OptionRow) -> bool {
    row.kind == ValueKind::Bool || [DIRECT.name, INVALIDATE.name].contains(&row.name)
}

/// Returns what an option takes, in fio's words, unless `reason` contains it already.
pub(super) fn hint(row: &OptionRow, text: &str, reason: &str) -> Option<String> {
    value_hint(row, text, reason).filter(|_| !reason.ends_with(NO_SWITCH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_job::table::row;

    fn number(text: &str) -> Result<u64, BadValue> {
        read_number(text, KbBase::Binary)
    }

    #[test]
    fn suffixes_are_those_of_fio_where_kib_is_1000() {
        for (text, value) in [
            ("4096", 4096),
            ("4096B", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("1mi", 1 << 20),
            ("1mib", 1_000_000),
            ("1KiB", 1000),
            ("0x1000", 4096),
            ("0x10k", 16 << 10),
            ("1g", 1 << 30),
            ("2t", 2 << 40),
            ("1p", 1 << 50),
        ] {
            assert_eq!(number(text), Ok(value), "{text}");
        }
        let decimal = |text| read_number(text, KbBase::Decimal);
        assert_eq!(decimal("4k"), Ok(4000));
        assert_eq!(decimal("4kib"), Ok(4096));
    }

    #[test]
    fn a_fraction_counts_and_text_that_is_not_a_unit_is_refused_with_its_position() {
        assert_eq!(number("1.5m"), Ok(3 << 19));
        assert_eq!([number("2.5"), number("0.3k"), number("1.7k")], [Ok(2), Ok(307), Ok(1740)]);
        let bad = number("4kfoo").unwrap_err();
        assert_eq!(
            (bad.at, bad.message.as_str()),
            (2..5, "`foo` after the number is not a unit; units are k, m, g, t, p")
        );
        assert_eq!(number("4 x").unwrap_err().at, 1..3);
        for text in ["", "k", "4x", "-1", "1..2", "99999999999999999999", "99999999p", "4kibb", "4ki4", "4z", "é", "1é"]
        {
            let bad = number(text).unwrap_err();
            assert!(text.get(bad.at.clone()).is_some(), "{text}: {bad:?}");
        }
    }

    #[test]
    fn times_may_have_units_and_a_bare_time_is_in_the_options_unit() {
        let time = |text| read_time_ns(text, 1_000_000_000);
        assert_eq!(time("1min"), Ok(60_000_000_000));
        assert_eq!(time("1sec"), Ok(1_000_000_000));
        assert_eq!(time("1.5s"), Ok(1_500_000_000));
        assert_eq!(time("30"), Ok(30_000_000_000));
        assert_eq!(time("2hours"), Ok(7_200_000_000_000));
        assert_eq!(read_time_ns("250", 1_000), Ok(250_000));
        assert_eq!(time("5 weeks").unwrap_err().at, 1..7);
    }

    #[test]
    fn lists_of_directions_become_lists_of_three_values() {
        let of = |name: &str, text: &str| translate(row(name).unwrap(), text, KbBase::Binary);
        assert_eq!(of("bs", "4k,8K").as_deref(), Ok("4k,8k,8k"));
        assert_eq!(of("bs", "1mib").as_deref(), Ok("1000000"));
        // After the last comma, colons and hyphens separate, too.
        for text in ["1k,2k", "1k:2k", "1k-2k"] {
            assert_eq!(of("bs", text).as_deref(), Ok("1k,2k,2k"), "{text}");
        }
        assert_eq!(of("bs", "1k:2k:8k").as_deref(), Ok("1k,2k,8k"));
        assert_eq!(of("bs", "1k,2k-8k").as_deref(), Ok("1k,2k,8k"));
        assert_eq!(of("bs", "1k-").as_deref(), Ok("1k,4k,4k"));
        // fio drops what follows the colon.
        assert_eq!(of("bs", "1k:2k,8k").unwrap_err().at, 2..5);
        assert_eq!(of("blockalign", "8k,16k").as_deref(), Ok("8k,16k,16k"));
        assert_eq!(of("blockalign", "8k:8k").as_deref(), Ok("8k"));
        assert_eq!(of("percentage_random", "100,0").as_deref(), Ok("100,0,0"));
        assert_eq!(of("percentage_random", "100-50").as_deref(), Ok("100,50,50"));
        assert_eq!(of("percentage_random", "50,").as_deref(), Ok("50,100,100"));
        assert_eq!(of("rate_min", "1mib:2m").as_deref(), Ok("1000000,2m,2m"));
        // (`%` after hexadecimal digits is dropped by fio: a size would be one of 50 bytes.)
        assert_eq!(of("percentage_random", "0x32,0X0a%").as_deref(), Ok("50,10,10"));
        assert_eq!(of("rwmixread", "0x32").as_deref(), Ok("50"));
        assert!(of("rwmixread", "0x65").is_err() && of("rwmixread", "0x").is_err() && of("size", "0x32%").is_err());
        assert!(of("percentage_random", "101").is_err() && of("percentage_random", "-1").is_err());
        assert!(of("percentage_random", "1,2,3,4").is_err());
        assert_eq!(of("bsrange", "4k-8k,16k:32k").as_deref(), Ok("4k-8k,16k-32k,16k-32k"));
        assert_eq!(of("bssplit", "4k/50:1k/:32k/").as_deref(), Ok("4k/50:1k/25:32k/25"));
        assert_eq!(of("size", "50%").as_deref(), Ok("50%"));
        assert_eq!(of("loops", "1k").as_deref(), Ok("1024"));
        assert_eq!(of("thinktime", "5").as_deref(), Ok("5us"));
        assert_eq!(of("bs", "4k,8kfoo").unwrap_err().at, 5..8);
        assert_eq!(of("bssplit", "4k/50:8kx/50").unwrap_err().at, 8..9);
        let bad = of("bssplit", "4k/80:8k/80").unwrap_err();
        assert_eq!(bad.message, "the percentages of `4k/80:8k/80` sum to 160, not to 100");
    }
    #[test]
    fn shares_that_do_not_sum_to_100_are_drawn_as_in_fio() {
        let drawn = |text: &str| drawn_split(text, KbBase::Binary);
        for (text, shares) in [
            ("4k/33:8k/33:16k/33", "4k/33:8k/33:16k/34"),
            ("4k/10:8k/10", "4k/10:8k/90"),
            ("4k/80:8k/80", "4k/80:8k/20"),
            ("4k/100:8k/50", "8k/50:4k/50"),
            ("8k/50:4k/80:16k/20", "16k/20:8k/50:4k/30"),
            ("4k/90", "4k/100"),
            ("4k/100,8k/50:16k/10", "4k/100,16k/10:8k/90"),
        ] {
            assert_eq!(drawn(text).as_deref(), Some(shares), "{text}");
        }
        for text in ["4k/50:8k/50", "4k/50:8k/", "4k/60:8k/50:16k/", "4k", "4k/101", "4kx/50:8k/10", "4k/", ""] {
            assert_eq!(drawn(text), None, "{text}");
        }
    }
    #[test]
    fn files_are_drawn_as_wide_as_fio_draws_them() {
        let drawn = |text: &str| drawn_files(text).unwrap_or_default();
        assert_eq!(drawn("zipf:1.2:0.3"), "zipf:1.2:0.3");
        assert_eq!(drawn("pareto"), "pareto");
        assert_eq!((drawn("gauss"), drawn("normal:0")), ("normal:8.33".into(), "normal:8.33".into()));
        assert_eq!((drawn("normal:20"), drawn("gauss:50:0.2")), ("normal:10.14".into(), "normal:16.67:0.2".into()));
        assert_eq!(drawn("normal:60"), "normal:16.67");
        // Refused later, as typed.
        assert_eq!((drawn("normal:"), drawn("normal:101")), ("normal:".into(), "normal:101".into()));
        assert_eq!(drawn_files("random"), None);
    }
}
