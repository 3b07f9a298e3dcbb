//! What a number of cuts shows: kept, lost, or cannot tell; per method and for the disk.
//!
//! With no loss in `n` independent cuts, the probability of a loss per cut is below `1 - 0.05^(1/n)` with 95 % confidence: if it were
//! higher, `n` cuts without a loss would have a probability below 5 %. About `3 / n`, the rule of three.
//!
//! A cut proves nothing if nothing was at risk. Whether something was, is measured: `direct` writes without a sync, and a cut
//! that reaches a volatile cache loses some of that.

use super::check::{Checked, Loss, LossCounts, LossKind};
use super::method::Method;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trueio_model::units::format_count;
use trueio_model::{PowercutFigures, PowercutMethod};

pub use trueio_model::{CUT_AT_RISK_MIN as AT_RISK_MIN, PowercutVerdict as Verdict};

/// Confidence of the bounds.
pub const CONFIDENCE: f64 = 0.95;
/// Numbers of cuts that are proposed.
const CUTS: [u64; 7] = [3, 10, 30, 60, 150, 300, 3_000];
/// Losses that are described one by one.
const LOSSES_MAX: usize = 4;

/// Returns the probability of a loss per cut that `cuts` cuts without a loss exclude.
pub fn loss_bound(cuts: u64) -> f64 {
    if cuts == 0 { 1.0 } else { 1.0 - (1.0 - CONFIDENCE).powf(1.0 / cuts as f64) }
}

/// Returns how many cuts without a loss exclude a probability: the least `n` with [`loss_bound`] of at most `bound`.
pub fn cuts_below(bound: f64) -> u64 {
    ((1.0 - CONFIDENCE).ln() / (1.0 - bound).ln()).ceil() as u64
}

/// Returns a bound in percent, rounded up: it must not become smaller.
fn percent(bound: f64) -> String {
    let percent = bound * 100.0;
    if percent >= 1.0 { format!("{} %", percent.ceil()) } else { format!("{} %", (percent * 10.0).ceil() / 10.0) }
}

/// One cut.
#[derive(Debug, Clone, Default)]
pub struct Cut {
    /// What each region held.
    pub checked: BTreeMap<Method, Checked>,
}

/// What the cuts so far have shown of one method.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct MethodTally {
    cuts: u64,
    /// With enough at risk.
    cuts_at_risk: u64,
    cuts_with_loss: u64,
    acknowledged: u64,
    at_risk: u64,
    lost: LossCounts,
    /// With the number of the cut.
    losses: Vec<(u64, Loss)>,
    damaged_under_way: u64,
}

/// All cuts so far.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Whether the disk declares a volatile write cache; `None`: unknown.
    has_cache: Option<bool>,
    cuts: u64,
    methods: BTreeMap<Method, MethodTally>,
}

/// A verdict with its sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The method; `None`: the disk.
    pub method: Option<Method>,
    /// The verdict.
    pub verdict: Verdict,
    /// Its reason, with the figures.
    pub sentence: String,
    /// The figures; of the disk there are none.
    #[serde(default)]
    pub figures: PowercutFigures,
}

impl Standing {
    /// Returns the part of a record; `None` of the disk.
    pub fn record(&self) -> Option<PowercutMethod> {
        let method = self.method?;
        Some(PowercutMethod {
            name: method.name().to_owned(),
            flushes: method.is_durable() && method.flushes() == Some(true),
            verdict: self.verdict,
            sentence: self.sentence.clone(),
            figures: self.figures.clone(),
        })
    }
}

impl Tally {
    /// Begins without a cut.
    pub fn new(has_cache: Option<bool>) -> Self {
        Self { has_cache, ..Self::default() }
    }

    /// Returns the number of cuts.
    pub fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Adds a cut.
    pub fn add(&mut self, cut: &Cut) {
        self.cuts += 1;
        for (method, checked) in &cut.checked {
            let tally = self.methods.entry(*method).or_default();
            tally.cuts += 1;
            tally.cuts_at_risk += u64::from(checked.at_risk >= AT_RISK_MIN);
            tally.cuts_with_loss += u64::from(checked.lost.total() > 0);
            tally.acknowledged += checked.acknowledged;
            tally.at_risk += checked.at_risk;
            tally.lost.add(&checked.lost);
            tally.damaged_under_way += checked.damaged_under_way;
            let room = LOSSES_MAX.saturating_sub(tally.losses.len());
            tally.losses.extend(checked.losses.iter().take(room).map(|loss| (self.cuts, *loss)));
        }
    }

    /// Returns the verdict of each method, in the order of [`Method::ALL`].
    pub fn standings(&self) -> Vec<Standing> {
        let known = Method::ALL.into_iter().filter_map(|method| Some((method, self.methods.get(&method)?)));
        known.map(|(method, tally)| self.standing(method, tally)).collect()
    }

