import { expect, test } from 'vitest';
import type { DataIssue } from '../../db/read/issues.ts';
import { subjectOf } from '../../operations/decisions.ts';

const issue = (of: Pick<DataIssue, 'entityType' | 'entityId'>, names: DataIssue['names'] = null) =>
  subjectOf({ ...of, names } as DataIssue);

test('an issue is about what people know, about an id if nothing is known, and not about its company again', () => {
  const names = { site: 'Main street', meter: 'E-77', account: 'A-9', provider: null, invoice: null };
  expect(issue({ entityType: 'meter', entityId: 'm' }, names)).toBe('Main street, meter E-77, account A-9');
  expect(issue({ entityType: 'meter', entityId: 'm' })).toBe('meter m');
  expect(issue({ entityType: 'company', entityId: 'c' })).toBeUndefined();
});
