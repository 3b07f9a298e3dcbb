//! The library on the filesystem of the build directory. Nothing here needs root.

use crate::support::{folder, skip};
use std::path::PathBuf;
use trueio_direct::{
    AlignedBuffer, FlushLevel, Granted, LockError, LockMode, OpenError, OpenOptions, Policy, ProbeError, SyncMode,
    TransferError, TransferPart, preallocate, probe, sync_directory, try_lock, unlock,
};

fn new_file(policy: Policy) -> (tempfile::TempDir, PathBuf, trueio_direct::DirectFile) {
    let folder = folder();
    let path = folder.path().join("data");
    let file = OpenOptions::new().read(true).write(true).create_new(true).policy(policy).open(&path).unwrap();
    (folder, path, file)
}

#[test]
fn what_was_written_is_read_back() {
    let (_folder, _path, file) = new_file(Policy::Prefer);
    let mut buffer = AlignedBuffer::new(64 * 1024, 4096).unwrap();
    for (index, byte) in buffer.iter_mut().enumerate() {
        *byte = (index % 251) as u8;
    }
    assert_eq!(file.write_all_at(&buffer, 8192).unwrap().bytes, buffer.len());
    let mut back = AlignedBuffer::new(buffer.len(), 4096).unwrap();
    file.read_exact_at(&mut back, 8192).unwrap();
    assert!(*back == *buffer);
    file.read_exact_at(&mut back[..4096], 0).unwrap();
    assert!(back[..4096].iter().all(|byte| *byte == 0), "the hole before it reads as zeros");
}

#[test]
fn the_end_of_the_file_is_named_with_what_was_read_before_it() {
    let (_folder, _path, file) = new_file(Policy::Prefer);
    let mut buffer = AlignedBuffer::new(8192, 4096).unwrap();
    file.write_all_at(&buffer[..4096], 0).unwrap();
    let error = file.read_exact_at(&mut buffer, 0).unwrap_err();
    assert_eq!(error.to_string(), "the file ended after 4096 of 8192 bytes, read from offset 0");
    assert!(matches!(error, TransferError::EndOfFile { offset: 0, wanted: 8192, done: 4096 }));
}

#[test]
fn a_buffered_file_requires_no_alignment_and_reports_its_policy() {
    let (_folder, _path, file) = new_file(Policy::Off);
    assert_eq!(file.granted(), Granted::Buffered);
    assert_eq!(file.alignment().memory_bytes, Some(1));
    assert_eq!(file.reason(), "the policy is off, so the file uses the page cache");
    file.write_all_at(b"unaligned", 3).unwrap();
}

#[test]
fn a_misaligned_transfer_is_named_and_never_made() {
    let (_folder, path, file) = new_file(Policy::Prefer);
    let Some(needed) = file.alignment().write_offset_bytes.filter(|_| file.granted() == Granted::Direct) else {
        return skip("direct", &format!("{}: {}", file.granted(), file.reason()));
    };
    let buffer = AlignedBuffer::new(8192, 4096).unwrap();
    for (slice, offset, part) in [
        (&buffer[1..4097], 0, TransferPart::Address),
        (&buffer[..100], 0, TransferPart::Length),
        (&buffer[..4096], 1, TransferPart::Offset),
    ] {
        let error = file.write_all_at(slice, offset).unwrap_err();
        let TransferError::Misaligned(wrong) = error else { panic!("{error}") };
        assert_eq!(wrong.part, part);
        assert!(wrong.needed_bytes == needed || part == TransferPart::Address);
    }
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
}

#[test]
fn an_existing_file_is_never_replaced_or_shortened() {
    let folder = folder();
    let path = folder.path().join("data");
    std::fs::write(&path, b"precious").unwrap();
    let options = OpenOptions::new().read(true).write(true).policy(Policy::Prefer);
    let error = options.clone().create_new(true).open(&path).unwrap_err();
    let OpenError::Io { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::AlreadyExists);
    options.open(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

/// The creator of a file may write to it, whatever its mode is. (Root may anyway: run it as another
/// user to see the second way of setting the flag.)
#[cfg(target_os = "linux")]
#[test]
fn a_new_file_without_write_permission_is_written_by_its_creator() {
    let folder = folder();
    let path = folder.path().join("data");
    let options = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Prefer).mode(0o400);
    let file = options.open(&path).unwrap();
    file.write_all_at(&AlignedBuffer::new(4096, 4096).unwrap(), 0).unwrap();
    // SAFETY: F_GETFL takes no argument and only reads.
    let flags = unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(file.file()), libc::F_GETFL) };
    if file.granted() == Granted::Direct {
        assert_ne!(flags & libc::O_DIRECT, 0, "granted, and the flag is not set");
    }
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&file.file().metadata().unwrap()) & 0o777, 0o400);
}

