import { and, desc, eq, lt, not, sql } from 'drizzle-orm';
import { batches } from '../contract/limits.ts';
import type { OperationAction, OperationOutcome, OperatorRole } from '../contract/names.ts';
import { counted } from '../contract/words.ts';
import type { DifferingAudit } from '../health/measured.ts';
import { readAllSince } from './backfill/runs.ts';
import type { Executor } from './connection/connect.ts';
import { operations } from './schema/metersync.ts';

/** What somebody asked for. */
export interface Operation {
  readonly actor: string;
  readonly role: OperatorRole;
  readonly source: 'console' | 'command';
  readonly action: OperationAction;
  /** What the action is applied to: codes, ids, filters. */
  readonly target: Readonly<Record<string, string>>;
}

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

/** Lists operations, newest first; `before` is the last id of the previous page. */
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

const latestOperations = (db: Executor) =>
  db.select(columns).from(operations).orderBy(desc(id)).limit(batches.operationsSearched);

/** The last audit of everything that ended, and the last audit of a part if it is more recent. */
export interface LastAudits {
  readonly whole: LoggedOperation | undefined;
  readonly part: LoggedOperation | undefined;
}

/** Reads the last audits among the newest 1,000 operations. */
export async function lastAudits(db: Executor): Promise<LastAudits> {
  const latest = latestOperations(db).as('latest');
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

/** Describes what an audit found: `1,265 differences in 21,894 records`. */
export const auditInWords = ({
  differences,
  compared,
}: {
  readonly differences: number;
  readonly compared: number;
}): string => `${counted(differences, 'difference')} in ${counted(compared, 'record')}`;

/** Reads the number of differences in the description of an audit. */
const differencesOf = ({ detail }: Pick<LoggedOperation, 'detail'>): number =>
  Number(/^([\d,]+) differences? in /.exec(detail ?? '')?.[1]?.replaceAll(',', '') ?? 0);

/** Whether an audit compared everything that another audit compared. */
function covers({ target: wider }: LoggedOperation, { target: narrower }: LoggedOperation) {
  const { command: _, ...scope } = wider;
  return Object.entries(scope).every(([name, value]) => {
    const other = narrower[name];
    if (other === undefined) return false;
    if (name === 'since') return value <= other;
    if (name !== 'resources') return value === other;
    return other.split(' ').every((resource) => value.split(' ').includes(resource));
  });
}

/**
 * Reads the last audit that found differences which nothing has cleared: no newer audit of the same
 * records without a difference, and no complete backfill of all companies that began after it.
 */
export async function readDifferingAudit(db: Executor): Promise<DifferingAudit | null> {
  const latest = latestOperations(db).as('latest');
  const audits = await db
    .select()
    .from(latest)
    .where(
      and(
        eq(latest.action, 'audit'),
        eq(latest.outcome, 'done'),
        not(readAllSince(db, sql`${latest.finishedAt}`, 'full')),
      ),
    )
    .orderBy(desc(latest.id));
  const differs = (audit: LoggedOperation) => differencesOf(audit) > 0;
  const found = audits.find(
    (audit, at) =>
      differs(audit) &&
      !audits.slice(0, at).some((newer) => !differs(newer) && covers(newer, audit)),
  );
  if (found === undefined || found.finishedAt === null) return null;
  return { differences: differencesOf(found), finishedAt: found.finishedAt };
}

interface OperationAbout extends LoggedOperation {
  /** The given names that the operation mentions. */
  readonly about: readonly string[];
}

/**
 * Lists operations that have one of these ids or mention one of these names, oldest first. Only the
 * newest 1,000 are searched. Refused operations, which changed nothing, are left out.
 */
export async function operationsAbout(
  db: Executor,
  names: readonly string[],
  ids: readonly number[],
): Promise<OperationAbout[]> {
  const latest = await latestOperations(db);
  const found = latest.flatMap((operation) => {
    const texts = [operation.detail ?? '', ...Object.values(operation.target)];
    const words = new Set(texts.flatMap((text) => text.split(' ')));
    const about = names.filter((name) => words.has(name));
    const isMeant = about.length > 0 || ids.includes(operation.id);
    return isMeant && operation.outcome !== 'refused' ? [{ ...operation, about }] : [];
  });
  return found.reverse();
}

export async function readOperation(
  db: Executor,
  wanted: number,
): Promise<LoggedOperation | undefined> {
  const [found] = await db.select(columns).from(operations).where(eq(id, wanted));
  return found;
}
