'use strict';
// Writes an image to a disk or file by direct I/O, and reads it back to prove it.
//
//   node write-image.js IMAGE TARGET [--new]
//
// TARGET is overwritten from its beginning. A disk is opened exclusively, so one that is mounted is refused;
// `--new` makes a new file. Writing and reading overlap: four buffers go round. The image's last piece is
// filled up with zeros to a whole block on a disk, because a disk has nothing smaller.
//
// The proof: the target's pages are evicted and it is read again past the cache, so the bytes come from the
// device. If direct I/O is not supported, `granted` reports it, and the proof is only as good as the eviction.

const crypto = require('crypto');
const fs = require('fs');
const { open, BufferPool } = require('@trueio/direct-io/promises');

const BLOCK_BYTES = 4096;
const PIECE_BYTES = 1 << 20;

async function writeImage(imageName, targetName, { isNew = false, onProgress = () => {} } = {}) {
  const image = await fs.promises.open(imageName, 'r');
  let target;
  try {
    target = await open(targetName, { write: true, createNew: isNew, exclusive: !isNew, policy: 'prefer' });
    const sizeBytes = (await image.stat()).size;
    const paddedBytes = Math.ceil(sizeBytes / BLOCK_BYTES) * BLOCK_BYTES;
    const room = await target.size();
    if (isNew) await target.preallocate(0, paddedBytes);
    else if (room < paddedBytes) throw new Error(`${targetName} holds ${room} bytes, and ${imageName} has ${paddedBytes}`);

    const pool = new BufferPool(4, PIECE_BYTES, BLOCK_BYTES);
    const offsets = [];
    for (let offset = 0; offset < paddedBytes; offset += PIECE_BYTES) offsets.push(offset);

    const written = crypto.createHash('sha256');
    const writes = [];
    let failure;
    for (const offset of offsets) {
      // The pool limits how many are in flight.
      const buffer = await pool.acquire();
      if (failure) break;
      const piece = buffer.subarray(0, Math.min(PIECE_BYTES, paddedBytes - offset));
      const { bytesRead } = await image.read(piece, 0, piece.length, offset);
      piece.fill(0, bytesRead);
      written.update(piece);
      const write = target.writeAllAt(piece, offset).then(
        () => onProgress(offset + piece.length, paddedBytes),
        (error) => (failure ??= error)
      );
      writes.push(write.finally(() => pool.release(buffer)));
    }
    await Promise.all(writes);
    if (failure) throw failure;
    const flushed = await target.flush('device');
    await target.evict();

    const found = crypto.createHash('sha256');
    for (const offset of offsets) {
      await pool.use(async (buffer) => {
        const piece = buffer.subarray(0, Math.min(PIECE_BYTES, paddedBytes - offset));
        await target.readExactAt(piece, offset);
        found.update(piece);
      });
    }
    const [wanted, got] = [written.digest('hex'), found.digest('hex')];
    if (wanted !== got) throw new Error(`${targetName} does not hold what was written to it`);
    return { sizeBytes, writtenBytes: paddedBytes, sha256: got, granted: target.granted, flushedBy: flushed.call };
  } finally {
    await target?.close();
    await image.close();
  }
}

module.exports = { writeImage };

if (require.main === module) {
  const [image, target] = process.argv.slice(2);
  if (!target) {
    console.error('usage: node write-image.js IMAGE TARGET [--new]');
    process.exit(2);
  }
  writeImage(image, target, { isNew: process.argv.includes('--new') }).then(console.log, (error) => {
    console.error(`error: ${error.message}`);
    process.exit(1);
  });
}
