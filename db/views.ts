import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import type { Transaction } from './connect.ts';
import { sqlMessage, sqlState } from './failures.ts';
import { packagedFolder } from './packaged-folder.ts';

const [notAsBefore, anotherResult, dependentsExist] = ['42P16', '42P13', '2BP01'];

/**
 * Makes the views and functions of db/views anew unless those of this version are there already; true when it did.
 * `create or replace` leaves what users built on them. Where a view has other columns than before, all are dropped first.
 * @throws Error naming the user's view that stands in the way
 */
export async function applyViews(tx: Transaction): Promise<boolean> {
  const texts = viewFiles();
  const version = createHash('sha256').update(texts.join('\0')).digest('hex');
  await tx.execute(sql`create table if not exists metersync_migrations.views (version text not null)`);
  const applied = await tx.execute<{ version: string }>(sql`select version from metersync_migrations.views`);
  if (applied.rows[0]?.version === version) return false;
  try {
    await tx.transaction((inner) => make(inner, texts));
  } catch (error) {
    if (![notAsBefore, anotherResult].includes(sqlState(error) ?? '')) throw error;
    await dropAll(tx, texts);
    await make(tx, texts);
  }
  await tx.execute(sql`delete from metersync_migrations.views`);
  await tx.execute(sql`insert into metersync_migrations.views values (${version})`);
  return true;
}

/** The files' texts, in the order in which they build on one another. */
function viewFiles(): string[] {
  const folder = packagedFolder('views');
  const names = readdirSync(folder).filter((name) => name.endsWith('.sql'));
  return names.sort().map((name) => readFileSync(join(folder, name), 'utf8'));
}

async function make(tx: Transaction, texts: readonly string[]): Promise<void> {
  for (const text of texts) await tx.execute(sql.raw(text));
}

/** Last made, first dropped, so that nothing of ours stands in the way. */
async function dropAll(tx: Transaction, texts: readonly string[]): Promise<void> {
  const made = texts.flatMap((text) => [...text.matchAll(/create or replace (view|function) ([\w.]+)/g)]);
  try {
    for (const [, kind = '', name = ''] of made.reverse()) {
      if (name === 'metersync.comment_columns') continue;
      const whole = kind === 'view' ? [name] : await signatures(tx, name);
      for (const one of whole) await tx.execute(sql.raw(`drop ${kind} if exists ${one}`));
    }
  } catch (error) {
    if (sqlState(error) !== dependentsExist) throw error;
    // Drizzle's error wraps that of Postgres.
    const { detail = '' } = ((error as Error).cause ?? error) as { detail?: string };
    throw new Error(
      `views of yours were built on views that have other columns now: drop them, run metersync migrate, and make them again. ${sqlMessage(error)}: ${detail}`,
      { cause: error },
    );
  }
}

/** A function is dropped by its arguments: there may be several of one name. */
async function signatures(tx: Transaction, name: string): Promise<string[]> {
  const { rows } = await tx.execute<{ signature: string }>(
    sql`select oid::regprocedure::text as signature from pg_proc where pronamespace::regnamespace || '.' || proname = ${name}`,
  );
  return rows.map(({ signature }) => signature);
}
