//! The files that the system's loader may open for a library that is named without a directory.
//!
//! In the loader's order: the directories of `LD_LIBRARY_PATH`, the cache that ldconfig(8) makes of those of `/etc/ld.so.conf`, and the
//! standard ones.
//!
//! Limits: entries of the cache for other architectures and for processors with more features are among them; dlopen(3) refuses the former.
//!
//! Source: ld.so(8); glibc `sysdeps/generic/dl-cache.h` (`struct cache_file_new`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Begins the part of the cache with 64-bit entries.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEAD_BYTES: usize = 48;
const ENTRY_BYTES: usize = 24;
/// The longest cache that is read, in bytes.
const CACHE_BYTES_MAX: u64 = 64 << 20;
const STANDARD: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Returns the existing files, in order.
pub(super) fn files_of(name: &str) -> Vec<PathBuf> {
    let variable = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let named = variable.as_bytes().split(|byte| b":;".contains(byte)).filter(|part| !part.is_empty());
    let named = named.map(|part| Path::new(OsStr::from_bytes(part)).join(name));
    let cache = trueio_files::read_bytes(Path::new("/etc/ld.so.cache"), CACHE_BYTES_MAX).unwrap_or_default();
    let standard = STANDARD.map(|directory| Path::new(directory).join(name));
    let mut files: Vec<PathBuf> =
        named.chain(in_cache(&cache, name)).chain(standard).filter(|path| path.symlink_metadata().is_ok()).collect();
    files.dedup();
    files
}

/// Returns the paths that a cache has for a library.
fn in_cache(cache: &[u8], name: &str) -> Vec<PathBuf> {
    // The part of an older format may come first.
    let Some(begin) = cache.windows(MAGIC.len()).position(|window| window == MAGIC) else { return Vec::new() };
    let cache = &cache[begin..];
    let number = |at: usize| Some(u32::from_le_bytes(*cache.get(at..)?.first_chunk()?) as usize);
    let text = |at: usize| cache.get(at..)?.split(|byte| *byte == 0).next();
    let path = |entry: usize| {
        let at = HEAD_BYTES + entry * ENTRY_BYTES;
        let is_it = text(number(at + 4)?)? == name.as_bytes();
        let path = Path::new(OsStr::from_bytes(text(number(at + 8)?)?));
        is_it.then(|| path.to_owned())
    };
    let count = number(MAGIC.len()).unwrap_or(0).min(cache.len() / ENTRY_BYTES);
    (0..count).filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache with these libraries and paths.
    fn cache(entries: &[(&str, &str)]) -> Vec<u8> {
        let (mut table, mut texts) = (Vec::new(), Vec::new());
        let texts_at = HEAD_BYTES + entries.len() * ENTRY_BYTES;
        for (name, path) in entries {
            table.extend(0x0303_u32.to_le_bytes());
            for text in [name, path] {
                table.extend(((texts_at + texts.len()) as u32).to_le_bytes());
                texts.extend(text.as_bytes());
                texts.push(0);
            }
            table.extend([0; 12]);
        }
        let mut cache = b"ld.so-1.7.0\0old".to_vec();
        cache.extend(MAGIC);
        cache.extend((entries.len() as u32).to_le_bytes());
        cache.extend((texts.len() as u32).to_le_bytes());
        cache.extend([0; HEAD_BYTES - 28]);
        [cache, table, texts].concat()
    }

    #[test]
    fn the_paths_of_a_library_are_found_in_a_cache_and_damage_is_none() {
        let whole = cache(&[("liba.so.1", "/x/liba.so.1"), ("libb.so", "/libb.so"), ("liba.so.1", "/y/liba.so.1")]);
        assert_eq!(in_cache(&whole, "liba.so.1"), [Path::new("/x/liba.so.1"), Path::new("/y/liba.so.1")]);
        assert!(in_cache(&whole, "liba").is_empty());
        for length in 0..whole.len() {
            in_cache(&whole[..length], "liba.so.1");
        }
        let mut damaged = whole;
        for at in 15..damaged.len() {
            damaged[at] = 0xff;
            in_cache(&damaged, "liba.so.1");
        }
    }

    #[test]
    fn the_c_library_of_this_machine_is_found() {
        if !cfg!(target_env = "gnu") || !Path::new("/etc/ld.so.cache").exists() {
            return trueio_testkit::skip("glibc", "this machine has no cache of libraries");
        }
        let files = files_of("libc.so.6");
        assert!(!files.is_empty() && files.iter().all(|file| file.is_absolute() && file.exists()), "{files:?}");
    }
}
