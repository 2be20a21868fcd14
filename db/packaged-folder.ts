import { fileURLToPath } from 'node:url';

/** A folder of SQL, named as in the checkout; a build has it in the same place. */
export function packagedFolder(path: string): string {
  return fileURLToPath(new URL(`../${path}`, import.meta.url));
}
