'use strict';
// The types agree with a sample, and with what the modules really export.

const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { PACKAGE, runNode } = require('./support');

const directIo = require('..');
const direct = require('../promises');

test('the types compile strictly with right uses and refuse wrong ones', () => {
  const tsc = path.join(__dirname, 'node_modules', 'typescript', 'bin', 'tsc');
  const result = runNode([tsc, '--project', path.join(__dirname, 'types')]);
  assert.strictEqual(result.status, 0, result.stdout + result.stderr);
});

test('what the types declare exists, and what exists is declared', () => {
  const declared = (file) => {
    const text = fs.readFileSync(path.join(PACKAGE, file), 'utf8');
    return [...text.matchAll(/^export (?:const|function|class) (\w+)/gm)].map(([, name]) => name).sort();
  };
  assert.deepStrictEqual(declared('index.d.ts'), [...Object.keys(directIo), 'promises'].sort());
  assert.deepStrictEqual(declared('promises.d.ts'), Object.keys(direct).sort());
  const text = fs.readFileSync(path.join(PACKAGE, 'promises.d.ts'), 'utf8');
  for (const [name, Class] of Object.entries(direct).filter(([, value]) => /^class /.test(String(value)))) {
    const body = text.slice(text.indexOf(`export class ${name} `)).split('\n}\n')[0];
    const members = [...body.matchAll(/^ {2}(?:readonly )?(\w+)(?=[?:(<])/gm)].map(([, member]) => member);
    assert.deepStrictEqual(
      members.filter((member) => member !== 'constructor').sort(),
      Object.getOwnPropertyNames(Class.prototype).filter((member) => member !== 'constructor').sort()
    );
  }
});

test('every code of an error is declared', () => {
  const text = fs.readFileSync(path.join(PACKAGE, 'promises.d.ts'), 'utf8');
  const declared = new Set([...text.matchAll(/'(ERR_TRUEIO_\w+)'/g)].map(([, code]) => code));
  const used = new Set();
  for (const folder of ['', 'lib', 'src']) {
    for (const name of fs.readdirSync(path.join(PACKAGE, folder)).filter((name) => /\.(js|rs)$/.test(name))) {
      const source = fs.readFileSync(path.join(PACKAGE, folder, name), 'utf8');
      for (const [, code] of source.matchAll(/["'](ERR_TRUEIO_\w+)["']/g)) used.add(code);
    }
  }
  assert.deepStrictEqual([...used].sort(), [...declared].sort());
});
