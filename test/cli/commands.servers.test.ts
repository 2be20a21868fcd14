import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { connectWarehouse } from '../../db/connection/connect.ts';
import { listOperations } from '../../db/operations.ts';
import { runCommand } from '../support/command.ts';
import { type RunningCommand, startCommand, withoutThreads } from '../support/command-process.ts';
import { createDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { createNamespace } from '../support/namespace.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import { startSandbox } from '../support/sandbox.ts';

/** Runs the commands on one deployment, in the order in which a user would run them. */
const [service, database, namespace, port, folder] = await Promise.all([
  forFile(startSandbox({ companies: 2, documents: 10, intervalDays: 1 })),
  forFile(createDatabase('cli')),
  createNamespace(),
  freePort(),
  forFile(temporaryFolder()),
]);
const warehouse = await forFile(
  connectWarehouse({ url: database.url, timeZone: 'UTC', max: 2, onError: () => {} }),
);
const receiver = `http://127.0.0.1:${port}`;
const env: Record<string, string> = {
  DATABASE_URL: database.url,
  METERSYNC_DIR: folder.path,
  RECEIVER_PORT: String(port),
  TEMPORAL_ADDRESS: inject('temporalAddress'),
  TEMPORAL_NAMESPACE: namespace,
  SERVICE_URL: service.apiUrl,
  SERVICE_API_KEY: service.apiKey,
  BACKFILL_CRON: 'none',
  RECONCILE_EVERY: 'none',
  WEBHOOK_SECRETS: await service.register(`${receiver}/webhooks`),
};

const metersync = (...args: string[]) => runCommand(args, { cwd: folder.path, env });

/** Runs a command with `--json`, which has to print one line of JSON and nothing else. */
async function json(...args: string[]): Promise<{ status: number | null; said: Record<string, unknown> }> {
  const { status, stdout, stderr } = await metersync(...args, '--json');
  expect(stdout.split('\n'), stderr).toHaveLength(1);
  return { status, said: JSON.parse(stdout) };
}

const rows = async (query: ReturnType<typeof sql>) =>
  (await warehouse.db.execute<Record<string, string>>(query)).rows;
const count = async (table: string) =>
  Number((await rows(sql`select count(*) as n from ${sql.raw(table)}`))[0]?.n);

const anyNumber = expect.any(Number);

describe('before anything runs', () => {
  test('every command on a warehouse without tables says what to do', async () => {
    const { status, stdout } = await metersync('status');
    expect(status).toBe(1);
    expect(stdout).toMatch(
      /schema: the warehouse lacks \d+ migrations?\n +What to do: Run metersync migrate first\.$/m,
    );
    const { stderr } = await metersync('report');
    expect(stderr).toMatch(/^metersync: the warehouse lacks \d+ migrations?: run metersync migrate first$/);
  });

  test('migrate creates the tables that its plan shows, and has nothing to do a second time', async () => {
    const plan = await metersync('migrate', '--plan');
    expect(plan).toMatchObject({ status: 0, stderr: '' });
    expect(plan.stdout).toMatch(
      /^\d+ migrations, \d+ statements\.\nThe warehouse is empty\.\n\n(--.*\n)*create schema utility;/,
    );
    expect(await metersync('migrate')).toMatchObject({
      status: 0,
      stderr: '',
      stdout: expect.stringMatching(/^Applied [1-9]\d* migrations?\.$/),
    });
    expect(await metersync('migrate')).toMatchObject({
      status: 0,
      stderr: '',
      stdout: 'The warehouse is up to date.',
    });
    const { stdout } = await metersync('migrate', '--plan', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ statements: [] });
  });

  test('status of an empty warehouse without workers says what to do first', async () => {
    const { status, stdout } = await metersync('status', '--exit-code');
    expect(status).toBe(4);
    expect(stdout).toMatch(/^Broken: no worker takes events, and 1 more$/m);
    expect(stdout).toContain('What to do: Run metersync backfill all.');
  });

  test('backfill all without a worker starts nothing and says why', async () => {
    const { status, stdout, stderr } = await metersync('backfill', 'all', '--follow');
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toBe('metersync: no worker is running: run metersync start (or metersync worker) first');
    expect(await count('metersync.runs')).toBe(0);
  });

  test('audit of an empty warehouse finds everything missing and ends with status 1', async () => {
    const { status, said } = await json('audit', '--settle', '0s');
    expect(status).toBe(1);
    expect(said).toMatchObject({
      resources: { companies: { compared: 2, missing: 2 }, documents: { compared: 20, missing: 20 } },
    });
  });
});

