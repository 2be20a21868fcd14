import { sql } from 'drizzle-orm';
import pg from 'pg';
import type { Warehouse } from '../../../db/connection/connect.ts';
import { stepOf } from '../../../db/fields/field-catalogue.ts';
import { planViews } from '../../../db/fields/typed-views.ts';

/** The rows of a view by their places: the id of the record, and the positions in its arrays. */
type Rows = ReadonlyMap<string, Readonly<Record<string, string | null>>>;

interface View {
  readonly columns: ReadonlyMap<string, { readonly name: string; readonly type: string }>;
  readonly rows: Rows;
}

/** Lists every value of a resource's records that its typed views lack, as `path: value`. */
export async function missingValues(warehouse: Warehouse, resource: string): Promise<string[]> {
  const all = async (statement: string) => (await warehouse.db.execute(sql.raw(statement))).rows;
  const views = new Map<string, View>();
  for (const { name, of, path, columns } of await planViews(warehouse.db, () => false)) {
    if (of.name !== resource) continue;
    const view = `fields.${pg.escapeIdentifier(name)}`;
    const types = new Map(
      (
        await all(`select attname, format_type(atttypid, null) as type from pg_attribute
          where attrelid = ${pg.escapeLiteral(view)}::regclass and attnum > 0`)
      ).map(({ attname, type }) => [attname, String(type)]),
    );
    const positions = columns.filter(({ value }) => value.endsWith('.position::integer'));
    const key = [path === '' ? 'id' : 'document_id', ...positions.map((column) => column.name)];
    const texts = columns.map((column, nth) => `${pg.escapeIdentifier(column.name)}::text as c${nth}`);
    const found = await all(
      `select concat_ws('/', ${key.map(pg.escapeIdentifier).join(', ')}) as place, ${texts.join(', ')} from ${view}`,
    );
    const named = found.map(({ place, ...row }) => {
      const values = columns.map((column, nth) => [`column ${column.name}`, row[`c${nth}`]]);
      return [String(place), Object.fromEntries(values)] as const;
    });
    const ofFields = columns
      .filter((column) => column.path !== '')
      .map((column) => [column.path, { name: column.name, type: types.get(column.name) ?? '' }] as const);
    views.set(path, { columns: new Map(ofFields), rows: new Map(named) });
  }
  const missing: string[] = [];
  const visit = (value: unknown, path: string, owner: string, place: string): void => {
    if (value === null || path === '/id') return;
    const view = views.get(owner);
    const row = view?.rows.get(place);
    const column = view?.columns.get(path);
    if (column !== undefined) {
      const text = row?.[`column ${column.name}`];
      if (typeof text !== 'string' || !says(text, column.type, value))
        missing.push(`${path}: ${JSON.stringify(value)}`);
      if (!Array.isArray(value)) return;
      for (const [nth, element] of value.entries())
        if (views.has(`${path}/*`)) visit(element, `${path}/*`, `${path}/*`, `${place}/${nth + 1}`);
    } else if (row === undefined || typeof value !== 'object')
      missing.push(`${path}: ${JSON.stringify(value)}`);
    else
      for (const [name, inner] of Object.entries(value))
        visit(inner, `${path}/${stepOf(name)}`, owner, place);
  };
  for (const { id, raw } of await all(`select id, raw from utility.${resource} where raw is not null`))
    visit(raw, '', '', String(id));
  return missing;
}

/** Whether a column's text equals the value. */
function says(text: string, type: string, value: unknown): boolean {
  if (type === 'jsonb') return JSON.stringify(JSON.parse(text)) === JSON.stringify(value);
  if (typeof value === 'number') return Number(text) === value;
  if (type === 'numeric') return text === value;
  if (type === 'uuid') return text === String(value).toLowerCase();
  if (type.startsWith('timestamp')) return microseconds(text) === microseconds(String(value));
  return text === String(value);
}

/** Returns the Unix time in microseconds. A text without a zone is in UTC. */
function microseconds(text: string): number {
  const [, whole = '', fraction = '', zone = 'Z'] =
    /^(.{16}(?::\d\d)?)(?:\.(\d+))?(Z|[-+][\d:]+)?$/.exec(text) ?? [];
  const iso = `${whole.replace(' ', 'T')}${zone.replace(/^([-+]\d\d)$/, '$1:00')}`;
  return Date.parse(iso) * 1000 + Number(fraction.padEnd(6, '0'));
}
