'use strict';
// Streams, vectored transfers, signals and files that are open already.

const assert = require('assert');
const crypto = require('crypto');
const { execFileSync } = require('child_process');
const { once } = require('events');
const fs = require('fs');
const path = require('path');
const { pipeline } = require('stream/promises');
const { Readable } = require('stream');
const { test } = require('node:test');
const direct = require('../promises');
const { PACKAGE, isLinux, lacks, loopDevice, loopReason, runNode, scratch } = require('./support');

const linuxOnly = { skip: !isLinux && 'Linux only' };

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test('a file that a write stream makes has the mode that those of fs have', linuxOnly, async (t) => {
  const folder = scratch(t);
  const modeOf = async (name, stream) => {
    await pipeline(Readable.from(['x']), stream);
    return fs.statSync(name).mode & 0o777;
  };
  const [ours, theirs, chosen] = ['ours', 'theirs', 'chosen'].map((name) => path.join(folder, name));
  const expected = await modeOf(theirs, fs.createWriteStream(theirs));
  assert.strictEqual(await modeOf(ours, direct.createWriteStream(ours, { policy: 'prefer' })), expected);
  assert.strictEqual(await modeOf(chosen, direct.createWriteStream(chosen, { policy: 'prefer', mode: 0o600 })), 0o600);
});

test('a read stream gives the bytes of a file from any start to any end', async (t) => {
  const name = path.join(scratch(t), 'data');
  const bytes = crypto.randomBytes(100_001);
  fs.writeFileSync(name, bytes);
  for (const options of [{}, { start: 1 }, { start: 4096, end: 8191 }, { start: 511, end: 511 }, { start: 5000, end: 70_000 }, { start: 100_000 }, { start: 200_000 }]) {
    for (const highWaterMark of [1, 4096, 10_000, undefined]) {
      const read = await collect(direct.createReadStream(name, { policy: 'prefer', highWaterMark, ...options }));
      assert.ok(read.equals(await collect(fs.createReadStream(name, options))), JSON.stringify({ ...options, highWaterMark }));
    }
  }
  const file = await direct.open(name, { policy: 'prefer' });
  assert.ok((await collect(file.createReadStream({ start: 3 }))).equals(bytes.subarray(3)));
  assert.strictEqual(await file.size(), bytes.length, 'the stream of an open file leaves it open');
  await collect(file.createReadStream({ autoClose: true }));
  assert.ok(file.isClosed);
});

/**
 * Goal: a written file is as long as what was written, and holds what was around it before.
 * Method: pieces of odd lengths, from an aligned start and from others, into a new file and into the middle of an old one.
 */
test('a write stream writes any bytes from any start, and keeps what surrounds them', async (t) => {
  const folder = scratch(t);
  for (const [index, [length, start]] of [[0, 0], [1, 0], [4096, 0], [100_001, 0], [100_001, 1], [300, 4000], [5000, 4095], [1 << 20, 512]].entries()) {
    for (const highWaterMark of [1, 8192, undefined]) {
      const name = path.join(folder, `${index}-${highWaterMark}`);
      const bytes = crypto.randomBytes(length);
      const pieces = [];
      for (let at = 0; at < length; at += 7777) pieces.push(bytes.subarray(at, at + 7777));
      const fresh = direct.createWriteStream(name, { create: true, policy: 'prefer', start, highWaterMark, flush: 'data' });
      await pipeline(Readable.from(pieces), fresh);
      assert.strictEqual(fresh.bytesWritten, length);
      assert.ok(fs.readFileSync(name).equals(length === 0 ? bytes : Buffer.concat([Buffer.alloc(start), bytes])), `${length} at ${start}`);
      const old = crypto.randomBytes(start + length + 5001);
      fs.writeFileSync(name, old);
      await pipeline(Readable.from(pieces), direct.createWriteStream(name, { policy: 'prefer', start, highWaterMark }));
      bytes.copy(old, start);
      assert.ok(fs.readFileSync(name).equals(old), `${length} at ${start} of an old file`);
    }
  }
});

