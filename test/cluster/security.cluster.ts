import { expect } from 'vitest';
import { type Found, fault, say, seeds } from '../faults/fault.ts';
import { eventsPerSecond, startLoad } from '../faults/load.ts';
import { seedOf } from '../faults/plan.ts';
import type { Rig } from '../faults/rig.ts';
import { verdict } from '../faults/verdict.ts';
import { makeCertificate } from '../support/certificate.ts';
import { startCommand } from '../support/command-process.ts';
import { deliver } from '../support/deliver.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import { startKeyIssuer } from './api-keys.ts';
import { namespace, type Secured, withRig } from './with-rig.ts';

const once = seeds().slice(0, 1);
const loadSeconds = 10;
/** How long the key is valid that expires while it is used. */
const keySeconds = 60;
const names = 'DNS:localhost,IP:127.0.0.1';

type Variables = Readonly<Record<string, string>>;

fault('T5', 'Temporal asks for a client certificate', once, { may: ['Silent'] }, async (seed) => {
  const folder = await temporaryFolder();
  const make = makeCertificate.bind(undefined, folder.path);
  try {
    const [ca, strangersCa] = [await make('ca', 'DNS:ca'), await make('strangers-ca', 'DNS:ca')];
    const [server, client, stranger] = await Promise.all([
      make('server', names, ca),
      make('client', 'DNS:metersync', ca),
      make('stranger', 'DNS:metersync', strangersCa),
    ]);
    const env = {
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: ca.file,
      TEMPORAL_TLS_CLIENT_CERT_PATH: client.file,
      TEMPORAL_TLS_CLIENT_KEY_PATH: client.keyFile,
    };
    const secured: Secured = {
      security: { tls: { certFile: server.file, keyFile: server.keyFile, clientCaFile: ca.file } },
      connect: {
        tls: {
          serverRootCACertificate: Buffer.from(ca.cert),
          clientCertPair: { crt: Buffer.from(client.cert), key: Buffer.from(client.key) },
        },
      },
      env,
    };
    const strangers = {
      TEMPORAL_TLS_CLIENT_CERT_PATH: stranger.file,
      TEMPORAL_TLS_CLIENT_KEY_PATH: stranger.keyFile,
    };
    return await secure(seed, 'T5', secured, async () => {}, [
      ["a stranger's certificate", strangers],
      ['no client certificate', { TEMPORAL_TLS_CLIENT_CERT_PATH: '', TEMPORAL_TLS_CLIENT_KEY_PATH: '' }],
      ['another CA', { TEMPORAL_TLS_SERVER_CA_CERT_PATH: strangersCa.file }],
      ['no TLS', { TEMPORAL_TLS: 'false' }],
    ]);
  } finally {
    await folder.remove();
  }
});

fault('T6', 'Temporal asks for an API key', once, { may: ['Silent'] }, async (seed) => {
  const folder = await temporaryFolder();
  const [issuer, strangers] = await Promise.all([startKeyIssuer(), startKeyIssuer()]);
  const now = Math.floor(Date.now() / 1000);
  const later = now + 86_400;
  const ours = [`${namespace}:write`];
  try {
    const ca = await makeCertificate(folder.path, 'ca', 'DNS:ca');
    const server = await makeCertificate(folder.path, 'server', names, ca);
    const secured: Secured = {
      security: { tls: { certFile: server.file, keyFile: server.keyFile }, jwksUrl: issuer.jwksUrl },
      connect: {
        tls: { serverRootCACertificate: Buffer.from(ca.cert) },
        apiKey: issuer.issue(['temporal-system:admin'], later),
      },
      env: {
        TEMPORAL_TLS_SERVER_CA_CERT_PATH: ca.file,
        TEMPORAL_API_KEY: issuer.issue(ours, later),
      },
    };
    const endsSoon = () => issuer.issue(ours, Math.floor(Date.now() / 1000) + keySeconds);
    const work = (rig: Rig) => untilShutOut(rig, { TEMPORAL_API_KEY: endsSoon() });
    return await secure(seed, 'T6', secured, work, [
      ["a stranger's key", { TEMPORAL_API_KEY: strangers.issue(ours, later) }],
      ['an expired key', { TEMPORAL_API_KEY: issuer.issue(ours, now - 60) }],
      ['a key of another namespace', { TEMPORAL_API_KEY: issuer.issue(['another:write'], later) }],
      ['no key', { TEMPORAL_API_KEY: '' }],
    ]);
  } finally {
    for (const one of [issuer, strangers]) one.close();
    await folder.remove();
  }
});

/** Runs everything on a secured Temporal, then `more`, then receivers with each of the wrong settings. */
async function secure(
  seed: number,
  name: string,
  secured: Secured,
  more: (rig: Rig) => Promise<void>,
  wrong: readonly (readonly [string, Variables])[],
): Promise<Found> {
  return await withRig(async (rig) => {
    expect(await rig.backfill()).toBe('complete');
    const load = startLoad(rig.service, seedOf(seed, name), eventsPerSecond);
    const { perSecond } = await load.end(loadSeconds);
    await more(rig);
    for (const [what, env] of wrong) {
      say(`${name}: ${what}: ${await refused(rig, env)}`);
    }
    const figures = await verdict(rig);
    return { injected: `refused: ${wrong.map(([what]) => what).join(', ')}`, perSecond, figures };
  }, secured);
}

/** Starts a receiver with wrong settings, which has to answer 503; returns its line about them. */
async function refused(rig: Rig, wrong: Variables): Promise<string> {
  const env = { ...rig.env, ...wrong, RECEIVER_PORT: String(await freePort()), METRICS_PORT: '0' };
  const receiver = startCommand(['receiver'], { env });
  try {
    const { status } = await until('the receiver answers', () => deliver({ env }, { type: 'none' }));
    expect(status).toBe(503);
    return await receiver.printed(/correct TEMPORAL_|TEMPORAL_TLS=true/);
  } finally {
    await receiver.end('SIGKILL');
  }
}

/** Runs a receiver whose settings become wrong until it says that it is no longer ready. */
async function untilShutOut(rig: Rig, rightAtFirst: Variables): Promise<void> {
  const port = await freePort();
  const env = { ...rig.env, ...rightAtFirst, RECEIVER_PORT: String(port), METRICS_PORT: '0' };
  const receiver = startCommand(['receiver'], { env });
  const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200;
  const within = { timeoutMs: 300_000, everyMs: 500 };
  try {
    await until('the receiver is ready', isReady, within);
    await until('the receiver is no longer ready', async () => !(await isReady()), within);
  } finally {
    await receiver.end('SIGKILL');
  }
}
