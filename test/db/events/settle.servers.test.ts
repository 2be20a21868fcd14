import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { recordPolicy } from '../../../contract/retry-policy.ts';
import { retireAbsent } from '../../../db/deletes/absent.ts';
import { settleRanges } from '../../../db/events/ranges.ts';
import { recordEvents } from '../../../db/events/record.ts';
import { settleRecords } from '../../../db/events/settle.ts';
import { warehouseNow } from '../../../db/queue/due.ts';
import { postpone, postponeDocuments, usageUnstable } from '../../../db/queue/postpone.ts';
import { pendingOf } from '../../../db/queue/queue.ts';
import { writeDocumentSets } from '../../../db/records/write-page.ts';
import { company, connectionEvent, delivery, documentEvent, intervalsEvent } from '../../support/events.ts';
import { forFile } from '../../support/for-file.ts';
import { pageOfRecords, rowOf, writeRecords } from '../../support/pages.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const older = '2026-05-01T00:00:00.000001';
const newer = '2026-05-01T00:00:00.000002';
const eventRow = async (id: string) =>
  (
    await warehouse.db.execute<{ outcome: string; attempts: number; waits: boolean; error: string | null }>(
      sql`select outcome, attempts, next_attempt_at > clock_timestamp() as waits, error
        from metersync.events where id = ${id}`,
    )
  ).rows[0];
const pendingDocument = async (updated = newer) => {
  const id = randomUUID();
  const event = delivery(documentEvent('updated', id, updated));
  await recordEvents(warehouse.db, [event]);
  return { id, event };
};
const now = () => warehouseNow(warehouse.db);

/** The API may lag behind events. */
const lagIsOver = async (eventId: string) => {
  await warehouse.db.execute(sql`update metersync.journal set due_at = clock_timestamp(),
    recorded_at = recorded_at - make_interval(secs => ${recordPolicy.mayLagSeconds}) where id = ${eventId}`);
};

test('a record without `updated` applies an event if a read shows it that no longer lags behind the event', async () => {
  const { id, event } = await pendingDocument();
  const record = { id, name: 'a bill' };
  const early = '2026-01-01T00:00:00Z';
  await writeRecords(warehouse, 'documents', [record], { readAt: early, confirms: true });
  const read = async () => {
    const readAt = await now();
    await writeRecords(warehouse, 'documents', [record], { readAt, confirms: true });
    return await settleRecords(warehouse.db, 'documents', [id], readAt);
  };
  expect(await settleRecords(warehouse.db, 'documents', [id], await now())).toEqual({
    applied: 0,
    waiting: 1,
  });
  expect(await read()).toEqual({ applied: 0, waiting: 1 });
  expect(await eventRow(event.id)).toMatchObject({ outcome: 'pending', attempts: 1, waits: true });
  await lagIsOver(event.id);
  expect(await read()).toEqual({ applied: 1, waiting: 0 });
  expect(await eventRow(event.id)).toMatchObject({ outcome: 'applied' });
});

test('an event without `updated` is applied by the first read that no longer lags behind it', async () => {
  const id = randomUUID();
  const { updated: _, created: __, ...untimed } = documentEvent('updated', id, newer);
  const event = delivery(untimed);
  await recordEvents(warehouse.db, [event]);
  const read = async (updated: string) => {
    const readAt = await now();
    await writeRecords(warehouse, 'documents', [{ id, updated }], { readAt, companyId: company.id });
    return await settleRecords(warehouse.db, 'documents', [id], readAt);
  };
  expect(await read(older)).toEqual({ applied: 0, waiting: 1 });
  await lagIsOver(event.id);
  expect(await read(newer)).toEqual({ applied: 1, waiting: 0 });
  expect(await rowOf(warehouse, 'documents', id)).toMatchObject({ raw: { updated: newer } });
});

