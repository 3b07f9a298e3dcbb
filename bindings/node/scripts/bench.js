'use strict';
// Compares this package with @ronomon/direct-io: allocation, and reads and writes past the cache in the allocated memory.
//
//   node scripts/bench.js [--rounds N] [--markdown FILE]
//
// `cargo xtask bench node` builds a release binary first. Upstream's published source is compiled with -O2. Both sides run in one process
// after another, A B A B, and each turn of both gives one ratio of CPU time: what slows both cancels. The exit status is 1 if the median of
// a row is above the bar. Rows of reads and writes use `fs.readSync` and `fs.writeSync` on both sides: only the memory differs. Upstream has
// no promises: that row is compared with `fs.promises`, both through the page cache.
//
// Cannot see: what memory costs after it is collected; the collector runs between the turns.

const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');

const ROOT = path.join(__dirname, '..');
const UPSTREAM = path.join(ROOT, 'test', 'node_modules', 'ronomon-direct-io');
// Two runs of one side differ by this much on a busy machine.
const BAR = 1.05;
const MARKS = ['<!-- bench node -->', '<!-- /bench node -->'];

/** Name -> the work of one turn; it returns the number of operations. */
const ROWS = {
  'allocate 4 KiB': allocate(4096, 4000),
  'allocate 1 MiB': allocate(1 << 20, 200),
  'write 4 KiB': transfer('writeSync', 4096, 8000),
  'write 1 MiB': transfer('writeSync', 1 << 20, 192),
  'read 4 KiB': transfer('readSync', 4096, 8000),
  'read 1 MiB': transfer('readSync', 1 << 20, 192),
};

/** As ROWS; each side has its own work, which returns a promise of the number. */
const PROMISES = '20,000 promise reads at once';
const PROMISED = {
  async ours(library, name) {
    const file = await require(path.join(library, 'promises.js')).open(name, { policy: 'off' });
    const count = await readAtOnce((buffer) => file.readAt(buffer, 0));
    await file.close();
    return count;
  },
  async theirs(library, name) {
    const handle = await fs.promises.open(name);
    const count = await readAtOnce((buffer) => handle.read(buffer, 0, buffer.length, 0));
    await handle.close();
    return count;
  },
};

async function readAtOnce(read) {
  const COUNT = 20000, memory = require(ROOT).getAlignedBuffer(COUNT * 4096, 4096).fill(7);
  await Promise.all(Array.from({ length: COUNT }, (_, index) => read(memory.subarray(index * 4096, (index + 1) * 4096))));
  return COUNT;
}

function allocate(size, count) {
  return ({ getAlignedBuffer }) => {
    for (let index = 0; index < count; index += 1) getAlignedBuffer(size, 4096)[size - 1] = 1;
    return count;
  };
}

function transfer(call, size, count) {
  return ({ getAlignedBuffer }, fd) => {
    // As a program that has something to write: memory that was never written to is the kernel's one page of zeros, many times over.
    const buffer = getAlignedBuffer(size, 4096).fill(7);
    for (let index = 0; index < count; index += 1) {
      if (fs[call](fd, buffer, 0, size, (index * size) % FILE_BYTES) !== size) throw new Error(`${call} was short`);
    }
    return count;
  };
}

const FILE_BYTES = 64 << 20;

/** One side's turn, in a process of its own: prints microseconds of CPU time per operation. */
async function turn(library, row, name) {
  if (row === PROMISES) {
    const work = PROMISED[library === ROOT ? 'ours' : 'theirs'];
    await work(library, name);
    global.gc();
    const before = process.cpuUsage();
    const count = await work(library, name);
    const { user, system } = process.cpuUsage(before);
    console.log((user + system) / count);
    return;
  }
  const direct = require(library);
  const flags = fs.constants.O_RDWR | direct.O_DIRECT;
  const fd = fs.openSync(name, flags);
  ROWS[row](direct, fd);
  global.gc();
  const before = process.cpuUsage();
  const count = ROWS[row](direct, fd);
  const { user, system } = process.cpuUsage(before);
  fs.closeSync(fd);
  console.log((user + system) / count);
}

function measured(library, row, name) {
  const ran = spawnSync(process.execPath, ['--expose-gc', __filename, '--turn', library, row, name], { encoding: 'utf8' });
  if (ran.status !== 0) throw new Error(ran.stderr);
  return Number(ran.stdout);
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

function main(rounds, markdown) {
  const why = require('../test/support').upstreamReason();
  if (why) throw new Error(`upstream's package is not there: ${why}`);
  const name = path.join(ROOT, 'build', 'bench.data');
  fs.writeFileSync(name, Buffer.alloc(FILE_BYTES, 7));
  const lines = ['| row | upstream µs | this package µs | ratio (range) | |', '|---|---|---|---|---|'];
  let isMissed = false;
  try {
    for (const row of [...Object.keys(ROWS), PROMISES]) {
      const [ours, theirs] = [[], []];
      for (let round = 0; round < rounds; round += 1) {
        // The side that begins takes turns, too.
        const order = [[ours, ROOT], [theirs, UPSTREAM]];
        for (const [list, library] of round % 2 ? order : order.reverse()) list.push(measured(library, row, name));
      }
      const ratios = ours.map((value, index) => value / theirs[index]);
      const ratio = median(ratios);
      isMissed ||= ratio > BAR;
      const cells = [row, median(theirs).toFixed(2), median(ours).toFixed(2), `${ratio.toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`, ratio > BAR ? 'slower' : 'ok'];
      lines.push(`| ${cells.join(' | ')} |`);
      console.log(cells.join('  '));
    }
  } finally {
    fs.rmSync(name, { force: true });
  }
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).stdout.trim();
  const heading = `\`cargo xtask bench node --rounds ${rounds}\`, ${new Date().toISOString().slice(0, 10)}, commit ${commit}, Node ${process.versions.node}, load average ${require('os').loadavg()[0].toFixed(1)}. CPU time per operation, medians.`;
  if (markdown !== undefined) {
    const page = fs.readFileSync(markdown, 'utf8');
    const [begin, end] = MARKS.map((mark) => page.indexOf(mark));
    if (begin < 0 || end < begin) throw new Error(`${markdown} has no ${MARKS.join(' … ')}`);
    fs.writeFileSync(markdown, `${page.slice(0, begin)}${MARKS[0]}\n${heading}\n\n${lines.join('\n')}\n${page.slice(end)}`);
  }
  return !isMissed;
}

const option = (name) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : undefined);

if (process.argv[2] === '--turn') turn(...process.argv.slice(3));
else if (!main(Number(option('--rounds') ?? 11), option('--markdown'))) process.exitCode = 1;
