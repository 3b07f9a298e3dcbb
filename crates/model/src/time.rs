//! Formats and parses UTC timestamps.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// Formats seconds since 1970-01-01 UTC as `2026-11-20T20:28:32Z`; later than the year 9999: its last second.
pub fn format_utc(unix_s: u64) -> String {
    format_utc_as(unix_s, "%Y-%m-%dT%H:%M:%SZ")
}

/// The same in a format of strftime(3), whose directives must be valid.
pub fn format_utc_as(unix_s: u64, format: &str) -> String {
    let moment = i64::try_from(unix_s).ok().and_then(|unix_s| Timestamp::from_second(unix_s).ok());
    moment.unwrap_or(Timestamp::MAX).strftime(format).to_string()
}

/// Seconds since 1970-01-01 UTC of `2026-11-20`, `2026-11-20T20:28`, `2026-11-20 20:28:32` or the same
/// with a `Z`; `None` if it is invalid or earlier. A fraction of a second is dropped.
pub fn parse_utc(text: &str) -> Option<u64> {
    let moment: DateTime = text.trim().trim_end_matches(['Z', 'z']).parse().ok()?;
    u64::try_from(Offset::UTC.to_timestamp(moment).ok()?.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments_are_written_and_read() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_206_512, "2026-11-20T20:28:32Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(format_utc(unix_s), text);
            assert_eq!(parse_utc(text), Some(unix_s));
        }
        assert_eq!(parse_utc("2026-11-20"), Some(1_795_206_512 - 20 * 3600 - 28 * 60 - 32));
        assert_eq!(parse_utc("2026-11-20 20:28"), Some(1_795_206_512 - 32));
        for text in [
            "",
            "yesterday",
            "2026-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "1969-12-31",
            "2026-1-1",
            "2026-01-01T24:00",
        ] {
            assert_eq!(parse_utc(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_second_until_the_year_9999_comes_back(unix_s in 0u64..253_402_300_800) {
            prop_assert_eq!(parse_utc(&format_utc(unix_s)), Some(unix_s));
        }

        #[test]
        fn no_text_and_no_number_panics(text in "\\PC{0,25}", unix_s in any::<u64>()) {
            let _ = parse_utc(&text);
            let _ = format_utc(unix_s);
        }
    }
}
