import { sql } from 'drizzle-orm';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';

/**
 * What events tell of companies that are known: `public_id`, which events alone may tell. No event makes the row of a
 * company (see db/strangers.ts), and what the API's record tells is the truth.
 */
export async function applyCompanies(tx: Executor, eventIds: readonly string[]): Promise<void> {
  await tx.execute(sql`
    with named as materialized (
      select distinct on (company_id) company_id as id, payload #>> '{company,publicId}' as public_id
      from metersync.events
      where id = any(${array(eventIds, 'text')}) and payload #>> '{company,publicId}' is not null
      order by company_id, occurred_at desc nulls last, payload -> 'company'
    )
    update utility.companies c set public_id = n.public_id
    from named n where c.id = n.id and c.public_id is null`);
}

/**
 * Events that took effect at once leave nothing to read. Where the company of one is not known it waits all the same, as
 * the service has to be asked about the company.
 */
export async function awaitCompanies(tx: Executor, eventIds: readonly string[]): Promise<number> {
  const result = await tx.execute(sql`
    update metersync.events e set outcome = 'pending', applied_at = null
    where id = any(${array(eventIds, 'text')}) and outcome = 'applied' and not exists (
      select from utility.companies known where known.id = e.company_id)`);
  return result.rowCount ?? 0;
}
