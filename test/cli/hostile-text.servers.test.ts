import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { writeRecords } from '../support/pages.ts';
import { steering } from '../support/steering.ts';
import { createWarehouse } from '../support/warehouse.ts';

/** Sets the title and clipboard, erases, colours by C0 and C1 controls, reverses text, forges lines. */
const hostile =
  'x\u001b]0;OWNED\u0007\u001b]52;c;T1dORUQ=\u0007\u001b[2J\u009b31m\u007f\u202e\u2066\u200b\u2028\u0085\t\rforged: all is well\nforged: all is well\u{e0041}';
const main = resolve(import.meta.dirname, '../../cli/main.ts');
const [companyId, connectionId, documentId, runId] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: Server;

beforeAll(async () => {
  [warehouse, folder] = await Promise.all([createWarehouse(), temporaryFolder()]);
  // A service that answers with hostile text.
  service = createServer((request, response) => {
    response.writeHead(201, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify(request.method === 'POST' ? { url: `http://${hostile}` } : { enabled: true }),
    );
  });
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  await fill();
});
afterAll(async () => {
  service.close();
  await Promise.all([warehouse.drop(), folder.remove()]);
});

async function fill(): Promise<void> {
  const { db } = warehouse;
  await writeRecords(warehouse, 'companies', [{ id: companyId, name: hostile, externalId: hostile }]);
  const connection = { id: connectionId, status: 'MFA_TOKEN_EXPIRED', datasource: hostile, accounts: [] };
  await writeRecords(warehouse, 'connections', [connection], { companyId });
  const payload = JSON.stringify({ eventType: hostile, [hostile]: hostile });
  await db.execute(sql`insert into metersync.journal (id, type, kind, record_id, received_at, outcome, error)
    select id, ${hostile}, 'ignored', ${documentId}, now(), 'dead', ${hostile}
    from unnest(array[${`msg_${hostile}`}, 'msg_body']) id`);
  await db.execute(sql`insert into metersync.event_payloads (id, payload, body)
    values (${`msg_${hostile}`}, ${payload}, null), ('msg_body', null, ${Buffer.from(hostile)})`);
  await db.execute(sql`insert into metersync.runs (run_id, state, finished_at, error)
    values (${runId}, 'failed', now(), ${hostile})`);
  await db.execute(sql`insert into metersync.deletes (run_id, company_id, resource, record_id, state, absent_since)
    values (${runId}, ${companyId}, 'documents', ${hostile}, 'quarantined', now())`);
  await db.execute(sql`insert into metersync.rejected_records (resource, record_id, error, record)
    values ('documents', ${documentId}, ${hostile}, ${hostile})`);
  await db.execute(sql`insert into metersync.gates (scope, code, message, attempts, next_probe_at)
    values ('service', 'SERVICE_KEY_REFUSED', ${hostile}, 1, now())`);
  await db.execute(sql`insert into ops.data_issues (check_name, severity, company_id, entity_type, entity_id, subject, evidence)
    values ('late_bill', 'warning', ${companyId}, 'meter', ${hostile}, ${hostile}, ${JSON.stringify({ [hostile]: hostile })})`);
}

const metersync = (args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
  runCommand(args, { env: { DATABASE_URL: warehouse.url, METERSYNC_DIR: folder.path, ...more } });

/** Expects that no text steers the terminal and that only the command begins lines. */
function expectTame(said: string): void {
  expect(steering(said)).toEqual([]);
  expect(said).not.toMatch(/^\W*forged/m);
}

/** Whether JSON holds the hostile text unchanged. */
const holdsHostile = (json: string): boolean => {
  let found = false;
  JSON.parse(json, (_, value) => {
    found ||= typeof value === 'string' && value.includes(hostile);
    return value;
  });
  return found;
};

const escaped = String.raw`x\u001b]0;OWNED\u0007`;

describe('untrusted text cannot control a terminal', () => {
  test.each([
    ['events list', ['events', 'list']],
    ['events show, of a payload', ['events', 'show', `msg_${hostile}`]],
    ['events show, of a body', ['events', 'show', 'msg_body']],
    ['trace', ['trace', 'document', documentId]],
    ['status', ['status']],
    ['report of a company', ['report', '--company', companyId]],
    ['checks list', ['checks', 'list']],
    ['deletes list', ['deletes', 'list']],
  ])('%s', async (_name, args) => {
    const [lines, json] = await Promise.all([metersync(args), metersync([...args, '--json'])]);
    expect(lines.status, lines.stderr).toBe(0);
    expectTame(lines.stdout + lines.stderr);
    expect(lines.stdout).toContain(escaped);
    expectTame(json.stdout + json.stderr);
    expect(holdsHostile(json.stdout)).toBe(true);
  });

  test('in the address of the portal', async () => {
    const { port } = service.address() as AddressInfo;
    const env = { SERVICE_URL: `http://127.0.0.1:${port}/v2.2`, SERVICE_API_KEY: 'a-key-of-nobody' };
    const { stdout, stderr } = await metersync(['webhooks', 'portal'], env);
    expectTame(stdout + stderr);
    expect(stdout).toContain(escaped);
  });

  test.each([
    ['an id', ['events', 'show', hostile]],
    ['a company', ['report', '--external-id', `${hostile}?`]],
    ['an option', ['status', `--${hostile}`]],
  ])('in an error that quotes %s', async (_name, args) => {
    const { stdout, stderr, status } = await metersync(args);
    expect(status).not.toBe(0);
    expect(stdout).toBe('');
    expect(steering(stderr)).toEqual([]);
    expect(stderr).toContain(escaped);
  });
});

describe('an export', () => {
  test('is exact for a file or a program, and cannot control a terminal', async () => {
    const piped = await metersync(['export', 'utility.companies']);
    expect(piped.stdout).toContain(hostile);
    const command = [process.execPath, main, 'export', 'utility.companies']
      .map((word) => `'${word}'`)
      .join(' ');
    const { PATH = '', HOME = '' } = process.env;
    const terminal = spawn('script', ['-qec', command, '/dev/null'], {
      env: { PATH, HOME, DATABASE_URL: warehouse.url, METERSYNC_DIR: folder.path },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [said, [status]] = await Promise.all([text(terminal.stdout), once(terminal, 'close')]);
    expect(status).toBe(0);
    // The terminal adds a carriage return to each line end.
    expect(steering(said.replaceAll('\r\n', '\n'))).toEqual([]);
    expect(said).toContain(escaped);
  });
});
