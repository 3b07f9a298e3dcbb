'use strict';
// The program trueio for Node: `run`, `baseline` and `compare` start it and return its documents.

const { baseline, compare, run } = require('./lib/calls');
const { Comparison, Record } = require('./lib/documents');
const errors = require('./lib/errors');
const { Histogram } = require('./lib/histogram');
const { findProgram } = require('./lib/program');

module.exports = { baseline, compare, run, Comparison, Record, Histogram, findProgram, ...errors };
