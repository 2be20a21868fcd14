import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EndpointCatalogue } from '../../contract/endpoints.ts';
import { sweepBounds } from '../../contract/limits.ts';
import { catchUpKinds } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { recordEvents } from '../../db/events/record.ts';
import { dueOwners } from '../../db/queue/due.ts';
import { reviveFailed } from '../../db/queue/postpone.ts';
import { readStatus } from '../../db/read/status.ts';
import { readEffects, watchEffects } from '../faults/ledger.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn, queues } from '../support/activities.ts';
import { cases } from '../support/cases.ts';
import { connectionEvent, delivery, documentEvent, intervalsEvent } from '../support/events.ts';

/** A company of the service, or a company that somebody who can sign events has invented. */
interface Company {
  readonly id: string;
  readonly documentId: string;
  readonly connectionId: string;
  readonly siteId: string;
  readonly made: 'by the service' | 'up';
  /** Whether the service answers requests about the company, and whether its list contains it. */
  answered: boolean;
  listed: boolean;
  /** How the service answers requests about the company while it does not have the company. */
  answersUnknown: Unknown;
}

const updated = '2026-03-01T00:00:00.000001';
/** How a service may answer requests about a company that it does not have. */
const unknown = {
  'not found': { status: 404, json: {} },
  denied: { status: 403, json: {} },
  refused: { status: 400, json: {} },
  failed: { status: 500, json: {} },
  empty: undefined,
} satisfies Record<string, Reply | undefined>;
type Unknown = keyof typeof unknown;
const answers = Object.keys(unknown) as Unknown[];

class World {
  readonly companies: Company[] = [];

  add(
    made: Company['made'],
    answered = made === 'by the service',
    answersUnknown: Unknown = 'not found',
  ): Company {
    const [id, documentId, connectionId, siteId] = Array.from({ length: 4 }, () => randomUUID());
    const ids = { id, documentId, connectionId, siteId } as Company;
    const company = { ...ids, made, answered, listed: answered, answersUnknown };
    this.companies.push(company);
    return company;
  }

  answer = (asked: Asked): Reply => {
    const [, , resource = '', scope = '', id = ''] = asked.path.split('/');
    const page = (records: readonly { readonly id: string }[]): Reply =>
      pageOf(records, asked, { key: `${resource}s`, total: 'total' });
    if (resource === 'ping') return { json: {} };
    if (resource === 'company')
      return {
        json: this.companies.filter(({ listed }) => listed).map(({ id: listedId }) => ({ id: listedId })),
      };
    if (scope === 'meter') return unknown['not found'];
    const company = this.companies.find((held) =>
      scope === 'company' ? held.id === id : held.documentId === scope,
    );
    if (!company?.answered) {
      // For single records, only a 404 says nothing about the company.
      if (scope !== 'company') return unknown['not found'];
      return unknown[company?.answersUnknown ?? 'not found'] ?? page([]);
    }
    const document = { id: company.documentId, company: { id: company.id }, updated };
    if (scope !== 'company') return { json: document };
    if (resource === 'document') return page([document]);
    if (resource === 'connection') return page([{ ...document, id: company.connectionId }]);
    return page([]);
  };
}

const withoutUsage = { usageData: null, documentUsage: null } as const;
/** Services with and without a list of companies, and with and without single documents. */
const catalogues: Readonly<Record<string, Partial<EndpointCatalogue>>> = {
  everything: withoutUsage,
  'no list of companies': { ...withoutUsage, companies: null },
  'no single documents': { ...withoutUsage, document: null },
};

const named = ({ id, siteId }: Company) => ({
  company: { id, name: `Company ${id}`, externalId: 'x', publicId: randomUUID() },
  site: { id: siteId, name: 'Somewhere' },
});
const eventsOf = (company: Company) => {
  const names = named(company);
  const connection = connectionEvent('created', company.connectionId, updated, 'PENDING');
  const relations = { sitesRelations: [{ ...connection.sitesRelations[0], site: names.site }] };
  return [
    delivery(documentEvent('created', company.documentId, updated, names)),
    delivery({ ...connection, ...relations, company: names.company }),
  ];
};

/** Makes one round of each catch-up, after ending all waits. */
async function round({ warehouse, run, activities }: ActivitiesUnderTest): Promise<void> {
  await warehouse.db.execute(
    sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
  );
  for (const kind of catchUpKinds) {
    const owners = await dueOwners(warehouse.db, kind, 1_000);
    if (owners.length > 0) await run(activities.sweepOwners, { owners: queues(kind, owners) });
  }
}

