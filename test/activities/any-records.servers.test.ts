import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EndpointName } from '../../contract/endpoints.ts';
import { defaultEndpoints } from '../../contract/endpoints.ts';
import { tableOf } from '../../db/resources.ts';
import { activitiesOn } from '../support/activities.ts';
import { cases } from '../support/cases.ts';
import { nested } from '../support/nested.ts';
import { anyCharacter } from '../support/text.ts';

const updated = '2026-05-01T00:00:00.000001';
const deep = { array: `${'['.repeat(20_000)}${']'.repeat(20_000)}`, object: nested.object };
const huge = '9'.repeat(40);

/** Any JSON value that a service may send in any field. */
const value = fc.oneof(
  fc.json({ stringUnit: anyCharacter }),
  fc.constantFrom(
    '"a\\u0000b"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    huge,
    `-${huge}`,
    '1e400',
    '1e999999',
    '-0',
    '0.1e-400',
    deep.array,
    deep.object,
    'null',
    '{}',
    '[]',
    '"infinity"',
    '"275761-01-01"',
    '"NaN"',
    `"${randomUUID()}"`,
    `{"id":"${randomUUID()}"}`,
    `{"id":${deep.array}}`,
    `[{"id":${huge}}]`,
  ),
);
const field = fc.constantFrom(
  'id',
  'company',
  'updated',
  'created',
  'usageData',
  'site',
  'sites',
  'sitesRelations',
  'document',
  'meter',
  'usage',
  'startDate',
  'start',
  'end',
  'name',
  '__proto__',
  'note',
  'i\\u0064',
);
/** Records with any fields, and also values that are not records. */
const record = fc.oneof(
  { weight: 1, arbitrary: value },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        fc.constantFrom('"id":"ID",', '"id":17,', `"id":${huge},`, ''),
        fc.array(fc.tuple(field, value), { minLength: 1, maxLength: 3 }),
      )
      .map(
        ([id, fields]) =>
          `{${id.replace('ID', randomUUID())}${fields.map(([key, text]) => `"${key}":${text}`).join(',')}}`,
      ),
  },
);
const listings = ['companies', 'connections', 'documents', 'usageData', 'meters'] as const;

test.each(listings)(
  'any JSON in one record of a page does not keep the other %s from being written',
  { timeout: 300_000 },
  async (listing) => {
    let body = '[]';
    const none = Object.keys(defaultEndpoints).filter((name) => name !== listing) as EndpointName[];
    const under = await activitiesOn(() => ({ body }), Object.fromEntries(none.map((name) => [name, null])));
    const { run, activities, warehouse } = under;
    /** Reads the records between sound records, and returns which of `ids` then have a row that was read. */
    const attempt = async (records: readonly string[], ids: readonly string[] = []): Promise<string[]> => {
      const [companyId = '', ...sound] = Array.from({ length: 4 }, (): string => randomUUID());
      const texts = sound.map((id) => JSON.stringify({ id, updated, usage: '1', name: 'x' }));
      // Bad records are between good ones, so that the first and last record of the page have to be written.
      const items = [texts[0], ...records, texts[1], ...records.toReversed(), texts[2]];
      body = `{"${listing}":[${items.join(',')}],"currentPage":1,"hasNext":false,"note":{"n":${deep.array}}}`;
      const runId = randomUUID();
      if (listing === 'companies') await run(activities.beginRun, { runId, kind: 'full' });
      else await run(activities.readCompany, { runId, companyId });
      const { rows } = await warehouse.db.execute<{ id: string }>(sql`
        select id::text as id from ${tableOf(listing)}
        where id::text in (${sql.join(
          [...sound, ...ids].map((id) => sql`${id}`),
          sql`, `,
        )}) and raw is not null`);
      const read = rows.map(({ id }) => id);
      expect(read.filter((id) => sound.includes(id)).sort()).toEqual(sound.sort());
      return read.filter((id) => ids.includes(id)).sort();
    };
    await attempt([`{"id":17,"note":${deep.array}}`, `{"id":18,"note":${deep.object}}`]);
    // A character that Postgres cannot hold does not cost a record its row, wherever it is.
    const ids = Array.from({ length: 4 }, () => randomUUID()).sort();
    const [nul, half, nested, name] = ids;
    const odd = [
      String.raw`{"id":"${nul}","updated":"${updated}","note":"a\u0000b","usage":"1\u0000"}`,
      String.raw`{"id":"${half}","updated":"${updated}","status":"\ud800","company":"\udc00"}`,
      String.raw`{"id":"${nested}","updated":"${updated}","usageData":[{"id":"\u0000"}],"sites":[{"id":"\udc00\ud800"}]}`,
      String.raw`{"id":"${name}","updated":"${updated}","a\u0000":{"\ud800":["\u0000"]}}`,
    ];
    expect(await attempt(odd, ids)).toEqual(ids);
    await fc.assert(
      fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 3 }), async (some) => {
        await attempt(some);
      }),
      {
        seed: 20_261_122,
        numRuns: cases(2, 40),
      },
    );
  },
);
