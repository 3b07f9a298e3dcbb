//! Names the programs that use the disks of a loop device's file at the same time.
//!
//! The driver's requests come from threads of the kernel, so a request that another program submitted itself is not the job's, also in the
//! file. A disk that carried nothing of the file in a phase is not in its way.
//!
//! Cannot see: programs that write through the page cache, or use another loop device: threads of the kernel make their requests, as they make
//! those of the file.

use super::attribution::{
    add, add_to_process, busiest_first, contains, is_of_filesystem, is_of_kernel, ranges_of, union_ns,
};
use super::phase_trace::PhaseTrace;
use std::collections::BTreeMap;
use trueio_model::{BelowTrace, TracedProcess};

/// Counts the requests of the disks below loop devices: those in the files, and those of other programs.
pub(super) fn count_users(traced: &PhaseTrace, record: &mut BelowTrace) {
    let loops = &traced.loops;
    let of_files = ranges_of(loops.files.iter().map(|file| &file.extents));
    let mut processes: BTreeMap<(&str, i32, u32), TracedProcess> = BTreeMap::new();
    // The program may be that of a job.
    for window in traced.windows.iter().filter(|window| window.lost_count == 0 && !traced.runs_programs) {
        record.window_ns += window.below_until_ns.saturating_sub(window.begin_ns);
        let mut busy: Vec<(u64, u64)> = Vec::new();
        let is_known = |issued_ns| (window.begin_ns..window.below_until_ns).contains(&issued_ns);
        let data = window.below.iter().filter(|request| request.end > request.begin && is_known(request.issued_ns));
        for request in data {
            let name = window.below_names[usize::from(request.name)].as_str();
            let is_in_files = contains(&of_files, request);
            let may_be_ours = request.is_own || request.is_rank || request.is_kernel;
            if !may_be_ours && !is_of_kernel(name) && !is_of_filesystem(name) {
                add(&mut record.others, request);
                add_to_process(
                    processes.entry((name, request.process, request.device)).or_default(),
                    request,
                    is_in_files,
                );
                busy.push((request.issued_ns, request.completed_ns.min(window.below_until_ns)));
            } else if is_in_files {
                add(&mut record.ours, request);
            }
        }
        record.others_busy_ns += union_ns(busy);
    }
    let named = processes.into_iter().map(|((name, process, device), sum)| TracedProcess {
        name: name.to_owned(),
        process,
        disk: loops.layers.name_of(device).to_owned(),
        has_ended: traced.ended.contains(&process),
        ..sum
    });
    record.other_processes = busiest_first(named.collect());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::attribution::tests::window as of_requests;
    use crate::trace::below::tests::{DISK, PLACE, loops};
    use crate::trace::window::Request;
    use trueio_model::RequestSum;

    /// Goal: other programs on the disk below are counted, wherever they are, and the driver, our own threads and a journal are not.
    /// Method: a window of 10 ms with ten reads of the file by a thread of the kernel, one of our own, two of a journal, and six reads by `dd`,
    /// one of them in the file; and the same with a lost event.
    #[test]
    fn programs_on_the_disk_below_are_counted_and_the_driver_is_not() {
        let template = of_requests(0, 0).requests[0];
        let of = |name, begin: u64| Request { device: DISK, begin, end: begin + 4096, is_own: false, name, ..template };
        let driver = |n: u64| Request { is_kernel: true, ..of(0, PLACE + n * 4096) };
        let own = Request { is_own: true, ..of(1, PLACE) };
        let read = |begin| Request { process: 77, completed_ns: 4_000_000, ..of(1, begin) };
        let mut window = of_requests(0, 0);
        window.below = (0..10).map(driver).chain([own, of(2, 0), of(2, 4096)]).collect();
        window.below.extend((0..5).map(|n| read(n << 20)));
        window.below.push(read(PLACE));
        // It was issued after the last known one.
        window.below.push(Request { issued_ns: 9_000_000, ..read(0) });
        window.below_names = vec!["kworker/u4:1".to_owned(), "dd".to_owned(), "jbd2/sda1-8".to_owned()];
        window.below_until_ns = 8_000_000;
        let traced = |lost_count| PhaseTrace {
            loops: loops(),
            ended: vec![77],
            windows: vec![crate::trace::window::Window { lost_count, ..window.clone() }],
            ..PhaseTrace::default()
        };
        let mut record = BelowTrace::default();
        count_users(&traced(0), &mut record);
        assert_eq!(record.ours, RequestSum { count: 11, bytes: 11 << 12 });
        assert_eq!(record.others, RequestSum { count: 6, bytes: 6 << 12 });
        assert_eq!((record.window_ns, record.others_busy_ns), (8_000_000, 3_999_999));
        let dd = TracedProcess {
            name: "dd".to_owned(),
            process: 77,
            disk: "sda".to_owned(),
            read_bytes: 6 << 12,
            in_files_bytes: 1 << 12,
            has_ended: true,
            ..TracedProcess::default()
        };
        assert_eq!(record.other_processes, [dd]);
        for silent in [traced(1), PhaseTrace { runs_programs: true, ..traced(0) }] {
            let mut record = BelowTrace::default();
            count_users(&silent, &mut record);
            assert_eq!(record, BelowTrace::default());
        }
    }
}
