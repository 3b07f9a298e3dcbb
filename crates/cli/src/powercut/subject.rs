//! What is tested: a disk or a file that is claimed like that of a job, or a new folder on a filesystem.

use super::folder;
use super::media::{Buffered, Direct, ReadDisk};
use super::presence::{Presence, find};
use crate::claimed::{self, Claimed};
use crate::failure::Failure;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_device::System;
use trueio_direct::SyncMode;
use trueio_model::{DeviceIdentity, IdentityKind, TargetFacts, units};
use trueio_powercut::cut::{Medium, Method, Order, Part, Place, Readback, Region, RoundPlan, lay_out};
use trueio_powercut::{BLOCK_BYTES, DiskIdentity};
use trueio_report::clean;

pub(super) const BLOCK: u64 = BLOCK_BYTES as u64;
/// Blocks that are appended to a file at most.
const APPEND_BLOCKS: u64 = 1 << 16;
/// Files of a directory.
const FILES: u64 = 1 << 10;
/// A disk that came back is probed by udev, and perhaps mounted, for a moment.
const PROBED: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(200);

/// What is tested.
pub(super) struct Subject {
    /// As it was typed.
    pub(super) named: String,
    /// Where it is now.
    path: String,
    place: PlaceOf,
    pub(super) identity: DiskIdentity,
    pub(super) regions: Vec<Region>,
    /// Whether its disks declare a volatile write cache.
    pub(super) has_cache: Option<bool>,
    /// The facts of the target when it was opened.
    pub(super) facts: TargetFacts,
    presence: Presence,
}

enum PlaceOf {
    /// A disk, or a file; `None` while it is away.
    Disk { claimed: Option<Box<Claimed>>, signatures: Vec<String> },
    /// A folder that this run created.
    Folder { root: PathBuf, inode: u64 },
}

/// Returns whether a disk declares a volatile write cache, in the kernel's words (`queue/write_cache`); `None`: not all do.
fn has_cache(facts: &TargetFacts) -> Option<bool> {
    let caches: Option<Vec<bool>> = facts
        .disks
        .iter()
        .map(|disk| match disk.write_cache.value.as_ref()?.to_string().as_str() {
            "write back" => Some(true),
            "write through" => Some(false),
            _ => None,
        })
        .collect();
    caches.filter(|caches| !caches.is_empty()).map(|caches| caches.contains(&true))
}

impl Subject {
    /// Plans and claims a disk or a file; every refusal of a job that writes all of it holds.
    pub(super) fn disk(
        path: &str,
        signatures: Option<&str>,
        methods: &[Method],
        positions: u64,
    ) -> Result<Self, Failure> {
        let claimed = Claimed::of("powercut", path, signatures, Default::default())?;
        let methods: Vec<Method> = methods.iter().copied().filter(|method| method.place() == Place::Blocks).collect();
        let size_bytes = claimed.identity.size_bytes;
        let regions = lay_out(&methods, size_bytes / BLOCK, positions).ok_or_else(|| {
            let needed = (256 + 64 * methods.len() as u64) * BLOCK;
            Failure::refused(format!(
                "the size of `{path}` is {}; at least {} is needed",
                units::format_bytes(size_bytes),
                units::format_bytes(needed)
            ))
        })?;
        Ok(Self {
            named: path.to_owned(),
            path: path.to_owned(),
            identity: claimed.identity.clone(),
            regions,
            has_cache: has_cache(&claimed.facts),
            presence: Presence::of(path, &claimed.facts),
            facts: claimed.facts.clone(),
            place: PlaceOf::Disk { signatures: claimed.signatures.clone(), claimed: Some(Box::new(claimed)) },
        })
    }

    /// Creates a folder in a directory, with the files that the methods write.
    pub(super) fn folder(path: &str, run: u64, methods: &[Method], positions: u64) -> Result<Self, Failure> {
        let refused = |why: String| Failure::refused(format!("`{path}` cannot be tested\n  because: {why}"));
        let facts =
            trueio_device::target_facts(&System::live(), Path::new(path)).map_err(|e| Failure::refused_by(&e, None))?;
        if facts.disks.is_empty() {
            return Err(refused("no disk is below it, so no cut of power can be observed".to_owned()));
        }
        let regions = regions_of_files(methods, positions);
        let needed: u64 = regions.iter().map(|region| region.position_count * BLOCK).sum::<u64>() + (1 << 24);
        let free = rustix::fs::statvfs(path).map(|found| found.f_bavail * found.f_frsize);
        let free = free.map_err(|e| refused(e.to_string()))?;
        if free < needed {
            let (needed, free) = (units::format_bytes(needed), units::format_bytes(free));
            return Err(refused(format!(
                "it needs {needed}, and {free} are free\n\nhint: a smaller `--size` writes less"
            )));
        }
        let root = Path::new(path).join(folder_name(run));
        let inode = folder::create(&root, &regions).map_err(|error| {
            // Only what this run created is in it.
            let _ = std::fs::remove_dir_all(&root);
            Failure::failed(format!("the files in `{}` cannot be created", root.display()), &error)
        })?;
        Ok(Self {
            named: path.to_owned(),
            path: path.to_owned(),
            identity: DiskIdentity { size_bytes: 0, model: None, serial: None, wwid: None, inode: Some(inode) },
            regions,
            has_cache: has_cache(&facts),
            presence: Presence::of(path, &facts),
            facts,
            place: PlaceOf::Folder { root, inode },
        })
    }