#[test]
fn what_holds_no_data_at_offsets_is_refused_by_its_kind() {
    let folder = folder();
    let options = OpenOptions::new().read(true).policy(Policy::Prefer);
    let error = options.open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotAFile { kind: "directory", .. }), "{error}");
    #[cfg(unix)]
    assert_eq!(error.raw_os_error(), Some(libc::EISDIR));
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::IsADirectory);
    let error = probe(folder.path()).unwrap_err();
    assert!(matches!(error, ProbeError::NotAFile { kind: "directory", .. }), "{error}");
    assert!(error.to_string().contains("is a directory"), "{error}");
    #[cfg(unix)]
    assert_eq!(error.raw_os_error(), Some(libc::EISDIR));
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::IsADirectory);
}

#[test]
fn probing_a_directory_leaves_no_file_in_it() {
    let folder = folder();
    let before = trueio_direct::probe_directory(folder.path()).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let path = folder.path().join("data");
    std::fs::write(&path, b"x").unwrap();
    assert_eq!(before, probe(&path).unwrap());
    assert!(trueio_direct::probe_directory(&path).unwrap_err().raw_os_error().is_none());
    assert!(trueio_direct::probe_directory(folder.path().join("nothing")).is_err());
}

/// Goal: a file without read permission is probed. Method: as an unprivileged user, where this test
/// has one to become; root may read everything.
#[cfg(target_os = "linux")]
#[test]
fn a_file_without_permissions_is_probed_by_its_name() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("data");
    std::fs::write(&path, b"x").unwrap();
    let readable = probe(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    if std::fs::File::open(&path).is_ok() {
        return skip("unprivileged", "this user reads files without permissions");
    }
    let closed = probe(&path).unwrap();
    assert_eq!((closed.support, closed.alignment), (readable.support, readable.alignment));
    assert_eq!(closed.uncached_buffered, trueio_direct::Answer::Unknown);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_without_waiting_for_its_other_end() {
    let folder = folder();
    let path = folder.path().join("pipe");
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: `name` is a C string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let error = OpenOptions::new().read(true).open(&path).unwrap_err();
    assert!(matches!(error, OpenError::NotAFile { kind: "pipe", .. }), "{error}");
    assert!(matches!(probe(&path), Err(ProbeError::NotAFile { kind: "pipe", .. })));
    let error = OpenOptions::new().read(true).open(std::path::Path::new("/dev/null")).unwrap_err();
    assert!(matches!(error, OpenError::NotAFile { kind: "character device", .. }), "{error}");
}

#[test]
fn opening_for_nothing_is_refused() {
    let folder = folder();
    let path = folder.path().join("data");
    assert!(matches!(OpenOptions::new().open(&path), Err(OpenError::NothingAsked { .. })));
    let new_but_not_written = OpenOptions::new().read(true).create_new(true);
    assert!(matches!(new_but_not_written.open(&path), Err(OpenError::NothingAsked { .. })));
    assert!(!path.exists());
}

#[test]
fn a_missing_file_is_an_error_of_the_system() {
    let folder = folder();
    let path = folder.path().join("nothing");
    let error = OpenOptions::new().read(true).open(&path).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(2));
    assert_eq!(probe(&path).unwrap_err().raw_os_error(), Some(2));
}

#[test]
fn every_flush_level_is_reached_or_exceeded() {
    let (folder, _path, file) = new_file(Policy::Off);
    file.write_all_at(b"data", 0).unwrap();
    for level in [FlushLevel::Barrier, FlushLevel::Data, FlushLevel::File, FlushLevel::Device] {
        let flushed = file.flush(level).unwrap();
        assert!(flushed.level >= level, "{flushed:?}");
        assert!(level < FlushLevel::Device || flushed.device_cache_flushed);
    }
    if cfg!(unix) {
        sync_directory(folder.path()).unwrap();
        assert!(sync_directory(folder.path().join("data")).is_err());
    }
}

