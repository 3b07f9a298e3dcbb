'use strict';
// Direct I/O with promises: ask, open with a policy, transfer exactly, make durable.
//
// Transfers run on libuv's thread pool (UV_THREADPOOL_SIZE, 4 by default: more transfers than that wait
// for each other), a copy on a thread of its own. Every mistake is a rejection with a `code`; nothing is done in another way than asked
// for. promises.d.ts documents every name.
//
// Cannot do: offsets from 2^53 on (9 PB), paths that are not Unicode, and stopping a call that has begun, other than a
// copy.

const util = require('util');
const { fileURLToPath } = require('url');
const native = require('./lib/native');
const aligned = require('./lib/aligned');
const { errorOf, numberOf } = require('./lib/errors');
const { OPEN_DEFAULTS } = require('./lib/options');
const { whenAborted } = require('./lib/signals');

const SIZE_MAX = 2147483647;
const ALIGNMENT_MAX = 4194304;
/** Enough for disks and filesystems whose blocks have at most 4 KiB. */
const ALIGNMENT_DEFAULT = 4096;

/** Starts a native call and makes a promise of its `done`. */
function call(start) {
  return new Promise((resolve, reject) => {
    // What is refused before it begins is returned; what goes wrong later is given to `done`.
    const refusal = start((failure, value) => (failure ? reject(failure) : resolve(value)));
    if (refusal) reject(refusal);
  }).then(undefined, rethrow);
}

/**
 * Throws the error of a failure. As the reaction of a promise: there the stack goes on in the functions that await it, and in
 * the native callback it would not.
 */
function rethrow(failure) {
  throw errorOf(failure);
}

/** As `call`; `signal` takes the call out of the pool's queue. One that has begun runs to its end. */
async function callCancellable(signal, start) {
  if (signal === undefined) return call((done) => start(done));
  if (signal.aborted) throw aborted(signal);
  const cancel = new native.Cancel();
  const end = whenAborted(signal, () => cancel.cancel());
  try {
    return await call((done) => start(done, cancel));
  } catch (error) {
    throw error.code === 'ECANCELED' && signal.aborted ? aborted(signal) : error;
  } finally {
    end();
  }
}

/** The error that Node's own functions give. */
function aborted(signal) {
  const error = Object.assign(new Error('The operation was aborted', { cause: signal.reason }), { code: 'ABORT_ERR' });
  error.name = 'AbortError';
  return error;
}

/** The signal of `options`, which have no other field unless `others` names it. */
function checkedSignal(options, others = []) {
  if (options === undefined) return undefined;
  checkedType('options', options, typeof options === 'object' && options !== null, 'an object');
  for (const name of Object.keys(options)) {
    if (name === 'signal' || others.includes(name)) continue;
    throw wrong(TypeError, 'ERR_INVALID_ARG_VALUE', `\`${name}\` is not an option; the options are ${['signal', ...others].join(', ')}`);
  }
  const { signal } = options;
  checkedType('signal', signal, signal === undefined || signal instanceof AbortSignal, 'an AbortSignal');
  return signal;
}

/** The error of a mistake; a code of the system's brings its number. */
function wrong(Kind, code, message, fields) {
  const errno = numberOf(code);
  return Object.assign(new Kind(message), { code }, errno !== undefined && { errno }, fields);
}

function shown(value) {
  return util.inspect(value, { depth: 0, maxStringLength: 40, breakLength: Infinity });
}

function checkedType(name, value, isRight, wanted) {
  if (isRight) return value;
  throw wrong(TypeError, 'ERR_INVALID_ARG_TYPE', `\`${name}\` must be ${wanted}, and is ${shown(value)}`);
}

/** An integer between two bounds, of type number or bigint, as a number. */
function checkedInteger(name, value, least, most) {
  checkedType(name, value, typeof value === 'number' || typeof value === 'bigint', 'a number or a bigint');
  const isInteger = typeof value === 'bigint' || Number.isInteger(value);
  if (!isInteger || value < least || value > most) {
    const message = `\`${name}\` must be an integer from ${least} to ${most}, and is ${shown(value)}`;
    throw wrong(RangeError, 'ERR_OUT_OF_RANGE', message);
  }
  return Number(value);
}

