'use strict';
// The cases of crates/direct/tests/cases.json, which the tests of Rust and of Python run, too.

const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const direct = require('../promises');
const { PACKAGE, scratch } = require('./support');

const CASES = JSON.parse(fs.readFileSync(path.join(PACKAGE, '..', '..', 'crates', 'direct', 'tests', 'cases.json'), 'utf8'));
const FAILURES = { 'end-of-file': 'ERR_TRUEIO_END_OF_FILE', held: 'EAGAIN' };

async function carryOut(file, other, { call, offset = 0, bytes = 0 }) {
  const buffer = direct.allocate(Math.max(bytes, 1), 4096).subarray(0, bytes);
  switch (call) {
    case 'read_at': return (await file.readAt(buffer, offset)).bytes;
    case 'read_exact_at': return (await file.readExactAt(buffer, offset)).bytes;
    case 'write_all_at': return (await file.writeAllAt(buffer, offset)).bytes;
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

for (const { name, length, mode, policy, steps } of CASES) {
  test(`all languages: ${name}`, async (t) => {
    const place = path.join(scratch(t), 'data');
    fs.writeFileSync(place, Buffer.alloc(length, 7));
    const options = { write: mode === 'read-write', policy };
    const [file, other] = [await direct.open(place, options), await direct.open(place, options)];
    t.after(() => Promise.all([file.close(), other.close()]));
    for (const step of steps) {
      const outcome = carryOut(file, other, step);
      if (step.fails === undefined) assert.strictEqual(await outcome, step.gives, JSON.stringify(step));
      else {
        const expected = { code: FAILURES[step.fails], ...(step.done !== undefined && { doneBytes: step.done }) };
        await assert.rejects(outcome, expected, JSON.stringify(step));
      }
    }
  });
}
