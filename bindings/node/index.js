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

const native = require('./lib/native');
const { allocate } = require('./lib/aligned');

const flags = native.openFlags();

// In upstream's order, which `Object.keys` shows.
exports.O_DIRECT = flags.O_DIRECT;
exports.O_DSYNC = flags.O_DSYNC;
exports.O_EXCL = flags.O_EXCL;
exports.O_EXLOCK = flags.O_EXLOCK;
exports.O_SYNC = flags.O_SYNC;

exports.getAlignedBuffer = anonymous(function () {
  const [size, alignment] = arguments;
  if (arguments.length !== 2 || !isInt(size) || !isInt(alignment)) {
    throw refused('bad arguments, expected: (size, alignment)');
  }
  if (size === 0) throw refused('size must not be 0');
  if (alignment === 0) throw refused('alignment must not be 0');
  if ((alignment & (alignment - 1)) !== 0) throw refused('alignment must be a power of 2');
  if (alignment < 8) throw refused('alignment must be at least 8 bytes');
  if (alignment > 4194304) throw refused('alignment must be at most 4194304 bytes');
  try {
    return allocate(native, size, alignment);
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

// Not among the enumerable names, so that those stay upstream's. Under another name than `exports`, because
// import statements find the names of a CommonJS module by reading its text, and would read this as "not exported".
const names = exports;
Object.defineProperty(names, 'promises', { configurable: true, get: () => require('./promises') });
// Never runs: for that reader.
if (false) exports.promises = undefined;

/** A function of (fd, value=0/1, callback) that says `elsewhere` on systems that do not have it. */
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

/** Loaded with the first error: `require` of this package is short. */
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
