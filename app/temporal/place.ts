import { X509Certificate } from 'node:crypto';
import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig';
import { capitalized } from '../../contract/words.ts';
import { readSecretFiles } from '../settings/secret-files.ts';
import { SettingsError } from '../settings/settings.ts';
import type { CodecKey, Plaintext } from './payload-codec.ts';

/** Where Temporal is: the embedded server, or the server of Temporal's own environment configuration. */
export interface TemporalPlace {
  readonly address?: string | undefined;
  readonly namespace?: string | undefined;
  /** Keys of its payloads; the first key encrypts. Without keys nothing is encrypted. */
  readonly codecKeys?: readonly CodecKey[] | undefined;
  /** How to treat a payload that is not encrypted, if there are keys; refused when not given. */
  readonly plaintext?: Plaintext | undefined;
}

/** Options of a client's channel, so that it does not use `https_proxy`, as workers do not. */
export const direct = { 'grpc.enable_http_proxy': 0 } as const;

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

/** Reads when the client certificate for Temporal expires, as ISO 8601; null if there is none. */
export function certificateExpiry(place: TemporalPlace): string | null {
  const { tls } = connectOptions(place).connectionOptions;
  const certificate = typeof tls === 'object' ? tls?.clientCertPair?.crt : undefined;
  return certificate === undefined ? null : new X509Certificate(certificate).validToDate.toISOString();
}

function configuration(): ClientConnectConfig {
  // Empty variables are left out, because Temporal takes them for values: an empty API key asks for TLS.
  const { given, problems } = readSecretFiles(process.env, ['TEMPORAL_API_KEY']);
  if (problems.length > 0) throw new SettingsError(problems);
  try {
    const options = loadClientConnectConfig({ overrideEnvVars: given });
    requireUsable(options);
    return options;
  } catch (error) {
    // Lines after the first quote the file, which may hold an API key.
    const [reason] = (error as Error).message.split('\n');
    const line = (error as { line?: number }).line;
    const where = line === undefined ? '' : `, line ${line}`;
    throw new SettingsError([
      `TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE and TEMPORAL_TLS_… do not fit together: ${reason}${where}`,
    ]);
  }
}

/** Checks what the client would report with an error that quotes it. */
function requireUsable({ connectionOptions: { apiKey, metadata } }: ClientConnectConfig): void {
  if (typeof apiKey === 'string' && !/^[\x21-\x7e]+$/.test(apiKey))
    throw new Error('the API key (TEMPORAL_API_KEY) has to be printable text without spaces');
  for (const [name, value] of Object.entries(metadata ?? {}))
    if (typeof value === 'string' && !/^[\x20-\x7e]*$/.test(value))
      throw new Error(`the header ${name} (TEMPORAL_GRPC_META_…) has to be printable ASCII text`);
}

/** Names the server, for the middle of a sentence. */
export function whereIs(place: TemporalPlace): string {
  if (place.address !== undefined) return `the embedded Temporal at ${place.address}`;
  return `Temporal at ${connectOptions(place).connectionOptions.address ?? 'localhost:7233'} (TEMPORAL_ADDRESS)`;
}

/** Adds the address to an error, because the library's errors do not name it. */
export function inWords(error: unknown, place: TemporalPlace): Error {
  return new Error(
    `${capitalized(whereIs(place))}: ${error instanceof Error ? error.message : String(error)}`,
    {
      cause: error,
    },
  );
}
