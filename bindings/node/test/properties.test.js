'use strict';
// Properties that hold for all arguments, tried with many: what is random here is fast-check's.

const assert = require('assert');
const fc = require('fast-check');
const path = require('path');
const { test } = require('node:test');
const { addressOf, lacks, loopDevice, loopReason, scratch } = require('./support');

const directIo = require('..');
const direct = require('../promises');

const anything = fc.anything({ withBigInt: true, withDate: true, withMap: true, withTypedArray: true, withNullPrototype: true });

test('getAlignedBuffer gives aligned zeros or throws an Error, for anything', () => {
  const size = fc.oneof(anything, fc.integer({ min: -10, max: 1 << 20 }), fc.double());
  const alignment = fc.oneof(anything, fc.integer({ min: -3, max: 30 }).map((power) => 2 ** power), fc.integer());
  fc.assert(
    fc.property(size, alignment, (size, alignment) => {
      let buffer;
      try {
        buffer = directIo.getAlignedBuffer(size, alignment);
      } catch (error) {
        assert.strictEqual(Object.getPrototypeOf(error), Error.prototype);
        assert.match(error.message, /^(bad arguments, expected: \(size, alignment\)|size must|alignment must)/);
        return;
      }
      assert.strictEqual(buffer.length, size);
      assert.strictEqual(addressOf(buffer) % alignment, 0);
      assert.ok(alignment >= 8 && alignment <= 4194304);
      assert.ok(buffer.every((byte) => byte === 0));
    }),
    { numRuns: 3000 }
  );
});

test('functions of a descriptor throw one of their messages or call back, for anything', async () => {
  // Descriptors that are not open: nothing of the test runner's may be locked.
  const fd = fc.oneof(anything.filter((value) => typeof value !== 'number'), fc.integer({ min: 100_000 }), fc.integer({ max: -1 }));
  const value = fc.oneof(anything, fc.constantFrom(0, 1));
  await fc.assert(
    fc.asyncProperty(fd, value, fc.boolean(), async (fd, value, isLocking) => {
      let threw = false;
      const outcome = await new Promise((resolve) => {
        try {
          if (isLocking) directIo.setFlock(fd, value, resolve);
          else directIo.getBlockDevice(fd, resolve);
        } catch (error) {
          threw = true;
          resolve(error);
        }
      });
      assert.ok(outcome instanceof Error);
      assert.match(outcome.message, threw ? /^bad arguments, expected: \(fd, / : /^(EBADF, fd is an invalid file descriptor|fstat failed)$/);
    }),
    { numRuns: 1000 }
  );
});

/**
 * Goal: a transfer is made exactly, or refused for the first reason that the numbers give.
 * Method: a disk of 4096-byte sectors holds a known pattern; any part of an aligned buffer is transferred at
 * any offset, and a model in a plain array does the same.
 */
test('a transfer is exact or refused for the number that is misaligned', async (t) => {
  if (lacks(t, 'loop', loopReason())) return;
  const sizeBytes = 64 * 4096;
  const file = await direct.open(loopDevice(t, scratch(t), sizeBytes, 4096), { write: true });
  t.after(() => file.close());
  const { memoryBytes, writeOffsetBytes } = file.alignment;
  const model = Buffer.alloc(sizeBytes);
  const buffer = direct.allocate(16 * 4096, 4096);
  const number = (most) =>
    fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: 0, max: most / 4096 }).map((blocks) => blocks * 4096) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: most }) }
    );
  let exact = 0;
  await fc.assert(
    fc.asyncProperty(
      number(8 * 4096), number(8 * 4096), number(sizeBytes + 8192), fc.boolean(), fc.integer({ min: 0, max: 255 }),
      async (start, length, offset, isWrite, byte) => {
        const view = buffer.subarray(start, start + length);
        view.fill(byte);
        const wrong = [
          ['address', addressOf(view), memoryBytes],
          ['length', length, writeOffsetBytes],
          ['offset', offset, writeOffsetBytes],
        ].find(([, value, needed]) => value % needed !== 0);
        const transfer = isWrite ? file.writeAllAt(view, offset) : file.readExactAt(view, offset);
        if (length === 0) {
          assert.deepStrictEqual(await transfer, { bytes: 0, calls: 0, isCopied: false });
        } else if (wrong) {
          const [part, value, neededBytes] = wrong;
          await assert.rejects(transfer, { code: 'ERR_TRUEIO_MISALIGNED', part, value, neededBytes });
        } else if (offset + length > sizeBytes) {
          const done = Math.max(0, sizeBytes - offset);
          await assert.rejects(transfer, { code: isWrite ? 'ENOSPC' : 'ERR_TRUEIO_END_OF_FILE', doneBytes: done });
          if (isWrite && done > 0) model.fill(byte, offset);
        } else {
          assert.deepStrictEqual(await transfer, { bytes: length, calls: 1, isCopied: false });
          exact += 1;
          if (isWrite) model.fill(byte, offset, offset + length);
          else assert.ok(view.equals(model.subarray(offset, offset + length)));
        }
      }
    ),
    { numRuns: 600 }
  );
  assert.ok(exact > 50, `only ${exact} transfers were made`);
  const whole = direct.allocate(sizeBytes, 4096);
  await file.readExactAt(whole, 0);
  assert.ok(whole.equals(model));
});

