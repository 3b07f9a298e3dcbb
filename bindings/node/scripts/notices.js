'use strict';
// The licences of the crates whose code is in the compiled half, as one text.
//
//   node scripts/notices.js > THIRD-PARTY-LICENSES.txt
//
// `cargo metadata` names the packages that the library is built of, on any system, without build scripts and procedural macros: these run while
// it is built, and nothing of them is in it. The text of each licence is the file in the package's source.

const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const { ROOT } = require('../lib/platform');

/** The packages that the library is linked with, as `cargo metadata` describes them, by name. */
function linked() {
  const args = ['metadata', '--format-version=1', '--locked', '--manifest-path', path.join(ROOT, 'Cargo.toml')];
  const { packages, resolve } = JSON.parse(execFileSync('cargo', args, { encoding: 'utf8', maxBuffer: 1 << 28 }));
  const byId = new Map(packages.map((found) => [found.id, found]));
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const seen = new Set();
  const visit = (id) => {
    const isMacro = byId.get(id).targets.some(({ kind }) => kind.includes('proc-macro'));
    if (isMacro || seen.has(id)) return;
    seen.add(id);
    // `null`: a normal dependency, not one of tests or of a build script.
    for (const { pkg, dep_kinds: kinds } of nodes.get(id).deps) if (kinds.some(({ kind }) => kind === null)) visit(pkg);
  };
  visit(packages.find(({ name }) => name === 'trueio-node').id);
  const third = [...seen].map((id) => byId.get(id)).filter(({ source }) => source !== null);
  return third.sort((one, other) => (`${one.name} ${one.version}` < `${other.name} ${other.version}` ? -1 : 1));
}

/** Each text once, below the packages that have it. */
function notices() {
  const packages = linked();
  const texts = new Map();
  for (const { name, version, manifest_path: manifest } of packages) {
    const folder = path.dirname(manifest);
    const files = fs.readdirSync(folder).filter((file) => /^(licen[cs]e|copying|copyright|notice)/i.test(file) && fs.statSync(path.join(folder, file)).isFile());
    const found = files.sort().map((file) => fs.readFileSync(path.join(folder, file), 'utf8').trim());
    for (const text of found.length > 0 ? found : ['(no file with the text of the licence)']) {
      texts.set(text, [...(texts.get(text) ?? []), `${name} ${version}`]);
    }
  }
  const list = packages.map(({ name, version, license, repository }) => `${name} ${version}: ${license}${repository ? `, ${repository}` : ''}`);
  const bodies = [...texts].map(([text, names]) => `${'-'.repeat(80)}\n${names.join(', ')}\n\n${text}\n`);
  const own = 'Rust\'s standard library: MIT OR Apache-2.0, https://github.com/rust-lang/rust';
  return ['The compiled half of @trueio/direct-io has code of these packages.\n', ...list, own, '', ...bodies].join('\n');
}

if (require.main === module) process.stdout.write(notices());

module.exports = { linked, notices };
