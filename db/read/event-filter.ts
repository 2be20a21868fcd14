import { and, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { EventOutcome } from '../../contract/names.ts';
import { isAmong } from '../connection/arrays.ts';

/** Selects events; an absent bound selects all. Times are ISO 8601, by the receiver's clock. */
export interface EventFilter {
  readonly ids?: readonly string[] | undefined;
  readonly type?: string | undefined;
  readonly outcome?: EventOutcome | undefined;
  readonly recordId?: string | undefined;
  /** Company that the event names. */
  readonly companyId?: string | undefined;
  /** Only pending events of the company's connections and documents that wait to be read. */
  readonly queueOf?: string | undefined;
  readonly code?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** Only events that are not applied. */
  readonly unapplied?: boolean | undefined;
}

type Columns = 'id' | 'type' | 'outcome' | 'recordId' | 'companyId' | 'errorCode' | 'receivedAt';

/** The condition that an event matches a filter. Absent bounds are not part of it. */
export function matching(
  event: Readonly<Record<Columns, SQLWrapper>>,
  filter: EventFilter,
): SQL | undefined {
  const { ids, type, outcome, recordId, companyId, code, since, until, unapplied } = filter;
  return and(
    ids && isAmong(event.id, ids),
    given(type, (value) => sql`${event.type} = ${value}`),
    given(outcome, (value) => sql`${event.outcome} = ${value}`),
    given(recordId, (value) => sql`${event.recordId} = ${value}`),
    given(companyId, (value) => sql`${event.companyId} = ${value}::uuid`),
    given(code, (value) => sql`${event.errorCode} = ${value}`),
    given(since, (value) => sql`${event.receivedAt} >= ${value}::timestamptz`),
    given(until, (value) => sql`${event.receivedAt} < ${value}::timestamptz`),
    unapplied ? sql`${event.outcome} <> 'applied'` : undefined,
  );
}

/** Returns the bound for a value if the value is given. An empty text counts as given. */
const given = (value: string | undefined, bound: (value: string) => SQL): SQL | undefined =>
  value === undefined ? undefined : bound(value);
