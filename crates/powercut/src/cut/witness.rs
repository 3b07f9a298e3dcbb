//! What a witness on another machine knows of a round, and the messages with which it learns that.
//!
//! A write counts as acknowledged when its sync returned 0 and then the witness had its number. A machine sends the last
//! acknowledged write of each region in batches, and does not write more than a window beyond what the witness confirmed: what the
//! witness does not know was under way.
//!
//! The peer has the token, and is not trusted beyond that: numbers only grow, by at most the window, and belong to one round.

use super::check::Checked;
use super::load::safe_ms;
use super::log::RegionLog;
use super::method::Method;
use super::region::{Order, Region};
use super::standing::{Cut, Standing, Tally, disk_standing};
use crate::undo::DiskIdentity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Writes that a region may be ahead of the witness at most.
const WINDOW_MAX: u64 = 4096;
/// Writes of the longest epoch.
const WINDOW_MIN: u64 = 64;
/// Longest message, in bytes.
pub const MESSAGE_BYTES_MAX: u32 = 64 << 10;
/// Positions of a region at most, in a round of a peer.
const POSITIONS_MAX: u64 = 1 << 32;

/// Devices whose rounds a witness adds up at a time.
const TALLIES_MAX: usize = 64;

/// Returns how many writes a region may be ahead of the witness: a quarter of its positions, because blocks with a write that is
/// under way are not judged.
pub fn window_of(region: &Region) -> u64 {
    (region.position_count / 4).clamp(WINDOW_MIN, WINDOW_MAX)
}

/// What a machine writes in a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundPlan {
    /// The number of the run, which each block carries.
    pub run: u64,
    /// The target, as it was typed.
    pub target: String,
    /// Whether it is a directory.
    pub is_folder: bool,
    /// The disk or the file.
    pub identity: DiskIdentity,
    /// The device, by what is known of it: rounds of one device are added up.
    pub device: String,
    /// Whether its disks declare a volatile write cache.
    pub has_cache: Option<bool>,
    /// The regions.
    pub regions: Vec<Region>,
}

/// What a round has acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Its number at the witness, from 1 on.
    pub number: u64,
    /// What was written.
    pub plan: RoundPlan,
    /// Of each region the last acknowledged write, and the last one that was not at risk.
    pub through: Vec<(u64, u64)>,
}

impl Round {
    /// Returns each region with its log.
    pub fn logs(&self) -> Vec<(Region, RegionLog)> {
        let of = |(region, (through, safe)): (&Region, &(u64, u64))| {
            (*region, RegionLog::of(through + window_of(region), *through, through.saturating_sub(*safe)))
        };
        self.plan.regions.iter().zip(&self.through).map(of).collect()
    }
}

/// A message to the witness.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWitness {
    /// Begins a round.
    Arm {
        /// What is written.
        plan: RoundPlan,
        /// Forgets a round that was not verified.
        discards: bool,
    },
    /// The last acknowledged write of each region.
    Acknowledged {
        /// Number of the round, from 1, counted by the witness.
        round: u64,
        /// By region.
        through: Vec<u64>,
    },
    /// Ends the round without a cut.
    Disarm {
        /// Number of the round, from 1, counted by the witness.
        round: u64,
    },
    /// Asks for the round that was cut.
    Verify,
    /// What the regions held after the cut.
    Verified {
        /// Number of the round, from 1, counted by the witness.
        round: u64,
        /// By method.
        checked: BTreeMap<Method, Checked>,
    },
}

/// An answer of the witness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWitness {
    /// The round has begun.
    Armed {
        /// Number of the round, from 1, counted by the witness.
        round: u64,
    },
    /// The numbers are noted, or the round has ended.
    Noted,
    /// The round that was cut.
    Round(Round),
    /// All rounds of the device so far: the disk first, then each method.
    Total {
        /// Rounds.
        cuts: u64,
        /// The verdicts.
        standings: Vec<Standing>,
    },
    /// The request is refused.
    Refused {
        /// Why, and what to do.
        text: String,
    },
}

/// A message that no machine of this program sends: its connection ends.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Offence {
    /// The round is another one.
    #[error("it sent numbers of round {0}, which is not armed by it")]
    OtherRound(u64),
    /// A number is lower than before.
    #[error("it sent number {found} after {known}")]
    Replayed {
        /// The number.
        found: u64,
        /// The last one.
        known: u64,
    },
    /// A number is too far ahead.
    #[error("it sent number {found} after {known}: fewer are possible")]
    Ahead {
        /// The number.
        found: u64,
        /// The last one.
        known: u64,
    },
    /// A plan or a list that is impossible.
    #[error("it sent {0}")]
    Impossible(&'static str),
}

