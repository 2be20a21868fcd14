import { and, type SQL, type Subquery, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { note } from '../deletes/tombstone.ts';
import { keyAsText, liesWithin } from '../records/interval-key.ts';
import { type ListedRange, readingsOfPass } from '../records/listed-readings.ts';
import { deletes } from '../schema/metersync.ts';
import { intervals } from '../schema/utility.ts';
import type { Difference } from './compare-records.ts';

const fields = ['usage', 'quality'] as const;

/** Compares a pass over a range of a meter with the warehouse. */
export async function compareListed(
  tx: Executor,
  { meterId, range, pass }: ListedRange,
): Promise<Difference[]> {
  const reading = sql`reading`;
  const readings = (from: SQL, where?: SQL) =>
    tx
      .select({
        id: sql`${meterId}::text || ${keyAsText(reading)}`.as('id'),
        startAt: sql`start_at`.as('start_at'),
        usageUnits: sql`usage_units`.as('usage_units'),
        usage: sql`usage::text`.as('usage'),
        quality: sql`quality`.as('quality'),
      })
      .from(from)
      .where(and(where, liesWithin(range, reading)));
  const listed = () => readings(sql`(${readingsOfPass(pass)}) ${reading}`);
  const held = () => readings(sql`${intervals} ${reading}`, sql`meter_id = ${meterId}`);
  const isKept = sql<boolean>`exists (
        select
        from ${deletes} ${note}
        where ${note.meterId} = ${meterId}
          and ${note.usageUnits} = found.usage_units
          and ${note.startsFrom} <= found.start_at
          and ${note.startsBefore} > found.start_at
          and ${note.state} in ('rejected', 'undone')
      )`;
  const only = (isListed: boolean, found: Subquery) =>
    tx
      .select({
        isListed: sql<boolean>`${isListed}::boolean`,
        id: sql<string>`id`,
        usage: sql<string | null>`usage`,
        quality: sql<string | null>`quality`,
        kept: isListed ? sql<boolean>`false` : isKept,
      })
      .from(found);
  const unequal = await only(true, listed().exceptAll(held()).as('found')).unionAll(
    only(false, held().exceptAll(listed()).as('found')),
  );
  // A key is on each side at most once.
  const differences = [...Map.groupBy(unequal, ({ id }) => id)].map(([id, sides]): Difference => {
    const [service, warehouse] = [true, false].map((isListed) =>
      sides.find((side) => side.isListed === isListed),
    );
    if (warehouse === undefined) return { id, state: 'missing' };
    if (service === undefined) return { id, state: warehouse.kept ? 'kept' : 'extra' };
    const differing = fields.filter((field) => service[field] !== warehouse[field]);
    return {
      id,
      state: 'different',
      fields: differing.map((field) => ({
        field,
        service: service[field],
        warehouse: warehouse[field],
      })),
    };
  });
  return differences.sort((a, b) => (a.id < b.id ? -1 : 1));
}
