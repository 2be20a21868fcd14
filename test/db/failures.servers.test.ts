import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { mapFailures } from '../../activities/map-failures.ts';
import { createLog } from '../../app/process/log.ts';
import { sqlState, withoutStatement } from '../../db/connection/failures.ts';
import { rejection } from '../service/setup.ts';
import { activityEnvironment } from '../support/activities.ts';
import { runCommand } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const [warehouse, folder] = await Promise.all([forFile(createWarehouse()), forFile(temporaryFolder())]);

const secret = 'geheim-4711';
const attempts = {
  'a statement with a parameter': () =>
    warehouse.db.execute(sql`insert into metersync.gates (scope, message) values (${secret}, null)`),
  'a table that is not there': () =>
    warehouse.db.execute(sql`insert into metersync.nowhere values (${secret})`),
  'the same in a transaction': () =>
    warehouse.db.transaction(async (tx) => {
      await tx.execute(sql`insert into metersync.nowhere values (${secret})`);
    }),
};
const words = {
  'a statement with a parameter': /violates not-null constraint \(SQLSTATE 23502\)$/,
  'a table that is not there': /^Postgres: relation "metersync.nowhere" does not exist \(SQLSTATE 42P01\)$/,
  'the same in a transaction': /^Postgres: relation "metersync.nowhere" does not exist \(SQLSTATE 42P01\)$/,
};
const names = Object.keys(attempts) as (keyof typeof attempts)[];

/** Returns everything that an error and its causes print. */
function everything(error: unknown): string {
  const texts: string[] = [];
  for (let at = error; at instanceof Error; at = at.cause) {
    texts.push(String(at.stack), JSON.stringify(Object.fromEntries(Object.entries(at))));
  }
  return texts.join('\n');
}

describe.each(names)('a failure of %s', (name) => {
  test('keeps only the message and the code of Postgres', async () => {
    const error = await rejection(attempts[name]());
    expect(everything(error)).toContain(secret);
    const plain = withoutStatement(error) as Error;
    expect(plain.message).toMatch(words[name]);
    expect(sqlState(plain)).toBe(sqlState(error));
    expect(plain.stack).toMatch(/\n {4}at /);
    const wrapped = withoutStatement(new TypeError('above it', { cause: error })) as Error;
    expect(wrapped).toBeInstanceOf(TypeError);
    expect(wrapped.message).toBe('above it');
    for (const text of [everything(plain), everything(wrapped)])
      expect(text).not.toMatch(/geheim|Failed query/);
  });

  test('reaches Temporal with no more than the message and the code of Postgres', async () => {
    const activity = mapFailures(async () => void (await attempts[name]()));
    const error = await rejection(activityEnvironment().run(activity, undefined));
    expect(everything(error)).toContain('SQLSTATE');
    expect(everything(error)).not.toMatch(/geheim|Failed query/);
  });

  test('is logged with no more than the message and the code of Postgres', async () => {
    const file = join(folder.path, `${names.indexOf(name)}.log`);
    const log = createLog({ level: 'info', file });
    const error = await rejection(attempts[name]());
    log.warn({ err: error }, 'as it is');
    log.warn({ error: new Error('above it', { cause: error }) }, 'under another');
    const lines = await readFile(file, 'utf8');
    expect(lines.trim().split('\n')).toHaveLength(2);
    expect(lines).toContain('SQLSTATE');
    expect(lines).not.toMatch(/geheim|Failed query/);
  });
});

test('an error without a statement is not changed', () => {
  const error = new Error('no', { cause: new TypeError('because') });
  expect(withoutStatement(error)).toBe(error);
  expect(withoutStatement('text')).toBe('text');
});

test('a command prints the error in one line', async () => {
  await warehouse.db.execute(sql`drop table metersync.rejected_records cascade`);
  const env = { DATABASE_URL: warehouse.url, METERSYNC_DIR: folder.path };
  const { status, stdout, stderr } = await runCommand(['trace', 'document', randomUUID()], { env });
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toBe(
    'metersync: Postgres: relation "metersync.rejected_records" does not exist (SQLSTATE 42P01)',
  );
});
