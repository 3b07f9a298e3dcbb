//! What follows from a device's answer to a command: a pure function.
//!
//! A command is sent again, at most five times, if the device reports that it did not execute it (UNIT ATTENTION, a deferred
//! error), and, if it may be repeated, where Linux repeats it: ABORTED COMMAND, NO SENSE, CHECK CONDITION without sense data, a
//! medium error other than an unrecovered read, success with missing data, a refused unit. A device that is busy or becoming
//! ready is asked again for a time. An unrecovered read error is final: the disk has made its own retries. After a change of a
//! removable medium nothing is sent again, because it would reach another medium.
//!
//! Source: T10 SAM-5 section 5.3 (status), SPC-4 section 4.5 (sense); Linux `scsi_error.c` (`scsi_check_sense`), `scsi_lib.c`
//! (`scsi_io_completion_action`), `sd.c` (`sd_done`), `uas.c` (`uas_evaluate_response_iu`). The delays are those of Linux in
//! kind, not in value.

use crate::iu::ResponseCode;
use crate::request::{Data, Failure, Kind, Request};
use crate::sense::{Sense, key};

/// SCSI status codes.
pub(crate) mod status {
    pub(crate) const GOOD: u8 = 0x00;
    pub(crate) const CHECK_CONDITION: u8 = 0x02;
    pub(crate) const BUSY: u8 = 0x08;
    pub(crate) const TASK_SET_FULL: u8 = 0x28;
    pub(crate) const TASK_ABORTED: u8 = 0x40;
}

/// The answer to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u8,
    pub(crate) sense: Option<Sense>,
}

/// How often and for how long a command was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tries {
    /// Answers that asked for another try, except those of a busy device.
    pub(crate) answers: u8,
    /// True if the time for a busy or starting device is over.
    pub(crate) is_late: bool,
    /// True if the medium can be removed, so that it may be another one after a change.
    pub(crate) is_removable: bool,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The command is over.
    Done(Result<u32, Failure>),
    /// It is sent again after a delay.
    Again { delay_ns: u64 },
    /// The disk is started first.
    Start,
    /// It is sent again with fewer commands in flight.
    Fewer,
}

/// The most answers that lead to another try: Linux' `SD_MAX_RETRIES`.
const ANSWERS_MAX: u8 = 5;
/// Delay before a device that is becoming ready is asked again.
const READY_DELAY_NS: u64 = 200_000_000;
/// Delay before a busy device is asked again.
const BUSY_DELAY_NS: u64 = 10_000_000;

/// Returns what follows from an answer.
pub(crate) fn judge(answer: &Answer, request: &Request, transferred: u32, tries: Tries) -> Verdict {
    match answer.status {
        status::GOOD => completed(request, transferred, tries),
        status::CHECK_CONDITION => match answer.sense {
            Some(sense) => sensed(sense, request, transferred, tries),
            None => repeat(request, tries, Failure::Status(answer.status)),
        },
        code @ (status::BUSY | status::TASK_SET_FULL) if tries.is_late => Verdict::Done(Err(Failure::Busy(code))),
        status::BUSY => Verdict::Again { delay_ns: BUSY_DELAY_NS },
        status::TASK_SET_FULL => Verdict::Fewer,
        status::TASK_ABORTED => repeat(request, tries, Failure::Status(answer.status)),
        other => Verdict::Done(Err(Failure::Status(other))),
    }
}

/// Returns what follows from a response unit in place of a status.
pub(crate) fn refused(code: ResponseCode, request: &Request, tries: Tries) -> Verdict {
    match code {
        // The next try would be refused as well.
        ResponseCode::IncorrectLun | ResponseCode::NotSupported => Verdict::Done(Err(Failure::Refused(code))),
        _ => repeat(request, tries, Failure::Refused(code)),
    }
}

fn completed(request: &Request, transferred: u32, tries: Tries) -> Verdict {
    let wanted = request.data.bytes();
    let must_be_whole = matches!(request.kind, Kind::Read | Kind::Write { .. }) || matches!(request.data, Data::Out(_));
    if must_be_whole && transferred < wanted {
        return repeat(request, tries, Failure::Short { wanted, got: transferred });
    }
    Verdict::Done(Ok(transferred))
}

