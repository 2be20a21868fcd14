import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { secretsOf } from '../../app/receiver-part.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { applySchedules } from '../../app/temporal/schedules.ts';
import { defaultEndpoints } from '../../contract/endpoints.ts';
import { finishRun, startRun } from '../../db/backfill/runs.ts';
import { readSilence } from '../../db/read/arrivals.ts';
import type { Check } from '../../operations/doctor/check.ts';
import { type DoctorOptions, examine } from '../../operations/doctor/doctor.ts';
import { checkClock, checkVersion } from '../../operations/doctor/service.ts';
import { runCommand } from '../support/command.ts';
import { company } from '../support/events.ts';
import { startHttpProxy } from '../support/http-proxy.ts';
import { createNamespace } from '../support/namespace.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { freePort } from '../support/port.ts';
import { createWarehouse } from '../support/warehouse.ts';

const log = pino({ level: 'silent' });
const states = (checks: readonly Check[]) =>
  Object.fromEntries(checks.map(({ name, state }) => [name, state]));

describe('the doctor', () => {
  let pipeline: Pipeline;
  let publicUrl: string;
  beforeAll(async () => {
    pipeline = await startPipeline({ size: { companies: 2, documents: 5, intervalDays: 1 } });
    publicUrl = `http://127.0.0.1:${pipeline.env.RECEIVER_PORT}/webhooks`;
  });
  afterAll(() => pipeline?.stop());

  /** Examines the running parts, with settings that differ from the settings of the parts. */
  async function examined(
    env: Readonly<Record<string, string>>,
    temporal: object = {},
    more: Partial<DoctorOptions> = {},
  ): Promise<Check[]> {
    const settings = readSettings({ ...pipeline.env, RECEIVER_PUBLIC_URL: publicUrl, ...env });
    const { url = '', apiKey = '' } = settings.service;
    const { TEMPORAL_NAMESPACE: namespace = '' } = pipeline.env;
    const { checks } = await examine({
      settings,
      databaseUrl: settings.databaseUrl ?? '',
      temporal: { address: inject('temporalAddress'), namespace, ...temporal },
      service: { url, apiKey },
      insecure: [],
      standIn: false,
      secrets: () => secretsOf(settings.webhooks, log),
      log,
      now: Date.now,
      probeId: `probe-${randomUUID()}`,
      probeArrivesWithinMs: 30_000,
      ...more,
    });
    return [...checks];
  }
  /** Notes what is wrong in a state, for the golden file. */
  const wrong: string[] = [];
  async function note(state: string, ...args: Parameters<typeof examined>): Promise<Check[]> {
    const checks = await examined(...args);
    const lines = checks
      // A receiver reports after a while that it refused the probe with the wrong secret.
      .filter(({ name, state }) => name !== 'refused deliveries' && /^(fail|warn)$/.test(state))
      .flatMap(({ name, state, saw, todo }) => [`${state} ${name}: ${saw}`, `  ${todo}`]);
    wrong.push([`# ${state}`, ...lines].join('\n'));
    return checks;
  }

  test('reports a deployment in sync as status does, and its probe is ignored and changes nothing', async () => {
    await pipeline.backfill();
    const rows = async () =>
      (
        await pipeline.warehouse.db.execute(sql`
          select (select count(*) from utility.documents) as documents, (select max(synced_at) from utility.connections)`)
      ).rows;
    const before = await rows();
    const env = { ...pipeline.env, RECEIVER_PUBLIC_URL: publicUrl };
    const { status, stdout, stderr } = await runCommand(['doctor', '--json'], { env });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const said = JSON.parse(stdout) as { ok: boolean; checks: Check[] };
    expect(said.ok).toBe(true);
    const notOk = said.checks.filter(({ state }) => state !== 'ok').map(({ name }) => name);
    expect([said.checks.length, notOk]).toEqual([15, ['event types']]);
    expect(said.checks.find(({ name }) => name === 'endpoints')?.saw).toBe(
      `${Object.values(defaultEndpoints).filter((endpoint) => endpoint !== null).length} endpoints answer`,
    );
    const probes = await pipeline.warehouse.db.execute(
      sql`select type, outcome, record_id, company_id from metersync.events`,
    );
    expect(probes.rows).toEqual([
      { type: 'metersync.probe', outcome: 'ignored', record_id: null, company_id: null },
    ]);
    expect(await rows()).toEqual(before);
  });

  test('finds nothing wrong if the worker runs separately from the receiver, and only the receiver has its secrets', async () => {
    const checks = await examined({ WEBHOOK_SECRETS: '' });
    expect(checks.filter(({ state }) => state === 'fail' || state === 'warn')).toEqual([]);
    expect(states(checks)).toMatchObject({ 'webhook secrets': 'not checked', receiver: 'not checked' });
  });

  test('sends its requests and its probe through a proxy', async () => {
    const proxy = await startHttpProxy({
      'service.test': Number(new URL(pipeline.service.apiUrl).port),
      'hooks.example': Number(pipeline.env.RECEIVER_PORT),
    });
    onTestFinished(() => proxy.stop());
    const found = await examined({
      SERVICE_URL: 'http://service.test/v2.2',
      RECEIVER_PUBLIC_URL: 'http://hooks.example/webhooks',
      HTTP_PROXY: `http://${proxy.host}`,
    });
    expect(found.filter(({ state }) => state === 'fail' || state === 'warn')).toEqual([]);
    const lines = proxy.asked.map(({ line }) => line);
    expect(lines).toContain('GET http://service.test/v2.2/external/configure_webhook');
    expect(lines).toContain('POST http://hooks.example/webhooks');
  });

  test('warns of an unsafe connection', async () => {
    const url = new URL(pipeline.env.DATABASE_URL ?? '');
    url.hostname = '0.0.0.0';
    const env = { ...pipeline.env, DATABASE_URL: url.href };
    const { status, stdout } = await runCommand(['doctor', '--json'], { env });
    expect(status).toBe(0);
    const { checks } = JSON.parse(stdout) as { checks: Check[] };
    expect(checks.filter(({ state }) => state === 'warn')).toMatchObject([
      {
        name: 'transport',
        saw: expect.stringContaining('DATABASE_URL leads to 0.0.0.0 without TLS'),
        todo: expect.stringContaining('sslmode=verify-full'),
      },
    ]);
  });

  test('reports trouble without a worker, with a dead event or with a paused schedule', async () => {
    const idle = { ...pipeline.env, TEMPORAL_NAMESPACE: await createNamespace() };
    const noWorker = await runCommand(['doctor'], { env: idle });
    expect(noWorker.status).toBe(1);
    expect(noWorker.stdout).toMatch(/^Broken: no worker takes events/);
    expect(noWorker.stdout).toMatch(/^fail +workers /m);

    const { db } = pipeline.warehouse;
    const { schedules } = readSettings({});
    await applySchedules(pipeline.client, schedules);
    await runCommand(['schedule', 'pause', 'full', '--reason', 'a move'], { env: pipeline.env });
    await db.execute(sql`insert into metersync.journal (id, type, kind, received_at, recorded_at, outcome, error)
      values ('dead', 'document.created.v2', 'document', now(), now(), 'dead', 'EVENT_UNREADABLE: no id')`);
    const ill = await runCommand(['doctor'], { env: pipeline.env });
    const same = await runCommand(['status', '--exit-code'], { env: pipeline.env });
    await db.execute(sql`delete from metersync.journal where id = 'dead'`);
    await applySchedules(pipeline.client, { full: undefined, reconcile: undefined });
    expect([ill.status, same.status]).toEqual([1, 3]);
    const [first] = ill.stdout.split('\n');
    expect(first).toMatch(/^Needs you: 1 event cannot be applied, and 1 more$/);
    expect(same.stdout.split('\n')[0]).toBe(first);
    expect(ill.stdout).toMatch(/^warn +dead events +1 event cannot be applied\n +What to do: See why with/m);
  });

  test('names what is wrong and what to do about it, as in the golden file', async () => {
    const nobody = `127.0.0.1:${await freePort()}`;
    await note('the key is wrong', { SERVICE_API_KEY: 'another-key' });
    const other = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    await note('the secret is wrong', { WEBHOOK_SECRETS: other });
    await note('the public address has another path', {
      RECEIVER_PUBLIC_URL: publicUrl.replace('/webhooks', '/hooks'),
    });
    await note('nobody is at the public address', { RECEIVER_PUBLIC_URL: `http://${nobody}/webhooks` });
    const away = await note('the service is away', { SERVICE_URL: `http://${nobody}/v2.2` });
    expect(states(away)).toMatchObject({ 'API key': 'not checked', webhooks: 'not checked' });
    const HTTP_PROXY = `http://metersync:geheim@${nobody}`;
    await note('the proxy is away', { SERVICE_URL: 'http://service.example/v2.2', HTTP_PROXY });
    const { apiUrl, apiKey } = pipeline.service;
    await note('the address of the service is wrong', { SERVICE_URL: apiUrl.replace('/v2.2', '/v9') });
    await note('Postgres is away', { DATABASE_URL: `postgres://user:geheim@${nobody}/warehouse` });
    const databaseUrl = `postgres://user@${nobody}/warehouse`;
    const ofSandbox = await note(
      'the Postgres of the sandbox is away',
      { DATABASE_URL: '' },
      {},
      { standIn: true, databaseUrl },
    );
    expect(ofSandbox.find(({ name }) => name === 'service')).toMatchObject({ state: 'not checked' });
    await note('the namespace of Temporal is wrong', {}, { namespace: 'nowhere' });

    const { db } = pipeline.warehouse;
    for (const [first, last] of [
      [1, 99],
      [100, 100],
    ]) {
      await db.execute(sql`
        insert into metersync.journal (id, type, kind, received_at, outcome)
        select 'msg_type' || n, 'document.updated.v2', 'document', now(), 'ignored'
        from generate_series(${first}::int, ${last}::int) n`);
      await note(`only one type among ${last} events`, {});
    }
    await db.execute(sql`delete from metersync.journal where id like 'msg_type%'`);

    const turn = (enabled: boolean) =>
      fetch(`${apiUrl}/external/configure_webhook`, {
        method: 'PATCH',
        headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
        body: JSON.stringify({ enabled }),
      });
    await turn(false);
    await pipeline.service.fault({ kind: 'status', status: 404, path: '/document' });
    try {
      await note('no webhooks and no listing of documents', {});
    } finally {
      await turn(true);
      await pipeline.service.clearFaults();
    }
    const said = wrong
      .join('\n\n')
      .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')
      .replaceAll(/in \d+ ms/g, 'in N ms')
      .replaceAll(/[0-9a-f-]{36}/g, 'ID');
    expect(said).not.toContain('geheim');
    await expect(`${said}\n`).toMatchFileSnapshot('golden/doctor.txt');
  });
});

