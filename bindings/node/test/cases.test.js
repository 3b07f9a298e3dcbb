'use strict';
// The cases of crates/direct/tests/cases.json, which the tests of Rust and of Python run, too.

const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const direct = require('../promises');
const { PACKAGE, scratch } = require('./support');

const CASES = JSON.parse(fs.readFileSync(path.join(PACKAGE, '..', '..', 'crates', 'direct', 'tests', 'cases.json'), 'utf8'));
const FAILURES = { 'end-of-file': 'ERR_TRUEIO_END_OF_FILE', held: 'EAGAIN', exists: 'EEXIST', 'same-file': 'EINVAL', 'too-short': 'EINVAL', stopped: 'STOP' };

const memory = (length) => direct.allocate(Math.max(length, 1), 4096).subarray(0, length);

async function adopted(name) {
  const handle = await fs.promises.open(name, 'r+');
  const file = await direct.fromFile(handle);
  await Promise.all([file.close(), handle.close()]);
  return file.granted;
}

async function carryOut(file, other, { call, offset = 0, bytes = 0, parts = [] }) {
  const buffer = memory(bytes);
  switch (call) {
    case 'read_at': return (await file.readAt(buffer, offset)).bytes;
    case 'read_exact_at': return (await file.readExactAt(buffer, offset)).bytes;
    case 'write_all_at': return (await file.writeAllAt(buffer, offset)).bytes;
    case 'read_vectored_at': return (await file.readVectoredAt(parts.map(memory), offset)).bytes;
    case 'write_vectored_at': return (await file.writeVectoredAt(parts.map(memory), offset)).bytes;
    case 'adopt': return adopted(file.path);
    case 'size': return file.size();
    case 'flush_default': return (await file.flush()).level;
    case 'preallocate': await file.preallocate(offset, bytes); return file.size();
    case 'try_lock': await file.tryLock(); return 0;
    case 'try_lock_elsewhere': await other.tryLock(); return 0;
    case 'unlock': await file.unlock(); return 0;
    case 'try_lock_range': await file.tryLockRange(offset, bytes); return 0;
    case 'try_lock_range_elsewhere': await other.tryLockRange(offset, bytes); return 0;
    case 'unlock_range': await file.unlockRange(offset, bytes); return 0;
    default: throw new Error(`cases.json names an unknown call, ${call}`);
  }
}

/** Copies the file `data` of `folder` to `copy`, or looks at that. */
async function copied(folder, policy, { call, overwrite, range, destination_offset: destinationOffset }) {
  const [source, copy] = [path.join(folder, 'data'), path.join(folder, 'copy')];
  if (call === 'copy_size') return fs.existsSync(copy) ? fs.statSync(copy).size : null;
  if (call === 'copy_sevens') return fs.readFileSync(copy).filter((byte) => byte === 7).length;
  let last;
  const onProgress = ({ doneBytes, totalBytes }) => {
    last = [doneBytes, totalBytes];
    if (call === 'copy_file_stopped') throw Object.assign(new Error('stop'), { code: 'STOP' });
  };
  const to = call === 'copy_file_onto_itself' ? source : copy;
  const { dataBytes, holeBytes } = await direct.copyFile(source, to, { policy, overwrite, range, destinationOffset, onProgress });
  const total = dataBytes + holeBytes;
  assert.deepStrictEqual(last, total === 0 ? undefined : [total, total]);
  return total;
}

for (const { name, length, mode, policy, steps } of CASES) {
  test(`all languages: ${name}`, async (t) => {
    const place = path.join(scratch(t), 'data');
    fs.writeFileSync(place, Buffer.alloc(length, 7));
    const options = { write: mode === 'read-write', policy };
    const [file, other] = [await direct.open(place, options), await direct.open(place, options)];
    t.after(() => Promise.all([file.close(), other.close()]));
    for (const step of steps) {
      const outcome = step.call.startsWith('copy') ? copied(path.dirname(place), policy, step) : carryOut(file, other, step);
      if (step.fails === undefined) assert.strictEqual(await outcome, step.gives, JSON.stringify(step));
      else {
        const expected = { code: FAILURES[step.fails], ...(step.done !== undefined && { doneBytes: step.done }) };
        await assert.rejects(outcome, expected, JSON.stringify(step));
      }
    }
  });
}

/** Each cell is names in backticks, or words. A name of the promise API, of a file, or of the drop-in; a code that the types declare. */
test('the names of docs/bindings.md exist', () => {
  const page = fs.readFileSync(path.join(PACKAGE, '..', '..', 'docs', 'bindings.md'), 'utf8');
  const cells = [...page.matchAll(/^\| `.*? \| (.*?) \|/gm)].map(([, cell]) => cell);
  const names = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name.split('(')[0].replace(/^file\./, '')));
  const types = fs.readFileSync(path.join(PACKAGE, 'promises.d.ts'), 'utf8');
  const known = new Set([...Object.keys(direct), ...Object.getOwnPropertyNames(direct.DirectFile.prototype), ...Object.keys(require('..'))]);
  const isKnown = (name) => known.has(name) || new RegExp(`^ +(\\| '${name}'|${name}\\??:)|\\b(?=E[A-Z]+\\b)${name}\\b`, 'm').test(types);
  assert.ok(names.length > 40);
  assert.deepStrictEqual(names.filter((name) => !isKnown(name)), []);
});
