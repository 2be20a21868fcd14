import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { untilAsked } from '../../cli/signals.ts';

const endless = new Promise<never>(() => {});

class Process extends EventEmitter {
  readonly statuses: number[] = [];
  exit(status: number): void {
    this.statuses.push(status);
  }
}

/** Runs `untilAsked` with the given beginning; records its calls in order. */
function running(begin: () => Promise<readonly Promise<void>[]>) {
  const process = new Process();
  const happened: string[] = [];
  const clock = { ms: 5_000 };
  const ended = untilAsked(process, {
    begin: () => {
      happened.push('begins');
      return begin();
    },
    onAsked: (signal) => happened.push(signal),
    drain: async () => void happened.push('drains'),
    now: () => clock.ms,
  });
  return { process, happened, ended, clock };
}

test('a signal before everything has begun makes the process drain', async () => {
  const { process, happened, ended } = running(() => endless);
  process.emit('SIGTERM', 'SIGTERM');
  await ended;
  expect(happened).toEqual(['begins', 'SIGTERM', 'drains']);
  expect(process.statuses).toEqual([]);
});

test('runs until a signal, and a second signal ends the process at once', async () => {
  const { process, happened, ended, clock } = running(async () => [endless]);
  await new Promise(setImmediate);
  expect(happened).toEqual(['begins']);
  process.emit('SIGINT', 'SIGINT');
  clock.ms += 1_000;
  process.emit('SIGTERM', 'SIGTERM');
  await ended;
  expect(happened).toEqual(['begins', 'SIGINT', 'drains']);
  expect(process.statuses).toEqual([1]);
});

test('one Ctrl-C that arrives twice, as under npm, drains without force', async () => {
  const { process, happened, ended, clock } = running(async () => [endless]);
  process.emit('SIGINT', 'SIGINT');
  clock.ms += 999;
  process.emit('SIGINT', 'SIGINT');
  await ended;
  expect(happened).toEqual(['begins', 'SIGINT', 'drains']);
  expect(process.statuses).toEqual([]);
});

test.each([
  ['what cannot begin', () => Promise.reject(new Error('no port'))],
  ['what fails later', async () => [endless, Promise.reject(new Error('no port'))]],
])('drains after %s, and throws its error', async (_, begin) => {
  const { happened, ended } = running(begin);
  await expect(ended).rejects.toThrow('no port');
  expect(happened).toEqual(['begins', 'drains']);
});
