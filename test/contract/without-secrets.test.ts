import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonStopsAt } from '../../contract/json.ts';
import { isSecretName, mayNameSecret, withoutSecrets } from '../../contract/without-secrets.ts';
import { cases } from '../support/cases.ts';
import { nested } from '../support/nested.ts';
import { anyCharacter } from '../support/text.ts';

describe('a JSON text', () => {
  test.each([
    ['{"password":"x","a":1}', '{"a":1}'],
    ['{"a":1, "Password" : "x" , "b":2}', '{"a":1, "b":2}'],
    ['{"a":1,"token":"x","apiKey":"y","b":[{"secret":1,"c":2}]}', '{"a":1,"b":[{"c":2}]}'],
    ['{"credentials":{"user":{"deep":["x",{"y":1}]}},"a":1.10}', '{"a":1.10}'],
    ['{"pass\\u0077ord":"x","a":1}', '{"a":1}'],
    ['{"\\u0070\\u0061\\u0073\\u0073\\u0077\\u006F\\u0072\\u0064":"x"}', '{}'],
    ['{"password":"a\\"b\\\\","a":"\\\\\\""}', '{"a":"\\\\\\""}'],
    ['{"password":"x","password":null,"password":"y"}', '{"password":null}'],
    ['{"note":"a\\u0000b","token":"x"}', '{"note":"a\\u0000b"}'],
    ['{"__proto__":{"token":"x"}}', '{"__proto__":{}}'],
    ['{"session"\t\t\t\t\t\t\t\t\t\t:"x","Authorization":"Bearer y","bearer":"z"}', '{}'],
    ['{"Authorization ":"x","authorization:":"y"," pw":"z","a":1}', '{"a":1}'],
    ['{"authorization\\t":"x","jwt\\u200b":"y","accessCode":"z","a":1}', '{"a":1}'],
    ['\ufeff{"password":"x","a":1}', '\ufeff{"a":1}'],
  ])('%s becomes %s', (text, kept) => {
    expect(withoutSecrets(text)).toBe(kept);
  });

  test.each([
    '{"password":null,"hasPassword":true,"tokens":false}',
    '{"passwordUpdatedAt":"2026-01-01T00:00:00.123456","credentialsStatus":"INVALID","tokenCount":3}',
    '{"status":"MFA_TOKEN_EXPIRED","note":"the password: hunter2","protectedChanges":["password","token"]}',
    '{ "usage" : 12345678901234567890.0100 , "e":1E+5,\n"secretary":"Ann"}',
    '{"authorization":null,"type":"authorization","of":"session","authorizationStatus":"SIGNED"}',
    '"token"',
    ' ["password","x"] ',
  ])('%s stays unchanged', (text) => {
    expect(withoutSecrets(text)).toBe(text);
  });

  const name = fc.oneof(
    fc.constantFrom('password', 'Api_Key', 'tokens', 'a', 'tokenCount', 'credentials', 'id'),
    fc.string({ maxLength: 6 }),
  );
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, depthSize: 'medium' },
      fc.oneof(
        fc.string({ unit: anyCharacter }),
        fc.constantFrom('password', 'MFA_TOKEN_EXPIRED', 'token": "', 'api key: x', 'secret\\'),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.boolean(),
        fc.constant(null),
      ),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(name, tie('value'), { maxKeys: 5 }),
    ),
  }));
  const printed = fc
    .tuple(value, fc.constantFrom(undefined, 1, '\t', ' \r\n'))
    .map(([of, indent]) => JSON.stringify(of, null, indent));

  test('loses its secrets and nothing else, at any depth', () => {
    fc.assert(
      fc.property(printed, (text) => {
        expect(JSON.parse(withoutSecrets(text))).toEqual(JSON.parse(text, withoutSecretMembers));
      }),
      { numRuns: cases(300, 1_000) },
    );
  });

  test('reveals no secret when it is cut short or changed anywhere', () => {
    const hidden = fc.constantFrom(
      '{"password":"hush"}',
      '{"a":1,"credentials":{"b":["hush"]}}',
      '[{"Pin":"hush"},2]',
    );
    fc.assert(
      fc.property(
        hidden,
        fc.nat(40),
        fc.constantFrom('', '\0', '}', ',', '"'),
        fc.boolean(),
        (text, at, extra, cut) => {
          const broken = text.slice(0, at) + (cut ? '' : extra + text.slice(at));
          // An insertion into a name makes it another name, which is not secret.
          fc.pre(cut || /(?:password|credentials|Pin)":/.test(broken));
          expect(withoutSecrets(broken)).not.toMatch(/hus|ush/);
        },
      ),
      { numRuns: cases(500, 2_000) },
    );
  });

  test('is processed only as far as it is JSON', () => {
    const wrong = fc.tuple(
      printed,
      fc.nat(),
      fc.constantFrom('', '"', '{', '}', ']', ',', ':', '1', 'true', '-', '\\'),
      fc.nat(2),
    );
    fc.assert(
      fc.property(wrong, ([text, at, extra, without]) => {
        const place = at % (text.length + 1);
        const changed = text.slice(0, place) + extra + text.slice(place + without);
        if (isJson(changed)) expect(jsonStopsAt(changed)).toBe(changed.length);
        else expect(jsonStopsAt(changed.slice(0, jsonStopsAt(changed)))).toBe(jsonStopsAt(changed));
      }),
      { numRuns: cases(500, 2_000) },
    );
    expect(['<html>', '{"a":1}}', '{"a":xyz}', '[1,]', '{"a" 1}', '[1', ''].map(jsonStopsAt)).toEqual([
      0, 7, 5, 3, 1, 2, 0,
    ]);
  });
});