test('streams copy a file to a disk and back', async (t) => {
  if (lacks(t, 'loop', loopReason())) return;
  const folder = scratch(t);
  const bytes = crypto.randomBytes((3 << 20) + 777);
  fs.writeFileSync(path.join(folder, 'image'), bytes);
  const device = loopDevice(t, folder, 4 << 20, 4096);
  const image = direct.createReadStream(path.join(folder, 'image'), { policy: 'prefer' });
  await pipeline(image, direct.createWriteStream(device, { exclusive: true, flush: true }));
  assert.ok((await collect(direct.createReadStream(device, { end: bytes.length - 1 }))).equals(bytes));
});

test('streams refuse what they cannot do', async (t) => {
  const folder = scratch(t);
  assert.throws(() => direct.createReadStream('x', { start: -1 }), { code: 'ERR_OUT_OF_RANGE' });
  assert.throws(() => direct.createReadStream('x', { start: 5, end: 4 }), { code: 'ERR_OUT_OF_RANGE' });
  assert.throws(() => direct.createWriteStream('x', { highWaterMark: 0.5 }), { code: 'ERR_OUT_OF_RANGE' });
  await assert.rejects(collect(direct.createReadStream(path.join(folder, 'none'))), { code: 'ENOENT' });
  await assert.rejects(collect(direct.createReadStream(folder, { stat: 4 })), {
    code: 'ERR_INVALID_ARG_VALUE',
    message: '`stat` is not an option of this stream; its options are start, end, highWaterMark, autoClose, emitClose, signal, encoding, flags, ' +
      'read, write, create, createNew, policy, sync, exclusive, mode',
  });
  const [mistake] = await once(direct.createWriteStream(path.join(folder, 'none'), { emitClos: false }), 'error');
  assert.match(mistake.message, /^`emitClos` is not an option of this stream; its options are start, .*\bemitClose, flush, .*\bmode$/);
  assert.ok(!fs.existsSync(path.join(folder, 'none')));
  const file = await direct.open(path.join(folder, 'file'), { createNew: true, write: true, policy: 'off' });
  t.after(() => file.close());
  await assert.rejects(collect(file.createReadStream({ ploicy: 'off' })), { message: /^`ploicy` is not an option of this stream; its options are start, .*encoding$/ });
  await assert.rejects(collect(file.createReadStream({ policy: 'off' })), { code: 'ERR_OUT_OF_RANGE', message: /`policy` is an option of files/ });
  const controller = new AbortController();
  const stream = direct.createReadStream(path.join(folder, 'file'), { policy: 'off', signal: controller.signal });
  controller.abort();
  await assert.rejects(collect(stream), { name: 'AbortError' });
});

test('vectored transfers fill and write several buffers with one call, and end with the file', async (t) => {
  const name = path.join(scratch(t), 'data');
  const file = await direct.open(name, { write: true, createNew: true, policy: 'prefer' });
  t.after(() => file.close());
  const pool = direct.allocate(5 * 4096, 4096);
  const parts = [pool.subarray(0, 4096), pool.subarray(8192, 16384), pool.subarray(4096, 8192)];
  parts.forEach((part, index) => part.fill(index + 1));
  const written = await file.writeVectoredAt(parts, 4096);
  assert.deepStrictEqual([written.bytes, written.isCopied, isLinux ? written.calls : 1], [16384, false, 1]);
  assert.ok(fs.readFileSync(name).subarray(4096).equals(Buffer.concat(parts)));
  const back = [Buffer.from(new ArrayBuffer(0)), direct.allocate(8192, 4096), direct.allocate(16384, 4096)];
  assert.strictEqual((await file.readVectoredAt(back, 4096)).bytes, 16384);
  assert.ok(Buffer.concat(back).subarray(0, 16384).equals(Buffer.concat(parts)));
  assert.strictEqual((await file.readVectoredAt([], 0)).bytes, 0);

  // Memory that was not allocated here goes through a copy, also in part.
  const plain = await direct.open(name, { policy: 'off' });
  t.after(() => plain.close());
  const views = [new Uint8Array(10), direct.allocate(4096, 4096), new DataView(new ArrayBuffer(20_000))];
  const copied = await plain.readVectoredAt(views, 4090);
  assert.deepStrictEqual([copied.bytes, copied.isCopied], [16390, true]);
  const joined = Buffer.concat(views.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)));
  assert.ok(joined.subarray(0, 16390).equals(fs.readFileSync(name).subarray(4090)));

  await assert.rejects(file.readVectoredAt([pool, pool], 0), { code: 'ERR_TRUEIO_BUFFER_IN_USE' });
  await assert.rejects(file.readVectoredAt(pool, 0), { code: 'ERR_INVALID_ARG_TYPE', message: /`buffers` must be an array/ });
  await assert.rejects(file.readVectoredAt([pool, 5], 0), { code: 'ERR_INVALID_ARG_TYPE' });
  await assert.rejects(file.readVectoredAt([pool], -1), { code: 'ERR_OUT_OF_RANGE' });
  assert.strictEqual((await file.readVectoredAt([pool], 0)).bytes, 20480, 'a refusal leaves no part in use');
});

