import type { Dashboard, Panel } from './dashboards.ts';

const height = 8;
const columns = 24;

const datasource = { type: 'prometheus', uid: '$datasource' };

/** Colours of the verdict, as Grafana names them. */
const verdictColors = {
  in_sync: 'green',
  catching_up: 'blue',
  unknown: 'purple',
  needs_you: 'orange',
  broken: 'red',
} as const;

/** Makes a dashboard in the form in which Grafana exports and provisions one. */
export function dashboardJson(uid: string, dashboard: Dashboard): string {
  const { title, means } = dashboard;
  return `${JSON.stringify(
    {
      uid: `metersync-${uid}`,
      title,
      description: means,
      tags: ['metersync'],
      schemaVersion: 39,
      editable: false,
      refresh: '30s',
      time: { from: 'now-6h', to: 'now' },
      links: [
        { type: 'dashboards', title: 'metersync', tags: ['metersync'], keepTime: true, includeVars: true },
      ],
      templating: { list: variables },
      panels: placed(dashboard.panels).map(panelJson),
    },
    null,
    2,
  )}\n`;
}

/** Which Prometheus, which scrape jobs, which namespaces of Kubernetes, and where docs/runbooks.md is read. */
const variables = [
  { type: 'datasource', name: 'datasource', label: 'Prometheus', query: 'prometheus' },
  ...['job', 'namespace'].map((label) => ({
    type: 'query',
    name: label,
    datasource,
    query: `label_values(metersync_build_info, ${label})`,
    refresh: 2,
    multi: true,
    includeAll: true,
    // Series that lack the namespace match, too. All jobs are ours alone, not those of other programs.
    ...(label === 'namespace' ? { allValue: '.*' } : {}),
    current: { text: 'All', value: '$__all' },
  })),
  { type: 'textbox', name: 'runbooks', label: 'Address of docs/runbooks.md', query: 'docs/runbooks.md' },
];

interface Place {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** Places panels from left to right; one that does not fit begins the next line. */
function placed(panels: readonly Panel[]): { panel: Panel; place: Place }[] {
  let x = 0;
  let y = 0;
  return panels.map((panel) => {
    const w = panel.width ?? columns / 2;
    if (x + w > columns) {
      x = 0;
      y += height;
    }
    const place = { x, y, w, h: height };
    x += w;
    return { panel, place };
  });
}

function panelJson({ panel, place }: { panel: Panel; place: Place }, index: number): object {
  const { asks, means, shows, queries } = panel;
  return {
    id: index + 1,
    title: asks,
    description: means,
    gridPos: place,
    datasource,
    ...(shows === 'words' ? words : shows === 'table' ? alarmTable : lines(panel)),
    targets: queries.map(({ promql, legend }, at) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + at),
      datasource,
      expr: promql,
      legendFormat: legend,
      ...(shows === undefined ? {} : { instant: true, format: shows === 'table' ? 'table' : 'time_series' }),
    })),
  };
}

function lines({ unit, limit }: Panel): object {
  const steps = [
    { color: 'green', value: null },
    ...(limit === undefined ? [] : [{ color: 'red', value: limit }]),
  ];
  return {
    type: 'timeseries',
    fieldConfig: {
      defaults: {
        ...(unit === undefined ? {} : { unit }),
        min: 0,
        custom: { fillOpacity: 10, thresholdsStyle: { mode: limit === undefined ? 'off' : 'line' } },
        thresholds: { mode: 'absolute', steps },
      },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  };
}

const words = {
  type: 'stat',
  fieldConfig: {
    defaults: { noValue: 'nobody says' },
    overrides: Object.entries(verdictColors).map(([verdict, fixedColor]) => ({
      matcher: { id: 'byName', options: verdict },
      properties: [{ id: 'color', value: { mode: 'fixed', fixedColor } }],
    })),
  },
  options: { textMode: 'name', colorMode: 'background', graphMode: 'none' },
};

const alarmTable = {
  type: 'table',
  fieldConfig: {
    defaults: { noValue: 'None' },
    overrides: [
      {
        matcher: { id: 'byName', options: 'alertname' },
        properties: [
          {
            id: 'links',
            value: [
              { title: 'Runbook', url: `\${runbooks:raw}#\${__data.fields.runbook}`, targetBlank: true },
            ],
          },
        ],
      },
    ],
  },
  transformations: [{ id: 'organize', options: { excludeByName: { Time: true, Value: true } } }],
};
