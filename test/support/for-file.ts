import { afterAll } from 'vitest';

type Made =
  | { drop(): Promise<unknown> }
  | { stop(): Promise<unknown> }
  | { remove(): Promise<unknown> }
  | { close(): Promise<unknown> };

/** Waits for a resource, and ends it after the tests of the file, or of the `describe` around the call. */
export async function forFile<T extends Made>(making: T | Promise<T>): Promise<T> {
  const made = await making;
  afterAll(async () => {
    if ('drop' in made) await made.drop();
    else if ('stop' in made) await made.stop();
    else if ('remove' in made) await made.remove();
    else await made.close();
  });
  return made;
}
