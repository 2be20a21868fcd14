import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { idOf, type RecordResource, resources } from '../resources.ts';
import { companies, connections, documents, meters, sites } from '../schema/utility.ts';

/** A record, by the name of its resource. */
export interface RecordKey {
  readonly resource: string;
  readonly id: string;
}

/** What people call records. Usage has no name. */
const names: Readonly<Record<Exclude<RecordResource, 'usageData'>, SQL>> = {
  companies: sql`${companies.name}`,
  sites: sql`${sites.name}`,
  connections: sql`${connections.datasource}`,
  meters: sql`${meters.raw} -> 'identifiers' -> 0 ->> 'value'`,
  documents: sql`${documents.raw} ->> 'invoiceId'`,
};

/**
 * Reads what people call records: the name of a company or site, the provider of a connection, the
 * identifier of a meter, the invoice of a document. Returns a function that finds one; null without.
 */
export async function namesOfRecords(
  db: Executor,
  records: readonly RecordKey[],
): Promise<(record: RecordKey) => string | null> {
  const ids = array([...new Set(records.map(({ id }) => id))], 'text');
  const named = (Object.keys(names) as (keyof typeof names)[]).map((resource) => {
    const { table } = resources[resource];
    // Each is looked up separately. For all together, Postgres before 17 would rather read a small table.
    return sql`
    select ${resource} as resource, found.id, found.name
    from unnest(${ids}) as given (id)
      cross join lateral (
        select ${table.id}::text as id, ${names[resource]} as name
        from ${table}
        where ${table.id} = ${idOf(resource, sql`given.id`)}
        offset 0
      ) found`;
  });
  const { rows } = await db.execute<RecordKey & { name: string | null } & Record<string, unknown>>(
    sql.join(
      named,
      sql`
    union all`,
    ),
  );
  const keyOf = ({ resource, id }: RecordKey): string => `${resource}/${id}`;
  const found = new Map(rows.map((row) => [keyOf(row), row.name]));
  return (record) => found.get(keyOf(record)) || null;
}
