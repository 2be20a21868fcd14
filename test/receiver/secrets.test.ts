import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fileSecrets, fixedSecrets, parseSecrets, SecretsError } from '../../receiver/secrets.ts';
import { RecordingLog } from './listening.ts';
import { golden, oldSecret, otherSecret, secretOf } from './signing.ts';

const at = Number(golden.timestamp);

const signs = (secret: string, source: ReturnType<typeof fixedSecrets>) => {
  const signature = fixedSecrets([secret])()[0]?.sign('msg', at, 'body');
  return source().some((key) => key.sign('msg', at, 'body') === signature);
};

/** Removes the access to a file, for root by becoming another user; returns a function that restores it. */
function withoutAccess(path: string): () => void {
  if (process.getuid?.() === 0) {
    process.seteuid?.(65_534);
    onTestFinished(() => process.seteuid?.(0));
    return () => process.seteuid?.(0);
  }
  chmodSync(path, 0);
  return () => chmodSync(path, 0o600);
}

describe('secrets', () => {
  const short = secretOf(Buffer.alloc(23, 1));
  const wrong = [
    '',
    'whsec_',
    'whsec_xyz!',
    'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    `WHSEC_${golden.secret.slice(6)}`,
    secretOf(Buffer.alloc(24)),
    short,
    `${golden.secret} `,
    golden.secret.replace('Mf', 'M-'),
    // 25 bytes whose last character has bits beyond the last byte.
    `${secretOf(Buffer.alloc(25, 1)).slice(0, -3)}B==`,
    secretOf(Buffer.alloc(32, 1)).replace(/=+$/, ''),
    `whpk_${Buffer.alloc(32).toString('base64')}`,
  ];

  test.each(wrong)('are refused by their position, without being quoted: "%s"', (secret) => {
    const attempt = () => parseSecrets([golden.secret, secret]);
    expect(attempt).toThrow(SecretsError);
    expect(attempt).toThrow(/^webhook secrets: secret 2 /);
    const key = secret.replace(/^wh[a-z]+_/, '').trim();
    if (key.length > 4) expect(attempt).not.toThrow(key);
  });

  test('are all listed at once if they are wrong', () => {
    let problems: readonly string[] = [];
    try {
      parseSecrets(['nonsense', golden.secret, short]);
    } catch (error) {
      problems = (error as SecretsError).problems;
    }
    expect(problems).toEqual([
      'secret 1 does not begin with whsec_',
      'secret 3 has 23 bytes, and at least 24 are needed',
    ]);
  });

  test('are refused if there is none, or more than can be used', () => {
    expect(() => parseSecrets([])).toThrow('none is configured');
    const many = Array.from({ length: 17 }, (_, n) => secretOf(Buffer.alloc(24, n + 1)));
    expect(() => parseSecrets(many)).toThrow('at most 16');
    expect(parseSecrets(many.slice(1))).toHaveLength(16);
  });

  test('are accepted if they are any nonzero key of 24 bytes or more, and count once if they are repeated', () => {
    const keys = fc
      .uint8Array({ minLength: 24, maxLength: 80 })
      .filter((key) => key.some((byte) => byte > 0));
    fc.assert(
      fc.property(keys, (key) => {
        const secret = secretOf(Buffer.from(key));
        expect(parseSecrets([secret, secret])).toHaveLength(1);
      }),
    );
  });
});

