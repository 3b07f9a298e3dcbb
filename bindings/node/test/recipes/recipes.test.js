'use strict';
// The recipes of README for bundlers and single executables, and for Bun: used as they stand there, and what they make is run elsewhere.
//
// Goal: who follows a recipe gets a program with one binary that runs without node_modules.
// Method: an application in an empty folder with the two packages as scripts/pack.js makes them; its configuration is the code block
// of README below the recipe's heading. A tool that could not be installed is skipped by name.

const assert = require('assert');
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const { after, test } = require('node:test');
const { PACKAGE, lacks, runNode, scratch } = require('../support');

const TOOLS = path.join(__dirname, 'node_modules');
const README = fs.readFileSync(path.join(PACKAGE, 'README.md'), 'utf8');
const ENTRY = `
import direct, { getAlignedBuffer, promises } from '@trueio/direct-io';
import { open } from '@trueio/direct-io/promises';
const buffer = getAlignedBuffer(4096, 4096);
const file = await open(process.execPath, { policy: 'prefer' });
const read = await file.readAt(promises.allocate(4096), 0);
await file.close();
console.log(buffer.length, read.bytes, promises.open === open, direct.O_DIRECT > 0);
`;
const EXPECTED = '4096 4096 true true\n';

/** The code blocks of a recipe: below a heading that begins with its name, up to the next one. */
function recipe(name) {
  const section = README.split(/^### /m).find((part) => part.startsWith(name));
  assert.ok(section, `README has no recipe for ${name}`);
  return [...section.matchAll(/```\w+\n([\s\S]*?)```/g)].map(([, code]) => code);
}

const packages = path.join(PACKAGE, 'build', `recipes-${process.pid}`);
after(() => fs.rmSync(packages, { recursive: true, force: true }));
let tarballs;

/** An application in an empty folder. */
function application(t) {
  tarballs ??= execFileSync(process.execPath, [path.join(PACKAGE, 'scripts', 'pack.js'), '--debug', '--to', packages], {
    encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'],
  }).trim().split('\n');
  const folder = scratch(t);
  const app = path.join(folder, 'app');
  for (const tarball of tarballs) {
    const name = path.basename(tarball).replace(/^trueio-(.*)-\d+\.\d+\.\d+\.tgz$/, '$1');
    const to = path.join(app, 'node_modules', '@trueio', name);
    fs.mkdirSync(to, { recursive: true });
    execFileSync('tar', ['xzf', tarball, '-C', to, '--strip-components=1']);
  }
  for (const tool of fs.readdirSync(TOOLS).filter((name) => !name.startsWith('.'))) fs.symlinkSync(path.join(TOOLS, tool), path.join(app, 'node_modules', tool));
  fs.writeFileSync(path.join(app, 'package.json'), '{"name": "app", "version": "1.0.0"}');
  fs.writeFileSync(path.join(app, 'entry.mjs'), ENTRY);
  return { folder, app };
}

/** The path of a tool's program; skips the test if it is not installed. */
function tool(t, name) {
  const program = path.join(TOOLS, '.bin', name);
  return lacks(t, name, fs.existsSync(program) ? undefined : `\`npm ci\` in ${path.relative(PACKAGE, __dirname)} did not install it`) ? undefined : program;
}

function run(command, args, options) {
  const result = spawnSync(command, args, { encoding: 'utf8', timeout: 120_000, ...options });
  assert.strictEqual(result.status, 0, `${command} ${args.join(' ')}: ${result.error ?? ''}${result.stdout}${result.stderr}`);
  return result.stdout;
}

/** Moves `dist` away from the application, removes that, and runs what is left. */
function assertRunsElsewhere({ folder, app }, name) {
  const elsewhere = path.join(folder, 'elsewhere');
  fs.renameSync(path.join(app, 'dist'), elsewhere);
  fs.rmSync(app, { recursive: true });
  const binaries = fs.readdirSync(elsewhere, { recursive: true }).filter((file) => file.endsWith('.node'));
  assert.strictEqual(binaries.length, 1, `one binary: ${binaries}`);
  const result = runNode([path.join(elsewhere, name)], { cwd: folder });
  assert.strictEqual(result.stdout, EXPECTED, result.stderr);
}

test('esbuild makes an ES module', (t) => {
  const esbuild = tool(t, 'esbuild');
  if (!esbuild) return;
  const made = application(t);
  const [command] = recipe('esbuild');
  run('sh', ['-ec', command.replace(/^npx /gm, '')], { cwd: made.app, env: { ...process.env, PATH: `${path.dirname(esbuild)}:${process.env.PATH}` } });
  assertRunsElsewhere(made, 'entry.mjs');
});

test('rollup makes an ES module', (t) => {
  const rollup = tool(t, 'rollup');
  if (!rollup) return;
  const made = application(t);
  const [native, config] = recipe('rollup');
  fs.writeFileSync(path.join(made.app, 'native.mjs'), native);
  fs.writeFileSync(path.join(made.app, 'rollup.config.mjs'), config);
  run(rollup, ['--config'], { cwd: made.app });
  assertRunsElsewhere(made, 'entry.mjs');
});

test('Vite makes a server bundle without external packages', (t) => {
  const vite = tool(t, 'vite');
  if (!vite) return;
  const made = application(t);
  fs.writeFileSync(path.join(made.app, 'native.mjs'), recipe('rollup')[0]);
  fs.writeFileSync(path.join(made.app, 'vite.config.mjs'), recipe('Vite')[0]);
  run(vite, ['build'], { cwd: made.app });
  assertRunsElsewhere(made, 'entry.mjs');
});

test('a single executable application loads the binary that it has as an asset', (t) => {
  const [esbuild, postject] = [tool(t, 'esbuild'), tool(t, 'postject')];
  if (!esbuild || !postject) return;
  const hasSea = spawnSync(process.execPath, ['-e', "require('node:sea').getAsset"]).status === 0;
  if (lacks(t, 'sea', hasSea ? undefined : `Node ${process.versions.node} has no assets of single executable applications`)) return;
  const made = application(t);
  const [entry, config, commands] = recipe('Single executable');
  fs.writeFileSync(path.join(made.app, 'entry.cjs'), entry);
  fs.writeFileSync(path.join(made.app, 'sea.json'), config.replace('linux-x64-gnu', require('../../lib/platform').platformName()));
  run('sh', ['-ec', commands.replace(/^npx /gm, '')], { cwd: made.app, env: { ...process.env, PATH: `${path.dirname(esbuild)}:${path.dirname(process.execPath)}:${process.env.PATH}` } });
  const program = path.join(made.folder, 'program');
  fs.renameSync(path.join(made.app, 'app'), program);
  fs.rmSync(made.app, { recursive: true });
  assert.strictEqual(run(program, [], { cwd: made.folder }), '4096\n');
});

test('Bun imports and requires all names', (t) => {
  const bun = path.join(TOOLS, '@oven', `bun-${process.platform}-${process.arch}`, 'bin', 'bun');
  if (lacks(t, 'bun', fs.existsSync(bun) ? undefined : 'npm installed no Bun for this system')) return;
  const { app } = application(t);
  assert.strictEqual(run(bun, ['entry.mjs'], { cwd: app }), EXPECTED);
  fs.writeFileSync(path.join(app, 'required.cjs'), "const { getAlignedBuffer, promises } = require('@trueio/direct-io'); console.log(getAlignedBuffer(512, 512).length, typeof promises.open);");
  assert.strictEqual(run(bun, ['required.cjs'], { cwd: app }), '512 function\n');
});

test('publint finds nothing in the packages', (t) => {
  const publint = tool(t, 'publint');
  if (!publint) return;
  const { app } = application(t);
  for (const name of fs.readdirSync(path.join(app, 'node_modules', '@trueio'))) {
    const output = run(publint, ['--strict', path.join('node_modules', '@trueio', name)], { cwd: app });
    assert.match(output, /All good!/, output);
  }
});
