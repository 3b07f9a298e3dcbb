//! A simulated kernel for one USB disk: a recorded tree in a folder, changed by writes as Linux changes it
//! (observed on 6.1 and 6.12), with every call recorded.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trueio_device::usb::{QUIRKS, decide, quirks, usb_report};
use trueio_device::{System, who_has_open, who_holds};
use trueio_model::{UsbDisk, UsbTransport};
use trueio_usb::{Hands, Plan, Refusal, SwitchState, WAIT, plan};

/// Path and name of a block device.
type Units = Vec<(String, String)>;

/// Injected faults, and when they occur.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trouble {
    /// The disk does not return on these drivers.
    pub(crate) silent_on: Vec<&'static str>,
    /// These drivers reject the disk.
    pub(crate) refused_by: Vec<&'static str>,
    /// On these drivers, the content at its ends differs.
    pub(crate) other_on: Vec<&'static str>,
    /// The disk is unplugged before the call of this number (from 0).
    pub(crate) unplugged_at: Option<usize>,
    /// The process is killed before the call of this number.
    pub(crate) killed_at: Option<usize>,
    /// The flush fails.
    pub(crate) no_flush: bool,
    /// A desktop mounts the unit of this name (`sda`) as soon as it appears again.
    pub(crate) mounted_when_back: Option<&'static str>,
    /// A unit that does not return.
    pub(crate) missing: Option<&'static str>,
}

pub(crate) struct Fake {
    pub(crate) system: System,
    pub(crate) folder: PathBuf,
    states: PathBuf,
    interface: String,
    /// The host's folder while no driver is bound: (name, path where it is kept).
    stash: Option<(String, PathBuf)>,
    units: Units,
    /// Units that were removed one by one, by name: path where each is kept.
    removed: BTreeMap<String, PathBuf>,
    claimed: Vec<String>,
    /// Writes, claims, flushes and reads, in order.
    pub(crate) calls: Vec<String>,
    pub(crate) trouble: Trouble,
    /// Time limit for a disk to return.
    pub(crate) wait: Duration,
    /// Checks until the disk appears after it was bound.
    looks_left: Option<(u32, String)>,
    count: usize,
    _machine: super::tree::Machine,
}

impl Fake {
    pub(crate) fn new(machine: super::tree::Machine, interface: &str) -> Self {
        let folder = machine.folder.path().to_owned();
        // Nodes below /dev, as `paths` describes them.
        let mut paths = String::new();
        for name in ["sda", "sdb", "sdc", "sdd", "sde", "sdf"] {
            if let Ok(number) = fs::read_to_string(folder.join(format!("sys/block/{name}/dev"))) {
                paths.push_str(&format!("block 0:5 {} 0 /dev/{name}\n", number.trim()));
            }
        }
        fs::write(folder.join("paths"), paths).expect("paths");
        // Every process sees the same mounts.
        fs::create_dir_all(folder.join("proc/1")).expect("a folder");
        fs::copy(folder.join("proc/self/mountinfo"), folder.join("proc/1/mountinfo")).expect("mounts");
        let system = System::recorded(&folder).expect("a machine");
        let report = usb_report(&system);
        let disk = report.disks.iter().find(|disk| disk.usb.interface == interface).expect("the disk");
        let units = disk.blocks.iter().map(|b| (b.address.clone(), b.name.clone())).collect();
        Self {
            system,
            states: folder.join("states"),
            folder,
            interface: interface.to_owned(),
            stash: None,
            units,
            removed: BTreeMap::new(),
            claimed: Vec::new(),
            calls: Vec::new(),
            trouble: Trouble::default(),
            wait: WAIT,
            looks_left: None,
            count: 0,
            _machine: machine,
        }
    }

    /// The same disk with a second logical unit, `sdb`.
    pub(crate) fn with_two_units(machine: super::tree::Machine, interface: &str) -> Self {
        let folder = machine.folder.path();
        let first = fs::canonicalize(folder.join("sys/block/sda/device")).expect("sda");
        let second = first.with_file_name("0:0:0:1");
        copy(&first, &second);
        fs::rename(second.join("block/sda"), second.join("block/sdb")).expect("a name");
        let directory = second.join("block/sdb");
        fs::write(directory.join("dev"), "8:16\n").expect("a number");
        let _ = fs::remove_file(directory.join("device"));
        symlink("../../../0:0:0:1", directory.join("device")).expect("a link");
        let root = fs::canonicalize(folder).expect("a folder");
        let below = directory.strip_prefix(root.join("sys")).expect("below sys").display().to_string();
        symlink(format!("../{below}"), folder.join("sys/block/sdb")).expect("a link");
        symlink(format!("../../{below}"), folder.join("sys/dev/block/8:16")).expect("a link");
        Self::new(machine, interface)
    }

