import { formatTime } from '../contract/times.ts';
import {
  type FindingType,
  type Found,
  type VerdictWord,
  verdictWords,
  wordOfSeverity,
} from './finding-type.ts';
import { type AlarmName, findingTypes, isAlarmName, rankOf } from './findings.ts';
import type { Health } from './measured.ts';

/** Exit statuses of `metersync status --exit-code`. 1 and 2 mean that a command failed or was misused. */
export const verdictStatus: Readonly<Record<VerdictWord, number>> = {
  'In sync': 0,
  'Catching up': 0,
  'Needs you': 3,
  Broken: 4,
  Unknown: 5,
};

/** One thing that is wrong. */
export interface Finding {
  readonly name: string;
  /** `In sync` if somebody acknowledged it, or if it is only information. */
  readonly word: VerdictWord;
  /** A summary in a few words. */
  readonly brief: string;
  readonly saw: string;
  readonly todo: string;
  /** The alarm that it becomes if it lasts; null if it never does. */
  readonly alarm: AlarmName | null;
  /** Distinguishes it from other findings of the alarm: `kind=full,state=partial`. */
  readonly key: string;
  readonly counts: Readonly<Record<string, number>>;
  /** Since when the alarm is open, and when it was sent; null while it is not open. */
  readonly open: { readonly since: string; readonly notifiedAt: string | null } | null;
  /** Who acknowledged it; null if nobody did, or if its count has risen since. */
  readonly acknowledged: { readonly by: string; readonly at: string; readonly note: string | null } | null;
}

export interface Verdict {
  readonly word: VerdictWord;
  /** All findings, the worst first; findings of the same word by what has to be done first. */
  readonly findings: readonly Finding[];
}

/** Judges a deployment: the verdict has the word of the worst finding. */
export const verdictOf = (health: Health): Verdict =>
  worstFirst(Object.keys(findingTypes).flatMap((type) => findingsOf(type, health) ?? []));

/** Makes a verdict of findings. */
export function worstFirst(findings: readonly Finding[]): Verdict {
  const rank = ({ word }: Finding): number => verdictWords.indexOf(word);
  const sorted = findings.toSorted((a, b) => rank(b) - rank(a) || rankOf(a.alarm) - rankOf(b.alarm));
  return { word: sorted[0]?.word ?? 'In sync', findings: sorted };
}

/** Lists the findings of a type; undefined if its source is unreachable. */
export function findingsOf(typeName: string, health: Health): readonly Finding[] | undefined {
  const type = findingTypes[typeName];
  const watch = 'away' in health.warehouse ? undefined : health.warehouse.watch;
  return type?.judge?.(health)?.map((found) => {
    const key = keyOf(found.labels);
    const counts = found.counts ?? {};
    const said = inWords(type, found, health);
    const ofIt = (one: { readonly name: string; readonly key: string }) =>
      one.name === typeName && one.key === key;
    const alarm = watch?.open.find(ofIt);
    const known = said.word === acknowledgeable ? watch?.acknowledged.find(ofIt) : undefined;
    const isNews = Object.entries(counts).some(([name, count]) => count > (known?.counts[name] ?? 0));
    const acknowledged = known === undefined || isNews ? null : known;
    return {
      ...said,
      word: acknowledged === null ? said.word : 'In sync',
      alarm: isAlarmName(typeName) ? typeName : null,
      key,
      counts,
      open: alarm === undefined ? null : { since: alarm.openedAt, notifiedAt: alarm.notifiedAt },
      acknowledged: acknowledged && { by: acknowledged.by, at: acknowledged.at, note: acknowledged.note },
    };
  });
}

/** Whether a finding needs nobody: it is information, or ends by itself. Acknowledged findings need somebody. */
export const needsNobody = ({ word, acknowledged }: Pick<Finding, 'word' | 'acknowledged'>): boolean =>
  acknowledged === null && (word === 'In sync' || word === 'Catching up');

/** Only findings with this word can be acknowledged. Findings that stop everything cannot. */
export const acknowledgeable: VerdictWord = 'Needs you';

const inWords = (type: FindingType, found: Found, { sandbox = false }: Health) => ({
  name: found.name ?? type.name,
  word: found.word ?? wordOfSeverity[type.severity],
  brief: found.brief ?? briefly(type.means),
  saw: found.saw,
  todo: plain((sandbox ? type.todoInSandbox : undefined) ?? found.todo ?? type.todo),
});

/** Turns a sentence into words that follow a colon. Names keep their capitals. */
const briefly = (sentence: string): string =>
  sentence.replace(/\.$/, '').replace(/^(?!Postgres|[A-Z_]{2})./, (first) => first.toLowerCase());

/** Formats labels as a key. Their values contain neither `=` nor `,`. */
const keyOf = (labels: Found['labels'] = {}): string =>
  Object.entries(labels)
    .map(([label, value]) => `${label}=${value}`)
    .join(',');

/** Removes the markup of docs/runbooks.md from a text: backticks around commands, and links within the page. */
export const plain = (words: string): string =>
  words.replaceAll('`', '').replaceAll(/\[([^\]]+)\]\(#[^)]+\)/g, 'see docs/runbooks.md');

/** Formats the first line of a verdict: the word, the worst finding in a few words, and how many more there are. */
export function headline({ word, findings }: Verdict): string {
  const [first, ...more] = findings.filter((finding) => finding.word !== 'In sync');
  const known = findings.filter(({ acknowledged }) => acknowledged !== null).length;
  if (first === undefined) return known === 0 ? word : `${word}, ${known} acknowledged`;
  return `${word}: ${first.brief}${more.length === 0 ? '' : `, and ${more.length} more`}`;
}

/** Says who acknowledged a finding, and why. */
export const acknowledgedInWords = ({ by, at, note }: NonNullable<Finding['acknowledged']>): string =>
  `acknowledged by ${by} at ${formatTime(at)}${note === null ? '' : `: ${note}`}`;
