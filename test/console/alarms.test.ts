import { expect, test } from 'vitest';
import { openAlarms } from '../../console/alarms.ts';

test('an open alarm shows the commands of its runbook as code', () => {
  const at = '2026-11-26T06:00:00Z';
  const alarm = {
    id: '1',
    name: 'EventsDead',
    key: '',
    detail: '`1` event',
    severity: 'ticket',
    pendingSince: at,
    openedAt: at,
    notifiedAt: null,
    error: null,
    closedAt: null,
  } as const;
  const card = String(openAlarms({ alerts: [alarm], lookedAt: at }, Date.parse(at)));
  expect(card).toContain('<code>metersync events ignore</code>');
  // What others wrote stays as it is.
  expect(card.match(/`/g)).toHaveLength(2);
});
