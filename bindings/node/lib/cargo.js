'use strict';
// Builds the compiled half with cargo, and puts it where it is wanted.

const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const { ROOT } = require('./platform');

/**
 * Builds the package at `manifest` and copies its library to the file `to`.
 *
 * `target`: a Rust target triple, if not this machine's. `command`: the cargo command that builds
 * (`zigbuild` for other systems). Throws with cargo's own words if it fails.
 */
function build({ manifest, isRelease, to, target, command = 'build', env = {} }) {
  const args = [command, '--manifest-path', manifest, '--package', 'trueio-node', '--message-format=json-render-diagnostics'];
  if (isRelease) args.push('--release');
  if (target) args.push('--target', target);
  const place = process.platform === 'win32' || /windows-gnu/.test(target) ? emptyLibnode() : undefined;
  const result = spawnSync('cargo', args, {
    env: { ...(place && { LIBNODE_PATH: place }), ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 28,
    encoding: 'utf8',
  });
  if (result.error) throw result.error;
  if (result.status !== 0) throw new Error(`cargo ${args.join(' ')} failed (${result.status ?? result.signal})`);
  // Cargo reports the path, because the name of a library depends on the target.
  const library = result.stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .filter((message) => message.reason === 'compiler-artifact' && message.target.name === 'trueio_node')
    .flatMap((message) => message.filenames)
    .find((file) => /\.(so|dylib|dll)$/.test(file));
  if (!library) throw new Error('cargo built no library');
  fs.mkdirSync(path.dirname(to), { recursive: true });
  // A library that a running program has loaded must not be overwritten, only replaced.
  const temporary = `${to}.${process.pid}`;
  fs.copyFileSync(library, temporary);
  fs.renameSync(temporary, to);
}

/**
 * napi's build script for windows-gnu wants a folder with a libnode.dll, and the linker looks there. Nothing
 * of it is used, because N-API is looked up when the library is loaded, so an empty one serves. It stays,
 * because cargo remembers where it was.
 */
function emptyLibnode() {
  const place = path.join(ROOT, 'build', 'libnode');
  fs.mkdirSync(place, { recursive: true });
  fs.writeFileSync(path.join(place, 'libnode.dll'), '');
  // zig's linker looks for an archive; this is an empty one.
  fs.writeFileSync(path.join(place, 'libnode.a'), '!<arch>\n');
  return place;
}

module.exports = { build };