describe('clock and version', () => {
  const at = Date.parse('2026-05-01T12:00:00Z');
  const pinged = (date: string | null, version: string | null) => ({
    ping: { body: '{}', version, date },
    at,
  });

  test.each([
    ['Fri, 01 May 2026 12:00:00 GMT', 'ok'],
    ['Fri, 01 May 2026 12:02:00 GMT', 'ok'],
    ['Fri, 01 May 2026 11:57:00 GMT', 'warn'],
    ['Fri, 01 May 2026 12:06:00 GMT', 'fail'],
    ['soon', 'not checked'],
    [null, 'not checked'],
  ])('warns of a service whose answer is dated %s: %s', (date, state) => {
    expect(checkClock(pinged(date, null), null, 300).state).toBe(state);
  });

  test('warns or fails if the clock of the warehouse is ahead or behind', () => {
    expect(checkClock(pinged(null, null), -400_000, 300).state).toBe('fail');
    expect(checkClock(pinged(null, null), 200_000, 300).state).toBe('warn');
  });

  test.each([
    ['v2.2', 'v2.2', 'ok'],
    ['2.2', 'v2.2', 'ok'],
    ['v2.0', 'v2', 'ok'],
    ['v2.1', 'v2.2', 'warn'],
    [null, 'v2.2', 'not checked'],
  ])('compares /ping (%s) with the end of SERVICE_URL (%s): %s', (version, asked, state) => {
    expect(checkVersion(pinged(null, version), asked).state).toBe(state);
  });
});

