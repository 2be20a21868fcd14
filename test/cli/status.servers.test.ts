import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { recordEvents } from '../../db/events/record.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn, queues } from '../support/activities.ts';
import { runCommand } from '../support/command.ts';
import { company, delivery, documentEvent } from '../support/events.ts';

const updated = '2026-03-01T00:00:00.000001';
const known = randomUUID();

/** A service that has one document, and answers 404 for every other record. */
function withOneDocument(asked: Asked): Reply {
  const { path } = asked;
  const listed = [{ id: known, created: updated, updated }];
  if (path === '/v2.2/company') return { json: [company] };
  if (path === `/v2.2/document/company/${company.id}`) return pageOf(listed, asked);
  if (path === `/v2.2/document/${known}`) return { json: listed[0] };
  return { status: 404, json: { detail: 'Not found.' } };
}

/** A service that lists its companies, and answers 404 for everything else. */
const withNothing = ({ path }: Asked): Reply =>
  path === '/v2.2/company' ? { json: [company] } : { status: 404, json: { detail: 'Not found.' } };

const catchUp = ({ run, activities }: ActivitiesUnderTest) =>
  run(activities.sweepOwners, { owners: queues('documents', [company.id]) });

/** Returns what `metersync status` prints if the events had become due 14 minutes ago. */
async function statusLater({ warehouse }: ActivitiesUnderTest): Promise<string> {
  await warehouse.db.execute(
    sql`update metersync.journal set due_at = now() - interval '14 minutes' where outcome = 'pending'`,
  );
  await warehouse.db.execute(
    sql`update metersync.journal set settled_at = now() - interval '15 minutes' where outcome <> 'pending'`,
  );
  const { stdout } = await runCommand(['status'], { env: { DATABASE_URL: warehouse.url } });
  return stdout.replace(/\s+/g, ' ');
}

const eventsOf = (ids: readonly string[]) => ids.map((id) => delivery(documentEvent('updated', id, updated)));
const unknown = Array.from({ length: 5 }, () => randomUUID());
const withoutUsage = { usageData: null, documentUsage: null };

test('status names records that the service answers with 404, and since when no event was settled', async () => {
  const under = await activitiesOn(withOneDocument, withoutUsage);
  await recordEvents(under.warehouse.db, eventsOf([known]));
  await catchUp(under);
  await recordEvents(under.warehouse.db, eventsOf(unknown));
  await catchUp(under);
  const said = await statusLater(under);
  expect(said).toMatch(
    /events: work has been due for 14 min, and no event was settled for 15 min: 5 events of documents wait; the most frequent reason is RECORD_NOT_SHOWN \(5 events\)/,
  );
  expect(said).toContain('For many, ask the service why.');
  expect(said).toContain('metersync events list --outcome pending --code RECORD_NOT_SHOWN');
});

test('status names a listing that the service answers with 404', async () => {
  const under = await activitiesOn(withNothing, withoutUsage);
  await under.warehouse.db.execute(sql`insert into utility.companies (id, raw) values (${company.id}, '{}')`);
  await recordEvents(under.warehouse.db, eventsOf(unknown));
  await catchUp(under);
  const said = await statusLater(under);
  expect(said).toContain('Needs you: parked: SERVICE_NOT_FOUND: 5 events');
  expect(said).not.toContain('work has been due');
  expect(said).toContain('correct its path in SERVICE_ENDPOINTS');
});
