import { type FailureCode, failureTypes } from './failures.ts';
import { recordPolicy } from './retry-policy.ts';
import { formatSeconds } from './times.ts';
import { countedToMax } from './words.ts';

/** Why work is late: whether reads still settle events, and what keeps most of those that wait. */
export interface LateWork {
  /** How long ago a read last settled events; null if none ever did. */
  readonly settledSecondsAgo: number | null;
  /** The failure that most of the waiting events have, and one of its messages; null before the first. */
  readonly reason: {
    readonly code: FailureCode;
    readonly message: string;
    readonly events: number;
  } | null;
}

const kindsInWords = {
  connection: ['event of a connection', 'events of connections'],
  document: ['event of a document', 'events of documents'],
  interval: ['event of readings', 'events of readings'],
} as const;
type Kind = keyof typeof kindsInWords;

/** What a warehouse's health says of due work. */
interface DueWork {
  readonly oldestDueSeconds: number | null;
  readonly pending: Readonly<Record<Kind, Readonly<Record<'due' | 'waiting' | 'parked', number>>>>;
  readonly late: LateWork | null;
}

interface DueFinding {
  readonly name: 'events';
  readonly word: 'In sync' | 'Catching up' | 'Broken';
  readonly saw: string;
  readonly todo: string | null;
}

/** Judges how long due records wait to be read. Where nothing moves, it says what waits, and why. */
export function judgeDue(work: DueWork): DueFinding {
  const name = 'events';
  const seconds = work.oldestDueSeconds;
  if (seconds === null || seconds <= recordPolicy.lagSeconds)
    return { name, word: 'In sync', saw: 'due records are read at once', todo: null };
  const reason = standsStill(work, seconds) ? work.late?.reason : undefined;
  const saw = `${describeDue(work, seconds)}${reason ? `: ${reason.message}` : ''}`;
  const why = reason
    ? `${failureTypes[reason.code].operator} To see these events: metersync events list --outcome pending --code ${reason.code}.`
    : undefined;
  if (seconds <= recordPolicy.waitMaxSeconds)
    return { name, word: 'Catching up', saw, todo: why ?? withoutReason(work, seconds) };
  const holdUp =
    'See the log of the workers and metersync doctor: the service, the warehouse or the workers hold it up.';
  return { name, word: 'Broken', saw, todo: why === undefined ? holdUp : `${why} ${holdUp}` };
}

/** Describes work that has been due for so many seconds. */
export function describeDue(work: DueWork, seconds: number): string {
  const due = `work has been due for ${formatSeconds(seconds)}`;
  const { late, pending } = work;
  if (!late) return due;
  const { settledSecondsAgo, reason } = late;
  if (!standsStill(work, seconds))
    return `${due}; events were last settled ${formatSeconds(settledSecondsAgo ?? 0)} ago`;
  const waits = Object.entries(pending).flatMap(([kind, { due: now, waiting, parked }]) => {
    const count = now + waiting + parked;
    const [one, many] = kindsInWords[kind as Kind];
    return count === 0 ? [] : [countedToMax(count, one, many)];
  });
  const since =
    settledSecondsAgo === null
      ? 'no event was ever settled'
      : `no event was settled for ${formatSeconds(settledSecondsAgo)}`;
  const why =
    reason === null
      ? 'none of them was tried yet'
      : `the most frequent reason is ${reason.code} (${countedToMax(reason.events, 'event')})`;
  return `${due}, and ${since}: ${waits.join(' and ')} wait; ${why}`;
}

const withoutReason = (work: DueWork, seconds: number): string =>
  standsStill(work, seconds)
    ? 'See the log of the workers, if it lasts: they have not begun to read what waits.'
    : 'Nothing, unless it grows.';

/** Whether no read has settled events for as long as a catch-up may lag. */
function standsStill({ late }: DueWork, dueSeconds: number): boolean {
  if (!late) return false;
  return Math.min(late.settledSecondsAgo ?? dueSeconds, dueSeconds) > recordPolicy.lagSeconds;
}
