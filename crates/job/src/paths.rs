//! Paths, as text.

/// The path of a file in a directory.
pub fn join_path(directory: Option<&str>, name: &str) -> String {
    match directory {
        Some(directory) => format!("{}/{name}", directory.trim_end_matches('/')),
        None => name.to_owned(),
    }
}

/// A path without what does not change its meaning: `./a//b` is `a/b`. `..` stays: what it means
/// depends on symbolic links.
pub(crate) fn plain(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// The directory in which a path lies.
pub fn directory_of(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
        None => ".",
    }
}
