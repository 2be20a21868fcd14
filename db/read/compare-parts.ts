import { type SQL, sql } from 'drizzle-orm';
import { batches } from '../../contract/limits.ts';
import type { Executor } from '../connection/connect.ts';
import { decidedToKeep, note } from '../deletes/tombstone.ts';
import { differ, keyAsText, liesWithin, readingKey } from '../readings/ranges.ts';
import {
  heldReadings,
  incomingReadings,
  type PartRead,
  partsOf,
  type ReadingsRead,
} from '../readings/replace.ts';
import { deletes } from '../schema/reads.ts';
import { documents, usageData } from '../schema/utility.ts';
import type { Difference } from './compare-records.ts';

const fields = ['usage', 'quality', 'updated', 'unreadable'] as const;
type Values = Readonly<Record<(typeof fields)[number], string | null>>;

/**
 * Compares what a read of a meter's readings showed with the warehouse, usage as numbers: 1.5 is 1.50. Readings
 * across the bounds of its range are left out.
 */
export async function compareReadings(
  db: Executor,
  read: Pick<ReadingsRead, 'meterId' | 'readAt' | 'range' | 'pages'>,
): Promise<{ differences: Difference[]; readings: number; unreadable: number }> {
  const differences: Difference[] = [];
  let readings = 0;
  let unreadable = 0;
  for (const part of partsOf(read, batches.readingsWritten)) {
    const compared = await comparePart(db, part);
    differences.push(...compared.differences);
    readings += compared.readings;
    unreadable += compared.unreadable;
  }
  return { differences: differences.sort((a, b) => (a.id < b.id ? -1 : 1)), readings, unreadable };
}

async function comparePart(db: Executor, part: PartRead) {
  const { meterId, range } = part;
  const values = (side: string): SQL => {
    const of = sql.raw(side);
    return sql`jsonb_build_object(
          'usage', trim_scale(${of}.usage)::text,
          'quality', ${of}.quality,
          'updated', ${of}.updated::text,
          'unreadable', ${of}.unreadable::text
        )`;
  };
  const { rows } = await db.execute<{
    readings: number;
    unreadable: number;
    id: string | null;
    is_listed: boolean;
    is_held: boolean;
    is_kept: boolean;
    service: Values;
    warehouse: Values;
  }>(sql`
    with listed as materialized (
      select * from ${incomingReadings(part)} shown where ${liesWithin(range, sql`shown`)}
    ), held as materialized (
      select * from ${heldReadings(part)} stored where ${liesWithin(range, sql`stored`)}
    )
    select
      counted.*,
      ${meterId}::text || ${keyAsText(sql`differing`)} as id,
      is_listed,
      is_held,
      exists (
        select
        from ${deletes} ${note}
        where ${note.meterId} = ${meterId}
          and ${note.usageUnits} = differing.usage_units
          and ${note.startsFrom} <= differing.start_at
          and ${note.startsBefore} > differing.start_at
          and ${decidedToKeep}
      ) as is_kept,
      service,
      warehouse
    from (
        select
          count(*)::int as readings,
          coalesce(sum((select count(*) from jsonb_object_keys(unreadable))), 0)::int as unreadable
        from listed
      ) counted
      left join (
        select
          ${readingKey},
          l.ordinal is not null as is_listed,
          h.ordinal is not null as is_held,
          ${values('l')} as service,
          ${values('h')} as warehouse
        from listed l
          full join held h using (${readingKey})
        where l.ordinal is null
          or h.ordinal is null
          or ${differ('l', 'h')}
      ) differing on true`);
  const differences = rows.flatMap((one): Difference[] => {
    const { id, is_listed, is_held, is_kept, service, warehouse } = one;
    if (id === null) return [];
    if (!is_held) return [{ id, state: 'missing' }];
    if (!is_listed) return [{ id, state: is_kept ? 'kept' : 'extra' }];
    const differing = fields.filter((field) => service[field] !== warehouse[field]);
    return [
      {
        id,
        state: 'different',
        fields: differing.map((field) => ({
          field,
          service: service[field],
          warehouse: warehouse[field],
        })),
      },
    ];
  });
  const { readings = 0, unreadable = 0 } = rows[0] ?? {};
  return { differences, readings, unreadable };
}

/** A row of usage that a bill's record lists and the warehouse lacks, or the other way round. */
interface UnequalUsage {
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
