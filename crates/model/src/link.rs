//! The link between a disk and the machine, as far as it limits the disk.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The link of a disk, from sysfs. That of a USB disk is in [`UsbFacts`](crate::UsbFacts). Virtual disks have none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "bus")]
pub enum DiskLink {
    /// PCI Express: the narrowest link between the disk and the root port.
    Pcie {
        /// Transfers per second and lane, in 10^9.
        gt_per_s: f64,
        /// Lanes in use.
        lanes: u32,
        /// The fastest that the device at the end of this link supports; `None` if unknown.
        gt_per_s_max: Option<f64>,
        /// The most lanes that it supports; `None` if unknown.
        lanes_max: Option<u32>,
        /// The directory of the device.
        source: String,
    },
    /// SATA.
    Sata {
        /// The negotiated speed, in Gbit/s.
        gbit_per_s: f64,
        /// The file that contains it.
        source: String,
    },
}

impl DiskLink {
    /// Returns the usual name: `PCIe 4.0 x4`, `SATA 6 Gbit/s`.
    pub fn name(&self) -> String {
        match self {
            DiskLink::Pcie { gt_per_s, lanes, .. } => pcie_name(*gt_per_s, *lanes),
            DiskLink::Sata { gbit_per_s, .. } => format!("SATA {gbit_per_s} Gbit/s"),
        }
    }

    /// Returns the name of the link that the device supports, if it is faster than the one in use.
    pub fn supported_name(&self) -> Option<String> {
        let DiskLink::Pcie { gt_per_s, lanes, gt_per_s_max, lanes_max, .. } = self else { return None };
        let (speed, width) = (gt_per_s_max.unwrap_or(*gt_per_s), lanes_max.unwrap_or(*lanes));
        (speed > *gt_per_s || width > *lanes).then(|| pcie_name(speed, width))
    }
}

/// Source: PCI Express Base Specification: the rate doubles from generation to generation, except from 2.5 to 5 to 8 GT/s.
fn pcie_name(gt_per_s: f64, lanes: u32) -> String {
    const GENERATIONS: [(f64, &str); 6] =
        [(2.5, "1.0"), (5.0, "2.0"), (8.0, "3.0"), (16.0, "4.0"), (32.0, "5.0"), (64.0, "6.0")];
    match GENERATIONS.iter().find(|(rate, _)| *rate == gt_per_s) {
        Some((_, generation)) => format!("PCIe {generation} x{lanes}"),
        None => format!("PCIe {gt_per_s} GT/s x{lanes}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_named_as_on_its_box_and_a_slower_slot_is_noticed() {
        let link = |gt_per_s, lanes, gt_per_s_max, lanes_max| DiskLink::Pcie {
            gt_per_s,
            lanes,
            gt_per_s_max,
            lanes_max,
            source: String::new(),
        };
        assert_eq!(link(16.0, 4, Some(16.0), Some(4)).name(), "PCIe 4.0 x4");
        assert_eq!(link(16.0, 4, Some(16.0), Some(4)).supported_name(), None);
        assert_eq!(link(8.0, 2, Some(16.0), Some(4)).supported_name().as_deref(), Some("PCIe 4.0 x4"));
        assert_eq!(link(8.0, 2, None, None).supported_name(), None);
        assert_eq!(DiskLink::Sata { gbit_per_s: 6.0, source: String::new() }.name(), "SATA 6 Gbit/s");
    }
}
