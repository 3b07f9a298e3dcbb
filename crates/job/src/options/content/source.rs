//! Jobs whose bytes are fetched: what such a job may be, how long its body is, what becomes of its rest.
//!
//! A body is written once, from its first byte to its last, by one worker to one file. Whatever would write
//! parts of it twice, in another order or with other content is refused.

use crate::input::{Decisions, JobInput};
use crate::option::OptionRow;
use crate::options::content::rows::{
    BUFFER_COMPRESS_PERCENTAGE, BUFFER_PATTERN, DEDUPE_PERCENTAGE, REFILL_BUFFERS, SOURCE, VERIFY, ZERO_BUFFERS,
};
use crate::options::durability::rows::ATOMIC;
use crate::options::engine::rows::{HIPRI, IOENGINE, NUMJOBS};
use crate::options::limits::rows::{IO_SIZE, LOOPS, NUMBER_IOS, RAMP_TIME, STEADY_STATE, TIME_BASED};
use crate::options::pattern::rows::RW;
use crate::options::target::rows::{FILENAME, FILESIZE, NRFILES, SIZE};
use crate::refusal::{Refusal, Rule};
use crate::value::{Extent, Value, write_bytes};
use trueio_model::{BlockSizes, DirectPolicy, EngineKind, OpKind, OpMix, SourceAddress, SourcePlan, WriteFlags};

/// What direct I/O is taken to need where nobody says, in bytes.
const UNIT_BYTES: u64 = 4096;

/// A body whose length is known.
pub(crate) struct Body {
    address: SourceAddress,
    length_bytes: u64,
    is_verified: bool,
}

/// What `source` asks for; `None` without one. The job's `size` is the body's length from here on.
pub(crate) fn plan_body(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
    (mix, is_random): (OpMix, bool),
    sizes: &BlockSizes,
    flags: WriteFlags,
) -> Result<Option<Body>, Refusal> {
    let is_verified = values.get(VERIFY) == "source";
    let Some(address) = values.get(SOURCE).cloned() else {
        return match is_verified {
            false => Ok(None),
            true => Err(values.refuse(
                VERIFY,
                Rule::Incomplete {
                    option: values.quote(VERIFY),
                    needs: "`source`: there is nothing to compare with",
                    hint: "say `source`, or another checksum",
                },
            )),
        };
    };
    let refuse = |option: &'static OptionRow, reason: &str, hint: &'static str| {
        let rule = Rule::SourceImpossible { address: address.to_string(), reason: reason.to_owned(), hint };
        Err(values.refuse(option, rule))
    };
    if mix != OpMix::Only(OpKind::Write) || is_random {
        return refuse(RW.row(), "a body is written in order, and nothing else is done", "say `rw = \"write\"`");
    }
    if !matches!(sizes, BlockSizes::Fixed(_)) {
        return refuse(SOURCE.row(), "it is written in blocks of one size", "say one `bs`");
    }
    if values.get(NUMJOBS) > 1 {
        return refuse(NUMJOBS.row(), "one worker writes a body", "use `numjobs = 1`, or several jobs");
    }
    let has_files = values.get(NRFILES) > 1;
    if has_files || values.get(FILENAME).is_some_and(|paths| paths.len() > 1) {
        return refuse(
            if has_files { NRFILES.row() } else { FILENAME.row() },
            "a body is written to one file",
            "name one file",
        );
    }
    if engine == EngineKind::Simulated {
        return refuse(IOENGINE.row(), "its time is virtual and the network's is not", "choose another engine");
    }
    if engine.moves_no_data() {
        return refuse(IOENGINE.row(), "this engine moves no data", "choose one that writes");
    }
    if is_verified && !engine.touches_files() {
        return refuse(VERIFY.row(), "this engine keeps no data", "choose an engine that does I/O");
    }
    if flags.atomic || flags.hipri || values.get(HIPRI) {
        let option = if flags.atomic { ATOMIC.row() } else { HIPRI.row() };
        return refuse(option, "a body's last block may be shorter than these writes can be", "leave it out");
    }
    let with_limits = [
        IO_SIZE.row(),
        NUMBER_IOS.row(),
        FILESIZE.row(),
        LOOPS.row(),
        TIME_BASED.row(),
        RAMP_TIME.row(),
        STEADY_STATE.row(),
    ];
    if let Some(option) = with_limits.into_iter().find(|name| values.is_set(name)) {
        return refuse(option, "the job ends when the body does", "leave it out; `size` may say the body's length");
    }
    if !is_verified && values.get(VERIFY) != "none" {
        let reason = "each block would get a header of its own, and the body would be another";
        return refuse(VERIFY.row(), reason, "say `verify = \"source\"`: the body is fetched again and compared");
    }
    let length_bytes = match values.get(SIZE) {
        Some(Extent::Bytes(bytes)) => bytes,
        Some(Extent::Percent(_)) => {
            return refuse(SIZE.row(), "a body's length is not a percentage", "say it in bytes");
        }
        None => match values.facts.source_length(&address) {
            Ok(0) => return refuse(SOURCE.row(), "it is empty", "name another"),
            Ok(bytes) if bytes > i64::MAX as u64 => {
                return refuse(SOURCE.row(), "no file is that long", "name another");
            }
            Ok(bytes) => {
                decisions.settle(SIZE, Value::Extent(Extent::Bytes(bytes)), "the server's `Content-Length`");
                bytes
            }
            Err(reason) => {
                let hint =
                    "check the address; `size` may say the length, and the server is then not asked while planning";
                return refuse(SOURCE.row(), &reason, hint);
            }
        },
    };
    Ok(Some(Body { address, length_bytes, is_verified }))
}

impl Body {
    /// The plan of the body, now that it is known how it is written. `unit_bytes` is what direct I/O needs, if
    /// anybody says.
    pub(crate) fn plan(
        self,
        values: &JobInput<'_>,
        decisions: &mut Decisions,
        direct: DirectPolicy,
        unit_bytes: Option<u64>,
    ) -> SourcePlan {
        let Body { address, length_bytes, is_verified } = self;
        let names = [
            ZERO_BUFFERS.row(),
            BUFFER_PATTERN.row(),
            REFILL_BUFFERS.row(),
            BUFFER_COMPRESS_PERCENTAGE.row(),
            DEDUPE_PERCENTAGE.row(),
        ];
        for name in names.into_iter().filter(|name| values.is_set(name)) {
            let sentence = format!("{} has no effect: what is written comes from `source`", values.quote(name));
            decisions.note(&sentence);
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
            decisions.note(&sentence);
        }
        SourcePlan { address, length_bytes, direct_bytes: length_bytes - rest_bytes, is_verified }
    }
}
