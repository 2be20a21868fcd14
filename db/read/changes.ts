import { desc, eq, sql } from 'drizzle-orm';
import type { TracedKind } from '../../contract/names.ts';
import type { Executor } from '../connection/connect.ts';
import { isStateOf } from '../records/earlier-states.ts';
import { resources } from '../resources.ts';
import { earlierStates } from '../schema/metersync.ts';

const resourceOf = { document: 'documents', connection: 'connections', meter: 'meters' } as const;

/** Maximum number of changes that are returned: the latest changes. */
const changesMax = 50;

/** The compared parts of a state: the fields of the record as JSON, and whether it is deleted. */
const stateOf = sql<Readonly<Record<string, string>> | null>`(
  select jsonb_object_agg(key, value::text)
  from jsonb_each(
    coalesce(raw, '{}') || jsonb_strip_nulls(jsonb_build_object('(deleted)', deleted_reason))
  )
)`;

/**
 * Reads the changes of a record, oldest first: the differences between successive states. The first
 * read is not a change. The cause is an event or a run, or null if it is unknown, for example after
 * a read of a catch-up. Values are JSON as text, null for an absent field.
 */
export async function readChanges(db: Executor, kind: TracedKind, id: string) {
  const { table } = resources[resourceOf[kind]];
  const [held] = await db.select({ state: stateOf }).from(table).where(eq(table.id, id));
  const states = await db
    .select({
      at: earlierStates.validTo,
      byKind: earlierStates.endedByKind,
      by: earlierStates.endedBy,
      wasRead: sql<boolean>`raw is not null`,
      state: stateOf,
    })
    .from(earlierStates)
    .where(isStateOf(resourceOf[kind], id))
    .orderBy(desc(earlierStates.validTo))
    .limit(changesMax);
  const changes = states.flatMap(({ at, byKind, by, wasRead, state }, place) => {
    const next = place === 0 ? held : states[place - 1];
    if (next === undefined || !wasRead) return [];
    return [{ at, byKind, by, fields: differing(state ?? {}, next.state ?? {}) }];
  });
  return changes.reverse();
}

const differing = (
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
) =>
  Object.keys({ ...before, ...after })
    .toSorted()
    .filter((field) => before[field] !== after[field])
    .map((field) => ({ field, before: before[field] ?? null, after: after[field] ?? null }));
