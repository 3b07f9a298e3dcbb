'use strict';
// The promise API: its results for valid input, and its errors for invalid input.

const assert = require('assert');
const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { pathToFileURL } = require('url');
const { Worker } = require('worker_threads');
const { PACKAGE, addressOf, isLinux, lacks, loopDevice, loopReason, runNode, scratch } = require('./support');

const direct = require('../promises');
const linuxOnly = { skip: !isLinux && 'Linux only' };

/** A new file for reading and writing, direct where that can be had. */
async function newFile(t, options = {}) {
  const name = path.join(scratch(t), 'file');
  const file = await direct.open(name, { write: true, createNew: true, policy: 'prefer', ...options });
  t.after(() => file.close());
  return file;
}

test('the module is the same under both of its names', () => {
  assert.strictEqual(require('..').promises, direct);
});

test('a probe returns the support and its source, before and after a file exists', linuxOnly, async (t) => {
  const folder = scratch(t);
  const before = await direct.probeDirectory(folder);
  fs.writeFileSync(path.join(folder, 'file'), 'x');
  const after = await direct.probe(path.join(folder, 'file'));
  assert.deepStrictEqual(after, before);
  assert.deepStrictEqual(await direct.probe(pathToFileURL(path.join(folder, 'file'))), after);
  assert.ok(['direct', 'silently-buffered', 'refused', 'unknown'].includes(after.support));
  assert.ok(after.reason.length > 10);
  assert.ok(fs.readdirSync(folder).length === 1, 'a probe leaves nothing behind');
});

test('a probe of a disk returns its alignment', async (t) => {
  if (lacks(t, 'loop', loopReason())) return;
  const device = loopDevice(t, scratch(t), 1 << 20, 4096);
  const found = await direct.probe(device);
  assert.deepStrictEqual([found.support, found.alignment.writeOffsetBytes], ['direct', 4096]);
  assert.match(found.filesystem, /block device/);
});

test('what is written is read back, and size, flush and reservation tell what they did', async (t) => {
  const file = await newFile(t);
  const data = direct.allocate(64 * 1024, 4096);
  data.forEach((_, index) => (data[index] = index % 251));
  assert.deepStrictEqual(await file.writeAllAt(data, 4096), { bytes: 65536, calls: 1, isCopied: false });
  assert.strictEqual(await file.size(), 65536 + 4096);
  for (const level of ['barrier', 'data', 'file', 'device']) {
    const flushed = await file.flush(level);
    assert.ok(['barrier', 'data', 'file', 'device'].indexOf(flushed.level) >= ['barrier', 'data', 'file', 'device'].indexOf(level));
    assert.ok(flushed.call.length > 3);
  }
  const back = direct.allocate(64 * 1024, 4096);
  // Offsets may be bigints.
  await file.readExactAt(back, 4096n);
  assert.ok(back.equals(data));
  assert.ok(fs.readFileSync(file.path).subarray(4096).equals(data), 'and by another way');
  await file.preallocate(0, 1 << 20);
  assert.strictEqual(await file.size(), 1 << 20);
  await direct.syncDirectory(path.dirname(file.path));
});

test('an open file keeps saying what was granted and why', async (t) => {
  const file = await newFile(t, { policy: 'off' });
  assert.deepStrictEqual([file.granted, file.alignment.source, file.alignment.memoryBytes], ['buffered', 'not-needed', 1]);
  assert.ok(file.reason.length > 5);
  await file.close();
  assert.strictEqual(file.granted, 'buffered');
  assert.ok(Object.isFrozen(file.alignment));
});

/**
 * Goal: each policy has its documented effect.
 * Method: tmpfs takes O_DIRECT and ignores it; /dev/shm is one on every Linux.
 */
test('less than asked for is granted under `prefer` only', linuxOnly, async (t) => {
  const folder = scratch(t, '/dev/shm');
  const options = { write: true, createNew: true };
  await assert.rejects(direct.open(path.join(folder, 'a'), options), (error) => {
    assert.strictEqual(error.code, 'ERR_TRUEIO_WOULD_BUFFER');
    assert.match(error.message, /accepted and silently buffered: .*tmpfs/);
    return true;
  });
  assert.deepStrictEqual(fs.readdirSync(folder), [], 'a refused file is not left behind');
  const file = await direct.open(path.join(folder, 'b'), { ...options, policy: 'prefer' });
  assert.strictEqual(file.granted, 'buffered');
  assert.match(file.reason, /tmpfs/);
  await file.close();
});

