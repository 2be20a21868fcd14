import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type Transport, transportOf } from '../../db/connection/connect.ts';
import { connectOptions } from '../temporal/place.ts';
import { type Settings, SettingsError } from './settings.ts';

/** Why others may read the data on a connection, or answer in the server's place. */
export interface Insecure {
  readonly setting:
    | 'DATABASE_URL'
    | 'SERVICE_URL'
    | 'TEMPORAL_ADDRESS'
    | 'NOTIFY_URL'
    | 'HEARTBEAT_URL'
    | 'NODE_TLS_REJECT_UNAUTHORIZED';
  readonly saw: string;
  readonly todo: string;
}

export interface Connects {
  readonly postgres: boolean;
  readonly service: boolean;
  readonly temporal: boolean;
}

interface Connection {
  readonly host: string;
  /** Undefined if it has verified TLS. */
  readonly insecure: Insecure | undefined;
  /** Whether STRICT_TLS=outside says that its network is the user's own. */
  readonly isInside: boolean;
}

/**
 * Lists the configured connections that are not safe, without connecting.
 * @throws SettingsError that names them unless STRICT_TLS is off, or a missing file that DATABASE_URL names
 */
export function requireSafeTransport(settings: Settings, connects: Connects): readonly Insecure[] {
  const { strictTls } = settings;
  const insecure = insecureAmong(connectionsOf(settings, connects), settings);
  if (strictTls !== 'off' && insecure.length > 0) {
    throw new SettingsError(
      insecure.map(({ saw, todo }) => `${saw}, and STRICT_TLS is ${strictTls}. ${todo}`),
    );
  }
  return insecure;
}

/** Embedded servers and the sandbox are on this machine, to which any connection is safe. */
function connectionsOf(settings: Settings, connects: Connects): Connection[] {
  const { databaseUrl, service, temporalConfigured, notify } = settings;
  const connections: Connection[] = [];
  if (connects.postgres && databaseUrl !== undefined) connections.push(warehouseAt(databaseUrl));
  if (connects.temporal && temporalConfigured) {
    const { address, tls } = connectOptions({}).connectionOptions;
    connections.push(temporalAt(address, Boolean(tls)));
  }
  // A process that does not read the service does not send notifications either.
  if (!connects.service) return connections;
  const risk = 'anyone on the network path can read alarms, and the key in the address';
  for (const [setting, url, reads, todo] of [
    [
      'SERVICE_URL',
      service.url,
      'anyone on the network path can read the API key and every record',
      'Use an https:// address.',
    ],
    ['NOTIFY_URL', notify.target?.url, risk, 'Use https.'],
    ['HEARTBEAT_URL', notify.heartbeatUrl, risk, 'Use https.'],
  ] as const) {
    if (url === undefined) continue;
    const { protocol, host } = new URL(url);
    // Quotes only the host, because the rest may be a secret.
    const saw = `${setting} leads to ${host} without TLS: ${reads}`;
    const insecure = protocol === 'https:' ? undefined : { setting, saw, todo };
    connections.push({ host: hostOf(host), insecure, isInside: false });
  }
  return connections;
}

/** Leaves out connections to this machine and, if STRICT_TLS is `outside`, within the user's networks. */
export function insecureAmong(
  connections: readonly Connection[],
  { strictTls, certificatesIgnored }: Pick<Settings, 'strictTls' | 'certificatesIgnored'>,
): readonly Insecure[] {
  const far = connections.filter(
    ({ host, isInside }) => !isThisMachine(host) && !(isInside && strictTls === 'outside'),
  );
  const insecure = far.flatMap((connection) => connection.insecure ?? []);
  return far.length > 0 && certificatesIgnored ? [...insecure, anyCertificate] : insecure;
}

/** Includes Unix sockets, whose host is a folder. */
function isThisMachine(host: string): boolean {
  if (host.startsWith('/') || host.toLowerCase() === 'localhost') return true;
  return isIP(host) !== 0 && ipaddr.process(host).range() === 'loopback';
}

const hostOf = (address: string): string => address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');

const ownNetwork = 'If only you use the networks to Postgres and Temporal, set STRICT_TLS=outside.';

function warehouseAt(url: string): Connection {
  const { host, tls } = transportTo(url);
  const saw =
    tls === 'none'
      ? `DATABASE_URL leads to ${host} without TLS: anyone on the network path can read the password and every row`
      : `DATABASE_URL does not verify the certificate of ${host}: anyone on the network path can answer in its place and gets the password`;
  const todo = `Add ?sslmode=verify-full&sslrootcert=FILE to it, with the certificate of the CA. ${ownNetwork}`;
  const insecure = tls === 'verified' ? undefined : ({ setting: 'DATABASE_URL', saw, todo } as const);
  return { host, insecure, isInside: true };
}

function transportTo(url: string): Transport {
  try {
    return transportOf(url);
  } catch (error) {
    throw new SettingsError([`DATABASE_URL cannot be used: ${(error as Error).message}`]);
  }
}

export function temporalAt(address: string | undefined, tls: boolean): Connection {
  const saw = `TEMPORAL_ADDRESS leads to ${address} without TLS: anyone on the network path can read events, and start work`;
  const todo = `Set TEMPORAL_TLS=true, and TEMPORAL_TLS_SERVER_CA_CERT_PATH if it has your own CA. ${ownNetwork}`;
  const insecure = tls ? undefined : ({ setting: 'TEMPORAL_ADDRESS', saw, todo } as const);
  return { host: hostOf(address ?? 'localhost'), insecure, isInside: true };
}

const anyCertificate: Insecure = {
  setting: 'NODE_TLS_REJECT_UNAUTHORIZED',
  saw: 'NODE_TLS_REJECT_UNAUTHORIZED is 0: any certificate is accepted, so anyone on the network path can answer in place of the other side',
  todo: 'Unset it, and name your own CA in NODE_EXTRA_CA_CERTS.',
};
