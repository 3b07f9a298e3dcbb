'use strict';
// Refuses libraries that need a glibc newer than the one that prebuilt binaries and wheels promise (2.17: manylinux2014).
//
//   node scripts/glibc.js FILE…        # .node and .so files
//
// It reads the versions that an ELF file demands of its libraries (section `.gnu.version_r`), and not the texts in it: a version may
// be mentioned and not needed. A library for musl demands none.
//
// Cannot see: a function that is looked up when the program runs.
//
// Source: <https://refspecs.linuxfoundation.org/LSB_5.0.0/LSB-Core-generic/LSB-Core-generic/symversion.html>.

const fs = require('fs');

const NEWEST_MINOR = 17;
const SHT_GNU_VERNEED = 0x6ffffffe;
const SHT_DYNAMIC = 6;
const DT_NEEDED = 1n;

/** Reads the sections of a little-endian ELF file of 32 or 64 bits. */
function sections(bytes) {
  if (bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[5] !== 1) throw new Error('not a little-endian ELF file');
  const is64 = bytes[4] === 2;
  const word = (at) => (is64 ? Number(bytes.readBigUInt64LE(at)) : bytes.readUInt32LE(at));
  const [start, size, count] = is64
    ? [word(0x28), bytes.readUInt16LE(0x3a), bytes.readUInt16LE(0x3c)]
    : [word(0x20), bytes.readUInt16LE(0x2e), bytes.readUInt16LE(0x30)];
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * size;
    return {
      type: bytes.readUInt32LE(at + 4),
      offset: word(at + (is64 ? 0x18 : 0x10)),
      size: word(at + (is64 ? 0x20 : 0x14)),
      link: bytes.readUInt32LE(at + (is64 ? 0x28 : 0x18)),
      is64,
    };
  });
}

const text = (bytes, at) => bytes.toString('latin1', at, bytes.indexOf(0, at));

/** Returns the versions that the file demands, such as `GLIBC_2.17`. */
function neededVersions(bytes) {
  const all = sections(bytes);
  const versions = new Set();
  for (const section of all.filter(({ type }) => type === SHT_GNU_VERNEED)) {
    const names = all[section.link].offset;
    for (let at = section.offset; ; at += bytes.readUInt32LE(at + 12)) {
      const count = bytes.readUInt16LE(at + 2);
      let version = at + bytes.readUInt32LE(at + 8);
      for (let index = 0; index < count; index += 1) {
        versions.add(text(bytes, names + bytes.readUInt32LE(version + 8)));
        version += bytes.readUInt32LE(version + 12);
      }
      if (bytes.readUInt32LE(at + 12) === 0) break;
    }
  }
  return [...versions].sort();
}

/** Returns the libraries that the file is linked with. */
function neededLibraries(bytes) {
  const all = sections(bytes);
  return all.filter(({ type }) => type === SHT_DYNAMIC).flatMap(({ offset, size, link, is64 }) => {
    const step = is64 ? 16 : 8;
    const number = (at) => (is64 ? bytes.readBigUInt64LE(at) : BigInt(bytes.readUInt32LE(at)));
    return Array.from({ length: size / step }, (_, index) => offset + index * step)
      .filter((at) => number(at) === DT_NEEDED)
      .map((at) => text(bytes, all[link].offset + Number(number(at + step / 2))));
  });
}

/** Throws unless `file` runs with glibc 2.17 or with musl; returns what it needs as a sentence. */
function refuseNewerGlibc(file) {
  const bytes = fs.readFileSync(file);
  const versions = neededVersions(bytes).filter((version) => version.startsWith('GLIBC_'));
  // musl has no versions; its library is called libc.so.
  if (versions.length === 0 && !neededLibraries(bytes).includes('libc.so.6')) return `${file}: no glibc`;
  // GLIBC_PRIVATE and others that are no numbers are never promised.
  const minors = versions.map((version) => Number(/^GLIBC_2\.(\d+)(?:\.\d+)?$/.exec(version)?.[1] ?? NaN));
  const tooNew = versions.filter((_, index) => !(minors[index] <= NEWEST_MINOR));
  if (tooNew.length > 0) throw new Error(`${file} needs ${tooNew.join(', ')}, and may need GLIBC_2.${NEWEST_MINOR} at most`);
  return `${file}: glibc 2.${Math.max(0, ...minors)}`;
}

if (require.main === module) {
  try {
    for (const file of process.argv.slice(2)) console.log(refuseNewerGlibc(file));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}

module.exports = { neededVersions, refuseNewerGlibc };
