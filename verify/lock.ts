import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * The lock is that of package.json, for every npm from the one of Node 20 on, which unlike later ones refuses a lock whose
 * optional peers don't fit; and for any registry: it names packages and digests and no addresses.
 */
export async function verifyLock(project: string): Promise<string[]> {
  const problems = [
    ...(await npm(project, 'ci', '--dry-run')),
    ...(await npm(project, 'ls', '--all', '--package-lock-only')),
  ];
  const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { resolved?: string }>;
  };
  const addressed = Object.entries(packages).filter(([, { resolved }]) => /^https?:/.test(resolved ?? ''));
  for (const [name] of addressed) {
    problems.push(`${name} is locked to one registry's address: .npmrc should keep it out (npm install)`);
  }
  return problems;
}

/** What npm says when it is not content. */
async function npm(cwd: string, ...args: string[]): Promise<string[]> {
  try {
    await promisify(execFile)('npm', args, { cwd, maxBuffer: 64 * 1024 * 1024 });
    return [];
  } catch (error) {
    const said = (error as { stderr?: string }).stderr ?? String(error);
    return [`npm ${args.join(' ')}`, ...said.trim().split('\n')];
  }
}
