'use strict';
// The package as users get it: packed, installed in an empty folder, with and without a compiler.

const assert = require('assert');
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { PACKAGE, UPSTREAM, lacks, runNode, scratch } = require('./support');

/** Packs with `args` and gives the tarball. */
function pack(folder, args) {
  const output = execFileSync(process.execPath, [path.join(PACKAGE, 'scripts', 'pack.js'), '--to', folder, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return output.trim().split('\n').pop();
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

/** Installs `tarball` in an empty folder. */
function install(folder, tarball, { args = [], env }) {
  const place = path.join(folder, `place-${fs.readdirSync(folder).length}`);
  fs.mkdirSync(place);
  fs.writeFileSync(path.join(place, 'package.json'), '{"private": true}');
  const result = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--foreground-scripts', ...args, tarball], {
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

test('the tarball installs in an empty folder with a prebuilt binary, without a compiler, and works', (t) => {
  const folder = scratch(t);
  const tarball = pack(folder, ['--debug']);
  const env = { ...process.env, PATH: bareBin(folder) };
  for (const args of [[], ['--ignore-scripts']]) {
    const outcome = install(folder, tarball, { args, env });
    assert.strictEqual(outcome.result.status, 0, outcome.result.stderr);
    assert.ok(!fs.existsSync(path.join(outcome.installed, 'build')), 'nothing was built');
    assertWorks(outcome);
  }
  const listed = execFileSync('tar', ['tzf', tarball], { encoding: 'utf8' }).split('\n');
  assert.ok(!listed.some((name) => /node_modules|\/test\/|\.test\.js|target\//.test(name)), 'tests and builds stay out');
});

test('where there is no binary for a system, the tarball builds one from source, or reports what is missing', (t) => {
  const folder = scratch(t);
  const tarball = pack(folder, ['--platforms', 'none']);
  const without = install(folder, tarball, { env: { ...process.env, PATH: bareBin(folder) } });
  assert.notStrictEqual(without.result.status, 0);
  assert.match(without.result.stdout + without.result.stderr, /has no binary for \S+ and cannot build one: spawnSync cargo ENOENT\s+Install Rust from https:\/\/rustup\.rs/);
  const unbuilt = install(folder, tarball, { args: ['--ignore-scripts'], env: process.env });
  const loading = runNode(['-p', "try { require('@trueio/direct-io') } catch (error) { error.code + error.message }"], { cwd: unbuilt.place });
  assert.match(loading.stdout, /^ERR_TRUEIO_NO_BINARY.*has no compiled binary for .*install\.js/);

  const cargo = spawnSync('cargo', ['--version'], { encoding: 'utf8' });
  if (lacks(t, 'cargo', cargo.error?.message)) return;
  // One target folder for all runs: only what changed is compiled again.
  const env = { ...process.env, CARGO_TARGET_DIR: path.join(PACKAGE, '..', '..', 'target', 'node-from-source') };
  const built = install(folder, tarball, { env });
  assert.strictEqual(built.result.status, 0, built.result.stdout + built.result.stderr);
  assert.ok(fs.existsSync(path.join(built.installed, 'build', 'trueio_direct.node')));
  assertWorks(built);
});
