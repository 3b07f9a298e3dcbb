//! The token that a client over TCP sends before anything else, and its file.
//!
//! A server on the loopback address creates a new token at each start, in a file that only its user can read, and removes it
//! at its end; clients of the same user find it by the server's address. On any other address `--token FILE` names it.
//!
//! Limits: the token is sent as it is. Whoever can read the connection, or listens in the server's place, learns it.
//!
//! Source: XDG Base Directory Specification 0.8 (`XDG_RUNTIME_DIR`, `XDG_STATE_HOME`).

use rustix::process::geteuid;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;
use trueio_files::{PathError, TextError, TextFile, own_directory, own_file};

/// Longest token, in bytes.
pub const TOKEN_BYTES_MAX: u32 = 1024;
/// Shortest token, in bytes. A hexadecimal digit has 4 bits, so 16 of them have 64.
const TOKEN_BYTES_MIN: usize = 16;
/// Random bytes of a token that a server creates.
const RANDOM_BYTES: usize = 32;
/// Permissions of the group and of others.
const OTHERS: u32 = 0o077;

/// Why the token of a file cannot be used, or none can be created there.
#[derive(Debug, Error)]
#[error("the token `{path}` cannot be {attempted}: {reason}")]
pub struct TokenError {
    /// The file.
    pub path: String,
    /// `used` or `created`.
    pub attempted: &'static str,
    /// Why.
    pub reason: TokenFault,
}

impl TokenError {
    fn new(path: &Path, attempted: &'static str, reason: impl Into<TokenFault>) -> Self {
        Self { path: path.display().to_string(), attempted, reason: reason.into() }
    }

    /// What the user can do, where the reason has an answer of its own.
    pub fn hint(&self) -> Option<String> {
        let path = &self.path;
        match self.reason {
            TokenFault::OfAnother(_) => Some("use a copy of this user".to_owned()),
            TokenFault::OpenToOthers(_) => Some(format!("`chmod 600 {path}`")),
            TokenFault::NoWord => Some(format!("`(umask 077; openssl rand -hex 32 > {path})`")),
            _ => None,
        }
    }

    /// Returns the message, and the hint below it; `otherwise` is the hint of a reason without one.
    pub fn explained(&self, otherwise: Option<&str>) -> String {
        match self.hint().or(otherwise.map(str::to_owned)) {
            Some(hint) => format!("{self}\n\nhint: {hint}"),
            None => self.to_string(),
        }
    }
}

/// The reason of a [`TokenError`].
#[derive(Debug, Error)]
pub enum TokenFault {
    /// A call failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Its directory or name is another user's, or can be changed by others.
    #[error(transparent)]
    Path(#[from] PathError),
    /// It cannot be opened as a text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// It is no regular file.
    #[error("it is no regular file")]
    NotRegular,
    /// It belongs to this user.
    #[error("it belongs to the user {0}")]
    OfAnother(u32),
    /// Its mode lets other users use it.
    #[error("other users may use it (mode {0:04o})")]
    OpenToOthers(u32),
    /// It holds no token.
    #[error("it does not hold one word of {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} printable ASCII characters")]
    NoWord,
    /// No variable names a directory for it.
    #[error(
        "no directory for it is known: neither XDG_RUNTIME_DIR, XDG_STATE_HOME nor HOME is set to an absolute path"
    )]
    NoDirectory,
}

/// A token. It has no `Debug`, so that no message prints it.
pub struct Token(Vec<u8>);

impl Token {
    /// Reads a token from a file, in which it is the only line.
    ///
    /// # Errors
    /// The file cannot be read, other users may use it, or it holds no token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        Self::of_file(path).map_err(|reason| TokenError::new(path, "used", reason))
    }

    fn of_file(path: &Path) -> Result<Self, TokenFault> {
        let text = TextFile::open(path, u64::MAX)?;
        let file = text.seekable().ok_or(TokenFault::NotRegular)?;
        let found = file.metadata()?;
        if found.uid() != geteuid().as_raw() {
            return Err(TokenFault::OfAnother(found.uid()));
        }
        if found.mode() & OTHERS != 0 {
            return Err(TokenFault::OpenToOthers(found.mode() & 0o777));
        }
        let mut bytes = Vec::new();
        file.take(u64::from(TOKEN_BYTES_MAX) + 2).read_to_end(&mut bytes)?;
        let token = bytes.trim_ascii();
        let is_one = token.iter().all(u8::is_ascii_graphic);
        if !is_one || !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX as usize).contains(&token.len()) {
            return Err(TokenFault::NoWord);
        }
        Ok(Self(token.to_owned()))
    }

    /// Creates the token of a server on a loopback address, and returns its file.
    ///
    /// # Errors
    /// There is no directory for it, or other users may write there.
    pub fn create(program: &str, address: SocketAddr) -> Result<PathBuf, TokenError> {
        let name = || PathBuf::from(file_name(program, address));
        let path =
            own_path(program, address).ok_or_else(|| TokenError::new(&name(), "created", TokenFault::NoDirectory))?;
        create_at(&path).map_err(|reason| TokenError::new(&path, "created", reason))?;
        Ok(path)
    }

    /// Reads the token that a server of the same user created ([`own_path`]).
    ///
    /// # Errors
    /// As [`Token::read`]; its directory is another user's or can be changed by others.
    pub fn read_own(path: &Path) -> Result<Self, TokenError> {
        own_directory(path.parent().expect("it was joined"))
            .and_then(|_| own_file(path))
            .map_err(|reason| TokenError::new(path, "used", reason))?;
        Self::read(path)
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Compares a token in a time that does not depend on where the two differ. The time depends on their lengths.
    pub fn is_equal(&self, sent: &[u8]) -> bool {
        let differences =
            self.0.iter().zip(sent).fold(0, |all, (own, their)| std::hint::black_box(all | (own ^ their)));
        self.0.len() == sent.len() && differences == 0
    }
}

