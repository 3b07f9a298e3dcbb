'use strict';
// Copies past the page cache: holes, ranges, refusals, progress, and how they are stopped.

const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { pathToFileURL } = require('url');
const { Worker } = require('worker_threads');
const { PACKAGE, isLinux, lacks, loopDevice, loopReason, runNode, scratch } = require('./support');

const direct = require('../promises');
const linuxOnly = { skip: !isLinux && 'Linux only' };
const MIB = 1 << 20;

const contents = (length) => Buffer.from({ length }, (_, index) => index % 251);

/** Paths of a source of `length` bytes, and of a copy that does not exist. */
function places(t, length) {
  const folder = scratch(t);
  const source = path.join(folder, 'source');
  fs.writeFileSync(source, contents(length));
  return { folder, source, copy: path.join(folder, 'copy') };
}

test('holes stay holes unless they are to be written', linuxOnly, async (t) => {
  const { folder, source, copy } = places(t, 0);
  fs.truncateSync(source, 8 * MIB);
  const fd = fs.openSync(source, 'r+');
  for (const piece of [1, 7]) fs.writeSync(fd, contents(MIB), 0, MIB, piece * MIB);
  fs.fsyncSync(fd);
  fs.closeSync(fd);
  const { dataBytes, holeBytes, flushed } = await direct.copyFile(source, copy);
  assert.deepStrictEqual([dataBytes, holeBytes, flushed.level], [2 * MIB, 6 * MIB, 'device']);
  assert.ok(fs.readFileSync(copy).equals(fs.readFileSync(source)));
  assert.ok(fs.statSync(copy).blocks * 512 < 4 * MIB);
  const filled = path.join(folder, 'filled');
  const all = await direct.copyFile(source, filled, { keepHoles: false, flush: false, policy: 'off' });
  assert.deepStrictEqual(all, { dataBytes: 8 * MIB, cachedBytes: 0, holeBytes: 0, source: 'buffered', destination: 'buffered', flushed: null });
  assert.ok(fs.readFileSync(filled).equals(fs.readFileSync(source)));
  assert.ok(fs.statSync(filled).blocks * 512 >= 8 * MIB);
});

test('a copy has the bytes of its source whatever its tail, and a part goes to any offset', async (t) => {
  for (const length of [1, 511, 4096, 4097, 100_003]) {
    for (const bufferBytes of [1, 8192, undefined]) {
      const { source, copy } = places(t, length);
      await direct.copyFile(pathToFileURL(source), copy, { bufferBytes, flush: 'data' });
      assert.ok(fs.readFileSync(copy).equals(contents(length)));
      const start = Math.floor(length / 3);
      const options = { range: [start, BigInt(length)], destinationOffset: length, overwrite: true, bufferBytes };
      await direct.copyFile(source, copy, options);
      assert.ok(fs.readFileSync(copy).equals(Buffer.concat([contents(length), contents(length).subarray(start)])));
    }
  }
});

test('a refused copy changes nothing and tells why', async (t) => {
  const { folder, source, copy } = places(t, 5000);
  const kept = path.join(folder, 'kept');
  fs.writeFileSync(kept, 'kept');
  const link = path.join(folder, 'link');
  fs.linkSync(source, link);
  for (const [to, options, code, message] of [
    [kept, {}, 'EEXIST', /exists already/],
    [source, { overwrite: true }, 'EINVAL', /is the source itself/],
    [link, { overwrite: true }, 'EINVAL', /is the source itself/],
    [copy, { range: [0, 5001] }, 'EINVAL', /5001 bytes needed, 5000 available/],
  ]) {
    await assert.rejects(direct.copyFile(source, to, options), { code, message, syscall: 'copyfile', path: source, dest: to });
  }
  const missing = path.join(folder, 'missing');
  await assert.rejects(direct.copyFile(missing, copy), { code: 'ENOENT', syscall: 'open', path: missing });
  await assert.rejects(direct.copyFile(folder, copy), { code: 'EISDIR', path: folder });
  for (const [options, code] of [
    [{ policy: 'direct' }, 'ERR_INVALID_ARG_VALUE'],
    [{ flush: 'all' }, 'ERR_INVALID_ARG_VALUE'],
    [{ overwritten: true }, 'ERR_INVALID_ARG_VALUE'],
    [{ range: [3, 1] }, 'ERR_OUT_OF_RANGE'],
    [{ range: [1] }, 'ERR_INVALID_ARG_TYPE'],
    [{ bufferBytes: 0 }, 'ERR_OUT_OF_RANGE'],
    [{ destinationOffset: -1 }, 'ERR_OUT_OF_RANGE'],
    [{ onProgress: 3 }, 'ERR_INVALID_ARG_TYPE'],
    [{ signal: {} }, 'ERR_INVALID_ARG_TYPE'],
    [null, 'ERR_INVALID_ARG_TYPE'],
  ]) {
    await assert.rejects(direct.copyFile(source, copy, options), { code }, JSON.stringify(options));
  }
  assert.strictEqual(fs.readFileSync(kept, 'utf8'), 'kept');
  assert.deepStrictEqual(fs.readdirSync(folder).sort(), ['kept', 'link', 'source']);
});

