//! One file for all ranks (`shared_file = true`): rank 0 creates it, and each rank uses its own region or the whole.
//!
//! Before the jobs are planned, each becomes a job on an existing file: its region is set (`offset`), and it may overwrite
//! the file because this run created it. So every rank checks the file as any other target, and compares its identity
//! before the first write. A file that existed before must be named in `overwrite_existing`, as always.
//!
//! Limit: rank 0 fills the file alone if a job reads it. After SIGKILL the file stays.

use crate::Limit;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;
use trueio_model::{JobSpec, Origin, units};

/// The longest wait until a file of rank 0 appears on another host: caches of network filesystems keep that a name is
/// missing.
const APPEARS: Limit = Limit::new(Duration::from_secs(60));

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SharedFile {
    path: String,
    length_bytes: u64,
    /// True if a job reads it, so that it needs content.
    is_read: bool,
    /// True if a job writes it without naming it in `overwrite_existing`: it must be new.
    must_be_new: bool,
    stays: bool,
}

/// The shared files of a run. Those that rank 0 created are removed when it is dropped.
#[derive(Debug, Default)]
pub struct SharedFiles {
    files: Vec<SharedFile>,
    created: Vec<(String, u64, u64)>,
}

fn text<'a>(spec: &'a JobSpec, option: &str) -> Option<&'a str> {
    spec.options.get(option).map(|value| value.text.as_str())
}

impl SharedFiles {
    /// Finds the shared files of jobs, and makes these jobs use existing files.
    ///
    /// # Errors
    /// A job with a shared file that names none or several, or sets no size in bytes.
    pub fn of(specs: &mut [JobSpec], rank: u32, size: u32) -> Result<Self, String> {
        let mut found = Self::default();
        for spec in specs.iter_mut().filter(|spec| text(spec, "shared_file") == Some("true")) {
            found
                .take(spec, rank, size)
                .map_err(|reason| format!("job `{}` was not planned\n  because: `shared_file` {reason}", spec.name))?;
        }
        Ok(found)
    }

    fn take(&mut self, spec: &mut JobSpec, rank: u32, size: u32) -> Result<(), String> {
        let name = text(spec, "filename").filter(|name| !name.contains(':'));
        let name = name.ok_or("needs one file in `filename`")?;
        let path = match text(spec, "directory") {
            Some(directory) if !name.starts_with('/') => format!("{}/{name}", directory.trim_end_matches('/')),
            _ => name.to_owned(),
        };
        let region_bytes = text(spec, "size").and_then(|size| units::parse_bytes(size).ok());
        let region_bytes = region_bytes.ok_or("needs `size` in bytes: that of each rank's region")?;
        if text(spec, "offset").is_some_and(|offset| offset != "0") {
            return Err("sets `offset`, which must not be set as well".to_owned());
        }
        let shift = text(spec, "rank_shift").and_then(|shift| shift.parse::<u32>().ok()).unwrap_or(0);
        let is_whole = text(spec, "shared_region") == Some("all");
        let too_long = || "is too long".to_owned();
        let (offset_bytes, length_bytes) = if is_whole {
            (0, region_bytes)
        } else {
            let place = (u64::from(rank) + u64::from(shift)) % u64::from(size);
            let length = region_bytes.checked_mul(u64::from(size)).ok_or_else(too_long)?;
            (place * region_bytes, length)
        };
        let rw = text(spec, "rw").unwrap_or("read");
        let (reads, writes) = (
            rw.contains("read") || rw.contains("rw"),
            rw.contains("write") || rw.contains("rw") || rw.contains("trim"),
        );
        let is_named =
            text(spec, "overwrite_existing").is_some_and(|named| named.split(':').any(|named| named == path));
        let stays = text(spec, "unlink") == Some("false");
        match self.files.iter_mut().find(|known| known.path == path) {
            Some(known) => {
                known.length_bytes = known.length_bytes.max(length_bytes);
                known.is_read |= reads;
                known.must_be_new |= writes && !is_named;
                known.stays |= stays;
            }
            None => self.files.push(SharedFile {
                path: path.clone(),
                length_bytes,
                is_read: reads,
                must_be_new: writes && !is_named,
                stays,
            }),
        }
        let origin = spec.options.get("shared_file").map_or(Origin::Default, |value| value.origin.clone());
        spec.options.remove("directory");
        spec.options.remove("unlink");
        spec.set("filename", path.clone(), origin.clone());
        spec.set("offset", offset_bytes.to_string(), origin.clone());
        if writes && !is_named {
            spec.set("overwrite_existing", path, origin);
        }
        Ok(())
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Creates the files that are missing; on rank 0.
    ///
    /// # Errors
    /// A file exists and is not named for that, or cannot be created or filled.
    pub fn create(&mut self) -> Result<(), String> {
        for shared in self.files.clone() {
            let path = &shared.path;
            let failed = |what: &str, error: std::io::Error| {
                format!("the shared file `{path}` cannot be {what}\n  because: {error}")
            };
            let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
            let file = match opened {
                Ok(file) => file,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && !shared.must_be_new => continue,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    return Err(format!(
                        "the shared file `{path}` exists\n\nhint: name it in `overwrite_existing` if the ranks may \
                         overwrite it, or choose another name"
                    ));
                }
                Err(error) => return Err(failed("created", error)),
            };
            let identity = file.metadata().map_err(|error| failed("examined", error))?;
            if !shared.stays {
                self.created.push((path.clone(), identity.dev(), identity.ino()));
            }
            if shared.is_read {
                fill(&file, shared.length_bytes).map_err(|error| failed("filled", error))?;
            } else {
                file.set_len(shared.length_bytes).map_err(|error| failed("extended", error))?;
            }
            file.sync_all().map_err(|error| failed("flushed", error))?;
        }
        Ok(())
    }

