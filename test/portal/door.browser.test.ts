import type { BrowserContext, Page } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expectGoodPage, openBrowser, watchErrors } from '../support/browser.ts';
import { forFile } from '../support/for-file.ts';
import { startPortal } from './support/portal.ts';

let person: BrowserContext;
let page: Page;

const [portal, browser] = await Promise.all([
  forFile(startPortal({ companies: 2, organizations: 2, documents: 6, intervalDays: 1 })),
  forFile(openBrowser()),
]);
beforeEach(async () => {
  person = await browser.person();
  page = await person.newPage();
});
afterEach(async () => {
  await person.close();
  await portal.service.enableWebhooks();
});

const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor();

describe('access to the portal', () => {
  test('opens with the link, which no later address contains', async () => {
    const errors = watchErrors(page);
    const link = await portal.link();
    await portal.open(page, link);
    await heading('Receive your first event');
    const token = link.split('/').at(-1) ?? '';
    expect(page.url()).not.toContain(token);
    expect(await page.content()).not.toContain(token);
    expect(await page.evaluate('document.referrer')).not.toContain(token);
    expect(errors).toEqual([]);
    await expectGoodPage(page, 'no-endpoints');
  });

  test('is refused for a browser that has not opened the link, even with the address of an open page', async () => {
    await portal.open(page);
    const stranger = await browser.person();
    const theirs = await stranger.newPage();
    expect((await theirs.goto(page.url()))?.status()).toBe(403);
    await theirs.getByRole('heading', { name: 'This link opens nothing' }).waitFor();
    await expectGoodPage(theirs, 'link-unknown');
    await stranger.close();
  });

  test('service.md 3.1 row 2, 7 row 4: reports that webhooks are disabled, even on an open page', async () => {
    const link = await portal.link();
    await portal.endpoint('http://127.0.0.1:9/');
    await portal.open(page, link);
    await heading('Endpoints');
    await portal.service.enableWebhooks(false);
    await heading('Webhooks are disabled');
    expect((await page.goto(link))?.status()).toBe(403);
    await heading('Webhooks are disabled');
    await portal.service.enableWebhooks();
    await portal.open(page, link);
    await heading('Endpoints');
  });

  test('shows an organization nothing of another organization', async () => {
    const [, other] = portal.service.sandbox.organizations;
    const key = other?.apiKey ?? '';
    await portal.service.api('/external/configure_webhook', {
      method: 'PATCH',
      body: { enabled: true },
      key,
    });
    const { id } = await portal.endpoint('http://127.0.0.1:9/mine');
    await portal.service.change({
      type: 'createConnection',
      companyId: (await portal.service.api<{ id: string }[]>('/company')).body[0]?.id ?? '',
    });
    const [event] = await portal.service.eventsAfter(0);

    await portal.open(page, await portal.link(key));
    await heading('Receive your first event');
    const base = page.url().replace(/\/endpoints$/, '');
    for (const path of [
      `/endpoints/${id}`,
      `/endpoints/${id}/settings?secret=shown`,
      `/messages/${event?.id}`,
    ]) {
      expect((await page.goto(base + path))?.status(), path).toBe(404);
      await heading('Not found');
    }
    await page.goto(`${base}/messages`);
    await page.getByText('No messages yet').waitFor();
  });

  test('does nothing that another site requests', async () => {
    await portal.open(page);
    const base = page.url();
    const [cookie] = await person.cookies(base);
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
    const ask = (headers: Record<string, string>) =>
      fetch(base, {
        method: 'POST',
        redirect: 'manual',
        headers: { cookie: `${cookie?.name}=${cookie?.value}`, ...headers },
        body: new URLSearchParams({ url: 'http://127.0.0.1:9/forged' }),
      });
    const before = await portal.service.control('GET', '/sandbox/endpoints');
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }, {}]) {
      const refused = await ask(headers as Record<string, string>);
      expect(refused.status).toBe(403);
      expect(await refused.text()).toContain('Nothing was done');
    }
    expect(await portal.service.control('GET', '/sandbox/endpoints')).toEqual(before);
    expect((await ask({ 'sec-fetch-site': 'same-origin' })).status).toBe(303);
  });

  test('lets only its own files run, load or frame a page', async () => {
    const answer = await fetch(await portal.link());
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-security-policy': expect.stringContaining("default-src 'none'"),
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
    });
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|\*/);
  });

  // This is the last test, because the clock does not go back.
  test('service.md 8 row 5: is valid for 7 days, and then reports that it has expired', async () => {
    const link = await portal.link();
    await portal.advance(7 * 86_400 - 60);
    await portal.open(page, link);
    await portal.advance(61);
    expect((await page.reload())?.status()).toBe(403);
    await heading('This link has expired');
  });
});
