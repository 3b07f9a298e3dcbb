'use strict';
// Builds the compiled half for this machine into build/. For development; users get it by install.js.
//
// `node scripts/build.js [--release]`. Cargo decides what is out of date.

const { build } = require('../lib/cargo');
const path = require('path');
const { ROOT } = require('../lib/platform');

build({
  manifest: path.join(ROOT, 'Cargo.toml'),
  isRelease: process.argv.includes('--release'),
  to: path.join(ROOT, 'build', 'trueio_direct.node'),
});
