import { describe, expect, test } from 'vitest';
import type { DeliveredEvent } from '../../contract/event.ts';
import { limits } from '../../contract/limits.ts';
import { type CommitResult, createGroupCommit, type GroupFigures } from '../../receiver/group-commit.ts';
import type { StartRequest } from '../../receiver/starts.ts';
import { RecordingLog } from './listening.ts';
import { ManualClock, settled } from './manual-clock.ts';

const event = (id: string, body = '{}'): DeliveredEvent => ({
  id,
  timestamp: 1_614_265_330,
  receivedAt: '2021-02-25T15:02:10.000Z',
  body,
});

/** Makes a group commit on a manual clock, whose starts end when the test says so. */
function committing(overrides: Partial<Record<keyof typeof limits, number>> = {}) {
  const clock = new ManualClock();
  const log = new RecordingLog();
  const figures: GroupFigures[] = [];
  const starts: (StartRequest & { at: number; resolve: () => void; reject: (error: Error) => void })[] = [];
  const commit = createGroupCommit({
    clock,
    log,
    limits: { ...limits, ...overrides },
    onGroup: (group) => figures.push(group),
    start: (request) =>
      new Promise((resolve, reject) => starts.push({ ...request, at: clock.now(), resolve, reject })),
  });
  const answers = new Map<string, CommitResult[]>();
  const accept = (id: string, body?: string) => {
    void commit
      .accept(event(id, body))
      .then((answer) => answers.set(id, [...(answers.get(id) ?? []), answer]));
  };
  const membersOf = (index: number) => starts[index]?.group.events.map(({ id }) => id);
  return { clock, log, commit, starts, answers, accept, membersOf, figures };
}

/** Fails the attempt and lets its immediate reactions run. */
async function reject(start: { reject: (error: Error) => void } | undefined): Promise<void> {
  start?.reject(new Error('14 UNAVAILABLE'));
  await settled();
}

async function resolve(start: { resolve: () => void } | undefined): Promise<void> {
  start?.resolve();
  await settled();
}