/// A round that is armed, or was.
#[derive(Debug)]
struct Armed {
    number: u64,
    /// The connection that armed it; `None`: it is closed, perhaps by a cut.
    connection: Option<u64>,
    plan: RoundPlan,
    logs: Vec<(Region, RegionLog)>,
    began_ms: u64,
}

/// The witness of one machine after the other.
#[derive(Debug, Default)]
pub struct Witness {
    rounds: u64,
    armed: Option<Armed>,
    /// By device, and whether a folder or the device itself was written; the last verified one last.
    tallies: Vec<((String, bool), Tally)>,
}

impl Witness {
    /// Returns how long the armed machine has been writing, in ms; `None`: no machine writes now.
    pub fn writing_ms(&self, now_ms: u64) -> Option<u64> {
        let armed = self.armed.as_ref().filter(|armed| armed.connection.is_some())?;
        armed.logs.iter().any(|(_, log)| log.acknowledged() > 0).then_some(now_ms - armed.began_ms)
    }

    /// Returns the number of the round that is armed or waits for its verification, and the acknowledged writes.
    pub fn open_round(&self) -> Option<(u64, u64)> {
        self.armed.as_ref().map(|armed| (armed.number, armed.logs.iter().map(|(_, log)| log.acknowledged()).sum()))
    }

    /// Handles a message of a connection.
    ///
    /// # Errors
    /// The message is impossible: the connection ends.
    pub fn handle(&mut self, connection: u64, message: ToWitness, now_ms: u64) -> Result<FromWitness, Offence> {
        match message {
            ToWitness::Arm { plan, discards } => self.arm(connection, plan, discards, now_ms),
            ToWitness::Acknowledged { round, through } => self.note(connection, round, &through, now_ms),
            ToWitness::Disarm { round } => {
                self.own(connection, round)?;
                self.armed = None;
                Ok(FromWitness::Noted)
            }
            ToWitness::Verify => Ok(self.verify()),
            ToWitness::Verified { round, checked } => self.add(round, checked),
        }
    }

    /// Notes that a connection is closed; returns the round that it had armed.
    pub fn closed(&mut self, connection: u64) -> Option<u64> {
        let armed = self.armed.as_mut().filter(|armed| armed.connection == Some(connection))?;
        armed.connection = None;
        Some(armed.number)
    }

    fn arm(&mut self, connection: u64, plan: RoundPlan, discards: bool, now_ms: u64) -> Result<FromWitness, Offence> {
        let is_possible = |region: &Region| {
            region.position_count.is_power_of_two() && region.position_count <= POSITIONS_MAX && region.start <= 1 << 52
        };
        if plan.regions.is_empty() || plan.regions.len() > Method::ALL.len() || !plan.regions.iter().all(is_possible) {
            return Err(Offence::Impossible("regions that are impossible"));
        }
        if let Some(armed) = &self.armed {
            let target = &armed.plan.target;
            if armed.connection.is_some() {
                let text = format!("another machine is armed (round {}, `{target}`)", armed.number);
                return Ok(FromWitness::Refused { text });
            }
            if !discards {
                let text = format!(
                    "round {} of `{target}` was not verified\n\nhint: `trueio powercut verify {target}`, or `--discard` if it is not to be \
                     counted",
                    armed.number
                );
                return Ok(FromWitness::Refused { text });
            }
        }
        self.rounds += 1;
        let logs = plan.regions.iter().map(|region| (*region, RegionLog::default())).collect();
        let connection = Some(connection);
        self.armed = Some(Armed { number: self.rounds, connection, plan, logs, began_ms: now_ms });
        Ok(FromWitness::Armed { round: self.rounds })
    }

    /// Returns the round of a connection.
    fn own(&mut self, connection: u64, round: u64) -> Result<&mut Armed, Offence> {
        let armed = self.armed.as_mut();
        armed
            .filter(|armed| armed.number == round && armed.connection == Some(connection))
            .ok_or(Offence::OtherRound(round))
    }