test('a deletion settles earlier events also if the clock of the service is half a day ahead', async () => {
  const ahead = new Date(Date.now() + 12 * 3_600_000).toISOString().slice(0, -1);
  const [id, read] = [randomUUID(), randomUUID()];
  await writeRecords(warehouse, 'documents', [{ id: read, updated: newer }], { companyId: company.id });
  const events = [id, read].map((one) => delivery(documentEvent('updated', one, ahead)));
  await recordEvents(warehouse.db, events);
  await recordEvents(
    warehouse.db,
    [id, read].map((one) => delivery(documentEvent('deleted', one, ahead))),
  );
  const late = [id, read].map((one) => delivery(documentEvent('updated', one, ahead)));
  await recordEvents(warehouse.db, [...late]);
  const readAt = await now();
  for (const one of [id, read])
    await settleRecords(warehouse.db, 'documents', [one], readAt, { notFound: [one] });
  for (const event of [...events, ...late])
    expect(await eventRow(event.id)).toMatchObject({ outcome: 'superseded' });
});

describe('a deletion', () => {
  /** A document that was read, and the event that deletes it. */
  async function deletedDocument() {
    const id = randomUUID();
    const show = async () => {
      const readAt = await now();
      await writeRecords(warehouse, 'documents', [{ id, updated: older }], { readAt, companyId: company.id });
      return readAt;
    };
    await show();
    const event = delivery(documentEvent('deleted', id, older));
    await recordEvents(warehouse.db, [event]);
    /** Reads the document, which the service shows or not. */
    const read = async (shown: boolean) => {
      const readAt = shown ? await show() : await now();
      await settleRecords(warehouse.db, 'documents', [id], readAt, { shown: shown ? [id] : [] });
      await warehouse.db.execute(
        sql`update metersync.journal set due_at = clock_timestamp() where id = ${event.id} and due_at is not null`,
      );
    };
    const isDeleted = async () => (await rowOf(warehouse, 'documents', id))?.deleted_at !== null;
    return { event, isDeleted, read };
  }

  test('takes effect at once, waits while the service shows its record, and is then applied', async () => {
    const { event, isDeleted, read } = await deletedDocument();
    for (let attempt = 1; attempt <= 3; attempt++) {
      await read(true);
      expect(await isDeleted()).toBe(true);
      expect(await eventRow(event.id)).toMatchObject({ outcome: 'pending', attempts: attempt });
    }
    await read(false);
    expect(await isDeleted()).toBe(true);
    expect(await eventRow(event.id)).toMatchObject({ outcome: 'applied', error: null });
  });

  test('that the service goes on contradicting is superseded, and the record is shown again', async () => {
    const { event, isDeleted, read } = await deletedDocument();
    for (let attempt = 0; attempt < recordPolicy.olderStateAttemptsMax; attempt++) {
      await read(true);
      expect(await isDeleted()).toBe(true);
    }
    await read(true);
    expect(await isDeleted()).toBe(false);
    expect(await eventRow(event.id)).toMatchObject({ outcome: 'superseded' });
  });

  test('older than what was read is superseded without a read', async () => {
    const { event } = await deletedDocument();
    const id = randomUUID();
    const readAt = await now();
    const page = {
      page: pageOfRecords([{ id, updated: newer }], { readAt, companyId: company.id }),
      ids: [id],
    };
    await writeDocumentSets(warehouse.db, { documentIds: [id], readAt, documents: page, usage: undefined });
    const late = delivery(documentEvent('deleted', id, older));
    await recordEvents(warehouse.db, [late]);
    expect(await eventRow(late.id)).toMatchObject({ outcome: 'superseded' });
    expect(await eventRow(event.id)).toMatchObject({ outcome: 'pending' });
  });
});

test('an event whose state the service does not return yet backs off', async () => {
  const { id, event } = await pendingDocument();
  const readAt = await now();
  await writeRecords(warehouse, 'documents', [{ id, updated: older }], { readAt });
  expect(await settleRecords(warehouse.db, 'documents', [id], readAt)).toEqual({ applied: 0, waiting: 1 });
  expect(await eventRow(event.id)).toEqual({
    outcome: 'pending',
    attempts: 1,
    waits: true,
    error: expect.stringContaining('does not show'),
  });
});

