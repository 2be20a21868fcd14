import { and, eq, ne, type SQL, sql } from 'drizzle-orm';
import { serverWaits } from '../../contract/retry-policy.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { isRefusal, sqlMessage, withoutStatement } from '../connection/failures.ts';
import { fieldCatalogue } from '../schema/metersync.ts';
import { FieldTree, type SeenField } from './field-tree.ts';
import type { FieldKind } from './kinds.ts';

/** Records the fields of every record that is written. */
export interface FieldCatalogue {
  /**
   * Notes the fields of parsed records. New fields and kinds of values are in the warehouse when it
   * returns; counts and values follow. Call it before the cursor moves on. Errors go to `onError`,
   * once while they repeat, and fields that could not be written are written with the next note.
   */
  note(resource: string, apiVersion: string, records: readonly unknown[]): Promise<void>;
  /** Writes everything that is not written yet. The catalogue stays in use. */
  flush(): Promise<void>;
  /** Writes everything that is not written yet, and stops. Errors go to `onError`. */
  close(): Promise<void>;
}

interface Kept {
  readonly resource: string;
  readonly apiVersion: string;
  readonly tree: FieldTree;
  /** The value of the tree's `news` at the last write: what came before is in the warehouse. */
  written: number;
  /** Settles once the fields of earlier processes are loaded. */
  loaded: Promise<void> | undefined;
}

/** Creates a process's catalogue: it counts in memory and adds to `metersync.field_catalogue`. */
export function createFieldCatalogue(options: {
  readonly db: Executor;
  readonly onError: (error: Error) => void;
}): FieldCatalogue {
  const { db } = options;
  /** Whether an error was reported since the last write. */
  let isFailing = false;
  const onError = (error: unknown): void => {
    if (!isFailing) options.onError(inTrouble(error));
    isFailing = true;
  };
  const trees = new Map<string, Kept>();
  let writing: Promise<void> = Promise.resolve();

  const keptOf = (resource: string, apiVersion: string): Kept => {
    const key = JSON.stringify([resource, apiVersion]);
    const existing = trees.get(key);
    if (existing !== undefined) return existing;
    const tree = new FieldTree();
    const made: Kept = { resource, apiVersion, tree, written: 0, loaded: undefined };
    trees.set(key, made);
    return made;
  };

  /** Loads the catalogue into a tree. What one process made a map is a map for all processes. */
  const takeOver = async (kept: Kept, which?: SQL): Promise<void> => {
    const catalogued = await readCatalogued(db, kept, which);
    const maps = catalogued.filter(({ path, collapsed }) => collapsed && path !== '');
    if (maps.length > 0)
      await removeCollapsed(
        db,
        kept,
        maps.map(({ path }) => path),
      );
    for (const field of catalogued) kept.tree.add(field);
  };

  const load = async (kept: Kept): Promise<void> => {
    kept.loaded ??= takeOver(kept);
    try {
      await kept.loaded;
    } catch (error) {
      kept.loaded = undefined;
      throw error;
    }
  };

  /** Writes one statement at a time, each with all fields that its caller observed. */
  const write = (kept: Kept, all: boolean): Promise<void> => {
    const turn = writing.then(async () => {
      await load(kept);
      const { news } = kept.tree;
      if (!all && news === kept.written) return;
      const seen = kept.tree.take(all);
      try {
        await writeFields(kept, seen);
      } catch (error) {
        kept.tree.restore(seen);
        throw error;
      }
      kept.written = Math.max(kept.written, news);
    });
    writing = turn.catch(() => {});
    return turn;
  };

  const writeFields = async (kept: Kept, seen: readonly SeenField[]): Promise<void> => {
    if (seen.length === 0) return;
    try {
      await writeSeen(db, kept, seen);
      await takeOver(kept, isMap);
      isFailing = false;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // A value that Postgres refuses is not tried again.
      options.onError(inTrouble(error));
    }
  };

  const flush = async (): Promise<void> => {
    for (const kept of trees.values()) await write(kept, true);
  };
  const timer = setInterval(() => void flush().catch(onError), serverWaits.fieldCountsEveryMs);
  timer.unref();

  return {
    async note(resource, apiVersion, records) {
      if (records.length === 0) return;
      try {
        const kept = keptOf(resource, apiVersion);
        const [loading] = await Promise.allSettled([load(kept)]);
        for (const record of records) kept.tree.observe(record);
        if (loading.status === 'rejected') throw loading.reason;
        // Loading a map of another process changes the tree: then there is more to write.
        while (kept.tree.news > kept.written) await write(kept, false);
      } catch (error) {
        onError(error);
      }
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush().catch(onError);
    },
  };
}

