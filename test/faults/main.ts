import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command, CommanderError } from 'commander';
import { startVitest } from 'vitest/node';
import { createCollector } from './collector.ts';
import { describeReports, pageWith } from './page.ts';

const page = resolve(import.meta.dirname, '../../docs/reliability.md');

interface Options {
  readonly seed?: string;
  readonly seeds: string;
  readonly times: string;
  readonly write: boolean;
}

/**
 * `npm run test:faults`: exits with 0 if every requested fault passed, 1 if not, 2 for a wrong command line.
 */
const command = new Command('test:faults')
  .description(
    'Does faults to real processes under load, and holds both sides against each other afterwards.',
  )
  .argument('[faults...]', 'which of C1 to C19; all when none is named')
  .option('--seed <n>', 'the first seed; drawn when not given (FAULTS_SEED)', process.env.FAULTS_SEED)
  .option('--seeds <n>', 'how many seeds the killing faults run with, one after the other', '5')
  .option('--times <n>', 'how many times as many blows as by default', '1')
  .option('--write', 'put what passed into docs/reliability.md, with the commit', false)
  .exitOverride();

async function main(): Promise<boolean> {
  command.parse();
  const { seed = String(randomInt(1, 1_000_000)), seeds, times, write } = command.opts<Options>();
  const commit = write ? cleanCommit() : undefined;
  Object.assign(process.env, { FAULTS_SEED: seed, FAULTS_SEEDS: seeds, FAULTS_TIMES: times });
  console.log(`faults: FAULTS_SEED=${seed}, ${seeds} seeds`);
  const before = readFileSync(page, 'utf8');
  // A run takes an hour: its results so far are on the page even if it is interrupted.
  const collector = createCollector((passed) => {
    if (commit !== undefined) writeFileSync(page, pageWith(before, passed, commit));
  });
  const vitest = await startVitest('test', [], {
    config: resolve(import.meta.dirname, 'vitest.config.ts'),
    watch: false,
    reporters: ['verbose', collector],
    ...(command.args.length === 0 ? {} : { testNamePattern: `^(${command.args.join('|')}) ` }),
  });
  await vitest.close();
  console.log(describeReports(collector.reports));
  return !collector.failed && collector.reports.length > 0;
}

/** The page names the tested commit, so no file may differ from it. */
function cleanCommit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();
  const changed = git('status', '--porcelain', '--untracked-files=no', '--', '.', ':!docs/reliability.md');
  if (changed !== '') throw new Error(`--write names the commit that ran: commit first\n${changed}`);
  return git('rev-parse', '--short=10', 'HEAD');
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  if (!(error instanceof CommanderError)) console.error(error);
  process.exitCode = error instanceof CommanderError ? (error.exitCode === 0 ? 0 : 2) : 1;
}
