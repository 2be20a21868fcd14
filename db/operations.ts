import { and, desc, eq, lt, type SQL, sql } from 'drizzle-orm';
import { batches } from '../contract/limits.ts';
import type { OperationAction, OperationOutcome, OperatorRole } from '../contract/names.ts';
import { array } from './connection/arrays.ts';
import type { Executor } from './connection/connect.ts';
import { operations } from './schema/metersync.ts';

/** What somebody asked for. */
export interface Operation {
  readonly actor: string;
  readonly role: OperatorRole;
  readonly source: 'console' | 'command';
  readonly action: OperationAction;
  /** Of what: codes, ids, filters. */
  readonly target: Readonly<Record<string, string>>;
}

/** An entry of the log of operations. */
export interface LoggedOperation extends Operation {
  readonly id: number;
  readonly at: string;
  /** Null while it is under way, or if its process ended first. */
  readonly outcome: OperationOutcome | null;
  readonly finishedAt: string | null;
  /** What it did, or why it did not. */
  readonly detail: string | null;
}

/** Notes an operation before its action begins. */
export async function beginOperation(db: Executor, operation: Operation): Promise<number> {
  const [noted] = await db.insert(operations).values(operation).returning({ id: operations.id });
  if (noted === undefined) throw new Error('an insert without a row');
  return noted.id;
}

/** Notes how an operation ended. */
export async function finishOperation(
  db: Executor,
  id: number,
  outcome: OperationOutcome,
  detail: string,
): Promise<void> {
  await db
    .update(operations)
    .set({ outcome, detail, finishedAt: sql`clock_timestamp()` })
    .where(eq(operations.id, id));
}

const { id, at, actor, role, source, action, target, outcome, finishedAt, detail } = operations;
const columns = { id, at, actor, role, source, action, target, outcome, finishedAt, detail };

/** Lists operations, newest first; `before` is the id of the last one of the previous page. */
export async function listOperations(
  db: Executor,
  filter: { readonly actor?: string | undefined },
  page: { readonly limit: number; readonly before?: number | undefined },
): Promise<LoggedOperation[]> {
  return await db
    .select(columns)
    .from(operations)
    .where(
      and(
        filter.actor === undefined ? undefined : eq(actor, filter.actor),
        page.before === undefined ? undefined : lt(id, page.before),
      ),
    )
    .orderBy(desc(id))
    .limit(page.limit);
}

/** The last audits that ended: of everything, and of a part if that was later. */
export interface LastAudits {
  readonly whole: LoggedOperation | undefined;
  readonly part: LoggedOperation | undefined;
}

/** Reads the last audits among the newest 1,000 operations. */
export async function lastAudits(db: Executor): Promise<LastAudits> {
  const latest = db
    .select(columns)
    .from(operations)
    .orderBy(desc(id))
    .limit(batches.operationsSearched)
    .as('latest');
  const audits = await db
    .select()
    .from(latest)
    .where(and(eq(latest.action, 'audit'), eq(latest.outcome, 'done')))
    .orderBy(desc(latest.id));
  const isWhole = ({ target: { command: _, ...scope } }: LoggedOperation) =>
    Object.keys(scope).length === 0;
  const whole = audits.find(isWhole);
  const [first] = audits;
  return { whole, part: first === whole ? undefined : first };
}

/** An operation that names something. */
export interface OperationAbout extends LoggedOperation {
  /** What of the names it names. */
  readonly about: readonly string[];
}

/**
 * Lists operations that have one of these ids, or name one as their target or in what they did. The oldest
 * comes first. It looks at the newest 1,000; refused ones touched nothing.
 */
export async function operationsAbout(
  db: Executor,
  names: readonly string[],
  ids: readonly number[],
): Promise<OperationAbout[]> {
  const words = (text: SQL): SQL => sql`string_to_array(${text}, ' ')`;
  const result = await db.execute<OperationAbout & Record<string, unknown>>(sql`
    with latest as (
      select
        ${operations.id},
        ${operations.at}::text,
        ${operations.actor},
        ${operations.role},
        ${operations.source},
        ${operations.action},
        ${operations.target},
        ${operations.outcome},
        ${operations.finishedAt}::text as "finishedAt",
        ${operations.detail}
      from ${operations}
      order by ${operations.id} desc
      limit ${batches.operationsSearched}
    )
    select
      latest.*,
      named.about
    from latest
      cross join lateral (
        select array(
          select name
          from unnest(${array(names, 'text')}) as name
          where name = any(${words(sql`latest.detail`)})
            or exists (
              select from jsonb_each_text(latest.target) part
              where name = any(${words(sql`part.value`)})
            )
        ) as about
      ) named
    where latest.outcome is distinct from 'refused'
      and (latest.id = any(${array(ids, 'bigint')}) or named.about <> '{}')
    order by latest.id`);
  return result.rows.map((row) => ({ ...row, id: Number(row.id) }));
}

export async function readOperation(
  db: Executor,
  wanted: number,
): Promise<LoggedOperation | undefined> {
  const [found] = await db.select(columns).from(operations).where(eq(id, wanted));
  return found;
}
