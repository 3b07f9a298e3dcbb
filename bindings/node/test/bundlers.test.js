'use strict';
// The package within a bundle: bundled, moved to another folder, and run there, where nothing else of it is.
//
// Goal: an application that bundles @ronomon/direct-io can bundle this package in its place.
// Method: an entry that allocates an aligned buffer and opens a file, bundled as in each tool's documentation for
// native addons. The package lies there as published, with the binaries of two C libraries, of which one does not load.
//
// Cannot see: Electron itself; only the webpack configuration of its packager is used.

const assert = require('assert');
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { platformName } = require('../lib/platform');
const { PACKAGE, lacks, runNode, scratch } = require('./support');

const TOOLS = path.join(__dirname, 'node_modules');
const ENTRY = `
const { getAlignedBuffer, promises } = require('@trueio/direct-io');
const buffer = getAlignedBuffer(4096, 4096);
promises.open(process.execPath, { policy: 'prefer' }).then(async (file) => {
  const read = await file.readAt(promises.allocate(4096, 4096), 0);
  await file.close();
  console.log(buffer.length, buffer.every((byte) => byte === 0), read.bytes);
});
`;

/** Makes an application with the package in it, and returns its folder. */
function application(t) {
  const folder = scratch(t);
  const app = path.join(folder, 'app');
  const installed = path.join(app, 'node_modules', '@trueio', 'direct-io');
  for (const part of ['index.js', 'bun.mjs', 'promises.js', 'lib', 'package.json']) {
    fs.cpSync(path.join(PACKAGE, part), path.join(installed, part), { recursive: true });
  }
  const here = platformName();
  const other = here.endsWith('-gnu') ? here.replace('-gnu', '-musl') : here.replace('-musl', '-gnu');
  for (const name of new Set([here, other])) {
    const half = path.join(app, 'node_modules', '@trueio', `direct-io-${name}`);
    fs.mkdirSync(half, { recursive: true });
    fs.writeFileSync(path.join(half, 'package.json'), `{"name": "@trueio/direct-io-${name}", "version": "0.1.0", "main": "trueio_direct.node"}`);
    if (name === here) fs.copyFileSync(path.join(PACKAGE, 'build', 'trueio_direct.node'), path.join(half, 'trueio_direct.node'));
    else fs.writeFileSync(path.join(half, 'trueio_direct.node'), 'for another C library');
  }
  fs.writeFileSync(path.join(app, 'entry.js'), ENTRY);
  // Else the application belongs to the package around it, whose name means itself.
  fs.writeFileSync(path.join(app, 'package.json'), '{"name": "app", "version": "1.0.0", "bin": "entry.js"}');
  return { folder, app };
}

/** Runs a bundler in the application; its output must be in `out`. */
function bundle(app, args) {
  const result = runNode(args, { cwd: app });
  assert.strictEqual(result.status, 0, result.stdout + result.stderr);
}

/** Moves the bundle away from the application, removes that, and runs what is left. */
function assertRunsElsewhere({ folder, app }, name) {
  const elsewhere = path.join(folder, 'elsewhere');
  fs.renameSync(path.join(app, 'out'), elsewhere);
  fs.rmSync(app, { recursive: true });
  const result = runNode([path.join(elsewhere, name)], { cwd: folder });
  assert.strictEqual(result.stdout, '4096 true 4096\n', result.stderr);
}

test('an application bundled by esbuild runs elsewhere', (t) => {
  const made = application(t);
  const args = ['entry.js', '--bundle', '--platform=node', '--loader:.node=copy', '--outdir=out'];
  // Its program is not JavaScript where its own installation script ran.
  const result = spawnSync(path.join(TOOLS, '.bin', 'esbuild'), args, { cwd: made.app, encoding: 'utf8' });
  assert.strictEqual(result.status, 0, result.stderr);
  assertRunsElsewhere(made, 'entry.js');
});

