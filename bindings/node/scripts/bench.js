'use strict';
// Compares this package with @ronomon/direct-io: allocation, peaks of memory, and reads and writes past the cache in the allocated memory; and with
// Node's own calls where upstream has none: promises, and copies of files.
//
//   node scripts/bench.js [--rounds N] [--only TEXT] [--markdown FILE]
//
// `cargo xtask bench node` builds a release binary first. Upstream's published source is compiled with -O2. Each turn is a process of
// its own, A B A B, and each turn of both gives one ratio: what slows both cancels. The exit status is 1 if the median of the ratios of
// a row is above its bar. Rows of reads and writes use `fs.readSync` and `fs.writeSync` on both sides: only the memory differs.
//
// Cannot see: what the device does after a copy of `fs.copyFile`, which leaves the data in the page cache; ours has written it.

const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');

const ROOT = path.join(__dirname, '..');
const UPSTREAM = path.join(ROOT, 'test', 'node_modules', 'ronomon-direct-io');
// Two runs of one side differ by this much on a busy machine.
const BAR = 1.05;
const MARKS = ['<!-- bench node -->', '<!-- /bench node -->'];
const MIB = 1 << 20;
const COPY_BYTES = 512 * MIB;

/** Name -> the other side, what is measured, and a function of (isOurs, name of a file) that returns or resolves to it. */
const ROWS = {
  'allocate 4 KiB': cpu(allocate(4096, 4000)),
  'allocate 1 MiB': cpu(allocate(MIB, 200)),
  'write 4 KiB': cpu(transfer('writeSync', 4096, 8000)),
  'write 1 MiB': cpu(transfer('writeSync', MIB, 192)),
  'read 4 KiB': cpu(transfer('readSync', 4096, 8000)),
  'read 1 MiB': cpu(transfer('readSync', MIB, 192)),
  'peak: 4 times 500 of 1 MiB, dropped': peak(MIB, 500, 4),
  'peak: 4 times 2000 of 256 KiB, dropped': peak(256 << 10, 2000, 4),
  'peak: 1 MiB a turn, dropped': peak(MIB, 1, 2000),
  'peak: 256 KiB a turn, dropped': peak(256 << 10, 1, 8000),
  '20,000 promise reads at once': {
    other: 'fs.promises',
    unit: 'µs of CPU',
    async run(isOurs, name) {
      const work = isOurs ? readsOfOurs : readsOfTheirs;
      await work(name);
      global.gc();
      return cpuOf(() => work(name));
    },
  },
  'copyFile, 512 MiB in the page cache': {
    other: 'fs.copyFile',
    unit: 'ms',
    bar: 1.2,
    run: (isOurs, name) => withSource(name, async (source) => {
      const begin = process.hrtime.bigint();
      await copier(isOurs)(source, `${source}.copy`);
      return Number(process.hrtime.bigint() - begin) / 1e6;
    }),
  },
  'longest fs.stat next to four of those copies': {
    other: 'fs.copyFile',
    unit: 'ms',
    run: (isOurs, name) => withSource(name, async (source) => {
      let left = 4;
      const ends = Array.from({ length: left }, (_, index) => copier(isOurs)(source, `${source}.copy${index}`).finally(() => (left -= 1)));
      let longest = 0;
      while (left > 0) {
        const begin = process.hrtime.bigint();
        await fs.promises.stat(source);
        longest = Math.max(longest, Number(process.hrtime.bigint() - begin) / 1e6);
      }
      await Promise.all(ends);
      return longest;
    }),
  },
};

/** CPU time per operation of `work`, in the second run of two. */
function cpu(work) {
  return {
    other: '@ronomon/direct-io',
    unit: 'µs of CPU',
    async run(isOurs, name) {
      const direct = require(isOurs ? ROOT : UPSTREAM);
      const fd = fs.openSync(name, fs.constants.O_RDWR | direct.O_DIRECT);
      work(direct, fd);
      global.gc();
      const taken = await cpuOf(() => work(direct, fd));
      fs.closeSync(fd);
      return taken;
    },
  };
}