function checkedWord(name, value, words) {
  checkedType(name, value, typeof value === 'string', 'a string');
  if (words.includes(value)) return value;
  const list = words.map((word) => `'${word}'`).join(', ');
  throw wrong(TypeError, 'ERR_INVALID_ARG_VALUE', `\`${name}\` must be one of ${list}, and is ${shown(value)}`);
}

function checkedPath(value) {
  const text = value instanceof URL ? fileURLToPath(value) : value;
  checkedType('path', text, typeof text === 'string', 'a string or a file: URL');
  if (text === '' || text.includes('\0')) {
    const what = text === '' ? 'is empty' : `holds a zero byte: ${shown(text)}`;
    throw wrong(TypeError, 'ERR_INVALID_ARG_VALUE', `\`path\` ${what}`);
  }
  return text;
}

function checkedBuffer(value) {
  checkedType('buffer', value, ArrayBuffer.isView(value), 'a Buffer, a typed array or a DataView');
  if (value.byteLength === 0 && isDetached(value.buffer)) {
    const message = 'the memory of `buffer` was given away (transferred), and nothing of it is left';
    throw wrong(TypeError, 'ERR_TRUEIO_BUFFER_DETACHED', message);
  }
  return value;
}

/** ArrayBuffer.prototype.detached exists since Node 22 only. */
function isDetached(memory) {
  try {
    return new Uint8Array(memory).length < 0;
  } catch {
    return true;
  }
}

function checkedOffset(value) {
  return checkedInteger('offset', value, 0, Number.MAX_SAFE_INTEGER);
}

function checkedPowerOfTwo(name, value) {
  const number = checkedInteger(name, value, 1, ALIGNMENT_MAX);
  if ((number & (number - 1)) === 0) return number;
  throw wrong(RangeError, 'ERR_OUT_OF_RANGE', `\`${name}\` must be a power of two, and is ${number}`);
}

/** Returns the fields of `found` in the order of `names`, with null for missing ones. */
function withNulls(found, names) {
  return Object.fromEntries(names.map((name) => [name, found[name] ?? null]));
}

function alignmentOf(found) {
  return Object.freeze(withNulls(found, ['memoryBytes', 'writeOffsetBytes', 'readOffsetBytes', 'source', 'explanation']));
}

function probeOf(found) {
  return {
    support: found.support,
    reason: found.reason,
    alignment: alignmentOf(found.alignment),
    readSupport: found.readSupport,
    readAlignment: alignmentOf(found.readAlignment),
    atomicWriteAnswer: found.atomicWriteAnswer,
    atomicWrite: found.atomicWrite ?? null,
    uncachedBuffered: found.uncachedBuffered,
    filesystem: found.filesystem,
  };
}

async function probe(path) {
  const checked = checkedPath(path);
  return probeOf(await call((done) => native.probe(checked, done)));
}

async function probeDirectory(path) {
  const checked = checkedPath(path);
  return probeOf(await call((done) => native.probeDirectory(checked, done)));
}

async function syncDirectory(path) {
  const checked = checkedPath(path);
  await call((done) => native.syncDirectory(checked, done));
}

function allocate(sizeBytes, alignmentBytes = ALIGNMENT_DEFAULT) {
  const size = checkedInteger('sizeBytes', sizeBytes, 1, SIZE_MAX);
  const alignment = checkedPowerOfTwo('alignmentBytes', alignmentBytes);
  try {
    return aligned.allocate(native, size, alignment);
  } catch (cause) {
    const message = `there are no ${size} bytes of memory aligned to ${alignment}`;
    throw wrong(Error, 'ENOMEM', message, { cause });
  }
}

