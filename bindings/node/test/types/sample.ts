// What a user of the types writes, right and wrong. Compiled by types.test.js and never run. A line after
// `@ts-expect-error` that compiles is a failure.

import * as fs from 'fs';
import * as directIo from '@trueio/direct-io';
import { getAlignedBuffer, O_DIRECT, promises, type BlockDevice } from '@trueio/direct-io';
import { allocate, BufferPool, copyFile, createReadStream, createWriteStream, fromFile, open, probe, type DirectError, type DirectFile, type Probe } from '@trueio/direct-io/promises';

const buffer: Buffer = getAlignedBuffer(4096, 512);
const fd: number = fs.openSync('/dev/null', fs.constants.O_RDWR | O_DIRECT | directIo.O_EXCL);
directIo.getBlockDevice(fd, (error, device: BlockDevice) => {
  if (error) console.log(error.message, error.code, error.errno);
  else console.log(device.serialNumber.length, device.size + device.physicalSectorSize + device.logicalSectorSize);
});
directIo.setFlock(fd, 1, (error) => console.log(error?.syscall));
directIo.setF_NOCACHE(fd, 0, () => {});
directIo.setFSCTL_LOCK_VOLUME(fd, 1, () => {});

// @ts-expect-error: both arguments are needed
getAlignedBuffer(4096);
// @ts-expect-error: a string is not a size
getAlignedBuffer('4096', 512);
// @ts-expect-error: 0 or 1
directIo.setFlock(fd, 2, () => {});
// @ts-expect-error: a callback is needed
directIo.getBlockDevice(fd);

async function use(): Promise<void> {
  const found: Probe = await probe(new URL('file:///tmp/x'));
  const least: number = found.alignment.writeOffsetBytes ?? 4096;
  const file: DirectFile = await open('x', { write: true, policy: 'prefer', sync: 'dsync', mode: 0o644 });
  const pool = new BufferPool(4, 1 << 20, least);
  const bytes: number = await pool.use(async (memory) => (await file.readExactAt(memory, 0n)).bytes);
  const { level, isDeviceCacheFlushed } = await file.flush('data');
  if (file.granted !== 'direct') console.log(file.reason, bytes, level, isDeviceCacheFlushed);
  try {
    file.check(allocate(512, 512), 0, 'write');
    await file.writeAllAt(new Float64Array(64), 0);
  } catch (error) {
    const { code, part, neededBytes } = error as DirectError;
    if (code === 'ERR_TRUEIO_MISALIGNED') console.log(part === 'address', neededBytes);
  }
  const { signal } = new AbortController();
  const parts: number = (await file.readVectoredAt([allocate(512, 512)], 0, { signal })).bytes;
  const adopted: DirectFile = await fromFile(await fs.promises.open('x'));
  const copy = createReadStream('x', { policy: 'prefer', start: 1 }).pipe(createWriteStream('y', { create: true, flush: 'data' }));
  console.log(parts, adopted.path?.length, copy.bytesWritten, adopted.createReadStream({ end: 9 }).readable);
  await promises.syncDirectory('.');
  await file.close();

  const copied = await copyFile('x', new URL('file:///tmp/y'), { range: [0, 9n], flush: false, onProgress: ({ doneBytes }) => console.log(doneBytes), signal });
  console.log(copied.dataBytes + copied.holeBytes, copied.flushed?.level, copied.source === 'direct');
  // @ts-expect-error: a range has two ends
  await copyFile('x', 'y', { range: [0] });
  // @ts-expect-error: not a policy
  await open('x', { policy: 'direct' });
  // @ts-expect-error: not an option
  await open('x', { polcy: 'require' });
  // @ts-expect-error: an ArrayBuffer is not a view
  await file.readExactAt(new ArrayBuffer(4096), 0);
  // @ts-expect-error: a single buffer is no list
  await file.readVectoredAt(allocate(512, 512), 0);
  // @ts-expect-error: a stream that reads makes no file
  createReadStream('x', { create: true });
  // @ts-expect-error: not a level
  await file.flush('everything');
  // @ts-expect-error: made by `open` only
  new promises.DirectFile();
  // @ts-expect-error: null is possible
  const serial: string = (await file.deviceFacts()).serial;
  console.log(serial);
}

console.log(buffer.length, use);
