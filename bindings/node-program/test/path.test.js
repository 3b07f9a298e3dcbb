'use strict';
// Where the program is found. The functions are loaded from a copy without programs, as npm leaves on a platform that has none.

const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { after, test } = require('node:test');

const folder = fs.mkdtempSync(path.join(process.env.TRUEIO_TEST_DIRECTORY ?? os.tmpdir(), 'trueio-path-'));
fs.cpSync(path.join(__dirname, '..', 'lib'), path.join(folder, 'package', 'lib'), { recursive: true });
const { findProgram } = require(path.join(folder, 'package', 'lib', 'program.js'));
after(() => fs.rmSync(folder, { recursive: true }));

test('the program is found on PATH, and this package is not mistaken for it', () => {
  const before = { ...process.env };
  delete process.env.TRUEIO_PROGRAM;
  const [shims, bin] = ['shims', 'bin'].map((name) => path.join(folder, name));
  [shims, bin].forEach((directory) => fs.mkdirSync(directory));
  const script = path.join(folder, 'package', 'trueio.js');
  [script, path.join(bin, 'trueio')].forEach((file) => fs.writeFileSync(file, '#!/bin/sh\n', { mode: 0o755 }));
  fs.symlinkSync(script, path.join(shims, 'trueio'));
  try {
    process.env.PATH = ['relative', shims].join(path.delimiter);
    assert.throws(findProgram, { message: /PATH has no `trueio`; install one/ });
    process.env.PATH = ['relative', shims, bin].join(path.delimiter);
    assert.strictEqual(findProgram(), path.join(bin, 'trueio'));
  } finally {
    process.env = before;
  }
});
