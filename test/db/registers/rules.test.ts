import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cases } from '../../support/cases.ts';
import {
  decide,
  type Hint,
  isSkipped,
  mergeAbsence,
  mergeHint,
  mergeRead,
  type Read,
  type Registers,
  settleHint,
  shown,
  unknown,
} from './rules.ts';
import { companies, history, lag, type Outcome, outcomeOf, shownAtEnd } from './worlds.ts';

/** Returns an arbitrary permutation of items, each of them once or several times. */
const shuffled = <T>(items: readonly T[]) =>
  fc
    .array(fc.constantFrom(...items), { maxLength: 3 })
    .chain((again) => fc.shuffledSubarray([...items, ...again], { minLength: items.length + again.length }));

const time = fc.integer({ min: 0, max: 40 });
const read = fc.record<Read>({
  updated: fc.option(time),
  began: time,
  content: fc.constantFrom('x', 'y', 'z'),
  lister: fc.constantFrom(...companies),
  named: fc.option(fc.constantFrom(...companies)),
});
const hint = fc.record<Hint>({
  eventId: fc.constantFrom('e1', 'e2', 'e3', 'e4'),
  updated: fc.option(time),
  deletes: fc.boolean(),
  content: fc.constantFrom('x', 'y'),
  company: fc.constantFrom(...companies),
  came: time,
  settled: fc.constant(null),
});

/** Returns two orders of the same items. */
const inEachOrder = <T>(item: fc.Arbitrary<T>, key: (item: T) => unknown = (one) => one) =>
  fc
    .uniqueArray(item, { minLength: 1, maxLength: 4, selector: key })
    .chain((items) => fc.tuple(shuffled(items), shuffled(items)));

describe('each register', () => {
  test('keeps the same reads in any order, repeated or not', () => {
    fc.assert(
      fc.property(inEachOrder(read), ([one, other]) => {
        const merged = (reads: readonly Read[]) =>
          reads.reduce((registers, next) => mergeRead(registers, next, lag), unknown);
        expect(merged(one)).toEqual(merged(other));
        expect(shown(merged(one), lag)).toEqual(shown(merged(other), lag));
      }),
      { numRuns: cases(2000, 50_000) },
    );
  });

  test('keeps the same hint in any order, repeated or not', () => {
    fc.assert(
      fc.property(
        inEachOrder(hint, ({ eventId }) => eventId),
        ([one, other]) => {
          const merged = (hints: readonly Hint[]) =>
            hints.reduce((held, next) => mergeHint(held, next), unknown);
          expect(merged(one)).toEqual(merged(other));
        },
      ),
      { numRuns: cases(2000, 50_000) },
    );
  });

  test('keeps the same absence of a company in any order, repeated or not', () => {
    fc.assert(
      fc.property(read, inEachOrder(time), (first, [one, other]) => {
        const start = mergeRead(unknown, first, lag);
        const merged = (proofs: readonly number[]) =>
          proofs.reduce((registers, began) => mergeAbsence(registers, first.lister, began, lag), start);
        expect(merged(one)).toEqual(merged(other));
      }),
      { numRuns: cases(1000, 20_000) },
    );
  });
});

test('an event does not decide who owns a record that was read', () => {
  fc.assert(
    fc.property(read, fc.array(hint, { minLength: 1, maxLength: 4 }), (first, hints) => {
      const row = hints.reduce((held, next) => mergeHint(held, next), mergeRead(unknown, first, lag));
      const state = shown(row, lag);
      if (!state.deleted) expect(state.company).toBe(first.named ?? first.lister);
    }),
    { numRuns: cases(1000, 20_000) },
  );
});

