//! Sessions with a simulated device in virtual time: each fault, with streams and without.

use crate::device::{BLOCK, Device, Fault};
use trueio_uas::ata;
use trueio_uas::disk::{Quirks, identify, logical_units};
use trueio_uas::host::{Failure, Host, Pipe};
use trueio_uas::iu::ResponseCode;
use trueio_uas::request::{Data, Kind, Request};
use trueio_uas::serve::Served;
use trueio_uas::session::Limits;

const SECOND: u64 = 1_000_000_000;
const QUERY: u16 = 0x180;
const ABORT: u16 = 0x101;
const UNIT_RESET: u16 = 0x108;
const READ: u16 = 0x28;

fn host(device: Device) -> Host<Device> {
    let has_streams = device.has_streams;
    Host::new(device, 15, has_streams, Limits::default())
}

fn sense(key: u8, asc: u8, ascq: u8) -> Fault {
    Fault::Status(2, vec![0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, ascq, 0, 0, 0, 0])
}

fn read(host: &mut Host<Device>, block: u64) -> Result<Vec<u8>, Failure> {
    let mut data = vec![0xee; BLOCK];
    host.execute(Request::read(0, block, 1, BLOCK as u32), &mut data).map(|_| data)
}

fn write(host: &mut Host<Device>, block: u64, byte: u8) -> Result<(), Failure> {
    host.execute(Request::write(0, block, 1, BLOCK as u32, false), &mut [byte; BLOCK]).map(|_| ())
}

fn flush(host: &mut Host<Device>) -> Result<(), Failure> {
    host.execute(Request::flush(0), &mut []).map(|_| ())
}

/// Runs a case with streams and without.
fn both(case: impl Fn(Device)) {
    case(Device::new(true));
    case(Device::new(false));
}

#[test]
fn what_is_written_is_read_back_and_the_facts_are_the_devices() {
    both(|device| {
        let mut host = host(device);
        assert_eq!(logical_units(&mut host, Quirks::default()), Ok(vec![0, 1]));
        let facts = identify(&mut host, 0, Quirks::default()).expect("a disk");
        assert_eq!((facts.inquiry.vendor.as_str(), facts.serial.as_deref()), ("TEST", Some("SERIAL")));
        assert_eq!((facts.capacity.block_count, facts.capacity.physical_bytes), (64, 4096));
        assert_eq!(facts.limits.transfer_blocks_max, 2048);
        assert!(facts.caching.is_some_and(|caching| caching.has_write_cache && caching.has_fua));
        write(&mut host, 9, 0xa5).expect("a write");
        assert_eq!(read(&mut host, 9), Ok(vec![0xa5; BLOCK]));
        assert_eq!(read(&mut host, 10), Ok(vec![10; BLOCK]));
        flush(&mut host).expect("a flush");
    });
}

/// Goal: a disk with blocks of 4096 bytes (4Kn) is read and written in its own blocks, and a fault of it is recovered.
#[test]
fn a_disk_with_blocks_of_4096_bytes_is_read_and_written_in_them() {
    both(|device| {
        let mut host = host(device.with_blocks_of_4096().with(0x28, Fault::WrongTag));
        let facts = identify(&mut host, 0, Quirks::default()).expect("a disk");
        assert_eq!((facts.capacity.block_bytes, facts.capacity.physical_bytes), (4096, 4096));
        assert_eq!((facts.capacity.block_count, facts.capacity.size_bytes()), (64, 64 * 4096));
        let mut data = vec![0xa5; 2 * 4096];
        assert_eq!(host.execute(Request::write(0, 9, 2, 4096, true), &mut data), Ok(2 * 4096));
        let mut found = vec![0; 3 * 4096];
        assert_eq!(host.execute(Request::read(0, 8, 3, 4096), &mut found), Ok(3 * 4096));
        assert_eq!((&found[..4096], &found[4096..]), (&[8; 4096][..], &data[..]));
        assert_eq!(host.counts().port_resets, 1);
        flush(&mut host).expect("a flush");
    });
}

