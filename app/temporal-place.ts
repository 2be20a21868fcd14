import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { CodecKey, Plaintext } from './payload-codec.ts';
import { SettingsError } from './settings.ts';

/** Where Temporal is: the embedded one, or what Temporal's own environment configuration says. */
export interface TemporalPlace {
  readonly address?: string | undefined;
  readonly namespace?: string | undefined;
  /** Keys of what is encrypted there; the first encrypts. Nothing is when there are none. */
  readonly codecKeys?: readonly CodecKey[] | undefined;
  /** What becomes of a payload that is not encrypted, where there are keys; refused when not given. */
  readonly plaintext?: Plaintext | undefined;
}

/** @throws SettingsError when Temporal's own configuration is wrong */
export function connectOptions(place: TemporalPlace) {
  const configured = configuration();
  return {
    connectionOptions: {
      ...configured.connectionOptions,
      ...(place.address === undefined ? {} : { address: place.address }),
    },
    namespace: place.namespace ?? configured.namespace ?? 'default',
  };
}

function configuration(): ReturnType<typeof loadClientConnectConfig> {
  try {
    return loadClientConnectConfig();
  } catch (error) {
    // What follows the first line quotes the file, where an API key may stand.
    const [reason] = (error as Error).message.split('\n');
    const line = (error as { line?: number }).line;
    const where = line === undefined ? '' : `, line ${line}`;
    throw new SettingsError([
      `TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE and TEMPORAL_TLS_… have to be right together: ${reason}${where}`,
    ]);
  }
}

/** Temporal's address, as a person knows it. */
export function whereIs(place: TemporalPlace): string {
  return `Temporal at ${connectOptions(place).connectionOptions.address ?? 'localhost:7233'} (TEMPORAL_ADDRESS)`;
}

/** Where nobody answered: the library's errors name no address. */
export function inWords(error: unknown, place: TemporalPlace): Error {
  return new Error(`${whereIs(place)}: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}
