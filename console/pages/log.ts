import { html } from 'hono/html';
import { type LoggedOperation, listOperations, readOperation } from '../../db/operations.ts';
import { consoleBounds } from '../../db/read/bounds.ts';
import { badge, type Markup, type Tone } from '../../web/parts.ts';
import { asked, givenText, type MakePage } from '../asking.ts';
import {
  address,
  at,
  capital,
  facts,
  filters,
  inConsole,
  inFull,
  nothing,
  pager,
  rowLink,
  table,
  text,
  textField,
} from '../parts.ts';

export const logList: MakePage = async ({ deps, query, now }) => {
  const values = { actor: givenText(query, 'actor') };
  const actor = values.actor.value;
  const before = operationId(asked(query, 'before'));
  const rows = await listOperations(deps.db, { actor }, { limit: consoleBounds.rows, before });
  const last = rows.length === consoleBounds.rows ? rows.at(-1) : undefined;
  return {
    title: 'Log',
    section: 'Log',
    head: html`<div class="head"><div><h1>Log</h1><p class="muted">Who did what, with the console or the command.</p></div></div>
${filters('/log', [textField('actor', 'Actor', values.actor)], values)}`,
    body: html`${
      rows.length === 0
        ? nothing(
            'No operation yet',
            actor === undefined
              ? 'Each change by the console or the command appears here.'
              : 'Nobody with this name did anything.',
          )
        : table(
            'Operations, the latest first',
            [
              {
                name: 'What',
                of: ({ id, action, target }) =>
                  html`${rowLink(`/log/${id}`, action)}<small class="id">${text(target.command ?? targetInWords(target))}</small>`,
              },
              { name: 'Outcome', of: ({ outcome }) => operationBadge(outcome) },
              {
                name: 'Who',
                of: ({ actor: who, role, source }) =>
                  html`${text(who)}<small class="id">${role}, ${source}</small>`,
              },
              {
                name: 'Detail',
                of: ({ detail }) => html`<small>${text(inConsole(detail ?? '').slice(0, 160))}</small>`,
              },
              { name: 'When (UTC)', end: true, of: (operation) => at(operation.at, now) },
            ],
            rows,
            ({ id }) => String(id),
          )
    }${pager(last && address('/log', { actor, before: String(last.id) }), before === undefined ? undefined : address('/log', { actor }))}`,
  };
};

export const operationId = (value: string | undefined): number | undefined =>
  value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;

const targetInWords = (target: LoggedOperation['target']): string =>
  Object.entries(target)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');

const tones: Readonly<Record<NonNullable<LoggedOperation['outcome']>, Tone>> = {
  done: 'good',
  failed: 'bad',
  refused: 'uneasy',
};

export const operationTone = (outcome: LoggedOperation['outcome']): Tone =>
  outcome === null ? 'busy' : tones[outcome];

const operationBadge = (outcome: LoggedOperation['outcome']): Markup =>
  badge(operationTone(outcome), outcome ?? 'not ended');

export const operationPage: MakePage = async ({ deps, params, now }) => {
  const id = operationId(params.id);
  const operation = id === undefined ? undefined : await readOperation(deps.db, id);
  if (operation === undefined) return undefined;
  const { action, actor, role, source, target, outcome, finishedAt, detail } = operation;
  return {
    title: action,
    section: 'Log',
    live: outcome === null,
    body: html`<p class="crumbs"><a href="/log">Log</a></p><div class="head"><h1>${action}</h1>${operationBadge(outcome)}</div>
<div class="card">${facts([
      ['Who', `${text(actor)}, ${role}, ${source}`],
      ...Object.entries(target).map(([name, value]) => [capital(name), text(value)] as const),
      ['Asked', inFull(operation.at, now)],
      ['Ended', finishedAt === null ? 'not yet, or its process ended' : inFull(finishedAt, now)],
      ['Detail', detail && text(inConsole(detail))],
    ])}</div>`,
  };
};