test('a disk that is too small is refused, and one that is not holds the copy', async (t) => {
  if (lacks(t, 'loop', loopReason())) return;
  const { folder, source } = places(t, MIB);
  const device = loopDevice(t, folder, MIB);
  await assert.rejects(direct.copyFile(source, device), { code: 'EEXIST', errno: -17 });
  await assert.rejects(direct.copyFile(source, device, { overwrite: true, destinationOffset: 1 }), { code: 'EINVAL' });
  await direct.copyFile(source, device, { overwrite: true, policy: 'require' });
  const back = path.join(folder, 'back');
  assert.strictEqual((await direct.copyFile(device, back)).source, 'direct');
  assert.ok(fs.readFileSync(back).equals(contents(MIB)));
});

test('progress rises to the total', async (t) => {
  const { source, copy } = places(t, MIB / 4);
  const reports = [];
  await direct.copyFile(source, copy, { bufferBytes: 1, onProgress: (progress) => reports.push(progress) });
  assert.deepStrictEqual(reports.at(-1), { doneBytes: MIB / 4, totalBytes: MIB / 4 });
  assert.ok(reports.every(({ doneBytes }, index) => index === 0 || doneBytes > reports[index - 1].doneBytes));
  assert.ok(reports[0].doneBytes < MIB / 4, 'the first block is reported');
  assert.ok(!process.listeners('exit').some(({ name }) => name === 'stopAll'), 'no listener is left');
});

test('an exception or an abort in the last report still stops the copy, and removes what it made', async (t) => {
  const { source, copy } = places(t, 100_000);
  const stop = new Error('stop');
  const controller = new AbortController();
  for (const [options, expected] of [
    [{ onProgress: () => { throw stop; } }, stop],
    [{ onProgress: () => { throw undefined; } }, undefined],
    [{ onProgress: () => controller.abort(), signal: controller.signal }, { name: 'AbortError', code: 'ABORT_ERR' }],
  ]) {
    for (const isNew of [true, false]) {
      if (!isNew) fs.writeFileSync(copy, 'old');
      const error = await direct.copyFile(source, copy, { ...options, overwrite: true }).then(() => assert.fail('not stopped'), (error) => error);
      if (expected === stop || expected === undefined) assert.strictEqual(error, expected);
      else assert.deepStrictEqual([error.name, error.code], [expected.name, expected.code]);
      assert.strictEqual(fs.existsSync(copy), !isNew, 'only what the copy made is removed');
    }
    fs.rmSync(copy);
  }
  await assert.rejects(direct.copyFile(source, copy, { signal: AbortSignal.abort() }), { name: 'AbortError' });
  assert.ok(!fs.existsSync(copy));
});

/** A source whose zeros take long to copy in blocks of one sector; a copy that is not stopped loses no more than 4 GiB. */
function endless(t) {
  const { folder, source, copy } = places(t, 0);
  fs.truncateSync(source, 2 ** 32);
  return { folder, source, copy, options: { keepHoles: false, bufferBytes: 1 } };
}

test('a signal stops a copy that runs', linuxOnly, async (t) => {
  const { source, copy, options } = endless(t);
  const controller = new AbortController();
  const outcome = direct.copyFile(source, copy, { ...options, signal: controller.signal });
  while (!fs.existsSync(copy)) await new Promise((resolve) => setTimeout(resolve, 1));
  controller.abort();
  await assert.rejects(outcome, { name: 'AbortError', code: 'ABORT_ERR' });
  assert.ok(!fs.existsSync(copy));
  const thrown = new Error('enough');
  await assert.rejects(direct.copyFile(source, copy, { ...options, onProgress: () => { throw thrown; } }), thrown);
  assert.ok(!fs.existsSync(copy));
});

