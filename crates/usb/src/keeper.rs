//! A process that outlives the one that drives a disk, and tidies up after it.
//!
//! When a process is killed, the kernel releases its interfaces and binds no driver, a ublk device keeps its number, and requests to an
//! NBD device wait. The keeper's standard input is a pipe that ends with the process that it guards, in whichever way that ends.
//!
//! An NBD device is disconnected at once, so that its requests fail. A resumable block device is kept for the time that was asked for: its
//! requests wait. Then it is deleted, so that they fail; at once if the disk is unplugged, because writes that it had acknowledged may be lost then.
//! If another process takes the disk over in that time, its own keeper is responsible.

use crate::lock::{STATES, take_lock};
use crate::served::ServedDisk;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use trueio_uas::block::protect_process;
use trueio_uas::nbd::{self, NbdId};
use trueio_uas::ublk;

/// How often the keeper looks.
const LOOK: Duration = Duration::from_millis(50);

/// The keeper of this process. Dropping it ends the keeper, which finds the interface given back; one that guards a block device
/// goes on alone.
#[derive(Debug)]
pub struct Keeper {
    process: Child,
    is_guarding: bool,
}

impl Keeper {
    /// Starts it: this program again, with the hidden command `usb give-back`, in a process group of its own, which Ctrl-C does
    /// not reach.
    ///
    /// # Errors
    /// The system's.
    pub fn start(interface: &str) -> io::Result<Self> {
        let mut keeper = std::process::Command::new("/proc/self/exe");
        keeper.args(["usb", "give-back", interface]).stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        Ok(Self { process: keeper.spawn()?, is_guarding: false })
    }

    /// Sends it the block device that it has to end after this process.
    ///
    /// # Errors
    /// The keeper has died.
    pub fn guard(&mut self, guarded: Guarded) -> io::Result<()> {
        self.is_guarding = true;
        self.send(&guarded.line())
    }

    /// Makes it leave the terminal, as this process does.
    ///
    /// # Errors
    /// The keeper has died.
    pub fn detach(&mut self) -> io::Result<()> {
        self.send("detached\n")
    }

    /// Reports to it that the block device is ended.
    pub fn release(&mut self) {
        self.is_guarding = false;
        // One that has died does nothing.
        let _ = self.send("none\n");
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        self.process.stdin.as_mut().expect("it is piped").write_all(line.as_bytes())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        if !self.is_guarding {
            // It ends by itself as soon as the interface has a driver or none.
            let _ = self.process.wait();
        }
    }
}

/// A block device that a keeper ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    /// An NBD device; at once.
    Nbd(NbdId),
    /// The ublk device of this number, after a time in which another server may take it over.
    Ublk(u32, Duration),
}

