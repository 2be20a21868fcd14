import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openPasswords, passwordLine } from '../../console/passwords.ts';
import { consolePolicy } from '../../contract/retry-policy.ts';
import { temporaryFolder } from '../support/folder.ts';

let otto: string;
let vera: string;
beforeAll(async () => {
  [otto, vera] = await Promise.all([
    passwordLine('otto', 'operator', 'a long password'),
    passwordLine('vera', 'viewer', 'another password'),
  ]);
});

/** A file of passwords whose contents and clock the test sets, and whose readings it can hold. */
function editable(text: string) {
  const errors: string[] = [];
  const log = { info: () => {}, error: (message: string) => void errors.push(message) };
  const held: (() => void)[] = [];
  const state = { text, version: 1, at: 0, holds: false, unreadable: false };
  const file = {
    version: async () => String(state.version),
    text: async () => {
      const { text: now } = state;
      if (state.unreadable) throw Object.assign(new Error('a bad sector'), { code: 'EIO' });
      if (state.holds) await new Promise<void>((release) => held.push(release));
      return now;
    },
  };
  const edit = (next: string) => {
    state.text = next;
    state.version += 1;
    state.at += consolePolicy.passwordsCheckMs;
  };
  return { state, errors, held, edit, open: () => openPasswords('people', log, () => state.at, file) };
}

describe('a user who is removed from the password file can no longer sign in', () => {
  test('after a check of the password that ended while the new file was being read', async () => {
    const { state, held, edit, open } = editable(`${otto}\n${vera}`);
    const passwords = await open();
    const before = passwords.check('otto', 'a long password');
    edit(vera);
    state.holds = true;
    const reading = passwords.check('vera', 'another password');
    expect(await before).toMatchObject({ name: 'otto' });
    for (const release of held) release();
    expect(await reading).toMatchObject({ name: 'vera' });
    expect(await passwords.check('otto', 'a long password')).toBeUndefined();
  });

  test('when the file changes while it is being opened', async () => {
    const { state, held, edit, open } = editable(`${otto}\n${vera}`);
    state.holds = true;
    const opening = open();
    await expect.poll(() => held.length).toBe(1);
    edit(vera);
    state.holds = false;
    held[0]?.();
    const passwords = await opening;
    state.at += consolePolicy.passwordsCheckMs;
    expect(await passwords.check('otto', 'a long password')).toBeUndefined();
  });

  test('when an older reading of the file ends after a newer one', async () => {
    const { state, held, edit, open } = editable(vera);
    const passwords = await open();
    edit(`${otto}\n${vera}`);
    state.holds = true;
    const slow = passwords.check('vera', 'another password');
    await expect.poll(() => held.length).toBe(1);
    edit(vera);
    state.holds = false;
    expect(await passwords.check('otto', 'a long password')).toBeUndefined();
    held[0]?.();
    await slow;
    expect(await passwords.check('otto', 'a long password')).toBeUndefined();
  });
});

test('a file that could not be read for a moment lets its users in once it can be read, even if it is unchanged', async () => {
  const { state, errors, edit, open } = editable(vera);
  const passwords = await open();
  edit(`${otto}\n${vera}`);
  state.unreadable = true;
  expect(await passwords.check('vera', 'another password')).toBeUndefined();
  state.at += consolePolicy.passwordsCheckMs;
  expect(await passwords.check('vera', 'another password')).toBeUndefined();
  expect(errors).toEqual([expect.stringContaining('cannot be read (EIO)')]);
  state.unreadable = false;
  state.at += consolePolicy.passwordsCheckMs;
  expect(await passwords.check('otto', 'a long password')).toMatchObject({ name: 'otto' });
});

test('a pipe is not accepted as a password file, and nobody waits for its writer', async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  const path = join(folder.path, 'people');
  execFileSync('mkfifo', [path]);
  const log = { info: () => {}, error: () => {} };
  await expect(openPasswords(path, log)).rejects.toThrow(`${path}: it is a pipe or a device, not a file`);
});
