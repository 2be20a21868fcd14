import { html, raw } from 'hono/html';
import { type EventOutcome, eventOutcomes } from '../contract/names.ts';
import { nameInWords } from '../contract/words.ts';
import type { HourOfEvents } from '../db/read/arrivals.ts';
import type { CompanyMonths, MonthMark } from '../db/read/company-months.ts';
import type { ListedRun } from '../db/read/runs.ts';
import { amount } from '../operations/report/amounts.ts';
import { bars, categories, drawChart, grid, legend, seriesColours, values } from '../web/chart.ts';
import type { Markup } from '../web/markup.ts';
import { count, text } from './parts.ts';

/** Widths of drawings in pixels: of two next to each other, and of one that fills the row. */
const halfWidth = 480;
const wholeWidth = 960;
/** Prevents a single bar from filling the width of the chart. */
const barMaxWidth = 40;

interface ChartCard {
  readonly title: string;
  /** What the drawing shows, for readers who do not see it. */
  readonly says: string;
  readonly chart: string;
  /** The numbers behind the drawing. Undefined if another table of the page has them. */
  readonly table?: { readonly head: readonly string[]; readonly rows: readonly (readonly string[])[] };
}

/** A drawing with its numbers. On a narrow screen the drawing scrolls within the card. */
export function chartCard({ title, says, chart, table }: ChartCard): Markup {
  return html`<div class="card chart-card"><h3>${title}</h3>
<div class="scrolls" tabindex="0" role="region" aria-label="${`${title}: chart`}"><div class="chart" role="img" aria-label="${says}">${raw(chart)}</div></div>
${
  table !== undefined &&
  html`<details><summary>The numbers</summary><div class="scrolls" tabindex="0" role="region" aria-label="${`${title}: table`}"><table>
<thead><tr>${table.head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>${table.rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table></div></details>`
}</div>`;
}

const minutes = (ms: number): number => Math.round(ms / 600) / 100;

/** Draws how long runs took and how many rows they wrote, the oldest first. */
export function runCharts(ended: readonly ListedRun[], msOf: (run: ListedRun) => number): Markup {
  const runs = ended.toReversed();
  const names = runs.map(({ finishedAt }) => (finishedAt ?? '').slice(5, 16).replace('T', ' '));
  const took = (['full', 'reconcile'] as const).map((kind) => ({
    type: 'bar',
    barMaxWidth,
    name: kind === 'full' ? 'full backfill' : 'reconcile',
    stack: 'took',
    data: runs.map((run) => (run.kind === kind ? minutes(msOf(run)) : null)),
  }));
  const rows = (
    [
      ['new', ({ rowsInserted }: ListedRun) => rowsInserted],
      ['changed', ({ rowsChanged }: ListedRun) => rowsChanged],
      ['tombstoned', ({ rowsTombstoned }: ListedRun) => rowsTombstoned],
    ] as const
  ).map(([name, of]) => ({ type: 'bar', barMaxWidth, name, stack: 'rows', data: runs.map(of) }));
  const draw = (series: readonly object[]) =>
    drawChart({ ...legend(series), grid, series, xAxis: categories(names), yAxis: values() }, 200, halfWidth);
  const last = `the last ${runs.length} runs`;
  const more = 'by the time of their end. The table of runs has the numbers.';
  return html`<div class="charts">${chartCard({
    title: 'Duration in minutes',
    says: `How many minutes each of ${last} took, ${more}`,
    chart: draw(took),
  })}
${chartCard({ title: 'Rows written', says: `Rows that were new, changed or tombstoned in ${last}, ${more}`, chart: draw(rows) })}</div>`;
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
  const outcomes = eventOutcomes.filter((outcome) => hours.some((hour) => hour.outcomes[outcome]));
  const seconds = (value: number | null) => (value === null ? '–' : value.toFixed(2));
  const draw = (series: readonly object[], yAxis: object) =>
    drawChart({ ...legend(series), grid, series, xAxis: categories(names), yAxis }, 200, halfWidth);
  const delays = (
    [
      ['row p50', 'rowP50', 'solid'],
      ['row p99', 'rowP99', 'dashed'],
      ['record p50', 'recordP50', 'solid'],
      ['record p99', 'recordP99', 'dashed'],
    ] as const
  ).map(([name, of, type], at) => ({
    type: 'line',
    name,
    symbolSize: 5,
    lineStyle: { type },
    itemStyle: { color: seriesColours[at < 2 ? 0 : 1] },
    // A logarithmic axis has no zero.
    data: hours.map((hour) => (hour[of] === null ? null : Math.max(hour[of], 0.001))),
  }));
  return html`<div class="charts">${chartCard({
    title: 'Events received in each hour (UTC), by outcome',
    says: `Events of ${hours.length} hours by their outcome. The table has the numbers.`,
    chart: draw(
      outcomes.map((name) => ({
        type: 'bar',
        barMaxWidth,
        name,
        stack: 'events',
        itemStyle: { color: outcomeColours[name] },
        data: hours.map((hour) => hour.outcomes[name] ?? 0),
      })),
      values({ minInterval: 1 }),
    ),
    table: {
      head: ['Hour', ...outcomes, 'Waiting at the end of the hour'],
      rows: hours.map((hour) => [
        hour.hour.slice(0, 16).replace('T', ' '),
        ...outcomes.map((outcome) => count(hour.outcomes[outcome] ?? 0)),
        count(hour.waiting),
      ]),
    },
  })}
${chartCard({
  title: 'Seconds from receipt to row and record',
  says: 'Seconds from the receipt of an event until its row is written, and until its record is read. The table has the numbers.',
  chart: draw(delays, values({ type: 'log' })),
  table: {
    head: ['Hour', ...delays.map(({ name }) => name)],
    rows: hours.map((hour) => [
      hour.hour.slice(0, 16).replace('T', ' '),
      ...[hour.rowP50, hour.rowP99, hour.recordP50, hour.recordP99].map(seconds),
    ]),
  },
})}
${chartCard({
  title: 'Events waiting at the end of each hour',
  says: 'How many events were waiting for their record to be read at the end of each hour. The table of events has the numbers.',
  chart: draw(
    [
      {
        type: 'line',
        areaStyle: { opacity: 0.2 },
        itemStyle: { color: outcomeColours.pending },
        data: hours.map(({ waiting }) => waiting),
      },
    ],
    values({ minInterval: 1 }),
  ),
})}</div>`;
}

/** How many checks have a series of their own. The last colour is for the sum of all others. */
const checksMax = seriesColours.length - 1;

/** Draws open issues by the week in which they were opened, each check in its colour. */
export function issueChart(
  open: readonly { readonly checkName: string; readonly week: string | null; readonly open: number }[],
): Markup {
  const weeks = [...new Set(open.map(({ week }) => week ?? 'earlier'))];
  const byCheck = Map.groupBy(open, ({ checkName }) => checkName);
  const total = (rows: typeof open) => rows.reduce((sum, row) => sum + row.open, 0);
  const checks = [...byCheck].sort(([, a], [, b]) => total(b) - total(a));
  const seriesOf = (name: string, rows: typeof open) => ({
    type: 'bar',
    barMaxWidth,
    name,
    stack: 'issues',
    data: weeks.map((week) => total(rows.filter((row) => (row.week ?? 'earlier') === week))),
  });
  const others = checks.slice(checksMax).flatMap(([, rows]) => rows);
  const series = [
    ...checks.slice(0, checksMax).map(([name, rows]) => seriesOf(nameInWords(name), rows)),
    ...(others.length > 0 ? [seriesOf('other checks', others)] : []),
  ];
  return chartCard({
    title: 'Open issues by the week in which they were opened',
    says: `${count(total(open))} open issues of ${count(checks.length)} checks. The table has the numbers.`,
    chart: drawChart(
      {
        ...legend(series),
        grid: { ...grid, top: 64 },
        series,
        xAxis: categories(weeks),
        yAxis: values({ minInterval: 1 }),
      },
      260,
      wholeWidth,
    ),
    table: {
      head: ['Check', ...weeks, 'All'],
      rows: checks.map(([name, rows]) => [
        nameInWords(name),
        ...seriesOf(name, rows).data.map(count),
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
  return html`<div class="card"><p class="muted">${Object.values(marks)
    .map(({ sign, words }) => `${sign} ${words}`)
    .join(', ')}. A month that is not over can only be partly billed.</p>
<div class="scrolls" tabindex="0" role="region" aria-label="Bills by site and month"><table class="calendar">
<caption class="unseen">What is known of the bills of each site and month</caption>
<thead><tr><th scope="col">Site</th>${months.map((month) => html`<th scope="col">${month.slice(0, 4)}<br>${month.slice(5, 7)}</th>`)}</tr></thead>
<tbody>${sites.map(
    ({ site, marks: ofSite }) =>
      html`<tr><th scope="row">${text(site ?? 'without a site')}</th>${ofSite.map((mark, at) => {
        const { sign, words } = marks[mark];
        return html`<td class="${mark}" title="${`${months[at]?.slice(0, 7)}: ${words}`}"><span aria-hidden="true">${sign}</span><span class="unseen">${words}</span></td>`;
      })}</tr>`,
  )}</tbody></table></div></div>`;
}
