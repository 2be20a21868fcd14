import { createHash } from 'node:crypto';
import type { SQLWrapper } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type pg from 'pg';
import { type Executor, poolOf } from './connect.ts';
import { sqlState } from './failures.ts';

/** Errors for a prepared statement that the session lacks, or has from another client. */
const notOurs: readonly unknown[] = ['26000', '42P05'];

const dialect = new PgDialect();
/** Pools behind a pooler that gives each transaction another session. */
const pooled = new WeakSet<pg.Pool>();
/** How often each text was sent; a statement may have several texts, depending on its input. */
const known = new Map<string, { readonly name: string; sends: number }>();
/**
 * How often a process sends a statement before preparing it. A command sends less and prepares
 * nothing: behind a pooler a prepared statement may fail, and nobody retries a command.
 */
export const sendsMin = 20;

/**
 * Sends a statement that runs often as a named statement, which each connection parses once and the
 * sessions of workers plan once: this halves the cost of small statements. `test/db/cost` runs all
 * statements with such plans. Names end in a hash of the text, so that another client's session
 * behind a pooler has the same statement under the name, or none. After a pooler's first error its
 * pool prepares nothing.
 */
export const prepared = (db: Executor, name: string) => ({
  async execute<Row extends pg.QueryResultRow>(
    statement: SQLWrapper,
  ): Promise<pg.QueryResult<Row>> {
    const query = dialect.sqlToQuery(statement.getSQL());
    const pool = poolOf(db);
    const prepares = pool !== undefined && !pooled.has(pool);
    const prepared = db._.session.prepareQuery<{ execute: pg.QueryResult<Row> } & Unused>(
      query,
      undefined,
      prepares ? nameOf(name, query.sql) : undefined,
      false,
    );
    try {
      return await prepared.execute();
    } catch (error) {
      if (pool !== undefined && notOurs.includes(sqlState(error))) pooled.add(pool);
      throw error;
    }
  },
});

/** What Drizzle's type requires of a result in addition. */
type Unused = { all: unknown; values: unknown };

/** The name of a statement that was sent often enough; undefined for others. */
function nameOf(name: string, text: string): string | undefined {
  let statement = known.get(text);
  if (statement === undefined) {
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
    statement = { name: `${name}_${hash}`, sends: 0 };
    known.set(text, statement);
  }
  statement.sends += 1;
  return statement.sends > sendsMin ? statement.name : undefined;
}
