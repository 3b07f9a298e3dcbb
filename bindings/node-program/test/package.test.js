'use strict';
// The package as users get it: packed, installed in an empty folder without a compiler, and used.

const assert = require('assert');
const { execFileSync, spawn, spawnSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { after, before, test } = require('node:test');

const ROOT = path.join(__dirname, '..');
const PLATFORM = `${process.platform}-${process.arch}`;

// Without I/O: fast, and the same on every machine.
const NULL = { ioengine: 'null', rw: 'randrw', bs: '4k', size: '1g', number_ios: 20_000 };
const LONG = { ioengine: 'null', rw: 'read', size: '1m', runtime: '1h', time_based: true };

let folder;
let place;
let trueio;

before(() => {
  folder = fs.mkdtempSync(path.join(process.env.TRUEIO_TEST_DIRECTORY ?? os.tmpdir(), 'trueio-npm-'));
  place = path.join(folder, 'place');
  const program = process.env.TRUEIO_TEST_PROGRAM ?? path.join(ROOT, '..', '..', 'target', 'debug', 'trueio');
  const packed = execFileSync(
    process.execPath,
    [path.join(ROOT, 'scripts', 'pack.js'), '--program', `${PLATFORM}=${program}`, '--to', folder],
    { encoding: 'utf8' }
  );
  const tarball = packed.trim().split('\n').pop();
  fs.mkdirSync(place);
  fs.writeFileSync(path.join(place, 'package.json'), '{"private": true}');
  // Programs: node, npm and a shell, and no compiler.
  const bin = path.join(folder, 'bin');
  fs.mkdirSync(bin);
  const npm = fs.realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim());
  for (const [name, target] of [['node', process.execPath], ['npm', npm], ['sh', '/bin/sh']]) {
    fs.symlinkSync(target, path.join(bin, name));
  }
  const env = { PATH: bin, HOME: folder, npm_config_cache: path.join(folder, 'cache') };
  const result = spawnSync('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], {
    cwd: place,
    env,
    encoding: 'utf8',
  });
  assert.strictEqual(result.status, 0, result.stdout + result.stderr);
  process.env.XDG_DATA_HOME = path.join(folder, 'data');
  trueio = require(path.join(place, 'node_modules', 'trueio'));
});

after(() => fs.rmSync(folder, { recursive: true, force: true }));

test('the command is installed and passes on arguments and status', () => {
  const command = path.join(place, 'node_modules', '.bin', 'trueio');
  const version = spawnSync(command, ['--version'], { encoding: 'utf8' });
  assert.match(version.stdout, /^trueio \d+\.\d+\.\d+\n$/);
  const refused = spawnSync(command, ['run', '--iodpeth', '1'], { encoding: 'utf8' });
  assert.strictEqual(refused.status, 2);
  assert.match(refused.stderr, /iodepth/);
});

test('a record has its figures, and its percentiles are those of the program', async () => {
  const record = await trueio.run(NULL, { evidence: false });
  assert.strictEqual(record.outcome, 'complete');
  assert.strictEqual(record.histogram().count, 20_000);
  let compared = 0;
  for (const op of record.document.phases[0].jobs[0].ops) {
    for (const { percent, latency_ns } of op.percentiles) {
      assert.strictEqual(record.percentile(percent, { op: op.op }), latency_ns, `${op.op} p${percent}`);
      compared += 1;
    }
  }
  assert.ok(compared > 10);
  assert.throws(() => record.percentile(50, { op: 'trim' }), /the record has no such figures/);
  assert.throws(() => record.percentile(100), RangeError);
  const few = await trueio.run({ ...NULL, number_ios: 100 }, { evidence: false });
  assert.strictEqual(few.percentile(99.9), null);
});

test('the answer is that of the document, with every figure', async () => {
  const record = await trueio.run(NULL, { evidence: false });
  assert.strictEqual(record.answer, record.document.answer);
  assert.strictEqual(record.figure('p99', { op: 'read' }).value, record.percentile(99, { op: 'read' }));
  assert.deepStrictEqual([record.figure('iops').unit, record.figure('iops').verdict], ['1/s', record.verdict]);
  assert.throws(() => record.figure('p98'), /no figure p98/);
});

