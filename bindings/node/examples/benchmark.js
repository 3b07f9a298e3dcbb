#!/usr/bin/env node
'use strict';
// Writes a file or a disk in 21 ways and prints the speed of each: through the page cache, past it, and with every kind of flush.
//
//   node benchmark.js [--block-min=N] [--block-max=N] [--size=BYTES] [--rounds=N] [PATH]
//
// The equal of benchmark.js of @ronomon/direct-io: the same methods, blocks and numbers of writes. A given PATH is overwritten from
// its beginning and kept; without one a file next to this script is created and removed. A disk is opened exclusively.
//
// What differs, so that a row depends less on its place: the file is written once before the first row, a clock of nanoseconds, the
// rows of a block size in random order, `--rounds` samples of each (default 3) with the median and the range printed, and the last
// flush belongs to the time of every row that asked for one. Speeds are MiB/s.
//
// Cannot tell: what a disk's own cache hides. `trueio run` looks for that.

const fs = require('fs');
const path = require('path');
const { O_DIRECT, O_DSYNC, O_EXCL, O_EXLOCK, O_SYNC, getAlignedBuffer, setF_NOCACHE, setFSCTL_LOCK_VOLUME } = require('@trueio/direct-io');

const BLOCK_MIN = 4096;
const BLOCK_MAX = 32 << 20;
const SIZE = 128 << 20;
const FLUSHES = [[], ['AMORTIZED_FDATASYNC'], ['AMORTIZED_FSYNC'], ['FDATASYNC'], ['FSYNC'], ['O_DSYNC'], ['O_SYNC']];
const METHODS = FLUSHES.flatMap((flush) => {
  const buffered = flush.length === 0 ? ['BUFFERED'] : flush;
  return [buffered, [...buffered, 'ALIGNED'], [...flush, 'O_DIRECT']];
});

function options(args) {
  const found = { blockMin: BLOCK_MIN, blockMax: BLOCK_MAX, size: SIZE, rounds: 3, target: undefined };
  const names = { 'block-min': 'blockMin', 'block-max': 'blockMax', size: 'size', rounds: 'rounds' };
  for (const arg of args) {
    const [, name, digits] = /^--([a-z-]+)=(\d+)$/.exec(arg) ?? [];
    if (name in names) found[names[name]] = Number(digits);
    else if (arg.startsWith('--') || found.target !== undefined) throw new Error(`unsupported argument: ${arg}`);
    else found.target = arg;
  }
  for (const [name, least, most] of [['blockMin', BLOCK_MIN, found.blockMax], ['blockMax', found.blockMin, BLOCK_MAX], ['size', found.blockMax, 1 << 30], ['rounds', 1, 100]]) {
    if (found[name] < least || found[name] > most) throw new Error(`${name} must be from ${least} to ${most}, and is ${found[name]}`);
  }
  return found;
}

const isDevice = (target) => (process.platform === 'win32' ? /^\\\\\.\\/ : /^\/dev\//).test(target);
const called = (start) => new Promise((resolve, reject) => start((error) => (error ? reject(error) : resolve())));

async function open(target, method) {
  const { O_RDWR, O_CREAT } = fs.constants;
  let flags = isDevice(target) ? O_RDWR | (process.platform === 'darwin' ? O_EXLOCK : process.platform === 'win32' ? 0 : O_EXCL) : O_RDWR | O_CREAT;
  if (method.includes('O_DIRECT')) flags |= O_DIRECT;
  if (method.includes('O_DSYNC')) flags |= O_DSYNC;
  if (method.includes('O_SYNC')) flags |= O_SYNC;
  const fd = fs.openSync(target, flags);
  try {
    if (method.includes('O_DIRECT') && process.platform === 'darwin') await called((done) => setF_NOCACHE(fd, 1, done));
    if (isDevice(target) && process.platform === 'win32') await called((done) => setFSCTL_LOCK_VOLUME(fd, 1, done));
  } catch (error) {
    fs.closeSync(fd);
    throw error;
  }
  return fd;
}

/** Writes from the beginning, block after block; returns MiB/s. */
async function measure(target, method, block, size, { aligned, unaligned }) {
  const isFlushedEach = ['FDATASYNC', 'FSYNC', 'O_DSYNC', 'O_SYNC'].some((name) => method.includes(name));
  const count = isFlushedEach ? Math.min(Math.max(1, block / 32), Math.ceil(size / block)) : Math.ceil(size / block);
  const memory = method.includes('ALIGNED') || method.includes('O_DIRECT') ? aligned : unaligned;
  const flush = { FDATASYNC: fs.fdatasyncSync, FSYNC: fs.fsyncSync }[method.find((name) => /^F(DATA)?SYNC$/.test(name))];
  const last = { AMORTIZED_FDATASYNC: fs.fdatasyncSync, AMORTIZED_FSYNC: fs.fsyncSync }[method.find((name) => name.startsWith('AMORTIZED'))];
  const fd = await open(target, method);
  try {
    const begin = process.hrtime.bigint();
    for (let index = 0; index < count; index += 1) {
      if (fs.writeSync(fd, memory, 0, block, index * block) !== block) throw new Error('a write was short');
      flush?.(fd);
    }
    last?.(fd);
    const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
    fs.fdatasyncSync(fd);
    return (count * block) / (1 << 20) / seconds;
  } finally {
    fs.closeSync(fd);
  }
}

function shuffled(list) {
  const result = [...list];
  for (let at = result.length - 1; at > 0; at -= 1) {
    const other = Math.floor(Math.random() * (at + 1));
    [result[at], result[other]] = [result[other], result[at]];
  }
  return result;
}

/** Measures all rows and gives each line to `print`. */
async function benchmark({ target, blockMin, blockMax, size, rounds }, print = console.log) {
  const buffers = { aligned: getAlignedBuffer(size, 4096).fill(0xff), unaligned: Buffer.alloc(size + 1, 0xff).subarray(1) };
  const has = { O_DIRECT: O_DIRECT > 0 || process.platform === 'darwin', O_DSYNC: O_DSYNC > 0, O_SYNC: O_SYNC > 0 };
  const methods = METHODS.filter((method) => method.every((name) => has[name] ?? true));
  // So that no row pays for the allocation of blocks.
  await measure(target, ['BUFFERED', 'AMORTIZED_FSYNC'], blockMax, size, buffers);
  print(`${'block'.padStart(10)} | ${'method'.padEnd(38)} | MiB/s (least to most of ${rounds})`);
  for (let block = blockMin; block <= blockMax; block *= 2) {
    const rows = new Map(methods.map((method) => [method, []]));
    for (let round = 0; round < rounds; round += 1) {
      for (const method of shuffled(methods)) rows.get(method).push(await measure(target, method, block, size, buffers));
    }
    for (const [method, speeds] of rows) {
      speeds.sort((a, b) => a - b);
      const [least, median, most] = [speeds[0], speeds[Math.floor(rounds / 2)], speeds[rounds - 1]].map((speed) => speed.toFixed(2));
      print(`${String(block).padStart(10)} | ${method.join(' + ').padEnd(38)} | ${median.padStart(8)} (${least} to ${most})`);
    }
  }
}

async function main(args) {
  const wanted = options(args);
  const own = path.join(__dirname, 'file');
  try {
    await benchmark({ ...wanted, target: wanted.target ?? own });
  } finally {
    if (wanted.target === undefined) fs.rmSync(own, { force: true });
  }
}

if (require.main === module) {
  main(process.argv.slice(2)).catch((error) => {
    console.error(`Error: ${error.message}`);
    process.exitCode = 1;
  });
}

module.exports = { METHODS, benchmark, options };
