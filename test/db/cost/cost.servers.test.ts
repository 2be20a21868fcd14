import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { taskQueues, workflowIds, workflowNames } from '../../../contract/names.ts';
import { connectWarehouse } from '../../../db/connection/connect.ts';
import { cases, long } from '../../support/cases.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { startPipeline } from '../../support/pipeline.ts';
import { connectExplained, type ExplainedWarehouse, type Ran } from '../../support/plans.ts';
import { statementsOf } from '../../support/statements-sent.ts';
import { exceptions, notMeasured } from './exceptions.ts';
import { type Complaint, complaintsAbout } from './judge.ts';
import {
  analyseAtRest,
  forgetStatistics,
  idOf,
  loadKept,
  loadPlots,
  loadReconciles,
  prepareTables,
} from './rows.ts';
import { everything } from './work/everything.ts';
import type { Work } from './work/work.ts';

/** Plots that work uses: for custom plans, for generic plans and for plans made in an empty warehouse. */
const plotsOfWork = 3 * everything.length + 10;
/** Further plots of a large warehouse, in which reading a whole table costs twice as much as in the small. */
const plotsBeside = cases(250, 1_000);
/** Plots of a small warehouse with records that somebody decided to keep, as statistics should know. */
const plotsOfKept = 5;
/** Number of reconciles of one day. A large warehouse has their rows for each company of the work. */
const reconciles = 24;
/** Tables whose first rows work reads. They get more plots, because Postgres rightly scans small ones. */
const readInPart = ['utility.companies'] as const;

type Which = 'small' | 'never analysed' | 'analysed at rest' | 'analysed';
/** Whether statements are planned for their parameters, or with the generic plan of a prepared statement. */
type Planned = 'for its parameters' | 'for any parameters';
const databases: Partial<Record<Which, TestDatabase>> = {};

async function change(
  url: string,
  work: (warehouse: ReturnType<typeof connectWarehouse>) => Promise<unknown>,
) {
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 1, onError: () => {} });
  await work(warehouse);
  await warehouse.close();
}
const nameOf = (database: TestDatabase): string => new URL(database.url).pathname.slice(1);

beforeAll(async () => {
  const small = await createDatabase('cost_small', inject('warehouseTemplate'));
  await change(small.url, async ({ db }) => {
    await prepareTables(db);
    await loadPlots(db, 1, plotsOfWork + plotsOfKept);
    await loadKept(db, plotsOfWork + 1, plotsOfKept);
  });
  const atRest = await createDatabase('cost_at_rest', nameOf(small));
  await change(atRest.url, async ({ db }) => {
    await analyseAtRest(db, 1, plotsOfWork);
    await loadPlots(db, 10_001, plotsBeside);
    await loadKept(db, 10_001, plotsBeside);
    await loadReconciles(db, 1, plotsOfWork, reconciles);
    await loadPlots(db, 10_001 + plotsBeside, 750, readInPart);
  });
  const never = await createDatabase('cost_never', nameOf(atRest));
  await change(never.url, ({ db }) => forgetStatistics(db));
  Object.assign(databases, { small, 'analysed at rest': atRest, 'never analysed': never });
  if (long) {
    const analysed = await createDatabase('cost_analysed', nameOf(atRest));
    await change(analysed.url, ({ db }) => db.execute(sql`analyze`));
    databases.analysed = analysed;
  }
  for (const { url } of Object.values(databases)) await keepVersions(url);
}, 300_000);
afterAll(async () => {
  for (const session of sessions.values()) await session.close();
  for (const client of snapshots) await client.end();
  for (const database of Object.values(databases)) await database.drop();
});

const snapshots: pg.Client[] = [];

/**
 * Keeps a snapshot of a database open. Otherwise Postgres may remove old versions of rows from a page while
 * it reads the page, which makes the next update of the page cheaper. It does so only if no other session
 * has an older snapshot, and analyses that Postgres starts in the background do have one at times.
 */
async function keepVersions(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('begin isolation level repeatable read; select');
  snapshots.push(client);
}

/** Sessions by database and settings. A new session for each piece of work would read the catalogue again. */
const sessions = new Map<string, ExplainedWarehouse>();

function sessionOf(which: Which, settings: Readonly<Record<string, string>>): ExplainedWarehouse {
  const key = JSON.stringify([which, settings]);
  const session = sessions.get(key) ?? connectExplained(databases[which]?.url ?? '', settings);
  sessions.set(key, session);
  return session;
}

/** Does work on its plot, and returns the statements that Postgres ran. */
async function does(work: Work, plot: number, which: Which, planned: Planned): Promise<Ran[]> {
  const settings = {
    plan_cache_mode: planned === 'for any parameters' ? 'force_generic_plan' : 'force_custom_plan',
    // In a small warehouse the planner rightly scans, so scans are turned off to get the plans for more data.
    // In a large warehouse a random read costs what Postgres assumes by default: four times as much as a
    // sequential read.
    ...(which === 'small' ? { enable_seqscan: 'off' } : { random_page_cost: '4' }),
    // Otherwise each call of a function that is called for every row would be logged.
    ...(work.asksForAll === undefined ? {} : { 'auto_explain.log_nested_statements': 'off' }),
  };
  const warehouse = sessionOf(which, settings);
  await work.prepare?.(warehouse, plot);
  return await warehouse.plansOf(() => work.run(warehouse, plot));
}

