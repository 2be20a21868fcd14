import type { RecordEventKind } from '../contract/event.ts';
import { type FailureCode, failureTypes } from '../contract/failures.ts';
import { notifyPolicy, recordPolicy } from '../contract/retry-policy.ts';
import { formatSeconds, formatTime, rfc3339 } from '../contract/times.ts';
import { countedToMax, eventsGivenUp } from '../contract/words.ts';
import { type AlarmType, answers, type Found, foundIf, increase, inWarehouse } from './finding-type.ts';
import type {
  Health,
  ParkedWork,
  RefusedDeliveries,
  Silence,
  TemporalHealth,
  WarehouseHealth,
} from './measured.ts';

/** Whether no event came for longer than SILENCE_HOURS; 0 turns that off. */
const isQuiet = ({ quietSeconds }: Silence, silenceHours: number): boolean =>
  silenceHours > 0 && quietSeconds !== null && quietSeconds > silenceHours * 3_600;

/** Failures that keep everything from being read have findings of their own. */
const ofAll: readonly FailureCode[] = ['SERVICE_KEY_REFUSED', 'SERVICE_OUTAGE'];

const parkedFor = (code: FailureCode) =>
  inWarehouse(({ parked }) =>
    parked
      .filter((work) => work.code === code)
      .map((work) => {
        const { brief: _, ...found } = describeParked(work);
        return { ...found, saw: `${code}: ${failureTypes[code].means}` };
      }),
  );

const describeParked = ({ code, events, parts }: ParkedWork): Found => {
  const what = [
    ...(events > 0 ? [countedToMax(events, 'event')] : []),
    ...(parts > 0 ? [`${countedToMax(parts, 'part')} of backfills`] : []),
  ];
  return {
    saw: `${code}: ${what.join(' and ') || 'nothing waits yet'}`,
    brief: `${what.join(' and ').replace(' of backfills', '') || 'work'} parked`,
    todo: failureTypes[code].operator,
    counts: { events, parts },
  };
};

/** With this many refused deliveries, and none accepted since the first of them, the secret is wrong. */
const refusedMin = 2;

/** Judges whether all signed deliveries are refused. Strangers do not sign what they send. */
function judgeRefused(refused: RefusedDeliveries | null, { lastEventAt }: Silence): readonly Found[] {
  if (refused === null || refused.untilSecondsAgo > notifyPolicy.refusedSeconds) return [];
  const deliveries = Object.values(refused.reasons).reduce((sum, count) => sum + count, 0);
  const wasTaken =
    lastEventAt !== null && Date.parse(rfc3339(lastEventAt)) > Date.parse(rfc3339(refused.since));
  if (deliveries < refusedMin || wasTaken) return [];
  return [
    {
      saw: `all ${countedToMax(deliveries, 'delivery', 'deliveries')} since ${formatTime(refused.since)} were refused: ${whyRefused(refused)}`,
      counts: { deliveries },
    },
  ];
}

/** Names the reasons for which deliveries were refused. */
export const whyRefused = ({ reasons }: Pick<RefusedDeliveries, 'reasons'>): string =>
  Object.keys(reasons)
    .map((reason) => reasonsInWords[reason] ?? reason)
    .join(', ');

/**
 * Judges whether deliveries were refused whose events nothing has replaced yet. A person has to act if some
 * deliveries are still refused after minutes, although others are accepted.
 */
function judgeUnread(refused: RefusedDeliveries | null, silence: Silence): readonly Found[] {
  if (refused === null || refused.unread === 0 || judgeRefused(refused, silence).length > 0) return [];
  const isOver =
    refused.untilSecondsAgo > (2 * notifyPolicy.refusedEveryMs) / 1_000 ||
    refused.lastedSeconds <= notifyPolicy.refusedSeconds;
  const deliveries = countedToMax(refused.unread, 'delivery', 'deliveries');
  const were = refused.unread === 1 ? 'was' : 'were';
  return [
    {
      saw: `${deliveries} ${were} refused, the last at ${formatTime(refused.until)} (${whyRefused(refused)}), and since then no backfill or reconcile has read all companies`,
      brief: `${deliveries} ${were} refused`,
      ...(isOver
        ? {
            word: 'Catching up',
            todo: 'Nothing: the next complete reconcile or backfill ends it. metersync backfill all reads everything now.',
          }
        : {}),
    },
  ];
}

