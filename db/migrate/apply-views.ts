import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Transaction } from '../connection/connect.ts';
import { dependentsIn, sqlMessage, sqlState } from '../connection/failures.ts';
import { migrationsSchema, packagedFolder } from './migrations.ts';

/** The version of the applied views: one row. */
const versions = sql`${sql.identifier(migrationsSchema)}.views`;

/** The columns of a view cannot be replaced. */
export const notAsBefore = '42P16';
const [anotherResult, noColumn, noRelation] = ['42P13', '42703', '42P01'];

/** The comment of a typed view contains this text. Only the owner of the warehouse writes it. */
export const madeFrom = 'Made from ops.field_catalogue by metersync views';

/** Whether a relation `c` is a typed view, by its comment. */
export const isTypedView = sql.raw(
  `(c.relkind = 'v' and coalesce(obj_description(c.oid, 'pg_class'), '') like '%${madeFrom} %')`,
);

/** What `applyViews` did. */
interface AppliedViews {
  readonly views: boolean;
  /** Statements that restore the grants on dropped views, once the typed views exist again. */
  readonly grants: readonly string[];
}

/**
 * Applies the views and functions of analytics/, unless this version is applied already. `create or
 * replace` keeps what users built on them. If a view changes its columns, all views and functions
 * without dependents are dropped first, and typed views if they depend on a function. Views and
 * functions of earlier versions are dropped last, when no view of metersync reads them.
 * @throws Error naming the user's view that blocks the change
 */
export async function applyViews(tx: Transaction): Promise<AppliedViews> {
  const texts = viewTexts();
  const version = versionOf(texts);
  await tx.execute(sql`create table if not exists ${versions} (version text not null)`);
  const applied = await tx.execute<{ version: string }>(sql`select version from ${versions}`);
  if (applied.rows[0]?.version === version) return { views: false, grants: [] };
  const grants: string[] = [];
  let dependents: readonly string[] = [];
  let made = await make(tx, texts);
  for (const typed of [[], await typedViews(tx)]) {
    if (made === 'made') break;
    const dropped = await dropAll(tx, texts, typed);
    grants.push(...dropped.grants);
    dependents = dropped.dependents;
    made = await make(tx, texts);
  }
  if (made !== 'made')
    throw inTheWay('have other columns now', `${sqlMessage(made)}: `, dependents) ?? made;
  const keeping = await dropGone(tx);
  const inUse = inTheWay('are gone, see Removed in CHANGELOG.md', '', keeping);
  if (inUse !== undefined) throw inUse;
  await tx.execute(sql`delete from ${versions}`);
  await tx.execute(sql`insert into ${versions} values (${version})`);
  return { views: true, grants };
}

const versionOf = (texts: readonly string[]): string =>
  createHash('sha256').update(texts.join('\0')).digest('hex');

/** Creates all views and functions, or none and returns the error if a view's columns differ. */
async function make(tx: Transaction, texts: readonly string[]): Promise<'made' | Error> {
  const [schema = '', ...others] = texts;
  const views = texts
    .flatMap(createdBy)
    .flatMap(({ kind, name }) => (kind === 'view' ? [name] : []));
  try {
    await tx.transaction(async (part) => {
      await part.execute(sql.raw(schema));
      await part.execute(sql`select metersync.clear_comments(${array(views, 'text')})`);
      for (const text of others) await part.execute(sql.raw(text));
    });
    return 'made';
  } catch (error) {
    if (![notAsBefore, anotherResult].includes(sqlState(error) ?? '')) throw error;
    return error as Error;
  }
}

interface Dropped extends Pick<AppliedViews, 'grants'> {
  /** Users' dependents of views that stayed: `view mine depends on view analytics.bills`. */
  readonly dependents: readonly string[];
}

/** Drops views and functions in reverse order, so that no dependent of metersync blocks a drop. */
async function dropAll(
  tx: Transaction,
  texts: readonly string[],
  typed: readonly Created[],
): Promise<Dropped> {
  const created = [...texts.flatMap(createdBy), ...typed];
  const ours = new Set(created.map(({ kind, name }) => `${kind} ${name}`));
  const dependents: string[] = [];
  const grants: string[] = [];
  // An earlier version may lack the function that reads grants.
  await tx.execute(sql.raw(texts[0] ?? ''));
  for (const what of gone) ours.add(nameOf(what));
  await dropGone(tx);
  for (const { kind, name } of created.reverse()) {
    const dropped = kind === 'view' ? [name] : await signatures(tx, name);
    for (const relation of dropped) {
      const granted = kind === 'view' ? await grantsOn(tx, relation) : [];
      const users = await dropUnlessUsed(tx, `${kind} if exists ${relation}`);
      if (users.length === 0) grants.push(...granted);
      dependents.push(...users.filter((line) => !ours.has(nameOf(line))));
    }
  }
  return { dependents, grants };
}

/** Lists the typed views, which call our functions and are created again after other views. */
async function typedViews(tx: Transaction): Promise<Created[]> {
  const { rows } = await tx.execute<{ name: string }>(sql`
    select c.oid::regclass::text as name
    from pg_class c
    where c.relnamespace = to_regnamespace('fields')
      and ${isTypedView}`);
  return rows.map(({ name }) => ({ kind: 'view', name }));
}

/**
 * Drops a view or a function. If something was built on it, it stays, and Postgres's description of
 * the dependents is returned: `view mine depends on view analytics.bills`.
 */
async function dropUnlessUsed(tx: Transaction, what: string): Promise<string[]> {
  try {
    await tx.transaction((part) => part.execute(sql.raw(`drop ${what}`)));
    return [];
  } catch (error) {
    const dependents = dependentsIn(error);
    if (dependents === undefined) throw error;
    return dependents;
  }
}

