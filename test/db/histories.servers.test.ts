import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { cases } from '../support/cases.ts';
import { forFile } from '../support/for-file.ts';
import {
  type History,
  type Played,
  playHistories,
  type ReadKind,
  readKinds,
  type Step,
} from '../support/histories.ts';
import { type Change, type Departure, slots } from '../support/life.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      of: fc.constant('document' as const),
      how: fc.constantFrom(...(['add', 'edit', 'remove', 'keep', 'site', 'delete', 'restore'] as const)),
      silent: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      of: fc.constant('connection' as const),
      how: fc.constantFrom('status' as const, 'sites' as const),
      silent: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      of: fc.constant('readings' as const),
      slot: fc.nat(slots - 1),
      wide: fc.nat(slots - 1),
      value: fc.nat(1),
    }),
  },
);

const places = Array.from({ length: 15 }, (_, at) => at);
const departure: fc.Arbitrary<Departure> = fc.record({ late: fc.nat(4), hides: fc.boolean() });

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('change' as const), change }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('deliver' as const),
      picks: fc.oneof(
        fc.array(fc.nat(14), { minLength: 1, maxLength: 4 }),
        fc.shuffledSubarray(places, { minLength: 9 }),
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('begin' as const),
      read: fc.constantFrom(...readKinds),
      departures: fc.tuple(departure, departure),
      twice: fc.boolean(),
      partial: fc.boolean(),
    }),
  },
  {
    weight: 7,
    arbitrary: fc.record({ do: fc.constant('move' as const), pick: fc.nat(5), through: fc.boolean() }),
  },
);

const history: fc.Arbitrary<History> = fc.record({
  habits: fc.record({
    deletionMovesUpdated: fc.boolean(),
    recordsListSites: fc.boolean(),
    readingsHaveUpdated: fc.boolean(),
    receiverAheadSeconds: fc.constantFrom(0, -3_600, 3_600),
    answers: fc.constantFrom(...(['as it is', 'as it is', 'late', 'anyhow'] as const)),
  }),
  steps: fc.array(step, { maxLength: 28, size: 'max' }),
});

const habits = {
  deletionMovesUpdated: false,
  recordsListSites: false,
  readingsHaveUpdated: false,
  receiverAheadSeconds: 0,
  answers: 'as it is',
} as const;
const changed = (of: 'add' | 'remove'): Step => ({
  do: 'change',
  change: { of: 'document', how: of, silent: false },
});
const reading = (value: number): Step => ({
  do: 'change',
  change: { of: 'readings', slot: 0, wide: 0, value },
});
const silently: Step = { do: 'change', change: { of: 'connection', how: 'status', silent: true } };
const begin = (read: ReadKind): Step => ({ do: 'begin', read });
const beginAs = (read: ReadKind, departs: Departure): Step => ({
  do: 'begin',
  read,
  departures: [departs, departs],
});
const deliverAll: Step = { do: 'deliver', picks: [0, 1, 2, 3, 4, 5] };
const move: Step = { do: 'move', pick: 0 };
/** Histories that this test found. Each of them failed once. */
const failedOnce: readonly (readonly Step[])[] = [
  // A page inserts a usage row that the catch-up could not remove, because it was not there yet.
  [changed('add'), begin('usageData'), move, changed('remove')],
  // The document is read before its event, which must not count as covered without usage and site.
  [changed('add'), begin('documents'), move, move],
  // The same happens to a connection. Only events name its sites.
  [begin('connections'), move, move],
  // A page has a value that the service has replaced by the earlier value before the page is written.
  [
    reading(0),
    deliverAll,
    begin('readings catch-up'),
    move,
    move,
    reading(1),
    begin('readings'),
    move,
    reading(0),
  ],
  // The same happens to a record whose `updated` does not change. The last change restores the first status.
  [
    silently,
    deliverAll,
    begin('connections catch-up'),
    move,
    move,
    silently,
    begin('connections'),
    move,
    silently,
    silently,
  ],
  // A page of documents writes the usage of the record, and then a catch-up that began earlier writes the
  // usage of the usage endpoint.
  [
    changed('add'),
    deliverAll,
    begin('documents catch-up'),
    begin('documents'),
    { do: 'move', pick: 1, through: true },
  ],
];

const moved: readonly Step[] = [
  changed('add'),
  { do: 'change', change: { of: 'connection', how: 'status', silent: false } },
];
const all: Step = { do: 'move', pick: 0, through: true };

/** The document and the connection exist, and the reads that events cause still return the old state. */
const late: readonly Step[] = [
  deliverAll,
  begin('documents catch-up'),
  all,
  begin('connections catch-up'),
  all,
  ...moved,
  deliverAll,
  beginAs('documents catch-up', { late: 2, hides: false }),
  all,
  beginAs('connections catch-up', { late: 2, hides: false }),
  all,
];

/** The service hides a state until its events are `missing`, and returns it after other events. */
const untilMissing = (read: ReadKind): Step[] =>
  Array.from({ length: recordPolicy.notFoundAttemptsMax + 1 }, () => [
    beginAs(read, { late: 0, hides: true }),
    all,
  ]).flat();
const hidden: readonly Step[] = [
  changed('add'),
  deliverAll,
  ...untilMissing('documents catch-up'),
  ...untilMissing('connections catch-up'),
  ...moved,
];

const examples: readonly History[] = [
  ...failedOnce.map((steps) => ({ habits, steps })),
  { habits: { ...habits, answers: 'late' }, steps: late },
  { habits: { ...habits, answers: 'anyhow' }, steps: hidden },
];

const seed = Number(process.env.SEED ?? 20_261_121);
const numRuns = cases(200, 1_200);
const sideBySide = 604;

/** Plays a history alone that failed together with others, so that fast-check can shrink it. */
const alone = fc.asyncProperty(history, async (one) => {
  const [played] = await playHistories(warehouse, [one]);
  if (played !== undefined) compare(played);
});

function compare({ caughtUp, backfilled }: Played): void {
  expect(caughtUp.stored).toEqual(caughtUp.expected);
  expect(backfilled.stored).toEqual(backfilled.expected);
}

test(`events in any order, number and grouping, with reads at any moment, lead to the state of the service (seed ${seed})`, {
  timeout: 600_000,
}, async () => {
  const histories = [...examples, ...fc.sample(history, { seed, numRuns })];
  for (let from = 0; from < histories.length; from += sideBySide) {
    const played = await playHistories(warehouse, histories.slice(from, from + sideBySide));
    for (const [at, one] of played.entries()) {
      try {
        compare(one);
      } catch (error) {
        const random = from + at - examples.length;
        if (random >= 0)
          await fc.assert(alone, { seed, path: String(random), interruptAfterTimeLimit: 60_000 });
        throw error;
      }
    }
  }
});
