//! What cuts of power have shown of a device (`trueio powercut`), and what follows for commits.
//!
//! Plain data with a version, so that it can be read later and elsewhere. A conclusion ([`PowerLoss`]) is drawn from the figures,
//! not from the record's words; that writes are kept is concluded only from methods that flush, as commits do.

use crate::{DeviceIdentity, Environment, IdentityKind, Sameness, TargetFacts, ToolFacts, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`PowercutRecord::format`].
pub const POWERCUT_FORMAT: &str = "trueio-powercut";
/// The version written today. A later version reads every earlier one.
pub const POWERCUT_VERSION: u32 = 1;
/// A cut with fewer acknowledged writes at risk is not counted for a method.
pub const CUT_AT_RISK_MIN: u64 = 20;

/// Cuts of power of one device, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PowercutRecord {
    /// Always [`POWERCUT_FORMAT`].
    pub format: String,
    /// [`POWERCUT_VERSION`] of the writer.
    pub version: u32,
    /// 128 random bits as 32 hexadecimal digits.
    pub id: String,
    /// When the test began, with a witness when its last cut was verified: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The same as text: `2026-12-03T20:28:32Z`.
    pub started_at: String,
    /// The command line as it was typed.
    pub command: Vec<String>,
    /// The program.
    pub tool: ToolFacts,
    /// Where the acknowledgements were kept.
    pub way: PowercutWay,
    /// The facts of the target.
    pub target: TargetFacts,
    /// The machine.
    pub environment: Environment,
    /// Number of cuts; with a witness also those before the last one.
    pub cuts: u64,
    /// What the cuts reached.
    pub reach: PowercutReach,
    /// Why they did not reach the disk: `the machine is virtual`. Empty if they did.
    pub reach_reason: String,
    /// The verdict of the device.
    pub verdict: PowercutVerdict,
    /// Its reason, with the figures.
    pub sentence: String,
    /// Each way of writing.
    pub methods: Vec<PowercutMethod>,
}

/// Where the acknowledgements were while the power was off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PowercutWay {
    /// In the memory of the machine, which kept its power: only the disk lost it.
    Local,
    /// At a witness on another machine.
    Witness,
}

/// What lost its power in a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PowercutReach {
    /// The disk.
    Disk,
    /// A virtual machine or a virtual disk: page cache and filesystem, not the disk.
    Memory,
}

/// What cuts show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PowercutVerdict {
    /// No acknowledged write was lost, and writes were at risk.
    Kept,
    /// Acknowledged writes were lost.
    Lost,
    /// Nothing was at risk.
    CannotTell,
    /// The method asks for no durability.
    Counted,
}

impl PowercutVerdict {
    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            PowercutVerdict::Kept => "kept",
            PowercutVerdict::Lost => "lost",
            PowercutVerdict::CannotTell => "cannot tell",
            PowercutVerdict::Counted => "counted",
        }
    }
}

/// One way of writing in all cuts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PowercutMethod {
    /// Its name: `direct-fdatasync`.
    pub name: String,
    /// Whether its sync makes the disk flush its cache, as the commit of a database does.
    pub flushes: bool,
    /// The verdict.
    pub verdict: PowercutVerdict,
    /// Its reason, with the figures.
    pub sentence: String,
    /// The figures.
    pub figures: PowercutFigures,
}

/// The figures of one way of writing in all cuts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PowercutFigures {
    /// Cuts.
    pub cuts: u64,
    /// Cuts with enough acknowledged writes at risk.
    pub cuts_at_risk: u64,
    /// Cuts after which acknowledged writes were lost.
    pub cuts_with_loss: u64,
    /// Acknowledged writes that no later one replaced: each was read back.
    pub acknowledged: u64,
    /// Those of them that may still have been in a volatile cache.
    pub at_risk: u64,
    /// Those of them that were lost, by what their blocks held: `older`, `torn`, `zeros`, `other_block`, `missing`, `changed`,
    /// `unreadable`.
    pub lost: BTreeMap<String, u64>,
}

