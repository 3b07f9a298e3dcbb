#!/usr/bin/env node
'use strict';
// The command `trueio`: starts the program with the same arguments, and ends as it ended.

const { spawn } = require('child_process');
const { constants } = require('os');
const { findProgram } = require('../lib/program');

let program;
try {
  program = findProgram();
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(2);
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
// A terminal sends a signal to both; this process waits for the other's end. A signal to this process alone is passed on.
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {});
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('error', (error) => {
  console.error(`error: \`${program}\` cannot be started: ${error.message}`);
  process.exit(2);
});
child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
