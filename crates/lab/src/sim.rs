//! Simulated disks: what no emulator offers, and what faults need.
//!
//! A disk is a [`Medium`] with a volatile cache and one of two interfaces: a USB device that offers
//! bulk-only, UAS or both, for QEMU's `usb-redir`; or a network block device, for QEMU's NVMe,
//! virtio and SCSI. It lives in threads of the test's own process, so a test turns its knobs
//! and reads its counters while the machine runs.

mod ata;
mod bot;
mod command;
mod descriptors;
mod device;
mod medium;
mod nbd;
mod pipes;
mod scsi;
mod timing;
mod uas;
mod usbredir;

pub use command::Identity;
pub use descriptors::{Offers, Speed, UsbIdentity};
pub use medium::{Behaviour, Counts, Failure, Medium, UasFault};

use anyhow::{Context, Result};
use device::{Device, lock};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

impl Default for Identity {
    fn default() -> Self {
        Self {
            vendor: "TRUEIO".into(),
            model: "SIMULATED".into(),
            serial: "SIM0001".into(),
            physical_exponent: 3,
            rotation_rate: 1,
        }
    }
}

impl Default for UsbIdentity {
    /// 1209 is the vendor of open projects (pid.codes), whose product 0001 is for tests.
    fn default() -> Self {
        Self {
            vendor_id: 0x1209,
            product_id: 0x0001,
            device_version: 0x0100,
            manufacturer: "trueio".into(),
            product: "simulated disk".into(),
            serial: "SIM0001".into(),
            max_power: 0,
            offers: Offers::Both,
            speed: Speed::Super,
            streams_log2: 5,
            has_pipe_usages: true,
            configuration: None,
        }
    }
}

/// The requests of a test to a disk.
enum Control {
    Plug,
    /// `done` gets the number of blocks that were lost.
    Unplug {
        loses_power: bool,
        done: Sender<u64>,
    },
}

/// What comes to a disk's thread.
enum Event<T> {
    Asked(T),
    Control(Control),
    /// QEMU is gone.
    End,
}

/// The next event; `None` if it does not come until `due`.
fn wait<T>(events: &Receiver<Event<T>>, due: Option<Instant>) -> Option<Event<T>> {
    let Some(due) = due else { return Some(events.recv().unwrap_or(Event::End)) };
    match events.recv_timeout(due.saturating_duration_since(Instant::now())) {
        Ok(event) => Some(event),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Event::End),
    }
}

type Controller = Box<dyn Fn(Control) + Send + Sync>;

/// A simulated disk that QEMU uses, or will.
pub struct SimulatedDisk {
    medium: Arc<Mutex<Medium>>,
    /// Sends to the serving thread, which may not run yet.
    control: Arc<Mutex<Option<Controller>>>,
}

impl std::fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimulatedDisk").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl SimulatedDisk {
    /// A disk that waits for QEMU's `usb-redir` at the socket `path`.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn usb(path: &Path, usb: UsbIdentity, identity: Identity, medium: Medium) -> Result<Self> {
        let disk = Self::of(medium);
        let (medium, control) = (Arc::clone(&disk.medium), Arc::clone(&disk.control));
        serve_at(path, control, usbredir::listen, move |stream, events| {
            let device = Device::new(usb.clone(), identity.clone(), Arc::clone(&medium));
            usbredir::serve(device, stream, events)
        })?;
        Ok(disk)
    }

    /// A disk that waits for QEMU's block driver `nbd` at the socket `path`.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn nbd(path: &Path, medium: Medium) -> Result<Self> {
        let disk = Self::of(medium);
        let (medium, control) = (Arc::clone(&disk.medium), Arc::clone(&disk.control));
        let export = nbd::Export::of(&lock(&medium));
        let listen = move |stream, events: &_| nbd::listen(stream, export, events);
        serve_at(path, control, listen, move |stream, events| nbd::serve(&medium, stream, events))?;
        Ok(disk)
    }

    fn of(medium: Medium) -> Self {
        Self { medium: Arc::new(Mutex::new(medium)), control: Arc::default() }
    }

    /// Changes how it behaves, from now on.
    pub fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut lock(&self.medium).behaviour);
    }

    /// Faults on UAS that no command has met yet.
    pub fn uas_faults(&self) -> Vec<UasFault> {
        lock(&self.medium).behaviour.uas_faults.clone()
    }

    /// Returns the counts of commands so far.
    pub fn counts(&self) -> Counts {
        lock(&self.medium).counts
    }

    /// Blocks that a loss of power would lose now.
    pub fn dirty_blocks(&self) -> u64 {
        lock(&self.medium).dirty_blocks()
    }

    /// The medium without the cache, from `offset`.
    pub fn on_medium(&self, offset: usize, length: usize) -> Vec<u8> {
        lock(&self.medium).on_medium()[offset..offset + length].to_vec()
    }

    /// A hash of the medium and the cache: equal if nothing was written.
    pub fn fingerprint(&self) -> u64 {
        lock(&self.medium).fingerprint()
    }

    /// Pulls the plug of a USB disk: it is gone, its cache survives as with a disk that has its own
    /// power supply. A disk that is attached by NBD stays.
    pub fn unplug(&self) {
        self.unplug_with(false);
    }

    /// Takes its power: what was not flushed is lost, and a USB disk is gone. The number of blocks
    /// that are lost.
    pub fn cut_power(&self) -> u64 {
        self.unplug_with(true)
    }

    fn unplug_with(&self, loses_power: bool) -> u64 {
        let (done, answer) = channel();
        self.send(Control::Unplug { loses_power, done });
        answer.recv_timeout(Duration::from_secs(30)).unwrap_or(0)
    }

    /// Plugs a USB disk in again.
    pub fn plug(&self) {
        self.send(Control::Plug);
    }

    fn send(&self, control: Control) {
        let controller = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(send) = controller.as_ref() {
            send(control);
        }
    }
}

/// Waits at `path` for QEMU, again and again, and serves it.
fn serve_at<T: Send + 'static>(
    path: &Path,
    control: Arc<Mutex<Option<Controller>>>,
    listen: impl Fn(UnixStream, &Sender<Event<T>>) + Send + Clone + 'static,
    serve: impl Fn(UnixStream, &Receiver<Event<T>>) -> std::io::Result<()> + Send + 'static,
) -> Result<()> {
    let listener = UnixListener::bind(path).with_context(|| format!("`{}`", path.display()))?;
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            serve_one(stream, &control, listen.clone(), &serve);
        }
    });
    Ok(())
}

/// Serves one connection: a thread reads, this one works.
fn serve_one<T: Send + 'static>(
    stream: UnixStream,
    control: &Mutex<Option<Controller>>,
    listen: impl Fn(UnixStream, &Sender<Event<T>>) + Send + 'static,
    serve: &impl Fn(UnixStream, &Receiver<Event<T>>) -> std::io::Result<()>,
) {
    let (sender, events) = channel();
    let Ok(reading) = stream.try_clone() else { return };
    let from_qemu = sender.clone();
    std::thread::spawn(move || listen(reading, &from_qemu));
    *control.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(move |control| {
        // The thread that serves may have ended with QEMU.
        let _ = sender.send(Event::Control(control));
    }));
    if let Err(error) = serve(stream, &events) {
        eprintln!("a simulated disk lost QEMU: {error}");
    }
    *control.lock().unwrap_or_else(PoisonError::into_inner) = None;
}
