'use strict';
// How much memory a program occupies that drops the buffers it allocates.
//
// Goal: no more than with @ronomon/direct-io, which makes one allocation for each buffer.
// Method: a process of each package allocates and fills buffers in batches. After each batch it collects until V8 counts no buffer: V8 frees
// array buffers on other threads, and the next collection waits for them. Then the event loop turns twice, in which the finalizers run. The
// kernel keeps the peak of resident memory. When the collector runs by itself depends on the load of the machine, so that case is not tested
// here: `cargo xtask bench node` has its figures.

const assert = require('assert');
const { test } = require('node:test');
const { PACKAGE, UPSTREAM, isLinux, lacks, runNode, upstreamReason } = require('./support');

const BAR = 1.2;

/** The peak in KiB. */
function peak(library, size, batch) {
  const script = `
    const { getAlignedBuffer } = require(${JSON.stringify(library)});
    const counted = () => process.memoryUsage().external;
    const [before, deadline] = [counted(), Date.now() + 60_000];
    let batches = 4;
    function collect() {
      if (Date.now() > deadline) throw new Error('V8 still counts ' + (counted() - before) + ' bytes of dropped buffers');
      gc();
      setImmediate(setImmediate, () => (counted() - before < 1 << 20 ? next() : collect()));
    }
    function next() {
      for (let index = 0; index < ${batch}; index += 1) getAlignedBuffer(${size}, 4096).fill(7);
      if ((batches -= 1) > 0) return collect();
      console.log(/VmHWM:\\s+(\\d+)/.exec(require('fs').readFileSync('/proc/self/status', 'utf8'))[1]);
    }
    next();`;
  const ran = runNode(['--expose-gc', '-e', script]);
  assert.strictEqual(ran.status, 0, ran.stderr);
  return Number(ran.stdout);
}

for (const [size, batch] of [[1 << 20, 200], [256 << 10, 800], [64 << 10, 1000], [4096, 4000], [3 << 20, 60]]) {
  test(`the peak of dropped buffers of ${size / 1024} KiB is at most upstream's`, { skip: !isLinux && 'Linux only' }, (t) => {
    if (lacks(t, 'node-headers', upstreamReason())) return;
    const [ours, theirs] = [PACKAGE, UPSTREAM].map((library) => peak(library, size, batch));
    assert.ok(ours <= BAR * theirs, `${ours} KiB, upstream ${theirs} KiB`);
  });
}
