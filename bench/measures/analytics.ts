import { finished } from 'node:stream/promises';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { table } from '../../cli/terminal.ts';
import { fillAnalytics, joinsOfViews, statementOf } from '../analytics-world.ts';
import { type Bench, type Figures, type Measure, median, msOf } from '../measure.ts';
import { withClient } from '../stack.ts';
import { loadWithoutIndexes } from '../warehouse.ts';

export const analytics: Measure = {
  name: 'analytics',
  about:
    'each view for one company, usage by month for all, as the warehouse grows tenfold; joins of views; months of ten times as many bills',
  run: measureAnalytics,
};

/** Each statement runs in one process, as when several people ask at the same time. */
const inOneProcess = 'set jit = off; set max_parallel_workers_per_gather = 0';

/** A join that takes longer is stopped, because it computes a view again for each row of another view. */
const mostMsOfJoin = 120_000;

/** How often each statement runs after a run that warms up. The median counts. */
const asked = 3;

async function measureAnalytics(bench: Bench): Promise<Figures> {
  return {
    ...(await measureViews(bench)),
    ...(await measureJoins(bench)),
    ...(await measureMonths(bench)),
  };
}

/** Measures each view for one company, and months for all, with a tenth of the companies and with all of them. */
async function measureViews(bench: Bench): Promise<Figures> {
  const { analyticsCompanies } = bench.size;
  const url = await bench.stack.warehouse();
  return await withClient(url, async (client) => {
    await client.query(inOneProcess);
    const few = Math.max(1, Math.floor(analyticsCompanies / 10));
    const before = await grownTo(bench, url, client, 1, few);
    const after = await grownTo(bench, url, client, few + 1, analyticsCompanies);
    bench.say(`\n${describe(before, after)}`);
    const ofViews = [...after.views.values()];
    return {
      slowestViewMs: Math.max(...ofViews),
      medianViewMs: median(ofViews),
      medianGrowth: median([...after.views].map(([view, ms]) => ms / (before.views.get(view) ?? ms))),
      monthlyUsageMs: after.everyone,
      monthlyUsageGrowth: after.everyone / before.everyone,
      monthlySumsMs: after.summedUp,
      dayOfAllMs: await msOfAnswer(client, dayOfReadings),
    };
  });
}

const dayOfReadings = `
  select count(*), sum(standard_usage)
  from analytics.interval_readings
  where start_at >= '2025-01-02 00:00Z' and start_at < '2025-01-03 00:00Z'`;

/** Milliseconds of each statement. */
interface Answers {
  readonly companies: number;
  /** Each view, for one company. */
  readonly views: ReadonlyMap<string, number>;
  /** Usage by month of all companies. */
  readonly everyone: number;
  /** Sums of months by site, of all companies. */
  readonly summedUp: number;
}

async function grownTo(
  { size, stack, say }: Bench,
  url: string,
  client: pg.Client,
  from: number,
  to: number,
): Promise<Answers> {
  const shape = {
    documents: size.analyticsDocuments,
    months: Math.min(36, size.analyticsDocuments),
    intervalMeters: size.analyticsMeters,
    readings: size.analyticsReadings,
  };
  await fillAnalytics(client, shape, { from, to });
  await keepMonths(client);
  await writeBack(stack.asSuperuser(url));
  say(`${to} companies: every view of company 1, and usage of all`);
  const views = new Map<string, number>();
  const id = await firstCompany(client);
  for (const view of await viewsOfCompanies(client))
    views.set(view, await msOfAnswer(client, `select * from analytics.${view} where company_id = '${id}'`));
  return { companies: to, views, ...(await monthsOfAll(client)) };
}

async function firstCompany(client: pg.Client): Promise<string> {
  const { rows } = await client.query(`select id from utility.companies where name = 'Company 1'`);
  return rows[0].id;
}

/** Lists the views of analytics that have a company in each row. */
async function viewsOfCompanies(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(`
    select quote_ident(c.relname) as name
    from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attname = 'company_id'
    where c.relkind = 'v' and c.relnamespace = 'analytics'::regnamespace
    order by 1`);
  if (rows.length === 0) throw new Error('there are no views');
  return rows.map(({ name }) => name);
}

async function monthsOfAll(client: pg.Client): Promise<Pick<Answers, 'everyone' | 'summedUp'>> {
  const everyone = await msOfAnswer(client, 'select * from analytics.monthly_usage');
  return { everyone, summedUp: await msOfAnswer(client, 'select * from analytics.monthly_by_site') };
}

/** Runs a statement as a caller does, discards its rows, and returns the median time of several runs. */
async function msOfAnswer(client: pg.Client, statement: string): Promise<number> {
  const run = () => finished(client.query(copyTo(`copy (${statement}) to stdout`)).resume());
  await run();
  const times: number[] = [];
  for (let time = 0; time < asked; time++) times.push(await msOf(run));
  return median(times);
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
    const id = await firstCompany(client);
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
    const kept = await msOfAnswer(client, 'select * from metersync.monthly_usage');
    const usage = await msOfAnswer(
      client,
      'select month, units, sum(usage) from analytics.monthly_usage group by month, units',
    );
    return {
      largeMonthlyUsageMs: everyone,
      largeKeptUsageMs: kept,
      largeUsageOfMonthsMs: usage,
      largeMonthlySumsMs: summedUp,
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

function describe(small: Answers, large: Answers): string {
  const row = (name: string, before: number | undefined, after: number) => [
    name,
    before === undefined ? '' : Math.round(before),
    Math.round(after),
    before === undefined ? '' : `× ${(after / before).toFixed(1)}`,
  ];
  return table(
    ['view', `ms with ${small.companies} companies`, `with ${large.companies}`, 'growth'],
    [
      ...[...large.views].map(([view, ms]) => row(view, small.views.get(view), ms)),
      row('monthly_usage of all', small.everyone, large.everyone),
      row('monthly_by_site of all', small.summedUp, large.summedUp),
    ],
  ).join('\n');
}