test('misalignment is named before the call: which number, what it is, what is needed', async (t) => {
  if (lacks(t, 'loop', loopReason())) return;
  const device = loopDevice(t, scratch(t), 1 << 20, 4096);
  const file = await direct.open(device, { write: true, exclusive: true });
  t.after(() => file.close());
  const buffer = direct.allocate(8192, 4096);
  for (const [view, offset, part, value, needed] of [
    [buffer.subarray(1, 4097), 0, 'address', addressOf(buffer) + 1, file.alignment.memoryBytes],
    [buffer.subarray(0, 512), 0, 'length', 512, 4096],
    [buffer, 512, 'offset', 512, 4096],
  ]) {
    const expected = { code: 'ERR_TRUEIO_MISALIGNED', part, value, neededBytes: needed };
    for (const [act, verb] of [[() => file.writeAllAt(view, offset), 'write'], [() => file.readExactAt(view, offset), 'read']]) {
      await assert.rejects(act(), (error) => {
        const { code, part, value, neededBytes } = error;
        assert.deepStrictEqual({ code, part, value, neededBytes }, expected);
        assert.match(error.message, new RegExp(`^the ${part} of this ${verb}, .* is not a multiple of ${needed} bytes`));
        return true;
      });
    }
    assert.throws(() => file.check(view, offset, 'write'), { code: 'ERR_TRUEIO_MISALIGNED', part });
  }
  assert.strictEqual(file.check(buffer, 4096, 'read'), undefined);
  // And nothing was written by any of them.
  assert.ok(fs.readFileSync(device).every((byte) => byte === 0));
});

test('memory of V8 is checked like aligned memory, and transferred by a copy, which is reported', async (t) => {
  const file = await newFile(t, { policy: 'off' });
  const foreign = Buffer.from('a record of nineteen');
  assert.deepStrictEqual(await file.writeAllAt(foreign, 3), { bytes: 20, calls: 1, isCopied: true });
  const views = [Buffer.alloc(20), new Uint8Array(20), new Uint32Array(5), new DataView(new ArrayBuffer(20)), new Uint8Array(new SharedArrayBuffer(20))];
  for (const view of views) {
    assert.deepStrictEqual(await file.readExactAt(view, 3), { bytes: 20, calls: 1, isCopied: true });
    assert.strictEqual(Buffer.from(view.buffer, view.byteOffset, 20).toString(), 'a record of nineteen');
  }
});

test('a buffer whose memory is given away while it is being read into is an error', async (t) => {
  const file = await newFile(t, { policy: 'off' });
  await file.writeAllAt(Buffer.alloc(1 << 20, 1), 0);
  const view = new Uint8Array(1 << 20);
  const reading = file.readExactAt(view, 0);
  const elsewhere = structuredClone(view.buffer, { transfer: [view.buffer] });
  await assert.rejects(reading, { code: 'ERR_TRUEIO_BUFFER_DETACHED' });
  assert.ok(new Uint8Array(elsewhere).every((byte) => byte === 0));
});

test('a buffer that was given away is refused, and one of no bytes transfers nothing', async (t) => {
  const file = await newFile(t, { policy: 'off' });
  const view = new Uint8Array(100);
  structuredClone(view.buffer, { transfer: [view.buffer] });
  await assert.rejects(file.readAt(view, 0), { name: 'TypeError', code: 'ERR_TRUEIO_BUFFER_DETACHED' });
  assert.strictEqual((await file.writeAllAt(Buffer.alloc(0), 7)).bytes, 0);
  assert.strictEqual((await file.readExactAt(direct.allocate(8, 8).subarray(3, 3), 7)).bytes, 0);
  assert.strictEqual(await file.size(), 0);
});

test('two transfers cannot fill one piece of memory at once, and two can write from it', async (t) => {
  const file = await newFile(t);
  const buffer = direct.allocate(1 << 20, 4096);
  await file.writeAllAt(buffer, 0);
  const [first, second, beside] = await Promise.allSettled([
    file.readExactAt(buffer.subarray(0, 65536), 0),
    file.readExactAt(buffer.subarray(32768, 98304), 0),
    file.readExactAt(buffer.subarray(65536), 65536),
  ]);
  assert.deepStrictEqual([first.status, beside.status], ['fulfilled', 'fulfilled']);
  assert.strictEqual(second.reason.code, 'ERR_TRUEIO_BUFFER_IN_USE');
  assert.match(second.reason.message, /^bytes 32768 to 65536 of this memory are in use/);
  await Promise.all([file.writeAllAt(buffer, 0), file.writeAllAt(buffer, 1 << 20)]);
  await file.readExactAt(buffer, 0);
});

test('a read beyond the end reports the bytes read', async (t) => {
  const file = await newFile(t);
  const buffer = direct.allocate(8192, 4096);
  await file.writeAllAt(buffer, 0);
  await assert.rejects(file.readExactAt(buffer, 4096), {
    code: 'ERR_TRUEIO_END_OF_FILE',
    doneBytes: 4096,
    message: 'the file ended after 4096 of 8192 bytes, read from offset 4096',
  });
});

