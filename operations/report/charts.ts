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
import { monthAt, weekdays } from './amounts.ts';

const draw = (height: number, option: object): string => drawChart(option, height, 880);

/** Names months, and marks the month that has not ended. */
const namesOf = (months: readonly string[], madeAt: string) => months.map((month) => monthAt(month, madeAt));

/** Draws a chart for each currency, because bars of different currencies cannot be compared. */
export function costCharts({ cost, months, madeAt }: Report): string {
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

export const usageChart = ({ months, madeAt }: Report, usage: Report['usage'], colour: number): string =>
  bars(
    namesOf(months, madeAt),
    months.map((month) => usage.find((row) => row.month === month)?.usage),
    { colour },
  );

export function coverageChart({ coverage, months, madeAt }: Report): string {
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

export const correctionsChart = ({ corrections: { byMonth }, madeAt }: Report): string =>
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