#[test]
fn a_full_queue_of_reads_returns_each_buffer_its_own_block() {
    both(|device| {
        let mut host = host(device);
        let mut buffers = vec![[0u8; BLOCK]; 15];
        let pointers: Vec<*mut u8> = buffers.iter_mut().map(|buffer| buffer.as_mut_ptr()).collect();
        for (block, pointer) in pointers.iter().enumerate() {
            let request = Request::read(0, block as u64, 1, BLOCK as u32);
            // SAFETY: the buffer outlives the host's use of it: all outcomes are awaited below.
            unsafe { host.start(request, block as u64, *pointer) }.expect("a free slot");
        }
        // SAFETY: never started.
        assert!(unsafe { host.start(Request::flush(0), 99, std::ptr::null_mut()) }.is_err(), "all slots are taken");
        let mut ended = Vec::new();
        while let Some(outcome) = host.poll(None) {
            assert_eq!(outcome.result, Ok(BLOCK as u32));
            ended.push(outcome.user);
        }
        ended.sort_unstable();
        assert_eq!(ended, (0..15).collect::<Vec<u64>>());
        for (block, buffer) in buffers.iter().enumerate() {
            assert_eq!(buffer, &[block as u8; BLOCK]);
        }
    });
}

#[test]
fn unit_attention_and_a_starting_disk_are_waited_out_and_a_stopped_one_is_started() {
    both(|device| {
        let device = device.with(0x28, sense(6, 0x29, 0)).with(0x28, sense(2, 4, 1)).with(0x28, sense(2, 4, 1));
        let mut waited = host(device);
        assert_eq!(read(&mut waited, 3), Ok(vec![3; BLOCK]));
        assert_eq!(waited.transport().log, [READ; 4]);
        let mut stopped = host(Device::new(waited.transport().has_streams).with(0x28, sense(2, 4, 2)));
        assert_eq!(read(&mut stopped, 3), Ok(vec![3; BLOCK]));
        assert_eq!(stopped.transport().log, [READ, 0x1b, READ]);
    });
}

#[test]
fn a_disk_that_never_becomes_ready_fails_within_its_time() {
    both(|mut device| {
        for _ in 0..1000 {
            device = device.with(0x28, sense(2, 4, 1));
        }
        let mut host = host(device);
        let error = read(&mut host, 3).expect_err("never ready");
        assert_eq!(error.to_string(), "the disk is becoming ready (not ready, 2/04/01)");
        assert!((30..32).contains(&(host.transport().now_ns / SECOND)), "{}", host.transport().now_ns);
    });
}

#[test]
fn errors_of_the_device_are_reported_in_a_sentence_and_not_repeated() {
    both(|device| {
        let sensed = vec![0xf0, 0, 3, 0, 0, 0, 7, 10, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0];
        let mut host = host(device.with(0x28, Fault::Status(2, sensed)).with(0x28, sense(6, 0x28, 0)));
        host.set_removable(true);
        let error = read(&mut host, 7).expect_err("a bad block");
        assert_eq!(error.to_string(), "an unrecovered read error at block 7 (medium error, 3/11/00)");
        assert_eq!(host.transport().log, [READ]);
        let error = read(&mut host, 7).expect_err("another medium");
        assert_eq!(error.to_string(), "the medium may have changed (unit attention, 6/28/00)");
        assert_eq!(read(&mut host, 7), Ok(vec![7; BLOCK]), "the session goes on");
    });
}

#[test]
fn success_with_missing_data_is_a_failure_after_five_more_tries() {
    both(|mut device| {
        for _ in 0..6 {
            device = device.with(0x28, Fault::Short);
        }
        let mut host = host(device);
        assert_eq!(read(&mut host, 1), Err(Failure::Short { wanted: 512, got: 256 }));
        assert_eq!(host.transport().log, [READ; 6]);
    });
}

/// Goal: answers that Linux does not pass on at once are sent again five times here, too, and the sixth is the error.
#[test]
fn errors_that_may_pass_are_tried_five_times_more() {
    let faults = [
        sense(6, 0x28, 0),
        sense(6, 0x29, 0),
        sense(0, 0, 0),
        sense(3, 0x0c, 0),
        sense(0xb, 0x47, 3),
        Fault::Status(2, Vec::new()),
        Fault::Short,
        Fault::Response(2),
        Fault::Response(5),
        Fault::Response(0x77),
    ];
    for fault in faults {
        both(|mut device| {
            let streams = device.has_streams;
            for _ in 0..5 {
                device = device.with(0x28, fault.clone());
            }
            let mut passing = host(device);
            assert_eq!(read(&mut passing, 3), Ok(vec![3; BLOCK]), "{fault:?}");
            assert_eq!(passing.transport().log, [READ; 6], "{fault:?}");
            let mut device = Device::new(streams);
            for _ in 0..6 {
                device = device.with(0x28, fault.clone());
            }
            let mut lasting = host(device);
            read(&mut lasting, 3).expect_err("the sixth");
            assert_eq!(lasting.transport().log, [READ; 6], "{fault:?}");
            assert_eq!(read(&mut lasting, 3), Ok(vec![3; BLOCK]), "the session goes on");
            assert_eq!(lasting.transport().resets, 0, "{fault:?}");
        });
    }
}

