//! Ranks that speak the whole protocol without doing I/O, and that die, lie or are late at each step.

use super::*;
use crate::figures::Measured;
use crate::launcher::Rendezvous;
use crate::sample::JobSample;
use crate::testing::{done, head, measured, null_plan};
use std::net::TcpListener;
use std::time::{Duration, Instant};
use trueio_model::{ClockOffset, JobSpec};

const LONG: Limit = Limit::new(Duration::from_secs(120));

/// A port that was free.
fn free_port() -> u16 {
    TcpListener::bind(("::", 0)).and_then(|listener| listener.local_addr()).expect("a port").port()
}

fn member(rank: u32, size: u32, port: u16, clock: Clock) -> Member {
    let launched = Launched::ByVariables(Rendezvous { rank, size, host: "127.0.0.1".into(), port, token: "t".into() });
    let mut member = Member::join_with(launched, LONG, clock, &|_| ()).expect("all ranks come").expect("several ranks");
    member.shared.stop = Some(Box::leak(Box::new(AtomicBool::new(false))));
    // Eight ranks a host: what a rank gets about its host does not grow with the run.
    member.shared.boot_id = format!("kernel-{:04}", rank / 8);
    member
}

/// The steps of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Join,
    Agree,
    Plan,
    Head,
    Meet,
    Start,
    Results,
    Whole,
}

const STEPS: [Step; 7] = [Step::Join, Step::Agree, Step::Plan, Step::Head, Step::Meet, Step::Start, Step::Results];

/// Plays a rank of a run with one phase until before a step, where its process ends. Returns the member of a whole run, or
/// why the run ended.
fn play(member: Member, dies_before: Step) -> Result<Member, String> {
    play_with(member, dies_before, done())
}

/// The same, with the results that the rank sends.
fn play_with(mut member: Member, dies_before: Step, results: Done) -> Result<Member, String> {
    let is_dead = |step: Step| step == dies_before;
    let ended = |refused: Refused| format!("refused {}: {}", refused.code, refused.text.unwrap_or_default());
    let dead = || Err("dead".to_owned());
    if is_dead(Step::Agree) {
        return dead();
    }
    member.agree("run", Ok(&[])).map_err(ended)?;
    if is_dead(Step::Plan) {
        return dead();
    }
    member.planned(Ok(1)).map_err(ended)?;
    if is_dead(Step::Head) {
        return dead();
    }
    let own = head(null_plan());
    match &mut member.role {
        Role::First(first) => first.gather_heads(&mut member.shared, own),
        Role::Other(other) => other.send_head(&mut member.shared, &own),
    }
    if is_dead(Step::Meet) {
        return dead();
    }
    member.meet();
    if is_dead(Step::Start) {
        return dead();
    }
    let late_ns = member.start();
    if is_dead(Step::Results) {
        return dead();
    }
    // A window of ten looks.
    let begin_ns = member.shared.clock.now_ns();
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(2));
        member.look();
    }
    let end_ns = member.shared.clock.now_ns();
    let span = Some(OwnSpan { begin_ns, end_ns, late_ns });
    member.finish_phase(0, Done { span, ..results }, None, true);
    match member.shared.stopping.clone() {
        Some(reason) => {
            if member.is_first() {
                member.end(1);
            } else {
                assert_eq!(member.end(9), 1, "the code of rank 0, or that of its loss");
            }
            Err(reason)
        }
        None => Ok(member),
    }
}

/// Runs ranks on threads; each dies before its step. Returns what each saw.
fn together(dies: &[Step]) -> Vec<Result<Member, String>> {
    let (port, size) = (free_port(), dies.len() as u32);
    let ranks: Vec<_> = dies
        .iter()
        .enumerate()
        .map(|(rank, step)| {
            let step = *step;
            std::thread::spawn(move || play(member(rank as u32, size, port, Clock::monotonic()), step))
        })
        .collect();
    ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect()
}

/// Ends a whole run.
fn end_all(ranks: Vec<Result<Member, String>>) {
    for (rank, member) in ranks.into_iter().enumerate() {
        let code = member.unwrap_or_else(|reason| panic!("rank {rank}: {reason}")).end(3);
        assert_eq!(code, 3, "every rank has the exit code of rank 0");
    }
}

#[test]
fn three_ranks_play_a_whole_run() {
    end_all(together(&[Step::Whole; 3]));
}