    fn standing(&self, method: Method, tally: &MethodTally) -> Standing {
        let (lost, checked) = (tally.lost.total(), format_count(tally.acknowledged));
        let cuts = cuts_words(tally.cuts_at_risk);
        let (verdict, sentence) = if !method.is_durable() {
            let sentence = match lost {
                0 => format!("it promises nothing; none of {checked} writes was lost"),
                lost => format!("it promises nothing; {} of {checked} writes were lost", format_count(lost)),
            };
            (Verdict::Counted, sentence)
        } else if lost > 0 {
            (Verdict::Lost, lost_sentence(tally))
        } else if let Some(reason) = self.nothing_at_risk(tally) {
            (Verdict::CannotTell, reason)
        } else {
            let (bound, next) = (percent(loss_bound(tally.cuts_at_risk)), next_cuts(tally.cuts_at_risk));
            let next = next.map_or(String::new(), |(cuts, bound)| format!("; {cuts} cuts bring it below {bound}"));
            let at_risk = format_count(tally.at_risk);
            let sentence = format!(
                "no acknowledged write was lost in {cuts}, {at_risk} at risk; below {bound} a cut with 95 % confidence{next}"
            );
            (Verdict::Kept, sentence)
        };
        let lost = tally.lost.0.iter().map(|(kind, count)| (kind.name().to_owned(), *count)).collect();
        let figures = PowercutFigures {
            cuts: tally.cuts,
            cuts_at_risk: tally.cuts_at_risk,
            cuts_with_loss: tally.cuts_with_loss,
            acknowledged: tally.acknowledged,
            at_risk: tally.at_risk,
            lost,
        };
        Standing { method: Some(method), verdict, sentence, figures }
    }

    /// Returns why the cuts prove nothing.
    fn nothing_at_risk(&self, tally: &MethodTally) -> Option<String> {
        let kept = format!("no acknowledged write was lost in {}", cuts_words(tally.cuts));
        if tally.cuts_at_risk == 0 {
            return Some(format!(
                "{kept}, but too few were at risk: {} in the last 10 s before the cut, at least {AT_RISK_MIN} are needed",
                format_count(tally.at_risk)
            ));
        }
        if self.has_cache == Some(false) {
            return Some(format!("{kept}, but nothing was at risk: the disk declares no volatile write cache"));
        }
        let control = self.methods.get(&Method::Direct).filter(|control| control.acknowledged > 0)?;
        (control.lost.total() == 0).then(|| {
            format!(
                "{kept}, but nothing was lost at all, also none of {} writes without a sync: the disk kept its power, or has no \
                 cache that loses data",
                format_count(control.acknowledged)
            )
        })
    }
}

/// Returns `1 cut`, `10 cuts`.
fn cuts_words(cuts: u64) -> String {
    if cuts == 1 { "1 cut".to_owned() } else { format!("{} cuts", format_count(cuts)) }
}

/// Returns the next number of cuts to propose, with its bound.
fn next_cuts(cuts: u64) -> Option<(u64, String)> {
    let next = CUTS.into_iter().find(|next| *next > cuts)?;
    Some((next, percent(loss_bound(next))))
}

fn lost_sentence(tally: &MethodTally) -> String {
    let kinds = LossKind::ALL.into_iter().map(|kind| (kind, tally.lost.of(kind))).filter(|(_, count)| *count > 0);
    let kinds: Vec<String> = kinds.map(|(kind, count)| format!("{} {}", format_count(count), kind.words())).collect();
    let described = tally.losses.iter().map(|(cut, loss)| {
        let epoch = loss.epoch.map_or(String::new(), |epoch| {
            format!(" (sync {}: writes {} to {})", epoch.number, epoch.first, epoch.last)
        });
        format!("cut {cut}: write {}{epoch}", loss.sequence)
    });
    let described: Vec<String> = described.collect();
    format!(
        "{} of {} acknowledged writes were lost in {} of {}: {}; {}",
        format_count(tally.lost.total()),
        format_count(tally.acknowledged),
        format_count(tally.cuts_with_loss),
        cuts_words(tally.cuts),
        kinds.join(", "),
        described.join(", ")
    )
}

