import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalId } from '../../contract/values.ts';
import { recordEvents } from '../../db/events/record.ts';
import { recordResources, tableName } from '../../db/resources.ts';
import { audit } from '../../operations/audit/audit.ts';
import { pageOf } from '../service/listing.ts';
import type { Script } from '../service/scripted-server.ts';
import { setup } from '../service/setup.ts';
import { activitiesOn } from '../support/activities.ts';
import { connectionEvent, delivery, documentEvent, intervalsEvent } from '../support/events.ts';
import { shapeOf } from '../support/scripted-service.ts';

const spellings: readonly ((id: string) => string)[] = [
  (id) => id,
  (id) => id.toUpperCase(),
  (id) => id.replaceAll('-', ''),
  (id) => `{${id}}`,
  (id) => `{${id.replaceAll('-', '').toUpperCase()}}`,
];
/** The index of the spelling for each place. */
const styles = fc.array(fc.nat(spellings.length - 1), { minLength: 16, maxLength: 16 });
const earlier = '2026-05-01T00:00:00.000001';
const later = '2026-05-01T00:00:00.000002';

type Spell = (place: number, id: string) => string;

/** Makes a service with one record of each kind. `spell` spells the id at each place. */
function serviceOf(ids: Readonly<Record<string, string>>, spell: Spell): Script {
  const { company = '', site = '', connection = '', document = '', usage = '', meter = '' } = ids;
  return ({ path, query }) => {
    const [, , resource, scope] = path.split('/');
    const relation = { site: { id: spell(0, site) }, accountIds: ['1'], datasourceTypes: ['WATER'] };
    const row = { meter: { id: spell(1, meter) }, document: { id: spell(2, document) } };
    const listings: Readonly<Record<string, object>> = {
      companies: { id: spell(3, company), name: 'Acme', sites: [{ id: spell(4, site), name: 'Plant' }] },
      connections: { id: spell(5, connection), updated: later, sitesRelations: [relation] },
      documents: { id: spell(6, document), created: earlier, updated: later, site: { id: spell(7, site) } },
      usageData: { id: spell(8, usage), usage: '1.10', updated: later, ...row },
      meters: { id: spell(9, meter), site: { id: spell(10, site) } },
      intervals: { start: '2026-05-01T01:00:00', end: '2026-05-01T01:15:00', usage: '1', usageUnits: 'kWh' },
    };
    const kinds: Readonly<Record<string, string>> = {
      company: 'companies',
      connection: 'connections',
      document: 'documents',
      usage: 'usageData',
      meter: 'meters',
      interval: 'intervals',
    };
    const kind = kinds[resource ?? ''] ?? '';
    const record = listings[kind] ?? {};
    if (resource === 'document' && scope !== 'company') return { json: record };
    return pageOf([record], { query }, shapeOf(kind as Parameters<typeof shapeOf>[0]));
  };
}

test('any spelling of a UUID in listings, records and events means the same record', async () => {
  await fc.assert(
    fc.asyncProperty(styles, async (chosen) => {
      const names = ['company', 'site', 'connection', 'document', 'usage', 'meter'];
      const ids = Object.fromEntries(names.map((name) => [name, randomUUID()]));
      const spell: Spell = (place, id) => (spellings[chosen[place] ?? 0] as (id: string) => string)(id);
      const script = serviceOf(ids, spell);
      const under = await activitiesOn(script);
      const { activities, run, warehouse } = under;
      const { company = '', connection = '', document = '', meter = '' } = ids;
      const backfill = async (): Promise<void> => {
        const runId = randomUUID();
        await run(activities.beginRun, { runId, kind: 'full' });
        await run(activities.readCompany, { runId, companyId: company });
      };
      await backfill();
      const ofCompany = {
        company: { id: spell(11, company), externalId: 'acme', name: 'Acme' },
        sitesRelations: [],
      };
      const events = [
        { ...connectionEvent('updated', spell(12, connection), later, 'CONNECTED'), ...ofCompany },
        documentEvent('updated', spell(13, document), later, {
          ...ofCompany,
          site: { id: spell(14, ids.site ?? '') },
        }),
        intervalsEvent(spell(15, meter), '2026-05-01T01:00:00Z', '2026-05-01T01:15:00Z', 1),
      ].map((payload) => delivery(payload));
      await recordEvents(warehouse.db, events);
      await backfill();

      const held = await Promise.all(
        recordResources.map(async (resource) => {
          const { rows } = await warehouse.db.execute<{ id: string; lives: boolean }>(sql`
            select id::text as id, deleted_at is null as lives
            from ${sql.raw(`utility.${tableName(resource)}`)}`);
          return rows;
        }),
      );
      expect(held.flat().sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual(
        Object.values(ids)
          .sort()
          .map((id) => ({ id, lives: true })),
      );
      const { rows } = await warehouse.db.execute(sql`
        select
          (select array_agg(meter_id) from utility.usage_data) as usage,
          (select array_agg(meter_id) from utility.intervals) as readings,
          (select array_agg(distinct record_id order by record_id) from metersync.journal) as events`);
      expect(rows).toEqual([
        { usage: [meter], readings: [meter], events: [connection, document, meter].sort() },
      ]);
      const { client } = await setup(script);
      const report = await audit({ warehouse, service: client, concurrency: 1 });
      expect(report).toMatchObject({ differences: 0 });
    }),
    { numRuns: 5 },
  );
}, 120_000);

test.each([
  ['a5f8c9d1-0000-4000-8000-00000000000a', 'a5f8c9d1-0000-4000-8000-00000000000a'],
  ['{A5F8C9D1-0000-4000-8000-00000000000A}', 'a5f8c9d1-0000-4000-8000-00000000000a'],
  ['a5f8c9d1000040008000-00000000000a', 'a5f8c9d1-0000-4000-8000-00000000000a'],
  ['{a5f8c9d1-0000-4000-8000-00000000000a', '{a5f8c9d1-0000-4000-8000-00000000000a'],
  ['M-17', 'M-17'],
])('%s becomes %s', (spelled, canonical) => {
  expect(canonicalId(spelled)).toBe(canonical);
});
