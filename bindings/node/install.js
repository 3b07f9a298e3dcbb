'use strict';
// Builds the binary from source, for a system that has none. Run by hand: npm runs no script of this package.
//
// Nothing is built if a binary loads. It is really loaded first, in a process of its own, because a libc that is too old shows only then.
// Building needs cargo, the compiler that native/Cargo.toml names, and a network.

const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const { build } = require('./lib/cargo');
const { ROOT, platformName } = require('./lib/platform');

function loads() {
  const result = spawnSync(process.execPath, ['-e', "require('./lib/native')"], { cwd: ROOT, encoding: 'utf8' });
  return result.status === 0 ? undefined : (/Error: (.*)/.exec(result.stderr) ?? [, result.stderr])[1];
}

function main() {
  const why = loads();
  if (why === undefined) return console.log(`@trueio/direct-io: the binary for ${platformName()} loads, nothing is built`);
  const manifest = path.join(ROOT, 'native', 'Cargo.toml');
  // In the repository there is no such folder, and scripts/build.js builds.
  if (!fs.existsSync(manifest)) return;
  console.log(`@trueio/direct-io: ${why}\n@trueio/direct-io: building for ${platformName()} with cargo`);
  build({ manifest, isRelease: true, to: path.join(ROOT, 'build', 'trueio_direct.node') });
  const left = loads();
  if (left !== undefined) throw new Error(`what was built cannot be loaded: ${left}`);
  // Some hundred megabytes that are no longer needed.
  if (!process.env.CARGO_TARGET_DIR) fs.rmSync(path.join(ROOT, 'native', 'target'), { recursive: true, force: true });
}

try {
  main();
} catch (error) {
  console.error(
    `@trueio/direct-io has no binary for ${platformName()} and cannot build one: ${error.message}\n` +
      'Install Rust from https://rustup.rs and try again.'
  );
  process.exit(1);
}