/// Goal: a bridge that refuses FUA (JMS578) stores durable writes nevertheless, and is asked once.
#[test]
fn a_refused_fua_becomes_a_write_and_a_flush_and_is_remembered() {
    for refusal in [(0x20, 0), (0x24, 0), (0x26, 1), (0, 0)] {
        both(|device| {
            let mut host = host(device.with(0x2a, sense(5, refusal.0, refusal.1)));
            let request = Request::write(0, 5, 1, BLOCK as u32, true);
            assert_eq!(host.execute(request, &mut [0x5a; BLOCK]), Ok(BLOCK as u32));
            assert_eq!(host.transport().log, [0x2a, 0x2a, 0x35]);
            assert!(host.refuses_fua());
            assert_eq!(host.execute(request, &mut [0x5b; BLOCK]), Ok(BLOCK as u32));
            assert_eq!(host.transport().log[3..], [0x2a, 0x35], "asked once");
            assert_eq!(read(&mut host, 5), Ok(vec![0x5b; BLOCK]));
        });
    }
    both(|device| {
        // Without FUA it is refused as well: the write's own error, and FUA is tried with the next.
        let mut host = host(device.with(0x2a, sense(5, 0x24, 0)).with(0x2a, sense(5, 0x24, 0)));
        let request = Request::write(0, 5, 1, BLOCK as u32, true);
        assert!(matches!(host.execute(request, &mut [1; BLOCK]), Err(Failure::Sense(_))));
        assert!(!host.refuses_fua());
    });
    both(|device| {
        // A range beyond the end is no refusal of FUA.
        let mut host = host(device.with(0x2a, sense(5, 0x21, 0)));
        let request = Request::write(0, 5, 1, BLOCK as u32, true);
        assert!(matches!(host.execute(request, &mut [1; BLOCK]), Err(Failure::Sense(_))));
        assert_eq!(host.transport().log, [0x2a]);
    });
}

/// Goal: the flush that stands for FUA is one: a loss of power between the write and the flush, and a failed flush, fail the write.
#[test]
fn a_write_in_place_of_fua_fails_if_it_was_lost_before_its_flush() {
    both(|device| {
        let streams = device.has_streams;
        let request = Request::write(0, 5, 1, BLOCK as u32, true);
        let mut lost = host(device.with(0x2a, sense(5, 0x24, 0)).with(0x35, sense(6, 0x29, 1)));
        assert_eq!(lost.execute(request, &mut [1; BLOCK]), Err(Failure::CacheLost));
        assert_eq!(flush(&mut lost), Err(Failure::CacheLost), "other writes may be lost, too");
        let mut failed = host(Device::new(streams).with(0x2a, sense(5, 0x24, 0)).with(0x35, sense(4, 3, 0)));
        let error = failed.execute(request, &mut [1; BLOCK]).expect_err("the flush failed");
        assert!(error.to_string().contains("write fault"), "{error}");
    });
}

/// Goal: a bridge whose port is reset again and again by something else loses no command.
#[test]
fn repeated_resets_end_in_success_when_the_device_recovers_within_its_time() {
    both(|mut device| {
        for _ in 0..12 {
            device = device.with(0x28, Fault::WrongTag);
        }
        let mut host = host(device);
        assert_eq!(read(&mut host, 4), Ok(vec![4; BLOCK]));
        assert_eq!(host.transport().resets, 12);
        assert!(host.transport().now_ns < 60 * SECOND, "{}", host.transport().now_ns);
    });
}

#[test]
fn a_device_that_breaks_the_protocol_for_ever_is_given_up_after_90_seconds() {
    both(|mut device| {
        for _ in 0..1000 {
            device = device.with(0x28, Fault::WrongTag);
        }
        let mut host = host(device);
        assert_eq!(read(&mut host, 4), Err(Failure::NoAnswer));
        assert!((90..100).contains(&(host.transport().now_ns / SECOND)), "{}", host.transport().now_ns);
        assert!(host.transport().resets < 30, "{}: it pauses between resets", host.transport().resets);
    });
}

