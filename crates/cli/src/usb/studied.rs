//! The transports of a study's disks: one disk that is switched as the rows need it, or two disks, one on
//! each transport. On a kernel without `uas`, one disk is driven in user space for the rows on UAS ([`UserSpace`]).
//!
//! The disk is switched in the same way as by `trueio usb switch`, with its plan, refusals, state files in
//! `/run`, and undo. A disk's transport is read from sysfs, before every sample and after every switch. A
//! disk is identified by its port, IDs and serial number, never by its name, which a switch may change.
//!
//! When this is dropped, a switched disk is returned to its transport: after the last row, an interrupt, an
//! error, a panic. Limits: not after SIGKILL or a second Ctrl-C; then use `trueio usb switch --restore DISK`.

use super::explain::find;
use super::switch;
use super::user_space::UserSpace;
use crate::failure::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::time::{Duration, Instant};
use trueio_device::System;
use trueio_device::usb::{usb_disk, usb_report};
use trueio_model::{UsbBlock, UsbDisk, UsbTransport};
use trueio_study::{Brought, Target};
use trueio_usb::{Outcome, WAIT};

/// The need that is resolved here.
const NEED: &str = "transport";

/// The disks of a study, and their transports when it began.
pub(crate) struct Transports {
    system: System,
    disks: Vec<Studied>,
    /// Transports on which a switch failed, and why: it is not tried again for every row.
    in_vain: Vec<(UsbTransport, String)>,
    /// The lock against other switches. `None`: nothing is switched.
    alone: Option<File>,
    /// Rows on UAS drive the disk in user space, because the kernel has no driver.
    user_space: Option<UserSpace>,
}

/// A disk as it was when the study began.
struct Studied {
    /// Interface, IDs, serial number: its identity.
    interface: String,
    id: Option<String>,
    serial: Option<String>,
    /// The logical unit (the last part of `0:0:0:1`).
    unit: String,
    began_on: UsbTransport,
    target: Target,
}

impl Transports {
    /// Reads the disks that `targets` name, and plans the switches that `needs` require. One target is
    /// switched, if any row needs that; two must be on different transports.
    ///
    /// # Errors
    /// A target is no whole USB disk; it cannot be switched, with every reason; two disks are on the same
    /// transport. Nothing was touched, except that a switch of an earlier run was finished or undone.
    pub(crate) fn new(targets: &[Target], needs: &BTreeSet<(String, String)>) -> Result<Self, Failure> {
        if let Some(refusal) = switch::refused_by_system(std::env::consts::OS) {
            return Err(refusal);
        }
        let system = System::live();
        let mut disks = Vec::new();
        for target in targets {
            disks.push(studied(&system, target)?);
        }
        let wanted: Vec<UsbTransport> = needs.iter().filter(|(need, _)| need == NEED).map(|(_, t)| named(t)).collect();
        let mut made = Self { system, disks, in_vain: Vec::new(), alone: None, user_space: None };
        match &made.disks[..] {
            [_] => made.prepare_switch(&wanted)?,
            all => {
                for to in wanted {
                    if all.iter().filter(|disk| disk.began_on == to).count() != 1 {
                        let found: Vec<String> =
                            all.iter().map(|disk| format!("{} is on {}", disk.path(), disk.began_on)).collect();
                        return Err(Failure::refused(format!(
                            "exactly one of two disks must be on {to}\n  because: {}\n\nhint: `trueio usb switch DISK {}` \
                             moves one; two disks are never switched by a study",
                            found.join(", "),
                            to.name().to_lowercase()
                        )));
                    }
                }
            }
        }
        Ok(made)
    }

