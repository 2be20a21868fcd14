import { html, raw } from 'hono/html';
import type { EventOutcome, RunState, Severity } from '../contract/names.ts';
import { rfc3339 } from '../contract/times.ts';
import {
  badge,
  icons,
  type Markup,
  readableTime,
  relativeTime,
  type Tone,
  visibleText,
} from '../web/parts.ts';
import { type Given, type GivenValues, isGiven, wrongOf } from './asking.ts';

/** Parts of which pages consist. Text from outside must pass through `text`. */

export type Content = Markup | Markup[] | string | number | null | undefined | false;

/** Makes invisible characters of text from outside visible. */
export const text = (value: string | null | undefined): string => visibleText(value ?? '');

/** "3 minutes ago", with the exact time on hover; a dash if there is no time. */
export function ago(at: string | null | undefined, now: number): Markup | string {
  if (at === null || at === undefined) return '–';
  const iso = rfc3339(at);
  return html`<time datetime="${iso}" title="${iso}">${relativeTime((Date.parse(iso) - now) / 1000)}</time>`;
}

const sameYear = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZone: 'UTC',
});
const withYear = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'medium',
  timeZone: 'UTC',
});

/** The time in UTC, for a list whose heading names the zone: "28 Nov, 13:44:48". On hover, how long ago it was. */
export function at(time: string | null | undefined, now: number): Markup | string {
  if (time === null || time === undefined) return '–';
  const iso = rfc3339(time);
  const date = new Date(iso);
  const format = date.getUTCFullYear() === new Date(now).getUTCFullYear() ? sameYear : withYear;
  return html`<time datetime="${iso}" title="${relativeTime((date.getTime() - now) / 1000)}">${format.format(date)}</time>`;
}

/** The time to the second and how long ago it was. */
export function inFull(at: string | null | undefined, now: number): Markup | string {
  if (at === null || at === undefined) return '–';
  const iso = rfc3339(at);
  return html`<time datetime="${iso}" title="${iso}">${readableTime(new Date(iso))}</time> <span class="muted">(${relativeTime((Date.parse(iso) - now) / 1000)})</span>`;
}

/** Begins words with a capital, as a label does. */
export const capital = (words: string): string => `${words.charAt(0).toUpperCase()}${words.slice(1)}`;

export const count = (value: number | null): string => value?.toLocaleString('en') ?? 'unknown';

interface Column<Row> {
  readonly name: string;
  readonly of: (row: Row) => Content;
  readonly end?: boolean;
}

/** A table; on a narrow screen each row is a card. The first column of a row leads to its page. */
export function table<Row>(
  caption: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  idOf: (row: Row) => string,
): Markup {
  const end = (column: Column<Row>) => (column.end ? raw('class="end"') : '');
  return html`<div class="card flush"><table class="rows cards-when-narrow">
<caption class="unseen">${caption}</caption>
<thead><tr>${columns.map((column) => html`<th scope="col" ${end(column)}>${column.name}</th>`)}</tr></thead>
<tbody>${rows.map(
    (row) =>
      html`<tr id="row-${idOf(row)}">${columns.map((column) => html`<td data-name="${column.name}" ${end(column)}><div>${column.of(row)}</div></td>`)}</tr>`,
  )}</tbody></table></div>`;
}

export const rowLink = (to: string, words: Content): Markup =>
  html`<a class="stretched" href="${to}">${words}</a>`;

export const facts = (pairs: readonly (readonly [string, Content])[]): Markup =>
  html`<dl class="facts">${pairs
    .filter(([, value]) => value !== null && value !== undefined && value !== false)
    .map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

export const section = (title: string, body: Content, more?: Content): Markup =>
  html`<section><div class="head"><h2>${title}</h2>${more}</div>${body}</section>`;

export const nothing = (title: string, words: Content): Markup =>
  html`<div class="empty slim"><h3>${title}</h3><p>${words}</p></div>`;

/** Links to the next page of rows and back to the first page. */
export const pager = (next: string | undefined, first: string | undefined): Markup | '' =>
  next === undefined && first === undefined
    ? ''
    : html`<nav class="pages" aria-label="More">${first !== undefined && html`<a class="button outline" href="${first}">First page</a>`}
