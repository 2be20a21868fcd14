import { createHash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { Transaction } from './connect.ts';
import { dropUnlessUsed } from './dependents.ts';
import { sqlMessage, sqlState } from './failures.ts';
import { migrationsSchema } from './migrations-table.ts';
import { viewTexts } from './view-files.ts';

/** Which version of the views is there: one row. */
const versions = sql`${sql.identifier(migrationsSchema)}.views`;

const [notAsBefore, anotherResult, noColumn, noRelation] = ['42P16', '42P13', '42703', '42P01'];

/**
 * Makes the views and functions of analytics/ anew unless those of this version are there already;
 * true when it did. `create or replace` leaves what users built on them. Where a view has other
 * columns than before, all that nothing was built on are dropped first, and get back what was
 * granted on them.
 * @throws Error naming the user's view that stands in the way
 */
export async function applyViews(tx: Transaction): Promise<boolean> {
  const texts = viewTexts();
  const version = createHash('sha256').update(texts.join('\0')).digest('hex');
  await tx.execute(sql`create table if not exists ${versions} (version text not null)`);
  const applied = await tx.execute<{ version: string }>(sql`select version from ${versions}`);
  if (applied.rows[0]?.version === version) return false;
  if ((await make(tx, texts)) !== 'made') {
    const { dependents, grants } = await dropAll(tx, texts);
    const made = await make(tx, texts);
    if (made !== 'made') throw inTheWay(made, dependents);
    for (const grant of grants) await grantAgain(tx, grant);
  }
  await tx.execute(sql`delete from ${versions}`);
  await tx.execute(sql`insert into ${versions} values (${version})`);
  return true;
}

/**
 * Makes them, or nothing when one that there is has other columns: then it returns what Postgres
 * says.
 */
async function make(tx: Transaction, texts: readonly string[]): Promise<'made' | Error> {
  try {
    await tx.transaction(async (part) => {
      for (const text of texts) await part.execute(sql.raw(text));
    });
    return 'made';
  } catch (error) {
    if (![notAsBefore, anotherResult].includes(sqlState(error) ?? '')) throw error;
    return error as Error;
  }
}

interface Dropped {
  /** What others built on those that stayed: `view mine depends on view analytics.bills`. */
  readonly dependents: readonly string[];
  /** Statements that grant again what was granted on those that are gone. */
  readonly grants: readonly string[];
}

/** Last made, first dropped, so that nothing of ours stands in the way. */
async function dropAll(tx: Transaction, texts: readonly string[]): Promise<Dropped> {
  const made = texts.flatMap((text) => [
    ...text.matchAll(/create or replace (view|function) ([\w.]+)/g),
  ]);
  const ours = new Set(made.map(([, kind, name]) => `${kind} ${name}`));
  const dependents: string[] = [];
  const grants: string[] = [];
  // An earlier version may not have what tells the grants.
  await tx.execute(sql.raw(texts[0] ?? ''));
  for (const [, kind = '', name = ''] of made.reverse()) {
    const whole = kind === 'view' ? [name] : await signatures(tx, name);
    for (const one of whole) {
      const granted = kind === 'view' ? await grantsOn(tx, one) : [];
      const users = await dropUnlessUsed(tx, `${kind} if exists ${one}`);
      if (users.length === 0) grants.push(...granted);
      dependents.push(
        ...users.filter((line) => !ours.has(line.replace(/(\(.*\))? depends on .*$/, ''))),
      );
    }
  }
  return { dependents, grants };
}

function inTheWay(refusal: Error, dependents: readonly string[]): Error {
  if (dependents.length === 0) return refusal;
  const why = `${sqlMessage(refusal)}: ${[...new Set(dependents)].join('; ')}`;
  return new Error(
    `views of yours were built on views that have other columns now: drop them, run metersync migrate, and make them again. ${why}`,
    { cause: refusal },
  );
}

/** Statements that grant again what is granted on a view. */
async function grantsOn(tx: Transaction, view: string): Promise<string[]> {
  const { rows } = await tx.execute<{ grant: string }>(
    sql`select metersync.grants_on(${view}) as grant`,
  );
  return rows.map(({ grant }) => grant);
}

/** A column, or a view, that this version no longer has takes its grants with it. */
async function grantAgain(tx: Transaction, grant: string): Promise<void> {
  try {
    await tx.transaction((part) => part.execute(sql.raw(grant)));
  } catch (error) {
    if (![noColumn, noRelation].includes(sqlState(error) ?? '')) throw error;
  }
}

/** A function is dropped by its arguments: there may be several of one name. */
async function signatures(tx: Transaction, name: string): Promise<string[]> {
  const { rows } = await tx.execute<{ signature: string }>(sql`
    select oid::regprocedure::text as signature
    from pg_proc
    where pronamespace::regnamespace || '.' || proname = ${name}`);
  return rows.map(({ signature }) => signature);
}
