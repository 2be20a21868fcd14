import { html, raw } from 'hono/html';
import { type EventOutcome, eventOutcomes } from '../contract/names.ts';
import { nameInWords } from '../contract/words.ts';
import type { HourOfEvents } from '../db/read/arrivals.ts';
import type { CompanyMonths, MonthMark } from '../db/read/company-months.ts';
import type { ListedRun } from '../db/read/runs.ts';
import { amount } from '../operations/report/summary.ts';
import { bars, categories, drawChart, grid, seriesColours, values } from '../web/chart.ts';
import type { Markup } from '../web/parts.ts';
import { count, text } from './parts.ts';

/** Widths of drawings in pixels: of two next to each other, and of one that fills the row. */
const halfWidth = 400;
const wholeWidth = 960;
/** Prevents a single bar from filling the width of the chart. */
const barMaxWidth = 40;

interface ChartCard {
  readonly title: string;
  /** What the drawing shows, for readers who do not see it. */
  readonly says: string;
  /** The series that the reader has to tell apart. */
  readonly series?: readonly Series[];
  readonly chart: string;
  /** Whether the drawing is as wide as the row. */
  readonly isWide?: boolean;
  /** The numbers behind the drawing. Undefined if another table of the page has them. */
  readonly table?: { readonly head: readonly string[]; readonly rows: readonly (readonly string[])[] };
}

/**
 * A drawing with its numbers. On a narrow screen a wide drawing scrolls within the card, and its newest part is
 * shown first. Its legend is not part of the drawing, so that it wraps.
 */
