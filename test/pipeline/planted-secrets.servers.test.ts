import { randomBytes } from 'node:crypto';
import proto from '@temporalio/proto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { connectClient } from '../../app/temporal/client.ts';
import { workflowIds } from '../../contract/names.ts';
import { signedHeaders } from '../receiver/signing.ts';
import { runCommand } from '../support/command.ts';
import { createDeployment, type Deployment } from '../support/deployment.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import {
  openWord,
  type Planted,
  type PlantedService,
  plantedDeliveries,
  planter,
  startPlantedService,
} from './planted-service.ts';

const { History } = proto.temporal.api.history.v1;
const { DescribeWorkflowExecutionResponse } = proto.temporal.api.workflowservice.v1;

const codecKey = randomBytes(32).toString('base64');

describe.each([
  ['without codec keys', {}],
  ['with codec keys', { TEMPORAL_CODEC_KEYS: `one:${codecKey}` }],
])('%s, the secrets that others planted and that the operator set', (name, codec) => {
  const planted: Planted = new Map();
  const plant = planter(planted);
  const apiKey = `Key-${randomBytes(15).toString('base64url')}`;
  const webhookKey = randomBytes(24);
  let service: PlantedService;
  let deployment: Deployment;
  let eventIds: string[];

  beforeAll(async () => {
    service = await startPlantedService(plant, apiKey);
    deployment = await createDeployment({
      env: {
        SERVICE_URL: service.url,
        SERVICE_API_KEY: apiKey,
        LOG_LEVEL: 'trace',
        WEBHOOK_SECRETS: `whsec_${webhookKey.toString('base64')}`,
        RECEIVER_PORT: String(await freePort()),
        ...codec,
      },
    });
    await Promise.all([deployment.start('worker'), deployment.start('receiver')]);
    planted.set('API key', apiKey);
    planted.set('signing secret', webhookKey.toString('base64'));
    if (name === 'with codec keys') planted.set('codec key', codecKey);
    planted.set('password of the warehouse', decodeURIComponent(new URL(deployment.warehouse.url).password));

    const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = deployment.env;
    const codecKeys = name === 'with codec keys' ? [{ id: 'one', key: Buffer.from(codecKey, 'base64') }] : [];
    const { client, close } = await connectClient({ address, namespace, codecKeys });
    const run = await startBackfill(client);
    expect(await client.workflow.getHandle(workflowIds.backfill(run)).result()).toBe('partial');
    await close();
    eventIds = [];
    for (const { body } of plantedDeliveries(service, plant)) eventIds.push(await deliver(body));
    const rows = (text: string) =>
      deployment.warehouse.db.execute(sql.raw(text)).then((result) => result.rows);
    await until('each event has come to what it can', async () => {
      const waiting = await rows(
        `select from metersync.events where outcome = 'pending' and error_code is distinct from 'SERVICE_ANSWER_UNREADABLE'`,
      );
      return (await rows('select from metersync.events')).length === eventIds.length && waiting.length === 0;
    });
  }, 120_000);
  afterAll(async () => {
    await deployment?.stop();
    await service?.stop();
  });

  /** Delivers a signed body, with headers that hold further secrets. */
  async function deliver(body: string): Promise<string> {
    const id = `msg_${randomBytes(8).toString('hex')}`;
    const timestamp = String(Math.floor(Date.now() / 1000));
    const answer = await fetch(`http://127.0.0.1:${deployment.env.RECEIVER_PORT}/webhooks`, {
      method: 'POST',
      headers: [
        ...signedHeaders({ id, timestamp, body, key: webhookKey }),
        ['authorization', `Bearer ${plant(`header authorization of ${id}`)}`],
        ['cookie', `session=${plant(`header cookie of ${id}`)}`],
      ],
      body,
    });
    expect(answer.status).toBe(204);
    return id;
  }

  /** Lists the places of the planted secrets that a text contains, as plain text, hex or base64. */
  function shown(text: string | Buffer): string[] {
    return [...planted]
      .filter(([, secret]) =>
        [
          secret,
          Buffer.from(secret).toString('hex'),
          Buffer.from(secret).toString('base64').slice(2, -4),
        ].some((form) => text.includes(form)),
      )
      .map(([place]) => place);
  }

  test('are more than thirty, and the events that contain them reach every outcome', async () => {
    expect(planted.size).toBeGreaterThan(30);
    const { rows } = await deployment.warehouse.db.execute<{ outcome: string; error_code: string | null }>(
      sql`select distinct outcome, error_code from metersync.events order by 1, 2`,
    );
    expect(rows).toEqual(
      expect.arrayContaining([
        { outcome: 'ignored', error_code: null },
        { outcome: 'dead', error_code: 'EVENT_UNREADABLE' },
        { outcome: 'dead', error_code: 'WAREHOUSE_VALUE_REFUSED' },
        { outcome: 'pending', error_code: 'SERVICE_ANSWER_UNREADABLE' },
      ]),
    );
  });

  test('are not in any table or view of any schema', async () => {
    const { db } = deployment.warehouse;
    const { rows: relations } = await db.execute<{ name: string }>(sql`
      select format('%I.%I', n.nspname, c.relname) as name
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'v', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'`);
    const found: Record<string, string[]> = {};
    const open: string[] = [];
    for (const { name } of relations) {
      const { rows } = await db.execute<{ text: string | null }>(
        sql`select string_agg(t::text, E'\n') as text from ${sql.raw(name)} t`,
      );
      const text = rows[0]?.text ?? '';
      if (text.includes(openWord)) open.push(name);
      if (shown(text).length > 0) found[name] = shown(text);
    }
    expect(found).toEqual({});
    const searched = ['metersync.events', 'utility.connections', 'fields.connections'];
    expect(open).toEqual(expect.arrayContaining(searched));
    const { rows: refused } = await db.execute<{ resource: string }>(
      sql`select distinct resource from metersync.rejected_records order by 1`,
    );
    expect(refused.map(({ resource }) => resource)).toEqual(['connections', 'intervals']);
  });

  test('are not in the history of any workflow or in work that waits for a retry', async () => {
    const found: Record<string, string[]> = {};
    let [workflows, withOpenWord] = [0, 0];
    for await (const { workflowId, runId } of deployment.client.workflow.list()) {
      workflows += 1;
      const handle = deployment.client.workflow.getHandle(workflowId, runId);
      const bytes = Buffer.concat([
        History.encode(await handle.fetchHistory()).finish(),
        DescribeWorkflowExecutionResponse.encode((await handle.describe()).raw).finish(),
      ]);
      if (bytes.includes(openWord)) withOpenWord += 1;
      if (shown(bytes).length > 0) found[workflowId] = shown(bytes);
    }
    expect(found).toEqual({});
    expect(workflows).toBeGreaterThan(5);
    if (name === 'without codec keys') expect(withOpenWord).toBeGreaterThan(0);
    else expect(withOpenWord).toBe(0);
  });

  test('are not in any log, even at the level trace', async () => {
    for (const part of ['worker', 'receiver'] as const) {
      const said = `${deployment.part(part).stdout()}\n${deployment.part(part).stderr()}`;
      expect(said.length).toBeGreaterThan(100);
      expect(shown(said), part).toEqual([]);
    }
  });

  test('are not in the output of any command', { timeout: 240_000 }, async () => {
    const shows = eventIds.filter((_, at) => [0, 5, 6].includes(at)).map((id) => ['events', 'show', id]);
    const others = [
      ['status', '--json'],
      ['doctor'],
      ['events', 'list'],
      ['trace', 'document', service.brokenId],
      ['audit'],
      ['report'],
      ['export', 'fields.connections'],
    ];
    // Commands print data of the warehouse, which codec keys do not change.
    const commands = name === 'without codec keys' ? [...shows, ...others] : shows.slice(-1);
    let printed = '';
    for (let at = 0; at < commands.length; at += 4) {
      const some = commands.slice(at, at + 4);
      const ended = await Promise.all(some.map((args) => runCommand(args, { env: deployment.env })));
      for (const [place, { stdout, stderr }] of ended.entries()) {
        const said = `${stdout}\n${stderr}`;
        expect(said.length, some[place]?.join(' ')).toBeGreaterThan(1);
        expect(shown(said), some[place]?.join(' ')).toEqual([]);
        printed += said;
      }
    }
    expect(printed).toContain(openWord);
  });
});
