import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { type RecordResource, recordResources, resources } from '../resources.ts';
import { dataIssues } from '../schema/ops.ts';

/** Number of values of live records that no column can hold, in one company or all (null). */
export const unreadableIn = (
  resource: RecordResource,
  companyId: string | null,
  most: number | null = null,
): SQL => {
  const { table } = resources[resource];
  const owner = resource === 'companies' ? table.id : table.companyId;
  const ofCompany = companyId === null ? sql`` : sql`and ${owner} = ${companyId}::uuid`;
  return sql`(
        select count(*)
        from (
            select ${table.unreadable} as values
            from ${table}
            where ${table.unreadable} is not null
              and ${table.deletedAt} is null
              ${ofCompany}
            limit ${most}
          ) records
          cross join lateral jsonb_object_keys(records.values)
      )`;
};

/** Number of readings with such values by the open issues, because readings have no such index. */
const unreadableReadings = sql`(
        select coalesce(sum((${dataIssues.evidence} ->> 'readings')::bigint), 0)
        from ${dataIssues}
        where ${dataIssues.checkName} = 'unreadable_reading'
          and ${dataIssues.closedAt} is null
      )`;

/**
 * Counts the values of live records that no column can hold, in at most `most` records of each
 * resource, and the readings with such values.
 */
export async function countUnreadable(db: Executor, most: number): Promise<number> {
  const ofRecords = recordResources.map((resource) => unreadableIn(resource, null, most));
  const counts = [...ofRecords, unreadableReadings];
  const { rows } = await db.execute<{ values: number }>(
    sql`select (${sql.join(counts, sql` + `)})::int as values`,
  );
  return rows[0]?.values ?? 0;
}
