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
    (seconds, trueio_model::format_utc(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ() {
        assert_ne!(random_id(), random_id());
        assert_eq!(random_id().len(), 32);
    }
}