/// Goal: a command that was in flight next to the one that hangs is not charged for the resets.
#[test]
fn a_command_next_to_one_that_hangs_is_repeated_until_it_ends() {
    both(|mut device| {
        (device.response, device.unit_reset_response) = (Some(4), None);
        // The first hangs three times, which is more than its time; the second is always lost with it.
        for _ in 0..3 {
            device = device.with(0x28, Fault::Hang).with(0x2a, Fault::Hang);
        }
        let mut host = host(device);
        let (mut first, mut second) = ([0u8; BLOCK], [7u8; BLOCK]);
        // SAFETY: the buffers outlive the loop below, which awaits both outcomes.
        unsafe {
            host.start(Request::read(0, 3, 1, BLOCK as u32), 0, first.as_mut_ptr()).expect("a free slot");
            host.start(Request::write(0, 4, 1, BLOCK as u32, false), 1, second.as_mut_ptr()).expect("a free slot");
        }
        let mut results = [None, None];
        while results.iter().any(Option::is_none) {
            if let Some(outcome) = host.poll(None) {
                results[outcome.user as usize] = Some(outcome.result);
            }
        }
        assert_eq!(results, [Some(Err(Failure::NoAnswer)), Some(Ok(BLOCK as u32))]);
    });
}

#[test]
fn a_flush_has_twice_the_time_of_another_command() {
    both(|device| {
        let mut host = host(device.with(0x35, Fault::Slow(55 * SECOND)));
        flush(&mut host).expect("within 60 s");
        assert_eq!(host.transport().log, [0x35], "no query");
    });
}

/// Goal: facts that a bridge does not give are replaced as Linux does, by another command or an assumption.
#[test]
fn commands_for_facts_that_are_never_answered_are_replaced() {
    both(|mut device| {
        for operation in [0xa0, 0x9e, 0x1a] {
            for _ in 0..3 {
                device = device.with(operation, Fault::Hang);
            }
        }
        let mut host = host(device);
        assert_eq!(logical_units(&mut host, Quirks::default()), Ok(vec![0]));
        let facts = identify(&mut host, 0, Quirks::default()).expect("a disk");
        assert_eq!((facts.capacity.block_count, facts.caching), (64, None));
        let served = Served::of(&facts, 15, None, false).expect("enough memory");
        assert!(!served.has_cache && !served.has_fua, "write through");
    });
}

#[test]
fn a_quirk_keeps_its_command_from_the_device() {
    both(|device| {
        let streams = device.has_streams;
        let quirks = Quirks {
            no_report_luns: true,
            no_read_capacity_16: true,
            assumes_cache: true,
            transfer_bytes_max: Some(240 * 512),
            broken_fua: true,
            no_ata: true,
            ..Quirks::default()
        };
        let mut quirked = host(device);
        assert_eq!(logical_units(&mut quirked, quirks), Ok(vec![0]));
        let facts = identify(&mut quirked, 0, quirks).expect("a disk");
        for operation in [0xa0, 0x9e, 0x1a] {
            assert!(!quirked.transport().log.contains(&operation), "{operation:x}");
        }
        let served = Served::of(&facts, 15, None, false).expect("enough memory");
        assert!(served.has_cache && !served.has_fua && served.has_no_ata);
        assert_eq!(served.request_bytes_max, 240 * 512);
        let odd = Quirks { even_block_count: true, ..Quirks::default() };
        assert_eq!(identify(&mut quirked, 0, odd).expect("a disk").capacity.block_count, 64, "even already");
        let less = Quirks { one_block_less: true, ..Quirks::default() };
        assert_eq!(identify(&mut quirked, 0, less).expect("a disk").capacity.block_count, 63);
        // Without the quirks.
        let mut plain = host(Device::new(streams));
        let facts = identify(&mut plain, 0, Quirks::default()).expect("a disk");
        let served = Served::of(&facts, 15, None, false).expect("enough memory");
        assert!(served.has_fua && served.request_bytes_max > 240 * 512);
    });
}