function checkedRequest({ signal, ...options }) {
  for (const name of Object.keys(options)) {
    // A misspelt option must not mean its default.
    if (!Object.hasOwn(OPEN_DEFAULTS, name)) {
      const names = [...Object.keys(OPEN_DEFAULTS), 'signal'].join(', ');
      throw wrong(TypeError, 'ERR_INVALID_ARG_VALUE', `\`${name}\` is not an option; the options are ${names}`);
    }
  }
  const request = { ...OPEN_DEFAULTS };
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) request[name] = value;
  }
  for (const name of ['read', 'write', 'create', 'createNew', 'exclusive']) {
    checkedType(name, request[name], typeof request[name] === 'boolean', 'true or false');
  }
  checkedWord('policy', request.policy, ['require', 'prefer', 'off']);
  checkedWord('sync', request.sync, ['none', 'dsync', 'sync']);
  request.mode = checkedInteger('mode', request.mode, 0, 0o7777);
  return request;
}

async function open(path, options = {}) {
  const checked = checkedPath(path);
  checkedType('options', options, typeof options === 'object' && options !== null && !Array.isArray(options), 'an object');
  const request = checkedRequest(options);
  const signal = checkedSignal({ signal: options.signal });
  const file = await callCancellable(signal, (done, cancel) => native.open(checked, request, done, cancel));
  return new DirectFile(MADE_HERE, checked, file);
}

/** What waits for a buffer or a thread, in order of arrival, as a ring: each is removed in constant time. */
class Waiters {
  #ring = {};

  constructor() {
    this.#ring.next = this.#ring.previous = this.#ring;
  }

