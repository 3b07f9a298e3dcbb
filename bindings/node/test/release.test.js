'use strict';
// What is published: the files and fields of the package, and the binaries that it may contain.

const assert = require('assert');
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { neededVersions, refuseNewerGlibc } = require('../scripts/glibc');
const { PLATFORMS } = require('../scripts/pack');
const { PACKAGE, isLinux, lacks, scratch } = require('./support');

const read = (...parts) => fs.readFileSync(path.join(PACKAGE, ...parts), 'utf8');

/** Links a library whose code is `source`, with no files of the compiler's own. */
function library(t, source) {
  const folder = scratch(t);
  const file = path.join(folder, 'library.so');
  fs.writeFileSync(path.join(folder, 'source.c'), source);
  const args = ['-shared', '-fPIC', '-nostartfiles', '-fno-builtin', '-fno-stack-protector', '-o', file, path.join(folder, 'source.c')];
  const result = spawnSync('cc', args, { encoding: 'utf8' });
  assert.strictEqual(result.status, 0, result.stderr);
  return file;
}

/**
 * Goal: a binary that older systems cannot load is not packed.
 * Method: functions whose versions are known. memcpy is of glibc 2.14 on x64; getentropy of 2.25, on every processor.
 */
test('a binary that needs a newer glibc than 2.17 is refused', { skip: !isLinux && 'Linux only' }, (t) => {
  const cc = spawnSync('cc', ['--version']);
  const isMusl = process.report.getReport().header.glibcVersionRuntime === undefined;
  if (lacks(t, 'cc', cc.error?.message ?? (isMusl ? 'the C library here is musl' : undefined))) return;
  const older = library(t, 'void *memcpy(void *, const void *, unsigned long); void *f(void *a, void *b) { return memcpy(a, b, 9); }');
  assert.match(refuseNewerGlibc(older), /: glibc 2\.\d+$/);
  const newer = library(t, 'int getentropy(void *, unsigned long); int f(void *a) { return getentropy(a, 9); } /* GLIBC_2.2 */');
  assert.deepStrictEqual(neededVersions(fs.readFileSync(newer)), ['GLIBC_2.25']);
  assert.throws(() => refuseNewerGlibc(newer), /needs GLIBC_2\.25, and may need GLIBC_2\.17 at most/);
  assert.throws(() => refuseNewerGlibc(__filename), /not a little-endian ELF file/);
});

test('every platform is loaded by index.js, and described in README', () => {
  const loaded = [...read('index.js').matchAll(/require\('@trueio\/direct-io-([a-z0-9-]+)'\)/g)].map(([, name]) => name);
  assert.deepStrictEqual(loaded.sort(), Object.keys(PLATFORMS).sort());
  for (const name of loaded) assert.ok(read('README.md').includes(`\`${name}\``), name);
});

test('the package has what a registry shows, and does not claim to be published', () => {
  const description = JSON.parse(read('package.json'));
  for (const field of ['description', 'homepage', 'bugs', 'keywords', 'license', 'repository', 'engines']) assert.ok(description[field], field);
  assert.deepStrictEqual(description.publishConfig, { access: 'public', provenance: true });
  const heading = new RegExp(`^## ${description.version.replaceAll('.', '\\.')}`, 'm');
  assert.match(read('CHANGELOG.md'), heading);
  assert.match(read('README.md'), /The package is not published yet/);
});