test('an event older than its document is superseded at once if the usage has been read since, and otherwise waits', async () => {
  const id = randomUUID();
  await writeRecords(warehouse, 'documents', [{ id, updated: newer }], { readAt: await now() }, true);
  const [before, after] = [
    delivery(documentEvent('updated', id, older)),
    delivery(documentEvent('updated', id, older)),
  ];
  await recordEvents(warehouse.db, [before]);
  expect(await eventRow(before.id)).toMatchObject({ outcome: 'pending' });
  await writeDocumentSets(warehouse.db, { documentIds: [id], readAt: await now() });
  await recordEvents(warehouse.db, [after]);
  expect(await eventRow(after.id)).toMatchObject({ outcome: 'superseded' });
});

test('an event older than its connection is superseded at once', async () => {
  const id = randomUUID();
  const record = { id, updated: newer, status: 'CONNECTED' };
  await writeRecords(warehouse, 'connections', [record], { readAt: await now(), companyId: company.id });
  const late = delivery(connectionEvent('updated', id, older, 'CONNECTED', 'PENDING'));
  await recordEvents(warehouse.db, [late]);
  expect(await eventRow(late.id)).toMatchObject({ outcome: 'superseded' });
});

describe('a read', () => {
  /** Does work while another session records an event again. */
  const whileRecorded = (eventId: string, work: () => Promise<unknown>) =>
    warehouse.db.transaction(async (tx) => {
      await tx.execute(sql`select from metersync.journal where id = ${eventId} for update`);
      await work();
    });

  test('of ranges, or a deletion, does not wait for an event that is being recorded again', async () => {
    const { db } = warehouse;
    const { id, event } = await pendingDocument(older);
    const deleted = delivery(documentEvent('deleted', id, newer));
    await whileRecorded(event.id, () => recordEvents(db, [deleted]));
    expect(await eventRow(event.id)).toMatchObject({ outcome: 'pending' });
    await settleRecords(db, 'documents', [id], await now());
    expect(await eventRow(event.id)).toMatchObject({ outcome: 'superseded' });

    const meterId = randomUUID();
    const [start, end] = ['2026-05-01T00:00:00Z', '2026-05-02T00:00:00Z'];
    const range = delivery(intervalsEvent(meterId, start, end, 0));
    await recordEvents(db, [range]);
    const settle = async () => await settleRanges(db, meterId, await now(), [{ start, end }]);
    await whileRecorded(range.id, async () => expect(await settle()).toEqual({ applied: 0, short: [] }));
    expect(await settle()).toEqual({ applied: 1, short: [] });
  });

  test('of a document settles no event of a connection or a meter with the same id', async () => {
    const { id, event } = await pendingDocument();
    const others = [
      delivery(connectionEvent('created', id, older, 'PENDING')),
      delivery(intervalsEvent(id, '2026-05-01', '2026-05-02', 0)),
    ];
    await recordEvents(warehouse.db, others);
    const readAt = await now();
    await writeRecords(warehouse, 'documents', [{ id, updated: newer }], { readAt });
    await settleRecords(warehouse.db, 'documents', [id], readAt);
    expect(await eventRow(event.id)).toMatchObject({ outcome: 'applied' });
    for (const other of others)
      expect(await eventRow(other.id)).toMatchObject({ outcome: 'pending', attempts: 0 });
  });

  test('does not settle an event whose recording began before the read and commits after it', async () => {
    const { db } = warehouse;
    const { id, event } = await pendingDocument(older);
    await writeRecords(warehouse, 'documents', [{ id, updated: newer }], { readAt: await now() });
    const late = delivery(documentEvent('updated', id, newer));
    await db.transaction(async (tx) => {
      await recordEvents(tx as unknown as typeof db, [late]);
      const settled = await settleRecords(db, 'documents', [id], await now());
      expect(settled).toEqual({ applied: 1, waiting: 0 });
    });
    expect(await eventRow(event.id)).toMatchObject({ outcome: 'applied' });
    expect(await eventRow(late.id)).toMatchObject({ outcome: 'pending' });
    await settleRecords(db, 'documents', [id], await now());
    expect(await eventRow(late.id)).toMatchObject({ outcome: 'applied' });
  });

  test('does not settle an event that is being recorded again, and does not wait for that recording', async () => {
    const { db } = warehouse;
    const { id, event } = await pendingDocument();
    await writeRecords(warehouse, 'documents', [{ id, updated: newer }], { readAt: await now() });
    await db.transaction(async (tx) => {
      await tx.execute(sql`select from metersync.journal where id = ${event.id} for update`);
      expect(await settleRecords(db, 'documents', [id], await now())).toEqual({ applied: 0, waiting: 0 });
    });
    expect(await eventRow(event.id)).toMatchObject({ outcome: 'pending' });
    expect(await settleRecords(db, 'documents', [id], await now())).toEqual({ applied: 1, waiting: 0 });
  });
});

