import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { listOperations } from '../../db/operations.ts';
import { countZones, listSites } from '../../db/sites.ts';
import { readSiteValues } from '../../operations/sites.ts';
import { runCommand } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const [warehouse, folder] = await Promise.all([forFile(createWarehouse()), forFile(temporaryFolder())]);

const metersync = (...args: string[]) =>
  runCommand(args, { env: { DATABASE_URL: warehouse.url, METERSYNC_DIR: folder.path } });

interface Site {
  readonly name: string;
  readonly address: string | null;
}

async function companyWith(sites: readonly Site[]): Promise<{ id: string; siteIds: string[] }> {
  const id = randomUUID();
  const records = sites.map((site) => ({ id: randomUUID(), ...site }));
  const company = { id, name: 'Acme', sites: records };
  const at = { companyId: id, readAt: '2026-06-01T00:00:00Z' };
  await writeRecords(warehouse, 'companies', [company], at);
  await writeRecords(warehouse, 'sites', [company], at);
  return { id, siteIds: records.map((record) => record.id) };
}

test('an address in the United States or Canada proposes the time zone of its state', async () => {
  const zones: readonly (readonly [address: string | null, zone: string | null])[] = [
    ['12 Main St, Boston, MA 02110', 'America/New_York'],
    ['1 Palm Ave, Phoenix, AZ 85004-1234', 'America/Phoenix'],
    ['5 King St, Toronto, ON M5H 2N2', 'America/Toronto'],
    ['9 Shore Rd, Honolulu, HI 96813', 'Pacific/Honolulu'],
    ['12 Main St, Boston', null],
    ['Unter den Linden 1, 10117 Berlin', null],
    [null, null],
  ];
  for (const [address, zone] of zones) {
    const { rows } = await warehouse.db.execute(sql`select metersync.time_zone_of(${address}) as zone`);
    expect(rows, address ?? 'none').toEqual([{ zone }]);
  }
  const { rows } = await warehouse.db.execute(sql`
    select state from unnest(array['MA', 'TX', 'CO', 'AZ', 'CA', 'AK', 'HI', 'PR', 'QC', 'MB', 'SK', 'AB', 'BC', 'NS', 'NL']) state
    where not metersync.is_time_zone(metersync.time_zone_of('X, ' || state || ' 02110'))`);
  expect(rows).toEqual([]);
});

test('sites are listed with what is set about them, and a file that the export wrote sets it', async () => {
  const { id, siteIds } = await companyWith([
    { name: 'Depot "North", Boston', address: '1 Main St, Boston, MA 02110' },
    { name: 'Office', address: null },
    { name: 'Plant', address: '1 Main St, Denver, CO 80202' },
  ]);
  const [depot, office, plant] = siteIds as [string, string, string];
  const listed = await metersync('sites', '--company', id);
  expect(listed).toMatchObject({ status: 0 });
  expect(listed.stdout).toContain('Acme, Office: no time zone\n');
  expect(listed.stdout).toContain('Acme, Plant: no time zone, America/Denver proposed\n');
  expect(listed.stdout).toContain('3 sites without a time zone');

  const file = join(folder.path, 'sites.csv');
  expect(await metersync('export', 'analytics.sites', '--company', id, '--out', file)).toMatchObject({
    status: 0,
  });
  const exported = readFileSync(file, 'utf8');
  // An unchanged file changes nothing: UTC by default does not become UTC that somebody has set.
  expect(await metersync('sites', '--file', file)).toMatchObject({ status: 0, stdout: '0 sites changed.' });
  writeFileSync(
    file,
    exported
      .split('\n')
      .map((line) => (line.includes('Office') ? line.replace('UTC,default', 'Europe/Berlin,default') : line))
      .join('\n'),
  );
  expect(await metersync('sites', '--file', file)).toMatchObject({ status: 0, stdout: '1 site changed.' });
  writeFileSync(file, `site_id,floor_area,floor_area_units,emission_region\n${office},1200.5,sq ft,DE\n`);
  expect(await metersync('sites', '--file', file)).toMatchObject({ status: 0, stdout: '1 site changed.' });
  expect(await metersync('sites', '--accept-proposals', '--company', id)).toMatchObject({
    stdout: '2 sites changed.',
  });
  const zones = new Map(
    (await listSites(warehouse.db, { companyId: id })).map((site) => [site.site_id, site]),
  );
  expect(zones.get(depot)).toMatchObject({
    time_zone: 'America/New_York',
    time_zone_source: 'site',
    floor_area: null,
  });
  expect(zones.get(plant)).toMatchObject({ time_zone: 'America/Denver', proposed_time_zone: null });
  expect(zones.get(office)).toMatchObject({
    ...{ time_zone: 'Europe/Berlin', floor_area: '1200.5', floor_area_units: 'sq ft', emission_region: 'DE' },
  });
  writeFileSync(file, `site_id,floor_area\n${office},\n`);
  await metersync('sites', '--file', file);
  expect((await listSites(warehouse.db, { siteIds: [office] }))[0]).toMatchObject({
    ...{ floor_area: null, time_zone: 'Europe/Berlin' },
  });
  expect((await metersync('sites', '--company', id)).stdout).toContain('Each site has a time zone.');
  const noted = await listOperations(warehouse.db, {}, { limit: 1 });
  expect(noted).toMatchObject([{ action: 'sites set', outcome: 'done', detail: '1 site changed' }]);
});

