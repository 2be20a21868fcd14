import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { rfc3339 } from '../../contract/times.ts';
import { runCommand } from '../support/command.ts';
import { deliver, deliverBody } from '../support/deliver.ts';
import { forFile } from '../support/for-file.ts';
import { startPipeline } from '../support/pipeline.ts';

/** Reads the journal with the command, after a whole pipeline has recorded events. */
const pipeline = await forFile(startPipeline({ size: { companies: 2, documents: 6 } }));
expect(await pipeline.backfill()).toBe('complete');
await pipeline.service.random(30, 5);
await pipeline.settled();

const metersync = (...args: string[]) => runCommand(args, { env: pipeline.env });

async function json<T>(...args: string[]): Promise<{ status: number | null; said: T }> {
  const { status, stdout, stderr } = await metersync(...args, '--json');
  expect(stdout.split('\n'), stderr).toHaveLength(1);
  return { status, said: JSON.parse(stdout) as T };
}

interface Trace {
  readonly events: readonly { readonly id: string; readonly settledAt: string | null }[];
  readonly changes: readonly { readonly fields: readonly object[] }[];
  readonly runs: readonly { readonly runId: string }[];
  readonly operations: readonly { readonly id: number; readonly about: readonly string[] }[];
}

interface Listed {
  readonly events: readonly {
    readonly id: string;
    readonly type: string;
    readonly outcome: string;
    readonly recordId: string;
    readonly workflowId: string;
    readonly workflowRunId: string;
  }[];
  readonly next: string | null;
}

const rows = async <T extends Record<string, unknown>>(query: ReturnType<typeof sql>) =>
  (await pipeline.warehouse.db.execute<T>(query)).rows;

describe('events list', () => {
  test('pages through the complete journal, newest first, each event once', async () => {
    const ids: string[] = [];
    let before: string | null = null;
    do {
      const from: string[] = before === null ? [] : ['--before', before];
      const { said }: { said: Listed } = await json<Listed>('events', 'list', '--limit', '20', ...from);
      ids.push(...said.events.map(({ id }) => id));
      before = said.next;
    } while (before !== null);
    const journal = await rows<{ id: string }>(
      sql`select id from metersync.events order by received_at desc, id desc`,
    );
    expect(ids).toEqual(journal.map(({ id }) => id));
    expect(ids.length).toBeGreaterThan(24);
    const { stdout } = await metersync('events', 'list', '--limit', '3');
    expect(stdout).toMatch(/^More: --before \S+$/m);
    expect(stdout).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}\w+ +[\w.]+, \S+, record \S+$/m);
  });

  test('filters by type, record and time', async () => {
    const { said: all } = await json<Listed>('events', 'list', '--limit', '1000');
    const { type = '', recordId = '' } = all.events[0] ?? {};
    const chosen = ['--type', type, '--record', recordId, '--since', '1h'];
    const expected = all.events.filter((event) => event.type === type && event.recordId === recordId);
    expect((await json<Listed>('events', 'list', ...chosen)).said).toEqual({ events: expected, next: null });
    expect((await metersync('events', 'list', '--until', '1h')).stdout).toBe('No event matches.');
  });
});

test('events show prints everything about one event, and its payload digit by digit', async () => {
  const [{ id = '', payload = '' } = {}] = await rows<{ id: string; payload: string }>(sql`
    select id, payload::text as payload from metersync.events where type like 'document.updated%' limit 1`);
  const { stdout } = await metersync('events', 'show', id, '--json');
  expect(JSON.parse(stdout)).toEqual({
    ...JSON.parse(stdout),
    id,
    body: null,
    payload: JSON.parse(payload),
    workflowId: expect.stringMatching(/^events?\//),
  });
  const forPeople = await metersync('events', 'show', id);
  expect(forPeople.stdout).toContain(`event: ${id}`);
  expect(forPeople.stdout).toMatch(/^received: \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ \(\d+ s ago\)$/m);
  expect(forPeople.stdout).toMatch(/^workflow run: \S+$/m);
  expect(forPeople.stdout).toContain('"eventType": "document.updated.v2"');
  expect(await metersync('events', 'show', 'msg_nobody')).toMatchObject({
    status: 1,
    stdout: '',
    stderr: 'metersync: no event msg_nobody is in the journal',
  });
  expect(await metersync('events', 'list', '--before', 'msg_nobody')).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringContaining('--before has to be the value that the previous page printed'),
  });
});

