import fc from 'fast-check';
import {
  type Absence,
  answeredWithin,
  decide,
  type Fences,
  isAbsenceSkipped,
  isSkipped,
  mergeAbsence,
  mergeHint,
  mergeNotFound,
  mergeRead,
  type Read,
  type Registers,
  settleHint,
  shown,
  shownRead,
  unknown,
} from './rules.ts';

/**
 * Random histories of one record of a service with three companies, and what a warehouse sees of
 * them: events that are lost, late or forged, listings whose pages are merged late, repeated or
 * overtaken, answers that lag, a service whose clock is wrong, and decisions of a person.
 */

export const companies = ['A', 'B', 'C'] as const;

/** How far an answer may lag, with the difference of the clocks. */
export const lag = 10;

/** How long after its request an answer is merged at the latest. A frozen worker is slow. */
const merges = 60;

/** What the service has of the record from a time on; null if it is deleted. */
interface State {
  readonly from: number;
  readonly record: {
    readonly updated: number | null;
    readonly content: string;
    readonly listers: readonly string[];
    readonly isNamed: boolean;
  } | null;
}

const changes = ['edit', 'silent', 'delete', 'move', 'both', 'rollback', 'restore'] as const;

export const history = fc.record({
  /** How far the service's clock is ahead. */
  skew: fc.integer({ min: -3, max: 3 }),
  /** Whether records have `updated`, and whether they name their company. */
  isVersioned: fc.boolean(),
  isNamed: fc.boolean(),
  changes: fc.array(
    fc.record({
      after: fc.constantFrom(1, 2, 5, 15, 40),
      change: fc.constantFrom(...changes),
      company: fc.constantFrom(...companies),
      /** Whether the change keeps `updated` and the content, as far as it can. */
      isSame: fc.boolean(),
      back: fc.nat({ max: 3 }),
      /** When the deliveries of its event arrive; none if it is lost. */
      arrives: fc.array(fc.constantFrom(0, 1, 3, 30, 80), { maxLength: 2 }),
    }),
    { minLength: 1, maxLength: 8 },
  ),
  forged: fc.array(
    fc.record({
      at: fc.nat({ max: 120 }),
      company: fc.constantFrom(...companies, 'unknown'),
      deletes: fc.boolean(),
      updated: fc.option(fc.integer({ min: -5, max: 200 })),
    }),
    { maxLength: 2 },
  ),
  listings: fc.array(
    fc.record({
      began: fc.nat({ max: 150 }),
      company: fc.constantFrom(...companies),
      behind: fc.integer({ min: -answeredWithin, max: lag - 4 }),
      merged: fc.nat({ max: merges }),
      again: fc.option(fc.nat({ max: merges })),
      isProved: fc.boolean(),
      isHeld: fc.boolean(),
    }),
    { maxLength: 8 },
  ),
  decisions: fc.array(
    fc.record({
      at: fc.nat({ max: 200 }),
      decision: fc.constantFrom<'approve' | 'reject'>('approve', 'reject'),
    }),
    { maxLength: 2 },
  ),
  /** How far each read by id lags, or is answered after it began, and how long it takes. */
  drains: fc.array(
    fc.record({ behind: fc.integer({ min: -answeredWithin, max: lag - 4 }), takes: fc.nat({ max: merges }) }),
    {
      minLength: 1,
      maxLength: 4,
    },
  ),
  last: fc.shuffledSubarray([...companies], { minLength: companies.length }),
});
type History = typeof history extends fc.Arbitrary<infer T> ? T : never;

type ServiceEvent = {
  readonly updated: number | null;
  readonly deletes: boolean;
  readonly content: string;
  readonly company: string;
  readonly arrives: readonly number[];
};

/** Plays the changes. Returns the states of the service and the events that it sends. */
function play({ changes: all, skew, isVersioned, isNamed, forged }: History) {
  const states: State[] = [];
  const events: ServiceEvent[] = forged.map(({ at, ...event }, place) => ({
    ...event,
    content: `forged ${place}`,
    arrives: [at],
  }));
  let now = 0;
  for (const { after, change, company, isSame, back, arrives } of all) {
    now += after;
    const before = states.at(-1)?.record ?? null;
    const updated = isVersioned ? now + skew : null;
    const fresh = { updated, content: `state ${now}`, listers: [company], isNamed };
    const earlier = states[Math.max(0, states.length - 1 - back)]?.record ?? null;
    const send = (record: NonNullable<State['record']>, deletes: boolean) =>
      events.push({
        updated: record.updated,
        deletes,
        content: record.content,
        company: record.listers[0] as string,
        arrives: arrives.map((delay) => now + delay),
      });
    let next: State['record'];
    if (before === null) {
      next = change === 'restore' && earlier !== null && isSame ? earlier : fresh;
      if (next === fresh || !isSame) send(next, false);
    } else if (change === 'delete') {
      next = null;
      send(before, true);
    } else if (change === 'move' || change === 'both') {
      const listers = change === 'move' ? [company] : [before.listers[0] as string, company];
      next = { ...(isSame ? before : fresh), listers: [...new Set(listers)] };
      if (!isSame) send(next, false);
    } else if (change === 'rollback') {
      next = earlier ?? before;
    } else {
      next = { ...fresh, listers: before.listers };
      if (change === 'edit') send(next, false);
    }
    states.push({ from: now, record: next });
  }
  const at = (when: number): State['record'] => states.findLast(({ from }) => from <= when)?.record ?? null;
  return { at, events, end: now };
}

