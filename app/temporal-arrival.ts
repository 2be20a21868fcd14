import { setTimeout as wait } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import type { Logger } from 'pino';
import { arrivalOf } from './arrival.ts';
import type { Arrival } from './running.ts';
import { type Absence, absenceOf } from './temporal-absence.ts';
import { connectOptions, type TemporalPlace, whereIs } from './temporal-place.ts';

/** Waits that a test may shorten. */
export interface ArrivalWaits {
  /** From one look to the next. */
  readonly everyMs: number;
  /** How long a refusal may last: a namespace is made, a server comes up, in the seconds of a first start. */
  readonly refusedForMs: number;
}

const usualWaits: ArrivalWaits = { everyMs: 1_000, refusedForMs: 10_000 };
/** A machine that is busy takes a while; who refuses a connection does it at once. */
const lookMs = 5_000;

/** Whether Temporal has been there since the process began; a part that runs until then, and ends by itself never. */
export type TemporalArrival = Arrival;

/**
 * Looks whether Temporal is there and knows our namespace. While it is away it is looked for again and again, which is
 * logged once, and once more when it is there. What it refuses, as an unknown namespace, is refused for good.
 * @throws Error when its own configuration cannot be read
 */
export async function awaitTemporal(
  place: TemporalPlace,
  log: Pick<Logger, 'info' | 'warn' | 'error'>,
  waits: ArrivalWaits = usualWaits,
): Promise<TemporalArrival> {
  const stopping = new AbortController();
  let there = false;
  const first = await look(place, stopping.signal);
  if (first === undefined) there = true;
  const search = async (): Promise<void> => {
    const told = new Set<string>();
    let refusedAt: number | undefined;
    for (let absence = first; absence !== undefined; absence = await look(place, stopping.signal)) {
      const { refused, reason } = absence;
      const words = refused
        ? absence.words
        : `${absence.words}: waiting for it; meanwhile deliveries are answered 503 and no work is done`;
      refusedAt = refused ? (refusedAt ?? performance.now()) : undefined;
      if (refusedAt !== undefined && performance.now() - refusedAt >= waits.refusedForMs) {
        throw new Error(`${words} (${reason})`);
      }
      if (!told.has(words)) log[refused ? 'error' : 'warn']({ reason }, words);
      told.add(words);
      await wait(waits.everyMs, undefined, { signal: stopping.signal });
    }
    there = true;
    log.info(`${whereIs(place)} is there now`);
  };
  return arrivalOf(there ? Promise.resolve() : search(), stopping, () => there);
}

/** What keeps us from Temporal; undefined when nothing does. */
async function look(place: TemporalPlace, signal: AbortSignal): Promise<Absence | undefined> {
  const { connectionOptions, namespace } = connectOptions(place);
  const connection = Connection.lazy({ ...connectionOptions, interceptors: [] });
  try {
    await connection.withAbortSignal(signal, () =>
      connection.withDeadline(Date.now() + lookMs, () =>
        connection.workflowService.describeNamespace({ namespace }),
      ),
    );
    return undefined;
  } catch (error) {
    return absenceOf(error, whereIs(place), namespace);
  } finally {
    await connection.close();
  }
}
