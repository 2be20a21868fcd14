import { setTimeout as wait } from 'node:timers/promises';
import { Connection, isGrpcServiceError } from '@temporalio/client';
import type { Logger } from 'pino';
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
export interface TemporalArrival {
  isThere(): boolean;
  /** Resolves when Temporal is there, never after `stop`. @throws Error that says why it refuses us */
  readonly arrived: Promise<void>;
  stop(): Promise<void>;
}

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
      const { refused, words, reason } = absence;
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
  const searched = there ? Promise.resolve() : search();
  const arrived = searched.catch((error: unknown) => {
    if (stopping.signal.aborted) return new Promise<void>(() => {});
    throw error;
  });
  // Whoever waits for it is told; that nobody does yet is no failure of its own.
  arrived.catch(() => {});
  return {
    isThere: () => there,
    arrived,
    stop: async () => {
      stopping.abort();
      await Promise.allSettled([searched]);
    },
  };
}

interface Absence {
  /** Whether it answered, and waiting may not help. */
  readonly refused: boolean;
  /** What is missing and what to do: the same for every look that finds the same. */
  readonly words: string;
  readonly reason: string;
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

/** Of gRPC. */
const [notFound, permissionDenied, unauthenticated] = [5, 7, 16];

function absenceOf(error: unknown, where: string, namespace: string): Absence {
  const reason = reasonOf(error);
  const refusal = (words: string): Absence => ({ refused: true, words, reason });
  const code = isGrpcServiceError(error) ? error.code : undefined;
  if (code === notFound) {
    return refusal(
      `${where} knows no namespace ${namespace}: correct TEMPORAL_NAMESPACE, or make the namespace`,
    );
  }
  if (code === permissionDenied || code === unauthenticated) {
    return refusal(
      `${where} refuses us: correct TEMPORAL_API_KEY or the client certificate, and TEMPORAL_NAMESPACE`,
    );
  }
  if (/\b(SSL|TLS)\b|certificate|CERT_/i.test(reason)) {
    return refusal(`no secure connection to ${where} comes about: correct TEMPORAL_TLS and its certificates`);
  }
  return {
    refused: false,
    words: `${where} is away: waiting for it; meanwhile deliveries are answered 503 and no work is done`,
    reason,
  };
}

function reasonOf(error: unknown): string {
  const said = isGrpcServiceError(error)
    ? error.details
    : error instanceof Error
      ? error.message
      : String(error);
  return said
    .replace(/^No connection established\. Last error: (Error: )?/, '')
    .replace(/[.\s]*Resolution note:\s*$/, '')
    .trim();
}