#[test]
fn a_full_task_set_shrinks_the_window_and_no_command_is_lost() {
    both(|mut device| {
        for _ in 0..4 {
            device = device.with(0x28, Fault::Status(0x28, Vec::new()));
        }
        let mut host = host(device);
        let mut buffers = vec![[0u8; BLOCK]; 15];
        for (block, buffer) in buffers.iter_mut().enumerate() {
            let request = Request::read(0, block as u64, 1, BLOCK as u32);
            // SAFETY: the buffers outlive the loop below, which awaits all outcomes.
            unsafe { host.start(request, block as u64, buffer.as_mut_ptr()) }.expect("a free slot");
        }
        let mut ended = 0;
        while ended < 15 {
            if let Some(outcome) = host.poll(None) {
                assert_eq!(outcome.result, Ok(BLOCK as u32));
                ended += 1;
            }
        }
        assert_eq!(host.counts().queue_full, 4);
    });
}

#[test]
fn a_device_that_stays_busy_ends_in_an_error() {
    both(|mut device| {
        for _ in 0..10_000 {
            device = device.with(0x28, Fault::Status(8, Vec::new()));
        }
        let mut host = host(device);
        assert_eq!(read(&mut host, 3), Err(Failure::Busy(8)));
        assert!(host.transport().now_ns < 31 * SECOND);
    });
}

#[test]
fn a_lost_status_is_found_by_a_query_and_the_command_is_repeated() {
    both(|device| {
        let mut host = host(device.with(0x2a, Fault::LostStatus));
        write(&mut host, 5, 0x55).expect("repeated");
        assert_eq!(host.transport().log, [0x2a, QUERY, 0x2a]);
        assert_eq!(read(&mut host, 5), Ok(vec![0x55; BLOCK]));
    });
}

#[test]
fn a_command_that_must_not_be_repeated_is_not() {
    both(|device| {
        let mut host = host(device.with(0x85, Fault::Hang));
        let mut cdb = [0; 16];
        cdb[0] = 0x85;
        let request = Request { lun: 0, cdb, data: Data::None, kind: Kind::Once };
        assert_eq!(host.execute(request, &mut []), Err(Failure::Interrupted));
        assert_eq!(host.transport().log, [0x85, QUERY]);
    });
}

/// A slow disk answers QUERY TASK: it still has the command. The time is prolonged once.
#[test]
fn a_slow_command_is_not_aborted_while_the_device_reports_that_it_has_it() {
    both(|mut device| {
        device.response = Some(8);
        let mut host = host(device.with(0x28, Fault::Slow(45 * SECOND)));
        assert_eq!(read(&mut host, 2), Ok(vec![2; BLOCK]));
        assert_eq!(host.transport().log, [READ, QUERY]);
    });
}

#[test]
fn functions_that_the_device_does_not_support_lead_to_the_next_and_at_last_to_the_reset() {
    both(|mut device| {
        device.response = Some(4);
        let mut host = host(device.with(0x28, Fault::Hang));
        assert_eq!(read(&mut host, 2), Ok(vec![2; BLOCK]));
        assert_eq!(host.transport().log, [READ, QUERY, ABORT, UNIT_RESET, READ]);
        assert_eq!(host.transport().resets, 1);
        assert_eq!(host.transport().now_ns / SECOND, 30);
    });
}

/// The whole ladder in bounded time: 30 s, query, abort and logical unit reset of 5 s each, reset of the port; twice.
#[test]
fn a_device_that_never_answers_ends_in_an_error_in_bounded_time() {
    both(|mut device| {
        device.response = None;
        device.reset_helps = false;
        let device = device.with(0x28, Fault::Hang).with(0x28, Fault::Hang).with(0x28, Fault::Hang);
        let mut host = host(device);
        assert_eq!(read(&mut host, 2), Err(Failure::NoAnswer));
        assert_eq!(host.transport().log, [READ, QUERY, ABORT, UNIT_RESET, READ, QUERY, ABORT, UNIT_RESET]);
        assert_eq!(host.transport().resets, 2);
        assert_eq!(host.transport().now_ns / SECOND, 90);
    });
}

#[test]
fn stalled_pipes_wrong_tags_and_senseless_units_lead_to_a_reset_and_a_repetition() {
    let faults = [
        Fault::Stall(Pipe::Command),
        Fault::Stall(Pipe::Status),
        Fault::Stall(Pipe::DataIn),
        Fault::WrongTag,
        Fault::Bytes(vec![]),
        Fault::Bytes(vec![9, 9, 9, 9, 9, 9, 9, 9]),
        Fault::Bytes(vec![3, 0, 0]),
    ];
    for fault in faults {
        both(|device| {
            if !device.has_streams && fault == Fault::Stall(Pipe::DataIn) {
                // Without streams no data transfer is pending before READ READY.
                return;
            }
            let mut host = host(device.with(0x28, fault.clone()));
            assert_eq!(read(&mut host, 4), Ok(vec![4; BLOCK]), "{fault:?}");
            assert_eq!((host.transport().resets, host.counts().port_resets), (1, 1), "{fault:?}");
            assert!(host.transport().now_ns < SECOND, "{fault:?}: at once");
        });
    }
}