    /// Takes the lock, if the disk must be switched for any row and can be.
    fn prepare_switch(&mut self, wanted: &[UsbTransport]) -> Result<(), Failure> {
        let one = &self.disks[0];
        let Some(to) = wanted.iter().find(|to| **to != one.began_on) else { return Ok(()) };
        if !rustix::process::geteuid().is_root() {
            return Err(Failure::refused(format!(
                "`{}` is on {}, and a row needs {to}\n  because: only root can bind and unbind drivers\n\nhint: as \
                 root, or `--only transport={}`, or two disks, one on each",
                one.path(),
                one.began_on,
                one.began_on.name().to_lowercase()
            )));
        }
        self.alone = Some(switch::alone()?);
        switch::finish_interrupted(&self.system, WAIT)?;
        // The finished switch may have been one of this disk.
        self.disks[0] = studied(&self.system, &self.disks[0].target)?;
        let one = &self.disks[0];
        let Some(to) = wanted.iter().find(|to| **to != one.began_on) else { return Ok(()) };
        let look = switch::look(&self.system, &one.interface, *to)?;
        if *to == UsbTransport::Uas && look.kernel_lacks_uas() {
            self.user_space = Some(UserSpace::new(&self.system, &look.disk, &one.unit, one.path())?);
            // The lock is taken while the disk is claimed.
            self.alone = None;
            return Ok(());
        }
        look.plan.map_err(|refusal| switch::refused(one.path(), "switched", &refusal))?;
        Ok(())
    }

    /// Returns true if `target` is the disk that a row needs, on the transport that it needs.
    pub(crate) fn holds(&self, needs: &BTreeMap<String, String>, target: &Target) -> Result<Option<Brought>, String> {
        let Some(to) = needs.get(NEED).map(|name| named(name)) else { return Ok(None) };
        match &self.user_space {
            Some(user_space) if to == UsbTransport::Uas => return Ok(user_space.holds(target)),
            Some(user_space) if user_space.is_claimed() => return Ok(None),
            _ => {}
        }
        let Some(disk) = self.disks.iter().find(|disk| self.is_at(disk, target)) else { return Ok(None) };
        let (usb, block) = self.seen(disk)?;
        Ok((usb.usb.transport == to).then(|| self.brought(None, &usb, &block)))
    }

    /// Moves the disk to the transport that a row needs, or finds the disk that is on it, and verifies it.
    pub(crate) fn bring(&mut self, needs: &BTreeMap<String, String>) -> Result<Brought, String> {
        let to = needs.get(NEED).map(|name| named(name)).ok_or("no transport is needed")?;
        if let (Some(user_space), [one]) = (&mut self.user_space, &self.disks[..]) {
            if to == UsbTransport::Uas {
                let usb = usb_disk(&self.system, &one.interface);
                one.is_this(&usb.ok_or_else(|| format!("`{}` is gone from {}", one.path(), one.interface))?)?;
                return user_space.claim(&one.target);
            }
            user_space.give_back();
            let (usb, block) = self.returned(one)?;
            return Ok(self.brought(Some(renamed(&one.target, &block.name)), &usb, &block));
        }
        if let [one] = &self.disks[..] {
            if let Some((_, why)) = self.in_vain.iter().find(|(tried, _)| *tried == to) {
                return Err(format!("{to} was tried before: {why}"));
            }
            if self.alone.is_none() {
                // No row needed a switch when the study began, so none was planned and nothing is locked.
                let (usb, block) = self.seen(one)?;
                return Err(format!("{} changed to {} meanwhile, but {to} is needed", block.name, usb.usb.transport));
            }
            if let Err(why) = self.switch(one, to) {
                self.in_vain.push((to, why.clone()));
                return Err(why);
            }
        }
        let mut found = Vec::new();
        for disk in &self.disks {
            let (usb, block) = self.seen(disk)?;
            if usb.usb.transport == to {
                return Ok(self.brought(Some(renamed(&disk.target, &block.name)), &usb, &block));
            }
            found.push(format!("{} is on {}", block.name, usb.usb.transport));
        }
        Err(format!("a disk on {to} is needed, but {}", found.join(", ")))
    }

