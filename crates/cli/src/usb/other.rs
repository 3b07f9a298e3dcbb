//! `trueio usb list` on macOS, Windows and FreeBSD: the output of the system's own tool.

use crate::failure::Failure;
use crate::output;
use std::process::{Command, ExitCode};
use trueio_device::usb::{
    FREEBSD_COMMAND, ForeignDisk, MACOS_COMMAND, WINDOWS_COMMAND, parse_freebsd, parse_macos, parse_windows,
};

type Parser = fn(&str) -> Vec<ForeignDisk>;

/// Returns the command to run on a system other than Linux, and the parser of its output.
pub(super) fn asked(os: &str) -> Option<(&'static [&'static str], Parser)> {
    match os {
        "macos" => Some((&MACOS_COMMAND, parse_macos)),
        "windows" => Some((&WINDOWS_COMMAND, parse_windows)),
        "freebsd" => Some((&FREEBSD_COMMAND, parse_freebsd)),
        _ => None,
    }
}

/// Runs the command, and prints one line per disk.
pub(super) fn list((command, parse): (&[&str], Parser), as_json: bool) -> Result<ExitCode, Failure> {
    let asked = command.join(" ");
    let answer = Command::new(command[0])
        .args(&command[1..])
        .output()
        .map_err(|error| Failure::failed(format!("`{asked}` could not be run"), &error))?;
    let disks = parse(&String::from_utf8_lossy(&answer.stdout));
    output::print_all(&shown(&disks, &asked, as_json))?;
    Ok(ExitCode::SUCCESS)
}

fn shown(disks: &[ForeignDisk], asked: &str, as_json: bool) -> String {
    if as_json {
        let rows: Vec<_> = disks
            .iter()
            .map(|disk| {
                serde_json::json!({
                    "disk": disk.disk, "id": disk.id, "name": disk.name, "serial": disk.serial,
                    "transport": disk.transport, "driver": disk.driver, "source": asked,
                })
            })
            .collect();
        return format!("{:#}\n", serde_json::Value::from(rows));
    }
    let mut text = String::new();
    for disk in disks {
        let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let line = format!(
            "{:8}  {:9}  {} ({})  {}; serial {}",
            word(&disk.disk),
            word(&disk.id),
            disk.transport,
            disk.driver,
            word(&disk.name),
            word(&disk.serial)
        );
        text.push_str(&trueio_report::clean(&line));
        text.push('\n');
    }
    if disks.is_empty() {
        text.push_str("There is no USB disk.\n");
    }
    text.push_str(&format!("command    {asked}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_disk_is_a_line_with_its_transport_and_the_command_is_below() {
        let (_, parse) = asked("freebsd").expect("a known system");
        let text = include_str!("../../../device/tests/usb/other-systems/freebsd-dmesg.txt");
        let shown = shown(&parse(text), "dmesg", false);
        assert_eq!(
            shown,
            "da1       -          BOT (umass)  vendor 0x0d7d USB DISK 2.0; serial 0123456789AB\ncommand    dmesg\n"
        );
        assert!(asked("linux").is_none(), "Linux uses sysfs");
    }
}
