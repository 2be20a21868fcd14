import { fileURLToPath } from 'node:url';

/** Returns a folder of SQL by its path in the checkout; a build has it at the same path. */
export function packagedFolder(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}