/// Goal: the death of a rank at any step ends the run on all others, which name it.
#[test]
fn the_death_of_a_rank_at_each_step_is_named_and_ends_the_others() {
    let host = host_name();
    for step in STEPS.into_iter().filter(|step| *step != Step::Join) {
        let begin = Instant::now();
        let seen = together(&[Step::Whole, Step::Whole, step]);
        let first = seen[0].as_ref().expect_err("a rank is dead");
        let name = if step == Step::Agree { "rank 2: ".to_owned() } else { format!("rank 2 ({host}): ") };
        assert!(first.contains(&format!("{name}its connection ended")), "{step:?}: {first}");
        let other = seen[1].as_ref().expect_err("the run is over");
        assert!(!other.is_empty() && other != "dead", "{step:?}");
        assert!(begin.elapsed() < LONG.length(), "{step:?}: no wait until the limit");
    }
}

/// Goal: the death of rank 0 at any step ends the others.
#[test]
fn the_death_of_rank_0_at_each_step_ends_the_others() {
    for step in STEPS.into_iter().filter(|step| *step != Step::Join) {
        let begin = Instant::now();
        let seen = together(&[step, Step::Whole, Step::Whole]);
        for other in &seen[1..] {
            let reason = other.as_ref().expect_err("rank 0 is dead");
            assert!(reason.contains("rank 0 is gone: its connection"), "{step:?}: {reason}");
        }
        assert!(begin.elapsed() < LONG.length(), "{step:?}: no wait until the limit");
    }
}

#[test]
fn a_refusal_of_one_rank_is_printed_by_rank_0_and_ends_all_with_code_2() {
    let port = free_port();
    let ranks: Vec<_> = (0..3)
        .map(|rank| {
            std::thread::spawn(move || {
                let mut member = member(rank, 3, port, Clock::monotonic());
                member.agree("run", Ok(&[])).expect("the same request");
                let plan = if rank == 1 { Err("job `a` was refused".to_owned()) } else { Ok(1) };
                let refused = member.planned(plan).expect_err("a refusal");
                if rank == 0 {
                    member.end(refused.code);
                }
                refused
            })
        })
        .collect();
    let refused: Vec<Refused> = ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect();
    let text = format!("rank 1 ({}): job `a` was refused", host_name());
    assert_eq!(refused[0], Refused { code: 2, text: Some(text) });
    for other in &refused[1..] {
        assert_eq!(*other, Refused { code: 2, text: None });
    }
}

#[test]
fn a_rank_that_does_not_answer_is_cut_off_at_the_limit() {
    let port = free_port();
    let silent = std::thread::spawn(move || member(1, 2, port, Clock::monotonic()));
    let mut first = member(0, 2, port, Clock::monotonic());
    let _silent = silent.join().expect("no panic");
    first.shared.limit = Limit::new(Duration::from_millis(200));
    let refused = first.agree("run", Ok(&[])).expect_err("a rank is silent");
    let text = refused.text.expect("rank 0 says why");
    assert!(text.contains("rank 1: it did not answer within 1 s and was cut off"), "{text}");
}

#[test]
fn a_signal_of_any_rank_ends_all() {
    for signalled in [0, 2] {
        let port = free_port();
        let ranks: Vec<_> = (0..3)
            .map(|rank| {
                std::thread::spawn(move || {
                    let member = member(rank, 3, port, Clock::monotonic());
                    if rank == signalled {
                        member.shared.stop.expect("a flag").store(true, Relaxed);
                    }
                    play(member, Step::Whole).err()
                })
            })
            .collect();
        for rank in ranks {
            let reason = rank.join().expect("no panic").expect("the run is stopped");
            assert!(!reason.is_empty());
        }
    }
}

/// Goal: a rank that still measures ends when rank 0, which has measured and asked for results, ends the run.
/// Method: both messages wait in the connection before the rank looks.
#[test]
fn a_stop_after_the_request_for_results_reaches_a_rank_that_still_measures() {
    let port = free_port();
    let other = std::thread::spawn(move || member(1, 2, port, Clock::monotonic()));
    let mut first = member(0, 2, port, Clock::monotonic());
    let mut other = other.join().expect("no panic");
    let Role::First(role) = &mut first.role else { panic!("rank 0") };
    role.hub.broadcast(&crate::message::ToRank::Collect);
    role.hub.broadcast(&crate::message::ToRank::Stop { reason: Reason::cut("SIGINT") });
    let begin = Instant::now();
    while other.shared.stopping.is_none() {
        other.look();
        assert!(begin.elapsed() < LONG.length(), "the rank does not see the end");
    }
    assert_eq!(other.shared.stopping.as_deref(), Some("SIGINT"));
    assert!(other.shared.stop.expect("a flag").load(Relaxed), "its workers end");
}

