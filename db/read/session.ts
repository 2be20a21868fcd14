import { sql } from 'drizzle-orm';
import type { Executor } from '../connect.ts';

/** Reads the server's version, and its clock as Unix milliseconds; NaN without an answer. */
export async function readServer(db: Executor): Promise<{ version: string; nowMs: number }> {
  const { rows } = await db.execute<{ version: string; now_ms: number }>(sql`
    select current_setting('server_version') as version,
      extract(epoch from clock_timestamp())::float8 * 1000 as now_ms`);
  return { version: rows[0]?.version ?? 'unknown', nowMs: rows[0]?.now_ms ?? Number.NaN };
}

/** Reads the time zone in which the session reads times without one; '' without an answer. */
export async function readTimeZone(db: Executor): Promise<string> {
  const { rows } = await db.execute<{ zone: string }>(
    sql`select current_setting('TimeZone') as zone`,
  );
  return rows[0]?.zone ?? '';
}
