//! Says of a failed I/O what went wrong and what to do.
//!
//! The kernel answers a misaligned direct transfer with EINVAL and does not say which number was
//! wrong. Address, offset and length are compared here with what the target says it needs.
//!
//! Source: the errors of read(2), write(2), open(2) NOTES on `O_DIRECT`, fsync(2).

use trueio_model::{Fact, IoFailure, OpKind, TargetFacts};

/// A sentence or two for the user: what was attempted, what the kernel said, the likely cause, and
/// what to do about it. A guess is marked as one.
pub fn explain_failure(failure: &IoFailure, target: Option<&TargetFacts>) -> String {
    let attempt = format!(
        "{} of {} bytes at offset {} of `{}` from address {:#x}",
        failure.op, failure.length, failure.offset, failure.path, failure.address
    );
    if failure.errno == 0 {
        return format!(
            "{attempt} transferred {} bytes only. {}",
            failure.returned,
            if failure.op == OpKind::Read {
                "The file ends there, or was made shorter meanwhile."
            } else {
                "The file may not grow further: the filesystem is full, or a limit was reached."
            }
        );
    }
    let said = std::io::Error::from_raw_os_error(failure.errno);
    let cause = match failure.errno {
        libc::EINVAL => misalignment(failure, target)
            .unwrap_or_else(|| "The kernel does not say which argument it refuses.".to_owned()),
        libc::EIO => "The disk or a layer above it could not do it; the kernel's log says more. What was \
                      written since the last flush may be lost."
            .to_owned(),
        libc::ENOSPC | libc::EDQUOT => "There is no space left: choose a smaller size or another place.".to_owned(),
        libc::EFBIG => "The file would be larger than the filesystem or a limit of this process allows.".to_owned(),
        libc::EOPNOTSUPP => {
            "The filesystem does not offer a flag of this transfer (`RWF_DONTCACHE`, `RWF_ATOMIC`, polling).".to_owned()
        }
        libc::EROFS => "The filesystem is mounted read-only, or became so after an error.".to_owned(),
        libc::EPERM | libc::EACCES => "This user may not do it.".to_owned(),
        libc::EAGAIN => "The kernel had no room for it now.".to_owned(),
        libc::EFAULT => "The buffer is not memory of this process: that is an error of this program.".to_owned(),
        libc::EBADF => "The file is not open for it: that is an error of this program.".to_owned(),
        libc::ENODEV | libc::ENXIO => "The device is not there (any more).".to_owned(),
        _ => String::new(),
    };
    format!("{attempt} failed: {said}. {cause}").trim_end().to_owned()
}

/// Which of address, offset and length the target does not take; `None` if all of them fit, or
/// nobody says what is needed.
fn misalignment(failure: &IoFailure, target: Option<&TargetFacts>) -> Option<String> {
    let direct = &target?.direct;
    let offset_need =
        if failure.op == OpKind::Read { &direct.read_alignment_bytes } else { &direct.write_alignment_bytes };
    let parts: [(&str, u64, &Fact<u32>, &str); 3] = [
        ("address", failure.address, &direct.memory_alignment_bytes, "align the buffers"),
        ("offset", failure.offset, offset_need, "use offsets that are multiples of it"),
        ("length", failure.length, offset_need, "choose a block size that is a multiple of it"),
    ];
    let mut wrong = Vec::new();
    for (name, value, need, remedy) in parts {
        let Some(bytes) = need.value.filter(|bytes| *bytes > 1) else { continue };
        let rest = value % u64::from(bytes);
        if rest != 0 {
            wrong.push(format!(
                "The {name} is {rest} bytes past a multiple of {bytes}, which direct I/O needs here ({}): {remedy}.",
                need.source
            ));
        }
    }
    (!wrong.is_empty()).then(|| wrong.join(" "))
}
