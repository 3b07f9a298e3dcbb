'use strict';
// The examples do what they say. They are loaded by the package's name, as a reader would.

const assert = require('assert');
const { execFileSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const Module = require('module');
const path = require('path');
const { test } = require('node:test');
const { PACKAGE, lacks, loopDevice, loopReason, scratch } = require('./support');

/** An example, for which the package's name means this folder. */
function example(name) {
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (request, ...rest) {
    const own = request.replace(/^@trueio\/direct-io/, PACKAGE);
    return resolve.call(this, own, ...rest);
  };
  try {
    return require(path.join(PACKAGE, 'examples', name));
  } finally {
    Module._resolveFilename = resolve;
  }
}

const { writeImage } = example('write-image.js');
const { AppendLog } = example('append-log.js');
const { report } = example('block-device-report.js');
const { METHODS, benchmark, options } = example('benchmark.js');

/** An image of odd length. */
function image(folder) {
  const name = path.join(folder, 'image');
  const bytes = crypto.randomBytes((5 << 20) + 777);
  fs.writeFileSync(name, bytes);
  return { name, bytes };
}

test('an image is written to a new file and to disks of both sector sizes, and verified', async (t) => {
  const folder = scratch(t);
  const { name, bytes } = image(folder);
  const file = path.join(folder, 'copy');
  const result = await writeImage(name, file, { isNew: true });
  assert.ok(fs.readFileSync(file).subarray(0, bytes.length).equals(bytes));
  assert.deepStrictEqual([result.sizeBytes, result.writtenBytes % 4096], [bytes.length, 0]);

  if (lacks(t, 'loop', loopReason())) return;
  for (const sector of [512, 4096]) {
    const device = loopDevice(t, folder, 8 << 20, sector);
    const steps = [];
    const result = await writeImage(name, device, { onProgress: (done) => steps.push(done) });
    assert.strictEqual(result.granted, 'direct');
    assert.strictEqual(steps.length, 6);
    assert.ok(fs.readFileSync(device).subarray(0, bytes.length).equals(bytes));
  }
});

test('an image that does not fit, and a disk that is mounted, are refused', async (t) => {
  if (lacks(t, 'loop', loopReason())) return;
  const folder = scratch(t);
  const { name } = image(folder);
  const small = loopDevice(t, folder, 1 << 20);
  await assert.rejects(writeImage(name, small), /holds 1048576 bytes, and .* has 5246976/);
  assert.ok(fs.readFileSync(small).every((byte) => byte === 0), 'nothing was written');
  execFileSync('mkfs.ext4', ['-q', small], { stdio: 'ignore' });
  const place = path.join(folder, 'mounted');
  fs.mkdirSync(place);
  execFileSync('mount', [small, place]);
  try {
    await assert.rejects(writeImage(name, small), { code: 'EBUSY' });
  } finally {
    execFileSync('umount', [place]);
  }
});

test('the log gives back what was appended, across openings and blocks', async (t) => {
  const name = path.join(scratch(t), 'log');
  const expected = [];
  for (let opening = 0; opening < 4; opening += 1) {
    const { log, records } = await AppendLog.open(name);
    assert.deepStrictEqual(records.map(String), expected);
    const more = Array.from({ length: 30 }, (_, index) => `${opening}/${index} `.padEnd((index * 97) % 900, 'x'));
    await Promise.all(more.map((text) => log.append(Buffer.from(text))));
    expected.push(...more);
    await assert.rejects(log.append(Buffer.alloc(4051)), RangeError);
    await assert.rejects(AppendLog.open(name), { code: 'EAGAIN' });
    await log.close();
  }
  assert.ok(fs.statSync(name).size > 5 * 4096);
});

/**
 * Goal: a power loss in the middle of a write costs at most the record that was being appended.
 * Method: after every append the file is copied; then every write between two copies is torn at several
 * places, and the log opened.
 */
test('a log that was torn in the middle of any write still holds every record that was durable', async (t) => {
  const folder = scratch(t);
  const name = path.join(folder, 'log');
  const { log } = await AppendLog.open(name);
  const states = [fs.readFileSync(name)];
  for (let index = 0; index < 25; index += 1) {
    await log.append(Buffer.from(`record ${index} `.padEnd(600, 'y')));
    states.push(fs.readFileSync(name));
  }
  await log.close();
  const torn = path.join(folder, 'torn');
  let count = 0;
  for (let index = 1; index < states.length; index += 1) {
    const [before, after] = [states[index - 1], states[index]];
    for (let block = 0; block * 4096 < after.length; block += 1) {
      const old = before.subarray(block * 4096, (block + 1) * 4096);
      const young = after.subarray(block * 4096, (block + 1) * 4096);
      if (old.equals(young)) continue;
      for (const cut of [0, 16, 30, 512, 2048, 4095]) {
        const length = Math.max(before.length, (block + 1) * 4096);
        const bytes = Buffer.concat([before, Buffer.alloc(length - before.length)]);
        young.copy(bytes, block * 4096, 0, cut);
        fs.writeFileSync(torn, bytes);
        const { log: opened, records } = await AppendLog.open(torn);
        await opened.close();
        assert.ok(records.length >= index - 1, `${records.length} of ${index - 1}, block ${block} torn at ${cut}`);
        records.forEach((record, at) => assert.match(record.toString(), new RegExp(`^record ${at} y+$`)));
        count += 1;
      }
    }
  }
  assert.ok(count > 140, `${count} tears were tried`);
});

test('the report on a disk has its size and sectors', async (t) => {
  if (lacks(t, 'loop', loopReason())) return;
  const lines = await report(loopDevice(t, scratch(t), 1 << 20, 4096));
  for (const line of [/^ +Logical Sector Size: 4096$/, /^ +Physical Sector Size: 4096$/, /^ +Size: 1048576$/, /^ +Serial Number: null$/, /^ +Direct I\/O: "direct \(/]) {
    assert.ok(lines.some((found) => line.test(found)), `${line} in\n${lines.join('\n')}`);
  }
  await assert.rejects(report(__filename), { code: 'ENOTBLK' });
});

/** As upstream's: what they print cannot be compared, because that one has no options for a short run. */
test('the benchmark has a row for each of the 21 methods of upstream and each block, and writes the file', async (t) => {
  const target = path.join(scratch(t), 'file');
  const lines = [];
  await benchmark({ target, blockMin: 4096, blockMax: 8192, size: 65536, rounds: 1 }, (line) => lines.push(line));
  assert.deepStrictEqual([METHODS.length, lines.length], [21, 1 + 2 * 21]);
  for (const line of lines.slice(1)) assert.match(line, /^ +(4096|8192) \| [A-Z_ +]{38} \| +\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\)$/);
  assert.ok(fs.readFileSync(target).equals(Buffer.alloc(65536, 0xff)));
  assert.throws(() => options(['--block-min=100']), /blockMin must be from 4096/);
  assert.throws(() => options(['--other=1']), /unsupported argument/);
});
