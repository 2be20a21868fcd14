import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, inject, test, vi } from 'vitest';
import { beginOperation, finishOperation } from '../../db/operations.ts';
import { noteRefused } from '../../db/watch/refused.ts';
import { cookieOf, serveConsole } from '../support/console.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { createNamespace } from '../support/namespace.ts';
import { fillTrouble, hostile } from '../support/trouble.ts';
import { createWarehouse } from '../support/warehouse.ts';

const [warehouse, folder, namespace] = await Promise.all([
  forFile(createWarehouse()),
  forFile(temporaryFolder()),
  createNamespace(),
]);
const { db } = warehouse;
const { companies, document, connection, runs, dead, issue } = await fillTrouble(warehouse);
const [acme] = companies;

await db.execute(sql`
  with added as (
    insert into utility.sites (id, company_id, raw, synced_at)
    select id, ${acme}, jsonb_build_object('name', name, 'address', address), now()
    from (values
      (gen_random_uuid(), 'Depot', '1 Main St, Denver, CO 80202'),
      (gen_random_uuid(), ${hostile}::text, '')) s (id, name, address)
    returning id, raw)
  insert into ops.site_overrides (site_id, time_zone, floor_area, floor_area_units)
  select id, 'America/Phoenix', 12, 'sq ft' from added where raw ->> 'address' = ''`);
const { rows } = await db.execute<{ id: number }>(sql`
  insert into ops.data_issues (check_name, severity, company_id, entity_type, entity_id, subject, evidence)
  values ('bill_gap', 'info', ${acme}, 'meter', 'E-9', '2026-05-01',
    '{"from": "2026-05-01", "until": "2026-05-02", "days": "1", "extent": "1 days", "severity": "info", "may_cost": "93.10"}')
  returning id::int`);
const gap = rows[0]?.id;
for (const [target, outcome, found] of [
  [{}, 'done', '0 differences in 90 records'],
  [{ company: 'c1' }, 'done', '3 differences in 20 records'],
  [{}, 'failed', 'the service does not answer'],
] as const) {
  const audit = { actor: 'ada', role: 'operator', source: 'command', action: 'audit' } as const;
  await finishOperation(db, await beginOperation(db, { ...audit, target }), outcome, found);
}
await noteRefused(db, { 'signature-wrong': 773 });

const running = await forFile(
  serveConsole(
    {
      METERSYNC_DIR: folder.path,
      METERSYNC_ACTOR: 'ada',
      SERVICE_API_KEY: 'geheim-key',
      SERVICE_URL: 'http://127.0.0.1:9/v2.2',
    },
    { databaseUrl: warehouse.url, temporal: { address: inject('temporalAddress'), namespace } },
  ),
);
const cookie = await cookieOf(running);

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

/** The words of a page, a line for each block, with its fields and with the addresses of its links. */
function wordsOf(html: string): string {
  return html
    .replace(/[\s\S]*<main[^>]*>|<\/main>[\s\S]*/g, '')
    .replace(/<(svg|details|select|div class="charts")[\s\S]*?<\/\1>/g, '')
    .replace(/<table class="calendar"[\s\S]*?<\/table>/g, '')
    .replace(/<time[^>]*>[^<]*<\/time>/g, '(time)')
    .replace(/<a [^>]*href="([^"]*)"[^>]*>([\s\S]*?)<\/a>/g, '$2 [$1]')
    .replace(/<input [^>]*?name="(\w+)"[^>]*>/g, '[field $1]')
    .replace(/<button[^>]*>([\s\S]*?)<\/button>/g, '[button $1]')
    .replace(/<\/?(p|h\d|li|tr|div|section|dl|dt|article|form|table|thead|tbody)\b[^>]*>/g, '\n')
    .replace(/<[^>]*>/g, ' ')
    .replace(/&(#?\w+);/g, (whole, name: string) => entities[name] ?? whole)
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/g, '(time)')
    .replace(/\b\d+(\.\d+)? (s|min|h|d|seconds?|minutes?|hours?|days?)\b/g, '(duration)')
    .replace(/before=\w+/g, 'before=(place)')
    .replace(/(?<=\n\s*(?:metersync|Node|Postgres)\s*\n\s*)v?\d+\.\d+[.\d]*/g, '(version)')
    .split('\n')
    .map((line) => line.replace(/\s+/g, ' ').trim())
    .filter((line) => line !== '')
    .join('\n');
}

/** Replaces each id by its place, because it is another one each time. */
function placesOf() {
  const known = new Map<string, string>();
  return (text: string) =>
    text.replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) => {
      const place = known.get(id) ?? `id-${known.size + 1}`;
      known.set(id, place);
      return place;
    });
}

test('each page answers, names no secret, takes no text for markup, and says what the golden file has', async () => {
  const placed = placesOf();
  const pages: string[] = [];
  for (const path of [
    '/',
    '/events?outcome=ignored',
    '/events?outcome=pending',
    `/events/${dead}`,
    `/events/${dead}?show=payload`,
    `/events?company=${acme}&code=SERVICE_ACCESS_DENIED`,
    '/events?since=yesterday&company=zzzz',
    '/companies',
    ...companies.map((id) => `/companies/${id}`),
    '/sites',
    '/runs',
    ...Object.values(runs).map((id) => `/runs/${id}`),
    '/deletes',
    `/deletes?run=${randomUUID()}`,
    '/issues',
    '/issues?known=yes&severity=error',
    `/issues/${issue}`,
    `/issues/${gap}`,
    '/system',
    '/log',
    '/log/1',
    '/trace',
    `/trace?q=${document}`,
    '/trace?q=customer-17',
    `/trace?q=${connection}`,
    `/trace?q=${encodeURIComponent(hostile)}`,
    '/act/backfill',
    `/act/replay?outcome=dead`,
    '/act/resume?code=SERVICE_ACCESS_DENIED',
    ...['approve', 'reject'].map((decision) => `/act/deletes-${decision}?run=${runs.suspect}`),
    `/act/issue-acknowledge?id=${issue}`,
    '/nowhere',
  ]) {
    const { answer, text } = await vi.waitFor(async () => {
      const answer = await fetch(running.url + path, { headers: { cookie } });
      const text = await answer.text();
      expect(text, `${path} gives Postgres two seconds, which a busy machine may need`).not.toContain(
        'Without Postgres',
      );
      return { answer, text };
    }, 30_000);
    expect(answer.headers.get('content-security-policy'), path).toContain("default-src 'none'");
    for (const never of ['geheim', '<img', '\u202e']) expect(text, path).not.toContain(never);
    pages.push(placed(`=== ${path} ${answer.status}\n${wordsOf(text)}`));
  }
  await expect(`${pages.join('\n\n')}\n`).toMatchFileSnapshot('golden/pages.txt');
});
