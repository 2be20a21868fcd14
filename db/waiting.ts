import { type SQL, sql } from 'drizzle-orm';
import type { CatchUpKind, EventOutcome } from '../contract/names.ts';
import { array } from './arrays.ts';

/** The kind of events that a catch-up is for. */
export const eventKind: Readonly<Record<CatchUpKind, string>> = {
  connections: 'connection',
  documents: 'document',
  intervals: 'interval',
};

/**
 * Whether an event has an outcome, where events are looked up by their own ids or by those of records. The partial indexes of
 * the journal are for those who ask what waits, and cannot serve a value that a sub-select tells: with statistics of
 * a time when nothing waited the planner would read all that waits for the few events that are asked for.
 */
export const hasOutcome = (outcome: EventOutcome, event = ''): SQL =>
  sql.raw(`${event === '' ? '' : `${event}.`}outcome = (select '${outcome}')`);

/**
 * Events of a kind that wait, of some of its owners where they are given: companies, which are found among all that wait,
 * or the meters of intervals, whose events are found by their ids.
 */
export function waitsOf(kind: CatchUpKind, owners?: readonly string[]): SQL {
  const all = sql`kind = ${eventKind[kind]}`;
  if (owners === undefined) return sql`${all} and outcome = 'pending'`;
  if (kind === 'intervals')
    return sql`${all} and record_id = any(${array(owners, 'text')}) and ${hasOutcome('pending')}`;
  return sql`${all} and company_id = any(${array(owners, 'uuid')}) and outcome = 'pending'`;
}

/** Those of them that may be looked at now. */
export const dueOf = (kind: CatchUpKind, owners?: readonly string[]): SQL =>
  sql`${waitsOf(kind, owners)} and coalesce(next_attempt_at, '-infinity') <= clock_timestamp()`;