/// Goal: the offset of a clock that is 1000 s ahead is found within its bound, and a start is common in both clocks.
#[test]
fn the_offset_of_a_shifted_clock_is_found_within_its_bound() {
    const AHEAD_NS: i64 = 1_000_000_000_000;
    let port = free_port();
    let other = std::thread::spawn(move || {
        let base = Clock::monotonic();
        let ahead = Clock::of(move || base.now_ns() + AHEAD_NS);
        play(member(1, 2, port, ahead), Step::Whole).map(|member| member.end(0))
    });
    let mut first = play(member(0, 2, port, Clock::monotonic()), Step::Whole).expect("a whole run");
    let Role::First(role) = &mut first.role else { panic!("rank 0") };
    let phase = role.collected.phases.remove(0);
    for offsets in [&phase.before, &phase.after] {
        let ClockOffset { offset_ns, bound_ns, ping_count, .. } = offsets[&1];
        assert!(offset_ns.abs_diff(-AHEAD_NS) <= bound_ns, "{offset_ns} ± {bound_ns}");
        assert_eq!(ping_count, 200);
    }
    let span = phase.done[&1].span.expect("it measured");
    let began_ns = span.begin_ns + phase.before[&1].offset_ns - phase.start_ns;
    assert!(began_ns >= -(phase.before[&1].bound_ns as i64), "it does not begin before the agreed start: {began_ns}");
    first.end(0);
    other.join().expect("no panic").expect("a whole run");
}

/// Goal: a rank whose clock jumps between the comparisons is found by its offsets.
#[test]
fn a_clock_that_jumps_shows_in_its_offsets() {
    let port = free_port();
    let other = std::thread::spawn(move || {
        let base = Clock::monotonic();
        let begin_ns = base.now_ns();
        let jumps = std::sync::Arc::new(AtomicBool::new(false));
        let flag = jumps.clone();
        let lying = Clock::of(move || base.now_ns() + if flag.load(Relaxed) { 80_000_000 } else { 0 });
        let mut member = member(1, 2, port, lying);
        member.agree("run", Ok(&[])).expect("the same request");
        member.planned(Ok(1)).expect("a plan");
        let Role::Other(role) = &mut member.role else { panic!("rank 1") };
        role.send_head(&mut member.shared, &head(null_plan()));
        member.meet();
        member.start();
        jumps.store(true, Relaxed);
        let end_ns = member.shared.clock.now_ns();
        member.finish_phase(0, Done { span: Some(OwnSpan { begin_ns, end_ns, late_ns: 0 }), ..done() }, None, true);
        member.end(0)
    });
    let mut first = play(member(0, 2, port, Clock::monotonic()), Step::Whole).expect("a whole run");
    let Role::First(role) = &mut first.role else { panic!("rank 0") };
    let phase = role.collected.phases.remove(0);
    let moved_ns = phase.before[&1].offset_ns - phase.after[&1].offset_ns;
    let bound_ns = (phase.before[&1].bound_ns + phase.after[&1].bound_ns) as i64 + 10_000_000;
    assert!((moved_ns - 80_000_000).abs() <= bound_ns, "{moved_ns} ± {bound_ns}");
    first.end(0);
    other.join().expect("no panic");
}

/// What a run of simulated ranks cost rank 0.
struct Cost {
    messages_a_rank: f64,
    sent_a_rank: f64,
    received_a_rank: f64,
    seconds: f64,
    merge_seconds: f64,
}

/// Runs ranks that speak the protocol and do no I/O, a thread each, and merges their results, which have full histograms.
fn simulate(size: u32) -> Cost {
    let phase = measured();
    let results = move || Done { phase: Some(Box::new(Measured::own(phase.clone()))), ..done() };
    let begin = Instant::now();
    let port = free_port();
    let others: Vec<_> = (1..size)
        .map(|number| {
            let results = results();
            let rank = move || {
                play_with(member(number, size, port, Clock::monotonic()), Step::Whole, results)
                    .map(|member| member.end(0))
            };
            std::thread::Builder::new().stack_size(1 << 20).spawn(rank).expect("a thread")
        })
        .collect();
    let mut first = play_with(member(0, size, port, Clock::monotonic()), Step::Whole, results()).expect("a whole run");
    let Role::First(role) = &mut first.role else { panic!("rank 0") };
    let traffic = role.hub.traffic();
    assert_eq!(role.collected.phases[0].after.len(), size as usize);
    // The processor's time of this thread: the other ranks are threads of this process.
    let processor_s = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let before = processor_s();
    let record = crate::merge::merge(&first.shared, role);
    let merge_seconds = processor_s() - before;
    let cluster = record.cluster.as_ref().expect("several ranks");
    assert_eq!((cluster.ranks.len(), cluster.phases[0].ranks.len()), (size as usize, size as usize));
    assert_eq!(record.phases[0].jobs[0].ops[0].io_count, u64::from(size) * 256);
    first.end(0);
    for other in others {
        assert_eq!(other.join().expect("no panic"), Ok(0));
    }
    let mean =
        |of: fn(&crate::star::link::Traffic) -> u64| traffic.iter().map(of).sum::<u64>() as f64 / traffic.len() as f64;
    Cost {
        messages_a_rank: mean(|traffic| traffic.message_count),
        sent_a_rank: mean(|traffic| traffic.sent_bytes),
        received_a_rank: mean(|traffic| traffic.received_bytes),
        seconds: begin.elapsed().as_secs_f64(),
        merge_seconds,
    }
}

