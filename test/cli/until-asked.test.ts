import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { untilAsked } from '../../cli/until-asked.ts';

const endless = new Promise<never>(() => {});

class Process extends EventEmitter {
  readonly statuses: number[] = [];
  exit(status: number): void {
    this.statuses.push(status);
  }
}

/** A run of something that begins as told, and what happened to it, in order. */
function running(begin: () => Promise<readonly Promise<void>[]>) {
  const process = new Process();
  const happened: string[] = [];
  const ended = untilAsked(process, {
    begin: () => {
      happened.push('begins');
      return begin();
    },
    onAsked: (signal) => happened.push(signal),
    drain: async () => void happened.push('drains'),
  });
  return { process, happened, ended };
}

test('a signal that comes before all has begun is not lost: it drains', async () => {
  const { process, happened, ended } = running(() => endless);
  process.emit('SIGTERM', 'SIGTERM');
  await ended;
  expect(happened).toEqual(['begins', 'SIGTERM', 'drains']);
  expect(process.statuses).toEqual([]);
});

test('what has begun runs until a signal comes; a second one ends the process at once', async () => {
  const { process, happened, ended } = running(async () => [endless]);
  await new Promise(setImmediate);
  expect(happened).toEqual(['begins']);
  process.emit('SIGINT', 'SIGINT');
  process.emit('SIGTERM', 'SIGTERM');
  await ended;
  expect(happened).toEqual(['begins', 'SIGINT', 'drains']);
  expect(process.statuses).toEqual([1]);
});

test.each([
  ['what cannot begin', () => Promise.reject(new Error('no port'))],
  ['what fails later', async () => [endless, Promise.reject(new Error('no port'))]],
])('%s is drained, and its error told', async (_, begin) => {
  const { happened, ended } = running(begin);
  await expect(ended).rejects.toThrow('no port');
  expect(happened).toEqual(['begins', 'drains']);
});
