import { attemptPolicy } from '../../contract/retry-policy.ts';
import type { ReadRange } from '../../db/readings/ranges.ts';
import { type ReadingsRead, type ReadingsReplaced, replaceReadings } from '../../db/readings/replace.ts';
import { rejectRecords } from '../../db/records/rejected.ts';
import { nothingWritten, type PageWritten } from '../../db/records/write-page.ts';
import { type Walk, walkPages } from '../../service/walk.ts';
import { cancellation } from '../activity-context.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { type ListingPass, type PassPlace, readPass, showsAllOf, showsTheSame } from './listing-pass.ts';
import { noteFields, noteWritten } from './page-write.ts';

export interface IntervalRange extends ReadRange {
  readonly meterId: string;
}

export interface RangeReading {
  readonly lane: 'live' | 'backfill';
  /** Names the notes about readings that are removed or held back. */
  readonly runId: string;
  /** Called after each page. */
  readonly onPage?: (place: PassPlace) => void | Promise<void>;
}

export interface RangeRead {
  readonly written: PageWritten;
  /** Of all passes. */
  readonly pages: number;
  /** Of the last pass. */
  readonly readings: number;
  readonly total: number | null;
  /** Whether the listing was complete and the warehouse has its readings, apart from deletions that are held back. */
  readonly complete: boolean;
  /** Whether the range is not complete because passes over the listing contradict one another. */
  readonly unstable: boolean;
  readonly removed: number;
  readonly heldBack: number;
}

/**
 * Reads a range of a meter's readings to its proved end, and replaces what the warehouse has of it. One pass over
 * the listing is enough if it is consistent and has one page, or if the warehouse has no reading that it lacks.
 * Otherwise a later pass has to show all of it: see `confirmsPass`. What a pass shows that lacks readings is written
 * in the end, too, but removes nothing.
 */
export async function readRange(
  deps: ActivityDependencies,
  range: IntervalRange,
  { lane, runId, onPage }: RangeReading,
): Promise<RangeRead> {
  const { meterId, start, end } = range;
  let before: ListingPass | undefined;
  let pages = 0;
  const replace = async (pass: ListingPass, proof: ReadingsRead['proof']) => {
    const { readAt } = pass;
    return await replaceReadings(deps.warehouse, {
      meterId,
      range: { start, end },
      runId,
      cap: deps.deletesCap,
      readAt,
      pages: pass.pages,
      proof,
    });
  };
  const done = async (pass: ListingPass, replaced: ReadingsReplaced | undefined, complete: boolean) => {
    await rejectRecords(deps.warehouse.db, pass.refused);
    const { inserted = 0, changed = 0, removed = 0, heldBack = 0 } = replaced ?? {};
    const unreadable = pass.pages.reduce((sum, page) => sum + page.unreadable, 0);
    const rejected = pass.refused.length;
    const written = {
      ...nothingWritten,
      inserted,
      changed,
      rejected,
      ...(unreadable > 0 ? { unreadable } : {}),
    };
    noteWritten(deps, 'intervals', written);
    if (removed + heldBack > 0)
      deps.log.info({ meterId, removed, heldBack }, 'the service no longer lists readings of a meter');
    const { readings } = pass.sent;
    return {
      written,
      pages,
      readings,
      total: pass.total,
      complete,
      unstable: !complete && pass.doubt === undefined,
      removed,
      heldBack,
    };
  };
  for (let number = 1; ; number++) {
    const pass = await readPass(
      deps.warehouse,
      meterId,
      () => walkOf(deps, range, lane),
      async (page, place) => {
        await noteFields(deps, 'intervals', page.items);
        await onPage?.(place);
      },
    );
    pages += pass.sent.pages;
    const isWhole = pass.doubt === undefined && !pass.shifted;
    const confirmed =
      before !== undefined && isExact(before) && showsAllOf(pass, before) ? before : undefined;
    if (confirmed !== undefined || (isWhole && !pass.mixed)) {
      const isProved = confirmed !== undefined || pass.sent.pages === 1;
      const replaced = await replace(confirmed ?? pass, isProved ? 'proved' : 'whole');
      if (replaced !== undefined) return await done(confirmed ?? pass, replaced, true);
    }
    // A service whose total is wrong is wrong in each pass.
    const isDoubtful = pass.doubt !== undefined && before?.doubt === pass.doubt && showsTheSame(pass, before);
    if (isDoubtful || number === attemptPolicy.passesMax) {
      // Readings that came twice would be stored twice.
      const replaced = pass.shifted || pass.mixed ? undefined : await replace(pass, 'partial');
      return await done(pass, replaced, false);
    }
    before = pass;
  }
}

/** Whether a pass is exact if a later pass shows all of it. */
const isExact = ({ doubt, shifted, grew }: ListingPass): boolean => doubt === undefined && !shifted && !grew;

const walkOf = (
  { service }: Pick<ActivityDependencies, 'service'>,
  { meterId, start, end }: IntervalRange,
  lane: RangeReading['lane'],
): Walk =>
  walkPages({
    client: service,
    endpoint: 'intervals',
    params: { meterId, ...(start === undefined ? {} : { start }), ...(end === undefined ? {} : { end }) },
    lane,
    signal: cancellation(),
    judged: false,
  });
