import { setTimeout as delay } from 'node:timers/promises';
import type { Outgoing } from '../load.ts';
import { type Bench, type Figures, type Measure, median } from '../measure.ts';
import { type Pipeline, runBackfill, startPipeline } from '../pipeline.ts';
import { type BenchSandbox, startSandbox } from '../sandbox.ts';
import { withClient } from '../stack.ts';
import { countRecordsRead, untilSettled } from '../warehouse.ts';

/** Data of each company before any change. It is enough to have records of every kind that can change. */
const documents = 60;
const intervalDays = 2;
/** Average number of events of a change, because some changes make two. */
const eventsOfChange = 1.05;
/** Service time for which events are held back, so that a backlog exists before anything is timed. */
const heldSeconds = 3_600;
/** How often the memory of the deployment is read. */
const memoryEveryMs = 250;

export const live: Measure = {
  name: 'live',
  about:
    'everything on: the sandbox delivers with 16 in flight, events become rows, and records are read again',
  run: measureLive,
};

async function measureLive(bench: Bench): Promise<Figures> {
  const { liveCompanies: companies, liveEvents } = bench.size;
  bench.say(`the sandbox makes ${companies} companies of ${documents} documents; a backfill reads them`);
  const sandbox = await startSandbox(bench, { companies, documents, intervalDays });
  const service = { url: sandbox.apiUrl, apiKey: sandbox.apiKey };
  const pipeline = await startPipeline(bench, { service, filled: false });
  await runBackfill(pipeline);
  await sandbox.ask('POST', '/sandbox/endpoints', {
    url: `http://127.0.0.1:${pipeline.port}/webhooks`,
    secret: pipeline.secret,
  });
  const { length: events } = await holdChanges(sandbox, Math.ceil(liveEvents / eventsOfChange));
  bench.say(`${events.toLocaleString('en')} events fall due at one moment, until nothing is pending`);
  const since = new Date().toISOString();
  const memory = watchMemory(pipeline);
  const beganAt = Date.now();
  await releaseHeld(sandbox);
  return await withClient(pipeline.databaseUrl, async (db) => {
    const settledAt = await untilSettled(db, events);
    const used = await memory.stop();
    const records = await countRecordsRead(db, since);
    bench.say(`${records.toLocaleString('en')} records read again in ${settledAt - beganAt} ms`);
    return {
      ...(await answersOf(sandbox, events)),
      ...(await latenciesOf(pipeline, since, events)),
      recordsPerSecond: (records * 1000) / (settledAt - beganAt),
      settledPerSecond: (events * 1000) / (settledAt - beganAt),
      ...used,
    };
  });
}

/** Makes random changes whose events are held back. Returns the events. */
async function holdChanges(service: BenchSandbox, changes: number): Promise<Outgoing[]> {
  const delayMs = [heldSeconds * 1_000, heldSeconds * 1_000];
  await service.ask('POST', '/sandbox/disturb', { delayMs });
  const events = await service.change(changes);
  await service.ask('POST', '/sandbox/disturb', {});
  return events;
}

/** Releases all held events. */
async function releaseHeld(service: BenchSandbox): Promise<void> {
  await service.ask('POST', '/sandbox/clock', { advanceSeconds: heldSeconds + 60 });
}

/**
 * Samples the resident memory of receiver and worker, in megabytes at the start, the middle and the end.
 * `rssGrowthMb` is the growth during the second half.
 */
function watchMemory({ process }: Pipeline): { stop(): Promise<Figures> } {
  const bytes: number[] = [];
  let over = false;
  const watching = (async () => {
    while (!over) {
      bytes.push(await process.call('memory', undefined));
      await delay(memoryEveryMs);
    }
  })();
  const megabytes = (from: number, to: number) => {
    const first = Math.floor(bytes.length * from);
    return median(bytes.slice(first, Math.max(first + 1, Math.ceil(bytes.length * to)))) / 1e6;
  };
  return {
    stop: async () => {
      over = true;
      await watching;
      const [start, middle, end] = [megabytes(0, 0.1), megabytes(0.45, 0.55), megabytes(0.9, 1)];
      return { rssStartMb: start, rssMiddleMb: middle, rssEndMb: end, rssGrowthMb: end - middle };
    },
  };
}

/**
 * Reads how fast deliveries were acknowledged and how long an answer took, as the sandbox recorded it.
 * @throws Error if a delivery was refused or is missing, because a rate of refusals is not a result
 */
async function answersOf(sandbox: BenchSandbox, events: number): Promise<Figures> {
  const { rows } = await withClient(sandbox.databaseUrl, (db) =>
    db.query(`
      select
        count(*) filter (where status between 200 and 299)::int as acknowledged,
        count(*)::int as attempts,
        extract(epoch from max(at) - min(at - duration_ms * interval '1 millisecond'))::float8 as seconds,
        percentile_cont(0.5) within group (order by duration_ms) as p50,
        percentile_cont(0.99) within group (order by duration_ms) as p99
      from sandbox.attempts`),
  );
  const { acknowledged, attempts, seconds, p50, p99 } = rows[0];
  if (acknowledged !== events || attempts !== events) {
    throw new Error(`of ${events} events ${acknowledged} were acknowledged, in ${attempts} attempts`);
  }
  return { acknowledgedPerSecond: events / seconds, answerP50Ms: p50, answerP99Ms: p99 };
}

/** Returns the times from an event's arrival until its row is written, and until its record is read. */
async function latenciesOf(pipeline: Pipeline, since: string, events: number): Promise<Figures> {
  const { rows } = await withClient(pipeline.databaseUrl, (db) =>
    db.query(
      `select
        step,
        count(*)::int as events,
        percentile_cont(0.5) within group (order by took) * 1000 as p50,
        percentile_cont(0.99) within group (order by took) * 1000 as p99
      from (
        select step, extract(epoch from at - received_at)::float8 as took
        from metersync.journal
          cross join lateral (
            values
              ('row', recorded_at),
              ('record', case when outcome = 'applied' then coalesce(settled_at, recorded_at) end)
          ) as t (step, at)
        where received_at >= $1 and at is not null
      ) steps
      group by step`,
      [since],
    ),
  );
  const of = (step: string) => rows.find((row) => row.step === step);
  if (of('row')?.events !== events)
    throw new Error(`${of('row')?.events} of ${events} events have the time of their row`);
  // A missing figure becomes NaN, which fails the measure.
  const percentiles = (step: string): Figures => ({
    [`${step}P50Ms`]: of(step)?.p50 ?? Number.NaN,
    [`${step}P99Ms`]: of(step)?.p99 ?? Number.NaN,
  });
  return { ...percentiles('row'), ...percentiles('record') };
}
