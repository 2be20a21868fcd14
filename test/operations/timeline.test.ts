import { expect, test } from 'vitest';
import { timelineOf } from '../../operations/timeline.ts';

test('moments are in order of time, to the microsecond and across the end of summer time', () => {
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
