import { html, raw } from 'hono/html';
import type { Report } from '../../db/read/report.ts';
import { visibleText } from '../../web/visible-text.ts';
import { amount, formatCount, monthAt, percent, timeOf, weekdays } from './amounts.ts';
import { correctionsChart, costCharts, coverageChart, loadChart, usageChart } from './charts.ts';
import { style } from './style.ts';
import {
  countsOf,
  figuresOf,
  isEmpty,
  metersOfLoad,
  scopeOf,
  undatedCost,
  usageSeries,
  zonesOf,
} from './summary.ts';

type Html = ReturnType<typeof html>;
type Cell = string | number;

/**
 * Writes the report as one page without script or network, with charts as SVG. Invisible characters of names
 * are written as in the console, wherever they are on the page.
 */
export async function reportPage(report: Report): Promise<string> {
  const title = `Energy report: ${scopeOf(report)}`;
  return visibleText(
    String(
      await html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'">
    <meta name="color-scheme" content="light dark">
    <title>${title}</title>
    <style>${raw(style)}</style>
  </head>
  <body>
    <header>
      <h1>${title}</h1>
      <p>As the warehouse was at ${timeOf(report.madeAt)} UTC. ${countsOf(report)}.</p>
    </header>
    <main>${isEmpty(report) ? nothing() : sections(report)}</main>
  </body>
</html>
`,
    ),
  );
}

const nothing =
  () => html`<p class="none">There is nothing in the warehouse yet: run <code>metersync backfill all</code>, or name
  another company.</p>`;

function sections(report: Report): Html[] {
  const figures = figuresOf(report);
  return [
    costSection(report, figures.cost),
    ...usageSections(report),
    loadSection(report, figures.load),
    coverageSection(report, figures.coverage),
    correctionsSection(report, figures.corrections),
    freshnessSection(report, figures.freshness),
  ];
}

function costSection(report: Report, figure: string): Html {
  return section({
    title: 'Cost by month',
    figure,
    caption: captionOf(
      'Bills are spread evenly over their days. Amounts in different currencies are never added.',
      undatedCost(report),
    ),
    chart: report.cost.length === 0 ? undefined : costCharts(report),
    head: ['Month', 'Currency', 'Cost'],
    rows: report.cost.map((row) => [
      monthAt(row.month, report.madeAt),
      row.currency ?? 'none',
      amount(row.cost),
    ]),
    none: 'No month has bills with a cost.',
  });
}

function usageSections(report: Report): Html[] {
  const caption =
    'Bills are spread evenly over their days, and each day is counted once. No bill covers a month without a bar.';
  return usageSeries(report).map(({ name, units, rows, latest, undated }, place) =>
    section({
      title: `Usage by month: ${name}`,
      figure: latest,
      caption: captionOf(caption, undated),
      chart: usageChart(report, rows, place),
      head: ['Month', `Usage (${units})`, 'Meters billed'],
      rows: rows.map((row) => [
        monthAt(row.month, report.madeAt),
        amount(row.usage),
        formatCount(row.meters),
      ]),
      none: 'No month has bills with usage.',
    }),
  );
}

/** Adds to a caption the amounts that no month has, because a sum over the months lacks them. */
const captionOf = (caption: string, undated: string): string =>
  undated === '' ? caption : `${caption} Not shown: ${undated}.`;

function loadSection(report: Report, figure: string): Html {
  return section({
    title: 'Load profile',
    figure,
    caption: `Mean power by hour and weekday of ${metersOfLoad(report)} with readings of energy or power together: the meters that have readings of at least 95 % of the hours. Exports and generation are left out. Hours are ${zonesOf(report)}.`,
    chart: report.load.hours.some(({ kw }) => kw !== null) ? loadChart(report.load.hours) : undefined,
    head: ['Weekday', 'Hour', 'kW'],
    rows: report.load.hours.map((row) => [weekdays[row.weekday - 1] ?? '', row.hour, amount(row.kw, 3)]),
    none: 'There are no interval readings.',
  });
}

function coverageSection(report: Report, figure: string): Html {
  return section({
    title: 'Coverage',
    figure,
    caption:
      'The share of the days of all meters that bills cover, and the share of the time that readings cover, from the first month of each meter to its last. Days and times without data do not count as zero usage.',
    chart: report.coverage.length === 0 ? undefined : coverageChart(report),
    head: ['Month', 'Days billed', 'Time that readings cover'],
    rows: report.coverage.map((row) => [
      monthAt(row.month, report.madeAt),
      percent(row.bills),
      percent(row.readings),
    ]),
    none: 'There are neither bills nor readings.',
  });
}

function correctionsSection(report: Report, figure: string): Html {
  return section({
    title: 'Corrections',
    figure,
    caption:
      'Bills that changed after they were first read: corrected in place, moved to another account, superseded, deleted or restored; by the month in which the warehouse got the change.',
    chart: report.corrections.byMonth.length < correctionMonthsMin ? undefined : correctionsChart(report),
    head: ['Changed at (UTC)', 'Provider', 'Invoice', 'What happened', 'Change in cost'],
    rows: report.corrections.latest.map((row) => [
      timeOf(row.changedAt),
      row.provider ?? '–',
      row.invoiceId ?? row.billId,
      whatHappened(row),
      row.change === null ? '–' : `${amount(row.change)} ${row.currency ?? ''}`,
    ]),
    summary: 'The latest',
    none: 'No bill changed after it was first read.',
  });
}

function whatHappened({ what, fields, reason }: Report['corrections']['latest'][number]): string {
  if (what === 'moved') return 'moved to another account';
  return what === 'corrected' ? `corrected: ${fields.join(', ')}` : (reason ?? what);
}

/** A chart with fewer bars shows no more than the numbers. */
const correctionMonthsMin = 3;

function freshnessSection(report: Report, figure: string): Html {
  return section({
    title: 'Freshness',
    figure,
    caption: 'How far the data reaches, by three dates, and what late connections are waiting for.',
    head: ['What', 'Value'],
    rows: [
      ['Utilities published until', report.freshness.publishedUntil ?? '–'],
      ['The service collected at (UTC)', timeOf(report.freshness.collectedAt)],
      ['Applied here at (UTC)', timeOf(report.freshness.appliedAt)],
      ['Events that wait', formatCount(report.freshness.pendingEvents)],
      ...report.freshness.byCause.map((row) => [
        `Late, waiting for: ${row.cause}`,
        formatCount(row.connections),
      ]),
    ],
    open: true,
    none: 'There are no connections.',
  });
}

interface Section {
  readonly title: string;
  readonly figure: string;
  readonly caption: string;
  readonly chart?: string | undefined;
  readonly head: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  /** Label of the table while it is folded. */
  readonly summary?: string;
  readonly open?: boolean;
  readonly none: string;
}

function section(content: Section): Html {
  const { title, figure, caption, chart, rows, none, open, summary = 'The numbers' } = content;
  const body =
    rows.length === 0
      ? html`<p class="none">${none}</p>`
      : html`${chart === undefined ? '' : html`<div class="wide" tabindex="0" role="region" aria-label="${`${title}: chart`}"><div class="chart" role="img" aria-label="${`${title}. ${figure}. The table has the numbers.`}">${raw(chart)}</div></div>`}
        <details ${open ? raw('open') : ''}><summary>${summary}</summary>${numbers(content)}</details>`;
  return html`<section>
      <h2>${title}</h2>
      <p class="figure">${figure}</p>
      <p class="caption">${caption}</p>
      ${body}
    </section>`;
}

/** Cells of up to this many characters are kept on one line. */
const shortMax = 20;

function numbers({ title, head, rows, open }: Section): Html {
  return html`<div class="wide ${open ? '' : 'table'}" tabindex="0" role="region" aria-label="${`${title}: table`}"><table>
        <thead><tr>${head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
        <tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td class="${String(cell).length <= shortMax ? 'short' : ''}">${cell}</td>`)}</tr>`)}</tbody>
      </table></div>`;
}
