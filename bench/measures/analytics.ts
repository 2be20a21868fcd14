import type pg from 'pg';
import { table } from '../../cli/terminal.ts';
import { connectWarehouse } from '../../db/connection/connect.ts';
import { createFieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { type AnalyticsShape, fillAnalytics } from '../load/analytics-world.ts';
import { corrected, recordDocumentPages, writeDocumentPages } from '../load/document-pages.ts';
import { joinsOfViews, statementOf } from '../load/joins.ts';
import { type Answer, answer, answersOf } from '../load/views.ts';
import { loadWithoutIndexes } from '../load/without-indexes.ts';
import { type Bench, type Figures, type Measure, median, msOf } from '../measure.ts';
import { withClient } from '../stack.ts';

export const analytics: Measure = {
  name: 'analytics',
  about:
    'each view for one company, usage by month for all, as the warehouse grows tenfold; joins of views; months of ten times as many bills; loading with history and catalogue against without',
  run: measureAnalytics,
};

/** From this number of readings in a month on, the planner should use the BRIN index on `start_at`. */
const readingsForBrin = 100_000;
/** With fewer companies, one company has so many of the readings that reading all of them is right. */
const companiesForBrin = 10;

/** Each statement must run in one process, so that its processor time is complete. */
const inOneProcess = 'set jit = off; set max_parallel_workers_per_gather = 0';

const day = "start_at >= '2025-01-02 00:00Z' and start_at < '2025-01-03 00:00Z'";

/** A join that takes longer is stopped, because it computes a view again for each row of another view. */
const mostMsOfJoin = 120_000;

async function measureAnalytics(bench: Bench): Promise<Figures> {
  return {
    ...(await measureViews(bench)),
    ...(await measureJoins(bench)),
    ...(await measureMonths(bench)),
    ...(await measureLoad(bench)),
  };
}

/** Measures each view for one company, and months for all, with a tenth of the companies and with all of them. */
async function measureViews(bench: Bench): Promise<Figures> {
  const url = await bench.stack.warehouse();
  const [small, large, plans] = await withClient(url, async (client) => {
    await client.query(inOneProcess);
    const few = Math.max(1, Math.floor(bench.size.analyticsCompanies / 10));
    const before = await grownTo(bench, url, client, 1, few);
    const after = await grownTo(bench, url, client, few + 1, bench.size.analyticsCompanies);
    return [before, after, await lookAtPlans(bench, client)] as const;
  });
  bench.say(`\n${describe(small, large)}`);
  const slowest = Math.max(...[...large.views.values()].map(({ ms }) => ms));
  const growth = [...large.views].map(([view, { ms }]) => ms / (small.views.get(view)?.ms ?? ms));
  return {
    slowestViewMs: slowest,
    medianViewMs: median([...large.views.values()].map(({ ms }) => ms)),
    medianGrowth: median(growth),
    ...cpuFigures(large),
    monthlyUsageMs: large.everyone.ms,
    monthlyUsageGrowth: large.everyone.ms / small.everyone.ms,
    monthlySumsMs: large.summedUp.ms,
    ...plans,
  };
}

/** Returns processor times, which have no goals. They are left out if they are too short to be measured. */
function cpuFigures({ views, everyone, summedUp }: Answers): Figures {
  const slowest = Math.max(...[...views.values()].map(({ cpuMs }) => cpuMs ?? 0));
  if (slowest === 0 || !everyone.cpuMs || !summedUp.cpuMs) return {};
  return {
    slowestViewCpuMs: slowest,
    monthlyUsageCpuMs: everyone.cpuMs,
    monthlySumsCpuMs: summedUp.cpuMs,
  };
}

interface Answers {
  readonly readings: number;
  readonly views: ReadonlyMap<string, Answer>;
  /** Usage by month of all companies. */
  readonly everyone: Answer;
  /** Sums of months by site, of all companies. */
  readonly summedUp: Answer;
}

async function grownTo(
  bench: Bench,
  url: string,
  client: pg.Client,
  from: number,
  to: number,
): Promise<Answers> {
  const { size } = bench;
  const shape: AnalyticsShape = {
    documents: size.analyticsDocuments,
    months: Math.min(36, size.analyticsDocuments),
    intervalMeters: size.analyticsMeters,
    readings: size.analyticsReadings,
  };
  await fillAnalytics(client, shape, { from, to });
  await keepMonths(client);
  await writeBack(bench.stack.asSuperuser(url));
  const readings = await countOf(client, 'utility.intervals');
  const documents = await countOf(client, 'utility.documents');
  bench.say(
    `${to} companies, ${documents.toLocaleString('en')} documents, ${readings.toLocaleString('en')} readings: every view of company 1, and usage of all`,
  );
  const {
    rows: [{ id }],
  } = await client.query(`select id from utility.companies where name = 'Company 1'`);
  const emptyMonths = await emptyPartitions(client);
  const views = await answersOf(client, id);
  const scanned = views
    .get('interval_readings')
    ?.scans.find(
      ({ node, relation }) =>
        node.includes('Seq Scan') && relation.startsWith('intervals_') && !emptyMonths.has(relation),
    );
  if (scanned !== undefined && readings > readingsForBrin && to >= companiesForBrin)
    throw new Error(`readings of one company were looked for in all of ${scanned.relation}`);
  return { readings, views, ...(await monthsOfAll(client)) };
}

async function monthsOfAll(client: pg.Client): Promise<Pick<Answers, 'everyone' | 'summedUp'>> {
  const everyone = await answer(client, 'select * from analytics.monthly_usage');
  return { everyone, summedUp: await answer(client, 'select * from analytics.monthly_by_site') };
}

/** How many companies one statement fills. */
const filledTogether = 200;

/** Fills a warehouse with companies that have bills, and returns how fast their months were computed. */
async function fillMonths(
  { size, stack, say }: Bench,
  url: string,
  client: pg.Client,
  companies: number,
): Promise<number> {
  const { analyticsDocuments: documents } = size;
  say(`${companies} companies, ${(companies * documents).toLocaleString('en')} bills`);
  const shape = {
    documents,
    months: Math.min(36, documents),
    intervalMeters: 0,
    readings: 0,
    analysed: false,
  };
  await loadWithoutIndexes(stack.asSuperuser(url), async () => {
    for (let from = 1; from <= companies; from += filledTogether) {
      const to = Math.min(companies, from + filledTogether - 1);
      await fillAnalytics(client, shape, { from, to });
      say(`${to} companies are filled`);
    }
  });
  await client.query('vacuum analyze');
  const began = performance.now();
  await keepMonths(client);
  const keptPerSecond = (companies * 1000) / (performance.now() - began);
  await writeBack(stack.asSuperuser(url));
  return keptPerSecond;
}

/** Measures each pair and triple of views that have a key in common, for all companies and for one. */
async function measureJoins(bench: Bench): Promise<Figures> {
  const { size, stack, say } = bench;
  const url = await stack.warehouse();
  return await withClient(url, async (client) => {
    await client.query(inOneProcess);
    await fillMonths(bench, url, client, size.analyticsCompanies);
    const {
      rows: [{ id }],
    } = await client.query(`select id from utility.companies where name = 'Company 1'`);
    const joins = await joinsOfViews(client);
    say(`${joins.length} joins`);
    await client.query(`set statement_timeout = ${mostMsOfJoin}`);
    const seconds: number[] = [];
    const ofOne: number[] = [];
    for (const join of joins) {
      const one = await msOf(() => client.query(statementOf(join, id)));
      const every = await msOf(() => client.query(statementOf(join)));
      say(`${join.views.join(', ')}: ${Math.round(one)} ms of one company, ${Math.round(every)} ms of all`);
      ofOne.push(one);
      seconds.push(every / 1000);
    }
    return {
      joins: joins.length,
      slowestJoinSeconds: Math.max(...seconds),
      medianJoinSeconds: median(seconds),
      slowestJoinOfOneMs: Math.max(...ofOne),
      medianJoinOfOneMs: median(ofOne),
    };
  });
}

/** Measures months of all companies, and their sums by site, of ten times as many bills. */
async function measureMonths(bench: Bench): Promise<Figures> {
  const url = await bench.stack.warehouse();
  return await withClient(url, async (client) => {
    await client.query(inOneProcess);
    const keptPerSecond = await fillMonths(bench, url, client, bench.size.analyticsLargeCompanies);
    const { everyone, summedUp } = await monthsOfAll(client);
    // The stored months, unchanged. No computation could answer sooner.
    const kept = await answer(client, 'select * from metersync.monthly_usage');
    const usage = await answer(
      client,
      'select month, units, sum(usage) from analytics.monthly_usage group by month, units',
    );
    return {
      largeMonthlyUsageMs: everyone.ms,
      largeKeptUsageMs: kept.ms,
      largeUsageOfMonthsMs: usage.ms,
      largeMonthlySumsMs: summedUp.ms,
      companiesKeptPerSecond: keptPerSecond,
    };
  });
}

async function keepMonths(client: pg.Client): Promise<void> {
  await client.query(`select metersync.keep_months('1 day')`);
  await client.query('analyze');
}

/** Makes Postgres write the loaded rows to disk, because it would otherwise do so while answers are timed. */
async function writeBack(superuserUrl: string): Promise<void> {
  await withClient(superuserUrl, (client) => client.query('checkpoint'));
}

async function countOf(client: pg.Client, relation: string): Promise<number> {
  const { rows } = await client.query(`select count(*)::int as n from ${relation}`);
  return rows[0].n;
}

/** Lists partitions of future months, which are empty, so that reading them costs nothing. */
async function emptyPartitions(client: pg.Client): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ name: string }>(`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'utility.intervals'::regclass and c.relpages = 0`);
  return new Set(rows.map(({ name }) => name));
}

