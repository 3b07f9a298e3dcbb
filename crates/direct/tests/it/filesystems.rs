//! Compares the library's reports about a filesystem with the kernel's behaviour. *(Linux)*
//!
//! Goal: `Direct`, `SilentlyBuffered` and `Refused` are true, and the alignments are the kernel's.
//! Method: filesystems of every kind on loop devices of both sector sizes. Where direct is claimed,
//! a raw `pwrite` at the claimed alignment succeeds and leaves no page in the cache, and one at half
//! of it fails with `EINVAL`. Where buffering is claimed, raw misaligned transfers with O_DIRECT
//! succeed, and the read leaves pages in the cache. (The write need not: btrfs throws out what it
//! wrote through the cache.)
//!
//! Needs root, `losetup` and `mkfs.*`; prints why it is skipped otherwise.
#![cfg(target_os = "linux")]

use crate::operations;
use crate::support;

use crate::support::{Mount, loop_of, on_loop, skip};
use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use trueio_direct::{
    AlignedBuffer, Alignment, AlignmentSource, Answer, AtomicError, AtomicWrite, DeviceError, DirectFile, FlushLevel,
    Granted, OpenError, OpenOptions, Policy, Support, TransferError, device_facts, evict, flush, preallocate, probe,
    probe_directory, read_uncached_at, residency, write_atomic_at, write_dsync_at,
    write_unaligned_by_read_modify_write_at, write_uncached_at,
};

const MIB: u64 = 1 << 20;

/// What must hold, checked against the kernel itself.
fn assert_direct(folder: &Path, needed: &Alignment) {
    let before = probe_directory(folder).unwrap();
    assert_eq!((before.support, &before.alignment), (Support::Direct, needed), "probed before the file existed");
    let path = folder.join("direct");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    assert_eq!((file.granted(), file.alignment()), (Granted::Direct, needed), "{}", file.reason());
    assert_eq!(probe(&path).unwrap().support, Support::Direct);
    assert_eq!(probe(&path).unwrap().alignment, *needed);
    assert_kernel_enforces(file.file(), needed);
    assert_eq!(residency(file.file(), 0, 0).unwrap().cached_pages, 0);
    file.flush(FlushLevel::Device).unwrap();
}

/// Raw calls: at the alignment given they succeed, off it they fail with `EINVAL`.
fn assert_kernel_enforces(file: &File, needed: &Alignment) {
    let buffer = AlignedBuffer::new(64 * 1024, 8192).unwrap();
    let block = needed.write_offset_bytes.unwrap() as usize;
    let memory = needed.memory_bytes.unwrap() as usize;
    // Room, so that the transfers in the middle of it overwrite.
    assert_eq!(file.write_at(&buffer, 0).unwrap(), buffer.len());
    assert_eq!(file.write_at(&buffer[..block], block as u64).unwrap(), block);
    assert_eq!(file.write_at(&buffer[memory..memory + block], 0).unwrap(), block);
    // Longer than a page: Linux 6.18 takes a misaligned address if the buffer lies within one page.
    let (off_address, off_length, off_offset) = (&buffer[1..=8192], &buffer[..block / 2], block as u64 / 2);
    let refused = |result: std::io::Result<usize>| result.unwrap_err().raw_os_error() == Some(libc::EINVAL);
    assert!(refused(file.write_at(off_address, 0)));
    assert!(refused(file.write_at(off_length, 0)));
    assert!(refused(file.write_at(&buffer[..block], off_offset)));
}

