import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { recordEvents } from '../../../db/events/record.ts';
import { readKept } from '../../../db/read/events.ts';
import { cases } from '../../support/cases.ts';
import {
  company,
  connectionEvent,
  delivery,
  documentEvent,
  intervalsEvent,
  site,
} from '../../support/events.ts';
import { forFile } from '../../support/for-file.ts';
import { untilLocked } from '../../support/lock-waits.ts';
import { nested } from '../../support/nested.ts';
import { settleAs } from '../../support/settled.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const rows = async (query: ReturnType<typeof sql>) => (await warehouse.db.execute(query)).rows;
const outcomeOf = async (id: string) =>
  (
    await rows(
      sql`select outcome, error, payload is null as bytes_only from metersync.events where id = ${id}`,
    )
  )[0];

describe('recordEvents', () => {
  test('writes an event with its header fields to the journal, pending until its record is read', async () => {
    const id = randomUUID();
    const event = delivery(documentEvent('created', id, '2026-01-02T03:04:05.678901'));
    const recorded = await recordEvents(warehouse.db, [event]);
    expect(recorded).toMatchObject({ fresh: 1, duplicates: 0, dead: 0, mayWait: true });
    expect(
      await rows(
        sql`select company_id, site_id, raw, (updated at time zone 'UTC')::text as updated from utility.documents where id = ${id}`,
      ),
    ).toEqual([
      { company_id: company.id, site_id: site.id, raw: null, updated: '2026-01-02 03:04:05.678901' },
    ]);
    expect(await outcomeOf(event.id)).toMatchObject({ outcome: 'pending' });
  });

  test.each(['body', 'bodyBase64'] as const)(
    'applies an event whose %s begins with a byte order mark',
    async (member) => {
      const id = randomUUID();
      const { body: text = '', ...event } = delivery(
        documentEvent('created', id, '2026-01-02T03:04:05.678901'),
      );
      const marked = `\ufeff${text}`;
      const body = member === 'body' ? marked : Buffer.from(marked).toString('base64');
      expect(await recordEvents(warehouse.db, [{ ...event, [member]: body }])).toMatchObject({ dead: 0 });
      expect(await outcomeOf(event.id)).toMatchObject({ outcome: 'pending', bytes_only: false });
      expect(await rows(sql`select from utility.documents where id = ${id}`)).toHaveLength(1);
    },
  );

  test('changes nothing for a second delivery, within a group or across groups', async () => {
    const event = delivery(connectionEvent('created', randomUUID(), '2026-01-02T00:00:00.000001', 'PENDING'));
    expect(await recordEvents(warehouse.db, [event, event])).toMatchObject({ fresh: 1 });
    const before = await rows(sql`select xmin::text, * from utility.connections order by id`);
    expect(await recordEvents(warehouse.db, [event])).toMatchObject({ fresh: 0, duplicates: 1 });
    expect(await rows(sql`select xmin::text, * from utility.connections order by id`)).toEqual(before);
  });

  test('gives companies without a public id the newest public id that an event names', async () => {
    const [without, named] = [randomUUID(), randomUUID()];
    await warehouse.db.execute(sql`
      insert into utility.companies (id, public_id) values (${without}::uuid, null), (${named}::uuid, 'its own')`);
    const naming = (id: string, publicId: string, day: number) =>
      delivery(
        documentEvent('updated', randomUUID(), `2026-01-0${day}T00:00:00`, {
          company: { ...company, id, publicId },
        }),
      );
    await recordEvents(warehouse.db, [
      naming(without, 'older', 2),
      naming(without, 'newest', 3),
      naming(named, 'another', 3),
    ]);
    await recordEvents(warehouse.db, [naming(without, 'later', 4)]);
    expect(
      await rows(sql`select id, public_id from utility.companies where id in (${without}, ${named})`),
    ).toEqual(
      expect.arrayContaining([
        { id: without, public_id: 'newest' },
        { id: named, public_id: 'its own' },
      ]),
    );
  });

  test('tries a missing event again only once if it is delivered twice at the same time', async () => {
    const event = delivery(documentEvent('created', randomUUID(), '2026-01-02T00:00:00.000001'));
    await recordEvents(warehouse.db, [event]);
    await settleAs(warehouse.db, 'missing', sql`id = ${event.id}`);
    expect(await outcomeOf(event.id)).toMatchObject({ outcome: 'missing' });
    const { db } = warehouse;
    const locked = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const holder = db.transaction(async (tx) => {
      await tx.execute(sql`select from metersync.journal where id = ${event.id} for update`);
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    const both = [recordEvents(db, [event]), recordEvents(db, [event])];
    await untilLocked(db, 'both wait for the row', 2);
    release.resolve();
    await holder;
    const fresh = (await Promise.all(both)).map((recorded) => recorded.fresh);
    expect(fresh.sort()).toEqual([0, 1]);
    expect(await outcomeOf(event.id)).toMatchObject({ outcome: 'pending' });
  });

  test('applies an event without a company to a record that it knows, and keeps it as dead otherwise', async () => {
    const [known, unknown, announced] = [randomUUID(), randomUUID(), randomUUID()];
    const event = (id: string, updated: string, more = {}) =>
      delivery(documentEvent('updated', id, `2026-03-0${updated}T00:00:00`, more));
    const without = { company: undefined };
    await recordEvents(warehouse.db, [event(known, '1')]);
    const later = event(known, '2', without);
    const never = event(unknown, '1', { company: null });
    const together = [event(announced, '2', without), event(announced, '1')];
    expect(await recordEvents(warehouse.db, [later, never, ...together])).toMatchObject({
      fresh: 4,
      dead: 1,
    });
    for (const { id } of [later, ...together])
      expect(await outcomeOf(id)).toMatchObject({ outcome: 'pending' });
    expect(await outcomeOf(never.id)).toMatchObject({
      outcome: 'dead',
      error: 'document.updated.v2: company is missing, and its record is unknown',
      bytes_only: true,
    });
    expect(
      await rows(sql`select company_id, updated::date::text from utility.documents
        where id in (${known}::uuid, ${announced}::uuid)`),
    ).toEqual([1, 2].map(() => ({ company_id: company.id, updated: '2026-03-02' })));
    expect(await rows(sql`select company_id from metersync.journal where id = ${later.id}`)).toEqual([
      { company_id: company.id },
    ]);
  });

  test('ignores unknown types, keeps unusable events as dead with their bytes, and commits all other events', async () => {
    const good = Array.from({ length: 5 }, () =>
      delivery(documentEvent('created', randomUUID(), '2026-02-01T00:00:00.000001')),
    );
    const unknown = delivery({ eventType: 'job.finished.v9', id: 1 });
    const bad = {
      shapeless: delivery({ hello: 'world' }),
      typeElsewhere: delivery({
        type: 'document.created.v2',
        ...documentEvent('created', randomUUID(), '2026-01-01T00:00:00', { eventType: undefined }),
      }),
      notJson: delivery('{"eventType":'),
      scalar: delivery('42'),
      array: delivery('[1,2]'),
      empty: delivery(''),
      endless: delivery(nested.endless),
      deep: delivery(nested.array),
      deepField: delivery(
        JSON.stringify(
          documentEvent('created', randomUUID(), '2026-01-01T00:00:00', { deep: 'DEEP' }),
        ).replace('"DEEP"', nested.object),
      ),
      noId: delivery({ eventType: 'document.created.v2', company, updated: '2026-01-01T00:00:00' }),
      nulId: delivery(documentEvent('created', 'a\u0000b', '2026-01-01T00:00:00')),
      nulMeter: delivery(intervalsEvent('m\u0000', '2026-01-01', '2026-01-02', 1)),
      halfMeter: delivery(intervalsEvent('m\ud800', '2026-01-01', '2026-01-02', 1)),
      overflow: delivery(
        JSON.stringify(documentEvent('created', randomUUID(), '2026-01-01T00:00:00', { n: 1 })).replace(
          '"n":1',
          `"n":1e${'9'.repeat(6)}`,
        ),
      ),
      backwards: delivery(intervalsEvent('m-9', '2026-01-02', '2026-01-01', 1)),
      connectionOverflow: overflowing(
        connectionEvent('updated', randomUUID(), '2026-01-01T00:00:00', 'CONNECTED', 'PENDING'),
      ),
      intervalOverflow: overflowing(intervalsEvent('m-1', '2026-01-01', '2026-01-02', 1)),
      overflowAndNul: overflowing(
        documentEvent('created', randomUUID(), '2026-01-01T00:00:00', { note: '\0' }),
      ),
      intervalNoDate: delivery(intervalsEvent('m-1', '2026-02-30', '2026-03-01', 1)),
    };
    // The id is enough: a read of the record shows the rest.
    const untimed = [
      '2026-01-01T00:00:00\u0000',
      '2026-02-30T00:00:00',
      '+275760-09-13T00:00:00',
      'infinity',
    ].map((updated) => delivery(documentEvent('created', randomUUID(), updated)));
    const all = [...good, unknown, ...untimed, ...Object.values(bad)];
    const recorded = await recordEvents(warehouse.db, all);
    expect(recorded.dead).toBe(Object.keys(bad).length);
    for (const event of untimed) expect(await outcomeOf(event.id)).toMatchObject({ outcome: 'pending' });
    for (const event of good) expect(await outcomeOf(event.id)).toMatchObject({ outcome: 'pending' });
    expect(await outcomeOf(unknown.id)).toMatchObject({
      outcome: 'ignored',
      error: 'metersync does not use events of this type',
    });
    expect(await outcomeOf(bad.backwards.id)).toMatchObject({
      error: 'intervals.synced: start is after end',
    });
    for (const [name, event] of Object.entries(bad)) {
      expect([name, await outcomeOf(event.id)]).toEqual([
        name,
        { outcome: 'dead', error: expect.any(String), bytes_only: true },
      ]);
      const [kept] = await rows(
        sql`select convert_from(body, 'UTF8') as text from metersync.events where id = ${event.id}`,
      );
      expect(kept?.text).toBe(event.body);
    }
    // Postgres cannot hold the payloads of these events, so their ranges are not known.
    const ids = Object.values(bad).map(({ id }) => id);
    const ranges = sql`select distinct range_start, range_end from metersync.events
      where id = any(string_to_array(${ids.join()}, ','))`;
    expect(await rows(ranges)).toEqual([{ range_start: null, range_end: null }]);
    // Events that Postgres refused are found one by one, and are all kept in one transaction.
    const transactions = await rows(sql`select distinct xmin::text from metersync.journal
      where error_code = 'WAREHOUSE_VALUE_REFUSED' and error not like '% NUL %'`);
    expect(transactions).toHaveLength(1);
  });

  test.each(Object.values(nested))(
    'takes less than 50 ms of work for an event that nests 100,000 deep (%#)',
    async (body) => {
      const work: number[] = [];
      while (work.length < 10) {
        const before = process.threadCpuUsage();
        expect(await recordEvents(warehouse.db, [delivery(body)])).toMatchObject({ dead: 1 });
        const { user, system } = process.threadCpuUsage(before);
        work.push((user + system) / 1_000);
      }
      // The minimum counts, because other work of this thread adds to some of the measurements.
      expect(Math.min(...work)).toBeLessThan(50);
    },
  );

  test.each([
    [
      'keys that name prototypes as ordinary fields',
      '{"__proto__":{"polluted":1},"eventType":"any.v1","constructor":{"prototype":{"polluted":1}}}',
      '{"__proto__": {"polluted": 1}, "eventType": "any.v1", "constructor": {"prototype": {"polluted": 1}}}',
    ],
    [
      'the last of two equal keys',
      '{"eventType":"first.v1","eventType":"last.v1"}',
      '{"eventType": "last.v1"}',
    ],
  ])('keeps %s', async (_what, body, payload) => {
    const event = delivery(body);
    await recordEvents(warehouse.db, [event]);
    const kept = sql`select outcome, type, payload::text from metersync.events where id = ${event.id}`;
    const { eventType: type } = JSON.parse(body) as { eventType: string };
    expect(await rows(kept)).toEqual([{ outcome: 'ignored', type, payload }]);
  });

  test('applies events with NUL or half of a surrogate pair, and keeps their bytes', async () => {
    const noted = (note: string) =>
      delivery(
        JSON.stringify(
          documentEvent('created', randomUUID(), '2026-02-01T00:00:00.000001', { note: 'NOTE' }),
        ).replace('NOTE', note),
      );
    const replaced = {
      '\\u0000': '\ufffd',
      '\\\\\\u0000': '\\\ufffd',
      'x\\ud800': 'x\ufffd',
      '\\ude00\\ud83d': '\ufffd\ufffd',
      '\\uDC00': '\ufffd',
    };
    const sound = {
      '\\\\u0000': '\\u0000',
      '\\ud83d\\ude00': '😀',
      '\\\\\\\\ud800': '\\\\ud800',
      '\\u00e9': 'é',
    };
    const events = Object.entries({ ...replaced, ...sound }).map(([spelled, note]) => ({
      event: noted(spelled),
      note,
      isReplaced: spelled in replaced,
    }));
    const all = events.map(({ event }) => event);
    expect(await recordEvents(warehouse.db, all)).toMatchObject({ fresh: 9, dead: 0 });
    for (const { event, note, isReplaced } of events)
      expect(
        await rows(sql`select outcome, payload ->> 'note' as note, convert_from(body, 'UTF8') as body
          from metersync.events where id = ${event.id}`),
      ).toEqual([{ outcome: 'pending', note, body: isReplaced ? event.body : null }]);
    const transactions = await rows(sql`select distinct xmin::text from metersync.journal
      where id = any(string_to_array(${all.map(({ id }) => id).join()}, ','))`);
    expect(transactions).toHaveLength(1);
  });

  test('names the texts that were replaced in the columns of a record, and a replay repeats the event as it was sent', async () => {
    const [id, other] = [randomUUID(), randomUUID()];
    const at = '2026-01-02T00:00:00.000001';
    const event = delivery({
      ...connectionEvent('updated', id, at, 'CONNECTED', 'PENDING'),
      url: 'https://a\u0000b',
      old: { status: 'PENDING\ud800' },
    });
    const beside = delivery(connectionEvent('updated', other, at, 'CONNECTED', 'PENDING'));
    await recordEvents(warehouse.db, [event, beside]);
    const kept = await rows(sql`select url, unreadable from utility.connections where id = ${id}`);
    const unreadable = { url: String.raw`https://a\u0000b`, 'old.status': String.raw`PENDING\ud800` };
    expect(kept).toEqual([{ url: 'https://a\ufffdb', unreadable }]);
    expect(await rows(sql`select unreadable from utility.connections where id = ${other}`)).toEqual([
      { unreadable: null },
    ]);
    expect(await readKept(warehouse.db, [event.id])).toMatchObject([{ delivered: { body: event.body } }]);
  });

  test('names nothing else, whatever the fields of an event that is ignored or about readings', async () => {
    const ignored = delivery('{"eventType":"document.created.v2\\u0000","id":"\\u0000"}');
    const readings = delivery({ ...intervalsEvent('m-7', '2026-01-01', '2026-01-02', 1), id: '\0' });
    expect(await recordEvents(warehouse.db, [ignored, readings])).toMatchObject({ fresh: 2, dead: 0 });
    expect(await outcomeOf(ignored.id)).toMatchObject({ outcome: 'ignored' });
    expect(await outcomeOf(readings.id)).toMatchObject({ outcome: 'pending' });
  });

  test('tries a dead event again when it is delivered again', async () => {
    const id = randomUUID();
    await recordEvents(warehouse.db, [delivery('not json', id)]);
    await recordEvents(warehouse.db, [
      delivery(documentEvent('created', randomUUID(), '2026-01-01T00:00:00'), id),
    ]);
    expect(await outcomeOf(id)).toMatchObject({ outcome: 'pending', error: null });
  });

  test('does not record a retried group again, because a bad event would use up the time of every attempt', async () => {
    const poison = overflowing(documentEvent('created', randomUUID(), '2026-01-01T00:00:00'));
    const sound = delivery(documentEvent('created', randomUUID(), '2026-01-01T00:00:00'));
    const attempt = (runId: string) =>
      recordEvents(warehouse.db, [poison, sound], { workflow: { workflowId: 'events/1', runId } });
    expect(await attempt('run-1')).toMatchObject({ fresh: 2, dead: 1 });
    expect(await attempt('run-1')).toMatchObject({ fresh: 0, duplicates: 2, dead: 0 });
    expect(await attempt('run-2')).toMatchObject({ fresh: 1, duplicates: 1, dead: 1 });
  });

  test('leads to the same rows for every order and grouping of the events of a document and a connection', async () => {
    const history = (document: string, connection: string) => [
      documentEvent('created', document, '2026-03-01T00:00:00.000001'),
      documentEvent('updated', document, '2026-03-01T00:00:00.000002'),
      documentEvent('deleted', document, '2026-03-01T00:00:00.000002'),
      connectionEvent('created', connection, '2026-03-01T00:00:00.000001', 'PENDING'),
      connectionEvent('updated', connection, '2026-03-01T00:00:00.000003', 'CONNECTED', 'PENDING'),
      connectionEvent('validated', connection, '2026-03-01T00:00:00.000003', 'CONNECTED', 'PENDING'),
    ];
    const state = async (document: string, connection: string) => ({
      documents:
        await rows(sql`select company_id, site_id, created::text, updated::text, deleted_at is not null as gone,
        deleted_reason from utility.documents where id = ${document}`),
      connections: await rows(sql`select company_id, external_id, datasource, status, url, updated::text
        from utility.connections where id = ${connection}`),
      sites: await rows(sql`select site_id, account_ids, datasource_types from utility.connection_sites
        where connection_id = ${connection}`),
      changes: await rows(sql`select old_status, status, at::text from utility.connection_status_changes
        where connection_id = ${connection} order by at`),
      outcomes: await rows(sql`select type, outcome from metersync.events
        where record_id in (${document}, ${connection}) order by type`),
    });
    const finalState = async (order: readonly number[], at: number) => {
      const [document, connection] = [randomUUID(), randomUUID()];
      const events = history(document, connection);
      const deliveries = order.map((index) => delivery(events[index]));
      // Groups have one, two or three events, and the sizes differ from order to order.
      for (let from = 0; from < deliveries.length; ) {
        const size = 1 + ((at + from) % 3);
        await recordEvents(warehouse.db, deliveries.slice(from, from + size));
        from += size;
      }
      return await state(document, connection);
    };
    // Every third of the 720 orders is enough: it still has each order of the document's events with each
    // order of the connection's events.
    const orders = permutations([0, 1, 2, 3, 4, 5]).filter((_, at) => at % cases(3, 1) === 0);
    const expected = await finalState(orders[0] ?? [], 0);
    for (let from = 0; from < orders.length; from += 24) {
      const batch = orders.slice(from, from + 24);
      const states = await Promise.all(batch.map((order, at) => finalState(order, from + at)));
      expect(states).toEqual(batch.map(() => expected));
    }
    expect(expected).toMatchObject({
      documents: [{ gone: true, deleted_reason: 'event', updated: expect.stringContaining('.000002') }],
      connections: [{ status: 'CONNECTED' }],
      changes: [{ status: 'PENDING' }, { old_status: 'PENDING', status: 'CONNECTED' }],
    });
  });

  test('does not deadlock or lose a row if concurrent groups have records in common', async () => {
    const ids = Array.from({ length: 30 }, () => randomUUID());
    const sample = fc.sample(fc.shuffledSubarray(ids, { minLength: 20 }), { numRuns: 40, seed: 7 });
    await Promise.all(
      sample.map((subset, at) =>
        recordEvents(
          warehouse.db,
          subset.map((id) =>
            delivery(documentEvent('updated', id, `2026-04-01T00:00:00.${String(at).padStart(6, '0')}`)),
          ),
        ),
      ),
    );
    const newest = new Map<string, number>(
      ids.map((id) => [id, Math.max(...sample.map((s, at) => (s.includes(id) ? at : -1)))]),
    );
    const stored = await rows(sql`select id, to_char(updated, 'US')::int as at from utility.documents
      where id in (${sql.join(
        ids.map((id) => sql`${id}`),
        sql`, `,
      )})`);
    for (const row of stored) expect([row.id, row.at]).toEqual([row.id, newest.get(String(row.id))]);
  });
});

/** An event with a number that Postgres cannot hold. */
const overflowing = (event: object) =>
  delivery(JSON.stringify({ ...event, more: 'HERE' }).replace('"HERE"', '1e200000'));

function permutations(items: readonly number[]): number[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item) =>
    permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]),
  );
}
