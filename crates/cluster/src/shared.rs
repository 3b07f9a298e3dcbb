//! Files that ranks share (`shared_file = true`): rank 0 creates one, and each rank uses its own region or the whole; or, with
//! `$rank` in the name, each rank creates its own, and others may use it.
//!
//! Before the jobs are planned, each becomes a job on an existing file: its region is set (`offset`), and it may overwrite
//! the file because this run created it. So every rank checks the file as any other target, and compares its identity
//! before the first write. A file that existed before must be named in `overwrite_existing`, as always.
//!
//! Limit: the rank that creates a file fills it alone if a job reads what no job of the run wrote. After SIGKILL it stays.

use crate::names::with_rank;
use crate::{Limit, Place};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;
use trueio_job::options::target::rows::NEW_FILE_ACCESS;
use trueio_model::{JobSpec, Origin, rank_seed, units};

/// The longest wait until a file of rank 0 appears on another host: caches of network filesystems keep that a name is
/// missing.
const APPEARS: Limit = Limit::new(Duration::from_secs(60));

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SharedFile {
    path: String,
    /// The rank that creates it.
    maker: u32,
    length_bytes: u64,
    /// True if a job reads it, so that it needs content.
    is_read: bool,
    /// True if a job writes it without naming it in `overwrite_existing`: it must be new.
    must_be_new: bool,
    stays: bool,
    /// The mode with which it is created, which the first job sets.
    mode: u32,
}

/// The shared files of a run. Those that this rank created are removed when it is dropped.
#[derive(Debug, Default)]
pub struct SharedFiles {
    rank: u32,
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
    pub fn of(specs: &mut [JobSpec], place: &Place) -> Result<Self, String> {
        let mut found = Self { rank: place.rank, files: Vec::new(), created: Vec::new() };
        for spec in specs.iter_mut().filter(|spec| text(spec, "shared_file") == Some("true")) {
            found
                .take(spec, place)
                .map_err(|reason| format!("job `{}` was not planned\n  because: `shared_file` {reason}", spec.name))?;
        }
        Ok(found)
    }

    fn take(&mut self, spec: &mut JobSpec, place: &Place) -> Result<(), String> {
        let name = text(spec, "filename").filter(|name| !name.contains(':'));
        let name = name.ok_or("needs one file in `filename`")?;
        let path = match text(spec, "directory") {
            Some(directory) if !name.starts_with('/') => format!("{}/{name}", directory.trim_end_matches('/')),
            _ => name.to_owned(),
        };
        let path = path.replace("$host", &place.host);
        let region_bytes = text(spec, "size").and_then(|size| units::parse_bytes(size).ok());
        let region_bytes = region_bytes.ok_or("needs `size` in bytes: that of each rank's region")?;
        if text(spec, "offset").is_some_and(|offset| offset != "0") {
            return Err("sets `offset`, which must not be set as well".to_owned());
        }
        let used = place.of(spec);
        let of_ranks = path.contains("$rank") || path.contains("${rank8}");
        let is_whole = text(spec, "shared_region") == Some("all");
        let mut region = Region { offset_bytes: 0, length_bytes: region_bytes, file_bytes: region_bytes, parts: None };
        if !of_ranks && !is_whole {
            region = Region::of(spec, region_bytes, used, place.size)?;
        }
        let origin = spec.options.get("shared_file").map_or(Origin::Default, |value| value.origin.clone());
        let own = if of_ranks { with_rank(&path, place.rank) } else { path.clone() };
        let path = if of_ranks { with_rank(&path, used) } else { path };
        let maker = if of_ranks { used } else { 0 };
        self.add(spec, path.clone(), maker, region.file_bytes);
        if own != path {
            self.add(spec, own, place.rank, region.file_bytes);
        }
        region.set_in(spec, &origin);
        let is_named = names_it(spec, &path, used);
        spec.options.remove("directory");
        spec.options.remove("unlink");
        spec.set("filename", path.clone(), origin.clone());
        if uses(spec).1 && !is_named {
            spec.set("overwrite_existing", path, origin);
        }
        Ok(())
    }

