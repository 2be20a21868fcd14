import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { pageOf } from '../service/listing.ts';
import { activitiesOn } from '../support/activities.ts';
import { connectionEvent, delivery, documentEvent } from '../support/events.ts';

const companyId = randomUUID();
const input = () => ({ runId: randomUUID(), companyId });
const documentsAlone = { connections: null, meters: null, usageData: null, intervals: null };

test('the catalogue has the fields of all records that were read, and no field of an event', async () => {
  const meterId = randomUUID();
  const records: Readonly<Record<string, object[]>> = {
    company: [{ id: companyId, name: 'Acme', sites: [{ id: randomUUID(), floor: 3 }] }],
    connection: [{ id: randomUUID(), status: 'CONNECTED' }],
    meter: [{ id: meterId, company: { id: companyId }, number: '0012' }],
    document: [{ id: randomUUID(), totalCharges: '12.50' }],
    usage: [{ id: randomUUID(), usage: 1.5 }],
    interval: [{ startDate: '2026-05-01T00:00:00Z', endDate: '2026-05-01T00:15:00Z', usage: 1, phase: 'A' }],
  };
  const keys: Readonly<Record<string, string>> = { company: 'companies', usage: 'usageData' };
  const { activities, run, warehouse } = await activitiesOn(({ path }) => {
    const name = path.split('/')[2] ?? '';
    const held = records[name] ?? [];
    return { json: { [keys[name] ?? `${name}s`]: held, hasNext: false, currentPage: 1, totalPages: 1 } };
  });
  const reading = input();
  await run(activities.beginRun, { runId: reading.runId, kind: 'full' });
  await run(activities.readCompany, reading);
  const at = '2026-05-01T00:00:00.000001';
  const events = [
    documentEvent('created', randomUUID(), at),
    { ...connectionEvent('updated', randomUUID(), at, 'CONNECTED'), odd: 1 },
  ];
  await run(activities.recordGroup, { events: events.map((event) => delivery(event)) });
  const { rows } = await warehouse.db.execute(sql`
    select resource || ' ' || api_version || ' ' || path as field from metersync.field_catalogue`);
  expect(rows.map(({ field }) => field)).toEqual(
    expect.arrayContaining([
      'companies v2.2 /sites/*/floor',
      'sites v2.2 /floor',
      'connections v2.2 /status',
      'meters v2.2 /number',
      'documents v2.2 /totalCharges',
      'usageData v2.2 /usage',
      'intervals v2.2 /phase',
    ]),
  );
  expect(rows.filter(({ field }) => String(field).includes('/odd'))).toEqual([]);
});

test('a catalogue that fails does not stop a page, and adds the fields with the next page', async () => {
  const held = [{ id: randomUUID(), before: 1, after: 'x' }];
  const world = await activitiesOn((asked) => pageOf(held, asked), documentsAlone);
  const { activities, run, warehouse, catalogueTroubles } = world;
  await warehouse.db.execute(sql`alter table metersync.field_catalogue rename to gone`);
  await run(activities.readCompany, input());
  const written = await warehouse.db.execute(sql`select raw from utility.documents where raw is not null`);
  expect(written.rows).toEqual([{ raw: expect.objectContaining({ after: 'x' }) }]);
  expect(catalogueTroubles.splice(0)).toEqual([
    expect.objectContaining({ message: expect.stringContaining('catalogue') }),
  ]);
  await warehouse.db.execute(sql`alter table metersync.gone rename to field_catalogue`);
  held.push({ id: randomUUID(), before: 2, after: 'x' });
  await run(activities.readCompany, input());
  const { rows } = await warehouse.db.execute(
    sql`select path from metersync.field_catalogue where resource = 'documents' order by path`,
  );
  expect(rows.map(({ path }) => path)).toEqual(['', '/after', '/before', '/id']);
});
