//! The checksums of verified blocks, each as 64 bits: of a longer one the first eight bytes.
//!
//! A truncated digest still distinguishes a changed block from the one that was written, except with probability 2^-64;
//! what a longer one costs to compute is paid in full.
//!
//! The crates choose at run time what the processor offers: CRC instructions and carry-less multiplication for CRCs of 32 and
//! 64 bits, AVX2 or Neon for XXH3, the SHA extensions. Instructions for 4 KiB: `cargo xtask gate`.

use sha2::Digest;
use std::hash::Hasher;
use trueio_model::Checksum;
use twox_hash::XxHash3_64;

/// Tables for 16 bytes at a time: 8 KiB and 4 KiB.
static CRC16: crc::Crc<u16, crc::Table<16>> = crc::Crc::<u16, crc::Table<16>>::new(&crc::CRC_16_ARC);
static CRC7: crc::Crc<u8, crc::Table<16>> = crc::Crc::<u8, crc::Table<16>>::new(&crc::CRC_7_MMC);

/// The checksum of the pieces, one after another.
pub(super) fn digest(kind: Checksum, pieces: [&[u8]; 2]) -> u64 {
    match kind {
        Checksum::Crc32c => u64::from(crc32c::crc32c_append(crc32c::crc32c(pieces[0]), pieces[1])),
        Checksum::Xxhash => {
            let mut hash = XxHash3_64::new();
            pieces.iter().for_each(|piece| hash.write(piece));
            hash.finish()
        }
        Checksum::Crc64 => {
            let mut sum = crc64fast::Digest::new();
            pieces.iter().for_each(|piece| sum.write(piece));
            sum.sum64()
        }
        Checksum::Crc32 => {
            let mut sum = crc32fast::Hasher::new();
            pieces.iter().for_each(|piece| sum.update(piece));
            u64::from(sum.finalize())
        }
        Checksum::Crc16 => {
            let mut sum = CRC16.digest();
            pieces.iter().for_each(|piece| sum.update(piece));
            u64::from(sum.finalize())
        }
        Checksum::Crc7 => {
            let mut sum = CRC7.digest();
            pieces.iter().for_each(|piece| sum.update(piece));
            u64::from(sum.finalize())
        }
        Checksum::Md5 => first_bytes::<md5::Md5>(pieces),
        Checksum::Sha1 => first_bytes::<sha1::Sha1>(pieces),
        Checksum::Sha256 => first_bytes::<sha2::Sha256>(pieces),
        Checksum::Sha512 => first_bytes::<sha2::Sha512>(pieces),
        Checksum::Sha3_224 => first_bytes::<sha3::Sha3_224>(pieces),
        Checksum::Sha3_256 => first_bytes::<sha3::Sha3_256>(pieces),
        Checksum::Sha3_384 => first_bytes::<sha3::Sha3_384>(pieces),
        Checksum::Sha3_512 => first_bytes::<sha3::Sha3_512>(pieces),
        Checksum::Meta | Checksum::Pattern | Checksum::PatternHdr | Checksum::Null => 0,
    }
}

fn first_bytes<D: Digest>(pieces: [&[u8]; 2]) -> u64 {
    let mut hash = D::new();
    pieces.iter().for_each(|piece| hash.update(piece));
    let digest = hash.finalize();
    u64::from_be_bytes(digest[..8].try_into().expect("a digest has at least eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: blocks that an earlier version wrote can be compared: XXH3 has the same value in every implementation.
    /// Method: another crate's value, at lengths around those at which the algorithm changes.
    #[test]
    fn xxh3_has_the_value_of_another_implementation() {
        let bytes: Vec<u8> = (0..10_000_u32).map(|i| (i * 7 + i / 251) as u8).collect();
        for length in (0..600).chain([1_023, 1_024, 1_025, 4_048, 8_191, 10_000]) {
            let (one, other) = bytes[..length].split_at(length.min(40));
            let expected = xxhash_rust::xxh3::xxh3_64(&bytes[..length]);
            assert_eq!(digest(Checksum::Xxhash, [one, other]), expected, "{length} bytes");
        }
    }

    /// Goal: each name computes its checksum.
    /// Method: the digests of `123456789` that the standards and catalogues give (check values of the CRC catalogue;
    /// RFC 1321, FIPS 180-4 and FIPS 202 as computed by `md5sum`, `sha*sum` and OpenSSL).
    #[test]
    fn every_checksum_gives_its_catalogues_check_value() {
        let cases = [
            (Checksum::Crc32c, 0xe306_9283),
            (Checksum::Crc32, 0xcbf4_3926),
            (Checksum::Crc16, 0xbb3d),
            (Checksum::Crc7, 0x75),
            (Checksum::Crc64, 0x995d_c9bb_df19_39fa),
            (Checksum::Md5, 0x25f9_e794_323b_4538),
            (Checksum::Sha1, 0xf7c3_bc1d_808e_0473),
            (Checksum::Sha256, 0x15e2_b0d3_c338_91eb),
            (Checksum::Sha512, 0xd9e6_762d_d1c8_eaf6),
            (Checksum::Sha3_224, 0x5795_c3d6_28fd_638c),
            (Checksum::Sha3_256, 0x87cd_084d_190e_436f),
            (Checksum::Sha3_384, 0x8b90_ede4_d095_409f),
            (Checksum::Sha3_512, 0xe1e4_4d20_556e_97a1),
        ];
        for (kind, expected) in cases {
            assert_eq!(digest(kind, [b"1234", b"56789"]), expected, "{}", kind.name());
        }
    }
}
