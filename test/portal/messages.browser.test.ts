import type { BrowserContext, Page } from 'playwright-core';
import { beforeEach, describe, expect, test } from 'vitest';
import { answerWith, startReceiver } from '../sandbox/support/receiver.ts';
import { eventually, expectGoodPage, openBrowser, watchErrors } from '../support/browser.ts';
import { forFile } from '../support/for-file.ts';
import { until } from '../support/poll.ts';
import { startPortal } from './support/portal.ts';

let person: BrowserContext;
let page: Page;
let errors: string[];

const longAnswer = `{"error":"${'away '.repeat(6_000)}"}`;
const failing = answerWith(
  503,
  { 'content-type': 'application/json', 'x-reason': '<b>none</b>' },
  longAnswer,
);

const [portal, browser, working, broken] = await Promise.all([
  forFile(startPortal({ companies: 1, documents: 20, intervalDays: 1 })),
  forFile(openBrowser()),
  forFile(startReceiver()),
  forFile(startReceiver(failing)),
]);
await portal.endpoint(working.url);
await portal.endpoint(broken.url, ['document.created.v2']);
await portal.service.control('POST', '/sandbox/random', { count: 60, seed: 3 });
const tried = (times: number) =>
  until(`each message arrived or was tried ${times} times`, async () =>
    (await portal.deliveries()).every(({ state, attempts }) => state === 'delivered' || attempts >= times),
  );
await tried(1);
// Afterwards the next retry is minutes away, and not seconds.
await portal.advance(5);
await tried(2);
beforeEach(async () => {
  person = await browser.person();
  page = await person.newPage();
  errors = watchErrors(page);
  await portal.open(page);
  await page.getByRole('link', { name: 'Messages', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
  return async () => {
    expect(errors).toEqual([]);
    await person.close();
  };
});

const rows = () => page.getByRole('table', { name: 'Messages, the newest first' }).locator('tbody tr');
const shownIds = () => rows().locator('.id').allInnerTexts();
const filter = async (choices: Readonly<Record<string, string>>) => {
  for (const [label, option] of Object.entries(choices)) {
    await page.getByRole('form', { name: 'Filter' }).getByLabel(label).selectOption({ label: option });
  }
  await page.getByRole('button', { name: 'Filter' }).click();
};
const failedIds = async () =>
  (await portal.deliveries()).filter(({ state }) => state !== 'delivered').map(({ eventId }) => eventId);

describe('messages', () => {
  test('are listed newest first, page by page, each exactly once', async () => {
    const all = (await portal.service.eventsAfter(0)).map(({ id }) => id).reverse();
    expect(all.length).toBeGreaterThan(50);
    const seen = await shownIds();
    expect(seen).toHaveLength(50);
    await expectGoodPage(page, 'messages');
    await page.getByRole('link', { name: 'Older messages' }).click();
    await page.getByRole('link', { name: 'Newest' }).waitFor();
    seen.push(...(await shownIds()));
    expect(seen).toEqual(all);
    await page.getByRole('link', { name: 'Newest' }).click();
    await eventually(shownIds).toEqual(all.slice(0, 50));
  });

  test('are filtered by type, status and endpoint', async () => {
    const events = (await portal.service.eventsAfter(0)).reverse();
    await filter({ 'Event type': 'document.created.v2' });
    const created = events.filter(({ type }) => type === 'document.created.v2').map(({ id }) => id);
    await eventually(shownIds).toEqual(created);

    await page.getByRole('link', { name: 'Clear' }).click();
    await filter({ Status: 'Retrying' });
    await eventually(async () => (await shownIds()).sort()).toEqual((await failedIds()).sort());
    expect(await rows().getByText('Retrying').count()).toBe((await failedIds()).length);

    await filter({ Endpoint: working.url });
    await page.getByText('No message matches').waitFor();
    await filter({ Status: 'Delivered', 'Event type': 'document.created.v2' });
    await eventually(shownIds).toEqual(created);
    await page.getByRole('link', { name: 'Clear' }).click();
    await eventually(async () => (await shownIds()).length).toBe(50);
  });

  test('service.md 6.5.1: a message shows its payload, and status, time and answer of each attempt', async () => {
    await filter({ Status: 'Retrying' });
    await rows().getByRole('link').first().click();
    const heading = page.getByRole('heading', { level: 1 });
    await eventually(() => heading.innerText()).toBe('document.created.v2');
    const id = page.url().split('/').at(-1) ?? '';
    const event = (await portal.service.eventsAfter(0)).find((one) => one.id === id);
    expect(JSON.parse(await page.getByRole('region', { name: 'Payload text' }).innerText())).toEqual(
      event?.payload,
    );

    const delivery = page.getByRole('article').filter({ hasText: broken.url });
    await delivery.getByText('Retrying').waitFor();
    await delivery.getByText(/Next attempt/).waitFor();
    const attempt = delivery.getByRole('listitem').last();
    await attempt.getByText('Attempt 1').click();
    await attempt.getByText('503 Service Unavailable').waitFor();
    expect(await attempt.getByRole('group').first().innerText()).toMatch(/\d ms/);
    const answer = await attempt.getByRole('region', { name: 'Answer body' }).innerText();
    expect(Buffer.byteLength(answer)).toBe(20_000);
    expect(longAnswer.startsWith(answer)).toBe(true);
    await attempt.getByText('Answer headers').click();
    await attempt.getByText('<b>none</b>').waitFor();
    await attempt.getByText('Sent headers').click();
    await attempt.getByText('webhook-signature').waitFor();
    await expectGoodPage(page, 'message');

    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download' }).click(),
    ]);
    expect(file.suggestedFilename()).toBe(`${id}.json`);
  });

  test('service.md 6.5.3: a single message is resent from the options menu of an attempt', async () => {
    await filter({ Status: 'Retrying' });
    await rows().getByRole('link').last().click();
    const delivery = page.getByRole('article').filter({ hasText: broken.url });
    const id = page.url().split('/').at(-1) ?? '';
    broken.answer = answerWith(200, {}, 'thank you');
    const arrived = () => broken.deliveries.filter(({ headers }) => headers['webhook-id'] === id);
    const before = arrived().length;

    const menu = delivery.getByLabel(/^Options of attempt/).first();
    await menu.click();
    await page.keyboard.press('Escape');
    await eventually(() => page.getByRole('button', { name: 'Resend message' }).count()).toBe(0);
    await menu.press('Enter');
    await page.getByRole('button', { name: 'Resend message' }).first().click();
    await page.getByText('The message is being sent again.').waitFor();
    await delivery.getByText('Delivered').waitFor();
    await delivery.getByRole('listitem').filter({ hasText: '200 OK' }).getByText('Resent').waitFor();
    expect(arrived()).toHaveLength(before + 1);
    // Resending has cancelled the waiting retry.
    expect(await delivery.getByText(/Next attempt/).count()).toBe(0);
    await portal.advance(30 * 3600);
    await portal.service.quiet();
    expect(arrived()).toHaveLength(before + 1);
    broken.answer = failing;
  });
});