/**
 * The states of the large warehouse in which work is measured. Old or missing statistics can mislead the
 * planner. Only `npm run test:long` also measures with fresh statistics.
 */
const states: readonly Which[] = [
  'never analysed',
  'analysed at rest',
  ...(long ? ['analysed' as const] : []),
];
const statesOf = ({ asksForAll }: Work): readonly Which[] =>
  asksForAll === undefined ? states : ['never analysed'];

/** Returns the complaints about work in a large warehouse, in each state of the statistics. */
async function complaintsOf(
  work: Work,
  plot: number,
  planned: Planned = 'for its parameters',
): Promise<Complaint[]> {
  const small = await does(work, plot, 'small', planned);
  const complaints: Complaint[] = [];
  for (const which of statesOf(work)) {
    const large = complaintsAbout(small, await does(work, plot, which, planned), work.rows);
    complaints.push(...large.map(({ said, text }) => ({ said: `${which}: ${said}`, text })));
  }
  return complaints;
}

const excused = new Set<string>();

/** Describes the complaints that no exception excuses. */
function inexcusable(complaints: readonly Complaint[]): string {
  const left = complaints.filter(({ text }) => {
    const excuses = exceptions.filter(({ statement }) => text.includes(statement));
    for (const { statement } of excuses) excused.add(statement);
    return excuses.length === 0;
  });
  return left.map(({ said, text }) => `${said}: ${text}`).join('\n\n');
}

// Work that has to ask for everything is measured with one kind of plan, which is enough to show it.
const everyWay = everything.flatMap((work, at) => {
  const forParameters = [work.name, 'for its parameters', work, at + 1] as const;
  if (work.asksForAll !== undefined) return [forParameters];
  return [forParameters, [work.name, 'for any parameters', work, everything.length + at + 1] as const];
});

test.each(everyWay)(
  '%s, with plans %s, costs as little in a large warehouse as in a small one',
  async (_, planned, work, plot) => {
    const complaints = await complaintsOf(work, plot, planned);
    if (work.asksForAll !== undefined) expect(complaints, 'it does not have to ask for all').not.toEqual([]);
    else expect(inexcusable(complaints)).toBe('');
  },
);

test('checks cost as little with plans that a session made before any issue was open', async () => {
  const checks = everything.find(({ name }) => name === 'the data of a company is checked') as Work;
  const plot = 2 * everything.length + 2;
  const { url = '' } = databases['never analysed'] ?? {};
  const session = connectExplained(url);
  await change(url, async ({ db }) => {
    const columns = sql`id, check_name, severity, company_id, entity_type, entity_id, subject, evidence`;
    await db.execute(sql`create table public.issues as select ${columns} from ops.data_issues`);
    await db.execute(sql`truncate ops.data_issues`);
    await checks.run(session, plot);
    await db.execute(
      sql`insert into ops.data_issues (${columns}) overriding system value table public.issues`,
    );
  });
  const small = await does(checks, plot + 1, 'small', 'for any parameters');
  const ran = await session.plansOf(() => checks.run(session, plot + 1));
  await session.close();
  expect(complaintsAbout(small, ran, checks.rows)).toEqual([]);
});

test('all work costs as little with plans that a session made while the warehouse was empty', async () => {
  const works = everything.filter(({ asksForAll }) => asksForAll === undefined);
  const judged = 2 * everything.length + 5;
  const planned = 20_001;
  const empty = await createDatabase('cost_empty', inject('warehouseTemplate'));
  onTestFinished(() => empty.drop());
  const session = connectExplained(empty.url, {
    plan_cache_mode: 'force_generic_plan',
    random_page_cost: '4',
  });
  onTestFinished(() => session.close());
  const run = async (work: Work, plot: number): Promise<Ran[]> => {
    await work.prepare?.(session, plot);
    return await session.plansOf(() => work.run(session, plot));
  };
  await change(empty.url, async ({ db }) => {
    await prepareTables(db);
    await db.execute(sql`vacuum`);
    await loadPlots(db, planned, works.length);
  });
  for (const [at, work] of works.entries()) await run(work, planned + at);
  await change(empty.url, async ({ db }) => {
    await loadPlots(db, judged, plotsBeside);
    await loadKept(db, judged + works.length, plotsBeside - works.length);
  });
  const complaints: Complaint[] = [];
  for (const [at, work] of works.entries()) {
    const small = await does(work, judged + at, 'small', 'for any parameters');
    complaints.push(...complaintsAbout(small, await run(work, judged + at), work.rows));
  }
  expect(inexcusable(complaints)).toBe('');
});

