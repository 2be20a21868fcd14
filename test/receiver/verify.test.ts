import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import fc from 'fast-check';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { describe, expect, test } from 'vitest';
import {
  createSigningKey,
  fixedSecrets,
  type SecretSource,
  type SigningKey,
} from '../../receiver/secrets.ts';
import { createVerifier, headerFamilies, type RefusalReason, type Verified } from '../../receiver/verify.ts';
import { cases } from '../support/cases.ts';
import { anyCharacter } from '../support/text.ts';
import {
  frozenNow,
  golden,
  keyOf,
  macOf,
  oldSecret,
  otherSecret,
  signatureOf,
  signedHeaders,
} from './signing.ts';

/** Makes a function that verifies the headers and then the body. */
function verifier(secrets: SecretSource = fixedSecrets([golden.secret])) {
  const verify = createVerifier({
    secrets,
    families: headerFamilies(),
    now: () => frozenNow,
    toleranceSeconds: 300,
  });
  return (rawHeaders: readonly string[], body: Buffer): Verified | RefusalReason => {
    const claim = verify.headers(rawHeaders);
    return typeof claim === 'string' ? claim : verify.body(claim, body);
  };
}

/** Makes a key that counts its signatures. */
function countingKey(secret: string): SigningKey & { signed: number } {
  const key = createSigningKey(keyOf(secret));
  const counting = {
    signed: 0,
    sign: (...message: Parameters<SigningKey['sign']>) => {
      counting.signed += 1;
      return key.sign(...message);
    },
    couldHaveSigned: key.couldHaveSigned,
  };
  return counting;
}