describe('events replay', () => {
  test('applies a kept event that an earlier version ignored', async () => {
    const [{ id = '' } = {}] = await rows<{ id: string }>(sql`
      update metersync.journal set outcome = 'ignored', kind = 'ignored', record_id = null
      where id = (select id from metersync.events event
        where type = 'document.updated.v2' and outcome = 'applied' and not exists (
          select from metersync.events other where other.record_id = event.record_id and other.id <> event.id)
        limit 1)
      returning id`);
    expect(await json('events', 'replay', '--outcome', 'ignored')).toMatchObject({
      status: 0,
      said: { replayed: 1, refused: [] },
    });
    await pipeline.settled();
    const { said } = await json<{ outcome: string; workflowId: string; recordId: string }>(
      'events',
      'show',
      id,
    );
    const [, operation] = said.workflowId.split(`replay/${id}/`);
    expect(said.outcome).toBe('applied');
    // A replay by a filter names no event: the workflow names the replay.
    const { operations } = (await json<Trace>('trace', 'document', said.recordId)).said;
    expect(operations).toMatchObject([
      { id: Number(operation), action: 'replay', target: { outcome: 'ignored' }, outcome: 'done', about: [] },
    ]);
  });

  test('refuses applied events; --force reads their records again and changes no row', async () => {
    const [{ id = '' } = {}] = await rows<{ id: string }>(
      sql`select id from metersync.events where type = 'document.updated.v2' and outcome = 'applied' limit 1`,
    );
    expect(await json('events', 'replay', id)).toEqual({
      status: 1,
      said: { replayed: 0, outcomes: {}, refused: [{ id, reason: expect.stringContaining('--force') }] },
    });
    expect(await json('events', 'replay', id, '--force')).toMatchObject({
      status: 0,
      said: { replayed: 1, refused: [] },
    });
    const everything = await json<{ replayed: number }>('events', 'replay', '--since', '1d', '--force');
    expect(everything).toMatchObject({ status: 0, said: { refused: [] } });
    expect(everything.said.replayed).toBeGreaterThan(24);
    await pipeline.settled();
    expect((await pipeline.audit()).differences).toBe(0);
  });

  test('refuses dropped and unknown events, and gives a reason for each', async () => {
    const { id } = await deliver(pipeline, { eventType: 'something.else.v2' });
    await pipeline.settled();
    const { db } = pipeline.warehouse;
    await db.execute(sql`update metersync.journal set payload_dropped_at = now() where id = ${id}`);
    await db.execute(sql`delete from metersync.event_payloads where id = ${id}`);
    expect(await json('events', 'replay', id, 'msg_nobody')).toEqual({
      status: 1,
      said: {
        replayed: 0,
        outcomes: {},
        refused: [
          { id, reason: expect.stringContaining('dropped') },
          { id: 'msg_nobody', reason: 'it is not in the journal' },
        ],
      },
    });
  });

  test('says that a dead event is dead again', async () => {
    const { id } = await deliverBody(pipeline, 'no JSON');
    await pipeline.settled();
    const stdout = '1 event replayed: 1 is dead again';
    expect(await metersync('events', 'replay', id)).toMatchObject({ status: 1, stdout });
  });
});

