//! Executes the SCSI commands of a simulated disk.
//!
//! Covers the commands that Linux sends to a USB disk, and `smartctl` through it. The layouts are those
//! of SPC-4 and SBC-3; unnamed fields are zero.
//!
//! Limits: no UNMAP, WRITE SAME or reservations, and one logical unit only.

use super::ata;
use super::command::{Direction, Identity, Outcome, padded};
use super::medium::Medium;

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A read or write: first block, blocks, whether it must reach the medium.
struct Transfer {
    first: u64,
    count: u64,
    is_fua: bool,
}

impl Transfer {
    /// From a command of 6, 10, 12 or 16 bytes.
    fn of(cdb: &[u8; 16]) -> Self {
        let is_fua = cdb[0] != 0x08 && cdb[1] & 8 != 0;
        let (first, count) = match cdb[0] >> 5 {
            0 => (number(&[cdb[1] & 31, cdb[2], cdb[3]]), if cdb[4] == 0 { 256 } else { cdb[4].into() }),
            1 => (number(&cdb[2..6]), number(&cdb[7..9])),
            5 => (number(&cdb[2..6]), number(&cdb[6..10])),
            _ => (number(&cdb[2..10]), number(&cdb[10..14])),
        };
        Self { first, count, is_fua }
    }
}

fn is_read(operation: u8) -> bool {
    matches!(operation, 0x08 | 0x28 | 0x88 | 0xa8)
}

fn is_write(operation: u8) -> bool {
    matches!(operation, 0x2a | 0x8a | 0xaa)
}

/// True if a command takes the disk's time.
pub(super) fn takes_time(cdb: &[u8; 16]) -> bool {
    is_read(cdb[0]) || is_write(cdb[0])
}

/// Returns the direction and length of a command's data, from its bytes alone.
pub(super) fn direction(cdb: &[u8; 16], block_bytes: usize) -> Direction {
    let bytes = |field: &[u8]| usize::try_from(number(field)).unwrap_or(usize::MAX);
    match cdb[0] {
        operation if is_read(operation) => Direction::In(Transfer::of(cdb).count as usize * block_bytes),
        operation if is_write(operation) => Direction::Out(Transfer::of(cdb).count as usize * block_bytes),
        // INQUIRY; REQUEST SENSE, MODE SENSE(6); MODE SENSE(10), LOG SENSE; READ CAPACITY(10).
        0x12 => Direction::In(bytes(&cdb[3..5])),
        0x03 | 0x1a => Direction::In(cdb[4].into()),
        0x5a | 0x4d => Direction::In(bytes(&cdb[7..9])),
        0x25 => Direction::In(8),
        // REPORT LUNS, MAINTENANCE IN; SERVICE ACTION IN(16).
        0xa0 | 0xa3 => Direction::In(bytes(&cdb[6..10])),
        0x9e => Direction::In(bytes(&cdb[10..14])),
        // WRITE SAME; UNMAP, MODE SELECT(10); MODE SELECT(6): taken and refused or ignored.
        0x41 | 0x93 => Direction::Out(block_bytes),
        0x42 | 0x55 => Direction::Out(bytes(&cdb[7..9])),
        0x15 => Direction::Out(cdb[4].into()),
        0x85 | 0xa1 => ata::direction(cdb),
        _ => Direction::None,
    }
}

/// Carries a command out. `out` is the data that came with it.
pub(super) fn execute(identity: &Identity, medium: &mut Medium, cdb: &[u8; 16], out: &[u8]) -> Outcome {
    let mut outcome = dispatch(identity, medium, cdb, out);
    if let Direction::In(length) = direction(cdb, medium.block_bytes()) {
        outcome.data.truncate(length);
    }
    outcome
}

