'use strict';
// The ten names of `@ronomon/direct-io` 3.0.1: the same argument checks in the same order with the same
// messages, callbacks at the same time with the same arguments. On purpose it differs in this:
//
// - Errors also carry `code`, and `errno` and `syscall` where a system call failed.
// - getBlockDevice describes disks that have no serial number (loop devices, virtio, device-mapper);
//   upstream fails on them. Their `serialNumber` is ''.
// - getAlignedBuffer works where buffers over foreign memory are forbidden (Electron since 21).
// - O_DIRECT has the value of this system's own headers, on every processor.
//
// Everything else that the library can do is in `promises.js`, also reachable as `.promises` here.
//
// Source: binding.c of @ronomon/direct-io 3.0.1.

// The compiled half is loaded here and not in a file of its own: each file costs `require` about half a millisecond.
// It is a package of its own for each platform, of which npm installs the one that fits. Every name is written out, because bundlers (ncc,
// esbuild, webpack, rollup, pkg) find files by reading `require('…')` and cannot follow a computed name; a package that is not installed
// must stand in a `try` block, or they refuse it. On Linux both C libraries are tried: the binary for the other one does not load, and
// trying is faster than asking Node which one is in use, which took 25 ms.

function load(failures) {
  // For programs where no package is: single executable applications, and bundles that take the binary along in another way.
  if (process.env.TRUEIO_DIRECT_BINARY) return loadFile(process.env.TRUEIO_DIRECT_BINARY);
  if (process.platform === 'linux' && process.arch === 'x64') {
    try { return exported(require('@trueio/direct-io-linux-x64-gnu')); } catch (failure) { failures.push(failure); }
    try { return exported(require('@trueio/direct-io-linux-x64-musl')); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'linux' && process.arch === 'arm64') {
    try { return exported(require('@trueio/direct-io-linux-arm64-gnu')); } catch (failure) { failures.push(failure); }
    try { return exported(require('@trueio/direct-io-linux-arm64-musl')); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'linux' && process.arch === 'arm') {
    try { return exported(require('@trueio/direct-io-linux-arm-gnu')); } catch (failure) { failures.push(failure); }
    try { return exported(require('@trueio/direct-io-linux-arm-musl')); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'darwin' && process.arch === 'x64') {
    try { return exported(require('@trueio/direct-io-darwin-x64')); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'darwin' && process.arch === 'arm64') {
    try { return exported(require('@trueio/direct-io-darwin-arm64')); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'freebsd' && process.arch === 'x64') {
    try { return exported(require('@trueio/direct-io-freebsd-x64')); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'win32' && process.arch === 'x64') {
    try { return exported(require('@trueio/direct-io-win32-x64')); } catch (failure) { failures.push(failure); }
  }
  if (process.platform === 'win32' && process.arch === 'arm64') {
    try { return exported(require('@trueio/direct-io-win32-arm64')); } catch (failure) { failures.push(failure); }
  }
  // Built by install.js or scripts/build.js, where none of those exists or loads.
  try { return exported(require('./build/trueio_direct.node')); } catch (failure) { failures.push(failure); }
  return undefined;
}

/** What a binary exports; bundlers that make ES modules wrap it. */
function exported(found) {
  return found.default ?? found;
}

/** Not by `require`, which takes no files in a single executable application. */
function loadFile(file) {
  const loaded = { exports: {} };
  try {
    process.dlopen(loaded, require('path').resolve(file));
  } catch (cause) {
    const error = new Error(`TRUEIO_DIRECT_BINARY is ${file}, which does not load: ${cause.message}`, { cause });
    throw Object.assign(error, { code: 'ERR_TRUEIO_NO_BINARY' });
  }
  return loaded.exports;
}

const failures = [];
const native = load(failures);
if (native === undefined) throw noBinary(failures);

const flags = native.openFlags();

// In upstream's order, which `Object.keys` shows.
exports.O_DIRECT = flags.O_DIRECT;
exports.O_DSYNC = flags.O_DSYNC;
exports.O_EXCL = flags.O_EXCL;
exports.O_EXLOCK = flags.O_EXLOCK;
exports.O_SYNC = flags.O_SYNC;

let aligned;

exports.getAlignedBuffer = anonymous(function () {
  // Not by destructuring, which takes as long as a small allocation.
  const size = arguments[0];
  const alignment = arguments[1];
  if (arguments.length !== 2 || !isInt(size) || !isInt(alignment)) {
    throw refused('bad arguments, expected: (size, alignment)');
  }
  if (size === 0) throw refused('size must not be 0');
  if (alignment === 0) throw refused('alignment must not be 0');
  if ((alignment & (alignment - 1)) !== 0) throw refused('alignment must be a power of 2');
  if (alignment < 8) throw refused('alignment must be at least 8 bytes');
  if (alignment > 4194304) throw refused('alignment must be at most 4194304 bytes');
  try {
    // Loaded with the first call, as every file that `require` of this package does not need: each costs half a millisecond.
    aligned ??= require('./lib/aligned');
    return aligned.allocate(native, size, alignment);
  } catch (cause) {
    throw Object.assign(new Error('insufficient memory', { cause }), { code: 'ENOMEM' });
  }
});

exports.getBlockDevice = anonymous(function () {
  const [fd, callback] = arguments;
  if (arguments.length !== 2 || !isInt(fd) || typeof callback !== 'function') {
    throw refused('bad arguments, expected: (fd, callback)');
  }
  native.getBlockDevice(fd, (failure, device) => {
    if (failure) callback.call(globalThis, errorOf(failure));
    else callback.call(globalThis, undefined, device);
  });
});

exports.setF_NOCACHE = switching(process.platform === 'darwin', 'only supported on mac os', native.setNoCache);
exports.setFlock = switching(process.platform !== 'win32', 'not supported on windows', native.setFlock);
exports.setFSCTL_LOCK_VOLUME = switching(process.platform === 'win32', 'only supported on windows', native.setVolumeLock);

// For lib/native.js.
Object.defineProperty(exports, Symbol.for('@trueio/direct-io native'), { value: native });

// Not among the enumerable names, so that those stay upstream's. Under another name than `exports`, because
// import statements find the names of a CommonJS module by reading its text, and would read this as "not exported".
const names = exports;
Object.defineProperty(names, 'promises', { configurable: true, get: () => require('./promises') });
// Never runs: for that reader.
if (false) exports.promises = undefined;

/** Returns a function of (fd, value=0/1, callback) that throws `elsewhere` on systems that do not have it. */
function switching(isHere, elsewhere, start) {
  return anonymous(function () {
    if (!isHere) throw Object.assign(new Error(elsewhere), { code: 'ENOTSUP' });
    const [fd, value, callback] = arguments;
    if (arguments.length !== 3 || !isInt(fd) || !isInt(value) || typeof callback !== 'function' || value > 1) {
      throw refused('bad arguments, expected: (fd, value=0/1, callback)');
    }
    start(fd, value === 1, (failure) => {
      callback.call(globalThis, failure ? errorOf(failure) : undefined);
    });
  });
}

function errorOf(failure) {
  return require('./lib/errors').errorOf(failure);
}

/** What upstream takes for an integer: 0 to 2^31 - 1, as a number. */
function isInt(value) {
  return typeof value === 'number' && value >= 0 && value <= 2147483647 && Number.isInteger(value);
}

function refused(message) {
  return Object.assign(new Error(message), { code: 'ERR_INVALID_ARG_VALUE' });
}

/** Passing a function as an argument keeps JavaScript from naming it: upstream's have no names. */
function anonymous(body) {
  return body;
}

/** Returns the error for a system without a binary, or with binaries that do not load. */
function noBinary(failures) {
  const { platformName } = require('./lib/platform');
  // A package that is missing is no news; one that is there and does not load is the reason.
  const reasons = failures.filter(({ code }) => code !== 'MODULE_NOT_FOUND').map(({ message }) => message);
  const error = new Error(
    reasons.length > 0
      ? `@trueio/direct-io has a binary for ${platformName()}, and it does not load: ${reasons.join('; ')}`
      : `@trueio/direct-io has no compiled binary for ${platformName()}. Its binaries are optional dependencies: install it without ` +
        '`--omit=optional`. Where there is none for your system, run `node install.js` in its folder: it builds one if cargo (https://rustup.rs) ' +
        'is installed. TRUEIO_DIRECT_BINARY names a binary at another place.'
  );
  return Object.assign(error, { code: 'ERR_TRUEIO_NO_BINARY' });
}
