import { sql } from 'drizzle-orm';
import type { Undecided } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { deletes } from '../schema/metersync.ts';
import { documents } from '../schema/utility.ts';
import { waits } from './explained.ts';
import { note, rowsOfNote } from './tombstone.ts';

/** Above this number of bills their cost is not reported, because each record has to be read for it. */
const billsMax = 1_000;

/** Reads what waits for a decision, of at most so many notes. */
export async function readUndecided(db: Executor, most: number): Promise<Undecided> {
  const { rows } = await db.execute<{
    resource: string;
    rows: number;
    companies: string[];
    listed: number;
  }>(sql`
    select
      resource,
      sum(rows)::int as rows,
      coalesce(array_agg(distinct company_id::text) filter (where company_id is not null), '{}') as companies,
      coalesce(sum(rows) filter (where reason = 'listed'), 0)::int as listed
    from (
      select ${note.resource}, ${note.companyId}, ${note.reason}, ${rowsOfNote} as rows
      from ${deletes} ${note}
      where ${waits}
      order by ${note.companyId}, ${note.resource}
      limit ${most}
    ) undecided
    group by resource
    order by resource`);
  const bills = rows.find(({ resource }) => resource === 'documents')?.rows ?? 0;
  return {
    byResource: rows.map(({ resource, rows: count }) => ({ resource, rows: count })),
    companies: new Set(rows.flatMap(({ companies }) => companies)).size,
    listedAsDeleted: rows.reduce((sum, { listed }) => sum + listed, 0),
    cost: bills === 0 || bills > billsMax ? [] : await readCost(db),
  };
}

async function readCost(db: Executor): Promise<string[]> {
  const { rows } = await db.execute<{ cost: string }>(sql`
    select
      concat_ws(
        ' ',
        to_char(
          sum(metersync.amount(coalesce(b.current_charges, b.total_charges))),
          'FM999,999,999,999,990.00'
        ),
        b.currency
      ) as cost
    from ${deletes} ${note}
      join ${documents} on ${documents.id} = metersync.uuid_of(${note.recordId})
      cross join lateral analytics.read_bill(${documents.raw}) b
    where ${note.resource} = 'documents'
      and ${waits}
    group by b.currency
    having count(coalesce(b.current_charges, b.total_charges)) > 0
    order by b.currency`);
  return rows.map(({ cost }) => cost);
}
