//! `trueio usb list`: the tree, the table, JSON.

use crate::failure::Failure;
use crate::output;
use clap::ArgMatches;
use std::fmt::Write as _;
use std::process::ExitCode;
use trueio_device::usb::usb_report;
use trueio_model::units::format_bytes;
use trueio_model::{Fact, UsbAlternate, UsbBlock, UsbDisk, UsbFacts, UsbInterface, UsbNode, UsbReport};
use trueio_report::{clean, padded, width_of, wrap};

/// `trueio usb list`.
pub(super) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let system = super::system(matches)?;
    if let Some(other) = super::other::asked(std::env::consts::OS).filter(|_| system.is_live()) {
        return super::other::list(other, output::is_json_to_stdout(matches));
    }
    let mut report = usb_report(&system);
    if system.is_live() && !rustix::process::geteuid().is_root() {
        let sentence = "as root: mounts in other mount namespaces, and with `trueio usb explain` the kernel's log";
        report.unseen.push(sentence.to_owned());
    }
    if system.is_live() {
        report.switches = super::switch::unfinished();
    }
    if output::print_json(matches, || format!("{:#}\n", serde_json::json!(report)))? {
        return Ok(ExitCode::SUCCESS);
    }
    let width = output::style_of(&std::io::stdout()).width;
    let mut text = String::new();
    if !matches.get_flag("table") {
        tree(&mut text, &report);
    }
    if !matches.get_flag("tree") {
        if !text.is_empty() {
            text.push('\n');
        }
        table(&mut text, &report.disks, width);
        for sentence in &report.switches {
            wrap(&mut text, "switch     ", 11, sentence, width);
        }
        for sentence in &report.looked {
            wrap(&mut text, "sources    ", 11, sentence, width);
        }
        for sentence in &report.unseen {
            wrap(&mut text, "not seen   ", 11, sentence, width);
        }
    }
    output::print_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Formats the tree as `lsusb -t` does: a root hub per bus, below it the devices in its ports.
fn tree(text: &mut String, report: &UsbReport) {
    // Writing to a String cannot fail.
    for node in &report.tree {
        let speed = speed(&node.link_mbit_per_s);
        let Some(parent) = &node.parent else {
            let controller = node.controller.as_ref().and_then(|fact| fact.value.as_deref()).unwrap_or("no driver");
            let bus = number(&node.bus);
            let _ = writeln!(text, "/:  Bus {bus:0>2}: {}/{}p, {speed}", clean(controller), node.port_count);
            continue;
        };
        let indent = "    ".repeat(depth(report, parent));
        let port = node.name.rsplit(['.', '-']).next().unwrap_or_default();
        let place = format!("{indent}|__ Port {}: Dev {}", clean(port), number(&node.number));
        let names = names(node);
        if node.interfaces.is_empty() {
            let _ = writeln!(text, "{place}, no interface: not configured or not authorized, {speed}{names}");
        }
        for interface in &node.interfaces {
            let If { index, class, driver } = interface_words(interface, node.port_count);
            let _ = writeln!(text, "{place}, If {index}, {class}, {driver}, {speed}{names}");
        }
    }
}

/// Returns the number of hubs above.
fn depth(report: &UsbReport, parent: &str) -> usize {
    let above = report.tree.iter().find(|node| node.name == parent).and_then(|node| node.parent.as_deref());
    // A name has fewer ports than a chain can loop, so a recorded tree cannot cause an endless loop.
    above.filter(|above| above.len() < parent.len()).map_or(1, |above| 1 + depth(report, above))
}

fn names(node: &UsbNode) -> String {
    match &node.product.value {
        Some(product) => format!("  {} {}", node.name, clean(product)),
        None => format!("  {}", node.name),
    }
}

struct If {
    index: String,
    class: String,
    driver: String,
}

fn interface_words(interface: &UsbInterface, port_count: u32) -> If {
    let index = interface.name.rsplit('.').next().unwrap_or_default().to_owned();
    let class = match interface.class.value.as_deref() {
        Some("08") => "Mass Storage".to_owned(),
        Some("09") => "Hub".to_owned(),
        Some("03") => "Human Interface Device".to_owned(),
        Some(other) => format!("class {}", clean(other)),
        None => "class unknown".to_owned(),
    };
    let ports = if port_count > 0 { format!("/{port_count}p") } else { String::new() };
    let driver = match &interface.driver {
        Some(driver) => format!("{}{ports}", clean(driver)),
        None => "no driver".to_owned(),
    };
    If { index, class, driver }
}

