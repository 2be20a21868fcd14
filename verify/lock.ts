import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * Checks that the lock file matches package.json for every npm since the npm of Node 20. That npm refuses a
 * lock file with unsuitable optional peers, which later versions accept. The lock file must work with any
 * registry, so it has packages and digests, but no addresses. Node itself is one of the packages, and is
 * locked for each platform.
 */
export async function verifyLock(project: string): Promise<string[]> {
  return [
    ...(await npm(project, 'ci', '--dry-run')),
    ...(await npm(project, 'ls', '--all', '--package-lock-only')),
    ...problemsOfLock(JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8'))),
  ];
}

export interface Lock {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly resolved?: string;
        readonly integrity?: string;
        readonly hasInstallScript?: boolean;
        readonly bin?: Readonly<Record<string, string>>;
        readonly optionalDependencies?: Readonly<Record<string, string>>;
      }
    >
  >;
}

/** Lists what a lock file leaves open, so that the registry would decide it. */
export function problemsOfLock({ packages }: Lock): string[] {
  const problems: string[] = [];
  const addressed = Object.entries(packages).filter(([, { resolved }]) => /^https?:/.test(resolved ?? ''));
  for (const [name] of addressed) {
    problems.push(`${name} is locked to one registry's address: .npmrc should keep it out (npm install)`);
  }
  for (const [name, { integrity, hasInstallScript, bin }] of Object.entries(packages)) {
    if (name !== '' && integrity === undefined) problems.push(`${name} is locked without its digest`);
    if (bin?.node !== undefined && hasInstallScript)
      problems.push(`${name} brings Node by an install script, which no digest of the lock covers`);
  }
  for (const name of Object.keys(packages['']?.optionalDependencies ?? {})) {
    if (packages[`node_modules/${name}`] === undefined)
      problems.push(`${name} is not locked: npm install --package-lock-only`);
  }
  return problems;
}

/** Runs npm; returns its output if it fails. */
async function npm(cwd: string, ...args: string[]): Promise<string[]> {
  try {
    await promisify(execFile)('npm', args, { cwd, maxBuffer: 64 * 1024 * 1024 });
    return [];
  } catch (error) {
    const output = (error as { stderr?: string }).stderr ?? String(error);
    return [`npm ${args.join(' ')}`, ...output.trim().split('\n')];
  }
}
