import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type WatchedPart, withCoreMetrics } from '../../app/metrics.ts';
import { servePrivately } from '../../app/process/monitor.ts';
import { metricTypes } from '../../health/metrics.ts';
import { createMetrics } from '../../health/registry.ts';
import { remember } from '../../receiver/clock.ts';

describe('metrics', () => {
  test('are read at each scrape; a metric without samples is absent, even if it has no labels', async () => {
    const metrics = createMetrics();
    let waiting: number | undefined = 3;
    metrics.read('metersync_deletes_waiting', () => (waiting === undefined ? [] : [{ value: waiting }]));
    expect(await metrics.asText()).toMatch(/^metersync_deletes_waiting 3$/m);
    waiting = 0;
    expect(await metrics.asText()).toMatch(/^metersync_deletes_waiting 0$/m);
    waiting = undefined;
    expect(await metrics.asText()).not.toMatch(/^metersync_deletes_waiting/m);
    metrics.read('metersync_parked_events', () => []);
    expect(await metrics.asText()).not.toMatch(/^metersync_parked_events/m);
  });

  test('report a counter as the total that they are given, not as the sum of scrapes', async () => {
    const metrics = createMetrics();
    metrics.read('metersync_events_recorded_total', () => [{ value: 7, result: 'new' }]);
    await metrics.asText();
    expect(await metrics.asText()).toMatch(/^metersync_events_recorded_total\{result="new"\} 7$/m);
  });

  test('have no label that could contain the id of a company, a record or a person', () => {
    const labels = Object.values(metricTypes).flatMap((type) => Object.keys(type.labels));
    const personal = labels.filter((label) => /id$|company|record|name|user/.test(label));
    // It identifies a build of metersync, and each version is one build.
    expect(new Set(personal)).toEqual(new Set(['build_id']));
  });
});

test("are followed by Temporal's own metrics, if these can be read", async () => {
  const core = '# TYPE temporal_failed_total counter\ntemporal_failed_total{queue="q"} 2\n';
  const texts = [core, undefined];
  const text = withCoreMetrics(createMetrics(), { read: async () => texts.shift() });
  const [up, down] = [await text(), await text()];
  expect(up.endsWith(core)).toBe(true);
  expect(down).not.toContain('temporal_failed_total');
});

test('shares remembered readings among callers at the same time, and reads again when they are old', async () => {
  let now = 0;
  let readings = 0;
  const read = remember(
    async () => ++readings,
    10,
    () => now,
  );
  expect(await Promise.all([read(), read(), read()])).toEqual([1, 1, 1]);
  now = 9;
  expect(await read()).toBe(1);
  now = 10;
  expect(await read()).toBe(2);
});

describe('the private port', () => {
  const serve = async (parts: readonly WatchedPart[]) => {
    const port = await servePrivately({
      at: { host: '127.0.0.1', port: 0 },
      parts,
      metrics: createMetrics().asText,
      log: pino({ level: 'silent' }),
    });
    onTestFinished(() => port.stop());
    return async (path: string) => {
      const answer = await fetch(port.url + path);
      return { status: answer.status, body: await answer.text() };
    };
  };
  const part = (alive?: string, ready?: string): WatchedPart => ({
    name: 'worker',
    alive: async () => alive,
    ready: async () => ready,
  });

  test('answers 200 while all parts are alive and ready, and 503 with the reason otherwise', async () => {
    const well = await serve([part()]);
    expect(await well('/healthz')).toEqual({ status: 200, body: '{"status":"ok"}' });
    expect(await well('/readyz')).toEqual({ status: 200, body: '{"status":"ready"}' });
    const waits = await serve([part(undefined, 'Postgres is away')]);
    expect((await waits('/healthz')).status).toBe(200);
    expect(await waits('/readyz')).toEqual({
      status: 503,
      body: '{"status":"not ready","why":{"worker":"Postgres is away"}}',
    });
    expect((await (await serve([part('deaf')]))('/healthz')).status).toBe(503);
  });

  test('serves text for Prometheus, and nothing else', async () => {
    const ask = await serve([part()]);
    expect((await ask('/metrics')).body).toMatch(/^process_cpu_user_seconds_total \d/m);
    expect((await ask('/')).status).toBe(404);
  });
});