fn sensed(sense: Sense, request: &Request, transferred: u32, tries: Tries) -> Verdict {
    let failed = Failure::Sense(sense);
    if sense.is_deferred {
        // The error belongs to an earlier command; this one was not executed (SPC-4, 4.5.7).
        return again(tries, 0, failed);
    }
    match sense.key {
        key::RECOVERED_ERROR => completed(request, transferred, tries),
        key::UNIT_ATTENTION if sense.asc == 0x3a => Verdict::Done(Err(failed)),
        // The next command on the medium would reach another one.
        key::UNIT_ATTENTION if sense.asc == 0x28 && tries.is_removable && is_on_medium(request) => {
            Verdict::Done(Err(failed))
        }
        key::UNIT_ATTENTION => again(tries, 0, failed),
        key::NOT_READY if sense.asc != 0x04 || tries.is_late => Verdict::Done(Err(failed)),
        key::NOT_READY if sense.ascq == 0x02 && tries.answers == 0 => Verdict::Start,
        // Becoming ready; started meanwhile; busy with another operation; testing itself.
        key::NOT_READY if matches!(sense.ascq, 0x01 | 0x02 | 0x07 | 0x09 | 0x0a) => {
            Verdict::Again { delay_ns: READY_DELAY_NS }
        }
        // An unrecovered read error, a missing address mark, a block that was not found: final. Others may pass.
        key::MEDIUM_ERROR if matches!(sense.asc, 0x11 | 0x13 | 0x14) => Verdict::Done(Err(failed)),
        key::NO_SENSE | key::MEDIUM_ERROR | key::ABORTED_COMMAND => repeat(request, tries, failed),
        _ => Verdict::Done(Err(failed)),
    }
}

fn is_on_medium(request: &Request) -> bool {
    matches!(request.kind, Kind::Read | Kind::Write { .. } | Kind::Flush)
}

fn again(tries: Tries, delay_ns: u64, failed: Failure) -> Verdict {
    if tries.answers < ANSWERS_MAX { Verdict::Again { delay_ns } } else { Verdict::Done(Err(failed)) }
}

