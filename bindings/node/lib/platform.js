'use strict';
// What the compiled half for the running program is called, and where it may lie.

const fs = require('fs');
const path = require('path');

const ROOT = path.join(__dirname, '..');

/** The C library of a Linux: '-gnu' or '-musl'; '' elsewhere. Node's report names glibc if it is there. */
function libc() {
  if (process.platform !== 'linux') return '';
  const before = process.report.excludeNetwork;
  // Without this the report looks up the names of all network peers.
  process.report.excludeNetwork = true;
  const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
  process.report.excludeNetwork = before;
  return isGlibc ? '-gnu' : '-musl';
}

/** The name of the folder in `prebuilds` for the running program, such as `linux-x64-gnu`. */
function platformName() {
  return `${process.platform}-${process.arch}${libc()}`;
}

/** Where a compiled half may lie, the best first. */
function candidates() {
  const built = path.join(ROOT, 'build', 'trueio_direct.node');
  if (fs.existsSync(built)) return [built];
  return [path.join(ROOT, 'prebuilds', platformName(), 'trueio_direct.node')];
}

module.exports = { ROOT, platformName, candidates };