    /// Mounts a unit, for every process.
    pub(crate) fn mount(&self, name: &str, point: &str) {
        let number =
            fs::read_to_string(self.system.locate(&format!("/sys/block/{name}/dev"))).expect("a unit that is there");
        for process in ["1", "self"] {
            let path = self.folder.join(format!("proc/{process}/mountinfo"));
            let before = fs::read_to_string(&path).expect("mounts");
            let line = format!("99 1 {} / {point} rw,relatime - ext4 /dev/{name} rw\n", number.trim());
            fs::write(path, before + &line).expect("mounts");
        }
    }

    /// Unmounts it.
    pub(crate) fn unmount(&self, point: &str) {
        for process in ["1", "self"] {
            let path = self.folder.join(format!("proc/{process}/mountinfo"));
            let before = fs::read_to_string(&path).expect("mounts");
            let kept: String = before
                .lines()
                .filter(|line| !line.contains(&format!(" {point} ")))
                .map(|line| format!("{line}\n"))
                .collect();
            fs::write(path, kept).expect("mounts");
        }
    }

    /// The kernel removes a mounted disk without an error; a test must not.
    fn assert_not_mounted(&self, name: &str) {
        let node = PathBuf::from(format!("/dev/{name}"));
        let holders = who_holds(&self.system, &node).map(|holders| holders.found).unwrap_or_default();
        assert_eq!(holders, [], "{name} was removed while it was in use");
    }

    pub(crate) fn disk(&self) -> Option<UsbDisk> {
        trueio_device::usb::usb_disk(&self.system, &self.interface)
    }

    pub(crate) fn plan(&self, to: UsbTransport) -> Result<Plan, Refusal> {
        let report = usb_report(&self.system);
        let disk = report.disks.iter().find(|disk| disk.usb.interface == self.interface).expect("the disk");
        let decision = decide(&self.system, &report, disk, None);
        let uses: Vec<_> = disk
            .blocks
            .iter()
            .map(|block| {
                let node = PathBuf::from(format!("/dev/{}", block.name));
                (who_holds(&self.system, &node).expect("a block device"), who_has_open(&self.system, &block.name))
            })
            .collect();
        plan(disk, to, &decision, &uses)
    }

    pub(crate) fn quirks(&self) -> String {
        fs::read_to_string(self.system.locate(QUIRKS)).expect("quirks").trim().to_owned()
    }

    pub(crate) fn states(&self) -> Vec<SwitchState> {
        trueio_usb::pending(&self.states).expect("valid states")
    }

    pub(crate) fn set(&self, path: &str, text: &str) {
        let place = self.system.locate(path);
        fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        fs::write(place, text).expect("a file");
    }

