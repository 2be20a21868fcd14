import { companyResources } from '../contract/endpoints.ts';
import { counted, nameInWords } from '../contract/words.ts';
import type { CompanyProgress, FailedPart, RunProgress } from '../db/read/run-progress.ts';

/** Companies in progress that are listed; only several workers read more at once. */
const runningMax = 10;
/** Parts that failed, while others are read. */
const failedMax = 5;
const nameWidth = 28;

export interface RunView {
  readonly run: RunProgress;
  /** Recent rows a second. */
  readonly rate: number;
}

/** Describes a run's progress, speed and remaining time: of the whole run, then of each company. */
export function describeRun({ run, rate }: RunView): string[] {
  if (run.state === null) return ['backfill: no worker has started it yet'];
  const share = shareDone(run);
  const head = [
    run.companiesDone === null
      ? `backfill: ${run.state}, its parts are no longer kept (RETENTION_DAYS)`
      : `backfill: ${count(run.companiesDone)} of ${counted(run.companies, 'company', 'companies')}`,
    `${count(run.rows)} rows`,
    // A run that ended has no recent rate, only that of the whole run.
    `${count(run.state === 'running' ? rate : run.rows / Math.max(run.seconds, 0.1))} rows/s`,
    ...(run.state === 'running' ? left(run.seconds, share) : [`${forSeconds(run.seconds)} in all`]),
  ];
  const more = run.running.length - runningMax;
  return [
    head.join(', '),
    ...run.running.slice(0, runningMax).map(describeCompany),
    ...(more > 0 ? [`  … and ${more} more`] : []),
    ...(run.state === 'running' ? run.failed.slice(0, failedMax).map(describePart) : []),
  ];
}

/** Describes a part that was not read completely. */
export const describePart = ({ name, resource, state, error }: FailedPart): string =>
  `  ${state}: ${cut(name ?? 'service')} ${nameInWords(resource)}: ${error ?? ''}`;

function describeCompany(company: CompanyProgress): string {
  const { name, resource, step, done, of, unit, seconds } = company;
  const counted = Math.floor(done);
  const parts = [
    `${cut(name).padEnd(nameWidth)}  ${nameInWords(resource).padEnd(11)} (${step} of ${companyResources.length})`,
    of === null ? `${count(counted)} ${unit}` : `${count(counted)} of ${count(of)} ${unit}`,
    ...(done > 0 ? [`${perSecond(done / Math.max(seconds, 0.1))} ${unit}/s`] : []),
    ...(of === null ? [] : left(seconds, of === 0 ? 1 : done / of)),
  ];
  return `  ${parts.join(', ')}`;
}

/**
 * Share of a run that is done. A company in progress counts by its finished resources and part of the current
 * one.
 */
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

function left(seconds: number, share: number): string[] {
  if (share < shareMin || share >= 1) return [];
  return [`about ${forSeconds((seconds * (1 - share)) / share)} left`];
}

function forSeconds(seconds: number): string {
  const rounded = Math.ceil(seconds);
  if (rounded < 120) return `${rounded} s`;
  const minutes = Math.ceil(rounded / 60);
  return minutes < 120 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

const count = (n: number): string => Math.round(n).toLocaleString('en');
const perSecond = (n: number): string => (n < 10 ? n.toFixed(1) : count(n));
const cut = (name: string): string => (name.length > nameWidth ? `${name.slice(0, nameWidth - 1)}…` : name);

interface Sample {
  readonly atMs: number;
  readonly rows: number;
}

const windowMs = 10_000;

/** Makes the function that returns rows a second over the last ten seconds, from samples in order of time. */
export function createRate(): (sample: Sample) => number {
  let samples: Sample[] = [];
  return (sample) => {
    samples = [...samples.filter(({ atMs }) => sample.atMs - atMs <= windowMs), sample];
    const [first = sample] = samples;
    const seconds = (sample.atMs - first.atMs) / 1000;
    return seconds <= 0 ? 0 : Math.max(0, sample.rows - first.rows) / seconds;
  };
}
