//! Ranks that speak the whole protocol without doing I/O, and that die, lie or are late at each step.

use super::*;
use crate::launcher::Rendezvous;
use crate::testing::{done, head, null_plan};
use std::net::TcpListener;
use std::time::{Duration, Instant};
use trueio_model::ClockOffset;

const LONG: Limit = Limit::new(Duration::from_secs(120));

/// A port that was free.
fn free_port() -> u16 {
    TcpListener::bind(("::", 0)).and_then(|listener| listener.local_addr()).expect("a port").port()
}

fn member(rank: u32, size: u32, port: u16, clock: Clock) -> Member {
    let launched = Launched::ByVariables(Rendezvous { rank, size, host: "127.0.0.1".into(), port, token: "t".into() });
    let mut member = Member::join_with(launched, LONG, clock).expect("all ranks come").expect("several ranks");
    member.shared.stop = Some(Box::leak(Box::new(AtomicBool::new(false))));
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
fn play(mut member: Member, dies_before: Step) -> Result<Member, String> {
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
    member.finish_phase(0, Done { span, ..done() }, LONG, true);
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
    role.hub.broadcast(&crate::message::ToRank::Stop { reason: "SIGINT".into() });
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
        member.finish_phase(0, Done { span: Some(OwnSpan { begin_ns, end_ns, late_ns: 0 }), ..done() }, LONG, true);
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

/// Goal: a thousand ranks agree, compare clocks, start, and send results.
/// Method: a thread for each, which speaks the protocol and does no I/O.
#[test]
fn a_thousand_ranks_play_a_whole_run() {
    const RANKS: u32 = 1000;
    if rustix::process::getrlimit(rustix::process::Resource::Nofile).current.is_some_and(|limit| limit < 2_200) {
        trueio_testkit::skip("files", "this process may not open 2,200 files (`ulimit -n`)");
        return;
    }
    let begin = Instant::now();
    let port = free_port();
    let rank = |rank: u32| move || play(member(rank, RANKS, port, Clock::monotonic()), Step::Whole).map(|m| m.end(0));
    let thread = |number: u32| std::thread::Builder::new().stack_size(256 << 10).spawn(rank(number)).expect("a thread");
    let others: Vec<_> = (1..RANKS).map(thread).collect();
    let first = play(member(0, RANKS, port, Clock::monotonic()), Step::Whole).expect("a whole run");
    let Role::First(role) = &first.role else { panic!("rank 0") };
    assert_eq!(role.collected.phases[0].done.len(), RANKS as usize);
    assert_eq!(role.collected.phases[0].after.len(), RANKS as usize);
    first.end(0);
    for other in others {
        assert_eq!(other.join().expect("no panic"), Ok(0));
    }
    println!("{RANKS} ranks in {:.1} s", begin.elapsed().as_secs_f64());
}
