import type { ClientBase } from 'pg';
import { newApiKey } from '../organizations.ts';
import type { MeterInPlace } from '../records/company.ts';
import { documentColumns, documentValues, usageColumns, usageValues } from '../records/rows.ts';
import { toMembers } from '../records/texts.ts';
import { addDays } from '../time.ts';
import type { CompanyData } from './company.ts';
import { type CompanyPlan, generateCompany } from './company.ts';
import { copyInto, copyLine } from './copy.ts';
import { createLocalDays, intervalLines, type LocalDays, seriesOf } from './intervals.ts';
import { createRandom } from './random.ts';

interface DataPlan {
  readonly seed: number;
  readonly organizations: number;
  readonly companies: number;
  /** Documents of each company. */
  readonly documents: number;
  readonly intervalDays: number;
  /** The day on which the generated history ends: `YYYY-MM-DD`. */
  readonly until: string;
  /** Whether `until` is today. Then no record has a later time. */
  readonly untilToday?: boolean;
  /** Share of bills that are irregular. */
  readonly irregular: number;
}

const companyColumns = {
  companies: ['organization_id', 'id', 'external_id', 'public_id', 'name', 'members'],
  sites: ['id', 'company_id', 'name', 'time_zone', 'members'],
  connections: ['id', 'company_id', 'created', 'updated', 'status', 'members', 'secrets'],
  meters: [
    'number',
    'id',
    'company_id',
    'site_id',
    'connection_id',
    'account_id',
    'account_number',
    'datasource_type',
    'members',
  ],
  documents: documentColumns,
  usage_data: usageColumns,
} as const;

const companyLines = {
  *companies(batch: readonly CompanyData[]) {
    for (const { company: row } of batch) {
      const { id, externalId, publicId, name } = row.company;
      yield copyLine([row.organizationId ?? null, id, externalId, publicId, name, toMembers(row.facts)]);
    }
  },
  *sites(batch: readonly CompanyData[]) {
    for (const site of batch.flatMap((data) => data.sites)) {
      yield copyLine([site.id, site.companyId, site.name, site.timeZone, toMembers(site.facts)]);
    }
  },
  *connections(batch: readonly CompanyData[]) {
    for (const row of batch.flatMap((data) => data.connections)) {
      const { facts } = row;
      const secrets = JSON.stringify(row.secrets);
      const members = toMembers(facts);
      yield copyLine([row.id, facts.company.id, row.created, row.updated, facts.status, members, secrets]);
    }
  },
  *meters(batch: readonly CompanyData[]) {
    for (const meter of batch.flatMap((data) => data.meters)) {
      yield copyLine([
        meter.number,
        meter.id,
        meter.companyId,
        meter.site.id,
        meter.connectionId,
        meter.accountId,
        meter.accountNumber,
        meter.facts.datasourceType,
        toMembers(meter.facts),
      ]);
    }
  },
  *documents(batch: readonly CompanyData[]) {
    for (const data of batch) {
      const meters = byId(data.meters);
      for (const document of data.documents) yield copyLine(documentValues(document, meters));
    }
  },
  *usage_data(batch: readonly CompanyData[]) {
    for (const data of batch) {
      const meters = byId(data.meters);
      for (const document of data.documents) {
        for (const values of usageValues(document, meters)) yield copyLine(values);
      }
    }
  },
};

/** For each table, a function that turns a batch of companies into lines for COPY. */
type TableLines = typeof companyLines;

/** How many rows are collected in memory before they are copied to the database. */
const rowsPerBatch = 4_000;

const tables = [...(Object.keys(companyColumns) as (keyof TableLines)[]), 'intervals'] as const;

/** Fills an empty database, in the caller's transaction. The same plan always writes the same rows, except keys. */
export async function load(client: ClientBase, plan: DataPlan): Promise<void> {
  await client.query(`truncate ${tables.map((table) => `sandbox.${table}`).join(', ')}`);
  const organizations = await addOrganizations(client, plan);
  const localDays = createLocalDays();
  let firstMeterNumber = 1;
  let batch: CompanyData[] = [];
  let rows = 0;
  for (let ordinal = 1; ordinal <= plan.companies; ordinal++) {
    const organizationId = organizations[(ordinal - 1) % organizations.length] ?? '';
    const data = generateCompany(companyPlan(plan, organizationId, ordinal, firstMeterNumber));
    firstMeterNumber += data.meters.length;
    batch.push(data);
    rows += 10 + data.meters.length + data.documents.length;
    if (rows < rowsPerBatch) continue;
    await copyBatch(client, batch, plan, localDays);
    batch = [];
    rows = 0;
  }
  await copyBatch(client, batch, plan, localDays);
  await client.query(`select setval('sandbox.meters_number_seq', $1, false)`, [firstMeterNumber]);
  // Only the tables that were loaded. Analysing the catalogue would take another tenth of a second.
  await client.query(`analyze ${tables.map((table) => `sandbox.${table}`).join(', ')}`);
}

const companyPlan = (
  plan: DataPlan,
  organizationId: string,
  ordinal: number,
  firstMeterNumber: number,
): CompanyPlan => ({
  seed: plan.seed,
  documents: plan.documents,
  until: plan.until,
  untilToday: plan.untilToday ?? false,
  irregular: plan.irregular,
  organizationId,
  ordinal,
  firstMeterNumber,
});

/** Adds the organizations and a key for each. Unlike everything else, keys are not derived from the seed. */
async function addOrganizations(client: ClientBase, plan: DataPlan): Promise<string[]> {
  const ids: string[] = [];
  for (let ordinal = 1; ordinal <= Math.max(1, plan.organizations); ordinal++) {
    const random = createRandom('organization', plan.seed, ordinal);
    const id = random.uuid();
    await client.query('insert into sandbox.organizations (id, name) values ($1, $2)', [
      id,
      `Organization ${ordinal}`,
    ]);
    await client.query('insert into sandbox.api_keys (key, organization_id) values ($1, $2)', [
      newApiKey(),
      id,
    ]);
    ids.push(id);
  }
  return ids;
}

async function copyBatch(
  client: ClientBase,
  batch: readonly CompanyData[],
  plan: DataPlan,
  localDays: LocalDays,
): Promise<void> {
  for (const table of tables) {
    if (table === 'intervals') continue;
    await copyInto(client, table, companyColumns[table], companyLines[table](batch));
  }
  if (plan.intervalDays === 0) return;
  const columns = [
    'meter_number',
    'start_at',
    'seconds',
    'usage_units',
    'created',
    'updated',
    'usage',
    'quality',
  ];
  await copyInto(client, 'intervals', columns, batchIntervals(batch, plan, localDays));
}

function* batchIntervals(
  batch: readonly CompanyData[],
  { seed, intervalDays, until, untilToday = false }: DataPlan,
  localDays: LocalDays,
): Generator<string> {
  // In time zones west of UTC, yesterday may not be over yet.
  const end = untilToday ? addDays(until, -1) : until;
  for (const data of batch) {
    const zones = new Map(data.sites.map((site) => [site.id, site.timeZone]));
    for (const series of seriesOf(data.meters, zones)) {
      yield* intervalLines(series, seed, intervalDays, end, localDays);
    }
  }
}

const byId = (meters: readonly MeterInPlace[]): ReadonlyMap<string, MeterInPlace> =>
  new Map(meters.map((meter) => [meter.id, meter]));
