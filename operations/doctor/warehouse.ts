import { eventKinds, eventTypes, kindOfType } from '../../contract/event.ts';
import { describeFit, fitOf, type SchemaVersions } from '../../contract/schema-versions.ts';
import { counted } from '../../contract/words.ts';
import type { Executor } from '../../db/connection/connect.ts';
import { kindsHeld, typesAmong, typesSeen } from '../../db/read/event-types.ts';
import { readServer } from '../../db/read/session.ts';
import { fail, notChecked, ok, type Verdict, warn } from './check.ts';

/** Reads the server's version, and by how many milliseconds its clock is ahead of this machine's. */
export async function askWarehouse(
  db: Executor,
  now: () => number,
): Promise<{ readonly version: string; readonly aheadMs: number }> {
  const began = now();
  const { version, nowMs } = await readServer(db);
  return { version, aheadMs: nowMs - (began + now()) / 2 };
}

export function judgeSchema(versions: SchemaVersions): Verdict {
  const fit = fitOf(versions);
  if (fit === 'same') return ok('has the version that this metersync needs');
  const { saw, todo } = describeFit(versions);
  return fit === 'ahead' ? warn(saw, todo) : fail(saw, todo);
}

/** Among fewer events than this, there may be none of a kind by chance. */
const typesJudgedFrom = 100;

/** Judges which types of events arrive: each kind of which the warehouse has rows should have events. */
export async function judgeEventTypes(db: Executor): Promise<Verdict> {
  const seen = await typesSeen(db);
  if (seen.size === 0)
    return notChecked(
      'no event has arrived yet, so it is not known whether the service signs with your secret',
    );
  const never = eventTypes.filter((type) => !seen.has(type));
  const events = [...seen.values()].reduce((sum, some) => sum + some, 0);
  const among =
    events < typesAmong
      ? `among the ${counted(events, 'event')} so far`
      : `among the newest ${typesAmong.toLocaleString('en')} events`;
  const saw = never.length === 0 ? 'events of every type arrive' : `no ${never.join(', ')} ${among}`;
  const held = await kindsHeld(db);
  const silent = held.filter((kind) => ![...seen.keys()].some((type) => kindOfType(type) === kind));
  if (silent.length === 0 || events < typesJudgedFrom) return ok(saw);
  const kinds = silent.map((kind) => eventKinds[kind].plural).join(' and ');
  return warn(
    `${saw}, and none about ${kinds}, although the warehouse has such records`,
    'Check in the portal (metersync webhooks portal) whether the endpoint is subscribed to all event types.',
  );
}