async function backfill(
  { run, activities }: ActivitiesUnderTest,
  runId: string = randomUUID(),
  only?: string,
) {
  const begun = await run(activities.beginRun, { runId, kind: 'full' });
  if (only === undefined) await run(activities.readCompanies, { runId, kind: 'full', lane: 0, ...begun });
  else await run(activities.readCompany, { runId, companyId: only });
  return await run(activities.concludeRun, { runId });
}

/** Returns the tables that have live rows of a company. */
async function livesOf({ warehouse }: ActivitiesUnderTest, { id }: Company): Promise<string[]> {
  const live = (table: string, owner = 'company_id') => sql`select ${table}::text as of
    from utility.${sql.raw(table)} where ${sql.raw(owner)} = ${id}::uuid and deleted_at is null`;
  const { rows } = await warehouse.db.execute<{ of: string }>(sql`${live('companies', 'id')}
    union all ${live('sites')} union all ${live('documents')} union all ${live('connections')} order by 1`);
  return rows.map((row) => row.of);
}

async function outcomesOf({ warehouse }: ActivitiesUnderTest, { id }: Company): Promise<string[]> {
  const { rows } = await warehouse.db.execute<{ outcome: string }>(
    sql`select distinct outcome from metersync.events where company_id = ${id}::uuid order by 1`,
  );
  return rows.map(({ outcome }) => outcome);
}

const runsOf = async ({ warehouse }: ActivitiesUnderTest, { id }: Company) =>
  (await warehouse.db.execute(sql`select from metersync.runs where company_id = ${id}::uuid`)).rowCount;

test.each(Object.keys(catalogues))(
  'companies that only events name get no row, no run and a bounded number of requests, for any answers of the service (%s)',
  async (catalogue) => {
    const world = new World();
    const under = await activitiesOn(world.answer, catalogues[catalogue]);
    const genuine = world.add('by the service');
    const invented = answers.map((answer) => world.add('up', false, answer));
    await recordEvents(under.warehouse.db, [...invented, genuine].flatMap(eventsOf));
    await round(under);
    expect([...new Set(under.backfilled)]).toEqual([genuine.id]);
    expect(await backfill(under)).toBe('complete');
    for (let rounds = 0; rounds <= recordPolicy.olderStateAttemptsMax; rounds++) {
      for (const forged of invented) expect(await livesOf(under, forged)).not.toContain('companies');
      await round(under);
    }
    const before = under.asked().length;
    await round(under);
    expect(under.asked()).toHaveLength(before);
    for (const forged of invented) {
      const { answersUnknown: answer } = forged;
      expect([answer, await outcomesOf(under, forged)]).toEqual([answer, ['missing']]);
      expect([answer, await livesOf(under, forged)]).toEqual([answer, []]);
      // The client repeats a failing request, so it sends it four times.
      const times = answer === 'failed' ? 4 : 1;
      const about = under
        .asked()
        .filter((path) => path.includes(forged.id) || path.includes(forged.documentId));
      expect(about.length, answer).toBeLessThanOrEqual(
        (recordPolicy.olderStateAttemptsMax + 1) * (2 * times + 1),
      );
      expect(await runsOf(under, forged), answer).toBe(0);
    }
    expect((await readStatus(under.warehouse.db)).parked).toEqual([]);
    expect(await outcomesOf(under, genuine)).toEqual(['applied']);
    expect(await livesOf(under, genuine)).toEqual(['companies', 'connections', 'documents', 'sites']);
  },
);

test('a company that the service shows later is read, even if it is resumed after it was given up', async () => {
  const world = new World();
  const under = await activitiesOn(world.answer, catalogues['no list of companies']);
  const [late, later] = [world.add('by the service', false), world.add('by the service', false)];
  await recordEvents(under.warehouse.db, eventsOf(late));
  await round(under);
  const { waiting } = await readStatus(under.warehouse.db);
  expect(waiting).toMatchObject([{ code: 'UNKNOWN_TO_SERVICE', events: 2, owners: 1 }]);
  late.answered = true;
  await round(under);
  expect(await outcomesOf(under, late)).toEqual(['applied']);

  await recordEvents(under.warehouse.db, eventsOf(later));
  for (let rounds = 0; rounds <= recordPolicy.olderStateAttemptsMax; rounds++) await round(under);
  expect(await outcomesOf(under, later)).toEqual(['missing']);
  later.answered = true;
  await reviveFailed(under.warehouse.db, ['UNKNOWN_TO_SERVICE']);
  await round(under);
  expect(await outcomesOf(under, later)).toEqual(['applied']);
  expect(await livesOf(under, later)).toEqual(['companies', 'connections', 'documents', 'sites']);
  expect([...new Set(under.backfilled)]).toEqual([late.id, later.id]);
});