test('a contradicted figure is thrown with its reason', async () => {
  const { document } = await trueio.run(NULL, { evidence: false });
  const staged = structuredClone(document);
  staged.phases[0].verdict = 'contradicted';
  const check = { name: 'holes', outcome: 'contradicted', cause: 'setup', witness: '', expected: '', found: '' };
  staged.phases[0].checks = [{ ...check, sentence: 'Nothing is stored.' }];
  // The program derives the answer of a record without one, as of those of earlier versions.
  delete staged.answer;
  const record = new trueio.Record(staged);
  assert.strictEqual(record.verdict, 'withheld');
  assert.ok(record.answer.figures.every((figure) => figure.value === null && !figure.is_shown));
  assert.throws(() => record.percentile(99), { code: 'TRUEIO_CONTRADICTED', reasons: ['holes: Nothing is stored.'] });
  assert.ok(record.percentile(99, { allowContradicted: true }) > 0);
});

test('progress is an async iterator, and the run is its promise', async () => {
  const run = trueio.run({ ...LONG, runtime: '700ms' }, { evidence: false });
  const events = [];
  for await (const event of run) events.push(event);
  assert.strictEqual(events[0].event, 'phase');
  assert.ok(events.some((event) => event.event === 'progress' && event.ios_per_s > 0));
  assert.strictEqual((await run).outcome, 'complete');
});

test('an aborted run and one that is late have what was measured', async () => {
  const controller = new AbortController();
  const run = trueio.run(LONG, { evidence: false, signal: controller.signal });
  for await (const event of run) if (event.event === 'progress') controller.abort(new Error('enough'));
  await assert.rejects(run, (error) => {
    assert.strictEqual(error.code, 'ABORT_ERR');
    assert.strictEqual(error.cause.message, 'enough');
    return error.record.outcome === 'interrupted' && error.record.histogram().count > 0;
  });
  await assert.rejects(trueio.run(NULL, { signal: controller.signal }), { code: 'ABORT_ERR' });
  await assert.rejects(trueio.run(LONG, { evidence: false, timeout: 700 }), (error) => {
    return error.code === 'TRUEIO_TIMED_OUT' && error.record.outcome === 'interrupted';
  });
});

test('a process that ends does not leave its program behind', async () => {
  const script = `
    const { run } = require('trueio');
    const running = run(${JSON.stringify(LONG)}, { evidence: false });
    (async () => { for await (const event of running) if (event.event === 'progress') process.exit(0); })();`;
  const child = spawn(process.execPath, ['-e', script], { cwd: place, stdio: ['ignore', 'pipe', 'inherit'] });
  // The program holds this pipe only if it inherits it, which it does not: its own process is looked for.
  await new Promise((resolve) => child.on('exit', resolve));
  const left = () =>
    fs.readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && fs.readlinkSync(`/proc/${pid}/exe`).startsWith(place);
      } catch {
        return false;
      }
    });
  const deadline = Date.now() + 60_000;
  while (left().length > 0) {
    assert.ok(Date.now() < deadline, 'the program still runs');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});

test('a refusal has its rule and its hint, and nothing was touched', async () => {
  const kept = path.join(folder, 'kept');
  fs.writeFileSync(kept, 'precious');
  await assert.rejects(trueio.run({ rw: 'write', filename: kept, size: '1m' }), (error) => {
    assert.ok(error instanceof trueio.RefusedError);
    return /^[a-z_]+$/.test(error.rule) && error.hint.length > 0;
  });
  assert.strictEqual(fs.readFileSync(kept, 'utf8'), 'precious');
  await assert.rejects(trueio.run('no.such'), { code: 'TRUEIO_REFUSED' });
});

