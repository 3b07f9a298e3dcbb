'use strict';
// Makes the npm packages: one with JavaScript, types and the source to build a compiled half, and one for each platform with its compiled half,
// which the first has as an optional dependency. So an installation and a bundle have one binary.
//
//   node scripts/pack.js [--platforms LIST] [--debug] [--to FOLDER]
//
// LIST names platforms by comma, `all`, `available`, or `none`; the default is this machine's own. Other systems are
// linked by cargo-zigbuild with zig (`pip install ziglang cargo-zigbuild`), Windows on x64 by mingw-w64. A platform
// that cannot be built fails the whole; with `available` it is named with the reason and left out. `--debug` is for
// tests. Prints a path for each package; that of the first package comes last.
//
// ../README.md says what of this was ever run.

const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const { build } = require('../lib/cargo');
const { ROOT, platformName } = require('../lib/platform');
const { refuseNewerGlibc } = require('./glibc');
const { notices } = require('./notices');

const REPOSITORY = path.join(ROOT, '..', '..');

// Name in Node's words -> Rust's target. glibc 2.17 is what manylinux2014 promises.
const PLATFORMS = {
  'linux-x64-gnu': { target: 'x86_64-unknown-linux-gnu.2.17' },
  'linux-x64-musl': { target: 'x86_64-unknown-linux-musl', isMusl: true },
  'linux-arm64-gnu': { target: 'aarch64-unknown-linux-gnu.2.17' },
  'linux-arm64-musl': { target: 'aarch64-unknown-linux-musl', isMusl: true },
  'linux-arm-gnu': { target: 'armv7-unknown-linux-gnueabihf.2.17' },
  'linux-arm-musl': { target: 'armv7-unknown-linux-musleabihf', isMusl: true },
  'darwin-x64': { target: 'x86_64-apple-darwin' },
  'darwin-arm64': { target: 'aarch64-apple-darwin' },
  'freebsd-x64': { target: 'x86_64-unknown-freebsd' },
  'win32-x64': { target: 'x86_64-pc-windows-gnu', isMingw: true },
  'win32-arm64': { target: 'aarch64-pc-windows-gnullvm' },
};

function option(name) {
  const index = process.argv.indexOf(name);
  return index < 0 ? undefined : process.argv[index + 1];
}

function wanted() {
  const list = option('--platforms') ?? platformName();
  if (list === 'none') return [];
  const names = list === 'all' || list === 'available' ? Object.keys(PLATFORMS) : list.split(',');
  const unknown = names.filter((name) => !(name in PLATFORMS) && name !== platformName());
  if (unknown.length > 0) throw new Error(`no such platform: ${unknown.join(', ')}; there are ${Object.keys(PLATFORMS).join(', ')}`);
  return names;
}

/** Builds for `name` into `to`. This machine's own needs no zig, if its libc need not be an old one. */
function compile(name, to) {
  const platform = PLATFORMS[name];
  const isRelease = !process.argv.includes('--debug');
  const common = { manifest: path.join(ROOT, 'Cargo.toml'), isRelease, to };
  // Nobody debugs a published binary by its symbols, and they are most of its size.
  const env = isRelease ? { CARGO_PROFILE_RELEASE_STRIP: 'symbols', CARGO_PROFILE_RELEASE_DEBUG: 'none' } : {};
  if (option('--platforms') === undefined) return build({ ...common, env });
  execFileSync('rustup', ['target', 'add', platform.target.replace(/\.2\.17$/, '')], { cwd: REPOSITORY, stdio: 'inherit' });
  // A musl library that brings its own libc would have two in one process.
  if (platform.isMusl) env.RUSTFLAGS = '-C target-feature=-crt-static';
  build({ ...common, env, target: platform.target, command: platform.isMingw ? 'build' : 'zigbuild' });
  if (name.startsWith('linux')) refuseNewerGlibc(to);
}

/** Compiles for each platform that `compile` can; prints the others with the reason. */
function compileAvailable(names, place) {
  const built = names.filter((name) => {
    try {
      compile(name, place(name));
      return true;
    } catch (error) {
      console.error(`skipped ${name}: ${error.message}`);
      fs.rmSync(path.dirname(place(name)), { recursive: true, force: true });
      return false;
    }
  });
  console.error(`binaries for ${built.join(', ') || 'no platform'}`);
  return built;
}

/** Returns a manifest without what only tests need: the crates of this workspace that they use are not in the package. */
function withoutDevDependencies(manifest) {
  return manifest.replace(/^\[[^\]\n]*dev-dependencies\]\n(?:(?!\[).*\n)*/gm, '');
}

