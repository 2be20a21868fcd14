import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pageOf } from '../service/listing.ts';
import { activitiesOn } from '../support/activities.ts';
import { cases } from '../support/cases.ts';
import { connectionEvent, delivery, documentEvent, intervalsEvent } from '../support/events.ts';
import { hostileJson, hostileVariant } from '../support/hostile-json.ts';

const at = '2026-05-01T00:00:00.000001';
const sound = () => delivery(documentEvent('created', randomUUID(), at));
const started = () => activitiesOn((asked) => pageOf([], asked));

type Started = Awaited<ReturnType<typeof started>>;
const outcomes = async ({ warehouse }: Started, ids: readonly string[]) => {
  const { rows } = await warehouse.db.execute<{ id: string; outcome: string; kept: boolean }>(sql`
    select id, outcome, payload is not null or body is not null as kept from metersync.events`);
  const outcomes = new Map(rows.map(({ id, outcome, kept }) => [id, kept ? outcome : 'lost']));
  return ids.map((id) => outcomes.get(id));
};

test('events of unknown types are recorded, but their fields are not', async () => {
  const world = await started();
  for (let round = 0; round < 3; round++) {
    const strange = Array.from({ length: 150 }, (_, n) =>
      delivery({ eventType: `z${round}.${n}`, [`f${n}`]: n }),
    );
    const beside = sound();
    await world.run(world.activities.recordGroup, { events: [...strange, beside] });
    expect(await outcomes(world, [beside.id])).toEqual(['pending']);
    expect(
      new Set(
        await outcomes(
          world,
          strange.map(({ id }) => id),
        ),
      ),
    ).toEqual(new Set(['ignored']));
  }
  const { rows } = await world.warehouse.db.execute(sql`select resource from metersync.field_catalogue`);
  expect(rows).toEqual([]);
});

test('an event with any value in any field is kept at the first attempt, and does not stop other events of its group', async () => {
  const world = await started();
  const document = documentEvent('updated', randomUUID(), at);
  const variants = fc.oneof(
    hostileJson,
    ...[
      document,
      documentEvent('created', document.id, at),
      documentEvent('deleted', document.id, at),
      connectionEvent('created', randomUUID(), at, 'PENDING'),
      connectionEvent('updated', randomUUID(), at, 'CONNECTED', 'PENDING'),
      intervalsEvent('m-1', '2026-01-01', '2026-01-02', 1),
      { eventType: 'planet.moved.v9', to: { orbit: [1] } },
    ].map((event) => hostileVariant(event)),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(variants, { minLength: 1, maxLength: 12 }), async (bodies) => {
      const hostile = bodies.map((body) => delivery(body));
      const [before, after] = [sound(), sound()];
      await world.run(world.activities.recordGroup, { events: [before, ...hostile, after] });
      expect(await outcomes(world, [before.id, after.id])).toEqual(['pending', 'pending']);
      const ended = await outcomes(
        world,
        hostile.map(({ id }) => id),
      );
      expect(ended.filter((outcome) => outcome === undefined || outcome === 'lost')).toEqual([]);
    }),
    { numRuns: cases(20, 60) },
  );
  expect(world.catalogueTroubles).toEqual([]);
});