test('a file with an error changes nothing, and the message names the error', async () => {
  const { siteIds } = await companyWith([
    { name: 'Depot', address: null },
    { name: 'Office', address: null },
  ]);
  const file = join(folder.path, 'wrong.csv');
  const before = await countZones(warehouse.db);
  const refused = async (text: string) => {
    writeFileSync(file, text);
    const { status, stderr } = await metersync('sites', '--file', file);
    return [status, stderr];
  };
  const [one = '', other = ''] = siteIds;
  for (const [text, status, why] of [
    [
      `site_id,time_zone\n${one},UTC\n${other},Mars/Olympus\n`,
      1,
      'Office: "Mars/Olympus" is not an IANA time zone',
    ],
    [`site_id,time_zone\n${one},Europe/Berlin\n${randomUUID()},UTC\n`, 1, 'there is no site '],
    [`site_id,floor_area\n${one},large\n`, 1, 'Depot: cannot read floor area "large" as a number'],
    [`site_id,floor_area\n${one},1\n${one},2\n`, 1, 'Depot is named twice'],
    [`site,time_zone\nDepot,UTC\n`, 2, 'the first line has to name site_id'],
    [`site_id,time_zone\nDepot,UTC\n`, 2, '"Depot" is not the id of a site'],
    [`site_id,time_zone\n"${one},UTC\n`, 2, 'line 2 is not CSV'],
  ] as const)
    expect(await refused(text)).toEqual([status, expect.stringContaining(why)]);
  expect(await countZones(warehouse.db)).toEqual(before);
  for (const [wrong, problem] of [
    [join(folder.path, 'none.csv'), 'is not there'],
    [folder.path, 'cannot be read: EISDIR'],
  ] as const)
    expect(await metersync('sites', '--file', wrong)).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(new RegExp(`^metersync: ${wrong} ${problem}$`, 'm')),
    });
  expect(await metersync('sites', '--file', file, '--accept-proposals')).toMatchObject({ status: 2 });
});

test('reads CSV with quotes, line breaks within cells, and either kind of line end', () => {
  const id = '00000000-0000-4000-8000-000000000001';
  expect(readSiteValues(`\uFEFFsite,site_id,floor_area_units\r\n"a ""b"",\nc",${id},sq ft\r\n\r\n`)).toEqual([
    { siteId: id, values: { floor_area_units: 'sq ft' } },
  ]);
  expect(readSiteValues(`site_id,time_zone\n${id},`)).toEqual([{ siteId: id, values: { time_zone: null } }]);
});

test('a check counts the sites with readings that have no time zone', async () => {
  const { id, siteIds } = await companyWith([
    { name: 'Depot', address: null },
    { name: 'Office', address: null },
  ]);
  const meters = siteIds.map((site, at) => ({
    id: `zone-${at}/${site}`,
    site,
    datasourceType: 'ELECTRICITY',
  }));
  await writeRecords(warehouse, 'meters', meters, { companyId: id, readAt: '2026-06-01T00:00:00Z' });
  await warehouse.db.execute(sql`select metersync.ensure_interval_month('2026-05-01')`);
  for (const meter of meters)
    await warehouse.db.execute(sql`
      insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, quality, synced_at)
      values (${meter.id}, '2026-05-01T00:00:00Z', 900, 'kWh', 1, 'ACTUAL', now())`);
  const issues = async () => {
    await refreshDataIssues(warehouse.db, [id], { kinds: ['intervals'] });
    const { rows } = await warehouse.db.execute(sql`
      select severity, sentence from ops.open_issues where company_id = ${id}::uuid and check_name = 'no_time_zone'`);
    return rows;
  };
  expect(await issues()).toEqual([
    {
      severity: 'info',
      sentence:
        'No time zone is set for 2 sites with readings: their days and hours are in UTC. Set it with metersync sites.',
    },
  ]);
  for (const site of siteIds)
    await warehouse.db.execute(
      sql`insert into ops.site_overrides (site_id, time_zone) values (${site}::uuid, 'Europe/Berlin')`,
    );
  expect(await issues()).toEqual([]);
});