impl PowercutFigures {
    /// Returns the number of lost writes.
    pub fn lost_count(&self) -> u64 {
        self.lost.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// Returns what cuts of a target reach, and why not its disk.
pub fn powercut_reach(target: &TargetFacts, environment: &Environment) -> (PowercutReach, String) {
    let memory = |reason: &str| (PowercutReach::Memory, reason.to_owned());
    if environment.hypervisor.value.is_some() {
        return memory("the machine is virtual");
    }
    let is_hardware = |transport: &Transport| match transport {
        Transport::Nvme | Transport::Sata | Transport::Sas | Transport::Usb => true,
        Transport::Other(name) => name == "mmc",
        _ => false,
    };
    let transport = |disk: &crate::DiskFacts| disk.transport.value.clone();
    match target.disks.iter().find(|disk| !transport(disk).is_some_and(|found| is_hardware(&found))) {
        Some(disk) => match transport(disk) {
            Some(found) => memory(&format!("`{}` is a virtual disk ({found})", disk.name)),
            None => memory(&format!("it is unknown how `{}` is attached", disk.name)),
        },
        None if target.disks.is_empty() => memory("no disk is known below the target"),
        None => (PowercutReach::Disk, String::new()),
    }
}

/// Returns whether a filesystem is mounted so that it does not flush its disk.
fn sends_no_flushes(target: &TargetFacts) -> bool {
    let options = target.filesystem.iter().flat_map(|filesystem| filesystem.options.split(','));
    options.into_iter().any(|option| matches!(option.trim(), "nobarrier" | "barrier=0"))
}

/// What the figures of a record show about commits on its device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PowerLoss {
    /// The record.
    pub record_id: String,
    /// When its test began, as text.
    pub started_at: String,
    /// No acknowledged write was lost. Otherwise some were.
    pub is_kept: bool,
    /// What the cuts reached.
    pub reach: PowercutReach,
    /// Why they did not reach the disk; empty if they did.
    pub reach_reason: String,
    /// Cuts that count: all methods below were at risk, or one of them lost writes.
    pub cuts: u64,
    /// The methods that show it: of kept writes only those that flush, as commits do.
    pub methods: Vec<String>,
    /// Their acknowledged writes at risk.
    pub at_risk: u64,
    /// Acknowledged writes of these methods, in all cuts that count.
    pub acknowledged: u64,
    /// How many of them were lost.
    pub lost: u64,
    /// The newest test before it that shows the opposite, as the text of its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opposed_by: Option<String>,
}

impl PowerLoss {
    /// Draws the conclusion of a record; `None` if its figures permit none.
    pub fn of(record: &PowercutRecord) -> Option<Self> {
        let sum = |of: &[&PowercutMethod], figure: &dyn Fn(&PowercutFigures) -> u64| {
            of.iter().fold(0u64, |sum, method| sum.saturating_add(figure(&method.figures)))
        };
        let is_lost =
            |method: &&PowercutMethod| method.verdict == PowercutVerdict::Lost && method.figures.lost_count() > 0;
        let lost: Vec<&PowercutMethod> = record.methods.iter().filter(is_lost).collect();
        let is_kept = |method: &&PowercutMethod| {
            let figures = &method.figures;
            method.verdict == PowercutVerdict::Kept
                && method.flushes
                && figures.lost_count() == 0
                && figures.cuts_at_risk > 0
                && figures.at_risk >= figures.cuts_at_risk.saturating_mul(CUT_AT_RISK_MIN)
                && figures.acknowledged >= figures.at_risk
        };
        let kept: Vec<&PowercutMethod> = record.methods.iter().filter(is_kept).collect();
        let (of, cuts) = if lost.is_empty() {
            (&kept, kept.iter().map(|method| method.figures.cuts_at_risk).min()?)
        } else {
            (&lost, lost.iter().map(|method| method.figures.cuts_with_loss).max().filter(|cuts| *cuts > 0)?)
        };
        Some(Self {
            record_id: record.id.clone(),
            started_at: record.started_at.clone(),
            is_kept: lost.is_empty(),
            reach: record.reach,
            reach_reason: record.reach_reason.clone(),
            cuts,
            methods: of.iter().map(|method| method.name.clone()).collect(),
            at_risk: sum(of, &|figures| figures.at_risk),
            acknowledged: sum(of, &|figures| figures.acknowledged),
            lost: sum(of, &PowercutFigures::lost_count),
            opposed_by: None,
        })
    }

    /// Returns what records show of the device of a target: the newest one that shows something. Records of other devices, and of devices
    /// that are the same only by their filesystem's UUID, which a copy has, too, do not count. Nor does a kept disk below a filesystem that
    /// sends it no flushes: that has to be cut itself.
    pub fn of_device(target: &TargetFacts, records: &[PowercutRecord]) -> Option<Self> {
        let identity = DeviceIdentity::of(target);
        let is_same = |record: &&PowercutRecord| {
            let found = identity.compare(&DeviceIdentity::of(&record.target));
            matches!(found, Sameness::Same(IdentityKind::Wwid | IdentityKind::Serial))
                && (!sends_no_flushes(target) || sends_no_flushes(&record.target))
        };
        let shown =
            records.iter().filter(is_same).filter_map(|record| Some((record.started_unix_s, Self::of(record)?)));
        let mut shown: Vec<(u64, Self)> = shown.collect();
        // What reached the disk is worth more than any kill of a virtual machine.
        shown.sort_by_key(|(started, loss)| (loss.reach == PowercutReach::Disk, *started));
        let (_, mut newest) = shown.pop()?;
        let opposite = |(_, other): &&(u64, Self)| other.reach == newest.reach && other.is_kept != newest.is_kept;
        newest.opposed_by = shown.iter().rev().find(opposite).map(|(_, other)| other.started_at.clone());
        Some(newest)
    }
}