/** Checks that readings of a day are read only from the partition of its month, with its BRIN index. */
async function lookAtPlans(bench: Bench, client: pg.Client): Promise<Figures> {
  const partitions = await countOf(client, `pg_inherits where inhparent = 'utility.intervals'::regclass`);
  const plan = await answer(
    client,
    `select count(*), sum(standard_usage) from analytics.interval_readings where ${day}`,
  );
  const scans = plan.scans.filter(({ relation }) => relation.startsWith('intervals_'));
  const months = new Set(scans.map(({ relation }) => relation.slice(0, 'intervals_2025_01'.length)));
  if (months.size > 1) throw new Error(`a day was read from ${[...months].join(', ')}`);
  const brin = scans.some(({ relation }) => relation.endsWith('_start_at_idx'));
  const {
    rows: [{ month }],
  } = await client.query(
    `select count(*)::int as month from utility.intervals where start_at >= '2025-01-01' and start_at < '2025-02-01'`,
  );
  if (!brin && month > readingsForBrin)
    throw new Error(`a day was read without the BRIN index: ${JSON.stringify(scans)}`);
  bench.say(
    `a day of all meters: ${scans.map(({ node, relation }) => `${node} ${relation}`).join(', ') || 'nothing'}; ${months.size} of ${partitions} partitions, ${Math.round(plan.ms)} ms`,
  );
  return { dayOfAllMs: plan.ms, partitions };
}

