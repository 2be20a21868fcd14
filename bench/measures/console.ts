import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { readSettings } from '../../app/settings/settings.ts';
import { openForPages } from '../../app/warehouse.ts';
import { startConsole } from '../../cli/commands/console.ts';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';
import { readHealth } from '../../db/read/health.ts';
import { eventOf, idOf, loadPlots, meterOf, perPlot, prepareTables } from '../../test/db/cost/rows.ts';
import { type Bench, type Figures, type Measure, median, msOf } from '../measure.ts';
import { withClient } from '../stack.ts';
import { loadWithoutIndexes } from '../warehouse.ts';

export const consolePages: Measure = {
  name: 'console',
  about:
    'ms for health and for each page of the console, in a warehouse of 1 M events, readings and 100,000 parts of runs, and in one ten times as large',
  onlyByName: true,
  run: measureConsole,
};

/** How many companies ("plots") one statement inserts. */
const plotsTogether = 500;
/** How many companies keep their trouble: some hundred events that wait, and some dead and missing events. */
const plotsInTrouble = 3;
const rounds = 3;

async function measureConsole(bench: Bench): Promise<Figures> {
  const plots = bench.size.consolePlots;
  const small = await measureWarehouse(bench, plots);
  const large = await measureWarehouse(bench, plots * 10);
  return {
    healthMs: small.calm.healthMs,
    slowestPageMs: small.calm.slowestPageMs,
    troubledHealthMs: small.troubled.healthMs,
    troubledSlowestPageMs: small.troubled.slowestPageMs,
    largeHealthMs: large.calm.healthMs,
    largeSlowestPageMs: large.calm.slowestPageMs,
    largeTroubledHealthMs: large.troubled.healthMs,
    largeTroubledSlowestPageMs: large.troubled.slowestPageMs,
  };
}

interface Times {
  readonly healthMs: number;
  readonly slowestPageMs: number;
}

/** Measures a new warehouse of so many companies, first in trouble and then calm. */
async function measureWarehouse(
  bench: Bench,
  plots: number,
): Promise<Readonly<Record<'troubled' | 'calm', Times>>> {
  const url = await bench.stack.warehouse();
  const warehouse = connectWarehouse({
    url: bench.stack.asSuperuser(url),
    timeZone: 'UTC',
    max: 2,
    onError: () => {},
  });
  bench.atEnd(() => warehouse.close());
  await loadWithoutIndexes(bench.stack.asSuperuser(url), () => fill(bench, warehouse, plots));
  await vacuum(bench, url);
  const troubled = await time(bench, url, 'a quarter of the events waits');
  await settle(warehouse);
  await vacuum(bench, url);
  const calm = await time(bench, url, 'few events wait');
  return { troubled, calm };
}

async function fill(bench: Bench, { db }: Warehouse, plots: number): Promise<void> {
  await prepareTables(db);
  for (let from = 1; from <= plots; from += plotsTogether) {
    const count = Math.min(plotsTogether, plots - from + 1);
    await loadPlots(db, from, count);
    bench.say(`${((from + count - 1) * perPlot.events).toLocaleString('en')} events`);
  }
}

const vacuum = (bench: Bench, url: string): Promise<unknown> =>
  withClient(bench.stack.asSuperuser(url), (client) => client.query('vacuum analyze'));

/** Removes the trouble of all companies except a few. */
async function settle({ db }: Warehouse): Promise<void> {
  const inTrouble = Array.from({ length: plotsInTrouble }, (_, at) => at + 1);
  const companies = inTrouble.map((plot) => `'${idOf('company', plot)}'`).join();
  for (const statement of [
    `delete from metersync.rejected_records where company_id not in (${companies})`,
    `update metersync.journal set outcome = 'applied', queue = null, due_at = null, error = null, error_code = null
      where split_part(id, ' ', 2)::int > ${plotsInTrouble}`,
  ])
    await db.execute(sql.raw(statement));
}

/** Every page of the console, with addresses that show rows. */
const pages: readonly string[] = [
  '/',
  '/events',
  '/events?outcome=dead',
  '/events?outcome=missing',
  '/events?outcome=pending',
  '/events?outcome=pending&code=SERVICE_ACCESS_DENIED',
  '/events?code=RECORD_NOT_SHOWN',
  '/events?type=document.updated.v2',
  '/events?type=document.created.v2',
  `/events?company=${idOf('company', 2)}`,
  `/events/${encodeURIComponent(eventOf(2, 1))}`,
  '/companies',
  `/companies/${idOf('company', 2)}`,
  '/runs',
  '/deletes',
  '/issues',
  '/issues?known=yes&after=100',
  '/issues/1',
  '/system',
  '/log',
  '/act/replay?outcome=missing&back=/',
  '/trace',
  `/trace?q=${idOf('document', 2)}`,
  `/trace?kind=meter&id=${encodeURIComponent(meterOf(2, 1))}`,
];

/** Measures health and each page: the median of several requests, after a request that is not counted. */
async function time(bench: Bench, url: string, state: string): Promise<Times> {
  const settings = readSettings({ DATABASE_URL: url, METERSYNC_ACTOR: 'bench' });
  const log = pino({ level: 'silent' });
  const reader = openForPages(settings, url, log);
  const healthMs = await medianMs(() => readHealth(reader.db, { silenceHours: settings.silenceHours }));
  await reader.close();
  bench.say(`${state}: health ${healthMs.toFixed(0)} ms`);
  const served = await startConsole(
    {
      settings,
      log,
      stack: {
        databaseUrl: url,
        temporal: await bench.stack.namespace(),
        hasTemporal: true,
        temporalUi: undefined,
        standIns: [],
        finished: new Promise<void>(() => {}),
        databaseFor: async () => url,
        stop: async () => {},
      },
    },
    { host: '127.0.0.1', port: 0 },
  );
  const taken: number[] = [];
  try {
    const [cookie = ''] = (await fetch(served.link ?? '')).headers.getSetCookie();
    for (const page of pages) {
      let failed = false;
      const ms = await medianMs(async () => {
        const answer = await fetch(served.url + page, { headers: { cookie } });
        await answer.text();
        failed ||= !answer.ok;
      });
      taken.push(ms);
      if (failed) bench.say(`${state}: ${page} was not shown`);
      bench.say(`${state}: ${page.padEnd(40)} ${ms.toFixed(0)} ms`);
    }
  } finally {
    await served.stop();
  }
  return { healthMs, slowestPageMs: Math.max(...taken) };
}

async function medianMs(work: () => Promise<unknown>): Promise<number> {
  await work();
  const taken: number[] = [];
  for (let round = 0; round < rounds; round++) taken.push(await msOf(work));
  return median(taken);
}
