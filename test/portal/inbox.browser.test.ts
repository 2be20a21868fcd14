import { describe, expect, test } from 'vitest';
import { eventually, expectGoodPage, openBrowser, watchErrors } from '../support/browser.ts';
import { forFile } from '../support/for-file.ts';
import { startPortal } from './support/portal.ts';

let url: string;

const [portal, browser] = await Promise.all([forFile(startPortal()), forFile(openBrowser())]);
const person = await browser.person();
const page = await person.newPage();
const errors = watchErrors(page);
await portal.open(page);

const requests = () => page.locator('#requests').getByRole('listitem');

describe('a temporary inspection URL', () => {
  test('service.md 6.5.1: is generated when no endpoint exists yet', async () => {
    await page.getByRole('heading', { name: 'No server yet?' }).waitFor();
    await page.getByRole('button', { name: 'Create an inspection URL' }).click();
    await page.getByRole('heading', { name: 'Waiting for the first request' }).waitFor();
    url = await page.getByRole('heading', { level: 1 }).innerText();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/portal\/inbox\/[\w-]{32}$/);
  });

  test('is a working endpoint for all events, and shows what arrives', async () => {
    const [company] = (await portal.service.api<{ id: string }[]>('/company')).body;
    const { events } = await portal.service.change({ type: 'createConnection', companyId: company?.id });
    const [event] = await portal.service.eventsAfter((events[0]?.seq ?? 1) - 1);
    await requests().getByText('Signature valid').waitFor();
    expect(JSON.parse(await requests().first().getByRole('region').innerText())).toEqual(event?.payload);
    await portal.service.quiet();
    expect((await portal.deliveries()).map(({ state }) => state)).toEqual(['delivered']);
    await requests().first().getByRole('link', { name: 'connection.created.v2' }).waitFor();
    await expectGoodPage(page, 'inbox');
  });

  test('shows anything else that is sent to it as text', async () => {
    const body = 'a=<img src=x onerror=alert(1)>&b=\u202etxt';
    const answer = await fetch(url, { method: 'PUT', body, headers: { 'content-type': 'text/plain' } });
    expect(answer.status).toBe(204);
    await eventually(() => requests().count()).toBe(2);
    await requests().first().getByText('PUT request').waitFor();
    await requests().first().getByText('No valid signature').waitFor();
    expect(await requests().first().getByRole('region').innerText()).toBe(body.replace('\u202e', '\\u202e'));
    expect((await fetch(url)).status).toBe(204);
    await eventually(() => requests().count()).toBe(3);
    await requests().first().getByText('It had no body.').waitFor();
    expect(errors).toEqual([]);
  });

  test('answers 410 after 7 days, and its page says so', async () => {
    await portal.advance(7 * 86_400 + 1);
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(410);
    const path = new URL(page.url()).pathname.replace(/.*\/endpoints/, '');
    await portal.open(page);
    await page.goto(page.url() + path);
    await page.getByText('This inspection URL has ended.').waitFor();
  });
});
