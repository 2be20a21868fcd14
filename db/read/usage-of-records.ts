import { sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { documents, usageData } from '../schema/utility.ts';

/** A row of usage that a bill's record lists and the warehouse lacks, or the other way round. */
export interface UnequalUsage {
  readonly id: string;
  /** The document that lists the row or has it in the warehouse. */
  readonly documentId: string;
  readonly state: 'missing' | 'extra';
}

/**
 * Compares the rows of usage that the records of a company's live documents list with the rows of the warehouse.
 * A row that two records list belongs to one of the two documents. Returns how many rows the records list, too.
 */
export async function compareUsageOfRecords(
  db: Executor,
  companyId: string,
): Promise<{ listed: number; unequal: UnequalUsage[] }> {
  const { rows } = await db.execute<{
    id: string | null;
    is_listed: boolean;
    listed: number;
    bill: string;
  }>(sql`
    with rows_listed as materialized (
      select d.id as bill, metersync.uuid_of(row ->> 'id') as id
      from ${documents} d
        cross join lateral jsonb_array_elements(metersync.elements(d.raw -> 'usageData')) row
      where d.company_id = ${companyId}::uuid
        and d.deleted_at is null
    ), rows_held as materialized (
      select d.id as bill, u.id
      from ${documents} d
        join ${usageData} u on u.document_id = d.id
          and u.deleted_at is null
      where d.company_id = ${companyId}::uuid
        and d.deleted_at is null
        and jsonb_typeof(d.raw -> 'usageData') = 'array'
    ), unequal as (
      select bill, id, l.id is not null as is_listed
      from (select distinct bill, id from rows_listed where id is not null) l
        full join rows_held h using (bill, id)
      where l.id is null
        or h.id is null and not exists (
          select
          from rows_held other
          where other.id = l.id
            and (other.bill, other.id) in (select bill, id from rows_listed)
        )
    )
    select counted.listed, bill, id::text, is_listed
    from (select count(distinct id)::int as listed from rows_listed) counted
      left join unequal on true`);
  return {
    listed: rows[0]?.listed ?? 0,
    unequal: rows.flatMap(({ id, bill, is_listed }) =>
      id === null ? [] : [{ id, documentId: bill, state: is_listed ? 'missing' : 'extra' }],
    ),
  };
}
