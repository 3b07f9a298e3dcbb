//! A simulated USB disk as a whole: control requests, the two transports, and time.
//!
//! It is independent of the connection to the host; see `usbredir`.

use super::bot::Bot;
use super::command::Identity;
use super::descriptors::{Speed, UsbIdentity};
use super::medium::Medium;
use super::pipes::{Ending, Pipes, Transfer};
use super::timing::Timing;
use super::uas::Uas;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A disk.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) usb: UsbIdentity,
    identity: Identity,
    medium: Arc<Mutex<Medium>>,
    setting: u8,
    configuration: u8,
    pipes: Pipes,
    timing: Timing,
    bot: Bot,
    uas: Uas,
}

/// Ignores a poisoned lock: no code panics between the steps of a write, so the medium is consistent.
pub(super) fn lock(medium: &Mutex<Medium>) -> MutexGuard<'_, Medium> {
    medium.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Device {
    pub(super) fn new(usb: UsbIdentity, identity: Identity, medium: Arc<Mutex<Medium>>) -> Self {
        let uas = Uas::new(usb.has_streams());
        let (pipes, timing, bot) = (Pipes::default(), Timing::default(), Bot::default());
        Self { usb, identity, medium, setting: 0, configuration: 0, pipes, timing, bot, uas }
    }

    /// True if the chosen setting is UAS.
    pub(super) fn is_uas(&self) -> bool {
        self.usb.uas_setting() == Some(self.setting)
    }

    pub(super) fn setting(&self) -> u8 {
        self.setting
    }

    pub(super) fn configuration(&self) -> u8 {
        self.configuration
    }

    /// Chooses a configuration, and its first setting.
    pub(super) fn configure(&mut self, configuration: u8) {
        self.configuration = configuration;
        self.reset();
    }

    /// Chooses an alternate setting; false if there is none of this number.
    pub(super) fn choose(&mut self, setting: u8) -> bool {
        let exists = setting < self.usb.settings();
        if exists {
            self.forget();
            self.setting = setting;
        }
        exists
    }

    /// A reset of the device: the first setting, and no commands.
    pub(super) fn reset(&mut self) {
        self.forget();
        self.uas.reset();
        self.setting = 0;
    }

    /// A reset by the host.
    pub(super) fn reset_by_host(&mut self) {
        lock(&self.medium).counts.resets += 1;
        self.reset();
    }

    /// Empties the cache; the number of blocks that are lost.
    pub(super) fn cut_power(&mut self) -> u64 {
        lock(&self.medium).cut_power()
    }

    fn forget(&mut self) {
        self.pipes.clear();
        self.timing.clear();
        self.bot.reset();
        self.uas.forget();
    }

    /// A control request with its eight bytes of set-up; `None`: refused (a stall).
    pub(super) fn control(&mut self, setup: [u8; 8]) -> Option<Vec<u8>> {
        let value = u16::from_le_bytes([setup[2], setup[3]]);
        let length = u16::from_le_bytes([setup[6], setup[7]]);
        let mut answer = match (setup[0], setup[1]) {
            // GET_DESCRIPTOR, by type.
            (0x80, 6) => match value >> 8 {
                1 => self.usb.device(),
                2 => self.usb.configuration(),
                3 => self.usb.string(value as u8)?,
                // What it would be at another speed.
                6 if self.usb.speed == Speed::High => vec![10, 6, 0x10, 2, 0, 0, 0, 64, 1, 0],
                15 => UsbIdentity::object_store(),
                _ => return None,
            },
            // GET_STATUS of device, interface, endpoint; GET_CONFIGURATION; GET_INTERFACE.
            (0x80, 0) => vec![1, 0],
            (0x81 | 0x82, 0) => vec![0, 0],
            (0x80, 8) => vec![self.configuration],
            (0x81, 10) => vec![self.setting],
            // SET_CONFIGURATION, SET_INTERFACE, other standard requests without an answer.
            (0, 9) => {
                self.configure(value as u8);
                Vec::new()
            }
            (1, 11) => {
                if !self.choose(value as u8) {
                    return None;
                }
                Vec::new()
            }
            (0..=2, _) => Vec::new(),
            // Bulk-only: GET_MAX_LUN, and a reset that keeps the setting.
            (0xa1, 0xfe) => vec![0],
            (0x21, 0xff) => {
                self.forget();
                Vec::new()
            }
            _ => return None,
        };
        answer.truncate(length.into());
        Some(answer)
    }

    /// The host wants data from a bulk endpoint.
    pub(super) fn want(&mut self, id: u64, endpoint: u8, stream: u16, bytes: usize) {
        self.pipes.want(id, endpoint, stream, bytes);
    }

    /// The host sends data to a bulk endpoint.
    pub(super) fn receive(&mut self, id: u64, endpoint: u8, stream: u16, bytes: Vec<u8>) {
        let length = bytes.len();
        let medium = &mut lock(&self.medium);
        let ending = if self.usb.uas_setting() == Some(self.setting) {
            self.uas.receive(endpoint, stream, bytes, medium, &mut self.timing)
        } else {
            self.bot.receive(&bytes, medium, &mut self.timing);
            Ending::Done
        };
        self.pipes.took(id, endpoint, stream, length, ending);
    }

    /// The host takes a request back.
    pub(super) fn cancel(&mut self, id: u64) {
        self.pipes.cancel(id);
    }

    /// When something happens by itself.
    pub(super) fn next(&self) -> Option<Instant> {
        self.timing.next()
    }

    /// Executes what is due, and returns the completed transfers.
    pub(super) fn run(&mut self, now: Instant) -> Vec<Transfer> {
        let is_uas = self.is_uas();
        while let Some(tag) = self.timing.done(now) {
            let medium = &mut lock(&self.medium);
            if is_uas {
                self.uas.execute(tag as u16, &self.identity, medium);
            } else {
                self.bot.execute(&self.identity, medium);
            }
        }
        if is_uas {
            self.uas.pump(&mut self.pipes);
        } else {
            self.bot.pump(&mut self.pipes);
        }
        self.pipes.take_over()
    }
}

