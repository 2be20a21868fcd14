import { html, raw } from 'hono/html';
import type { Report } from '../../db/read/report.ts';
import {
  bars,
  categories,
  drawChart,
  grid,
  legend,
  heatColours as steps,
  chartText as text,
  values,
} from '../../web/chart.ts';
import { visibleText } from '../../web/parts.ts';
import {
  amount,
  countsOf,
  figuresOf,
  formatCount,
  isEmpty,
  metersOfLoad,
  monthAt,
  percent,
  scopeOf,
  timeOf,
  undatedCost,
  usageSeries,
  weekdays,
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

/** Colours keep a contrast of 4.5 to 1 for text and 3 to 1 for series, in light and dark. */
const light = `--page: #ffffff; --card: #f6f7f9; --text: #1d2330; --soft: #4b5566; --line: #8a93a3; --grid: #dfe3ea;
  --series-1: #1f6fb4; --series-2: #b3540d; --series-3: #2c7a3f; --series-4: #8a3fa0; --series-5: #b02a4c; --series-6: #3d6c7a;
  --series-7: #7a6400; --series-8: #5a5fc7;
  --heat-0: #e6eef8; --heat-1: #c0d6ee; --heat-2: #8fb8df; --heat-3: #5794cb; --heat-4: #2a6cab; --heat-5: #124578;`;
const dark = `--page: #12161d; --card: #1a2029; --text: #e8ecf2; --soft: #b3bdcb; --line: #7d8798; --grid: #323b48;
  --series-1: #69aeea; --series-2: #f0975a; --series-3: #74c788; --series-4: #cf94e2; --series-5: #f2849f; --series-6: #86bccb;
  --series-7: #d6bd55; --series-8: #a3a7f7;
  --heat-0: #1b2836; --heat-1: #1d4263; --heat-2: #1f5e92; --heat-3: #3c83bd; --heat-4: #7bb0de; --heat-5: #cfe4f7;`;

const style = `
:root { color-scheme: light dark; ${light} }
@media (prefers-color-scheme: dark) { :root { ${dark} } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 3rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; margin: 0; }
header p, .caption { color: var(--soft); margin: 0 0 1rem; }
section { background: var(--card); border: 1px solid var(--grid); border-radius: .5rem; padding: 1rem; margin: 1rem 0; }
.figure { font-size: 1.5rem; font-weight: 600; margin: .1rem 0; }
.none { color: var(--soft); }
.wide { overflow-x: auto; }
.chart { min-width: 36rem; }
.chart svg { display: block; width: 100%; height: auto; }
.chart text { font: 13px system-ui, sans-serif; }
summary { cursor: pointer; margin-top: .5rem; }
.table { max-height: 24rem; overflow-y: auto; }
.short { white-space: nowrap; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
@media print { section { break-inside: avoid; } .table { max-height: none; } }
`;

const draw = (height: number, option: object): string => drawChart(option, height, 880);

/** Names months, and marks the month that has not ended. */
const namesOf = (months: readonly string[], madeAt: string) => months.map((month) => monthAt(month, madeAt));

/** Draws a chart for each currency, because bars of different currencies cannot be compared. */
function costCharts({ cost, months, madeAt }: Report): string {
  return [...Map.groupBy(cost, ({ currency }) => currency)]
    .map(([currency, rows], colour) =>
      bars(
        namesOf(months, madeAt),
        months.map((month) => rows.find((row) => row.month === month)?.cost),
        {
          colour,
          top: 40,
          yAxis: { name: currency ?? 'no currency', nameTextStyle: { ...text, align: 'left' } },
        },
      ),
    )
    .join('');
}

const usageChart = ({ months, madeAt }: Report, usage: Report['usage'], colour: number): string =>
  bars(
    namesOf(months, madeAt),
    months.map((month) => usage.find((row) => row.month === month)?.usage),
    { colour },
  );

function coverageChart({ coverage, months, madeAt }: Report): string {
  const percents = (part: 'bills' | 'readings') =>
    months.map((month) => {
      const covered = coverage.find((row) => row.month === month)?.[part] ?? null;
      return covered === null ? null : Number(covered) * 100;
    });
  const series = [
    { type: 'line', name: 'days billed', symbol: 'circle', data: percents('bills') },
    {
      type: 'line',
      name: 'time that readings cover',
      symbol: 'rect',
      lineStyle: { type: 'dashed' },
      data: percents('readings'),
    },
  ];
  return draw(260, {
    ...legend(series),
    grid,
    series,
    xAxis: categories(namesOf(months, madeAt)),
    yAxis: values({ min: 0, max: 100, axisLabel: { ...text, formatter: '{value} %' } }),
  });
}

const correctionsChart = ({ corrections: { byMonth }, madeAt }: Report): string =>
  bars(
    namesOf(
      byMonth.map(({ month }) => month),
      madeAt,
    ),
    byMonth.map(({ bills }) => bills),
    { yAxis: { minInterval: 1 } },
  );

/** Formats kW in a few characters, because six steps have to fit in a line. */
const power = (kw: number): string => kw.toLocaleString('en', { maximumSignificantDigits: 3 });

/** Draws mean power by hour and weekday, in six steps from the lowest to the highest. */
export function loadChart(load: Report['load']['hours']): string {
  const cells = load.flatMap(({ weekday, hour, kw }) =>
    kw === null ? [] : [[hour, weekday - 1, Number(kw)] as const],
  );
  const means = cells.map(([, , kw]) => kw);
  const [least, most] = [Math.min(...means), Math.max(...means)];
  const bound = (step: number) => least + ((most - least) * step) / steps.length;
  const pieces = steps.map((color, step) => ({
    color,
    gte: bound(step),
    // The highest cell lies on the last bound; nothing lies above it.
    ...(step === steps.length - 1 ? {} : { lt: bound(step + 1) }),
    label: `${power(bound(step))}–${power(bound(step + 1))}`,
  }));
  return draw(330, {
    grid: { ...grid, top: 8, bottom: 52 },
    xAxis: categories(Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, '0'))),
    yAxis: { ...categories(weekdays), inverse: true },
    visualMap: {
      type: 'piecewise',
      pieces,
      text: ['kW', ''],
      showLabel: true,
      orient: 'horizontal',
      left: 'center',
      bottom: 0,
      textStyle: text,
      itemWidth: 14,
      itemGap: 8,
    },
    series: [{ type: 'heatmap', data: cells, itemStyle: { borderColor: 'var(--page)', borderWidth: 1 } }],
  });
}
