import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type Transport, transportOf } from '../../db/connection/connect.ts';
import { connectOptions } from '../temporal/place.ts';
import { type Settings, SettingsError } from './settings.ts';

/** A connection on which others may read the data or answer in the server's place. */
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

/** The servers to which a command connects. */
export interface Connects {
  readonly postgres: boolean;
  readonly service: boolean;
  readonly temporal: boolean;
}

/**
 * The target of each connection; undefined if no connection is made, or an embedded server or the sandbox is
 * used.
 */
export interface Transports {
  readonly warehouse?: Transport | undefined;
  /** The service's base URL. */
  readonly service?: string | undefined;
  readonly temporal?: { readonly address?: string | undefined; readonly tls: boolean } | undefined;
  /** What workers call: each by its setting. */
  readonly notified?: readonly { readonly setting: 'NOTIFY_URL' | 'HEARTBEAT_URL'; readonly url: string }[];
}

/**
 * Lists the configured connections that are not safe, without connecting.
 * @throws SettingsError that names all of them unless STRICT_TLS is off, or a missing file that DATABASE_URL
 * names
 */
export function requireSafeTransport(settings: Settings, connects: Connects): readonly Insecure[] {
  const { strictTls } = settings;
  const insecure = judgeTransport(transportsOf(settings, connects), settings);
  if (strictTls !== 'off' && insecure.length > 0) {
    throw new SettingsError(
      insecure.map(({ saw, todo }) => `${saw}, and STRICT_TLS is ${strictTls}. ${todo}`),
    );
  }
  return insecure;
}

function transportsOf(settings: Settings, connects: Connects): Transports {
  const { databaseUrl, service, temporalConfigured, notify } = settings;
  const called = [
    ...(notify.target === undefined ? [] : [{ setting: 'NOTIFY_URL' as const, url: notify.target.url }]),
    ...(notify.heartbeatUrl === undefined
      ? []
      : [{ setting: 'HEARTBEAT_URL' as const, url: notify.heartbeatUrl }]),
  ];
  return {
    warehouse: connects.postgres && databaseUrl !== undefined ? warehouseOf(databaseUrl) : undefined,
    service: connects.service ? service.url : undefined,
    temporal: connects.temporal && temporalConfigured ? temporalOf() : undefined,
    // The processes that ask the service are workers, which also send alarms.
    notified: connects.service ? called : [],
  };
}

function temporalOf(): Transports['temporal'] {
  const { address, tls } = connectOptions({}).connectionOptions;
  return { address, tls: Boolean(tls) };
}

function warehouseOf(url: string): Transport {
  try {
    return transportOf(url);
  } catch (error) {
    throw new SettingsError([`DATABASE_URL cannot be used: ${(error as Error).message}`]);
  }
}

/**
 * Judges each connection by its target. Any connection to this machine is safe. If STRICT_TLS is `outside`,
 * connections to Postgres and Temporal are, too.
 */
export function judgeTransport(
  { warehouse, service, temporal, notified = [] }: Transports,
  { strictTls, certificatesIgnored }: Pick<Settings, 'strictTls' | 'certificatesIgnored'>,
): readonly Insecure[] {
  const isOurs = strictTls === 'outside';
  const insecure: Insecure[] = [];
  let far = false;
  const judge = (host: string, verdict: Insecure | undefined) => {
    if (isThisMachine(host)) return;
    far = true;
    if (verdict !== undefined) insecure.push(verdict);
  };
  if (warehouse !== undefined && !isOurs) judge(warehouse.host, judgeWarehouse(warehouse));
  if (service !== undefined) judge(hostOf(new URL(service).host), judgeService(new URL(service)));
  if (temporal !== undefined && !isOurs) {
    const { address = 'localhost', tls } = temporal;
    judge(hostOf(address), tls ? undefined : plainTemporal(address));
  }
  for (const { setting, url } of notified) {
    const { protocol, host } = new URL(url);
    judge(hostOf(host), protocol === 'https:' ? undefined : plainNotified(setting, host));
  }
  if (far && certificatesIgnored) insecure.push(anyCertificate);
  return insecure;
}

/** Includes Unix sockets, whose host is a folder. */
export function isThisMachine(host: string): boolean {
  if (host.startsWith('/') || host.toLowerCase() === 'localhost') return true;
  return isIP(host) !== 0 && ipaddr.process(host).range() === 'loopback';
}

/** Removes port and brackets. */
const hostOf = (address: string): string => address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');

function judgeWarehouse({ host, tls }: Transport): Insecure | undefined {
  if (tls === 'verified') return undefined;
  const saw =
    tls === 'none'
      ? `DATABASE_URL leads to ${host} without TLS: anyone on the way can read the password and every row`
      : `DATABASE_URL does not verify the certificate of ${host}: anyone on the way can answer in its place and gets the password`;
  const todo = `Add ?sslmode=verify-full&sslrootcert=FILE to it, with the certificate of the CA. ${ownNetwork}`;
  return { setting: 'DATABASE_URL', saw, todo };
}

function judgeService({ protocol, host }: URL): Insecure | undefined {
  if (protocol === 'https:') return undefined;
  return {
    setting: 'SERVICE_URL',
    saw: `SERVICE_URL leads to ${host} without TLS: anyone on the way can read the API key and every record`,
    todo: 'Use an https:// address.',
  };
}

const plainTemporal = (address: string): Insecure => ({
  setting: 'TEMPORAL_ADDRESS',
  saw: `TEMPORAL_ADDRESS leads to ${address} without TLS: anyone on the way can read events, and start work`,
  todo: `Set TEMPORAL_TLS=true, and TEMPORAL_TLS_SERVER_CA_CERT_PATH if it has your own CA. ${ownNetwork}`,
});

/** Quotes only the host, because the rest may be a secret. */
const plainNotified = (setting: 'NOTIFY_URL' | 'HEARTBEAT_URL', host: string): Insecure => ({
  setting,
  saw: `${setting} leads to ${host} without TLS: anyone on the way can read alarms, and the key in the address`,
  todo: 'Use https.',
});

const anyCertificate: Insecure = {
  setting: 'NODE_TLS_REJECT_UNAUTHORIZED',
  saw: 'NODE_TLS_REJECT_UNAUTHORIZED is 0: any certificate is accepted, so anyone on the way can answer in place of the other side',
  todo: 'Unset it, and name your own CA in NODE_EXTRA_CA_CERTS.',
};

const ownNetwork = 'If only you use the networks to Postgres and Temporal, set STRICT_TLS=outside.';
