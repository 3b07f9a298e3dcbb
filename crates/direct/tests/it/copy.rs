//! `copy_file` on every available kind of filesystem. *(Linux)*
//!
//! Goal: the copy holds the source's bytes at any range and offset, has the correct length and keeps holes, and
//! nothing is overwritten by default.
//! Method: files of data and holes with lengths around multiples of a sector, copied through small buffers, next to a
//! `Vec`; refusals by name.
//!
//! Needs root, `losetup` and `mkfs.*` for the other filesystems; prints why a part is skipped otherwise.
#![cfg(target_os = "linux")]

use crate::support;

use crate::support::{Mount, around_sectors, loop_of, on_each_filesystem, on_loop, skip};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;
use trueio_direct::{
    Copied, CopyError, CopyOptions, FlushLevel, Granted, OpenError, Policy, copy_file, evict, preallocate, residency,
};

const MIB: u64 = 1 << 20;
/// Larger than a block of every filesystem here.
const PIECE: usize = 16 * 1024;

fn copy(source: &Path, destination: &Path, options: &CopyOptions) -> Result<Copied, CopyError> {
    copy_file(source, destination, options, |_| ControlFlow::Continue(()))
}

/// Writes a file whose pieces of 16 KiB are data or holes, with `tail` more bytes of data; returns its contents.
fn sparse(path: &Path, pieces: &[bool], tail: usize) -> Vec<u8> {
    let _ = std::fs::remove_file(path);
    let file = File::create_new(path).unwrap();
    let mut model = vec![0; pieces.len() * PIECE + tail];
    for (index, _) in pieces.iter().enumerate().filter(|(_, is_data)| **is_data) {
        model[index * PIECE..][..PIECE].fill(index as u8 + 1);
        file.write_all_at(&model[index * PIECE..][..PIECE], (index * PIECE) as u64).unwrap();
    }
    let start = pieces.len() * PIECE;
    model[start..].fill(0xee);
    file.set_len(start as u64).unwrap();
    file.write_all_at(&model[start..], start as u64).unwrap();
    file.sync_all().unwrap();
    model
}

fn assert_copies(folder: &Path, cases: u32) {
    let (from, to) = (folder.join("from"), folder.join("to"));
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..Default::default() });
    let pieces = prop::collection::vec(any::<bool>(), 0..5);
    let buffer = prop::sample::select(vec![1, 4096, 20_000, 1 << 20]);
    let numbers = (around_sectors(100), around_sectors(100), around_sectors(100));
    runner
        .run(&(pieces, 0..5000usize, numbers, buffer), |(pieces, tail, (start, length, offset), buffer)| {
            let model = sparse(&from, &pieces, tail);
            let whole = CopyOptions::new().buffer_bytes(buffer).flush(None).overwrite(true);
            let copied = copy(&from, &to, &whole).unwrap();
            prop_assert_eq!(copied.data_bytes + copied.hole_bytes, model.len() as u64);
            prop_assert!(std::fs::read(&to).unwrap() == model, "the copy differs");

            // A part of it into the same file, whose other bytes stay.
            let (start, end) = (start.min(model.len()), (start + length).min(model.len()));
            let part = whole.clone().range(start as u64..end as u64).destination_offset(offset as u64);
            copy(&from, &to, &part).unwrap();
            let mut patched = model.clone();
            if start < end {
                patched.resize(patched.len().max(offset + end - start), 0);
                patched[offset..offset + end - start].copy_from_slice(&model[start..end]);
            }
            prop_assert!(std::fs::read(&to).unwrap() == patched, "the patched file differs");

            // A part of it as a new file.
            std::fs::remove_file(&to).unwrap();
            copy(&from, &to, &whole.range(start as u64..end as u64)).unwrap();
            prop_assert!(std::fs::read(&to).unwrap() == model[start..end], "the part differs");
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_copy_holds_the_bytes_of_its_source() {
    assert_copies(support::folder().path(), 48);
}

#[test]
fn a_copy_holds_the_bytes_of_its_source_on_every_filesystem() {
    on_each_filesystem(|folder| assert_copies(folder, 12));
}

/// Goal: a hole takes no space in the copy, nor does space that is reserved and was never written.
#[test]
fn holes_stay_holes() {
    let check = |mount: &Mount| {
        let (from, to) = (mount.path.join("from"), mount.path.join("to"));
        let file = File::create_new(&from).unwrap();
        file.write_all_at(&[1; PIECE], 0).unwrap();
        file.write_all_at(&[2; PIECE], 8 * MIB).unwrap();
        preallocate(&file, 2 * MIB, 4 * MIB).unwrap();
        file.set_len(16 * MIB).unwrap();
        file.sync_all().unwrap();
        let copied = copy(&from, &to, &CopyOptions::new()).unwrap();
        assert_eq!((copied.data_bytes, copied.hole_bytes), (2 * PIECE as u64, 16 * MIB - 2 * PIECE as u64));
        assert_eq!(copied.flushed.unwrap().level.max(FlushLevel::Device), FlushLevel::Device);
        let metadata = std::fs::metadata(&to).unwrap();
        assert_eq!(metadata.len(), 16 * MIB);
        assert!(metadata.blocks() * 512 < MIB, "{} bytes allocated", metadata.blocks() * 512);
        assert!(std::fs::read(&to).unwrap() == std::fs::read(&from).unwrap());

        let filled = copy(&from, &to, &CopyOptions::new().overwrite(true).keep_holes(false)).unwrap();
        assert_eq!((filled.data_bytes, filled.hole_bytes), (16 * MIB, 0));
        assert!(std::fs::metadata(&to).unwrap().blocks() * 512 >= 16 * MIB);
    };
    for (kind, size) in [("ext4", 64 * MIB), ("xfs", 512 * MIB), ("btrfs", 256 * MIB)] {
        match on_loop(kind, size, 512, "") {
            Ok(mount) => check(&mount),
            Err(reason) => skip(if kind == "ext4" { "loop" } else { kind }, &reason),
        }
    }
}

#[test]
fn nothing_is_overwritten_by_default() {
    let folder = support::folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::write(&from, b"source").unwrap();
    std::fs::write(&to, b"kept").unwrap();
    assert!(matches!(copy(&from, &to, &CopyOptions::new()), Err(CopyError::Exists { .. })));
    assert_eq!(std::fs::read(&to).unwrap(), b"kept");
    copy(&from, &to, &CopyOptions::new().overwrite(true)).unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), b"source");
    let dangling = folder.path().join("dangling");
    std::os::unix::fs::symlink(folder.path().join("missing"), &dangling).unwrap();
    assert!(copy(&from, &dangling, &CopyOptions::new()).is_err());
    assert!(!folder.path().join("missing").exists());
}

