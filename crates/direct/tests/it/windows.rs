//! What is Windows' own: sharing, mandatory locks, the answer about buffering. Run under Wine by
//! `tests/wine/run.sh`; what Wine does not support is skipped with a message.
#![cfg(windows)]

use crate::support;

use crate::support::skip;
use std::fs::File;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use trueio_direct::{
    CopyError, CopyOptions, DeviceError, DirectFile, DirectReader, DirectWriter, Granted, LockError, LockMode,
    OpenError, OpenOptions, Policy, Support, copy_file, device_facts, lock_volume, preallocate, probe, sync_directory,
    try_lock_range, unlock_range,
};

/// Goal: an open file is adopted with what its flags give.
/// Method: with and without `FILE_FLAG_NO_BUFFERING`, against a file that is opened by its path.
#[test]
fn an_open_file_is_adopted_with_what_its_flags_give() {
    use std::os::windows::fs::OpenOptionsExt;
    let folder = support::folder();
    let path = folder.path().join("data");
    std::fs::write(&path, b"x").unwrap();
    let opened = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path).unwrap();
    let raw = File::options().read(true).custom_flags(0x2000_0000).open(&path).unwrap();
    let adopted = DirectFile::from_file(raw).unwrap();
    assert_eq!((adopted.granted(), adopted.reason()), (opened.granted(), opened.reason()));
    let plain = DirectFile::from_file(File::open(&path).unwrap()).unwrap();
    assert_eq!(plain.reason(), "the file was opened without FILE_FLAG_NO_BUFFERING");
    assert_eq!(plain.granted(), Granted::Buffered);
}

/// Goal: Wine, which accepts `FILE_FLAG_NO_BUFFERING` and ignores it, is not believed.
/// Method: either it is named and refused under `Require`, or (on Windows itself) the file is direct
/// and a misaligned write fails in the kernel too.
#[test]
fn no_buffering_is_granted_only_where_it_is_enforced() {
    use std::os::windows::fs::{FileExt, OpenOptionsExt};
    const FILE_FLAG_NO_BUFFERING: u32 = 0x2000_0000;
    let folder = support::folder();
    let path = folder.path().join("data");
    let raw = File::options().write(true).create_new(true).custom_flags(FILE_FLAG_NO_BUFFERING).open(&path).unwrap();
    let is_enforced = raw.seek_write(&[1; 100], 1).is_err();
    drop(raw);
    let required = OpenOptions::new().read(true).write(true).open(&path);
    let support = probe(&path).unwrap().support;
    if is_enforced {
        assert_eq!(required.unwrap().granted(), Granted::Direct);
        assert_eq!(support, Support::Direct);
    } else {
        let error = required.unwrap_err();
        assert!(matches!(&error, OpenError::Buffers { reason, .. } if reason.contains("Wine")), "{error}");
        assert!(matches!(support, Support::SilentlyBuffered { .. }));
        let file = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path).unwrap();
        assert_eq!(file.granted(), Granted::Buffered);
    }
}

#[test]
fn an_exclusive_file_is_busy_for_every_other_opener() {
    let folder = support::folder();
    let path = folder.path().join("data");
    let options = OpenOptions::new().read(true).write(true).policy(Policy::Off);
    let file = options.clone().create_new(true).exclusive(true).open(&path).unwrap();
    assert_eq!(File::open(&path).unwrap_err().raw_os_error(), Some(32));
    assert!(matches!(options.open(&path), Err(OpenError::Busy { .. })));
    drop(file);
    options.open(&path).unwrap();
}

#[test]
fn a_range_lock_keeps_out_its_range_and_binds_plain_writes() {
    use std::os::windows::fs::FileExt;
    let folder = support::folder();
    let path = folder.path().join("data");
    std::fs::write(&path, [0; 300]).unwrap();
    let open = || File::options().read(true).write(true).open(&path).unwrap();
    let (file, other) = (open(), open());
    try_lock_range(&file, LockMode::Exclusive, 0, 100).unwrap();
    assert!(matches!(try_lock_range(&other, LockMode::Shared, 50, 100), Err(LockError::Held(_))));
    match other.seek_write(&[1], 50) {
        Ok(_) => skip("mandatory-locks", "a write went through a lock, as it does under Wine"),
        Err(error) => assert_eq!(error.raw_os_error(), Some(33), "{error}"),
    }
    other.seek_write(&[1], 100).unwrap();
    unlock_range(&file, 0, 100).unwrap();
    try_lock_range(&other, LockMode::Exclusive, 50, 0).unwrap();
}

#[test]
fn a_regular_file_is_no_disk() {
    let folder = support::folder();
    let file = File::create_new(folder.path().join("data")).unwrap();
    let error = device_facts(&file).unwrap_err();
    assert!(matches!(error, DeviceError::NotADevice { kind: "regular file" }), "{error}");
    // Wine grants the lock of a volume even on a file; here only that the call can be made counts.
    let _ = lock_volume(&file);
}

#[test]
fn flushing_a_directory_is_an_error() {
    let folder = support::folder();
    assert_eq!(sync_directory(folder.path()).unwrap_err().kind(), std::io::ErrorKind::Unsupported);
}

#[test]
fn preallocation_never_shortens() {
    let folder = support::folder();
    let path = folder.path().join("data");
    std::fs::write(&path, [7; 10_000]).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    if let Err(error) = preallocate(&file, 0, 1 << 20) {
        return skip("preallocate", &error.to_string());
    }
    preallocate(&file, 0, 100).unwrap();
    let contents = std::fs::read(&path).unwrap();
    assert_eq!(contents.len(), 1 << 20);
    assert!(contents[..10_000].iter().all(|byte| *byte == 7));
}

/// Goal: streams and copies are right here, too; a file is not copied onto itself, also under a name in other case.
#[test]
fn streams_and_copies_hold_what_is_written() {
    let folder = support::folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let data: Vec<u8> = (0..100_001).map(|index| (index % 251) as u8).collect();
    let options = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Prefer);
    let mut writer = DirectWriter::with_capacity(8192, options.open(&from).unwrap()).unwrap();
    writer.write_all(&data).unwrap();
    drop(writer.finish().unwrap());
    let copy = |to: &Path, options: CopyOptions| copy_file(&from, to, &options, |_| ControlFlow::Continue(()));
    assert_eq!(copy(&to, CopyOptions::new()).unwrap().data_bytes, 100_001);
    assert!(std::fs::read(&to).unwrap() == data);
    assert!(matches!(copy(&to, CopyOptions::new()), Err(CopyError::Exists { .. })));
    for name in ["from", "FROM"] {
        let error = copy(&folder.path().join(name), CopyOptions::new().overwrite(true)).unwrap_err();
        assert!(matches!(error, CopyError::SameFile { .. }), "{error}");
    }
    let mut back = Vec::new();
    let file = OpenOptions::new().read(true).policy(Policy::Prefer).open(&to).unwrap();
    DirectReader::new(file).unwrap().read_to_end(&mut back).unwrap();
    assert!(back == data);
    copy(&to, CopyOptions::new().overwrite(true).range(1000..1003)).unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), data[1000..1003]);
    let stopped = copy_file(&from, folder.path().join("new"), &CopyOptions::new(), |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(CopyError::Stopped { .. })));
    assert!(!folder.path().join("new").exists());
}