test('a company whose first event is a deletion is requested as well', async () => {
  const world = new World();
  const under = await activitiesOn(world.answer, catalogues['no list of companies']);
  const [forged, genuine] = [world.add('up'), world.add('by the service')];
  await watchEffects(under.warehouse);
  for (const company of [forged, genuine]) {
    const deleted = documentEvent('deleted', randomUUID(), updated, named(company));
    await recordEvents(under.warehouse.db, [delivery(deleted)]);
  }
  await round(under);
  expect([...new Set(under.backfilled)]).toEqual([genuine.id]);
  expect(await outcomesOf(under, genuine)).toEqual(['applied']);
  expect((await readEffects(under.warehouse)).map(({ times }) => times)).toEqual([1, 1]);
  for (let rounds = 0; rounds <= recordPolicy.olderStateAttemptsMax; rounds++) await round(under);
  expect([await outcomesOf(under, forged), await livesOf(under, forged)]).toEqual([['missing'], []]);
});

test('companies that an earlier version created from events are tombstoned by the next backfill at the latest', async () => {
  const world = new World();
  const under = await activitiesOn(world.answer, withoutUsage);
  const { db } = under.warehouse;
  const genuine = world.add('by the service');
  const forged = Array.from({ length: 60 }, () => world.add('up'));
  await recordEvents(db, [genuine, ...forged].flatMap(eventsOf));
  await db.execute(sql`insert into utility.companies (id, name) select distinct company_id, 'forged'
    from metersync.events`);
  await round(under);
  expect(await backfill(under)).toBe('complete');
  for (const company of forged) {
    expect(await livesOf(under, company)).not.toContain('companies');
    expect(await runsOf(under, company)).toBe(0);
  }
  expect(await livesOf(under, genuine)).toEqual(['companies', 'connections', 'documents', 'sites']);
});

test('the record of an event of a deleted company is read, and all records are read once the company is listed again', async () => {
  const world = new World();
  const under = await activitiesOn(world.answer, withoutUsage);
  const { db } = under.warehouse;
  const [gone] = [world.add('by the service'), world.add('by the service')];
  await recordEvents(db, eventsOf(gone));
  await round(under);
  expect(await backfill(under)).toBe('complete');
  gone.listed = false;
  expect(await backfill(under)).toBe('complete');
  // The record of the company has no list of sites, so its site stays live.
  expect(await livesOf(under, gone)).toEqual(['sites']);
  await recordEvents(db, [delivery(documentEvent('updated', gone.documentId, updated, named(gone)))]);
  await round(under);
  expect(await outcomesOf(under, gone)).toEqual(['applied']);
  expect(await livesOf(under, gone)).toEqual(['documents', 'sites']);
  gone.listed = true;
  expect(await backfill(under)).toBe('complete');
  expect(await livesOf(under, gone)).toEqual(['companies', 'connections', 'documents', 'sites']);
});

test.each([400, 403, 500])(
  'an invented document that is answered with %i does not stop other documents of its company',
  async (status) => {
    const world = new World();
    const forged = randomUUID();
    const under = await activitiesOn(
      (asked) => (asked.path.endsWith(forged) ? { status, json: {} } : world.answer(asked)),
      withoutUsage,
    );
    const { db } = under.warehouse;
    const genuine = world.add('by the service');
    await recordEvents(db, [delivery(documentEvent('created', forged, updated, named(genuine)))]);
    for (let rounds = 0; rounds < 3; rounds++) await round(under);
    await recordEvents(db, eventsOf(genuine));
    await round(under);
    expect(await outcomesOf(under, genuine)).toEqual(['applied', 'pending']);
    for (let rounds = 0; rounds <= recordPolicy.olderStateAttemptsMax; rounds++) await round(under);
    expect(await outcomesOf(under, genuine)).toEqual(['applied', 'missing']);
    expect(await livesOf(under, genuine)).toEqual(['companies', 'connections', 'documents', 'sites']);
  },
);