/** The source of the compiled half as a workspace of its own. */
function copySource(stage) {
  const native = path.join(stage, 'native');
  for (const member of ['crates/direct', 'bindings/node']) {
    fs.cpSync(path.join(REPOSITORY, member, 'src'), path.join(native, member, 'src'), { recursive: true });
    const manifest = fs.readFileSync(path.join(REPOSITORY, member, 'Cargo.toml'), 'utf8');
    fs.writeFileSync(path.join(native, member, 'Cargo.toml'), withoutDevDependencies(manifest));
  }
  const manifest = fs.readFileSync(path.join(REPOSITORY, 'Cargo.toml'), 'utf8');
  const members = /^members = \[.*\]$/m;
  if (!members.test(manifest)) throw new Error('the workspace\'s Cargo.toml names no members');
  fs.writeFileSync(
    path.join(native, 'Cargo.toml'),
    manifest.replace(members, 'members = ["crates/direct", "bindings/node"]')
  );
  // Cargo drops what these two do not use and keeps the versions of the rest.
  fs.copyFileSync(path.join(REPOSITORY, 'Cargo.lock'), path.join(native, 'Cargo.lock'));
}

/** The fields that npm chooses a package by: `os`, `cpu` and, on Linux, `libc`. */
function systemOf(name) {
  const [os, cpu, libc] = name.split('-');
  return { os: [os], cpu: [cpu], ...(libc && { libc: [libc === 'gnu' ? 'glibc' : libc] }) };
}

/** Copies the licences of this package, and of the crates in its binary. */
function copyLicenses(stage) {
  for (const license of ['LICENSE-APACHE', 'LICENSE-MIT']) fs.copyFileSync(path.join(REPOSITORY, license), path.join(stage, license));
  fs.writeFileSync(path.join(stage, 'THIRD-PARTY-LICENSES.txt'), notices());
}

function packed(stage, to) {
  const output = execFileSync('npm', ['pack', '--json', '--pack-destination', to, stage], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  return path.join(to, JSON.parse(output)[0].filename);
}

/** Makes the package of a platform around its compiled half, which is in `stage`. */
function packPlatform(name, stage, to, description) {
  const { version, license, repository, homepage, bugs, publishConfig, engines } = description;
  const own = {
    name: `${description.name}-${name}`, version, description: `The compiled half of ${description.name} for ${name}`,
    license, repository, homepage, bugs, publishConfig, engines, type: 'commonjs', main: 'trueio_direct.node',
    files: ['trueio_direct.node', 'LICENSE-*', 'THIRD-PARTY-LICENSES.txt'], ...systemOf(name),
  };
  fs.writeFileSync(path.join(stage, 'package.json'), JSON.stringify(own, null, 2) + '\n');
  fs.writeFileSync(path.join(stage, 'README.md'), `The compiled half of [${description.name}](${homepage}) for ${name}. Install that package.\n`);
  copyLicenses(stage);
  return packed(stage, to);
}

function main() {
  const to = path.resolve(option('--to') ?? path.join(ROOT, 'build'));
  fs.mkdirSync(to, { recursive: true });
  const stage = fs.mkdtempSync(path.join(to, 'stage-'));
  const place = (name) => path.join(stage, name, 'trueio_direct.node');
  try {
    const description = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
    let names = wanted();
    if (option('--platforms') === 'available') names = compileAvailable(names, place);
    else names.forEach((name) => compile(name, place(name)));
    for (const name of names) console.log(packPlatform(name, path.join(stage, name), to, description));

    const main = path.join(stage, 'main');
    for (const part of ['index.js', 'index.d.ts', 'bun.mjs', 'promises.js', 'promises.d.ts', 'install.js', 'lib', 'examples', 'README.md', 'CHANGELOG.md']) {
      fs.cpSync(path.join(ROOT, part), path.join(main, part), { recursive: true });
    }
    copyLicenses(main);
    delete description.scripts;
    description.optionalDependencies = Object.fromEntries(names.map((name) => [`${description.name}-${name}`, description.version]));
    fs.writeFileSync(path.join(main, 'package.json'), JSON.stringify(description, null, 2) + '\n');
    copySource(main);
    console.log(packed(main, to));
  } finally {
    fs.rmSync(stage, { recursive: true, force: true });
  }
}

if (require.main === module) main();

module.exports = { PLATFORMS };