test('a file that is open already is taken as what it is, and stays open', linuxOnly, async (t) => {
  const folder = scratch(t);
  const name = path.join(folder, 'data');
  fs.writeFileSync(name, Buffer.alloc(8192, 7));
  const support = (await direct.probe(name)).support;
  for (const [flags, granted] of [[fs.constants.O_RDWR, 'buffered'], [fs.constants.O_RDWR | fs.constants.O_DIRECT, support]]) {
    const fd = fs.openSync(name, flags);
    const file = await direct.fromFile(fd);
    assert.deepStrictEqual([file.granted, file.path], [granted, undefined]);
    const buffer = direct.allocate(4096, 4096);
    assert.strictEqual((await file.readAt(buffer, 4096)).bytes, 4096);
    assert.strictEqual(buffer[0], 7);
    await file.close();
    await assert.rejects(file.size(), { code: 'EBADF', message: /the file is closed/ });
    assert.strictEqual(fs.fstatSync(fd).size, 8192, 'the descriptor is still open');
    fs.closeSync(fd);
  }
  const handle = await fs.promises.open(name);
  await (await direct.fromFile(handle)).close();
  assert.strictEqual((await handle.stat()).size, 8192);
  await handle.close();
  await assert.rejects(direct.fromFile(4321), { code: 'EBADF' });
  const folderFd = fs.openSync(folder);
  await assert.rejects(direct.fromFile(folderFd), { code: 'EISDIR' });
  fs.closeSync(folderFd);
  await assert.rejects(direct.fromFile('data'), { code: 'ERR_INVALID_ARG_TYPE' });
});

/**
 * Goal: a signal takes out what waits, and leaves alone what has begun.
 * Method: a pool of one thread, which opens a pipe without a writer. Calls made meanwhile wait.
 */
test('a signal cancels calls that wait, and none that have begun', linuxOnly, async (t) => {
  const folder = scratch(t);
  execFileSync('mkfifo', [path.join(folder, 'pipe')]);
  fs.writeFileSync(path.join(folder, 'data'), Buffer.alloc(8192, 7));
  const script = `
    const direct = require(${JSON.stringify(path.join(PACKAGE, 'promises.js'))}), fs = require('fs');
    const outcome = (promise) => promise.then((value) => value?.bytes ?? 'done', (error) => [error.name, error.code, error.cause]);
    (async () => {
      const file = await direct.open('data', { write: true, policy: 'off' });
      const buffer = direct.allocate(4096, 4096), other = direct.allocate(4096, 4096);
      const opening = fs.promises.open('pipe', 'r');
      const controller = new AbortController(), { signal } = controller;
      const waiting = [
        file.readAt(buffer, 0, { signal }), file.writeAllAt(other, 0, { signal }), file.flush('data', { signal }),
        file.readVectoredAt([direct.allocate(4096, 4096)], 0, { signal }), direct.open('new', { write: true, createNew: true, policy: 'off', signal }),
      ];
      const kept = outcome(file.readAt(direct.allocate(4096, 4096), 0, { signal: new AbortController().signal }));
      controller.abort('why');
      const cancelled = await Promise.all(waiting.map(outcome));
      // The memory is free again while the thread is still busy.
      const again = outcome(file.readAt(buffer, 0));
      fs.closeSync(fs.openSync('pipe', 'w'));
      const late = await outcome(file.readAt(other, 0, { signal }));
      console.log(JSON.stringify([cancelled, late, await kept, await again, buffer[0], fs.existsSync('new')]));
      await (await opening).close();
      await file.close();
    })();`;
  const ran = runNode(['-e', script], { cwd: folder, env: { ...process.env, UV_THREADPOOL_SIZE: '1' } });
  const aborted = ['AbortError', 'ABORT_ERR', 'why'];
  assert.deepStrictEqual(JSON.parse(ran.stdout || 'null'), [Array(5).fill(aborted), aborted, 4096, 4096, 7, false], ran.stderr);
});

