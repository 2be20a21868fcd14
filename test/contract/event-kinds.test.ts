import { expect, test } from 'vitest';
import {
  companyEventKinds,
  deletingTypes,
  eventKinds,
  eventTypes,
  kindOfType,
  recordEventKinds,
} from '../../contract/event.ts';
import { catchUpKinds } from '../../contract/names.ts';
import { eventKind } from '../../db/catch-up/stale.ts';
import { listedByCompanies, recordResources, resources } from '../../db/resources.ts';

test('each kind of events has one catch-up, and each catch-up one kind of events', () => {
  expect(recordEventKinds.map((kind) => eventKinds[kind].plural).toSorted()).toEqual(catchUpKinds.toSorted());
  for (const kind of recordEventKinds) expect(eventKind[eventKinds[kind].plural]).toBe(kind);
});

test('each type has a kind, each kind has a type, and an invented type is ignored', () => {
  expect([...new Set(eventTypes.map(kindOfType))]).toEqual(recordEventKinds);
  expect(['toString', 'document.', 'document.invented.v2'].map(kindOfType)).toEqual([
    'ignored',
    'ignored',
    'ignored',
  ]);
  expect(deletingTypes.map(kindOfType)).toEqual(['document']);
});

test('the resource of a kind of events that names companies has a company, and companies list it', () => {
  const withEvents = recordResources.flatMap((resource) => resources[resource].eventKind ?? []);
  expect(withEvents).toEqual(companyEventKinds);
  for (const kind of companyEventKinds) expect(listedByCompanies).toContain(eventKinds[kind].plural);
});

test('a resource that companies list has an owner, and documents come before their usage', () => {
  for (const resource of recordResources) {
    const { listedBy, table } = resources[resource];
    expect(listedByCompanies.includes(resource as never), resource).toBe(listedBy === 'company');
    expect('companyId' in table, resource).toBe(listedBy !== 'service');
  }
  expect(listedByCompanies.indexOf('documents')).toBeLessThan(listedByCompanies.indexOf('usageData'));
});
