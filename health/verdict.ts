import {
  type FindingType,
  type Found,
  type VerdictWord,
  verdictWords,
  wordOfSeverity,
} from './finding-type.ts';
import { type AlarmName, findingTypes, isAlarmName } from './findings.ts';
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
  readonly word: VerdictWord;
  readonly saw: string;
  readonly todo: string;
  /** The alarm that it becomes if it lasts; null if it never does. */
  readonly alarm: AlarmName | null;
  /** Tells it apart from others of that alarm: `kind=full,state=partial`. */
  readonly key: string;
  readonly counts: Readonly<Record<string, number>>;
  /** Since when the alarm is open, and when it was sent; null while it is not open. */
  readonly open: { readonly since: string; readonly notifiedAt: string | null } | null;
}

export interface Verdict {
  readonly word: VerdictWord;
  /** All findings, the worst first. */
  readonly findings: readonly Finding[];
}

/** Judges a deployment: the verdict is the word of its worst finding. */
export const verdictOf = (health: Health): Verdict =>
  worstFirst(Object.keys(findingTypes).flatMap((type) => findingsOf(type, health) ?? []));

/** Makes a verdict of findings. */
export function worstFirst(findings: readonly Finding[]): Verdict {
  const rank = ({ word }: Finding): number => verdictWords.indexOf(word);
  const sorted = findings.toSorted((a, b) => rank(b) - rank(a));
  return { word: sorted[0]?.word ?? 'In sync', findings: sorted };
}

/** Lists what a type finds; undefined while what it asks about is away. */
export function findingsOf(typeName: string, health: Health): readonly Finding[] | undefined {
  const type = findingTypes[typeName];
  const open = 'away' in health.warehouse ? [] : health.warehouse.watch.open;
  return type?.judge?.(health)?.map((found) => {
    const key = keyOf(found.labels);
    const alarm = open.find((one) => one.name === typeName && one.key === key);
    return {
      ...inWords(type, found),
      alarm: isAlarmName(typeName) ? typeName : null,
      key,
      counts: found.counts ?? {},
      open: alarm === undefined ? null : { since: alarm.openedAt, notifiedAt: alarm.notifiedAt },
    };
  });
}

const inWords = (type: FindingType, found: Found) => ({
  name: found.name ?? type.name,
  word: found.word ?? wordOfSeverity[type.severity],
  saw: found.saw,
  todo: plain(found.todo ?? type.todo),
});

/** Writes labels as a key; their values hold neither sign. */
const keyOf = (labels: Found['labels'] = {}): string =>
  Object.entries(labels)
    .map(([label, value]) => `${label}=${value}`)
    .join(',');

/** Removes the marks of a text for docs/runbooks.md: commands between backticks, and links within the page. */
export const plain = (words: string): string =>
  words.replaceAll('`', '').replaceAll(/\[([^\]]+)\]\(#[^)]+\)/g, 'see docs/runbooks.md');

/** Formats the first line of a verdict: the word, and the worst finding. */
export function headline({ word, findings }: Verdict): string {
  const [first, ...more] = findings.filter((finding) => finding.word === word);
  if (first === undefined) return word;
  return `${word}: ${first.name}: ${first.saw}${more.length === 0 ? '' : `; and ${more.length} more`}`;
}
