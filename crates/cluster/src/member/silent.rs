//! A rank whose rank 0 is there and does not answer, or sends messages without end.
//!
//! Each case plays rank 0 by hand against a real rank 1, which must end with a reason. Before, it waited for up to a day.

use super::hostile::{rank_0, shared_of};
use super::*;
use crate::message::{PhaseCount, ToHub, ToRank};
use crate::star::hub::Hub;
use crate::star::link::Link;
use crate::testing::done;
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::time::Instant;

/// The limit of each step; a rank waits twice as long for rank 0.
const LIMIT: Limit = Limit::new(Duration::from_millis(1_500));
/// More than any of these waits, and less than an hour.
const BOUND: Duration = Duration::from_secs(60);

/// Connects rank 0 and others.
fn star_of(size: u32) -> (Hub, Vec<Link>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    let hub = std::thread::spawn(move || Hub::accept(&listener, size, b"token", LIMIT, &|_| ()).expect("all come"));
    let links =
        (1..size).map(|rank| star::join_at(address, rank, b"token", LIMIT).expect("it has the token")).collect();
    (hub.join().expect("no panic"), links)
}

/// Connects rank 0, by hand, and rank 1.
fn connected() -> (Hub, Member) {
    let (hub, mut links) = star_of(2);
    let link = links.remove(0);
    (hub, Member { shared: shared_of(1, 2, LIMIT), role: Role::Other(Other::new(link)), space: None })
}

/// Runs a step of rank 1 while rank 0 does something; returns why the run ended.
fn against(first: impl FnOnce(&mut Hub), step: impl FnOnce(&mut Member) + Send + 'static) -> Option<String> {
    let (mut hub, mut rank) = connected();
    let (ended, has_ended) = channel();
    // Not joined: a rank that goes on waiting would keep the test.
    std::thread::spawn(move || {
        step(&mut rank);
        let _ = ended.send(rank.shared.stopping);
    });
    first(&mut hub);
    has_ended.recv_timeout(BOUND).expect("the rank goes on waiting")
}

/// Waits for the end as [`Member::end`], and keeps the rank.
fn end(rank: &mut Member) {
    let Role::Other(other) = &mut rank.role else { panic!("rank 1") };
    other.end(&mut rank.shared);
}

fn finish(rank: &mut Member, length: Option<Duration>) -> After {
    rank.finish_phase(0, done(), length, false)
}

#[test]
fn a_rank_ends_at_the_limit_if_rank_0_is_silent_at_any_step() {
    type Step = fn(&mut Member);
    let steps: [(&str, Step); 7] = [
        ("agree", |rank| drop(rank.agree("run", Ok(&[])))),
        ("meet", Member::meet),
        ("start", |rank| {
            rank.start();
        }),
        ("the end of the measured part", |rank| {
            finish(rank, Some(Duration::ZERO));
        }),
        ("combine", |rank| {
            rank.combine(&1, Duration::ZERO, |_| true, |_, _| 1);
        }),
        ("work of unknown length", |rank| {
            finish(rank, None);
        }),
        ("the end of rank 0's printing and storing", end),
    ];
    std::thread::scope(|scope| {
        for (name, step) in steps {
            scope.spawn(move || {
                let reason = against(|_| (), step).unwrap_or_else(|| panic!("{name}: the run goes on"));
                assert!(reason.contains("rank 0 is gone: it did not answer within 3 s"), "{name}: {reason}");
            });
        }
    });
}

#[test]
fn work_that_comes_forward_renews_the_time_of_a_rank_that_waits_for_it() {
    let begin = Instant::now();
    let works = |hub: &mut Hub| {
        for done in 1..=6 {
            std::thread::sleep(LIMIT.length() * 6 / 10);
            hub.broadcast(&ToRank::Working { done });
        }
        hub.broadcast(&ToRank::Proceed);
    };
    assert_eq!(against(works, Member::meet), None);
    assert!(begin.elapsed() > LIMIT.length() * 2, "the wait would have been long enough without");
}

#[test]
fn messages_without_end_do_not_renew_the_time_of_a_rank() {
    type Step = fn(&mut Member);
    let floods: [(ToRank, Step); 4] = [
        (ToRank::Working { done: 1 }, Member::meet),
        (ToRank::Working { done: 0 }, Member::meet),
        (ToRank::Working { done: 1 }, end),
        (ToRank::Collect, end),
    ];
    for (message, step) in floods {
        let flood = |hub: &mut Hub| {
            let begin = Instant::now();
            while !hub.living().is_empty() && begin.elapsed() < BOUND / 2 {
                hub.broadcast(&message);
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let reason = against(flood, step).expect("the run ends");
        assert!(reason.contains("rank 0 is gone: it did not answer within"), "{reason}");
    }
}

#[test]
fn reports_of_work_are_no_answer_while_a_rank_measures() {
    let (mut hub, mut rank) = connected();
    hub.broadcast(&ToRank::Working { done: 1 });
    let begin = Instant::now();
    rank.look();
    assert!(begin.elapsed() < LIMIT.length(), "a look does not wait");
    hub.broadcast(&ToRank::Go {
        phase_count: PhaseCount::clamped(1),
        neighbours: 1,
        processes: Vec::new(),
        host_stride: 1,
    });
    let Role::Other(other) = &mut rank.role else { panic!("rank 1") };
    assert!(other.planned(&mut rank.shared, Ok(1)).is_ok());
}

/// Goal: a rank that is ready waits for as long as another one fills its files, and rank 0 passes that on.
#[test]
fn rank_0_passes_on_that_the_work_of_a_rank_comes_forward() {
    let (hub, mut links) = star_of(3);
    let mut first = rank_0(hub, LIMIT);
    let (mut waits, mut works) = (links.remove(1), links.remove(0));
    let met = std::thread::spawn(move || {
        first.meet();
        first.shared.stopping
    });
    let (passed, is_passed) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let begin = Instant::now();
            while begin.elapsed() < BOUND && !matches!(waits.receive(LIMIT), Ok(ToRank::Working { .. })) {}
            passed.send(begin.elapsed() < BOUND).expect("it is awaited");
        });
        let mut done = 0;
        let is_passed = loop {
            done += 1;
            works.send(&ToHub::Working { done }).expect("rank 0 reads");
            match is_passed.recv_timeout(Duration::from_millis(100)) {
                Ok(is_passed) => break is_passed,
                Err(_) => assert!(done < 900, "rank 0 passes nothing on"),
            }
        };
        assert!(is_passed);
    });
    // The connections end.
    drop(works);
    assert!(met.join().expect("no panic").is_some());
}