/** Settles a record that the service does not have, without waiting, until the record is given up. */
async function giveUp(resource: 'documents' | 'connections', id: string, eventId: string) {
  for (let attempt = 0; attempt <= recordPolicy.notFoundAttemptsMax; attempt++) {
    expect((await rowOf(warehouse, resource, id))?.deleted_at).toBeNull();
    expect(await eventRow(eventId)).toMatchObject({ outcome: 'pending', attempts: attempt });
    await settleRecords(warehouse.db, resource, [id], await now(), { notFound: [id] });
    await warehouse.db.execute(
      sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
    );
  }
}

test('a document that no complete listing contains backs off, then is tombstoned with its usage', async () => {
  const { id, event } = await pendingDocument();
  const usageId = randomUUID();
  await writeRecords(warehouse, 'usageData', [{ id: usageId, document: { id } }]);
  await giveUp('documents', id, event.id);
  expect(await rowOf(warehouse, 'documents', id)).toMatchObject({ deleted_reason: 'not_found' });
  expect(await rowOf(warehouse, 'usageData', usageId)).toMatchObject({ deleted_reason: 'document' });
  expect(await eventRow(event.id)).toMatchObject({
    outcome: 'missing',
    error: expect.stringContaining('does not show'),
  });
});

test('more documents of a company than the cap are left to the next backfill, within a day', async () => {
  const companyId = randomUUID();
  const ids = Array.from({ length: 20 }, () => randomUUID());
  const records = ids.map((id) => ({ id, updated: older }));
  await writeRecords(warehouse, 'documents', records, { companyId, readAt: await now() });
  const lose = async (some: readonly string[]) => {
    const events = some.map((id) =>
      delivery(documentEvent('updated', id, newer, { company: { id: companyId } })),
    );
    await recordEvents(warehouse.db, events);
    await warehouse.db.execute(sql`
      update metersync.journal set
        attempts = ${recordPolicy.notFoundAttemptsMax}::int,
        error_code = 'RECORD_NOT_SHOWN',
        due_at = clock_timestamp()
      where outcome = 'pending' and company_id = ${companyId}::uuid`);
    const how = { companyId, notFound: some, cap: { rows: 5, percent: 50 } };
    await settleRecords(warehouse.db, 'documents', some, await now(), how);
    const { rowCount } = await warehouse.db.execute(sql`
      select from utility.documents where company_id = ${companyId}::uuid and deleted_at is not null`);
    return rowCount;
  };
  expect(await lose(ids.slice(0, 6))).toBe(0);
  expect(await lose(ids.slice(6, 10))).toBe(4);
  expect(await lose(ids.slice(10, 12))).toBe(4);
  expect(await lose(ids.slice(12, 13))).toBe(5);
});

