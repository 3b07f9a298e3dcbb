//! The edge of a rank's work: a panic anywhere in it ends all ranks, and rank 0 delivers what is known.
//!
//! Phases, merges and renderers contain their own panics, so that the least is lost. What panics between them (planning, a decision between
//! two slices of a comparison, printing, storing) ends here instead of in an abrupt end of the process, which would lose the record.

use crate::member::Member;
use trueio_model::Outcome;
use trueio_run::contained;

/// Does a rank's whole work, and ends all ranks with its exit code. `work` returns that code and its result, and keeps in its second argument
/// what is known so far. After a panic `rescue` gets that with the reason.
pub fn guarded<K: Default, T>(
    mut member: Member,
    work: impl FnOnce(&mut Member, &mut K) -> (u8, T),
    rescue: impl FnOnce(K, &str) -> T,
) -> (u8, T) {
    let mut known = K::default();
    let (code, result) = match contained(|| work(&mut member, &mut known)) {
        Ok(ended) => ended,
        Err(reason) => {
            // The other ranks stop meanwhile, or rank 0 names this one.
            member.fail(&Outcome::Failed { reason: reason.clone() });
            (1, rescue(known, &reason))
        }
    };
    (member.end(code), result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launcher::{Launched, connect};
    use crate::{Limit, ready};
    use std::collections::BTreeMap;
    use std::time::Duration;

    /// The two ranks of a run.
    fn ranks() -> (Member, Member) {
        let port = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
        let port = port.expect("a port").port().to_string();
        let limit = Limit::new(Duration::from_secs(100));
        let rank = move |number: &'static str| {
            let variables: BTreeMap<&str, String> = [
                ("RANK", number.to_owned()),
                ("WORLD_SIZE", "2".to_owned()),
                ("MASTER_ADDR", "127.0.0.1".to_owned()),
                ("MASTER_PORT", port.clone()),
                ("TRUEIO_TOKEN", "of this test".to_owned()),
            ]
            .into();
            let launched: Launched = connect(&|name| variables.get(name).cloned(), limit).expect("variables");
            Member::join(launched, limit, &|_| ()).expect("the other one comes").expect("two ranks")
        };
        let other = std::thread::spawn({
            let rank = rank.clone();
            move || rank("1")
        });
        let first = rank("0");
        (first, other.join().expect("no panic"))
    }

    /// What a rank keeps, and how all end.
    fn run(panics: Option<&'static str>, member: Member) -> (u8, String) {
        let work = |member: &mut Member, known: &mut Option<&str>| {
            let at = |step: &str| assert!(panics != Some(step), "staged: {step}");
            let plan = |_: &Member, _| {
                at("plan");
                Ok(((), 0))
            };
            if let Err(refused) = ready(member, "run", Ok(Vec::new()), plan) {
                return (refused.code, refused.text.unwrap_or_default());
            }
            at("before the record");
            *known = Some("the record");
            at("after the record");
            (0, "delivered".to_owned())
        };
        let rescue = |known: Option<&str>, reason: &str| format!("{}: {reason}", known.unwrap_or("nothing"));
        guarded(member, work, rescue)
    }

    /// Goal: a panic of rank 0 outside of the phases ends all ranks, and rank 0 has what was known; one of another rank ends them with its text.
    #[test]
    fn a_panic_anywhere_ends_all_ranks_with_what_is_known() {
        const BUG: &str = "(this is a bug of trueio)";
        for (rank, step, words) in [
            (0, "plan", "rank 0"),
            (0, "before the record", "nothing: staged: before the record"),
            (0, "after the record", "the record: staged: after the record"),
            (1, "plan", "rank 1"),
        ] {
            let (first, other) = ranks();
            let of = |number: u32| Some(step).filter(|_| number == rank);
            let other = std::thread::spawn({
                let panics = of(1);
                move || run(panics, other)
            });
            let (code, text) = run(of(0), first);
            assert!(text.contains(words) && text.contains(step) && text.contains(BUG), "{rank} {step}: {text}");
            let (its_code, _) = other.join().expect("no panic");
            assert!(code != 0 && code == its_code, "{rank} {step}: {code}, {its_code}");
        }
        let (first, other) = ranks();
        let other = std::thread::spawn(move || run(None, other));
        assert_eq!(run(None, first), (0, "delivered".to_owned()));
        assert_eq!(other.join().expect("no panic").0, 0);
    }
}
