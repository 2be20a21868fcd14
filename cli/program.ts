import { Argument, Command, Option } from 'commander';
import { readVersion } from '../app/process/version.ts';
import { auditResources } from '../contract/endpoints.ts';
import { parkingCodes } from '../contract/failures.ts';
import { exportFormats, tracedKinds } from '../contract/names.ts';
import { attemptPolicy } from '../contract/retry-policy.ts';
import { formatSeconds } from '../contract/times.ts';
import { atLeastOne, count, percentSign, share, timeOrAgo, uuid, wait } from './arguments.ts';
import { add, pointToHelp } from './help.ts';
import {
  addAlerts,
  addChecks,
  addDeletes,
  addEvents,
  addSchedule,
  addUpgrade,
  addViews,
  addWebhooks,
} from './subcommands.ts';

/**
 * Builds the command; each subcommand's code is loaded when it is called.
 */
export function buildProgram(): Command {
  const program = new Command('metersync')
    .description('Keeps your own Postgres equal to a Utility Data Service, and proves it.')
    .version(readVersion());

  program.commandsGroup('Run:');
  addRun(program);
  program.commandsGroup('Look:');
  addLook(program);
  program.commandsGroup('Load and repair:');
  addLoad(program);
  program.commandsGroup('Analyse:');
  addAnalyse(program);
  program.commandsGroup('Try:');
  addTry(program);
  program.commandsGroup('Rarely:');
  addUpgrade(program);
  addViews(program);
  addHealthcheck(program);
  pointToHelp(program);
  return program;
}

function addRun(program: Command): void {
  add(
    program,
    'start',
    'Run receiver, worker and console in one process, with embedded stand-ins for anything not configured',
    'metersync start --live 10',
  )
    .option('--live <n>', 'changes a minute by the sandbox, if it stands in for the service', count)
    .option('--temporal-ui', "serve the embedded Temporal's web page; it asks nobody who they are")
    .action(async (options) =>
      (await import('./commands/start.ts')).start(['worker', 'receiver', 'console'], options),
    );
  add(program, 'receiver', 'Run the receiver of webhooks alone', 'metersync receiver').action(async () =>
    (await import('./commands/start.ts')).start(['receiver']),
  );
  add(program, 'worker', 'Run the worker alone', 'metersync worker').action(async () =>
    (await import('./commands/start.ts')).start(['worker']),
  );
  add(
    program,
    'console',
    'Run the console alone: pages that show the state and act on it',
    'metersync console',
  ).action(async () => (await import('./commands/console.ts')).consoleCommand());
  add(program, 'migrate', "Bring the warehouse's schema up to date", 'metersync migrate --plan')
    .option('--plan', 'only show the statements of the migrations that would run')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/migrate.ts')).migrateCommand(options));
  addSchedule(program);
  addWebhooks(program);
}

function addLook(program: Command): void {
  add(
    program,
    'status',
    'Show a verdict, each problem and its remedy; what was applied, what waits and why',
    'metersync status --exit-code',
  )
    .option(
      '--exit-code',
      'for monitors: 0 in sync or catching up, 3 needs you, 4 broken, 5 unknown; 1 and 2 are errors of the command',
    )
    .option('--exact', 'count every row, also where there are more than 10,000')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/status.ts')).status(options));
  add(
    program,
    'doctor',
    'Check what a sync needs: key, version, webhooks, receiver, clocks, warehouse, Temporal',
    'metersync doctor',
  )
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/doctor.ts')).doctor(options));
  addAlerts(program);
  addEvents(program);
  add(
    program,
    'trace',
    'Show what a record is and what happened to it: events, workflows, runs, changes and times',
    'metersync trace document 5bd6ce54-0d8e-4c40-9b4b-1f1e8ab4f0aa',
  )
    .addArgument(new Argument('<kind>', 'kind of record').choices(tracedKinds))
    .argument(
      '<id>',
      'its id; or the number of a bill, its account or a meter, or a part of a provider’s name',
    )
    .option('--all', 'also runs that read it and changed nothing')
    .option('--json', 'as JSON')
    .action(async (kind, id, options) => (await import('./commands/trace.ts')).trace(kind, id, options));
}

/** Adds the command that containers run; `--help` does not list it. */
function addHealthcheck(program: Command): void {
  program
    .command('healthcheck', { hidden: true })
    .description('Ask the private port whether the process lives, for containers: status 0 or 1')
    .addHelpText('after', '\nExample:\n  metersync healthcheck --ready')
    .option('--ready', 'ask whether it can do its work, too')
    .action(async (options) => (await import('./commands/healthcheck.ts')).healthcheck(options));
}