    /// Moves a disk, unless it is on the transport already.
    fn switch(&self, disk: &Studied, to: UsbTransport) -> Result<(), String> {
        let text = |failure: Failure| failure.into_text();
        let look = switch::look(&self.system, &disk.interface, to).map_err(text)?;
        disk.is_this(&look.disk)?;
        if look.disk.usb.transport == to {
            return Ok(());
        }
        let plan = look.plan.map_err(|refusal| switch::refused(disk.path(), "switched", &refusal).into_text())?;
        // A study switches often: the steps are printed only if a switch fails.
        let mut steps = Vec::new();
        let outcome =
            switch::carry_out(&self.system, &plan, WAIT, &mut |step| steps.push(step.to_owned())).map_err(text)?;
        if matches!(outcome, Outcome::Switched { .. }) {
            return Ok(());
        }
        steps.iter().for_each(|step| switch::say(step));
        Err(switch::ended(&disk.interface, to, &outcome))
    }

    /// Returns a disk to the transport on which it was when the study began.
    ///
    /// # Errors
    /// The present transport, and the reason why it could not be returned.
    pub(crate) fn restore(&mut self) -> Result<(), String> {
        let [one] = &self.disks[..] else { return Ok(()) };
        if let Some(user_space) = self.user_space.as_mut().filter(|user_space| user_space.is_claimed()) {
            user_space.give_back();
            let (_, block) = self.returned(one)?;
            if !self.is_at(one, &one.target) {
                switch::say(&format!("`{}` is /dev/{} now", one.path(), block.name));
            }
            return Ok(());
        }
        if self.alone.is_none() || one.began_on == UsbTransport::None {
            return Ok(());
        }
        let (usb, _) = self.seen(one)?;
        if usb.usb.transport == one.began_on {
            return Ok(());
        }
        self.switch(one, one.began_on).map_err(|why| {
            format!("it could not be returned to {}: {why}; `trueio usb switch --restore` tries again", one.began_on)
        })?;
        let (_, block) = self.seen(one)?;
        if renamed(&one.target, &block.name) != one.target && !self.is_at(one, &one.target) {
            switch::say(&format!("`{}` is /dev/{} now", one.path(), block.name));
        }
        Ok(())
    }

    /// Returns a disk and its logical unit, as sysfs shows them now.
    fn seen(&self, disk: &Studied) -> Result<(UsbDisk, UsbBlock), String> {
        let usb = usb_disk(&self.system, &disk.interface)
            .ok_or_else(|| format!("`{}` is gone from {}", disk.path(), disk.interface))?;
        disk.is_this(&usb)?;
        let block = usb.blocks.iter().find(|block| unit(block) == disk.unit).cloned();
        let block = block.ok_or_else(|| format!("`{}` has no block device, on {}", disk.path(), usb.usb.transport))?;
        Ok((usb, block))
    }

    /// Waits until the kernel's driver has the disk again on the transport on which it was when the study began, and its
    /// block device is there.
    fn returned(&self, disk: &Studied) -> Result<(UsbDisk, UsbBlock), String> {
        const LOOK: Duration = Duration::from_millis(100);
        let end = Instant::now() + WAIT;
        loop {
            match self.seen(disk) {
                Ok((usb, block)) if usb.usb.transport == disk.began_on => return Ok((usb, block)),
                Ok((usb, _)) if Instant::now() > end => {
                    return Err(format!("`{}` is on {}, not {}", disk.path(), usb.usb.transport, disk.began_on));
                }
                Err(why) if Instant::now() > end => return Err(why),
                _ => std::thread::sleep(LOOK),
            }
        }
    }

    /// Returns true if a target's path leads to the disk under its present name.
    fn is_at(&self, disk: &Studied, target: &Target) -> bool {
        let Target::Existing { path, .. } = target else { return false };
        let real = std::fs::canonicalize(path).unwrap_or_default();
        self.seen(disk).is_ok_and(|(_, block)| real.as_os_str() == format!("/dev/{}", block.name).as_str())
    }

