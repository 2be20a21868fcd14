import { randomInt } from 'node:crypto';
import { Command, CommanderError } from 'commander';
import type { TaskMeta } from 'vitest';
import { startVitest } from 'vitest/node';
import { createCollector } from './collector.ts';

interface Options {
  readonly seed?: string;
  readonly seeds: string;
  readonly times: string;
  readonly from?: string;
  readonly json: boolean;
}

/** The reports of passed tests, in the order in which the tests ended. */
export type Passed = readonly TaskMeta[];

/** A list of faults that a command runs. */
export interface FaultList {
  readonly command: string;
  readonly about: string;
  /** The names of the faults, for people, like "C1 to C23". */
  readonly names: string;
  readonly seedsByDefault: number;
  /** The meaning of the option `--from`, if the command has the option. */
  readonly from?: string;
  /** The path of the configuration of Vitest. */
  readonly config: string;
  /** Prepares what the tests need, or throws an error that says what is missing. */
  prepare?(): Promise<unknown>;
  /** Describes results for a terminal. */
  describe(passed: Passed): string;
}

/** Runs the named faults. The status is 0 if all passed, 1 if not, and 2 for a wrong command line. */
export async function runFaults(list: FaultList): Promise<void> {
  try {
    process.exitCode = (await run(list)) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof CommanderError)) console.error((error as Error).message);
    process.exitCode = error instanceof CommanderError ? (error.exitCode === 0 ? 0 : 2) : 1;
  }
}

async function run(list: FaultList): Promise<boolean> {
  const command = new Command(list.command)
    .description(list.about)
    .argument('[faults...]', `which of ${list.names}; all when none is named`)
    .option('--seed <n>', 'the first seed; drawn when not given (FAULTS_SEED)', process.env.FAULTS_SEED)
    .option(
      '--seeds <n>',
      'how many seeds the killing faults run with, one after the other',
      String(list.seedsByDefault),
    )
    .option('--times <n>', 'how many times as many blows as by default', '1')
    .option('--json', 'print the results as JSON, and the progress on standard error', false)
    .exitOverride();
  if (list.from !== undefined) command.option('--from <revision>', list.from);
  command.parse();
  const options = command.opts<Options>();
  const { seed = String(randomInt(1, 1_000_000)), seeds, times, json } = options;
  if (options.from !== undefined) process.env.FAULTS_FROM = options.from;
  Object.assign(process.env, { FAULTS_SEED: seed, FAULTS_SEEDS: seeds, FAULTS_TIMES: times });
  console.error(`${list.command}: FAULTS_SEED=${seed}, seeds: ${seeds}`);
  await list.prepare?.();
  const collector = createCollector();
  const vitest = await startVitest(
    'test',
    [],
    {
      config: list.config,
      watch: false,
      reporters: ['verbose', collector],
      ...(command.args.length === 0 ? {} : { testNamePattern: `^(${command.args.join('|')}) ` }),
    },
    {},
    json ? { stdout: process.stderr } : {},
  );
  await vitest.close();
  const { passed, failed } = collector;
  console.log(json ? JSON.stringify(passed, null, 2) : list.describe(passed));
  return !failed && passed.length > 0;
}
