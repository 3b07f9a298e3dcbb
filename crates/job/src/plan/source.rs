//! Jobs whose bytes are fetched: what such a job may be, how long its body is, what becomes of its rest.
//!
//! A body is written once, from its first byte to its last, by one worker to one file. Whatever would write
//! parts of it twice, in another order or with other content is refused.

use super::Planner;
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use crate::value::{Extent, Value, write_bytes};
use trueio_model::{BlockSizes, DirectPolicy, EngineKind, OpKind, OpMix, SourceAddress, SourcePlan, WriteFlags};

/// What direct I/O is taken to need where nobody says, in bytes.
const UNIT_BYTES: u64 = 4096;

/// A body whose length is known.
pub(super) struct Body {
    address: SourceAddress,
    length_bytes: u64,
    is_verified: bool,
}

/// What `source` asks for; `None` without one. The job's `size` is the body's length from here on.
pub(super) fn plan_body(
    planner: &Planner,
    values: &mut Values,
    engine: EngineKind,
    (mix, is_random): (OpMix, bool),
    sizes: &BlockSizes,
    flags: WriteFlags,
) -> Result<Option<Body>, Refusal> {
    let is_verified = values.choice("verify") == Some("source");
    let Some(address) = values.address("source").cloned() else {
        return match is_verified {
            false => Ok(None),
            true => Err(values.refuse(
                "verify",
                Rule::Incomplete {
                    option: values.quote("verify"),
                    needs: "`source`: there is nothing to compare with",
                    hint: "say `source`, or another checksum",
                },
            )),
        };
    };
    let refuse = |option: &str, reason: &str, hint: &'static str| {
        let rule = Rule::SourceImpossible { address: address.to_string(), reason: reason.to_owned(), hint };
        Err(values.refuse(option, rule))
    };
    if mix != OpMix::Only(OpKind::Write) || is_random {
        return refuse("rw", "a body is written in order, and nothing else is done", "say `rw = \"write\"`");
    }
    if !matches!(sizes, BlockSizes::Fixed(_)) {
        return refuse("source", "it is written in blocks of one size", "say one `bs`");
    }
    if values.number("numjobs").unwrap_or(1) > 1 {
        return refuse("numjobs", "one worker writes a body", "use `numjobs = 1`, or several jobs");
    }
    let has_files = values.number("nrfiles").unwrap_or(1) > 1;
    if has_files || values.paths("filename").is_some_and(|paths| paths.len() > 1) {
        return refuse(
            if has_files { "nrfiles" } else { "filename" },
            "a body is written to one file",
            "name one file",
        );
    }
    if engine == EngineKind::Simulated {
        return refuse("ioengine", "its time is virtual and the network's is not", "choose another engine");
    }
    if engine.moves_no_data() {
        return refuse("ioengine", "this engine moves no data", "choose one that writes");
    }
    if is_verified && !engine.touches_files() {
        return refuse("verify", "this engine keeps no data", "choose an engine that does I/O");
    }
    if flags.atomic || flags.hipri || values.bool("hipri") {
        let option = if flags.atomic { "atomic" } else { "hipri" };
        return refuse(option, "a body's last block may be shorter than these writes can be", "leave it out");
    }
    let with_limits = ["io_size", "number_ios", "filesize", "loops", "time_based", "ramp_time", "steady_state"];
    if let Some(option) = with_limits.into_iter().find(|name| values.is_said(name)) {
        return refuse(option, "the job ends when the body does", "leave it out; `size` may say the body's length");
    }
    if !is_verified && values.choice("verify").is_some_and(|word| word != "none") {
        let reason = "each block would get a header of its own, and the body would be another";
        return refuse("verify", reason, "say `verify = \"source\"`: the body is fetched again and compared");
    }
    let length_bytes = match values.extent("size") {
        Some(Extent::Bytes(bytes)) => bytes,
        Some(Extent::Percent(_)) => return refuse("size", "a body's length is not a percentage", "say it in bytes"),
        None => match planner.facts.source_length(&address) {
            Ok(0) => return refuse("source", "it is empty", "name another"),
            Ok(bytes) if bytes > i64::MAX as u64 => return refuse("source", "no file is that long", "name another"),
            Ok(bytes) => {
                values.settle("size", Value::Extent(Extent::Bytes(bytes)), "the server's `Content-Length`");
                bytes
            }
            Err(reason) => {
                let hint =
                    "check the address; `size` may say the length, and the server is then not asked while planning";
                return refuse("source", &reason, hint);
            }
        },
    };
    Ok(Some(Body { address, length_bytes, is_verified }))
}

impl Body {
    /// The plan of the body, now that it is known how it is written. `unit_bytes` is what direct I/O needs, if
    /// anybody says.
    pub(super) fn plan(
        self,
        planner: &mut Planner,
        values: &Values,
        direct: DirectPolicy,
        unit_bytes: Option<u64>,
    ) -> SourcePlan {
        let Body { address, length_bytes, is_verified } = self;
        let names =
            ["zero_buffers", "buffer_pattern", "refill_buffers", "buffer_compress_percentage", "dedupe_percentage"];
        for name in names.into_iter().filter(|name| values.is_said(name)) {
            let sentence = format!("{} has no effect: what is written comes from `source`", values.quote(name));
            planner.note(&values.job, &sentence);
        }
        let unit_bytes = match direct {
            DirectPolicy::Off => 1,
            _ => unit_bytes.unwrap_or(UNIT_BYTES).max(1),
        };
        let rest_bytes = length_bytes % unit_bytes;
        if rest_bytes > 0 {
            let sentence = format!(
                "the last {} of the body go through the page cache: direct I/O takes multiples of {}",
                write_bytes(rest_bytes),
                write_bytes(unit_bytes)
            );
            planner.note(&values.job, &sentence);
        }
        SourcePlan { address, length_bytes, direct_bytes: length_bytes - rest_bytes, is_verified }
    }
}
