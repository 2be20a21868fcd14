import { eq, type SQL, sql } from 'drizzle-orm';
import { array, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { idOf, type RecordResource, resources } from '../resources.ts';
import { companies, connections, documents, meters, sites } from '../schema/utility.ts';

/** The key of a record: the name of its resource, and its id. */
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

/** Reads what people call records; returns a function from a record to its name or null. */
export async function namesOfRecords(
  db: Executor,
  records: readonly RecordKey[],
): Promise<(record: RecordKey) => string | null> {
  const keyOf = ({ resource, id }: RecordKey): string => `${resource}/${id}`;
  const found = new Map<string, string | null>();
  for (const resource of Object.keys(names) as (keyof typeof names)[]) {
    const ids = records.flatMap((record) => (record.resource === resource ? record.id : []));
    if (ids.length === 0) continue;
    const { table } = resources[resource];
    // One by one: for all ids together, Postgres before 17 would read a small table as a whole.
    const named = db
      .select({
        id: sql<string>`${sql`${table.id}`}::text`.as('record_id'),
        name: sql<string | null>`${names[resource]}`.as('record_name'),
      })
      .from(table)
      .where(eq(table.id, idOf(resource, sql`given.id`)))
      .offset(literal(0))
      .as('named');
    const rows = await db
      .select({ id: named.id, name: named.name })
      .from(sql`unnest(${array([...new Set(ids)], 'text')}) as given (id)`)
      .crossJoinLateral(named);
    for (const { id, name } of rows) found.set(keyOf({ resource, id }), name);
  }
  return (record) => found.get(keyOf(record)) || null;
}
