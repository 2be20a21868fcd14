import { sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import type { RecordPage } from '../records/page.ts';
import { reportedUsage } from '../records/sources.ts';
import { companyNamed } from '../resources.ts';
import { documents } from '../schema/utility.ts';

/**
 * Locks the documents of a page of usage, in the order that all writers use. Also inserts rows for
 * documents that have none; they are read later. It runs before each page of usage is written, in a
 * snapshot of its own. Measured: 0.16 ms and 4 blocks for one document; 2.7 ms and 400 blocks for a
 * page of 100 new ones.
 */
export async function lockDocuments(tx: Executor, page: RecordPage): Promise<void> {
  await hot(tx, 'lockDocuments').execute(sql`
    with ${reportedUsage(page)}
    insert into ${documents} (id, company_id)
    select distinct on (document_id)
      document_id,
      coalesce(${companyNamed(sql`r`)}, owner)
    from reported
    where document_id is not null
    order by document_id
    -- An update whose condition is false still locks the row.
    on conflict (id) do update set company_id = excluded.company_id where false`);
}
