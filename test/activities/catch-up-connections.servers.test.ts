import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, expect, test } from 'vitest';
import { batches } from '../../contract/limits.ts';
import { recordEvents } from '../../db/events/record.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn, outcomes, queues } from '../support/activities.ts';
import { company, connectionEvent, delivery } from '../support/events.ts';
import { shapeOf } from '../support/scripted-service.ts';

const updated = '2026-05-01T00:00:00.000001';
const single = { connection: { path: '/connection/{id}/details' } };

/** Replies for connections by their ids; the record if there is none. */
const replies = new Map<string, Reply>();
let connections: { id: string; updated: string; company: { id: string } | undefined }[] = [];

const answer = (asked: Asked): Reply => {
  const [, , resource, scope = ''] = asked.path.split('/');
  if (resource === 'company') return { json: [company] };
  if (resource !== 'connection') return pageOf([], asked, shapeOf('meters'));
  if (scope === 'company') return pageOf(connections, asked, shapeOf('connections'));
  const record = connections.find(({ id }) => id === scope);
  return replies.get(scope) ?? (record === undefined ? { status: 404, json: {} } : { json: record });
};

async function announced(count: number, endpoints: object = single): Promise<ActivitiesUnderTest> {
  const under = await activitiesOn(answer, endpoints);
  connections = Array.from({ length: count }, () => ({ id: randomUUID(), updated, company }));
  await announce(under);
  return under;
}
const announce = ({ warehouse }: ActivitiesUnderTest) =>
  recordEvents(
    warehouse.db,
    connections.map(({ id }) => delivery(connectionEvent('updated', id, updated, 'CONNECTED', 'PENDING'))),
  );
const sweep = ({ run, activities }: ActivitiesUnderTest) =>
  run(activities.sweepOwners, { owners: queues('connections', [company.id]) });
/** The paths of requests about connections, without their ids. */
const asked = ({ asked: paths }: ActivitiesUnderTest) =>
  paths()
    .filter((path) => path.startsWith('/connection/'))
    .map((path) => (path.startsWith('/connection/company/') ? 'listing' : 'one'));
const gates = async ({ warehouse }: ActivitiesUnderTest) =>
  (await warehouse.db.execute(sql`select scope from metersync.gates`)).rows;

beforeEach(() => replies.clear());

test('a few connections are read by their ids if the service has an endpoint for that', async () => {
  const under = await announced(2);
  await sweep(under);
  expect(asked(under)).toEqual(['one', 'one']);
  expect(await outcomes(under)).toEqual({ applied: 2 });
});

test('many connections, or those of a service without this endpoint, are read from the listing', async () => {
  for (const [count, endpoints] of [
    [batches.recordsOneByOne + 1, single],
    [2, {}],
  ] as const) {
    const under = await announced(count, endpoints);
    await sweep(under);
    expect(asked(under)).toEqual(['listing']);
    expect(await outcomes(under)).toEqual({ applied: count });
  }
});

test('the listing decides about connections that cannot be read by id or do not name their company', async () => {
  const under = await announced(3);
  const [refused, unnamed, gone] = connections.map(({ id }) => id) as [string, string, string];
  replies.set(refused, { status: 400, json: {} });
  replies.set(unnamed, { json: { id: unnamed, updated } });
  connections = connections.filter(({ id }) => id !== gone);
  await sweep(under);
  expect(asked(under)).toEqual(['one', 'one', 'one', 'listing']);
  expect(await outcomes(under)).toEqual({ applied: 2, pending: 1 });
  expect(await gates(under)).toEqual([]);
});

test('the gate of the endpoint is closed while it answers 404 for a connection that the listing shows', async () => {
  const under = await announced(1);
  const [{ id } = { id: '' }] = connections;
  replies.set(id, { status: 404, json: {} });
  await sweep(under);
  expect(asked(under)).toEqual(['one', 'listing', 'one']);
  expect(await outcomes(under)).toEqual({ applied: 1 });
  expect(await gates(under)).toEqual([{ scope: 'endpoint/connection' }]);

  await announce(under);
  await sweep(under);
  expect(asked(under).slice(3)).toEqual(['listing']);

  replies.clear();
  await under.warehouse.db.execute(sql`update metersync.gates set next_probe_at = clock_timestamp()`);
  await under.run(under.activities.probeGates, { scopes: ['endpoint/connection'] });
  expect(await gates(under)).toEqual([]);
});

test('a connection whose event names another company stays with its own', async () => {
  const under = await announced(1);
  const other = randomUUID();
  connections = [{ id: connections[0]?.id ?? '', updated, company: { id: other } }];
  await sweep(under);
  const { rows } = await under.warehouse.db.execute(sql`select company_id from utility.connections`);
  expect(rows).toEqual([{ company_id: other }]);
  expect(under.backfilled).toEqual([other]);
});

test.each([
  ['by its id', single],
  ['from the listing', {}],
])(
  'an event that is recorded while its connection is read %s waits for another read',
  async (_, endpoints) => {
    let meanwhile: (() => Promise<unknown>) | undefined;
    const under = await activitiesOn(async (request) => {
      const reply = answer(request);
      if (request.path.includes('/connection/')) {
        const again = meanwhile;
        meanwhile = undefined;
        await again?.();
      }
      return reply;
    }, endpoints);
    connections = [{ id: randomUUID(), updated, company }];
    await announce(under);
    meanwhile = () => announce(under);
    await sweep(under);
    expect(await outcomes(under)).toEqual({ applied: 1, pending: 1 });
    await sweep(under);
    expect(await outcomes(under)).toEqual({ applied: 2 });
  },
);