#[test]
fn a_reset_repeats_every_command_in_flight_exactly_once() {
    both(|device| {
        let mut host = host(device.with(0x28, Fault::Hang).with(0x28, Fault::Hang).with(0x28, Fault::WrongTag));
        let mut buffers = [[0u8; BLOCK]; 3];
        for (block, buffer) in buffers.iter_mut().enumerate() {
            let request = Request::read(0, block as u64, 1, BLOCK as u32);
            // SAFETY: the buffers outlive the loop below, which awaits all outcomes.
            unsafe { host.start(request, block as u64, buffer.as_mut_ptr()) }.expect("a free slot");
        }
        let mut users = Vec::new();
        while let Some(outcome) = host.poll(None) {
            assert_eq!(outcome.result, Ok(BLOCK as u32));
            users.push(outcome.user);
        }
        users.sort_unstable();
        assert_eq!(users, [0, 1, 2]);
        assert_eq!(host.transport().log, [READ; 6]);
        assert_eq!(buffers, [[0; BLOCK], [1; BLOCK], [2; BLOCK]]);
    });
}

#[test]
fn an_overlapped_tag_clears_the_logical_unit_and_a_refused_unit_fails() {
    both(|device| {
        let mut host = host(device.with(0x28, Fault::Response(0x0a)).with(0x28, Fault::Response(9)));
        assert_eq!(read(&mut host, 6), Err(Failure::Refused(ResponseCode::IncorrectLun)));
        assert_eq!(host.transport().log, [READ, UNIT_RESET, READ]);
    });
}

#[test]
fn an_unplugged_device_fails_every_command_at_once() {
    both(|device| {
        let mut host = host(device.with(0x28, Fault::Hang).with(0x35, Fault::Unplug));
        let mut buffer = [0u8; BLOCK];
        // SAFETY: the buffer outlives the host's use of it: both outcomes are awaited below.
        unsafe {
            host.start(Request::read(0, 0, 1, BLOCK as u32), 1, buffer.as_mut_ptr()).expect("a free slot");
            host.start(Request::flush(0), 2, std::ptr::null_mut()).expect("a free slot");
        }
        for _ in 0..2 {
            assert_eq!(host.poll(None).map(|outcome| outcome.result), Some(Err(Failure::Gone)));
        }
        assert_eq!(read(&mut host, 1), Err(Failure::Gone), "and later ones, too");
        assert_eq!(host.transport().now_ns, 1, "without waiting");
    });
}

/// A cached write that failed later is reported with another command: the next flush must not succeed.
#[test]
fn a_deferred_error_fails_the_next_flush_and_not_the_command_that_reports_it() {
    both(|device| {
        let deferred = Fault::Status(2, vec![0x71, 0, 4, 0, 0, 0, 0, 10, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0]);
        let mut host = host(device.with(0x28, deferred));
        write(&mut host, 1, 1).expect("acknowledged");
        assert_eq!(read(&mut host, 2), Ok(vec![2; BLOCK]));
        let error = flush(&mut host).expect_err("a write was lost");
        assert!(error.to_string().contains("of an earlier command"), "{error}");
        flush(&mut host).expect("reported once");
    });
}

#[test]
fn a_device_that_lost_power_fails_the_flush_of_what_it_had_acknowledged() {
    both(|device| {
        let mut host = host(device.with(0x28, sense(6, 0x29, 0)).with(0x28, sense(6, 0x29, 1)));
        assert_eq!(read(&mut host, 2), Ok(vec![2; BLOCK]), "powered on before the session: nothing was written");
        flush(&mut host).expect("nothing is in doubt");
        let streams = host.transport().has_streams;
        let mut lost = self::host(Device::new(streams).with(0x28, sense(6, 0x29, 1)));
        write(&mut lost, 1, 1).expect("acknowledged");
        assert_eq!(read(&mut lost, 2), Ok(vec![2; BLOCK]));
        assert_eq!(flush(&mut lost), Err(Failure::CacheLost));
        // After a flush there is nothing to lose.
        let mut flushed = self::host(Device::new(streams).with(0x28, sense(6, 0x29, 1)));
        write(&mut flushed, 1, 1).expect("acknowledged");
        flush(&mut flushed).expect("flushed");
        read(&mut flushed, 2).expect("read");
        flush(&mut flushed).expect("nothing was lost");
    });
}