    /// Every link and every file of a folder, for "nothing was touched".
    pub(crate) fn listing(&self, below: &str) -> BTreeMap<String, String> {
        fn walk(folder: &std::path::Path, found: &mut BTreeMap<String, String>) {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let name = path.display().to_string();
                match fs::symlink_metadata(&path) {
                    Ok(m) if m.is_symlink() => {
                        found.insert(name, fs::read_link(&path).map(|t| t.display().to_string()).unwrap_or_default());
                    }
                    Ok(m) if m.is_dir() => walk(&path, found),
                    _ => {
                        found.insert(name, format!("{:x?}", fs::read(&path).unwrap_or_default()));
                    }
                }
            }
        }
        let mut found = BTreeMap::new();
        walk(&self.system.locate(below), &mut found);
        found
    }

    fn directory(&self) -> PathBuf {
        fs::canonicalize(self.system.locate(&format!("/sys/bus/usb/devices/{}", self.interface)))
            .unwrap_or_else(|_| PathBuf::from("/nonexistent"))
    }

    fn note(&mut self, call: String) -> io::Result<()> {
        if self.trouble.killed_at == Some(self.count) {
            panic!("killed before call {}: {call}", self.count);
        }
        if self.trouble.unplugged_at == Some(self.count) {
            self.unplug();
        }
        self.count += 1;
        self.calls.push(call);
        Ok(())
    }

    fn unplug(&mut self) {
        let directory = self.directory();
        if directory.exists() {
            self.take_host();
            let _ = fs::remove_dir_all(directory.parent().expect("the device"));
        }
        let device = self.interface.split(':').next().expect("a device").to_owned();
        for name in [self.interface.clone(), device] {
            let _ = fs::remove_file(self.folder.join(format!("sys/bus/usb/devices/{name}")));
        }
        for driver in ["uas", "usb-storage"] {
            let _ = fs::remove_file(self.folder.join(format!("sys/bus/usb/drivers/{driver}/{}", self.interface)));
        }
    }

    fn bound(&self) -> Option<String> {
        let link = fs::read_link(self.directory().join("driver")).ok()?;
        Some(link.file_name()?.to_str()?.to_owned())
    }

    /// The host is removed with everything below it.
    fn take_host(&mut self) {
        for (_, name) in &self.units {
            let _ = fs::remove_file(self.folder.join(format!("sys/block/{name}")));
        }
        let directory = self.directory();
        let host = fs::read_dir(&directory).into_iter().flatten().flatten().find_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_prefix("host").is_some_and(|rest| rest.parse::<u32>().is_ok()).then_some(name)
        });
        if let Some(host) = host {
            let kept = self.folder.join("stash");
            if self.stash.is_none() {
                fs::rename(directory.join(&host), &kept).expect("the host is kept");
                self.stash = Some((host, kept));
            } else {
                fs::remove_dir_all(directory.join(&host)).expect("the host is gone");
            }
        }
    }

    /// Does what the kernel does about one second after a driver was bound.
    fn scan(&mut self, driver: &str) {
        if self.trouble.silent_on.contains(&driver) {
            return;
        }
        let Some((host, kept)) = self.stash.take() else { return };
        let directory = self.directory();
        fs::rename(&kept, directory.join(&host)).expect("the host is back");
        for (address, name) in &self.units {
            let channel = address.rsplit_once(':').map_or("", |(target, _)| target);
            let place = directory.join(format!("{host}/target{channel}/{address}"));
            if let Some(kept) = self.removed.remove(name) {
                fs::rename(kept, &place).expect("the unit is back");
            }
            if self.trouble.missing == Some(name) {
                let kept = self.folder.join(format!("stash-{name}"));
                fs::rename(place, &kept).expect("the unit is kept");
                self.removed.insert(name.clone(), kept);
            }
        }
        let relative = directory.strip_prefix(fs::canonicalize(&self.folder).expect("a folder")).expect("below it");
        for (address, name) in &self.units {
            let channel = address.rsplit_once(':').map_or("", |(target, _)| target);
            let unit = format!("{}/{host}/target{channel}/{address}", relative.display());
            let link = self.folder.join(format!("sys/block/{name}"));
            let _ = fs::remove_file(&link);
            if !self.folder.join(&unit).exists() {
                continue;
            }
            let below = unit.strip_prefix("sys/").expect("below sys").to_owned();
            symlink(format!("../{below}/block/{name}"), link).expect("a link");
            fs::write(self.folder.join(&unit).join("queue_depth"), if driver == "uas" { "30\n" } else { "1\n" })
                .expect("a file");
        }
        if let Some(name) = self.trouble.mounted_when_back {
            self.mount(name, "/media/stick");
        }
    }

    fn delete(&mut self, name: &str) -> io::Result<()> {
        let link = self.folder.join(format!("sys/block/{name}"));
        if !link.exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.assert_not_mounted(name);
        if self.units.iter().filter(|(_, name)| self.folder.join(format!("sys/block/{name}")).exists()).count() > 1 {
            let unit = fs::canonicalize(link.join("device")).expect("its unit");
            let kept = self.folder.join(format!("stash-{name}"));
            fs::rename(unit, &kept).expect("the unit is kept");
            fs::remove_file(link).expect("a link");
            self.removed.insert(name.to_owned(), kept);
            return Ok(());
        }
        // When its last unit is removed, the host stays, empty; the fake keeps it whole and moves it aside.
        self.take_host();
        Ok(())
    }

    fn bind(&mut self, driver: &str) -> io::Result<()> {
        let directory = self.directory();
        if !directory.exists() {
            return Err(io::Error::from_raw_os_error(19)); // ENODEV
        }
        if self.bound().is_some() {
            return Err(io::Error::from_raw_os_error(16)); // EBUSY
        }
        let disk = self.disk().expect("it is there");
        let id = disk.usb.id.value.clone().expect("an id");
        let (vendor, product) = id.split_once(':').expect("two numbers");
        let number = |text: &str| u16::from_str_radix(text, 16).expect("hexadecimal");
        let entry = quirks::entry_letters(&self.quirks(), number(vendor), number(product));
        let is_barred = number(vendor) == 0x2537;
        let would_take = disk.usb.offers_uas() == Some(true)
            && entry.map_or(!is_barred, |letters| quirks::flags(&letters) & quirks::IGNORE_UAS == 0);
        let takes = match driver {
            "uas" => would_take,
            _ => !would_take && disk.usb.offers_bot() == Some(true),
        };
        if !takes || self.trouble.refused_by.contains(&driver) {
            return Err(io::Error::from_raw_os_error(if driver == "uas" { 19 } else { 6 })); // ENODEV, ENXIO
        }
        symlink(format!("../../../../../../bus/usb/drivers/{driver}"), directory.join("driver")).expect("a link");
        self.looks_left = Some((3, driver.to_owned()));
        Ok(())
    }

    fn unbind(&mut self, driver: &str) -> io::Result<()> {
        if self.bound().as_deref() != Some(driver) {
            return Err(io::Error::from_raw_os_error(19));
        }
        for (_, name) in &self.units {
            self.assert_not_mounted(name);
        }
        self.take_host();
        fs::remove_file(self.directory().join("driver")).expect("a link");
        self.looks_left = None;
        Ok(())
    }
}