#[test]
fn sync_modes_reach_the_kernel_as_flags() {
    for sync in [SyncMode::None, SyncMode::Dsync, SyncMode::Sync] {
        let folder = folder();
        let path = folder.path().join("data");
        let file = OpenOptions::new().write(true).create_new(true).policy(Policy::Off).sync(sync).open(&path).unwrap();
        file.write_all_at(b"data", 0).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"data");
        #[cfg(unix)]
        {
            // SAFETY: F_GETFL takes no argument and only reads.
            let flags = unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(file.file()), libc::F_GETFL) };
            let wanted = match sync {
                SyncMode::None => 0,
                SyncMode::Dsync => libc::O_DSYNC,
                SyncMode::Sync => libc::O_SYNC,
            };
            assert_eq!(flags & (libc::O_DSYNC | libc::O_SYNC), wanted);
        }
    }
}

#[test]
fn preallocation_lengthens_and_changes_nothing_that_exists() {
    let (_folder, path, file) = new_file(Policy::Off);
    file.write_all_at(b"data", 0).unwrap();
    if let Err(error) = preallocate(file.file(), 0, 1 << 20) {
        assert_eq!(error.kind(), std::io::ErrorKind::Unsupported, "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"data");
        return skip("preallocate", &error.to_string());
    }
    let contents = std::fs::read(&path).unwrap();
    assert_eq!(contents.len(), 1 << 20);
    assert!(contents.starts_with(b"data\0\0"));
    preallocate(file.file(), 0, 1).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 20);
    assert_eq!(preallocate(file.file(), 0, 0).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!(preallocate(file.file(), u64::MAX, 2).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn a_lock_keeps_out_a_second_open_file() {
    let (_folder, path, file) = new_file(Policy::Off);
    let other = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    try_lock(file.file(), LockMode::Exclusive).unwrap();
    assert!(matches!(try_lock(&other, LockMode::Exclusive), Err(LockError::Held(_))));
    assert!(matches!(try_lock(&other, LockMode::Shared), Err(LockError::Held(_))));
    unlock(file.file()).unwrap();
    try_lock(&other, LockMode::Shared).unwrap();
    try_lock(file.file(), LockMode::Shared).unwrap();
}

#[test]
fn an_exclusive_file_is_busy_for_the_next_one() {
    let folder = folder();
    let path = folder.path().join("data");
    let options = OpenOptions::new().read(true).write(true).policy(Policy::Off).exclusive(true);
    let first = options.clone().create_new(true).open(&path).unwrap();
    let error = options.open(&path).unwrap_err();
    assert!(matches!(error, OpenError::Busy { .. }), "{error}");
    drop(first);
    options.open(&path).unwrap();
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
#[test]
fn a_range_lock_keeps_out_its_range_and_survives_another_descriptor() {
    use trueio_direct::{try_lock_range, unlock_range};
    let (_folder, path, file) = new_file(Policy::Off);
    let open = || std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let other = open();
    try_lock_range(file.file(), LockMode::Exclusive, 0, 100).unwrap();
    // A lock of the process (F_SETLK) would be lost here.
    drop(open());
    assert!(matches!(try_lock_range(&other, LockMode::Exclusive, 50, 100), Err(LockError::Held(_))));
    try_lock_range(&other, LockMode::Exclusive, 100, 0).unwrap();
    unlock_range(file.file(), 0, 100).unwrap();
    try_lock_range(&other, LockMode::Exclusive, 50, 10).unwrap();
    assert!(matches!(try_lock_range(&other, LockMode::Shared, u64::MAX, 1), Err(LockError::Io(_))));
}

#[cfg(target_os = "linux")]
#[test]
fn written_pages_are_dirty_then_clean_then_gone() {
    use trueio_direct::{evict, flush, residency};
    let (_folder, _path, file) = new_file(Policy::Off);
    file.write_all_at(&vec![7; 40 * 4096 - 10], 0).unwrap();
    let before = residency(file.file(), 0, 0).unwrap();
    assert_eq!(before.file_pages * before.page_size_bytes, 40 * 4096);
    assert_eq!(before.cached_pages, before.file_pages);
    flush(file.file(), FlushLevel::Data).unwrap();
    let clean = residency(file.file(), 0, 0).unwrap();
    if clean.source == "cachestat" {
        assert_eq!((clean.dirty_pages, clean.writeback_pages), (Some(0), Some(0)));
    }
    evict(file.file(), 0, 0).unwrap();
    assert_eq!(residency(file.file(), 0, 0).unwrap().cached_pages, 0);
    let part = residency(file.file(), 4096, 8192).unwrap();
    assert_eq!(part.file_pages, 2);
    assert_eq!(residency(file.file(), 1 << 40, 4096).unwrap().file_pages, 0);
}

#[cfg(unix)]
#[test]
fn what_has_no_pages_is_refused_and_not_counted_as_empty() {
    let (pipe, _other_end) = std::io::pipe().unwrap();
    let pipe = std::fs::File::from(std::os::fd::OwnedFd::from(pipe));
    let error = trueio_direct::residency(&pipe, 0, 0).unwrap_err();
    assert_eq!(error.to_string(), "a pipe has no pages in the page cache; only regular files and disks have");
    assert_eq!(trueio_direct::evict(&pipe, 0, 0).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    let folder = std::fs::File::open(folder().path()).unwrap();
    assert_eq!(trueio_direct::residency(&folder, 0, 0).unwrap_err().raw_os_error(), Some(libc::EISDIR));
    assert_eq!(trueio_direct::evict(&folder, 0, 0).unwrap_err().raw_os_error(), Some(libc::EISDIR));
}

/// The kernel counts huge pages by mapping: /proc/self/smaps, proc_pid_smaps(5).
#[cfg(target_os = "linux")]
#[test]
fn a_large_buffer_lies_in_huge_pages_where_the_system_gives_them_on_request() {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if !setting.contains("[madvise]") {
        return skip("hugepages", &format!("transparent huge pages are set to: {}", setting.trim()));
    }
    let huge_kib = |buffer: &AlignedBuffer| -> u64 {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut inside, mut sum) = (false, 0);
        for line in smaps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let range =
                range.and_then(|(a, b)| Some((usize::from_str_radix(a, 16).ok()?, usize::from_str_radix(b, 16).ok()?)));
            if let Some((from, to)) = range {
                inside = from < buffer.as_ptr().addr() + buffer.len() && to > buffer.as_ptr().addr();
            } else if let Some(kib) = line.strip_prefix("AnonHugePages:").filter(|_| inside) {
                sum += kib.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap();
            }
        }
        sum
    };
    let mut large = AlignedBuffer::new(64 << 20, 4096).unwrap();
    large.fill(1);
    // Fragmented memory may refuse some.
    assert!(huge_kib(&large) >= 4096, "{} KiB", huge_kib(&large));
    // The smallest that holds one.
    let mut kept = Vec::new();
    let is_huge = (0..256).any(|_| {
        let mut smallest = AlignedBuffer::new(2 << 20, 4096).unwrap();
        smallest.fill(1);
        let is_huge = huge_kib(&smallest) >= 2048;
        // Kept, so that the next one is other memory.
        kept.push(smallest);
        is_huge
    });
    assert!(is_huge, "none of {} lies in a huge page", kept.len());
}

/// Goal: the length is exactly what was set, also within a block, and a file that becomes longer ends with zeros.
#[test]
fn the_length_of_a_file_is_set_to_any_number_of_bytes() {
    for policy in [Policy::Prefer, Policy::Off] {
        let (_folder, path, file) = new_file(policy);
        let mut buffer = AlignedBuffer::new(8192, 4096).unwrap();
        buffer.fill(7);
        file.write_all_at(&buffer, 0).unwrap();
        for length in [5000, 4096, 3, 10_000, 0, 1] {
            file.truncate(length).unwrap();
            assert_eq!((file.size().unwrap(), std::fs::metadata(&path).unwrap().len()), (length, length));
        }
        file.write_all_at(&buffer, 0).unwrap();
        file.truncate(3).unwrap();
        file.truncate(8192).unwrap();
        let mut back = AlignedBuffer::new(8192, 4096).unwrap();
        file.read_exact_at(&mut back, 0).unwrap();
        assert!(back[..3] == [7; 3] && back[3..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_length_that_cannot_be_set_is_refused() {
    let (_folder, path, file) = new_file(Policy::Prefer);
    file.truncate(1000).unwrap();
    for length in [1 << 63, u64::MAX] {
        let error = file.truncate(length).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "the length is beyond the largest file offset");
    }
    let reader = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path).unwrap();
    let error = reader.truncate(0).unwrap_err();
    if cfg!(unix) {
        assert_eq!(error.raw_os_error(), Some(9), "EBADF: {error}");
    }
    assert_eq!(file.size().unwrap(), 1000);
}
