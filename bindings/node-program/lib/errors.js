'use strict';
// The errors of `run`, `baseline` and `compare`. `code` names the class, for code that sees two copies of this package.

class TrueioError extends Error {
  constructor(code, message) {
    super(message);
    this.name = new.target.name;
    this.code = code;
  }
}

class ProgramError extends TrueioError {
  constructor(message) {
    super('TRUEIO_PROGRAM', message);
  }
}

class RefusedError extends TrueioError {
  constructor(message, rule, hint) {
    super('TRUEIO_REFUSED', message);
    this.rule = rule;
    this.hint = hint;
  }
}

class FailedError extends TrueioError {
  constructor(message, record) {
    super('TRUEIO_FAILED', message);
    this.record = record;
  }
}

class TimedOutError extends TrueioError {
  constructor(message, record) {
    super('TRUEIO_TIMED_OUT', message);
    this.record = record;
  }
}

// Named as the errors of other functions that take an AbortSignal.
class AbortError extends TrueioError {
  constructor(cause, record) {
    super('ABORT_ERR', 'the run was aborted');
    this.cause = cause;
    this.record = record;
  }
}

class ContradictedError extends TrueioError {
  constructor(message, reasons) {
    super('TRUEIO_CONTRADICTED', message);
    this.reasons = reasons;
  }
}

class DocumentError extends TrueioError {
  constructor(message) {
    super('TRUEIO_DOCUMENT', message);
  }
}

module.exports = {
  AbortError,
  ContradictedError,
  DocumentError,
  FailedError,
  ProgramError,
  RefusedError,
  TimedOutError,
  TrueioError,
};