const HEAD: [&str; 8] = ["disk", "port", "id", "runs on", "depth", "link/port", "offers", "size"];

/// Formats one line per disk, with its names below.
fn table(text: &mut String, disks: &[UsbDisk], width: usize) {
    if disks.is_empty() {
        text.push_str("There is no USB disk.\n");
        return;
    }
    let mut rows: Vec<([String; 8], String)> = Vec::new();
    for disk in disks {
        if disk.blocks.is_empty() {
            rows.push((row(&disk.usb, None), details(&disk.usb, None)));
        }
        for block in &disk.blocks {
            rows.push((row(&disk.usb, Some(block)), details(&disk.usb, Some(block))));
        }
    }
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|at| rows.iter().map(|(row, _)| width_of(&row[at])).chain([HEAD[at].len()]).max().unwrap_or(0))
        .collect();
    let line = |text: &mut String, cells: &[String; 8]| {
        let cells: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| padded(cell, *width)).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    };
    line(text, &HEAD.map(str::to_owned));
    for (row, details) in &rows {
        line(text, row);
        wrap(text, "    ", 4, details, width);
    }
}

fn row(usb: &UsbFacts, block: Option<&UsbBlock>) -> [String; 8] {
    let driver = usb.driver.value.as_deref().unwrap_or("no driver");
    let depth = block.map_or_else(|| "-".to_owned(), |block| number(&block.queue_depth));
    [
        block.map_or_else(|| "-".to_owned(), |block| clean(&block.name).into_owned()),
        clean(&usb.interface).into_owned(),
        word(&usb.id),
        match usb.transport.name() {
            "none" => "no driver".to_owned(),
            name => format!("{name} ({})", clean(driver)),
        },
        depth,
        format!("{}/{}", speed(&usb.link_mbit_per_s), speed(&usb.port_mbit_per_s)),
        offers(&usb.offers),
        block.and_then(|block| block.size_bytes.value).map_or_else(|| "-".to_owned(), format_bytes),
    ]
}

/// Describes the names of a disk, and where it is mounted.
fn details(usb: &UsbFacts, block: Option<&UsbBlock>) -> String {
    let name = [usb.manufacturer.value.as_deref(), usb.product.value.as_deref()];
    let name: Vec<&str> = name.into_iter().flatten().collect();
    let mut parts = vec![if name.is_empty() { "no name".to_owned() } else { name.join(" ") }];
    parts.push(match &usb.serial.value {
        Some(serial) => format!("serial {serial}"),
        None => "no serial number".to_owned(),
    });
    if let Some(block) = block {
        parts.extend(block.model.value.as_ref().map(|model| format!("model {model}")));
        if let Some(state) = block.abnormal_state() {
            parts.push(format!("state {state}"));
        }
        parts.push(match block.mounts.as_slice() {
            [] => "not mounted".to_owned(),
            mounts => format!("mounted at {}", mounts.join(", ")),
        });
    }
    parts.join("; ")
}

/// Formats `BOT + UAS, 32 streams`.
pub(super) fn offers(offers: &Fact<Vec<UsbAlternate>>) -> String {
    let Some(all) = &offers.value else { return "unknown".to_owned() };
    let name = |alternate: &UsbAlternate| match alternate {
        a if a.is_uas() && a.stream_count > 0 => format!("UAS, {} streams", a.stream_count),
        a if a.is_uas() => "UAS".to_owned(),
        a if a.claims_uas() => "UAS without its pipes".to_owned(),
        a if a.is_bot() => "BOT".to_owned(),
        a => format!("protocol {:#04x}", a.protocol),
    };
    let names: Vec<String> = all.iter().map(name).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(" + ") }
}

/// Formats `5000M`, as `lsusb -t` does.
pub(super) fn speed(speed: &Fact<f64>) -> String {
    speed.value.map_or_else(|| "?".to_owned(), |speed| format!("{speed}M"))
}

fn number(fact: &Fact<u32>) -> String {
    fact.value.map_or_else(|| "?".to_owned(), |value| value.to_string())
}

fn word(fact: &Fact<String>) -> String {
    fact.value.as_deref().map_or_else(|| "?".to_owned(), |value| clean(value).into_owned())
}
