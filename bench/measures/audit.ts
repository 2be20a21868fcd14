import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { pino } from 'pino';
import { openService } from '../../app/service.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { auditResources } from '../../contract/endpoints.ts';
import { connectWarehouse } from '../../db/connection/connect.ts';
import { type AuditReport, repair } from '../../operations/audit/audit.ts';
import { copyReadings } from '../load/copy-readings.ts';
import type { Bench, Figures, Measure } from '../measure.ts';
import { type CommandRun, runCommand } from '../process/command.ts';
import { startSandbox } from '../service/sandbox.ts';
import { withClient } from '../stack.ts';

export const audit: Measure = {
  name: 'audit',
  about:
    'readings per second that metersync audit compares, and its memory as there are ten times as many; it must find what differs',
  run: measureAudit,
};

/** How many companies are read at the same time to fill the warehouse. This is not measured. */
const fillConcurrency = 8;

async function measureAudit(bench: Bench): Promise<Figures> {
  const companies = bench.size.auditCompanies;
  const [small, large] = await Promise.all([
    equalSides(bench, Math.ceil(companies / 10)),
    equalSides(bench, companies),
  ]);
  const before = await auditEqual(bench, small);
  const after = await auditEqual(bench, large);
  await auditChanged(bench, large);
  const half = Math.ceil(after.resident.length / 2);
  return {
    readingsPerSecond: large.readings / after.seconds,
    peakOfTenth: peak(after.resident) / peak(before.resident),
    secondHalfOfFirst: peak(after.resident.slice(half)) / peak(after.resident.slice(0, half)),
    peakMegabytes: peak(after.resident) / 1e6,
    peakMegabytesOfTenth: peak(before.resident) / 1e6,
  };
}

const peak = (resident: readonly number[]): number => Math.max(...resident);

/** A service and a warehouse with equal data. */
interface Sides {
  readonly readings: number;
  readonly warehouseUrl: string;
  readonly env: Readonly<Record<string, string>>;
}

async function equalSides(bench: Bench, companies: number): Promise<Sides> {
  const sandbox = await startSandbox(bench, { companies, documents: 0, intervalDays: bench.size.auditDays });
  const warehouseUrl = await bench.stack.warehouse();
  const env = {
    DATABASE_URL: warehouseUrl,
    SERVICE_URL: sandbox.apiUrl,
    SERVICE_API_KEY: sandbox.apiKey,
    METERSYNC_DIR: await mkdtemp(join(bench.stack.dir, 'audit-')),
  };
  await fillRecords(env);
  const readings = await copyReadings(sandbox.databaseUrl, warehouseUrl);
  bench.say(`${companies} companies, ${readings.toLocaleString('en')} readings on both sides`);
  return { readings, warehouseUrl, env };
}

/** Fills a warehouse with everything except readings, by a repair. */
async function fillRecords(env: Readonly<Record<string, string>>): Promise<void> {
  const settings = readSettings(env);
  const { url = '', apiKey = '' } = settings.service;
  const warehouse = connectWarehouse({
    url: env.DATABASE_URL ?? '',
    timeZone: 'UTC',
    max: fillConcurrency,
    onError: () => {},
  });
  const { client, apiVersion } = openService(settings, url, apiKey, pino({ level: 'silent' }));
  try {
    const resources = auditResources.filter((resource) => resource !== 'intervals');
    const concurrency = fillConcurrency;
    await repair({ warehouse, service: client, apiVersion, concurrency, resources });
  } finally {
    await Promise.all([client.close(), warehouse.close()]);
  }
}

async function auditOf(
  bench: Bench,
  { env, readings }: Sides,
): Promise<CommandRun & { report: AuditReport }> {
  const run = await runCommand(bench, ['audit', '--json'], env);
  if (run.status !== 0 && run.status !== 1) throw new Error(`the audit ended with status ${run.status}`);
  const report = JSON.parse(run.stdout) as AuditReport;
  bench.say(
    `${report.compared.toLocaleString('en')} records compared in ${run.seconds.toFixed(0)} s, ${report.differences} differences, ${Math.round(peak(run.resident) / 1e6)} MB at most`,
  );
  const { compared } = report.resources.intervals;
  if (compared !== readings) throw new Error(`${compared} of ${readings} readings were compared`);
  return { ...run, report };
}

async function auditEqual(bench: Bench, sides: Sides): Promise<CommandRun> {
  const run = await auditOf(bench, sides);
  if (run.report.differences === 0) return run;
  throw new Error(`equal sides, and these differ: ${JSON.stringify(run.report.examples.slice(0, 5))}`);
}

/** Changes a few readings by the smallest possible amount. The audit must find each, and nothing else. */
async function auditChanged(bench: Bench, sides: Sides): Promise<void> {
  const { rows: made } = await withClient(sides.warehouseUrl, (client) => client.query<Change>(changeSome));
  if (made.length !== changes) throw new Error(`${made.length} of ${changes} changes were made`);
  const { report } = await auditOf(bench, sides);
  const found = report.examples.map(({ id, state }) => ({ id, state }));
  if (report.differences !== changes || !isDeepStrictEqual(found, made)) {
    throw new Error(`made ${JSON.stringify(made)}, found ${report.differences}: ${JSON.stringify(found)}`);
  }
}

interface Change {
  readonly id: string;
  readonly state: string;
}

const changes = 6;
const sameReading = `(i.meter_id, i.start_at, i.granularity_seconds, i.usage_units)
  = (c.meter_id, c.start_at, c.granularity_seconds, c.usage_units)`;

/** Changes one reading of each of several meters. Returns the changes as an audit names and orders them. */
const changeSome = `
  with meter as (
    select id, row_number() over (order by id) - 1 as place, count(*) over () - 1 as last from utility.meters m
    where exists (select from utility.intervals i where i.meter_id = m.id)
  ), chosen as (
    select state, i.*
    from unnest(array['different', 'different', 'different', 'missing', 'missing', 'extra']) with ordinality as t (state, n)
      join meter on place = (n - 1) * last / (${changes} - 1),
      lateral (select * from utility.intervals where meter_id = meter.id order by start_at offset 5 * n limit 1) i
  ), changed as (
    update utility.intervals i set usage = i.usage + 0.001 from chosen c where c.state = 'different' and ${sameReading}
    returning i.*, c.state
  ), gone as (
    delete from utility.intervals i using chosen c where c.state = 'missing' and ${sameReading} returning i.*, c.state
  ), added as (
    insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, quality, updated, synced_at)
    select meter_id, start_at + interval '1 microsecond', granularity_seconds, usage_units, usage, quality, updated, synced_at
    from chosen where state = 'extra' returning *, 'extra' as state
  ), made as (select * from changed union all select * from gone union all select * from added)
  select id, state from (
    select meter_id || '@' || start_at || '/' || granularity_seconds || '/' || usage_units as id, state from made
  ) named order by id collate "C"`;
