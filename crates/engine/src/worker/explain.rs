//! What went wrong with an I/O and what to do, in words.

use crate::request::Request;
use crate::target::TargetFile;
use std::io;
use trueio_model::OpKind;

/// What went wrong with an I/O and what to do, in words.
pub(super) fn explain(
    request: &Request,
    errno: i32,
    returned: u64,
    address: u64,
    target: Option<&TargetFile>,
) -> String {
    let write = request.op != OpKind::Read;
    if errno == 0 {
        return format!(
            "the {} moved {returned} of {} bytes: the file may have been truncated, or the device be full or gone",
            request.op, request.length
        );
    }
    let error = io::Error::from_raw_os_error(errno);
    let advice = match errno {
        libc::EINVAL => target.and_then(|t| trueio_direct::probe_file(&t.file).ok()).and_then(|probe| {
            trueio_direct::check_transfer(
                &probe.alignment,
                address as usize,
                request.length as usize,
                request.offset,
                write,
            )
            .err()
            .map(|m| m.to_string())
        }),
        libc::ENOSPC => Some("the filesystem or device is full; make room or ask for a smaller size".to_owned()),
        // No file: the simulated disk, which fails what it was told to.
        libc::EIO if target.is_none() => Some("the simulated disk was told to fail this I/O".to_owned()),
        libc::EIO => Some("the device or its driver reported an error; the kernel log (dmesg) says more".to_owned()),
        libc::EOPNOTSUPP => Some("the filesystem or device does not offer this operation or flag".to_owned()),
        libc::EAGAIN => Some(
            "the I/O would have had to wait, which `nowait` forbids; `continue_on_error=all` counts such I/Os and goes on"
                .to_owned(),
        ),
        libc::ENXIO | libc::ENODEV => Some("the device is gone".to_owned()),
        _ => None,
    };
    match advice {
        Some(advice) => format!("{error}; {advice}"),
        None => error.to_string(),
    }
}
