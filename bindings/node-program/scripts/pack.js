'use strict';
// Makes the npm package: JavaScript, types, and the program for each platform.
//
//   node scripts/pack.js --program PLATFORM=PATH [--program …] [--to FOLDER]
//
// PLATFORM is a name of Node (`linux-x64`). The last line printed is the package's path.

const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');

const ROOT = path.join(__dirname, '..');
const REPOSITORY = path.join(ROOT, '..', '..');

const values = (name) => process.argv.flatMap((word, index) => (word === name ? [process.argv[index + 1]] : []));

const programs = values('--program').map((text) => text.split('='));
if (programs.length === 0 || programs.some((pair) => pair.length !== 2)) {
  console.error('usage: node scripts/pack.js --program PLATFORM=PATH [--program …] [--to FOLDER]');
  process.exit(2);
}
const to = path.resolve(values('--to')[0] ?? path.join(ROOT, 'build'));
fs.mkdirSync(to, { recursive: true });
const stage = fs.mkdtempSync(path.join(to, 'stage-'));
try {
  for (const part of ['index.js', 'index.d.ts', 'documents.d.ts', 'lib', 'bin', 'README.md']) {
    fs.cpSync(path.join(ROOT, part), path.join(stage, part), { recursive: true });
  }
  for (const license of ['LICENSE-APACHE', 'LICENSE-MIT']) {
    fs.copyFileSync(path.join(REPOSITORY, license), path.join(stage, license));
  }
  const description = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  delete description.scripts;
  fs.writeFileSync(path.join(stage, 'package.json'), JSON.stringify(description, null, 2) + '\n');
  for (const [platform, program] of programs) {
    const folder = path.join(stage, 'programs', platform);
    fs.mkdirSync(folder, { recursive: true });
    fs.copyFileSync(program, path.join(folder, 'trueio'));
    fs.chmodSync(path.join(folder, 'trueio'), 0o755);
  }
  const output = execFileSync('npm', ['pack', '--json', '--pack-destination', to, stage], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  console.log(path.join(to, JSON.parse(output)[0].filename));
} finally {
  fs.rmSync(stage, { recursive: true, force: true });
}
