import { desc, isNull, sql } from 'drizzle-orm';
import { Webhook } from 'standardwebhooks';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { createNotifier } from '../../activities/notifier.ts';
import { type LookResult, watchActivities } from '../../activities/watch.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { readWatch } from '../../db/read/health.ts';
import { alerts } from '../../db/schema/metersync.ts';
import type { Health } from '../../health/measured.ts';
import { activityEnvironment } from '../support/activities.ts';
import { startCollector } from '../support/collector.ts';
import { forFile } from '../support/for-file.ts';
import { away, health } from '../support/health-states.ts';
import { createWarehouse } from '../support/warehouse.ts';

const secret = `whsec_${Buffer.from('a secret of twenty-four bytes').toString('base64')}`;
const dead = health({ dead: 3 });

/** Paths that the collector refuses. */
const down = new Set<string>();
/** What happens before the collector answers a message. */
let meanwhile: (() => Promise<unknown>) | undefined;
const warehouse = await forFile(createWarehouse());
const collector = await forFile(
  startCollector(async ({ path }) => {
    if (path === '/json') await meanwhile?.();
    return down.has(path) ? 503 : 202;
  }),
);
beforeEach(async () => {
  await warehouse.db.delete(alerts);
  collector.got.length = 0;
  down.clear();
});

const liveAlerts = () =>
  warehouse.db.select().from(alerts).where(isNull(alerts.closedAt)).orderBy(desc(alerts.pendingSince));

/** Makes the look of a worker with the test's clock. `looks(health, minutes)` looks each minute. */
function watcher(url = 'URL/json') {
  let clock = Date.parse('2026-11-23T00:00:00Z');
  let state: Health = health();
  const NOTIFY_URL = url.replace('URL', collector.url);
  const { target } = readSettings({ NOTIFY_URL, NOTIFY_SECRET: secret }).notify;
  const logged: unknown[] = [];
  const keep = (...line: unknown[]): void => void logged.push(line);
  const { look } = watchActivities({
    watching: warehouse,
    readHealth: async () => state,
    notifier: createNotifier({
      target,
      secret,
      heartbeatUrl: `${collector.url}/beat/xyz-of-ours`,
      now: () => clock,
    }),
    wallClock: () => clock,
    now: () => performance.now(),
    log: { info: keep, warn: keep, error: keep },
  } as unknown as Parameters<typeof watchActivities>[0]);
  return {
    logged,
    at: () => clock,
    async looks(next: Health, minutes = 1) {
      state = next;
      let absence: LookResult['absence'] = null;
      for (let passed = 0; passed < minutes; passed += 1) {
        clock += 60_000;
        const looked: LookResult = await activityEnvironment().run(look, {});
        absence = looked.absence;
      }
      return absence;
    },
  };
}
const changes = (path = '/json') =>
  collector
    .bodies(path)
    .flatMap(({ data }) =>
      data.alerts.map((one: { change: string; alert: string }) => `${one.change} ${one.alert}`),
    );
const posts = () => collector.got.filter(({ path }) => path === '/json');
const beats = () => collector.got.filter(({ path }) => path.startsWith('/beat')).length;

test('an alarm is sent once when it opens and once when it is over', async () => {
  const { looks } = watcher();
  await looks(health(), 2);
  expect(changes()).toEqual([]);
  await looks(health({ dead: 3, rejectedRecords: 1, missingLately: 2 }), 70);
  expect(changes()).toEqual(['opened EventsDead', 'opened EventsMissing', 'opened RecordsRefused']);
  await looks(health({ rejectedRecords: 1 }));
  await looks(health());
  expect(changes().slice(3)).toEqual([
    'resolved EventsDead',
    'resolved EventsMissing',
    'resolved RecordsRefused',
  ]);
  expect(await liveAlerts()).toEqual([]);
});

test('a message says what to do, is signed, and has the same id when the alarm opens and when it is resolved', async () => {
  const { looks, at } = watcher();
  await looks(dead);
  await looks(health());
  const [opened, resolved] = collector.bodies('/json');
  expect(opened.data.alerts[0]).toMatchObject({
    change: 'opened',
    alert: 'EventsDead',
    severity: 'ticket',
    detail: '3 events cannot be applied',
    counts: { events: 3 },
    runbook: 'docs/runbooks.md#eventsdead',
    todo: [expect.stringContaining('events replay')],
    until: null,
  });
  expect(resolved.data.alerts[0]).toMatchObject({ id: opened.data.alerts[0].id, change: 'resolved' });
  const sent = posts();
  for (const { headers, body } of sent) {
    // The library refuses old times, so its clock is set to the test's time.
    const now = Date.now;
    Date.now = at;
    onTestFinished(() => {
      Date.now = now;
    });
    expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({
      type: 'metersync.alerts',
    });
    expect(() => new Webhook(secret).verify(`${body} `, headers as Record<string, string>)).toThrow();
    Date.now = now;
  }
});

