import { pino } from 'pino';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { readSettings } from '../../app/settings/settings.ts';
import { startConsole } from '../../cli/commands/console.ts';
import { type Browser, eventually, expectGoodPage, openBrowser, watchErrors } from '../support/browser.ts';
import { createNamespace } from '../support/namespace.ts';
import { fillTrouble, type Trouble } from '../support/trouble.ts';
import { createWarehouse } from '../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
let browser: Browser;
let trouble: Trouble;
let running: Awaited<ReturnType<typeof startConsole>>;

beforeAll(async () => {
  let namespace: string;
  [warehouse, browser, namespace] = await Promise.all([createWarehouse(), openBrowser(), createNamespace()]);
  trouble = await fillTrouble(warehouse);
  running = await startConsole(
    {
      settings: readSettings({ METERSYNC_ACTOR: 'ada' }),
      log: pino({ level: 'silent' }),
      stack: {
        databaseUrl: warehouse.url,
        temporal: { address: inject('temporalAddress'), namespace },
        hasTemporal: true,
        temporalUi: 'http://127.0.0.1:8233',
        standIns: [],
        databaseFor: async () => '',
        stop: async () => {},
      },
    },
    { host: '127.0.0.1', port: 0 },
  );
});
afterAll(async () => {
  await running?.stop();
  await Promise.all([warehouse.drop(), browser.close()]);
});

test('each page looks right on a desktop and on a phone, in light and dark', async () => {
  const context = await browser.person();
  const page = await context.newPage();
  const errors = watchErrors(page);
  const { companies, document, runs, dead, issue } = trouble;
  const paths = {
    overview: '/',
    events: '/events?outcome=dead',
    event: `/events/${dead}?show=payload`,
    companies: '/companies',
    company: `/companies/${companies[0]}`,
    sites: '/sites',
    runs: '/runs',
    run: `/runs/${runs.suspect}`,
    deletes: '/deletes',
    deleted: `/deletes?run=${runs.suspect}`,
    issues: '/issues',
    issue: `/issues/${issue}`,
    trace: `/trace?q=${document}`,
    system: '/system',
    act: `/act/deletes-approve?run=${runs.suspect}`,
    log: '/log',
  };
  for (const [name, path] of Object.entries(paths)) {
    await page.goto(running.url + path);
    await expectGoodPage(page, `console-${name}`);
  }
  expect(errors).toEqual([]);
  await context.close();
});

test('follows what happens until it is paused, and works without script', async () => {
  const context = await browser.person();
  const page = await context.newPage();
  await page.goto(`${running.url}/log`);
  await page.goto(`${running.url}/events`);
  const asOf = () => page.locator('#as-of time').getAttribute('datetime');
  const first = await asOf();
  await eventually(asOf).not.toBe(first);
  await page.getByRole('button', { name: 'Pause updates' }).click();
  expect(await page.getByRole('button', { name: 'Pause updates' }).getAttribute('aria-pressed')).toBe('true');
  await context.close();
  const plain = await browser.person({ javaScriptEnabled: false });
  const bare = await plain.newPage();
  await bare.goto(`${running.url}/issues/${trouble.issue}`);
  await bare.getByRole('link', { name: 'Acknowledge' }).click();
  await bare.getByLabel('Note').fill('the utility corrects it');
  await bare.getByRole('button', { name: 'Acknowledge' }).click();
  await eventually(() => bare.textContent('main')).toContain('the utility corrects it');
  await plain.close();
});
