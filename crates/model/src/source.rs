//! The source of a job's bytes, if they are fetched instead of generated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The default port of `http` (RFC 9110, section 4.2.1).
const HTTP_PORT: u16 = 80;

/// The address of a body: `http://HOST[:PORT]/PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceAddress {
    /// The host's name or number; an IPv6 number without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The path with its query, from the first slash.
    pub path: String,
}

impl SourceAddress {
    /// The host and port as a request names them: `127.0.0.1:8080`, `[::1]:8080`.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.path)
    }
}

impl FromStr for SourceAddress {
    type Err = String;

    /// Parses `http://HOST[:PORT]/PATH`. The error is a sentence without a full stop.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix("http://") else {
            return Err(match text.split_once("://") {
                Some((scheme, _)) => {
                    format!("`{scheme}` is not spoken, only plain `http`: encryption would be measured too")
                }
                None => "an address begins with `http://`".to_owned(),
            });
        };
        // This text becomes part of the request's first lines, so it must not contain a line end.
        if let Some(bad) = text.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(format!("{bad:?} cannot stand in an address; write it as %XX"));
        }
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) if rest[at..].starts_with('?') => return Err("a path is missing before the `?`".to_owned()),
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        if path.contains('#') || authority.contains('#') {
            return Err("the part after `#` is never sent".to_owned());
        }
        if authority.contains('@') {
            return Err("names and passwords are not sent".to_owned());
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, rest) = bracketed.split_once(']').ok_or("`[` without `]`")?;
                let is_number = host.contains(':') && host.chars().all(|c| c.is_ascii_hexdigit() || ".:".contains(c));
                if !is_number {
                    return Err(format!("`[{host}]` is no IPv6 number"));
                }
                let port = rest.strip_prefix(':');
                if port.is_none() && !rest.is_empty() {
                    return Err(format!("`{rest}` is no port"));
                }
                (host, port)
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() {
            return Err("a host is missing".to_owned());
        }
        let is_name = host.chars().all(|c| c.is_ascii_alphanumeric() || "-._:".contains(c));
        if !is_name {
            return Err(format!("`{host}` is no host"));
        }
        let port = match port {
            None => HTTP_PORT,
            Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(|| format!("`{port}` is no port"))?,
        };
        Ok(Self { host: host.to_owned(), port, path: path.to_owned() })
    }
}

/// A body that is fetched and written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourcePlan {
    /// Its address.
    pub address: SourceAddress,
    /// Its length, in bytes; the server must report the same when the job begins.
    pub length_bytes: u64,
    /// The bytes that are written with the job's own writes; the rest, less than one unit of direct I/O, goes
    /// through the page cache. Equal to the length if the job writes through the page cache.
    pub direct_bytes: u64,
    /// Whether it is fetched again at the end and compared with the content of the file.
    pub is_verified: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_written_in_one_way() {
        for (text, written) in [
            ("http://127.0.0.1:8080/body", "http://127.0.0.1:8080/body"),
            ("http://localhost", "http://localhost:80/"),
            ("http://[::1]:99/a?b=c", "http://[::1]:99/a?b=c"),
            ("http://[::1]/", "http://[::1]:80/"),
            ("http://mirror.example/a%20b", "http://mirror.example:80/a%20b"),
        ] {
            let address: SourceAddress = text.parse().expect(text);
            assert_eq!(address.to_string(), written);
            assert_eq!(written.parse(), Ok(address));
        }
    }

    #[test]
    fn what_is_no_plain_address_is_refused_in_words() {
        for (text, word) in [
            ("https://a/", "https"),
            ("ftp://a/", "ftp"),
            ("a/b", "http://"),
            ("http:///b", "host"),
            ("http://a:0/", "port"),
            ("http://a:70000/", "port"),
            ("http://[::1/", "]"),
            ("http://[name]/", "IPv6"),
            ("http://[::1]80/", "port"),
            ("http://u:p@a/", "passwords"),
            ("http://a/b#c", "#"),
            ("http://a?b", "path"),
            ("http://a/b c", "' '"),
            ("http://a/b\r\nX: y", "\\r"),
            ("http://a/ü", "ü"),
            ("http://a,b/", "host"),
        ] {
            let error = text.parse::<SourceAddress>().expect_err(text);
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
