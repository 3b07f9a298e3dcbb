//! Jobs whose content is fetched: which jobs may do that, the length of the body, and its unaligned rest.
//!
//! A body is written once, from its first byte to its last, by one worker to one file. Options that would write parts of it
//! twice, in another order or with other content are refused.

use crate::input::{Decisions, JobInput};
use crate::option::OptionRow;
use crate::options::content::rows::{
    BUFFER_COMPRESS_PERCENTAGE, BUFFER_PATTERN, DEDUPE_PERCENTAGE, REFILL_BUFFERS, SOURCE, VERIFY, VerifyMethod,
    ZERO_BUFFERS,
};
use crate::options::durability::rows::ATOMIC;
use crate::options::engine::rows::{HIPRI, IOENGINE, NUMJOBS};
use crate::options::limits::rows::{IO_SIZE, LOOPS, NUMBER_IOS, RAMP_TIME, STEADY_STATE, TIME_BASED};
use crate::options::pattern::rows::RW;
use crate::options::shape::Ops;
use crate::options::target::rows::{FILENAME, FILESIZE, NRFILES, SIZE};
use crate::refusal::{Case, Refusal, Rule};
use crate::value::{Extent, Value, write_bytes};
use trueio_model::{BlockSizes, DirectPolicy, EngineKind, OpKind, OpMix, SourceAddress, SourcePlan, WriteFlags};

/// The assumed alignment of direct I/O where it is unknown, in bytes.
const UNIT_BYTES: u64 = 4096;

/// A body whose length is known.
pub(crate) struct Body {
    address: SourceAddress,
    length_bytes: u64,
    is_verified: bool,
}

/// Plans the body of `source`; `None` without one. The job's `size` becomes the body's length.
pub(crate) fn plan_body(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
    ops: Ops,
    sizes: &BlockSizes,
    flags: WriteFlags,
) -> Result<Option<Body>, Refusal> {
    let is_verified = values.get(VERIFY) == VerifyMethod::Source;
    let Some(address) = values.get(SOURCE).cloned() else {
        return match is_verified {
            false => Ok(None),
            true => Err(values.refuse(
                VERIFY,
                Rule::Incomplete {
                    option: values.quote(VERIFY),
                    needs: "`source`: there is nothing to compare with",
                    case: Case::SourceMissing,
                },
            )),
        };
    };
    let refuse = |option: &'static OptionRow, reason: &str, hint: &'static str| {
        let rule = Rule::SourceImpossible { address: address.to_string(), reason: reason.to_owned(), hint };
        Err(values.refuse(option, rule))
    };
    if ops.mix != OpMix::Only(OpKind::Write) || ops.is_random {
        return refuse(RW.row(), "a body is written sequentially", "set `rw = \"write\"`");
    }
    if !matches!(sizes, BlockSizes::Fixed(_)) {
        return refuse(SOURCE.row(), "it is written in blocks of one size", "set one `bs`");
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
        return refuse(IOENGINE.row(), "its time is virtual, and that of the network is real", "choose another engine");
    }
    if engine.moves_no_data() {
        return refuse(IOENGINE.row(), "this engine moves no data", "choose one that writes");
    }
    if is_verified && !engine.touches_files() {
        return refuse(VERIFY.row(), "this engine keeps no data", "choose an engine that does I/O");
    }
    if flags.atomic || flags.hipri || values.get(HIPRI) {
        let option = if flags.atomic { ATOMIC.row() } else { HIPRI.row() };
        return refuse(option, "the last block of a body may be too short for these writes", "leave it out");
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
        return refuse(option, "the job ends when the body does", "leave it out; `size` may set the body's length");
    }
    if !is_verified && values.get(VERIFY) != VerifyMethod::None {
        let reason = "each block would get a header, which would change the body";
        return refuse(VERIFY.row(), reason, "set `verify = \"source\"`: the body is fetched again and compared");
    }
    let length_bytes = match values.get(SIZE) {
        Some(Extent::Bytes(bytes)) => bytes,
        Some(Extent::Percent(_)) => {
            return refuse(SIZE.row(), "the length of a body is not a percentage", "set it in bytes");
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
                let hint = "check the address; if `size` sets the length, the server is not contacted while planning";
                return refuse(SOURCE.row(), &reason, hint);
            }
        },
    };
    Ok(Some(Body { address, length_bytes, is_verified }))
}

impl Body {
    /// Plans the writes of the body. `unit_bytes` is the alignment of direct I/O, if it is known.
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
            let sentence = format!("{} has no effect: the content comes from `source`", values.quote(name));
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
