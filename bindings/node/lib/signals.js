'use strict';
// One listener for all that wait for the same signal: an `EventTarget` looks through its listeners for each that is added, and
// Node warns of more than ten.

const waiting = new WeakMap();

/** Calls `onAbort` once when `signal` is aborted; returns a function that ends this. Without a signal nothing is called. */
function whenAborted(signal, onAbort) {
  if (signal === undefined) return () => {};
  let all = waiting.get(signal);
  if (all === undefined) {
    all = { calls: new Set(), listener: () => [...all.calls].forEach((each) => each()) };
    waiting.set(signal, all);
    signal.addEventListener('abort', all.listener, { once: true });
  }
  // One of its own, so that a function that waits twice is called twice.
  const each = () => onAbort();
  all.calls.add(each);
  return () => {
    if (!all.calls.delete(each) || all.calls.size > 0) return;
    waiting.delete(signal);
    signal.removeEventListener('abort', all.listener);
  };
}

module.exports = { whenAborted };
