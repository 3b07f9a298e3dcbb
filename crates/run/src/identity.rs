//! What names a record: a random number, the time it began, and the program.

use trueio_model::ToolFacts;

/// 128 random bits as 32 hexadecimal digits.
pub fn random_id() -> String {
    let mut bytes = [0u8; 16];
    // By its number: glibc has the function since 2.25, and a release is linked for 2.17.
    // SAFETY: the kernel writes at most 16 bytes into the array.
    let n = unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) };
    assert_eq!(n, 16, "getrandom gives up to 256 bytes at once after boot");
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Returns this program, as records name it.
pub fn tool_facts() -> ToolFacts {
    ToolFacts {
        name: "trueio".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
    }
}

/// Milliseconds since 1970-01-01 UTC, and the same as `2026-11-20T20:28:32Z`.
pub fn now() -> (u64, String) {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (since.as_millis() as u64, trueio_model::format_utc(since.as_secs()))
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
