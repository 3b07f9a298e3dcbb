//! ATA commands inside SCSI commands (SAT): IDENTIFY and the SMART data that `smartctl` reads.
//!
//! Source: ATA8-ACS for the words of IDENTIFY, SAT-3 for ATA PASS-THROUGH(12) and (16).
//!
//! Cannot do: transfer data by ATA commands other than these.

use super::command::{CHECK_CONDITION, Direction, Identity, Outcome, padded};
use super::medium::Medium;

/// The parts of the pass-through commands, which lie elsewhere in each.
struct Command {
    protocol: u8,
    flags: u8,
    feature: u8,
    count: u8,
    command: u8,
}

impl Command {
    fn of(cdb: &[u8; 16]) -> Self {
        let at = |long: usize, short: usize| if cdb[0] == 0x85 { cdb[long] } else { cdb[short] };
        let protocol = cdb[1] >> 1 & 15;
        Self { protocol, flags: cdb[2], feature: at(4, 3), count: at(6, 4), command: at(14, 9) }
    }
}

/// Which way the data goes: PIO in (4), PIO out (5), DMA (6).
pub(super) fn direction(cdb: &[u8; 16]) -> Direction {
    let command = Command::of(cdb);
    let count = match command.flags & 3 {
        0 => 0,
        1 => command.feature,
        _ => command.count,
    };
    let length = usize::from(count) * if command.flags & 4 != 0 { 512 } else { 1 };
    match command.protocol {
        4 | 6 if command.flags & 8 != 0 => Direction::In(length),
        5 | 6 => Direction::Out(length),
        _ => Direction::None,
    }
}

/// Carries a pass-through command out.
pub(super) fn execute(identity: &Identity, medium: &Medium, cdb: &[u8; 16]) -> Outcome {
    let command = Command::of(cdb);
    let data = match (command.command, command.feature) {
        // IDENTIFY DEVICE; SMART READ DATA and READ THRESHOLDS.
        (0xec, _) => identify(identity, medium),
        (0xb0, 0xd0) => smart(|id, raw| [&[id, 0x32, 0, 100, 100][..], &raw.to_le_bytes()[..6], &[0]].concat()),
        (0xb0, 0xd1) => smart(|id, _| [&[id][..], &[0; 11]].concat()),
        // SMART RETURN STATUS, ENABLE; CHECK POWER MODE, FLUSH CACHE.
        (0xb0, 0xda | 0xd8) | (0xe5 | 0xe7 | 0xea, _) => Vec::new(),
        _ => return Outcome::invalid_field(),
    };
    if command.flags & 0x20 == 0 {
        return Outcome::good(data);
    }
    // CK_COND: the registers are asked for. Descriptor sense with an ATA status return descriptor;
    // 4Fh and C2h in LBA mid and high mean that SMART is well.
    let mut sense = vec![0; 22];
    (sense[0], sense[1], sense[3], sense[7]) = (0x72, 1, 0x1d, 14);
    (sense[8], sense[9], sense[17], sense[19], sense[21]) = (9, 12, 0x4f, 0xc2, 0x50);
    Outcome { status: CHECK_CONDITION, data, sense }
}

/// Power-on hours, power cycles, temperature, CRC errors, each made by `entry` of twelve bytes.
fn smart(entry: impl Fn(u8, u64) -> Vec<u8>) -> Vec<u8> {
    let mut data = vec![1, 0];
    for (id, raw) in [(9, 1234), (12, 42), (194, 33), (199, 0)] {
        data.extend(entry(id, raw));
    }
    data.resize(512, 0);
    // The sum of all bytes is zero.
    data[511] = data.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
    data
}

/// The 512 bytes of IDENTIFY DEVICE.
fn identify(identity: &Identity, medium: &Medium) -> Vec<u8> {
    let mut words = [0u16; 256];
    let mut string = |first: usize, count: usize, text: &str| {
        for (index, pair) in padded(text, count * 2).chunks_exact(2).take(count).enumerate() {
            words[first + index] = u16::from_be_bytes([pair[0], pair[1]]);
        }
    };
    string(10, 10, &identity.serial);
    string(23, 4, "0.1");
    string(27, 20, &identity.model);
    let blocks = medium.blocks();
    let few = blocks.min(0x0fff_ffff);
    (words[0], words[49], words[53]) = (0x0040, 0x0f00, 6);
    (words[60], words[61]) = (few as u16, (few >> 16) as u16);
    (words[76], words[80]) = (0x010e, 0x07f0);
    // SMART and the write cache: supported (82) and enabled (85).
    let cache = if medium.behaviour.cache_blocks > 0 { 0x20 } else { 0 };
    (words[82], words[83], words[84]) = (0x0021, 0x7400, 0x4023);
    (words[85], words[86], words[87]) = (0x0001 | cache, 0x3400, 0x4023);
    (words[100], words[101]) = (blocks as u16, (blocks >> 16) as u16);
    let exponent = u16::from(identity.physical_exponent);
    words[106] = 0x4000 | if exponent > 0 { 0x2000 | exponent } else { 0 };
    words[217] = identity.rotation_rate;
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// VPD page 89h: the translator's name, and IDENTIFY.
pub(super) fn information(identity: &Identity, medium: &Medium) -> Vec<u8> {
    let mut body = vec![0; 568];
    body[4..12].copy_from_slice(b"TRUEIO  ");
    body[12..28].copy_from_slice(&padded("SIMULATED SAT", 16));
    body[28..32].copy_from_slice(b"0.1 ");
    body[52] = 0xec;
    body[56..].copy_from_slice(&identify(identity, medium));
    body
}

#[cfg(test)]
mod tests {
    use super::super::medium::Behaviour;
    use super::*;

    #[test]
    fn identify_is_512_bytes_by_both_commands_and_holds_the_serial_number() {
        let medium = Medium::new(512, 1000, Behaviour::default());
        let identity = Identity::default();
        let mut long = [0; 16];
        (long[0], long[1], long[2], long[6], long[14]) = (0x85, 4 << 1, 0x0e, 1, 0xec);
        let mut short = [0; 16];
        (short[0], short[1], short[2], short[4], short[9]) = (0xa1, 4 << 1, 0x0e, 1, 0xec);
        for cdb in [long, short] {
            assert_eq!(direction(&cdb), Direction::In(512));
            let data = execute(&identity, &medium, &cdb).data;
            let serial: Vec<u8> = data[20..40].chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect();
            assert_eq!((data.len(), &serial[..]), (512, &padded(&identity.serial, 20)[..]));
        }
    }

    #[test]
    fn smart_data_sum_to_zero() {
        let medium = Medium::new(512, 1000, Behaviour::default());
        for feature in [0xd0, 0xd1] {
            let mut cdb = [0; 16];
            (cdb[0], cdb[1], cdb[2], cdb[4], cdb[6], cdb[14]) = (0x85, 4 << 1, 0x0e, feature, 1, 0xb0);
            let data = execute(&Identity::default(), &medium, &cdb).data;
            assert_eq!((data.len(), data.iter().fold(0u8, |a, b| a.wrapping_add(*b))), (512, 0));
        }
    }
}
