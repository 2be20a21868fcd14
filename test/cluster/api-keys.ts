import { generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Makes API keys. They are JSON Web Tokens, and Temporal reads their public key over HTTP. */
export interface KeyIssuer {
  readonly jwksUrl: string;
  /** Creates a key with permissions such as `namespace:write`, valid until a Unix time in seconds. */
  issue(permissions: readonly string[], expiresAt: number): string;
  close(): void;
}

const keyId = 'ours';

export async function startKeyIssuer(): Promise<KeyIssuer> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: 'RS256', use: 'sig' };
  const server = createServer((_, answer) => {
    answer.setHeader('content-type', 'application/json');
    answer.end(JSON.stringify({ keys: [jwk] }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    jwksUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`,
    issue: (permissions, expiresAt) => {
      const header = { alg: 'RS256', kid: keyId, typ: 'JWT' };
      const signed = [header, { sub: 'metersync', permissions, exp: expiresAt }]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.');
      return `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`;
    },
    close: () => void server.close(),
  };
}
