import { migrate, planOf, requireAnswer } from '../../app/schema.ts';
import { formatSeconds } from '../../contract/times.ts';
import { counted } from '../../contract/words.ts';
import { sqlMessage, sqlState } from '../../db/connection/failures.ts';
import { type AppliedTypedViews, applyTypedViews } from '../../db/fields/typed-views.ts';
import type { MigrationPlan } from '../../db/migrate/migrations.ts';
import { roles } from '../../db/migrate/roles.ts';
import { recorded } from '../../operations/recorded.ts';
import { asOperation } from '../command-line.ts';
import { withContext } from '../context.ts';
import { answer, say } from '../output.ts';
import { notedWherePossible, withWarehouse } from '../warehouse.ts';

type Migrated = Awaited<ReturnType<typeof migrate>>;

interface MigrateOptions {
  readonly plan?: boolean;
  readonly json?: boolean;
}

/** `metersync migrate`: migrates the warehouse to the newest schema, or prints the statements. */
export async function migrateCommand(options: MigrateOptions): Promise<void> {
  await withContext({ temporal: false, service: false, quiet: true }, async (context) => {
    const { settings, stack, log, insecure } = context;
    for (const { saw, todo } of insecure) say(`Warning: ${saw}. ${todo}`);
    await requireAnswer(settings, stack.databaseUrl, log);
    const plan = await planOf(settings, stack.databaseUrl, log);
    if (options.plan) return answer(options, plan, describePlan);
    for (const line of plan.rewrites.flatMap(describeLong)) say(line);
    const migrated = await notedWherePossible(
      context,
      asOperation(settings, 'migrate', {}),
      () => migrate(settings, stack.databaseUrl, log),
      ({ applied }) => migratedInWords(applied),
    );
    const blocked = migrated.blocked.map(describeBlocked);
    answer(options, { ...migrated, blocked }, () => describeMigrated(migrated));
  });
}

function describeMigrated({ applied, blocked, rolesMissing, unreadable }: Migrated): string[] {
  const [first, ...others] = unreadable;
  const roleNames = rolesMissing.map((role) => `create role ${role};`).join(' ');
  return [
    migratedInWords(applied),
    ...blocked.map(describeBlocked),
    ...(rolesMissing.length === 0
      ? []
      : [
          `This user cannot create the roles ${rolesMissing.join(' and ')}. As a user who can, run`,
          `"${roleNames}", then migrate again. metersync works without these roles.`,
        ]),
    ...(first === undefined
      ? []
      : [
          `${roles.analyst} cannot read ${first}${others.length === 0 ? '' : ` and ${others.length} more`}: only its owner can grant this.`,
        ]),
  ];
}

const migratedInWords = (applied: number): string =>
  applied === 0 ? 'The warehouse is up to date.' : `Applied ${counted(applied, 'migration')}.`;

function describePlan({ versions, floorAfter, rewrites, statements }: MigrationPlan): string[] {
  const { known, applied } = versions;
  if (known === applied) return ['The warehouse is up to date.'];
  return [
    `${counted(known - applied, 'migration')}, ${counted(statements.length, 'statement')}.`,
    describeFloor(applied, floorAfter),
    ...rewrites.flatMap(describeLong),
    ...statements.flatMap(({ statement }) => ['', ...statement.split('\n')]),
  ];
}

function describeFloor(applied: number, floor: number): string {
  if (applied === 0) return 'The warehouse is empty.';
  return floor <= applied
    ? 'Workers of the version that migrated it last may keep running during the migration and afterwards.'
    : 'Stop the workers first: the version that migrated it last must not write afterwards.';
}

/** Says how long a migration that rewrites a large table takes. Says nothing about a small table. */
function describeLong({ table, rows, rowsPerSecond }: MigrationPlan['rewrites'][number]): string[] {
  const seconds = Math.ceil(rows / rowsPerSecond);
  if (seconds < 4) return [];
  return [
    `${table} is rewritten, with about ${counted(rows, 'row')}. This takes up to ${formatSeconds(seconds)} on two cores. It is one transaction: if it is interrupted, run metersync migrate again.`,
  ];
}

const [notAllowed, locked] = ['42501', '55P03'];

/** `metersync views apply`: ends with status 1 if a view cannot be replaced because something depends on it. */
export async function viewsApply(options: { json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db, context }) => {
    const done = await recorded(
      db,
      asOperation(context.settings, 'views apply', {}),
      () => applyTypedViews(db).catch(explain),
      (done) => [viewsInWords(done), ...done.blocked.map(describeBlocked)].join('; '),
    );
    answer(options, done, () => [...done.applied, viewsInWords(done), ...done.blocked.map(describeBlocked)]);
    if (done.blocked.length > 0) process.exitCode = 1;
  });
}

function explain(error: unknown): never {
  if (sqlState(error) === locked)
    throw new Error('another session is reading or changing a view: try again', { cause: error });
  if (sqlState(error) !== notAllowed) throw error;
  throw new Error(
    `only the owner of the warehouse can change its views (${sqlMessage(error)}): run this as the user that runs metersync migrate`,
    { cause: error },
  );
}

const viewsInWords = ({ applied }: AppliedTypedViews): string =>
  applied.length === 0 ? 'No view had to change.' : `Applied ${counted(applied.length, 'view')}.`;

function describeBlocked({ view, by, error }: AppliedTypedViews['blocked'][number]): string {
  if (by.length === 0) return `${view} could not be applied: ${error}`;
  const built = by.length === 1 ? 'depends on it. Drop that view' : 'depend on it. Drop those views';
  return `${view} was not changed, because ${by.join(', ')} ${built}, run metersync views apply, and recreate what you dropped.`;
}
