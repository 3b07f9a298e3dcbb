//! Paths, as text.

/// Joins a directory and a file name.
pub fn join_path(directory: Option<&str>, name: &str) -> String {
    match directory {
        Some(directory) => format!("{}/{name}", directory.trim_end_matches('/')),
        None => name.to_owned(),
    }
}

/// Removes the parts of a path that do not change its meaning: `./a//b` is `a/b`. `..` stays, because its
/// meaning depends on symbolic links.
pub fn plain(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// Returns the directory of a path.
pub fn directory_of(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
        None => ".",
    }
}
