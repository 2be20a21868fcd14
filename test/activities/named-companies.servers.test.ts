import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { defaultEndpoints, type EndpointCatalogue } from '../../contract/endpoints.ts';
import { parkingCodes } from '../../contract/failures.ts';
import { chooseCompanies } from '../../db/backfill/run-companies.ts';
import { failedParts } from '../../db/backfill/runs.ts';
import { readStatus } from '../../db/read/status.ts';
import { whyNotRead } from '../../operations/runs.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { setup } from '../service/setup.ts';
import { type ActivitiesUnderTest, activitiesOn } from '../support/activities.ts';

const listed = randomUUID();
const unlisted = randomUUID();
const typed = randomUUID();

/** How the service answers a request for a listing of a company that it does not have. */
const unknown = {
  'not found': { status: 404, json: {} },
  denied: { status: 403, json: {} },
  empty: undefined,
} satisfies Record<string, Reply | undefined>;
type Unknown = keyof typeof unknown;

/** Answers for two companies with a document each. The list of companies contains only one of them. */
const answering =
  (how: Unknown) =>
  (asked: Asked): Reply => {
    const [, , resource = '', , id = ''] = asked.path.split('/');
    const page = (records: readonly { readonly id: string }[]): Reply =>
      pageOf(records, asked, { key: `${resource}s`, total: 'total' });
    if (resource === 'company') return { json: [{ id: listed }] };
    if (id !== listed && id !== unlisted) return unknown[how] ?? page([]);
    const document = { id, company: { id } };
    return page(resource === 'document' ? [document] : []);
  };

const noUsage = { usageData: null, document: null, documentUsage: null } as const;
const noList = { ...noUsage, companies: null } as const;
const cases = (Object.keys(unknown) as Unknown[]).flatMap((how) =>
  [noUsage, noList].map((catalogue) => ({ how, catalogue, list: catalogue === noUsage ? 'a' : 'no' })),
);
/** The cases that prove that a company does not exist: empty listings only with a list of companies. */
const proven = cases.filter(({ how, list }) => how !== 'empty' || list === 'a');

async function backfill({ run, activities, warehouse }: ActivitiesUnderTest, only: readonly string[] = []) {
  const runId = randomUUID();
  if (only.length > 0) await chooseCompanies(warehouse.db, runId, only);
  const begun = await run(activities.beginRun, { runId, kind: 'full' });
  await run(activities.readCompanies, { runId, kind: 'full', lane: 0, ...begun });
  return await run(activities.concludeRun, { runId });
}

const lives = async ({ warehouse }: ActivitiesUnderTest): Promise<string[]> =>
  (
    await warehouse.db.execute<{ id: string }>(
      sql`select id from utility.companies where deleted_at is null order by id`,
    )
  ).rows.map(({ id }) => id);

async function under(
  how: Unknown,
  catalogue: Partial<EndpointCatalogue>,
  companies: readonly string[] = [],
): Promise<ActivitiesUnderTest> {
  return await activitiesOn(answering(how), catalogue, { companies });
}

describe.each(proven)(
  'a company that does not exist, answered $how, with $list list of companies',
  ({ how, catalogue }) => {
    test('is refused without writing anything about it, and the other companies of a run are read', async () => {
      const at = await under(how, catalogue);
      const error = async () => (await readStatus(at.warehouse.db)).backfills.last?.error;
      expect(await backfill(at, [typed])).toBe('failed');
      expect(await error()).toContain(`the service does not have 1 of the companies chosen: ${typed}`);
      expect(await lives(at)).not.toContain(typed);
      expect(await failedParts(at.warehouse.db, parkingCodes)).toMatchObject({ companies: [] });

      expect(await backfill(at, [typed, unlisted])).toBe('complete');
      expect(await error()).toContain(typed);
      expect(await lives(at)).toEqual(catalogue === noUsage ? [listed, unlisted].toSorted() : [unlisted]);
      expect((await readStatus(at.warehouse.db)).parked).toEqual([]);
    });

    test('loses its old row and failed parts in a backfill, and a resume does not bring them back', async () => {
      const at = await under(how, catalogue);
      const { db } = at.warehouse;
      await db.execute(sql`insert into utility.companies (id) values (${typed}), (${unlisted})`);
      await db.execute(sql`insert into metersync.runs (run_id, company_id, resource, state, error_code, started_at, finished_at)
      values (${randomUUID()}::uuid, ${typed}::uuid, 'documents', 'failed', 'SERVICE_NOT_FOUND', now(), now())`);
      expect(await failedParts(db, parkingCodes)).toMatchObject({ companies: [typed] });
      await backfill(at);
      expect(await lives(at)).toEqual(catalogue === noUsage ? [listed] : [unlisted]);
      expect(await failedParts(db, parkingCodes)).toMatchObject({ companies: [] });
      expect((await readStatus(db)).parked).toEqual([]);
      expect(await backfill(at)).toBe('complete');
    });
  },
);

