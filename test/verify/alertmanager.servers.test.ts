import { expect, onTestFinished, test } from 'vitest';
import { startAlertmanager } from '../support/alertmanager.ts';
import { until } from '../support/poll.ts';

test('Alertmanager keeps back what another alarm explains', { timeout: 60_000 }, async () => {
  const manager = await startAlertmanager('http://127.0.0.1:1/alarms');
  onTestFinished(() => manager.stop());
  const post = async (...names: string[]) => {
    const body = JSON.stringify(
      names.map((name) => ({ labels: { alertname: `Metersync${name}`, severity: 'page' } })),
    );
    const headers = { 'content-type': 'application/json' };
    await fetch(`${manager.url}/api/v2/alerts`, { method: 'POST', headers, body });
  };
  await post('EventsStalled', 'HeartbeatStopped', 'Silent', 'WarehouseDown');
  const inhibited = await until('the two are kept back', async () => {
    const all = await manager.alerts();
    const names = all
      .filter(({ status }) => status.inhibitedBy.length > 0)
      .map(({ labels }) => labels.alertname)
      .toSorted();
    return names.length === 2 ? names : undefined;
  });
  expect(inhibited).toEqual(['MetersyncEventsStalled', 'MetersyncHeartbeatStopped']);
});
