import { X509Certificate } from 'node:crypto';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { CodecKey, Plaintext } from './payload-codec.ts';
import { SettingsError } from './settings.ts';

/** Where Temporal is: the embedded one, or the one of Temporal's own environment configuration. */
export interface TemporalPlace {
  readonly address?: string | undefined;
  readonly namespace?: string | undefined;
  /** Keys of its payloads; the first encrypts. Without keys nothing is encrypted. */
  readonly codecKeys?: readonly CodecKey[] | undefined;
  /** How to treat a payload that is not encrypted, where there are keys; refused when not given. */
  readonly plaintext?: Plaintext | undefined;
}

/** Reads the options of a connection. @throws SettingsError when Temporal's own configuration is wrong */
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

/** Reads when the client certificate for Temporal expires, as ISO 8601; null without one. */
export function certificateExpiry(place: TemporalPlace): string | null {
  const { tls } = connectOptions(place).connectionOptions;
  const certificate = typeof tls === 'object' ? tls?.clientCertPair?.crt : undefined;
  return certificate === undefined ? null : new X509Certificate(certificate).validToDate.toISOString();
}

function configuration(): ReturnType<typeof loadClientConnectConfig> {
  try {
    return loadClientConnectConfig();
  } catch (error) {
    // Lines after the first quote the file, which may hold an API key.
    const [reason] = (error as Error).message.split('\n');
    const line = (error as { line?: number }).line;
    const where = line === undefined ? '' : `, line ${line}`;
    throw new SettingsError([
      `TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE and TEMPORAL_TLS_… have to be right together: ${reason}${where}`,
    ]);
  }
}

/** Describes Temporal's address for people. */
export function whereIs(place: TemporalPlace): string {
  return `Temporal at ${connectOptions(place).connectionOptions.address ?? 'localhost:7233'} (TEMPORAL_ADDRESS)`;
}

/** Adds the address to an error, as the library's errors name none. */
export function inWords(error: unknown, place: TemporalPlace): Error {
  return new Error(`${whereIs(place)}: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}
