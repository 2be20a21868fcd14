import { companyResources } from '../contract/names.ts';
import { counted, nameInWords } from '../contract/words.ts';
import type { CompanyProgress, RunProgress } from '../db/read/run-progress.ts';

/** Companies that are shown at work; more are read at once by more workers only. */
const runningShown = 10;
const nameWidth = 28;

export interface RunView {
  readonly run: RunProgress;
  /** Rows a second lately. */
  readonly rate: number;
}

/** Lines that say how far a run is, how fast it goes and how long it may still take: of the whole, then of each company. */
export function describeRun({ run, rate }: RunView): string[] {
  const share = shareDone(run);
  const head = [
    `backfill: ${count(run.companiesDone)} of ${counted(run.companies, 'company', 'companies')}`,
    `${count(run.rows)} rows`,
    // Of one that ended there is no rate of lately, but that of the whole.
    `${count(run.state === 'running' ? rate : run.rows / Math.max(run.seconds, 0.1))} rows/s`,
    ...(run.state === 'running' ? left(run.seconds, share) : [`${forSeconds(run.seconds)} in all`]),
  ];
  const more = run.running.length - runningShown;
  return [
    head.join(', '),
    ...run.running.slice(0, runningShown).map(describeCompany),
    ...(more > 0 ? [`  … and ${more} more`] : []),
    ...run.failed.map(
      ({ name, resource, state, error }) =>
        `  ${state}: ${cut(name ?? 'service')} ${nameInWords(resource)}: ${error ?? ''}`,
    ),
  ];
}

function describeCompany(company: CompanyProgress): string {
  const { name, resource, step, done, of, unit, seconds } = company;
  const whole = Math.floor(done);
  const told = [
    `${cut(name).padEnd(nameWidth)}  ${nameInWords(resource).padEnd(11)} (${step} of ${companyResources.length})`,
    of === null ? `${count(whole)} ${unit}` : `${count(whole)} of ${count(of)} ${unit}`,
    ...(done > 0 ? [`${perSecond(done / Math.max(seconds, 0.1))} ${unit}/s`] : []),
    ...(of === null ? [] : left(seconds, of === 0 ? 1 : done / of)),
  ];
  return `  ${told.join(', ')}`;
}

/** Companies at work count by their resources that are read, and by the part of the one that is being read. */
function shareDone(run: RunProgress): number {
  if (run.companies === 0) return 0;
  const begun = run.running.reduce((sum, { step, done, of }) => {
    const part = of === null || of === 0 ? 0 : Math.min(1, done / of);
    return sum + (step - 1 + part) / companyResources.length;
  }, 0);
  return Math.min(1, (run.companiesDone + begun) / run.companies);
}

/** Below this a guess would jump about. */
const shareMin = 0.01;

function left(seconds: number, share: number): string[] {
  if (share < shareMin || share >= 1) return [];
  return [`about ${forSeconds((seconds * (1 - share)) / share)} left`];
}

function forSeconds(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 120) return `${whole} s`;
  const minutes = Math.ceil(whole / 60);
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

/** Rows a second over the last ten seconds, from samples in the order of their time. */
export function createRate(): (sample: Sample) => number {
  let samples: Sample[] = [];
  return (sample) => {
    samples = [...samples.filter(({ atMs }) => sample.atMs - atMs <= windowMs), sample];
    const [first = sample] = samples;
    const seconds = (sample.atMs - first.atMs) / 1000;
    return seconds <= 0 ? 0 : Math.max(0, sample.rows - first.rows) / seconds;
  };
}
