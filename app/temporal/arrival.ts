import { setTimeout as wait } from 'node:timers/promises';
import { Connection, isGrpcServiceError } from '@temporalio/client';
import type { Logger } from 'pino';
import { serverWaits } from '../../contract/retry-policy.ts';
import { formatSeconds } from '../../contract/times.ts';
import { capitalized } from '../../contract/words.ts';
import { type ServerWait, waitForServer } from '../process/running.ts';
import { connectOptions, direct, type TemporalPlace, whereIs } from './place.ts';

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
  return waitForServer(there ? Promise.resolve() : search(), stopping, () => there);
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

/** Temporal cannot be used. Its message is the same in each command, page and alarm. */
export class TemporalAway extends Error {
  /** Whether Temporal answered with a refusal, so that waiting may not help. */
  readonly refused: boolean;
  /** What is wrong, without the reason, which may differ from one attempt to the next. */
  readonly finding: string;
  readonly todo: string;
  readonly reason: string;

  constructor(place: TemporalPlace, error: unknown) {
    const said = reasonOf(error);
    const { refused = true, finding, todo } = findingOf(place, error, said);
    // Something accepts the connection, and says nothing that a client without TLS understands.
    const hint = said === 'Failed to connect' ? ': if the server requires TLS, set TEMPORAL_TLS=true' : '';
    const reason = `${said}${hint}`;
    super(`${finding}: ${reason}`, { cause: error });
    this.name = 'TemporalAway';
    this.refused = refused;
    this.finding = finding;
    this.todo = todo;
    this.reason = reason;
  }
}

const [notFound, permissionDenied, unauthenticated] = [5, 7, 16];

function findingOf(
  place: TemporalPlace,
  error: unknown,
  reason: string,
): Pick<TemporalAway, 'finding' | 'todo'> & { refused?: boolean } {
  const where = capitalized(whereIs(place));
  const code = isGrpcServiceError(error) ? error.code : undefined;
  if (code === notFound)
    return {
      finding: `${where} has no namespace ${connectOptions(place).namespace}`,
      todo: 'Correct TEMPORAL_NAMESPACE, or create the namespace.',
    };
  if (code === permissionDenied || code === unauthenticated)
    return {
      finding: `${where} refuses the credentials`,
      todo: 'Correct TEMPORAL_API_KEY or the client certificate, and TEMPORAL_NAMESPACE.',
    };
  if (/\b(SSL|TLS)\b|certificate|CERT_/i.test(reason))
    return { finding: `TLS to ${whereIs(place)} fails`, todo: 'Correct TEMPORAL_TLS and its certificates.' };
  return {
    refused: false,
    finding: `${where} does not answer`,
    todo:
      place.address === undefined
        ? 'Start Temporal, or correct TEMPORAL_ADDRESS.'
        : 'Restart metersync start, which runs the embedded Temporal, or set TEMPORAL_ADDRESS.',
  };
}

function reasonOf(error: unknown): string {
  const message = isGrpcServiceError(error)
    ? error.details
    : error instanceof Error
      ? error.message
      : String(error);
  return (
    message
      .replace(
        /^Deadline exceeded after ([\d.]+)s.*$/s,
        (_, seconds: string) => `no answer within ${formatSeconds(Number(seconds))}`,
      )
      .replace(/^No connection established\. Last error: (Error: )?/, '')
      .replace(/[.\s]*Resolution note:\s*$/, '')
      // The time of the attempt.
      .replace(/\s*\(\d{4}-\d\d-\d\dT[\d:.]+Z\)$/, '')
      .trim()
  );
}
