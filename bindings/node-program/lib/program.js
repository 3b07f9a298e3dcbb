'use strict';
// The program: where it is, and how it is run.

const { spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const { ProgramError } = require('./errors');

const VARIABLE = 'TRUEIO_PROGRAM';

/** Most events that wait for an iterator; the oldest is dropped. */
const EVENTS_MAX = 1000;

/** Whether a file is the program, and not the script of this package that PATH may name. */
function isProgram(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile() && !fs.realpathSync(file).endsWith('trueio.js');
  } catch {
    return false;
  }
}

/** Returns the path of the program: that of TRUEIO_PROGRAM, the one in this package, or `trueio` of PATH. */
function findProgram() {
  const chosen = process.env[VARIABLE];
  const isExecutable = (file) => {
    try {
      fs.accessSync(file, fs.constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  if (chosen) {
    if (isExecutable(chosen)) return chosen;
    throw new ProgramError(`\`${chosen}\`, which ${VARIABLE} names, is not an executable file`);
  }
  const platform = `${process.platform}-${process.arch}`;
  const program = path.join(__dirname, '..', 'programs', platform, 'trueio');
  if (isExecutable(program)) return program;
  // Last, because it may have another version.
  const directories = (process.env.PATH || '').split(path.delimiter).filter((directory) => path.isAbsolute(directory));
  const installed = directories.map((directory) => path.join(directory, 'trueio')).find(isProgram);
  if (installed) return installed;
  const folder = path.join(__dirname, '..', 'programs');
  const has = fs.existsSync(folder) ? fs.readdirSync(folder).join(', ') : 'none';
  throw new ProgramError(
    `this package has no program for ${platform} (it has ${has}), and PATH has no \`trueio\`; install one, or name it in ${VARIABLE}`
  );
}

/** Programs that run: one that this process leaves behind would measure on. */
const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGINT')));

/**
 * Runs the program. Returns `{ events, ended }`: an async iterable of its progress, and a promise of its end
 * `{ code, stdout, stderr, by }`, where `by` is `itself`, `timeout` or `signal`.
 */
function runProgram(args, { timeout, signal, cwd, events = new Events() } = {}) {
  const ended = new Promise((resolve, reject) => {
    let child;
    try {
      const program = findProgram();
      // The fourth is a socket for progress.
      const stdio = ['ignore', 'pipe', 'pipe', 'pipe'];
      child = spawn(program, [...args, '--progress-fd', '3'], { stdio, cwd });
    } catch (error) {
      reject(error);
      return;
    }
    running.add(child);
    let by = 'itself';
    const stop = (reason) => {
      if (by !== 'itself') return;
      by = reason;
      // As Ctrl-C: the program leaves its record, and no file.
      child.kill('SIGINT');
    };
    const timer = timeout === undefined ? undefined : setTimeout(() => stop('timeout'), timeout);
    const aborted = () => stop('signal');
    signal?.addEventListener('abort', aborted, { once: true });
    const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
    eachLine(child.stdio[3], (line) => events.push(JSON.parse(line)));
    const done = () => {
      running.delete(child);
      clearTimeout(timer);
      signal?.removeEventListener('abort', aborted);
    };
    child.on('error', (error) => {
      done();
      reject(new ProgramError(`\`${child.spawnfile}\` cannot be started: ${error.message}`));
    });
    child.on('close', (code, killedBy) => {
      done();
      resolve({ code, killedBy, stdout: stdout(), stderr: stderr(), by });
    });
  });
  ended.then(
    () => events.end(),
    () => events.end()
  );
  return { events, ended };
}

function collect(stream) {
  const pieces = [];
  stream.on('data', (piece) => pieces.push(piece));
  return () => Buffer.concat(pieces).toString();
}

function eachLine(stream, handle) {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('error', () => {});
  stream.on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    lines.forEach(handle);
  });
}

/** Events that wait for one iterator. */
class Events {
  constructor() {
    this.waiting = [];
    this.hasEnded = false;
    this.wake = undefined;
  }

  push(event) {
    if (this.waiting.length === EVENTS_MAX) this.waiting.shift();
    this.waiting.push(event);
    this.wake?.();
  }

  end() {
    this.hasEnded = true;
    this.wake?.();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.waiting.length > 0) yield this.waiting.shift();
      if (this.hasEnded) return;
      await new Promise((resolve) => {
        this.wake = resolve;
      });
    }
  }
}

module.exports = { Events, findProgram, runProgram };
