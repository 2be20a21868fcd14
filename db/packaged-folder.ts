import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A folder of SQL: beside this file in a checkout, at the package's top when built into dist. */
export function packagedFolder(name: string): string {
  const here = fileURLToPath(new URL(`./${name}`, import.meta.url));
  return existsSync(here) ? here : fileURLToPath(new URL(`../../db/${name}`, import.meta.url));
}
