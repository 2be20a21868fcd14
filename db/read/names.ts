import { sql } from 'drizzle-orm';
import { canonicalUuid } from '../../contract/ids.ts';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { companies, connections, documents, meters, sites } from '../schema/utility.ts';

/** A record, by the name of its resource. */
export interface RecordKey {
  readonly resource: string;
  readonly id: string;
}

/**
 * Reads what people call records: the name of a company or site, the provider of a connection, the
 * identifier of a meter, the invoice of a document. Returns a function that finds one; null without.
 */
export async function namesOfRecords(
  db: Executor,
  records: readonly RecordKey[],
): Promise<(record: RecordKey) => string | null> {
  const ids = [...new Set(records.map(({ id }) => id))];
  const uuids = array(
    ids.flatMap((id) => canonicalUuid(id) ?? []),
    'uuid',
  );
  const { rows } = await db.execute<
    RecordKey & { name: string | null } & Record<string, unknown>
  >(sql`
    select
      'companies' as resource,
      ${companies.id}::text as id,
      ${companies.name} as name
    from ${companies}
    where ${companies.id} = any(${uuids})
    union all
    select
      'sites',
      ${sites.id}::text,
      ${sites.name}
    from ${sites}
    where ${sites.id} = any(${uuids})
    union all
    select
      'connections',
      ${connections.id}::text,
      ${connections.datasource}
    from ${connections}
    where ${connections.id} = any(${uuids})
    union all
    select
      'meters',
      ${meters.id},
      ${meters.raw} -> 'identifiers' -> 0 ->> 'value'
    from ${meters}
    where ${meters.id} = any(${array(ids, 'text')})
    union all
    select
      'documents',
      ${documents.id}::text,
      ${documents.raw} ->> 'invoiceId'
    from ${documents}
    where ${documents.id} = any(${uuids})`);
  const keyOf = ({ resource, id }: RecordKey): string => `${resource}/${id}`;
  const names = new Map(rows.map((row) => [keyOf(row), row.name]));
  return (record) => names.get(keyOf(record)) || null;
}
