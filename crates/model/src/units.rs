//! Parses sizes and durations with units, and formats figures with units.
//!
//! MiB is 2^20 bytes and MB is 10^6, in every output. In input `k`, `m`, `g`, `t` are powers of
//! 1024 as in fio (`4k` is 4096 bytes), `KiB`… too, and `kB`, `MB`… are powers of 1000 only when
//! written with a capital B and without the i.

/// Parses a size: `4096`, `4k`, `4KiB`, `1.5m`, `10MB`, `0x1000`.
///
/// # Errors
/// A sentence that states why the text is invalid.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).map_err(|_| format!("`{text}` is not a hexadecimal number"));
    }
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    let factor: u64 = match unit {
        "" | "B" | "b" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        other => match other.to_ascii_lowercase().as_str() {
            "k" | "ki" | "kib" | "kb" => 1 << 10,
            "m" | "mi" | "mib" | "mb" => 1 << 20,
            "g" | "gi" | "gib" | "gb" => 1 << 30,
            "t" | "ti" | "tib" | "tb" => 1 << 40,
            "p" | "pi" | "pib" | "pb" => 1 << 50,
            _ => {
                return Err(format!(
                    "`{unit}` is not a unit of size; use k, m, g, t (powers of 1024) or MB, GB (1000)"
                ));
            }
        },
    };
    scaled(number, factor).ok_or_else(|| format!("`{text}` is not a size, such as `4k`, `1m` or `10g`"))
}

/// Parses a duration as nanoseconds: `30s`, `100ms`, `50us`, `2m`, `1h`; without a unit, seconds.
///
/// # Errors
/// A sentence that states why the text is invalid.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    let factor: u64 = match unit {
        "ns" => 1,
        "us" | "µs" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "" | "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        "d" => 86_400 * 1_000_000_000,
        _ => return Err(format!("`{unit}` is not a unit of time; use ns, us, ms, s, m, h or d")),
    };
    scaled(number, factor).ok_or_else(|| format!("`{text}` is not a duration, such as `30s` or `100ms`"))
}

/// `number · factor`, exactly for whole numbers, rounded for fractions; `None` if it is not a
/// number or does not fit.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value = number.parse::<f64>().ok()? * factor as f64;
    (value.is_finite() && (0.0..=9.0e18).contains(&value)).then(|| value.round() as u64)
}

/// Formats a size: `4 KiB`, `1.50 GiB`, `512 B`.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{} {}", three_digits(value), UNITS[unit])
    }
}

/// Formats a bandwidth: `1.42 GiB/s`, `371 B/s`; no fraction of a byte: `< 1 B/s`.
pub fn format_bandwidth(bytes_per_s: f64) -> String {
    let mut unit = 0;
    let mut value = bytes_per_s;
    const UNITS: [&str; 5] = ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"];
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 if value > 0.0 && value < 1.0 => "< 1 B/s".to_owned(),
        0 => format!("{value:.0} B/s"),
        _ => format!("{} {}", three_digits(value), UNITS[unit]),
    }
}

/// Formats a duration: `84.2 µs`, `2.10 ms`, `12.0 s`.
pub fn format_duration_ns(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", three_digits(value / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", three_digits(value / 1e6)),
        _ if ns < 600_000_000_000 => format!("{} s", three_digits(value / 1e9)),
        _ => format!("{} min", three_digits(value / 60e9)),
    }
}

/// Formats a count with thousands separators: `371,000`.
pub fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Three significant digits, no exponent: `1.42`, `84.2`, `371`.
pub fn three_digits(value: f64) -> String {
    if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Formats a ratio with three digits, a small one with two significant digits: `1.42`, `0.47`, `0.0019`.
pub fn format_ratio(ratio: f64) -> String {
    if ratio >= 0.1 || ratio <= 0.0 || !ratio.is_finite() {
        return three_digits(ratio);
    }
    let decimals = (1 - ratio.log10().floor() as i32).clamp(2, 12) as usize;
    format!("{ratio:.decimals$}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_small_ratio_keeps_two_digits() {
        for (ratio, text) in [
            (1.423, "1.42"),
            (847.0, "847"),
            (0.47, "0.47"),
            (0.0527, "0.053"),
            (0.00189, "0.0019"),
            (0.000121, "0.00012"),
            (0.0, "0.00"),
        ] {
            assert_eq!(super::format_ratio(ratio), text);
        }
    }

    use super::*;

    #[test]
    fn sizes_are_read_as_fio_reads_them_and_si_needs_a_capital_b() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4k", 4096),
            ("4KiB", 4096),
            ("1.5m", 1_572_864),
            ("10MB", 10_000_000),
            ("0x1000", 4096),
            ("1t", 1 << 40),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "k", "4x", "4kfoo", "-4k", "1e30", "99999999t", "."] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_seconds_unless_they_say_otherwise() {
        for (text, ns) in [
            ("30", 30_000_000_000),
            ("100ms", 100_000_000),
            ("50us", 50_000),
            ("1.5s", 1_500_000_000),
            ("2m", 120_000_000_000),
        ] {
            assert_eq!(parse_duration_ns(text), Ok(ns), "{text}");
        }
        assert!(parse_duration_ns("5 weeks").is_err());
    }

    #[test]
    fn figures_for_people_have_three_digits_and_their_unit() {
        assert_eq!(format_bytes(4096), "4 KiB");
        assert_eq!(format_bytes(1_610_612_736), "1.50 GiB");
        assert_eq!(format_bandwidth(1_524_713_390.0), "1.42 GiB/s");
        for (bytes_per_s, text) in
            [(0.0, "0 B/s"), (0.01, "< 1 B/s"), (7.3, "7 B/s"), (371.0, "371 B/s"), (1_000.0, "0.98 KiB/s")]
        {
            assert_eq!(format_bandwidth(bytes_per_s), text);
        }
        assert_eq!(format_duration_ns(84_210), "84.2 µs");
        assert_eq!(format_duration_ns(999), "999 ns");
        assert_eq!(format_count(1_234_567), "1,234,567");
    }
}
