import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { type Receiver, startReceiver } from '../sandbox/support/receiver.ts';
import { eventually, expectGoodPage, openBrowser, watchErrors } from '../support/browser.ts';
import { startPortal } from './support/portal.ts';

/** One receiver for each test. Earlier receivers continue to answer, so that nothing waits for a retry. */
let receiver: Receiver;
const receivers: Receiver[] = [];
let person: BrowserContext;
let page: Page;
let errors: string[];

const [portal, browser] = await Promise.all([startPortal(), openBrowser()]);
afterAll(async () => {
  await browser.close();
  await portal.stop();
  await Promise.all(receivers.map((one) => one.close()));
});
beforeEach(async () => {
  person = await browser.person({ permissions: ['clipboard-read', 'clipboard-write'] });
  page = await person.newPage();
  errors = watchErrors(page);
  receiver = await startReceiver();
  receivers.push(receiver);
  await portal.open(page);
  return async () => {
    expect(errors).toEqual([]);
    await person.close();
  };
});

interface Listed {
  readonly id: string;
  readonly url: string;
  readonly state: string;
  readonly eventTypes: readonly string[];
  readonly secret: string;
}
const endpoints = async () =>
  (await portal.service.control<{ endpoints: Listed[] }>('GET', '/sandbox/endpoints')).endpoints;
const byUrl = async (url: string) => (await endpoints()).find((one) => one.url === url);

/** Adds an endpoint for one test, and opens its settings. */
async function settingsOf(name: string): Promise<{ id: string; url: string; secret: string }> {
  const url = `${receiver.url}/${name}`;
  const { id, secret } = await portal.endpoint(url);
  await page.goto(`${page.url().replace(/\/endpoints.*/, '')}/endpoints/${id}/settings`);
  return { id, url, secret };
}
const companyId = async () => (await portal.service.api<{ id: string }[]>('/company')).body[0]?.id ?? '';
const somethingHappens = async () =>
  portal.service.change({ type: 'createConnection', companyId: await companyId() });

