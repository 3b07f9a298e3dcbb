//! What the library answers on a kernel without `statx` and `cachestat`.
//!
//! Goal: the fallbacks are taken, and true, through the whole public interface.
//! Method: a filter of system calls on one thread lets the two fail with `ENOSYS`, as a kernel does
//! that never had them. A filter binds the thread for the rest of its life, so each test has its own.
//!
//! Limits: kernels with `statx` and without its newer answers are covered by the unit tests.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use crate::support;

use crate::support::{on_loop, skip};
use trueio_direct::{
    AlignedBuffer, Alignment, AlignmentSource, Answer, FlushLevel, Granted, OpenOptions, Policy, Support, evict, flush,
    probe, residency,
};

const ENOSYS_FOR: [libc::c_long; 2] = [libc::SYS_statx, 451];

/// Runs `test` on a thread where the calls above fail; prints why not where no filter is available.
fn on_an_older_kernel(test: impl FnOnce() + Send) {
    let refusal = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if let Err(error) = forbid() {
                return Some(error);
            }
            test();
            None
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    if let Some(error) = refusal {
        skip("seccomp", &error.to_string());
    }
}

/// Source: seccomp(2); Linux `Documentation/userspace-api/seccomp_filter.rst`.
fn forbid() -> std::io::Result<()> {
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let load_number = step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0);
    let answer = |value| step(libc::BPF_RET | libc::BPF_K, 0, 0, value);
    let equals = |number: libc::c_long, jt| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jt, 0, number as u32);
    let mut program = [
        load_number,
        equals(ENOSYS_FOR[0], 2),
        equals(ENOSYS_FOR[1], 1),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the first call takes numbers only; the second one reads `filter` and the program it
    // points to, which outlive it. Both bind this thread alone.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    if !done {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: an unknown descriptor and no memory; only the error counts. Without the filter: EBADF.
    let code = unsafe { libc::syscall(451, -1, std::ptr::null::<u8>(), std::ptr::null::<u8>(), 0) };
    let error = std::io::Error::last_os_error();
    assert!(code == -1 && error.raw_os_error() == Some(libc::ENOSYS), "the filter does not work: {error}");
    Ok(())
}

#[test]
fn ext4_is_granted_at_the_sector_of_its_device_and_marked_as_unconfirmed() {
    let mount = match on_loop("ext4", 64 << 20, 4096, "") {
        Ok(mount) => mount,
        Err(reason) => return skip("loop", &reason),
    };
    on_an_older_kernel(|| {
        let path = mount.path.join("data");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        assert_eq!(file.granted(), Granted::Unconfirmed);
        assert_eq!(*file.alignment(), Alignment::uniform(4096, AlignmentSource::SectorSize));
        assert!(file.reason().contains("statx does not report"), "{}", file.reason());
        let mut buffer = AlignedBuffer::new(8192, 4096).unwrap();
        file.write_all_at(&buffer, 0).unwrap();
        file.read_exact_at(&mut buffer, 0).unwrap();
        let probe = probe(&path).unwrap();
        assert!(matches!(probe.support, Support::Unknown { .. }));
        assert_eq!(probe.atomic_write_answer, Answer::Unknown, "no answer is not no");
    });
}

#[test]
fn ext4_with_journalled_data_is_refused_by_its_mount_options() {
    let mount = match on_loop("ext4", 64 << 20, 512, "data=journal") {
        Ok(mount) => mount,
        Err(reason) => return skip("loop", &reason),
    };
    on_an_older_kernel(|| {
        let path = mount.path.join("data");
        let error = OpenOptions::new().write(true).create_new(true).open(&path).unwrap_err();
        assert!(error.to_string().contains("data=journal"), "{error}");
        assert!(!path.exists());
    });
}

#[test]
fn xfs_answers_through_its_own_ioctl() {
    let mount = match on_loop("xfs", 512 << 20, 512, "") {
        Ok(mount) => mount,
        Err(reason) => return skip("xfs", &reason),
    };
    on_an_older_kernel(|| {
        let path = mount.path.join("data");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        assert_eq!((file.granted(), file.alignment().source), (Granted::Direct, AlignmentSource::XfsDioInfo));
        assert_eq!(probe(&path).unwrap().support, Support::Direct);
    });
}

#[test]
fn residency_is_counted_by_mincore_and_what_it_cannot_tell_is_unknown() {
    let folder = support::folder();
    on_an_older_kernel(|| {
        let path = folder.path().join("data");
        let file = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Off).open(&path).unwrap();
        file.write_all_at(&[1; 3 * 4096], 0).unwrap();
        let counted = residency(file.file(), 0, 0).unwrap();
        assert_eq!((counted.source, counted.cached_pages), ("mincore", counted.file_pages));
        assert_eq!((counted.dirty_pages, counted.writeback_pages, counted.evicted_pages), (None, None, None));
        flush(file.file(), FlushLevel::Data).unwrap();
        evict(file.file(), 0, 0).unwrap();
        assert_eq!(residency(file.file(), 0, 0).unwrap().cached_pages, 0);
    });
}
