import { type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { type EventKind, probeEventType } from '../../contract/event.ts';
import type { Executor } from '../connect.ts';
import { journal } from '../schema/metersync.ts';
import { connections, documents, intervals } from '../schema/utility.ts';

const seen = alias(journal, 'seen');

/**
 * Lists the types of all events ever received: a look-up for each type. Probes are not events of
 * the service.
 */
export async function typesSeen(db: Executor): Promise<string[]> {
  const { rows } = await db.execute<{ type: string }>(sql`
    with recursive types as (
      (
        select ${journal.type}
        from ${journal}
        order by ${journal.type}
        limit 1
      )
      union all
      select next.type
      from types
        cross join lateral (
          select ${seen.type}
          from ${journal} ${seen}
          where ${seen.type} > types.type
          order by ${seen.type}
          limit 1
        ) next
    )
    select type
    from types
    where type <> ${probeEventType}`);
  return rows.map(({ type }) => type);
}

const tables = [
  ['connection', connections],
  ['document', documents],
  ['interval', intervals],
] as const satisfies readonly (readonly [EventKind, unknown])[];

/** Lists the kinds of events whose records the warehouse holds. */
export async function kindsHeld(db: Executor): Promise<(typeof tables)[number][0][]> {
  const { rows } = await db.execute<{ kind: (typeof tables)[number][0] }>(
    sql.join(
      tables.map(
        ([kind, table]): SQL => sql`
    select ${kind} as kind
    where exists (select from ${table})`,
      ),
      sql`
    union all`,
    ),
  );
  return rows.map(({ kind }) => kind);
}
