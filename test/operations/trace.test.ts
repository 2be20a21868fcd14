import { expect, test } from 'vitest';
import { timelineOf } from '../../operations/trace.ts';

test('a timeline shows the deletion of a row as held back until somebody decides, and leaves out audits', () => {
  const none = { record: null, events: [], changes: [], applications: [], runs: [], rejected: [] };
  const deleted = {
    runId: 'r',
    reason: 'absent',
    state: 'rejected',
    absentSince: '2026-11-22 01:00:58+00',
  } as const;
  const audit = { id: 1, action: 'audit', about: ['a'], at: '2026-11-22 03:00:00+00', actor: 'ada' } as const;
  const moments = timelineOf({
    id: 'a',
    ...none,
    deletes: [{ ...deleted, notedAt: '2026-11-22 01:01:00+00', decidedAt: '2026-11-22 01:02:03+00' }],
    operations: [
      {
        ...audit,
        role: 'operator',
        source: 'command',
        target: {},
        outcome: 'done',
        finishedAt: null,
        detail: null,
      },
    ],
  });
  expect(moments.map(({ what }) => what)).toEqual([
    'run r: not listed since 2026-11-22 01:00:58Z, deletion held back',
    'run r: its deletion was rejected',
  ]);
});

test('moments are in chronological order, to the microsecond and across the end of summer time', () => {
  const times = [
    '2026-01-01 00:00:00+00',
    '2026-01-01 00:00:00.000001+00',
    '2026-01-01 00:00:00.5+00',
    '2026-01-01 00:00:01+00',
    '2026-11-01 01:30:00-04',
    '2026-11-01 01:10:00-05',
  ];
  const moments = timelineOf({
    id: 'a',
    record: null,
    events: [],
    changes: [],
    runs: [],
    rejected: times.toReversed().map((rejectedAt) => ({ resource: 'documents', error: '', rejectedAt })),
    deletes: [],
    operations: [],
  });
  expect(moments.map(({ at }) => at)).toEqual(times);
});
