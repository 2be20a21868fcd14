import { companyResources } from '../contract/endpoints.ts';
import { formatSeconds } from '../contract/times.ts';
import { counted, nameInWords, wordOfRun } from '../contract/words.ts';
import type { CompanyProgress, FailedPart, RunProgress } from '../db/read/run-progress.ts';

/** Maximum number of companies in progress that are listed; only several workers read more at once. */
const runningMax = 10;
const failedMax = 5;
const nameWidth = 28;

/** Describes the progress and speed of a run, and then what is being read of each company. */
export function describeRun(run: RunProgress): string[] {
  if (run.state === null) return ['no worker has started the run yet'];
  const word = wordOfRun[run.kind ?? 'full'];
  const head = [
    run.companiesDone === null
      ? `${word}: ${run.state}, its parts are no longer kept (RETENTION_DAYS)`
      : `${word}: ${count(run.companiesDone)} of ${counted(run.companies, 'company', 'companies')}`,
    `${count(run.rows)} rows`,
    `${count(run.rows / Math.max(run.seconds, 0.1))} rows/s`,
    ...(run.state === 'running' ? left(run) : [`${formatSeconds(Math.ceil(run.seconds))} in all`]),
  ];
  const more = run.running.length - runningMax;
  return [
    head.join(', '),
    ...run.running.slice(0, runningMax).map(describeCompany),
    ...(more > 0 ? [`  … and ${more} more`] : []),
    ...(run.state === 'running' ? run.failed.slice(0, failedMax).map(describePart) : []),
  ];
}

export const describePart = ({ name, resource, state, error }: FailedPart): string =>
  `  ${state}: ${cut(name ?? 'service')} ${nameInWords(resource)}: ${error ?? ''}`;

function describeCompany(company: CompanyProgress): string {
  const { name, resource, step } = company;
  const place = `(${step} of ${companyResources.length})`;
  return `  ${cut(name).padEnd(nameWidth)}  ${nameInWords(resource).padEnd(11)} ${place}, ${amountRead(company)}`;
}

function amountRead({ done, of, unit }: CompanyProgress): string {
  if (unit === 'meters' && of !== null && of > 0)
    return `reading meter ${count(Math.min(Math.floor(done) + 1, of))} of ${count(of)}`;
  return `${count(Math.floor(done))}${of === null ? '' : ` of ${count(of)}`} ${unit}`;
}

/**
 * Estimates the remaining time by the companies that are done, while further companies wait. How long the
 * companies in progress take is unknown: a single meter may have more readings than all others.
 */
function left({ companies, companiesDone, running, seconds }: RunProgress): string[] {
  const done = companiesDone ?? 0;
  if (done === 0 || companies <= done + running.length) return [];
  return [`about ${formatSeconds(Math.ceil((seconds * (companies - done)) / done))} left`];
}

const count = (n: number): string => Math.round(n).toLocaleString('en');
const cut = (name: string): string => (name.length > nameWidth ? `${name.slice(0, nameWidth - 1)}…` : name);
