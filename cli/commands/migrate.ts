import { migrate, planOf, requireAnswer } from '../../app/warehouse/prepare.ts';
import { formatSeconds } from '../../contract/times.ts';
import { counted } from '../../contract/words.ts';
import type { MigrationPlan } from '../../db/migrate/migration-plan.ts';
import { roles } from '../../db/migrate/roles.ts';
import { asOperation } from '../as-operation.ts';
import { withContext } from '../context.ts';
import { print, printJson, say } from '../print.ts';
import { notedWherePossible } from '../warehouse.ts';
import { describeBlocked } from './views.ts';

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
    if (options.plan) {
      if (options.json) printJson(plan);
      else print(...describePlan(plan));
      return;
    }
    for (const line of plan.rewrites.flatMap(describeLong)) say(line);
    const migrated = await notedWherePossible(
      context,
      asOperation(settings, 'migrate', {}),
      () => migrate(settings, stack.databaseUrl, log),
      ({ applied }) => inWords(applied),
    );
    const { applied, blocked, rolesMissing, unreadable } = migrated;
    if (options.json) {
      printJson({ ...migrated, blocked: blocked.map(describeBlocked) });
      return;
    }
    print(inWords(applied));
    for (const view of blocked) print(describeBlocked(view));
    if (rolesMissing.length > 0) {
      print(
        `This user cannot create the roles ${rolesMissing.join(' and ')}. As a user who can, run`,
        `"${rolesMissing.map((role) => `create role ${role};`).join(' ')}", then migrate again. metersync works without these roles.`,
      );
    }
    const [first, ...others] = unreadable;
    if (first !== undefined) {
      const more = others.length === 0 ? '' : ` and ${others.length} more`;
      print(`${roles.analyst} cannot read ${first}${more}: only its owner can grant this.`);
    }
  });
}

const inWords = (applied: number): string =>
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
