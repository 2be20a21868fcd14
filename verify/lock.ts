import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The lock is that of package.json, and works with any registry: it names packages and digests and no addresses. */
export async function verifyLock(project: string): Promise<string[]> {
  const problems: string[] = [];
  try {
    await promisify(execFile)('npm', ['ci', '--dry-run', '--no-audit', '--no-fund'], { cwd: project });
  } catch (error) {
    problems.push(...((error as { stderr?: string }).stderr ?? String(error)).trim().split('\n'));
  }
  const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { resolved?: string }>;
  };
  const addressed = Object.entries(packages).filter(([, { resolved }]) => /^https?:/.test(resolved ?? ''));
  for (const [name] of addressed) {
    problems.push(`${name} is locked to one registry's address: .npmrc should keep it out (npm install)`);
  }
  return problems;
}
