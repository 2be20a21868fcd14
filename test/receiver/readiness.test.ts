import { expect, test } from 'vitest';
import { rememberReady } from '../../receiver/server.ts';
import { RecordingLog } from './listening.ts';
import { ManualClock } from './manual-clock.ts';

function asking(answers: readonly (() => boolean | Promise<boolean>)[]) {
  const clock = new ManualClock();
  const log = new RecordingLog();
  let asked = 0;
  const ready = () => {
    asked += 1;
    return (answers[asked - 1] as () => boolean | Promise<boolean>)();
  };
  const isReady = rememberReady({ ready, clock, log }, 1_000);
  return { clock, log, isReady, asked: () => asked };
}

test('remembers an answer for a second, then asks again', async () => {
  const { clock, isReady, asked } = asking([() => true, () => false]);
  expect(await isReady()).toBe(true);
  await clock.advance(999);
  expect(await isReady()).toBe(true);
  expect(asked()).toBe(1);
  await clock.advance(1);
  expect(await isReady()).toBe(false);
  expect(asked()).toBe(2);
});

test('makes one call at a time, however many ask and however long it takes', async () => {
  const held = Promise.withResolvers<boolean>();
  const { clock, isReady, asked } = asking([() => held.promise, () => false]);
  const first = isReady();
  await clock.advance(5_000);
  const others = Array.from({ length: 100 }, () => isReady());
  held.resolve(true);
  expect(await Promise.all([first, ...others])).toEqual(Array(101).fill(true));
  await clock.advance(999);
  expect(await isReady()).toBe(true);
  expect(asked()).toBe(1);
});

test('remembers a failure as not ready, and logs it once', async () => {
  const fail = () => Promise.reject(new Error('unknown'));
  const { clock, log, isReady, asked } = asking([fail, () => true]);
  expect([await isReady(), await isReady()]).toEqual([false, false]);
  expect(log.lines).toMatchObject([{ level: 'warn', message: 'readiness is not known' }]);
  await clock.advance(1_000);
  expect(await isReady()).toBe(true);
  expect(asked()).toBe(2);
});