    /// Adds a file, or the use of it by another job.
    fn add(&mut self, spec: &JobSpec, path: String, maker: u32, length_bytes: u64) {
        let (reads, writes) = uses(spec);
        // What an earlier job wrote needs no content before.
        let is_read = reads && !spec.options.contains_key("repeat_ios_of");
        let must_be_new = writes && !names_it(spec, &path, maker);
        let stays = text(spec, "unlink") == Some("false");
        match self.files.iter_mut().find(|known| known.path == path) {
            Some(known) => {
                known.length_bytes = known.length_bytes.max(length_bytes);
                known.is_read |= is_read;
                known.must_be_new |= must_be_new;
                known.stays |= stays;
            }
            None => self.files.push(SharedFile {
                path,
                maker,
                length_bytes,
                is_read,
                must_be_new,
                stays,
                mode: NEW_FILE_ACCESS.value_in(spec).mode(),
            }),
        }
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Creates the files of this rank that are missing.
    ///
    /// # Errors
    /// A file exists and is not named for that, or cannot be created or filled.
    pub fn create(&mut self) -> Result<(), String> {
        let rank = self.rank;
        for shared in self.files.clone().into_iter().filter(|shared| shared.maker == rank) {
            let path = &shared.path;
            let failed = |what: &str, error: std::io::Error| {
                format!("the shared file `{path}` cannot be {what}\n  because: {error}")
            };
            let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(shared.mode).open(path);
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
                fill(&file, shared.length_bytes, rank).map_err(|error| failed("filled", error))?;
            } else {
                file.set_len(shared.length_bytes).map_err(|error| failed("extended", error))?;
            }
            file.sync_all().map_err(|error| failed("flushed", error))?;
        }
        Ok(())
    }