test('a signal that comes too late, and options that are none', async (t) => {
  const file = await direct.open(path.join(scratch(t), 'data'), { write: true, createNew: true, policy: 'off' });
  t.after(() => file.close());
  const buffer = direct.allocate(4096, 4096);
  const controller = new AbortController();
  await file.writeAllAt(buffer, 0, { signal: controller.signal });
  controller.abort();
  await assert.rejects(file.readAt(buffer, 0, { signal: 'now' }), { code: 'ERR_INVALID_ARG_TYPE' });
  await assert.rejects(file.readAt(buffer, 0, { singal: controller.signal }), { code: 'ERR_INVALID_ARG_VALUE', message: /`singal` is not an option/ });
  await assert.rejects(file.readAt(buffer, 0, 5), { code: 'ERR_INVALID_ARG_TYPE' });
});

/**
 * Goal: 20,000 reads at once cost no more than those of fs.promises.
 * Method: not time, which a busy machine falsifies, but what is made for each: promises and asynchronous resources, counted by
 * Node's own hook. Times are in docs/dev/performance.md.
 */
test('20,000 promise reads at once make no more promises and resources than those of fs.promises', async (t) => {
  const name = path.join(scratch(t), 'data');
  fs.writeFileSync(name, Buffer.alloc(8192, 7));
  const script = `
    const { createHook } = require('async_hooks'), fs = require('fs');
    const direct = require(${JSON.stringify(path.join(PACKAGE, 'promises.js'))});
    const COUNT = 20000, memory = direct.allocate(COUNT * 512, 512);
    const buffers = Array.from({ length: COUNT }, (_, index) => memory.subarray(index * 512, (index + 1) * 512));
    let made = 0;
    const hook = createHook({ init() { made += 1; } });
    async function count(read) {
      hook.enable();
      const before = made;
      const all = Promise.all(buffers.map(read));
      await all;
      hook.disable();
      return made - before;
    }
    (async () => {
      const handle = await fs.promises.open(${JSON.stringify(name)});
      const theirs = await count((buffer) => handle.read(buffer, 0, 512, 0));
      memory.fill(0);
      const file = await direct.open(${JSON.stringify(name)}, { policy: 'off' });
      const ours = await count((buffer) => file.readAt(buffer, 0));
      console.log(JSON.stringify({ ours, theirs, isRead: memory.every((byte) => byte === 7) }));
      await Promise.all([handle.close(), file.close()]);
    })();`;
  const ran = runNode(['-e', script]);
  assert.strictEqual(ran.status, 0, ran.stderr);
  const { ours, theirs, isRead } = JSON.parse(ran.stdout);
  assert.ok(isRead);
  assert.ok(ours <= theirs, `${ours} of ours, ${theirs} of fs.promises`);
});

test('a write at an offset of a file that is open to append is refused, and writes nothing', linuxOnly, async (t) => {
  const name = path.join(scratch(t), 'log');
  for (const flags of [0, fs.constants.O_DIRECT]) {
    fs.writeFileSync(name, Buffer.alloc(8192, 1));
    const fd = fs.openSync(name, fs.constants.O_RDWR | fs.constants.O_APPEND | flags);
    const file = await direct.fromFile(fd);
    const buffer = direct.allocate(4096, 4096);
    const refused = { code: 'EINVAL', message: /open to append/ };
    await assert.rejects(file.writeAllAt(buffer, 0), refused);
    await assert.rejects(file.writeVectoredAt([buffer], 0), refused);
    await assert.rejects(file.writeUnalignedByReadModifyWriteAt(buffer.subarray(0, 9), 3), refused);
    await assert.rejects(file.writeDsyncAt(buffer, 0), refused);
    await assert.rejects(pipeline(Readable.from([Buffer.from('x')]), file.createWriteStream()), refused);
    assert.ok(fs.readFileSync(name).equals(Buffer.alloc(8192, 1)));
    assert.strictEqual((await file.readAt(buffer, 0)).bytes, 4096, 'reads are not refused');
    await file.close();
    fs.closeSync(fd);
  }
});

