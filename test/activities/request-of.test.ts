import { expect, test } from 'vitest';
import { requestsOf } from '../../activities/notify/request-of.ts';
import { noticeOf } from '../../contract/notification.ts';

test('PagerDuty gets no half of a character, wherever a long summary is cut', () => {
  const at = '2026-01-01T00:00:00.000Z';
  const summaries = ['', 'a'].flatMap((before) => {
    const alarm = { id: 'a-1', name: 'Silent' as const, key: '', detail: `${before}${'😀'.repeat(2_000)}` };
    const message = { id: 'm-1', at, alerts: [noticeOf('opened', alarm, { since: at, until: null })] };
    const target = { kind: 'pagerduty' as const, name: 'p', url: 'https://p.example', key: 'k', secrets: [] };
    const requests = requestsOf(target, message, { sign: undefined, now: () => new Date(at) });
    return requests.map(({ body }) => JSON.parse(body).payload.summary as string);
  });
  expect(summaries.map((summary) => [summary.length, summary.isWellFormed()])).toEqual([
    [1_024, true],
    [1_024, true],
  ]);
});
