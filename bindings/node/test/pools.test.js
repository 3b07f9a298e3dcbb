'use strict';
// Pools of buffers: who waits, for how long, in which order, and what becomes of buffers that nobody returns.

const assert = require('assert');
const { test } = require('node:test');
const { BufferPool, allocate } = require('../promises');
const { PACKAGE, addressOf, runNode } = require('./support');

const turn = () => new Promise(setImmediate);

test('a wait that is aborted or takes too long rejects, and takes no buffer', async () => {
  const pool = new BufferPool(1, 4096);
  const held = await pool.acquire();
  const controller = new AbortController();
  const outcomes = [
    pool.acquire({ signal: controller.signal }),
    pool.acquire({ timeout: 1 }),
    pool.use(() => assert.fail('there is no buffer'), { timeout: 0 }),
    pool.acquire({ signal: AbortSignal.abort('early') }),
  ].map((promise) => promise.then(() => 'a buffer', ({ name, code, cause }) => [name, code, cause]));
  const patient = pool.acquire({ timeout: 600_000, signal: new AbortController().signal });
  controller.abort('why');
  assert.deepStrictEqual(await Promise.all(outcomes), [
    ['AbortError', 'ABORT_ERR', 'why'],
    ['TimeoutError', 'ETIMEDOUT', undefined],
    ['TimeoutError', 'ETIMEDOUT', undefined],
    ['AbortError', 'ABORT_ERR', 'early'],
  ]);
  pool.release(held);
  // Its timer is gone too: else this process would wait for it.
  assert.strictEqual(await patient, held);
  pool.release(held);
  assert.deepStrictEqual([pool.freeCount, pool.count], [1, 1]);
  assert.strictEqual(await pool.acquire({ signal: controller.signal }).catch(({ code }) => code), 'ABORT_ERR');
  assert.strictEqual(pool.freeCount, 1);
});

test('waits are served in order of arrival, also where some between them end', async () => {
  const pool = new BufferPool(1, 4096);
  const held = await pool.acquire();
  const controllers = Array.from({ length: 6 }, () => new AbortController());
  const served = [];
  controllers.forEach(({ signal }, index) => {
    pool.acquire({ signal }).then(() => served.push(index), () => served.push(`no ${index}`));
  });
  for (const index of [0, 3, 5]) controllers[index].abort();
  await turn();
  for (let round = 0; round < 4; round += 1) {
    pool.release(held);
    await turn();
  }
  assert.deepStrictEqual(served, ['no 0', 'no 3', 'no 5', 1, 2, 4]);
  assert.strictEqual(pool.freeCount, 1);
});

test('arguments of a wait are checked, and the error carries the frame of its caller', async () => {
  const pool = new BufferPool(1, 4096);
  await assert.rejects(pool.acquire({ timeout: -1 }), { code: 'ERR_OUT_OF_RANGE' });
  await assert.rejects(pool.acquire({ timeout: '5' }), { code: 'ERR_INVALID_ARG_TYPE' });
  await assert.rejects(pool.acquire({ signal: 5 }), { code: 'ERR_INVALID_ARG_TYPE' });
  await assert.rejects(pool.acquire({ timeuot: 5 }), { code: 'ERR_INVALID_ARG_VALUE', message: /`timeuot` is not an option/ });
  assert.strictEqual(pool.freeCount, 1, 'a refused wait takes no buffer');
  await pool.acquire();
  const theCaller = async () => {
    await pool.acquire({ timeout: 0 });
  };
  const { stack } = await theCaller().catch((error) => error);
  assert.match(stack, /theCaller/);
});

test('many waits for one signal need one listener of it', async () => {
  const pool = new BufferPool(1, 4096);
  const held = await pool.acquire();
  const controller = new AbortController();
  const warnings = [];
  const warn = (warning) => warnings.push(warning.name);
  process.on('warning', warn);
  const waits = Array.from({ length: 20 }, () => pool.acquire({ signal: controller.signal }));
  pool.release(held);
  pool.release(await waits[0]);
  pool.release(await waits[1]);
  const kept = await waits[2];
  controller.abort();
  const ended = await Promise.allSettled(waits.slice(3));
  assert.ok(ended.every(({ reason }) => reason?.code === 'ABORT_ERR'));
  pool.release(kept);
  assert.strictEqual((await pool.acquire({ timeout: 1 })).length, 4096, 'no buffer is lost');
  await new Promise(setImmediate);
  process.off('warning', warn);
  assert.deepStrictEqual(warnings, []);
});

test('without an alignment, memory is aligned to 4096 bytes', () => {
  assert.strictEqual(addressOf(allocate(100)) % 4096, 0);
  assert.strictEqual(addressOf(new BufferPool(3, 100).tryAcquire()) % 4096, 0);
});

/**
 * Goal: the cost of a release does not grow with the number of waits.
 * Method: CPU time per release with 160,000 waits and with 4,000, in one process. An array whose first element is removed costs
 * forty times as much.
 */
test('160,000 waits cost no more each than 4,000 do', () => {
  const script = `
    const { BufferPool } = require(${JSON.stringify(PACKAGE + '/promises.js')});
    async function cost(count) {
      const pool = new BufferPool(1, 4096);
      const buffer = pool.tryAcquire();
      for (let index = 0; index < count; index += 1) pool.acquire();
      await null;
      const before = process.cpuUsage().user;
      for (let index = 0; index < count; index += 1) pool.release(buffer);
      return (process.cpuUsage().user - before) / count;
    }
    (async () => {
      await cost(4000);
      const few = [];
      for (let round = 0; round < 5; round += 1) few.push(await cost(4000));
      console.log(JSON.stringify([Math.max(...few), await cost(160_000)]));
    })();`;
  const ran = runNode(['-e', script]);
  assert.strictEqual(ran.status, 0, ran.stderr);
  const [few, many] = JSON.parse(ran.stdout);
  assert.ok(many < 10 * Math.max(few, 0.2), `${many} µs each of 160,000, ${few} µs each of 4,000`);
});

/** Goal: a wait that was given up (the loser of a race) costs the pool no buffer. Method: collect what nothing refers to. */
test('a buffer that was lent to a wait that nobody follows any more comes back', () => {
  const script = `
    const { BufferPool } = require(${JSON.stringify(PACKAGE + '/promises.js')});
    const turn = () => new Promise(setImmediate);
    (async () => {
      const pool = new BufferPool(2, 1 << 20);
      let [kept, lost] = [await pool.acquire(), await pool.acquire()];
      const part = kept.subarray(4096);
      const race = Promise.race([pool.acquire(), turn()]);
      await race;
      pool.release(lost);
      kept = lost = undefined;
      let isServed = false;
      pool.acquire().then((buffer) => { isServed = buffer.length === 1 << 20 && buffer[5] === 0; });
      for (let round = 0; round < 50 && !isServed; round += 1) { global.gc(); await turn(); }
      console.log(JSON.stringify([isServed, pool.freeCount, pool.count, part.length]));
    })();`;
  const ran = runNode(['--expose-gc', '-e', script]);
  assert.deepStrictEqual(JSON.parse(ran.stdout || 'null'), [true, 0, 2, (1 << 20) - 4096], ran.stderr);
});
