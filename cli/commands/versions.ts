import { counted, nameInWords } from '../../contract/words.ts';
import {
  diffVersions,
  type FieldDifference,
  type ResourceDiff,
  type VersionsDiff,
} from '../../operations/versions/versions.ts';
import { openContext } from '../context.ts';
import { UsageError } from '../errors.ts';
import { print, printJson } from '../print.ts';
import { createProgress, table } from '../terminal.ts';

export interface VersionsOptions {
  readonly from: string;
  readonly to: string;
  readonly company?: string;
  readonly records: number;
  readonly json?: boolean;
}

/**
 * `metersync versions diff`: compares two versions of the API field by field; status 1 where anything
 * differs.
 */
export async function versionsDiff({ from, to, company, records, json }: VersionsOptions): Promise<void> {
  if (from === to) throw new UsageError('--from and --to are the same version');
  const context = await openContext({
    postgres: false,
    temporal: false,
    service: true,
    quiet: true,
    existing: true,
  });
  try {
    const progress = await createProgress();
    const diff = await diffVersions({
      settings: context.settings,
      service: context.service,
      from,
      to,
      companyId: company,
      records,
      log: context.log,
      onProgress: (resource, compared) =>
        progress.show([`${nameInWords(resource)}: ${counted(compared, 'record')} compared`]),
    });
    progress.done();
    if (json) printJson(diff);
    else print(...describe(diff));
    if (diff.resources.some(({ fields }) => fields.length > 0)) process.exitCode = 1;
  } finally {
    await context.stop();
  }
}

function describe({ from, to, resources }: VersionsDiff): string[] {
  return resources.flatMap((resource, place) => [
    ...(place === 0 ? [] : ['']),
    ...describeResource(resource, from, to),
  ]);
}

function describeResource(
  { resource, compared, unmatched, fields }: ResourceDiff,
  from: string,
  to: string,
): string[] {
  const alone = unmatched === 0 ? '' : `; ${counted(unmatched, 'record')} shown by one version alone`;
  const head = `${nameInWords(resource)}: ${counted(compared, 'record')} in ${from} and ${to}${alone}`;
  if (compared === 0) return [`${head}: nothing to compare`];
  if (fields.length === 0) return [`${head}: the same`];
  return [head, ...table(['field', 'change', from, to, 'records'], fields.map(rowOf))];
}

const rowOf = (field: FieldDifference): (string | number)[] => [
  field.path === '' ? '(the record)' : field.path,
  field.movedTo !== undefined
    ? `moves to ${field.movedTo}`
    : field.movedFrom !== undefined
      ? `moves from ${field.movedFrom}`
      : field.change,
  describeSide(field.from),
  describeSide(field.to),
  field.records,
];

function describeSide({ types, example }: FieldDifference['from']): string {
  if (example === null) return '';
  const short = example.length > 40 ? `${example.slice(0, 40)}…` : example;
  return `${types.length === 0 ? 'null' : types.join(', ')}: ${short}`;
}
