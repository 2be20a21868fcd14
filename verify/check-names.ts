import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const source = 'analytics/checks/ops.data_issue_checks.sql';

/** Makes contract/check-names.ts: the names of the checks, for settings and commands. */
export function checkNamesFile(project: string): string {
  const sql = readFileSync(join(project, source), 'utf8');
  // The first value of each row; the second is the kind of data that the check is about.
  const names = [...sql.matchAll(/\(\s*'(\w+)',\s*'(?:bills|connections|intervals|fields)',/g)].map(
    ([, name]) => `  '${name}',\n`,
  );
  return `// Generated from ${source}: change it there, then run "npm run verify -- --write".
export const checkNames = [
${names.join('')}] as const;
export type CheckName = (typeof checkNames)[number];
`;
}