function addLoad(program: Command): void {
  add(
    program,
    'backfill',
    'Read everything that the service has, of all companies or some',
    'metersync backfill all --follow',
  )
    .argument('[scope]', 'all')
    .option('--company <id>', 'one company, by its id', uuid)
    .option('--external-id <id>', 'one company, by the id that you gave it')
    .option(
      '--companies-file <file>',
      'any number of companies, by their ids, one a line; - is standard input',
    )
    .option('--follow', 'show progress and wait for the end: 0 complete, 1 partial, suspect or failed')
    .option('--run <id>', 'follow a run that was started before', uuid)
    .action(async (scope, options) => (await import('./commands/backfill.ts')).backfill(scope, options));
  add(
    program,
    'audit',
    'Compare the warehouse with the service and print each difference; change nothing without --repair',
    'metersync audit --since 24h',
  )
    .option('--company <id>', 'one company, by its id', uuid)
    .addOption(new Option('--resource <names...>', 'these resources alone').choices(auditResources))
    .option('--since <time>', 'what changed since this time, or since so long ago: 90m, 24h, 7d', timeOrAgo)
    .addOption(
      new Option('--sample <percent>', 'a random part of the companies, for example 1%, and what it proves')
        .argParser(percentSign)
        .conflicts(['company', 'repair']),
    )
    .option('--seed <text>', 'with --sample: take the companies that this text took before')
    .addOption(
      new Option('--settle <time>', 'how long a change may take: what differs is read again after it')
        .argParser(wait)
        .default(attemptPolicy.settleMs, formatSeconds(attemptPolicy.settleMs / 1_000)),
    )
    .option('--repair', 'write the state of the service where it differs, and compare again')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/audit.ts')).auditCommand(options));
  add(
    program,
    'resume',
    'Retry parked work at once, and read again what backfills could not',
    'metersync resume --code SERVICE_KEY_REFUSED',
  )
    .addOption(
      new Option('--code <code>', 'only what this failure parked').choices([
        ...parkingCodes,
        'UNKNOWN_TO_SERVICE',
      ]),
    )
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/resume.ts')).resume(options));
  addDeletes(program);
}

function addAnalyse(program: Command): void {
  add(
    program,
    'report',
    'Report cost, usage, load, coverage and corrections, as figures or as a page with charts',
    'metersync report --html report.html',
  )
    .option('--company <id>', 'of one company, by its id', uuid)
    .option('--external-id <id>', 'of one company, by the id that you gave it')
    .option('--html <file>', 'write one page that needs no network and no script')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/report.ts')).report(options));
  add(
    program,
    'export',
    'Write a table or view of the warehouse as a file: exact, streamed, times in UTC',
    'metersync export bills --out bills.parquet',
  )
    .argument('<view>', 'for example bills, or with its schema: analytics.bills, utility.documents')
    .addOption(
      new Option(
        '--format <format>',
        'of the file; without it that of its ending (.csv or .parquet), and CSV without an ending',
      ).choices(exportFormats),
    )
    .option('--out <file>', 'file to write; - is standard output, the default. Its ending decides the format')
    .option(
      '--spreadsheet',
      'CSV for Excel and the like: marked as UTF-8, an apostrophe before what would run as a formula',
    )
    .option('--company <id>', 'the rows of one company, by its id', uuid)
    .option('--external-id <id>', 'the rows of one company, by the id that you gave it')
    .action(async (view, options) => (await import('./commands/export.ts')).exportCommand(view, options));
  add(
    program,
    'sites',
    'List sites, or set their time zones, floor areas and emission regions',
    'metersync sites --file sites.csv',
  )
    .option('--file <csv>', 'set what it says, as metersync export analytics.sites --out sites.csv wrote it')
    .option('--accept-proposals', 'set the time zone that the address proposes where none is set')
    .option('--company <id>', 'of one company, by its id', uuid)
    .option('--external-id <id>', 'of one company, by the id that you gave it')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/sites.ts')).sites(options));
  addChecks(program);
}

function addTry(program: Command): void {
  add(
    program,
    'demo',
    'See it all work: a service, a backfill, live changes, an audit',
    'metersync demo --keep',
  )
    .option('--companies <n>', 'companies to generate', atLeastOne, 10)
    .option('--documents <n>', 'documents for each company', count, 150)
    .option('--interval-days <n>', 'days of interval readings', count, 7)
    .option('--events <n>', 'live changes', count, 2_000)
    .option('--keep', 'keep everything running at the end', false)
    .option('--temporal-ui', "with --keep: serve Temporal's web page, which asks nobody who they are", false)
    .addHelpText(
      'after',
      '\nIt starts its own service, Postgres and Temporal, whatever SERVICE_URL, DATABASE_URL and TEMPORAL_ADDRESS say.',
    )
    .action(async (options) => (await import('./commands/demo.ts')).demo(options));
  add(
    program,
    'sandbox',
    'Run the service itself with generated data, to develop and test against',
    'metersync sandbox --companies 3 --live 10',
  )
    .option('--companies <n>', 'companies to generate', count, 10)
    .option('--documents <n>', 'documents for each company', count, 100)
    .option('--interval-days <n>', 'days of interval readings', count, 14)
    .option('--seed <n>', 'decides every generated id, value and time, but not the API key', count)
    .option('--until <day>', 'last day of the generated history, YYYY-MM-DD', 'today')
    .option('--live <n>', 'plausible changes a minute', count)
    .option(
      '--irregular <share>',
      'share of irregular bills (superseded, sent twice, overlapping, …), 0 to 1',
      share,
    )
    .option('--host <address>', 'address to listen on; loopback by default')
    .option('--port <n>', 'port to listen on; a free one by default', count)
    .option(
      '--deliver-to <networks>',
      'also send webhooks to these networks, such as 172.16.0.0/12; by default to this machine and public addresses',
    )
    .addHelpText(
      'after',
      '\nSANDBOX_DATABASE_URL names its own Postgres database; without it an embedded one starts.',
    )
    .action(async (options) => (await import('./commands/sandbox.ts')).sandboxCommand(options));
}
