import type { DataConverter } from '@temporalio/common';
import { NativeConnection, Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';
import { type FailureCode, failureTypes } from '../contract/failures.ts';
import { dataConverterOf } from './temporal.ts';
import { connectOptions, inWords, type TemporalPlace } from './temporal-place.ts';

/** Opens the native connection of workers. */
export async function connectNative(
  place: TemporalPlace,
): Promise<{ connection: NativeConnection; namespace: string; dataConverter: DataConverter }> {
  const { connectionOptions, namespace } = connectOptions(place);
  const connection = await NativeConnection.connect(connectionOptions).catch((error: unknown) => {
    throw inWords(error, place);
  });
  return { connection, namespace, dataConverter: dataConverterOf(place) };
}

/** Logs once what to do about refused payloads, as each is tried again and again. */
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

/** Sends Temporal's own logs to ours and keeps it off signals. Call it once a process, before any worker. */
export function installRuntime(log: Logger): void {
  const level = (name: string) =>
    name === 'TRACE' || name === 'DEBUG'
      ? 'debug'
      : name === 'INFO'
        ? 'debug'
        : name === 'WARN'
          ? 'warn'
          : 'error';
  const explain = explainRefused(log);
  const logger = {
    log: (name: string, message: string, meta?: object) => log[level(name)](meta ?? {}, message),
    trace: (message: string, meta?: object) => log.trace(meta ?? {}, message),
    debug: (message: string, meta?: object) => log.debug(meta ?? {}, message),
    info: (message: string, meta?: object) => log.debug(meta ?? {}, message),
    warn: (message: string, meta?: object) => {
      log.warn(meta ?? {}, message);
      explain(message, meta);
    },
    error: (message: string, meta?: object) => {
      log.error(meta ?? {}, message);
      explain(message, meta);
    },
  };
  Runtime.install({ logger, shutdownSignals: [] });
}
