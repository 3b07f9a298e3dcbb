'use strict';
// Streams past the page cache: any bytes of a file, in aligned transfers.
//
// A reader reads whole blocks and gives the part that is wanted. A writer collects what it is given in an aligned
// buffer; the blocks that it covers only in part, at most the first and the last, are written without the bytes around
// them. The file ends where the last byte was written, and no other writer's bytes are lost.
//
// They have the options, events and fields of Node's own file streams, as far as a file without a descriptor has them.
//
// Each reads or writes one chunk after another: for several transfers in flight use `readAt` and `writeAllAt`.

const { Readable, Writable } = require('stream');
const direct = require('../promises');
const { OPEN_DEFAULTS } = require('./options');

const CHUNK_BYTES = 1 << 20;
const READ_OPTIONS = ['start', 'end', 'highWaterMark', 'autoClose', 'emitClose', 'signal', 'encoding', 'flags'];
const WRITE_OPTIONS = ['start', 'highWaterMark', 'autoClose', 'emitClose', 'flush', 'signal', 'encoding', 'flags'];

/** What the flags of `fs.open` mean here. */
const FLAGS = {
  r: {},
  'r+': { write: true },
  w: { write: true, create: true, isEmptied: true },
  wx: { write: true, createNew: true },
};
const ALIASES = { 'rs+': 'r+', 'sr+': 'r+', 'w+': 'w', xw: 'wx', 'wx+': 'wx', 'xw+': 'wx' };

/** Returns the options of `open` for `flags`, and whether a file that exists is emptied. */
function flagged(flags, others, isWriter) {
  if (flags === undefined) return { others, isEmptied: false };
  const name = Object.hasOwn(ALIASES, flags) ? ALIASES[flags] : flags;
  const isKnown = typeof flags === 'string' && Object.hasOwn(FLAGS, name) && !(isWriter && name === 'r') && !(!isWriter && name.startsWith('w'));
  if (!isKnown) {
    const hint = /^[axs+]*a/.test(flags) ? ': past the page cache nothing can be appended; write at the end of the file with `r+` and `start`' : '';
    throw invalid('flags', `must be ${isWriter ? "'r+', 'w' or 'wx'" : "'r' or 'r+'"}`, flags, hint);
  }
  for (const clash of ['read', 'write', 'create', 'createNew']) {
    if (others[clash] !== undefined) throw invalid(clash, 'cannot be set next to `flags`', others[clash]);
  }
  const { isEmptied = false, ...means } = FLAGS[name];
  return { others: { ...means, ...others, ...(/s/.test(flags) && { sync: 'sync' }) }, isEmptied };
}

/** Splits the options into those of the stream, which are in `names`, and others, which `opened` checks. A string is an encoding. */
function split(given, names) {
  const options = typeof given === 'string' ? { encoding: given } : given;
  if (typeof options !== 'object' || options === null) throw invalid('options', 'must be an object', options);
  const own = {};
  const others = {};
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) (names.includes(name) ? own : others)[name] = value;
  }
  return { own, others };
}

