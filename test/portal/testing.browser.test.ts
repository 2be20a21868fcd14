import { Webhook } from 'svix';
import { describe, expect, test } from 'vitest';
import { decodeEvent } from '../../contract/event.ts';
import { eventTypes } from '../../sandbox/events.ts';
import { startReceiver } from '../sandbox/support/receiver.ts';
import { expectGoodPage, openBrowser, watchErrors } from '../support/browser.ts';
import { forFile } from '../support/for-file.ts';
import { until } from '../support/poll.ts';
import { startPortal } from './support/portal.ts';

const [portal, browser, receiver, other] = await Promise.all([
  forFile(startPortal()),
  forFile(openBrowser()),
  forFile(startReceiver()),
  forFile(startReceiver()),
]);
const { secret } = await portal.endpoint(receiver.url, ['intervals.synced']);
await portal.endpoint(other.url);
const person = await browser.person();
const page = await person.newPage();
const errors = watchErrors(page);
await portal.open(page);
await page.getByRole('link', { name: receiver.url }).click();
await page.getByRole('link', { name: 'Testing' }).click();

describe('the testing tab', () => {
  test('service.md 6.5.1: sends an example of each type of events only to this endpoint', async () => {
    for (const type of eventTypes) {
      receiver.deliveries.length = 0;
      await page.getByRole('navigation', { name: 'Event types' }).getByRole('link', { name: type }).click();
      await page.getByRole('heading', { name: `Example of ${type}` }).waitFor();
      const shown = await page.getByRole('region', { name: `Example payload of ${type}` }).innerText();
      await page.getByRole('button', { name: 'Send example' }).click();
      await page.getByText('The example was sent.').waitFor();
      const { body, headers } = await until('the example arrives', () => receiver.deliveries[0]);
      new Webhook(secret).verify(body, headers as Record<string, string>);
      const [sent, example] = [JSON.parse(body), JSON.parse(shown)];
      expect([decodeEvent(sent).type, decodeEvent(example).type]).toEqual([type, type]);
      expect(Object.keys(sent)).toEqual(Object.keys(example));
      if (type === 'intervals.synced') expect(sent.intervalCount).toBe(sent.createdCount + sent.updatedCount);
      const listed = page.getByRole('table', { name: 'Examples sent to this endpoint' }).getByRole('row');
      await listed.nth(1).filter({ hasText: type }).getByText('Delivered').waitFor();
    }
    expect(other.deliveries).toEqual([]);
    expect(errors).toEqual([]);
    await expectGoodPage(page, 'testing');
  });
});