describe('endpoints', () => {
  test('service.md 6.5.1: an endpoint URL is added, with the event types that are chosen', async () => {
    await page.getByRole('link', { name: 'Add endpoint' }).click();
    await page.getByLabel('Endpoint URL').fill(`${receiver.url}/added`);
    await page.getByLabel('document.created.v2').check();
    await page.getByLabel('intervals.synced').check();
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    await page.getByText('The endpoint was added.').waitFor();
    await page.getByText('Active').waitFor();
    expect(await byUrl(`${receiver.url}/added`)).toMatchObject({
      state: 'active',
      eventTypes: ['document.created.v2', 'intervals.synced'],
    });
    await page.reload();
    expect(await page.getByText('The endpoint was added.').count()).toBe(0);
  });

  test('an unusable address is refused with the reason, and stays in the form', async () => {
    const before = await endpoints();
    await page.getByRole('link', { name: 'Add endpoint' }).click();
    await page.getByLabel('Endpoint URL').fill('https://user:secret@example.com/x');
    await page.getByLabel('document.updated.v2').check();
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    const field = page.getByLabel('Endpoint URL');
    await eventually(() => field.getAttribute('aria-invalid')).toBe('true');
    const described = (await field.getAttribute('aria-describedby')) ?? '';
    expect(described).toContain('url-wrong');
    expect(await page.locator('#url-wrong').innerText()).toContain('Leave out the user name and password');
    expect(await field.inputValue()).toBe('https://user:secret@example.com/x');
    expect(await page.getByLabel('document.updated.v2').isChecked()).toBe(true);
    expect(await endpoints()).toEqual(before);
    await expectGoodPage(page, 'add-endpoint-refused');
    // The refused page is an answer with 400, which Chromium logs; the policy refuses nothing.
    errors.length = 0;
  });

  test('service.md 6.1.2: event types can be chosen later, and no choice means all', async () => {
    const { url } = await settingsOf('choose');
    await page.getByLabel('connection.created.v2').check();
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('The changes were saved.').waitFor();
    expect((await byUrl(url))?.eventTypes).toEqual(['connection.created.v2']);
    await page.getByLabel('connection.created.v2').uncheck();
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('The changes were saved.').waitFor();
    expect((await byUrl(url))?.eventTypes).toEqual([]);
    await page.getByRole('link', { name: 'Endpoints', exact: true }).first().click();
    await page.getByRole('listitem').filter({ hasText: url }).getByText('All events').waitFor();
  });

  test('the secret is revealed on request, and copied', async () => {
    const { secret } = await settingsOf('secret');
    expect(await page.content()).not.toContain(secret);
    await page.getByRole('link', { name: 'Reveal secret' }).click();
    await page.getByText(secret).waitFor();
    await page.getByRole('button', { name: 'Copy signing secret' }).click();
    await page.getByText('Copied.').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(secret);
    await expectGoodPage(page, 'endpoint-settings');
    await page.getByRole('link', { name: 'Hide' }).click();
    await page.getByRole('link', { name: 'Reveal secret' }).waitFor();
    expect(await page.content()).not.toContain(secret);
  });

  test('a secret is rotated after a confirmation, and the page says how long the old one signs', async () => {
    const { url, secret } = await settingsOf('rotate');
    await page.getByRole('link', { name: 'Rotate secret' }).click();
    const dialog = page.getByRole('dialog', { name: 'Rotate the signing secret?' });
    await dialog.waitFor();
    await expectGoodPage(page, 'rotate-secret');
    await dialog.getByRole('link', { name: 'Cancel' }).click();
    await eventually(() => dialog.isVisible()).toBe(false);
    expect((await byUrl(url))?.secret).toBe(secret);

    await page.getByRole('link', { name: 'Rotate secret' }).click();
    await dialog.getByRole('button', { name: 'Rotate secret' }).click();
    await page.getByText('Both secrets sign for the next 24 hours').waitFor();
    await page.getByText('The secret before this one signs too until').waitFor();
    expect((await byUrl(url))?.secret).not.toBe(secret);
  });

  test('service.md 6.5.2, 3.2 row 2: a disabled endpoint gets nothing until "Enable Endpoint"', async () => {
    const { url } = await settingsOf('pause');
    await page.getByRole('link', { name: 'Disable endpoint' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Disable endpoint' }).click();
    await page.getByText('This endpoint is disabled.').waitFor();
    expect((await byUrl(url))?.state).toBe('disabled');
    await expectGoodPage(page, 'endpoint-disabled');
    await somethingHappens();
    await portal.service.quiet();
    expect(receiver.deliveries).toEqual([]);
    expect(await page.getByRole('button', { name: 'Replay failed messages' }).isDisabled()).toBe(true);

    await page.getByRole('button', { name: 'Enable Endpoint' }).click();
    await page.getByText('The endpoint is active again.').waitFor();
    expect((await byUrl(url))?.state).toBe('active');
    await somethingHappens();
    await portal.service.quiet();
    expect(receiver.deliveries).toHaveLength(1);
  });

  test('service.md 3.2 row 3: an endpoint is removed after a confirmation, without script too', async () => {
    const { id, url } = await settingsOf('plain');
    const plain = await browser.person({ javaScriptEnabled: false });
    const bare = await plain.newPage();
    await portal.open(bare);
    await bare.goto(`${bare.url()}/${id}/settings`);
    await bare.getByRole('link', { name: 'Remove endpoint' }).click();
    await bare.getByRole('dialog').getByRole('button', { name: 'Remove endpoint' }).click();
    await bare.getByText('The endpoint was removed.').waitFor();
    expect(await byUrl(url)).toBeUndefined();
    await page.goto(page.url().replace(/\/endpoints.*/, '/endpoints'));
    await expectGoodPage(page, 'endpoints');
    await plain.close();
  });
});
