import { sql } from 'drizzle-orm';
import { unnested } from '../connection/arrays.ts';
import type { Executor, Row } from '../connection/connect.ts';
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
  const asked = unnested('asked', records, [
    ['resource', 'text', ({ resource }) => resource],
    ['id', 'text', ({ id }) => id],
  ]);
  const { rows } = await db.execute<Row<RecordKey & KnownRecord>>(sql`
    select asked.resource, asked.id, known.name, known.provider, known.company_id as "companyId"
    from ${asked}
      cross join lateral (
        select name, null as provider, null::uuid as company_id
        from ${companies}
        where asked.resource = 'companies' and id = metersync.uuid_of(asked.id)
        union all
        select name, null, company_id
        from ${sites}
        where asked.resource = 'sites' and id = metersync.uuid_of(asked.id)
        union all
        select datasource, datasource, company_id
        from ${connections}
        where asked.resource = 'connections' and id = metersync.uuid_of(asked.id)
        union all
        select raw -> 'identifiers' -> 0 ->> 'value', null, company_id
        from ${meters}
        where asked.resource = 'meters' and id = asked.id
        union all
        select raw ->> 'invoiceId', raw ->> 'utilityCompany', company_id
        from ${documents}
        where asked.resource = 'documents' and id = metersync.uuid_of(asked.id)
      ) known`);
  const keyOf = ({ resource, id }: RecordKey): string => `${resource}/${id}`;
  const known = new Map(rows.map((row) => [keyOf(row), row]));
  return (record) => known.get(keyOf(record));
}
