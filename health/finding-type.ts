import type { Health, TemporalHealth, WarehouseHealth } from './measured.ts';

/** A deployment's health, the worst last. What cannot be judged is worse than what waits for a person. */
export const verdictWords = ['In sync', 'Catching up', 'Needs you', 'Unknown', 'Broken'] as const;
export type VerdictWord = (typeof verdictWords)[number];

/** Who has to act: somebody now (`page`), somebody within days (`ticket`), or nobody and without an alarm. */
export const wordOfSeverity = { page: 'Broken', ticket: 'Needs you', note: 'Catching up' } as const;

/** What a judge found. */
export interface Found {
  /** One sentence or clause. It contains no text of the service, because alarms are sent to third parties. */
  readonly saw: string;
  /** What has happened in a few words, if it depends on what was seen. */
  readonly brief?: string;
  /** What to do, if it depends on what was seen. */
  readonly todo?: string;
  /** The name of the finding, if it depends on what was seen. */
  readonly name?: string;
  /**
   * The word, if it depends on what was seen: `Unknown` if something could not be asked, `In sync` for
   * information, because nobody has to act and nothing is behind.
   */
  readonly word?: VerdictWord;
  /** Distinguishes the finding from others of its type. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly counts?: Readonly<Record<string, number>>;
}

/** A kind of finding. Texts have commands between backticks, for docs/runbooks.md. */
export interface FindingType {
  readonly name: string;
  readonly severity: keyof typeof wordOfSeverity;
  /** What has happened, in one sentence. */
  readonly means: string;
  /** Finds it in the measurements; undefined without their source. Prometheus judges other findings. */
  readonly judge?: (health: Health) => readonly Found[] | undefined;
  readonly todo: string;
  /** What to do instead if the sandbox replaces the service, which then has no key and no secret in the settings. */
  readonly todoInSandbox?: string;
}

/** A kind of finding that becomes an alarm once it has lasted. */
export interface AlarmType extends FindingType {
  readonly severity: 'page' | 'ticket';
  /** The condition in PromQL, for what workers cannot know: rates, single processes, no process at all. */
  readonly promql?: string;
  /** The watch cannot raise this alarm, because then it does not run or cannot write. Only Prometheus raises it. */
  readonly stopsWatch?: true;
  /** How many minutes it has to last. */
  readonly forMinutes: number;
}

export const inWarehouse =
  (judge: (warehouse: WarehouseHealth) => readonly Found[]) =>
  ({ warehouse }: Health): readonly Found[] | undefined =>
    'away' in warehouse ? undefined : judge(warehouse);

export const inTemporal =
  (judge: (temporal: TemporalHealth) => readonly Found[]) =>
  ({ temporal }: Health): readonly Found[] | undefined =>
    'away' in temporal ? undefined : judge(temporal);

/** Returns one finding if a condition holds. */
export const foundIf = (condition: boolean, found: Found | (() => Found)): readonly Found[] => {
  if (!condition) return [];
  return [typeof found === 'function' ? found() : found];
};

/** The series that counts the receivers' answers. */
export const answers = 'metersync_receiver_answers_total';

/** The labels that distinguish the deployments of one Prometheus. */
const deployment = ['job', 'namespace'] as const;

const aggregated =
  (how: 'max' | 'min' | 'sum') =>
  (series: string, ...labels: readonly string[]): string =>
    `${how} by (${[...deployment, ...labels].join(', ')}) (${series})`;

/** Aggregate the series of a deployment by labels. */
export const max = aggregated('max');
export const min = aggregated('min');
const sum = aggregated('sum');

export const increase = (series: string, minutes: number): string => sum(`increase(${series}[${minutes}m])`);

/** The share of a counter's increase that has these labels. Without any increase there is no value. */
export const share = (name: string, labels: string, minutes: number): string =>
  `${increase(`${name}{${labels}}`, minutes)} / (${increase(name, minutes)} > 0)`;

/** Whether no process has reported a series for a day. Within a day the alarm can still name the deployment. */
export const nobodyReports = (series: string): string => `absent_over_time(${series}[1d])`;

/** Whether no process of a part is ready. A process that has ended counts as not ready for a day. */
export const noneReady = (part: string): string => {
  const series = `metersync_ready{part="${part}"}`;
  return `${max(`${series} or 0 * last_over_time(${series}[1d])`)} < 1 or ${nobodyReports(series)}`;
};

/** Like `increase`, for a series that other programs export, too. It includes only metersync's processes. */
export const ourIncrease = (series: string, minutes: number): string =>
  sum(`increase(${series}[${minutes}m]) and on (${deployment.join(', ')}, instance) metersync_build_info`);