test('a burst of events about a record uses up one attempt, not one attempt for each read', async () => {
  const { id, event } = await pendingDocument();
  for (let change = 1; change <= 2 * recordPolicy.notFoundAttemptsMax; change++) {
    await settleRecords(warehouse.db, 'documents', [id], await now(), { notFound: [id] });
    expect(await eventRow(event.id)).toMatchObject({ outcome: 'pending', attempts: 1 });
    await warehouse.db.execute(sql`
      update metersync.journal set due_at = clock_timestamp() + '1 hour' where id = ${event.id}`);
    const at = `2026-05-01T00:00:01.${String(change).padStart(6, '0')}`;
    await recordEvents(warehouse.db, [delivery(documentEvent('updated', id, at))]);
  }
  await warehouse.db.execute(
    sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
  );
  await settleRecords(warehouse.db, 'documents', [id], await now(), { notFound: [id] });
  expect(await eventRow(event.id)).toMatchObject({ outcome: 'pending', attempts: 2 });
  expect(await rowOf(warehouse, 'documents', id)).toMatchObject({ deleted_at: null });
});

const [start, end] = ['2026-05-01T00:00:00Z', '2026-05-02T00:00:00Z'];
test.each([
  [
    'documents whose usage is incomplete',
    (id: string, at: number) => documentEvent('updated', id, `2026-05-01T00:00:01.00000${at}`),
    (id: string, readAt: string) => postponeDocuments(warehouse.db, [id], readAt, usageUnstable),
  ],
  [
    'ranges that lack readings',
    (id: string) => intervalsEvent(id, start, end, 3),
    (id: string, readAt: string) => settleRanges(warehouse.db, id, readAt, [{ start, end }]),
  ],
])('a burst of events, or two reads at once, use up one attempt of %s', async (_, eventOf, fail) => {
  const id = randomUUID();
  const first = delivery(eventOf(id, 0));
  await recordEvents(warehouse.db, [first]);
  for (let change = 1; change <= 6; change++) {
    const readAt = await now();
    await fail(id, readAt);
    await fail(id, readAt);
    expect(await eventRow(first.id)).toMatchObject({ outcome: 'pending', attempts: 1 });
    await warehouse.db.execute(sql`
      update metersync.journal set due_at = clock_timestamp() + '1 hour' where id = ${first.id}`);
    await recordEvents(warehouse.db, [delivery(eventOf(id, change))]);
  }
});

test.each(['documents', 'connections'] as const)(
  '%s are not tombstoned because another company, which an event names, lacks them',
  async (resource) => {
    const [id, other] = [randomUUID(), { ...company, id: randomUUID() }];
    const record = { id, updated: older, status: 'CONNECTED' };
    await writeRecords(warehouse, resource, [record], { readAt: await now(), companyId: company.id });
    const payload =
      resource === 'documents'
        ? documentEvent('updated', id, newer)
        : connectionEvent('updated', id, newer, 'CONNECTED', 'PENDING');
    const event = delivery({ ...payload, company: other });
    await recordEvents(warehouse.db, [event]);
    for (let attempt = 0; attempt <= recordPolicy.olderStateAttemptsMax; attempt++) {
      await settleRecords(warehouse.db, resource, [id], await now(), { companyId: other.id, notFound: [id] });
      expect(await rowOf(warehouse, resource, id)).toMatchObject({
        company_id: company.id,
        deleted_at: null,
      });
      await warehouse.db.execute(
        sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
      );
    }
    expect(await eventRow(event.id)).toMatchObject({ outcome: 'missing' });
  },
);

test('a connection that moved is not postponed or given up because its former company lacks it', async () => {
  const there = { ...company, id: randomUUID() };
  const id = randomUUID();
  const [before, after] = [
    delivery(connectionEvent('created', id, older, 'PENDING')),
    delivery({ ...connectionEvent('updated', id, newer, 'CONNECTED', 'PENDING'), company: there }),
  ];
  await recordEvents(warehouse.db, [before, after]);
  for (let attempt = 0; attempt <= recordPolicy.notFoundAttemptsMax; attempt++) {
    await settleRecords(warehouse.db, 'connections', [id], await now(), {
      companyId: company.id,
      notFound: [id],
    });
    await warehouse.db.execute(
      sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
    );
  }
  for (const { id: event } of [before, after])
    expect(await eventRow(event)).toMatchObject({ outcome: 'pending', attempts: 0, waits: null });
  expect(await rowOf(warehouse, 'connections', id)).toMatchObject({ deleted_at: null });
  const readAt = await now();
  await writeRecords(warehouse, 'connections', [{ id, updated: newer }], { readAt, companyId: there.id });
  await settleRecords(warehouse.db, 'connections', [id], readAt, { companyId: there.id });
  expect(await eventRow(before.id)).toMatchObject({ outcome: 'applied' });
  expect(await eventRow(after.id)).toMatchObject({ outcome: 'applied' });
});

