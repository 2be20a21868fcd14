import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isSecretName, mayNameSecret } from '../../contract/without-secrets.ts';
import { cases } from '../support/cases.ts';

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
