//! Failed, short and different I/Os: `call_results` and the sentences that explain a failure.

use crate::support::*;
use trueio_evidence::{describe_failure, explain_failure};
use trueio_model::CheckOutcome::{Contradicted, Suspect};
use trueio_model::{BlockPart, IoFailure, OpKind, Verdict, VerifyFailure};

fn failure(errno: i32) -> IoFailure {
    IoFailure {
        op: OpKind::Write,
        errno,
        path: "/data/file".to_owned(),
        offset: 131_072,
        length: 131_072,
        address: 0x7f00_0000_00a0,
        returned: 0,
        count: 1,
        explanation: String::new(),
    }
}

#[test]
fn one_failed_call_contradicts_and_is_explained() {
    let mut phase = Phase::honest_writes();
    phase.records[0].ops[0].error_count = 1;
    phase.records[0].failures = vec![failure(libc::EINVAL)];
    let judgement = phase.judge();
    judgement.assert("call_results", Contradicted, "The address is 160 bytes past a multiple of 512");
    assert_eq!(judgement.verdict, Verdict::Contradicted);
}

#[test]
fn many_failed_calls_are_counted_with_thousands_separated() {
    let mut phase = Phase::honest_writes();
    phase.records[0].ops[0].error_count = 4096;
    phase.records[0].ops[0].io_count = 0;
    phase.records[0].failures = vec![failure(libc::EINVAL)];
    phase.judge().assert("call_results", Contradicted, "4,096 of 4,096 I/Os failed or were short.");
}

#[test]
fn a_short_transfer_is_a_failure_and_an_existing_explanation_is_used() {
    let mut phase = Phase::honest_reads();
    phase.records[0].ops[0].short_count = 1;
    phase.records[0].failures = vec![IoFailure { explanation: "As explained.".to_owned(), ..failure(0) }];
    phase.judge().assert("call_results", Contradicted, "As explained.");
}

#[test]
fn a_block_that_reads_back_differently_contradicts() {
    let mut phase = Phase::honest_reads();
    phase.records[0].verify_failure_count = 1;
    phase.records[0].verify_failures = vec![VerifyFailure {
        path: "/data/file".to_owned(),
        offset: 4096,
        length: 4096,
        expected: "write 7".to_owned(),
        found: "write 3".to_owned(),
        part: BlockPart::Sequence,
        numbers: Some([3, 7]),
        pattern_byte: None,
    }];
    phase.judge().assert("call_results", Contradicted, "expected write 7, found write 3");
}

#[test]
fn a_phase_without_a_completed_io_is_suspect() {
    let mut phase = Phase::honest_reads();
    phase.records[0].ops.clear();
    phase.judge().assert("call_results", Suspect, "nothing was measured");
}

#[test]
fn each_error_names_the_attempt_and_the_kernels_error() {
    let target = target();
    for (errno, words) in [
        (libc::EINVAL, "Invalid argument"),
        (libc::EIO, "kernel log (dmesg)"),
        (libc::ENOSPC, "No space is left"),
        (libc::EOPNOTSUPP, "RWF_DONTCACHE"),
        (libc::ENXIO, "The device is gone"),
        (libc::ENOMEM, "Cannot allocate memory"),
    ] {
        let sentence = explain_failure(&failure(errno), Some(&target));
        assert!(sentence.contains(words), "{sentence}");
    }
    let aligned = IoFailure { address: 0x1000, ..failure(libc::EINVAL) };
    assert!(explain_failure(&aligned, Some(&target)).contains("does not report which argument"));
    let offset = IoFailure { address: 0x1000, offset: 100, ..failure(libc::EINVAL) };
    assert!(explain_failure(&offset, Some(&target)).contains("The offset is 100 bytes past a multiple of 512"));
    assert!(explain_failure(&failure(0), None).contains("only 0 of 131072 bytes were transferred"));
    let sentence = describe_failure(&failure(libc::EINVAL), "Invalid argument (os error 22).");
    assert!(
        sentence.starts_with("write of 131072 bytes at offset 131072 of `/data/file` from address 0x7f"),
        "{sentence}"
    );
    let several = IoFailure { count: 3, ..failure(libc::EIO) };
    let sentence = describe_failure(&several, "Input/output error.");
    assert_eq!(
        sentence,
        "write of 131072 bytes at offset 131072 of `/data/file` failed (3 times): Input/output error."
    );
}
