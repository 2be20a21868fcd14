import { type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';

const dialect = new PgDialect();
const rendered = new Map<string, SQL>();

/**
 * Renders a part of a statement once: rendering takes as long as a small statement runs.
 * @param name names the part, and everything that the part depends on
 * @throws Error if the part has parameters, whose values would be kept as well
 */
export function fixed(name: string, part: () => SQL): SQL {
  const before = rendered.get(name);
  if (before !== undefined) return before;
  const query = dialect.sqlToQuery(part());
  if (query.params.length > 0) throw new Error(`the part "${name}" of a statement has parameters`);
  const text = sql.raw(query.sql);
  rendered.set(name, text);
  return text;
}
