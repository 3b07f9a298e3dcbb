'use strict';
// An append-only log whose records are durable when `append` has returned, and that survives being cut off
// anywhere.
//
// A log is a row of blocks of 4096 bytes. Each begins with a checksum, its number, how often it was
// written, and how many bytes of it are used; then records, each a length and its bytes. A block that is not
// full is written again, longer. A power loss can tear that write, so two places at the end take turns, and
// the whole one that was written last is the truth: the only copy of something durable is never overwritten.
//
//   block 0 | block 1 | ... | open block, even writes | open block, odd writes
//
// When the open block is full, it is written to its own place, and the two places move on.
//
// Cannot do: records of more than 4050 bytes; more than one writer (it locks the file).

const crypto = require('crypto');
const path = require('path');
const { open, allocate, syncDirectory } = require('@trueio/direct-io/promises');

const BLOCK_BYTES = 4096;
const HEADER_BYTES = 16 + 8 + 8 + 4;
const RECORD_BYTES_MAX = 4050;

class AppendLog {
  #file;
  #block = allocate(BLOCK_BYTES, BLOCK_BYTES);
  /** The number of the open block; how often it was written; where its free part begins. */
  #number = 0;
  #count = 0;
  #used = HEADER_BYTES;
  #queue = Promise.resolve();

  /** Opens or makes the log at `name`; `records` are what it held. */
  static async open(name) {
    const log = new AppendLog();
    const options = { write: true, policy: 'prefer' };
    try {
      log.#file = await open(name, options);
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
      log.#file = await open(name, { ...options, createNew: true });
      // The name of a new file is durable when its folder is.
      if (process.platform !== 'win32') await syncDirectory(path.dirname(name));
    }
    await log.#file.tryLock();
    return { log, records: await log.#recover() };
  }

  /**
   * Appends `record` (bytes) and returns when it is durable. Calls may overlap; they are taken in turn.
   *
   * After one has failed, all fail: what a failed flush has left behind is not known until the log is opened again.
   */
  append(record) {
    if (record.length > RECORD_BYTES_MAX) {
      return Promise.reject(new RangeError(`a record of ${record.length} bytes is longer than ${RECORD_BYTES_MAX}`));
    }
    const copy = Buffer.from(record);
    this.#queue = this.#queue.then(() => this.#append(copy));
    return this.#queue;
  }

  async close() {
    await this.#queue.catch(() => {});
    await this.#file.close();
  }

  async #append(record) {
    if (this.#used + 2 + record.length > BLOCK_BYTES) {
      await this.#write(this.#number * BLOCK_BYTES);
      this.#number += 1;
      this.#count = 0;
      this.#used = HEADER_BYTES;
      this.#block.fill(0);
    }
    this.#block.writeUInt16LE(record.length, this.#used);
    this.#block.set(record, this.#used + 2);
    this.#used += 2 + record.length;
    this.#count += 1;
    await this.#write((this.#number + 1 + (this.#count % 2)) * BLOCK_BYTES);
  }

  async #write(offset) {
    this.#block.writeBigUInt64LE(BigInt(this.#number), 16);
    this.#block.writeBigUInt64LE(BigInt(this.#count), 24);
    this.#block.writeUInt32LE(this.#used, 32);
    checksum(this.#block).copy(this.#block, 0);
    await this.#file.writeAllAt(this.#block, offset);
    await this.#file.flush('device');
  }

  async #recover() {
    const records = [];
    const blocks = Math.floor((await this.#file.size()) / BLOCK_BYTES);
    const read = async (index) => {
      if (index >= blocks) return null;
      const block = allocate(BLOCK_BYTES, BLOCK_BYTES);
      await this.#file.readExactAt(block, index * BLOCK_BYTES);
      return checksum(block).equals(block.subarray(0, 16)) ? block : null;
    };
    const numberOf = (block) => Number(block.readBigUInt64LE(16));
    const countOf = (block) => Number(block.readBigUInt64LE(24));
    // Full blocks lie at their own numbers.
    let full;
    while ((full = await read(this.#number)) !== null && numberOf(full) === this.#number) {
      records.push(...recordsOf(full));
      this.#number += 1;
    }
    const candidates = [await read(this.#number + 1), await read(this.#number + 2)];
    const newest = candidates
      .filter((block) => block !== null && numberOf(block) === this.#number)
      .sort((a, b) => countOf(b) - countOf(a))[0];
    if (newest) {
      records.push(...recordsOf(newest));
      newest.copy(this.#block);
      this.#count = countOf(newest);
      this.#used = newest.readUInt32LE(32);
    }
    return records;
  }
}

function checksum(block) {
  return crypto.createHash('sha256').update(block.subarray(16)).digest().subarray(0, 16);
}

function recordsOf(block) {
  const records = [];
  for (let at = HEADER_BYTES; at < block.readUInt32LE(32); ) {
    const length = block.readUInt16LE(at);
    records.push(Buffer.from(block.subarray(at + 2, at + 2 + length)));
    at += 2 + length;
  }
  return records;
}

module.exports = { AppendLog };
