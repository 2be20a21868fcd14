import { and, eq, ne, type SQL, sql } from 'drizzle-orm';
import { columnNames } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { isRefusal, sqlMessage, withoutStatement } from '../failures.ts';
import { fieldCatalogue } from '../schema/metersync.ts';
import { FieldTree, type SeenField } from './field-tree.ts';
import type { FieldKind } from './kinds.ts';

/**
 * How long counts may wait before they are in the warehouse: they are lost when the process is
 * killed.
 */
const countsEveryMs = 10_000;
/**
 * Resources and versions of the API of which fields are told apart: a worker meets some 16. See
 * also `FieldTree`.
 */
const treesMax = 32;

/** Takes note of the fields of every record that is written. */
export interface FieldCatalogue {
  /**
   * Looks at records as JSON.parse read them. A field, or a kind of value, that was never seen
   * before is in the warehouse when it returns; counts and values follow. Call it before the cursor
   * moves on. It describes records and never keeps them from being written: whatever goes wrong is
   * told to `onError`, and what could not be written is written with the next note.
   */
  note(resource: string, apiVersion: string, records: readonly unknown[]): Promise<void>;
  /** Writes what is left; the catalogue can go on. */
  flush(): Promise<void>;
  /** Writes what is left, as far as Postgres takes it. */
  close(): Promise<void>;
}

interface Kept {
  readonly resource: string;
  readonly apiVersion: string;
  readonly tree: FieldTree;
  /** News of the tree that are in the warehouse. */
  told: number;
  /** Whether it knows what earlier processes saw. */
  loaded: Promise<void> | undefined;
}

/**
 * The catalogue of a process: it counts in memory and writes to `metersync.field_catalogue`, where
 * those of several processes add up. `onNewField` is called when the warehouse learnt of a field,
 * or of a kind of value of one.
 */
export function createFieldCatalogue(options: {
  readonly db: Executor;
  readonly onNewField?: () => void;
  readonly onError: (error: unknown) => void;
}): FieldCatalogue {
  const { db, onNewField, onError } = options;
  const kept = new Map<string, Kept>();
  const others = noneOf('*', '*');
  let writing: Promise<void> = Promise.resolve();

  const keptOf = (resource: string, apiVersion: string): Kept => {
    const key = JSON.stringify([resource, apiVersion]);
    const known = kept.get(key);
    if (known !== undefined) return known;
    if (kept.size >= treesMax) return others;
    const made = noneOf(resource, apiVersion);
    kept.set(key, made);
    return made;
  };

  /** What is a map to one process is one to all: the fields of it that this one told apart go. */
  const takeOver = async (one: Kept, which?: SQL): Promise<void> => {
    const known = await readKnown(db, one, which);
    if (known.some(({ path, collapsed }) => collapsed && path !== ''))
      await removeCollapsed(db, one);
    for (const field of known) one.tree.know(field);
  };

  const load = async (one: Kept): Promise<void> => {
    one.loaded ??= takeOver(one);
    try {
      await one.loaded;
    } catch (error) {
      one.loaded = undefined;
      throw error;
    }
  };

  /** One statement at a time, and each has what its caller saw. */
  const write = (one: Kept, all: boolean): Promise<void> => {
    const turn = writing.then(async () => {
      await load(one);
      const { news } = one.tree;
      if (!all && news === one.told) return;
      const seen = one.tree.take(all);
      try {
        await tell(one, seen);
      } catch (error) {
        one.tree.restore(seen);
        throw error;
      }
      one.told = Math.max(one.told, news);
    });
    writing = turn.catch(() => {});
    return turn;
  };

  const tell = async (one: Kept, seen: readonly SeenField[]): Promise<void> => {
    if (seen.length === 0) return;
    try {
      if (await writeSeen(db, one, seen)) onNewField?.();
      await takeOver(one, isMap);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // What Postgres cannot hold is not tried again.
      onError(inTrouble(error));
    }
  };

  const flush = async (): Promise<void> => {
    for (const one of [...kept.values(), others]) await write(one, true);
  };
  const timer = setInterval(() => void flush().catch(onError), countsEveryMs);
  timer.unref();

  return {
    async note(resource, apiVersion, records) {
      if (records.length === 0) return;
      try {
        const one = keptOf(resource, apiVersion);
        const [loading] = await Promise.allSettled([load(one)]);
        for (const record of records) one.tree.observe(record);
        if (loading.status === 'rejected') throw loading.reason;
        // A map that another process knows of may turn up as an answer: then there is more to tell.
        while (one.tree.news > one.told) await write(one, false);
      } catch (error) {
        onError(inTrouble(error));
      }
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush().catch(onError);
    },
  };
}