function describe(small: Answers, large: Answers): string {
  const row = (name: string, before: Answer | undefined, after: Answer) => [
    name,
    after.rows,
    before === undefined ? '' : Math.round(before.ms),
    Math.round(after.ms),
    after.cpuMs ?? '',
    Math.round(after.cost),
    before === undefined ? '' : `× ${(after.ms / before.ms).toFixed(1)}`,
  ];
  const head = [
    'view',
    'rows',
    `ms of ${small.readings.toLocaleString('en')}`,
    `ms of ${large.readings.toLocaleString('en')}`,
    'of a processor',
    'cost',
    'growth',
  ];
  return table(head, [
    ...[...large.views].map(([view, plan]) => row(view, small.views.get(view), plan)),
    row('monthly_usage of all', small.everyone, large.everyone),
    row('monthly_by_site of all', small.summedUp, large.summedUp),
  ]).join('\n');
}

/** Measures what share of the rate of writing documents is left with history and field catalogue. */
async function measureLoad(bench: Bench): Promise<Figures> {
  const pages = await recordDocumentPages(bench, bench.size.analyticsLoaded);
  const later = corrected(pages);
  const url = await bench.stack.warehouse();
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 4, onError: () => {} });
  bench.atEnd(() => warehouse.close());
  bench.say(
    `${pages.length} pages of documents, ${bench.size.analyticsLoadRounds} rounds, with history and catalogue and without`,
  );
  const none = () => ({ with: [] as number[], without: [] as number[] });
  const seconds = { load: none(), correction: none() };
  for (let round = 0; round <= bench.size.analyticsLoadRounds; round++) {
    for (const kept of round % 2 === 0 ? [false, true] : [true, false]) {
      const fields = kept
        ? createFieldCatalogue({
            db: warehouse.db,
            onError: (error) => {
              throw error;
            },
          })
        : undefined;
      await withClient(url, async (client) => {
        await client.query('truncate utility.documents, utility.usage_data, metersync.earlier_states');
        for (const written of ['documents', 'usage_data'])
          await client.query(
            `alter table utility.${written} ${kept ? 'enable' : 'disable'} trigger keep_history`,
          );
      });
      const load = await writeDocumentPages(warehouse, pages, fields);
      const correction = await writeDocumentPages(warehouse, later, fields, 'changed');
      await fields?.close();
      // The first round warms up connections and code.
      if (round === 0) continue;
      seconds.load[kept ? 'with' : 'without'].push(load);
      seconds.correction[kept ? 'with' : 'without'].push(correction);
    }
  }
  const ofBare = (of: { with: number[]; without: number[] }) => median(of.without) / median(of.with);
  return { loadOfBare: ofBare(seconds.load), correctionOfBare: ofBare(seconds.correction) };
}
