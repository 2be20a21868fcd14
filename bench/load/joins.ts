import type pg from 'pg';

/** A join of several views by columns that each of them has. */
export interface Join {
  readonly views: readonly string[];
  readonly key: readonly string[];
}

/** Columns that distinguish rows in several views, the most distinctive first. */
const keys: readonly (readonly string[])[] = [
  ['bill_id', 'meter_id'],
  ['bill_id'],
  ['meter_id', 'month'],
  ['site_id', 'month'],
  ['connection_id'],
];

/** Views with a row for each meter or site, which the rows of other views name. */
const named: Readonly<Record<string, string>> = { meters: 'meter_id', sites: 'site_id' };

/** Views of readings, which this world lacks. They need a meter or a time span. */
const ofReadings = /^interval_|^load_profile$|^bill_interval_comparison$/;

/** Lists all pairs and triples of views of analytics that have a key in common. */
export async function joinsOfViews(client: pg.Client): Promise<Join[]> {
  const { rows } = await client.query<{ view: string; columns: string[] }>(`
    select c.relname as view, array_agg(a.attname::text) as columns from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relkind = 'v' and c.relnamespace = 'analytics'::regnamespace group by 1 order by 1`);
  const views = rows.filter(({ view }) => !ofReadings.test(view));
  const having = (key: readonly string[]) =>
    views.filter(({ columns }) => key.every((name) => columns.includes(name))).map(({ view }) => view);
  const joins = new Map<string, Join>();
  const add = (join: Join) => {
    const name = join.views.toSorted().join();
    if (!joins.has(name)) joins.set(name, join);
  };
  for (const key of keys)
    for (const some of [...pairs(having(key)), ...triples(having(key))]) add({ views: some, key });
  for (const [view, column] of Object.entries(named))
    for (const other of having([column]).filter((name) => name !== view))
      add({ views: [view, other], key: [column] });
  return [...joins.values()];
}

const pairs = (all: readonly string[]): string[][] =>
  all.flatMap((one, at) => all.slice(at + 1).map((other) => [one, other]));

const triples = (all: readonly string[]): string[][] =>
  all.flatMap((one, at) => pairs(all.slice(at + 1)).map((others) => [one, ...others]));

/** Returns a statement that counts the rows of a join, for all companies or for one. */
export function statementOf({ views: [first, ...others], key }: Join, companyId?: string): string {
  const columns = companyId === undefined ? key : ['company_id', ...key];
  const joined = others.map((view) => `join analytics.${view} using (${columns.join(', ')})`);
  const where = companyId === undefined ? '' : `where company_id = '${companyId}'`;
  return `select count(*) from analytics.${first} ${joined.join(' ')} ${where}`;
}
