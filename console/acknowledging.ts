import { html } from 'hono/html';
import { acknowledgeIssue } from '../db/checks/check-data.ts';
import { listDataIssues } from '../db/read/issues.ts';
import { isAlarmName } from '../health/findings.ts';
import { acknowledge } from '../operations/decisions.ts';
import { Refused } from '../operations/recorded.ts';
import { type Asking, asked } from './asking.ts';
import { text } from './parts.ts';
import type { Question } from './question.ts';

export const noteField = html`<label for="note">Note</label><input id="note" name="note" maxlength="500" autocomplete="off">`;

export const noteOf = (form: URLSearchParams): string | undefined => asked(form, 'note');

export async function askFinding(
  { deps, query, identity, verdict }: Asking,
  undo: boolean,
): Promise<Question> {
  const name = asked(query, 'id') ?? '';
  if (!isAlarmName(name)) throw new Refused(`there is no finding ${name}`);
  const named = { name, key: query.get('key') ?? '' };
  const finding = verdict.findings.find(({ alarm, key }) => alarm === name && key === named.key);
  if (finding === undefined) throw new Refused(`there is no finding ${name} now`);
  return {
    title: undo ? 'Withdraw the acknowledgement' : 'Acknowledge the finding',
    says: undo
      ? `The verdict counts it again: ${text(finding.saw)}`
      : `The verdict leaves it out until its count rises or it is over: ${text(finding.saw)}`,
    ...(undo ? {} : { fields: noteField }),
    button: undo ? 'Withdraw acknowledgement' : 'Acknowledge',
    act: async (form) => {
      const note = noteOf(form);
      await acknowledge(
        deps.writer,
        verdict,
        named,
        undo ? undefined : { by: identity.name, note: note ?? null },
      );
      return undo ? 'no longer acknowledged' : note === undefined ? 'acknowledged' : `acknowledged: ${note}`;
    },
  };
}

export async function askAcknowledge({ deps, query }: Asking, undo: boolean): Promise<Question> {
  const id = /^\d{1,9}$/.exec(query.get('id') ?? '')?.[0];
  const [issue] = id === undefined ? [] : await listDataIssues(deps.db, { id: Number(id) }, 1);
  if (issue === undefined || issue.closedAt !== null) throw new Refused('no such issue is open');
  return {
    title: undo ? 'Withdraw the acknowledgement' : 'Acknowledge the issue',
    says: undo
      ? `1 issue is no longer acknowledged: ${text(issue.sentence)}`
      : `1 issue stays open and is counted separately: ${text(issue.sentence)}`,
    ...(undo ? {} : { fields: noteField }),
    button: undo ? 'Withdraw acknowledgement' : 'Acknowledge',
    act: async (form) => {
      const note = noteOf(form);
      if (!(await acknowledgeIssue(deps.writer, issue.id, { note: undo ? undefined : note, undo })))
        throw new Refused('no such issue is open');
      return undo ? 'no longer acknowledged' : note === undefined ? 'acknowledged' : `acknowledged: ${note}`;
    },
  };
}