test('every exception is needed', () => {
  const needed = exceptions.filter(({ onlyOldPostgres }) => onlyOldPostgres === undefined);
  expect(needed.flatMap(({ statement }) => (excused.has(statement) ? [] : [statement]))).toEqual([]);
});

test('every statement that a whole run sends has a cost case', {
  timeout: 240_000,
}, async () => {
  // The tests above ran all work in this database.
  const measured = await statementsOf(databases.small?.url ?? '');
  const pipeline = await startPipeline({ size: { companies: 2, documents: 30, intervalDays: 1 } });
  onTestFinished(() => pipeline.stop());
  const { service, client } = pipeline;
  expect(await pipeline.backfill()).toBe('complete');
  await service.disturb({ duplicate: 0.1, shuffle: true, delayMs: [0, 400] });
  await service.random(150, 1);
  await pipeline.settled();
  const runId = randomUUID();
  const options = {
    workflowId: workflowIds.reconcile(runId),
    taskQueue: taskQueues.backfill,
    args: [{ runId }],
  };
  expect(await client.workflow.execute(workflowNames.backfillUpdates, options)).toBe('complete');
  await client.workflow.getHandle(workflowIds.checkData(runId)).result();
  const sent = await statementsOf(pipeline.warehouse.url);

  expect(sent.size).toBeGreaterThan(60);
  expect(leftOut(sent, measured).join('\n\n')).toBe('');
  const needless = notMeasured.filter((one) => ![...sent].some((query) => isPart(one, query)));
  expect(needless, 'these exemptions were not needed').toEqual([]);

  // Proves that this test can fail.
  await pipeline.warehouse.db.execute(sql`select account_id from utility.meters where id = 'no meter'`);
  const more = await statementsOf(pipeline.warehouse.url);
  expect(leftOut(more, measured)).toEqual(['select account_id from utility.meters where id = $1']);
});

const isPart = ({ statement }: { readonly statement: string }, query: string): boolean =>
  `;${query};`.includes(statement);

/** The text of a statement without the numbers of its parameters, in which constants are counted, too. */
const shapeOf = (query: string): string => query.replaceAll(/\$\d+/g, '$');

/** Statements that are neither measured nor exempt. Postgres may give two ids to statements of one text. */
function leftOut(sent: ReadonlySet<string>, measured: ReadonlySet<string>): string[] {
  const shapes = new Set([...measured].map(shapeOf));
  const left = [...sent].filter((query) => !shapes.has(shapeOf(query)));
  return left.filter((query) => !notMeasured.some((one) => isPart(one, query)));
}

describe('this test', () => {
  const plot = 2 * everything.length + 1;
  const said = async (work: Work): Promise<string[]> =>
    (await complaintsOf(work, plot)).map((complaint) => complaint.said.replaceAll(/\d+/g, 'n'));

  test('finds a statement without an index, with any statistics', async () => {
    const run: Work['run'] = ({ db }) =>
      db.execute(sql`select from utility.documents where id::text = ${idOf('document', plot)}`);
    const found = await said({ name: 'a look-up by a text', rows: 1, run });
    for (const which of states) expect(found).toContain(`${which}: reads all of utility.documents`);
  });

  test('finds a statement for which the planner reads an index of all pending events', async () => {
    const run: Work['run'] = ({ db }) =>
      db.execute(sql`select id from metersync.journal
        where outcome = 'pending' and queue || '' = ${`document/${idOf('company', plot)}`}`);
    expect(await said({ name: 'the pending events of an owner, by an expression', rows: 60, run })).toEqual([
      'never analysed: touches n blocks, and n in a small warehouse',
      'analysed at rest: touches n blocks, and n in a small warehouse',
    ]);
  });

  test('counts the blocks of a step that no other step of its statement reads', async () => {
    const run: Work['run'] = ({ db }) =>
      db.execute(sql`with gone as (
        delete from metersync.journal where outcome = 'pending' and queue || '' = 'none'
      ) select`);
    const found = await said({ name: 'a deletion by an expression', rows: 1, run });
    expect(found).toContain('analysed at rest: touches n blocks, and n in a small warehouse');
  });

  test('finds a trigger that scans a table', async () => {
    const prepare: Work['prepare'] = async ({ db }) => {
      await db.execute(sql`create function metersync.look() returns trigger language plpgsql as $$
        begin perform count(*) from utility.usage_data; return null; end $$`);
      await db.execute(sql`create trigger look after update on utility.sites
        for each statement execute function metersync.look()`);
    };
    const run: Work['run'] = async ({ db }) => {
      await db.execute(sql`update utility.sites set name = 'x' where id = ${idOf('site', plot)}::uuid`);
      await db.execute(sql`drop function metersync.look cascade`);
    };
    const found = await said({ name: 'a trigger', rows: 1, prepare, run });
    expect(found).toContain('analysed at rest: reads all of utility.usage_data');
  });
});