/// The reset is this session's own: the device keeps its cache and reports it with 29/00.
#[test]
fn a_reset_by_the_session_itself_puts_no_write_in_doubt() {
    both(|device| {
        let mut host = host(device.with(0x28, Fault::WrongTag).with(0x28, sense(6, 0x29, 0)));
        write(&mut host, 1, 1).expect("acknowledged");
        assert_eq!(read(&mut host, 2), Ok(vec![2; BLOCK]));
        flush(&mut host).expect("the cache is whole");
        assert_eq!(host.counts().attentions, 1);
    });
}

/// Goal: a session that takes a disk over from one that died resets it, so that no command of the dead one is left, and reports a
/// loss of power before that with the first flush: the dead one may have acknowledged writes. Its own reset is no such loss.
#[test]
fn a_session_that_follows_another_reports_what_the_disk_lost_in_between() {
    both(|device| {
        let streams = device.has_streams;
        let mut host = host(device.with(0x28, sense(6, 0x29, 0)));
        host.follow();
        assert_eq!(identify(&mut host, 0, Quirks::default()).expect("a disk").lun, 0);
        host.reset().expect("it comes back");
        assert_eq!((host.transport().resets, host.counts().port_resets), (1, 1));
        assert_eq!(read(&mut host, 2), Ok(vec![2; BLOCK]), "29/00 of this session's own reset");
        flush(&mut host).expect("nothing was lost");
        // The first command on the medium finds it powered on.
        let mut lost = self::host(Device::new(streams).with(0x00, sense(6, 0x29, 0)));
        lost.follow();
        identify(&mut lost, 0, Quirks::default()).expect("a disk");
        lost.reset().expect("it comes back");
        assert_eq!(flush(&mut lost), Err(Failure::CacheLost));
        flush(&mut lost).expect("reported once");
        let mut gone = self::host(Device::new(streams).with(0x28, Fault::Unplug));
        assert_eq!(read(&mut gone, 2), Err(Failure::Gone));
        assert_eq!(gone.reset(), Err(Failure::Gone), "nothing is reset");
    });
}

#[test]
fn smart_data_come_through_a_bridge_that_passes_ata_commands_on() {
    both(|device| {
        let mut host = host(device);
        let found = ata::read(&mut host, 0).expect("no failure").expect("a disk of ATA");
        assert_eq!((found.serial.as_str(), found.rotation_rate), ("ATA-ID1", 1));
        assert_eq!((found.attributes[0].id, found.attributes[0].raw), (194, 33));
        // A bridge that hides them, one that fails, and one that does not answer: sent once.
        let hidden = |has_streams| self::host(Device::new(has_streams).with(0x85, sense(5, 0x20, 0)));
        assert_eq!(ata::read(&mut hidden(host.transport().has_streams), 0), Ok(None));
        let silent = Device::new(host.transport().has_streams).with(0x85, Fault::Hang);
        let mut silent = self::host(silent);
        assert_eq!(ata::read(&mut silent, 0), Err(Failure::Interrupted));
        assert_eq!(silent.transport().log, [0x85, QUERY]);
    });
}

/// A machine that was suspended: transfers fail on the bus, and the streams are gone until the interface is set up again.
#[test]
fn transfers_that_fail_on_the_bus_lead_to_a_reset_and_a_repetition() {
    for pipe in [Pipe::Command, Pipe::Status, Pipe::DataIn] {
        both(|device| {
            if !device.has_streams && pipe == Pipe::DataIn {
                // Without streams no data transfer is pending before READ READY.
                return;
            }
            let mut host = host(device.with(0x28, Fault::Broken(pipe)));
            assert_eq!(read(&mut host, 4), Ok(vec![4; BLOCK]), "{pipe:?}");
            assert_eq!((host.transport().resets, host.counts().port_resets), (1, 1), "{pipe:?}");
        });
    }
}