${next !== undefined && html`<a class="button outline" href="${next}" rel="next">Next page</a>`}</nav>`;

/** An address with these values as its query. Empty values are left out. */
export function address(path: string, values: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams(
    Object.entries(values).filter(
      (pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== '',
    ),
  ).toString();
  return query === '' ? path : `${path}?${query}`;
}

export const outcomeTones: Readonly<Record<EventOutcome, Tone>> = {
  pending: 'busy',
  applied: 'good',
  superseded: 'plain',
  ignored: 'plain',
  dead: 'bad',
  missing: 'uneasy',
};
export const outcomeBadge = (outcome: EventOutcome): Markup => badge(outcomeTones[outcome], outcome);

const stateTones: Readonly<Record<RunState, Tone>> = {
  running: 'busy',
  complete: 'good',
  partial: 'uneasy',
  suspect: 'uneasy',
  failed: 'bad',
};
export const stateBadge = (state: RunState): Markup => badge(stateTones[state], state);

const severityTones: Readonly<Record<Severity, Tone>> = { error: 'bad', warning: 'uneasy', info: 'plain' };
export const severityBadge = (severity: Severity): Markup => badge(severityTones[severity], severity);

/** A link to the page that asks for confirmation of an action. */
export const actButton = (to: string, words: string, tone: 'outline' | 'danger' | '' = 'outline'): Markup =>
  html`<a class="button small ${tone}" href="${to}">${words}</a>`;

interface Option {
  readonly value: string;
  readonly words: string;
}

export const choice = (
  name: string,
  label: string,
  all: string,
  options: readonly Option[],
  { given, wrong }: Given,
): Markup => {
  // A value that is none of the options stays visible, because the page is filtered by it or refuses it.
  const others = given === undefined || options.some(({ value }) => value === given) ? [] : [given];
  const shown = [...options, ...others.map((value) => ({ value, words: text(value) }))];
  return html`<div><label for="filter-${name}">${label}</label><select id="filter-${name}" name="${name}" ${invalidIf(wrong)}><option value="">${all}</option>${shown.map(
    ({ value, words }) =>
      html`<option value="${value}" ${value === given ? raw('selected') : ''}>${words}</option>`,
  )}</select></div>`;
};

export const textField = (name: string, label: string, { given, wrong }: Given): Markup =>
  html`<div><label for="filter-${name}">${label}</label><input id="filter-${name}" name="${name}" value="${given ?? ''}" ${invalidIf(wrong)} autocomplete="off" spellcheck="false"></div>`;

const invalidIf = (wrong: string | undefined) => (wrong === undefined ? '' : raw('aria-invalid="true"'));

/** The form that filters a list, below what is wrong with its values. */
export const filters = (path: string, fields: Content[], values: GivenValues): Markup =>
  html`${wrongOf(values).map((words) => html`<p class="notice bad">${icons.warning}<span>${words}</span></p>`)}
<form method="get" action="${path}" class="filters" aria-label="Filter">${fields}
<div class="actions"><button>Filter</button>${isGiven(values) && html`<a class="button outline" href="${path}">Clear</a>`}</div></form>`;

/** Takes the place of a list whose filter has an unusable value: all rows would look like an answer. */
export const unusable = (path: string, words: string): Markup =>
  nothing('The filter cannot be used', html`Correct the marked field, or <a href="${path}">${words}</a>.`);

/** Commands that the console has a button or a page for, and the name of the button or page. */
const names: readonly (readonly [command: RegExp, name: string])[] = [
  [/metersync deletes approve or (?:metersync deletes )?reject/g, '“Delete them” or “Keep them”'],
  [/metersync deletes list(?: --all)?/g, 'the page “Deletes”'],
  [/metersync deletes undo/g, '“Undo”'],
  [/metersync events list(?: --(?:outcome|code) [\w-]+)*/g, '“Events”'],
  [/metersync events replay(?: --outcome \w+)?/g, '“Replay”'],
  [/metersync alerts acknowledge(?: \w+)?/g, '“Acknowledge”'],
  [/metersync checks acknowledge(?: \w+)?/g, '“Acknowledge”'],
  [/metersync checks list/g, 'the page “Issues”'],
  [/metersync resume(?: --code \w+)?/g, '“Try again”'],
  [/metersync schedule resume(?: (?:full|reconcile))?/g, '“Resume” on the page “System”'],
  [/metersync schedule show/g, 'the page “System”'],
  [/metersync backfill all/g, '“Backfill”'],
  [/metersync backfill --run [\w-]+/g, '“Run”'],
  [/metersync status/g, 'the page “Overview”'],
];

/** Turns the commands of a text into the buttons and pages of the console that do the same. */
export function inConsole(words: string): string {
  const named = names.reduce((text, [command, name]) => text.replace(command, name), words);
  return named.replace(/\b([Rr])un “/g, (_, letter) => `${letter === 'R' ? 'Press' : 'press'} “`);
}
