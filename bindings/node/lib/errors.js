'use strict';
// Makes errors of what the compiled half reports.

const os = require('os');
const util = require('util');

// libuv's names for the numbers of Windows, as far as this library meets them: libuv, src/win/error.c.
const WINDOWS_NAMES = {
  1: 'EISDIR', 2: 'ENOENT', 3: 'ENOENT', 5: 'EPERM', 6: 'EBADF', 8: 'ENOMEM', 14: 'ENOMEM', 19: 'EROFS', 31: 'EIO',
  32: 'EBUSY', 33: 'EBUSY', 38: 'EOF', 39: 'ENOSPC', 50: 'ENOTSUP', 80: 'EEXIST', 87: 'EINVAL', 112: 'ENOSPC',
  123: 'ENOENT', 170: 'EBUSY', 183: 'EEXIST', 1117: 'EIO', 1392: 'EIO',
};

/** The name and Node's number (negative) of a system's error number. */
function nameOf(errno) {
  if (process.platform !== 'win32') {
    return { code: util.getSystemErrorName(-errno), errno: -errno };
  }
  const code = WINDOWS_NAMES[errno] || 'UNKNOWN';
  return { code, errno: numberOf(code) ?? -os.constants.errno.EIO };
}

/** Node's number of a system's error (negative); undefined for a code of ours. */
function numberOf(code) {
  return [...util.getSystemErrorMap()].find(([, [name]]) => name === code)?.[0];
}

/** An Error with the fields that Node's own have, and those of a transfer. */
function errorOf(failure) {
  const error = new Error(failure.message);
  if (failure.errno > 0) Object.assign(error, nameOf(failure.errno));
  // A code of ours is more exact than the system's number, and is only given where it is.
  if (failure.code) error.code = failure.code;
  if (error.errno === undefined && numberOf(error.code) !== undefined) error.errno = numberOf(error.code);
  for (const field of ['syscall', 'path', 'part', 'value', 'neededBytes', 'doneBytes']) {
    if (failure[field] !== undefined && failure[field] !== null) error[field] = failure[field];
  }
  return error;
}

module.exports = { errorOf, numberOf };
