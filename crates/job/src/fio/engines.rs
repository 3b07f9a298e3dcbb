//! fio's engines by name: those that are here, under all their names, and why the others are not.

use crate::table::row;
use crate::value::{Choice, ValueKind};

/// Engines of fio that are not here: names, why, and the nearest thing that works. An engine that our
/// own table gets is taken from there, whatever this list says.
const MISSING: &[(&[&str], &str, &str)] = &[
    (&["netsplice", "net"], "networks are not measured", "`iperf3`"),
    (&["sg"], "SCSI commands are not sent past the block layer", "`ioengine=io_uring` on the block device"),
    (&["io_uring_cmd"], "NVMe commands are not sent past the block layer", "`ioengine=io_uring` on the block device"),
    (
        &["xnvme", "libblkio", "libzbc", "spdk"],
        "devices are used through the kernel's block layer",
        "`ioengine=io_uring`",
    ),
    (&["e4defrag"], "files are not defragmented", "`e4defrag`"),
    (&["fileoperations"], "operations on names are not mixed", "`filecreate`, `filestat`, `filedelete` and their like"),
    (&["external"], "fio's own plug-ins cannot be loaded", "`ioengine=io_uring`"),
    (
        &[
            "nbd",
            "http",
            "nfs",
            "libiscsi",
            "rbd",
            "rados",
            "gfapi",
            "gfapi_async",
            "libhdfs",
            "dfs",
            "ime_psync",
            "ime_psyncv",
            "ime_aio",
        ],
        "storage across a network is used through the kernel",
        "mount or map it, and `ioengine=libaio` or `io_uring`",
    ),
    (
        &["rdma", "libpmem", "dev-dax", "librpma_apm_client", "librpma_gpspm_client", "libcufile", "mtd"],
        "memory and flash without a block layer are not used",
        "`ioengine=mmap` on a file of a DAX filesystem",
    ),
    (&["windowsaio", "solarisaio", "guasi"], "it belongs to another system", "`ioengine=io_uring` or `libaio`"),
];

/// The engines that are here.
pub(super) fn here() -> &'static [Choice] {
    match row("ioengine").map(|row| row.kind) {
        Some(ValueKind::Choice(choices)) => choices,
        _ => &[],
    }
}

/// The name that an engine has here.
pub(super) fn ours(name: &str) -> Option<&'static str> {
    here().iter().find(|engine| engine.name == name || engine.aliases.contains(&name)).map(|engine| engine.name)
}

/// True if each of the engine's I/Os is one call that returns when it is done.
pub(super) fn makes_single_calls(ours: &str) -> bool {
    matches!(ours, "sync" | "psync" | "vsync" | "pvsync" | "pvsync2")
}

/// Why an engine of fio is not here, and what to use.
pub(super) fn why_missing(name: &str) -> Option<(&'static str, &'static str)> {
    MISSING.iter().find(|(names, ..)| names.contains(&name)).map(|(_, reason, instead)| (*reason, *instead))
}

/// Every name that is known, for a suggestion.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let here = here().iter().flat_map(|engine| std::iter::once(engine.name).chain(engine.aliases.iter().copied()));
    here.chain(MISSING.iter().flat_map(|(names, ..)| names.iter().copied()))
}

/// Names that are missing here, with the reasons, for the documentation.
pub(super) fn missing() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let each =
        MISSING.iter().flat_map(|(names, reason, instead)| names.iter().map(move |name| (*name, *reason, *instead)));
    each.filter(|(name, ..)| ours(name).is_none())
}