test('a meter that only events name is given up, but a meter that the service listed is not', async () => {
  const under = await activitiesOn(new World().answer);
  const { db } = under.warehouse;
  const [forged, listed] = [randomUUID(), randomUUID()];
  await db.execute(sql`insert into utility.meters (id) values (${listed})`);
  const announced = (id: string) => delivery(intervalsEvent(id, '2026-05-01', '2026-05-02', 1));
  await recordEvents(db, [announced(forged), announced(listed)]);
  for (let rounds = 0; rounds <= recordPolicy.olderStateAttemptsMax + 1; rounds++) await round(under);
  const { rows } = await db.execute(sql`select record_id, outcome, error_code from metersync.events`);
  expect(rows).toContainEqual({ record_id: forged, outcome: 'missing', error_code: 'UNKNOWN_TO_SERVICE' });
  expect(rows).toContainEqual({ record_id: listed, outcome: 'pending', error_code: 'SERVICE_NOT_FOUND' });
});

/** A step: the index of a company, and what happens to the company. */
const step = fc.tuple(
  fc.nat(3),
  fc.constantFrom('deliver', 'deliver', 'answer', 'list', 'round', 'round', 'backfill', 'given twice'),
);

test.each(['everything', 'no list of companies'] as const)(
  'only companies of the service end up in the warehouse, for any order of events, lists and answers (%s)',
  { timeout: 300_000 },
  async (catalogue) => {
    const world = new World();
    const under = await activitiesOn(world.answer, catalogues[catalogue]);
    const { db } = under.warehouse;
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 12 }),
        fc.constantFrom(...answers),
        async (steps, answer) => {
          const add = (made: Company['made']) => world.add(made, false, answer);
          const genuine = [add('by the service'), add('by the service')];
          const all = [...genuine, add('up'), add('up')];
          const eventsByCompany = new Map(all.map((company) => [company, eventsOf(company)]));
          for (const [which, what] of steps) {
            const company = all[which] as Company;
            const events = eventsByCompany.get(company) ?? [];
            if (what === 'deliver') await recordEvents(db, events.slice(0, 1));
            else if (what === 'given twice') await recordEvents(db, [...events, ...events]);
            else if (what === 'round') await round(under);
            else if (what === 'backfill') await backfill(under);
            else if (company.made === 'by the service') {
              if (what === 'list') company.listed = true;
              company.answered = true;
            }
          }
          for (const company of genuine) {
            company.answered = true;
            company.listed = true;
          }
          await recordEvents(db, [...eventsByCompany.values()].flat());
          for (let rounds = 0; rounds <= recordPolicy.olderStateAttemptsMax + 1; rounds++) await round(under);
          for (const id of under.backfilled.splice(0)) await backfill(under, id, id);
          if (catalogue === 'everything') await backfill(under);
          for (const company of all) {
            const isGenuine = company.made === 'by the service';
            const lives = isGenuine ? ['companies', 'connections', 'documents', 'sites'] : [];
            expect([await livesOf(under, company), await runsOf(under, company)]).toEqual([
              lives,
              isGenuine ? expect.any(Number) : 0,
            ]);
            expect(await outcomesOf(under, company)).toEqual([isGenuine ? 'applied' : 'missing']);
            if (isGenuine) expect(await runsOf(under, company)).toBeGreaterThan(0);
            company.answered = false;
            company.listed = false;
          }
          world.companies.splice(0);
          for (const table of ['journal', 'event_payloads'])
            await db.execute(sql.raw(`delete from metersync.${table}`));
          for (const table of ['companies', 'sites', 'documents', 'connections'])
            await db.execute(sql.raw(`delete from utility.${table}`));
        },
      ),
      { numRuns: cases(3, 8) },
    );
  },
);

test('companies that only events name do not starve a genuine company, however many follow', async () => {
  const world = new World();
  const under = await activitiesOn(world.answer, catalogues['no list of companies']);
  const { db } = under.warehouse;
  const limit = sweepBounds.lanes * sweepBounds.ownersPerLane;
  const forge = () =>
    recordEvents(db, Array.from({ length: limit }, () => world.add('up')).flatMap(eventsOf));
  await forge();
  const genuine = world.add('by the service');
  await recordEvents(db, eventsOf(genuine));
  // The kinds take turns, so the first flood takes two turns.
  for (let turn = 1; turn <= 4; turn++) {
    await forge();
    const { owners } = await under.run(under.activities.dueForSweep, { limit, except: [] });
    await under.run(under.activities.sweepOwners, { owners });
  }
  expect(await outcomesOf(under, genuine)).toEqual(['applied']);
});
