import { counted } from '../contract/words.ts';
import type { MigrationPlan, PlannedStatement } from '../db/migration-plan.ts';
import { lockModes } from '../db/statement-locks.ts';

/** Describes what a migration would run, in lines: each statement, the locks it takes, what it writes anew. */
export function describePlan({ versions, floorAfter, statements, views }: MigrationPlan): string[] {
  const migrations = versions.known - versions.applied;
  if (statements.length === 0 && views.length === 0) return ['The warehouse is up to date.'];
  return [
    `${counted(migrations, 'migration')}, ${counted(statements.length, 'statement')}.`,
    ...(migrations === 0 ? [] : [describeFloor(versions.applied, floorAfter)]),
    ...statements.flatMap(describeStatement),
    ...(views.length === 0
      ? []
      : [
          '',
          `${views.length} views and functions of analytics made anew, ACCESS EXCLUSIVE on each: ${lockModes['ACCESS EXCLUSIVE']}.`,
        ]),
  ];
}

function describeFloor(applied: number, floor: number): string {
  if (applied === 0) return 'The warehouse is empty.';
  return floor <= applied
    ? 'Workers of the version that migrated it last may go on meanwhile and afterwards.'
    : 'Stop the workers first: code of the version that migrated it last may not write afterwards.';
}

function describeStatement({ statement, locks, rewrites, scans }: PlannedStatement): string[] {
  return [
    '',
    ...statement.split('\n'),
    ...(locks === null
      ? ['  locks: not known for a statement of this kind']
      : locks.map(({ relation, mode }) => `  locks ${relation} ${mode}: ${lockModes[mode]}`)),
    ...rewrites.map((relation) => `  writes all of ${relation} anew`),
    ...scans.map((relation) => `  reads all of ${relation}`),
  ];
}
