//! The link of a disk: PCI Express lanes and rate, or the negotiated SATA speed.
//!
//! Limits: a switch or a RAID controller between disk and processor is seen only as far as sysfs shows its links; what
//! else shares a link is not seen. A hypervisor may emulate a link that limits nothing.
//!
//! Source: Linux `Documentation/ABI/testing/sysfs-bus-pci` (`current_link_speed`, `current_link_width`),
//! `Documentation/ABI/testing/sysfs-ata` (`sata_spd`).

use crate::system::System;
use trueio_model::{DiskLink, Transport};

/// Returns the link of the disk whose device directory is `real`; `None` for other transports, and if the kernel does not
/// report it.
pub(crate) fn disk_link(system: &System, real: &str, transport: Option<&Transport>) -> Option<DiskLink> {
    match transport?.to_string().as_str() {
        "nvme" => pcie(system, real),
        "sata" => sata(system, real),
        _ => None,
    }
}

/// Returns the narrowest of the links between the disk and the root port.
fn pcie(system: &System, real: &str) -> Option<DiskLink> {
    let number = |directory: &str, file: &str| system.text(&format!("{directory}/{file}")).value;
    let link_of = |directory: &str| {
        let speed = |file: &str| number(directory, file).and_then(|text| leading_number(&text));
        let lanes = |file: &str| number(directory, file).and_then(|text| text.parse().ok()).filter(|n| *n > 0);
        Some(DiskLink::Pcie {
            gt_per_s: speed("current_link_speed")?,
            lanes: lanes("current_link_width")?,
            gt_per_s_max: speed("max_link_speed"),
            lanes_max: lanes("max_link_width").filter(|n| *n < 255),
            source: directory.to_owned(),
        })
    };
    let rate = |link: &DiskLink| match link {
        DiskLink::Pcie { gt_per_s, lanes, .. } => gt_per_s * f64::from(*lanes),
        DiskLink::Sata { .. } => f64::INFINITY,
    };
    ancestors(real).filter_map(link_of).min_by(|a, b| rate(a).total_cmp(&rate(b)))
}

fn sata(system: &System, real: &str) -> Option<DiskLink> {
    let is_port = |directory: &&str| {
        let name = directory.rsplit('/').next().unwrap_or_default();
        name.strip_prefix("ata").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let port = ancestors(real).find(is_port)?;
    let links = system.list(port).into_iter().filter(|name| name.starts_with("link"));
    links
        .filter_map(|link| {
            let source = format!("{port}/{link}/ata_link/{link}/sata_spd");
            let gbit_per_s = leading_number(&system.text(&source).value?)?;
            Some(DiskLink::Sata { gbit_per_s, source })
        })
        .next()
}

/// Returns a directory and those above it, nearest first.
fn ancestors(directory: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(directory), |path| path.rsplit_once('/').map(|(above, _)| above))
        .take_while(|path| !path.is_empty())
}

/// Parses `8.0 GT/s PCIe` and `6.0 Gbps`; `None` for `Unknown` and `<unknown>`.
fn leading_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("paths"), "").unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let system = System::recorded(root.path()).unwrap();
        (root, system)
    }

    #[test]
    fn the_narrowest_pcie_link_above_a_disk_is_its_link() {
        let port = "sys/devices/pci0000:00/0000:00:01.0";
        let drive = format!("{port}/0000:01:00.0");
        let (_root, system) = machine(&[
            (&format!("{port}/current_link_speed"), "8.0 GT/s PCIe\n"),
            (&format!("{port}/current_link_width"), "2\n"),
            (&format!("{port}/max_link_speed"), "8.0 GT/s PCIe\n"),
            (&format!("{port}/max_link_width"), "4\n"),
            (&format!("{drive}/current_link_speed"), "16.0 GT/s PCIe\n"),
            (&format!("{drive}/current_link_width"), "4\n"),
        ]);
        let real = format!("/{drive}/nvme/nvme0/nvme0n1");
        let link = disk_link(&system, &real, Some(&"nvme".into())).unwrap();
        assert_eq!(link.name(), "PCIe 3.0 x2");
        assert_eq!(link.supported_name().as_deref(), Some("PCIe 3.0 x4"));
        assert_eq!(disk_link(&system, &real, Some(&"virtio".into())), None);
        assert_eq!(disk_link(&system, "/sys/devices/pci0000:00/nvme/nvme0n1", Some(&"nvme".into())), None);
    }

    #[test]
    fn a_sata_disk_has_the_speed_of_its_port_unless_it_is_unknown() {
        let ports = "sys/devices/pci0000:00/0000:00:1f.2";
        let (_root, system) = machine(&[
            (&format!("{ports}/ata1/link1/ata_link/link1/sata_spd"), "6.0 Gbps\n"),
            (&format!("{ports}/ata2/link2/ata_link/link2/sata_spd"), "<unknown>\n"),
        ]);
        let of = |port: &str| {
            disk_link(&system, &format!("/{ports}/{port}/host0/target0:0:0/block/sda"), Some(&"sata".into()))
        };
        assert_eq!(of("ata1").map(|link| link.name()).as_deref(), Some("SATA 6 Gbit/s"));
        assert_eq!(of("ata2"), None);
    }
}
