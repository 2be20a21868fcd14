import type { Database } from '../db/connect.ts';
import { describeSchemas } from './warehouse-page.ts';

/** Relations of one to many, by the column of the many that refers to the one. */
const relations: readonly (readonly [one: string, many: string, column: string])[] = [
  ['companies', 'sites', 'company_id'],
  ['companies', 'connections', 'company_id'],
  ['connections', 'connection_sites', 'connection_id'],
  ['sites', 'connection_sites', 'site_id'],
  ['sites', 'meters', 'site_id'],
  ['companies', 'documents', 'company_id'],
  ['documents', 'usage_data', 'document_id'],
  ['documents', 'documents', 'revised_document_id'],
  ['meters', 'usage_data', 'meter_id'],
  ['meters', 'intervals', 'meter_id'],
  ['connections', 'connection_status_changes', 'connection_id'],
];

/** Makes the generated part of docs/dictionary.md from the catalogue and comments of a migrated warehouse. */
export async function describeDictionary(db: Database): Promise<string> {
  return `${await entityDiagram(db)}\n\n${await describeSchemas(db, ['analytics', 'fields', 'ops', 'history'])}`;
}

/**
 * Draws the tables of utility with their columns and relations.
 * @throws Error that names a missing column of `relations`
 */
async function entityDiagram(db: Database): Promise<string> {
  const { rows } = await db.execute<{ table: string; column: string; type: string; is_key: boolean }>(
    `select c.relname as table, a.attname as column, format_type(a.atttypid, null) as type,
      coalesce(a.attnum = any(i.indkey::int2[]), false) as is_key
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      left join pg_index i on i.indrelid = c.oid and i.indisprimary
    where c.relnamespace = 'utility'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    order by c.relname, a.attnum`,
  );
  for (const [, many, column] of relations) {
    if (!rows.some((row) => row.table === many && row.column === column))
      throw new Error(`the entity diagram names utility.${many}.${column}, which is not there`);
  }
  const entities = [...Map.groupBy(rows, ({ table }) => table)].map(([table, columns]) =>
    [
      `  ${table} {`,
      ...columns.map(({ type, column, is_key }) => `    ${word(type)} ${column}${is_key ? ' PK' : ''}`),
      '  }',
    ].join('\n'),
  );
  const joins = relations.map(([one, many, column]) => `  ${one} ||--o{ ${many} : ${column}`);
  return ['```mermaid', 'erDiagram', ...joins, ...entities, '```'].join('\n');
}

/** Makes a type one word, as Mermaid needs it. */
const word = (type: string): string =>
  type.replace('timestamp with time zone', 'timestamptz').replaceAll('[]', '_array').replaceAll(' ', '_');