/// Returns the file for the token of a program's server on a loopback address.
pub fn own_path(program: &str, address: SocketAddr) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = absolute("XDG_RUNTIME_DIR")
        .or_else(|| absolute("XDG_STATE_HOME"))
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(directory.join("trueio").join(file_name(program, address)))
}

fn file_name(program: &str, address: SocketAddr) -> String {
    format!("{program}-{},{}.token", address.ip().to_canonical(), address.port())
}

/// Creates a file with a random token, which replaces that of an earlier server.
fn create_at(path: &Path) -> Result<(), TokenFault> {
    own_directory(path.parent().expect("it was joined"))?;
    let mut random = [0; RANDOM_BYTES];
    File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut random))?;
    let word: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    // The address is this server's, so a token with its name is of a server that has ended.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{word}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Goal: a token differs at each start, is read by its user only, and replaces no file through a link.
    #[test]
    fn a_created_token_is_new_private_and_follows_no_link() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("trueio/fio.token");
        let create = || {
            create_at(&path).expect("a token");
            Token::read(&path).expect("it can be used").bytes().to_owned()
        };
        let first = create();
        assert_eq!(first.len(), 2 * RANDOM_BYTES);
        let modes = [&path, path.parent().expect("its directory")]
            .map(|path| std::fs::metadata(path).expect("it exists").permissions().mode() & 0o777);
        assert_eq!(modes, [0o600, 0o700]);
        assert_ne!(create(), first);
        let precious = folder.path().join("precious");
        std::fs::write(&precious, "kept").expect("a file");
        std::fs::remove_file(&path).expect("it exists");
        std::os::unix::fs::symlink(&precious, &path).expect("a link");
        create();
        assert_eq!(std::fs::read_to_string(&precious).expect("it is there"), "kept");
        // A directory in which other users could exchange the token.
        let directory = path.parent().expect("its directory");
        std::fs::set_permissions(directory, PermissionsExt::from_mode(0o777)).expect("it is ours");
        assert!(
            create_at(&path).expect_err("a refusal").to_string().contains("can be changed by other users (mode 0777)")
        );
    }

    #[test]
    fn a_token_that_others_may_use_or_guess_is_refused() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("token");
        let read = |text: &str, mode: u32| {
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("it is ours");
            Token::read(&path).map(|token| token.bytes().to_owned()).map_err(|error| error.explained(None))
        };
        let good = "0123456789abcdef0123456789abcdef";
        assert_eq!(read(&format!("{good}\n"), 0o600).as_deref(), Ok(good.as_bytes()));
        assert_eq!(read(good, 0o400).as_deref(), Ok(good.as_bytes()));
        for mode in [0o640, 0o604, 0o620, 0o660, 0o644] {
            let reason = read(good, mode).expect_err("a refusal");
            assert!(reason.contains(&format!("mode {mode:04o}")) && !reason.contains(good), "{reason}");
        }
        for text in ["", "\n", "short", "two words of a file", "0123456789abcdef\n0123456789abcdef", &"x".repeat(1025)]
        {
            assert!(read(text, 0o600).is_err(), "{text:?}");
        }
        assert!(Token::read(&folder.path().join("nothing")).is_err() && Token::read(folder.path()).is_err());
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("pipe"), rustix::fs::Mode::RUSR).expect("a pipe");
        assert!(Token::read(&folder.path().join("pipe")).is_err());
    }

    #[test]
    fn only_the_whole_token_is_equal() {
        let token = Token(b"0123456789abcdef".to_vec());
        assert!(token.is_equal(b"0123456789abcdef"));
        for other in [&b""[..], b"0123456789abcde", b"0123456789abcdef0", b"0123456789abcdeF", b"x123456789abcdef"] {
            assert!(!token.is_equal(other), "{other:?}");
        }
    }
}
