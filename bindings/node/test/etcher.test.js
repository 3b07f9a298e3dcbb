'use strict';
// etcher-sdk, the biggest user of @ronomon/direct-io, with ours in its place.
//
// test/package.json substitutes it as any user would: `overrides` of npm. The published package is fetched
// without running its scripts, so its other native helpers are there only as far as they come prebuilt;
// of those, `mountutils` (which unmounts a disk before writing) stands aside: nothing is mounted here.

const assert = require('assert');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { PACKAGE, addressOf, lacks, loopDevice, loopReason, scratch } = require('./support');

const SDK = path.join(__dirname, 'node_modules', 'etcher-sdk');

/** Puts a function in the place of mountutils, whose binary needs a newer C++ library than most systems have. */
function withoutUnmounting() {
  const name = require.resolve('mountutils', { paths: [SDK] });
  require.cache[name] = { id: name, filename: name, loaded: true, exports: { unmountDisk: (_, callback) => callback() } };
}

function build(name) {
  return require(path.join(SDK, 'build', name));
}

test('etcher-sdk, as published, finds this package under upstream\'s name', () => {
  assert.strictEqual(require(path.join(SDK, 'package.json')).dependencies['@ronomon/direct-io'], '^3.0.1');
  const found = require.resolve('@ronomon/direct-io', { paths: [path.join(SDK, 'build')] });
  assert.strictEqual(fs.realpathSync(found), path.join(fs.realpathSync(PACKAGE), 'index.js'));
});

test('its lockable buffers are aligned, carry its properties, and slice as it overrides it', async () => {
  const { createBuffer, isAlignedLockableBuffer, AlignedReadableState } = build('aligned-lockable-buffer');
  const buffer = createBuffer(1 << 20, 4096);
  assert.ok(isAlignedLockableBuffer(buffer));
  assert.deepStrictEqual([buffer.length, buffer.alignment, addressOf(buffer) % 4096], [1 << 20, 4096, 0]);
  const slice = buffer.slice(4096, 8192);
  assert.deepStrictEqual([slice.length, slice.alignment, addressOf(slice) - addressOf(buffer)], [4096, 4096, 4096]);
  const unlock = await slice.rlock();
  unlock();
  const state = new AlignedReadableState(8192, 512, 2);
  assert.notStrictEqual(state.getCurrentBuffer(), state.getCurrentBuffer());
});

/** etcher's BlockDevice over a loop device. */
async function blockDevice(t, folder, sizeBytes, sectorBytes) {
  const { BlockDevice } = build('source-destination/block-device');
  const raw = loopDevice(t, folder, sizeBytes, sectorBytes);
  const drive = { raw, device: raw, devicePath: null, description: 'loop', blockSize: sectorBytes, size: sizeBytes, mountpoints: [], isReadOnly: false, isSystem: false };
  const destination = new BlockDevice({ drive, write: true, direct: true });
  return { raw, destination };
}

/**
 * Goal: etcher flashes and verifies with our buffers.
 * Method: its own pipeline (source file, block write stream, O_DIRECT, verification by checksum) writes an
 * image to disks of both sector sizes, through aligned buffers that it gets from us.
 */
test('it flashes and verifies an image on disks of both sector sizes, past the page cache', async (t) => {
  if (lacks(t, 'loop', loopReason())) return;
  withoutUnmounting();
  const { File } = build('source-destination/file');
  const { pipeSourceToDestinations } = build('multi-write');
  const folder = scratch(t);
  const image = crypto.randomBytes(5 << 20);
  fs.writeFileSync(path.join(folder, 'image.img'), image);
  for (const sector of [512, 4096]) {
    const { raw, destination } = await blockDevice(t, folder, 8 << 20, sector);
    const source = new File({ path: path.join(folder, 'image.img') });
    await Promise.all([source.open(), destination.open()]);
    // It really is direct: the flag is on the descriptor that it opened.
    const info = fs.readFileSync(`/proc/self/fdinfo/${destination.fileHandle.fd}`, 'utf8');
    assert.notStrictEqual(parseInt(/^flags:\s+([0-7]+)/m.exec(info)[1], 8) & require('..').O_DIRECT, 0);
    const steps = new Set();
    const result = await pipeSourceToDestinations({
      source,
      destinations: [destination],
      verify: true,
      onFail: (_, error) => assert.fail(error),
      onProgress: (progress) => steps.add(progress.type),
    });
    assert.deepStrictEqual([result.failures.size, result.bytesWritten], [0, image.length]);
    assert.ok(steps.has('verifying'), [...steps].join());
    await Promise.all([source.close(), destination.close()]);
    assert.ok(fs.readFileSync(raw).subarray(0, image.length).equals(image));
  }
});

test('it reads and writes a disk at any offset through aligned copies', async (t) => {
  if (lacks(t, 'loop', loopReason())) return;
  withoutUnmounting();
  const { raw, destination } = await blockDevice(t, scratch(t), 1 << 20, 4096);
  await destination.open();
  const text = Buffer.from('in the middle of two sectors');
  const { bytesWritten } = await destination.write(text, 0, text.length, 8180);
  assert.strictEqual(bytesWritten, text.length);
  const back = Buffer.alloc(text.length + 2);
  await destination.read(back, 0, back.length, 8179);
  await destination.close();
  assert.strictEqual(back.toString('latin1'), `\0${text}\0`);
  assert.ok(fs.readFileSync(raw).subarray(8180, 8180 + text.length).equals(text));
});