describe('secrets in a file', () => {
  function inFile(text: string, mode = 0o600) {
    const folder = mkdtempSync(join(tmpdir(), 'secrets-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'secrets');
    writeFileSync(path, text);
    chmodSync(path, mode);
    const log = new RecordingLog();
    let time = 0;
    const source = fileSecrets({ path, now: () => time, log });
    const later = (ms: number) => {
      time += ms;
      return source;
    };
    return { path, folder, log, source, later };
  }

  test('are one on each line, between blank lines and comments', () => {
    const { source } = inFile(`# current\r\n${golden.secret}\r\n\n  ${oldSecret}  \n#${otherSecret}`);
    expect(source()).toHaveLength(2);
    expect(signs(golden.secret, source) && signs(oldSecret, source)).toBe(true);
  });

  test('must be right when they are first read', () => {
    expect(() => inFile('# nothing yet\n')).toThrow('none is configured');
    const absent = () => fileSecrets({ path: '/nowhere/secrets', now: () => 0, log: new RecordingLog() });
    expect(absent).toThrow(SecretsError);
    expect(absent).toThrow('ENOENT');
  });

  test('are refused from a pipe without waiting for its writer, and stay valid if a pipe replaces their file', () => {
    const { path, source, later, log } = inFile(golden.secret);
    rmSync(path);
    execFileSync('mkfifo', ['-m', '600', path]);
    expect(() => fileSecrets({ path, now: () => 0, log })).toThrow(
      `${path} is a pipe, which is not accepted as a secrets file`,
    );
    later(1_000);
    expect(signs(golden.secret, source)).toBe(true);
    expect(source.valid).toBe(false);
  });

  test('are valid a second after a rotation is written, and are not read before that', () => {
    const { path, later, log } = inFile(golden.secret);
    writeFileSync(path, `${otherSecret}\n${golden.secret}\n`);
    expect(signs(otherSecret, later(999))).toBe(false);
    expect(signs(otherSecret, later(1))).toBe(true);
    expect(log.lines).toMatchObject([{ level: 'info', fields: { count: 2 } }]);
    writeFileSync(path, otherSecret);
    expect(signs(golden.secret, later(1_000))).toBe(false);
  });

  test('are read again if a link is swapped', () => {
    const { path, folder, later } = inFile(golden.secret);
    writeFileSync(join(folder, 'next'), otherSecret, { mode: 0o600 });
    symlinkSync(join(folder, 'next'), join(folder, 'link'));
    renameSync(join(folder, 'link'), path);
    expect(signs(otherSecret, later(1_000))).toBe(true);
  });

  test.each([0o620, 0o602, 0o666])('are refused from a file of mode %o, which others can write', (mode) => {
    expect(() => inFile(golden.secret, mode)).toThrow(SecretsError);
    expect(() => inFile(golden.secret, mode)).toThrow(/written by other users .*: chmod 600/);
  });

  test('are not read again from a file that others can write until this is fixed', () => {
    const { path, later, log } = inFile(golden.secret);
    writeFileSync(path, otherSecret);
    chmodSync(path, 0o666);
    expect(signs(otherSecret, later(1_000))).toBe(false);
    expect(signs(golden.secret, later(1_000))).toBe(true);
    expect(log.lines).toMatchObject([
      { level: 'error', fields: { problem: expect.stringMatching(/written/) } },
    ]);
    chmodSync(path, 0o600);
    expect(signs(otherSecret, later(1_000))).toBe(true);
    expect(signs(golden.secret, later(1_000))).toBe(false);
  });

  test('lead to a warning each time that they are read from a file that everybody can read', () => {
    const { path, later, log } = inFile(golden.secret, 0o644);
    const warning = { level: 'warn', message: expect.stringMatching(/read by every user/) };
    expect(log.lines).toMatchObject([warning]);
    writeFileSync(path, otherSecret);
    later(1_000)();
    expect(log.lines).toMatchObject([warning, warning, { level: 'info' }]);
    expect(inFile(golden.secret, 0o640).log.lines).toEqual([]);
  });

  test('are all revoked by the word none, but not by an emptied file, which may be half written', () => {
    const { path, later, log } = inFile(golden.secret);
    writeFileSync(path, '');
    expect(signs(golden.secret, later(1_000))).toBe(true);
    expect(log.lines.at(-1)).toMatchObject({
      level: 'error',
      message: expect.stringMatching(/the word none$/),
    });
    writeFileSync(path, '# it leaked\nnone\n');
    expect(later(1_000)()).toEqual([]);
    expect(log.lines).toContainEqual(expect.objectContaining({ level: 'warn' }));
    writeFileSync(path, `none\n${otherSecret}\n`);
    expect(later(1_000)()).toEqual([]);
    writeFileSync(path, otherSecret);
    expect(signs(otherSecret, later(1_000))).toBe(true);
    expect(inFile('none').source()).toEqual([]);
  });

  test('stay valid if a later version is wrong or missing, which is logged once', () => {
    const { path, later, log } = inFile(golden.secret);
    writeFileSync(path, `${otherSecret}\nwhsec_xyz!\n`);
    for (let n = 0; n < 3; n += 1) expect(signs(golden.secret, later(1_000))).toBe(true);
    expect(log.lines).toMatchObject([
      { level: 'error', fields: { problem: expect.stringMatching(/^webhook secrets: secret 2 /) } },
    ]);
    expect(JSON.stringify(log.lines)).not.toContain('xyz!');
    unlinkSync(path);
    for (let n = 0; n < 3; n += 1) expect(signs(golden.secret, later(1_000))).toBe(true);
    expect(log.lines).toHaveLength(2);
    writeFileSync(path, otherSecret);
    expect(signs(otherSecret, later(1_000))).toBe(true);
  });

  test('are read as soon as a file can be read again that could not be read for a moment', () => {
    const { path, folder, later, log } = inFile(golden.secret);
    chmodSync(folder, 0o755);
    writeFileSync(path, otherSecret);
    const restore = withoutAccess(path);
    for (let n = 0; n < 3; n += 1) expect(signs(golden.secret, later(1_000))).toBe(true);
    expect(log.lines).toMatchObject([
      { level: 'error', fields: { problem: expect.stringMatching(/^EACCES/) } },
    ]);
    restore();
    expect(signs(otherSecret, later(1_000))).toBe(true);
    expect(log.lines).toHaveLength(2);
  });
});