const nameOf = (lister: string, record: NonNullable<State['record']>): string | null =>
  record.isNamed ? lister : null;

/** What a warehouse has at the end of a history, and what the service has. */
export interface Outcome {
  readonly registers: Registers;
  /** What the row has to show; null if the service has no such record. */
  readonly expected: { readonly content: string; readonly company: string } | null;
  /** Whether another backfill writes the row. */
  readonly isWrittenAgain: boolean;
  /** What the row shows after every earlier page and absence was merged once more. */
  readonly afterRepeats: Registers;
}

/** Plays a history, then lists every company once while the service is quiet. */
export function outcomeOf(all: History): Outcome {
  const { at, events, end: lastChange } = play(all);
  let registers = unknown;
  const fences = new Map<string, number>();
  const merged: (() => void)[] = [];
  const work: { readonly at: number; readonly run: () => void }[] = [];
  const later = (when: number, run: () => void): void => {
    work.push({ at: when, run });
  };
  const repeatable = (run: () => void): void => {
    merged.push(run);
    run();
  };

  function list(
    company: string,
    began: number,
    { behind = 0, isProved = true, decision = 'none' as Absence['decision'] } = {},
  ): void {
    const record = at(began - behind);
    if (record?.listers.includes(company)) {
      const read: Read = {
        updated: record.updated,
        began,
        // Two companies may show different fields of one record.
        content: `${record.content} of ${company}`,
        lister: company,
        named: nameOf(company, record),
      };
      if (!isSkipped(registers, read, lag)) registers = mergeRead(registers, read, lag, fences);
    } else if (isProved && !isAbsenceSkipped(registers, lag)) {
      registers = mergeAbsence(registers, company, began, lag, { fences, decision });
    }
    if (isProved) fences.set(company, Math.max(began, fences.get(company) ?? -Infinity));
  }

  /** Reads the record by id because of its hint, and settles the hint if the read shows it. */
  function drain(began: number, behind: number, isLast = false): void {
    const { hint } = registers;
    if (hint === null || hint.settled !== null) return;
    const record = at(began - behind);
    const later = fences as Fences;
    if (record === null) {
      if (!hint.deletes && isLast) {
        registers = mergeNotFound(registers, began, lag, later);
        registers = settleHint(registers, hint.eventId, began);
      }
      return;
    }
    const owner = record.listers[0] as string;
    const lister = record.isNamed ? owner : (shownRead(registers, lag)?.lister ?? null);
    // A record that names no company and was never listed waits for a listing.
    if (lister !== null) {
      const read: Read = {
        updated: record.updated,
        began,
        content: `${record.content} of ${lister}`,
        lister,
        named: nameOf(lister, record),
      };
      registers = mergeRead(registers, read, lag, later);
    }
    const announced = hint.updated === null ? hint.came : Math.min(hint.updated, hint.came + lag);
    const isShown = record.updated !== null && hint.updated !== null && record.updated >= announced;
    if (!hint.deletes && (isShown || isLast)) registers = settleHint(registers, hint.eventId, began);
  }

  for (const [place, event] of events.entries())
    for (const [again, came] of event.arrives.entries())
      later(came, () => {
        if (again > 0) return; // The journal has the event already.
        const { updated, deletes, content, company } = event;
        const hint = { eventId: `e${place}`, updated, deletes, content, company, came };
        registers = mergeHint(registers, { ...hint, settled: null });
        for (const { behind, takes } of all.drains)
          later(came + Math.max(takes, 1 - behind), () => drain(came + Math.min(takes, 1), behind));
      });
  for (const { company, began, behind, merged: takes, again, isProved, isHeld } of all.listings) {
    const decision = isHeld ? 'held' : 'none';
    const run = () => repeatable(() => list(company, began, { behind, isProved, decision }));
    const written = began + Math.max(takes, -behind);
    later(written, run);
    if (again !== null) later(written + again, run);
  }
  for (const { at: when, decision } of all.decisions)
    later(when, () => {
      registers = decide(registers, decision);
    });

  let now = 0;
  while (work.length > 0) {
    work.sort((a, b) => a.at - b.at);
    const next = work.shift();
    if (next === undefined) break;
    now = Math.max(now, next.at);
    next.run();
  }

  // The service is quiet, and no answer lags or is under way.
  now = Math.max(now, lastChange) + 2 * lag;
  drain(now, 0, true);
  now += 2 * lag;
  for (const company of all.last) list(company, now++);

  const before = registers;
  now += 2 * lag;
  for (const company of all.last) list(company, now++);
  const isWrittenAgain = registers !== before;
  registers = before;
  for (const run of merged.slice()) run();

  const record = at(now);
  const listers = record === null ? [] : [...record.listers].sort();
  const owner = listers[0];
  return {
    registers: before,
    expected:
      record === null || owner === undefined
        ? null
        : { content: `${record.content} of ${owner}`, company: owner },
    isWrittenAgain,
    afterRepeats: registers,
  };
}

/** What the row of a history shows. */
export const shownAtEnd = (registers: Registers) => shown(registers, lag);
