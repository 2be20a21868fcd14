import pg from 'pg';
import { expect, test } from 'vitest';
import { messagesSearchedMax } from '../../sandbox/portal/read/messages.ts';
import { openBrowser } from '../support/browser.ts';
import { forFile } from '../support/for-file.ts';
import { startPortal } from './support/portal.ts';

const [portal, browser] = await Promise.all([forFile(startPortal()), forFile(openBrowser())]);

/** Makes a history as after months of use: all delivered but the first message. */
async function writeHistory(messages: number): Promise<void> {
  const { id } = await portal.endpoint('http://127.0.0.1:9/');
  const client = new pg.Client({ connectionString: portal.service.databaseUrl });
  await client.connect();
  await client.query(
    `with written as (insert into sandbox.events (id, organization_id, type, created, payload)
        select 'msg_' || n, p.organization_id, 'connection.created.v2', p.created, '{}'
        from sandbox.endpoints p, generate_series(1, $2::int) n where p.id = $1 order by n returning seq)
      insert into sandbox.deliveries (event_seq, endpoint_id, due_at, state, attempts)
        select seq, p.id, p.created, case when seq = min(seq) over () then 'failed' else 'delivered' end, 1
        from written, sandbox.endpoints p where p.id = $1`,
    [id, messages],
  );
  await client.query('analyze');
  await client.end();
}

test('finds a rare status in a long history step by step, and the page says how far it searched', async () => {
  await writeHistory(messagesSearchedMax + 20);
  const page = await (await browser.person()).newPage();
  await portal.open(page);
  await page.getByRole('link', { name: 'Messages', exact: true }).click();
  await page.getByLabel('Status').selectOption({ label: 'Failed' });
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.getByText('No match so far').waitFor();
  await page.getByText(/The messages back to .* were searched/).waitFor();
  await page.getByRole('link', { name: 'Search further back' }).click();
  await page.getByRole('row').filter({ hasText: 'msg_1' }).getByText('Failed').waitFor();
  expect(await page.getByRole('link', { name: 'Search further back' }).count()).toBe(0);
});
