//! Published figures of device classes and the limits of links: reads `classes.toml`, which is built into the program.
//!
//! Limits: ranges are the lowest and highest figures that were found, not percentiles of what is sold. A vendor's rating
//! of a write may hold only inside the drive's cache. `classes.toml` names the sources of each range.

use crate::text::figure;
use serde::Deserialize;
use std::sync::LazyLock;
use trueio_model::units;

const TEXT: &str = include_str!("../classes.toml");

/// The figures that are placed among device classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassFigure {
    /// Sequential reads in large blocks, in bytes per second.
    SeqRead,
    /// Sequential writes in large blocks, in bytes per second.
    SeqWrite,
    /// The median latency of one random 4 KiB read at a time, in nanoseconds.
    RandReadLatency,
    /// Random 4 KiB reads per second with many in flight.
    RandRead,
    /// Random 4 KiB writes per second with many in flight, not durable.
    RandWrite,
    /// Durable 4 KiB writes per second, one at a time.
    Commits,
}

impl ClassFigure {
    /// All of them, in the order of a report.
    pub const ALL: [ClassFigure; 6] = [
        ClassFigure::SeqRead,
        ClassFigure::SeqWrite,
        ClassFigure::RandReadLatency,
        ClassFigure::RandRead,
        ClassFigure::RandWrite,
        ClassFigure::Commits,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            ClassFigure::SeqRead => "Sequential read",
            ClassFigure::SeqWrite => "Sequential write",
            ClassFigure::RandReadLatency => "Random read latency",
            ClassFigure::RandRead => "Random reads",
            ClassFigure::RandWrite => "Random writes",
            ClassFigure::Commits => "Durable commits",
        }
    }

    /// Formats a value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            ClassFigure::SeqRead | ClassFigure::SeqWrite => units::format_bandwidth(value),
            ClassFigure::RandReadLatency => units::format_duration_ns(value.round() as u64),
            ClassFigure::RandRead | ClassFigure::RandWrite => format!("{} IOPS", figure(value)),
            ClassFigure::Commits => format!("{} /s", figure(value)),
        }
    }

    /// Returns true if more is better.
    pub fn is_more_better(self) -> bool {
        self != ClassFigure::RandReadLatency
    }

    /// Returns true if the link of a disk limits the figure directly.
    pub fn is_bandwidth(self) -> bool {
        matches!(self, ClassFigure::SeqRead | ClassFigure::SeqWrite)
    }
}

/// How far a published range can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// A vendor's specification.
    Vendor,
    /// Measured by several parties.
    Measured,
    /// One review, one run or one person.
    Single,
    /// Computed from cited figures.
    Computed,
}

impl Trust {
    /// Describes it in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Trust::Vendor => "vendors' specifications",
            Trust::Measured => "measured by several",
            Trust::Single => "single measurements",
            Trust::Computed => "computed from published figures",
        }
    }
}

/// The published range of a figure of a device class.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceClass {
    /// Which figure.
    pub figure: ClassFigure,
    /// The name on the scale: `NVMe SSD`.
    pub group: String,
    /// The class in full: `NVMe SSD, PCIe 4.0`.
    pub class: String,
    /// The lowest published value, in the figure's unit.
    pub low: f64,
    /// The highest published value, in the figure's unit.
    pub high: f64,
    /// How far the range can be trusted.
    pub trust: Trust,
    /// Numbers of its sources.
    pub sources: Vec<u32>,
    /// The year of the newest source; `None` if none has a date.
    pub year: Option<u32>,
}

/// The limit of a kind of link at a speed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkRate {
    /// `sata`, `pcie` or `usb`.
    pub(crate) kind: String,
    /// Its nominal speed: Gbit/s (SATA), GT/s and lane (PCIe), Mbit/s (USB).
    pub(crate) speed: f64,
    /// Bytes per second after line coding; of one lane.
    pub(crate) bytes_per_s: f64,
    /// The highest share of it that a device is known to reach.
    pub(crate) reached: Option<f64>,
    /// Numbers of its sources.
    pub(crate) sources: Vec<u32>,
}

/// A source of published figures.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassSource {
    /// Its number in `classes.toml`.
    pub id: u32,
    /// Title and publisher.
    pub title: String,
    /// Its year; `None` if it has no date.
    pub year: Option<u32>,
    /// The page that was read; `None` if only a mirror was.
    pub address: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    class: Vec<DeviceClass>,
    link: Vec<LinkRate>,
    source: Vec<ClassSource>,
}

static FILE: LazyLock<File> = LazyLock::new(|| {
    // The file is part of this program, and a test reads all of it.
    toml_edit::de::from_str(TEXT).unwrap_or_else(|e| unreachable!("classes.toml is valid: {e}"))
});

/// Returns the classes with a published range of `figure`, in the order of the file.
pub fn classes_of(wanted: ClassFigure) -> impl Iterator<Item = &'static DeviceClass> {
    FILE.class.iter().filter(move |class| class.figure == wanted)
}

/// Returns the limit of a link; `None` if no source tells it.
pub(crate) fn link_rate(kind: &str, speed: f64) -> Option<&'static LinkRate> {
    FILE.link.iter().find(|link| link.kind == kind && (link.speed - speed).abs() < 0.01 * link.speed)
}

/// Returns the sources with these numbers, each once, in the order of the file.
pub fn class_sources(ids: &[u32]) -> Vec<&'static ClassSource> {
    FILE.source.iter().filter(|source| ids.contains(&source.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_is_ordered_and_every_source_exists_and_is_used() {
        assert!(FILE.class.len() > 30 && FILE.link.len() > 10);
        let mut used: Vec<u32> = vec![79, 80, 81];
        for class in &FILE.class {
            assert!(0.0 < class.low && class.low <= class.high, "{}", class.class);
            assert!(!class.sources.is_empty() && !class.group.is_empty(), "{}", class.class);
            let newest = class_sources(&class.sources).iter().filter_map(|source| source.year).max();
            assert_eq!(class.year, newest, "{} ({:?})", class.class, class.figure);
            used.extend(&class.sources);
        }
        for link in &FILE.link {
            assert!(link.bytes_per_s > 0.0 && link.reached.is_none_or(|share| (0.5..1.0).contains(&share)));
            used.extend(&link.sources);
        }
        for source in &FILE.source {
            assert!(used.contains(&source.id), "source {} is not used", source.id);
        }
        used.retain(|id| class_sources(&[*id]).is_empty());
        assert!(used.is_empty(), "sources without an entry: {used:?}");
        assert_eq!(ClassFigure::ALL.into_iter().filter(|f| classes_of(*f).count() < 4).count(), 0);
    }

    #[test]
    fn the_lanes_and_speeds_of_links_have_their_published_limits() {
        assert_eq!(link_rate("pcie", 16.0).map(|link| link.bytes_per_s * 4.0), Some(7_876_000_000.0));
        assert_eq!(link_rate("usb", 5000.0).map(|link| link.bytes_per_s), Some(500_000_000.0));
        assert!(link_rate("usb", 12.0).is_none());
    }
}