/// `Require` refuses and leaves no file; `Prefer` reports "buffered"; the kernel does buffer.
fn assert_silently_buffered(folder: &Path, word: &str) {
    assert!(matches!(probe_directory(folder).unwrap().support, Support::SilentlyBuffered { .. }));
    let path = folder.join("buffered");
    let options = OpenOptions::new().read(true).write(true);
    let error = options.clone().create_new(true).open(&path).unwrap_err();
    assert!(matches!(&error, OpenError::Buffers { reason, .. } if reason.contains(word)), "{error}");
    assert!(!path.exists(), "a file that could not be opened was not removed");

    let file = options.clone().create_new(true).policy(Policy::Prefer).open(&path).unwrap();
    assert_eq!(file.granted(), Granted::Buffered);
    assert_eq!(*file.alignment(), Alignment::not_needed());
    assert!(file.reason().contains(word), "{}", file.reason());
    let support = probe(&path).unwrap().support;
    assert!(matches!(&support, Support::SilentlyBuffered { reason } if reason.contains(word)), "{support:?}");

    // The kernel's part: it takes the flag and what no direct transfer could be, through the cache.
    let raw = File::options().read(true).write(true).custom_flags(libc::O_DIRECT).open(&path).unwrap();
    raw.write_at(&[1; 4095], 1).unwrap();
    raw.read_at(&mut [0; 100], 3).unwrap();
    assert!(residency(&raw, 0, 0).unwrap().cached_pages > 0);
    assert!(options.open(&path).is_err(), "an existing file is refused too");
    assert_eq!(std::fs::read(&path).unwrap().len(), 4096, "and is still there");
}

fn statx(memory: u32, write_offset: u32, read_offset: u32) -> Alignment {
    let mut alignment = Alignment::uniform(memory, AlignmentSource::Statx);
    alignment.write_offset_bytes = Some(write_offset);
    alignment.read_offset_bytes = Some(read_offset);
    alignment
}