test('unaligned writes and reads by copy agree with a plain array, at any offset', async (t) => {
  const name = path.join(scratch(t), 'file');
  const file = await direct.open(name, { write: true, createNew: true, policy: 'prefer' });
  t.after(() => file.close());
  let model = Buffer.alloc(0);
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 20_000 }), fc.uint8Array({ minLength: 1, maxLength: 9000 }), async (offset, data) => {
      await file.writeUnalignedByReadModifyWriteAt(data, offset);
      if (model.length < offset + data.length) model = Buffer.concat([model, Buffer.alloc(offset + data.length - model.length)]);
      model.set(data, offset);
      assert.strictEqual(await file.size(), model.length);
      const back = Buffer.alloc(model.length - (offset >> 1));
      await file.readUnalignedByCopyAt(back, offset >> 1);
      assert.ok(back.equals(model.subarray(offset >> 1)));
    }),
    { numRuns: 150 }
  );
});

test('every call of the promise API rejects with an Error that has a code, for anything', async (t) => {
  const folder = scratch(t);
  const file = await direct.open(path.join(folder, 'file'), { write: true, createNew: true, policy: 'prefer' });
  const calls = {
    probe: (a) => direct.probe(a),
    probeDirectory: (a) => direct.probeDirectory(a),
    open: (a, b) => direct.open(a, b),
    openWith: (_, b) => direct.open(path.join(folder, 'none'), b ?? null),
    syncDirectory: (a) => direct.syncDirectory(a),
    allocate: async (a, b) => direct.allocate(a, b),
    pool: async (a, b) => new direct.BufferPool(a, b, b),
    release: async (a) => new direct.BufferPool(1, 8, 8).release(a),
    readExactAt: (a, b) => file.readExactAt(a, b),
    writeAllAt: (a, b) => file.writeAllAt(a, b ?? null),
    flush: (a) => file.flush(a ?? null),
    preallocate: (a, b) => file.preallocate(a, b),
    tryLock: (a) => file.tryLock(a ?? null),
    residency: (a, b) => file.residency(a ?? null, b ?? null),
    check: async (a, b) => file.check(a, b, a),
  };
  // Of what is random, nothing may be right: numbers are left to the tests above, and `.` and `/` are folders.
  const isRight = (value) => typeof value === 'number' || typeof value === 'bigint' || /^[./]+$/.test(value);
  const wrong = anything.filter((value) => typeof value === 'symbol' || !isRight(typeof value === 'object' ? null : value));
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...Object.keys(calls)), wrong, wrong, async (name, a, b) => {
      let error;
      try {
        await calls[name](a, b);
        assert.fail(`${name} took it`);
      } catch (caught) {
        error = caught;
      }
      assert.ok(error instanceof Error);
      assert.ok(typeof error.code === 'string' && error.code !== 'ERR_ASSERTION', error.stack);
      assert.ok(error.code !== 'GenericFailure' && error.code !== 'ERR_TRUEIO_INTERNAL', error.stack);
    }),
    { numRuns: 3000 }
  );
  await file.close();
});