function invalid(name, wanted, value, hint = '') {
  const error = new RangeError(`\`${name}\` ${wanted}, and is ${String(value)}${hint}`);
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

/** Opens a path; of an open file nothing is opened, and options of opening are refused. `names` are the options of the stream. */
async function opened(target, { others, isEmptied }, names) {
  const isPath = typeof target === 'string';
  const unknown = Object.keys(others).find((name) => !Object.hasOwn(OPEN_DEFAULTS, name));
  if (unknown !== undefined) {
    const known = isPath ? [...names, ...Object.keys(OPEN_DEFAULTS)] : names.filter((name) => name !== 'flags');
    const error = new TypeError(`\`${unknown}\` is not an option of this stream; its options are ${known.join(', ')}`);
    throw Object.assign(error, { code: 'ERR_INVALID_ARG_VALUE' });
  }
  if (!isPath) {
    const [name] = isEmptied ? ['flags'] : Object.keys(others);
    if (name !== undefined) throw invalid(name, 'is an option of files that the stream opens', others[name]);
    return target;
  }
  // New files have the mode of Node's own streams.
  const file = await direct.open(target, { mode: 0o666, ...others });
  if (isEmptied) {
    try {
      await file.truncate(0);
    } catch (error) {
      // A disk has no length to change, and fs.open ignores the flag, too.
      if (error.code !== 'EINVAL') {
        await file.close();
        throw error;
      }
    }
  }
  return file;
}

/** What both kinds of stream do: open, and close what they opened. */
function lifecycle(target, opening, names, autoClose, start) {
  return {
    construct(callback) {
      opened(target, opening, names).then(async (file) => {
        this.file = file;
        await start(this);
      }).then(() => {
        callback();
        // As Node's own streams, in this order; the file in place of its descriptor.
        this.emit('open', this.file);
        this.emit('ready');
      }, callback);
    },
    destroy(error, callback) {
      if (!autoClose || this.file === undefined) return callback(error);
      this.file.close().then(() => callback(error), (failure) => callback(error ?? failure));
    },
  };
}

/** Adds the fields of Node's own file streams. */
function withFields(stream, target, counter, count) {
  Object.defineProperties(stream, {
    path: { enumerable: true, value: typeof target === 'string' ? target : target.path },
    pending: { get: () => stream.file === undefined || stream.file.isClosed },
    [counter]: { get: count },
    close: {
      value(callback) {
        if (callback !== undefined) stream.closed ? process.nextTick(callback) : stream.once('close', () => callback());
        if (counter === 'bytesRead') stream.destroy();
        else stream.end(() => stream.destroy());
      },
    },
  });
  return stream;
}

function createReadStream(target, options = {}) {
  const { own, others } = split(options, READ_OPTIONS);
  const { start = 0, end = Infinity, highWaterMark = CHUNK_BYTES, autoClose = typeof target === 'string', emitClose = true, signal, encoding, flags } = own;
  const opening = flagged(flags, others, false);
  let position = integer('start', start, 0);
  // As in Node's own streams `end` is the last byte.
  const stop = end === Infinity ? Infinity : integer('end', end, start) + 1;
  const size = integer('highWaterMark', highWaterMark, 1);
  let block;
  const stream = new Readable({
    highWaterMark: size,
    signal,
    emitClose,
    encoding,
    ...lifecycle(target, opening, READ_OPTIONS, autoClose, (stream) => {
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
  return withFields(stream, target, 'bytesRead', () => position - start);
}

function createWriteStream(target, options = {}) {
  const { own, others } = split(options, WRITE_OPTIONS);
  const { start = 0, highWaterMark = CHUNK_BYTES, autoClose = typeof target === 'string', emitClose = true, flush = false, signal, encoding } = own;
  const opening = typeof target === 'string' ? writing(own, others) : flagged(own.flags, others, true);
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
    emitClose,
    decodeStrings: true,
    ...(encoding !== undefined && { defaultEncoding: encoding }),
    ...lifecycle(target, opening, WRITE_OPTIONS, autoClose, ({ file }) => {
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
  return withFields(stream, target, 'bytesWritten', () => position - start);
}

/**
 * How a path is opened for writing. Without flags it is made new or emptied, as by Node's own streams; but not where a place to write at
 * or options of `open` are given: then nothing is lost unless the flags ask for it.
 */
function writing({ flags, start }, others) {
  if (flags !== undefined) return flagged(flags, others, true);
  if (['write', 'create', 'createNew'].some((name) => others[name] !== undefined)) return flagged(undefined, { write: true, ...others });
  return start === undefined ? flagged('w', others, true) : flagged(undefined, { write: true, create: true, ...others });
}

module.exports = { createReadStream, createWriteStream };