    fn note(&mut self, connection: u64, round: u64, through: &[u64], now_ms: u64) -> Result<FromWitness, Offence> {
        let armed = self.own(connection, round)?;
        if through.len() != armed.logs.len() {
            return Err(Offence::Impossible("numbers for other regions"));
        }
        for ((region, log), &found) in armed.logs.iter().zip(through) {
            let known = log.acknowledged();
            if found < known {
                return Err(Offence::Replayed { found, known });
            }
            if found > known + window_of(region) || (region.order == Order::Append && found > region.position_count) {
                return Err(Offence::Ahead { found, known });
            }
        }
        for ((_, log), &found) in armed.logs.iter_mut().zip(through) {
            log.issue(found);
            log.acknowledge(now_ms);
        }
        Ok(FromWitness::Noted)
    }

    fn verify(&self) -> FromWitness {
        let Some(armed) = &self.armed else {
            return FromWitness::Refused {
                text: "no round was armed\n\nhint: `trueio powercut arm` begins one".to_owned(),
            };
        };
        if armed.connection.is_some() {
            return FromWitness::Refused { text: format!("round {} is still being written", armed.number) };
        }
        let end_ms = armed.logs.iter().map(|(_, log)| log.last_ms()).max().unwrap_or(0);
        let through = armed.logs.iter().map(|(region, log)| {
            let safe = log.safe_through(safe_ms(&armed.logs, end_ms, region.method));
            (log.acknowledged(), safe)
        });
        FromWitness::Round(Round { number: armed.number, plan: armed.plan.clone(), through: through.collect() })
    }