#[test]
fn a_file_is_not_copied_onto_itself() {
    let folder = support::folder();
    let (from, link, symlink) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("c"));
    std::fs::write(&from, b"source").unwrap();
    std::fs::hard_link(&from, &link).unwrap();
    std::os::unix::fs::symlink(&from, &symlink).unwrap();
    for to in [&from, &link, &symlink] {
        let error = copy(&from, to, &CopyOptions::new().overwrite(true)).unwrap_err();
        assert!(matches!(error, CopyError::SameFile { .. }), "{error}");
        assert_eq!(std::fs::read(&from).unwrap(), b"source");
    }
}

#[test]
fn a_stopped_copy_leaves_no_new_file_and_reports_how_far_it_came() {
    let folder = support::folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::write(&from, vec![1; 100_000]).unwrap();
    std::fs::set_permissions(&from, std::fs::Permissions::from_mode(0o640)).unwrap();
    let options = CopyOptions::new().buffer_bytes(8192);
    let mut seen = Vec::new();
    let error = copy_file(&from, &to, &options, |progress| {
        seen.push((progress.done_bytes, progress.total_bytes));
        if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(error, Err(CopyError::Stopped { done: 24_576 })), "{error:?}");
    assert_eq!(seen, [(8192, 100_000), (16_384, 100_000), (24_576, 100_000)]);
    assert!(!to.exists());
    copy(&from, &to, &options).unwrap();
    assert_eq!(std::fs::metadata(&to).unwrap().mode() & 0o777, 0o640);
    let error = copy(&from, &folder.path().join("other"), &options.range(0..100_001)).unwrap_err();
    assert!(matches!(error, CopyError::TooShort { needed: 100_001, available: 100_000, .. }), "{error}");
}

/// Goal: the number of an error that a transfer reports is not lost, nor that of an open.
#[test]
fn an_error_of_the_system_keeps_its_number() {
    let folder = support::folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let missing = copy(&from, &to, &CopyOptions::new()).unwrap_err();
    assert_eq!(missing.raw_os_error(), Some(libc::ENOENT), "{missing}");
    std::fs::write(&from, vec![1; 8 << 20]).unwrap();
    let range = copy(&from, &to, &CopyOptions::new().range(0..u64::MAX)).unwrap_err();
    assert_eq!(range.raw_os_error(), None, "{range}");
    match on_loop("ext4", 4 * MIB, 512, "") {
        Ok(mount) => {
            let to = mount.path.join("to");
            let full = copy(&from, &to, &CopyOptions::new()).unwrap_err();
            assert!(matches!(full, CopyError::Io { call: "writing the destination", .. }), "{full:?}");
            assert_eq!(full.raw_os_error(), Some(libc::ENOSPC), "{full:?}");
            assert!(!to.exists());
        }
        Err(reason) => skip("loop", &reason),
    }
}

/// Goal: what is in the page cache is read from there, the rest from the device, and the copy leaves no more in the cache than was there.
/// Method: a file whose middle is cached, and dirty in part; the middle begins and ends within blocks of the copy.
#[test]
fn cached_bytes_are_read_from_the_cache_and_no_others() {
    let check = |folder: &Path| {
        let (from, to) = (folder.join("from"), folder.join("to"));
        let mut model: Vec<u8> = (0..6 * MIB + 4567).map(|index| (index % 251) as u8).collect();
        std::fs::write(&from, &model).unwrap();
        let file = File::options().read(true).write(true).open(&from).unwrap();
        file.sync_all().unwrap();
        // Pages that the kernel works on stay, so this may take several tries. Those of tmpfs always stay.
        let is_empty = (0..200).any(|_| {
            evict(&file, 0, 0).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            residency(&file, 0, 0).unwrap().cached_pages == 0
        });
        let cached = 2 * MIB + 4096..5 * MIB + 8192;
        // Advice to be random: no read-ahead.
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
        file.read_exact_at(&mut vec![0; (cached.end - cached.start) as usize], cached.start).unwrap();
        file.write_all_at(&[9; 5000], 3 * MIB + 100).unwrap();
        model[3 * MIB as usize + 100..][..5000].fill(9);
        let before = residency(&file, 0, 0).unwrap().cached_pages;
        for (options, expected) in [
            (CopyOptions::new(), 2 * MIB),
            (CopyOptions::new().range(MIB + 1..4 * MIB + 3), MIB + 2),
            (CopyOptions::new().policy(Policy::Require), 0),
            (CopyOptions::new().policy(Policy::Off), 0),
        ] {
            let range = options.clone();
            let copied = match copy(&from, &to, &options.buffer_bytes(1 << 20).overwrite(true)) {
                Ok(copied) => copied,
                // btrfs: writes past the cache are not supported.
                Err(CopyError::Open(OpenError::Buffers { .. })) => continue,
                Err(error) => panic!("{error}"),
            };
            let what = format!("{range:?}: {copied:?}");
            let (start, end) = if expected == MIB + 2 { (MIB + 1, 4 * MIB + 3) } else { (0, model.len() as u64) };
            assert!(std::fs::read(&to).unwrap() == model[start as usize..end as usize], "{what}");
            if copied.source != Granted::Direct {
                assert_eq!(copied.cached_bytes, 0, "{what}");
                continue;
            }
            assert!(is_empty, "the cache cannot be emptied: {what}");
            assert_eq!(copied.cached_bytes, expected, "{what}");
            assert!(residency(&file, 0, 0).unwrap().cached_pages <= before, "{what}");
        }
    };
    check(support::folder().path());
    on_each_filesystem(check);
}

/// Goal: a disk is a source and a destination; one that is mounted or too small is refused.
#[test]
fn disks_are_copied_and_a_mounted_one_is_refused() {
    let (below, small) = match (loop_of(2 * MIB, 512), loop_of(MIB, 512)) {
        (Ok(below), Ok(small)) => (below, small),
        (Err(reason), _) | (_, Err(reason)) => return skip("loop", &reason),
    };
    let folder = support::folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let model = sparse(&from, &[true, false, true], 1000);
    std::fs::write(below.path(), vec![0xff; 2 << 20]).unwrap();
    assert!(matches!(copy(&from, below.path(), &CopyOptions::new()), Err(CopyError::Exists { .. })));
    copy(&from, below.path(), &CopyOptions::new().overwrite(true)).unwrap();
    copy(below.path(), &to, &CopyOptions::new()).unwrap();
    let back = std::fs::read(&to).unwrap();
    assert!(back.len() == 2 << 20 && back[..model.len()] == model && back[model.len()..].iter().all(|b| *b == 0xff));
    let overwrite = CopyOptions::new().overwrite(true);
    let error = copy(below.path(), small.path(), &overwrite).unwrap_err();
    assert!(matches!(error, CopyError::TooShort { .. }), "{error}");
    assert!(matches!(copy(below.path(), below.path(), &overwrite), Err(CopyError::SameFile { .. })));
    match on_loop("ext4", 64 * MIB, 512, "") {
        Ok(mount) => {
            let error = copy(&from, mount.below.as_ref().unwrap().path(), &overwrite).unwrap_err();
            assert!(matches!(error, CopyError::Open(OpenError::Busy { .. })), "{error}");
        }
        Err(reason) => skip("loop", &reason),
    }
}
