//! The disks of a machine, as a test describes them, and QEMU's arguments for them.
//!
//! A disk has a name. Its serial number is that name in capitals unless the test sets another one;
//! a test finds the device by it ([`crate::Machine::device`]).

use crate::sim::{Behaviour, Identity, Medium, Offers, SimulatedDisk, Speed, UsbIdentity};
use anyhow::{Context, Result};
use std::fs::File;
use std::path::Path;

/// How a disk is attached.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Attachment {
    Nvme,
    /// A namespace that two controllers of one subsystem share.
    NvmePaths,
    /// `ring`: the entries of its ring; `None`: as many as QEMU gives it.
    VirtioBlk {
        ring: Option<u16>,
    },
    Scsi {
        has_dpofua: bool,
    },
    /// QEMU's own USB disks, each of one transport.
    QemuUsb {
        is_uas: bool,
    },
    /// Ours, with any transport.
    SimulatedUsb(UsbIdentity),
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    pub(crate) name: String,
    attachment: Attachment,
    serial: String,
    size_bytes: u64,
    logical_bytes: u32,
    physical_bytes: u32,
    has_write_cache: bool,
    rotation_rate: u16,
    /// Ours; `None`: a file that QEMU reads and writes.
    behaviour: Option<Behaviour>,
}

/// A disk that QEMU can be given.
pub(crate) struct Attached {
    pub(crate) arguments: Vec<String>,
    pub(crate) simulated: Option<SimulatedDisk>,
}

impl Disk {
    fn new(name: &str, attachment: Attachment) -> Self {
        Self {
            name: name.to_owned(),
            attachment,
            serial: name.to_uppercase(),
            size_bytes: 64 << 20,
            logical_bytes: 512,
            physical_bytes: 512,
            has_write_cache: true,
            rotation_rate: 1,
            behaviour: None,
        }
    }

    /// A namespace of an NVMe controller.
    pub fn nvme(name: &str) -> Self {
        Self::new(name, Attachment::Nvme)
    }

    /// A namespace with two paths: two controllers of one subsystem.
    pub fn nvme_multipath(name: &str) -> Self {
        Self::new(name, Attachment::NvmePaths)
    }

    /// A virtio block device.
    pub fn virtio(name: &str) -> Self {
        Self::new(name, Attachment::VirtioBlk { ring: None })
    }

    /// A SCSI disk on a virtio controller.
    pub fn scsi(name: &str) -> Self {
        Self::new(name, Attachment::Scsi { has_dpofua: false })
    }

    /// A simulated USB disk that offers both transports.
    pub fn usb(name: &str) -> Self {
        let mut disk = Self::new(name, Attachment::SimulatedUsb(UsbIdentity::default()));
        disk.physical_bytes = 4096;
        disk.behaviour = Some(Behaviour::default());
        disk
    }

    /// QEMU's USB disk that knows only the bulk-only transport.
    pub fn qemu_bot(name: &str) -> Self {
        Self::new(name, Attachment::QemuUsb { is_uas: false })
    }

    /// QEMU's USB disk that knows only UAS.
    pub fn qemu_uas(name: &str) -> Self {
        Self::new(name, Attachment::QemuUsb { is_uas: true })
    }

    /// Sets the size in MiB; the default is 64.
    pub fn mib(mut self, mib: u64) -> Self {
        self.size_bytes = mib << 20;
        self
    }

    /// Logical and physical sector, in bytes.
    pub fn sectors(mut self, logical_bytes: u32, physical_bytes: u32) -> Self {
        (self.logical_bytes, self.physical_bytes) = (logical_bytes, physical_bytes);
        self
    }

    /// The serial number.
    pub fn serial(mut self, serial: &str) -> Self {
        self.serial = serial.to_owned();
        self
    }

    /// Sets revolutions per minute; 1, the default, means that the disk does not rotate.
    pub fn rotating(mut self, rate: u16) -> Self {
        self.rotation_rate = rate;
        self
    }

    /// Without a volatile write cache.
    pub fn write_through(mut self) -> Self {
        self.has_write_cache = false;
        if let Some(behaviour) = &mut self.behaviour {
            behaviour.cache_blocks = 0;
        }
        self
    }

    /// Gives a virtio disk one ring of `entries` entries: at most that number of requests are in flight.
    pub fn ring(mut self, entries: u16) -> Self {
        if let Attachment::VirtioBlk { ring } = &mut self.attachment {
            *ring = Some(entries);
        }
        self
    }

    /// Enables FUA writes (off by default for a SCSI disk of QEMU).
    pub fn with_fua(mut self) -> Self {
        if let Attachment::Scsi { has_dpofua } = &mut self.attachment {
            *has_dpofua = true;
        }
        self
    }

    /// Stores the data on a simulated medium with this behaviour. A USB disk of ours already has one.
    pub fn behaving(mut self, behaviour: Behaviour) -> Self {
        self.has_write_cache = behaviour.cache_blocks > 0;
        self.behaviour = Some(behaviour);
        self
    }

    /// Changes the descriptors of a simulated USB disk.
    ///
    /// # Panics
    /// If this is another disk.
    pub fn saying(mut self, change: impl FnOnce(&mut UsbIdentity)) -> Self {
        let Attachment::SimulatedUsb(identity) = &mut self.attachment else {
            panic!("`{}` is no simulated USB disk", self.name);
        };
        change(identity);
        self
    }

    /// A simulated USB disk with only these transports.
    pub fn offering(self, offers: Offers) -> Self {
        self.saying(|usb| usb.offers = offers)
    }

    /// A simulated USB disk on a link of this speed.
    pub fn at(self, speed: Speed) -> Self {
        self.saying(|usb| usb.speed = speed)
    }

