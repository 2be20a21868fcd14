import { expect } from 'vitest';
import { fault, say } from '../faults/fault.ts';
import type { Rig } from '../faults/rig.ts';
import { makeCertificate } from '../support/certificate.ts';
import { startCommand } from '../support/command-process.ts';
import { deliver } from '../support/deliver.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import { startKeyIssuer } from './api-keys.ts';
import { namespace, onCluster, type Secured } from './surroundings.ts';

/** How long the key is valid that expires while it is used. */
const keySeconds = 60;
const names = 'DNS:localhost,IP:127.0.0.1';

type Variables = Readonly<Record<string, string>>;

/** A secured Temporal, and settings with which a receiver must not get in. */
interface Guarded {
  readonly wrong: Readonly<Record<string, Variables>>;
  /** Settings of a receiver that become wrong while it runs. */
  rightAtFirst?(): Variables;
}

/** Runs everything on a secured Temporal, and then receivers with wrong settings. */
function guarded(
  name: string,
  title: string,
  make: (folder: string) => Promise<Guarded & { secured: Secured; close?(): void }>,
): void {
  fault<Guarded>({
    name,
    title,
    alarms: { may: ['Silent'] },
    around: async (work) => {
      const folder = await temporaryFolder();
      try {
        const { secured, close, ...made } = await make(folder.path);
        try {
          return await onCluster(secured)((more) => work(more, made));
        } finally {
          close?.();
        }
      } finally {
        await folder.remove();
      }
    },
    backfill: 'before',
    strike: async ({ rig, made: { wrong, rightAtFirst }, load }) => {
      await load.end(10);
      if (rightAtFirst !== undefined) await untilShutOut(rig, rightAtFirst());
      for (const [what, env] of Object.entries(wrong)) say(`${name}: ${what}: ${await refused(rig, env)}`);
      return `refused: ${Object.keys(wrong).join(', ')}`;
    },
  });
}

guarded('T5', 'Temporal asks for a client certificate', async (folder) => {
  const make = makeCertificate.bind(undefined, folder);
  const [ca, strangersCa] = [await make('ca', 'DNS:ca'), await make('strangers-ca', 'DNS:ca')];
  const [server, client, stranger] = await Promise.all([
    make('server', names, ca),
    // Long enough that no alarm says that it expires.
    make('client', 'DNS:metersync', ca, 30),
    make('stranger', 'DNS:metersync', strangersCa),
  ]);
  const presented = ({ file, keyFile }: Record<'file' | 'keyFile', string>): Variables => ({
    TEMPORAL_TLS_CLIENT_CERT_PATH: file,
    TEMPORAL_TLS_CLIENT_KEY_PATH: keyFile,
  });
  return {
    secured: {
      security: { tls: { certFile: server.file, keyFile: server.keyFile, clientCaFile: ca.file } },
      connect: {
        tls: {
          serverRootCACertificate: Buffer.from(ca.cert),
          clientCertPair: { crt: Buffer.from(client.cert), key: Buffer.from(client.key) },
        },
      },
      env: { TEMPORAL_TLS_SERVER_CA_CERT_PATH: ca.file, ...presented(client) },
    },
    wrong: {
      "a stranger's certificate": presented(stranger),
      'no client certificate': presented({ file: '', keyFile: '' }),
      'another CA': { TEMPORAL_TLS_SERVER_CA_CERT_PATH: strangersCa.file },
      'no TLS': { TEMPORAL_TLS: 'false' },
    },
  };
});

guarded('T6', 'Temporal asks for an API key', async (folder) => {
  const ca = await makeCertificate(folder, 'ca', 'DNS:ca');
  const server = await makeCertificate(folder, 'server', names, ca);
  const issuer = await startKeyIssuer();
  const strangers = await startKeyIssuer().catch((error: unknown) => {
    issuer.close();
    throw error;
  });
  const now = () => Math.floor(Date.now() / 1000);
  const later = now() + 86_400;
  const ours = [`${namespace}:write`];
  return {
    secured: {
      security: { tls: { certFile: server.file, keyFile: server.keyFile }, jwksUrl: issuer.jwksUrl },
      connect: {
        tls: { serverRootCACertificate: Buffer.from(ca.cert) },
        apiKey: issuer.issue(['temporal-system:admin'], later),
      },
      env: { TEMPORAL_TLS_SERVER_CA_CERT_PATH: ca.file, TEMPORAL_API_KEY: issuer.issue(ours, later) },
    },
    rightAtFirst: () => ({ TEMPORAL_API_KEY: issuer.issue(ours, now() + keySeconds) }),
    wrong: {
      "a stranger's key": { TEMPORAL_API_KEY: strangers.issue(ours, later) },
      'an expired key': { TEMPORAL_API_KEY: issuer.issue(ours, now() - 60) },
      'a key of another namespace': { TEMPORAL_API_KEY: issuer.issue(['another:write'], later) },
      'no key': { TEMPORAL_API_KEY: '' },
    },
    close: () => {
      issuer.close();
      strangers.close();
    },
  };
});

/** Starts a receiver with wrong settings, which has to answer 503; returns its line about them. */
async function refused(rig: Rig, wrong: Variables): Promise<string> {
  const env = { ...rig.env, ...wrong, RECEIVER_PORT: String(await freePort()), METRICS_PORT: '0' };
  const receiver = startCommand(['receiver'], { env });
  try {
    const { status } = await until('the receiver answers', () => deliver({ env }, { type: 'none' }));
    expect(status).toBe(503);
    return await receiver.printed(/Correct TEMPORAL_|TEMPORAL_TLS=true/);
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
