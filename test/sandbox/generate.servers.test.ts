import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLocalDays } from '../../sandbox/generate/intervals.ts';
import { type AnyRecord, companiesOf, recordsOf, type Service, startService } from './support/service.ts';

const tables = ['companies', 'sites', 'connections', 'meters', 'documents', 'usage_data', 'intervals'];

/** Makes a fingerprint of every generated row. */
async function fingerprint(databaseUrl: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const hashes: string[] = [];
  for (const table of tables) {
    const { rows } = await client.query<{ hash: string }>(
      `select md5(string_agg(r::text, '' order by r::text)) as hash from sandbox.${table} r`,
    );
    hashes.push(`${table} ${rows[0]?.hash}`);
  }
  await client.end();
  return hashes;
}

describe('data until today', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({
      companies: 4,
      documents: 48,
      intervalDays: 2,
      until: 'today',
      irregular: 0.4,
    });
  });
  afterAll(() => service.stop());

  const ask = async <T extends pg.QueryResultRow>(query: string): Promise<T[]> => {
    const client = new pg.Client({
      connectionString: service.databaseUrl,
      types: { getTypeParser: () => String },
    });
    await client.connect();
    try {
      return (await client.query<T>(query)).rows;
    } finally {
      await client.end();
    }
  };

  test('reaches the last month, has every month, and has nothing in the future', async () => {
    const [{ future } = {}] = await ask<{ future: string }>(`
      select count(*) as future from sandbox.documents
      where greatest(created, updated) > now() at time zone 'UTC' or period_end > current_date or updated < created`);
    expect(future).toBe('0');
    const [{ last } = {}] = await ask<{ last: string }>(`
      select max(greatest(updated, start_at + seconds * interval '1 second')) < current_date as last
      from sandbox.intervals`);
    expect(last).toBe('t');
    const months = await ask<{ month: string }>(`
      select distinct to_char(period_end, 'YYYY-MM') as month from sandbox.documents order by 1`);
    const expected = await ask<{ month: string }>(`
      select to_char(m, 'YYYY-MM') as month
      from generate_series((select date_trunc('month', min(period_end)) from sandbox.documents),
        date_trunc('month', current_date - 30), interval '1 month') m`);
    expect(expected.length).toBeGreaterThan(20);
    expect(months.map(({ month }) => month)).toEqual(
      expect.arrayContaining(expected.map(({ month }) => month)),
    );
  });

  test('is not damaged by random changes, which move no bill to a meter of another commodity', async () => {
    await service.control('POST', '/sandbox/random', { count: 400, types: ['reprocessDocument'], seed: 3 });
    const [moved] = await ask<{ changes: string }>(
      `select count(*) as changes from sandbox.documents where updated > now() at time zone 'UTC' - interval '1 hour'`,
    );
    expect(Number(moved?.changes)).toBeGreaterThan(50);
    const readings = await ask<{ type: string; units: string }>(`
      select distinct m.datasource_type as type, r ->> 'units' as units
      from sandbox.documents d
        cross join lateral jsonb_array_elements(d.bill::jsonb -> 'readings') r
        join sandbox.meters m on m.id = (r ->> 'meterId')::uuid
      order by 1`);
    expect(readings).toEqual([
      { type: 'ELECTRICITY', units: 'kWh' },
      { type: 'GAS', units: 'thm (US)' },
      { type: 'WATER', units: 'kgal (US)' },
    ]);
  });
});

describe('irregular bills', () => {
  test('are a share of all bills and of every kind; the data depends only on the seed, but the API key is random', async () => {
    const options = { seed: 7, companies: 12, documents: 48, intervalDays: 0, irregular: 0.4 };
    const [one, same] = [await startService(options), await startService(options)];
    const other = await startService({ seed: 8, companies: 1, documents: 4, intervalDays: 0 });
    expect(await fingerprint(same.databaseUrl)).toEqual(await fingerprint(one.databaseUrl));
    const companies = await companiesOf(one);
    expect(companies).not.toContainEqual(expect.objectContaining({ id: (await companiesOf(other))[0]?.id }));
    const keys = [one, same].map(({ sandbox }) => sandbox.apiKey);
    expect(keys).toEqual(keys.map(() => expect.stringMatching(/^uds_[0-9a-f]{32}$/)));
    expect(keys[0]).not.toBe(keys[1]);
    const everywhere = async (resource: string, items: string) =>
      (await Promise.all(companies.map(({ id }) => recordsOf(one, resource, id, items)))).flat();
    const documents = await everywhere('document', 'documents');
    const usage = documents.flatMap((document) => document.usageData as AnyRecord[]);
    const ids = new Set(documents.map(({ id }) => id));
    const superseded = documents.filter(({ revisedDocumentId }) => revisedDocumentId !== null);
    const successors = new Set(superseded.map(({ revisedDocumentId }) => revisedDocumentId));
    expect([...successors].every((id) => ids.has(id))).toBe(true);
    const kinds = {
      superseded: superseded.length,
      chained: superseded.filter(({ id }) => successors.has(id)).length,
      sentTwice: documents.length - superseded.length - 12 * 48,
      excluded: usage.filter(({ exclusion }) => exclusion).length,
      exported: usage.filter(({ netMeteringType }) => netMeteringType === 'EXPORT').length,
      imported: usage.filter(({ netMeteringType }) => netMeteringType === 'IMPORT').length,
      negative: usage.filter((row) => row.usage.startsWith('-')).length,
      unused: usage.filter((row) => row.usage === '0.000').length,
      endUnknown: usage.filter(({ startDate, endDate }) => startDate === endDate).length,
      estimated: documents.filter(({ usageData }) => usageData.every((row: AnyRecord) => row.isEstimated))
        .length,
      canadian: documents.filter(
        ({ chargesUnits, usageData: [row] }) => (chargesUnits === 'CAD') !== (row.country === 'CA'),
      ).length,
      credited: documents.filter(({ lineItems }) =>
        lineItems.some((item: AnyRecord) => item.totalCharge.startsWith('-')),
      ).length,
    };
    expect(Object.entries(kinds).filter(([, count]) => count < 4)).toEqual([]);
    await Promise.all([one, same, other].map(({ stop }) => stop()));
  });
});

describe('days of a time zone', () => {
  test.each([
    ['2026-03-08', 'America/New_York', 23],
    ['2026-11-01', 'America/New_York', 25],
    ['2026-07-01', 'America/New_York', 24],
    ['2026-03-08', 'America/Phoenix', 24],
    ['2026-11-01', 'America/Los_Angeles', 25],
  ])('%s in %s has %i hours', (date, zone, hours) => {
    const next = new Date(Date.parse(date) + 86_400_000).toISOString().slice(0, 10);
    const days = createLocalDays();
    expect((days.midnight(next, zone) - days.midnight(date, zone)) / 3_600_000).toBe(hours);
  });
});
