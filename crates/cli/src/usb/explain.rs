//! `trueio usb explain`: the kernel's decision rule by rule, errors, and possible changes.

use crate::failure::Failure;
use crate::output;
use clap::ArgMatches;
use std::process::ExitCode;
use trueio_device::System;
use trueio_device::usb::{explain, unauthorized_disks, usb_report};
use trueio_model::{UsbAnswer, UsbDisk, UsbExplanation, UsbReport, UsbTroubleKind};
use trueio_report::wrap;

/// `trueio usb explain`.
pub(super) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let system = super::system(matches)?;
    let report = usb_report(&system);
    // A device that is not authorized has no interface and is not among the disks; it is explained as well.
    let barred = unauthorized_disks(&system, &report);
    let disks: Vec<&UsbDisk> = match matches.get_one::<String>("disk") {
        Some(name) => match barred.iter().find(|disk| is_named(&system, disk, name)) {
            Some(disk) => vec![disk],
            None => vec![find(&system, &report, name)?],
        },
        None => report.disks.iter().chain(&barred).collect(),
    };
    let explanations: Vec<UsbExplanation> = disks.iter().map(|disk| explain(&system, &report, disk)).collect();
    if output::print_json(matches, || format!("{:#}\n", serde_json::json!(explanations)))? {
        return Ok(ExitCode::SUCCESS);
    }
    let width = output::style_of(&std::io::stdout()).width;
    let mut text = String::new();
    for explanation in &explanations {
        if !text.is_empty() {
            text.push('\n');
        }
        page(&mut text, explanation, width);
    }
    if explanations.is_empty() {
        text.push_str("There is no USB disk.\n");
        for sentence in &report.looked {
            wrap(&mut text, "    ", 4, sentence, width);
        }
    }
    // Sentences that are not printed above, if all disks are printed.
    let is_on_a_page = |sentence: &&String| {
        barred.iter().any(|disk| sentence.starts_with(&format!("the disk in {} ", disk.usb.device)))
    };
    let unseen: Vec<&String> = report.unseen.iter().filter(|sentence| !is_on_a_page(sentence)).collect();
    if matches.get_one::<String>("disk").is_none() && !unseen.is_empty() {
        text.push_str(if explanations.is_empty() { "" } else { "\nnot seen\n" });
        for sentence in unseen {
            wrap(&mut text, "    ", 4, sentence, width);
        }
    }
    output::print_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Finds a disk: by path (`/dev/sda`, `/dev/sda1`, `/dev/disk/by-id/…`), kernel name, interface (`2-1:1.0`),
/// device (`2-1`), or unique serial number.
pub(super) fn find<'a>(system: &System, report: &'a UsbReport, name: &str) -> Result<&'a UsbDisk, Failure> {
    let found: Vec<&UsbDisk> = report.disks.iter().filter(|disk| is_named(system, disk, name)).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => {
            let all: Vec<String> = report.disks.iter().map(called).collect();
            let there =
                if all.is_empty() { "there is none".to_owned() } else { format!("there are {}", all.join("; ")) };
            let unseen: Vec<String> = report
                .unseen
                .iter()
                .map(|sentence| format!("\n  not seen: {}", trueio_report::clean(sentence)))
                .collect();
            let unseen = unseen.concat();
            Err(Failure::refused(format!(
                "`{name}` is not a USB disk: {there}{unseen}\n\nhint: `trueio usb list` lists them and its sources"
            )))
        }
        several => {
            let all: Vec<String> = several.iter().map(|disk| called(disk)).collect();
            Err(Failure::refused(format!("`{name}` matches several disks: {}", all.join("; "))))
        }
    }
}

fn is_named(system: &System, disk: &UsbDisk, name: &str) -> bool {
    let real = match std::fs::canonicalize(name) {
        Ok(path) if system.is_live() => path.display().to_string(),
        _ => name.to_owned(),
    };
    let short = real.strip_prefix("/dev/").unwrap_or(&real);
    disk.usb.interface == short
        || disk.usb.device == short
        || disk.usb.serial.value.as_deref() == Some(name)
        || disk.blocks.iter().any(|block| {
            let rest = short.strip_prefix(block.name.as_str());
            rest.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
        })
}

