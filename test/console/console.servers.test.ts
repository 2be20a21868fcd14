import { randomUUID } from 'node:crypto';
import { chmod, readFile, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { readSettings } from '../../app/settings/settings.ts';
import { applySchedules, readSchedule } from '../../app/temporal/schedules.ts';
import type { Asking, ConsoleDependencies } from '../../console/asking.ts';
import { companyList } from '../../console/pages/companies.ts';
import { companyResources } from '../../contract/endpoints.ts';
import { finishRun, startRun } from '../../db/backfill/runs.ts';
import { listOperations } from '../../db/operations.ts';
import type { VerdictWord } from '../../health/finding-type.ts';
import { runCommand } from '../support/command.ts';
import { cookieOf, serveConsole } from '../support/console.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { loginAs } from '../support/login.ts';
import { createNamespace } from '../support/namespace.ts';
import { until } from '../support/poll.ts';
import { fillTrouble, hostile } from '../support/trouble.ts';
import { createWarehouse } from '../support/warehouse.ts';

const [warehouse, folder, namespace] = await Promise.all([
  forFile(createWarehouse()),
  forFile(temporaryFolder()),
  createNamespace(),
]);
const trouble = await fillTrouble(warehouse);
const env = {
  DATABASE_URL: warehouse.url,
  TEMPORAL_ADDRESS: inject('temporalAddress'),
  TEMPORAL_NAMESPACE: namespace,
  METERSYNC_DIR: folder.path,
  METERSYNC_ACTOR: 'ada',
  SERVICE_URL: 'http://127.0.0.1:9/v2.2',
  SERVICE_API_KEY: 'geheim-key',
  WEBHOOK_SECRETS: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
};

/** Serves a console in this process until the test ends. */
async function serve(more: Readonly<Record<string, string>> = {}) {
  const temporal = { address: inject('temporalAddress'), namespace };
  const running = await serveConsole({ ...env, ...more }, { databaseUrl: warehouse.url, temporal });
  onTestFinished(() => running.stop());
  const cookie = await cookieOf(running);
  const own = { origin: running.url, 'sec-fetch-site': 'same-origin' };
  const ask = (path: string, headers: Record<string, string> = {}) =>
    fetch(running.url + path, { headers: { cookie, ...headers }, redirect: 'manual' });
  const post = (path: string, form: Record<string, string> = {}, headers: Record<string, string> = own) =>
    fetch(running.url + path, {
      method: 'POST',
      headers: { cookie, ...headers },
      body: new URLSearchParams(form),
      redirect: 'manual',
    });
  return { url: running.url, link: running.link, cookie, ask, post, own };
}

/** Lists the log of operations once no action is under way: a long action continues after its answer. */
const operations = () =>
  until('nothing is under way', async () => {
    const all = await listOperations(warehouse.db, {}, { limit: 100 });
    return all.some(({ outcome }) => outcome === null) ? undefined : all;
  });

describe('the pages', () => {
  test('search for invoices, numbers of meters and parts of names, and say what a record is', async () => {
    const { ask } = await serve();
    await warehouse.db.execute(sql`
      insert into utility.meters (id, company_id, raw)
      values ('m-found', ${trouble.companies[0]}, '{"identifiers": [{"name": "METER", "value": "E-4242"}]}')`);
    await warehouse.db.execute(sql`
      insert into utility.sites (id, company_id, name)
      values (gen_random_uuid(), ${trouble.companies[1]}, 'Boston Depot 2')`);
    const search = async (given: string) => await (await ask(`/trace?q=${encodeURIComponent(given)}`)).text();
    expect(await search('4711')).toMatch(
      new RegExp(`<h1>Document</h1><p><code>${trouble.document}[\\s\\S]*<dt>Invoice</dt><dd>4711</dd>`),
    );
    expect(await search('E-4242')).toMatch(/<h1>Meter<\/h1>[\s\S]*<dd>meter E-4242<\/dd>/);
    const { rows: sites } = await warehouse.db.execute<{ id: string }>(sql`
      select id from utility.sites where company_id = ${trouble.companies[1]} and name = 'Boston Depot 2'`);
    const id = sites[0]?.id ?? '';
    for (const given of ['oston dep', id.toUpperCase()])
      expect(await search(given), given).toMatch(
        new RegExp(
          `href="/companies/${trouble.companies[1]}">site<[\\s\\S]*?Boston Depot 2<[\\s\\S]*?Bergmann &amp; Söhne Immobilien<[\\s\\S]*?${id}<`,
        ),
      );
    expect(await search('acme')).toContain('Acme Property Management');
    expect(await search('gas & elec')).toContain('Pacific Gas &amp; Electric');
    expect(await search('100%_')).toContain('Nothing is found');
  });

  test('filter by names of companies and by times as the command does', async () => {
    const { ask } = await serve();
    const rowsOf = async (path: string) => {
      const text = await (await ask(path)).text();
      return { text, rows: text.match(/<tr id="row-/g)?.length ?? 0 };
    };
    const [acme, bergmann] = trouble.companies;
    const byId = await rowsOf(`/events?company=${acme}`);
    expect(byId.rows).toBeGreaterThan(0);
    for (const company of ['Acme Property Management', 'acme', 'customer-17'])
      for (const page of ['events', 'issues']) {
        const { text, rows } = await rowsOf(`/${page}?company=${encodeURIComponent(company)}`);
        expect(rows, company).toBe((await rowsOf(`/${page}?company=${acme}`)).rows);
        expect(text).toContain('of Acme Property Management');
      }
    expect((await rowsOf(`/events?company=bergmann`)).text).toContain('No event matches');
    expect((await rowsOf(`/events?company=${bergmann}`)).text).toContain('Bergmann &amp; Söhne');
    expect((await rowsOf('/events?company=acme&since=24h')).rows).toBe(byId.rows);
    expect((await rowsOf('/events?company=acme&until=24h')).rows).toBe(0);
    // The action that the page offers means the same company at any time.
    expect((await rowsOf('/events?company=acme')).text).toContain(`/act/replay?company=${acme}`);
  });

  test('say what is wrong with a value of a filter, and show no rows then', async () => {
    const { ask } = await serve();
    const time =
      'It must be a time such as 2026-05-01T12:00:00Z, or how long ago it was, such as 90m, 24h or 7d.';
    for (const [path, why] of [
      ['/events?since=yesterday', `Since “yesterday”: ${time}`],
      ['/events?until=2026-02-30', `Until “2026-02-30”: ${time}`],
      ['/events?company=zzzz', 'Company “zzzz”: No company has this name or id.'],
      [
        '/events?company=e',
        'Acme Property Management, and Bergmann &amp; Söhne Immobilien. Give more of the name, or the id.',
      ],
      ['/events?outcome=lost', 'Outcome “lost”: It must be one of pending, applied, '],
      ['/events?code=NOPE', 'Code “NOPE”: It must be one of '],
      ['/issues?company=zzzz', 'Company “zzzz”: No company has this name or id.'],
      ['/issues?severity=fatal', 'Severity “fatal”: It must be one of error, warning, info.'],
      ['/issues?check=nope', 'Check “nope”: It must be one of '],
      ['/sites?company=zzzz', 'No company has this name or id.'],
    ] as const) {
      const text = await (await ask(path)).text();
      expect(text, path).toContain(why);
      expect(text, path).not.toContain('<tr id="row-');
    }
    expect((await ask('/deletes?run=latest')).status).toBe(404);
  });

  test('call a company in sync only if the verdict is In sync and its connections collect data', async () => {
    const { db, drop } = await createWarehouse();
    onTestFinished(drop);
    const id = randomUUID();
    await db.execute(
      sql`insert into utility.companies (id, raw, synced_at) values (${id}, '{"name": "Alder"}', now())`,
    );
    for (const resource of companyResources) {
      const part = { runId: randomUUID(), companyId: id, resource };
      await startRun(db, part);
      await finishRun(db, part, 'complete', {});
    }
    const statesWith = async (word: VerdictWord) => {
      const deps = { db } as ConsoleDependencies;
      const asking = { deps, verdict: { word, findings: [] }, query: new URLSearchParams(), now: Date.now() };
      const page = await companyList(asking as unknown as Asking);
      return [...String(await page?.body).matchAll(/<span class="badge [^>]*>([^<]*)/gs)].map(([, said]) =>
        said?.trim(),
      );
    };
    expect(await statesWith('In sync')).toEqual(['in sync']);
    expect(await statesWith('Broken')).toEqual(['read completely']);
    expect(await statesWith('Catching up')).toEqual(['read completely']);
    for (const status of ['CONNECTED', 'URL_INACCESSIBLE', 'WEBSITE_DOWN', 'PASSWORD_INCORRECT', 'PENDING'])
      await db.execute(sql`insert into utility.connections (id, company_id, raw, synced_at)
        values (gen_random_uuid(), ${id}, ${JSON.stringify({ status })}, now())`);
    expect(await statesWith('In sync')).toEqual([
      '1 connection needs a person',
      '2 connections collect nothing',
    ]);
  });

  test('list events page by page, each exactly once', async () => {
    const { ask } = await serve();
    const seen: string[] = [];
    let path: string | undefined = '/events';
    while (path !== undefined) {
      const text = await (await ask(path)).text();
      seen.push(...[...text.matchAll(/<tr id="row-([^"]+)"/g)].map(([, id = '']) => id));
      path = /href="([^"]+)" rel="next"/.exec(text)?.[1]?.replaceAll('&amp;', '&');
    }
    const { rows } = await warehouse.db.execute<{ id: string }>(
      sql`select id from metersync.journal order by received_at desc, id desc`,
    );
    expect(seen).toEqual(rows.map(({ id }) => id));
  });

  test('include a page for an event with the longest id that a receiver accepts', async () => {
    const { ask } = await serve();
    const id = `msg_${'~'.repeat(126)}${'%'.repeat(126)}`;
    await warehouse.db.execute(sql`
      insert into metersync.journal (id, type, kind, received_at, outcome, error)
      select ${id}, type, kind, received_at, outcome, error
      from metersync.journal where id = ${trouble.dead}`);
    onTestFinished(async () => {
      await warehouse.db.execute(sql`delete from metersync.journal where id = ${id}`);
    });
    const answer = await ask(`/events/${encodeURIComponent(id)}`);
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining(id)]);
  });

  test('answer 404 for what does not exist, with a link back', async () => {
    const { ask, post } = await serve();
    const before = await operations();
    for (const path of [
      '/nowhere',
      '/events/msg_none',
      '/events/msg%00',
      '/companies/x',
      `/runs/${trouble.document}`,
      '/issues/999999',
      '/act/nothing',
      '/act/constructor',
      '/act/__proto__',
    ]) {
      const answer = await ask(path);
      expect(answer.status, path).toBe(404);
      expect(await answer.text(), path).toContain('Page not found');
    }
    for (const name of ['constructor', 'toString', 'nothing'])
      expect((await post(`/act/${name}`)).status, name).toBe(404);
    expect(await operations()).toEqual(before);
  });

  test('use sessions that cannot write', async () => {
    const { openForPages } = await import('../../app/warehouse.ts');
    const pages = openForPages(readSettings(env), warehouse.url, pino({ level: 'silent' }));
    onTestFinished(() => pages.close());
    const error = await pages.db.execute(sql`delete from metersync.gates`).catch((failure) => failure);
    expect(String(error.cause ?? error)).toContain('read-only transaction');
  });
});

describe('access to the console', () => {
  test('on loopback is refused for any other name of this machine', async () => {
    const { url, cookie } = await serve();
    const { port } = new URL(url);
    const statusOf = (host: string) =>
      new Promise<number | undefined>((done, failed) => {
        request({ host: '127.0.0.1', port, headers: { host, cookie } }, (answer) => {
          answer.resume();
          done(answer.statusCode);
        })
          .on('error', failed)
          .end();
      });
    expect(await statusOf(`localhost:${port}`)).toBe(200);
    expect(await statusOf(`evil.example:${port}`)).toBe(403);
  });

  test('on loopback needs the link, which only the user who runs it can read, and says where that is', async () => {
    const { url, link = '', cookie } = await serve();
    const file = join(folder.path, 'console-link');
    expect(await readFile(file, 'utf8')).toBe(`${link}\n`);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const before = await operations();
    const wrong = { cookie: `${cookie.split('=')[0]}=${'x'.repeat(32)}` };
    for (const headers of [{}, wrong])
      for (const path of ['/', '/events', '/log', '/act/backfill?back=/', '/nowhere']) {
        const answer = await fetch(url + path, { headers });
        expect([answer.status, await answer.text()], path).toEqual([403, expect.stringContaining(file)]);
      }
    const act = await fetch(`${url}/act/backfill?back=/`, {
      method: 'POST',
      headers: { origin: url },
      body: new URLSearchParams(),
    });
    expect(act.status).toBe(403);
    expect((await fetch(`${url}/open/${'x'.repeat(32)}`)).status).toBe(403);
    expect(await operations()).toEqual(before);

    const opened = await fetch(link);
    expect(opened.status).toBe(200);
    expect(opened.headers.get('set-cookie')).toMatch(
      /^console_\w{16}=[\w-]{32}; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    expect(opened.headers.get('referrer-policy')).toBe('no-referrer');
    // A restart, at another port here, keeps the key, so that browsers stay signed in.
    const again = await serve();
    expect(again.cookie).toBe(cookie);
    expect(again.link).toBe(link.replace(url, again.url));
    // A file that others may have written or read is not believed.
    await chmod(file, 0o644);
    expect((await serve()).cookie).not.toBe(cookie);
  });

  test('of a viewer is read-only, and what a viewer tries is in the log', async () => {
    const { ask, post, own } = await serve({
      CONSOLE_USER_HEADER: 'x-user',
      CONSOLE_TRUSTED_PROXIES: '127.0.0.1',
    });
    const vera = { 'x-user': 'vera' };
    const shown = await (await ask('/', vera)).text();
    expect(shown).toContain('vera, viewer');
    expect(shown).not.toContain('/act/');
    const to = `/act/deletes-approve?run=${trouble.runs.suspect}`;
    expect((await ask(to, vera)).status).toBe(403);
    const before = await warehouse.db.execute(sql`select state from metersync.deletes`);
    expect((await post(to, {}, { ...own, ...vera })).status).toBe(403);
    expect((await warehouse.db.execute(sql`select state from metersync.deletes`)).rows).toEqual(before.rows);
    expect((await operations())[0]).toMatchObject({
      actor: 'vera',
      role: 'viewer',
      source: 'console',
      action: 'deletes approve',
      outcome: 'refused',
      target: { run: trouble.runs.suspect },
    });
  });

  test('through a proxy is accepted only if the proxy is trusted', async () => {
    const proxy = { CONSOLE_USER_HEADER: 'x-user', CONSOLE_OPERATORS: 'otto, Jörg Weiß' };
    const trusting = await serve({ ...proxy, CONSOLE_TRUSTED_PROXIES: '127.0.0.0/8' });
    expect(await (await trusting.ask('/', { 'x-user': 'otto' })).text()).toContain('otto, operator');
    expect(await (await trusting.ask('/', { 'x-user': 'vera' })).text()).toContain('vera, viewer');
    const inBytes = Buffer.from('Jörg Weiß').toString('latin1');
    expect(await (await trusting.ask('/', { 'x-user': inBytes })).text()).toContain('Jörg Weiß, operator');
    expect(await (await trusting.ask('/', { 'x-user': 'Jörg' })).text()).toContain('Jörg, viewer');
    expect((await trusting.ask('/')).status).toBe(403);
    const wary = await serve({ ...proxy, CONSOLE_TRUSTED_PROXIES: '10.0.0.0/8' });
    expect((await wary.ask('/', { 'x-user': 'otto' })).status).toBe(403);
  });

  test('from another site changes nothing', async () => {
    const { post } = await serve();
    const to = `/act/deletes-reject?run=${trouble.runs.suspect}`;
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }, {}])
      expect((await post(to, {}, headers)).status).toBe(403);
  });

  test('from a page at the same host with another scheme changes nothing, unless a proxy has that scheme', async () => {
    const to = '/act/deletes-reject?run=none';
    const { url, post } = await serve();
    const { host } = new URL(url);
    const [http, https] = [{ origin: `http://${host}` }, { origin: `https://${host}` }];
    // An action that does not exist is refused with 409, once the request is known to be our own.
    expect((await post(to, {}, http)).status).toBe(409);
    expect((await post(to, {}, https)).status).toBe(403);

    const user = { 'x-user': 'otto' };
    const proxied = await serve({
      CONSOLE_USER_HEADER: 'x-user',
      CONSOLE_OPERATORS: 'otto',
      CONSOLE_TRUSTED_PROXIES: '127.0.0.1',
    });
    const at = new URL(proxied.url).host;
    const statusOf = async (scheme: string, said: Record<string, string> = {}) =>
      (await proxied.post(to, {}, { ...user, origin: `${scheme}://${at}`, ...said })).status;
    expect([await statusOf('http'), await statusOf('https')]).toEqual([409, 409]);
    const tls = { 'x-forwarded-proto': 'https' };
    expect([await statusOf('http', tls), await statusOf('https', tls)]).toEqual([403, 409]);
  });
});