describe('while metersync start runs', () => {
  let start: RunningCommand;
  beforeAll(async () => {
    start = startCommand(['start'], { cwd: folder.path, env: { ...withoutThreads, ...env } });
    await start.printed(/receiver: POST /);
  });
  afterAll(() => start?.end('SIGKILL'));

  test('backfill by external id needs a company that is in the warehouse', async () => {
    const { status, stdout, stderr } = await metersync('backfill', '--external-id', 'nobody');
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^metersync: no company has the external id nobody: .*--company/);
  });

  test('backfill of a company that the service does not have is wrong usage, and writes nothing', async () => {
    const typo = '5bd6ce54-0d8e-4c40-9b4b-1f1e8ab4f0aa';
    const before = [await count('utility.companies'), await count('metersync.runs')];
    const { status, stdout, stderr } = await metersync('backfill', '--company', typo);
    expect({ status, stdout }, stderr).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(`the service has no company ${typo}`);
    expect([await count('utility.companies'), await count('metersync.runs')]).toEqual(before);
    // A command without a service leaves the check to the worker, which refuses the company as well.
    const { SERVICE_URL: _, ...elsewhere } = env;
    const run = await runCommand(['backfill', '--company', typo, '--follow'], {
      cwd: folder.path,
      env: elsewhere,
    });
    expect(run).toMatchObject({
      status: 1,
      stdout: expect.stringContaining(`the service does not have 1 of the companies chosen: ${typo}`),
    });
    expect(await count('utility.companies where deleted_at is null')).toBe(
      await count('utility.companies where deleted_at is null and raw is not null'),
    );
  });

  test('backfill all --follow shows progress and ends with status 0 when complete', async () => {
    const { status, stdout, stderr } = await metersync('backfill', 'all', '--follow');
    expect(status, stderr).toBe(0);
    expect(stdout).toMatch(/^backfill [0-9a-f-]{36} started\nbackfill [0-9a-f-]{36}: complete$/);
    expect(stderr).toMatch(/backfill: 2 of 2 companies, [1-9]\d* rows/);
    expect(await count('utility.documents')).toBe(20);
  });

  test('the backfill gives the fields of the records columns, and views apply finds nothing to do', async () => {
    const charged = sql`select count(*)::int as n from fields.documents where total_charges is not null`;
    expect(await rows(charged)).toEqual([{ n: 20 }]);
    expect(await json('views', 'apply')).toMatchObject({ status: 0, said: { applied: [], blocked: [] } });
  });

  test('backfill of one company, by external id or by id, reads only that company', async () => {
    const [{ id = '', external_id: externalId = '' } = {}] = await rows(
      sql`select id, external_id from utility.companies order by id limit 1`,
    );
    for (const option of [
      ['--external-id', externalId],
      ['--company', id.toUpperCase()],
    ]) {
      const { status, stdout, stderr } = await metersync('backfill', ...option, '--follow');
      expect(status, stderr).toBe(0);
      const [, runId = ''] = /^backfill (\S+): complete$/m.exec(stdout) ?? [];
      const read = sql`select distinct company_id from metersync.runs
        where run_id = ${runId}::uuid and company_id is not null`;
      expect(await rows(read), option.join(' ')).toEqual([{ company_id: id }]);
    }
  });

  test('checks lists the issues that the worker found', async () => {
    const late = sql`select id from ops.data_issues where check_name = 'late_bill' and closed_at is null`;
    const found = await until('bills that are long due are an issue', async () => {
      const found = await rows(late);
      return found.length > 0 ? found : undefined;
    });
    const { said } = await json('checks', 'list', '--check', 'late_bill', '--limit', '1000');
    expect(said.issues).toHaveLength(found.length);
    const [{ id = 0 } = {}] = said.issues as { id?: number }[];
    expect(await json('checks', 'acknowledge', String(id), '--note', 'known')).toEqual({
      status: 0,
      said: { id, acknowledged: true },
    });
    const { stdout } = await metersync('checks', 'list', '--check', 'late_bill');
    expect(stdout).toMatch(/^ *\d+ {2}warning {2}.*, meter \S.*: The next bill is \d+ days? late: .*since/m);
    const one = await metersync('checks', 'list', String(id));
    expect(one.stdout).toMatch(/^issue \d+, warning, late_bill: The next bill is /);
    expect(one.stdout).toMatch(/^ {2}billed until: 2026-[\s\S]*^acknowledged \d{4}-/m);
    expect(await metersync('checks', 'list', '999999999')).toMatchObject({ status: 1, stdout: '' });
  });

  test('backfill without --follow returns at once, and status --json has the state of the run', async () => {
    const { status, stdout, stderr } = await metersync('backfill', 'all');
    const [, runId = ''] = /^backfill (\S+) started$/.exec(stdout) ?? [];
    expect(stderr).toBe(`To follow it: metersync backfill --run ${runId}`);
    expect({ status, runId }).toEqual({ status: 0, runId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
    const last = await until(
      'the run is over',
      async () => {
        const { running, last } = (await json('status')).said.backfills as { running: number; last: object };
        return running === 0 && (last as { runId?: string }).runId === runId && last;
      },
      { timeoutMs: 30_000 },
    );
    expect(last).toEqual({ runId, state: 'complete', finishedAt: expect.any(String), error: null });
  });

  test('reconcile --follow reads recent updates and ends with status 0, and backfill --run shows its end', async () => {
    const { status, stdout, stderr } = await metersync('reconcile', '--follow');
    expect(status, stderr).toBe(0);
    const [, runId = ''] = /^reconcile (\S+) started$/m.exec(stdout) ?? [];
    expect(stdout).toContain(`reconcile ${runId}: complete`);
    expect(stderr).toMatch(/reconcile: 2 of 2 companies/);
    expect((await metersync('backfill', '--run', runId)).stdout).toContain(`reconcile ${runId}: complete`);
  });

  test('Ctrl-C lets the run continue and says how to follow it again', async () => {
    const followed = await warehouse.db.transaction(async (tx) => {
      await tx.execute(sql`lock table utility.documents in access exclusive mode`);
      const following = startCommand(['backfill', 'all', '--follow'], { cwd: folder.path, env });
      await following.printed(/^backfill: \d+ of 2 companies/);
      expect(await following.end('SIGINT')).toEqual({ status: 130, signal: null });
      return following;
    });
    const [, again = ''] =
      /To follow it again: metersync (backfill --run \S+)$/m.exec(followed.stdout()) ?? [];
    const { status, stdout, stderr } = await metersync(...again.split(' '));
    expect({ status, stdout }, stderr).toEqual({
      status: 0,
      stdout: expect.stringMatching(/^backfill \S+: complete$/),
    });
    const unknown = await metersync('backfill', '--run', '0b7c1f5e-2d7a-4b7e-9c61-0a1b2c3d4e5f');
    expect(unknown).toMatchObject({ status: 1, stderr: expect.stringContaining('no run 0b7c1f5e') });
  });

  test('status --json counts events by outcome, and status prints the same numbers', async () => {
    const fired = await service.random(20, 1);
    const { said } = await until(
      'every event is applied',
      async () => {
        const now = await json('status');
        const { pending = 0, ...done } = now.said.events as Record<string, number>;
        const over = Object.values(done).reduce((sum, n) => sum + n, 0);
        return pending === 0 && over === fired ? now : undefined;
      },
      { timeoutMs: 40_000 },
    );
    expect(said).toMatchObject({
      events: { pending: 0, ignored: 0, dead: 0, applied: anyNumber, superseded: anyNumber },
      oldestPendingSeconds: 0,
      lastEventSecondsAgo: anyNumber,
      waiting: [],
      rejectedRecords: 0,
      quarantinedDeletes: 0,
      keptDeletes: 0,
      backfills: { running: 0, last: { state: 'complete' } },
      issues: { warning: anyNumber, acknowledged: 1 },
    });
    const freshness = await rows(sql`
      select resource, count(last_complete_at)::int as read, sum(pending_events)::int as pending,
        count(last_event_applied_at) > 0 as has_events
      from ops.freshness where resource in ('documents', 'meters') group by 1 order by 1`);
    expect(freshness).toEqual([
      { resource: 'documents', read: 2, pending: 0, has_events: true },
      { resource: 'meters', read: 2, pending: 0, has_events: false },
    ]);
    const exact = await json('status', '--exact');
    expect(exact.said).toMatchObject({ events: said.events, rows: said.rows });
  });

  test('report and export refuse an unknown company', async () => {
    const typo = '5bd6ce54-0d8e-4c40-9b4b-1f1e8ab4f0aa';
    for (const command of [['report'], ['export', 'bills']])
      expect(await metersync(...command, '--company', typo)).toMatchObject({
        status: 1,
        stdout: '',
        stderr: expect.stringContaining(`company ${typo} is not in the warehouse`),
      });
  });

  test('a full disk during an export or report leaves no unfinished file, and the error names it', async () => {
    const main = resolve(import.meta.dirname, '../../cli/main.ts');
    for (const [args, file] of [
      ['export utility.documents --out', 'documents.csv'],
      ['export utility.documents --out', 'documents.parquet'],
      ['report --html', 'report.html'],
    ]) {
      // Node reports a file that exceeds the limit of 1 kB in the same way as a full disk.
      const limited = `ulimit -f 2; exec "$0" "${main}" ${args} ${file}`;
      const run = promisify(execFile)('sh', ['-c', limited, process.execPath], {
        cwd: folder.path,
        env: { ...process.env, ...env },
      });
      await expect(run).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringContaining(
          `${file} could not be written, and the unfinished file was removed: EFBIG`,
        ),
      });
    }
    const left = readdirSync(folder.path).filter((name) => /unfinished|documents|report/.test(name));
    expect(left).toEqual([]);
  });

  test('commands work with configured servers even if the data folder cannot be written', async () => {
    // Not even root can make a folder in the place of a file.
    const dir = join(folder.path, 'metersync.log');
    expect(await runCommand(['status', '--json'], { env: { ...env, METERSYNC_DIR: dir } })).toMatchObject({
      status: 0,
      stderr: expect.stringMatching(/^METERSYNC_DIR: the log cannot be written in .*\(E\w+\)$/),
    });
    expect(await runCommand(['start'], { env: { METERSYNC_DIR: dir } })).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/The data folder .* cannot be written .*METERSYNC_DIR/s),
    });
  });

  test('deletes lists absent rows beyond the cap, and carries out the decision', async () => {
    const [{ company_id: companyId = '' } = {}] = await rows(sql`
      with one as (select id as company_id from utility.companies order by id limit 1), forgotten as (
        insert into utility.documents (id, company_id, raw, first_synced_at, synced_at)
        select gen_random_uuid(), company_id, '{}', now() - interval '1 day', now() - interval '1 day'
        from one, generate_series(1, 60)
      )
      select company_id from one`);
    const run = await metersync('backfill', '--company', companyId, '--follow');
    expect(run.status).toBe(1);
    // Each suspect part is listed, whether or not standard error is a terminal.
    expect(run.stdout).toMatch(/^ {2}suspect: .+ documents: 60 of \d+ rows are missing/m);
    const [, runId = ''] = /^backfill (\S+): suspect: 60 of \d+ rows are missing/m.exec(run.stdout) ?? [];
    expect(await json('deletes', 'list')).toMatchObject({
      said: { deletes: [{ runId, companyId, resource: 'documents', state: 'quarantined', rows: 60 }] },
    });
    const { said: each } = await json('deletes', 'list', runId);
    expect(each.rows).toHaveLength(60);
    expect(each.sums).toMatchObject([{ resource: 'documents', rows: 60, listedAsDeleted: 0 }]);
    expect((await metersync('deletes', 'list', runId)).stdout).toMatch(
      /^60 bills.*, held back: the service does not list them any more$/m,
    );
    const undecided = await metersync('status', '--exit-code');
    expect([undecided.status, undecided.stdout]).toEqual([
      3,
      expect.stringContaining(': 60 bills of 1 company'),
    ]);
    expect(undecided.stdout).not.toContain('last backfill: suspect');
    expect((await metersync('deletes', 'list')).stdout).toMatch(/60 bills, not listed any more, held back; /);
    const why = 'the utility closed the account';
    expect(await json('deletes', 'approve', runId, '--note', why)).toEqual({
      status: 0,
      said: { tombstoned: 60, spared: 0 },
    });
    expect(await rows(sql`select detail from metersync.operations where action = 'deletes approve'`)).toEqual(
      [{ detail: `60 rows deleted. Note: ${why}` }],
    );
    expect((await metersync('status')).stdout).toMatch(new RegExp(`last: complete, .* run ${runId}`));
    expect(await json('deletes', 'list', runId)).toMatchObject({
      said: { deletes: [{ runId, state: 'applied', rows: 60 }] },
    });
    expect(await json('audit')).toMatchObject({ status: 0, said: { differences: 0 } });
    expect((await metersync('deletes', 'approve', runId)).stderr).toContain(
      'no deletions that wait for a decision',
    );
  });

  test('audit names a tampered row', async () => {
    const [{ id = '', company_id: companyId = '' } = {}] = await rows(sql`
      update utility.documents set raw = raw || '{"tampered": true}' where id =
        (select id from utility.documents where deleted_at is null and raw is not null order by id limit 1)
      returning id, company_id`);
    const atOnce = ['audit', '--settle', '0s'];
    const { status, said } = await json(...atOnce, '--company', companyId);
    expect(status).toBe(1);
    expect(said).toMatchObject({
      differences: 1,
      examples: [{ id, resource: 'documents', state: 'different' }],
      resources: { companies: { compared: 1 }, documents: { different: 1, missing: 0, extra: 0 } },
    });
    const ofDocuments = await metersync(...atOnce, '--resource', 'documents');
    expect(ofDocuments.stdout).toContain(`different: documents ${id}`);
    expect(ofDocuments.stdout).not.toMatch(/│ meters +│/);
    const after = await metersync('status', '--exit-code');
    expect(after).toMatchObject({
      status: 3,
      stdout: expect.stringMatching(
        /^ {2}Needs you: last audit: the audit that ended .* found 1 difference/m,
      ),
    });
  });
});

