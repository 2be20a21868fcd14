import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cases } from '../../support/cases.ts';
import { type DocumentRead, empty, liveUsage, mergeDocument } from './usage.ts';

const documentIds = ['D1', 'D2', 'D3'] as const;
const usageIds = ['u', 'v'] as const;
const lag = 10;

const changes = fc.array(
  fc.record({
    after: fc.constantFrom(1, 5, 15, 40),
    row: fc.constantFrom(...usageIds),
    /** The document that has the row from now on; none if the row is deleted. */
    to: fc.option(fc.constantFrom(...documentIds)),
    /** A document that is deleted, or restored if it is deleted. */
    toggles: fc.option(fc.constantFrom(...documentIds)),
    isSame: fc.boolean(),
    /** Whether the documents that the change concerns get a new `updated`. */
    isDated: fc.boolean(),
  }),
  { minLength: 1, maxLength: 6 },
);

const reads = fc.array(
  fc.record({
    document: fc.constantFrom(...documentIds),
    began: fc.nat({ max: 120 }),
    behind: fc.nat({ max: lag - 1 }),
    takes: fc.nat({ max: 60 }),
  }),
  { maxLength: 10 },
);

const last = fc.shuffledSubarray([...documentIds], { minLength: documentIds.length });

interface State {
  readonly from: number;
  readonly deleted: ReadonlySet<string>;
  readonly rows: ReadonlyMap<string, { readonly document: string; readonly content: string }>;
  readonly updated: ReadonlyMap<string, number>;
}

/** Plays changes and returns the state of the service at any time. */
function play(all: typeof changes extends fc.Arbitrary<infer T> ? T : never) {
  const first: State = { from: -Infinity, deleted: new Set(), rows: new Map(), updated: new Map() };
  const states = [first];
  let now = 0;
  for (const { after, row, to, toggles, isSame, isDated } of all) {
    const before = states.at(-1) as State;
    now += after;
    const from = now;
    const deleted = new Set(before.deleted);
    if (toggles !== null && !deleted.delete(toggles)) deleted.add(toggles);
    const rows = new Map(before.rows);
    const old = rows.get(row);
    const content = isSame && old ? old.content : `at ${from}`;
    if (to === null) rows.delete(row);
    else rows.set(row, { document: to, content });
    const updated = new Map(before.updated);
    if (isDated) for (const id of [old?.document, to, toggles]) if (id) updated.set(id, from);
    states.push({ from, deleted, rows, updated });
  }
  const at = (when: number): State => states.findLast(({ from }) => from <= when) as State;
  return { at, end: now };
}

function readOf({ deleted, rows, updated }: State, document: string, began: number): DocumentRead {
  const own = [...rows].filter(([, row]) => row.document === document);
  return {
    document,
    began,
    since: Math.max(began - lag, Math.min(updated.get(document) ?? 0, began)),
    usage: deleted.has(document)
      ? null
      : new Map(own.map(([id, row]): [string, string] => [id, row.content]).sort()),
  };
}

test('after each document was read once while the service is quiet, usage is right', () => {
  fc.assert(
    fc.property(changes, reads, last, (all, early, order) => {
      const { at, end } = play(all);
      const merged = early.toSorted((a, b) => a.began + a.takes - b.began - b.takes);
      let warehouse = merged.reduce(
        (held, { document, began, behind }) =>
          mergeDocument(held, readOf(at(began - behind), document, began)),
        empty,
      );
      let now = Math.max(end, 200) + 2 * lag;
      const readAll = (): void => {
        for (const document of order) warehouse = mergeDocument(warehouse, readOf(at(now), document, now++));
      };
      readAll();
      const { deleted, rows } = at(now);
      const expected = [...rows]
        .filter(([, { document }]) => !deleted.has(document))
        .map(([id, { document, content }]) => [id, `${content} of ${document}`])
        .sort();
      expect(liveUsage(warehouse)).toEqual(Object.fromEntries(expected));
      readAll();
      const quiet = warehouse;
      now += 2 * lag;
      readAll();
      expect(warehouse).toBe(quiet);
    }),
    { numRuns: cases(5000, 100_000) },
  );
});