/// Returns the verdict of a disk: one loss is a loss, and a verdict needs one method that can tell.
pub fn disk_standing(standings: &[Standing]) -> Standing {
    let of = |verdict: Verdict| standings.iter().filter(move |standing| standing.verdict == verdict);
    let names = |verdict: Verdict| {
        let names: Vec<&str> = of(verdict).filter_map(|standing| Some(standing.method?.name())).collect();
        names.join(", ")
    };
    let (verdict, sentence) = if of(Verdict::Lost).next().is_some() {
        (Verdict::Lost, format!("acknowledged writes are lost when the power goes ({})", names(Verdict::Lost)))
    } else if let Some(kept) = of(Verdict::Kept).next() {
        (Verdict::Kept, kept.sentence.clone())
    } else {
        let reason = of(Verdict::CannotTell).next().map_or("no method was tested", |standing| &standing.sentence);
        (Verdict::CannotTell, reason.to_owned())
    };
    Standing { method: None, verdict, sentence, figures: PowercutFigures::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(acknowledged: u64, at_risk: u64, older: u64) -> Checked {
        let mut checked = Checked { acknowledged, at_risk, ..Checked::default() };
        if older > 0 {
            checked.lost.0.insert(LossKind::Older, older);
            let epoch = Some(super::super::log::Epoch { number: 7, first: 20, last: 23 });
            checked.losses = vec![Loss { kind: LossKind::Older, sequence: 21, position: 3, epoch }];
        }
        checked
    }

    fn tally(has_cache: Option<bool>, cuts: u64, synced: &Checked, control: &Checked) -> Tally {
        let mut tally = Tally::new(has_cache);
        let cut = Cut {
            checked: BTreeMap::from([(Method::DirectFdatasync, synced.clone()), (Method::Direct, control.clone())]),
        };
        (0..cuts).for_each(|_| tally.add(&cut));
        tally
    }

    fn of(tally: &Tally) -> (Verdict, String) {
        let standing = tally.standings().into_iter().next().expect("a method");
        (standing.verdict, standing.sentence)
    }

    /// Goal: the bound is the exact one, and its numbers of cuts are those of the documentation.
    #[test]
    fn the_bound_is_that_of_the_rule_of_three() {
        let table = [(1, "95 %"), (3, "64 %"), (10, "26 %"), (30, "10 %"), (60, "5 %"), (300, "1 %"), (3_000, "0.1 %")];
        for (cuts, expected) in table {
            assert_eq!(percent(loss_bound(cuts)), expected, "{cuts}");
            assert!((1.0 - loss_bound(cuts)).powi(cuts as i32) <= 0.0500001);
            assert!(loss_bound(cuts) <= 3.0 / cuts as f64);
        }
        assert_eq!([0.1, 0.05, 0.01].map(cuts_below), [29, 59, 299]);
        assert_eq!(loss_bound(0), 1.0);
    }

    #[test]
    fn a_disk_without_a_loss_is_kept_with_its_bound_and_the_next_number_of_cuts() {
        let (verdict, sentence) = of(&tally(Some(true), 10, &checked(6_000, 4_821, 0), &checked(9_000, 9_000, 41)));
        assert_eq!(verdict, Verdict::Kept);
        assert_eq!(
            sentence,
            "no acknowledged write was lost in 10 cuts, 48,210 at risk; below 26 % a cut with 95 % confidence; 30 cuts bring it \
             below 10 %"
        );
    }

    #[test]
    fn a_lost_write_among_thousands_is_a_loss_with_its_epoch() {
        let tally = tally(Some(true), 2, &checked(6_000, 4_000, 1), &checked(9_000, 9_000, 0));
        let (verdict, sentence) = of(&tally);
        assert_eq!(verdict, Verdict::Lost);
        assert_eq!(
            sentence,
            "2 of 12,000 acknowledged writes were lost in 2 of 2 cuts: 2 held an older value; cut 1: write 21 (sync 7: writes 20 to \
             23), cut 2: write 21 (sync 7: writes 20 to 23)"
        );
        let disk = disk_standing(&tally.standings());
        assert_eq!(disk.verdict, Verdict::Lost);
        assert!(disk.sentence.ends_with("(direct-fdatasync)"), "{}", disk.sentence);
    }

    /// Goal: nothing at risk is not a proof. A loss is one also on a disk that declares no cache.
    #[test]
    fn without_a_risk_there_is_no_verdict() {
        let lossy = checked(9_000, 9_000, 41);
        for (tally, words) in [
            (tally(Some(true), 5, &checked(6_000, 19, 0), &lossy), "too few were at risk: 95 in the last 10 s"),
            (tally(Some(false), 5, &checked(6_000, 4_000, 0), &lossy), "declares no volatile write cache"),
            (tally(None, 5, &checked(6_000, 4_000, 0), &checked(900, 900, 0)), "none of 4,500 writes without a sync"),
        ] {
            let (verdict, sentence) = of(&tally);
            assert!(verdict == Verdict::CannotTell && sentence.contains(words), "{sentence}");
            assert_eq!(disk_standing(&tally.standings()).verdict, Verdict::CannotTell);
        }
        let liar = tally(Some(false), 1, &checked(6_000, 4_000, 9), &lossy);
        assert_eq!(of(&liar).0, Verdict::Lost);
        assert_eq!(liar.standings()[1].sentence, "it promises nothing; 41 of 9,000 writes were lost");
    }
}
