'use strict';
// Refuses `npm pack` and `npm publish` in this folder: the package that they would make has neither binaries nor
// source, and throws when it is loaded. scripts/pack.js makes the package from a folder of its own, where this does not run.

console.error(
  '@trueio/direct-io is not packed by `npm pack` or `npm publish` in bindings/node: binaries and source are missing there.\n' +
    'Run `node scripts/pack.js --platforms all`, and `npm publish` with each file that it prints, in that order.'
);
process.exit(1);