export function chartCard({ title, says, series = [], chart, isWide, table }: ChartCard): Markup {
  return html`<div class="card chart-card"><h3>${title}</h3>${series.length > 1 && legend(series)}
<div class="scrolls newest" tabindex="0" role="region" aria-label="${`${title}: chart`}"><div class="chart ${isWide && 'whole'}" role="img" aria-label="${says}">${raw(chart)}</div></div>
${
  table !== undefined &&
  html`<details><summary>The numbers</summary><div class="scrolls" tabindex="0" role="region" aria-label="${`${title}: table`}"><table>
<thead><tr>${table.head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>${table.rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table></div></details>`
}</div>`;
}

/** Bars that are stacked, or a line. */
interface Series {
  readonly name: string;
  readonly colour: string;
  readonly data: readonly (number | null)[];
  readonly line?: 'solid' | 'dashed';
}

const legend = (series: readonly Series[]): Markup =>
  html`<ul class="legend">${series.map(
    ({ name, colour, line }) =>
      html`<li><svg viewBox="0 0 20 10" aria-hidden="true">${
        line === undefined
          ? html`<rect width="20" height="10" rx="2" fill="${colour}"/>`
          : html`<path d="M0 5h20" stroke="${colour}" stroke-width="2.5" ${line === 'dashed' && raw('stroke-dasharray="4 4"')}/>`
      }</svg>${name}</li>`,
  )}</ul>`;

const colourOf = (place: number): string => seriesColours[place % seriesColours.length] ?? '';

function drawSeries(
  series: readonly Series[],
  names: readonly string[],
  { yAxis = values({ minInterval: 1 }), height = 180, width = halfWidth } = {},
): string {
  return drawChart(
    {
      grid: { ...grid, top: 16 },
      series: series.map(({ name, colour, data, line }) => ({
        name,
        data,
        itemStyle: { color: colour },
        ...(line === undefined
          ? { type: 'bar', stack: 'all', barMaxWidth }
          : { type: 'line', symbolSize: 5, lineStyle: { type: line } }),
      })),
      xAxis: categories(names),
      yAxis,
    },
    height,
    width,
  );
}

const minutes = (ms: number): number => Math.round(ms / 600) / 100;

/** Draws how long runs took and how many rows they wrote, the oldest first. */
export function runCharts(ended: readonly ListedRun[], msOf: (run: ListedRun) => number): Markup {
  const runs = ended.toReversed();
  const names = runs.map(({ finishedAt }) => (finishedAt ?? '').slice(5, 16).replace('T', ' '));
  const took = (['full', 'reconcile'] as const).map((kind, place) => ({
    name: kind === 'full' ? 'full backfill' : 'reconcile',
    colour: colourOf(place),
    data: runs.map((run) => (run.kind === kind ? minutes(msOf(run)) : null)),
  }));
  const rows = (
    [
      ['new', ({ rowsInserted }: ListedRun) => rowsInserted],
      ['changed', ({ rowsChanged }: ListedRun) => rowsChanged],
      ['tombstoned', ({ rowsTombstoned }: ListedRun) => rowsTombstoned],
    ] as const
  ).map(([name, of], place) => ({ name, colour: colourOf(place), data: runs.map(of) }));
  const last = `the last ${runs.length} runs`;
  const more = 'by the time of their end (UTC). The table of runs has the numbers.';
  return html`<div class="charts">${chartCard({
    title: `Duration of ${last} in minutes`,
    says: `How many minutes each of ${last} took, ${more}`,
    series: took,
    chart: drawSeries(took, names, { yAxis: values() }),
  })}
${chartCard({
  title: `Rows written by ${last}`,
  says: `Rows that were new, changed or tombstoned in ${last}, ${more}`,
  series: rows,
  chart: drawSeries(rows, names),
})}</div>`;
}

const outcomeColours: Readonly<Record<EventOutcome, string>> = {
  applied: 'var(--series-3)',
  pending: 'var(--series-1)',
  superseded: 'var(--series-8)',
  ignored: 'var(--series-6)',
  missing: 'var(--series-2)',
  dead: 'var(--series-5)',
};

/** Draws the events of the last hours: their outcomes, how long they took, and how many were waiting. */
export function eventCharts(hours: readonly HourOfEvents[]): Markup {
  const names = hours.map(({ hour }) => `${hour.slice(11, 16)}`);
  const outcomes = eventOutcomes
    .filter((outcome) => hours.some((hour) => hour.outcomes[outcome]))
    .map((name) => ({
      name,
      colour: outcomeColours[name],
      data: hours.map((hour) => hour.outcomes[name] ?? 0),
    }));
  const delays = (
    [
      ['row p50', 'rowP50', 'solid'],
      ['row p99', 'rowP99', 'dashed'],
      ['record p50', 'recordP50', 'solid'],
      ['record p99', 'recordP99', 'dashed'],
    ] as const
  ).map(([name, of, line], place) => ({
    name,
    line,
    colour: colourOf(place < 2 ? 0 : 1),
    // A logarithmic axis has no zero.
    data: hours.map((hour) => (hour[of] === null ? null : Math.max(hour[of], 0.001))),
  }));
  const waiting = {
    name: 'waiting',
    line: 'solid',
    colour: outcomeColours.pending,
    data: hours.map((hour) => hour.waiting),
  } as const;
  const seconds = (value: number | null) => (value === null ? '–' : value.toFixed(2));
  // The hours before the first event may not have been counted.
  const counted = hours.slice(hours.findIndex(({ outcomes }) => Object.keys(outcomes).length > 0));
  return html`<div class="charts">${chartCard({
    title: 'Events received in each hour (UTC), by outcome',
    says: `Events of ${hours.length} hours by their outcome. The table has the numbers.`,
    series: outcomes,
    chart: drawSeries(outcomes, names),
    table: {
      head: ['Hour', ...outcomes.map(({ name }) => name), 'Waiting at the end of the hour'],
      rows: counted.map((hour) => [
        hour.hour.slice(0, 16).replace('T', ' '),
        ...outcomes.map(({ name }) => count(hour.outcomes[name] ?? 0)),
        count(hour.waiting),
      ]),
    },
  })}
${chartCard({
  title: 'Seconds from receipt to row and record',
  says: 'Seconds from the receipt of an event until its row is written, and until its record is read. The table has the numbers.',
  series: delays,
  chart: drawSeries(delays, names, { yAxis: values({ type: 'log' }) }),
  table: {
    head: ['Hour', ...delays.map(({ name }) => name)],
    rows: counted.map((hour) => [
      hour.hour.slice(0, 16).replace('T', ' '),
      ...[hour.rowP50, hour.rowP99, hour.recordP50, hour.recordP99].map(seconds),
    ]),
  },
})}
${chartCard({
  title: 'Events waiting at the end of each hour',
  says: 'How many events were waiting for their record to be read at the end of each hour. The table of events has the numbers.',
  chart: drawSeries([waiting], names),
})}</div>`;
}

/** How many checks have a series of their own. The last colour is for the sum of all others. */
const checksMax = seriesColours.length - 1;

/** The Mondays on which the last weeks began, oldest first. */
function mondaysUntil(now: number, weeks: number): string[] {
  const day = 86_400_000;
  const monday = now - ((new Date(now).getUTCDay() + 6) % 7) * day;
  return Array.from({ length: weeks }, (_, at) =>
    new Date(monday - (weeks - 1 - at) * 7 * day).toISOString().slice(0, 10),
  );
}

/** Draws open issues by the week in which they were opened, each check in its colour. */
export function issueChart(
  open: readonly { readonly checkName: string; readonly week: string | null; readonly open: number }[],
  { now, weeks: charted }: { readonly now: number; readonly weeks: number },
): Markup {
  const weeks = [
    ...(open.some(({ week }) => week === null) ? ['earlier'] : []),
    ...mondaysUntil(now, charted),
  ];
  const byCheck = Map.groupBy(open, ({ checkName }) => checkName);
  const total = (rows: typeof open) => rows.reduce((sum, row) => sum + row.open, 0);
  const checks = [...byCheck].sort(([, a], [, b]) => total(b) - total(a));
  const seriesOf = (name: string, rows: typeof open, place: number) => ({
    name,
    colour: colourOf(place),
    data: weeks.map((week) => total(rows.filter((row) => (row.week ?? 'earlier') === week))),
  });
  const others = checks.slice(checksMax).flatMap(([, rows]) => rows);
  const series = [
    ...checks.slice(0, checksMax).map(([name, rows], place) => seriesOf(nameInWords(name), rows, place)),
    ...(others.length > 0 ? [seriesOf('other checks', others, checksMax)] : []),
  ];
  return chartCard({
    title: `Open issues by the week of their opening, last ${charted} weeks`,
    says: `${count(total(open))} open issues of ${count(checks.length)} checks. The table has the numbers.`,
    series,
    isWide: true,
    // A narrow screen shows the end of the drawing, with the axis.
    chart: drawSeries(series, weeks, {
      yAxis: values({ minInterval: 1, position: 'right' }),
      height: 240,
      width: wholeWidth,
    }),
    table: {
      head: ['Check', ...weeks, 'All'],
      rows: checks.map(([name, rows], place) => [
        nameInWords(name),
        ...seriesOf(name, rows, place).data.map(count),
        count(total(rows)),
      ]),
    },
  });
}

/** Draws a company's cost by month for each currency, and its usage for each commodity and unit. */
export function monthCharts({ months, cost, usage }: CompanyMonths): Markup {
  const names = months.map((month) => month.slice(0, 7));
  const chartOf = (title: string, rows: readonly { month: string; value: string | null }[], colour: number) =>
    chartCard({
      title,
      says: `${title}, for ${names.length} months. The table has the numbers.`,
      chart: bars(
        names,
        months.map((month) => rows.find((row) => row.month === month)?.value),
        { colour, height: 180, width: halfWidth },
      ),
      table: {
        head: ['Month', title],
        rows: rows.map(({ month, value }) => [month.slice(0, 7), amount(value)]),
      },
    });
  const costs = [...Map.groupBy(cost, ({ currency }) => currency ?? 'no currency')].map(
    ([currency, rows]) => ({
      title: `Cost in ${currency}`,
      rows: rows.map((row) => ({ month: row.month, value: row.cost })),
    }),
  );
  const uses = [
    ...Map.groupBy(
      usage,
      ({ commodity, units }) =>
        `Usage of ${(commodity ?? 'unknown kind').toLowerCase()} in ${units ?? 'no unit'}`,
    ),
  ].map(([title, rows]) => ({ title, rows: rows.map((row) => ({ month: row.month, value: row.usage })) }));
  return html`<div class="charts">${[...costs, ...uses].map(({ title, rows }, at) => chartOf(text(title), rows, at))}</div>`;
}

const marks: Readonly<Record<MonthMark, { readonly sign: string; readonly words: string }>> = {
  billed: { sign: '●', words: 'billed' },
  corrected: { sign: '◉', words: 'billed, and corrected later' },
  part: { sign: '◐', words: 'partly billed' },
  late: { sign: '!', words: 'the bill is late' },
  missing: { sign: '○', words: 'no bill' },
};

/** A table of sites and months that says what is known of their bills, and needs no second table. */
export function billCalendar({ calendar: { months, sites } }: CompanyMonths): Markup {
  const years = [...Map.groupBy(months, (month) => month.slice(0, 4))];
  return html`<div class="card"><p class="muted">${Object.values(marks)
    .map(({ sign, words }) => `${sign} ${words}`)
    .join(', ')}. A month that is not over can only be partly billed.</p>
<div class="scrolls newest" tabindex="0" role="region" aria-label="Bills by site and month"><table class="calendar">
<caption class="unseen">What is known of the bills of each site and month, the newest month last</caption>
<thead><tr><th scope="col" rowspan="2">Site</th>${years.map(([year, of]) => html`<th scope="colgroup" colspan="${of.length}"><span>${year}</span></th>`)}</tr>
<tr>${months.map((month) => html`<th scope="col"><span class="unseen">${month.slice(0, 5)}</span>${month.slice(5, 7)}</th>`)}</tr></thead>
<tbody>${sites.map(
    ({ site, marks: ofSite }) =>
      html`<tr><th scope="row">${text(site ?? 'without a site')}</th>${ofSite.map((mark, at) => {
        const { sign, words } = marks[mark];
        return html`<td class="${mark}" title="${`${months[at]?.slice(0, 7)}: ${words}`}"><span aria-hidden="true">${sign}</span><span class="unseen">${words}</span></td>`;
      })}</tr>`,
  )}</tbody></table></div></div>`;
}
