import { sql } from 'drizzle-orm';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';
import { fillAnalytics } from '../load/analytics-world.ts';
import { allCompanies, checkAll } from '../load/check-all.ts';
import { cpuMsOf } from '../load/plans.ts';
import { type Bench, type Figures, type Measure, median, msOf } from '../measure.ts';
import { withClient } from '../stack.ts';

export const checks: Measure = {
  name: 'checks',
  about: 'checks of the data: of all companies, and of one; nothing was analysed',
  onlyByName: true,
  run: measureChecks,
};

/** How many companies are checked one by one. The median counts. */
const asked = 40;

async function measureChecks(bench: Bench): Promise<Figures> {
  const url = await bench.stack.warehouse();
  const { checksCompanies: companies, checksBills: documents, checksReadings: readings } = bench.size;
  const months = Math.min(36, documents);
  await withClient(url, async (client) => {
    const shape = { documents, months, intervalMeters: 0, readings: 0, analysed: false };
    await fillAnalytics(client, shape, { from: 1, to: companies });
  });
  bench.say(
    `${companies} companies, ${(companies * documents).toLocaleString('en')} bills: first all, then some`,
  );
  const [all, one] = [connect(bench, url, 4), connect(bench, url, 1)];
  const allMs = await msOf(() => checkAll(all.db));
  const againMs = await msOf(() => checkAll(all.db));
  const ids = await allCompanies(one.db);
  const alone = await each(one, ids.slice(0, asked));

  await withClient(url, async (client) => {
    const shape = { documents, months, intervalMeters: 1, readings, analysed: false };
    await fillAnalytics(client, shape, { from: companies + 1, to: companies + 1 });
  });
  const [read = ''] = (await allCompanies(one.db)).filter((id) => !ids.includes(id));
  const [firstOfConnectionMs = 0] = (await each(connect(bench, url, 1), [read])).ms;
  const withReadings = await each(one, [read, read, read, read, read]);
  return {
    allMs,
    againMs,
    companyMs: median(alone.ms),
    companyWithReadingsMs: median(withReadings.ms),
    firstOfConnectionMs,
    // Processor time, in addition to the figures with goals. At tiny sizes it is too short to be measured.
    ...(alone.cpuMs ? { companyCpuMs: alone.cpuMs } : {}),
  };
}

/** Opens connections on which no statement was planned yet. */
function connect(bench: Bench, url: string, max: number): Warehouse {
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max, onError: () => {} });
  bench.atEnd(() => warehouse.close());
  return warehouse;
}

/** Returns the elapsed time for each company, and the average processor time of the connection. */
async function each({ db }: Warehouse, ids: readonly string[]): Promise<{ ms: number[]; cpuMs: number }> {
  const { rows } = await db.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`);
  const pid = rows[0]?.pid ?? null;
  const before = cpuMsOf(pid) ?? 0;
  const ms: number[] = [];
  for (const id of ids) ms.push(await msOf(() => refreshDataIssues(db, [id])));
  return { ms, cpuMs: ((cpuMsOf(pid) ?? 0) - before) / ids.length };
}
