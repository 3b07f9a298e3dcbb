'use strict';
// Parallel writers of one file, compared with a Buffer.
//
// Goal: no acknowledged write is lost, whatever others write, stream, copy, reserve, append or truncate in the same blocks
// at the same time, in this process and in another one.
// Method: in each round, writers change disjoint ranges of bytes at once, most of which share blocks. After it the file must
// equal the model. TRUEIO_MODEL_ROUNDS sets the number of rounds, TRUEIO_MODEL_SEED the first random number.

const assert = require('assert');
const { fork } = require('child_process');
const fs = require('fs');
const path = require('path');
const { pipeline } = require('stream/promises');
const { Readable } = require('stream');
const { test } = require('node:test');
const direct = require('../promises');
const { isLinux, scratch } = require('./support');

const linuxOnly = { skip: !isLinux && 'Linux only' };
const BLOCK = 4096;
const FILE_BYTES = 96 << 10;
const WRITERS = 5;
const ROUNDS = Number(process.env.TRUEIO_MODEL_ROUNDS ?? 150);
const SEED = Number(process.env.TRUEIO_MODEL_SEED ?? 24301);

/** The other process: appends, truncates and writes with plain calls. */
if (process.send !== undefined && process.argv[2] === 'other-process') {
  const name = process.argv[3];
  process.on('message', ({ what, offset, length, mark }) => {
    if (what === 'append') fs.appendFileSync(name, Buffer.alloc(length, mark));
    if (what === 'truncate') fs.truncateSync(name, length);
    if (what === 'write') {
      const fd = fs.openSync(name, 'r+');
      fs.writeSync(fd, Buffer.alloc(length, mark), 0, length, offset);
      fs.closeSync(fd);
    }
    process.send('done');
  });
} else {
  /** Numbers below `end`, the same for the same seed (mulberry32). */
  const randomOf = (seed) => {
    let state = seed >>> 0;
    return (end) => {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) % end;
    };
  };

  const DEEDS = ['unaligned', 'unaligned', 'unaligned', 'aligned', 'vectored', 'stream', 'stream', 'copy', 'reserve', 'foreign'];
  const up = (value) => Math.ceil(value / BLOCK) * BLOCK;

  const tasksOf = (random, round) => {
    let position = random(FILE_BYTES);
    return Array.from({ length: WRITERS }, (_, writer) => {
      const deed = DEEDS[random(DEEDS.length)];
      let length = [1 + random(20), 510 + random(5), 4094 + random(5), 1 + random(3 * BLOCK)][random(4)];
      let offset = position + (random(3) === 0 ? random(2 * BLOCK) : random(3));
      if (deed === 'aligned' || deed === 'vectored') [offset, length] = [up(offset), up(length)];
      position = offset + length;
      return { deed, offset, length, mark: ((round * WRITERS + writer) % 255) + 1, isOwn: random(2) === 0 };
    });
  };

  const carryOut = async ({ deed, offset, length, mark, isOwn }, shared, name, asked) => {
    const data = direct.allocate(up(length), BLOCK).fill(mark).subarray(0, length);
    const file = isOwn ? await direct.open(name, { write: true, policy: 'prefer' }) : shared;
    const source = `${name}.${offset}`;
    try {
      switch (deed) {
        case 'unaligned': return await file.writeUnalignedByReadModifyWriteAt(data, offset);
        case 'aligned': return await file.writeAllAt(data, offset);
        case 'vectored': {
          const parts = [];
          for (let at = 0; at < length; at += BLOCK) parts.push(data.subarray(at, at + BLOCK));
          return await file.writeVectoredAt(parts, offset);
        }
        case 'stream': {
          const pieces = [];
          for (let at = 0; at < length; at += 777) pieces.push(data.subarray(at, at + 777));
          const options = { start: offset, highWaterMark: BLOCK, policy: 'prefer' };
          return await pipeline(Readable.from(pieces), direct.createWriteStream(name, options));
        }
        case 'copy':
          fs.writeFileSync(source, data);
          await direct.copyFile(source, name, { overwrite: true, destinationOffset: offset, flush: false, bufferBytes: BLOCK });
          return fs.unlinkSync(source);
        case 'reserve': return await file.preallocate(offset, length);
        default: return await asked({ what: 'write', offset, length, mark });
      }
    } finally {
      if (isOwn) await file.close();
    }
  };

  test(`${ROUNDS} rounds of parallel writers lose no acknowledged write`, linuxOnly, async (t) => {
    const name = path.join(scratch(t), 'data');
    const shared = await direct.open(name, { write: true, createNew: true, policy: 'prefer' });
    const other = fork(__filename, ['other-process', name], { execArgv: [] });
    t.after(() => other.kill());
    let last = Promise.resolve();
    const asked = (request) => {
      last = last.then(() => new Promise((resolve) => {
        other.once('message', resolve);
        other.send(request);
      }));
      return last;
    };
    const random = randomOf(SEED);
    let model = Buffer.alloc(0);
    const grow = (length, mark = 0) => {
      if (length > model.length) model = Buffer.concat([model, Buffer.alloc(length - model.length, mark)]);
    };
    for (let round = 0; round < ROUNDS; round += 1) {
      let tasks = tasksOf(random, round);
      const end = Math.max(...tasks.map((task) => task.offset + task.length));
      const foreign = ['nothing', 'append', 'truncate'][random(3)];
      // Beside a writer that makes the file longer, the place of an appended record is not defined.
      if (foreign === 'append') tasks = tasks.filter((task) => task.offset + task.length <= model.length);
      const length = foreign === 'append' ? 1 + random(2 * BLOCK) : end + random(600);
      const mark = (round % 200) + 1;
      const deeds = tasks.map((task) => carryOut(task, shared, name, asked));
      if (foreign !== 'nothing') deeds.push(asked({ what: foreign, length, mark }));
      await Promise.all(deeds);
      for (const task of tasks) {
        grow(task.offset + task.length);
        if (task.deed !== 'reserve') model.fill(task.mark, task.offset, task.offset + task.length);
      }
      if (foreign === 'append') grow(model.length + length, mark);
      if (foreign === 'truncate') {
        grow(length);
        model = model.subarray(0, length);
      }
      const found = fs.readFileSync(name);
      const what = () => `seed ${SEED}, round ${round}, ${foreign} ${length}: ${JSON.stringify(tasks)}; ${found.length} bytes`;
      assert.ok(found.equals(model), found.equals(model) ? '' : what());
      if (model.length > 2 * FILE_BYTES) {
        fs.truncateSync(name, 50_001);
        model = Buffer.from(model.subarray(0, 50_001));
      }
    }
    await shared.close();
  });

  test('writers of distant parts of one file keep each other\'s bytes', linuxOnly, async (t) => {
    const folder = scratch(t);
    const offsets = [0, 1 << 20, 2 << 20, 3 << 20];
    const source = path.join(folder, 'source');
    fs.writeFileSync(source, 'hello');
    const ways = {
      unaligned: (name, file, offset) => file.writeUnalignedByReadModifyWriteAt(Buffer.from('hello'), offset),
      stream: (name, file, start) => pipeline(Readable.from([Buffer.from('hello')]), direct.createWriteStream(name, { start, policy: 'prefer' })),
      copy: (name, file, destinationOffset) => direct.copyFile(source, name, { overwrite: true, destinationOffset, flush: false }),
    };
    for (const [way, write] of Object.entries(ways)) {
      for (let round = 0; round < 30; round += 1) {
        const name = path.join(folder, `${way}-${round}`);
        const file = await direct.open(name, { write: true, createNew: true, policy: 'prefer' });
        await Promise.all(offsets.map((offset) => write(name, file, offset)));
        await file.close();
        const bytes = fs.readFileSync(name);
        assert.strictEqual(bytes.length, (3 << 20) + 5, way);
        for (const offset of offsets) assert.strictEqual(bytes.toString('latin1', offset, offset + 5), 'hello', `${way} at ${offset}`);
        fs.unlinkSync(name);
      }
    }
  });
}