test('what was read before the end is in memory that is not of this package, too', async (t) => {
  const name = path.join(scratch(t), 'data');
  fs.writeFileSync(name, Buffer.alloc(10016, 7));
  for (const policy of ['prefer', 'off']) {
    const file = await direct.open(name, { policy });
    t.after(() => file.close());
    for (const read of [(buffer) => file.readUnalignedByCopyAt(buffer, 0), ...(policy === 'off' ? [(buffer) => file.readExactAt(buffer, 0)] : [])]) {
      const buffer = new Uint8Array(3 * 4096).fill(0xee);
      await assert.rejects(read(buffer), { code: 'ERR_TRUEIO_END_OF_FILE', doneBytes: 10016 });
      assert.ok(buffer.subarray(0, 10016).every((byte) => byte === 7), policy);
      assert.strictEqual(buffer[10016], 0xee);
    }
  }
});

test('a file that ends between two sectors ends there, and `readAt` is short', async (t) => {
  const name = path.join(scratch(t), 'data');
  const bytes = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 251));
  fs.writeFileSync(name, bytes);
  const file = await direct.open(name, { policy: 'prefer' });
  t.after(() => file.close());
  const buffer = direct.allocate(4096, 4096);
  await assert.rejects(file.readExactAt(buffer, 0), { code: 'ERR_TRUEIO_END_OF_FILE', doneBytes: 1000 });
  buffer.fill(0xee);
  assert.deepStrictEqual(await file.readAt(buffer, 0), { bytes: 1000, calls: 1, isCopied: false });
  assert.ok(buffer.subarray(0, 1000).equals(bytes));
  assert.strictEqual((await file.readAt(buffer, 4096)).bytes, 0);
  const plain = await direct.open(name, { policy: 'off' });
  t.after(() => plain.close());
  const foreign = Buffer.alloc(500, 0xee);
  assert.deepStrictEqual(await plain.readAt(foreign, 900), { bytes: 100, calls: 1, isCopied: true });
  assert.ok(foreign.subarray(0, 100).equals(bytes.subarray(900)));
  assert.ok(foreign.subarray(100).every((byte) => byte === 0xee), 'what was not read is not changed');
});

test('unaligned data is written and read by the calls that say so in their names', async (t) => {
  const file = await newFile(t);
  await file.writeAllAt(direct.allocate(8192, 4096).fill(1), 0);
  await file.writeUnalignedByReadModifyWriteAt(Buffer.from('across a sector'), 4090);
  const back = Buffer.alloc(17);
  await file.readUnalignedByCopyAt(back, 4089);
  assert.strictEqual(back.toString('latin1'), '\x01across a sector\x01');
});

test('a full disk is ENOSPC', linuxOnly, async (t) => {
  if (lacks(t, 'root', process.getuid() !== 0 && 'this user is not root')) return;
  const folder = scratch(t);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder]);
  try {
    const file = await direct.open(path.join(folder, 'a'), { write: true, createNew: true, policy: 'off' });
    const failed = file.writeAllAt(Buffer.alloc(1 << 20), 0);
    await assert.rejects(failed, (error) => {
      assert.deepStrictEqual([error.code, error.errno, error.syscall], ['ENOSPC', -28, 'write']);
      assert.strictEqual(error.doneBytes, 65536);
      return true;
    });
    await file.close();
  } finally {
    execFileSync('umount', [folder]);
  }
});

test('every call on a closed file is rejected, and closing twice has no effect', async (t) => {
  const file = await newFile(t);
  const buffer = direct.allocate(4096, 4096);
  const writing = file.writeAllAt(buffer, 0);
  const closing = Promise.all([file.close(), file.close()]);
  assert.strictEqual(file.isClosed, true);
  const calls = {
    readExactAt: [buffer, 0], writeAllAt: [buffer, 0], writeDsyncAt: [buffer, 0], writeAtomicAt: [buffer, 0],
    readUncachedAt: [buffer, 0], writeUncachedAt: [buffer, 0], readUnalignedByCopyAt: [buffer, 0],
    writeUnalignedByReadModifyWriteAt: [buffer, 0], flush: [], preallocate: [0, 4096], size: [], deviceFacts: [],
    tryLock: [], unlock: [], residency: [], evict: [],
  };
  for (const [name, args] of Object.entries(calls)) {
    await assert.rejects(file[name](...args), { code: 'EBADF', errno: -9, message: `\`${file.path}\` is closed, and \`${name}\` needs it open` });
  }
  assert.throws(() => file.check(buffer, 0, 'read'), { code: 'EBADF' });
  // What had begun is finished first.
  assert.strictEqual((await writing).bytes, 4096);
  await closing;
  await file.close();
  assert.strictEqual(fs.statSync(file.path).size, 4096);
});

