import { connectWarehouse } from '../../db/connection/connect.ts';
import { keepMonths } from '../../db/watch/months.ts';
import { checkAll } from '../load/check-all.ts';
import { bytesOnDisk } from '../load/disk.ts';
import { countRecordsRead, untilSettled } from '../load/journal.ts';
import { startGenerator } from '../load/send.ts';
import { answersOf } from '../load/views.ts';
import { type Bench, type Figures, type Measure, secondsOf } from '../measure.ts';
import { type Pipeline, startPipeline } from '../pipeline/start.ts';
import { runBackfill } from '../service/backfill.ts';
import { type BenchSandbox, startSandbox } from '../service/sandbox.ts';
import { withClient } from '../stack.ts';

export const customer: Measure = {
  name: 'customer',
  about: 'a large customer through the real workflows: load, catch-up, checks, views, disk',
  onlyByName: true,
  run: measureCustomer,
};

const inFlight = 512;

async function measureCustomer(bench: Bench): Promise<Figures> {
  const { customerCompanies: companies, customerBills, customerDays, customerChanges } = bench.size;
  bench.say(
    `the sandbox makes ${companies} companies of ${customerBills} bills, readings of ${customerDays} days`,
  );
  const size = { companies, documents: customerBills, intervalDays: customerDays };
  const sandbox = await startSandbox(bench, size);
  const service = { url: sandbox.apiUrl, apiKey: sandbox.apiKey };
  const pipeline = await startPipeline(bench, { service, filled: false });
  return {
    ...(await load(bench, pipeline)),
    ...(await catchUp(bench, sandbox, pipeline, customerChanges)),
    ...(await ask(bench, pipeline)),
  };
}

/** Loads everything, and then again without changes, as happens each night. */
async function load(bench: Bench, pipeline: Pipeline): Promise<Figures> {
  const loadSeconds = await runBackfill(pipeline);
  const { bills, readings, bytes } = await withClient(pipeline.databaseUrl, async (client) => {
    const { rows } = await client.query(`
      select
        (select count(*) from utility.documents where raw is not null)::float8 as bills,
        (select count(*) from utility.intervals)::float8 as readings`);
    return { ...rows[0], bytes: await bytesOnDisk(client, '') };
  });
  bench.say(
    `${bills.toLocaleString('en')} bills and ${readings.toLocaleString('en')} readings in ${Math.round(loadSeconds)} s; the same again, nothing changed`,
  );
  const unchangedSeconds = await runBackfill(pipeline);
  return { bills, readings, loadSeconds, unchangedSeconds, diskMegabytes: bytes / 1e6 };
}

/** Changes records and sends their events, until all records are read again. */
async function catchUp(
  bench: Bench,
  sandbox: BenchSandbox,
  pipeline: Pipeline,
  changes: number,
): Promise<Figures> {
  const events = await sandbox.change(changes);
  bench.say(`${events.length.toLocaleString('en')} events, until nothing is pending`);
  const generator = startGenerator(bench);
  const since = new Date().toISOString();
  const { beganAt } = await generator.send(pipeline, events, inFlight);
  return await withClient(pipeline.databaseUrl, async (client) => {
    const seconds = ((await untilSettled(client, events.length)) - beganAt) / 1000;
    const records = await countRecordsRead(client, since);
    return { eventsSettledPerSecond: events.length / seconds, recordsReadPerSecond: records / seconds };
  });
}

/** Measures checks and months of all companies, and each view for one company. */
async function ask(bench: Bench, { databaseUrl: url }: Pipeline): Promise<Figures> {
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 4, onError: () => {} });
  bench.atEnd(() => warehouse.close());
  bench.say('months and checks of all companies, views of one');
  const monthsSeconds = await secondsOf(() => keepMonths(warehouse.db, { budgetSeconds: 3_600 }));
  const checksSeconds = await secondsOf(() => checkAll(warehouse.db));
  const slowest = await withClient(url, async (client) => {
    await client.query('vacuum analyze');
    const { rows } = await client.query('select id from utility.companies order by id limit 1');
    const answers = await answersOf(client, rows[0].id);
    return Math.max(...[...answers.values()].map(({ ms }) => ms));
  });
  return { monthsSeconds, checksSeconds, slowestViewMs: slowest };
}
