//! Explains a failed I/O: what was attempted, what the kernel returned, the likely cause, and what to do about it.
//!
//! The kernel answers a misaligned direct transfer with EINVAL and does not report which number was wrong. This module
//! compares address, offset and length with what the target requires.
//!
//! Source: the errors of read(2), write(2), open(2) NOTES on `O_DIRECT`, fsync(2).

use trueio_model::{Fact, IoFailure, OpKind, TargetFacts};

/// Returns the sentence about a failed I/O: the attempt, then `explanation`.
pub fn describe_failure(failure: &IoFailure, explanation: &str) -> String {
    let times = if failure.count > 1 { format!(" ({} times)", failure.count) } else { String::new() };
    // Only a refused argument depends on the address.
    let address =
        if failure.errno == libc::EINVAL { format!(" from address {:#x}", failure.address) } else { String::new() };
    format!(
        "{} of {} bytes at offset {} of `{}`{address} failed{times}: {explanation}",
        failure.op, failure.length, failure.offset, failure.path
    )
}

/// Returns the meaning of a failed I/O: the kernel's error, the likely cause, and a remedy. An empty path
/// means the simulated disk.
pub fn explain_failure(failure: &IoFailure, target: Option<&TargetFacts>) -> String {
    if failure.errno == 0 {
        return format!(
            "only {} of {} bytes were transferred. {}",
            failure.returned,
            failure.length,
            if failure.op == OpKind::Read {
                "The file ends there, or may have been truncated meanwhile."
            } else {
                "The file cannot grow: the filesystem is full, or a limit was reached."
            }
        );
    }
    let error = std::io::Error::from_raw_os_error(failure.errno);
    let cause = match failure.errno {
        libc::EINVAL => misalignment(failure, target)
            .unwrap_or_else(|| "The kernel does not report which argument it refuses.".to_owned()),
        libc::EIO if failure.path.is_empty() => "The simulated disk was set to fail this I/O.".to_owned(),
        libc::EIO => "The disk or a layer above it failed the I/O; the kernel log (dmesg) has details. Data \
                      written since the last flush may be lost."
            .to_owned(),
        libc::ENOSPC | libc::EDQUOT => {
            "No space is left: the filesystem or device is full; free some space or set a smaller size.".to_owned()
        }
        libc::EFBIG => "The file would exceed the size that the filesystem or the limit of this process \
                        allows."
            .to_owned(),
        libc::EOPNOTSUPP => "The filesystem does not support a flag of this transfer (`RWF_DONTCACHE`, `RWF_ATOMIC`, \
             polling)."
            .to_owned(),
        libc::EROFS => "The filesystem is mounted read-only, or became so after an error.".to_owned(),
        libc::EPERM | libc::EACCES => "This user does not have the permission.".to_owned(),
        libc::EAGAIN => "The I/O would have had to wait, which `nowait` forbids; `continue_on_error=all` counts such \
                         I/Os and continues. Without `nowait`: the kernel had no resources for it."
            .to_owned(),
        libc::EFAULT => "The buffer is not memory of this process; this is a bug of trueio.".to_owned(),
        libc::EBADF => "The file is not open for this operation; this is a bug of trueio.".to_owned(),
        libc::ENODEV | libc::ENXIO => "The device is gone.".to_owned(),
        _ => String::new(),
    };
    format!("{error}. {cause}").trim_end().to_owned()
}

/// Returns which of address, offset and length the target does not accept; `None` if all are aligned or the required
/// alignment is unknown.
fn misalignment(failure: &IoFailure, target: Option<&TargetFacts>) -> Option<String> {
    let direct = &target?.direct;
    let offset_need =
        if failure.op == OpKind::Read { &direct.read_alignment_bytes } else { &direct.write_alignment_bytes };
    let parts: [(&str, u64, &Fact<u32>, &str); 3] = [
        ("address", failure.address, &direct.memory_alignment_bytes, "align the buffers"),
        ("offset", failure.offset, offset_need, "use offsets that are multiples of it"),
        ("length", failure.length, offset_need, "set a block size that is a multiple of it"),
    ];
    let mut wrong = Vec::new();
    for (name, value, need, remedy) in parts {
        let Some(bytes) = need.value.filter(|bytes| *bytes > 1) else { continue };
        let rest = value % u64::from(bytes);
        if rest != 0 {
            let unit = if rest == 1 { "byte" } else { "bytes" };
            wrong.push(format!(
                "The {name} is {rest} {unit} past a multiple of {bytes}, which direct I/O requires here ({}): {remedy}.",
                need.source
            ));
        }
    }
    (!wrong.is_empty()).then(|| wrong.join(" "))
}