#[cfg(test)]
mod tests {
    use super::super::descriptors::{BOT_IN, BOT_OUT, Offers, UAS_COMMAND, UAS_IN, UAS_OUT, UAS_STATUS};
    use super::super::medium::{Behaviour, UasFault};
    use super::*;

    fn device(usb: UsbIdentity) -> Device {
        let medium = Arc::new(Mutex::new(Medium::new(512, 1000, Behaviour::default())));
        Device::new(usb, Identity::default(), medium)
    }

    fn command_wrapper(tag: u32, bytes: u32, is_in: bool, cdb: &[u8]) -> Vec<u8> {
        let mut wrapper = b"USBC".to_vec();
        wrapper.extend(tag.to_le_bytes());
        wrapper.extend(bytes.to_le_bytes());
        wrapper.extend([if is_in { 0x80 } else { 0 }, 0, cdb.len() as u8]);
        wrapper.extend(cdb);
        wrapper.resize(31, 0);
        wrapper
    }

    fn command_unit(tag: u16, cdb: &[u8]) -> Vec<u8> {
        let mut unit = vec![1, 0];
        unit.extend(tag.to_be_bytes());
        unit.resize(16, 0);
        unit.extend(cdb);
        unit.resize(32, 0);
        unit
    }

    const WRITE: [u8; 10] = [0x2a, 0, 0, 0, 0, 9, 0, 0, 1, 0];
    const READ: [u8; 10] = [0x28, 0, 0, 0, 0, 9, 0, 0, 1, 0];

    fn data(device: &mut Device) -> Vec<(u64, Vec<u8>)> {
        device.run(Instant::now()).into_iter().filter(|t| t.endpoint & 0x80 != 0).map(|t| (t.id, t.data)).collect()
    }

