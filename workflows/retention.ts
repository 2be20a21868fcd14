import { recurring } from './activity-options.ts';

/** Started by a schedule once an hour: the journal keeps what was signed for as long as the settings say. */
export async function dropPayloads(): Promise<void> {
  await recurring.dropPayloads({});
}
