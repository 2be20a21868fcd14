import type { Page } from 'playwright-core';
import { expect, inject, test } from 'vitest';
import { eventually, expectGoodPage, openBrowser, watchErrors } from '../support/browser.ts';
import { serveConsole } from '../support/console.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { createNamespace } from '../support/namespace.ts';
import { fillTrouble } from '../support/trouble.ts';
import { createWarehouse } from '../support/warehouse.ts';

const [warehouse, folder, browser, namespace] = await Promise.all([
  forFile(createWarehouse()),
  forFile(temporaryFolder()),
  forFile(openBrowser()),
  createNamespace(),
]);
const trouble = await fillTrouble(warehouse);
const running = await forFile(
  serveConsole(
    { METERSYNC_ACTOR: 'ada', METERSYNC_DIR: folder.path },
    {
      databaseUrl: warehouse.url,
      temporal: { address: inject('temporalAddress'), namespace },
      temporalUi: 'http://127.0.0.1:8233',
    },
  ),
);

/** Opens the console with its link, and waits for the page to which that leads. */
async function enter(page: Page): Promise<void> {
  await page.goto(running.link ?? '');
  await page.waitForURL(`${running.url}/`);
}

test('says where its link is until that is opened, and no later address contains the key', async () => {
  const context = await browser.person();
  const page = await context.newPage();
  const errors = watchErrors(page);
  expect((await page.goto(`${running.url}/events`))?.status()).toBe(403);
  await page.getByRole('heading', { name: 'Open the console with its link' }).waitFor();
  await page.getByText(`${folder.path}/console-link`).waitFor();
  await expectGoodPage(page, 'console-closed');
  await enter(page);
  await page.getByRole('heading', { level: 1, name: /Broken/ }).waitFor();
  const key = running.link?.split('/').at(-1) ?? '';
  expect(key).toMatch(/^[\w-]{32}$/);
  expect(await page.content()).not.toContain(key);
  expect(await page.evaluate('document.referrer')).not.toContain(key);
  expect(errors).toEqual([]);
  await context.close();
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
  await enter(page);
  for (const [name, path] of Object.entries(paths)) {
    await page.goto(running.url + path);
    await expectGoodPage(page, `console-${name}`);
  }
  expect(errors).toEqual([]);
  await context.close();
});

/** How many pixels of the placeholder the search has no room for; zero or less if all of it is visible. */
const cutOff = (page: Page) =>
  page.evaluate<number>(`(() => {
    const field = document.getElementById('search');
    const style = getComputedStyle(field);
    const canvas = document.createElement('canvas').getContext('2d');
    canvas.font = style.font;
    const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return Math.ceil(canvas.measureText(field.placeholder).width - room);
  })()`);

/** Whether the right edge of a part of the page is visible in the part that scrolls it. */
const isAtEnd = (page: Page, part: string) =>
  page.evaluate<boolean>(`(() => {
    const part = document.querySelector(${JSON.stringify(part)});
    const scrolls = part.closest('.scrolls').getBoundingClientRect();
    const { left, right } = part.getBoundingClientRect();
    return left >= scrolls.left && Math.floor(right) <= Math.ceil(scrolls.right);
  })()`);

/** Pairs of texts of drawings that overlap. */
const overlaps = (page: Page) =>
  page.evaluate<string[]>(`[...document.querySelectorAll('.chart')].flatMap((chart) => {
    const texts = [...chart.querySelectorAll('text')].map((one) => [one.textContent, one.getBoundingClientRect()]);
    return texts.flatMap(([name, a], at) =>
      texts.slice(at + 1)
        .filter(([, b]) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)
        .map(([other]) => name + ' and ' + other));
  })`);

test('nothing is cut off: the placeholder of the search, the newest month, and the texts of charts', async () => {
  const context = await browser.person();
  const page = await context.newPage();
  await enter(page);
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 900 });
    for (const path of ['/', `/companies/${trouble.companies[0]}`, '/issues', '/runs']) {
      await page.goto(running.url + path);
      expect(await cutOff(page), `${path} at ${width}`).toBeLessThanOrEqual(0);
      expect(await overlaps(page), `${path} at ${width}`).toEqual([]);
    }
    await page.goto(`${running.url}/companies/${trouble.companies[0]}`);
    expect(await isAtEnd(page, '.calendar thead tr:last-child th:last-child'), `at ${width}`).toBe(true);
  }
  await context.close();
});

test('follows what happens until it is paused, and works without script', async () => {
  const context = await browser.person();
  const page = await context.newPage();
  await enter(page);
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
  await enter(bare);
  await bare.goto(`${running.url}/issues/${trouble.issue}`);
  await bare.getByRole('link', { name: 'Acknowledge' }).click();
  await bare.getByLabel('Note').fill('the utility corrects it');
  await bare.getByRole('button', { name: 'Acknowledge' }).click();
  await eventually(() => bare.textContent('main')).toContain('the utility corrects it');
  await plain.close();
});
