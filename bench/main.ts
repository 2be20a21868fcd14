import { writeFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { type Measure, runMeasure } from './measure.ts';
import { measures } from './measures/all.ts';
import { describeReport, keepMeasured, machine, type Report } from './report.ts';
import { type SizeName, sizeOf } from './size.ts';
import { startBenchStack } from './stack.ts';

interface Options {
  /** A file, or true for standard output. */
  readonly json?: string | true;
  readonly keep: boolean;
  readonly quick: boolean;
}

const names = measures.map(
  ({ name, about, onlyByName }) => `  ${name.padEnd(11)}${about}${onlyByName ? ' (only by name)' : ''}`,
);

function command(): Command {
  return new Command('bench')
    .description(
      'Measures metersync on this machine: ratios to limits and to simpler ways, taken in the same run.',
    )
    .argument('[measures...]', 'which to take; when none is named, all but those only by name')
    .option('--json [file]', 'write {measure: {figure: number}} to a file; without one, print it instead')
    .option('--quick', 'about a fifth of the work: for a look, not for the goals', false)
    .option('--keep', 'keep the figures in bench/measured.json, which docs/performance.md shows', false)
    .addHelpText('after', `\nMeasures:\n${names.join('\n')}`)
    .exitOverride();
}

const isWanted = ({ name, onlyByName = false }: Measure, wanted: readonly string[]): boolean =>
  wanted.length === 0 ? !onlyByName : wanted.includes(name);

function sizeNameOf(wanted: readonly string[], { quick }: Options): SizeName {
  if (quick) return 'quick';
  return wanted.length === 0 ? 'whole' : 'full';
}

/** Takes the measures in turn on one stack of servers. Returns the figures of those that succeeded. */
async function takeMeasures(
  wanted: readonly string[],
  options: Options,
): Promise<{ report: Report; failed: boolean }> {
  const size = sizeOf(sizeNameOf(wanted, options));
  const report: Report = {};
  let failed = false;
  const stack = await startBenchStack();
  const interrupted = () => void stack.stop().finally(() => process.exit(130));
  process.once('SIGINT', interrupted);
  try {
    for (const measure of measures) {
      if (!isWanted(measure, wanted)) continue;
      const began = performance.now();
      const say = (line: string) => console.error(`${measure.name}: ${line}`);
      try {
        report[measure.name] = await runMeasure(measure, { stack, size, say });
        say(`took ${((performance.now() - began) / 1000).toFixed(0)} s`);
      } catch (error) {
        failed = true;
        say(`FAILED: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      }
    }
  } finally {
    process.off('SIGINT', interrupted);
    await stack.stop();
  }
  return { report, failed };
}

async function main(args: readonly string[]): Promise<number> {
  const program = command().parse(args, { from: 'user' });
  const wanted = program.args;
  const unknown = wanted.filter((name) => !measures.some((measure) => measure.name === name));
  if (unknown.length > 0) {
    console.error(`There is no measure ${unknown.join(', ')}. Measures:\n${names.join('\n')}`);
    return 2;
  }
  const options = program.opts<Options>();
  const began = performance.now();
  const { report, failed } = await takeMeasures(wanted, options);
  console.error(`took ${((performance.now() - began) / 1000).toFixed(0)} s in all`);
  const json = `${JSON.stringify(report, null, 2)}\n`;
  if (options.json === true) process.stdout.write(json);
  else {
    if (options.json !== undefined) writeFileSync(options.json, json);
    console.log(describeReport(report, sizeNameOf(wanted, options)));
    console.log(
      `${machine()}${options.quick ? '; quick: smaller than the size for which the goals hold' : ''}`,
    );
  }
  if (options.keep) keepMeasured(report, sizeNameOf(wanted, options));
  return failed ? 1 : 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode === 0 ? 0 : 2;
}