fn dispatch(identity: &Identity, medium: &mut Medium, cdb: &[u8; 16], out: &[u8]) -> Outcome {
    match cdb[0] {
        // TEST UNIT READY, PREVENT REMOVAL, START STOP, VERIFY, MODE SELECT.
        0x00 | 0x1e | 0x1b | 0x2f | 0x15 | 0x55 => Outcome::good(Vec::new()),
        0x03 => Outcome::good(vec![0x70, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        0x12 if cdb[1] & 1 == 0 => Outcome::good(standard_inquiry(identity)),
        0x12 => vital_product_data(identity, medium, cdb[2]),
        0x1a | 0x5a => mode_sense(medium, cdb),
        0x25 => {
            let last = u32::try_from(medium.blocks() - 1).unwrap_or(u32::MAX);
            Outcome::good([last.to_be_bytes(), (medium.block_bytes() as u32).to_be_bytes()].concat())
        }
        0x9e if cdb[1] & 31 == 0x10 => {
            let mut data = (medium.blocks() - 1).to_be_bytes().to_vec();
            data.extend((medium.block_bytes() as u32).to_be_bytes());
            data.extend([0, identity.physical_exponent]);
            data.resize(32, 0);
            Outcome::good(data)
        }
        // One logical unit, number zero.
        0xa0 => Outcome::good(vec![0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        operation if is_read(operation) => {
            let Transfer { first, count, .. } = Transfer::of(cdb);
            medium.read(first, count).map_or_else(|failure| Outcome::of_failure(failure, false), Outcome::good)
        }
        operation if is_write(operation) => {
            let Transfer { first, count, is_fua } = Transfer::of(cdb);
            let Some(bytes) = out.get(..count as usize * medium.block_bytes()) else {
                // ABORTED COMMAND, DATA PHASE ERROR.
                return Outcome::check(0xb, 0x4b, 0);
            };
            match medium.write(first, bytes, is_fua) {
                Ok(()) => Outcome::good(Vec::new()),
                Err(failure) => Outcome::of_failure(failure, true),
            }
        }
        // SYNCHRONIZE CACHE(10) and (16).
        0x35 | 0x91 => {
            medium.flush();
            Outcome::good(Vec::new())
        }
        0x85 | 0xa1 => ata::execute(identity, medium, cdb),
        // ILLEGAL REQUEST, INVALID COMMAND OPERATION CODE.
        _ => Outcome::check(5, 0x20, 0),
    }
}

fn standard_inquiry(identity: &Identity) -> Vec<u8> {
    // A disk, SPC-4, 91 bytes more, tagged queuing.
    let mut data = vec![0, 0, 6, 2, 91, 0, 0, 2];
    data.extend(padded(&identity.vendor, 8));
    data.extend(padded(&identity.model, 16));
    data.extend(padded("0.1", 4));
    data.resize(96, 0);
    data
}

fn vital_product_data(identity: &Identity, medium: &Medium, page: u8) -> Outcome {
    let body = match page {
        0x00 => vec![0x00, 0x80, 0x83, 0x89, 0xb0, 0xb1, 0xb2],
        0x80 => identity.serial.clone().into_bytes(),
        0x83 => {
            // One NAA identifier, locally assigned: a hash (FNV-1a) of the serial number.
            let hash = identity
                .serial
                .bytes()
                .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            let mut body = vec![1, 3, 0, 8];
            body.extend((0x3000_0000_0000_0000 | hash >> 4).to_be_bytes());
            body
        }
        0x89 => ata::information(identity, medium),
        // Block limits: granularity of one block, transfers up to 2048 blocks.
        0xb0 => {
            let mut body = vec![0; 60];
            body[3] = 1;
            body[4..8].copy_from_slice(&2048u32.to_be_bytes());
            body
        }
        0xb1 => {
            let mut body = vec![0; 60];
            body[..2].copy_from_slice(&identity.rotation_rate.to_be_bytes());
            body
        }
        0xb2 => vec![0; 4],
        _ => return Outcome::invalid_field(),
    };
    let length = u16::try_from(body.len()).expect("a page is short").to_be_bytes();
    Outcome::good([&[0, page, length[0], length[1]], &body[..]].concat())
}

/// The caching page, which describes the write cache, and DPOFUA in the header.
fn mode_sense(medium: &Medium, cdb: &[u8; 16]) -> Outcome {
    let page = cdb[2] & 0x3f;
    if page != 8 && page != 0x3f {
        return Outcome::invalid_field();
    }
    let mut caching = vec![0; 20];
    caching[0] = 8;
    caching[1] = 18;
    caching[2] = if medium.behaviour.cache_blocks > 0 { 4 } else { 0 };
    const DPOFUA: u8 = 0x10;
    let length = caching.len() as u8;
    let header =
        if cdb[0] == 0x1a { vec![3 + length, 0, DPOFUA, 0] } else { vec![0, 6 + length, 0, DPOFUA, 0, 0, 0, 0] };
    Outcome::good([header, caching].concat())
}

#[cfg(test)]
mod tests {
    use super::super::command::{CHECK_CONDITION, GOOD};
    use super::super::medium::Behaviour;
    use super::*;

    fn run(medium: &mut Medium, cdb: &[u8], out: &[u8]) -> Outcome {
        let mut whole = [0; 16];
        whole[..cdb.len()].copy_from_slice(cdb);
        execute(&Identity::default(), medium, &whole, out)
    }

    fn medium() -> Medium {
        Medium::new(512, 1000, Behaviour::default())
    }

    #[test]
    fn a_written_block_is_read_back_by_commands_of_every_length() {
        let mut medium = medium();
        let block = vec![0xa5; 512];
        assert_eq!(run(&mut medium, &[0x2a, 0, 0, 0, 0, 9, 0, 0, 1], &block).status, GOOD);
        let reads: [&[u8]; 4] = [
            &[0x08, 0, 0, 9, 1],
            &[0x28, 0, 0, 0, 0, 9, 0, 0, 1],
            &[0xa8, 0, 0, 0, 0, 9, 0, 0, 0, 1],
            &[0x88, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1],
        ];
        for cdb in reads {
            assert_eq!(run(&mut medium, cdb, &[]), Outcome::good(block.clone()), "{cdb:02x?}");
        }
    }

    #[test]
    fn a_bad_block_is_a_medium_error_that_names_it() {
        let mut medium = medium();
        medium.behaviour.unreadable = Some(5 * 512..6 * 512);
        let outcome = run(&mut medium, &[0x28, 0, 0, 0, 0, 4, 0, 0, 4], &[]);
        assert_eq!((outcome.status, outcome.sense[2], outcome.sense[12]), (CHECK_CONDITION, 3, 0x11));
        assert_eq!((outcome.sense[0], &outcome.sense[3..7]), (0xf0, &[0, 0, 0, 5][..]));
    }

    #[test]
    fn the_write_cache_is_announced_only_if_there_is_one() {
        let mut medium = medium();
        let caching = |medium: &mut Medium| run(medium, &[0x1a, 0, 8, 0, 64], &[]).data[4 + 2] & 4;
        assert_eq!(caching(&mut medium), 4);
        medium.behaviour.cache_blocks = 0;
        assert_eq!(caching(&mut medium), 0);
    }

    #[test]
    fn an_unknown_command_or_page_is_an_illegal_request_and_short_buffers_are_honoured() {
        let mut medium = medium();
        assert_eq!(run(&mut medium, &[0xff], &[]).sense[2], 5);
        assert_eq!(run(&mut medium, &[0x12, 1, 0xc0, 0, 64], &[]).sense[2], 5);
        assert_eq!(run(&mut medium, &[0x12, 0, 0, 0, 36], &[]).data.len(), 36);
        assert_eq!(run(&mut medium, &[0x2a, 0, 0, 0, 0, 0, 0, 0, 2], &[0; 512]).sense[2], 0xb);
        assert_eq!(run(&mut medium, &[0x28, 0, 0, 0, 3, 0xe8, 0, 0, 1], &[]).sense[12], 0x21);
    }
}
