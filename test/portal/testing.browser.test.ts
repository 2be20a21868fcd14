import { Webhook } from 'svix';
import { describe, expect, test } from 'vitest';
import { eventTypes } from '../../sandbox/events/payloads.ts';
import { answerWith, startReceiver } from '../sandbox/support/receiver.ts';
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

const uuid = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/);
const text = expect.any(String);
const company = { externalId: text, id: uuid, name: text, publicId: uuid };
const site = { id: uuid, name: text };
const connection = {
  company,
  created: time,
  datasource: { name: text },
  externalId: text,
  id: uuid,
  sitesRelations: [{ accountIds: [text], datasourceTypes: ['ELECTRICITY'], site }],
  status: text,
  updated: time,
  url: text,
};
const document = { id: uuid, company, site, created: time, updated: time };
const count = expect.any(Number);

/** Payloads of service.md 2.4 to 2.6, field by field. */
const shapes: Readonly<Record<(typeof eventTypes)[number], object>> = {
  'connection.created.v2': connection,
  'connection.updated.v2': {
    ...connection,
    eventType: 'connection.updated.v2',
    protectedChanges: ['status'],
    old: { status: text },
  },
  'connection.validated.v2': {
    ...connection,
    eventType: 'connection.validated.v2',
    protectedChanges: ['status'],
    old: { status: text },
  },
  'document.created.v2': { ...document, eventType: 'document.created.v2' },
  'document.updated.v2': { ...document, eventType: 'document.updated.v2', old: { updated: time } },
  'document.deleted.v2': { ...document, eventType: 'document.deleted.v2' },
  'intervals.synced': {
    meterId: uuid,
    start: time,
    end: time,
    intervalCount: count,
    createdCount: count,
    updatedCount: count,
    companyExternalId: text,
    accountNumber: text,
    granularitySeconds: [count],
    usageUnits: [text],
    qualities: [text],
  },
};

describe('the testing tab', () => {
  test.each(eventTypes)('service.md 6.5.1: sends an example of %s only to this endpoint', async (type) => {
    receiver.deliveries.length = 0;
    await page.getByRole('navigation', { name: 'Event types' }).getByRole('link', { name: type }).click();
    await page.getByRole('heading', { name: `Example of ${type}` }).waitFor();
    const shown = await page.getByRole('region', { name: `Example payload of ${type}` }).innerText();
    expect(JSON.parse(shown)).toEqual(shapes[type]);
    await page.getByRole('button', { name: 'Send example' }).click();
    await page.getByText('The example was sent.').waitFor();

    const delivery = await until('the example arrives', () => receiver.deliveries[0]);
    new Webhook(secret).verify(delivery.body, delivery.headers as Record<string, string>);
    const body = JSON.parse(delivery.body);
    expect(body).toEqual(shapes[type]);
    expect(Object.keys(body)).toEqual(Object.keys(JSON.parse(shown)));
    expect(other.deliveries).toEqual([]);
    const sent = page.getByRole('table', { name: 'Examples sent to this endpoint' }).getByRole('row');
    await sent.nth(1).filter({ hasText: type }).getByText('Delivered').waitFor();
    expect(errors).toEqual([]);
  });

  test('has consistent counts in an example of intervals.synced', async () => {
    const shown = await page.getByRole('region', { name: 'Example payload of intervals.synced' }).innerText();
    const { intervalCount, createdCount, updatedCount } = JSON.parse(shown);
    expect(intervalCount).toBe(createdCount + updatedCount);
  });

  test('shows the delivery of an example as it happens, and looks right', async () => {
    receiver.answer = answerWith(500);
    await page.getByRole('button', { name: 'Send example' }).click();
    const sent = page.getByRole('table', { name: 'Examples sent to this endpoint' }).getByRole('row');
    await sent.nth(1).getByText('Retrying').waitFor();
    receiver.answer = answerWith(204);
    // Past the next retry.
    await portal.advance(3_600);
    await sent.nth(1).getByText('Delivered').waitFor();
    await expectGoodPage(page, 'testing');
  });
});