    /// Waits until the files of rank 0 are visible here; on other ranks.
    ///
    /// # Errors
    /// A file does not appear: this host has another filesystem there.
    pub fn find(&self) -> Result<(), String> {
        let until = APPEARS.begin();
        for SharedFile { path, length_bytes, .. } in &self.files {
            while std::fs::metadata(path).map_or(0, |found| found.len()) < *length_bytes {
                if until.is_over() {
                    return Err(format!(
                        "the shared file `{path}` of rank 0 is not visible on this host with its {length_bytes} bytes\n\n\
                         hint: mount the same filesystem on all hosts"
                    ));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }
}

/// Fills a file with content that no layer can leave out.
fn fill(mut file: &File, length_bytes: u64) -> std::io::Result<()> {
    let mut block = vec![0u8; 1 << 20];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut at = 0;
    while at < length_bytes {
        for word in block.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        let count = (block.len() as u64).min(length_bytes - at);
        file.write_all(&block[..count as usize])?;
        at += count;
    }
    Ok(())
}

impl Drop for SharedFiles {
    fn drop(&mut self) {
        for (path, device, inode) in &self.created {
            let is_ours = |found: std::fs::Metadata| (found.dev(), found.ino()) == (*device, *inode);
            if std::fs::symlink_metadata(Path::new(path)).is_ok_and(is_ours) {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(options: &[(&str, &str)]) -> JobSpec {
        let mut spec = JobSpec::new("a");
        spec.set("shared_file", "true", Origin::Default);
        options.iter().for_each(|(name, value)| spec.set(name, *value, Origin::Default));
        spec
    }

    #[test]
    fn each_rank_gets_its_region_and_a_shift_is_that_of_another_rank() {
        for (rank, shift, offset) in [(0, "0", "0"), (2, "0", "2097152"), (2, "1", "3145728"), (3, "1", "0")] {
            let mut spec = job(&[
                ("directory", "/mnt"),
                ("filename", "f"),
                ("size", "1m"),
                ("rw", "write"),
                ("rank_shift", shift),
            ]);
            let files = SharedFiles::of(std::slice::from_mut(&mut spec), rank, 4).expect("one file");
            assert_eq!(spec.options["offset"].text, offset);
            assert_eq!(spec.options["filename"].text, "/mnt/f");
            assert_eq!(spec.options["overwrite_existing"].text, "/mnt/f");
            assert_eq!((files.files[0].length_bytes, files.files[0].must_be_new), (4 << 20, true));
        }
        let mut spec = job(&[("filename", "f"), ("size", "1m"), ("rw", "randread"), ("shared_region", "all")]);
        let files = SharedFiles::of(std::slice::from_mut(&mut spec), 3, 4).expect("one file");
        assert_eq!((spec.options["offset"].text.as_str(), files.files[0].length_bytes), ("0", 1 << 20));
        assert!(!spec.options.contains_key("overwrite_existing"), "a job that only reads overwrites nothing");
    }

    #[test]
    fn a_job_without_one_file_or_a_size_is_refused() {
        for options in [
            &[("size", "1m")][..],
            &[("filename", "a:b"), ("size", "1m")],
            &[("filename", "a")],
            &[("filename", "a"), ("size", "50%")],
        ] {
            let error = SharedFiles::of(&mut [job(options)], 0, 2).expect_err("it is refused");
            assert!(error.starts_with("job `a` was not planned\n  because: `shared_file` needs"), "{error}");
        }
    }

    #[test]
    fn a_file_that_exists_is_kept_and_refused_and_a_new_one_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let name = path.to_str().expect("UTF-8").to_owned();
        let shared = || {
            let mut spec = job(&[("filename", &name), ("size", "1m"), ("rw", "rw")]);
            SharedFiles::of(std::slice::from_mut(&mut spec), 0, 2).expect("one file")
        };
        let mut first = shared();
        first.create().expect("a new file");
        assert_eq!(std::fs::metadata(&path).expect("it is there").len(), 2 << 20);
        shared().find().expect("it is visible");
        let refusal = shared().create().expect_err("it exists");
        assert!(refusal.contains("exists") && refusal.contains("overwrite_existing"), "{refusal}");
        drop(first);
        assert!(!path.exists(), "a file of this run is removed");
        std::fs::write(&path, "another file").expect("a file");
        drop(shared());
        assert!(path.exists(), "a file of another program stays");
    }
}
