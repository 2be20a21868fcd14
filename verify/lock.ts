import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * The lock is that of package.json, for every npm from the one of Node 20 on, which unlike later ones refuses a lock whose
 * optional peers don't fit; and for any registry: it names packages and digests and no addresses. The Node that runs all
 * is one of those packages, on each platform that has one.
 */
export async function verifyLock(project: string): Promise<string[]> {
  const problems = [
    ...(await npm(project, 'ci', '--dry-run')),
    ...(await npm(project, 'ls', '--all', '--package-lock-only')),
  ];
  return [
    ...problems,
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

/** What a lock leaves to whoever answers for the registry. */
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