test.each(['not found', 'empty'] as const)(
  'an unknown id in SERVICE_COMPANIES creates no row, and the run names it (%s)',
  async (how) => {
    const at = await under(how, noUsage, [typed, unlisted]);
    expect(await backfill(at)).toBe('complete');
    expect(await lives(at)).toEqual([listed, unlisted].toSorted());
    const { last } = (await readStatus(at.warehouse.db)).backfills;
    expect(last?.error).toContain(`SERVICE_COMPANIES names ${typed}, which the service does not have`);
  },
);

test('a run fails if the settings name only unknown ids and there is no list of companies', async () => {
  const at = await under('not found', noList, [typed]);
  expect(await backfill(at)).toBe('failed');
  expect(await lives(at)).toEqual([]);
});

test.each([noUsage, noList])(
  'a company of the settings stays live if the list of companies does not contain it',
  async (catalogue) => {
    const at = await under('empty', catalogue, [unlisted]);
    const { db } = at.warehouse;
    await db.execute(sql`insert into utility.companies (id, raw, first_synced_at, absent_since, absent_by)
    values (${unlisted}, '{}', '2026-01-01', '2026-01-02', 'absent')`);
    for (let run = 1; run <= 2; run++) {
      expect(await backfill(at)).toBe('complete');
      expect(await lives(at)).toContain(unlisted);
    }
    const documents = await db.execute(sql`select company_id as company from utility.documents
    where deleted_at is null and company_id = ${unlisted}`);
    expect(documents.rows).toHaveLength(1);
    expect((await db.execute(sql`select from metersync.deletes`)).rowCount).toBe(0);
  },
);

test('a company of the settings to which the key has no access is parked', async () => {
  const at = await under('denied', noUsage, [typed]);
  expect(await backfill(at)).toBe('partial');
  expect((await readStatus(at.warehouse.db)).parked).toMatchObject([{ code: 'SERVICE_ACCESS_DENIED' }]);
});

describe('before a run begins', () => {
  test.each(proven)('a mistyped company is refused ($how, $list list)', async ({ how, catalogue }) => {
    const { warehouse } = await under(how, catalogue);
    const { client } = await setup(answering(how), { endpoints: { ...defaultEndpoints, ...catalogue } });
    expect(await whyNotRead(warehouse.db, client, typed)).toContain(`no company ${typed}`);
    expect(await whyNotRead(warehouse.db, client, unlisted)).toBeUndefined();
    expect(await whyNotRead(warehouse.db, client, listed.toUpperCase())).toBeUndefined();
  });

  test('a company is not refused while the answers are uncertain, or if the warehouse has it', async () => {
    const { warehouse } = await under('empty', noList);
    const failing = await setup(() => ({ status: 500, json: {} }));
    expect(await whyNotRead(warehouse.db, failing.client, typed)).toBeUndefined();
    const { client } = await setup(answering('empty'), { endpoints: { ...defaultEndpoints, ...noList } });
    expect(await whyNotRead(warehouse.db, client, typed)).toBeUndefined();
    await warehouse.db.execute(sql`insert into utility.companies (id, raw) values (${typed}, '{}')`);
    const gone = await setup(() => ({ status: 404, json: {} }));
    expect(await whyNotRead(warehouse.db, gone.client, typed)).toBeUndefined();
    expect(gone.server.asked).toEqual([]);
  });
});
