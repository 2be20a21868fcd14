import { expect, onTestFinished, test } from 'vitest';
import { startAlertmanager } from '../support/alertmanager.ts';
import { until } from '../support/poll.ts';

test('Alertmanager suppresses alarms that another alarm explains', { timeout: 60_000 }, async () => {
  const manager = await startAlertmanager('http://127.0.0.1:1/alarms');
  onTestFinished(() => manager.stop());
  const post = async (...all: Record<string, string>[]) => {
    const body = JSON.stringify(all.map((labels) => ({ labels: { severity: 'page', ...labels } })));
    const headers = { 'content-type': 'application/json' };
    await fetch(`${manager.url}/api/v2/alerts`, { method: 'POST', headers, body });
  };
  const ofWatch = (alert: string) => ({ alertname: 'MetersyncAlarm', alert });
  await post(ofWatch('EventsStalled'), ofWatch('Silent'), ofWatch('KeyRefused'));
  await post({ alertname: 'MetersyncHeartbeatStopped' }, { alertname: 'MetersyncWarehouseDown' });
  const inhibited = await until('the two are kept back', async () => {
    const all = await manager.alerts();
    const names = all
      .filter(({ status }) => status.inhibitedBy.length > 0)
      .map(({ labels }) => labels.alert ?? labels.alertname)
      .toSorted();
    return names.length === 2 ? names : undefined;
  });
  expect(inhibited).toEqual(['EventsStalled', 'MetersyncHeartbeatStopped']);
});
