import type { Health, TemporalHealth, WarehouseHealth } from './measured.ts';

/**
 * The words for the health of a deployment, the worst last. What cannot be judged is worse than what waits for a
 * person: it may hide anything.
 */
export const verdictWords = ['In sync', 'Catching up', 'Needs you', 'Unknown', 'Broken'] as const;
export type VerdictWord = (typeof verdictWords)[number];

/** `page`: somebody has to act now. `ticket`: within days. `note`: nobody has to, and it is never an alarm. */
export const wordOfSeverity = { page: 'Broken', ticket: 'Needs you', note: 'Catching up' } as const;

/** What a judge found. */
export interface Found {
  /** One sentence or clause; no text of the service, as alarms are sent to others. */
  readonly saw: string;
  /** It in a few words, where it depends on what was seen. */
  readonly brief?: string;
  /** What to do, where it depends on what was seen. */
  readonly todo?: string;
  /** The finding's name, where a type has several. */
  readonly name?: string;
  /** `Unknown` where something cannot be asked. */
  readonly word?: VerdictWord;
  /** Tells it apart from others of its type. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly counts?: Readonly<Record<string, number>>;
}

/** A kind of finding. Texts have commands between backticks, for docs/runbooks.md. */
export interface FindingType {
  readonly name: string;
  /** It in a few words, for the head of a verdict; needed where there is a judge. */
  readonly brief?: string;
  readonly severity: keyof typeof wordOfSeverity;
  /** Finds it in what was measured; undefined while what it asks about is away. Only Prometheus sees the others. */
  readonly judge?: (health: Health) => readonly Found[] | undefined;
  readonly todo: string;
}

/** A kind of finding that is an alarm once it has lasted. */
export interface AlarmType extends FindingType {
  readonly severity: 'page' | 'ticket';
  /** What has happened, in one sentence. */
  readonly means: string;
  /** When it holds, as PromQL, where workers cannot tell: rates, single processes, and that nobody is left. */
  readonly promql?: string;
  /** The watch cannot raise it, as it does not run then: only Prometheus does. */
  readonly stopsWatch?: true;
  /** How many minutes it has to last. */
  readonly forMinutes: number;
  /** The causes, each with what shows it. */
  readonly causes: readonly string[];
  /** How to see that it is over, where its own condition does not say it. */
  readonly over?: string;
}

export const inWarehouse =
  (judge: (warehouse: WarehouseHealth) => readonly Found[]) =>
  ({ warehouse }: Health): readonly Found[] | undefined =>
    'away' in warehouse ? undefined : judge(warehouse);

export const inTemporal =
  (judge: (temporal: TemporalHealth) => readonly Found[]) =>
  ({ temporal }: Health): readonly Found[] | undefined =>
    'away' in temporal ? undefined : judge(temporal);

/** One finding, if a condition holds. */
export const foundIf = (condition: boolean, found: Found | (() => Found)): readonly Found[] => {
  if (!condition) return [];
  return [typeof found === 'function' ? found() : found];
};
