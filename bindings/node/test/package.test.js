'use strict';
// The package as users get it: packed, installed in an empty folder, with and without a compiler.

const assert = require('assert');
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { platformName } = require('../lib/platform');
const { linked } = require('../scripts/notices');
const { PACKAGE, UPSTREAM, lacks, runNode, scratch } = require('./support');

/** Packs with `args` and gives the tarballs: of the platforms, then of the package. */
function pack(folder, args) {
  const output = execFileSync(process.execPath, [path.join(PACKAGE, 'scripts', 'pack.js'), '--to', folder, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return output.trim().split('\n');
}

/** A folder of programs that holds node, npm and a shell, and no compiler. */
function bareBin(folder) {
  const bin = path.join(folder, 'bin');
  fs.mkdirSync(bin);
  const npm = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim();
  for (const [name, target] of [['node', process.execPath], ['npm', fs.realpathSync(npm)], ['sh', '/bin/sh']]) {
    fs.symlinkSync(target, path.join(bin, name));
  }
  return bin;
}

/** Installs `tarballs` in an empty folder. */
function install(folder, tarballs, { args = [], env }) {
  const place = path.join(folder, `place-${fs.readdirSync(folder).length}`);
  fs.mkdirSync(place);
  fs.writeFileSync(path.join(place, 'package.json'), '{"private": true}');
  const result = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--foreground-scripts', ...args, ...tarballs], {
    cwd: place,
    env,
    encoding: 'utf8',
    timeout: 600_000,
  });
  return { result, place, installed: path.join(place, 'node_modules', '@trueio', 'direct-io') };
}

/** Uses what was installed, by name: upstream's test unchanged, and a direct write through the promise API. */
function assertWorks({ place, installed }) {
  fs.copyFileSync(path.join(UPSTREAM, 'test.js'), path.join(installed, 'test.js'));
  const upstream = runNode(['test.js'], { cwd: installed });
  assert.strictEqual(upstream.status, 0, upstream.stdout.slice(-1000) + upstream.stderr);
  assert.ok(upstream.stdout.split('PASS').length > 325);
  const script = `
    const { open, allocate } = require('@trueio/direct-io/promises');
    open('file', { write: true, createNew: true, policy: 'prefer' }).then(async (file) => {
      const { bytes } = await file.writeAllAt(allocate(8192, 4096), 0);
      await file.close();
      console.log(bytes, require('@trueio/direct-io').promises.open === open);
    });`;
  const ours = runNode(['-e', script], { cwd: place });
  assert.strictEqual(ours.stdout, '8192 true\n', ours.stderr);
}

test('the package and that of its platform install in an empty folder, without a compiler and a script, and work', (t) => {
  const folder = scratch(t);
  const tarballs = pack(folder, ['--debug']);
  assert.strictEqual(tarballs.length, 2);
  const outcome = install(folder, tarballs, { env: { ...process.env, PATH: bareBin(folder) } });
  assert.strictEqual(outcome.result.status, 0, outcome.result.stderr);
  assertWorks(outcome);
  const of = (name) => JSON.parse(fs.readFileSync(path.join(outcome.place, 'node_modules', '@trueio', name, 'package.json'), 'utf8'));
  const here = `direct-io-${platformName()}`;
  assert.strictEqual(of('direct-io').scripts, undefined, 'nothing runs at installation');
  assert.deepStrictEqual(of('direct-io').optionalDependencies, { [`@trueio/${here}`]: of('direct-io').version });
  assert.deepStrictEqual([of(here).os, of(here).cpu, of(here).version], [[process.platform], [process.arch], of('direct-io').version]);
  const [half, whole] = tarballs.map((file) => execFileSync('tar', ['tzf', file], { encoding: 'utf8' }).split('\n'));
  assert.ok(!whole.some((name) => /node_modules|\/test\/|\.test\.js|target\/|\.node$/.test(name)), 'tests, builds and binaries stay out');
  assert.deepStrictEqual(half.filter((name) => /\.(node|js)$/.test(name)), ['package/trueio_direct.node']);
  for (const list of [half, whole]) assert.ok(list.includes('package/THIRD-PARTY-LICENSES.txt'));
  const notices = execFileSync('tar', ['xzOf', tarballs[0], 'package/THIRD-PARTY-LICENSES.txt'], { encoding: 'utf8' });
  for (const { name, version } of linked()) assert.ok(notices.includes(`${name} ${version}: `), name);
  assert.match(notices, /Permission is hereby granted/);
});

test('where there is no binary for a system, install.js builds one from source, or reports what is missing', (t) => {
  const folder = scratch(t);
  const tarballs = pack(folder, ['--platforms', 'none']);
  const { result, place, installed } = install(folder, tarballs, { env: { ...process.env, PATH: bareBin(folder) } });
  assert.strictEqual(result.status, 0, result.stderr);
  const loading = runNode(['-p', "try { require('@trueio/direct-io') } catch (error) { error.code + error.message }"], { cwd: place });
  assert.match(loading.stdout, /^ERR_TRUEIO_NO_BINARY.*has no compiled binary for .*install\.js/);
  const script = path.join(installed, 'install.js');
  const without = runNode([script], { cwd: place, env: { ...process.env, PATH: path.join(folder, 'bin') } });
  assert.notStrictEqual(without.status, 0);
  assert.match(without.stdout + without.stderr, /has no binary for \S+ and cannot build one: spawnSync cargo ENOENT\s+Install Rust from https:\/\/rustup\.rs/);

  const cargo = spawnSync('cargo', ['--version'], { encoding: 'utf8' });
  if (lacks(t, 'cargo', cargo.error?.message)) return;
  // One target folder for all runs: only what changed is compiled again.
  const env = { ...process.env, CARGO_TARGET_DIR: path.join(PACKAGE, '..', '..', 'target', 'node-from-source') };
  const built = runNode([script], { cwd: place, env, timeout: 600_000 });
  assert.strictEqual(built.status, 0, built.stdout + built.stderr);
  assert.ok(fs.existsSync(path.join(installed, 'build', 'trueio_direct.node')));
  assertWorks({ place, installed });
  assert.match(runNode([script], { cwd: place, env }).stdout, /loads, nothing is built/);
});

test('TRUEIO_DIRECT_BINARY names a binary at another place, and one that does not load is an error', (t) => {
  const folder = scratch(t);
  for (const part of ['index.js', 'lib', 'promises.js', 'package.json']) fs.cpSync(path.join(PACKAGE, part), path.join(folder, part), { recursive: true });
  const binary = path.join(folder, 'elsewhere.node');
  fs.copyFileSync(path.join(PACKAGE, 'build', 'trueio_direct.node'), binary);
  const load = (file) => runNode(['-p', "try { require('.').getAlignedBuffer(4096, 4096).length } catch (error) { error.code + error.message }"], {
    cwd: folder, env: { ...process.env, TRUEIO_DIRECT_BINARY: file },
  });
  assert.match(load('').stdout, /^ERR_TRUEIO_NO_BINARY/);
  for (const file of [binary, './elsewhere.node']) assert.strictEqual(load(file).stdout, '4096\n');
  assert.match(load('missing.node').stdout, /^ERR_TRUEIO_NO_BINARYTRUEIO_DIRECT_BINARY is missing\.node, which does not load/);
});
