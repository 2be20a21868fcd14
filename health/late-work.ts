import type { RecordEventKind } from '../contract/event.ts';
import { failureTypes } from '../contract/failures.ts';
import { recordPolicy } from '../contract/retry-policy.ts';
import { formatSeconds } from '../contract/times.ts';
import { countedToMax } from '../contract/words.ts';
import type { Found } from './finding-type.ts';
import type { Health, TemporalHealth, WarehouseHealth } from './measured.ts';

/** Judges whether work has waited for more than `from` and at most `to` seconds. */
export function judgeLate(from: number, to = Number.POSITIVE_INFINITY) {
  return (health: Health): readonly Found[] | undefined => {
    const { warehouse, temporal } = health;
    const records = 'away' in warehouse ? null : warehouse.oldestDueSeconds;
    const found: Found[] = [];
    if (!('away' in warehouse) && records !== null && records > from && records <= to)
      found.push(describeDue(warehouse, records));
    const groups = 'away' in temporal ? 0 : waitingGroups(temporal, from);
    if (groups > 0)
      found.push({
        saw: `${countedToMax(groups, 'group')} of events waited for more than ${formatSeconds(from)} to be recorded`,
      });
    if (found.length === 0 && ('away' in warehouse || 'away' in temporal)) return undefined;
    return found.slice(0, 1);
  };
}

/** Counts groups of events that are not recorded yet, which only Temporal knows. */
const waitingGroups = ({ lateGroups, stalledGroups }: TemporalHealth, from: number): number =>
  from === recordPolicy.waitMaxSeconds ? stalledGroups : stalledGroups > 0 ? 0 : lateGroups;

const kindsInWords: Readonly<Record<RecordEventKind, readonly [string, string]>> = {
  connection: ['event of a connection', 'events of connections'],
  document: ['event of a document', 'events of documents'],
  interval: ['event of readings', 'events of readings'],
};

/** Describes work that has been due for so many seconds. If no event is settled any more, says what waits and why. */
function describeDue({ late, pending }: WarehouseHealth, seconds: number): Found {
  const due = `work has been due for ${formatSeconds(seconds)}`;
  if (!late) return { saw: due };
  const { settledSecondsAgo, reason } = late;
  if (Math.min(settledSecondsAgo ?? seconds, seconds) <= recordPolicy.lagSeconds)
    return { saw: `${due}; events were last settled ${formatSeconds(settledSecondsAgo ?? 0)} ago` };
  const waits = (Object.keys(kindsInWords) as RecordEventKind[]).flatMap((kind) => {
    const { due: now, waiting, parked } = pending[kind];
    const count = now + waiting + parked;
    return count === 0 ? [] : [countedToMax(count, ...kindsInWords[kind])];
  });
  const since =
    settledSecondsAgo === null
      ? 'no event was ever settled'
      : `no event was settled for ${formatSeconds(settledSecondsAgo)}`;
  const saw = `${due}, and ${since}: ${waits.join(' and ')} wait`;
  if (reason === null)
    return {
      saw: `${saw}; none of them has been tried yet`,
      todo: 'See the log of the workers and metersync doctor: the workers have not begun to read what waits.',
    };
  const { code, events } = reason;
  return {
    saw: `${saw}; the most frequent reason is ${code} (${countedToMax(events, 'event')})`,
    todo: `${failureTypes[code].operator} To see these events: metersync events list --outcome pending --code ${code}.`,
  };
}