test('the descriptor is closed when the promise of close is resolved', linuxOnly, async (t) => {
  const holders = (name) =>
    fs.readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return fs.readlinkSync(`/proc/self/fd/${fd}`) === name;
      } catch {
        return false;
      }
    }).length;
  const file = await newFile(t);
  assert.strictEqual(holders(file.path), 1);
  const buffer = direct.allocate(1 << 20, 4096);
  const writes = Array.from({ length: 8 }, (_, index) => file.writeAllAt(buffer, index << 20));
  await file.close();
  assert.strictEqual(holders(file.path), 0);
  await Promise.all(writes);
});

test('`await using` closes a file', { skip: !Symbol.asyncDispose && 'this Node has no Symbol.asyncDispose' }, async (t) => {
  const file = await newFile(t);
  await file[Symbol.asyncDispose]();
  assert.ok(file.isClosed);
});

test('a lock is refused while another holds it', async (t) => {
  const file = await newFile(t);
  const other = await direct.open(file.path, { policy: 'off' });
  t.after(() => other.close());
  await file.tryLock();
  await assert.rejects(other.tryLock('shared'), { code: 'EAGAIN', syscall: 'flock' });
  await file.unlock();
  await other.tryLock('shared');
  await file.tryLock('shared');
});

test('an exclusively opened disk has one user, and reports its facts', async (t) => {
  if (lacks(t, 'loop', loopReason())) return;
  const device = loopDevice(t, scratch(t), 1 << 20);
  const file = await direct.open(device, { exclusive: true });
  t.after(() => file.close());
  await assert.rejects(direct.open(device, { exclusive: true }), { code: 'EBUSY', path: device });
  const facts = await file.deviceFacts();
  assert.deepStrictEqual([facts.sizeBytes, facts.logicalSectorBytes, facts.serial], [1 << 20, 512, null]);
  assert.strictEqual(await file.size(), 1 << 20);
});

test('a regular file is not a disk', async (t) => {
  const file = await newFile(t);
  await assert.rejects(file.deviceFacts(), { code: 'ENOTBLK', message: 'this is a regular file, not a disk' });
});

test('cached pages are counted and evicted', linuxOnly, async (t) => {
  const file = await newFile(t, { policy: 'off' });
  await file.writeAllAt(Buffer.alloc(64 * 1024, 1), 0);
  const before = await file.residency();
  assert.deepStrictEqual([before.cachedPages, before.filePages], [16, 16]);
  await file.flush('data');
  await file.evict();
  assert.ok((await file.residency()).cachedPages < 16);
});

test('the pool gives out each buffer once and wakes who waits', async () => {
  const pool = new direct.BufferPool(2, 5000, 4096);
  const [first, second] = [await pool.acquire(), await pool.acquire()];
  assert.deepStrictEqual([pool.count, pool.freeCount, pool.sizeBytes, first.length], [2, 0, 5000, 5000]);
  for (const buffer of [first, second]) assert.strictEqual(addressOf(buffer) % 4096, 0);
  assert.notStrictEqual(addressOf(first), addressOf(second));
  assert.strictEqual(pool.tryAcquire(), null);
  const waiting = pool.acquire();
  pool.release(first);
  assert.strictEqual(await waiting, first);
  assert.throws(() => pool.release(Buffer.alloc(5000)), { code: 'ERR_TRUEIO_NOT_OF_POOL' });
  pool.release(first);
  assert.throws(() => pool.release(first), { code: 'ERR_TRUEIO_NOT_OF_POOL' });
  await assert.rejects(pool.use(() => { throw new Error('of the task'); }), { message: 'of the task' });
  assert.strictEqual(pool.freeCount, 1);
  pool.release(second);
  assert.strictEqual(pool.freeCount, 2);
});

test('many transfers in flight through a pool come back right', async (t) => {
  const file = await newFile(t);
  const pool = new direct.BufferPool(8, 4096, 4096);
  const blocks = Array.from({ length: 200 }, (_, index) => index);
  await Promise.all(blocks.map((index) => pool.use((buffer) => file.writeAllAt(buffer.fill(index), index * 4096))));
  await Promise.all(
    blocks.map((index) =>
      pool.use(async (buffer) => {
        await file.readExactAt(buffer, index * 4096);
        assert.ok(buffer.every((byte) => byte === index));
      })
    )
  );
});

