//! The end of a thread that writes logs.

use std::io;
use std::thread::JoinHandle;
use trueio_run::LogError;

/// Waits for a thread that writes logs. A panic of the thread is an error, because lines are missing.
pub(super) fn join(writer: JoinHandle<Result<(), LogError>>) -> Result<(), LogError> {
    writer.join().unwrap_or_else(|_| {
        let reason = "the thread that writes it panicked, which is a bug of trueio; lines are missing";
        Err(LogError::new("of the phase".to_owned(), io::Error::other(reason)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_writer_is_an_error() {
        let error = join(std::thread::spawn(|| panic!("on purpose"))).expect_err("lines are missing");
        let source = std::error::Error::source(&error).expect("a reason").to_string();
        assert!(source.contains("panicked"), "{source}");
        assert!(join(std::thread::spawn(|| Ok(()))).is_ok());
    }
}
