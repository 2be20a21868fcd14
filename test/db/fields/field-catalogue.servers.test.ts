import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, test } from 'vitest';
import { createFieldCatalogue } from '../../../db/fields/field-catalogue.ts';
import { forFile } from '../../support/for-file.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

/** Opens the catalogue as another process would. */
const open = (
  onError: (error: Error) => void = (error) => {
    throw error;
  },
) => createFieldCatalogue({ db: warehouse.db, onError });

const rows = async (query: ReturnType<typeof sql>) => (await warehouse.db.execute(query)).rows;
let resource: string;
beforeEach(() => {
  resource = `records ${randomUUID()}`;
});

/** The catalogued types of the fields by their paths. */
const fields = async () =>
  Object.fromEntries(
    (
      await rows(sql`select path, array_to_string(types, ' ') as types from ops.field_catalogue
        where resource = ${resource} order by path collate "C"`)
    ).map(({ path, types }) => [path, types]),
  );

const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n]));

describe('the catalogue of fields', () => {
  test('has each field and kind of values, also those that only an earlier or another process saw', async () => {
    await open().note(resource, 'v2', [
      { id: randomUUID(), status: 'OPEN', lines: [{ amount: '1.50' }, { amount: 2 }], more: null },
      'no record',
    ]);
    const [one, other] = [open(), open()];
    await Promise.all([
      one.note(resource, 'v2', [{ due: '2026-02-28', lines: [] }]),
      one.note(resource, 'v2', [{ due: '2026-02-28', lines: [] }]),
      other.note(resource, 'v2', [{ due: '2026-02-28', status: 3 }]),
    ]);
    expect(await fields()).toEqual({
      '': 'object',
      '/due': 'date',
      '/id': 'uuid',
      '/lines': 'array',
      '/lines/*': 'object',
      '/lines/*/amount': 'decimal number',
      '/more': '',
      '/status': 'text number',
    });
  });

  test('keeps API versions apart', async () => {
    const catalogue = open();
    await catalogue.note(resource, 'v2', [{ amount: 1 }]);
    await catalogue.note(resource, 'v2.2', [{ amount: '1.00' }]);
    expect(
      await rows(sql`select api_version, types from ops.field_catalogue
        where resource = ${resource} and path = '/amount' order by 1`),
    ).toEqual([
      { api_version: 'v2', types: ['number'] },
      { api_version: 'v2.2', types: ['decimal'] },
    ]);
  });

  test('calls an object a map if its keys are UUIDs, too many or too long, in all processes', async () => {
    const catalogue = open();
    await catalogue.note(resource, 'v2', [
      { ofIds: { [randomUUID()]: { usage: 1 } }, many: keys(300), long: { ['k'.repeat(600)]: 1 } },
    ]);
    const found = await fields();
    expect(found).toMatchObject({ '/ofIds': 'object map', '/many': 'object', '/long': 'object map' });
    expect(Object.keys(found)).toHaveLength(304);
    await catalogue.note(resource, 'v2', [{ many: { ...keys(300), another: 1 } }]);
    expect((await fields())['/many']).toBe('object map');
    await open().note(resource, 'v2', [{ many: { 'not seen before': 1 } }]);
    expect(Object.keys(await fields())).toHaveLength(304);
  });

  test('has at most 5,000 fields of a resource, and 300 of a record itself, for any records', async () => {
    await open().note(resource, 'v2', [keys(310)]);
    expect(await fields()).toMatchObject({ '': 'object', '/k299': 'number' });
    expect(Object.keys(await fields())).toHaveLength(301);
    for (let restart = 0; restart < 3; restart++) {
      const groups = Array.from({ length: 20 }, (_, n) => [`group ${restart} ${n}`, keys(200)]);
      await open().note(resource, 'v2', [Object.fromEntries(groups)]);
    }
    expect(Object.keys(await fields()).length).toBeLessThan(10_000);
  });

  test('reports each failure, and writes the fields with the next note', async () => {
    const reported: string[] = [];
    const catalogue = open(({ message }) => void reported.push(message));
    await rows(sql`alter table metersync.field_catalogue rename to away`);
    await catalogue.note(resource, 'v2', [{ a: 1 }]);
    await rows(sql`alter table metersync.away rename to field_catalogue`);
    expect(reported).toEqual([
      expect.stringMatching(/^the field catalogue could not be written: relation .* does not exist$/),
    ]);
    await catalogue.note(resource, 'v2', [{ b: 1 }]);
    expect(Object.keys(await fields())).toEqual(['', '/a', '/b']);
  });

  test('accepts any names', async () => {
    const record =
      JSON.parse(`{"__proto__": 1, "": 2, "a/b~c*": 3, "\\u0000": 4, "'; drop --": 5, "naïve 😀": "\\u0000x",
      "${'n'.repeat(200)}": "NULL", "{}": "{\\"a\\"}", "\\ud800": 1}`);
    await open().note(resource, 'v2', [record]);
    expect(new Set(Object.keys(await fields()))).toEqual(
      new Set([
        '',
        '/',
        "/'; drop --",
        '/__proto__',
        '/a~1b~0c~2',
        '/naïve 😀',
        '/\ufffd',
        `/${'n'.repeat(200)}`,
        '/{}',
      ]),
    );
  });
});
