//! Jobs on a USB disk that is driven in user space (`ioengine = "uas"`, `filename = "usb:2-1"`).
//!
//! Its facts are read through its own commands, so these rules come before anything reads them: the disk is claimed by
//! that.

use crate::input::JobInput;
use crate::option::OptionRow;
use crate::options::durability::rows::{PRE_READ, SYNC, SYNC_FILE_RANGE};
use crate::options::engine::rows::IOENGINE;
use crate::options::pattern::rows::{READ_IOLOG, RW, ZONEMODE, ZoneMode};
use crate::options::process::rows::{GID, UID};
use crate::options::target::files::JobFile;
use crate::options::target::rows::{DIRECTORY, FILENAME};
use crate::refusal::{Case, Refusal, Rule};
use trueio_model::{DrivenDisk, EngineKind, SyncMode, UsbTargetName, WriteCache};

/// Refuses names of USB disks with other engines, other names with `uas`, and what commands to a disk do not have.
pub(crate) fn check_usb(job: &JobInput<'_>, engine: EngineKind) -> Result<(), Refusal> {
    let names = job.get(FILENAME).unwrap_or_default();
    let usb = names.iter().find(|name| UsbTargetName::parse(name).is_some());
    let refuse = |option: &'static OptionRow, lack: String, case| {
        Err(job.refuse(option, Rule::EngineLacks { engine, lack, case }))
    };
    if !engine.drives_usb_disks() {
        return match usb {
            None => Ok(()),
            Some(name) => {
                let lack = format!("opens paths, and `{name}` names a USB disk that is driven in user space");
                refuse(FILENAME.row(), lack, Case::UsbPaths)
            }
        };
    }
    if job.is_set(READ_IOLOG) {
        return refuse(READ_IOLOG.row(), "replays no logs, whose names are paths".into(), Case::UsbLogs);
    }
    if usb.is_none() || names.len() != 1 || job.is_set(DIRECTORY) {
        let needs = "the one USB disk that the job drives, by its port: `filename = \"usb:2-1\"`";
        let case = Case::UsbPorts;
        let rule = Rule::Incomplete { option: job.quote(IOENGINE), needs, case };
        return Err(job.refuse(IOENGINE, rule));
    }
    let rows: [(&'static OptionRow, bool, &str, Case); 5] = [
        (SYNC_FILE_RANGE.row(), job.is_set(SYNC_FILE_RANGE), "has no page cache to write out", Case::UsbRange),
        (PRE_READ.row(), job.get(PRE_READ), "has no page cache to read into", Case::UsbPreRead),
        (ZONEMODE.row(), job.get(ZONEMODE) == ZoneMode::Zbd, "does not follow the rules of zones", Case::UsbZones),
        (UID.row(), job.is_set(UID), "drives a disk that this process has claimed", Case::UsbUser),
        (GID.row(), job.is_set(GID), "drives a disk that this process has claimed", Case::UsbGroup),
    ];
    match rows.into_iter().find(|(_, is_set, ..)| *is_set) {
        None => Ok(()),
        Some((option, _, lack, case)) => refuse(option, lack.to_owned(), case),
    }
}

/// Refuses writes that are durable at once on a disk that has no command for them.
pub(crate) fn check_sync(job: &JobInput<'_>, engine: EngineKind, files: &[JobFile]) -> Result<(), Refusal> {
    if job.get(SYNC) == SyncMode::None {
        return Ok(());
    }
    let mut disks = files.iter().filter_map(|file| file.facts.as_ref()?.driven.as_ref());
    let needs_fua = |disk: &DrivenDisk| disk.write_cache.value != Some(WriteCache::WriteThrough);
    if disks.any(|disk| needs_fua(disk) && disk.has_fua.value != Some(true)) {
        let lack = "sends writes with FUA for it, and the disk reports none".to_owned();
        return Err(job.refuse(SYNC, Rule::EngineLacks { engine, lack, case: Case::UsbSync }));
    }
    Ok(())
}

/// Refuses to trim a disk that reports no command for it.
pub(crate) fn check_trims(job: &JobInput<'_>, files: &[JobFile]) -> Result<(), Refusal> {
    let cannot = |file: &&JobFile| {
        let disk = file.facts.as_ref().and_then(|facts| facts.driven.as_ref());
        disk.is_some_and(|disk| disk.can_trim.value == Some(false))
    };
    match files.iter().find(cannot) {
        None => Ok(()),
        Some(file) => {
            let reason = "the disk reports neither UNMAP nor WRITE SAME with UNMAP".to_owned();
            Err(job.refuse(RW, Rule::TrimUnsupported { path: file.plan.path.clone(), reason }))
        }
    }
}
