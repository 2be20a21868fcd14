import { expect, test } from 'vitest';
import { FieldTree } from '../../../db/fields/field-tree.ts';
import { planViews, type TypedView } from '../../../db/fields/plan-views.ts';

/** Plans the views of documents with these records, over existing ones. */
function plan(records: readonly object[], existing: readonly TypedView[] = []): TypedView[] {
  const tree = new FieldTree();
  for (const record of records) tree.observe(record);
  const fields = tree.take(true).map((field) => ({ ...field, resource: 'documents', apiVersions: ['v2.2'] }));
  return planViews(fields, existing, () => false).filter(({ resource }) => resource === 'documents');
}

const objects = (name: string, count: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, n) => [`${name}${n}`, { a: 1, b: 1, c: 1, d: 1, e: { f: 1 } }]),
  );

test.each([
  ['a record', '', (fields: object) => fields],
  ['an object', '/in', (fields: object) => ({ in: fields })],
  ['an element', '/in/*', (fields: object) => ({ in: [fields] })],
])('of more objects in %s than a resource has views, each has a view or a column', (_, owner, made) => {
  const views = plan([made(objects('o', 205))]);
  const columns = views.find(({ path }) => path === owner)?.columns ?? [];
  const whole = Object.keys(objects('o', 205)).filter(
    (name) => !views.some(({ path }) => path === `${owner}/${name}`),
  );
  expect(whole.length).toBeGreaterThan(5);
  for (const name of whole) expect(columns).toContainEqual({ name, path: `${owner}/${name}`, type: 'jsonb' });
  expect(plan([made(objects('o', 205))], views)).toEqual(views);

  const later = plan([made({ ...objects('o', 205), ...objects('later', 3) })], views);
  const now = later.find(({ path }) => path === owner)?.columns ?? [];
  expect(now.slice(0, columns.length)).toEqual(columns);
});
