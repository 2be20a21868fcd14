import { untilJournaled } from '../load/journal.ts';
import { type Generator, perSecond, startGenerator } from '../load/send.ts';
import { type Bench, type Figures, type Measure, median } from '../measure.ts';
import { type Pipeline, startPipeline } from '../pipeline/start.ts';
import { withClient } from '../stack.ts';

const inFlight = 512;
/** A monitor asks every 15 s; here more often, as rounds are short. */
const scrapeEveryMs = 5_000;

export const metrics: Measure = {
  name: 'metrics',
  about: 'events acknowledged per second with metrics on, scraped every 5 s, against off',
  onlyByName: true,
  run: measureMetrics,
};

async function measureMetrics(bench: Bench): Promise<Figures> {
  const generator = startGenerator(bench);
  const without = await startPipeline(bench);
  const having = await startPipeline(bench, { metrics: true });
  const rates: { with: number; without: number }[] = [];
  const processor = { with: 0, without: 0 };
  const send = senderTo(generator);
  for (const pipeline of [without, having]) await send(pipeline, bench.size.warmUpEvents);
  for (let round = 1; round <= bench.size.rounds; round++) {
    bench.say(`round ${round} of ${bench.size.rounds}, ${inFlight} in flight`);
    const order = round % 2 === 0 ? ([without, having] as const) : ([having, without] as const);
    const [first, second] = [
      await send(order[0], bench.size.events512),
      await send(order[1], bench.size.events512),
    ];
    const [off, on] = order[0] === without ? [first, second] : [second, first];
    rates.push({ with: on.perSecond, without: off.perSecond });
    processor.with += on.processorMs;
    processor.without += off.processorMs;
  }
  await Promise.all([without.process.stop(), having.process.stop()]);
  return {
    ofWithout: median(rates.map((rate) => rate.with / rate.without)),
    processorOfWithout: processor.without / processor.with,
  };
}

/** Makes the function that sends events to a pipeline until they are journaled; counts what that took. */
function senderTo(generator: Generator) {
  const sent = new Map<Pipeline, number>();
  return async (pipeline: Pipeline, events: number): Promise<{ perSecond: number; processorMs: number }> => {
    const { metricsUrl } = pipeline;
    const scrapes =
      metricsUrl === undefined
        ? undefined
        : setInterval(() => void fetch(metricsUrl).then((answer) => answer.text()), scrapeEveryMs);
    const before = await pipeline.process.call('processorMs', undefined);
    const report = await generator.send(pipeline, events, inFlight);
    const total = (sent.get(pipeline) ?? 0) + events;
    sent.set(pipeline, total);
    await withClient(pipeline.databaseUrl, (client) => untilJournaled(client, total));
    clearInterval(scrapes);
    const after = await pipeline.process.call('processorMs', undefined);
    return { perSecond: perSecond([report]), processorMs: after - before };
  };
}
