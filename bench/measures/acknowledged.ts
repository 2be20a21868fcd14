import { untilJournaled } from '../load/journal.ts';
import type { LoadReport } from '../load/run.ts';
import { type Generator, latenciesOf, perSecond, startGenerator } from '../load/send.ts';
import { type Bench, type Figures, type Measure, median } from '../measure.ts';
import { startBare, startPipeline, type Target } from '../pipeline/start.ts';
import { withClient } from '../stack.ts';

/** Numbers of requests in flight at which a rate is measured. */
const levels = [512, 64] as const;

export const acknowledged: Measure = {
  name: 'acknowledged',
  about:
    'events acknowledged durably per second, the worker applying meanwhile, against bare Fastify and groups of one',
  run: measureAcknowledged,
};

async function measureAcknowledged(bench: Bench): Promise<Figures> {
  const { size } = bench;
  const generator = startGenerator(bench);
  const bare = await startBare(bench);
  const { durable, reference } = await measureInTurn(bench, generator, bare);
  await bare.process.stop();
  const alone = await measureReceiverAlone(bench, generator);
  const ungrouped = await measureUngrouped(bench, generator);
  const rate512 = rateOf(durable[512]);
  bench.say(
    `${size.rounds} rounds, in turn with bare Fastify that verifies and answers; the worker applies meanwhile`,
  );
  return {
    ofBare512: ratioOf(durable[512], reference[512]),
    ofBare64: ratioOf(durable[64], reference[64]),
    timesUngrouped: rate512 / ungrouped,
    p50Ms512: latenciesOf(durable[512]).percentile(50),
    p99Ms512: latenciesOf(durable[512]).percentile(99),
    p50Ms64: latenciesOf(durable[64]).percentile(50),
    p99Ms64: latenciesOf(durable[64]).percentile(99),
    perSecond512: rate512,
    perSecond64: rateOf(durable[64]),
    receiverAlonePerSecond512: alone,
    ungroupedPerSecond: ungrouped,
    barePerSecond512: rateOf(reference[512]),
    barePerSecond64: rateOf(reference[64]),
  };
}

/** Compares adjacent rounds, because what disturbed one of them mostly disturbed the other, too. */
function ratioOf(durable: readonly LoadReport[], reference: readonly LoadReport[]): number {
  return median(
    durable.map((report, round) => perSecond([report]) / perSecond([reference[round] as LoadReport])),
  );
}

const rateOf = (reports: readonly LoadReport[]): number =>
  median(reports.map((report) => perSecond([report])));

type Rounds = Record<(typeof levels)[number], LoadReport[]>;

/** Measures both in turn, so that other load affects both. Each round begins with nothing to apply. */
async function measureInTurn(
  bench: Bench,
  generator: Generator,
  bare: Target,
): Promise<{ durable: Rounds; reference: Rounds }> {
  const { size } = bench;
  const pipeline = await startPipeline(bench);
  const durable: Rounds = { 512: [], 64: [] };
  const reference: Rounds = { 512: [], 64: [] };
  let sent = 0;
  await withClient(pipeline.databaseUrl, async (client) => {
    const load = async (events: number, inFlight: number): Promise<LoadReport> => {
      const report = await generator.send(pipeline, events, inFlight);
      sent += events;
      await untilJournaled(client, sent);
      return report;
    };
    for (const inFlight of levels) {
      await load(size.warmUpEvents, inFlight);
      await generator.send(bare, size.warmUpEvents, inFlight);
    }
    for (let round = 1; round <= size.rounds; round++) {
      for (const inFlight of levels) {
        bench.say(`round ${round} of ${size.rounds}, ${inFlight} in flight`);
        const events = inFlight === 512 ? size.events512 : size.events64;
        reference[inFlight].push(await generator.send(bare, events, inFlight));
        durable[inFlight].push(await load(events, inFlight));
      }
    }
  });
  await pipeline.process.stop();
  return { durable, reference };
}

/** Measures the receiver without a worker, as if another machine applied the events. */
async function measureReceiverAlone(bench: Bench, generator: Generator): Promise<number> {
  bench.say('the receiver without a worker, 512 in flight');
  const pipeline = await startPipeline(bench, { worker: false, filled: false });
  await generator.send(pipeline, bench.size.warmUpEvents, 512);
  const report = await generator.send(pipeline, bench.size.events512, 512);
  await pipeline.process.stop();
  return perSecond([report]);
}

async function measureUngrouped(bench: Bench, generator: Generator): Promise<number> {
  bench.say('one workflow for each event, 512 in flight');
  const pipeline = await startPipeline(bench, { grouping: 'one-per-event' });
  await generator.send(pipeline, Math.ceil(bench.size.eventsUngrouped / 10), 64);
  const report = await generator.send(pipeline, bench.size.eventsUngrouped, 512);
  await pipeline.process.stop();
  return perSecond([report]);
}