  /** Waits for `serve`, which resolves this to its value. The signal or the time, in milliseconds, ends the wait. */
  wait(signal, timeout, timedOut) {
    // Rejected with a function: the error is made where its stack goes on in the caller.
    return new Promise((resolve, reject) => {
      const waiter = { resolve, next: this.#ring, previous: this.#ring.previous };
      waiter.previous.next = this.#ring.previous = waiter;
      const fail = (errorNow) => {
        this.#remove(waiter);
        reject(errorNow);
      };
      const end = whenAborted(signal, () => fail(() => aborted(signal)));
      const timer = timeout === undefined ? undefined : setTimeout(fail, timeout, timedOut);
      waiter.end = () => {
        end();
        clearTimeout(timer);
      };
    }).then(undefined, (errorNow) => {
      throw errorNow();
    });
  }

  /** Ends the first wait; false if there is none. */
  serve(value) {
    const first = this.#ring.next;
    if (first === this.#ring) return false;
    this.#remove(first);
    first.resolve(value);
    return true;
  }

  #remove(waiter) {
    waiter.previous.next = waiter.next;
    waiter.next.previous = waiter.previous;
    waiter.end();
  }
}

const COPY_OPTIONS = [
  'overwrite', 'policy', 'flush', 'bufferBytes', 'range', 'destinationOffset', 'keepHoles', 'onProgress',
];

function checkedRange(range) {
  checkedType('range', range, Array.isArray(range) && range.length === 2, 'an array of two offsets');
  const start = checkedInteger('range[0]', range[0], 0, Number.MAX_SAFE_INTEGER);
  return [start, checkedInteger('range[1]', range[1], start, Number.MAX_SAFE_INTEGER)];
}

function checkedCopy({ overwrite = false, policy = 'prefer', flush = true, keepHoles = true, ...others }) {
  checkedType('overwrite', overwrite, typeof overwrite === 'boolean', 'true or false');
  checkedType('keepHoles', keepHoles, typeof keepHoles === 'boolean', 'true or false');
  checkedWord('policy', policy, ['require', 'prefer', 'off']);
  const request = { overwrite, policy, keepHoles };
  if (flush !== false) request.flush = flush === true ? 'device' : checkedWord('flush', flush, ['barrier', 'data', 'file', 'device']);
  const { bufferBytes, range, destinationOffset, onProgress } = others;
  if (bufferBytes !== undefined) request.bufferBytes = checkedInteger('bufferBytes', bufferBytes, 1, SIZE_MAX);
  if (range !== undefined) request.range = checkedRange(range);
  if (destinationOffset !== undefined) {
    request.destinationOffset = checkedInteger('destinationOffset', destinationOffset, 0, Number.MAX_SAFE_INTEGER);
  }
  checkedType('onProgress', onProgress, onProgress === undefined || typeof onProgress === 'function', 'a function');
  return { request, onProgress };
}

/** Copies that have not ended. At its exit the process waits for their threads, and these may wait for an answer. */
const copies = new Set();
/** How many copies run at once, each on a thread; others wait in order of arrival. */
const COPIES_AT_ONCE = 16;
let copiesBegun = 0;
const waitingCopies = new Waiters();

function stopAll() {
  for (const stop of copies) stop.stop();
}

async function copyFile(source, destination, options = {}) {
  const from = checkedPath(source);
  const to = checkedPath(destination);
  const signal = checkedSignal(options, COPY_OPTIONS);
  const { request, onProgress } = checkedCopy(options);
  const stop = new native.CopyStop();
  let thrown;
  const report = (doneBytes, totalBytes) => {
    // A copy that failed meanwhile, or that an earlier report stopped, is not reported any more.
    if (!copies.has(stop) || thrown !== undefined || signal?.aborted) return false;
    try {
      onProgress?.({ doneBytes, totalBytes });
      return !signal?.aborted;
    } catch (error) {
      thrown = { error };
      return false;
    }
  };
  if (signal?.aborted) throw aborted(signal);
  if (copiesBegun < COPIES_AT_ONCE) copiesBegun += 1;
  else await waitingCopies.wait(signal);
  if (copies.size === 0) process.on('exit', stopAll);
  copies.add(stop);
  const end = whenAborted(signal, () => stop.stop());
  // Aborted when its turn had come already.
  if (signal?.aborted) stop.stop();
  try {
    const copied = await call((done) => native.copyFile(from, to, request, report, stop, done));
    return { ...copied, flushed: copied.flushed ?? null };
  } catch (error) {
    if (thrown !== undefined) throw thrown.error;
    if (error.code === 'ECANCELED' && signal?.aborted) throw aborted(signal);
    // As Node's own copyFile; a file that could not be opened is named already.
    if (error.syscall === 'copyfile') Object.assign(error, { path: from, dest: to });
    throw error;
  } finally {
    end();
    copies.delete(stop);
    if (copies.size === 0) process.removeListener('exit', stopAll);
    if (!waitingCopies.serve()) copiesBegun -= 1;
  }
}

/** A DirectFile of an open file: a descriptor, or an object that has one, such as a FileHandle. It stays open. */
async function fromFile(file) {
  const fd = typeof file === 'object' && file !== null ? file.fd : file;
  const checked = checkedInteger('file', fd, 0, SIZE_MAX);
  return new DirectFile(MADE_HERE, undefined, await call((done) => native.fromFd(checked, done)));
}

/** Only `open` and `fromFile` make files. */
const MADE_HERE = Symbol('made here');

class DirectFile {
  #native;
  #path;
  #facts;
  /** Transfers and other calls that have not ended. */
  #pending = 0;
  #closed;
  #whenIdle;

  constructor(token, path, file) {
    if (token !== MADE_HERE) throw wrong(TypeError, 'ERR_ILLEGAL_CONSTRUCTOR', 'a DirectFile is made by `open`');
    this.#native = file;
    this.#path = path;
    this.#facts = { granted: file.granted, reason: file.reason, alignment: alignmentOf(file.alignment) };
  }

  get path() {
    return this.#path;
  }

  get granted() {
    return this.#facts.granted;
  }

  get reason() {
    return this.#facts.reason;
  }

  get alignment() {
    return this.#facts.alignment;
  }

  get isClosed() {
    return this.#closed !== undefined;
  }