test('reading does not stop the JavaScript thread', linuxOnly, async (t) => {
  const file = await newFile(t);
  const buffer = direct.allocate(64 << 20, 4096);
  let isDone = false;
  let turns = 0;
  const writing = file.writeAllAt(buffer, 0).then(() => (isDone = true));
  while (!isDone && turns < 1e6) {
    turns += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await writing;
  // A call that blocks lets the loop turn once, to hear that it is done.
  assert.ok(turns > 1, `${turns} turns of the event loop during a write of 64 MiB`);
});

/**
 * Goal: nothing ends the process.
 * Method: workers are stopped, and the process is ended, while transfers are in flight in their memory.
 */
test('a worker may be stopped and a process may end in the middle of transfers', async (t) => {
  const file = path.join(scratch(t), 'file');
  fs.writeFileSync(file, Buffer.alloc(1 << 20));
  const script = `
    const direct = require(${JSON.stringify(path.join(PACKAGE, 'promises.js'))});
    const { parentPort } = require('worker_threads');
    direct.open(${JSON.stringify(file)}, { policy: 'prefer' }).then((file) => {
      const go = () => { const buffer = direct.allocate(1 << 20, 4096); file.readExactAt(buffer, 0).then(go); };
      for (let index = 0; index < 8; index += 1) go();
      setTimeout(() => parentPort ? parentPort.postMessage('going') : process.exit(7), 50);
    });`;
  for (let round = 0; round < 5; round += 1) {
    const worker = new Worker(script, { eval: true });
    await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
    await worker.terminate();
  }
  const ended = runNode(['-e', script]);
  assert.deepStrictEqual([ended.status, ended.signal, ended.stderr], [7, null, '']);
});

/**
 * Goal: memory stays in its place as long as a transfer uses it, whatever JavaScript does with it.
 * Method: a buffer is given away in the middle of a read (by whichever way this Node lets), every reference to it
 * is dropped, and garbage is collected, in a process of its own.
 */
test('memory that is given away or dropped during a transfer is not freed before its end', (t) => {
  const file = path.join(scratch(t), 'file');
  fs.writeFileSync(file, Buffer.alloc(8 << 20, 5));
  const script = `
    const direct = require(${JSON.stringify(path.join(PACKAGE, 'promises.js'))});
    (async () => {
      const file = await direct.open(${JSON.stringify(file)}, { policy: 'prefer' });
      for (let round = 0; round < 10; round += 1) {
        let buffer = direct.allocate(8 << 20, 4096);
        const reading = file.readExactAt(buffer, 0);
        let memory = buffer.buffer;
        let isGivenAway = false;
        try {
          const other = memory.transfer ? memory.transfer() : structuredClone(memory, { transfer: [memory] });
          // Node 20 clones such memory instead of giving it away.
          isGivenAway = memory.byteLength === 0;
          if (isGivenAway) memory = other;
        } catch {}
        buffer = null;
        if (round % 2 === 1) memory = null;
        globalThis.gc();
        const { bytes } = await reading;
        if (memory && !Buffer.from(memory).equals(Buffer.alloc(8 << 20, 5))) throw new Error('the bytes went elsewhere');
        if (round === 0) console.log(bytes, isGivenAway);
      }
      await file.close();
    })();`;
  const result = runNode(['--expose-gc', '-e', script]);
  assert.deepStrictEqual([result.status, result.signal, result.stderr], [0, null, '']);
  assert.match(result.stdout, /^8388608 (true|false)\n$/);
});

test('dropped buffers are given back to the system', () => {
  const script = `
    const { getAlignedBuffer } = require(${JSON.stringify(PACKAGE)});
    (async () => {
      for (let count = 0; count < 300; count += 1) {
        getAlignedBuffer(16 << 20, 4096).fill(1);
        await new Promise(setImmediate);
      }
      console.log(process.resourceUsage().maxRSS >> 10);
    })();`;
  const mebibytes = Number(runNode(['-e', script]).stdout);
  assert.ok(mebibytes > 0 && mebibytes < 1500, `${mebibytes} MiB at most, of 4800 MiB that were allocated in turn`);
});

test('small buffers share memory but no byte, and the last of them gives it back', () => {
  const kinds = [[4096, 4096], [1, 8], [513, 512], [16384, 64], [16385, 4096], [7, 8192]];
  const large = [[1 << 18, 4096], [1 << 20, 512], [300001, 8], [(1 << 20) + 1, 4096]];
  const buffers = [];
  for (let number = 0; number < 3000; number += 1) {
    const [size, alignment] = number % 60 ? kinds[number % kinds.length] : large[number / 60 % large.length];
    const buffer = require(PACKAGE).getAlignedBuffer(size, alignment);
    assert.ok(buffer.equals(Buffer.alloc(size)), `buffer ${number} of ${size} bytes is not zeroed, or another's`);
    buffers.push(buffer.fill(1 + number % 251));
  }
  for (const [number, buffer] of buffers.entries()) {
    assert.ok(buffer.equals(Buffer.alloc(buffer.length, 1 + number % 251)), `buffer ${number} was changed by another`);
  }
  const script = `
    const { getAlignedBuffer } = require(${JSON.stringify(PACKAGE)});
    (async () => {
      for (let turn = 0; turn < 200; turn += 1) {
        for (let count = 0; count < 1000; count += 1) getAlignedBuffer(4096, 4096).fill(1);
        globalThis.gc();
        await new Promise(setImmediate);
      }
      console.log(process.resourceUsage().maxRSS >> 10);
    })();`;
  const mebibytes = Number(runNode(['--expose-gc', '-e', script]).stdout);
  assert.ok(mebibytes > 0 && mebibytes < 300, `${mebibytes} MiB at most, of 781 MiB that were allocated in turn`);
});

test('buffers of 1 MiB lie in huge pages where the system gives them on request', linuxOnly, (t) => {
  const setting = fs.readFileSync('/sys/kernel/mm/transparent_hugepage/enabled', 'utf8');
  if (!/\[(madvise|always)\]/.test(setting)) return t.skip(`transparent huge pages are set to: ${setting}`);
  // A slow huge page pauses them for 64 buffers, and fragmented memory refuses some: one of 256 buffers has to get one.
  const script = `
    const { getAlignedBuffer } = require(${JSON.stringify(PACKAGE)});
    const read = () => Number(/AnonHugePages: *(\\d+)/.exec(require('fs').readFileSync('/proc/self/smaps_rollup', 'utf8'))[1]);
    const before = read();
    const buffers = [];
    while (buffers.length < 256 && read() < before + 2048) buffers.push(getAlignedBuffer(1 << 20, 4096).fill(1));
    console.log(read() - before, buffers.length);`;
  const [kib, count] = runNode(['-e', script]).stdout.split(' ').map(Number);
  assert.ok(kib >= 2048, `${kib} KiB of ${count} MiB`);
});

const BAD_PATHS = [
  [undefined, 'ERR_INVALID_ARG_TYPE'], [null, 'ERR_INVALID_ARG_TYPE'], [7, 'ERR_INVALID_ARG_TYPE'], [{}, 'ERR_INVALID_ARG_TYPE'],
  ['', 'ERR_INVALID_ARG_VALUE'], ['a\0b', 'ERR_INVALID_ARG_VALUE'], [new URL('http://example.org/'), 'ERR_INVALID_URL_SCHEME'],
];

test('wrong paths are errors of every call that takes one', async () => {
  for (const name of ['open', 'probe', 'probeDirectory', 'syncDirectory']) {
    for (const [bad, code] of BAD_PATHS) await assert.rejects(direct[name](bad), { code }, `${name}(${String(bad)})`);
    await assert.rejects(direct[name]('/there/is/no/such/place'), { code: 'ENOENT', errno: -2, path: '/there/is/no/such/place' });
  }
});

test('what holds no data at offsets is refused by name, whatever the policy', linuxOnly, async (t) => {
  const folder = scratch(t);
  const pipe = path.join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  // As Node's own calls: a directory has a number of the system, other kinds have none.
  const codeOf = (kind) => (kind === 'directory' ? { code: 'EISDIR', errno: -21, syscall: 'open' } : { code: 'ERR_TRUEIO_NOT_A_FILE' });
  const kinds = [['/', 'directory'], ['/dev/null', 'character device'], ['/dev/zero', 'character device'], [pipe, 'pipe']];
  for (const [name, kind] of kinds) {
    for (const policy of ['require', 'prefer', 'off']) {
      await assert.rejects(direct.open(name, { policy }), {
        ...codeOf(kind),
        message: `\`${name}\` is a ${kind}, and only regular files and disks can be opened`,
      });
    }
    await assert.rejects(direct.probe(name), codeOf(kind));
  }
  const file = path.join(folder, 'file');
  fs.writeFileSync(file, 'text');
  await assert.rejects(direct.probeDirectory(file), { code: 'ENOTDIR' });
  await assert.rejects(direct.open(file, { write: true, createNew: true }), { code: 'EEXIST', errno: -17 });
  assert.strictEqual(fs.readFileSync(file, 'utf8'), 'text');
});

test('a refusal of direct I/O has its own code, and the number that the system gave', linuxOnly, async () => {
  const name = '/proc/version';
  const refused = { code: 'ERR_TRUEIO_DIRECT_REFUSED', errno: -22, syscall: 'open', path: name, message: /procfs refuses O_DIRECT/ };
  await assert.rejects(direct.open(name), refused);
  const fallback = await direct.open(name, { policy: 'prefer' });
  assert.strictEqual(fallback.granted, 'buffered');
  await fallback.close();
});

/** Goal: the stack of a rejection names the function that awaits the call, as that of fs.promises does. */
test('rejections carry the frame of the function that awaits them', linuxOnly, async (t) => {
  const folder = scratch(t);
  const name = path.join(folder, 'data');
  fs.writeFileSync(name, 'text');
  const file = await direct.open(name, { policy: 'off' });
  t.after(() => file.close());
  const buffer = direct.allocate(4096, 4096);
  const missing = path.join(folder, 'missing');
  const calls = {
    open: () => direct.open(missing),
    probe: () => direct.probe(missing),
    probeDirectory: () => direct.probeDirectory(missing),
    syncDirectory: () => direct.syncDirectory(missing),
    fromFile: () => direct.fromFile(4321),
    copyFile: () => direct.copyFile(missing, name),
    readExactAt: () => file.readExactAt(buffer, 0),
    writeAllAt: () => file.writeAllAt(buffer, 0),
    'readExactAt with a signal': () => file.readExactAt(buffer, 0, { signal: new AbortController().signal }),
    writeVectoredAt: () => file.writeVectoredAt([buffer], 0),
    preallocate: () => file.preallocate(0, 1),
    deviceFacts: () => file.deviceFacts(),
    'a wrong argument': () => file.readAt(buffer, -1),
  };
  for (const [what, call] of Object.entries(calls)) {
    const theCaller = async () => {
      await call();
    };
    const error = await theCaller().then(() => assert.fail(what), (error) => error);
    assert.match(error.stack, /theCaller/, what);
  }
});

test('wrong options are errors that name the option', async (t) => {
  const name = path.join(scratch(t), 'file');
  for (const [options, code, words] of [
    [null, 'ERR_INVALID_ARG_TYPE', /`options` must be an object/],
    ['r+', 'ERR_INVALID_ARG_TYPE', /`options` must be an object/],
    [{ polcy: 'require' }, 'ERR_INVALID_ARG_VALUE', /`polcy` is not an option; the options are read, write/],
    [{ policy: 'direct' }, 'ERR_INVALID_ARG_VALUE', /`policy` must be one of 'require', 'prefer', 'off', and is 'direct'/],
    [{ policy: 1 }, 'ERR_INVALID_ARG_TYPE', /`policy` must be a string, and is 1/],
    [{ sync: true }, 'ERR_INVALID_ARG_TYPE', /`sync` must be a string/],
    [{ write: 'yes' }, 'ERR_INVALID_ARG_TYPE', /`write` must be true or false, and is 'yes'/],
    [{ mode: -1 }, 'ERR_OUT_OF_RANGE', /`mode` must be an integer from 0 to 4095/],
    [{ mode: 0.5 }, 'ERR_OUT_OF_RANGE', /`mode`/],
    [{ read: false }, 'ERR_INVALID_ARG_VALUE', /neither `read` nor `write` is set/],
    [{ createNew: true }, 'ERR_INVALID_ARG_VALUE', /a new file needs `write`/],
    [{ read: false, hasOwnProperty: 1 }, 'ERR_INVALID_ARG_VALUE', /`hasOwnProperty` is not an option/],
  ]) {
    await assert.rejects(direct.open(name, options), (error) => {
      assert.strictEqual(error.code, code);
      assert.match(error.message, words);
      return true;
    });
  }
  assert.ok(!fs.existsSync(name));
});

test('wrong transfers are errors that name the argument', async (t) => {
  const file = await newFile(t);
  const buffer = direct.allocate(4096, 4096);
  for (const [view, offset, code] of [
    [undefined, 0, 'ERR_INVALID_ARG_TYPE'], ['text', 0, 'ERR_INVALID_ARG_TYPE'], [[1, 2], 0, 'ERR_INVALID_ARG_TYPE'],
    [new ArrayBuffer(4096), 0, 'ERR_INVALID_ARG_TYPE'], [buffer, undefined, 'ERR_INVALID_ARG_TYPE'],
    [buffer, '0', 'ERR_INVALID_ARG_TYPE'], [buffer, -1, 'ERR_OUT_OF_RANGE'], [buffer, -1n, 'ERR_OUT_OF_RANGE'],
    [buffer, 0.5, 'ERR_OUT_OF_RANGE'], [buffer, NaN, 'ERR_OUT_OF_RANGE'], [buffer, Infinity, 'ERR_OUT_OF_RANGE'],
    [buffer, 2 ** 53, 'ERR_OUT_OF_RANGE'], [buffer, 2n ** 64n, 'ERR_OUT_OF_RANGE'],
  ]) {
    for (const name of ['readExactAt', 'writeAllAt', 'writeUnalignedByReadModifyWriteAt']) {
      await assert.rejects(file[name](view, offset), { code }, `${name} at ${String(offset)}`);
    }
  }
  for (const bad of [-1, 0, 1.5, '1', NaN, 2 ** 53]) {
    await assert.rejects(file.preallocate(0, bad), (error) => /^ERR_(OUT_OF_RANGE|INVALID_ARG_TYPE)$/.test(error.code));
  }
  await assert.rejects(file.flush('everything'), { code: 'ERR_INVALID_ARG_VALUE' });
  await assert.rejects(file.tryLock('none'), { code: 'ERR_INVALID_ARG_VALUE' });
  await assert.rejects(file.writeAllAt(buffer, Number.MAX_SAFE_INTEGER - 4095), { code: 'EFBIG' });
  assert.strictEqual(await file.size(), 0);
});

test('memory that cannot be had is an error and not the end of the process', () => {
  for (const [size, alignment, code] of [
    [0, 4096, 'ERR_OUT_OF_RANGE'], [-1, 4096, 'ERR_OUT_OF_RANGE'], [2 ** 31, 4096, 'ERR_OUT_OF_RANGE'],
    [4096.5, 4096, 'ERR_OUT_OF_RANGE'], ['4096', 4096, 'ERR_INVALID_ARG_TYPE'], [4096, null, 'ERR_INVALID_ARG_TYPE'],
    [4096, 0, 'ERR_OUT_OF_RANGE'], [4096, 3, 'ERR_OUT_OF_RANGE'], [4096, 2 ** 23, 'ERR_OUT_OF_RANGE'],
    [4096, 2 ** 40, 'ERR_OUT_OF_RANGE'], [4096, -4096, 'ERR_OUT_OF_RANGE'],
  ]) {
    assert.throws(() => direct.allocate(size, alignment), { code }, `${size}, ${alignment}`);
  }
  assert.throws(() => new direct.BufferPool(0, 4096, 4096), { code: 'ERR_OUT_OF_RANGE' });
  assert.throws(() => new direct.BufferPool(2 ** 20, 4096, 4096), { code: 'ERR_OUT_OF_RANGE', message: /are more than 2147483647/ });
  assert.throws(() => new direct.BufferPool(2, 4096, 1000), { code: 'ERR_OUT_OF_RANGE' });
  assert.throws(() => new direct.DirectFile(), { code: 'ERR_ILLEGAL_CONSTRUCTOR' });
  // 256 MiB of address space are not enough for 1 GiB of memory.
  const script = `
    const results = [];
    try { require(${JSON.stringify(PACKAGE)}).getAlignedBuffer(1 << 30, 4096); } catch (error) { results.push(error.message, error.code); }
    try { require(${JSON.stringify(path.join(PACKAGE, 'promises.js'))}).allocate(1 << 30, 4096); } catch (error) { results.push(error.code); }
    console.log(results.join());`;
  const ulimit = isLinux ? `ulimit -v 1500000; exec "$0" "$@"` : undefined;
  if (!ulimit) return;
  const output = execFileSync('sh', ['-c', ulimit, process.execPath, '-e', script], { encoding: 'utf8' });
  assert.strictEqual(output, 'insufficient memory,ENOMEM,ENOMEM\n');
});

test('uncached transfers are for buffered files, and atomic ones for those that have them', linuxOnly, async (t) => {
  const buffered = await newFile(t, { policy: 'off' });
  const answer = (await direct.probe(buffered.path)).uncachedBuffered;
  const attempt = buffered.writeUncachedAt(Buffer.alloc(8192, 5), 0);
  if (answer === 'yes') {
    assert.strictEqual((await attempt).bytes, 8192);
    const back = Buffer.alloc(8192);
    await buffered.readUncachedAt(back, 0);
    assert.ok(back.every((byte) => byte === 5));
  } else {
    await assert.rejects(attempt, { code: 'ENOTSUP' });
  }
  const file = await newFile(t);
  if (file.granted === 'direct') {
    await assert.rejects(file.writeUncachedAt(direct.allocate(4096, 4096), 0), { code: 'ENOTSUP', message: /open as "direct"/ });
  }
  await file.writeDsyncAt(direct.allocate(4096, 4096).fill(3), 0);
  const limits = (await direct.probe(file.path)).atomicWrite;
  const atomic = file.writeAtomicAt(direct.allocate(4096, 4096), 0);
  if (limits === null) await assert.rejects(atomic, { code: 'ENOTSUP' });
  else assert.strictEqual((await atomic).bytes, 4096);
});