describe('an action', () => {
  test('says its number of rows and its effect, runs only once, and is in the log whether it is done or refused', async () => {
    const { ask, post } = await serve();
    const to = `/act/deletes-reject?run=${trouble.runs.suspect}&back=/deletes`;
    const listed = await (await ask('/deletes')).text();
    expect(listed).toContain('Acme Property Management');
    const each = await (await ask(`/deletes?run=${trouble.runs.suspect}`)).text();
    expect(each.match(/<tr id="row-documents-/g)).toHaveLength(60);
    expect(each).toContain('60 bills, held back: the service does not list them any more.');
    expect(listed + each).not.toMatch(/>[^<]*(quarantined|on hold|absent)/);
    expect(await (await ask(to)).text()).toContain('60 rows of run');
    const done = await post(to, { note: 'the utility moved' });
    expect(done.status).toBe(303);
    const shown = await (await ask(done.headers.get('location') ?? '')).text();
    expect(shown).toContain(
      '60 rows kept until the service lists them again; “Undo” asks for a decision again. Note: the utility moved',
    );
    expect(shown).toContain('Nothing waits for a decision');
    // Somebody has decided already, so the action says so and changes nothing.
    const again = await post(to);
    expect([again.status, await again.text()]).toEqual([
      409,
      expect.stringContaining('has nothing left to decide'),
    ]);
    const [refused, kept] = await listOperations(warehouse.db, { actor: 'ada' }, { limit: 2 });
    expect(refused).toMatchObject({ action: 'deletes reject', outcome: 'refused' });
    expect(kept).toMatchObject({
      actor: 'ada',
      source: 'console',
      action: 'deletes reject',
      outcome: 'done',
      detail: expect.stringMatching(/^60 rows kept .* Note: the utility moved$/),
    });
  });

  test('on readings that are held back names their meter and range, and counts readings', async () => {
    const { ask, post } = await serve();
    const { db } = warehouse;
    const runId = randomUUID();
    const [from, until] = ['2026-05-01T00:00:00Z', '2026-05-01T03:00:00Z'];
    await db.execute(sql`
      insert into utility.meters (id, company_id, raw)
      values ('m-held', ${trouble.companies[0]}, '{"identifiers": [{"name": "METER", "value": "E-77"}]}')`);
    await db.execute(sql`select metersync.ensure_interval_month(${from}::timestamptz)`);
    await db.execute(sql`
      insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, synced_at)
      select 'm-held', ${from}::timestamptz + n * interval '15 minutes', 900, 'kWh', 1, now() - interval '1 day'
      from generate_series(0, 11) n`);
    await db.execute(sql`
      insert into metersync.deletes
        (run_id, company_id, resource, record_id, state, absent_since, meter_id, usage_units, starts_from,
          starts_before, readings)
      values (${runId}, ${trouble.companies[0]}, 'intervals', 'm-held of a day', 'quarantined', now(), 'm-held',
        'kWh', ${from}, ${until}, 12)`);
    expect(await (await ask('/deletes')).text()).toContain('12 readings');
    const listed = await (await ask(`/deletes?run=${runId}`)).text();
    expect(listed).toContain('E-77 12 readings<small class="id">intervals m-held</small>');
    expect(listed).toContain('2026-05-01 00:00 to 2026-05-01 03:00 UTC');
    const list = await runCommand(['deletes', 'list'], { env });
    expect(list.stdout).toContain('E-77 (m-held 2026-05-01 00:00 to 2026-05-01 03:00 UTC)');
    const stored = async () => {
      const { rows } = await db.execute(sql`select from utility.intervals where meter_id = 'm-held'`);
      return rows.length;
    };
    const decide = async (decision: string) => {
      const to = `/act/deletes-${decision}?run=${runId}&back=/deletes`;
      const question = await (await ask(to)).text();
      const done = await post(to);
      return [question, await (await ask(done.headers.get('location') ?? '')).text()];
    };
    expect(await decide('approve')).toEqual([
      expect.stringContaining('12 rows of run'),
      expect.stringContaining('12 rows deleted'),
    ]);
    expect(await stored()).toBe(0);
    expect(await decide('undo')).toEqual([
      expect.stringContaining('12 rows of run'),
      expect.stringContaining('12 rows restored'),
    ]);
    expect(await stored()).toBe(12);
  });

  test('that is impossible says why on its page, and is in the log', async () => {
    const { post } = await serve();
    const refused = await post('/act/replay?outcome=dead');
    expect([refused.status, await refused.text()]).toEqual([
      409,
      expect.stringContaining('no worker is running'),
    ]);
    expect((await operations())[0]).toMatchObject({
      action: 'replay',
      outcome: 'refused',
      target: { outcome: 'dead' },
    });
  });

  test('that Postgres refuses is logged and shown with the message of Postgres, without the statement', async () => {
    const { ask, post } = await serve();
    const to = `/act/issue-acknowledge?id=${trouble.issue}`;
    await warehouse.db.execute(sql`alter function ops.issue_sentence (text, text, jsonb) rename to renamed`);
    const failed = [await ask(to), await post(to)];
    await warehouse.db.execute(sql`alter function ops.renamed (text, text, jsonb) rename to issue_sentence`);
    await warehouse.db.execute(
      sql`alter table ops.data_issues add constraint silent check (acknowledged_note is null) not valid`,
    );
    const acknowledged = await post(`/act/issue-acknowledge?id=${trouble.issue}`, { note: 'of a customer' });
    await warehouse.db.execute(sql`alter table ops.data_issues drop constraint silent`);
    for (const answer of [...failed, acknowledged]) {
      const text = await answer.text();
      expect([answer.status, text]).toEqual([409, expect.stringContaining('Postgres: ')]);
      expect(text).not.toContain('Failed query');
    }
    expect((await operations()).slice(0, 2).map(({ detail }) => detail)).toEqual([
      expect.stringMatching(/^Postgres: /),
      expect.stringMatching(/^Postgres: /),
    ]);
  });

  test('never affects more than its address says', async () => {
    const { ask } = await serve();
    for (const [to, why] of [
      ['resume?code=OF_ANOTHER_VERSION', 'OF_ANOTHER_VERSION'],
      ['replay?outcome=dead&company=zzzz', 'Company “zzzz”'],
      ['replay?outcome=dead&since=yesterday', 'Since “yesterday”'],
    ] as const) {
      const answer = await ask(`/act/${to}`);
      expect([answer.status, await answer.text()], to).toEqual([409, expect.stringContaining(why)]);
    }
  });

  test('resumes what a failure parked', async () => {
    const { ask, post } = await serve();
    const to = '/act/resume?code=SERVICE_ACCESS_DENIED&back=/';
    expect(await (await ask(to)).text()).toContain(
      '3 events become due at once. The companies of 2 parts of backfills',
    );
    expect((await post(to)).status).toBe(303);
    expect((await operations())[0]).toMatchObject({
      action: 'resume',
      outcome: 'done',
      target: { code: 'SERVICE_ACCESS_DENIED' },
    });
    const { rows } = await warehouse.db.execute(
      sql`select 1 from metersync.journal
        where outcome = 'pending' and due_at > now() and error_code = 'SERVICE_ACCESS_DENIED'`,
    );
    expect(rows).toEqual([]);
  });

  test('acknowledges an issue with a note; the command takes that back, and is in the log, too', async () => {
    const { ask, post } = await serve();
    const to = `/act/issue-acknowledge?id=${trouble.issue}&back=/issues/${trouble.issue}`;
    expect((await post(to, { note: hostile })).status).toBe(303);
    const text = await (await ask(`/issues/${trouble.issue}`)).text();
    expect(text).toContain('Withdraw acknowledgement');
    expect(text).not.toContain('<img');
    expect(
      (await runCommand(['checks', 'acknowledge', String(trouble.issue), '--undo'], { env })).status,
    ).toBe(0);
    expect((await runCommand(['checks', 'acknowledge', '999999'], { env })).status).toBe(1);
    const [failed, undone] = await operations();
    expect(failed).toMatchObject({ source: 'command', outcome: 'refused', target: { id: '999999' } });
    expect(undone).toMatchObject({
      action: 'issue unacknowledge',
      source: 'command',
      outcome: 'done',
      actor: 'ada',
    });
  });

  test('pauses a schedule with a reason, and resumes it', async () => {
    const connection = await Connection.connect({ address: inject('temporalAddress') });
    onTestFinished(() => connection.close());
    const client = new Client({ connection, namespace });
    await applySchedules(client, readSettings({}).schedules);
    const { ask, post } = await serve();
    expect(
      (await post('/act/schedule-pause?kind=full&back=/system', { note: 'the service moves' })).status,
    ).toBe(303);
    expect(await readSchedule(client, 'full')).toMatchObject({
      state: 'paused',
      reason: expect.stringMatching(/^paused by ada at .*Z: the service moves$/),
    });
    expect(await (await ask('/system')).text()).toContain('the service moves');
    expect((await post('/act/schedule-pause?kind=full')).status).toBe(409);
    expect(
      (await post('/act/schedule-resume?kind=full&back=//evil.example')).headers.get('location'),
    ).toMatch(/^\/\?done=\d+$/);
    expect((await operations()).slice(0, 2).map(({ action }) => action)).toEqual([
      'schedule resume',
      'schedule pause',
    ]);
    expect((await runCommand(['schedule', 'pause', 'full', '--reason', 'x'], { env })).status).toBe(0);
    expect((await operations())[0]).toMatchObject({
      action: 'schedule pause',
      source: 'command',
      target: {
        command: 'metersync schedule pause full --reason x',
        schedule: 'full',
        reason: 'x',
      },
    });
  });
});

test('an entry of the log of operations can only be finished once, and not changed or deleted otherwise', async () => {
  const writer = await loginAs('metersync_writer', warehouse);
  const { rows } = await writer.db.execute<{ id: string }>(sql`
    insert into metersync.operations (actor, role, source, action, target)
    values ('ada', 'operator', 'command', 'resume', '{}') returning id::text`);
  const id = rows[0]?.id;
  const refused = async (statement: ReturnType<typeof sql>) =>
    expect(String((await writer.db.execute(statement).catch((error) => error)).cause)).toMatch(
      /is a log|permission denied/,
    );
  await refused(sql`update metersync.operations set actor = 'bob' where id = ${id}`);
  await refused(sql`delete from metersync.operations where id = ${id}`);
  await refused(sql`truncate metersync.operations`);
  await refused(
    sql`update metersync.operations set outcome = 'done', finished_at = now(), actor = 'bob' where id = ${id}`,
  );
  await writer.db.execute(
    sql`update metersync.operations set outcome = 'done', finished_at = now() where id = ${id}`,
  );
  await refused(
    sql`update metersync.operations set outcome = 'failed', finished_at = now() where id = ${id}`,
  );
});