  check(buffer, offset, direction) {
    const view = checkedBuffer(buffer);
    const place = checkedOffset(offset);
    const isWrite = checkedWord('direction', direction, ['read', 'write']) === 'write';
    const failure = this.#open('check').check(view, place, isWrite);
    if (failure) throw errorOf(failure);
  }

  readExactAt(buffer, offset, options) {
    return this.#transfer('read', 'readExactAt', buffer, offset, options);
  }

  readAt(buffer, offset, options) {
    return this.#transfer('read-to-end', 'readAt', buffer, offset, options);
  }

  writeAllAt(buffer, offset, options) {
    return this.#transfer('write', 'writeAllAt', buffer, offset, options);
  }

  writeDsyncAt(buffer, offset, options) {
    return this.#transfer('write-dsync', 'writeDsyncAt', buffer, offset, options);
  }

  writeAtomicAt(buffer, offset, options) {
    return this.#transfer('write-atomic', 'writeAtomicAt', buffer, offset, options);
  }

  readUncachedAt(buffer, offset, options) {
    return this.#transfer('read-uncached', 'readUncachedAt', buffer, offset, options);
  }

  writeUncachedAt(buffer, offset, options) {
    return this.#transfer('write-uncached', 'writeUncachedAt', buffer, offset, options);
  }

  readUnalignedByCopyAt(buffer, offset, options) {
    return this.#transfer('read-unaligned', 'readUnalignedByCopyAt', buffer, offset, options);
  }

  writeUnalignedByReadModifyWriteAt(buffer, offset, options) {
    return this.#transfer('write-unaligned', 'writeUnalignedByReadModifyWriteAt', buffer, offset, options);
  }

  readVectoredAt(buffers, offset, options) {
    return this.#transferVectored(false, 'readVectoredAt', buffers, offset, options);
  }

  writeVectoredAt(buffers, offset, options) {
    return this.#transferVectored(true, 'writeVectoredAt', buffers, offset, options);
  }

  createReadStream(options) {
    return require('./lib/streams').createReadStream(this, options);
  }

  createWriteStream(options) {
    return require('./lib/streams').createWriteStream(this, options);
  }

  async flush(level = 'device', options = undefined) {
    checkedWord('level', level, ['barrier', 'data', 'file', 'device']);
    return this.#run('flush', (file, done, cancel) => file.flush(level, done, cancel), checkedSignal(options));
  }

  async preallocate(offset, lengthBytes) {
    const start = checkedOffset(offset);
    const length = checkedInteger('lengthBytes', lengthBytes, 1, Number.MAX_SAFE_INTEGER);
    await this.#run('preallocate', (file, done) => file.preallocate(start, length, done));
  }

  async truncate(lengthBytes = 0) {
    const length = checkedInteger('lengthBytes', lengthBytes, 0, Number.MAX_SAFE_INTEGER);
    await this.#run('truncate', (file, done) => file.truncate(length, done));
  }

  async size() {
    return this.#run('size', (file, done) => file.size(done));
  }

  async deviceFacts() {
    const found = await this.#run('deviceFacts', (file, done) => file.deviceFacts(done));
    return withNulls(found, [
      'sizeBytes', 'logicalSectorBytes', 'physicalSectorBytes', 'minimumIoBytes', 'optimalIoBytes', 'isRotational',
      'serial', 'serialSource',
    ]);
  }

  async tryLock(mode = 'exclusive') {
    checkedWord('mode', mode, ['shared', 'exclusive']);
    await this.#run('tryLock', (file, done) => file.lock(mode, done));
  }

  async unlock() {
    await this.#run('unlock', (file, done) => file.lock('none', done));
  }

  async tryLockRange(offset, lengthBytes, mode = 'exclusive') {
    await this.#lockRange('tryLockRange', mode, offset, lengthBytes);
  }

  async unlockRange(offset, lengthBytes) {
    await this.#lockRange('unlockRange', 'none', offset, lengthBytes);
  }