/// Copies a folder with its links.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match fs::symlink_metadata(&from).expect("an entry") {
            m if m.is_symlink() => symlink(fs::read_link(&from).expect("a link"), to).expect("a link"),
            m if m.is_dir() => copy(&from, &to),
            _ => {
                fs::copy(&from, &to).expect("a file");
            }
        }
    }
}

impl Hands for Fake {
    fn write(&mut self, path: &str, text: &str) -> io::Result<()> {
        self.note(format!("{} < {text}", path.strip_prefix("/sys/").unwrap_or(path)))?;
        if path == QUIRKS {
            if text.len() > quirks::QUIRKS_BYTES_MAX {
                return Err(io::Error::from_raw_os_error(28)); // ENOSPC
            }
            return fs::write(self.system.locate(path), format!("{text}\n"));
        }
        if let Some(name) = path.strip_prefix("/sys/block/").and_then(|rest| rest.strip_suffix("/device/delete")) {
            return self.delete(name);
        }
        if path == "/sys/bus/usb/drivers_probe" {
            return self.bind("uas").or_else(|_| self.bind("usb-storage"));
        }
        assert_eq!(text, self.interface, "another interface was touched: {path}");
        match path.strip_prefix("/sys/bus/usb/drivers/").and_then(|rest| rest.split_once('/')) {
            Some((driver, "bind")) => self.bind(driver),
            Some((driver, "unbind")) => self.unbind(driver),
            _ => panic!("{path} is never written"),
        }
    }

    fn claim(&mut self, block: &str) -> io::Result<()> {
        self.note(format!("claim {block}"))?;
        let is_mounted = who_holds(&self.system, &PathBuf::from(format!("/dev/{block}")))
            .is_ok_and(|holders| !holders.found.is_empty());
        if is_mounted || self.claimed.contains(&block.to_owned()) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        self.claimed.push(block.to_owned());
        Ok(())
    }

    fn flush(&mut self, block: &str) -> io::Result<()> {
        self.note(format!("flush {block}"))?;
        if self.trouble.no_flush { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }

    fn ends(&mut self, block: &str) -> io::Result<u64> {
        self.note(format!("read {block}"))?;
        if !self.folder.join(format!("sys/block/{block}")).exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let is_other = self.bound().is_some_and(|driver| self.trouble.other_on.contains(&driver.as_str()));
        Ok(if is_other { 2 } else { 1 })
    }

    fn release(&mut self) {
        self.claimed.clear();
    }

    fn wait(&self) -> Duration {
        self.wait
    }

    fn pause(&mut self, _: Duration) {
        match self.looks_left.take() {
            Some((0, driver)) => self.scan(&driver),
            Some((looks, driver)) => self.looks_left = Some((looks - 1, driver)),
            None => {}
        }
    }

    fn save(&mut self, state: &SwitchState) -> io::Result<()> {
        state.save(&self.states)
    }

    fn clear(&mut self, interface: &str) -> io::Result<()> {
        SwitchState::clear(&self.states, interface)
    }
}
