//! fio's engines that do not exist here, with the reason and an alternative for each.

use trueio_job::option::Words;
use trueio_model::EngineKind;

/// Engines of fio that do not exist here.
struct Missing {
    names: &'static [&'static str],
    /// Options that only they have.
    options: &'static [&'static str],
    why: &'static str,
    /// The nearest alternative.
    instead: &'static str,
}

/// An engine in the option table is supported, even if it is in this list.
/// Source of the options: fio(1) of 3.33, "I/O engine specific parameters", and fio's HOWTO for what came later.
const MISSING: &[Missing] = &[
    Missing {
        names: &["netsplice", "net"],
        options: &[
            "hostname",
            "port",
            "interface",
            "ttl",
            "nodelay",
            "protocol",
            "proto",
            "listen",
            "pingpong",
            "window_size",
            "mss",
        ],
        why: "networks are not measured",
        instead: "`iperf3`",
    },
    Missing {
        names: &["sg"],
        options: &["readfua", "writefua", "sg_write_mode", "stream_id"],
        why: "SCSI commands are not sent past the block layer",
        instead: "`ioengine=io_uring` on the block device",
    },
    Missing {
        names: &["io_uring_cmd"],
        options: &[
            "cmd_type",
            "write_mode",
            "verify_mode",
            "md_per_io_size",
            "pi_act",
            "pi_chk",
            "apptag",
            "apptag_mask",
            "deallocate",
        ],
        why: "the kernel checks neither mounts nor claims for commands to a character device (`/dev/ng0n1`), so one could destroy a mounted filesystem",
        instead: "`ioengine=io_uring` on the block device",
    },
    Missing {
        names: &["xnvme", "libblkio", "libzbc", "spdk"],
        options: &[
            "xnvme_be",
            "xnvme_async",
            "xnvme_sync",
            "xnvme_admin",
            "xnvme_dev_nsid",
            "xnvme_dev_subnqn",
            "xnvme_mem",
            "xnvme_iovec",
            "libblkio_driver",
            "libblkio_path",
            "libblkio_pre_connect_props",
            "libblkio_pre_start_props",
            "libblkio_num_entries",
            "libblkio_queue_size",
            "libblkio_vectored",
            "libblkio_write_zeroes_on_trim",
            "libblkio_wait_mode",
            "libblkio_force_enable_completion_eventfd",
        ],
        why: "devices are used through the kernel's block layer",
        instead: "`ioengine=io_uring`",
    },
    Missing {
        names: &["fileoperations"],
        options: &[],
        why: "operations on names are not mixed",
        instead: "`filecreate`, `filestat`, `filedelete` and similar engines",
    },
    Missing {
        names: &["external", "cpp_null"],
        options: &[],
        why: "fio's own plug-ins cannot be loaded",
        instead: "`ioengine=io_uring`",
    },
    Missing {
        names: &[
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
        options: &[
            "uri",
            "http_host",
            "http_user",
            "http_pass",
            "https",
            "http_mode",
            "http_s3_region",
            "http_s3_key",
            "http_s3_keyid",
            "http_s3_security_token",
            "http_s3_sse_customer_key",
            "http_s3_sse_customer_algorithm",
            "http_s3_storage_class",
            "http_swift_auth_token",
            "http_verbose",
            "nfs_url",
            "clustername",
            "rbdname",
            "pool",
            "clientname",
            "busy_poll",
            "conf",
            "touch_objects",
            "volume",
            "brick",
            "namenode",
            "hdfsdirectory",
            "hdfs_use_direct",
            "single_instance",
            "chunk_size",
            "cont",
            "object_class",
        ],
        why: "storage across a network is used through the kernel",
        instead: "mount or map it, and `ioengine=libaio` or `io_uring`",
    },
    Missing {
        names: &[
            "rdma",
            "libpmem",
            "pmemblk",
            "dev-dax",
            "librpma_apm_client",
            "librpma_apm_server",
            "librpma_gpspm_client",
            "librpma_gpspm_server",
            "libcufile",
            "mtd",
        ],
        options: &[
            "verb",
            "bindname",
            "serverip",
            "direct_write_to_pmem",
            "busy_wait_polling",
            "gpu_dev_ids",
            "cuda_io",
            "skip_bad",
        ],
        why: "memory and flash without a block layer are not used",
        instead: "`ioengine=mmap` on a file of a DAX filesystem",
    },
    Missing {
        names: &["windowsaio", "solarisaio", "guasi"],
        options: &["no_completion_thread"],
        why: "it belongs to another system",
        instead: "`ioengine=io_uring` or `libaio`",
    },
];

/// Returns true if each of the engine's I/Os is one call that returns when the I/O has completed.
pub(super) fn makes_single_calls(engine: EngineKind) -> bool {
    use EngineKind::{Psync, Pvsync, Pvsync2, Sync, Vsync};
    matches!(engine, Sync | Psync | Vsync | Pvsync | Pvsync2)
}

/// Returns the reason why an engine of fio does not exist here, and an alternative.
pub(super) fn why_missing(name: &str) -> Option<(&'static str, &'static str)> {
    MISSING.iter().find(|missing| missing.names.contains(&name)).map(|missing| (missing.why, missing.instead))
}

/// Returns the reason to refuse an option of engines that do not exist here, and an alternative.
pub(super) fn why_option_missing(name: &str) -> Option<(String, &'static str)> {
    let missing = MISSING.iter().find(|missing| missing.options.contains(&name))?;
    let names: Vec<String> = missing.names.iter().map(|name| format!("`{name}`")).collect();
    let whose = match names.as_slice() {
        [one] => format!("the engine {one}, which is not here"),
        few if few.len() <= 4 => format!("an engine that is not here ({})", few.join(", ")),
        _ => "an engine that is not here".to_owned(),
    };
    Some((format!("belongs to {whose}: {}", missing.why), missing.instead))
}

/// Returns every known name, for suggestions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let here = EngineKind::CHOICES
        .iter()
        .flat_map(|engine| std::iter::once(engine.name).chain(engine.aliases.iter().copied()));
    here.chain(MISSING.iter().flat_map(|missing| missing.names.iter().copied()))
}

/// Returns the missing engines with the reasons, for the documentation.
pub(super) fn missing() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let each = MISSING.iter().flat_map(|of| of.names.iter().map(move |name| (*name, of.why, of.instead)));
    each.filter(|(name, ..)| EngineKind::parse(name).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::options::find;

    /// An option under this name would never be reported as missing.
    #[test]
    fn options_of_missing_engines_are_not_options_of_the_language() {
        for name in MISSING.iter().flat_map(|missing| missing.options) {
            assert!(find(name).is_none(), "{name}");
        }
    }
}
