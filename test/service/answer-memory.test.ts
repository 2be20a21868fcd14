import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type AnswerMemory, createAnswerMemory } from '../../service/answer-memory.ts';
import { walkPages } from '../../service/walk.ts';
import { until } from '../support/poll.ts';
import type { Reply } from './scripted-server.ts';
import { documents, rejection, setup } from './setup.ts';
import { VirtualClock } from './virtual-clock.ts';

/** Bytes that every answer takes before its first piece. */
const start = 16 * 1024;
const total = 40 * start;
const answerMax = 20 * start;
const text = (bytes: number) => Buffer.alloc(bytes, 'x');

interface Reading {
  readonly pieces: readonly number[];
  /** After how many pieces the reader gives up. If there are not more pieces, it does not give up. */
  readonly abortsAt: number;
  /** Whether the reader gives up while it waits for this piece, and not before it. */
  readonly whileWaiting: boolean;
}

test('the memory of answers is never exceeded, every answer ends, and all memory is returned, in any order', async () => {
  const piece = fc.integer({ min: 1, max: 6 * start });
  const pieces = fc
    .array(piece, { maxLength: 8 })
    .filter((sizes) => sizes.reduce((sum, size) => sum + size, start) <= answerMax);
  const reading = fc.record({ pieces, abortsAt: fc.nat(20), whileWaiting: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(reading, { maxLength: 12 }), async (schedule, readings) => {
      const memory = createAnswerMemory({ total, answerMax });
      const read = async ({ pieces, abortsAt, whileWaiting }: Reading, number: number) => {
        const stop = new AbortController();
        const { part, begun } = memory.begin(stop.signal);
        try {
          await begun;
          for (const [at, size] of pieces.entries()) {
            await schedule.schedule(Promise.resolve(), `answer ${number} has piece ${at}`);
            if (at === abortsAt && !whileWaiting) throw new Error('given up');
            const taken = part.take(text(size), stop.signal);
            if (at === abortsAt) stop.abort(new Error('given up'));
            await taken;
            expect(memory.used).toBeLessThanOrEqual(total);
          }
          part.complete();
          await schedule.schedule(Promise.resolve(), `answer ${number} is written`);
        } catch (error) {
          expect(error).toEqual(new Error('given up'));
        } finally {
          part.release();
          part.release();
        }
      };
      await schedule.waitFor(Promise.all(readings.map(read)));
      expect(memory.used).toBe(0);
    }),
  );
});

test('lets the oldest answer grow to its limit while all others wait', async () => {
  const { signal } = new AbortController();
  const memory = createAnswerMemory({ total, answerMax });
  const answers = Array.from({ length: 10 }, () => memory.begin(signal).part);
  const [oldest, next, ...others] = answers;
  expect(next?.take(text(11 * start), signal)).toBeUndefined();
  const waits = others.map((part) => part.take(text(11 * start), signal));
  expect(waits).not.toContain(undefined);
  expect(oldest?.take(text(17 * start), signal)).toBeUndefined();
  expect(oldest?.take(text(start), signal)).toBeUndefined();
  // While the records of the first answer are written, the next answer is the oldest.
  const grown = next?.take(text(start), signal);
  expect(grown).toBeInstanceOf(Promise);
  oldest?.complete();
  await grown;
  oldest?.release();
  next?.release();
  await waits[0];
  expect(memory.used).toBeLessThanOrEqual(total);
});

test('refuses an answer that takes more than one answer may, and counts small objects as more than their text', () => {
  const { signal } = new AbortController();
  const memory = createAnswerMemory({ total, answerMax });
  const refused = { code: 'SERVICE_ANSWER_UNREADABLE', message: expect.stringContaining('memory') };
  const { part } = memory.begin(signal);
  expect(() => part.take(text(answerMax), signal)).toThrow(expect.objectContaining(refused));
  const objects = Buffer.from('{},'.repeat(answerMax / 10));
  expect(objects.length).toBeLessThan(answerMax / 2);
  expect(() => part.take(objects, signal)).toThrow(expect.objectContaining(refused));
});

describe('a client', () => {
  const once = { budget: { attemptsMax: 1, waitMaxMs: 0 } };
  const page = (bytes: number): Reply => ({
    body: `{"documents":[],"hasNext":true,"x":"${'x'.repeat(bytes)}"}`,
  });

  /** Takes memory like a page that is being written. */
  function holdBytes(memory: AnswerMemory, bytes = answerMax): () => void {
    const { part } = memory.begin(new AbortController().signal);
    part.take(text(bytes - start), new AbortController().signal);
    part.complete();
    onTestFinished(part.release);
    return part.release;
  }

  test('returns the memory of an answer as soon as it was read, refused or cut', async () => {
    const memory = createAnswerMemory({ total, answerMax });
    const replies: Reply[] = [page(10), { status: 404, body: 'no' }, { cut: '{' }, { body: 'no JSON' }];
    const { client } = await setup(({ number }) => replies[number - 1] ?? 'hang up', { ...once, memory });
    await client.page(documents());
    for (const _ of replies) await rejection(client.page(documents()));
    expect(memory.used).toBe(0);
  });

  test('keeps the memory of a page of a walk until the next page is requested', async () => {
    const memory = createAnswerMemory({ total, answerMax });
    const { client } = await setup(
      ({ query }) => ({
        json: { documents: [{ id: query.get('page') }], hasNext: true },
      }),
      { memory },
    );
    const params = { companyId: 'c1' };
    const walk = walkPages({ client, endpoint: 'documents', params, lane: 'backfill' });
    const kept: (() => void)[] = [];
    for await (const { currentPage } of walk) {
      expect(memory.used).toBeGreaterThan(start * (kept.length + 1));
      expect(memory.used).toBeLessThan((start + 100) * (kept.length + 1));
      if (currentPage <= 2) kept.push(walk.keep());
      if (currentPage === 5) break;
    }
    for (const release of kept) release();
    expect(memory.used).toBe(0);
  });

  test('waits for memory without blaming the service, and continues when memory is free', async () => {
    const clock = new VirtualClock();
    const memory = createAnswerMemory({ total, answerMax });
    const releases = [holdBytes(memory), holdBytes(memory, 10 * start)];
    let waits = 0;
    const counted: AnswerMemory = {
      ...memory,
      begin(signal) {
        const { part, begun } = memory.begin(signal);
        const take: typeof part.take = (piece, during) => {
          const wait = part.take(piece, during);
          if (wait !== undefined) waits += 1;
          return wait;
        };
        return { part: { ...part, take }, begun };
      },
    };
    const { client } = await setup(() => page(15 * start), { ...once, clock, memory: counted });
    const answer = client.page(documents());
    await until('it waits in the middle of the answer', () => waits === 1);
    clock.advance(59_000);
    for (const release of releases) release();
    await answer;
    expect(memory.used).toBe(0);
  });

  test('refuses an answer for which there is no memory in time, and reads the next answer', async () => {
    const clock = new VirtualClock();
    const memory = createAnswerMemory({ total, answerMax });
    const releases = [holdBytes(memory), holdBytes(memory)];
    const { client, server } = await setup(() => page(10), { ...once, clock, memory });
    const refused = rejection(client.page(documents()));
    await until('it waits', () => clock.sleeping === 1);
    clock.advance(60_000);
    expect(await refused).toMatchObject({
      code: 'SERVICE_ANSWER_UNREADABLE',
      message: expect.stringContaining('other answers held the memory of all answers for 60000 ms'),
    });
    expect(server.asked).toHaveLength(0);
    for (const release of releases) release();
    await client.page(documents());
  });
});