const reasonsInWords: Readonly<Record<string, string>> = {
  'signature-wrong': 'wrong signature',
  'timestamp-old': 'the time is too old',
  'timestamp-new': 'the time is in the future',
};

/** Findings about events: whether they come, are recorded, and can be applied. */
export const eventFindings = {
  KeyRefused: {
    name: 'API key',
    severity: 'page',
    means: 'The service refuses the API key, so nothing is read.',
    judge: parkedFor('SERVICE_KEY_REFUSED'),
    forMinutes: 5,
    todo: 'Set a valid `SERVICE_API_KEY`, restart the workers, and run `metersync resume`.',
    todoInSandbox:
      'End the fault that somebody set in the sandbox (see docs/reference/sandbox.md), or restart `metersync start`, which reads the key of its sandbox. Then run `metersync resume`.',
  },
  ServiceDown: {
    name: 'service',
    severity: 'page',
    means: 'The service fails every request for data, so nothing is read.',
    judge: parkedFor('SERVICE_OUTAGE'),
    forMinutes: 5,
    todo: 'Ask the operator of the service. Meanwhile nothing is given up.',
    todoInSandbox:
      'End the fault that somebody set in the sandbox (see docs/reference/sandbox.md), or restart `metersync start`. Meanwhile nothing is given up.',
  },
  SignaturesRefused: {
    name: 'signatures',
    severity: 'page',
    means: 'Deliveries arrive, but none has a valid signature.',
    judge: inWarehouse(({ refused, silence }) => judgeRefused(refused, silence)),
    promql: `${increase(`${answers}{code="401"}`, 15)} > 20 unless ${increase(`${answers}{reason="durable"}`, 15)} > 0`,
    forMinutes: 5,
    todo: 'Compare the secret with the one that the portal shows for the endpoint (`metersync webhooks portal`), correct `WEBHOOK_SECRETS` and restart the receivers. A proxy has to pass bodies on unchanged. The service repeats refused deliveries.',
    todoInSandbox:
      "Restart `metersync start`: it reads the signing secret of the sandbox's endpoint, and the sandbox repeats refused deliveries.",
  },
  EventsStalled: {
    name: 'events',
    severity: 'page',
    means: 'For 15 minutes, events have waited to be recorded, or records have waited to be read.',
    judge: judgeLate(recordPolicy.waitMaxSeconds),
    forMinutes: 5,
    todo: 'Look at the log of the workers and run `metersync doctor`. The service, the warehouse or the workers hold the events up.',
  },
  Silent: {
    name: 'silence',
    severity: 'page',
    means: 'No event came for longer than SILENCE_HOURS.',
    judge: ({ warehouse, temporal }) => {
      if ('away' in warehouse) return undefined;
      const { silence, silenceHours } = warehouse;
      if (!isQuiet(silence, silenceHours)) return [];
      // Nobody knows when events arrived that Temporal still holds.
      if (!('away' in temporal) && temporal.openGroups > 0) return undefined;
      return [
        {
          saw: `no event came ${silence.lastEventAt === null ? 'since the first backfill began: ' : 'for '}${formatSeconds(silence.quietSeconds ?? 0)} (SILENCE_HOURS is ${silenceHours})`,
        },
      ];
    },
    forMinutes: 15,
    todo: 'The service disables a webhook endpoint after 5 days of failed deliveries; yours may be disabled. Run `metersync doctor`, enable the endpoint in the portal (`metersync webhooks portal`), and replay the failed deliveries there.',
  },
  DeliveriesRefused: {
    name: 'refused deliveries',
    severity: 'ticket',
    means: 'Some signed deliveries are refused, although others are accepted.',
    judge: inWarehouse(({ refused, silence }) => judgeUnread(refused, silence)),
    forMinutes: 15,
    todo: 'Look at the failed deliveries in the portal (`metersync webhooks portal`). Give all receivers the secrets of all endpoints, and restart them. If the portal shows no failed delivery, somebody forges them: acknowledge the finding with `metersync alerts acknowledge DeliveriesRefused`.',
  },
  ChangesMissed: {
    name: 'missed changes',
    severity: 'ticket',
    means: 'Runs found changes that no event reported, and no event has come since.',
    judge: ({ warehouse, temporal }) => {
      if ('away' in warehouse) return undefined;
      const { silence } = warehouse;
      if (silence.missedRows === 0) return [];
      // Events that Temporal holds may be about these changes.
      if ('away' in temporal || temporal.lateGroups > 0) return undefined;
      return [describeMissed(silence)];
    },
    forMinutes: 0,
    todo: 'The run repaired the data. Run `metersync doctor`, and find out in the portal (`metersync webhooks portal`) why no event came.',
  },
  Parked: {
    name: 'parked',
    severity: 'ticket',
    means: 'Work is parked until somebody acts.',
    judge: inWarehouse(({ parked }) =>
      parked
        .filter(({ code }) => !ofAll.includes(code))
        .map((work) => ({ ...describeParked(work), labels: { code: work.code } })),
    ),
    forMinutes: 10,
    todo: 'Do what `metersync status` says, then run `metersync resume --code CODE`.',
  },
  EventsDead: {
    name: 'dead events',
    severity: 'ticket',
    means: 'Events cannot be applied.',
    judge: inWarehouse(({ dead }) =>
      foundIf(dead > 0, () => {
        const saw = `${eventsGivenUp(dead)} cannot be applied`;
        return { saw, brief: saw, counts: { events: dead } };
      }),
    ),
    forMinutes: 0,
    todo: 'See why with `metersync events list --outcome dead`. Fix the cause, then run `metersync events replay --outcome dead`. If an event cannot be fixed, acknowledge the finding: `metersync alerts acknowledge EventsDead`.',
  },
  EventsMissing: {
    name: 'missing events',
    severity: 'ticket',
    means: 'The service does not have records that events of the last day named.',
    judge: inWarehouse(({ missingLately: events }) =>
      foundIf(events > 0, {
        saw: `${eventsGivenUp(events)} of the last day: the service never showed their state`,
        brief: `${eventsGivenUp(events)} without a record`,
        counts: { events },
      }),
    ),
    // The event of the deletion may be late: the service's fourth try comes after 35 minutes.
    forMinutes: 60,
    todo: 'See `metersync events list --outcome missing`, and ask the service about the records. A backfill that finds them settles their events.',
  },
} as const satisfies Readonly<Record<string, AlarmType>>;

/** If events came after the change, the endpoint works, and only some events were lost. */
function describeMissed({
  missedRows,
  missedCompanies,
  missedAt,
  quietSeconds,
  lastEventAt,
}: Silence): Found {
  const rows = `${countedToMax(missedRows, 'change')} in ${countedToMax(missedCompanies, 'company', 'companies')}`;
  const comes = quietSeconds !== null && lastEventAt !== null && missedAt !== null && lastEventAt > missedAt;
  const found = {
    saw: `${rows} came without an event, the last at ${formatTime(missedAt ?? '')}; the run stored them`,
    brief: `${countedToMax(missedRows, 'change')} came without an event`,
    counts: { rows: missedRows, companies: missedCompanies },
  };
  if (!comes) return { ...found, todo: eventFindings.Silent.todo };
  return {
    ...found,
    word: 'In sync',
    todo: 'Nothing: the data is stored, and events arrive again. If you want the lost events as well, replay the deliveries of that time in the portal (metersync webhooks portal).',
  };
}

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
