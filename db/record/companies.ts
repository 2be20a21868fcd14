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
      from metersync.journal
      where id = any(${array(eventIds, 'text')}) and payload #>> '{company,publicId}' is not null
      order by company_id, occurred_at desc nulls last, payload -> 'company'
    )
    update utility.companies c set public_id = (select n.public_id from named n where n.id = c.id)
    where c.id = any(array(select id from named)) and c.public_id is null`);
}
