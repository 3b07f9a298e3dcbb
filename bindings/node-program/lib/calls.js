'use strict';
// `run`, `baseline` and `compare`.

const fs = require('fs');
const os = require('os');
const path = require('path');
const { Comparison, Record } = require('./documents');
const { AbortError, FailedError, RefusedError, TimedOutError } = require('./errors');
const { Events, runProgram } = require('./program');
const { jobFile } = require('./toml');

/** A run that has begun: a promise of its document, and an async iterable of its progress. */
class Run {
  constructor(result, events) {
    this.result = result;
    this.events = events;
    // An error is reported where the run is awaited, which may be after its progress was read.
    result.catch(() => {});
  }

  then(resolve, reject) {
    return this.result.then(resolve, reject);
  }

  catch(reject) {
    return this.result.catch(reject);
  }

  finally(handle) {
    return this.result.finally(handle);
  }

  [Symbol.asyncIterator]() {
    return this.events[Symbol.asyncIterator]();
  }
}

function run(job, options = {}) {
  const args = ['run', '--json', '-', ...recordArguments(options)];
  if (typeof job === 'string') return recorded([...args, named(job)], options);
  // Standard input of a child of Node is a socket, which cannot be opened by the name /dev/stdin.
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'trueio-run-'));
  const remove = () => fs.rmSync(folder, { recursive: true, force: true });
  try {
    fs.writeFileSync(path.join(folder, 'job.toml'), jobFile(job));
    const begun = recorded([...args, path.join(folder, 'job.toml')], options);
    begun.then(remove, remove);
    return begun;
  } catch (error) {
    remove();
    throw error;
  }
}

function baseline(target = '.', options = {}) {
  const { extent = 'usual' } = options;
  const args = ['baseline', named(target), '--json', '-', ...recordArguments(options)];
  if (extent !== 'usual') args.push(`--${extent}`);
  return recorded(args, options);
}

function recordArguments({ history = false, evidence = true, accept = [] }) {
  return [
    ...(history ? [] : ['--no-history']),
    ...(evidence ? [] : ['--no-evidence']),
    ...accept.flatMap((check) => ['--accept', check]),
  ];
}

function recorded(args, options) {
  return begun(options, args, (ended) => {
    if (ended.code === 2) throw refused(ended.stderr);
    const record = ended.stdout.trim() === '' ? undefined : Record.parse(ended.stdout);
    throwIfEndedEarly(ended, options, record);
    if (record === undefined) throw new FailedError(message(ended));
    if (record.outcome !== 'complete') {
      throw new FailedError(record.document.outcome.reason ?? 'the run was interrupted', record);
    }
    return record;
  });
}

/** Starts the program, unless it is aborted already. */
function begun(options, args, read) {
  const { signal } = options;
  if (signal?.aborted) {
    return new Run(Promise.reject(new AbortError(signal.reason)), { async *[Symbol.asyncIterator]() {} });
  }
  const { events, ended } = runProgram(args, options);
  return new Run(ended.then(read), events);
}

function compare(sides, options = {}) {
  const { live = false, vary = {}, budget, margin, failIf = [], evidence = true, acceptDifferences = [] } = options;
  const args = ['compare', '--json', '-'];
  if (live) args.push('--live');
  for (const [name, values] of Object.entries(vary)) args.push('--vary', `${name}=${values.join(',')}`);
  if (budget !== undefined) args.push('--budget', budget);
  if (margin !== undefined) args.push('--margin', margin);
  for (const condition of failIf) args.push('--fail-if', condition);
  if (acceptDifferences.length > 0) args.push('--accept-difference', acceptDifferences.join(','));
  if (!evidence) args.push('--no-evidence');
  const events = new Events();
  const result = compared(args, sides, { ...options, events });
  // A refusal before the program starts ends them, too.
  result.then(
    () => events.end(),
    () => events.end()
  );
  return new Run(result, events);
}

async function compared(args, sides, options) {
  const { signal } = options;
  if (signal?.aborted) throw new AbortError(signal.reason);
  const folder = await fs.promises.mkdtemp(path.join(os.tmpdir(), 'trueio-compare-'));
  try {
    for (const [index, side] of sides.entries()) {
      if (typeof side === 'string') {
        args.push(named(side));
      } else {
        const file = path.join(folder, `${index}.json`);
        await fs.promises.writeFile(file, JSON.stringify(side.document));
        args.push(file);
      }
    }
    const ended = await runProgram(args, options).ended;
    if (ended.code === 2) throw refused(ended.stderr);
    throwIfEndedEarly(ended, options);
    if (ended.stdout.trim() === '') throw new FailedError(message(ended));
    return Comparison.parse(ended.stdout);
  } finally {
    await fs.promises.rm(folder, { recursive: true });
  }
}

function throwIfEndedEarly(ended, { timeout, signal }, record) {
  if (ended.by === 'timeout') {
    throw new TimedOutError(`the run took longer than ${timeout} ms and was interrupted`, record);
  }
  if (ended.by === 'signal') throw new AbortError(signal.reason, record);
}

/** Reads a refusal: its lines `  rule: NAME` and `hint: …` are for programs, too. */
function refused(stderr) {
  const text = stderr.trim();
  const rule = /^ {2}rule: (\S+)$/m.exec(text)?.[1];
  const [reason, ...hint] = text.split('\n\nhint: ');
  return new RefusedError(reason.replace(/^error: /, ''), rule, hint.join('\n\nhint: ') || undefined);
}

function message({ code, killedBy, stderr }) {
  const text = stderr.trim().replace(/^error: /, '');
  if (killedBy) return `the program was ended by ${killedBy}${text && `: ${text}`}`;
  return text || `the program ended with status ${code} and without a result`;
}

/** A name that begins with a hyphen is not an option. */
function named(file) {
  return file.startsWith('-') ? `./${file}` : file;
}

module.exports = { baseline, compare, run };