/// Calls in any order leave on this filesystem what they leave in a `Vec`: twelve seeds of 1,500 bytes each.
fn assert_keeps_what_is_written(folder: &Path) {
    for seed in 1..=12u64 {
        let mut state = seed;
        let bytes = std::iter::repeat_with(|| {
            // Knuth's MMIX generator: any that spreads the seeds will do.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        });
        operations::run(&bytes.take(1500).collect::<Vec<u8>>(), folder);
    }
}

/// Goal: exact transfers, unaligned ones, reservations and flushes are correct on every filesystem.
/// Method: a model compared with each kind of filesystem that is available.
#[test]
fn every_filesystem_keeps_what_is_written() {
    let check = |mount: &Mount| assert_keeps_what_is_written(&mount.path);
    for sector in [512, 4096] {
        on(on_loop("ext4", 64 * MIB, sector, ""), "loop", check);
        on(on_loop("xfs", 512 * MIB, sector, ""), "xfs", check);
    }
    on(on_loop("ext4", 64 * MIB, 512, "data=journal"), "loop", check);
    on(on_loop("btrfs", 256 * MIB, 512, ""), "btrfs", check);
    on(Mount::create("tmpfs", "tmpfs", "size=16m"), "mount", check);
    on(Mount::create("ramfs", "ramfs", ""), "mount", check);
}

/// Runs `check` on the mounted filesystem, or prints why not.
fn on(mount: Result<Mount, String>, need: &str, check: impl FnOnce(&Mount)) {
    match mount {
        Ok(mount) => check(&mount),
        Err(reason) => skip(need, &reason),
    }
}

/// Whether statx reports alignment at all on this kernel (6.1), tested in the given directory.
fn kernel_reports(folder: &Path) -> bool {
    let path = folder.join("asked");
    std::fs::write(&path, b"x").unwrap();
    let reports = probe(&path).unwrap().alignment.source == AlignmentSource::Statx;
    if !reports {
        skip("dioalign", "statx reports no alignment on this kernel");
    }
    reports
}

#[test]
fn ext4_is_direct_at_the_sector_of_its_device() {
    for sector in [512, 4096] {
        on(on_loop("ext4", 64 * MIB, sector, ""), "loop", |mount| {
            if kernel_reports(&mount.path) {
                assert_direct(&mount.path, &statx(512, sector, sector));
            }
        });
    }
}

#[test]
fn ext4_with_journalled_data_accepts_the_flag_and_buffers() {
    on(on_loop("ext4", 64 * MIB, 512, "data=journal"), "loop", |mount| {
        assert_silently_buffered(&mount.path, "ext4");
    });
}

#[test]
fn xfs_is_direct_and_its_atomic_writes_are_reported_with_their_limits() {
    for sector in [512, 4096] {
        on(on_loop("xfs", 512 * MIB, sector, ""), "xfs", |mount| {
            if !kernel_reports(&mount.path) {
                return;
            }
            let probe = probe(mount.path.join("asked")).unwrap();
            assert_eq!(probe.filesystem, "XFS");
            assert_direct(&mount.path, &probe.alignment);
            assert!(probe.alignment.write_offset_bytes.unwrap() >= sector);
            match probe.atomic_write_answer {
                Answer::Yes => {
                    let limits = probe.atomic_write.unwrap();
                    assert!(limits.min_bytes.is_power_of_two() && limits.max_bytes >= limits.min_bytes);
                }
                Answer::No | Answer::Unknown => assert_eq!(probe.atomic_write, None),
            }
        });
    }
}

#[test]
fn btrfs_accepts_the_flag_and_buffers_writes() {
    on(on_loop("btrfs", 256 * MIB, 512, ""), "btrfs", |mount| {
        assert_silently_buffered(&mount.path, "btrfs");
    });
}

/// Goal: a file that is only read is direct on btrfs, though its data has checksums.
/// Method: a file that is out of the cache is read whole; afterwards no page of it is there.
#[test]
fn btrfs_reads_past_the_page_cache() {
    on(on_loop("btrfs", 256 * MIB, 512, ""), "btrfs", |mount| {
        let path = mount.path.join("data");
        std::fs::write(&path, vec![7; 64 * 1024]).unwrap();
        let plain = File::open(&path).unwrap();
        flush(&plain, FlushLevel::Device).unwrap();
        evict(&plain, 0, 0).unwrap();
        let found = probe(&path).unwrap();
        assert_eq!(found.read_support, Support::Direct);
        assert!(matches!(found.support, Support::SilentlyBuffered { .. }), "{:?}", found.support);

        let file = OpenOptions::new().read(true).open(&path).unwrap();
        assert_eq!(file.granted(), Granted::Direct, "{}", file.reason());
        assert_eq!(*file.alignment(), Alignment::uniform(4096, AlignmentSource::FilesystemBlock));
        let mut buffer = AlignedBuffer::new(64 * 1024, 4096).unwrap();
        file.read_exact_at(&mut buffer, 0).unwrap();
        assert!(buffer.iter().all(|byte| *byte == 7));
        assert_eq!(residency(file.file(), 0, 0).unwrap().cached_pages, 0);
        // Memory that nothing has touched yet: Linux 6.18 would read through the cache.
        let mut untouched = AlignedBuffer::new(16 << 20, 4096).unwrap();
        file.read_exact_at(&mut untouched[..64 * 1024], 0).unwrap();
        let (_, rest) = untouched.split_at_mut(8 << 20);
        let mut parts = rest[..64 * 1024].chunks_mut(4096).map(IoSliceMut::new).collect::<Vec<_>>();
        file.read_vectored_at(&mut parts, 0).unwrap();
        assert_eq!(residency(file.file(), 0, 0).unwrap().cached_pages, 0);
    });
}

/// Goal: a file of btrfs without checksums is also written directly.
/// Method: a new file in a folder marked `chattr +C`. Aligned transfers leave nothing in the cache.
#[test]
fn btrfs_without_checksums_is_direct_for_writes() {
    on(on_loop("btrfs", 256 * MIB, 512, ""), "btrfs", |mount| {
        let status = std::process::Command::new("chattr").arg("+C").arg(&mount.path).status();
        if !status.is_ok_and(|status| status.success()) {
            return skip("chattr", "chattr +C failed");
        }
        let path = mount.path.join("data");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        assert_eq!(file.granted(), Granted::Direct);
        assert!(file.reason().contains("without checksums"), "{}", file.reason());
        assert_eq!(file.alignment().source, AlignmentSource::FilesystemBlock);
        assert_eq!(probe(&path).unwrap().support, Support::Direct);
        let mut buffer = AlignedBuffer::new(64 * 1024, 4096).unwrap();
        file.write_all_at(&buffer, 0).unwrap();
        file.read_exact_at(&mut buffer, 0).unwrap();
        assert_eq!(residency(file.file(), 0, 0).unwrap().cached_pages, 0);
        assert!(file.write_all_at(&buffer[..512], 0).is_err(), "shorter than a block: btrfs would buffer it");
        assert_keeps_what_is_written(&mount.path);
    });
}

/// Goal: where no file can be made, the folder is probed all the same.
/// Method: an ext4 with one file, and one without, mounted read-only.
#[test]
fn a_folder_of_a_read_only_filesystem_is_probed() {
    let mount = match on_loop("ext4", 64 * MIB, 512, "") {
        Ok(mount) => mount,
        Err(reason) => return skip("loop", &reason),
    };
    std::fs::create_dir(mount.path.join("empty")).unwrap();
    std::fs::write(mount.path.join("data"), b"x").unwrap();
    let direct = probe_directory(&mount.path).unwrap().support;
    mount.make_read_only();
    assert_eq!(probe_directory(&mount.path).unwrap().support, direct);
    let empty = probe_directory(mount.path.join("empty")).unwrap();
    assert!(
        matches!(&empty.support, Support::Unknown { reason } if reason.contains("read-only")),
        "{:?}",
        empty.support
    );
}

/// Goal: a reservation that fails leaves the file as long as it was.
/// Method: sixteen times the filesystem's size is requested, beyond the end of a file of 5,000 bytes.
#[test]
fn a_failed_reservation_leaves_the_length_as_it_was() {
    let check = |mount: &Mount| {
        let file = File::create_new(mount.path.join("data")).unwrap();
        file.write_all_at(&[1; 5000], 0).unwrap();
        let error = preallocate(&file, 0, 8 << 30).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
        assert_eq!(file.metadata().unwrap().len(), 5000);
        preallocate(&file, 0, MIB).unwrap();
        assert_eq!(file.metadata().unwrap().len(), MIB);
    };
    on(on_loop("ext4", 64 * MIB, 512, ""), "loop", check);
    on(on_loop("xfs", 512 * MIB, 512, ""), "xfs", check);
    on(on_loop("btrfs", 256 * MIB, 512, ""), "btrfs", check);
    on(Mount::create("tmpfs", "tmpfs", "size=16m"), "mount", check);
}

/// Goal: an adopted file is granted what the same file would be by its path.
#[test]
fn an_open_file_is_adopted_with_what_its_flags_give() {
    let folder = support::folder();
    let path = folder.path().join("data");
    std::fs::write(&path, vec![1; 8192]).unwrap();
    let opened = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path).unwrap();
    let raw = File::options().read(true).custom_flags(libc::O_DIRECT).open(&path).unwrap();
    let adopted = DirectFile::from_file(raw).unwrap();
    assert_eq!((adopted.granted(), adopted.alignment()), (opened.granted(), opened.alignment()));
    let plain = DirectFile::from_file(File::open(&path).unwrap()).unwrap();
    assert_eq!((plain.granted(), plain.reason()), (Granted::Buffered, "the file was opened without O_DIRECT"));
    assert!(DirectFile::from_file(File::open(folder.path()).unwrap()).is_err(), "a folder");
}

/// Goal: a write at an offset is refused on a descriptor that appends, and nothing is written.
#[test]
fn a_write_at_an_offset_of_a_file_that_is_open_to_append_is_refused() {
    let folder = crate::support::folder();
    let path = folder.path().join("log");
    for flags in [0, libc::O_DIRECT] {
        std::fs::write(&path, [1; 8192]).unwrap();
        let raw = File::options().append(true).read(true).custom_flags(flags).open(&path).unwrap();
        let buffer = AlignedBuffer::new(4096, 4096).unwrap();
        let none = Alignment::not_needed();
        let file = DirectFile::from_file(raw.try_clone().unwrap()).unwrap();
        for refused in [
            file.write_all_at(&buffer, 0).err(),
            file.write_vectored_at(&mut [std::io::IoSlice::new(&buffer)], 0).err(),
            write_unaligned_by_read_modify_write_at(&file, &buffer[..10], 5).err(),
            write_dsync_at(&file, &buffer, 0).err(),
            write_uncached_at(&raw, &buffer, 0).err(),
            trueio_direct::write_all_at(&raw, &none, &buffer, 0).err(),
            trueio_direct::write_vectored_at(&raw, &none, &mut [std::io::IoSlice::new(&buffer)], 0).err(),
        ] {
            assert!(matches!(refused, Some(TransferError::Appends { .. })), "{refused:?}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), [1; 8192]);
        let mut back = AlignedBuffer::new(8192, 4096).unwrap();
        file.read_exact_at(&mut back, 0).expect("reads are not refused");
    }
}

#[test]
fn a_file_is_opened_or_made() {
    let folder = support::folder();
    let path = folder.path().join("data");
    let options = OpenOptions::new().read(true).write(true).create(true).policy(Policy::Off);
    options.open(&path).unwrap().file().write_all_at(b"kept", 0).unwrap();
    options.open(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    let dangling = folder.path().join("dangling");
    std::os::unix::fs::symlink("/no/such/folder/file", &dangling).unwrap();
    assert!(options.open(&dangling).is_err());
}

#[test]
fn tmpfs_accepts_the_flag_and_buffers() {
    on(Mount::create("tmpfs", "tmpfs", "size=16m"), "mount", |mount| {
        assert_silently_buffered(&mount.path, "tmpfs");
    });
}

#[test]
fn tmpfs_is_found_without_root_where_it_is_mounted_for_everybody() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return skip("shm", "/dev/shm cannot be written") };
    assert_silently_buffered(folder.path(), "tmpfs");
}

#[test]
fn ramfs_refuses_the_flag_and_a_refused_new_file_is_removed() {
    on(Mount::create("ramfs", "ramfs", ""), "mount", |mount| {
        let path = mount.path.join("refused");
        assert!(matches!(probe_directory(&mount.path).unwrap().support, Support::Refused { .. }));
        assert_eq!(std::fs::read_dir(&mount.path).unwrap().count(), 0, "a probe left a file");
        let options = OpenOptions::new().read(true).write(true);
        let error = options.clone().create_new(true).open(&path).unwrap_err();
        assert!(matches!(error, OpenError::Refused { .. }), "{error}");
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        assert!(error.to_string().contains("ramfs refuses O_DIRECT"), "{error}");
        assert!(!path.exists(), "a file that could not be opened was not removed");

        let file = options.clone().create_new(true).policy(Policy::Prefer).open(&path).unwrap();
        assert_eq!(file.granted(), Granted::Buffered);
        file.write_all_at(b"unaligned", 3).unwrap();
        assert!(matches!(probe(&path).unwrap().support, Support::Refused { .. }));
        assert!(matches!(options.open(&path), Err(OpenError::Refused { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"\0\0\0unaligned");
    });
}

#[test]
fn overlayfs_answers_for_the_filesystem_below_it() {
    on(on_loop("ext4", 64 * MIB, 512, ""), "loop", |below| {
        if !kernel_reports(&below.path) {
            return;
        }
        for name in ["lower", "upper", "work"] {
            std::fs::create_dir(below.path.join(name)).unwrap();
        }
        let root = below.path.display();
        let options = format!("lowerdir={root}/lower,upperdir={root}/upper,workdir={root}/work");
        on(Mount::create("overlay", "overlay", &options), "overlay", |mount| {
            assert_direct(&mount.path, &statx(512, 512, 512));
            assert_keeps_what_is_written(&mount.path);
        });
    });
}

#[test]
fn a_disk_is_direct_at_its_sector_and_reports_its_facts_without_a_serial() {
    for sector in [512, 4096] {
        let below = match loop_of(16 * MIB, sector) {
            Ok(below) => below,
            Err(reason) => return skip("loop", &reason),
        };
        let file = OpenOptions::new().read(true).write(true).exclusive(true).open(below.path()).unwrap();
        assert_eq!(file.granted(), Granted::Direct);
        assert_eq!(file.alignment().write_offset_bytes, Some(sector));
        assert_kernel_enforces(file.file(), file.alignment());
        let facts = device_facts(file.file()).unwrap();
        assert_eq!((facts.size_bytes, facts.logical_sector_bytes), (16 * MIB, sector));
        assert!(facts.physical_sector_bytes.is_some_and(|bytes| bytes >= sector), "{facts:?}");
        assert_eq!((facts.serial, facts.serial_source), (None, None));

        let error = OpenOptions::new().read(true).exclusive(true).open(below.path()).unwrap_err();
        assert!(matches!(error, OpenError::Busy { .. }), "{error}");
        OpenOptions::new().read(true).open(below.path()).expect("without `exclusive` it may be shared");

        let residency = residency(file.file(), 0, 0).unwrap();
        assert_eq!(residency.file_pages * residency.page_size_bytes, 16 * MIB);
        flush(file.file(), FlushLevel::Device).unwrap();
    }
}

#[test]
fn an_unaligned_write_to_a_disk_keeps_the_neighbours_in_its_sectors() {
    let below = match loop_of(16 * MIB, 4096) {
        Ok(below) => below,
        Err(reason) => return skip("loop", &reason),
    };
    let file = OpenOptions::new().read(true).write(true).open(below.path()).unwrap();
    let mut whole = AlignedBuffer::new(5 * 4096, 4096).unwrap();
    whole.fill(1);
    file.write_all_at(&whole, 0).unwrap();
    // Within one sector; over the border of two; from the middle of one to the end of another.
    for (offset, length, mark) in [(100, 7, 2), (4090, 12, 3), (9000, 12288 - 9000, 4)] {
        write_unaligned_by_read_modify_write_at(&file, &vec![mark; length], offset).unwrap();
        whole[offset as usize..offset as usize + length].fill(mark);
    }
    let mut back = AlignedBuffer::new(whole.len(), 4096).unwrap();
    file.read_exact_at(&mut back, 0).unwrap();
    assert!(*back == *whole);
    // The last sector: nothing is cut off and nothing is added.
    write_unaligned_by_read_modify_write_at(&file, &[5; 10], 16 * MIB - 10).unwrap();
    assert!(write_unaligned_by_read_modify_write_at(&file, &[5; 10], 16 * MIB - 9).is_err());
    assert_eq!(device_facts(file.file()).unwrap().size_bytes, 16 * MIB);
}

#[test]
fn a_mounted_disk_is_busy_for_exclusive_use() {
    on(on_loop("ext4", 64 * MIB, 512, ""), "loop", |mount| {
        let device = mount.below.as_ref().unwrap().path();
        let error = OpenOptions::new().read(true).exclusive(true).open(device).unwrap_err();
        assert!(matches!(error, OpenError::Busy { .. }), "{error}");
        assert_eq!(error.raw_os_error(), Some(libc::EBUSY));
    });
}

#[test]
fn a_regular_file_is_no_disk() {
    let folder = support::folder();
    let file = File::create_new(folder.path().join("data")).unwrap();
    assert!(matches!(device_facts(&file), Err(DeviceError::NotADevice { kind: "regular file" })));
}

/// Goal: limits of atomic writes are the kernel's own.
/// Method: XFS on Linux 6.16 and later does them in software. Within the limits they succeed; a raw
/// call just outside them fails, so that a test of the limits alone would be noticed.
#[test]
fn xfs_writes_atomically_within_its_limits_and_not_beyond() {
    on(on_loop("xfs", 512 * MIB, 512, ""), "xfs", |mount| {
        let path = mount.path.join("data");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let Some(limits) = trueio_direct::probe_file(file.file()).unwrap().atomic_write else {
            return skip("atomic", "XFS reports no atomic writes on this kernel");
        };
        let largest = limits.max_bytes as usize;
        let buffer = AlignedBuffer::new(2 * largest, 4096).unwrap();
        file.write_all_at(&buffer, 0).unwrap();
        for length in [limits.min_bytes as usize, largest] {
            write_atomic_at(&file, &limits, &buffer[..length], length as u64).unwrap();
        }
        let error = write_atomic_at(&file, &limits, &buffer, 0).unwrap_err();
        assert!(matches!(error, AtomicError::LengthOutside { .. }), "{error}");
        let beyond = AtomicWrite { max_bytes: 2 * limits.max_bytes, ..limits };
        let error = write_atomic_at(&file, &beyond, &buffer, 0).unwrap_err();
        assert!(matches!(error, AtomicError::Transfer(TransferError::Io { done: 0, .. })), "{error}");
    });
}

#[test]
fn an_atomic_write_is_refused_by_the_kernel_where_none_is_reported() {
    on(on_loop("ext4", 64 * MIB, 512, ""), "loop", |mount| {
        let path = mount.path.join("data");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        if trueio_direct::probe_file(file.file()).unwrap().atomic_write_answer == Answer::Yes {
            return skip("atomic-refused", "this kernel writes atomically on ext4 over a loop device");
        }
        let invented = AtomicWrite { min_bytes: 512, max_bytes: 65536, max_fast_bytes: 0, segments_max: 1 };
        let buffer = AlignedBuffer::new(4096, 4096).unwrap();
        let error = write_atomic_at(&file, &invented, &buffer, 0).unwrap_err();
        assert!(matches!(error, AtomicError::Transfer(_)), "{error}");
        assert_eq!(file.file().metadata().unwrap().len(), 0, "nothing was written in another way");
    });
}

#[test]
fn uncached_reads_and_writes_leave_nothing_in_the_cache() {
    let folder = support::folder();
    let path = folder.path().join("data");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    if trueio_direct::probe_file(&file).unwrap().uncached_buffered != Answer::Yes {
        return skip("dontcache", "RWF_DONTCACHE is not known to this kernel or filesystem");
    }
    let mut data = vec![7; 1 << 20];
    write_uncached_at(&file, &data, 0).unwrap();
    flush(&file, FlushLevel::Data).unwrap();
    evict(&file, 0, 0).unwrap();
    data.fill(0);
    read_uncached_at(&file, &mut data, 0).unwrap();
    assert!(data.iter().all(|byte| *byte == 7));
    assert_eq!(residency(&file, 0, 0).unwrap().cached_pages, 0);
    // The same read without the promise does leave pages: the count above could have failed.
    file.read_at(&mut data, 0).unwrap();
    assert!(residency(&file, 0, 0).unwrap().cached_pages > 0);
}

#[test]
fn a_durable_write_leaves_no_dirty_page() {
    let folder = support::folder();
    let path = folder.path().join("data");
    let file = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Off).open(&path).unwrap();
    file.write_all_at(&[1; 8192], 0).unwrap();
    let dirty = residency(file.file(), 0, 0).unwrap().dirty_pages;
    write_dsync_at(&file, &[2; 8192], 0).unwrap();
    let after = residency(file.file(), 0, 0).unwrap();
    let Some(dirty) = dirty else { return skip("cachestat", "dirty pages are not counted on this kernel") };
    assert_eq!((dirty, after.dirty_pages, after.writeback_pages), (2, Some(0), Some(0)));
}

#[test]
fn uncached_buffered_io_is_promised_exactly_where_the_kernel_does_it() {
    let folder = support::folder();
    let path = folder.path().join("data");
    std::fs::write(&path, vec![0; 8192]).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let answer = probe(&path).unwrap().uncached_buffered;
    const RWF_DONTCACHE: i32 = 0x80;
    let part = libc::iovec { iov_base: [1u8; 4096].as_mut_ptr().cast(), iov_len: 4096 };
    // SAFETY: one buffer of 4,096 bytes that outlives the call.
    let written =
        unsafe { libc::pwritev2(std::os::fd::AsRawFd::as_raw_fd(&file), &raw const part, 1, 0, RWF_DONTCACHE) };
    assert_eq!(answer, if written == 4096 { Answer::Yes } else { Answer::No });
}

/// Goal: what is granted holds for each write that is not refused, also after the blocks of the file are shared.
/// Method: a file of XFS is copied by `cp --reflink` while it is open. A write of one sector would then be buffered: it is refused with
/// the alignment of now, and no page is dirty. Whole blocks and unaligned writes are written, and the copy keeps its content.
#[test]
fn a_write_of_a_part_of_a_block_that_became_shared_is_refused() {
    on(on_loop("xfs", 512 * MIB, 512, ""), "xfs", |mount| {
        let (path, copy) = (mount.path.join("data"), mount.path.join("copy"));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let mut buffer = AlignedBuffer::new(64 * 1024, 4096).unwrap();
        buffer.fill(1);
        file.write_all_at(&buffer, 0).unwrap();
        assert_eq!((file.granted(), file.alignment().write_offset_bytes), (Granted::Direct, Some(512)));
        buffer.fill(2);
        file.write_all_at(&buffer[..512], 512).unwrap();
        let copied = std::process::Command::new("cp").arg("--reflink=always").args([&path, &copy]).status().unwrap();
        assert!(copied.success());
        let before = std::fs::read(&copy).unwrap();
        evict(file.file(), 0, 0).unwrap();
        let is_reported = probe(&path).unwrap().alignment.write_offset_bytes == Some(4096);
        if !is_reported {
            return skip("kernel", "this kernel does not report the alignment of shared blocks");
        }
        let refused = [
            file.write_all_at(&buffer[..512], 1024).unwrap_err(),
            file.write_vectored_at(&mut [std::io::IoSlice::new(&buffer[..512])], 1024).unwrap_err(),
            write_dsync_at(&file, &buffer[..512], 1024).unwrap_err(),
        ];
        for error in refused {
            assert!(matches!(&error, TransferError::Misaligned(wrong) if wrong.needed_bytes == 4096), "{error}");
        }
        let clean = |what: &str| {
            let pages = residency(file.file(), 0, 0).unwrap();
            assert_eq!((pages.cached_pages, pages.dirty_pages.unwrap_or(0)), (0, 0), "{what}");
        };
        clean("after the refusals");
        file.write_all_at(&buffer[..4096], 8192).unwrap();
        write_unaligned_by_read_modify_write_at(&file, &buffer[..512], 20_480 + 512).unwrap();
        write_unaligned_by_read_modify_write_at(&file, &buffer[..10_000], 30_001).unwrap();
        clean("after the writes");
        let mut expected = before.clone();
        for range in [8192..12_288, 20_992..21_504, 30_001..40_001] {
            expected[range].fill(2);
        }
        assert!(std::fs::read(&path).unwrap() == expected);
        assert!(std::fs::read(&copy).unwrap() == before);
    });
}
