import { or, type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { decidedToKeep, note } from '../deletes/tombstone.ts';
import { differ, keyAsText, liesWithin, type ReadRange } from '../records/interval-key.ts';
import { readingsListed } from '../records/listed-readings.ts';
import { deletes } from '../schema/metersync.ts';
import { intervals } from '../schema/utility.ts';
import type { Difference } from './compare-records.ts';

const fields = ['usage', 'quality', 'updated', 'unreadable'] as const;

/** Compares the listed readings of a range with the warehouse, usage as numbers: 1.5 is 1.50. */
export async function compareListed(
  tx: Executor,
  meterId: string,
  range: ReadRange,
): Promise<Difference[]> {
  const reading = sql`reading`;
  const readings = (from: SQL, name: string, where = sql`true`) => sql`(
      select *
      from ${from} reading
      where ${where}
        and ${liesWithin(range, reading)}
    ) ${sql.raw(name)}`;
  const listed = readings(sql`(${readingsListed})`, 'listed');
  const held = readings(sql`${intervals}`, 'held', sql`meter_id = ${meterId}`);
  const values = (side: SQL) => ({
    usage: sql<string | null>`trim_scale(${side}.usage)::text`,
    quality: sql<string | null>`${side}.quality`,
    updated: sql<string | null>`${side}.updated::text`,
    unreadable: sql<string | null>`${side}.unreadable::text`,
  });
  const unequal = await tx
    .select({
      id: sql<string>`${meterId}::text || coalesce(${keyAsText(sql`held`)}, ${keyAsText(sql`listed`)})`,
      isListed: sql<boolean>`listed.start_at is not null`,
      isHeld: sql<boolean>`held.start_at is not null`,
      isKept: sql<boolean>`exists (
        select
        from ${deletes} ${note}
        where ${note.meterId} = ${meterId}
          and ${note.usageUnits} = held.usage_units
          and ${note.startsFrom} <= held.start_at
          and ${note.startsBefore} > held.start_at
          and ${decidedToKeep}
      )`,
      service: values(sql`listed`),
      warehouse: values(sql`held`),
    })
    .from(listed)
    .fullJoin(
      held,
      sql`(listed.start_at, listed.granularity_seconds, listed.usage_units, listed.ordinal)
        = (held.start_at, held.granularity_seconds, held.usage_units, held.ordinal)`,
    )
    .where(or(sql`listed.start_at is null`, sql`held.start_at is null`, differ('listed', 'held')));
  const differences = unequal.map((one): Difference => {
    const { id, isListed, isHeld, isKept, service, warehouse } = one;
    if (!isHeld) return { id, state: 'missing' };
    if (!isListed) return { id, state: isKept ? 'kept' : 'extra' };
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
