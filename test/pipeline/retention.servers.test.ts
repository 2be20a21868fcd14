import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { scheduleIds } from '../../contract/names.ts';
import { recordEvents } from '../../db/events/record-events.ts';
import { createDeployment } from '../support/deployment.ts';
import { company, delivery, documentEvent } from '../support/events.ts';
import { until } from '../support/poll.ts';

test("the worker's schedule drops old payloads from the journal while the settings say so", {
  timeout: 120_000,
}, async () => {
  const deployment = await createDeployment({
    env: {
      SERVICE_URL: 'http://127.0.0.1:9/v2.2',
      SERVICE_API_KEY: 'key',
      JOURNAL_PAYLOAD_DAYS: '30',
    },
  });
  onTestFinished(() => deployment.stop());
  const { db } = deployment.warehouse;
  const events = Array.from({ length: 2_500 }, () =>
    delivery(documentEvent('deleted', randomUUID(), '2026-01-01T00:00:00.000001')),
  );
  // Events of an unknown company would wait, and waiting events keep their payload.
  await db.execute(sql`insert into utility.companies (id, raw) values (${company.id}::uuid, '{}')`);
  await recordEvents(db, events);
  await db.execute(sql`update metersync.journal set received_at = clock_timestamp() - case
    when id = ${events[0]?.id} then interval '29 days' else interval '31 days' end`);
  await deployment.run('worker');
  await deployment.client.schedule.getHandle(scheduleIds.dropPayloads).trigger();
  const left = async () =>
    (await db.execute<{ id: string }>(sql`select id from metersync.events where payload is not null`)).rows;
  await until('only the young payload is left', async () => (await left()).length <= 1, {
    timeoutMs: 60_000,
  });
  expect(await left()).toEqual([{ id: events[0]?.id }]);
});
