import { sql } from 'drizzle-orm';
import { isObject } from '../../contract/json.ts';
import { kindOfText, type TextKind, uuid } from '../../contract/values.ts';
import type { Executor } from '../connection/connect.ts';
import { sqlMessage, withoutStatement } from '../connection/failures.ts';
import { holdable } from '../records/unholdable.ts';
import { fieldCatalogue } from '../schema/metersync.ts';

/** The fields of every record that is written, because the service does not announce them. */
export type FieldCatalogue = ReturnType<typeof createFieldCatalogue>;

/** Creates a process's catalogue. It remembers what it has seen, and writes each field once. */
export function createFieldCatalogue(options: {
  readonly db: Executor;
  readonly onError: (error: Error) => void;
}) {
  const trees = new Map<string, FieldTree>();
  let writing: Promise<void> = Promise.resolve();

  const write = async (resource: string, apiVersion: string, tree: FieldTree): Promise<void> => {
    const seen = [...tree.news];
    tree.news.clear();
    try {
      if (seen.length > 0) await writeFields(options.db, resource, apiVersion, seen);
    } catch (error) {
      for (const node of seen) tree.news.add(node);
      const message = `the field catalogue could not be written: ${sqlMessage(error)}`;
      options.onError(new Error(message, { cause: withoutStatement(error) }));
    }
  };

  return {
    /**
     * Notes the fields of parsed records. New fields and kinds of values are in the warehouse when
     * it returns. Call it before the cursor moves on. Errors go to `onError`, and what could not be
     * written is written with the next note.
     */
    async note(resource: string, apiVersion: string, records: readonly unknown[]): Promise<void> {
      const key = JSON.stringify([resource, apiVersion]);
      const tree = trees.get(key) ?? new FieldTree();
      trees.set(key, tree);
      for (const record of records) tree.observe(record);
      // One write at a time: whoever finds no news waits for the write of those who found some.
      if (tree.news.size > 0) writing = writing.then(() => write(resource, apiVersion, tree));
      await writing;
    },
  };
}

/** Adds fields and kinds to the catalogue, unless they are data of a map. */
async function writeFields(
  db: Executor,
  resource: string,
  apiVersion: string,
  seen: readonly FieldNode[],
): Promise<void> {
  const fields = JSON.stringify(seen.map(({ path, kinds }) => ({ path, types: [...kinds] })));
  await db.execute(sql`
    insert into ${fieldCatalogue} as known (resource, api_version, path, types)
    select ${resource}, ${apiVersion}, path, types
    from jsonb_to_recordset(${fields}::jsonb) as seen (path text, types text[])
    where not exists (
        select
        from ${fieldCatalogue} map
        where map.resource = ${resource}
          and map.api_version = ${apiVersion}
          and 'map' = any (map.types)
          and starts_with(seen.path, map.path || '/')
      )
      and (
        select count(*) < ${catalogueMax}::bigint
        from ${fieldCatalogue}
        where resource = ${resource}
          and api_version = ${apiVersion}
      )
    order by path
    on conflict (resource, api_version, path) do update
    set types = metersync.union_of(known.types, excluded.types)
    where not known.types @> excluded.types`);
}

/** Maximum number of fields of a resource, because the service chooses their names. */
const catalogueMax = 5_000;
/** An object with more fields than this is a map: its keys are data, such as ids. */
const fieldsMax = 300;
/** What would have a longer path makes its owner a map, too. This also limits how deep fields nest. */
const pathBytesMax = 500;

/** Kinds of values of a field, as far as JSON and their text show them. */
export type FieldKind = TextKind | 'boolean' | 'number' | 'object' | 'array' | 'map';

class FieldNode {
  readonly path: string;
  readonly kinds = new Set<FieldKind>();
  /** Fields by their names. 0 stands for any element of an array. */
  readonly fields = new Map<string | 0, FieldNode>();
  constructor(path: string) {
    this.path = path;
  }
}

/** The fields of a resource that a process has seen. */
class FieldTree {
  /** Fields whose row in the catalogue may lack something. */
  readonly news = new Set<FieldNode>();
  readonly #root = new FieldNode('');
  #nodes = 1;

  /** Adds a record, as JSON.parse returned it; ignores anything but objects. */
  observe(record: unknown): void {
    if (isObject(record)) this.#see(this.#root, record);
  }

  #see(node: FieldNode, value: unknown): void {
    if (value === null) return;
    if (typeof value === 'object') this.#seeParts(node, value);
    else if (typeof value === 'number') this.#learn(node, 'number');
    else if (typeof value === 'boolean') this.#learn(node, 'boolean');
    // A column for text holds the values of all other kinds of texts.
    else if (!node.kinds.has('text')) this.#learn(node, kindOfText(String(value)));
  }

  #seeParts(node: FieldNode, value: object): void {
    this.#learn(node, Array.isArray(value) ? 'array' : 'object');
    if (Array.isArray(value)) for (const element of value) this.#seeField(node, 0, element);
    else for (const name in value) this.#seeField(node, name, value[name as keyof typeof value]);
  }

  #seeField(node: FieldNode, name: string | 0, value: unknown): void {
    const field = node.fields.get(name) ?? this.#addField(node, name);
    if (field !== undefined) this.#see(field, value);
  }

  #learn(node: FieldNode, kind: FieldKind): void {
    if (node.kinds.has(kind)) return;
    node.kinds.add(kind);
    this.news.add(node);
  }

  /** Adds a field by its name, as Postgres can hold the name, unless its owner is a map. */
  #addField(node: FieldNode, sent: string | 0): FieldNode | undefined {
    const name = sent === 0 ? 0 : holdable(sent);
    const known = node.fields.get(name);
    if (known !== undefined || node.kinds.has('map')) return known;
    const path = `${node.path}/${name === 0 ? anyStep : stepOf(name)}`;
    const isFull = node.fields.size === fieldsMax || this.#nodes === catalogueMax;
    if (isFull || Buffer.byteLength(path) > pathBytesMax || uuid.test(String(name))) {
      // A record itself is never a map: the fields that it has stay separate.
      if (node !== this.#root) this.#learn(node, 'map');
      return undefined;
    }
    const field = new FieldNode(path);
    node.fields.set(name, field);
    this.#nodes += 1;
    this.news.add(field);
    return field;
  }
}

/** The step of a path that means any element of an array. */
export const anyStep = '*';

/** Escapes a name as a JSON Pointer (RFC 6901) does. `*` means any, so an asterisk is `~2`. */
export const stepOf = (name: string): string =>
  name.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('*', '~2');
