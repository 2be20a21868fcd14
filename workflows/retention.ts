import { recurring } from './activity-options.ts';

/** Drops old payloads from the journal, as the settings say. A schedule starts it once an hour. */
export async function dropPayloads(): Promise<void> {
  await recurring.dropPayloads({});
}