describe('the doctor on silence', () => {
  test('measures silence by changes that only backfills found, and by the time without an event', async () => {
    const warehouse = await createWarehouse();
    const { db } = warehouse;
    const event = (id: string, type: string, hoursAgo: number) =>
      db.execute(sql`insert into metersync.journal (id, type, kind, received_at, recorded_at, outcome)
        values (${id}, ${type}, 'ignored', now() - make_interval(hours => ${hoursAgo}), now(), 'ignored')`);
    try {
      expect(await readSilence(db)).toMatchObject({ quietSeconds: null, missedRows: 0 });
      const run = async (missed: number) => {
        const key = { runId: randomUUID(), companyId: company.id, resource: 'documents' };
        await startRun(db, { ...key, companyId: null, resource: null });
        await startRun(db, key);
        const none = { pages: 1, passes: 1, reportedTotal: 1, distinctIds: 1, inserted: 0, changed: missed };
        await finishRun(db, key, 'complete', {
          counts: { ...none, unchanged: 0, tombstoned: 0, rejected: 0, missed },
        });
      };
      await run(3);
      expect(await readSilence(db)).toMatchObject({ missedRows: 3, missedCompanies: 1 });
      // A later run that finds no more changes proves nothing about events.
      await run(0);
      const back = (days: number) =>
        db.execute(sql`update metersync.runs set started_at = started_at - make_interval(days => ${days}),
          finished_at = finished_at - make_interval(days => ${days})`);
      await back(4);
      expect(await readSilence(db)).toMatchObject({
        missedRows: 3,
        missedCompanies: 1,
        lastEventAt: null,
        quietSeconds: expect.closeTo(4 * 86_400, -3),
      });
      // The missed changes are more than a day old, and events have arrived since.
      await event('a', 'document.created.v2', 80);
      expect(await readSilence(db)).toMatchObject({ missedRows: 0 });
      await event('probe', 'metersync.probe', 1);
      expect((await readSilence(db)).quietSeconds).toBeCloseTo(80 * 3_600, -3);
      await event('b', 'document.created.v2', 1);
      expect((await readSilence(db)).quietSeconds).toBeCloseTo(3_600, -3);
    } finally {
      await warehouse.drop();
    }
  });
});
