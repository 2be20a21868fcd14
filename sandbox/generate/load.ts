import type { ClientBase } from 'pg';
import { newApiKey } from '../api/keys.ts';
import { copyInto } from '../database/copy.ts';
import { addDays } from '../timestamps.ts';
import { type CompanyPlan, generateCompany } from './company.ts';
import { companyColumns, companyLines, type TableLines } from './copy-lines.ts';
import { intervalLines, seriesOf } from './intervals.ts';
import { createLocalDays, type LocalDays } from './local-days.ts';
import { createRandom } from './random.ts';
import type { CompanyData } from './rows.ts';

export interface DataPlan {
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