    #[test]
    fn bulk_only_writes_and_reads_a_block() {
        let mut device = device(UsbIdentity { offers: Offers::Bot, ..UsbIdentity::default() });
        device.receive(1, BOT_OUT, 0, command_wrapper(7, 512, false, &WRITE));
        device.receive(2, BOT_OUT, 0, vec![0xa5; 512]);
        device.want(3, BOT_IN, 0, 13);
        let status = |tag: u8| [b"USBS".as_slice(), &[tag, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
        assert_eq!(data(&mut device), [(3, status(7))]);
        device.receive(4, BOT_OUT, 0, command_wrapper(8, 512, true, &READ));
        device.want(5, BOT_IN, 0, 512);
        device.want(6, BOT_IN, 0, 13);
        assert_eq!(data(&mut device), [(5, vec![0xa5; 512]), (6, status(8))]);
    }

    #[test]
    fn bulk_only_tells_of_a_failed_command_and_gives_its_sense_data_once() {
        let mut device = device(UsbIdentity { offers: Offers::Bot, ..UsbIdentity::default() });
        device.receive(1, BOT_OUT, 0, command_wrapper(1, 512, true, &[0x28, 0, 0xff, 0, 0, 0, 0, 0, 1]));
        device.want(2, BOT_IN, 0, 512);
        device.want(3, BOT_IN, 0, 13);
        let answers = data(&mut device);
        // Nothing of 512 bytes came, and the status is 1.
        assert_eq!((answers[0].1.len(), &answers[1].1[8..]), (0, &[0, 2, 0, 0, 1][..]));
        for expected in [5, 0] {
            device.receive(4, BOT_OUT, 0, command_wrapper(2, 18, true, &[3, 0, 0, 0, 18, 0]));
            device.want(5, BOT_IN, 0, 18);
            device.want(6, BOT_IN, 0, 13);
            assert_eq!(data(&mut device)[0].1[2], expected);
        }
    }

    #[test]
    fn uas_with_streams_answers_on_the_stream_of_each_tag() {
        let mut device = device(UsbIdentity::default());
        assert!(device.choose(1) && device.is_uas() && !device.choose(2));
        device.receive(1, UAS_COMMAND, 0, command_unit(5, &WRITE));
        device.receive(2, UAS_OUT, 5, vec![0x5a; 512]);
        device.receive(3, UAS_COMMAND, 0, command_unit(6, &[0x12, 0, 0, 0, 36, 0]));
        device.want(4, UAS_STATUS, 6, 512);
        device.want(5, UAS_STATUS, 5, 512);
        device.want(6, UAS_IN, 6, 36);
        let mut answers = data(&mut device);
        answers.sort();
        let ids: Vec<u64> = answers.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [4, 5, 6]);
        assert_eq!((answers[1].1[0], answers[1].1[3], answers[1].1[6]), (3, 5, 0));
        assert_eq!(answers[2].1.len(), 36);
        device.receive(7, UAS_COMMAND, 0, command_unit(5, &READ));
        device.want(8, UAS_IN, 5, 512);
        assert_eq!(data(&mut device), [(8, vec![0x5a; 512])]);
    }

    #[test]
    fn uas_without_streams_says_who_may_send_and_who_will_be_sent_to() {
        let mut device = device(UsbIdentity { speed: Speed::High, ..UsbIdentity::default() });
        assert!(device.choose(1));
        for tag in [1, 2] {
            device.receive(1, UAS_COMMAND, 0, command_unit(tag, &WRITE));
        }
        (10..16).for_each(|id| device.want(id, UAS_STATUS, 0, 512));
        let kinds = |device: &mut Device| -> Vec<(u8, u8)> { data(device).iter().map(|(_, u)| (u[0], u[3])).collect() };
        assert_eq!(kinds(&mut device), [(7, 1)]);
        device.receive(2, UAS_OUT, 0, vec![1; 512]);
        assert_eq!(kinds(&mut device), [(7, 2), (3, 1)]);
        device.receive(3, UAS_OUT, 0, vec![2; 512]);
        assert_eq!(kinds(&mut device), [(3, 2)]);
        device.receive(4, UAS_COMMAND, 0, command_unit(3, &READ));
        assert_eq!(kinds(&mut device), [(6, 3)]);
        device.want(20, UAS_IN, 0, 512);
        let answers = data(&mut device);
        assert_eq!((answers[0].1[0], answers[1].1[0]), (2, 3));
    }

    #[test]
    fn a_disk_that_hangs_answers_nothing_and_a_reset_alone_does_not_wake_it() {
        for setting in [0, 1] {
            let mut device = device(UsbIdentity::default());
            assert!(device.choose(setting));
            lock(&device.medium).behaviour.hangs_after = Some(0);
            for _ in 0..2 {
                if setting == 0 {
                    device.receive(1, BOT_OUT, 0, command_wrapper(1, 36, true, &[0x12, 0, 0, 0, 36, 0]));
                } else {
                    device.receive(1, UAS_COMMAND, 0, command_unit(1, &[0x12, 0, 0, 0, 36, 0]));
                }
                device.want(2, 0x81, setting.into(), 36);
                assert!(data(&mut device).is_empty());
                device.reset();
                assert!(device.choose(setting));
            }
        }
    }

    #[test]
    fn a_write_that_is_held_is_carried_out_after_a_later_one_unless_a_reset_drops_it() {
        for (is_reset, expected) in [(false, 1), (true, 2)] {
            let mut device = device(UsbIdentity::default());
            assert!(device.choose(1));
            lock(&device.medium).behaviour.uas_faults = vec![UasFault::HoldWrite];
            device.receive(1, UAS_COMMAND, 0, command_unit(5, &WRITE));
            device.receive(2, UAS_OUT, 5, vec![1; 512]);
            device.want(3, UAS_STATUS, 5, 512);
            assert!(data(&mut device).is_empty(), "it is not answered");
            if is_reset {
                device.reset();
            }
            // What a driver does that takes over.
            assert!(device.choose(0) && device.choose(1));
            device.receive(4, UAS_COMMAND, 0, command_unit(5, &WRITE));
            device.receive(5, UAS_OUT, 5, vec![2; 512]);
            device.want(6, UAS_STATUS, 5, 512);
            assert_eq!(data(&mut device).len(), 1);
            lock(&device.medium).behaviour.carries_out_held = true;
            device.receive(7, UAS_COMMAND, 0, command_unit(6, &READ));
            device.want(8, UAS_IN, 6, 512);
            assert_eq!(data(&mut device), [(8, vec![expected; 512])], "reset: {is_reset}");
        }
    }

    #[test]
    fn control_requests_are_cut_to_the_length_that_was_asked() {
        let mut device = device(UsbIdentity::default());
        assert_eq!(device.control([0x80, 6, 0, 1, 0, 0, 8, 0]).map(|answer| answer.len()), Some(8));
        assert_eq!(device.control([0x80, 6, 3, 3, 9, 4, 255, 0]), device.usb.string(3));
        assert_eq!(device.control([0x80, 6, 9, 3, 9, 4, 255, 0]), None);
        assert_eq!(device.control([1, 11, 5, 0, 0, 0, 0, 0]), None);
    }
}
