'use strict';
// Calls one implementation with a table of good and bad arguments and prints what it did, as JSON.
//
// `node differential_worker.js MODULE FILE [DEVICE]`. Run once with each implementation and compared.

const fs = require('fs');
const { AsyncLocalStorage } = require('async_hooks');
const [moduleName, fileName, deviceName] = process.argv.slice(2);
const directIo = require(moduleName);

const results = {};
const context = new AsyncLocalStorage();

/** Returns a value as text that distinguishes 0 from -0 and 1 from '1'. */
function named(value) {
  if (typeof value === 'function') return 'function';
  if (typeof value === 'bigint') return `${value}n`;
  if (Object.is(value, -0)) return '-0';
  if (typeof value === 'object' && value !== null) return value.constructor.name;
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}

/** What upstream's errors show. Fields that ours adds are allowed to be there and are not looked at. */
function describedError(error) {
  return {
    message: error.message,
    name: error.name,
    isPlain: Object.getPrototypeOf(error) === Error.prototype,
    text: String(error),
    hasStack: typeof error.stack === 'string',
  };
}

function described(value) {
  if (value instanceof Error) return describedError(value);
  if (Buffer.isBuffer(value)) {
    return {
      buffer: value.length,
      isZero: value.every((byte) => byte === 0),
      byteOffset: value.byteOffset,
      memory: value.buffer.byteLength,
      isExtensible: Object.isExtensible(value),
      prototype: Object.getPrototypeOf(value) === Buffer.prototype,
    };
  }
  return typeof value === 'object' && value !== null ? { keys: Object.keys(value), value } : named(value);
}

function attempt(name, body) {
  try {
    results[name] = { returned: described(body()) };
  } catch (error) {
    results[name] = { thrown: describedError(error) };
  }
}

/** Calls, waits for the callback if the call was accepted, and notes all of it and its order. */
async function attemptAsync(name, start) {
  const order = [];
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  function callback() {
    order.push('callback');
    const called = {
      count: arguments.length,
      values: [...arguments].map(described),
      isGlobalThis: this === globalThis,
      context: context.getStore(),
    };
    process.nextTick(() => order.push('tick within'));
    Promise.resolve().then(() => order.push('microtask within'));
    setImmediate(() => {
      order.push('immediate within');
      finish(called);
    });
  }
  try {
    const returned = context.run(name, () => start(callback));
    order.push('returned');
    process.nextTick(() => order.push('tick'));
    Promise.resolve().then(() => order.push('microtask'));
    results[name] = { returned: named(returned), called: await finished, order };
  } catch (error) {
    results[name] = { thrown: describedError(error), order };
  }
}

const ODD = [
  undefined, null, NaN, -1, 0, -0, 1, 1.5, 2, 3, 4, 7, 8, 24, 64, 4096, 4194304, 8388608, 2 ** 31 - 1, 2 ** 31, Infinity, -Infinity,
  '1', '', true, false, 1n, {}, [], [1], Symbol.iterator, () => {}, new Number(8),
];

function shapes() {
  attempt('keys', () => Object.keys(directIo));
  attempt('prototype', () => Object.getPrototypeOf(directIo) === Object.prototype);
  attempt('extensible', () => Object.isExtensible(directIo));
  for (const name of Object.keys(directIo)) {
    const value = directIo[name];
    attempt(`shape of ${name}`, () => ({
      type: typeof value,
      value: typeof value === 'function' ? [value.name, value.length] : value,
      descriptor: { ...Object.getOwnPropertyDescriptor(directIo, name), value: 0 },
    }));
  }
}

function buffers() {
  for (const size of ODD) {
    for (const alignment of ODD) {
      // 2 GiB of zeroed memory is more than a test should ask for.
      if (size === 2 ** 31 - 1 && [8, 64, 4096, 4194304].includes(alignment)) continue;
      attempt(`getAlignedBuffer(${named(size)}, ${named(alignment)})`, () => directIo.getAlignedBuffer(size, alignment));
    }
  }
  attempt('getAlignedBuffer()', () => directIo.getAlignedBuffer());
  attempt('getAlignedBuffer(8)', () => directIo.getAlignedBuffer(8));
  attempt('getAlignedBuffer(8, 8, undefined)', () => directIo.getAlignedBuffer(8, 8, undefined));
  attempt('new getAlignedBuffer(8, 8)', () => new directIo.getAlignedBuffer(8, 8));
  attempt('detached getAlignedBuffer', () => (0, directIo.getAlignedBuffer)(512, 512));
}

async function descriptors() {
  const regular = fs.openSync(fileName, 'r+');
  const other = fs.openSync(fileName, 'r');
  const folder = fs.openSync('.', 'r');
  const null_ = fs.openSync('/dev/null', 'r');
  const full = fs.openSync('/dev/full', 'w');
  const open = { regular, other, folder, null_, full, closed: 1_000_000, largest: 2 ** 31 - 1 };
  const switches = ['setF_NOCACHE', 'setFlock', 'setFSCTL_LOCK_VOLUME'];

  // Every combination of three odd things; those that happen to be right are really called.
  const fds = [undefined, null, NaN, -1, -0, 1.5, 2 ** 31, Infinity, '3', 3n, {}, regular, 1_000_000];
  const values = [undefined, null, NaN, -1, 0, -0, 1, 0.5, 2, true, '1', 1n];
  for (const fd of fds) {
    for (const value of values) {
      for (const bad of [undefined, null, 1, 'f', {}]) {
        for (const name of switches) {
          attempt(`${name}(${named(fd)}, ${named(value)}, ${named(bad)})`, () => directIo[name](fd, value, bad));
        }
      }
      for (const name of switches) {
        const label = `${name}(${fd === regular ? 'regular' : named(fd)}, ${named(value)}, callback)`;
        await attemptAsync(label, (callback) => directIo[name](fd, value, callback));
      }
    }
    attempt(`getBlockDevice(${named(fd)})`, () => directIo.getBlockDevice(fd));
    await attemptAsync(`getBlockDevice(${fd === regular ? 'regular' : named(fd)}, callback)`, (callback) =>
      directIo.getBlockDevice(fd, callback)
    );
  }
  for (const name of [...switches, 'getBlockDevice']) {
    for (const args of [[], [regular], [regular, 1], [regular, 1, () => {}, undefined], [regular, () => {}, 1]]) {
      attempt(`${name} with ${args.map(named).join()}`, () => directIo[name](...args));
    }
  }

  // What the system answers, kind by kind.
  for (const [name, fd] of Object.entries(open)) {
    await attemptAsync(`getBlockDevice of ${name}`, (callback) => directIo.getBlockDevice(fd, callback));
    for (const value of [1, 0]) {
      await attemptAsync(`setFlock of ${name} to ${value}`, (callback) => directIo.setFlock(fd, value, callback));
    }
  }
  for (const [who, value] of [['regular', 0], ['regular', 1], ['regular', 1], ['other', 1], ['regular', 0], ['other', 1], ['other', 0]]) {
    const label = `flock sequence ${Object.keys(results).length}: ${who} to ${value}`;
    await attemptAsync(label, (callback) => directIo.setFlock(open[who], value, callback));
  }
  if (deviceName) {
    const device = fs.openSync(deviceName, 'r');
    await attemptAsync('getBlockDevice of a loop device', (callback) => directIo.getBlockDevice(device, callback));
  }
}

shapes();
buffers();
descriptors().then(() => console.log(JSON.stringify(results)));