/** What a write stream with these options leaves in the file, or the code of its error. */
async function left(create, name, options, bytes) {
  try {
    await pipeline(Readable.from([bytes]), create(name, options));
    return fs.readFileSync(name, 'latin1');
  } catch (error) {
    return error.code;
  }
}

test('flags create, empty and refuse files as those of fs do', async (t) => {
  const folder = scratch(t);
  for (const flags of [undefined, 'w', 'w+', 'wx', 'xw', 'wx+', 'r+', 'rs+']) {
    for (const before of [undefined, 'x'.repeat(10_000)]) {
      const outcomes = [];
      for (const create of [fs.createWriteStream, direct.createWriteStream]) {
        const name = path.join(folder, `${flags}-${before?.length}-${outcomes.length}`);
        if (before !== undefined) fs.writeFileSync(name, before);
        const ours = create === fs.createWriteStream ? {} : { policy: 'prefer' };
        outcomes.push(await left(create, name, { ...(flags && { flags }), ...ours }, Buffer.from('hello')));
      }
      assert.strictEqual(outcomes[1], outcomes[0], `${flags}, ${before === undefined ? 'new' : 'old'}`);
    }
  }
});

test('without flags, a stream with a start or with options of open truncates nothing', async (t) => {
  const name = path.join(scratch(t), 'data');
  const old = 'x'.repeat(5000);
  for (const options of [{ start: 0 }, { start: 4000 }, { write: true }, { create: true }]) {
    fs.writeFileSync(name, old);
    const start = options.start ?? 0;
    const expected = `${old.slice(0, start)}hello${old.slice(start + 5)}`;
    assert.strictEqual(await left(direct.createWriteStream, name, { policy: 'prefer', ...options }, Buffer.from('hello')), expected);
  }
  fs.unlinkSync(name);
  assert.strictEqual(await left(direct.createWriteStream, name, { policy: 'prefer', start: 3 }, Buffer.from('hello')), '\0\0\0hello');
  assert.strictEqual(await left(direct.createWriteStream, name, { policy: 'prefer', start: 1, flags: 'w' }, Buffer.from('a')), '\0a');
});

test('flags that are none, would append or contradict options are refused, and change nothing', async (t) => {
  const name = path.join(scratch(t), 'data');
  fs.writeFileSync(name, 'kept');
  for (const flags of ['a', 'ax', 'a+', 'as']) {
    assert.throws(() => direct.createWriteStream(name, { flags }), { code: 'ERR_OUT_OF_RANGE', message: /nothing can be appended; write at the end of the file with `r\+` and `start`/ });
  }
  for (const flags of ['r', 'q', 5, null, 'constructor']) assert.throws(() => direct.createWriteStream(name, { flags }), { code: 'ERR_OUT_OF_RANGE' });
  for (const flags of ['w', 'a']) assert.throws(() => direct.createReadStream(name, { flags }), { code: 'ERR_OUT_OF_RANGE', message: /'r' or 'r\+'/ });
  assert.throws(() => direct.createWriteStream(name, { flags: 'w', create: true }), { message: /`create` cannot be set next to `flags`/ });
  const file = await direct.open(name, { write: true, policy: 'prefer' });
  t.after(() => file.close());
  await assert.rejects(pipeline(Readable.from([Buffer.from('x')]), file.createWriteStream({ flags: 'w' })), { message: /`flags` is an option of files/ });
  assert.strictEqual(fs.readFileSync(name, 'utf8'), 'kept');
});

