import type { BrowserContext, Page } from 'playwright-core';
import { beforeEach, describe, expect, test } from 'vitest';
import { answerWith, type Receiver, startReceiver } from '../sandbox/support/receiver.ts';
import { eventually, openBrowser, watchErrors } from '../support/browser.ts';
import { forFile } from '../support/for-file.ts';
import { until } from '../support/poll.ts';
import { startPortal } from './support/portal.ts';

let receiver: Receiver;
let endpointId: string;
let person: BrowserContext;
let page: Page;

const [portal, browser] = await Promise.all([forFile(startPortal()), forFile(openBrowser())]);
beforeEach(async () => {
  receiver = await startReceiver();
  endpointId = (await portal.endpoint(receiver.url)).id;
  person = await browser.person();
  page = await person.newPage();
  const errors = watchErrors(page);
  await portal.open(page);
  await page.getByRole('link', { name: receiver.url }).click();
  await page.getByRole('heading', { level: 1, name: receiver.url }).waitFor();
  return async () => {
    expect(errors).toEqual([]);
    await person.close();
    await portal.service.control('DELETE', `/sandbox/endpoints/${endpointId}`);
    await receiver.close();
  };
});

const companyId = async () => (await portal.service.api<{ id: string }[]>('/company')).body[0]?.id ?? '';
/** Makes this many events; returns their ids. */
async function happen(count: number): Promise<string[]> {
  const change = { type: 'createConnection', companyId: await companyId() };
  const { events } = await portal.service.change(...Array.from({ length: count }, () => change));
  return events.map(({ id }) => id);
}
const mine = async () => (await portal.deliveries()).filter((one) => one.endpointId === endpointId);

/** Moves the clock from one attempt of the waiting messages to the next, until none remains (service.md 6.4). */
async function letAllFail(): Promise<void> {
  await until('every attempt has failed', async () => {
    const open = (await mine()).filter(({ state }) => state === 'waiting' || state === 'in_flight');
    const next = Math.max(...open.map(({ dueAt }) => Date.parse(`${dueAt}Z`)));
    const { now } = await portal.service.control<{ now: string }>('POST', '/sandbox/clock', {});
    const seconds = (next - Date.parse(`${now}Z`)) / 1000;
    if (seconds > 0 && open.every(({ state }) => state === 'waiting')) await portal.advance(seconds);
    return open.length === 0;
  });
}
async function failing(count: number): Promise<string[]> {
  receiver.answer = answerWith(500);
  const ids = await happen(count);
  await letAllFail();
  receiver.answer = answerWith(204);
  receiver.deliveries.length = 0;
  await page.reload();
  return ids;
}
const arrived = () => receiver.deliveries.map(({ headers }) => String(headers['webhook-id'])).sort();
const replayForm = () => page.getByRole('form', { name: 'Replay failed messages' });
const recoverForm = () => page.getByRole('form', { name: 'Recover missing messages' });
const progress = () => page.getByRole('region', { name: 'Progress' }).getByRole('listitem').first();

describe('a replay', () => {
  test('service.md 6.5.3: failed messages are replayed in bulk for a chosen time window', async () => {
    const early = await failing(3);
    await portal.advance(86_400);
    const late = await failing(4);
    await replayForm().getByLabel('Time').selectOption({ label: 'Custom…' });
    const events = await portal.service.control<{ events: { id: string; created: string }[] }>(
      'GET',
      '/sandbox/events?limit=10000',
    );
    const written = (id: string | undefined) => events.events.find((one) => one.id === id)?.created ?? '';
    await replayForm().getByLabel('From (UTC)').fill(written(late[0]).slice(0, 19));
    await replayForm().getByRole('button', { name: 'Replay failed messages' }).click();
    await page.getByText('The messages are being sent again.').waitFor();
    await progress().getByText('Done').waitFor();
    await eventually(() => progress().innerText()).toContain('4 of 4 delivered');
    expect(arrived()).toEqual([...late].sort());

    receiver.deliveries.length = 0;
    await replayForm().getByLabel('Time').selectOption({ label: 'Any time' });
    await replayForm().getByRole('button', { name: 'Replay failed messages' }).click();
    await eventually(() => progress().innerText()).toContain('3 of 3 delivered');
    expect(arrived()).toEqual([...early].sort());

    receiver.deliveries.length = 0;
    await replayForm().getByLabel('Time').selectOption({ label: 'Any time' });
    await replayForm().getByRole('button', { name: 'Replay failed messages' }).click();
    await page.getByText('There is nothing to send again').waitFor();
    await portal.service.quiet();
    expect(arrived()).toEqual([]);
  });

  test('service.md 6.5.3: all failures since a chosen message are replayed', async () => {
    const before = await failing(2);
    const since = await failing(3);
    const base = page.url().replace(/\/endpoints.*/, '');
    await page.goto(`${base}/messages/${since[1]}`);
    await page
      .getByRole('article')
      .filter({ hasText: receiver.url })
      .getByLabel('Options of attempt 8')
      .click();
    await page.getByRole('button', { name: 'Replay all failures since this message' }).first().click();
    await progress().getByText('Done').waitFor();
    await progress()
      .getByText(since[1] ?? '')
      .waitFor();
    expect(arrived()).toEqual(since.slice(1).sort());
    expect(arrived()).not.toContain(before[0]);
  });

  test('recovers missing messages, which were written before the endpoint was added or while it was disabled', async () => {
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByRole('link', { name: 'Disable endpoint' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Disable endpoint' }).click();
    await page.getByText('This endpoint is disabled.').waitFor();
    const missed = await happen(3);
    await page.getByRole('button', { name: 'Enable Endpoint' }).click();
    await page.getByText('The endpoint is active again.').waitFor();
    const [got] = await happen(1);
    await portal.service.quiet();
    expect(arrived()).toEqual([got]);

    receiver.deliveries.length = 0;
    await recoverForm().getByLabel('Time').selectOption({ label: 'Last hour' });
    await recoverForm().getByRole('button', { name: 'Recover missing messages' }).click();
    await progress().getByText('Recovery of missing messages').waitFor();
    await progress().getByText('Done').waitFor();
    const recovered = arrived();
    expect(recovered).toEqual(expect.arrayContaining(missed));
    expect(recovered).not.toContain(got);

    receiver.deliveries.length = 0;
    await recoverForm().getByRole('button', { name: 'Recover missing messages' }).click();
    await page.getByText('There is nothing to send again').waitFor();
    expect(receiver.deliveries).toEqual([]);
  });
});
