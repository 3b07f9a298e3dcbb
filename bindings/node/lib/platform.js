'use strict';
// What the compiled half for the running program is called.

const path = require('path');

const ROOT = path.join(__dirname, '..');

/** Returns the C library of a Linux: '-gnu' or '-musl'; '' elsewhere. Slow: Node writes a report, which names glibc. */
function libc() {
  if (process.platform !== 'linux') return '';
  const before = process.report.excludeNetwork;
  // Without this the report looks up the names of all network peers.
  process.report.excludeNetwork = true;
  const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
  process.report.excludeNetwork = before;
  return isGlibc ? '-gnu' : '-musl';
}

/** The end of the name of the package with the binary for the running program, such as `linux-x64-gnu`. */
function platformName() {
  return `${process.platform}-${process.arch}${libc()}`;
}

module.exports = { ROOT, platformName };
