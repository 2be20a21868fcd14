import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { scheduleIds } from '../../contract/names.ts';
import { alarmTypes } from '../../health/findings.ts';
import { type MetricName, type MetricType, metricTypes } from '../../health/metrics.ts';
import { runCommand } from '../support/command.ts';
import { runProcess, startCommand } from '../support/command-process.ts';
import { promtool } from '../support/debian.ts';
import { deliver } from '../support/deliver.ts';
import { outageOf } from '../support/outage.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import { type RunningPrometheus, startPrometheus } from '../support/prometheus.ts';

/** Metrics that appear once there is something to count, which is not so in the deployment of these tests. */
const ofTrouble = [
  'metersync_parked_events',
  'metersync_parked_parts',
  'metersync_data_issues',
  'metersync_temporal_certificate_expiry_timestamp_seconds',
  'metersync_notifications_waiting_seconds',
];

/** Temporal's metrics of this kind, with their labels. */
const ofTemporalTrouble: Readonly<Record<string, readonly string[]>> = {
  temporal_workflow_task_execution_failed_total: ['failure_reason'],
  temporal_activity_execution_failed_total: ['activity_type'],
  temporal_request_failure_total: ['status_code', 'operation'],
};
const project = resolve(import.meta.dirname, '../..');

describe('the private port of a deployment', () => {
  let pipeline: Pipeline;
  let prometheus: RunningPrometheus;
  const ports = { receiver: 0, worker: 0 };
  const ask = async (part: keyof typeof ports, path: string) => {
    const answer = await fetch(`http://127.0.0.1:${ports[part]}${path}`);
    return { status: answer.status, text: await answer.text() };
  };
  const scrape = async () =>
    (await ask('receiver', '/metrics')).text + (await ask('worker', '/metrics')).text;

  beforeAll(async () => {
    pipeline = await startPipeline({ size: { companies: 1, documents: 5, intervalDays: 1 }, parts: [] });
    for (const part of ['receiver', 'worker'] as const) {
      ports[part] = await freePort();
      await pipeline.start(part, {
        METRICS_PORT: String(ports[part]),
        BACKFILL_CRON: '',
        RECONCILE_EVERY: '',
      });
    }
    prometheus = await startPrometheus(Object.values(ports).map((port) => `127.0.0.1:${port}`));
    await pipeline.backfill();
    await deliver(pipeline, { eventType: 'weather.changed' });
    // The first look of the watch would be due within a minute.
    await pipeline.client.schedule.getHandle(scheduleIds.watch).trigger();
    await pipeline.settled();
  });
  afterAll(async () => {
    await Promise.all([pipeline?.stop(), prometheus?.stop()]);
  });

  test('shows each metric of the catalogue with its labels, type and help, and no other metric of metersync', async () => {
    const text = await until('everything has been read', async () => {
      const now = await scrape();
      // A reading of health is reused for some seconds, so it may be older than the event.
      const seen = [/^metersync_verdict\{verdict="in_sync"\} 1$/m, /^metersync_event_delay_seconds\{/m];
      return seen.every((line) => line.test(now)) ? now : undefined;
    });
    for (const [name, type] of Object.entries<MetricType>(metricTypes)) {
      expect(text).toContain(`# HELP ${name} ${type.help}\n# TYPE ${name} ${type.type}`);
      if (ofTrouble.includes(name)) continue;
      const labels = labelsOf(text, type.type === 'histogram' ? `${name}_count` : name);
      expect(labels, name).toEqual(Object.keys(type.labels).toSorted());
    }
    const ours = [...text.matchAll(/^# TYPE (metersync_\w+)/gm)].map(([, name]) => name);
    expect(new Set(ours)).toEqual(new Set(Object.keys(metricTypes)));
  });

  test('serves metrics in which promtool finds no fault', async () => {
    const tool = await promtool();
    for (const part of ['receiver', 'worker'] as const) {
      const { text } = await ask(part, '/metrics');
      const ours = text.split('\n').filter((line) => /^(# \w+ )?metersync_/.test(line));
      const check = (lines: readonly string[]) =>
        spawnSync(tool, ['check', 'metrics'], { input: `${lines.join('\n')}\n`, encoding: 'utf8' });
      expect(check(ours), part).toMatchObject({ status: 0, stderr: '' });
      // This proves that the check can fail.
      expect(check([...ours, '# TYPE metersync_odd counter', 'metersync_odd 1']).status).not.toBe(0);
    }
  });

  test("counts what was done, and has Node's and Temporal's metrics under their usual names", async () => {
    const text = await scrape();
    expect(text).toMatch(/^metersync_receiver_answers_total\{reason="durable",code="204"\} 1$/m);
    expect(text).toMatch(/^metersync_events_recorded_total\{result="new"\} 1$/m);
    expect(text).toMatch(/^metersync_service_requests_total\{endpoint="documents",result="ok"\} [1-9]/m);
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds /m);
    expect(text).toMatch(/^temporal_workflow_completed_total\{/m);
    expect(text).toMatch(/^temporal_workflow_task_schedule_to_start_latency_seconds_bucket\{/m);
  });

  test('has fewer than 500 series for each process, not counting Temporal’s, and no id in any label', async () => {
    for (const part of ['receiver', 'worker'] as const) {
      const { text } = await ask(part, '/metrics');
      const series = text.split('\n').filter((line) => line !== '' && !/^(#|temporal_)/.test(line));
      expect(series.length).toBeLessThan(500);
      expect(series.filter((line) => /[0-9a-f]{8}-[0-9a-f]{4}-/.test(line))).toEqual([]);
    }
  });

  test('answers metersync healthcheck, which ends with a status according to the answer', async () => {
    const check = (...args: string[]) =>
      runCommand(['healthcheck', ...args], { env: { METRICS_PORT: String(ports.worker) } });
    expect(await check()).toMatchObject({ status: 0, stdout: '{"status":"ok"}' });
    expect(await check('--ready')).toMatchObject({ status: 0, stdout: '{"status":"ready"}' });
    const nobody = await freePort();
    const dead = await runCommand(['healthcheck'], { env: { METRICS_PORT: String(nobody) } });
    expect(dead.status).toBe(1);
    expect(dead.stdout).toContain(`http://127.0.0.1:${nobody}/healthz does not answer`);
  });

  test('is separate for the console, and answers only for the console', async () => {
    const port = await freePort();
    const more = { METRICS_PORT: String(port), CONSOLE_PORT: String(await freePort()) };
    const served = startCommand(['console'], { env: { ...pipeline.env, ...more } });
    onTestFinished(async () => void (await served.end('SIGTERM')));
    const line = await served.printed(/console: http/);
    // Others may be able to read the log, so it names the file that has the link.
    const [, file = ''] = /, which opens with the link in ([^"]+)"/.exec(line) ?? [];
    const link = readFileSync(file, 'utf8').trim();
    expect((await fetch(link)).status).toBe(200);
    expect(served.stdout()).not.toContain(new URL(link).pathname);
    const second = await runProcess(['console'], { env: { ...pipeline.env, ...more, METRICS_PORT: '0' } });
    const words = `port ${more.CONSOLE_PORT} of 127.0.0.1 is taken: set CONSOLE_PORT to a free port`;
    expect(second).toMatchObject({ status: 1, stderr: `metersync: ${words}` });
    const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
    const ready = await until('its port answers', () => get('/readyz').catch(() => undefined));
    expect([ready.status, (await get('/healthz')).status]).toEqual([200, 200]);
    const text = await (await get('/metrics')).text();
    expect(text).toMatch(/^metersync_ready\{part="console"\} 1$/m);
    expect(text).not.toMatch(/^metersync_warehouse_up /m);
  });

  test('serves each metric and label that a rule or a dashboard selects', async () => {
    const rules = Object.values(alarmTypes).flatMap(({ promql }) => promql ?? []);
    const asked = [...rules, ...panels.flatMap(({ queries }) => queries)].flatMap(selectors);
    expect(asked.length).toBeGreaterThan(60);
    for (const { name, labels } of asked) {
      const known = ofTemporalTrouble[name] ?? labelsOfTrouble(name);
      if (known !== undefined) {
        expect(known, name).toEqual(expect.arrayContaining(labels));
        continue;
      }
      const selector = `${name}{${labels.map((label) => `${label}!=""`).join()}}`;
      await until(`Prometheus has ${selector}`, async () => (await prometheus.series(selector)).length > 0);
    }
  });

  test('leaves no panel of the dashboards empty', async () => {
    // A dead event opens an alarm, which the panel of alarms shows.
    const { db } = pipeline.warehouse;
    await db.execute(sql`
      insert into metersync.journal (id, type, kind, received_at, recorded_at, outcome, error)
      values ('dead', 'document.created.v2', 'document', now(), now(), 'dead', 'EVENT_UNREADABLE: no id')`);
    onTestFinished(async () => void (await db.execute(sql`delete from metersync.journal where id = 'dead'`)));
    await pipeline.client.schedule.getHandle(scheduleIds.watch).trigger();
    for (const { title, queries, legends } of panels) {
      const series = await until(`the panel "${title}" shows something`, async () => {
        const results = await Promise.all(queries.map(prometheus.query));
        return results.flat().length > 0 ? results : undefined;
      });
      for (const [at, found] of series.entries())
        for (const labels of found) expect(labels, title).toMatchObject(expectedBy(legends[at] ?? ''));
    }
  });

  test('reports a worker as alive but not ready while Postgres is down, and shows no old figures of Postgres', async () => {
    const outage = await outageOf(pipeline.warehouse.url);
    onTestFinished(() => outage.close());
    await outage.begin();
    try {
      const text = await until('the outage is seen', async () => {
        const now = (await ask('worker', '/metrics')).text;
        return /^metersync_warehouse_up 0$/m.test(now) ? now : undefined;
      });
      expect(text).not.toMatch(/^metersync_deletes_waiting /m);
      expect(text).toMatch(/^metersync_verdict\{verdict="unknown"\} 1$/m);
      expect((await ask('worker', '/healthz')).status).toBe(200);
      const ready = await ask('worker', '/readyz');
      expect(ready).toMatchObject({ status: 503 });
      expect(ready.text).toContain('does not answer');
    } finally {
      await outage.end();
    }
  });
});

/** The panels of the Grafana dashboards, with values in place of Grafana's variables. */
const panels = ['overview', 'inside'].flatMap((name) => {
  const text = readFileSync(join(project, `deploy/grafana/dashboards/${name}.json`), 'utf8')
    .replaceAll('$__rate_interval', '1m')
    .replaceAll(/\$(job|namespace)/g, '.*');
  const { panels: all } = JSON.parse(text) as {
    panels: { title: string; targets: { expr: string; legendFormat: string }[] }[];
  };
  return all.map(({ title, targets }) => ({
    title,
    queries: targets.map(({ expr }) => expr),
    legends: targets.map(({ legendFormat }) => legendFormat),
  }));
});

/** Finds the metrics in a query, each with the labels that select it, except labels that a scrape adds. */
function selectors(promql: string): { name: string; labels: string[] }[] {
  return [...promql.matchAll(/\b((?:metersync|temporal|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, name = '', matchers = '']) => ({
      name,
      labels: [...matchers.matchAll(/(\w+)(?:=|!=|=~|!~)"/g)]
        .map(([, label = '']) => label)
        .filter((label) => label !== 'job' && label !== 'namespace'),
    }),
  );
}

function labelsOfTrouble(name: string): string[] | undefined {
  return ofTrouble.includes(name) ? Object.keys(metricTypes[name as MetricName].labels) : undefined;
}

/** Makes the labels that a series must have because its legend names them. */
const expectedBy = (legend: string): object =>
  Object.fromEntries([...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => [label, expect.any(String)]));

/** Returns the labels of a metric's first sample; undefined without a sample. */
function labelsOf(text: string, name: string): string[] | undefined {
  const sample = text.split('\n').find((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  if (sample === undefined) return undefined;
  return [...sample.matchAll(/(\w+)="/g)]
    .map(([, label]) => label as string)
    .filter((label) => label !== 'le')
    .toSorted();
}