    fn brought(&self, target: Option<Target>, disk: &UsbDisk, block: &UsbBlock) -> Brought {
        let usb = &disk.usb;
        let depth = block.queue_depth.value.map_or_else(|| "?".to_owned(), |depth| depth.to_string());
        let driver = usb.driver.value.as_deref().unwrap_or("no driver");
        let found = format!("{}: {} at {}, driver {driver}, depth {depth}", usb.transport, block.name, usb.interface);
        let queue = |name: &str| {
            let path = self.system.locate(&format!("/sys/block/{}/queue/{name}", block.name));
            std::fs::read_to_string(path).map_or_else(|_| "?".to_owned(), |text| text.trim().to_owned())
        };
        let scheduler = queue("scheduler");
        let scheduler =
            scheduler.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("?", |(name, _)| name);
        let note = format!(
            "On {}: {depth} commands in flight at most, requests of up to {} KiB, scheduler {scheduler}, physical sectors of {} \
             bytes, cache {}. Linux sets these by the transport; they are part of what is compared.",
            usb.transport,
            queue("max_sectors_kb"),
            queue("physical_block_size"),
            queue("write_cache"),
        );
        Brought { target, notes: vec![note], conditions: vec![(NEED.to_owned(), found)] }
    }
}

impl Drop for Transports {
    fn drop(&mut self) {
        if let Err(why) = self.restore() {
            switch::say(&format!("warning: {why}"));
        }
    }
}

impl Studied {
    fn path(&self) -> &str {
        match &self.target {
            Target::NewFile { path } | Target::Existing { path, .. } => path,
        }
    }

    /// Checks that IDs and serial number are those of the beginning.
    fn is_this(&self, disk: &UsbDisk) -> Result<(), String> {
        if disk.usb.id.value == self.id && disk.usb.serial.value == self.serial {
            return Ok(());
        }
        Err(format!("another disk is at {} now, where `{}` was", self.interface, self.path()))
    }
}

/// Returns the disk that a target names.
fn studied(system: &System, target: &Target) -> Result<Studied, Failure> {
    let Target::Existing { path, .. } = target else {
        return Err(Failure::refused(
            "a row needs a USB transport, so the target must be a USB disk\n  because: a directory is on a mounted disk, \
             which cannot be switched\n\nhint: name the disk, `/dev/sdX`; it is only read unless --overwrite names it again",
        ));
    };
    let report = usb_report(system);
    let disk = find(system, &report, path)?;
    let real = std::fs::canonicalize(path).unwrap_or_default();
    let is_it = |block: &&UsbBlock| real.as_os_str() == format!("/dev/{}", block.name).as_str();
    let Some(block) = disk.blocks.iter().find(is_it) else {
        let all: Vec<String> = disk.blocks.iter().map(|block| format!("/dev/{}", block.name)).collect();
        return Err(Failure::refused(format!(
            "`{path}` is not a whole disk\n  because: a switch moves the disk with all its partitions\n\nhint: {}",
            all.join(" or ")
        )));
    };
    Ok(Studied {
        interface: disk.usb.interface.clone(),
        id: disk.usb.id.value.clone(),
        serial: disk.usb.serial.value.clone(),
        unit: unit(block),
        began_on: disk.usb.transport,
        target: target.clone(),
    })
}

fn unit(block: &UsbBlock) -> String {
    block.address.rsplit(':').next().unwrap_or_default().to_owned()
}

fn named(name: &str) -> UsbTransport {
    if name == "uas" { UsbTransport::Uas } else { UsbTransport::Bot }
}

/// Returns a target under the present name of its disk.
fn renamed(target: &Target, block: &str) -> Target {
    match target.clone() {
        Target::Existing { overwrite, signatures, .. } => {
            Target::Existing { path: format!("/dev/{block}"), overwrite, signatures }
        }
        other => other,
    }
}
