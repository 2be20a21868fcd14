import type { Database } from '../db/connection/connect.ts';
import { acknowledgeFinding, unacknowledgeFinding } from '../db/watch/acknowledge.ts';
import type { AlarmName } from '../health/findings.ts';
import { acknowledgeable, type Finding, needsNobody, type Verdict } from '../health/verdict.ts';
import { Refused } from './recorded.ts';

/** Which findings: all findings of an alarm, or only the finding with this key. */
export interface Named {
  readonly name: AlarmName;
  readonly key?: string | undefined;
}

/**
 * Acknowledges findings, or withdraws that if `by` (who acknowledges, and why) is undefined.
 * @throws Refused if no finding of the name can be acknowledged
 */
export async function acknowledge(
  db: Database,
  verdict: Verdict,
  named: Named,
  by: { readonly by: string; readonly note: string | null } | undefined,
): Promise<readonly Finding[]> {
  const found = verdict.findings.filter(
    ({ alarm, key }) => alarm === named.name && (named.key === undefined || key === named.key),
  );
  const of = found.filter(({ word, acknowledged }) =>
    by === undefined ? acknowledged !== null : word === acknowledgeable || acknowledged !== null,
  );
  if (of.length === 0) throw new Refused(whyNone(named, found, by === undefined));
  for (const finding of of)
    if (by === undefined) await unacknowledgeFinding(db, finding);
    else await acknowledgeFinding(db, finding, by);
  return of;
}

function whyNone({ name, key }: Named, found: readonly Finding[], undoes: boolean): string {
  const of = `${name}${key === undefined ? '' : ` ${key}`}`;
  if (found.length === 0) return `there is no finding ${of} now: metersync status lists the findings`;
  if (undoes) return `nobody acknowledged ${of}`;
  return found.every(needsNobody)
    ? `${of} need not be acknowledged, because nobody has to act`
    : `${of} cannot be acknowledged, because it stops everything: fix its cause`;
}