    fn add(&mut self, round: u64, checked: BTreeMap<Method, Checked>) -> Result<FromWitness, Offence> {
        let armed = self.armed.take_if(|armed| armed.number == round && armed.connection.is_none());
        let armed = armed.ok_or(Offence::OtherRound(round))?;
        let key = (armed.plan.device, armed.plan.is_folder);
        // One that was not verified for the longest time makes room.
        let known = self.tallies.iter().position(|(known, _)| *known == key);
        let entry = known.map_or_else(|| (key, Tally::new(armed.plan.has_cache)), |index| self.tallies.remove(index));
        if self.tallies.len() >= TALLIES_MAX {
            self.tallies.remove(0);
        }
        self.tallies.push(entry);
        let (_, tally) = self.tallies.last_mut().expect("it was added");
        tally.add(&Cut { checked });
        let methods = tally.standings();
        let standings = std::iter::once(disk_standing(&methods)).chain(methods).collect();
        Ok(FromWitness::Total { cuts: tally.cuts(), standings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::lay_out;

    fn plan() -> RoundPlan {
        RoundPlan {
            run: 7,
            target: "/dev/sdx".to_owned(),
            is_folder: false,
            identity: DiskIdentity { size_bytes: 1 << 30, model: None, serial: None, wwid: None, inode: None },
            device: "serial 1".to_owned(),
            has_cache: Some(true),
            regions: lay_out(&[Method::DirectFdatasync, Method::Direct], 1 << 18, 1024).expect("room"),
        }
    }

    fn arm(discards: bool) -> ToWitness {
        ToWitness::Arm { plan: plan(), discards }
    }

    fn numbers(round: u64, through: [u64; 2]) -> ToWitness {
        ToWitness::Acknowledged { round, through: through.to_vec() }
    }

    fn is_refused(answer: Result<FromWitness, Offence>, words: &str) -> bool {
        matches!(answer, Ok(FromWitness::Refused { text }) if text.contains(words))
    }

    /// Goal: what the witness has is what a check demands; a write that it does not have was under way.
    #[test]
    fn a_round_is_armed_noted_cut_verified_and_counted() {
        let mut witness = Witness::default();
        assert_eq!(witness.handle(1, arm(false), 0), Ok(FromWitness::Armed { round: 1 }));
        for step in 1..=20 {
            assert_eq!(witness.handle(1, numbers(1, [step * 100, step * 200]), step * 1000), Ok(FromWitness::Noted));
        }
        assert_eq!(witness.writing_ms(21_000), Some(21_000));
        assert!(is_refused(witness.handle(2, ToWitness::Verify, 21_000), "is still being written"));
        assert_eq!(witness.closed(1), Some(1));
        assert_eq!(witness.writing_ms(22_000), None);
        let Ok(FromWitness::Round(round)) = witness.handle(2, ToWitness::Verify, 30_000) else { panic!("a round") };
        assert_eq!(round.through, [(2000, 900), (4000, 1800)]);
        let (_, log) = &round.logs()[0];
        assert_eq!((log.acknowledged(), log.issued(), log.safe_through(0)), (2000, 2000 + 256, 900));
        let checked = Checked { acknowledged: 2000, at_risk: 1100, ..Checked::default() };
        let checked = BTreeMap::from([(Method::DirectFdatasync, checked)]);
        let verified = ToWitness::Verified { round: 1, checked: checked.clone() };
        let Ok(FromWitness::Total { cuts, standings }) = witness.handle(2, verified, 40_000) else { panic!("a total") };
        assert_eq!((cuts, standings.len()), (1, 2));
        assert_eq!(witness.handle(2, ToWitness::Verified { round: 1, checked }, 41_000), Err(Offence::OtherRound(1)));
    }

    /// Goal: rounds of one device are added up, and those of another one are not among them.
    #[test]
    fn each_device_has_its_own_total() {
        let mut witness = Witness::default();
        let mut round = |device: &str, is_folder: bool| {
            let plan = RoundPlan { device: device.to_owned(), is_folder, ..plan() };
            let armed = witness.handle(1, ToWitness::Arm { plan, discards: false }, 0);
            let Ok(FromWitness::Armed { round }) = armed else { panic!("{armed:?}") };
            witness.closed(1);
            let checked = Checked { acknowledged: 100, at_risk: 50, ..Checked::default() };
            let checked = BTreeMap::from([(Method::DirectFdatasync, checked)]);
            let total = witness.handle(2, ToWitness::Verified { round, checked }, 0);
            let Ok(FromWitness::Total { cuts, standings }) = total else { panic!("{total:?}") };
            assert_eq!((standings[1].figures.cuts, standings[1].figures.at_risk), (cuts, 50 * cuts));
            cuts
        };
        assert_eq!([round("a", false), round("a", false), round("b", false), round("a", true)], [1, 2, 1, 1]);
        for other in 0..TALLIES_MAX - 1 {
            round(&other.to_string(), true);
        }
        assert_eq!((round("a", true), round("b", false)), (2, 1), "the longest unused ones were forgotten");
    }

    /// Goal: numbers of a replay, of another round or connection, and impossible ones end the connection and change nothing.
    #[test]
    fn old_foreign_and_impossible_numbers_are_refused() {
        let mut witness = Witness::default();
        witness.handle(1, arm(false), 0).expect("armed");
        for step in 1..=3 {
            witness.handle(1, numbers(1, [step * 167 - 1, step * 200]), 10).expect("noted");
        }
        for (connection, message, offence) in [
            (1, numbers(1, [499, 700]), Offence::Replayed { found: 499, known: 500 }),
            (1, numbers(1, [501, 600 + 257]), Offence::Ahead { found: 600 + 257, known: 600 }),
            (1, numbers(1, [u64::MAX, 600]), Offence::Ahead { found: u64::MAX, known: 500 }),
            (1, numbers(2, [501, 601]), Offence::OtherRound(2)),
            (2, numbers(1, [501, 601]), Offence::OtherRound(1)),
            (2, ToWitness::Disarm { round: 1 }, Offence::OtherRound(1)),
            (2, ToWitness::Verified { round: 1, checked: BTreeMap::new() }, Offence::OtherRound(1)),
            (
                1,
                ToWitness::Acknowledged { round: 1, through: vec![501] },
                Offence::Impossible("numbers for other regions"),
            ),
        ] {
            assert_eq!(witness.handle(connection, message, 20), Err(offence));
            assert_eq!(witness.open_round(), Some((1, 1100)));
        }
        let mut odd = plan();
        odd.regions[0].position_count = 1000;
        witness.closed(1);
        let odd = ToWitness::Arm { plan: odd, discards: true };
        assert_eq!(witness.handle(3, odd, 30), Err(Offence::Impossible("regions that are impossible")));
    }

    #[test]
    fn a_second_machine_and_an_unverified_round_are_refused() {
        let mut witness = Witness::default();
        witness.handle(1, arm(false), 0).expect("armed");
        for discards in [false, true] {
            assert!(is_refused(witness.handle(2, arm(discards), 5), "another machine is armed (round 1, `/dev/sdx`)"));
        }
        witness.closed(1);
        assert!(is_refused(witness.handle(2, arm(false), 5), "was not verified"));
        assert_eq!(witness.handle(2, arm(true), 5), Ok(FromWitness::Armed { round: 2 }));
        assert_eq!(witness.handle(2, ToWitness::Disarm { round: 2 }, 6), Ok(FromWitness::Noted));
        assert!(is_refused(witness.handle(2, ToWitness::Verify, 7), "no round was armed"));
    }
}
