//! What names a record: a random number and the time it began.

/// 128 random bits as 32 hexadecimal digits.
pub(crate) fn random_id() -> String {
    let mut bytes = [0u8; 16];
    // SAFETY: the kernel writes at most 16 bytes into the array.
    let n = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    assert_eq!(n, 16, "getrandom gives up to 256 bytes at once after boot");
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Seconds since 1970-01-01 UTC, and the same as `2026-11-20T20:28:32Z`.
pub(crate) fn now() -> (u64, String) {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    (seconds, format_utc(seconds))
}

fn format_utc(seconds: u64) -> String {
    let time = seconds as libc::time_t;
    // SAFETY: gmtime_r fills the structure that is handed to it from the number beside it.
    let parts = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&time, &mut parts);
        parts
    };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        parts.tm_year + 1900,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_times_are_utc() {
        assert_ne!(random_id(), random_id());
        assert_eq!(random_id().len(), 32);
        assert_eq!(format_utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(format_utc(1_795_206_512), "2026-11-20T20:28:32Z");
    }
}
