import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { pino } from 'pino';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { whenThere } from '../../app/process/running.ts';
import { awaitTemporal } from '../../app/temporal/arrival.ts';
import { connectClient, lazyClient } from '../../app/temporal/client.ts';
import { connectOptions } from '../../app/temporal/place.ts';
import { temporalAnswers } from '../../embedded/temporal.ts';
import { makeCertificate } from '../support/certificate.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { until } from '../support/poll.ts';

const folder = await forFile(temporaryFolder());
const ours = await makeCertificate(folder.path, 'ours', 'DNS:ours');

const withVariables = (variables: Readonly<Record<string, string>>) => {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  return connectOptions({}).connectionOptions;
};

test('an empty variable counts as unset: an empty API key does not turn TLS on', () => {
  const options = withVariables({
    TEMPORAL_API_KEY: '',
    TEMPORAL_TLS: '',
    TEMPORAL_TLS_CLIENT_CERT_PATH: '',
    TEMPORAL_TLS_CLIENT_KEY_PATH: '',
  });
  expect(options).toMatchObject({ apiKey: undefined, tls: undefined });
});

test.each(['geheim\r', 'geheim ', '\ufeffgeheim', 'geheimé'])(
  'an API key that no header can carry is an error that does not quote the key: %j',
  (key) => {
    expect(() => withVariables({ TEMPORAL_API_KEY: key })).toThrow(
      `${together}: the API key (TEMPORAL_API_KEY) has to be printable text without spaces`,
    );
  },
);

test.each(['geheim\r', 'geheim\tx', 'geheimé'])(
  'a request header that cannot be sent is an error that does not quote the header: %j',
  (value) => {
    expect(() => withVariables({ TEMPORAL_GRPC_META_X_TOKEN: value })).toThrow(
      `${together}: the header x-token (TEMPORAL_GRPC_META_…) has to be printable ASCII text`,
    );
  },
);

test('a client certificate is sent with its key', () => {
  const { tls } = withVariables({
    TEMPORAL_TLS_CLIENT_CERT_PATH: ours.file,
    TEMPORAL_TLS_CLIENT_KEY_PATH: ours.keyFile,
  });
  expect(tls).toMatchObject({ clientCertPair: { crt: expect.any(Uint8Array), key: expect.any(Uint8Array) } });
});

const together = 'TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE and TEMPORAL_TLS_… do not fit together';

function recorded() {
  const lines: { msg: string; reason?: string; level: number }[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  return { lines, log };
}
const address = inject('temporalAddress');
/** Lets the settings name a server, as they do unless the embedded one is used. */
function inSettings(server: string): void {
  vi.stubEnv('TEMPORAL_ADDRESS', server);
  onTestFinished(() => void vi.unstubAllEnvs());
}
const waits = { everyMs: 5, refusedForMs: 100 };

test('a reachable Temporal ends the wait at once, and nothing is logged', async () => {
  const { lines, log } = recorded();
  const wait = await awaitTemporal({ address, namespace: 'default' }, log, waits);
  expect(wait.isThere()).toBe(true);
  await wait.arrived;
  expect(lines).toEqual([]);
});

test('reaches Temporal directly, even if a proxy is set', async () => {
  vi.stubEnv('https_proxy', 'http://127.0.0.1:9');
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const connected of [await connectClient({ address, namespace: 'default' }), lazyClient({ address })]) {
    await connected.client.workflowService.getSystemInfo({});
    await connected.close();
  }
  expect((await awaitTemporal({ address, namespace: 'default' }, recorded().log, waits)).isThere()).toBe(
    true,
  );
  expect(await temporalAnswers({ address })).toBe(true);
});

test('logs an unknown namespace at once, and ends if nobody creates it', async () => {
  const { lines, log } = recorded();
  inSettings(address);
  const wait = await awaitTemporal({ namespace: 'nowhere' }, log, waits);
  expect(wait.isThere()).toBe(false);
  await expect(wait.arrived).rejects.toThrow(
    /^Temporal at \S+ \(TEMPORAL_ADDRESS\) has no namespace nowhere: /,
  );
  expect(lines.map(({ level }) => level)).toEqual([50]);
});

test('ends if a connection cannot be secured', async () => {
  vi.stubEnv('TEMPORAL_TLS', 'true');
  inSettings(address.replace('127.0.0.1', 'localhost'));
  const wait = await awaitTemporal({}, recorded().log, waits);
  await expect(wait.arrived).rejects.toThrow(/^TLS to Temporal at .* fails: .*SSL/);
});

test('says in one line that Temporal cannot be reached and what to try, starts no part, and can be stopped', async () => {
  const { lines, log } = recorded();
  let looks = 0;
  const hangsUp = createServer((socket) => {
    looks += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void hangsUp.close());
  await once(hangsUp, 'listening');
  const place = `127.0.0.1:${(hangsUp.address() as AddressInfo).port}`;
  inSettings(place);
  const wait = await awaitTemporal({}, log, { ...waits, refusedForMs: 0 });
  let begun = false;
  const part = whenThere(wait, async () => {
    begun = true;
    return { finished: Promise.resolve(), stop: async () => {} };
  });
  await until('it was looked for some more times', () => looks >= 5);
  await part.stop();
  expect({ begun, there: wait.isThere() }).toEqual({ begun: false, there: false });
  const words = `Temporal at ${place} (TEMPORAL_ADDRESS) does not answer: waiting for it`;
  expect(lines).toMatchObject([
    {
      level: 40,
      msg: expect.stringContaining(words),
      reason: 'Failed to connect: if the server requires TLS, set TEMPORAL_TLS=true',
    },
  ]);
});
