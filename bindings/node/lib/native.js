'use strict';
// The compiled half: one that was built on this machine, or the one that came with the package.

const fs = require('fs');
const path = require('path');
const { ROOT, candidates, platformName } = require('./platform');

function load() {
  const file = candidates().find((candidate) => fs.existsSync(candidate));
  if (file !== undefined) return require(file);
  const error = new Error(
    `@trueio/direct-io has no compiled binary for ${platformName()}. ` +
      `Run \`node ${path.join(ROOT, 'install.js')}\`: it builds one if cargo (https://rustup.rs) is installed.`
  );
  throw Object.assign(error, { code: 'ERR_TRUEIO_NO_BINARY' });
}

module.exports = load();