describe('verify', () => {
  test('accepts any signed id, text and key, and returns the text', () => {
    const id = fc.stringMatching(/^[!-\-/-~]{1,200}$/);
    const text = fc.string({ unit: anyCharacter, maxLength: 200 });
    const key = fc.uint8Array({ minLength: 24, maxLength: 64 });
    fc.assert(
      fc.property(id, text, key, (id, body, bytes) => {
        const secret = `whsec_${Buffer.from(bytes).toString('base64')}`;
        const headers = signedHeaders({ id, body, key: Buffer.from(bytes) }).flat();
        const verdict = verifier(fixedSecrets([otherSecret, secret]))(headers, Buffer.from(body));
        expect(verdict).toMatchObject({ id, body });
      }),
    );
  });

  test('agrees with two libraries of the delivery provider', () => {
    const text = fc.string({ unit: anyCharacter, maxLength: 200 });
    const key = fc.uint8Array({ minLength: 24, maxLength: 80 });
    const seconds = fc.integer({ min: 1_000_000_000, max: 9_999_999_999 });
    fc.assert(
      fc.property(
        fc.stringMatching(/^[!-\-/-~]{1,200}$/),
        seconds,
        text,
        key,
        (id, timestamp, body, bytes) => {
          const secret = `whsec_${Buffer.from(bytes).toString('base64')}`;
          const ours = createSigningKey(Buffer.from(bytes)).sign(id, timestamp, body);
          for (const Library of [StandardWebhook, SvixWebhook]) {
            expect(new Library(secret).sign(id, new Date(timestamp * 1_000), body)).toBe(ours);
          }
        },
      ),
    );
  });

  test('verifies a large body like the library, and a large forgery never reaches the library', () => {
    const key = fc.uint8Array({ minLength: 24, maxLength: 64 });
    const large = fc
      .string({ unit: anyCharacter, minLength: 1, maxLength: 20 })
      .map((text) => text.repeat(30_000));
    fc.assert(
      fc.property(key, large, (bytes, body) => {
        const secret = `whsec_${Buffer.from(bytes).toString('base64')}`;
        const counting = countingKey(secret);
        const judge = verifier(() => [counting]);
        const signed = signedHeaders({ body, key: Buffer.from(bytes) }).flat();
        expect(judge(signed, Buffer.from(body))).toMatchObject({ body });
        expect(counting.signed).toBe(1);
        expect(judge(signed, Buffer.from(`${body} `))).toBe('signature-wrong');
        expect(counting.signed).toBe(1);
      }),
      { numRuns: cases(5, 20) },
    );
  });

  test('refuses a body with any changed byte', () => {
    const body = Buffer.from(golden.body);
    fc.assert(
      fc.property(fc.nat(body.length - 1), fc.integer({ min: 1, max: 127 }), (at, change) => {
        const changed = Buffer.from(body);
        changed[at] = (changed[at] ?? 0) ^ change;
        expect(verifier()(signedHeaders().flat(), changed)).toBeOneOf(['signature-wrong', 'body-not-utf8']);
      }),
    );
  });

  test('never throws, whatever the headers or the body', () => {
    const name = fc.constantFrom('webhook-id', 'Webhook-Timestamp', 'webhook-signature', 'svix-id', 'x');
    const value = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom(golden.id, golden.timestamp, golden.signature, 'v1,', 'v1'),
    );
    const headers = fc.array(fc.tuple(name, value), { maxLength: 6 }).map((pairs) => pairs.flat());
    fc.assert(
      fc.property(headers, fc.uint8Array(), (rawHeaders, body) => {
        expect(verifier()(rawHeaders, Buffer.from(body))).toBeTypeOf('string');
      }),
      { numRuns: cases(300, 1_000) },
    );
  });

  test.each([
    ` ${golden.timestamp}`,
    `${golden.timestamp} `,
    `${golden.timestamp}\n`,
    '１６１４２６５３３０',
  ])('refuses the timestamp "%s" even where HTTP would not have trimmed it', (timestamp) => {
    const verdict = verifier()(signedHeaders({ timestamp }).flat(), Buffer.from(golden.body));
    expect(verdict).toBe('timestamp-malformed');
  });

  test('takes one HMAC for each secret for any number of signatures, and none for refused headers', () => {
    const keys = [otherSecret, oldSecret].map(countingKey);
    const verify = verifier(() => keys);
    const signatures = Array.from({ length: 16 }, (_, n) => signatureOf({ key: Buffer.alloc(24, n + 50) }));
    const [id, timestamp] = signedHeaders() as [[string, string], [string, string]];
    const refuse = (headers: string[][]) => verify(headers.flat(), Buffer.from(golden.body));
    expect(refuse([id, timestamp, ['webhook-signature', signatures.join(' ')]])).toBe('signature-wrong');
    expect(keys.map(({ signed }) => signed)).toEqual([1, 1]);
    refuse([id, timestamp]);
    refuse([id, timestamp, ['webhook-signature', 'v1,nonsense']]);
    refuse([id, timestamp, ['webhook-signature', [...signatures, ...signatures].join(' ')]]);
    refuse([...signedHeaders({ timestamp: '1' })]);
    refuse([...signedHeaders(), ['content-encoding', 'gzip']]);
    expect(keys.map(({ signed }) => signed)).toEqual([1, 1]);
  });

  /** Lists the constant-time comparisons of a verification: both lengths and the first differing byte. */
  function comparisonsOf(judge: () => unknown): { lengths: number[]; differsAt: number }[] {
    const made: { lengths: number[]; differsAt: number }[] = [];
    const { timingSafeEqual } = crypto;
    crypto.timingSafeEqual = (a, b) => {
      const [left, right] = [a, b].map((side) => Buffer.from(side as Uint8Array)) as [Buffer, Buffer];
      made.push({
        lengths: [left.length, right.length],
        differsAt: left.findIndex((byte, n) => byte !== right[n]),
      });
      return timingSafeEqual(a, b);
    };
    syncBuiltinESMExports();
    try {
      judge();
    } finally {
      crypto.timingSafeEqual = timingSafeEqual;
      syncBuiltinESMExports();
    }
    return made;
  }

  test('compares a wrong signature completely, once for each secret, in constant time', () => {
    const keys = [golden.secret, otherSecret].map(countingKey);
    const verify = verifier(() => keys);
    const right = signatureOf({});
    for (let at = 0; at < 32; at += 1) {
      const mac = macOf({});
      mac[at] = (mac[at] ?? 0) ^ 1;
      const wrong = `v1,${mac.toString('base64')}`;
      const headers = [...signedHeaders().slice(0, 2), ['webhook-signature', wrong]].flat();
      const comparisons = comparisonsOf(() =>
        expect(verify(headers, Buffer.from(golden.body))).toBe('signature-wrong'),
      );
      const length = right.length;
      expect(comparisons.map(({ lengths }) => lengths)).toEqual([
        [length, length],
        [length, length],
      ]);
      expect(comparisons[0]?.differsAt).toBe([...right].findIndex((char, n) => char !== wrong[n]));
    }
    expect(keys.map(({ signed }) => signed)).toEqual([32, 32]);
  });

  test.each(['', ' ', 'web hook', 'web:hook', '-', 'ü'])(
    'refuses "%s" as the prefix of headers',
    (prefix) => {
      expect(() => headerFamilies(prefix)).toThrow('prefix');
    },
  );
});
