'use strict';
// How much memory a program occupies that drops the buffers it allocates.
//
// Goal: no more than with @ronomon/direct-io, which makes one allocation for each buffer.
// Method: processes of each package allocate and fill buffers in batches, and let the event loop turn after each; the kernel keeps the peak of
// their resident memory. The median of three counts, because the collector runs at other moments in each run; the bar leaves room for that.
// `cargo xtask bench node` has the figures.

const assert = require('assert');
const { test } = require('node:test');
const { PACKAGE, UPSTREAM, isLinux, lacks, runNode, upstreamReason } = require('./support');

const BAR = 1.2;

/** The peak in KiB. */
function peak(library, size, batch) {
  const script = `
    const { getAlignedBuffer } = require(${JSON.stringify(library)});
    let batches = 4;
    (function next() {
      for (let index = 0; index < ${batch}; index += 1) getAlignedBuffer(${size}, 4096).fill(7);
      if ((batches -= 1) > 0) return void setImmediate(next);
      console.log(/VmHWM:\\s+(\\d+)/.exec(require('fs').readFileSync('/proc/self/status', 'utf8'))[1]);
    })();`;
  const ran = runNode(['-e', script]);
  assert.strictEqual(ran.status, 0, ran.stderr);
  return Number(ran.stdout);
}

const median = (of) => [of(), of(), of()].sort((one, other) => one - other)[1];

for (const [size, batch] of [[1 << 20, 200], [256 << 10, 800], [64 << 10, 1000], [4096, 4000], [3 << 20, 60]]) {
  test(`the peak of dropped buffers of ${size / 1024} KiB is at most upstream's`, { skip: !isLinux && 'Linux only' }, (t) => {
    if (lacks(t, 'node-headers', upstreamReason())) return;
    const [ours, theirs] = [PACKAGE, UPSTREAM].map((library) => median(() => peak(library, size, batch)));
    assert.ok(ours <= BAR * theirs, `${ours} KiB, upstream ${theirs} KiB`);
  });
}