    /// Takes up what another run of the program has written before a cut; every refusal of a job that writes it holds.
    pub(super) fn of_round(target: &str, plan: &RoundPlan) -> Result<Self, Failure> {
        let other = |what: &str| {
            Failure::refused(format!(
                "`{target}` is not what was written\n  because: {what}; the round is of `{}`",
                clean(&plan.target)
            ))
        };
        if plan.is_folder {
            let root = Path::new(target).join(folder_name(plan.run));
            let found = std::fs::symlink_metadata(&root).map_err(|_| other("the folder of the run is missing"))?;
            if !found.is_dir() || plan.identity.inode != Some(found.ino()) {
                return Err(other("the folder of the run is another one"));
            }
            let facts = trueio_device::target_facts(&System::live(), Path::new(target));
            let facts = facts.map_err(|e| Failure::refused_by(&e, None))?;
            let place = PlaceOf::Folder { root, inode: found.ino() };
            return Ok(Self::again(target, plan, facts, place));
        }
        let names = claimed::signatures_of(target)?;
        let names = (!names.is_empty()).then(|| names.join(","));
        let claimed = Claimed::of("powercut", target, names.as_deref(), Default::default())?;
        if claimed.identity != plan.identity {
            return Err(other("size, serial number or inode differ"));
        }
        let facts = claimed.facts.clone();
        let place = PlaceOf::Disk { signatures: claimed.signatures.clone(), claimed: Some(Box::new(claimed)) };
        Ok(Self::again(target, plan, facts, place))
    }

    fn again(target: &str, plan: &RoundPlan, facts: TargetFacts, place: PlaceOf) -> Self {
        Self {
            named: target.to_owned(),
            path: target.to_owned(),
            place,
            identity: plan.identity.clone(),
            regions: plan.regions.clone(),
            has_cache: plan.has_cache,
            presence: Presence::of(target, &facts),
            facts,
        }
    }

    /// Returns what a witness must know; the regions are those that are written.
    pub(super) fn plan(&self, run: u64, regions: Vec<Region>) -> RoundPlan {
        RoundPlan {
            run,
            target: self.named.clone(),
            is_folder: matches!(self.place, PlaceOf::Folder { .. }),
            identity: self.identity.clone(),
            device: self.device(),
            has_cache: self.has_cache,
            regions,
        }
    }

    /// Returns what is known of the device, or its path if nothing is.
    fn device(&self) -> String {
        let identity = DeviceIdentity::of(&self.facts);
        let kind = IdentityKind::ALL.into_iter().find(|kind| identity.get(*kind).is_some());
        kind.and_then(|kind| Some(format!("{} {}", kind.name(), identity.get(kind)?)))
            .unwrap_or_else(|| format!("path {}", self.named))
    }

    /// Returns whether the disk went away.
    pub(super) fn is_gone(&self) -> bool {
        self.presence.is_gone()
    }

    /// Opens each region as its method writes it. The second value names methods that the target does not support.
    pub(super) fn parts(&self) -> Result<(Vec<Part>, Vec<Method>), Failure> {
        let (mut parts, mut unsupported) = (Vec::<Part>::new(), Vec::new());
        for region in &self.regions {
            let medium = self.medium(*region)?;
            match medium {
                Some(medium) => parts.push((*region, medium)),
                None => unsupported.push(region.method),
            }
        }
        Ok((parts, unsupported))
    }

    fn medium(&self, region: Region) -> Result<Option<Box<dyn Medium + Send>>, Failure> {
        let failed = |error: io::Error| Failure::failed(format!("`{}` cannot be opened", self.path), &error);
        let is_buffered = matches!(region.method, Method::BufferedFdatasync | Method::BufferedFsync);
        let sync = if region.method == Method::DirectDsync { SyncMode::Dsync } else { SyncMode::None };
        Ok(Some(match &self.place {
            PlaceOf::Disk { claimed, .. } => {
                let targets = &claimed.as_ref().expect("it is claimed").targets;
                let refused = |error| Failure::refused_by(&error, None);
                if is_buffered {
                    let file = targets.open_buffered(&self.path).map_err(refused)?;
                    Box::new(Buffered { region, file })
                } else {
                    let file = targets.open_direct(&self.path, sync).map_err(refused)?;
                    Box::new(Direct::new(region, file).map_err(failed)?)
                }
            }
            PlaceOf::Folder { root, inode } => {
                return folder::medium(root, *inode, region).map_err(failed);
            }
        }))
    }