/// Goal: a thousand ranks agree, compare clocks, start, send results and are merged, and a rank costs rank 0 no more than
/// among eight: the cost is linear.
/// Method: messages and bytes are counted, and the merge's processor time, which depend little on the load of the machine; other
/// times are only printed.
#[test]
fn a_thousand_ranks_play_a_whole_run_and_a_rank_costs_as_much_as_among_eight() {
    if rustix::process::getrlimit(rustix::process::Resource::Nofile).current.is_some_and(|limit| limit < 2_200) {
        trueio_testkit::skip("files", "this process may not open 2,200 files (`ulimit -n`)");
        return;
    }
    let costs = [8, 64, 1000].map(|size| (size, simulate(size)));
    println!("| ranks | messages a rank | bytes to a rank | bytes of a rank | whole run | merge |");
    for (size, Cost { messages_a_rank, sent_a_rank, received_a_rank, seconds, merge_seconds }) in &costs {
        println!(
            "| {size} | {messages_a_rank:.1} | {sent_a_rank:.0} | {received_a_rank:.0} | {seconds:.1} s | {merge_seconds:.2} s |"
        );
    }
    let (_, few) = &costs[0];
    let (_, many) = &costs[2];
    for (few, many) in [
        (few.messages_a_rank, many.messages_a_rank),
        (few.sent_a_rank, many.sent_a_rank),
        (few.received_a_rank, many.received_a_rank),
    ] {
        assert!((many - few).abs() <= 0.05 * few, "{few} among 8 ranks, {many} among 1,000");
    }
    // About 0.1 s; what grows with the square of the ranks took 1.7 s.
    assert!(many.merge_seconds < 1.0, "{} s of processor time for the merge", many.merge_seconds);
}

/// Goal: results so far of a rank reach rank 0 while both measure, or later, and change nothing about the results.
/// Method: rank 1 sends three; rank 0 looks at them, or only collects the results that follow them.
#[test]
fn results_so_far_reach_rank_0_and_only_the_latest_is_kept() {
    let until_start = |member: &mut Member| {
        let spec = JobSpec { name: "agreed".to_owned(), options: BTreeMap::new(), fio: None };
        member.agree("run", Ok(&[spec])).expect("the same request");
        member.planned(Ok(1)).expect("a plan");
        let own = head(null_plan());
        match &mut member.role {
            Role::First(first) => first.gather_heads(&mut member.shared, own),
            Role::Other(other) => other.send_head(&mut member.shared, &own),
        }
        member.meet();
        member.start();
    };
    for looks in [true, false] {
        let port = free_port();
        let other = std::thread::spawn(move || {
            let mut member = member(1, 2, port, Clock::monotonic());
            until_start(&mut member);
            for ios in 1..=3 {
                let of = |name: &str| JobSample { name: name.to_owned(), ios, ..JobSample::default() };
                // A view keeps a history for each job: one that the ranks did not agree on is left out.
                let jobs = vec![of("of no rank"), of("agreed")];
                member.send_sample(Sample { elapsed_ns: ios, jobs });
            }
            member.finish_phase(0, done(), None, true);
            member.end(0)
        });
        let mut first = member(0, 2, port, Clock::monotonic());
        until_start(&mut first);
        let mut seen: Vec<u64> = Vec::new();
        let begin = Instant::now();
        while looks && seen.last() != Some(&3) {
            first.look();
            let taken = first.take_samples();
            assert!(taken.iter().all(|one| one.sample.jobs.len() == 1), "{taken:?}");
            seen.extend(taken.iter().map(|one| one.sample.jobs[0].ios));
            assert!(begin.elapsed() < LONG.length(), "{seen:?}");
        }
        assert!(seen.is_sorted(), "{seen:?}");
        first.finish_phase(0, done(), None, true);
        let left: Vec<(u32, u64)> = first.take_samples().iter().map(|one| (one.rank, one.sample.elapsed_ns)).collect();
        assert_eq!(left, if looks { vec![] } else { vec![(1, 3)] });
        let Role::First(role) = &first.role else { panic!("rank 0") };
        assert_eq!(role.collected.phases[0].done.len(), 2);
        first.end(0);
        assert_eq!(other.join().expect("no panic"), 0);
    }
}
