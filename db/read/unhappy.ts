import { type SQL, sql } from 'drizzle-orm';
import { limits } from '../../contract/limits.ts';
import type { EventOutcome } from '../../contract/names.ts';
import type { Executor } from '../connection/connect.ts';
import { event } from './event-filter.ts';
import { foundEvents } from './found-events.ts';

/** Events that were given up for the same failure. */
export interface GivenUpGroup {
  readonly code: string | null;
  readonly events: number;
  /** Companies that they name. */
  readonly companies: number;
  /** When the first and the last of them came. */
  readonly since: string;
  readonly until: string;
  /** The id and the error of one. */
  readonly example: string;
  readonly error: string | null;
}

const most = limits.givenUpMax + 1;

const columns: SQL = sql`${event.id},
        ${event.errorCode},
        ${event.error},
        ${event.companyId},
        ${event.receivedAt}`;

/**
 * Groups dead or missing events by failure, most first. It looks at the last
 * `limits.givenUpMax` of them and one more.
 */
export async function readGivenUp(
  db: Executor,
  outcome: Extract<EventOutcome, 'dead' | 'missing'>,
): Promise<GivenUpGroup[]> {
  const result = await db.execute<GivenUpGroup & Record<string, unknown>>(sql`
    with ${foundEvents({ outcome }, columns, { candidates: most, limit: most })}
    select
      error_code as code,
      count(*)::int as events,
      count(distinct company_id)::int as companies,
      min(received_at)::text as since,
      max(received_at)::text as until,
      min(id) as example,
      min(error) as error
    from found
    group by error_code
    order by count(*) desc, error_code`);
  return result.rows;
}
