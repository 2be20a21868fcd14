import { sql } from 'drizzle-orm';
import { expect, inject, test } from 'vitest';
import { readWatch } from '../../db/read/health.ts';
import { runCommand } from '../support/command.ts';
import { forFile } from '../support/for-file.ts';
import { createNamespace } from '../support/namespace.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());
const env: Record<string, string> = {
  DATABASE_URL: warehouse.url,
  TEMPORAL_ADDRESS: inject('temporalAddress'),
  TEMPORAL_NAMESPACE: await createNamespace(),
  METERSYNC_ACTOR: 'ada',
};

const refuse = (id: string) =>
  warehouse.db.execute(sql`
    insert into metersync.rejected_records (resource, record_id, error, record)
    values ('documents', ${id}, 'a number beyond numeric', '{}')`);
const acknowledge = (...args: string[]) => runCommand(['alerts', 'acknowledge', ...args], { env });

interface Said {
  readonly verdict: { readonly findings: readonly { readonly alarm: string; readonly word: string }[] };
}

const wordOf = async (name: string) => {
  const { stdout } = await runCommand(['status', '--json'], { env });
  return (JSON.parse(stdout) as Said).verdict.findings.find(({ alarm }) => alarm === name)?.word;
};

test('acknowledges a finding with a note until its count rises', async () => {
  await refuse('one');
  expect(await wordOf('RecordsRefused')).toBe('Needs you');
  expect(await acknowledge('RecordsRefused', '--note', 'they correct it')).toMatchObject({
    status: 0,
    stdout: '1 finding acknowledged: they correct it',
  });
  expect(await wordOf('RecordsRefused')).toBe('In sync');
  expect((await runCommand(['status'], { env })).stdout).toMatch(
    /^ {2}Known: refused records: Postgres refuses 1 record\n.*\n.*\n {4}Acknowledged by ada at .*Z: they correct it$/m,
  );
  await acknowledge('RecordsRefused', '--undo');
  expect(await wordOf('RecordsRefused')).toBe('Needs you');
  await acknowledge('RecordsRefused');
  await acknowledge('RecordsRefused');
  expect((await readWatch(warehouse.db)).acknowledged).toMatchObject([
    { name: 'RecordsRefused', key: '', by: 'ada', note: null, counts: { records: 1 } },
  ]);
  await refuse('two');
  expect(await wordOf('RecordsRefused')).toBe('Needs you');
});

test('refuses to acknowledge a finding that does not exist, stops everything or needs nobody', async () => {
  expect(await acknowledge('EventsDead')).toMatchObject({
    status: 1,
    stderr: 'metersync: there is no finding EventsDead now: metersync status lists the findings',
  });
  expect(await acknowledge('WorkersGone')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('WorkersGone cannot be acknowledged, because it stops everything'),
  });
  await warehouse.db.execute(sql`
    insert into metersync.runs (run_id, company_id, resource, state, finished_at, rows_missed)
    values (gen_random_uuid(), gen_random_uuid(), 'documents', 'complete', now(), 58)`);
  await warehouse.db.execute(sql`
    insert into metersync.journal (id, type, kind, received_at, outcome)
    values ('later', 'document.updated.v2', 'document', now() + interval '1 second', 'applied')`);
  expect((await runCommand(['status'], { env })).stdout).toMatch(
    /^ {2}Note: missed changes: 58 changes in 1 company came without an event, .*\n {4}What to do: Nothing: /m,
  );
  expect(await acknowledge('ChangesMissed')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('ChangesMissed need not be acknowledged, because nobody has to act'),
  });
  expect(await acknowledge('Weather')).toMatchObject({ status: 2 });
});
