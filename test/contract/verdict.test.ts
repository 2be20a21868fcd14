import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AlertType, alarmsOfFindings, alertNames, alertTypes } from '../../contract/alerts.ts';
import { headline, verdictOf, verdictStatus, verdictWords } from '../../contract/verdict.ts';
import { away, health, ills, paused, temporal, warehouse } from '../support/health-states.ts';

test('a deployment without a fault is in sync', () => {
  expect(headline(verdictOf(health()))).toBe('In sync');
  expect(verdictOf(health()).findings.every(({ todo }) => todo === null)).toBe(true);
});

test('a schedule that is absent is not a fault', () => {
  const schedules = [{ ...paused, state: 'absent' as const }];
  expect(verdictOf(health({}, { schedules })).word).toBe('In sync');
});

describe.each(ills)('%s', (name, a, b, word, todo) => {
  test(`makes it ${word}, and says what to do`, () => {
    const verdict = verdictOf(health(a, b));
    const [first] = verdict.findings;
    expect(verdict.word).toBe(word);
    expect(first).toMatchObject({ word, todo: expect.stringMatching(todo) });
    expect(headline(verdict)).toContain(`${word}: ${first?.name}: ${first?.saw}`);
  });

  test('is reported even if the other side cannot be reached', () => {
    const ofWarehouse = Object.keys(b).length === 0;
    const { word: heard } = verdictOf(
      ofWarehouse
        ? { warehouse: { ...warehouse, ...a }, temporal: away }
        : { warehouse: away, temporal: { ...temporal, ...b } },
    );
    // Temporal has the interval by which a run is overdue.
    const isUnknown = word === 'Catching up' || name === 'runs that are overdue';
    expect(heard).toBe(isUnknown ? 'Unknown' : word);
  });
});

test('a side that cannot be reached is never well, and several faults are as bad as the worst', () => {
  for (const one of [
    { warehouse: away, temporal },
    { warehouse, temporal: away },
    { warehouse: away, temporal: away },
  ]) {
    expect(verdictOf(one).word).toBe('Unknown');
    expect(verdictOf(one).findings[0]).toMatchObject({ word: 'Unknown', todo: 'Bring it up.' });
    expect(verdictStatus[verdictOf(one).word]).toBe(5);
  }
  fc.assert(
    fc.property(fc.subarray([...ills], { minLength: 1 }), (some) => {
      const parts = some.map(([, a]) => a).filter((a) => Object.keys(a).length > 0);
      const words = some.filter(([, a]) => Object.keys(a).length > 0).map(([, , , word]) => word);
      fc.pre(new Set(parts.flatMap(Object.keys)).size === parts.flatMap(Object.keys).length);
      const { word, findings } = verdictOf(health(Object.assign({}, ...parts)));
      const ranks = [...words, 'In sync'].map((one) => verdictWords.indexOf(one as 'Broken'));
      expect(verdictWords.indexOf(word)).toBe(Math.max(...ranks));
      for (const finding of findings) expect(finding.todo === null).toBe(finding.word === 'In sync');
    }),
  );
});

/** Severities of the alarms that are raised in a state. */
const raisedIn = (state: ReturnType<typeof health>) =>
  alertNames.flatMap((name) => {
    const { judge, severity }: AlertType = alertTypes[name];
    return (judge?.(state) ?? []).map(() => severity);
  });

test.each(ills)('%s: a page is Broken, a ticket Needs you, and Broken has a page', (name, a, b) => {
  const { word } = verdictOf(health(a, b));
  const severities = raisedIn(health(a, b));
  const worst = severities.includes('page') ? 'Broken' : severities.includes('ticket') ? 'Needs you' : word;
  // A watch cannot report its own end: Prometheus does.
  expect(word).toBe(name === 'a watch that stopped' ? 'Broken' : worst);
  if (word === 'Broken' && name !== 'a watch that stopped') expect(severities).toContain('page');
});

test.each(ills)(
  '%s: an alarm reports each finding that is wrong, or the catalogue says why none does',
  (_, a, b) => {
    const state = health(a, b);
    for (const { name, word } of verdictOf(state).findings) {
      const { alarms, silent } = alarmsOfFindings[name] ?? { alarms: [] };
      const isReported = alarms.some((alarm) => {
        const { judge }: AlertType = alertTypes[alarm];
        // Prometheus alone raises the others.
        return judge === undefined || (judge(state) ?? []).length > 0;
      });
      if (word === 'Needs you' || word === 'Broken')
        expect(isReported || silent !== undefined, name).toBe(true);
      else expect(alarmsOfFindings, name).toHaveProperty([name]);
    }
  },
);

test('the catalogue names no finding that the verdict does not have', () => {
  const states = [health(), ...ills.map(([, a, b]) => health(a, b)), { warehouse: away, temporal: away }];
  const names = states.flatMap((state) => verdictOf(state).findings.map(({ name }) => name));
  expect(Object.keys(alarmsOfFindings).toSorted()).toEqual([...new Set(names)].toSorted());
});

test('a well deployment raises no alarm', () => {
  expect(raisedIn(health())).toEqual([]);
});