describe('trace', () => {
  test('shows a document with its events, the workflows that recorded them, its runs, versions and times', async () => {
    const [{ id = '', updated = '' } = {}] = await rows<{ id: string; updated: string }>(sql`
      select d.id, d.updated from utility.documents d
      where d.raw is not null and exists (select from metersync.events e where e.record_id = d.id::text
        and e.outcome = 'applied' and e.workflow_run_id is not null) limit 1`);
    const { said } = await json<{ events: Listed['events']; runs: { workflowId: string }[] }>(
      'trace',
      'document',
      id,
    );
    expect(said).toMatchObject({
      kind: 'document',
      record: { updated: rfc3339(updated), rawUpdated: rfc3339(updated), apiVersion: 'v2.2' },
    });
    expect(said.runs[0]).toMatchObject({ resource: 'documents', state: 'complete' });
    const journalled = await rows<{ id: string }>(
      sql`select id from metersync.events where record_id = ${id} order by received_at, id`,
    );
    expect(said.events.map((event) => event.id)).toEqual(journalled.map((event) => event.id));
    for (const { workflowId, workflowRunId } of said.events) {
      const { type } = await pipeline.client.workflow.getHandle(workflowId, workflowRunId).describe();
      expect(type).toBe('applyEvents');
    }
    const { stdout } = await metersync('trace', 'document', id, '--all');
    expect(stdout).toMatch(/ {2}event \S+: document\.\S+, received$/m);
    expect(stdout).toMatch(/ {2}run \S+: documents complete$/m);
  });

  test('finds a record by the number of an invoice or an account, and says first what it is', async () => {
    const [{ id = '', invoice = '', account = '', bills = 0 } = {}] = await rows<{
      id: string;
      invoice: string;
      account: string;
      bills: number;
    }>(sql`
      select bill_id as id, invoice_id as invoice, account_number as account,
        count(*) over (partition by account_number)::int as bills
      from analytics.bills
      where invoice_id is not null and account_number is not null
      order by bills desc limit 1`);
    const { status, stdout, stderr } = await metersync('trace', 'document', invoice);
    expect(status, stderr).toBe(0);
    expect(stdout).toMatch(new RegExp(`^document ${id}\n  provider: .+\n  invoice: ${invoice}\n  account: `));
    expect(stdout).toMatch(/^ {2}period: \d{4}-\d\d-\d\d to /m);
    expect(bills).toBeGreaterThan(1);
    const several = await metersync('trace', 'document', account);
    expect(several).toMatchObject({ status: 1, stdout: expect.stringContaining(id) });
    expect(several.stdout).toMatch(/ match .*: choose one by its id$/m);
  });

  test('shows a connection and a meter, and ends with status 1 for an unknown id', async () => {
    const [{ connection = '', meter = '' } = {}] = await rows<{ connection: string; meter: string }>(sql`
      select (select id::text from utility.connections limit 1) as connection,
        (select id from utility.meters limit 1) as meter`);
    expect(await json('trace', 'connection', connection)).toMatchObject({
      status: 0,
      said: { record: { apiVersion: 'v2.2' }, runs: [{ resource: 'connections' }] },
    });
    const { said } = await json<{ runs: { resource: string }[] }>('trace', 'meter', meter);
    expect(new Set(said.runs.map(({ resource }) => resource))).toEqual(new Set(['meters', 'intervals']));
    expect(await metersync('trace', 'connection', meter)).toMatchObject({
      status: 1,
      stdout: `No connection ${meter} is in the warehouse, and no event names it.`,
    });
  });

  test('lists a forced replay and the changes of the record, but no run without changes', async () => {
    const [{ id = '', event = '' } = {}] = await rows<{ id: string; event: string }>(sql`
      select e.record_id as id, e.id as event
      from metersync.events e
      where e.type = 'document.updated.v2' and e.outcome = 'applied' and exists (
        select from history.documents h
        join utility.documents d using (id)
        where h.id = e.record_id::uuid and h.raw is not null and d.deleted_at is null)
      -- A replay supersedes an event if its record has a later one.
      order by (select count(*) from metersync.events other where other.record_id = e.record_id)
      limit 1`);
    const before = (await json<Trace>('trace', 'document', id)).said;
    expect(await pipeline.backfill()).toBe('complete');
    expect((await json('events', 'replay', event, '--force')).status).toBe(0);
    await pipeline.settled();
    const { said } = await json<Trace>('trace', 'document', id);
    const settled = ({ events }: Trace) => events.find((one) => one.id === event)?.settledAt ?? '';
    expect(new Date(settled(said)).valueOf()).toBeGreaterThan(new Date(settled(before)).valueOf());
    expect(said.changes).toEqual(before.changes);
    const [{ fields } = { fields: [] }] = said.changes;
    expect(fields).toContainEqual({
      field: 'updated',
      before: expect.stringMatching(/^"20/),
      after: expect.stringMatching(/^"20/),
    });

    expect(said.operations.at(-1)).toMatchObject({ action: 'replay', about: [event] });

    const { stdout } = await metersync('trace', 'document', id);
    expect(stdout).toMatch(/ {2}replay by \S+ \(command\): done: 1 event/m);
    expect(stdout.match(/ {2}event \S+: applied$/gm)).toHaveLength(said.events.length);
    expect(stdout).toMatch(/^ {24}updated: "\S+" → "\S+"$/m);
    expect(stdout).toMatch(/^\d+ runs? that read it and changed nothing: --all shows them$/m);
    const last = said.runs[0]?.runId ?? '';
    expect(stdout).not.toContain(`run ${last}:`);
    expect((await metersync('trace', 'document', id, '--all')).stdout).toContain(`run ${last}: documents`);
  });
});