    /// Waits until the files of other ranks are visible here.
    ///
    /// # Errors
    /// A file does not appear: this host has another filesystem there.
    pub fn find(&self) -> Result<(), String> {
        let until = APPEARS.begin();
        for SharedFile { path, maker, length_bytes, .. } in self.files.iter().filter(|file| file.maker != self.rank) {
            while std::fs::metadata(path).map_or(0, |found| found.len()) < *length_bytes {
                if until.is_over() {
                    return Err(format!(
                        "the shared file `{path}` of rank {maker} is not visible on this host with its {length_bytes} bytes\n\n\
                         hint: mount the same filesystem on all hosts"
                    ));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }
}

/// Returns whether a job reads and writes its file.
fn uses(spec: &JobSpec) -> (bool, bool) {
    let rw = text(spec, "rw").unwrap_or("read");
    let writes = rw.contains("write") || rw.contains("rw") || rw.contains("trim");
    (rw.contains("read") || rw.contains("rw"), writes)
}

/// Returns true if a job names a file for being overwritten.
fn names_it(spec: &JobSpec, path: &str, rank: u32) -> bool {
    text(spec, "overwrite_existing").is_some_and(|named| named.split(':').any(|named| with_rank(named, rank) == path))
}

/// The part of a file that a rank uses.
struct Region {
    offset_bytes: u64,
    /// Bytes that the rank transfers.
    length_bytes: u64,
    /// Length of the whole file.
    file_bytes: u64,
    /// Length of each part, and the bytes of other ranks between two, if there are several parts.
    parts: Option<(u64, u64)>,
}

impl Region {
    /// The region of rank `used` of `size`, in parts that alternate with those of the other ranks.
    fn of(spec: &JobSpec, region_bytes: u64, used: u32, size: u32) -> Result<Self, String> {
        let too_long = || "is too long".to_owned();
        let (used, size) = (u64::from(used), u64::from(size));
        let count = text(spec, "shared_segments").and_then(|count| count.parse::<u64>().ok()).unwrap_or(1).max(1);
        if !region_bytes.is_multiple_of(count) {
            return Err(format!("has `shared_segments = {count}`, which does not divide `size`"));
        }
        let part_bytes = region_bytes / count;
        let file_bytes = region_bytes.checked_mul(size).ok_or_else(too_long)?;
        let skip_bytes = part_bytes * (size - 1);
        let parts = (count > 1 && size > 1).then_some((part_bytes, skip_bytes));
        if parts.is_some() && text(spec, "rw").is_some_and(|rw| rw.contains("rand")) {
            return Err("has several `shared_segments`, which are for sequential jobs".to_owned());
        }
        let offset_bytes = used * if parts.is_some() { part_bytes } else { region_bytes };
        Ok(Self { offset_bytes, length_bytes: region_bytes, file_bytes, parts })
    }

    /// Makes a job use it.
    fn set_in(&self, spec: &mut JobSpec, origin: &Origin) {
        let mut set = |option: &str, bytes: u64| spec.set(option, bytes.to_string(), origin.clone());
        set("offset", self.offset_bytes);
        if let Some((part_bytes, skip_bytes)) = self.parts {
            let count = self.length_bytes / part_bytes;
            set("size", count * part_bytes + (count - 1) * skip_bytes);
            set("io_size", self.length_bytes);
            set("zonesize", part_bytes);
            set("zoneskip", skip_bytes);
            spec.set("zonemode", "strided", origin.clone());
        }
    }
}

/// Fills a file with content that no layer can leave out: other content in the file of each rank.
fn fill(mut file: &File, length_bytes: u64, rank: u32) -> std::io::Result<()> {
    let mut block = vec![0u8; 1 << 20];
    let mut state = rank_seed(0x9e37_79b9_7f4a_7c15, rank).max(1);
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

    fn place(rank: u32, size: u32) -> Place {
        Place { rank, size, host: "h".into(), host_stride: 2 }
    }

    #[test]
    fn the_parts_of_each_rank_alternate_with_those_of_the_others() {
        for (rank, size, set) in [(0, 3, Some(("0", "7340032"))), (2, 3, Some(("2097152", "7340032"))), (0, 1, None)] {
            let mut spec = job(&[("filename", "/f"), ("size", "3m"), ("rw", "write"), ("shared_segments", "3")]);
            let files = SharedFiles::of(std::slice::from_mut(&mut spec), &place(rank, size)).expect("one file");
            assert_eq!(files.files[0].length_bytes, u64::from(size) * (3 << 20));
            let text = |option: &str| spec.options.get(option).map(|value| value.text.as_str());
            match set {
                Some((offset, span)) => {
                    assert_eq!(
                        (text("offset"), text("size"), text("io_size")),
                        (Some(offset), Some(span), Some("3145728"))
                    );
                    assert_eq!((text("zonesize"), text("zoneskip")), (Some("1048576"), Some("2097152")));
                }
                None => assert_eq!((text("offset"), text("size"), text("zonemode")), (Some("0"), Some("3m"), None)),
            }
        }
    }

    #[test]
    fn with_the_rank_in_its_name_each_rank_makes_its_own_file_and_may_use_that_of_another() {
        let options = [("filename", "/f.${rank8}"), ("size", "1m")];
        let write = job(&[&options[..], &[("rw", "write")]].concat());
        let shifted = [("rw", "read"), ("rank_shift", "1"), ("rank_shift_by", "host"), ("repeat_ios_of", "a")];
        let read = job(&[&options[..], &shifted].concat());
        let mut specs = [write, read];
        let files = SharedFiles::of(&mut specs, &place(3, 4)).expect("two files");
        assert_eq!(specs[0].options["filename"].text, "/f.00000003");
        assert_eq!(specs[1].options["filename"].text, "/f.00000001");
        assert_eq!(specs[1].options["offset"].text, "0");
        let found: Vec<(&str, u32, bool)> =
            files.files.iter().map(|file| (file.path.as_str(), file.maker, file.is_read)).collect();
        assert_eq!(found, [("/f.00000003", 3, false), ("/f.00000001", 1, false)]);
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
            let files = SharedFiles::of(std::slice::from_mut(&mut spec), &place(rank, 4)).expect("one file");
            assert_eq!(spec.options["offset"].text, offset);
            assert_eq!(spec.options["filename"].text, "/mnt/f");
            assert_eq!(spec.options["overwrite_existing"].text, "/mnt/f");
            assert_eq!((files.files[0].length_bytes, files.files[0].must_be_new), (4 << 20, true));
        }
        let mut spec = job(&[("filename", "f"), ("size", "1m"), ("rw", "randread"), ("shared_region", "all")]);
        let files = SharedFiles::of(std::slice::from_mut(&mut spec), &place(3, 4)).expect("one file");
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
            let error = SharedFiles::of(&mut [job(options)], &place(0, 2)).expect_err("it is refused");
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
            SharedFiles::of(std::slice::from_mut(&mut spec), &place(0, 2)).expect("one file")
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
