import { sql } from 'drizzle-orm';
import pg from 'pg';
import type { Warehouse } from '../../../db/connection/connect.ts';
import { stepOf } from '../../../db/fields/paths.ts';
import { plannedViews } from '../../../db/fields/typed-views.ts';

interface Column {
  readonly name: string;
  readonly type: string;
}
type Row = Readonly<Record<string, string | null>>;

/** Lists every value of a resource's records that its typed views lack, as `path: value`. */
export async function missingValues(warehouse: Warehouse, resource: string): Promise<string[]> {
  const all = async (statement: string) => (await warehouse.db.execute(sql.raw(statement))).rows;
  const columns = new Map<string, Map<string, Column>>();
  const viewRows = new Map<string, Row[]>();
  for (const { name, of, path, columns: own } of (await plannedViews(warehouse.db)).planned) {
    if (of.resource !== resource) continue;
    columns.set(path, new Map(own.map((column) => [column.path, column])));
    const positions = (
      (await all(`select attname from pg_attribute where attrelid = ${pg.escapeLiteral(`fields.${pg.escapeIdentifier(name)}`)}::regclass
        and attnum > 0 and atttypid = 'integer'::regtype order by attnum`)) as { attname: string }[]
    ).map(({ attname }) => pg.escapeIdentifier(attname));
    const key = path === '' ? 'id' : 'document_id';
    const place = `concat_ws('/', ${[key, ...positions].join(', ')})`;
    const texts = own.map((column, nth) => `${pg.escapeIdentifier(column.name)}::text as c${nth}`);
    const found = await all(`select ${[`${place} as place`, ...texts].join(', ')}
      from fields.${pg.escapeIdentifier(name)}`);
    viewRows.set(
      path,
      found.map((row) =>
        Object.fromEntries([
          ['place', row.place as string],
          ...own.map((column, nth) => [`column ${column.name}`, row[`c${nth}`] as string | null]),
        ]),
      ),
    );
  }
  const missing: string[] = [];
  const visit = (value: unknown, path: string, owner: string, place: string): void => {
    if (value === null) return;
    const at = `${path}: ${JSON.stringify(value)}`;
    const column = columns.get(owner)?.get(path);
    if (Array.isArray(value)) {
      if (!isShown(column, owner, place, value)) missing.push(at);
      for (const [nth, element] of value.entries()) {
        if (typeof element !== 'object' || element === null) continue;
        visit(element, `${path}/*`, `${path}/*`, `${place}/${nth + 1}`);
      }
      return;
    }
    if (typeof value !== 'object') {
      if (!isShown(column, owner, place, value)) missing.push(at);
      return;
    }
    if (column?.type === 'jsonb' && isShown(column, owner, place, value)) return;
    const own = viewRows.get(path)?.some((row) => row.place === place);
    if (!own && column?.type !== 'jsonb') missing.push(at);
    if (!own) return;
    for (const [name, inner] of Object.entries(value)) {
      if (path === '' && (name === 'id' || isAmongOthers(place, name, inner))) continue;
      visit(inner, `${path}/${stepOf(name)}`, path, place);
    }
  };
  /** Whether a field is in the column that holds all fields of a record that have no column of their own. */
  const isAmongOthers = (place: string, name: string, value: unknown): boolean => {
    const others = columns.get('')?.get('/*');
    const row = viewRows.get('')?.find((one) => one.place === place);
    const text = others === undefined ? undefined : row?.[`column ${others.name}`];
    return typeof text === 'string' && JSON.stringify(JSON.parse(text)[name]) === JSON.stringify(value);
  };
  const isShown = (column: Column | undefined, view: string, place: string, value: unknown): boolean => {
    const row = viewRows.get(view)?.find((one) => one.place === place);
    const text = column === undefined ? undefined : row?.[`column ${column.name}`];
    return typeof text === 'string' && says(text, column?.type ?? '', value);
  };
  for (const { id, raw } of (await all(`select id, raw from utility.${resource} where raw is not null`)) as {
    id: string;
    raw: object;
  }[]) {
    visit(raw, '', '', id);
  }
  return missing;
}

/** Whether a column's text equals the value. */
function says(text: string, type: string, value: unknown): boolean {
  if (type === 'jsonb') return JSON.stringify(JSON.parse(text)) === JSON.stringify(value);
  if (typeof value === 'number') return Number(text) === value;
  if (type === 'numeric') return text === value;
  if (type === 'uuid') return text === String(value).toLowerCase();
  if (type === 'timestamptz') return microseconds(text) === microseconds(String(value));
  return text === String(value);
}

/** Returns the Unix time in microseconds. A text without a zone is in UTC. */
function microseconds(text: string): number {
  const [, whole = '', fraction = '', zone = 'Z'] =
    /^(.{16}(?::\d\d)?)(?:\.(\d+))?(Z|[-+][\d:]+)?$/.exec(text) ?? [];
  const iso = `${whole.replace(' ', 'T')}${zone.replace(/^([-+]\d\d)$/, '$1:00')}`;
  return Date.parse(iso) * 1000 + Number(fraction.padEnd(6, '0'));
}