/**
 * Goal: a copy takes no thread of libuv's pool, and more than sixteen wait for each other.
 * Method: a pool of one thread, and copies that do not end by themselves. Each that runs has made its destination; the destination of the
 * one that waits is not there after calls that come later, and is there when another one has ended.
 */
test('copies run next to the calls of the pool, sixteen at once', linuxOnly, async (t) => {
  const { folder, source, options } = endless(t);
  const script = `
    const direct = require(${JSON.stringify(path.join(PACKAGE, 'promises'))}), fs = require('fs');
    const begin = (index) => {
      const controller = new AbortController();
      const ended = direct.copyFile('source', 'copy-' + index, { ...${JSON.stringify(options)}, signal: controller.signal })
        .then(() => 'copied', ({ name }) => name);
      return { end: () => (controller.abort(), ended) };
    };
    const has = (index) => fs.promises.stat('copy-' + index).then(() => true, () => false);
    const until = async (index) => { while (!(await has(index))) await new Promise((resolve) => setTimeout(resolve, 1)); };
    (async () => {
      const copies = Array.from({ length: 19 }, (_, index) => begin(index));
      for (let index = 0; index < 16; index += 1) await until(index);
      const waiting = [await has(16), await has(17), await has(18)];
      const cancelled = await copies[17].end();
      const first = await copies[3].end();
      await until(16);
      const rest = await Promise.all(copies.map(({ end }) => end()));
      console.log(JSON.stringify([waiting, cancelled, first, rest.every((name) => name === 'AbortError'), fs.readdirSync('.')]));
    })();`;
  const ran = runNode(['-e', script], { cwd: folder, env: { ...process.env, UV_THREADPOOL_SIZE: '1' } });
  const aborted = 'AbortError';
  assert.deepStrictEqual(JSON.parse(ran.stdout || 'null'), [[false, false, false], aborted, aborted, true, ['source']], ran.stderr);
  assert.strictEqual(source, path.join(folder, 'source'));
});

test('bytes of the source that are in the page cache are read from there, unless the device is to be read', linuxOnly, async (t) => {
  const { source, copy } = places(t, 3 * MIB + 5);
  const file = await direct.open(source, { policy: 'prefer', write: true });
  await file.flush();
  const isDirect = file.granted === 'direct';
  await file.close();
  const all = await direct.copyFile(source, copy, { flush: false });
  assert.strictEqual(all.cachedBytes, isDirect ? 3 * MIB + 5 : 0);
  assert.ok(fs.readFileSync(copy).equals(contents(3 * MIB + 5)));
  if (!isDirect) return;
  const none = await direct.copyFile(source, copy, { policy: 'require', overwrite: true, flush: false });
  assert.deepStrictEqual([none.cachedBytes, none.source], [0, 'direct']);
});

/** Goal: the thread, which waits for an answer or copies on, keeps neither a process nor a worker from ending. */
test('the exit of the process or of a worker stops the copy', linuxOnly, async (t) => {
  const { folder, source, copy, options } = endless(t);
  const copying = (extra) => `require(${JSON.stringify(path.join(PACKAGE, 'promises'))}).copyFile(
    ${JSON.stringify(source)}, ${JSON.stringify(copy)}, { ...${JSON.stringify(options)}, ${extra} });`;
  const ended = runNode(['-e', copying('onProgress: () => process.exit(3)')]);
  assert.deepStrictEqual([ended.status, ended.stderr], [3, '']);
  assert.ok(!fs.existsSync(copy));
  // The last report, which the copy waits for.
  const last = runNode(['-e', copying('range: [0, 10], onProgress: () => process.exit(4)')]);
  assert.deepStrictEqual([last.status, last.stderr], [4, '']);
  assert.ok(!fs.existsSync(copy));
  for (const extra of ['', 'range: [0, 10], onProgress: () => { for (;;) require("fs").writeFileSync("begun", "") }']) {
    const begun = extra === '' ? copy : path.join(folder, 'begun');
    const worker = new Worker(copying(extra.replace('"begun"', JSON.stringify(begun))), { eval: true });
    while (!fs.existsSync(begun)) await new Promise((resolve) => setTimeout(resolve, 1));
    await worker.terminate();
    assert.ok(!fs.existsSync(copy));
  }
});