const noneOf = (resource: string, apiVersion: string): Kept => {
  // Analysts read the catalogue, and may not read what events held.
  const namesAlone = resource === '*' || resource.startsWith('events/');
  return { resource, apiVersion, tree: new FieldTree({ namesAlone }), told: 0, loaded: undefined };
};

const inTrouble = (error: unknown): Error =>
  new Error(`the field catalogue could not be written: ${sqlMessage(error)}`, {
    cause: withoutStatement(error),
  });

type KnownField = {
  readonly path: string;
  readonly kinds: FieldKind[];
  readonly collapsed: boolean;
};

/** Parents before their fields. */
async function readKnown(db: Executor, one: Kept, which?: SQL): Promise<KnownField[]> {
  const { path, types, collapsed } = fieldCatalogue;
  return await db
    .select({ path, kinds: sql<FieldKind[]>`${types}`, collapsed })
    .from(fieldCatalogue)
    .where(and(isOf(one), which))
    .orderBy(sql`${path} collate "C"`);
}

const isOf = ({ resource, apiVersion }: Kept): SQL | undefined =>
  and(eq(fieldCatalogue.resource, resource), eq(fieldCatalogue.apiVersion, apiVersion));

/** Whether a field is a map. A record itself never is: its own fields stay. */
const isMap = and(eq(fieldCatalogue.collapsed, true), ne(fieldCatalogue.path, ''));

/** Adds what was seen to the catalogue; returns whether fields or kinds are new. */
async function writeSeen(db: Executor, one: Kept, seen: readonly SeenField[]): Promise<boolean> {
  const { rows } = await db.execute<{ changed: boolean }>(sql`
    with seen as (
      select *
      from jsonb_to_recordset(${JSON.stringify(seen)}::jsonb) as s (
        path text,
        kinds text[],
        records bigint,
        example text,
        "values" text[],
        collapsed boolean
      )
    ), known as materialized (
      select ${fieldCatalogue.path}, ${fieldCatalogue.types}
      from ${fieldCatalogue}
        join seen on seen.path = ${fieldCatalogue.path}
      where ${isOf(one)}
    ), written as (
      insert into ${fieldCatalogue} as held (${columnNames(writtenColumns)})
      select
        ${one.resource},
        ${one.apiVersion},
        path,
        kinds,
        records,
        example,
        "values",
        collapsed
      from seen
      order by path
      on conflict (resource, api_version, path) do update set
        types = metersync.union_of(held.types, excluded.types),
        records = held.records + excluded.records,
        last_seen_at = excluded.last_seen_at,
        example = coalesce(held.example, excluded.example),
        enum_values = metersync.enum_union(held.enum_values, excluded.enum_values),
        collapsed = held.collapsed or excluded.collapsed
      returning path, types
    )
    select coalesce(bool_or(known.types is distinct from written.types), false) as changed
    from written
      left join known on known.path = written.path`);
  return rows[0]?.changed ?? false;
}

const writtenColumns = [
  fieldCatalogue.resource,
  fieldCatalogue.apiVersion,
  fieldCatalogue.path,
  fieldCatalogue.types,
  fieldCatalogue.records,
  fieldCatalogue.example,
  fieldCatalogue.enumValues,
  fieldCatalogue.collapsed,
];

/**
 * Fields of a map stand under its `*` alone. Maps are picked once: there are few of them, and
 * thousands of fields.
 */
async function removeCollapsed(db: Executor, one: Kept): Promise<void> {
  const { path } = fieldCatalogue;
  await db.execute(sql`
    with map as materialized (
      select ${path}
      from ${fieldCatalogue}
      where ${and(isOf(one), isMap)}
    )
    delete from ${fieldCatalogue}
    using map
    where ${isOf(one)}
      and starts_with(${path}, map.path || '/')
      and not starts_with(${path} || '/', map.path || '/*/')`);
}
