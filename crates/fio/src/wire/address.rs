//! Addresses of servers in fio's grammar.
//!
//! `sock:PATH`, or `HOST`, `HOST,PORT`, `,PORT`, optionally preceded by `ip:`, `ip4:` or `ip6:`.
//!
//! Source: HOWTO of fio 3.42, "Client/Server".

use std::fmt;

/// The port of fio's servers, and of ours.
pub const PORT: u16 = 8765;
/// Longest path of a socket: `sun_path` has 108 bytes, the last of them zero.
const SOCKET_BYTES_MAX: usize = 107;
/// Longest name of a host (RFC 1035), in bytes.
const HOST_BYTES_MAX: usize = 253;

/// The version of an IP address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Either.
    Any,
    /// Version 4 only.
    V4,
    /// Version 6 only.
    V6,
}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system.
    Socket(String),
    /// A port of the internet protocol.
    Internet {
        /// The host as it was typed; `None`: this machine.
        host: Option<String>,
        /// TCP port, in host byte order.
        port: u16,
        /// The version of the address.
        family: Family,
    },
}

impl Address {
    /// Reads an address. Empty text is this machine with fio's port.
    ///
    /// # Errors
    /// The error, and the correct form.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(bad) = text.chars().find(|c| c.is_control()) {
            return Err(format!("an address has no control characters: {bad:?}"));
        }
        if let Some(path) = text.strip_prefix("sock:") {
            return match path.len() {
                0 => Err("`sock:` names no socket: write `sock:PATH`".to_owned()),
                1..=SOCKET_BYTES_MAX => Ok(Address::Socket(path.to_owned())),
                _ => Err(format!("the path of a socket has at most {SOCKET_BYTES_MAX} bytes")),
            };
        }
        if text.starts_with("vsock:") {
            return Err("`vsock:` is not supported: use a socket (`sock:PATH`) or an internet address".to_owned());
        }
        let kinds = [("ip4:", Family::V4), ("ip6:", Family::V6), ("ip:", Family::Any)];
        let found = kinds.into_iter().find_map(|(word, family)| Some((text.strip_prefix(word)?, family)));
        let (rest, family) = found.unwrap_or((text, Family::Any));
        let (host, port) = match rest.rsplit_once(',') {
            Some((host, port)) => {
                let number = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
                let number = number.and_then(|port| port.parse::<u16>().ok());
                (host, number.ok_or_else(|| format!("`{port}` is not a port: a number from 0 to 65535"))?)
            }
            None => (rest, PORT),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.len() > HOST_BYTES_MAX
            || host.contains(|c: char| c.is_whitespace() || matches!(c, '/' | ',' | '[' | ']'))
        {
            let hint = "write HOST, HOST,PORT or sock:PATH";
            return Err(format!("`{host}` is not the name of a host: {hint}"));
        }
        if host.contains(':') && host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(format!("`{host}` is not the name of a host: a port follows a comma: `HOST,PORT`"));
        }
        let host = Some(host.to_owned()).filter(|host| !host.is_empty());
        Ok(Address::Internet { host, port, family })
    }

    /// Returns the name of the host in results: its name as typed, which may be empty (`,8766`), as in fio, or the path of the
    /// socket.
    pub fn typed_hostname(&self) -> &str {
        match self {
            Address::Internet { host: None, .. } => "",
            _ => self.hostname(),
        }
    }

    /// Returns the name of the host: its name as typed, `localhost` without one, or the path of the socket.
    pub fn hostname(&self) -> &str {
        match self {
            Address::Socket(path) => path,
            Address::Internet { host: Some(host), .. } => host,
            Address::Internet { host: None, .. } => "localhost",
        }
    }

    /// Returns the port; for a socket fio's default port, as fio does.
    pub fn port(&self) -> u16 {
        match self {
            Address::Socket(_) => PORT,
            Address::Internet { port, .. } => *port,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Socket(path) => write!(f, "sock:{path}"),
            Address::Internet { port, .. } => write!(f, "{},{port}", self.hostname()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn internet(host: &str, port: u16, family: Family) -> Address {
        Address::Internet { host: Some(host.to_owned()).filter(|host| !host.is_empty()), port, family }
    }

    /// The client's results name the host as it was typed.
    #[test]
    fn a_host_that_was_not_typed_has_no_name_in_results() {
        for (text, name) in [(",8766", ""), ("localhost,8766", "localhost"), ("sock:/tmp/s", "/tmp/s")] {
            assert_eq!(Address::parse(text).expect("an address").typed_hostname(), name, "{text}");
        }
    }

    #[test]
    fn addresses_have_fios_forms() {
        for (text, expected) in [
            ("", internet("", PORT, Family::Any)),
            (",4444", internet("", 4444, Family::Any)),
            ("ip:host,4444", internet("host", 4444, Family::Any)),
            ("ip4:", internet("", PORT, Family::V4)),
            ("ip6:::1,0", internet("::1", 0, Family::V6)),
            ("[::1],9", internet("::1", 9, Family::Any)),
            ("1.2.3.4", internet("1.2.3.4", PORT, Family::Any)),
            ("sock:/tmp/a,b", Address::Socket("/tmp/a,b".to_owned())),
        ] {
            assert_eq!(Address::parse(text).as_ref(), Ok(&expected), "{text}");
        }
    }

    #[test]
    fn an_invalid_address_is_refused_with_the_correct_form() {
        for (text, word) in [
            ("host:99", "HOST,PORT"),
            ("host,99999", "not a port"),
            ("host,", "not a port"),
            ("host,+1", "not a port"),
            ("sock:", "sock:PATH"),
            ("vsock:3,4", "not supported"),
            ("a b", "not the name of a host"),
            ("[[[[]]", "not the name of a host"),
            ("[::1", "not the name of a host"),
            ("/tmp/x", "sock:PATH"),
            ("a\u{1b}b", "control"),
        ] {
            let error = Address::parse(text).expect_err(text);
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(Address::parse(&format!("sock:/{}", "x".repeat(200))).is_err());
        assert!(Address::parse(&"x".repeat(300)).is_err());
    }
}