/// Sends a command again that the device ended itself, perhaps after it had executed a part.
fn repeat(request: &Request, tries: Tries, failed: Failure) -> Verdict {
    if request.may_repeat() { again(tries, 0, failed) } else { Verdict::Done(Err(failed)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scsi;

    fn read() -> Request {
        Request::read(0, 8, 1, 512)
    }

    fn judged(key: u8, asc: u8, ascq: u8, request: &Request, tries: Tries) -> Verdict {
        let sense = Sense { key, asc, ascq, block: None, is_deferred: false };
        judge(&Answer { status: status::CHECK_CONDITION, sense: Some(sense) }, request, 512, tries)
    }

    const FIRST: Tries = Tries { answers: 0, is_late: false, is_removable: false };
    const LATE: Tries = Tries { is_late: true, ..FIRST };
    const OFTEN: Tries = Tries { answers: ANSWERS_MAX, ..FIRST };

    #[test]
    fn success_needs_every_byte_of_a_read_and_of_data_that_was_sent() {
        let good = Answer { status: status::GOOD, sense: None };
        assert_eq!(judge(&good, &read(), 512, FIRST), Verdict::Done(Ok(512)));
        let short = Failure::Short { wanted: 512, got: 100 };
        assert_eq!(judge(&good, &read(), 100, FIRST), Verdict::Again { delay_ns: 0 });
        assert_eq!(judge(&good, &read(), 100, OFTEN), Verdict::Done(Err(short)));
        let write = Request::write(0, 8, 1, 512, false);
        assert_eq!(judge(&good, &write, 100, OFTEN), Verdict::Done(Err(short)));
        let once = Request { kind: Kind::Once, data: Data::Out(512), ..write };
        assert_eq!(judge(&good, &once, 100, FIRST), Verdict::Done(Err(short)));
        let inquiry = Request::repeatable(0, scsi::inquiry(None, 96), Data::In(96));
        assert_eq!(judge(&good, &inquiry, 36, FIRST), Verdict::Done(Ok(36)), "a device has less to say");
    }

    #[test]
    fn unit_attention_repeats_a_few_times_and_not_after_a_change_of_the_medium() {
        assert_eq!(judged(6, 0x29, 0, &read(), FIRST), Verdict::Again { delay_ns: 0 });
        assert!(matches!(judged(6, 0x29, 0, &read(), OFTEN), Verdict::Done(Err(Failure::Sense(_)))));
        assert_eq!(judged(6, 0x28, 0, &read(), FIRST), Verdict::Again { delay_ns: 0 }, "a fixed disk has one medium");
        let removable = Tries { is_removable: true, ..FIRST };
        assert!(matches!(judged(6, 0x28, 0, &read(), removable), Verdict::Done(Err(Failure::Sense(_)))));
        let ready = Request::repeatable(0, scsi::test_unit_ready(), Data::None);
        assert_eq!(judged(6, 0x28, 0, &ready, removable), Verdict::Again { delay_ns: 0 }, "not on the medium");
    }

    #[test]
    fn a_stopped_disk_is_started_and_a_starting_disk_is_awaited_until_it_is_late() {
        assert_eq!(judged(2, 4, 2, &read(), FIRST), Verdict::Start);
        assert_eq!(
            judged(2, 4, 2, &read(), Tries { answers: 1, ..FIRST }),
            Verdict::Again { delay_ns: READY_DELAY_NS }
        );
        assert_eq!(judged(2, 4, 1, &read(), FIRST), Verdict::Again { delay_ns: READY_DELAY_NS });
        assert!(matches!(judged(2, 4, 1, &read(), LATE), Verdict::Done(Err(Failure::Sense(_)))));
        assert!(matches!(judged(2, 0x3a, 0, &read(), FIRST), Verdict::Done(Err(_))), "no medium");
        assert!(matches!(judged(2, 4, 3, &read(), FIRST), Verdict::Done(Err(_))), "manual intervention");
    }

    #[test]
    fn unrecovered_reads_are_final_and_other_errors_that_may_pass_repeat_if_they_may() {
        let once = Request { kind: Kind::Once, ..read() };
        // A write error, a medium error without more, NO SENSE.
        for (key, asc) in [(3, 0x0c), (3, 0x03), (3, 0), (0, 0)] {
            assert_eq!(judged(key, asc, 0, &read(), FIRST), Verdict::Again { delay_ns: 0 }, "{key:x}/{asc:x}");
            assert!(matches!(judged(key, asc, 0, &read(), OFTEN), Verdict::Done(Err(Failure::Sense(_)))));
            assert!(matches!(judged(key, asc, 0, &once, FIRST), Verdict::Done(Err(Failure::Sense(_)))));
        }
        for (key, asc) in [(3, 0x13), (3, 0x14), (4, 0), (4, 3), (5, 0x21), (7, 0x27)] {
            assert!(matches!(judged(key, asc, 0, &read(), FIRST), Verdict::Done(Err(_))), "{key:x}/{asc:x}");
        }
        assert!(matches!(judged(3, 0x11, 0, &read(), FIRST), Verdict::Done(Err(Failure::Sense(_)))));
        assert_eq!(judged(0xb, 0x47, 0, &read(), FIRST), Verdict::Again { delay_ns: 0 });
        assert!(matches!(judged(0xb, 0x47, 0, &once, FIRST), Verdict::Done(Err(_))));
        // The device reports that it did not execute this one, so even it may be sent again.
        assert_eq!(judged(6, 0x29, 0, &once, FIRST), Verdict::Again { delay_ns: 0 });
        assert_eq!(judged(1, 0x17, 0, &read(), FIRST), Verdict::Done(Ok(512)), "recovered");
    }

    #[test]
    fn a_full_queue_shrinks_and_a_busy_device_is_asked_again() {
        let of = |status, tries| judge(&Answer { status, sense: None }, &read(), 0, tries);
        assert_eq!(of(status::TASK_SET_FULL, FIRST), Verdict::Fewer);
        assert_eq!(of(status::BUSY, FIRST), Verdict::Again { delay_ns: BUSY_DELAY_NS });
        assert_eq!(of(status::BUSY, LATE), Verdict::Done(Err(Failure::Busy(8))));
        assert_eq!(of(status::TASK_SET_FULL, LATE), Verdict::Done(Err(Failure::Busy(0x28))));
        assert_eq!(of(0x18, FIRST), Verdict::Done(Err(Failure::Status(0x18))), "reservation conflict");
        assert_eq!(of(status::CHECK_CONDITION, FIRST), Verdict::Again { delay_ns: 0 }, "without sense data");
        assert_eq!(of(status::CHECK_CONDITION, OFTEN), Verdict::Done(Err(Failure::Status(2))));
        assert_eq!(of(status::TASK_ABORTED, FIRST), Verdict::Again { delay_ns: 0 });
    }

    #[test]
    fn a_refused_unit_is_sent_again_unless_every_try_would_be_refused() {
        for code in
            [ResponseCode::InvalidUnit, ResponseCode::Failed, ResponseCode::Complete, ResponseCode::Reserved(77)]
        {
            assert_eq!(refused(code, &read(), FIRST), Verdict::Again { delay_ns: 0 });
            assert_eq!(refused(code, &read(), OFTEN), Verdict::Done(Err(Failure::Refused(code))));
        }
        for code in [ResponseCode::IncorrectLun, ResponseCode::NotSupported] {
            assert_eq!(refused(code, &read(), FIRST), Verdict::Done(Err(Failure::Refused(code))));
        }
    }

    #[test]
    fn a_deferred_error_does_not_end_the_command_that_reported_it() {
        let sense = Sense { key: 4, asc: 3, ascq: 0, block: None, is_deferred: true };
        let answer = Answer { status: status::CHECK_CONDITION, sense: Some(sense) };
        assert_eq!(judge(&answer, &read(), 0, FIRST), Verdict::Again { delay_ns: 0 });
    }
}
