import type { Bench } from '../measure.ts';
import type { Target } from '../pipeline/start.ts';
import type { Child } from '../process/child.ts';
import type { GeneratorCalls, PrepareInput } from './generator.ts';
import { type Latencies, mergedLatencies } from './latencies.ts';
import type { LoadReport } from './run.ts';

/** A load generator in its own process. */
export interface Generator {
  readonly pid: number;
  /** Signs the events and then sends them. Signing is not timed. */
  send(target: Target, events: PrepareInput['events'], inFlight: number): Promise<LoadReport>;
}

export function startGenerator(bench: Bench): Generator {
  const child: Child<GeneratorCalls> = bench.child<GeneratorCalls>('load/generator.ts');
  return {
    pid: child.pid,
    send: async ({ port, secret }, events, inFlight) => {
      await child.call('prepare', { secret, events });
      return await child.call('send', { port, inFlight });
    },
  };
}

/** Returns the events per second over several rounds. A longer round weighs more. */
export function perSecond(reports: readonly Pick<LoadReport, 'events' | 'seconds'>[]): number {
  const events = reports.reduce((sum, report) => sum + report.events, 0);
  return events / reports.reduce((sum, report) => sum + report.seconds, 0);
}

export function latenciesOf(reports: readonly LoadReport[]): Latencies {
  return mergedLatencies(reports.map((report) => report.latencies));
}
