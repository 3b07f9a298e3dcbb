//! The engine `uas` on a simulated disk, in this process: the worker's loop, the shared queue and the protocol.

use crate::common::{Job, KIB, assert_clean, file_plan, op};
use crate::device::{Device, Fault};
use std::fs::File;
use std::sync::Arc;
use trueio_engine::{TargetFile, TrimCall, WorkerReport};
use trueio_model::{Checksum, EngineKind, OpKind, SyncMode};
use trueio_uas::disk::{Quirks, identify};
use trueio_uas::host::Host;
use trueio_uas::queue::{Disk, Queue};
use trueio_uas::serve::{Discard, Served};
use trueio_uas::session::Limits;

/// 256 KiB of numbered blocks.
const SIZE: u64 = 256 * KIB;

fn queue(device: Device, change: impl FnOnce(&mut Served)) -> Arc<Queue<Device>> {
    let has_streams = device.has_streams;
    let mut host = Host::new(device, 15, has_streams, Limits::default());
    let facts = identify(&mut host, 0, Quirks::default()).expect("a disk");
    let mut served = Served::of(&facts, 15, Some(16 << 20), false).expect("enough memory");
    host.transport_mut().medium = (0..SIZE as usize).map(|at| (at / 512) as u8).collect();
    served.block_count = SIZE / 512;
    change(&mut served);
    Arc::new(Queue::new(host, served, Box::new(())))
}

fn job(queue: &Arc<Queue<Device>>) -> Job {
    let mut job = Job::new(EngineKind::Uas).depth(8).region(SIZE);
    job.plan.files = vec![file_plan("usb:2-1", 0, SIZE)];
    job.plan.direct = trueio_model::DirectPolicy::Require;
    job.files = vec![TargetFile {
        file: Arc::new(File::open("/dev/null").expect("it is always there")),
        path: "usb:2-1".to_owned(),
        trim_call: TrimCall::Discard(None),
        end_bytes: SIZE,
        lock: None,
        disk: Some(Arc::clone(queue) as Arc<dyn Disk>),
    }];
    job
}

fn both(case: impl Fn(Device)) {
    case(Device::new(true));
    case(Device::new(false));
}

#[test]
fn each_block_is_read_once_through_a_queue() {
    both(|device| {
        let queue = queue(device, |_| {});
        let report = job(&queue).run();
        assert_clean(&report, "random reads");
        assert_eq!(op(&report, OpKind::Read).io_count, SIZE / (4 * KIB));
        let seen = queue.seen();
        assert!(seen.moved.in_bytes >= SIZE, "{seen:?}");
    });
}

#[test]
fn what_is_written_is_read_back_and_verified() {
    both(|device| {
        let queue = queue(device, |_| {});
        queue.permit_writes();
        let verified = |job: Job| job.op(OpKind::Write).verify(Checksum::Crc32c);
        let report = verified(job(&queue)).run();
        assert_clean(&report, "write and verify");
        assert_eq!(op(&report, OpKind::Write).io_count, SIZE / (4 * KIB));
        assert_eq!(report.verified_block_count, SIZE / (4 * KIB));
        assert!(queue.seen().moved.out_bytes >= SIZE);
    });
}

#[test]
fn without_permission_a_write_fails_as_on_a_read_only_disk() {
    both(|device| {
        let queue = queue(device, |_| {});
        let report = job(&queue).op(OpKind::Write).run();
        let failure = report.failures.first().expect("a failure");
        assert_eq!((failure.errno, queue.seen().moved.out_bytes), (libc::EROFS, 0));
    });
}

#[test]
fn trims_and_flushes_become_commands() {
    both(|device| {
        let queue = queue(device, |served| served.discard = Discard::Unmap(64));
        queue.permit_writes();
        let report = job(&queue).op(OpKind::Trim).run();
        assert_clean(&report, "trims");
        assert_eq!(op(&report, OpKind::Trim).io_count, SIZE / (4 * KIB));
        let report = job(&queue).op(OpKind::Write).with(|plan| plan.flush.end_fsync = true).run();
        assert_clean(&report, "writes and a flush");
        assert_eq!(op(&report, OpKind::Sync).io_count, 1);
    });
}

/// Goal: with `sync = dsync`, each write has FUA set (0x08 in byte 1); without it, none; on a disk with a cache and without FUA
/// it fails instead of being durable in name only.
#[test]
fn synchronous_writes_have_fua_set() {
    let durable = |plan: &mut trueio_model::JobPlan| plan.sync = SyncMode::Dsync;
    both(|device| {
        let queue = queue(device, |_| {});
        queue.permit_writes();
        assert_clean(&job(&queue).op(OpKind::Write).run(), "writes");
        assert_eq!(queue.seen().durable_writes, 0);
        assert_clean(&job(&queue).op(OpKind::Write).with(durable).run(), "durable writes");
        assert_eq!(queue.seen().durable_writes, SIZE / (4 * KIB));
    });
    both(|device| {
        let queue = queue(device, |served| served.has_fua = false);
        queue.permit_writes();
        let report = job(&queue).op(OpKind::Write).with(durable).run();
        assert_eq!(report.failures.first().expect("a failure").errno, libc::EOPNOTSUPP);
    });
}

#[test]
fn an_error_of_the_disk_is_a_failed_io_and_a_lost_status_is_recovered() {
    both(|device| {
        let sense = vec![0xf0, 0, 3, 0, 0, 0, 7, 10, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0];
        let queue = queue(device.with(0x28, Fault::Status(2, sense)), |_| {});
        let report = job(&queue).run();
        let failure = report.failures.first().expect("a failure");
        assert_eq!((failure.errno, failure.path.as_str()), (libc::EIO, "usb:2-1"));
        assert!(queue.seen().last.is_some_and(|last| last.to_string().contains("unrecovered read error at block 7")));
    });
    both(|device| {
        let queue = queue(device.with(0x28, Fault::Slow(1_000_000)), |_| {});
        assert_clean(&job(&queue).run(), "a slow command");
    });
}

#[test]
fn workers_share_the_disk() {
    let queue = queue(Device::new(true), |_| {});
    let reports: Vec<WorkerReport> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| job(&queue).depth(16).run())).collect();
        threads.into_iter().map(|thread| thread.join().expect("the worker does not panic")).collect()
    });
    for report in reports {
        assert_clean(&report, "one of three");
        assert_eq!(op(&report, OpKind::Read).io_count, SIZE / (4 * KIB));
    }
}

#[test]
fn without_a_disk_the_engine_does_not_start() {
    let queue = queue(Device::new(true), |_| {});
    let mut job = job(&queue);
    job.files[0].disk = None;
    let fatal = job.run().fatal.expect("no disk");
    assert!(fatal.contains("engine `uas`") && fatal.contains("no USB disk is claimed"), "{fatal}");
}
