import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { confirmsPass, judgePass, type PageManifest } from '../../service/stability.ts';
import { cases } from '../support/cases.ts';

const page = (asked: number, ids: (string | null)[], more: Partial<PageManifest> = {}): PageManifest => ({
  asked,
  currentPage: asked,
  total: 3,
  hasNext: false,
  ids,
  ...more,
});

describe('a pass', () => {
  const first = page(1, ['a', 'b'], { hasNext: true });
  test.each<[string, PageManifest[]]>([
    ['the last page was not reached', []],
    ['the last page was not reached', [page(1, ['a', 'b', 'c'], { hasNext: true })]],
    ['1 of 2 pages was not the requested page', [first, page(2, ['c'], { currentPage: 1 })]],
    ['1 of 2 pages was not the requested page', [first, page(3, ['c'])]],
    ['1 of 1 page was not the requested page', [page(2, ['a', 'b', 'c'])]],
    ['the total changed between pages', [first, page(2, ['c'], { total: 4 })]],
    ['the total changed between pages', [first, page(2, ['c'], { total: null })]],
    ['1 record came twice', [first, page(2, ['b'])]],
    ['2 distinct records of a total of 3', [page(1, ['a', 'b'])]],
    ['4 distinct records of a total of 3', [first, page(2, ['c', 'd'])]],
    ['1 record has no id', [first, page(2, [null])]],
  ])('is not stable if %s', (reason, manifest) => {
    const judgement = judgePass(manifest);
    expect(judgement.stable).toBe(false);
    expect(judgement.reasons).toContain(reason);
  });

  test('can be stable without totals', () => {
    const manifest = [page(1, ['a', 'b'], { hasNext: true, total: null }), page(2, ['c'], { total: null })];
    expect(judgePass(manifest)).toEqual({ stable: true, reasons: [], distinct: 3, total: null, pages: 2 });
    expect(judgePass([...manifest.slice(0, 1), page(2, ['a'], { total: null })]).stable).toBe(false);
  });
});

/** A change of the listing between two reads. */
type Change =
  | { readonly kind: 'insert'; readonly at: number }
  | { readonly kind: 'delete'; readonly at: number }
  | { readonly kind: 'move'; readonly from: number; readonly to: number };

const at = fc.nat(40);
const insertion = fc.record({ kind: fc.constant('insert' as const), at });
const deletion = fc.record({ kind: fc.constant('delete' as const), at });
const move = fc.record({ kind: fc.constant('move' as const), from: at, to: at });

/** A listing whose deleted ids never come back, and passes over it with the service's answers (service.md 7). */
class Listing {
  ids: string[];
  #next: number;
  readonly #perPage: number;
  readonly #givesTotal: boolean;

  constructor(size: number, perPage: number, givesTotal = true) {
    this.ids = Array.from({ length: size }, (_, index) => `r${index}`);
    this.#next = size;
    this.#perPage = perPage;
    this.#givesTotal = givesTotal;
  }

