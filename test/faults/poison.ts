import { randomUUID } from 'node:crypto';
import type { Random } from '../../bench/world.ts';
import { deliverBody } from '../support/deliver.ts';
import { documentEvent, intervalsEvent } from '../support/events.ts';
import type { Rig } from './rig.ts';

const created = (updated: string, more: object = {}) => documentEvent('created', randomUUID(), updated, more);
const sound = '2026-01-01T00:00:00';
const replaced = (body: object, what: string, by: string) => JSON.stringify(body).replace(what, by);

/** Bodies of verified events that cannot be applied. */
const poisons: readonly (() => string)[] = [
  () => '',
  () => 'hello',
  () => '42',
  () => '[1]',
  () => '['.repeat(100_000),
  () => JSON.stringify(intervalsEvent('m\u0000', '2026-01-01', '2026-01-02', 1)),
  () => replaced(intervalsEvent('METER', '2026-01-01', '2026-01-02', 1), 'METER', '\\ud800'),
  () => replaced(created(sound, { n: 1 }), '"n":1', `"n":1e${'9'.repeat(6)}`),
  () => JSON.stringify(intervalsEvent('m-9', '2026-02-30T00:00:00', '2026-03-01T00:00:00', 1)),
  () => replaced(created(sound), '"id"', '"no"'),
  () => JSON.stringify(intervalsEvent('m-9', '2026-01-02', '2026-01-01', 1)),
];

/** Delivers a poison event to the receiver of the rig, and returns its id once it is acknowledged. */
export async function deliverPoison(rig: Rig, random: Random): Promise<string> {
  const { id, status } = await deliverBody(rig, random.pick(poisons)(), `msg_${random.uuid()}`);
  if (status !== 204) throw new Error(`an event that cannot be applied was answered ${status}`);
  return id;
}