describe('group commit', () => {
  test('sends a lone event at once, and answers it only after its start has returned', async () => {
    const { accept, clock, starts, answers, membersOf } = committing();
    accept('a');
    await clock.turn();
    expect(starts).toMatchObject([
      { workflowId: 'event/a/1614265330', at: 0, withinMs: limits.startDeadlineMs },
    ]);
    expect(membersOf(0)).toEqual(['a']);
    await clock.advance(limits.startDeadlineMs - 1);
    expect(answers.size).toBe(0);
    await resolve(starts[0]);
    expect(answers.get('a')).toEqual(['durable']);
  });

  test('sends events of one turn with one start, and later events together after it has returned', async () => {
    const { accept, clock, starts, answers, membersOf } = committing();
    accept('a');
    accept('b');
    await clock.turn();
    for (const id of ['c', 'd', 'e']) {
      accept(id);
      await clock.turn();
    }
    expect(starts).toHaveLength(1);
    await resolve(starts[0]);
    await clock.advance(limits.groupLingerMs);
    expect([membersOf(0), membersOf(1)]).toEqual([
      ['a', 'b'],
      ['c', 'd', 'e'],
    ]);
    expect([...answers.keys()]).toEqual(['a', 'b']);
    await resolve(starts[1]);
    expect([...answers.values()].flat()).toEqual(Array(5).fill('durable'));
  });

  describe('when a start has returned and other events wait', () => {
    /** Lets one start of `answered` events return after `waiting` other events have gathered. */
    async function returned(answered: number, waiting: number) {
      const committed = committing();
      const { accept, clock, starts } = committed;
      const send = (name: string, count: number) => {
        for (let n = 0; n < count; n += 1) accept(`${name}${n}`);
      };
      send('answered', answered);
      await clock.turn();
      send('waiting', waiting);
      await clock.turn();
      await resolve(starts[0]);
      await clock.turn();
      return { ...committed, send, sizes: () => starts.map(({ group }) => group.events.length) };
    }

    test('the next events of answered senders are included if they arrive at once', async () => {
      const { send, clock, sizes } = await returned(8, 8);
      await clock.advance(limits.groupLingerQuietMs - 1);
      send('again', 7);
      await clock.advance(limits.groupLingerQuietMs - 1);
      expect(sizes()).toEqual([8]);
      send('the last', 1);
      await clock.turn();
      expect(sizes()).toEqual([8, 16]);
    });

    test('the group is sent after a quiet time, or after the linger time if events keep arriving', async () => {
      const quiet = await returned(8, 1);
      await quiet.clock.advance(limits.groupLingerQuietMs);
      expect(quiet.sizes()).toEqual([8, 1]);

      const trickle = await returned(50, 1);
      for (let ms = 0; ms < limits.groupLingerMs; ms += 5) {
        expect(trickle.sizes()).toEqual([50]);
        trickle.send(`at ${ms} `, 1);
        await trickle.clock.advance(5);
      }
      expect(trickle.sizes()).toEqual([50, 6]);
    });

    test('a large group is sent at once, and so are the last events when the receiver stops', async () => {
      const { sizes } = await returned(64, limits.groupLingerBelowEvents);
      expect(sizes()).toEqual([64, 64]);

      const { commit, clock, sizes: left } = await returned(2, 2);
      void commit.drain();
      await clock.turn();
      expect(left()).toEqual([2, 2]);
    });

    test('an event is sent at once if no start is in flight and none waits', async () => {
      const { accept, clock, starts, membersOf } = committing();
      accept('a');
      await clock.turn();
      await resolve(starts[0]);
      accept('b');
      await clock.turn();
      expect([membersOf(1), clock.now()]).toEqual([['b'], 0]);
    });
  });

  test('has no more starts in flight than allowed', async () => {
    const { accept, clock, starts, membersOf } = committing({ groupStartsInFlight: 2 });
    for (const id of ['a', 'b', 'c', 'd']) {
      accept(id);
      await clock.turn();
    }
    expect(starts).toHaveLength(2);
    await resolve(starts[1]);
    expect(membersOf(2)).toEqual(['c', 'd']);
  });

  test('answers an id that is already waiting with the same answer, and never puts it into a group twice', async () => {
    const { accept, clock, starts, answers, membersOf } = committing();
    accept('a');
    accept('a');
    await clock.turn();
    accept('a', '{"other":"body"}');
    accept('b');
    accept('b');
    await clock.turn();
    await resolve(starts[0]);
    await clock.advance(limits.groupLingerMs);
    await resolve(starts[1]);
    expect([membersOf(0), membersOf(1), starts.length]).toEqual([['a'], ['b'], 2]);
    expect(answers).toEqual(
      new Map([
        ['a', Array(3).fill('durable')],
        ['b', Array(2).fill('durable')],
      ]),
    );
  });

  test('tries a failed start again with the same id and members, and then acknowledges it', async () => {
    const { accept, clock, starts, answers, log } = committing();
    accept('a');
    accept('b');
    await clock.turn();
    await reject(starts[0]);
    accept('c');
    await clock.advance(100);
    await reject(starts[1]);
    await clock.advance(200);
    expect(starts.map(({ at }) => at)).toEqual([0, 100, 300]);
    expect(new Set(starts.map(({ workflowId }) => workflowId)).size).toBe(1);
    expect(new Set(starts.map(({ group }) => JSON.stringify(group))).size).toBe(1);
    expect(answers.size).toBe(0);
    await resolve(starts[2]);
    expect(answers.get('a')).toEqual(['durable']);
    expect(log.lines.filter(({ level }) => level === 'warn')).toHaveLength(2);
  });

  test('counts an attempt that returns after its deadline', async () => {
    const { accept, clock, starts, answers } = committing();
    accept('a');
    await clock.advance(limits.startDeadlineMs + 50);
    await resolve(starts[0]);
    expect(answers.get('a')).toEqual(['durable']);
    await clock.advance(60_000);
    expect(starts).toHaveLength(1);
  });

  test('lets no attempt last longer than the remaining time to answer', async () => {
    const { accept, clock, starts } = committing();
    accept('a');
    await clock.advance(20_000);
    const ends = starts.map(({ at, withinMs }) => at + withinMs);
    expect(Math.max(...ends)).toBe(limits.answerWithinMs);
    expect(starts.every(({ withinMs }) => withinMs <= limits.startDeadlineMs)).toBe(true);
  });

  test('accepts an event exactly once that was answered as unavailable and is delivered again', async () => {
    const { accept, clock, starts, answers, membersOf } = committing();
    accept('a');
    await clock.advance(limits.answerWithinMs);
    const before = starts.length;
    accept('a');
    await clock.turn();
    expect(membersOf(before)).toEqual(['a']);
    await resolve(starts[before]);
    expect(answers.get('a')).toEqual(['unavailable', 'durable']);
  });

  test('lets younger members of a group wait when the oldest has run out of time', async () => {
    const { accept, clock, starts, answers } = committing();
    accept('first');
    await clock.turn();
    accept('old');
    await clock.advance(4_900);
    accept('young');
    await clock.turn();
    await resolve(starts[0]);
    await clock.advance(3_100);
    expect([...answers]).toEqual([
      ['first', ['durable']],
      ['old', ['unavailable']],
    ]);
    await resolve(starts[1]);
    expect(answers.get('young')).toEqual(['durable']);
    expect(answers.get('old')).toEqual(['unavailable']);
  });

  test('counts the deadline of a slow request from its beginning, even if it is before the deadline of earlier events', async () => {
    const { clock, starts, answers, commit } = committing();
    const take = (id: string, arrivedAt: number) =>
      commit.accept(event(id), arrivedAt).then((answer) => answers.set(id, [answer]));
    await clock.advance(10_000);
    void take('quick', 10_000);
    void take('slow', 5_000);
    void take('too slow', 10_000 - limits.answerWithinMs);
    await clock.turn();
    expect([...answers]).toEqual([['too slow', ['unavailable']]]);
    await clock.advance(2_999);
    expect(answers.get('slow')).toBeUndefined();
    await clock.advance(1);
    expect(answers.get('slow')).toEqual(['unavailable']);
    await clock.advance(4_999);
    expect(answers.get('quick')).toBeUndefined();
    await clock.advance(1);
    expect(answers.get('quick')).toEqual(['unavailable']);
    expect(commit.waiting).toEqual({ events: 0, bytes: 0 });
    expect(Math.max(...starts.map(({ at, withinMs }) => at + withinMs))).toBe(18_000);
  });

  test('never sends an event that ran out of time while it was waiting', async () => {
    const { accept, clock, starts, answers, membersOf } = committing();
    accept('hangs');
    await clock.turn();
    accept('expires');
    await clock.advance(6_000);
    accept('young');
    await clock.advance(limits.answerWithinMs - 6_000);
    expect([...answers.keys()]).toEqual(['hangs', 'expires']);
    expect(membersOf(starts.length - 1)).toEqual(['young']);
  });

  test('answers busy at once above the limit of waiting events, until the waiting events are answered', async () => {
    const { accept, clock, starts, answers, commit } = committing({ queueEventsMax: 3 });
    for (const id of ['a', 'b', 'c', 'd']) accept(id);
    await clock.turn();
    expect([...answers]).toEqual([['d', ['busy']]]);
    accept('a');
    await settled();
    expect(answers.get('a')).toBeUndefined();
    await resolve(starts[0]);
    expect(commit.waiting).toEqual({ events: 0, bytes: 0 });
    accept('d');
    await clock.turn();
    await resolve(starts[1]);
    expect(answers.get('d')).toEqual(['busy', 'durable']);
  });

  test('answers busy at once above the limit of waiting bytes', async () => {
    const { accept, clock, answers, commit } = committing({ queueBytesMax: 10_000 });
    accept('a', 'x'.repeat(6_000));
    accept('b', 'x'.repeat(6_000));
    accept('c', 'x'.repeat(3_000));
    await clock.turn();
    expect([...answers]).toEqual([['b', ['busy']]]);
    expect(commit.waiting.events).toBe(2);
    expect(commit.waiting.bytes).toBeGreaterThan(9_000);
    expect(commit.waiting.bytes).toBeLessThanOrEqual(10_000);
  });

  test('accepts nothing while it drains, and ends when every accepted event is answered', async () => {
    const { accept, clock, starts, answers, commit } = committing();
    accept('a');
    await clock.turn();
    accept('b');
    let drained = false;
    void commit.drain().then(() => {
      drained = true;
    });
    accept('c');
    accept('a');
    await clock.turn();
    expect([...answers]).toEqual([
      ['c', ['closing']],
      ['a', ['closing']],
    ]);
    await resolve(starts[0]);
    expect(drained).toBe(false);
    await resolve(starts[1]);
    expect(drained).toBe(true);
    expect(answers.get('b')).toEqual(['durable']);
    await commit.drain();
  });

  test('counts a start function that throws as a failed attempt', async () => {
    const clock = new ManualClock();
    let calls = 0;
    const start = () => {
      calls += 1;
      if (calls === 1) throw new TypeError('not ready');
      return Promise.resolve();
    };
    const commit = createGroupCommit({ clock, log: new RecordingLog(), start });
    const answer = commit.accept(event('a'));
    await clock.advance(100);
    expect(await answer).toBe('durable');
  });

  test('reports the figures of each group', async () => {
    const { accept, clock, starts, figures } = committing();
    accept('a');
    accept('b');
    await clock.turn();
    await reject(starts[0]);
    await clock.advance(100);
    await resolve(starts[1]);
    expect(figures).toEqual([{ events: 2, attempts: 2, durable: true, ms: 100, bytes: expect.any(Number) }]);
  });
});