test('two records are compared, and a gate is reported', async () => {
  const [a, b] = [await trueio.run(NULL, { evidence: false }), await trueio.run(NULL, { evidence: false })];
  const comparison = await trueio.compare([a, b], { failIf: ['p99 > +5%'] });
  // Two single runs cannot separate a change from the time of day.
  assert.ok(comparison.isUndecided && !comparison.hasFailed);
  assert.strictEqual(comparison.conclusion('iops'), 'cannot_tell');
  assert.deepStrictEqual(fs.readdirSync(os.tmpdir()).filter((name) => name.startsWith(`trueio-compare-${process.pid}`)), []);
});

test('a comparison of jobs reports its rounds', async () => {
  const job = path.join(place, 'simulated.toml');
  fs.writeFileSync(job, '[job.a]\nioengine = "simulated"\nrw = "randread"\nsize = "1m"\n');
  const events = [];
  for await (const event of trueio.compare([job], { vary: { iodepth: [1, 4] }, budget: '1s', evidence: false })) events.push(event);
  const rounds = events.filter((event) => event.event === 'comparison');
  assert.ok(rounds.length > 0 && rounds.at(-1).answers[0].side === 1, JSON.stringify(events));
});

test('a newer document, a missing program and another platform get one sentence', async () => {
  assert.throws(() => trueio.Record.parse('{"format": "trueio-record", "version": 9}'), {
    message: 'this record has version 9; this package reads up to version 3 (a newer trueio reads it)',
  });
  for (const text of ['', '[]', '{}', 'null']) assert.throws(() => trueio.Record.parse(text), trueio.DocumentError);
  process.env.TRUEIO_PROGRAM = '/there/is/no/such/program';
  try {
    await assert.rejects(trueio.run(NULL), /which TRUEIO_PROGRAM names, is not an executable file/);
  } finally {
    delete process.env.TRUEIO_PROGRAM;
  }
  const installed = path.join(place, 'node_modules', 'trueio', 'programs');
  fs.renameSync(path.join(installed, PLATFORM), path.join(installed, 'other-x64'));
  try {
    await assert.rejects(trueio.run(NULL), { code: 'TRUEIO_PROGRAM', message: /has no program for .* \(it has other-x64\)/ });
  } finally {
    fs.renameSync(path.join(installed, 'other-x64'), path.join(installed, PLATFORM));
  }
});

test('the types accept correct code and reject wrong code', (t) => {
  const compiler = path.join(ROOT, '..', 'node', 'test', 'node_modules', 'typescript', 'bin', 'tsc');
  if (!fs.existsSync(compiler)) return t.skip('typescript is not installed: `cargo xtask node` fetches it');
  const check = (code) => {
    const file = path.join(place, 'sample.ts');
    fs.writeFileSync(file, code);
    const options = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'node16', '--moduleResolution', 'node16', '--lib', 'es2022,dom'];
    return spawnSync(process.execPath, [compiler, ...options, file], { encoding: 'utf8' });
  };
  const right = check(`
    import { run, compare, Record, Verdict } from 'trueio';
    async function main(signal: AbortSignal) {
      const running = run({ rw: 'read', size: '1g', iodepth: 4 }, { signal });
      for await (const event of running) if (event.event === 'progress') console.log(event.fraction.toFixed(2));
      const record: Record = await running;
      const verdict: Verdict | null = record.verdict;
      const p: number | null = record.percentile(99.9, { op: 'read' });
      const comparison = await compare([record, 'b.json'], { failIf: ['p99 > +5%'] });
      console.log(verdict, p, comparison.gates[0].sentence);
    }`);
  assert.strictEqual(right.status, 0, right.stdout);
  for (const wrong of [
    `import { run } from 'trueio'; run({ rw: null });`,
    `import { run } from 'trueio'; run('a').then((record) => record.percentile(99, { op: 'readd' }));`,
    `import { run } from 'trueio'; run('a').then((record) => record.document.phases[0].verdictt);`,
  ]) {
    assert.notStrictEqual(check(wrong).status, 0, wrong);
  }
});