impl Guarded {
    /// The line that a keeper reads.
    fn line(&self) -> String {
        match self {
            Self::Nbd(NbdId { number, pid }) => format!("nbd {number} {pid}\n"),
            Self::Ublk(number, wait) => format!("ublk {number} {}\n", wait.as_millis()),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [kind, number, last] = words[..] else { return None };
        let number = number.parse().ok()?;
        match kind {
            "nbd" => Some(Self::Nbd(NbdId { number, pid: last.parse().ok()? })),
            "ublk" => Some(Self::Ublk(number, Duration::from_millis(last.parse().ok()?))),
            _ => None,
        }
    }
}

/// Is the keeper: reads `input` until it ends, and gives the interface back to the kernel. Returns a sentence about a block device
/// that it ended. `detach` is called when its process has to leave the terminal.
///
/// # Errors
/// The block device cannot be deleted, or the interface cannot be given back. The one is tried although the other failed.
pub fn keep(interface: &str, input: impl BufRead, detach: &dyn Fn()) -> io::Result<Option<String>> {
    // It must work when memory is short. What fails was reported by the process that it guards.
    let _ = protect_process();
    let mut guarded = None;
    // An error is an end, too.
    for line in input.lines().map_while(Result::ok) {
        match &*line {
            "detached" => detach(),
            line => guarded = Guarded::parse(line),
        }
    }
    // First: a thread of the dead process may wait for a request, and the interface is released when it has ended.
    let disconnected = match guarded {
        Some(Guarded::Nbd(id)) => nbd::end(id).map(|was_there| {
            was_there.then(|| format!("every I/O of /dev/nbd{} fails: its server has died", id.number))
        }),
        _ => Ok(None),
    };
    let place = Place::of(interface);
    // The kernel closes the server's descriptors one after the other.
    while place.is_driven() {
        std::thread::sleep(LOOK);
    }
    let ended = match guarded {
        None | Some(Guarded::Nbd(_)) => disconnected,
        Some(Guarded::Ublk(number, Duration::ZERO)) => {
            ublk::delete(number).map(|()| Some(format!("every I/O of /dev/ublkb{number} fails: its server has died")))
        }
        Some(Guarded::Ublk(number, wait)) => match wait_for_another(&place, interface, number, wait) {
            // Its own keeper gives the interface back.
            Ok(None) => return Ok(None),
            result => result,
        },
    };
    if !place.has_driver() && place.directory.exists() {
        std::fs::write("/sys/bus/usb/drivers_probe", interface)?;
    }
    ended
}

/// Waits for another server, and deletes the block device if there is none; then returns a sentence about it.
fn wait_for_another(place: &Place, interface: &str, number: u32, wait: Duration) -> io::Result<Option<String>> {
    let begin = Instant::now();
    let is_waiting = || begin.elapsed() < wait && place.has_its_disk();
    let _lock = loop {
        while is_waiting() {
            // Seen once is enough: the other server resets the port, and the interface has no driver meanwhile.
            if place.is_driven() {
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
        // A server that takes the disk over holds it from the claim to the reset.
        match take_lock(Path::new(STATES)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            // One that was refused meanwhile has left its own keeper, or the disk as it was.
            Ok(_) if is_waiting() => {}
            // Without it two servers might meet; a device that waits for ever would be worse.
            result => break result.ok(),
        }
    };
    if place.is_driven() {
        return Ok(None);
    }
    ublk::delete(number)?;
    ServedDisk::clear(interface)?;
    let why = match place.has_its_disk() {
        true => format!("no server took it over for {wait:?}"),
        false => "its disk was unplugged while it had no server".to_owned(),
    };
    Ok(Some(format!("every I/O of /dev/ublkb{number} fails: {why}")))
}

/// An interface in sysfs.
#[derive(Debug)]
struct Place {
    directory: PathBuf,
    /// The number of the device when its server had ended. The kernel counts it up when a disk is plugged in.
    device: Option<String>,
}

impl Place {
    fn of(interface: &str) -> Self {
        Self::at(Path::new("/sys/bus/usb/devices").join(interface))
    }

    fn at(directory: PathBuf) -> Self {
        let device = loop {
            match device_of(&directory) {
                Some(number) if number.trim() == IN_RESET => std::thread::sleep(LOOK),
                found => break found,
            }
        };
        Self { directory, device }
    }

    fn driver(&self) -> Option<PathBuf> {
        std::fs::read_link(self.directory.join("driver")).ok()
    }

    fn has_driver(&self) -> bool {
        self.driver().is_some()
    }

    fn is_driven(&self) -> bool {
        self.driver().is_some_and(|link| link.ends_with("usbfs"))
    }

    /// Whether the disk was not unplugged since its server had ended.
    fn has_its_disk(&self) -> bool {
        self.device.is_some()
            && device_of(&self.directory).is_some_and(|now| now.trim() == IN_RESET || Some(now) == self.device)
    }
}

/// The number of a device while its port is reset, as another server does. Afterwards it has the one that it had, or another one if it was unplugged.
///
/// Source: Linux `drivers/usb/core/hub.c`, `hub_port_reset`.
const IN_RESET: &str = "0";

fn device_of(directory: &Path) -> Option<String> {
    // The name of an interface is a link into the folder of its device.
    std::fs::read_to_string(directory.join("../devnum")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_whose_port_is_reset_was_not_unplugged() {
        let device = tempfile::tempdir().expect("a folder");
        let number = device.path().join("devnum");
        std::fs::write(&number, "5\n").expect("it is writable");
        let interface = device.path().join("2-1:1.0");
        std::fs::create_dir(&interface).expect("the folder is writable");
        let place = Place::at(interface);
        for (now, is_there) in [("5\n", true), ("0\n", true), ("6\n", false)] {
            std::fs::write(&number, now).expect("it is writable");
            assert_eq!(place.has_its_disk(), is_there, "{now}");
        }
        std::fs::remove_file(&number).expect("it is there");
        assert!(!place.has_its_disk(), "unplugged");
    }

    #[test]
    fn a_keeper_parses_its_own_lines_and_refuses_others() {
        for guarded in [Guarded::Ublk(3, Duration::from_millis(1500)), Guarded::Nbd(NbdId { number: 7, pid: 4711 })] {
            assert_eq!(Guarded::parse(guarded.line().trim_end()), Some(guarded));
        }
        for line in ["none", "", "ublk 3", "ublk 3 x", "ublk -1 5", "ublk 3 5 7", "nbd 3", "nbd x 5", "tape 3 5"] {
            assert_eq!(Guarded::parse(line), None, "{line}");
        }
    }
}