describe('webhooks', () => {
  test('disable, enable and portal use the switch of the service', async () => {
    const unasked = await metersync('webhooks', 'disable');
    expect(unasked).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining('--yes') });
    expect(await json('webhooks', 'disable', '--yes')).toEqual({ status: 0, said: { enabled: false } });
    const closed = await metersync('webhooks', 'portal', '--json');
    expect(closed).toMatchObject({ status: 1, stdout: '' });
    expect(closed.stderr).toContain('run metersync webhooks enable first');

    expect(await json('webhooks', 'enable')).toEqual({ status: 0, said: { enabled: true } });
    const { status, said } = await json('webhooks', 'portal');
    expect({ status, said }).toEqual({ status: 0, said: { portal: expect.stringMatching(/^http:\/\//) } });
    expect((await fetch(said.portal as string)).status).toBe(200);
    // The output is only the address, for `open "$(metersync webhooks portal)"`.
    expect(await metersync('webhooks', 'portal')).toMatchObject({
      stdout: expect.stringMatching(/^http:\/\/\S+$/),
      stderr: '(valid for 7 days)',
    });
  });

  test('need no warehouse, and say without a warehouse that the log of operations has no entry', async () => {
    const run = await runCommand(['webhooks', 'enable'], {
      cwd: folder.path,
      env: { ...env, DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nowhere' },
    });
    expect(run).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('enabled'),
      stderr:
        'Not in the log of operations: Postgres at 127.0.0.1:1/nowhere (DATABASE_URL) does not answer: connect ECONNREFUSED 127.0.0.1:1',
    });
  });
});

test('the log of operations has each action of these commands, including failed and refused actions', async () => {
  expect((await json('status')).said).toMatchObject({
    verdict: { findings: expect.arrayContaining([expect.objectContaining({ alarm: 'AuditDiffers' })]) },
  });
  expect(await metersync('audit', '--repair')).toMatchObject({ status: 0 });
  expect((await metersync('status')).stdout).not.toContain('last audit:');
  const denied = await runCommand(['audit', '--repair', '--resource', 'documents'], {
    cwd: folder.path,
    env: { ...env, SERVICE_API_KEY: 'not-the-key', METERSYNC_ACTOR: 'ada' },
  });
  expect(denied.status).toBe(1);
  const noted = await listOperations(warehouse.db, {}, { limit: 100 });
  expect(noted.slice(0, 3)).toMatchObject([
    { actor: 'ada', action: 'audit repair', target: { resources: 'documents' }, outcome: 'failed' },
    {
      source: 'command',
      action: 'audit',
      outcome: 'done',
      detail: expect.stringMatching(/^0 differences in \d+ records$/),
    },
    {
      source: 'command',
      action: 'audit repair',
      outcome: 'done',
      detail: expect.stringMatching(/^1 difference found; run /),
    },
  ]);
  expect(noted.map(({ action, outcome }) => `${action}: ${outcome}`)).toEqual(
    expect.arrayContaining([
      ...['migrate: done', 'backfill: refused', 'backfill: done', 'reconcile: done', 'views apply: done'],
      ...['deletes approve: refused', 'webhooks disable: done', 'webhooks enable: done'],
    ]),
  );
});
