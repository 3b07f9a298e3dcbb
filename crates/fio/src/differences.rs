//! The differences from fio that are wanted: sets of options that end or count differently here, each with its reason.
//!
//! The differential runner (`crates/cli/tests/fio_differential.rs`) runs drawn sets of options with both programs, and reports
//! each difference that this list does not hold. `docs/from-fio.md` is rendered from it.

/// A wanted difference.
#[derive(Debug, Clone, Copy)]
pub struct Difference {
    /// The options that bring it about, all of them: `name`, `name=value`, or `name=` and the beginning of a value.
    pub options: &'static [&'static str],
    /// What fio does.
    pub fio: &'static str,
    /// What this program does.
    pub here: &'static str,
}

const fn difference(options: &'static [&'static str], fio: &'static str, here: &'static str) -> Difference {
    Difference { options, fio, here }
}

/// A job that reads, with `create_on_open`.
const fn late(rw: &'static [&'static str]) -> Difference {
    let fio = "a missing file is created, empty: reads transfer nothing, and `vsync` counts them as transferred";
    difference(rw, fio, "refused: a job measures what its files hold, so they must exist")
}

/// A job that writes in order to part of an existing file (`a` and `b` have 1 MiB), in blocks that do not divide the part.
const fn within_size(options: &'static [&'static str]) -> Difference {
    let fio = "the last block begins within `size` and is written whole: it replaces data of the file after `size`";
    difference(options, fio, "a job writes only within `size`: it ends with the last whole block")
}

/// The wanted differences.
pub const DIFFERENCES: &[Difference] = &[
    difference(&["rw=trim"], "a trim of a regular file is an error", "it punches a hole (`fallocate`)"),
    difference(&["rw=trimwrite"], "a trim of a regular file is an error", "it punches a hole (`fallocate`)"),
    difference(&["rw=randtrim"], "a trim of a regular file is an error", "it punches a hole (`fallocate`)"),
    difference(
        &["rw=randrw", "bs=8k,4k"],
        "reads and writes of different sizes end once no free place is found for the next one, with blocks left",
        "they go on until `io_size`",
    ),
    within_size(&["rw=write", "size=50000", "filename=a"]),
    within_size(&["rw=write", "size=50000", "filename=b"]),
    within_size(&["rw=rw", "rwmixread=0", "size=50000", "filename=a"]),
    within_size(&["rw=rw", "rwmixread=0", "size=50000", "filename=b"]),
    late(&["create_on_open=1", "rw=read"]),
    late(&["create_on_open=1", "rw=randread"]),
    late(&["create_on_open=1", "rw=rw"]),
    late(&["create_on_open=1", "rw=randrw"]),
    difference(
        &["verify_offset=0"],
        "refused: a value below the length of its header",
        "0 is the default: the header is at the beginning of its interval",
    ),
    difference(
        &["bs=2g"],
        "Linux transfers less than 2 GiB in one call: an I/O of 2 GiB is two calls, whose latencies count as one",
        "refused, as is any block above `1g`: a latency is that of one call",
    ),
];

impl Difference {
    /// Returns true if a set of options brings it about. `set` holds words `name=value`.
    pub fn covers(&self, set: &[String]) -> bool {
        let has = |wanted: &str| {
            set.iter().any(|word| match wanted.contains('=') {
                true => word.starts_with(wanted),
                false => word.split('=').next() == Some(wanted),
            })
        };
        self.options.iter().all(|wanted| has(wanted))
    }
}
