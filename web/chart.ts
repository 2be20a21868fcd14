import { BarChart, HeatmapChart, LineChart } from 'echarts/charts';
import { GridComponent, LegendComponent, VisualMapComponent } from 'echarts/components';
import * as echarts from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';

echarts.use([
  BarChart,
  HeatmapChart,
  LineChart,
  GridComponent,
  LegendComponent,
  VisualMapComponent,
  SVGRenderer,
]);

/** Average width of a letter in ems. Together with the slack of ECharts it fits the widest `system-ui`. */
const letterEms = 0.55;

// On a server ECharts guesses the widths of narrow letters, and labels overlap in other fonts.
echarts.setPlatformAPI({
  measureText: (words, font) => ({
    width: words.length * letterEms * Number(/([\d.]+)px/.exec(font ?? '')?.[1] ?? chartText.fontSize),
  }),
});

/** Colours are variables of the page's stylesheet, so that one drawing fits the light and the dark theme. */
export const seriesColours: readonly string[] = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `var(--series-${n})`);
export const heatColours: readonly string[] = [0, 1, 2, 3, 4, 5].map((n) => `var(--heat-${n})`);

/** ECharts needs the font and its size to lay out labels. The stylesheet has the same for `.chart text`. */
export const chartText = { color: 'var(--text)', fontFamily: 'system-ui, sans-serif', fontSize: 13 };
const line = { lineStyle: { color: 'var(--line)' } };

/**
 * Draws a chart of ECharts as SVG text, without scripts, inline styles or classes, so that a strict content
 * security policy shows it. ECharts escapes names.
 * @param width in CSS pixels. Labels have the size of `chartText` at this width; the page may scale it
 */
export function drawChart(option: object, height: number, width: number): string {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width, height });
  try {
    chart.setOption({ animation: false, color: [...seriesColours], textStyle: chartText, ...option });
    return chart
      .renderToSVGString()
      .replace(/<style[^>]*>.*?<\/style>/gs, '')
      .replace(/ (?:style|class|ecmeta_\w+|xmlns:xlink)="[^"]*"/g, '')
      .replace(/^<svg width="\d+" height="\d+"/, '<svg');
  } finally {
    chart.dispose();
  }
}

/** An axis of names. */
export const categories = (data: readonly string[]) => ({
  type: 'category',
  data,
  // Below the lowest label of the other axis.
  axisLabel: { ...chartText, margin: 13 },
  axisLine: line,
  axisTick: line,
});

/** An axis of numbers. */
export const values = (more: object = {}) => ({
  type: 'value',
  axisLabel: chartText,
  splitLine: { lineStyle: { color: 'var(--grid)' } },
  ...more,
});

/** A legend for several series. One series needs none. */
export const legend = (of: readonly unknown[]) =>
  of.length > 1 ? { legend: { top: 0, textStyle: chartText } } : {};

/** Margins of a drawing. The labels of the axes stay within them. */
export const grid = {
  left: 8,
  right: 16,
  top: 40,
  bottom: 8,
  outerBoundsMode: 'same',
  outerBoundsContain: 'axisLabel',
};

/** Draws a bar for each name that has a height. Floats are enough: a table next to it has exact figures. */
export const bars = (
  names: readonly string[],
  heights: readonly (string | number | null | undefined)[],
  { colour = 0, height = 220, width = 880, yAxis = {}, top = 16 },
): string =>
  drawChart(
    {
      grid: { ...grid, top },
      xAxis: categories(names),
      yAxis: values(yAxis),
      series: [
        {
          type: 'bar',
          barMaxWidth: 48,
          data: heights.map((of) => (of === null || of === undefined ? null : Number(of))),
          itemStyle: { color: seriesColours[colour % seriesColours.length] },
        },
      ],
    },
    height,
    width,
  );
