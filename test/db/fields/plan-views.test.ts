import { expect, test } from 'vitest';
import { FieldTree } from '../../../db/fields/field-tree.ts';
import { planViews, type TypedView } from '../../../db/fields/plan-views.ts';

/** Plans the views of documents with these records. */
function plan(...records: readonly object[]): TypedView[] {
  const tree = new FieldTree();
  const fields = records.flatMap((record) => {
    tree.observe(record);
    return tree.take(false);
  });
  const catalogued = fields.map((field) => ({ ...field, resource: 'documents', apiVersions: ['v2.2'] }));
  return planViews(catalogued, () => false).filter(({ of }) => of.resource === 'documents');
}

const objects = (name: string, count: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, n) => [`${name}${n}`, { a: 1, b: 1, c: 1, d: 1, e: { f: 1 } }]),
  );

test.each([
  ['a record', '', (fields: object) => fields],
  ['an object', '/in', (fields: object) => ({ in: fields })],
  ['an element', '/in/*', (fields: object) => ({ in: [fields] })],
])(
  'each object in %s has a view or a column, even if a resource has more objects than views',
  (_, owner, made) => {
    const views = plan(made(objects('o', 205)));
    const columns = views.find(({ path }) => path === owner)?.columns ?? [];
    const whole = Object.keys(objects('o', 205)).filter(
      (name) => !views.some(({ path }) => path === `${owner}/${name}`),
    );
    expect(whole.length).toBeGreaterThan(5);
    for (const name of whole)
      expect(columns).toContainEqual({ name, path: `${owner}/${name}`, type: 'jsonb' });

    const later = plan(made(objects('o', 205)), made({ ...objects('o', 205), ...objects('later', 3) }));
    expect(later.map(({ name }) => name)).toEqual(views.map(({ name }) => name));
    const now = later.find(({ path }) => path === owner)?.columns ?? [];
    expect(now).toEqual(expect.arrayContaining([...columns]));
  },
);