describe('after a quiet time and one listing of each company', () => {
  const property = (check: (outcome: Outcome) => void) =>
    fc.assert(
      fc.property(history, (one) => check(outcomeOf(one))),
      { numRuns: cases(5000, 100_000) },
    );

  test('the row shows what the service has', () => {
    property(({ registers, expected }) => {
      const state = shownAtEnd(registers);
      if (expected !== null) expect(state).toMatchObject({ deleted: false, ...expected });
      else if (registers.absence?.decision !== 'kept') expect(state.deleted).toBe(true);
    });
  });

  test('another backfill does not write the row', () => {
    property(({ isWrittenAgain }) => {
      expect(isWrittenAgain).toBe(false);
    });
  });

  test('pages and absences that come once more change nothing', () => {
    property(({ registers, afterRepeats }) => {
      expect(shownAtEnd(afterRepeats)).toEqual(shownAtEnd(registers));
    });
  });
});

describe('histories that once failed', () => {
  /** A read of the listing of A at a time, of a record that was last updated long before. */
  const listed = (began: number, more: Partial<Read> = {}): Read => ({
    updated: 5,
    began,
    content: 'state',
    lister: 'A',
    named: null,
    ...more,
  });
  const announced = (came: number, more: Partial<Hint> = {}): Hint => ({
    eventId: `event at ${came}`,
    updated: 5,
    deletes: false,
    content: 'state',
    company: 'A',
    came,
    settled: null,
    ...more,
  });
  const following = (start: Registers, ...steps: ((held: Registers) => Registers)[]): Registers =>
    steps.reduce((held, step) => step(held), start);
  const reading = (read: Read, fences?: ReadonlyMap<string, number>) => (held: Registers) =>
    isSkipped(held, read, lag) ? held : mergeRead(held, read, lag, fences);
  const hinting = (hint: Hint) => (held: Registers) => mergeHint(held, hint);
  const lacking =
    (lister: string, began: number, more: Parameters<typeof mergeAbsence>[4] = {}) =>
    (held: Registers) =>
      mergeAbsence(held, lister, began, lag, more);
  const live = (content: string, company = 'A') => ({ deleted: false, content, company });
  const see = (held: Registers) => expect(shown(held, lag));

  test('three reads whose order was once a cycle give one row in every order', () => {
    const reads = [
      listed(0, { updated: 3, content: 'x' }),
      listed(8, { updated: 2, content: 'y' }),
      listed(16, { updated: 1, content: 'z' }),
    ];
    for (const [a, b, c] of [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ] as const)
      see(following(unknown, ...[a, b, c].map((place) => reading(reads[place] as Read)))).toMatchObject(
        live('z'),
      );
  });

  test('a listing that lags does not delete a record that was just created', () => {
    const created = listed(101, { updated: 100 });
    const held = following(unknown, hinting(announced(100, { updated: 100 })), reading(created));
    see(following(held, lacking('A', 105))).toMatchObject(live('state'));
    const settled = settleHint(held, 'event at 100', 101);
    see(following(settled, lacking('A', 200))).toMatchObject({ deleted: true, since: 200 });
  });

  test('a listing does not delete a record that only an event announced', () => {
    const held = following(unknown, hinting(announced(100)), lacking('A', 150), lacking('B', 150));
    see(held).toMatchObject(live('state'));
  });

  test('a record that was deleted twice with the same payload is deleted', () => {
    const held = following(unknown, hinting(announced(20, { deletes: true })), reading(listed(40)));
    see(held).toMatchObject(live('state'));
    see(following(held, hinting(announced(60, { deletes: true })))).toMatchObject({ deleted: true });
  });

  test('a deleted record that is listed again with the same, no or an older date is live', () => {
    for (const updated of [5, null, 2]) {
      const held = following(unknown, reading(listed(10)), hinting(announced(20, { deletes: true })));
      see(held).toMatchObject({ deleted: true });
      const back = listed(50, { updated, content: 'another amount' });
      see(following(held, reading(back))).toMatchObject(live('another amount'));
    }
  });

  test('a deletion that the service takes back does not hide the record for longer than an answer may lag', () => {
    const deleted = following(unknown, reading(listed(10)), hinting(announced(20, { deletes: true })));
    see(following(deleted, reading(listed(30)))).toMatchObject({ deleted: true });
    see(following(deleted, reading(listed(31)))).toMatchObject(live('state'));
    const restored = listed(22, { updated: 21, content: 'restored' });
    see(following(deleted, reading(restored))).toMatchObject(live('restored'));
  });

  test('an absence of a walk that began before a newer proved walk is dropped', () => {
    const fences = new Map([['A', 200]]);
    const held = following(unknown, reading(listed(50)), reading(listed(200)));
    see(following(held, lacking('A', 100, { fences }))).toMatchObject(live('state'));
  });

  test('a page of a walk that began before a newer proved walk is dropped', () => {
    const meter = { updated: null };
    const fences = new Map([['A', 200]]);
    const held = following(
      unknown,
      reading(listed(100, { ...meter, content: 'new' })),
      reading(listed(200, { ...meter, content: 'new' })),
      reading(listed(150, { ...meter, content: 'between' }), fences),
    );
    see(held).toMatchObject(live('new'));
  });

  test('approving a deletion spares a record that was listed again, though unchanged', () => {
    const held = following(
      unknown,
      reading(listed(10)),
      lacking('A', 100, { decision: 'held' }),
      reading(listed(200)),
      (row) => decide(row, 'approve'),
    );
    see(held).toMatchObject(live('state'));
  });

  test('an approved deletion dates from the first proof, and a late page does not undo it', () => {
    const held = following(
      unknown,
      reading(listed(10)),
      lacking('A', 100, { decision: 'held' }),
      lacking('A', 200, { decision: 'held' }),
      (row) => decide(row, 'approve'),
      reading(listed(150)),
    );
    see(held).toMatchObject({ deleted: true, since: 100 });
  });

  test('two companies that list one record do not take it from each other', () => {
    for (const updated of [5, null]) {
      const nights = [10, 110, 210].flatMap((began) => [
        listed(began, { updated, lister: 'B', content: 'of B' }),
        listed(began + 5, { updated, lister: 'A', content: 'of A' }),
      ]);
      const held = following(unknown, ...nights.slice(0, 2).map((read) => reading(read)));
      see(held).toMatchObject(live('of A'));
      expect(following(held, ...nights.slice(2).map((read) => reading(read)))).toBe(held);
    }
  });

  test('a record that two companies leave to a third is never deleted', () => {
    const held = following(
      unknown,
      ...['A', 'B', 'C'].map((lister) => reading(listed(10, { lister }))),
      lacking('C', 100),
    );
    see(held).toMatchObject(live('state'));
    const left = following(held, lacking('A', 100));
    see(left).toMatchObject(live('state', 'B'));
  });

  test('a meter that moves with the same record belongs to its new company', () => {
    const meter = { updated: null };
    const moved = listed(105, { ...meter, lister: 'B' });
    const first = following(unknown, reading(listed(10, meter)));
    see(following(first, lacking('A', 100), reading(moved))).toMatchObject(live('state', 'B'));
    see(following(first, reading(moved), lacking('A', 106))).toMatchObject(live('state', 'B'));
    const held = following(first, lacking('A', 100, { decision: 'held' }), reading(moved));
    see(held).toMatchObject(live('state', 'B'));
  });

  test('a service that was restored from a backup is followed', () => {
    const newer = listed(100, { updated: 90, content: 'newer' });
    const held = following(unknown, reading(newer), reading(listed(120, { content: 'older' })));
    see(held).toMatchObject(live('older'));
  });

  test('a late answer does not undo a newer state', () => {
    const newer = listed(100, { updated: 95, content: 'newer' });
    const held = following(unknown, reading(newer), reading(listed(98, { content: 'older' })));
    see(held).toMatchObject(live('newer'));
  });

  test('a deletion from the future does not outlive what the service shows', () => {
    const held = following(
      unknown,
      reading(listed(10)),
      hinting(announced(20, { updated: 9999, deletes: true })),
      reading(listed(31, { updated: 28, content: 'edited' })),
    );
    see(held).toMatchObject(live('edited'));
  });

  test('a forged event moves no bill to another company', () => {
    const forged = announced(20, { updated: 20, company: 'B' });
    see(following(unknown, reading(listed(10)), hinting(forged))).toMatchObject({ company: 'A' });
  });
});