  async residency(offset = 0, lengthBytes = 0) {
    const start = checkedOffset(offset);
    const length = checkedInteger('lengthBytes', lengthBytes, 0, Number.MAX_SAFE_INTEGER);
    const found = await this.#run('residency', (file, done) => file.residency(start, length, done));
    return withNulls(found, ['cachedPages', 'dirtyPages', 'writebackPages', 'pageSizeBytes', 'filePages', 'source']);
  }

  async evict(offset = 0, lengthBytes = 0) {
    const start = checkedOffset(offset);
    const length = checkedInteger('lengthBytes', lengthBytes, 0, Number.MAX_SAFE_INTEGER);
    await this.#run('evict', (file, done) => file.evict(start, length, done));
  }

  /** Takes no more calls, waits for those that have begun, and closes. Twice is once. */
  close() {
    this.#closed ??= (async () => {
      if (this.#pending > 0) await new Promise((resolve) => (this.#whenIdle = resolve));
      await call((done) => this.#native.close(done));
    })();
    return this.#closed;
  }

  async #lockRange(what, mode, offset, lengthBytes) {
    checkedWord('mode', mode, what === 'unlockRange' ? ['none'] : ['shared', 'exclusive']);
    const start = checkedOffset(offset);
    const length = checkedInteger('lengthBytes', lengthBytes, 0, Number.MAX_SAFE_INTEGER);
    await this.#run(what, (file, done) => file.lockRange(mode, start, length, done));
  }

  #open(what) {
    if (this.isClosed) {
      const name = this.#path === undefined ? 'the file' : `\`${this.#path}\``;
      throw wrong(Error, 'EBADF', `${name} is closed, and \`${what}\` needs it open`, this.#path !== undefined && { path: this.#path });
    }
    return this.#native;
  }

  #end() {
    this.#pending -= 1;
    if (this.#pending === 0 && this.#whenIdle) this.#whenIdle();
  }

  /** The error of a call: the compiled half knows the file and not its name. */
  #failed(error) {
    if (error.path === undefined && this.#path !== undefined) error.path = this.#path;
    return error;
  }

  async #run(what, start, signal) {
    const file = this.#open(what);
    this.#pending += 1;
    try {
      return await callCancellable(signal, (done, cancel) => start(file, done, cancel));
    } catch (error) {
      throw this.#failed(error);
    } finally {
      this.#end();
    }
  }

  /** Two promises and no async function: 20,000 transfers at once cost no more than those of `fs.promises`. */
  #transfer(kind, what, buffer, offset, options) {
    if (options !== undefined) return this.#transferCancellable(kind, what, buffer, offset, options);
    return new Promise((resolve, reject) => {
      const file = this.#open(what);
      const refusal = file.transfer(kind, checkedBuffer(buffer), checkedOffset(offset), (failure, value) => {
        this.#end();
        if (failure) reject(failure);
        else resolve(value);
      });
      if (refusal) reject(refusal);
      else this.#pending += 1;
    }).then(undefined, this.#rethrow);
  }

  /** As `rethrow`, with the path; an error of an argument is one already. */
  #rethrow = (failure) => {
    throw failure instanceof Error ? failure : this.#failed(errorOf(failure));
  };

  async #transferCancellable(kind, what, buffer, offset, options) {
    const signal = checkedSignal(options);
    const view = checkedBuffer(buffer);
    const place = checkedOffset(offset);
    return this.#run(what, (file, done, cancel) => file.transfer(kind, view, place, done, cancel), signal);
  }

  async #transferVectored(isWrite, what, buffers, offset, options) {
    checkedType('buffers', buffers, Array.isArray(buffers), 'an array');
    // A copy: the caller may change the array meanwhile.
    const views = Array.from(buffers, checkedBuffer);
    const place = checkedOffset(offset);
    const signal = checkedSignal(options);
    return this.#run(what, (file, done, cancel) => file.transferVectored(isWrite, views, place, done, cancel), signal);
  }
}