  apply(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === 'insert') this.ids.splice(change.at % (this.ids.length + 1), 0, `r${this.#next++}`);
      else if (this.ids.length === 0) continue;
      else if (change.kind === 'delete') this.ids.splice(change.at % this.ids.length, 1);
      else {
        const [id] = this.ids.splice(change.from % this.ids.length, 1);
        this.ids.splice(change.to % (this.ids.length + 1), 0, id ?? '');
      }
    }
  }

  read(asked: number): PageManifest {
    const totalPages = Math.max(1, Math.ceil(this.ids.length / this.#perPage));
    const currentPage = Math.min(asked, totalPages);
    const ids = this.ids.slice((currentPage - 1) * this.#perPage, currentPage * this.#perPage);
    const total = this.#givesTotal ? this.ids.length : null;
    return { asked, currentPage, total, hasNext: currentPage < totalPages, ids };
  }

  /** Walks to the end, and applies the changes of each step before it reads the next page. */
  pass(steps: readonly (readonly Change[])[]): PageManifest[] {
    const manifest = [this.read(1)];
    for (const step of steps) {
      const last = manifest.at(-1);
      if (last === undefined || !last.hasNext || last.currentPage !== last.asked) break;
      this.apply(step);
      manifest.push(this.read(last.asked + 1));
    }
    return manifest;
  }
}

const seenIn = (manifest: readonly PageManifest[]) => new Set(manifest.flatMap(({ ids }) => ids));
const sizes = { size: fc.nat(30), perPage: fc.integer({ min: 1, max: 6 }) };
const stepsOf = (change: fc.Arbitrary<Change>) =>
  fc.array(fc.array(change, { maxLength: 3 }), { minLength: 40, maxLength: 40 });
const runs = { numRuns: cases(400, 3_000) };

describe('over a listing that changes while its pages are read', () => {
  test('a pass is stable if nothing changes', () => {
    fc.assert(
      fc.property(fc.record(sizes), fc.boolean(), ({ size, perPage }, givesTotal) => {
        const listing = new Listing(size, perPage, givesTotal);
        const manifest = listing.pass(Array.from({ length: 40 }, () => []));
        expect(judgePass(manifest)).toMatchObject({ stable: true, distinct: size });
      }),
    );
  });

  test('a stable pass missed as many records as it saw records that were deleted later', () => {
    fc.assert(
      fc.property(
        fc.record(sizes),
        stepsOf(fc.oneof(insertion, deletion, move)),
        ({ size, perPage }, steps) => {
          const listing = new Listing(size, perPage);
          const manifest = listing.pass(steps);
          fc.pre(judgePass(manifest).stable);
          const seen = seenIn(manifest);
          const missed = listing.ids.filter((id) => !seen.has(id));
          const gone = [...seen].filter((id) => !listing.ids.includes(id ?? ''));
          expect(missed).toHaveLength(gone.length);
        },
      ),
      runs,
    );
  });

  test.each([
    ['inserted or moved', fc.oneof(insertion, move)],
    ['deleted or moved', fc.oneof(deletion, move)],
    ['moved', move],
  ] as [string, fc.Arbitrary<Change>][])(
    'a stable pass saw exactly the records of the listing if they were only %s',
    (_, change) => {
      fc.assert(
        fc.property(fc.record(sizes), stepsOf(change), ({ size, perPage }, steps) => {
          const listing = new Listing(size, perPage);
          const manifest = listing.pass(steps);
          fc.pre(judgePass(manifest).stable);
          expect([...seenIn(manifest)].sort()).toEqual([...listing.ids].sort());
        }),
        runs,
      );
    },
  );

  test.each([true, false])(
    'a pass that a later pass confirms saw exactly the records at its end (total: %s)',
    (givesTotal) => {
      const change = fc.oneof({ weight: 3, arbitrary: deletion }, { weight: 3, arbitrary: insertion }, move);
      // Most steps change nothing, because otherwise hardly any pass would be stable, and never two in a row.
      const steps = fc.array(
        fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(change, { maxLength: 4 })),
        {
          minLength: 40,
          maxLength: 40,
        },
      );
      fc.assert(
        fc.property(
          fc.record(sizes),
          steps,
          steps,
          fc.array(change, { maxLength: 3 }),
          (shape, one, two, between) => {
            const listing = new Listing(shape.size, shape.perPage, givesTotal);
            const earlier = listing.pass(one);
            const atItsEnd = [...listing.ids].sort();
            listing.apply(between);
            const later = listing.pass(two);
            fc.pre(confirmsPass(earlier, later));
            expect([...seenIn(earlier)].sort()).toEqual(atItsEnd);
          },
        ),
        runs,
      );
    },
  );
});

describe('a later pass confirms an earlier pass', () => {
  const earlier = [page(1, ['a', 'b', 'c'])];
  test.each<[string, boolean, PageManifest[]]>([
    ['when it saw the same', true, [page(1, ['c', 'a', 'b'])]],
    ['when it also saw other records', true, [page(1, ['a', 'b', 'c', 'd'], { total: 4 })]],
    ['even when it is not stable itself', true, [page(1, ['a', 'b', 'c'], { hasNext: true })]],
    ['not when it lacks a record', false, [page(1, ['a', 'b', 'd'])]],
    ['not when it saw nothing', false, []],
  ])('%s', (_, confirmed, later) => {
    expect(confirmsPass(earlier, later)).toBe(confirmed);
  });

  test('but not if the earlier pass is not stable', () => {
    const unstable = [page(1, ['a', 'b'])];
    expect(confirmsPass(unstable, unstable)).toBe(false);
  });
});
