'use strict';
// The options of `open` with their defaults. Streams that open a file have them, too.

const OPEN_DEFAULTS = {
  read: true,
  write: false,
  create: false,
  createNew: false,
  policy: 'require',
  sync: 'none',
  exclusive: false,
  mode: 0o600,
};

module.exports = { OPEN_DEFAULTS };