    /// A simulated USB disk with these numbers.
    pub fn ids(self, vendor_id: u16, product_id: u16) -> Self {
        self.saying(|usb| (usb.vendor_id, usb.product_id) = (vendor_id, product_id))
    }

    /// Creates the storage of the disk in `folder`.
    pub(crate) fn attach(&self, folder: &Path) -> Result<Attached> {
        let name = &self.name;
        let identity = Identity {
            serial: self.serial.clone(),
            physical_exponent: (self.physical_bytes / self.logical_bytes).trailing_zeros() as u8,
            rotation_rate: self.rotation_rate,
            ..Identity::default()
        };
        let medium = |behaviour: &Behaviour, block_bytes: u32| {
            Medium::new(block_bytes as usize, self.size_bytes / u64::from(block_bytes), behaviour.clone())
        };
        let socket = folder.join(format!("{name}.disk"));
        if let (Attachment::SimulatedUsb(usb), Some(behaviour)) = (&self.attachment, &self.behaviour) {
            let usb = UsbIdentity { serial: self.serial.clone(), ..usb.clone() };
            let disk = SimulatedDisk::usb(&socket, usb, identity, medium(behaviour, self.logical_bytes))?;
            let arguments = words([
                "-chardev",
                &format!("socket,id={name}-line,path={}", socket.display()),
                "-device",
                &format!("usb-redir,id={name},chardev={name}-line,bus=usb.0"),
            ]);
            return Ok(Attached { arguments, simulated: Some(disk) });
        }
        let (drive, simulated) = match &self.behaviour {
            Some(behaviour) => {
                let disk = SimulatedDisk::nbd(&socket, medium(behaviour, 512))?;
                (format!("driver=nbd,server.type=unix,server.path={}", socket.display()), Some(disk))
            }
            None => {
                let file = folder.join(format!("{name}.img"));
                File::create(&file)?.set_len(self.size_bytes).with_context(|| format!("`{}`", file.display()))?;
                (format!("format=raw,file={}", file.display()), None)
            }
        };
        let arguments =
            words(["-drive", &format!("if=none,id={name}-drive,cache=writeback,rerror=report,werror=report,{drive}")]);
        Ok(Attached { arguments: [arguments, self.device_arguments()].concat(), simulated })
    }

    fn device_arguments(&self) -> Vec<String> {
        let Self { name, serial, logical_bytes, physical_bytes, rotation_rate, .. } = self;
        let drive = format!("drive={name}-drive");
        let sectors = format!("logical_block_size={logical_bytes},physical_block_size={physical_bytes}");
        let cache = format!("write-cache={}", if self.has_write_cache { "on" } else { "off" });
        let scsi = format!("{drive},serial={serial},{sectors},{cache},rotation_rate={rotation_rate}");
        match &self.attachment {
            // QEMU's NVMe has one cache for all.
            Attachment::Nvme => {
                words(["-device", &format!("nvme,id={name},{drive},serial={serial},{sectors},{cache}")])
            }
            Attachment::NvmePaths => {
                let controller = |path: u8| format!("nvme,id={name}-{path},serial={serial},subsys={name}-all,{cache}");
                let space = format!("nvme-ns,id={name},{drive},bus={name}-0,nsid=1,shared=on,{sectors}");
                let subsystem = format!("nvme-subsys,id={name}-all,nqn={name}");
                let devices = [subsystem, controller(0), controller(1), space];
                devices.into_iter().flat_map(|device| ["-device".to_owned(), device]).collect()
            }
            Attachment::VirtioBlk { ring } => {
                let ring = ring.map_or(String::new(), |entries| format!(",num-queues=1,queue-size={entries}"));
                words(["-device", &format!("virtio-blk-pci,id={name},{drive},serial={serial},{sectors},{cache}{ring}")])
            }
            Attachment::Scsi { has_dpofua } => {
                let fua = if *has_dpofua { "on" } else { "off" };
                words(["-device", &format!("scsi-hd,id={name},bus=scsi.0,{scsi},dpofua={fua}")])
            }
            Attachment::QemuUsb { is_uas } => {
                let (kind, place) = if *is_uas { ("usb-uas", ",scsi-id=0,lun=0") } else { ("usb-bot", "") };
                let bridge = format!("{kind},id={name}-bridge,bus=usb.0,serial={serial}");
                words(["-device", &bridge, "-device", &format!("scsi-hd,id={name},bus={name}-bridge.0{place},{scsi}")])
            }
            Attachment::SimulatedUsb(_) => Vec::new(),
        }
    }

    /// Returns the modules that Linux needs for it.
    pub(crate) fn modules(&self) -> &'static [&'static str] {
        match self.attachment {
            Attachment::Nvme | Attachment::NvmePaths => &["nvme"],
            Attachment::VirtioBlk { .. } => &["virtio_blk"],
            Attachment::Scsi { .. } => &["virtio_scsi", "sd_mod"],
            Attachment::QemuUsb { .. } | Attachment::SimulatedUsb(_) => &["xhci-pci", "usb-storage", "uas", "sd_mod"],
        }
    }

    pub(crate) fn is_usb(&self) -> bool {
        matches!(self.attachment, Attachment::QemuUsb { .. } | Attachment::SimulatedUsb(_))
    }

    /// Returns true if it is attached by QEMU's `usb-redir`.
    pub(crate) fn is_redirected(&self) -> bool {
        matches!(self.attachment, Attachment::SimulatedUsb(_))
    }

    pub(crate) fn is_scsi(&self) -> bool {
        matches!(self.attachment, Attachment::Scsi { .. })
    }

    pub(crate) fn serial_number(&self) -> &str {
        &self.serial
    }
}

pub(crate) fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}