/// Formats `sda at 2-1:1.0, serial SIM1`.
fn called(disk: &UsbDisk) -> String {
    let names: Vec<&str> = disk.blocks.iter().map(|block| block.name.as_str()).collect();
    let names = if names.is_empty() { "no block device".to_owned() } else { names.join(", ") };
    let serial = disk.usb.serial.value.as_deref().map_or_else(String::new, |serial| format!(", serial {serial}"));
    trueio_report::clean(&format!("{names} at {}{serial}", disk.usb.interface)).into_owned()
}

fn page(text: &mut String, explanation: &UsbExplanation, width: usize) {
    let usb = &explanation.disk.usb;
    let name = [usb.manufacturer.value.as_deref(), usb.product.value.as_deref()];
    let name: Vec<&str> = name.into_iter().flatten().collect();
    let id = usb.id.value.as_deref().unwrap_or("id unknown");
    wrap(text, "", 0, &format!("{} ({id}) {}", called(&explanation.disk), name.join(" ")), width);
    wrap(text, "  ", 2, &explanation.conclusion, width);
    text.push_str("\n  the kernel's rules\n");
    for rule in &explanation.rules {
        let answer = match rule.answer {
            UsbAnswer::Allows => "allows",
            UsbAnswer::Forbids => "FORBIDS",
            UsbAnswer::NotSeen => "not seen",
            UsbAnswer::DoesNotApply => "-",
        };
        let mark = if explanation.decided_by == Some(rule.name) { "  << decisive rule" } else { "" };
        let first = format!("    {answer:8}  {:18}  ", rule.name);
        wrap(text, &first, first.len(), &format!("{}{mark} [{}]", rule.fact, rule.source), width);
    }
    let list = |text: &mut String, head: &str, lines: &[String]| {
        if !lines.is_empty() {
            text.push_str(&format!("\n  {head}\n"));
            for line in lines {
                wrap(text, "    - ", 6, line, width);
            }
        }
    };
    let troubles: Vec<String> = explanation
        .troubles
        .iter()
        .map(|trouble| {
            let last = trouble.last_s.map_or_else(String::new, |at| format!(", the last {at:.1} s after boot"));
            format!("{} x {}{last}: {}", trouble.count, words(trouble.kind), trouble.example)
        })
        .collect();
    list(text, "errors, from the kernel's log", &troubles);
    list(text, "known problems of this disk", &explanation.notes);
    list(text, "facts hidden by BOT", &explanation.hidden);
    for (at, way) in explanation.ways.iter().enumerate() {
        text.push_str(if at == 0 { "\n  possible changes\n" } else { "" });
        wrap(text, "    - ", 6, &way.what, width);
        for (head, lines) in [("now", &way.commands), ("permanently", &way.persist), ("to undo it", &way.undo)] {
            for line in lines {
                wrap(text, &format!("      {head:12}"), 18, line, width);
            }
        }
        if let Some(quirk) = &way.quirk {
            wrap(text, "      quirk entry ", 18, quirk, width);
        }
    }
    list(text, "not seen", &explanation.unseen);
}

fn words(kind: UsbTroubleKind) -> &'static str {
    match kind {
        UsbTroubleKind::Abort => "command aborted",
        UsbTroubleKind::Reset => "device reset by the driver's error handling",
        UsbTroubleKind::ResetFailed => "reset by the driver's error handling failed",
        UsbTroubleKind::TransferError => "transfer on the bus failed",
        UsbTroubleKind::BusReset => "device reset on the bus",
        UsbTroubleKind::Offlined => "given up",
        UsbTroubleKind::IoError => "I/O error",
        UsbTroubleKind::FlushFailed => "flush failed: data in the disk's cache may be lost",
        UsbTroubleKind::Timeout => "timeout",
        UsbTroubleKind::Disconnect => "disconnected",
        UsbTroubleKind::LinkError => "device did not answer, or its descriptors could not be read",
        UsbTroubleKind::SlowLink => "link slower than the device supports",
    }
}
