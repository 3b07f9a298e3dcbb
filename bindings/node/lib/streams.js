'use strict';
// Streams past the page cache: any bytes of a file, in aligned transfers.
//
// A reader reads whole blocks and gives the part that is wanted. A writer collects what it is given in an aligned
// buffer; the blocks that it covers only in part, at most the first and the last, are written without the bytes around
// them. The file ends where the last byte was written, and no other writer's bytes are lost.
//
// Each reads or writes one chunk after another: for several transfers in flight use `readAt` and `writeAllAt`.

const { Readable, Writable } = require('stream');
const direct = require('../promises');

const CHUNK_BYTES = 1 << 20;
const READ_OPTIONS = ['start', 'end', 'highWaterMark', 'autoClose', 'signal'];
const WRITE_OPTIONS = ['start', 'highWaterMark', 'autoClose', 'flush', 'signal'];

/** Splits the options into those of the stream and those of `open`, which checks its own. */
function split(options, names) {
  if (typeof options !== 'object' || options === null) throw invalid('options', 'must be an object', options);
  const own = {};
  const others = {};
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) (names.includes(name) ? own : others)[name] = value;
  }
  return { own, others };
}

function invalid(name, wanted, value) {
  const error = new RangeError(`\`${name}\` ${wanted}, and is ${String(value)}`);
  return Object.assign(error, { code: 'ERR_OUT_OF_RANGE' });
}

function integer(name, value, least) {
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw invalid(name, `must be an integer from ${least} to ${Number.MAX_SAFE_INTEGER}`, value);
}

const up = (value, multiple) => Math.ceil(value / multiple) * multiple;

/** What transfers of this file must be multiples of; 4096 where that is unknown. */
function blockOf({ alignment }, names) {
  return Math.max(...names.map((name) => alignment[name] ?? 4096));
}

/** Opens a path; of an open file nothing is opened, and other options are refused. */
async function opened(target, others) {
  if (typeof target === 'string') return direct.open(target, others);
  const [name] = Object.keys(others);
  if (name !== undefined) throw invalid(name, 'is an option of files that the stream opens', others[name]);
  return target;
}

/** What both kinds of stream do: open, and close what they opened. */
function lifecycle(target, others, autoClose, start) {
  return {
    construct(callback) {
      opened(target, others).then(async (file) => {
        this.file = file;
        await start(this);
      }).then(() => callback(), callback);
    },
    destroy(error, callback) {
      if (!autoClose || this.file === undefined) return callback(error);
      this.file.close().then(() => callback(error), (failure) => callback(error ?? failure));
    },
  };
}

function createReadStream(target, options = {}) {
  const { own, others } = split(options, READ_OPTIONS);
  const { start = 0, end = Infinity, highWaterMark = CHUNK_BYTES, autoClose = typeof target === 'string', signal } = own;
  let position = integer('start', start, 0);
  // As in Node's own streams `end` is the last byte.
  const stop = end === Infinity ? Infinity : integer('end', end, start) + 1;
  const size = integer('highWaterMark', highWaterMark, 1);
  let block;
  return new Readable({
    highWaterMark: size,
    signal,
    ...lifecycle(target, others, autoClose, (stream) => {
      block = blockOf(stream.file, ['memoryBytes', 'readOffsetBytes']);
    }),
    read() {
      if (position >= stop) return void this.push(null);
      const skip = position % block;
      const length = up(Math.min(skip + size, stop - position + skip), block);
      const buffer = direct.allocate(length, Math.max(block, 4096));
      this.file.readAt(buffer, position - skip).then(({ bytes }) => {
        const last = Math.min(bytes, skip + stop - position);
        if (last <= skip) return void this.push(null);
        position += last - skip;
        this.push(buffer.subarray(skip, last));
      }, (error) => this.destroy(error));
    },
  });
}

function createWriteStream(target, options = {}) {
  const { own, others } = split(options, WRITE_OPTIONS);
  const { start = 0, highWaterMark = CHUNK_BYTES, autoClose = typeof target === 'string', flush = false, signal } = own;
  let position = integer('start', start, 0);
  const size = integer('highWaterMark', highWaterMark, 1);
  let block;
  let buffer;
  /** What of the buffer is filled; it begins at `position`, or at the block that `position` lies in. */
  let filled = 0;

  /** Writes what is in the buffer. */
  async function writeOut(file) {
    const skip = position % block;
    // The first block, where the file is written from the middle of it on. What follows waits for the next call.
    if (skip > 0) {
      const length = Math.min(block - skip, filled);
      await file.writeUnalignedByReadModifyWriteAt(buffer.subarray(0, length), position);
      position += length;
      filled -= length;
      buffer.copy(buffer, 0, length, length + filled);
      return;
    }
    const whole = filled - (filled % block);
    if (whole > 0) await file.writeAllAt(buffer.subarray(0, whole), position);
    position += whole;
    filled -= whole;
    buffer.copy(buffer, 0, whole, whole + filled);
  }

  async function take(file, chunk) {
    for (let from = 0; from < chunk.length; ) {
      const length = Math.min(chunk.length - from, buffer.length - filled);
      chunk.copy(buffer, filled, from, from + length);
      filled += length;
      from += length;
      if (filled === buffer.length) await writeOut(file);
    }
  }

  const stream = new Writable({
    highWaterMark: size,
    signal,
    decodeStrings: true,
    ...lifecycle(target, withWrite(target, others), autoClose, ({ file }) => {
      block = blockOf(file, ['memoryBytes', 'writeOffsetBytes', 'readOffsetBytes']);
      buffer = direct.allocate(up(size, block), Math.max(block, 4096));
    }),
    write(chunk, encoding, callback) {
      take(this.file, chunk).then(() => callback(), callback);
    },
    final(callback) {
      const finish = async () => {
        if (filled > 0) await writeOut(this.file);
        // Twice if the first piece ended within the first block.
        if (filled >= block) await writeOut(this.file);
        if (filled > 0) await this.file.writeUnalignedByReadModifyWriteAt(buffer.subarray(0, filled), position);
        position += filled;
        filled = 0;
        if (flush !== false) await this.file.flush(flush === true ? undefined : flush);
      };
      finish().then(() => callback(), callback);
    },
  });
  Object.defineProperty(stream, 'bytesWritten', { get: () => position - start });
  return stream;
}

/** A path is opened for writing too. */
function withWrite(target, others) {
  return typeof target === 'string' ? { write: true, ...others } : others;
}

module.exports = { createReadStream, createWriteStream };