test('streams have the events, fields and encodings of those of fs', async (t) => {
  const name = path.join(scratch(t), 'data');
  const text = 'größer '.repeat(2000);
  const events = async (stream, end) => {
    const seen = [];
    for (const event of ['open', 'ready', 'finish', 'end', 'close']) stream.on(event, () => seen.push(event));
    const pending = [stream.pending, stream.path];
    end(stream);
    await new Promise((resolve) => stream.once('close', resolve));
    return { seen, pending, later: stream.pending };
  };
  const written = [fs, direct].map((from) => (file) => from.createWriteStream(file, { encoding: 'latin1', ...(from === direct && { policy: 'prefer' }) }));
  const outcomes = [];
  for (const create of written) {
    outcomes.push(await events(create(name), (stream) => stream.end('größer')));
    outcomes.push(fs.readFileSync(name));
  }
  assert.deepStrictEqual(outcomes.slice(2), outcomes.slice(0, 2));
  fs.writeFileSync(name, text);
  for (const options of [{ encoding: 'utf8', highWaterMark: 4097 }, { start: 1, end: 4, encoding: 'hex' }]) {
    const read = [];
    for (const from of [fs, direct]) {
      const stream = from.createReadStream(name, { ...options, ...(from === direct && { policy: 'prefer' }) });
      const chunks = [];
      stream.on('data', (chunk) => chunks.push(chunk));
      const about = await events(stream, () => {});
      assert.ok(chunks.every((chunk) => typeof chunk === 'string'));
      read.push([chunks.join(''), stream.bytesRead, stream.path, about]);
    }
    assert.deepStrictEqual(read[1], read[0]);
  }
  const opened = direct.createReadStream(name, { policy: 'prefer' });
  const [file] = await new Promise((resolve) => opened.once('open', (...all) => resolve(all)));
  assert.ok(file instanceof direct.DirectFile && file === opened.file);
  await new Promise((resolve) => opened.close(resolve));
  assert.ok(file.isClosed);
  const writer = direct.createWriteStream(name, { policy: 'prefer' });
  writer.write('four');
  await new Promise((resolve) => writer.close(resolve));
  assert.deepStrictEqual([writer.file.isClosed, fs.readFileSync(name, 'utf8')], [true, 'four']);
});

test('truncate sets the length of a file and refuses a disk', async (t) => {
  const folder = scratch(t);
  const name = path.join(folder, 'data');
  fs.writeFileSync(name, 'x'.repeat(5000));
  const file = await direct.open(name, { write: true, policy: 'prefer' });
  t.after(() => file.close());
  await file.truncate(4097);
  assert.strictEqual(fs.readFileSync(name, 'latin1'), 'x'.repeat(4097));
  await file.truncate(5001n);
  assert.strictEqual(fs.readFileSync(name, 'latin1'), 'x'.repeat(4097) + '\0'.repeat(904));
  await file.truncate();
  assert.strictEqual(fs.statSync(name).size, 0);
  await assert.rejects(file.truncate(-1), { code: 'ERR_OUT_OF_RANGE' });
  const reader = await direct.open(name, { policy: 'prefer' });
  t.after(() => reader.close());
  await assert.rejects(reader.truncate(0), { path: name });
  if (lacks(t, 'loop', loopReason())) return;
  const device = loopDevice(t, folder, 1 << 20);
  const disk = await direct.open(device, { write: true });
  await assert.rejects(disk.truncate(0), { code: 'EINVAL' });
  await disk.close();
  await pipeline(Readable.from([Buffer.from('hello')]), direct.createWriteStream(device));
  assert.strictEqual(fs.readFileSync(device, 'latin1').slice(0, 6), 'hello\0');
});

test('emitClose is that of the streams of fs', async (t) => {
  const file = path.join(scratch(t), 'file');
  for (const library of [fs, direct]) {
    for (const emitClose of [undefined, true, false]) {
      let closes = 0;
      const stream = library.createWriteStream(file, { emitClose, ...(library === direct && { policy: 'prefer' }) });
      stream.on('close', () => (closes += 1)).end('bytes');
      await once(stream, 'finish');
      while (!stream.closed) await new Promise(setImmediate);
      await new Promise(setImmediate);
      assert.strictEqual(closes, emitClose === false ? 0 : 1);
    }
  }
});