/**
 * Drops what is left of earlier versions. Returns what keeps any of it from being dropped, unless
 * that is itself left of an earlier version.
 */
async function dropGone(tx: Transaction): Promise<string[]> {
  const names = new Set(gone.map(nameOf));
  const dependents: string[] = [];
  for (const what of gone)
    dependents.push(...(await dropUnlessUsed(tx, what.replace(' ', ' if exists '))));
  return dependents.filter((line) => !names.has(nameOf(line)));
}

/** Returns `function f` of `function f(uuid)` and of `function f(uuid) depends on table t`. */
const nameOf = (line: string): string => line.replace(/(\(.*\))?( depends on .*)?$/, '');

/** The error for users' views that block a change; undefined if there are none. */
function inTheWay(
  change: string,
  refusal: string,
  dependents: readonly string[],
): Error | undefined {
  if (dependents.length === 0) return undefined;
  const why = `${refusal}${[...new Set(dependents)].join('; ')}`;
  // It has no cause, because the cause's message would be printed instead of this message.
  return new Error(
    `views of yours were built on views that ${change}: drop them, run metersync migrate, and make them again. ${why}`,
  );
}

/** Returns statements that restore the grants on a view. */
export async function grantsOn(tx: Transaction, view: string): Promise<string[]> {
  const { rows } = await tx.execute<{ grant: string }>(
    sql`select metersync.grants_on(${view}) as grant`,
  );
  return rows.map(({ grant }) => grant);
}

/** Restores grants, except grants on a column or view that no longer exists. */
export async function grantAgain(tx: Transaction, grants: readonly string[]): Promise<void> {
  for (const grant of grants) {
    try {
      await tx.transaction((part) => part.execute(sql.raw(grant)));
    } catch (error) {
      if (![noColumn, noRelation].includes(sqlState(error) ?? '')) throw error;
    }
  }
}

/** Returns the signatures, which a drop needs, of all functions with a name. */
async function signatures(tx: Transaction, name: string): Promise<string[]> {
  const { rows } = await tx.execute<{ signature: string }>(sql`
    select oid::regprocedure::text as signature
    from pg_proc
    where pronamespace::regnamespace || '.' || proname = ${name}`);
  return rows.map(({ signature }) => signature);
}

/** What only 0.2 had, in the words of a `drop` statement, dependents first. */
const gone: readonly string[] = [
  'table metersync.stale_records',
  'table metersync.old_field_catalogue',
  'table ops.contract_changes',
];

/** A file of analytics/: its text, and the views and functions that it creates. */
interface ViewFile {
  readonly path: string;
  readonly text: string;
  readonly makes: readonly string[];
}

/** A view or function by its name. */
interface Created {
  readonly kind: 'view' | 'function';
  readonly name: string;
}

/** Lists the views and functions that a text creates, in order. */
const createdBy = (text: string): Created[] =>
  [...text.matchAll(/create or replace (view|function) ([\w.]+)/g)].map(([, kind, name = '']) => ({
    kind: kind === 'view' ? kind : 'function',
    name,
  }));

/** Comments may name anything, and do not affect the order. */
const comments = /--.*$|^comment on [\s\S]*?';$/gm;
const qualifiedName = /\b\w+\.\w+\b/g;

/**
 * Returns the texts of analytics/, each after the files whose views and functions it names: the schema first,
 * comments last. `{{bills at="null" …}}` is replaced by templates/bills.sql with these arguments.
 * @throws Error naming the files of a cycle
 */
export function viewTexts(folder: string = packagedFolder('analytics')): string[] {
  const read = (path: string) => withTemplates(folder, readFileSync(join(folder, path), 'utf8'));
  const all = (pattern: string) => globSync(pattern, { cwd: folder }).sort();
  const files = all('{functions,views,checks}/*.sql').map((path): ViewFile => {
    const text = read(path);
    return { path, text, makes: createdBy(text).map(({ name }) => name) };
  });
  return [
    ...all('schema.sql').map(read),
    ...inOrder(files).map(({ text }) => text),
    ...all('comments/*.sql').map(read),
  ];
}

/** Sorts files by name, but each after the files that create what it names. */
function inOrder(files: readonly ViewFile[]): ViewFile[] {
  const makerOf = new Map(files.flatMap((file) => file.makes.map((name) => [name, file] as const)));
  const done = new Set<ViewFile>();
  const place = (file: ViewFile, after: readonly ViewFile[]) => {
    if (done.has(file)) return;
    const path = [...after, file];
    if (after.includes(file))
      throw new Error(`files name one another: ${path.map((one) => one.path).join(' → ')}`);
    for (const [name] of file.text.replace(comments, '').matchAll(qualifiedName)) {
      const maker = makerOf.get(name);
      if (maker !== undefined && maker !== file) place(maker, path);
    }
    done.add(file);
  };
  for (const file of files) place(file, []);
  return [...done];
}

/** Replaces each template reference by the template. */
function withTemplates(folder: string, text: string): string {
  return text.replace(/\{\{(\w+)(.*?)\}\}/gs, (_, name: string, given: string) => {
    const values = new Map(
      [...given.matchAll(/(\w+)="(.*?)"/g)].map(([, key, value]) => [key, value]),
    );
    const template = readFileSync(join(folder, 'templates', `${basename(name)}.sql`), 'utf8');
    return template
      .replace(/^--.*\n/gm, '')
      .replace(/\{\{(\w+)\}\}/g, (_all, key: string) => values.get(key) ?? '')
      .trim();
  });
}