    /// Closes everything, so that the kernel can remove the device.
    pub(super) fn release(&mut self) {
        if let PlaceOf::Disk { claimed, .. } = &mut self.place {
            *claimed = None;
        }
    }

    /// Waits for the same disk; returns false if `stop` was set before.
    ///
    /// # Errors
    /// It is there, and is refused: it is mounted, or has a signature that it did not have.
    pub(super) fn wait_until_back(&mut self, stop: &AtomicBool) -> Result<bool, Failure> {
        while !stop.load(Relaxed) {
            if self.presence.is_gone() && self.is_back() {
                return self.claim_again(stop);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(false)
    }

    fn is_back(&mut self) -> bool {
        match &self.place {
            PlaceOf::Disk { .. } => match find(&self.named, &self.identity) {
                Some(path) => {
                    self.path = path;
                    true
                }
                None => false,
            },
            PlaceOf::Folder { root, inode } => {
                std::fs::symlink_metadata(root).is_ok_and(|found| found.is_dir() && found.ino() == *inode)
                    && std::fs::read_dir(root).is_ok_and(|mut entries| entries.all(|entry| entry.is_ok()))
            }
        }
    }

    fn claim_again(&mut self, stop: &AtomicBool) -> Result<bool, Failure> {
        let began = Instant::now();
        loop {
            match self.try_claim() {
                Err(_) if began.elapsed() < PROBED && !stop.load(Relaxed) => std::thread::sleep(PAUSE),
                result => return result.map(|()| true),
            }
        }
    }

    /// Claims the disk at its path, with the refusals of the first time.
    pub(super) fn try_claim(&mut self) -> Result<(), Failure> {
        match &mut self.place {
            PlaceOf::Disk { claimed, signatures } => {
                let found = claimed::signatures_of(&self.path)?;
                if let Some(later) = found.iter().find(|name| !signatures.contains(name)) {
                    return Err(Failure::refused(format!(
                        "`{}` has the signature `{later}`, which it did not have before the cut",
                        self.path
                    )));
                }
                let names = (!found.is_empty()).then(|| found.join(","));
                let again = Claimed::of("powercut", &self.path, names.as_deref(), Default::default())?;
                if again.identity != self.identity {
                    return Err(Failure::refused(format!("`{}` is another disk than before", self.path)));
                }
                self.presence = Presence::of(&self.path, &again.facts);
                *claimed = Some(Box::new(again));
            }
            PlaceOf::Folder { .. } => {
                let facts = trueio_device::target_facts(&System::live(), Path::new(&self.path));
                self.presence = Presence::of(&self.path, &facts.map_err(|e| Failure::refused_by(&e, None))?);
            }
        }
        Ok(())
    }

    /// Returns what reads a region back.
    pub(super) fn readback(&mut self, region: Region) -> io::Result<Box<dyn Readback + '_>> {
        Ok(match &mut self.place {
            PlaceOf::Disk { claimed, .. } => {
                Box::new(ReadDisk { region, disk: &mut claimed.as_mut().expect("it is claimed").disk })
            }
            PlaceOf::Folder { root, inode } => folder::readback(root, *inode, region)?,
        })
    }

    /// Returns what to do for the disk to come back.
    pub(super) fn way_back(&self) -> String {
        match &self.place {
            PlaceOf::Disk { .. } if self.identity.inode.is_none() => "plug it in again".to_owned(),
            _ => format!(
                "plug it in again, unmount what is left of its filesystem, and mount it where `{}` was",
                self.named
            ),
        }
    }

    /// Removes the folder of the run.
    pub(super) fn clean_up(&mut self) -> io::Result<()> {
        match &self.place {
            PlaceOf::Folder { root, inode } if std::fs::symlink_metadata(root)?.ino() == *inode => {
                std::fs::remove_dir_all(root)
            }
            _ => Ok(()),
        }
    }
}

/// Returns the name of a run's folder.
fn folder_name(run: u64) -> String {
    format!("trueio-powercut-{run:016x}")
}

/// Returns a region for each method: in one file, in files of their own, and in directories.
fn regions_of_files(methods: &[Method], positions: u64) -> Vec<Region> {
    let (blocks, files): (Vec<Method>, Vec<Method>) =
        methods.iter().partition(|method| method.place() == Place::Blocks);
    let mut regions = lay_out(&blocks, 256 + blocks.len() as u64 * positions, positions).unwrap_or_default();
    for method in files {
        let (position_count, order) = match method {
            Method::Append => (APPEND_BLOCKS.min(positions * 4), Order::Append),
            Method::Truncate => (positions, Order::Overwrite),
            _ => (FILES, Order::Overwrite),
        };
        regions.push(Region { id: regions.len() as u32, method, start: 0, position_count, order });
    }
    regions
}
