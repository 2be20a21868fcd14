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

/** What people know of a record: its name or number, its provider, and the company that it belongs to. */
export interface KnownRecord {
  readonly name: string | null;
  readonly provider: string | null;
  readonly companyId: string | null;
}

const none = sql`null`;

/** What people know of records. Usage has no name. */
const known: Readonly<
  Record<Exclude<RecordResource, 'usageData'>, Readonly<Record<keyof KnownRecord, SQL>>>
> = {
  companies: { name: sql`${companies.name}`, provider: none, companyId: none },
  sites: { name: sql`${sites.name}`, provider: none, companyId: sql`${sites.companyId}` },
  connections: {
    name: sql`${connections.datasource}`,
    provider: sql`${connections.datasource}`,
    companyId: sql`${connections.companyId}`,
  },
  meters: {
    name: sql`${meters.raw} -> 'identifiers' -> 0 ->> 'value'`,
    provider: none,
    companyId: sql`${meters.companyId}`,
  },
  documents: {
    name: sql`${documents.raw} ->> 'invoiceId'`,
    provider: sql`${documents.raw} ->> 'utilityCompany'`,
    companyId: sql`${documents.companyId}`,
  },
};

/** The company of a row as a record, if it has one. */
export const companyOf = ({ companyId }: { readonly companyId: string | null }): RecordKey[] =>
  companyId === null ? [] : [{ resource: 'companies', id: companyId }];

/** Reads what people call records; returns a function from a record to its name or null. */
export async function namesOfRecords(
  db: Executor,
  records: readonly RecordKey[],
): Promise<(record: RecordKey) => string | null> {
  const of = await knownOfRecords(db, records);
  return (record) => of(record)?.name || null;
}

/** Reads what people know of records; returns undefined for records that the warehouse does not have. */
export async function knownOfRecords(
  db: Executor,
  records: readonly RecordKey[],
): Promise<(record: RecordKey) => KnownRecord | undefined> {
  const keyOf = ({ resource, id }: RecordKey): string => `${resource}/${id}`;
  const found = new Map<string, KnownRecord>();
  for (const resource of Object.keys(known) as (keyof typeof known)[]) {
    const ids = records.flatMap((record) => (record.resource === resource ? record.id : []));
    if (ids.length === 0) continue;
    const { table } = resources[resource];
    const { name, provider, companyId } = known[resource];
    // One by one: for all ids together, Postgres before 17 would read a small table as a whole.
    const named = db
      .select({
        id: sql<string>`${sql`${table.id}`}::text`.as('record_id'),
        name: sql<string | null>`${name}`.as('record_name'),
        provider: sql<string | null>`${provider}`.as('record_provider'),
        companyId: sql<string | null>`${companyId}::text`.as('record_company'),
      })
      .from(table)
      .where(eq(table.id, idOf(resource, sql`given.id`)))
      .offset(literal(0))
      .as('named');
    const rows = await db
      .select({
        id: named.id,
        name: named.name,
        provider: named.provider,
        companyId: named.companyId,
      })
      .from(sql`unnest(${array([...new Set(ids)], 'text')}) as given (id)`)
      .crossJoinLateral(named);
    for (const { id, ...row } of rows) found.set(keyOf({ resource, id }), row);
  }
  return (record) => found.get(keyOf(record));
}
