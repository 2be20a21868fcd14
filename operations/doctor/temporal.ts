import type { Client } from '@temporalio/client';
import { askAgain } from '../../app/ask-again.ts';
import type { TemporalPlace } from '../../app/temporal/place.ts';
import { withClient } from '../../app/temporal/temporal.ts';
import { type Check, check, ok, type Verdict, warn } from './check.ts';

/** Checks that Temporal answers, and says whether its payloads are encrypted. */
export async function checkTemporal(place: TemporalPlace | undefined): Promise<Check[]> {
  // The verdict already reports that there is no Temporal.
  if (place === undefined) return [];
  const todo = 'Check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE, and that Temporal runs.';
  const temporal = await check('Temporal', todo, () =>
    askAgain((withinMs) => withClient(place, answersOf, withinMs)).then(({ answer }) => answer),
  );
  return [temporal, { name: 'payloads', ...judgePayloads(place) }];
}

const answersOf = async (client: Client): Promise<Verdict> =>
  ok(`answers; namespace ${client.options.namespace}`);

function judgePayloads({ codecKeys = [], plaintext }: TemporalPlace): Verdict {
  const [first] = codecKeys;
  if (first === undefined) {
    return ok('not encrypted: anyone who reaches Temporal can read and forge events (TEMPORAL_CODEC_KEYS)');
  }
  const under = `encrypted under the key "${first.id}"`;
  if (plaintext !== 'accepted') return ok(`${under}; other payloads are refused`);
  return warn(
    `${under}; unencrypted payloads are accepted, too, from anyone who reaches Temporal`,
    'Remove TEMPORAL_PLAINTEXT when no workflow is running that began before the keys were set.',
  );
}
