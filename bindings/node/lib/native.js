'use strict';
// The compiled half, for `promises.js` and the tests. `index.js` loads it: one built on this machine, or the one that
// came with the package.

module.exports = require('../index.js')[Symbol.for('@trueio/direct-io native')];
