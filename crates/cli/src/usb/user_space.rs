//! UAS for a study on a kernel without `uas`: rows on UAS drive the disk in user space (`usb:2-1`), rows on BOT use the block
//! device of the kernel's driver.
//!
//! Nothing is switched: the disk is claimed before a row on UAS and given back before a row on BOT. The claim is held
//! between the samples, so that no other program opens the block device meanwhile.

use super::switch;
use crate::failure::Failure;
use trueio_device::System;
use trueio_model::{UsbDisk, UsbTransport};
use trueio_run::{UsbClaim, claim_usb_disk};
use trueio_study::{Brought, Target};
use trueio_usb::{Barred, plan_of};

/// A disk that is claimed for rows on UAS.
pub(super) struct UserSpace {
    /// Its name as a target.
    name: String,
    /// Held while a row on UAS is measured.
    claim: Option<UsbClaim>,
}

impl UserSpace {
    /// Checks that a disk could be claimed now. `unit` is its logical unit; `path` is how the user named it.
    ///
    /// # Errors
    /// The refusal with every reason.
    pub(super) fn new(system: &System, disk: &UsbDisk, unit: &str, path: &str) -> Result<Self, Failure> {
        let planned = plan_of(system, disk, Barred::Refused).map_err(|error| Failure::refused_by(&error, None))?;
        planned.map_err(|refusal| switch::refused(path, "driven in user space", &refusal))?;
        let unit = if unit == "0" { String::new() } else { format!("/{unit}") };
        Ok(Self { name: format!("usb:{}{unit}", disk.usb.device), claim: None })
    }

    /// Returns true if the disk is claimed.
    pub(super) fn is_claimed(&self) -> bool {
        self.claim.is_some()
    }

    /// Returns what holds for a row on UAS, if `target` is the claimed disk.
    pub(super) fn holds(&self, target: &Target) -> Option<Brought> {
        let is_it = matches!(target, Target::Existing { path, .. } if *path == self.name);
        self.claim.as_ref().filter(|_| is_it).map(|claim| self.brought(None, claim))
    }

    /// Claims the disk, which `target` names as a block device.
    pub(super) fn claim(&mut self, target: &Target) -> Result<Brought, String> {
        let claim = match self.claim.take() {
            Some(claim) => claim,
            None => claim_usb_disk(&self.name)?,
        };
        let target = match target.clone() {
            Target::Existing { overwrite, signatures, .. } => {
                Target::Existing { path: self.name.clone(), overwrite, signatures }
            }
            other => other,
        };
        let brought = self.brought(Some(target), &claim);
        self.claim = Some(claim);
        Ok(brought)
    }

    /// Gives the disk back to the kernel's driver.
    pub(super) fn give_back(&mut self) {
        self.claim = None;
    }

    fn brought(&self, target: Option<Target>, claim: &UsbClaim) -> Brought {
        let facts = claim.facts();
        let layers = facts.stack.iter().flat_map(|layer| &layer.facts);
        let fact = |name: &str| {
            let found = layers.clone().find(|fact| fact.name == name).and_then(|fact| fact.fact.value.clone());
            found.unwrap_or_else(|| "?".to_owned())
        };
        let (depth, longest) = (fact("commands in flight"), fact("longest command"));
        let uas = UsbTransport::Uas;
        let note = format!(
            "The kernel has no driver for {uas}: rows on {uas} drive the disk in user space (`ioengine = uas`), with up to \
             {depth} commands in flight of up to {longest}, past the kernel's block layer. They cost more CPU time per I/O \
             than the kernel's driver would."
        );
        let found = format!("{uas}: {} in user space, driver usbfs, depth {depth}", self.name);
        Brought { target, notes: vec![note], conditions: vec![("transport".to_owned(), found)] }
    }
}
