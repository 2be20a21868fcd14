import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { connectOptions } from '../../app/temporal/place.ts';
import { makeCertificate } from '../support/certificate.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';

const folder = await forFile(temporaryFolder());
const [ours, another] = await Promise.all([
  makeCertificate(folder.path, 'ours', 'DNS:ours'),
  makeCertificate(folder.path, 'another', 'DNS:another'),
]);

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

test('names the key of another certificate, or a file without a certificate, in the error', async () => {
  const clientCertificate = `${together}: the client certificate and its key cannot be used`;
  expect(() =>
    withVariables({
      TEMPORAL_TLS_CLIENT_CERT_PATH: ours.file,
      TEMPORAL_TLS_CLIENT_KEY_PATH: another.keyFile,
    }),
  ).toThrow(clientCertificate);
  const text = join(folder.path, 'text');
  await writeFile(text, 'no certificate');
  expect(() => withVariables({ TEMPORAL_TLS_CLIENT_CERT_PATH: text })).toThrow(clientCertificate);
});