test('reads a text of 100,000 levels without recursion, and finds a secret in it', () => {
  for (const text of Object.values(nested)) expect(jsonStopsAt(text)).toBe(text.length);
  const deep = `${'{"a":['.repeat(50_000)}{"token":"hush"}${']}'.repeat(50_000)}`;
  expect(withoutSecrets(deep)).toBe(deep.replace('"token":"hush"', ''));
  expect(withoutSecrets(`{"credentials":${nested.array}}`)).toBe('{}');
});

test('cuts a text that nests deeper than a million levels, and any secret below them', () => {
  const endless = '['.repeat(2_000_000);
  expect(withoutSecrets(`${endless}{"token":"hush"}`)).toHaveLength(1_000_000);
  expect(withoutSecrets(`{"token":${endless}"hush"`)).toBe('{');
});

describe('text that is not JSON', () => {
  test.each([
    ['{"connections":[{"id":1,"password":"hunt', '{"connections":[{"id":1'],
    ['{"id":1,"credentials":{"user":"a","pw":"b"}', '{"id":1'],
    ['{"password":hunter2}', '{'],
    ['password=hunter2&a=b', 'password=…&a=b'],
    ["{'apiKey': 'abc', 'a': 1}", "{'apiKey': …, 'a': 1}"],
    ['X-Auth-Token: Bearer abc.def\nHost: x', 'X-Auth-Token: …\nHost: x'],
    ['{"id":1}\n{"id":2,"login":{"password":"x"}}', '{"id":1}\n{"id":2,"login":{"password":…}}'],
    ['oops {"credentials":{"a":{"b":"x"}}} and more', 'oops {"credentials":…'],
    ['"{\\"password\\":\\"x\\",\\"a\\":1}', '"{\\"password\\":…,\\"a\\":1}'],
    ['\0\0{"token":"x"}', '\0\0{"token":…}'],
    [
      'oops {"Authorization ":"x","creds:":"y","loginKey":"z"}',
      'oops {"Authorization ":…,"creds:":…,"loginKey":…}',
    ],
  ])('%j becomes %j', (text, kept) => {
    expect(withoutSecrets(text)).toBe(kept);
  });

  test.each([
    '<p>Invalid token</p>',
    'the password is wrong',
    'tokenCount: 3',
    'token: null',
    'secretary = Ann',
  ])('%s stays unchanged', (text) => {
    expect(withoutSecrets(text)).toBe(text);
  });

  test.each([
    'token'.repeat(200_000),
    `token:"${'\\n'.repeat(500_000)}`,
    '"'.repeat(1_000_000).concat('token'),
    `${'\\'.repeat(1_000_000)}"token":`,
    '{"password":'.repeat(80_000),
    '[{"token"'.repeat(100_000),
    'token: bearer '.repeat(70_000),
    `x ${'token\\"'.repeat(140_000)}`,
  ])('is read to its end if it has a megabyte, with any repetition (case %#)', (text) => {
    expect(withoutSecrets(text).length).toBeLessThanOrEqual(text.length + 1);
  });
});