test('a connection that no complete listing contains is tombstoned, and its event is missing', async () => {
  const id = randomUUID();
  const event = delivery(connectionEvent('created', id, newer, 'PENDING'));
  await recordEvents(warehouse.db, [event]);
  await giveUp('connections', id, event.id);
  expect(await rowOf(warehouse, 'connections', id)).toMatchObject({ deleted_reason: 'not_found' });
  expect(await eventRow(event.id)).toMatchObject({ outcome: 'missing' });
});

describe.each(['documents', 'connections'] as const)(
  '%s that the service returns in an older state than an event named',
  (resource) => {
    const eventOf = async (updated = newer, id: string = randomUUID()) => {
      const event = delivery(
        resource === 'documents'
          ? documentEvent('updated', id, updated)
          : connectionEvent('updated', id, updated, 'CONNECTED', 'PENDING'),
      );
      await recordEvents(warehouse.db, [event]);
      return { id, event };
    };
    const show = async (id: string, updated: string) => {
      const readAt = await now();
      await writeRecords(warehouse, resource, [{ id, updated, status: 'PENDING' }], { readAt });
      await settleRecords(warehouse.db, resource, [id], readAt);
    };
    const wayBack = sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`;

    test('backs off, and is then accepted, and the event is missing', async () => {
      const { id, event } = await eventOf();
      for (let attempt = 0; attempt < recordPolicy.olderStateAttemptsMax; attempt++) {
        await show(id, older);
        expect(await eventRow(event.id)).toMatchObject({
          outcome: 'pending',
          attempts: attempt + 1,
          waits: true,
        });
        await warehouse.db.execute(wayBack);
      }
      await show(id, older);
      expect(await eventRow(event.id)).toMatchObject({
        outcome: 'missing',
        error: expect.stringContaining('does not show'),
      });
      await show(id, older);
      expect(await rowOf(warehouse, resource, id)).toMatchObject({
        deleted_at: null,
        raw: { updated: older },
        ...(resource === 'connections' ? { status: 'PENDING' } : {}),
      });
      const [row] = (
        await warehouse.db.execute(
          sql`select updated = raw_updated as as_read from ${sql.raw(`utility.${resource}`)} where id = ${id}::uuid`,
        )
      ).rows;
      expect(row).toEqual({ as_read: true });
      expect(await eventRow(event.id)).toMatchObject({ outcome: 'missing' });
      await show(id, newer);
      expect(await eventRow(event.id)).toMatchObject({ outcome: 'applied', error: null });
    });

    test('is not shown because an older event is given up, while a newer event still waits', async () => {
      const { id, event } = await eventOf();
      for (let attempt = 0; attempt < recordPolicy.olderStateAttemptsMax; attempt++) {
        await show(id, older);
        await warehouse.db.execute(wayBack);
      }
      const { event: next } = await eventOf('2026-05-01T00:00:00.000003', id);
      await show(id, older);
      expect(await eventRow(event.id)).toMatchObject({ outcome: 'missing' });
      expect(await eventRow(next.id)).toMatchObject({ outcome: 'pending', attempts: 1 });
      const { rows } = await warehouse.db.execute(sql`select updated > raw_updated as announced
        from ${sql.raw(`utility.${resource}`)} where id = ${id}::uuid`);
      expect(rows).toEqual([{ announced: true }]);
    });

    test('is accepted once an event from the future is given up, while another event still waits for a newer state', async () => {
      const { id, event } = await eventOf('2099-05-01T00:00:00.000001');
      for (let attempt = 0; attempt < recordPolicy.olderStateAttemptsMax; attempt++) {
        await show(id, older);
        await warehouse.db.execute(wayBack);
      }
      const { event: next } = await eventOf(newer, id);
      await show(id, older);
      expect(await eventRow(event.id)).toMatchObject({ outcome: 'missing' });
      expect(await eventRow(next.id)).toMatchObject({ outcome: 'pending' });
      await show(id, newer);
      expect(await eventRow(next.id)).toMatchObject({ outcome: 'applied' });
      expect(await rowOf(warehouse, resource, id)).toMatchObject({ raw: { updated: newer } });
    });

    test('is accepted at once if the record was given up before', async () => {
      const { id, event } = await eventOf();
      await giveUp(resource, id, event.id);
      expect(await rowOf(warehouse, resource, id)).toMatchObject({ deleted_reason: 'not_found' });
      await show(id, older);
      expect(await rowOf(warehouse, resource, id)).toMatchObject({
        deleted_at: null,
        raw: { updated: older },
      });
      expect(await eventRow(event.id)).toMatchObject({ outcome: 'missing' });
    });
  },
);

test('attempts that failed for another reason do not count against a record', async () => {
  const { id, event } = await pendingDocument();
  for (let attempt = 0; attempt < 2 * recordPolicy.notFoundAttemptsMax; attempt++) {
    const events = pendingOf.records('documents', [id]);
    await postpone(warehouse.db, events, { code: 'SERVICE_ERROR', message: '500' });
    await warehouse.db.execute(
      sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
    );
  }
  await settleRecords(warehouse.db, 'documents', [id], await now(), { notFound: [id] });
  expect(await eventRow(event.id)).toMatchObject({ outcome: 'pending', attempts: 1 });
  expect((await rowOf(warehouse, 'documents', id))?.deleted_at).toBeNull();
});

describe.each(['documents', 'connections'] as const)(
  '%s that is missing from two passes over the listing',
  (resource) => {
    const listing = { resource, companyId: company.id };
    const retire = async () => {
      const seen = { ids: [], beganAt: await now() };
      await retireAbsent(warehouse.db, randomUUID(), listing, seen, { rows: 500, percent: 100 });
    };
    const eventOf = (id: string) =>
      delivery(
        resource === 'documents'
          ? documentEvent('created', id, newer)
          : connectionEvent('created', id, newer, 'PENDING'),
      );

    test('is tombstoned even if an event waits for it, and restored when a read finds it', async () => {
      const id = randomUUID();
      const event = eventOf(id);
      await recordEvents(warehouse.db, [event]);
      await retire();
      expect(await rowOf(warehouse, resource, id)).toMatchObject({ deleted_reason: 'absent' });
      expect(await eventRow(event.id)).toMatchObject({ outcome: 'pending', waits: null });
      const readAt = await now();
      await writeRecords(warehouse, resource, [{ id, updated: newer }], { readAt });
      await settleRecords(warehouse.db, resource, [id], readAt);
      expect(await eventRow(event.id)).toMatchObject({ outcome: 'applied' });
      expect(await rowOf(warehouse, resource, id)).toMatchObject({ deleted_at: null });
    });

    test('is tombstoned without a waiting event, and a late event is superseded', async () => {
      const id = randomUUID();
      const event = eventOf(id);
      await writeRecords(warehouse, resource, [{ id, updated: newer }], {
        readAt: await now(),
        companyId: company.id,
      });
      await retire();
      expect(await rowOf(warehouse, resource, id)).toMatchObject({ deleted_reason: 'absent' });
      await recordEvents(warehouse.db, [event]);
      await settleRecords(warehouse.db, resource, [id], await now());
      expect(await eventRow(event.id)).toMatchObject({ outcome: 'superseded', waits: null });
    });
  },
);
