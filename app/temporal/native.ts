import type { DataConverter } from '@temporalio/common';
import { type LogLevel, NativeConnection, Runtime, type Logger as TemporalLogger } from '@temporalio/worker';
import type { Logger } from 'pino';
import { type FailureCode, failureTypes } from '../../contract/failures.ts';
import { limits } from '../../contract/limits.ts';
import type { CoreMetrics } from '../metrics.ts';
import { dataConverterOf } from './client.ts';
import { connectOptions, inWords, type TemporalPlace } from './place.ts';

export async function connectNative(
  place: TemporalPlace,
): Promise<{ connection: NativeConnection; namespace: string; dataConverter: DataConverter }> {
  const { connectionOptions, namespace } = connectOptions(place);
  const connection = await NativeConnection.connect(connectionOptions).catch((error: unknown) => {
    throw inWords(error, place);
  });
  return { connection, namespace, dataConverter: dataConverterOf(place) };
}

/** Without these options the names differ from Temporal's documentation, and promtool refuses them. */
const prometheusOf = ({ address }: Pick<CoreMetrics, 'address'>) => ({
  bindAddress: address,
  countersTotalSuffix: true,
  unitSuffix: true,
  useSecondsForDurations: true,
});

/** Logs once what to do about refused payloads, because each payload is tried again and again. */
function explainRefused(log: Logger): (message: string, meta?: object) => void {
  const code: FailureCode = 'PAYLOAD_REFUSED';
  let explained = false;
  return (message, meta) => {
    const { error } = (meta ?? {}) as { error?: unknown };
    if (explained || !`${message} ${error}`.includes(code)) return;
    explained = true;
    const { means, operator } = failureTypes[code];
    log.error({ code, todo: operator }, means);
  };
}

/** A warning of the SDK at each start of a worker that is only meant for activities. */
const activitiesAlone = 'No workflows registered, not polling for workflow tasks';

/** Maps Temporal's log levels to metersync's. Temporal's INFO is about its own work, so it becomes debug. */
const levels = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;

/** Sends Temporal's logs to our log, and keeps it from handling signals. Call it before any worker starts. */
export function installRuntime(log: Logger, core?: Pick<CoreMetrics, 'address'>): void {
  const explain = explainRefused(log);
  const repeats = repeatedFailures(() => performance.now());
  // Both the native library and the SDK log through this function.
  const record = (level: LogLevel, message: string, meta?: object): void => {
    const aside = message === activitiesAlone || repeats(message, meta);
    log[levels[aside ? 'DEBUG' : level]](meta ?? {}, message);
    if (level === 'WARN' || level === 'ERROR') explain(message, meta);
  };
  const logger: TemporalLogger = {
    log: record,
    trace: (message, meta) => record('TRACE', message, meta),
    debug: (message, meta) => record('DEBUG', message, meta),
    info: (message, meta) => record('INFO', message, meta),
    warn: (message, meta) => record('WARN', message, meta),
    error: (message, meta) => record('ERROR', message, meta),
  };
  Runtime.install({
    logger,
    shutdownSignals: [],
    telemetryOptions: {
      logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} },
      ...(core === undefined ? {} : { metrics: { prometheus: prometheusOf(core) } }),
    },
  });
}

/** The message that the native library logs for each try of each poll while Temporal is away. */
const retriedCall = /^gRPC call (\w+) retried/;

/**
 * Makes the function that says whether a line of Temporal's log repeats a line of the last minute: another
 * attempt, or the same cause for an activity of the same type. In an outage each event causes several.
 * @param now milliseconds of a clock that only grows
 */
export function repeatedFailures(now: () => number): (message: string, meta?: object) => boolean {
  const quietUntil = new Map<string, number>();
  return (message, meta) => {
    const kind = retriedCall.exec(message)?.[1] ?? kindOfFailure(message, meta);
    if (kind === undefined) return false;
    if (now() < (quietUntil.get(kind) ?? 0)) return true;
    quietUntil.set(kind, now() + limits.failureLogMs);
    return false;
  };
}

function kindOfFailure(message: string, meta?: object): string | undefined {
  if (message !== 'Activity failed') return undefined;
  const { activityType, error } = meta as { activityType?: string; error?: { type?: FailureCode } };
  if (error?.type === undefined || failureTypes[error.type]?.action !== 'retry') return undefined;
  return `${activityType} ${error.type}`;
}