function withoutSecretMembers(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const kept = Object.entries(value).filter(
    ([name, inner]) => inner === null || typeof inner === 'boolean' || !isSecretName(name),
  );
  return Object.fromEntries(kept);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const words = (text: string) => text.split(/,\s+/);

describe('a name', () => {
  test.each(
    words(`password, Password, PASSWORD, userPassword, password_1, login.password, pass-word, passwd, pwd,
      passphrase, passcode, passkey, pass, passwordHash, newPasswords, passwordHint,
      secret, connectionMagicLinkSecret, clientSecret, SECRET_VALUE, secrets, connectionMagicLink, magic_link_url,
      token, accessToken, refresh_token, idTokens, X-Auth-Token, tokenValue, mfaToken,
      credential, credentials, loginCredentials, apiKey, api_key, X-API-Key, apikey, privateKey, access key,
      securityQuestions, security_answer, securityAnswer2, mfaCode, smsCode, oneTimeCode, backup_codes,
      pin, PIN, accountPin, otp, OTP, totp, sessionCookie, Set-Cookie,
      authorization, Authorization, Proxy-Authorization, authorization_header, auth, basicAuth,
      bearer, bearerAuth, BEARER, jwt, session, sessionId, SESSION_ID, login-session,
      userSessionId, JSESSIONID, PHPSESSID, authentication, http-authentication,
      accessCode, ACCESS_CODE, loginKey, login-key, pw, userPw, PW, creds, portalCreds,
      pwHash, pwdHash, pin_hash, otpauth, otpauthUrl`),
  )('%s is a secret', (name) => {
    expect(isSecretName(name)).toBe(true);
  });

  test.each([
    'Authorization ',
    ' authorization',
    'authorization:',
    'pw: ',
    '"pin"',
    '_session_',
    'auth\t',
    '\u00a0jwt\u200b',
  ])('%j is a secret, whatever surrounds it', (name) => {
    expect(isSecretName(name)).toBe(true);
  });

  test.each([
    '',
    'authorization: status',
    'number: ',
    ...words(`passwordUpdatedAt, PASSWORD_UPDATED_AT, password-expires, credentialsStatus, credentialStatus, tokenType,
      tokenCount, passwordAttempts, tokenExpiry, api_key_created, secretVersion, passwordRequired,
      secretary, secretariatName, keyAccountManager, accountNumber, authorizationStatus, key,
      username, login, spin, shippingPin2, passThroughCharges, securityDeposit, zipCode, code, rateCode,
      authorizationDate, customerAuthorization, letter_of_authorization, authorized, author,
      costBearer, bearerName, chargingSession, chargingSessionId, sessions, sessionEnergy, signature, sid, hash, fileHash,
      authenticationStatus, accessCodeStatus, kpw2, upwards, incredible,
      public_key_figures, compassPoint, bypass, protectedChanges, answer, link, id`),
  ])('%s is not a secret', (name) => {
    expect(isSecretName(name)).toBe(false);
  });

  test('that is secret is found by the hint in any text that contains it', () => {
    const parts = words(
      'access, key, token, Count, pin, OTP, auth, header, session, id, jwt, security, Answer, pass, word, At, x, ", \\, pw, hash, creds, code, login, entication, \u00a0',
    );
    const names = fc.array(
      fc.tuple(fc.constantFrom('', '_', '-', ' ', '.', ':', '\t'), fc.constantFrom(...parts)),
      {
        maxLength: 5,
      },
    );
    fc.assert(
      fc.property(names, fc.boolean(), (drawn, upper) => {
        const name = drawn.flat().join('');
        const cased = upper ? name.toUpperCase() : name;
        fc.pre(isSecretName(cased));
        expect(mayNameSecret(`{"a":1,${JSON.stringify(cased)} : "x"}`)).toBe(true);
      }),
      { numRuns: cases(500, 2_000) },
    );
  });
});
