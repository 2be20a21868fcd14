import { companyResources } from '../contract/endpoints.ts';
import { formatSeconds } from '../contract/times.ts';
import { counted, nameInWords } from '../contract/words.ts';
import type { CompanyProgress, FailedPart, RunProgress } from '../db/read/run-progress.ts';

/** Maximum number of companies in progress that are listed; only several workers read more at once. */
const runningMax = 10;
const failedMax = 5;
const nameWidth = 28;

/** Describes the progress, speed and remaining time of a run, and then what is being read of each company. */
export function describeRun(run: RunProgress): string[] {
  if (run.state === null) return ['backfill: no worker has started it yet'];
  const head = [
    run.companiesDone === null
      ? `backfill: ${run.state}, its parts are no longer kept (RETENTION_DAYS)`
      : `backfill: ${count(run.companiesDone)} of ${counted(run.companies, 'company', 'companies')}`,
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

function describeCompany({ name, resource, step, done, of, unit }: CompanyProgress): string {
  const read = of === null ? '' : ` of ${count(of)}`;
  return `  ${cut(name).padEnd(nameWidth)}  ${nameInWords(resource).padEnd(11)} (${step} of ${companyResources.length}), ${count(Math.floor(done))}${read} ${unit}`;
}

/** Share of a run that is done. A company in progress counts by its resources, the current one in part. */
function shareDone(run: RunProgress): number {
  if (run.companies === 0 || run.companiesDone === null) return 0;
  const begun = run.running.reduce((sum, { step, done, of }) => {
    const part = of === null || of === 0 ? 0 : Math.min(1, done / of);
    return sum + (step - 1 + part) / companyResources.length;
  }, 0);
  return Math.min(1, (run.companiesDone + begun) / run.companies);
}

/** Below this share an estimate of the remaining time would jump about. */
const shareMin = 0.01;

function left(run: RunProgress): string[] {
  const share = shareDone(run);
  if (share < shareMin || share >= 1) return [];
  return [`about ${formatSeconds(Math.ceil((run.seconds * (1 - share)) / share))} left`];
}

const count = (n: number): string => Math.round(n).toLocaleString('en');
const cut = (name: string): string => (name.length > nameWidth ? `${name.slice(0, nameWidth - 1)}…` : name);