test('an application bundled by ncc runs elsewhere', (t) => {
  const made = application(t);
  bundle(made.app, [path.join(TOOLS, '@vercel', 'ncc', 'dist', 'ncc', 'cli.js'), 'build', 'entry.js', '-o', 'out', '--no-cache', '-q']);
  assertRunsElsewhere(made, 'index.js');
});

test('an application bundled by webpack as electron-forge configures it runs elsewhere', (t) => {
  const made = application(t);
  const script = `
    const webpack = require(${JSON.stringify(path.join(TOOLS, 'webpack'))});
    webpack({
      mode: 'production', target: 'node', entry: './entry.js', context: process.cwd(),
      output: { path: process.cwd() + '/out', filename: 'index.js' },
      resolveLoader: { modules: [${JSON.stringify(TOOLS)}] },
      module: { rules: [
        { test: /native_modules[/\\\\].+\\.node$/, use: 'node-loader' },
        {
          test: /[/\\\\]node_modules[/\\\\].+\\.(m?js|node)$/, parser: { amd: false },
          use: { loader: '@vercel/webpack-asset-relocator-loader', options: { outputAssetBase: 'native_modules' } },
        },
      ] },
    }, (error, stats) => {
      if (error || stats.hasErrors()) { console.error(error ?? stats.toString()); process.exit(1); }
    });`;
  bundle(made.app, ['-e', script]);
  assertRunsElsewhere(made, 'index.js');
});

test('an application packed by pkg runs elsewhere', (t) => {
  const made = application(t);
  const major = process.versions.node.split('.')[0];
  const cli = path.join(TOOLS, '@yao-pkg', 'pkg', 'lib-es5', 'bin.js');
  const args = [cli, 'entry.js', '-t', `node${major}`, '-o', 'out/app', '--no-bytecode', '--public', '--public-packages', '*'];
  const result = runNode([...args, '--no-native-build'], { cwd: made.app });
  const output = result.stdout + result.stderr;
  // pkg puts the application into a Node of its own, which it fetches.
  const unreachable = /Network error during fetch: .*/.exec(output);
  if (lacks(t, 'pkg', unreachable?.[0])) return;
  assert.strictEqual(result.status, 0, output);
  fs.renameSync(path.join(made.app, 'out'), path.join(made.folder, 'elsewhere'));
  fs.rmSync(made.app, { recursive: true });
  const run = spawnSync(path.join(made.folder, 'elsewhere', 'app'), [], { cwd: made.folder, encoding: 'utf8' });
  assert.strictEqual(run.stdout, '4096 true 4096\n', run.stderr);
});

/**
 * What made `require` take 27 ms was Node's report, which names the C library; each file costs about half a millisecond.
 * A bound in milliseconds fails on a busy machine; this counts what is done: no report, no process, two files.
 */
test('require loads two files, starts no process and asks for no report', () => {
  const script = `
    const refuse = (what) => () => { throw new Error('require used ' + what); };
    process.report.getReport = refuse('process.report');
    const children = require('child_process');
    for (const name of ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork']) children[name] = refuse(name);
    const builtin = new Set(process.moduleLoadList);
    require(${JSON.stringify(PACKAGE)});
    const path = require('path');
    const files = Object.keys(require.cache).map((file) => path.relative(${JSON.stringify(PACKAGE)}, file).replaceAll(path.sep, '/'));
    console.log(JSON.stringify({ files, builtin: process.moduleLoadList.filter((name) => !builtin.has(name)) }));`;
  const ran = runNode(['-e', script]);
  assert.strictEqual(ran.status, 0, ran.stderr);
  const { files, builtin } = JSON.parse(ran.stdout);
  assert.deepStrictEqual(files.sort(), ['build/trueio_direct.node', 'index.js']);
  assert.deepStrictEqual(builtin, [], 'no module of Node is loaded that was not loaded before');
});

test('`npm pack` in the source folder is refused, because the package would have no binary', () => {
  const result = spawnSync('npm', ['pack', '--dry-run'], { cwd: PACKAGE, encoding: 'utf8' });
  assert.notStrictEqual(result.status, 0);
  assert.match(result.stderr, /Run `node scripts\/pack\.js --platforms all`/);
});