test('messages to a target that is down are sent again each minute, in order and with the same id and text', async () => {
  const { looks } = watcher();
  const certificate = { expiresAt: '2026-11-30T00:00:00Z', secondsLeft: 60 };
  const twoIll = health({ dead: 3 }, { certificate });
  down.add('/json');
  await looks(twoIll, 2);
  expect(changes()).toEqual(['opened CertificateExpires', 'opened CertificateExpires']);
  expect((await liveAlerts()).map(({ notifiedAt }) => notifiedAt)).toEqual([null, null]);
  expect((await readWatch(warehouse.db)).unsent).toEqual({
    seconds: expect.any(Number),
    error: 'it answered 503: secret … said\\0',
  });
  down.clear();
  const [refused] = posts();
  collector.got.length = 0;
  await looks(twoIll);
  expect(changes()).toEqual(['opened CertificateExpires', 'opened EventsDead']);
  const [taken] = posts();
  expect(taken?.body).toBe(refused?.body);
  expect(taken?.headers['webhook-id']).toBe(refused?.headers['webhook-id']);
  expect((await readWatch(warehouse.db)).unsent).toBeNull();
  expect((await liveAlerts()).map(({ error }) => error)).toEqual([null, null]);
});

test('the end of an alarm is sent for up to a day if the target was down when the alarm ended', async () => {
  const { looks } = watcher();
  down.add('/json');
  await looks(dead);
  await looks(health());
  down.clear();
  collector.got.length = 0;
  await looks(health(), 2);
  expect(changes()).toEqual(['resolved EventsDead']);
  await warehouse.db.update(alerts).set({ notifiedAt: null, closedAt: '2026-11-21T23:59:00Z' });
  await looks(health());
  expect(changes().length).toBe(1);
});

test('the end of an alarm is sent even if the alarm closes while its opening is sent', async () => {
  const [one, another] = [watcher(), watcher('')];
  // Its clock is a minute ahead.
  await another.looks(health());
  meanwhile = () => another.looks(health());
  await one.looks(dead);
  meanwhile = undefined;
  await one.looks(health());
  expect(changes()).toEqual(['opened EventsDead', 'resolved EventsDead']);
});

test('open alarms are sent to a target that is set later', async () => {
  const without = watcher('');
  await without.looks(dead, 3);
  expect((await readWatch(warehouse.db)).unsent).toBeNull();
  const { looks } = watcher();
  await looks(dead);
  expect(changes()).toEqual(['opened EventsDead']);
});

test('the text to Slack says what to do and contains no markup', async () => {
  const { looks } = watcher('slack+URL/T0/B0/xyz');
  await looks(dead);
  await looks(health());
  const [opened, resolved] = collector.bodies('/T0/B0/xyz').map(({ text }) => text);
  expect(opened).toMatch(
    /^metersync: EventsDead opened \(ticket\): .*3 events cannot be applied\nWhat to do: .*\nRunbook: docs/,
  );
  expect(opened).not.toMatch(/[<>]/);
  expect(resolved).toMatch(/^metersync: EventsDead resolved \(ticket\): .*3 events cannot be applied$/);
});

test('a target address may have a percent sign in its login', async () => {
  const { looks } = watcher(`http://ada:100%safe%40home@${new URL(collector.url).host}/json`);
  await looks(dead);
  const [login] = collector.got.map(({ headers }) => headers.authorization).filter(Boolean);
  expect(login).toBe(`Basic ${Buffer.from('ada:100%safe@home').toString('base64')}`);
});

test('the dead man’s switch is called each minute, but not while an alarm that pages somebody is open', async () => {
  const { looks, logged } = watcher();
  await looks(dead, 3);
  expect(beats()).toBe(3);
  await looks(health({ oldestDueSeconds: 1_000 }), 8);
  // The alarm opens after five minutes.
  expect(beats()).toBe(3 + 5);
  await looks(health());
  expect(beats()).toBe(9);
  down.add('/beat/xyz-of-ours');
  await looks(health());
  expect(JSON.stringify(logged)).toContain('HEARTBEAT_URL was not called');
  expect(JSON.stringify(logged)).not.toContain('xyz');
});

test('while the warehouse is away or takes no writes, nothing is sent and the dead man’s switch is not called', async () => {
  const { looks, logged } = watcher();
  await looks(dead);
  expect(await looks({ ...health(), warehouse: away, schema: null }, 8)).toBe(away.away);
  await warehouse.db.execute(sql`alter table metersync.heartbeat rename to heartbeat_gone`);
  expect(await looks(health(), 6)).toContain('takes no writes');
  await warehouse.db.execute(sql`alter table metersync.heartbeat_gone rename to heartbeat`);
  expect(beats()).toBe(1);
  expect(changes()).toEqual(['opened EventsDead']);
  expect(JSON.stringify(logged)).toContain('a look was not noted');
  expect(await looks(health())).toBeNull();
  expect(beats()).toBe(2);
  expect(changes()).toEqual(['opened EventsDead', 'resolved EventsDead']);
});

test('an open alarm that only another version knows is left to that version, and does not stop other alarms', async () => {
  const { looks } = watcher();
  await looks(dead);
  await warehouse.db.update(alerts).set({ name: 'OfAnotherVersion' });
  await looks(dead, 2);
  expect(changes()).toEqual(['opened EventsDead', 'opened EventsDead']);
  const live = await liveAlerts();
  expect(live.map(({ name }) => name).sort()).toEqual(['EventsDead', 'OfAnotherVersion']);
});

test('two watches at the same time open one alarm, and send it with one id', async () => {
  const both = [watcher(), watcher()];
  await Promise.all(both.map(({ looks }) => looks(dead)));
  const sent = posts();
  expect(new Set(sent.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  await both[0]?.looks(dead);
  expect(posts().length).toBe(sent.length);
});