/** Returns the CPU time of `work` in microseconds, divided by the number that it returns. */
async function cpuOf(work) {
  const before = process.cpuUsage();
  const count = await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

/** Resident memory at its peak, of a process that fills and drops `batches` times `batch` buffers; the event loop turns after each batch. */
function peak(size, batch, batches) {
  return {
    other: '@ronomon/direct-io',
    unit: 'MiB',
    async run(isOurs) {
      const { getAlignedBuffer } = require(isOurs ? ROOT : UPSTREAM);
      for (let turn = 0; turn < batches; turn += 1) {
        for (let index = 0; index < batch; index += 1) getAlignedBuffer(size, 4096).fill(7);
        await new Promise(setImmediate);
      }
      return Number(/VmHWM:\s+(\d+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1]) / 1024;
    },
  };
}

async function readsOfOurs(name) {
  const file = await require(path.join(ROOT, 'promises.js')).open(name, { policy: 'off' });
  const count = await readAtOnce((buffer) => file.readAt(buffer, 0));
  await file.close();
  return count;
}

async function readsOfTheirs(name) {
  const handle = await fs.promises.open(name);
  const count = await readAtOnce((buffer) => handle.read(buffer, 0, buffer.length, 0));
  await handle.close();
  return count;
}

async function readAtOnce(read) {
  const COUNT = 20000, memory = require(ROOT).getAlignedBuffer(COUNT * 4096, 4096).fill(7);
  await Promise.all(Array.from({ length: COUNT }, (_, index) => read(memory.subarray(index * 4096, (index + 1) * 4096))));
  return COUNT;
}

function copier(isOurs) {
  const { copyFile } = require(path.join(ROOT, 'promises.js'));
  return isOurs ? (source, copy) => copyFile(source, copy, { flush: false }) : fs.promises.copyFile;
}

/** Runs `work` with a file in the page cache, of which nothing is left to be written; removes it with its copies. */
async function withSource(name, work) {
  const source = `${name}.source`;
  try {
    const block = require('crypto').randomBytes(MIB);
    const fd = fs.openSync(source, 'w');
    for (let written = 0; written < COPY_BYTES; written += MIB) fs.writeSync(fd, block);
    fs.fsyncSync(fd);
    fs.closeSync(fd);
    return await work(source);
  } finally {
    for (const file of fs.readdirSync(path.dirname(source))) {
      if (file.startsWith(path.basename(source))) fs.rmSync(path.join(path.dirname(source), file));
    }
  }
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

/** One side's turn, in a process of its own: prints what is measured. */
async function turn(side, row, name) {
  console.log(await ROWS[row].run(side === 'ours', name));
}

function measured(side, row, name) {
  const ran = spawnSync(process.execPath, ['--expose-gc', __filename, '--turn', side, row, name], { encoding: 'utf8' });
  if (ran.status !== 0) throw new Error(ran.stderr);
  return Number(ran.stdout);
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

function main(rounds, markdown, only) {
  const why = require('../test/support').upstreamReason();
  if (why) throw new Error(`upstream's package is not there: ${why}`);
  const name = path.join(ROOT, 'build', 'bench.data');
  fs.writeFileSync(name, Buffer.alloc(FILE_BYTES, 7));
  const lines = ['| row | next to | unit | there | here | ratio (range) | |', '|---|---|---|---|---|---|---|'];
  let isMissed = false;
  try {
    for (const [row, { other, unit, bar = BAR }] of Object.entries(ROWS).filter(([row]) => row.includes(only))) {
      const [ours, theirs] = [[], []];
      for (let round = 0; round < rounds; round += 1) {
        // The side that begins takes turns, too.
        const order = [[ours, 'ours'], [theirs, 'theirs']];
        for (const [list, side] of round % 2 ? order : order.reverse()) list.push(measured(side, row, name));
      }
      const ratios = ours.map((value, index) => value / theirs[index]);
      const ratio = median(ratios);
      isMissed ||= ratio > bar;
      const cells = [row, other, unit, median(theirs).toFixed(2), median(ours).toFixed(2), `${ratio.toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`, ratio > bar ? `above ${bar}` : 'ok'];
      lines.push(`| ${cells.join(' | ')} |`);
      console.log(cells.join('  '));
    }
  } finally {
    fs.rmSync(name, { force: true });
  }
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).stdout.trim();
  const heading = `\`cargo xtask bench node --rounds ${rounds}\`, ${new Date().toISOString().slice(0, 10)}, commit ${commit}, Node ${process.versions.node}, load average ${require('os').loadavg()[0].toFixed(1)}. Medians.`;
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
else if (!main(Number(option('--rounds') ?? 11), option('--markdown'), option('--only') ?? '')) process.exitCode = 1;
