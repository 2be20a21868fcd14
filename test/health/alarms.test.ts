import fc from 'fast-check';
import { expect, test } from 'vitest';
import { changesOf, type LiveAlarm, type Raised, seenIn } from '../../health/alarms.ts';
import { type AlarmName, alarmTypes } from '../../health/findings.ts';
import { away, health } from '../support/health-states.ts';

const minute = 60_000;
const raised = (alarm: AlarmName, key = ''): Raised => ({ alarm, key, saw: 'x', todo: 'y', counts: {} });
const seen = (...alarms: Raised[]) => ({ raised: alarms, unknown: new Set<AlarmName>() });

/** Judges the given alarms of each minute in turn; returns each change as `minute word name`. */
function story(looks: readonly (readonly AlarmName[])[]): string[] {
  let live: LiveAlarm[] = [];
  return looks.flatMap((names, at) => {
    const now = at * minute;
    const looked = seen(...names.map((name) => raised(name)));
    const begun = changesOf(live, looked, now).begin;
    live = [
      ...live,
      ...begun.map(({ alarm: name, key }) => ({
        id: `${name} ${at}`,
        name,
        key,
        pendingSince: now,
        openedAt: null,
      })),
    ];
    const { open, close, forget } = changesOf(live, looked, now);
    const gone = new Set([...close, ...forget].map(({ id }) => id));
    live = live
      .filter(({ id }) => !gone.has(id))
      .map((alarm) => ({
        ...alarm,
        ...(open.includes(alarm) ? { openedAt: now } : {}),
      }));
    const say = (word: string, alarms: readonly LiveAlarm[]) =>
      alarms.map(({ name }) => `${at} ${word} ${name}`);
    return [...say('opened', open), ...say('resolved', close)];
  });
}
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

test('an alarm opens once after it has lasted its minutes, and is resolved once', () => {
  expect(alarmTypes.EventsStalled.forMinutes).toBe(5);
  const looks = [...times(3, []), ...times(10, ['EventsStalled' as const]), ...times(4, [])];
  expect(story(looks)).toEqual(['8 opened EventsStalled', '13 resolved EventsStalled']);
});

test('an alarm that ends before its minutes does not open, and starts again later', () => {
  const short = times(5, ['EventsStalled' as const]);
  expect(story([...short, [], ...short, []])).toEqual([]);
});

test('an alarm without minutes opens at once', () => {
  expect(story([[], ['EventsDead'], []])).toEqual(['1 opened EventsDead', '2 resolved EventsDead']);
});

test("events are missing for an hour before the alarm, because the event of a deletion may come with the service's fourth try", () => {
  expect(story([...times(60, ['EventsMissing' as const]), []])).toEqual([]);
  expect(story(times(62, ['EventsMissing' as const]))).toEqual(['60 opened EventsMissing']);
});

test('an alarm that cannot be judged keeps its state', () => {
  const live: LiveAlarm = {
    id: 'a',
    name: 'WorkersGone',
    key: '',
    pendingSince: 0,
    openedAt: 0,
  };
  const looked = seenIn({ ...health(), temporal: away });
  expect(looked.unknown.has('WorkersGone')).toBe(true);
  expect(changesOf([live], looked, minute)).toEqual({
    begin: [],
    forget: [],
    open: [],
    close: [],
  });
  expect(changesOf([live], seen(), minute).close).toEqual([live]);
});

test('each alarm is opened and resolved in turn, however alarms come and go', () => {
  const names = ['EventsDead', 'EventsStalled', 'Decide'] as const;
  fc.assert(
    fc.property(fc.array(fc.subarray([...names]), { maxLength: 200 }), (looks) => {
      for (const name of names) {
        const words = story(looks).flatMap((line) => {
          const [, word = '', of] = line.split(' ');
          return of === name ? [word] : [];
        });
        for (const [at, word] of words.entries()) expect(word).toBe(at % 2 === 0 ? 'opened' : 'resolved');
      }
    }),
    { numRuns: 50 },
  );
});
