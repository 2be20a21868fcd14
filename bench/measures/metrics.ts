import { untilJournaled } from '../load/journal.ts';
import { type Generator, perSecond, startGenerator } from '../load/send.ts';
import { type Bench, type Figures, type Measure, median } from '../measure.ts';
import { type Pipeline, startPipeline } from '../pipeline/start.ts';
import { withClient } from '../stack.ts';

const inFlight = 512;
/** Prometheus usually scrapes every 15 s. Here it is more often, because rounds are short. */
const scrapeEveryMs = 5_000;

export const metrics: Measure = {
  name: 'metrics',
  about: 'events acknowledged per second with metrics on, scraped every 5 s, against off',
  onlyByName: true,
  run: measureMetrics,
};

/**
 * Both ways are measured in the same process, whose parts are started again for each round. Of two processes
 * that do the same, one may be a third faster, depending on how its code was compiled.
 */
async function measureMetrics(bench: Bench): Promise<Figures> {
  const generator = startGenerator(bench);
  let pipeline = await startPipeline(bench);
  const send = senderTo(generator);
  const measured = async (metrics: boolean) => {
    pipeline = await pipeline.restart({ metrics });
    await send(pipeline, bench.size.warmUpEvents);
    return await send(pipeline, bench.size.events512);
  };
  await send(pipeline, bench.size.events512);
  const rounds: { ofWithout: number; processorOfWithout: number }[] = [];
  for (let round = 1; round <= bench.size.metricsRounds; round++) {
    bench.say(`round ${round} of ${bench.size.metricsRounds}, ${inFlight} in flight`);
    const onFirst = round % 2 === 0;
    const first = await measured(onFirst);
    const second = await measured(!onFirst);
    const [on, off] = onFirst ? [first, second] : [second, first];
    rounds.push({
      ofWithout: on.perSecond / off.perSecond,
      processorOfWithout: off.processorMs / on.processorMs,
    });
  }
  await pipeline.process.stop();
  return {
    ofWithout: median(rounds.map(({ ofWithout }) => ofWithout)),
    processorOfWithout: median(rounds.map(({ processorOfWithout }) => processorOfWithout)),
  };
}

/** Makes a function that sends events and waits until they are journaled; it returns rate and CPU time. */
function senderTo(generator: Generator) {
  let sent = 0;
  return async (pipeline: Pipeline, events: number): Promise<{ perSecond: number; processorMs: number }> => {
    const { metricsUrl } = pipeline;
    const scrapes =
      metricsUrl === undefined
        ? undefined
        : setInterval(() => void fetch(metricsUrl).then((answer) => answer.text()), scrapeEveryMs);
    const before = await pipeline.process.call('processorMs', undefined);
    const report = await generator.send(pipeline, events, inFlight);
    sent += events;
    await withClient(pipeline.databaseUrl, (client) => untilJournaled(client, sent));
    clearInterval(scrapes);
    const after = await pipeline.process.call('processorMs', undefined);
    return { perSecond: perSecond([report]), processorMs: after - before };
  };
}