// Node 18 has no Symbol.asyncDispose before 18.18; `await using` needs newer ones anyway.
if (Symbol.asyncDispose) {
  Object.defineProperty(DirectFile.prototype, Symbol.asyncDispose, {
    configurable: true,
    writable: true,
    value: DirectFile.prototype.close,
  });
}

/** Buffers that were collected while they were lent: their pools replace them. */
const forgotten = new FinalizationRegistry((pool) => pool.deref()?.[REPLACE]());
const REPLACE = Symbol('replace');

class BufferPool {
  #count;
  #sizeBytes;
  #alignment;
  #free;
  #taken = new WeakSet();
  #waiting = new Waiters();

  constructor(count, sizeBytes, alignmentBytes = ALIGNMENT_DEFAULT) {
    this.#count = checkedInteger('count', count, 1, SIZE_MAX);
    this.#sizeBytes = checkedInteger('sizeBytes', sizeBytes, 1, SIZE_MAX);
    this.#alignment = checkedPowerOfTwo('alignmentBytes', alignmentBytes);
    const stride = Math.ceil(this.#sizeBytes / this.#alignment) * this.#alignment;
    if (this.#count * stride > SIZE_MAX) {
      const message = `${count} buffers of ${sizeBytes} bytes, aligned to ${alignmentBytes}, are more than ${SIZE_MAX} bytes`;
      throw wrong(RangeError, 'ERR_OUT_OF_RANGE', message);
    }
    this.#free = Array.from({ length: this.#count }, () => this.#made());
  }

  /** Each has an ArrayBuffer of its own, which is collected when no view of it is left anywhere. */
  #made() {
    const buffer = allocate(this.#sizeBytes, this.#alignment);
    forgotten.register(buffer.buffer, new WeakRef(this));
    return buffer;
  }

  [REPLACE]() {
    this.#give(this.#made());
  }

  get sizeBytes() {
    return this.#sizeBytes;
  }

  get freeCount() {
    return this.#free.length;
  }

  get count() {
    return this.#count;
  }

  tryAcquire() {
    const buffer = this.#free.pop();
    if (buffer === undefined) return null;
    this.#taken.add(buffer);
    return buffer;
  }

  async acquire(options) {
    const signal = checkedSignal(options, ['timeout']);
    const timeout = options?.timeout === undefined ? undefined : checkedInteger('timeout', options.timeout, 0, SIZE_MAX);
    if (signal?.aborted) throw aborted(signal);
    const buffer = this.tryAcquire();
    if (buffer !== null) return buffer;
    return this.#waiting.wait(signal, timeout, () => timedOut(this.#count, timeout));
  }

  release(buffer) {
    if (!this.#taken.delete(buffer)) {
      const message = 'this buffer is not out of this pool: it was released before, or is not one of its buffers';
      throw wrong(Error, 'ERR_TRUEIO_NOT_OF_POOL', message);
    }
    this.#give(buffer);
  }

  /** Lends a free buffer to the first who waits. */
  #give(buffer) {
    if (this.#waiting.serve(buffer)) this.#taken.add(buffer);
    else this.#free.push(buffer);
  }

  async use(task, options) {
    checkedType('task', task, typeof task === 'function', 'a function');
    const buffer = await this.acquire(options);
    try {
      return await task(buffer);
    } finally {
      this.release(buffer);
    }
  }
}

function timedOut(count, timeout) {
  const error = wrong(Error, 'ETIMEDOUT', `none of the ${count} buffers of the pool was released within ${timeout} ms`);
  error.name = 'TimeoutError';
  return error;
}

function createReadStream(path, options) {
  return require('./lib/streams').createReadStream(checkedPath(path), options);
}

function createWriteStream(path, options) {
  return require('./lib/streams').createWriteStream(checkedPath(path), options);
}

module.exports = {
  probe, probeDirectory, open, fromFile, copyFile, createReadStream, createWriteStream, syncDirectory, allocate,
  BufferPool, DirectFile,
};
