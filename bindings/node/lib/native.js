'use strict';
// Loads the compiled half: one that was built on this machine, or the one that came with the package.
//
// Every path is written out, because bundlers (ncc, esbuild, webpack, pkg) find files by reading `require('…')` and
// cannot follow a computed path; a path that does not exist must stand in a `try` block, or they refuse it. On Linux
// both C libraries are tried: the binary for the other one does not load, and trying is faster than asking Node
// which one is in use, which took 25 ms.

function load(failures) {
  try { return require('../build/trueio_direct.node'); } catch (failure) { failures.push(failure); }
  if (process.platform === 'linux' && process.arch === 'x64') {
    try { return require('../prebuilds/linux-x64-gnu/trueio_direct.node'); } catch (failure) { failures.push(failure); }
    try { return require('../prebuilds/linux-x64-musl/trueio_direct.node'); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'linux' && process.arch === 'arm64') {
    try { return require('../prebuilds/linux-arm64-gnu/trueio_direct.node'); } catch (failure) { failures.push(failure); }
    try { return require('../prebuilds/linux-arm64-musl/trueio_direct.node'); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'linux' && process.arch === 'arm') {
    try { return require('../prebuilds/linux-arm-gnu/trueio_direct.node'); } catch (failure) { failures.push(failure); }
    try { return require('../prebuilds/linux-arm-musl/trueio_direct.node'); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'darwin' && process.arch === 'x64') {
    try { return require('../prebuilds/darwin-x64/trueio_direct.node'); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'darwin' && process.arch === 'arm64') {
    try { return require('../prebuilds/darwin-arm64/trueio_direct.node'); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'freebsd' && process.arch === 'x64') {
    try { return require('../prebuilds/freebsd-x64/trueio_direct.node'); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'win32' && process.arch === 'x64') {
    try { return require('../prebuilds/win32-x64/trueio_direct.node'); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'win32' && process.arch === 'arm64') {
    try { return require('../prebuilds/win32-arm64/trueio_direct.node'); } catch (failure) { failures.push(failure); }
  }
  return undefined;
}

const failures = [];
const native = load(failures);
if (native === undefined) throw noBinary(failures);
module.exports = native;

/** Returns the error for a system without a binary, or with binaries that do not load. */
function noBinary(failures) {
  const { platformName } = require('./platform');
  // A file that is missing is no news; one that is there and does not load is the reason.
  const reasons = failures.filter(({ code }) => code !== 'MODULE_NOT_FOUND').map(({ message }) => message);
  const error = new Error(
    reasons.length > 0
      ? `@trueio/direct-io has a binary for ${platformName()}, and it does not load: ${reasons.join('; ')}`
      : `@trueio/direct-io has no compiled binary for ${platformName()}. Run \`node install.js\` in its folder: ` +
        'it builds one if cargo (https://rustup.rs) is installed.'
  );
  return Object.assign(error, { code: 'ERR_TRUEIO_NO_BINARY' });
}
