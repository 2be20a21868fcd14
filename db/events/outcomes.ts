import { type SQL, sql } from 'drizzle-orm';
import type { FailureCode } from '../../contract/failures.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';

/**
 * Locks events to change their outcome, and skips locked events: another session records them again
 * and has yet to lock their records, so waiting for it could be a deadlock.
 */
export const unlessRecordedAnew: SQL = sql.raw('for no key update skip locked');

/** The assignments that settle an event with an outcome, for an `update` of the journal. */
export const settledAs = (
  outcome: SQL,
  { error, errorCode, attempts }: { error?: SQL; errorCode?: SQL; attempts?: SQL } = {},
): SQL => sql`outcome = ${outcome},
        settled_at = statement_timestamp(),
        queue = null,
        due_at = null,
        error = ${error ?? sql`null`},
        error_code = ${errorCode ?? sql`null`},
        attempts = ${attempts ?? sql`0`}`;

/** The queue of an event of the journal. */
export const queueOfEvent: SQL = sql.raw(`kind || '/' || coalesce(company_id::text, record_id)`);

/** The assignments that make an event wait again, for an `update` of the journal. */
export const waitingAgain: SQL = sql`outcome = 'pending',
        settled_at = null,
        queue = ${queueOfEvent},
        due_at = clock_timestamp(),
        error = null,
        error_code = null,
        attempts = 0`;

/** The assignments that make an event wait after another failed attempt, for an `update` of the journal. */
export const postponedAs = ({
  tried,
  reason,
  wait = backOff(tried),
}: {
  readonly tried: SQL;
  readonly reason: { readonly code: FailureCode; readonly message: string };
  readonly wait?: SQL;
}): SQL => sql`attempts = ${tried} + 1,
        error_code = ${reason.code},
        error = ${reason.message},
        due_at = clock_timestamp() + ${wait}`;

/** The wait after so many failed attempts: it doubles up to the longest of `recordPolicy`. */
export const backOff = (
  tried: SQL,
  firstSeconds: number = recordPolicy.waitFirstSeconds,
): SQL => sql`make_interval(secs => least(
            ${recordPolicy.waitMaxSeconds}::float8,
            ${firstSeconds}::float8 * power(2, least(${tried}, 30))
          ))`;