const inTrouble = (error: unknown): Error =>
  new Error(`the field catalogue could not be written: ${sqlMessage(error)}`, {
    cause: withoutStatement(error),
  });

type KnownField = {
  readonly path: string;
  readonly kinds: FieldKind[];
  readonly collapsed: boolean;
};

/** Reads the catalogue, parents before their fields. */
async function readCatalogued(db: Executor, kept: Kept, which?: SQL): Promise<KnownField[]> {
  const { path, types, collapsed } = fieldCatalogue;
  return await db
    .select({ path, kinds: sql<FieldKind[]>`${types}`, collapsed })
    .from(fieldCatalogue)
    .where(and(isOf(kept), which))
    .orderBy(sql`${path} collate "C"`);
}

const isOf = ({ resource, apiVersion }: Kept): SQL | undefined =>
  and(eq(fieldCatalogue.resource, resource), eq(fieldCatalogue.apiVersion, apiVersion));

/** Whether a field is a map. A record itself is never a map: its own fields stay separate. */
const isMap = and(eq(fieldCatalogue.collapsed, true), ne(fieldCatalogue.path, ''));

/** Adds observed fields to the catalogue. */
async function writeSeen(db: Executor, kept: Kept, seen: readonly SeenField[]): Promise<void> {
  const clock = sql`clock_timestamp()`;
  const { types, records, example, enumValues, collapsed } = fieldCatalogue;
  await db
    .insert(fieldCatalogue)
    .select(
      db
        .select({
          resource: sql`${kept.resource}::text`.as('resource'),
          apiVersion: sql`${kept.apiVersion}::text`.as('api_version'),
          path: sql`path`.as('path'),
          types: sql`kinds`.as('types'),
          records: sql`records`.as('records'),
          firstSeenAt: clock.as('first_seen_at'),
          lastSeenAt: clock.as('last_seen_at'),
          example: sql`example`.as('example'),
          enumValues: sql`"values"`.as('enum_values'),
          collapsed: sql`collapsed`.as('collapsed'),
        })
        .from(
          sql`jsonb_to_recordset(${JSON.stringify(seen)}::jsonb) as seen (
            path text,
            kinds text[],
            records bigint,
            example text,
            "values" text[],
            collapsed boolean
          )`,
        )
        .orderBy(sql`path`),
    )
    .onConflictDoUpdate({
      target: [fieldCatalogue.resource, fieldCatalogue.apiVersion, fieldCatalogue.path],
      set: {
        types: sql`metersync.union_of(${types}, excluded.types)`,
        records: sql`${records} + excluded.records`,
        lastSeenAt: sql`excluded.last_seen_at`,
        example: sql`coalesce(${example}, excluded.example)`,
        enumValues: sql`metersync.enum_union(${enumValues}, excluded.enum_values)`,
        collapsed: sql`${collapsed} or excluded.collapsed`,
      },
    });
}

/** Removes the separate fields of maps, which are only catalogued under the step `*`. */
async function removeCollapsed(db: Executor, kept: Kept, maps: readonly string[]): Promise<void> {
  const { path } = fieldCatalogue;
  const isWithinMap = sql`exists (
      select
      from unnest(${array(maps, 'text')}) as map (path)
      where starts_with(${path}, map.path || '/')
        and not starts_with(${path} || '/', map.path || '/*/')
    )`;
  await db.delete(fieldCatalogue).where(and(isOf(kept), isWithinMap));
}
