import type { BrowserContext, Page } from 'playwright-core';
import { beforeEach, describe, expect, test } from 'vitest';
import { answerWith, startReceiver } from '../sandbox/support/receiver.ts';
import { expectGoodPage, openBrowser, watchErrors } from '../support/browser.ts';
import { forFile } from '../support/for-file.ts';
import { startPortal } from './support/portal.ts';

const script = `<script>document.title='taken'</script><img src=x onerror="document.title='taken'">`;
const turned = 'gnp.\u202efdp.exe\u200b';

let person: BrowserContext;
let page: Page;
let base: string;

const [portal, browser, receiver] = await Promise.all([
  forFile(startPortal()),
  forFile(openBrowser()),
  forFile(startReceiver(answerWith(500, { 'x-evil': '<script>1</script>' }, script + turned))),
]);
const made = await portal.service.control<{ id: string; apiKey: string }>('POST', '/sandbox/organizations', {
  name: `${turned}${script}`,
});
const key = made.apiKey;
await portal.service.api('/external/configure_webhook', { method: 'PATCH', body: { enabled: true }, key });
const company = crypto.randomUUID();
await portal.service.change({
  type: 'createCompany',
  id: company,
  organizationId: made.id,
  name: script,
  externalId: turned,
});
await portal.service.control('POST', '/sandbox/endpoints', {
  url: `${receiver.url}/?${encodeURIComponent(script)}`,
  organizationId: made.id,
});
beforeEach(async () => {
  person = await browser.person();
  page = await person.newPage();
  const errors = watchErrors(page);
  await portal.open(page, await portal.link(key));
  base = page.url().replace(/\/endpoints$/, '');
  return async () => {
    expect(await page.title()).not.toBe('taken');
    expect(errors).toEqual([]);
    await person.close();
  };
});

async function messageOf(change: object): Promise<string> {
  const { events } = await portal.service.change(change);
  await page.goto(`${base}/messages/${events[0]?.id}`);
  return events[0]?.id ?? '';
}

describe('hostile names and payloads', () => {
  test('are plain text in the organization’s name, addresses, payloads and answers', async () => {
    const shown = turned.replace('\u202e', '\\u202e').replace('\u200b', '\\u200b');
    expect(await page.getByRole('banner').innerText()).toContain(`${shown}${script}`);
    expect(await page.title()).toContain(script);
    await messageOf({ type: 'createConnection', companyId: company, url: 'javascript:alert(1)' });
    const payload = await page.getByRole('region', { name: 'Payload text' }).innerText();
    expect(JSON.parse(payload)).toMatchObject({
      company: { name: script, externalId: turned },
      url: 'javascript:alert(1)',
    });
    expect(payload).toContain(shown);
    expect(payload).not.toContain('\u202e');
    const attempt = page.getByRole('article').getByRole('listitem').last();
    await attempt.getByText('Attempt 1').click();
    expect(await attempt.getByRole('region', { name: 'Answer body' }).innerText()).toBe(script + shown);
    await expectGoodPage(page, 'hostile-message');
  });

  test('are cut on the page and complete in the download if they have 1 MB', async () => {
    const externalId = `${script}${'é'.repeat(1_000_000)}`;
    const id = await messageOf({ type: 'createConnection', companyId: company, externalId });
    const payload = page.getByRole('region', { name: 'Payload text' });
    expect((await payload.innerText()).length).toBeLessThan(150_000);
    await page.getByText(/Only the first 60,000 characters/).waitFor();
    await page.getByText('2.0 MB').waitFor();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download' }).click(),
    ]);
    let text = '';
    for await (const chunk of await file.createReadStream()) text += chunk;
    expect(JSON.parse(text).externalId).toBe(externalId);
    expect(file.suggestedFilename()).toBe(`${id}.json`);
  });

  test('lead to no record when they are parts of an address', async () => {
    for (const path of [
      `/messages/${encodeURIComponent(script)}`,
      `/endpoints/${encodeURIComponent("' or 1=1 --")}`,
      `/endpoints/%00`,
      `/endpoints/ep_x/${encodeURIComponent(script)}`,
    ]) {
      expect((await page.goto(base + path))?.status(), path).toBe(404);
      await page.getByRole('heading', { level: 1, name: 'Not found' }).waitFor();
    }
    for (const query of [
      'type=<script>',
      'status=__proto__',
      'before=99999999999999999999',
      'when=constructor',
      `endpoint='`,
    ]) {
      expect((await page.goto(`${base}/messages?${query}`))?.status(), query).toBe(200);
    }
  });
});
