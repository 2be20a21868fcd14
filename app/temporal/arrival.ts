import { setTimeout as wait } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import type { Logger } from 'pino';
import { serverWaits } from '../../contract/retry-policy.ts';
import { capitalized } from '../../contract/words.ts';
import type { ServerWait } from '../process/running.ts';
import { serverWait } from '../process/server-wait.ts';
import { connectOptions, direct, type TemporalPlace, whereIs } from './place.ts';
import { TemporalAway } from './problem.ts';

export interface ArrivalWaits {
  readonly everyMs: number;
  /** How long a refusal may last. At a first start the server and its namespace need some seconds. */
  readonly refusedForMs: number;
}

const usualWaits: ArrivalWaits = {
  everyMs: serverWaits.lookEveryMs,
  refusedForMs: serverWaits.temporalRefusedForMs,
};

/**
 * Waits until Temporal is there and knows our namespace; logs once that it is away and once that it is there.
 * A refusal that lasts, for example of an unknown namespace, ends the search.
 * @throws Error when Temporal's own configuration cannot be read
 */
export async function awaitTemporal(
  place: TemporalPlace,
  log: Pick<Logger, 'info' | 'warn' | 'error'>,
  waits: ArrivalWaits = usualWaits,
): Promise<ServerWait> {
  const stopping = new AbortController();
  let there = false;
  const first = await look(place, stopping.signal);
  if (first === undefined) there = true;
  const search = async (): Promise<void> => {
    const logged = new Set<string>();
    let refusedAt: number | undefined;
    for (let problem = first; problem !== undefined; problem = await look(place, stopping.signal)) {
      const { refused, finding, todo, reason } = problem;
      const words = refused
        ? `${finding}. ${todo}`
        : `${finding}: waiting for it; meanwhile deliveries are answered with 503 and no work is done`;
      refusedAt = refused ? (refusedAt ?? performance.now()) : undefined;
      if (refusedAt !== undefined && performance.now() - refusedAt >= waits.refusedForMs) throw problem;
      if (!logged.has(words)) log[refused ? 'error' : 'warn']({ reason }, words);
      logged.add(words);
      await wait(waits.everyMs, undefined, { signal: stopping.signal });
    }
    there = true;
    log.info(`${capitalized(whereIs(place))} answers now`);
  };
  return serverWait(there ? Promise.resolve() : search(), stopping, () => there);
}

/** Tries to reach Temporal and our namespace; returns the problem, or undefined if there is none. */
async function look(place: TemporalPlace, signal: AbortSignal): Promise<TemporalAway | undefined> {
  const { connectionOptions, namespace } = connectOptions(place);
  const connection = Connection.lazy({ ...connectionOptions, channelArgs: direct, interceptors: [] });
  try {
    await connection.withAbortSignal(signal, () =>
      connection.withDeadline(Date.now() + serverWaits.temporalLookMs, () =>
        connection.workflowService.describeNamespace({ namespace }),
      ),
    );
    return undefined;
  } catch (error) {
    return new TemporalAway(place, error);
  } finally {
    await connection.close();
  }
}
