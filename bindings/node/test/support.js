'use strict';
// What several tests need: scratch folders, loop devices, upstream's library, and an honest way to skip.

const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const PACKAGE = path.join(__dirname, '..');
const UPSTREAM = path.join(__dirname, 'node_modules', 'ronomon-direct-io');

/** A folder that is removed after the test. It lies beside the build, on a real filesystem and not on tmpfs. */
function scratch(t, parent = path.join(PACKAGE, 'build')) {
  fs.mkdirSync(parent, { recursive: true });
  const folder = fs.mkdtempSync(path.join(parent, 'test-'));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Skips the test with a reason, or fails it if TRUEIO_REQUIRE lists the need. True: the test must return. */
function lacks(t, need, reason) {
  if (!reason) return false;
  if ((process.env.TRUEIO_REQUIRE ?? '').split(',').includes(need)) {
    throw new Error(`TRUEIO_REQUIRE lists ${need}, and it cannot be had: ${reason}`);
  }
  t.skip(`${need}: ${reason}`);
  return true;
}

/** What keeps loop devices from being had here; undefined: nothing. */
function loopReason() {
  if (process.getuid?.() !== 0) return 'this user is not root';
  try {
    fs.closeSync(fs.openSync('/dev/loop-control', 'r+'));
  } catch (error) {
    return error.message;
  }
  return spawnSync('losetup', ['--version']).error?.message;
}

/** A loop device of zeros over a file in `folder`; detached after the test. */
function loopDevice(t, folder, sizeBytes, sectorBytes = 512) {
  const file = path.join(folder, `disk-${sectorBytes}`);
  fs.writeFileSync(file, '');
  fs.truncateSync(file, sizeBytes);
  const args = ['--find', '--show', '--sector-size', String(sectorBytes), file];
  const device = execFileSync('losetup', args, { encoding: 'utf8' }).trim();
  t.after(() => execFileSync('losetup', ['--detach', device]));
  return device;
}

/** Where Node's C headers are; undefined: not on this machine. */
function headers() {
  const prefix = path.join(path.dirname(process.execPath), '..');
  return ['include/node', 'include/nodejs/src']
    .map((folder) => path.join(prefix, folder))
    .find((folder) => fs.existsSync(path.join(folder, 'node_api.h')) && fs.existsSync(path.join(folder, 'uv.h')));
}

/**
 * Compiles upstream's binding.c as published, if that has not been done; why it cannot be, if it cannot.
 *
 * With `cc` and not with node-gyp: it is one file, and cc is there wherever Rust links.
 */
function upstreamReason() {
  const binding = path.join(UPSTREAM, 'binding.node');
  if (fs.existsSync(binding)) return undefined;
  if (!fs.existsSync(path.join(UPSTREAM, 'binding.c'))) return 'run `npm ci --ignore-scripts` in bindings/node/test';
  const include = headers();
  if (!include) return `no node_api.h and uv.h beside ${process.execPath}`;
  // Tests run in parallel: the last one wins, with the same result.
  const beside = `${binding}.${process.pid}`;
  const args = ['-shared', '-fPIC', '-O2', `-I${include}`, path.join(UPSTREAM, 'binding.c'), '-o', beside];
  const result = spawnSync('cc', [...args, '-DNODE_GYP_MODULE_NAME=binding'], { encoding: 'utf8' });
  if (result.error || result.status !== 0) return `cc: ${result.error?.message ?? result.stderr}`;
  fs.renameSync(beside, binding);
  return undefined;
}

/** Runs a script in a node of its own. */
function runNode(args, options = {}) {
  return spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 120_000, ...options });
}

/** The address of a buffer's first byte. */
function addressOf(buffer) {
  return require('../lib/native').addressOf(buffer);
}

module.exports = {
  PACKAGE, UPSTREAM, addressOf, lacks, loopDevice, loopReason, runNode, scratch, upstreamReason, isLinux: os.platform() === 'linux',
};