/// A disk may lose power while the machine is suspended, and the power-on looks like the reset that follows.
#[test]
fn a_suspend_fails_the_flush_of_what_was_acknowledged_before_it() {
    both(|device| {
        let mut host = host(device.with(0x28, Fault::Broken(Pipe::Status)).with(0x28, sense(6, 0x29, 0)));
        write(&mut host, 1, 1).expect("acknowledged");
        host.transport_mut().suspended_ns = 5 * SECOND;
        assert_eq!(read(&mut host, 2), Ok(vec![2; BLOCK]), "after the reset");
        assert_eq!(flush(&mut host), Err(Failure::CacheLost));
        flush(&mut host).expect("reported once");
        // What was flushed before the suspend is not in doubt.
        write(&mut host, 1, 1).expect("acknowledged");
        flush(&mut host).expect("flushed");
        host.transport_mut().suspended_ns = 9 * SECOND;
        read(&mut host, 2).expect("read");
        flush(&mut host).expect("nothing was lost");
        // Clocks that were not read at the same time are no suspend, in either direction.
        write(&mut host, 1, 1).expect("acknowledged");
        let resets = host.counts().port_resets;
        for difference_ns in [1_000_000, -1_000_000i64, 40_000_000, 0] {
            host.transport_mut().suspended_ns = (9 * SECOND).saturating_add_signed(difference_ns);
            read(&mut host, 2).expect("read");
        }
        flush(&mut host).expect("nothing was lost");
        assert_eq!(host.counts().port_resets, resets);
    });
}

#[test]
fn a_logical_unit_reset_repeats_the_commands_of_that_unit_alone() {
    both(|mut device| {
        // Neither QUERY TASK nor ABORT TASK is supported.
        (device.response, device.unit_reset_response) = (Some(4), Some(0));
        let mut host = host(device.with(0x28, Fault::Hang).with(0x28, Fault::Slow(20 * SECOND)));
        let mut buffers = [[0u8; BLOCK]; 2];
        let [first, second] = &mut buffers;
        // SAFETY: the buffers outlive the loop below, which awaits both outcomes.
        unsafe { host.start(Request::read(0, 3, 1, BLOCK as u32), 0, first.as_mut_ptr()) }.expect("a free slot");
        assert_eq!(host.poll(Some(15 * SECOND)), None, "the first hangs");
        // SAFETY: as above.
        unsafe { host.start(Request::read(1, 4, 1, BLOCK as u32), 1, second.as_mut_ptr()) }.expect("a free slot");
        let mut ended = 0;
        while ended < 2 {
            if let Some(outcome) = host.poll(None) {
                assert_eq!(outcome.result, Ok(BLOCK as u32));
                ended += 1;
            }
        }
        assert_eq!(buffers, [[3; BLOCK], [4; BLOCK]]);
        assert_eq!(host.transport().log, [READ, READ, QUERY, ABORT, UNIT_RESET, READ], "the other unit's ran on");
    });
}

#[test]
fn a_command_that_must_not_be_repeated_is_interrupted_by_a_reset_for_another() {
    both(|device| {
        let mut host = host(device.with(0x85, Fault::Hang).with(0x28, Fault::WrongTag));
        let mut cdb = [0; 16];
        cdb[0] = 0x85;
        let mut buffer = [0u8; BLOCK];
        // SAFETY: the buffer outlives the loop below, which awaits both outcomes.
        unsafe {
            let once = Request { lun: 0, cdb, data: Data::None, kind: Kind::Once };
            host.start(once, 0, std::ptr::null_mut()).expect("a free slot");
            host.start(Request::read(0, 7, 1, BLOCK as u32), 1, buffer.as_mut_ptr()).expect("a free slot");
        }
        let mut results = [None, None];
        while results.iter().any(Option::is_none) {
            if let Some(outcome) = host.poll(None) {
                results[outcome.user as usize] = Some(outcome.result);
            }
        }
        assert_eq!(results, [Some(Err(Failure::Interrupted)), Some(Ok(BLOCK as u32))]);
        assert_eq!(host.transport().log, [0x85, READ, READ], "only the read was sent again");
    });
}

#[test]
fn a_device_that_comes_back_with_fewer_streams_is_given_up() {
    let mut device = Device::new(true);
    device.streams_after_reset = 4;
    let mut host = host(device.with(0x28, Fault::WrongTag));
    assert_eq!(read(&mut host, 1), Err(Failure::NoAnswer));
    assert_eq!(read(&mut host, 1), Err(Failure::NoAnswer), "and later ones, too");
}
