//! What rank 0 makes of the bytes of a rank, without connections: for tests and the fuzz target `ranks`.

use crate::frame;
use crate::member::{Collected, CollectedPhase};
use crate::message::{Hello, ToHub};
use std::collections::BTreeMap;
use trueio_model::{ClockOffset, RunRecord};

/// Longest frame, in bytes, and most memory of its message.
const FRAME_BYTES_MAX: u32 = 1 << 20;
const MEMORY_BYTES_MAX: u64 = 32 << 20;
/// Ranks that send the same.
const RANKS: u32 = 3;

/// Reads frames as messages of a rank, up to the first one that is none, and merges them as if three ranks had sent them. Returns the record;
/// `None`: there is no head, or no hello.
pub fn digest(mut bytes: &[u8]) -> Option<RunRecord> {
    let mut collected = Collected::default();
    let (mut hello, mut head): (Option<Hello>, Option<RunRecord>) = (None, None);
    let mut clock = ClockOffset::default();
    while let Ok(message) = frame::receive_within::<ToHub>(&mut bytes, FRAME_BYTES_MAX, MEMORY_BYTES_MAX) {
        match message {
            ToHub::Hello(sent) => hello = Some(*sent),
            ToHub::Head(sent) => head = Some(sent.into_inner()),
            ToHub::Clock(sent) => clock = sent.0,
            ToHub::Done(done) => {
                let clocks: BTreeMap<u32, ClockOffset> =
                    (0..RANKS).map(|rank| (rank, if rank == 0 { ClockOffset::default() } else { clock })).collect();
                collected.phases.push(CollectedPhase {
                    index: collected.phases.len(),
                    start_ns: 0,
                    before: clocks.clone(),
                    after: clocks,
                    done: (0..RANKS).map(|rank| (rank, (*done).clone())).collect(),
                });
            }
            _ => {}
        }
    }
    let (hello, head) = (hello?, head?);
    let hellos: BTreeMap<u32, Hello> = (0..RANKS).map(|rank| (rank, hello.clone())).collect();
    if crate::agreement::difference(&hellos).is_some() {
        return None;
    }
    collected.heads = (0..RANKS).map(|rank| (rank, head.clone())).collect();
    collected.hellos = hellos;
    Some(crate::merge::merge_all("none", RANKS, collected, &[], None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Head, Measured};
    use crate::message::{Done, Name, Offset};
    use crate::testing::{done, head, measured, null_plan};
    use serde::Serialize;
    use serde_json::{Value, json};

    /// The messages of an honest rank.
    fn honest() -> Vec<ToHub> {
        let name = Name::cut("n");
        let hello = Hello {
            version: name.clone(),
            host: name.clone(),
            boot_id: name.clone(),
            process: crate::message::ProcessId::own(),
            size: 3,
            kind: name,
            jobs: Ok(Vec::new()),
        };
        let clock = ClockOffset { offset_ns: 5, bound_ns: 10, round_trip_ns_median: 20, ping_count: 200 };
        let mut phase = measured();
        // One job with little: each number is replaced.
        for job in &mut phase.jobs {
            job.series.truncate(2);
        }
        vec![
            ToHub::Hello(Box::new(hello)),
            ToHub::Head(Box::new(Head::own(head(null_plan())))),
            ToHub::Clock(Offset(clock)),
            ToHub::Done(Box::new(Done { phase: Some(Box::new(Measured::own(phase))), ..done() })),
        ]
    }

    fn frames(messages: &[impl Serialize]) -> Vec<u8> {
        messages.iter().flat_map(|message| frame::encode(message, u32::MAX).expect("JSON")).collect()
    }

    /// Calls `visit` with the path of each value that is no list and no object.
    fn leaves(value: &Value, path: String, visit: &mut dyn FnMut(String, &Value)) {
        match value {
            Value::Array(values) => {
                values.iter().enumerate().for_each(|(at, value)| leaves(value, format!("{path}/{at}"), visit));
            }
            Value::Object(values) => {
                values.iter().for_each(|(name, value)| leaves(value, format!("{path}/{name}"), visit))
            }
            leaf => visit(path, leaf),
        }
    }

    #[test]
    fn the_messages_of_an_honest_rank_are_merged() {
        let record = digest(&frames(&honest())).expect("a record");
        assert_eq!(record.phases[0].jobs[0].ops[0].io_count, 3 * 256);
    }

    /// Goal: no value of any message panics rank 0: it is refused, or merged.
    /// Method: each value of an honest rank's messages is replaced by the ends of its type and of our ranges, and by other types, one after
    /// another; three ranks send the same, so that sums are made.
    #[test]
    fn no_value_of_a_message_panics_rank_0() {
        let messages: Vec<Value> = honest().iter().map(|message| json!(message)).collect();
        let extremes = [
            json!(0),
            json!(1_u64 << 48),
            json!(1_u64 << 56),
            json!(1_u64 << 58),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(-1),
            json!(1e300),
            json!(null),
            json!("x"),
            json!([]),
            json!({}),
        ];
        let (mut replaced, mut merged) = (0, 0);
        for at in 0..messages.len() {
            let mut paths = Vec::new();
            leaves(&messages[at], String::new(), &mut |path, _| paths.push(path));
            for path in paths {
                for extreme in &extremes {
                    let mut changed = messages.clone();
                    *changed[at].pointer_mut(&path).expect("it is there") = extreme.clone();
                    merged += usize::from(digest(&frames(&changed)).is_some_and(|record| !record.phases.is_empty()));
                    replaced += 1;
                }
            }
        }
        assert!(replaced > 1_000 && merged > 100, "{merged} of {replaced}");
    }
}
