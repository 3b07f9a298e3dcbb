//! Formats and parses UTC timestamps by arithmetic alone.
//!
//! Source: the Gregorian calendar repeats every 400 years, which are 146,097 days; the conversion
//! counts years from March, so that the leap day is a year's last (Howard Hinnant, "chrono-Compatible
//! Low-Level Date Algorithms").

const DAY_S: u64 = 86_400;

/// Formats seconds since 1970-01-01 UTC as `2026-11-20T20:28:32Z`.
pub fn format_utc(unix_s: u64) -> String {
    let (year, month, day) = civil(unix_s / DAY_S);
    let s = unix_s % DAY_S;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", s / 3600, s / 60 % 60, s % 60)
}

/// Seconds since 1970-01-01 UTC of `2026-11-20`, `2026-11-20T20:28`, `2026-11-20 20:28:32` or the same
/// with a `Z`; `None` if it is invalid or earlier.
pub fn parse_utc(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches(['Z', 'z']);
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, "00:00"));
    let number = |text: &str, width: usize| {
        (text.len() == width && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<u64>().ok()).flatten()
    };
    let mut parts = date.split('-');
    let (year, month, day) = (number(parts.next()?, 4)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let mut clock = time.split(':');
    let (hours, minutes) = (number(clock.next()?, 2)?, number(clock.next()?, 2)?);
    let seconds = clock.next().map_or(Some(0), |text| number(text, 2))?;
    if parts.next().is_some() || clock.next().is_some() || hours > 23 || minutes > 59 || seconds > 59 || year < 1970 {
        return None;
    }
    let (shifted_year, shifted_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_of_year = (153 * shifted_month + 2) / 5 + day.checked_sub(1)?;
    let days = (shifted_year * 365 + shifted_year / 4 - shifted_year / 100 + shifted_year / 400 + days_of_year)
        .checked_sub(DAYS_TO_1970)?;
    // Converted back, an invalid date such as the 31st of April differs.
    (civil(days) == (year, month, day)).then_some(days * DAY_S + hours * 3600 + minutes * 60 + seconds)
}

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: u64 = 719_468;

/// Year, month and day, from days since 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_TO_1970;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
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
