import { Argument, Command, Option } from 'commander';
import { readVersion } from '../app/process/version.ts';
import { auditResources } from '../contract/endpoints.ts';
import { parkingCodes } from '../contract/failures.ts';
import { tracedKinds } from '../contract/names.ts';
import { attemptPolicy } from '../contract/retry-policy.ts';
import { formatSeconds } from '../contract/times.ts';
import { add, atLeastOne, count, pointToHelp, share, timeOrAgo, uuid, wait } from './command-line.ts';
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
    .option(
      '--live <n>',
      'number of changes per minute that the sandbox makes; only without SERVICE_URL',
      count,
    )
    .option('--temporal-ui', 'serve the web page of the embedded Temporal, which has no login')
    .action(async (options) =>
      (await import('./commands/start.ts')).start(['worker', 'receiver', 'console'], options),
    );
  add(program, 'receiver', 'Run only the receiver of webhooks', 'metersync receiver').action(async () =>
    (await import('./commands/start.ts')).start(['receiver']),
  );
  add(program, 'worker', 'Run only the worker', 'metersync worker').action(async () =>
    (await import('./commands/start.ts')).start(['worker']),
  );
  add(
    program,
    'console',
    'Run only the console: web pages that show the state and offer actions',
    'metersync console',
  ).action(async () => (await import('./commands/console.ts')).consoleCommand());
  add(program, 'migrate', "Bring the warehouse's schema up to date", 'metersync migrate --plan')
    .option('--plan', 'only show the statements of the migrations that would run')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/schema.ts')).migrateCommand(options));
  addSchedule(program);
  addWebhooks(program);
}

function addLook(program: Command): void {
  add(
    program,
    'status',
    'Show a verdict, each problem and what to do; what was applied, what is waiting and why',
    'metersync status --exit-code',
  )
    .option(
      '--exit-code',
      'for monitors: 0 in sync or catching up, 3 needs you, 4 broken, 5 unknown; 1 and 2 are errors of the command',
    )
    .option('--exact', 'count the rows of every table, even if there are more than 10,000')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/health.ts')).status(options));
  add(
    program,
    'doctor',
    'Check everything that a sync needs: key, version, webhooks, receiver, clocks, warehouse, Temporal',
    'metersync doctor',
  )
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/health.ts')).doctor(options));
  addAlerts(program);
  addEvents(program);
  add(
    program,
    'trace',
    'Show a record and its history: events, workflows, runs, changes and times',
    'metersync trace document 5bd6ce54-0d8e-4c40-9b4b-1f1e8ab4f0aa',
  )
    .addArgument(new Argument('<kind>', 'kind of record').choices(tracedKinds))
    .argument(
      '<id>',
      'its id; or the number of a bill, an account or a meter; or a part of the name of a provider',
    )
    .option('--all', 'also show runs that read it and changed nothing')
    .option('--json', 'as JSON')
    .action(async (kind, id, options) => (await import('./commands/events.ts')).trace(kind, id, options));
}

/** Adds the command that containers run; `--help` does not list it. */
function addHealthcheck(program: Command): void {
  program
    .command('healthcheck', { hidden: true })
    .description('Ask the private port whether the process is alive, for containers: status 0 or 1')
    .addHelpText('after', '\nExample:\n  metersync healthcheck --ready')
    .option('--ready', 'also ask whether it can do its work')
    .action(async (options) => (await import('./commands/healthcheck.ts')).healthcheck(options));
}

function addLoad(program: Command): void {
  add(
    program,
    'backfill',
    'Read everything that the service has, for all companies or one',
    'metersync backfill all --follow',
  )
    .argument('[scope]', 'all')
    .option('--company <id>', 'one company, by its id', uuid)
    .option('--external-id <id>', 'one company, by the id that you gave it')
    .option('--follow', 'show progress and wait for the end: 0 complete, 1 partial, suspect or failed')
    .option('--run <id>', 'follow a run that was started before', uuid)
    .action(async (scope, options) => (await import('./commands/backfill.ts')).backfill(scope, options));
  add(
    program,
    'reconcile',
    'Read what the service updated recently, now instead of at the next scheduled time',
    'metersync reconcile --follow',
  )
    .option('--follow', 'show progress and wait for the end: 0 complete, 1 partial, suspect or failed')
    .action(async (options) => (await import('./commands/backfill.ts')).reconcile(options));
  add(
    program,
    'audit',
    'Compare the warehouse with the service and print each difference; change nothing without --repair',
    'metersync audit --since 24h',
  )
    .option('--company <id>', 'one company, by its id', uuid)
    .addOption(new Option('--resource <names...>', 'only these resources').choices(auditResources))
    .option(
      '--since <time>',
      'only what changed since this time, or within the last 90m, 24h, 7d, …',
      timeOrAgo,
    )
    .addOption(
      new Option(
        '--settle <time>',
        'how long a change may take to arrive: a record that differs is read again after this time',
      )
        .argParser(wait)
        .default(attemptPolicy.settleMs, formatSeconds(attemptPolicy.settleMs / 1_000)),
    )
    .option('--repair', 'correct the warehouse where it differs, and compare again')
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      '\nRows that somebody decided to keep (metersync deletes reject, undo) do not count as differences; they are counted separately.',
    )
    .action(async (options) => (await import('./commands/audit.ts')).auditCommand(options));
  add(
    program,
    'resume',
    'Retry parked work at once, and read again what backfills could not read',
    'metersync resume --code SERVICE_KEY_REFUSED',
  )
    .addOption(
      new Option('--code <code>', 'only work that this failure parked').choices([
        ...parkingCodes,
        'UNKNOWN_TO_SERVICE',
      ]),
    )
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/backfill.ts')).resume(options));
  addDeletes(program);
}

function addAnalyse(program: Command): void {
  add(
    program,
    'report',
    'Report cost, usage, load, coverage and corrections, as text or as a page with charts',
    'metersync report --html report.html',
  )
    .option('--company <id>', 'only one company, by its id', uuid)
    .option('--external-id <id>', 'only one company, by the id that you gave it')
    .option('--html <file>', 'write a page with charts to this file; it needs no network and no script')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/analysis.ts')).report(options));
  add(
    program,
    'export',
    'Write a table or view of the warehouse to a file, with exact values and times in UTC',
    'metersync export bills --out bills.parquet',
  )
    .argument('<view>', 'for example bills, or with its schema: analytics.bills, utility.documents')
    .option(
      '--out <file>',
      'file to write, which ends in .csv or .parquet; - is CSV on standard output, the default',
    )
    .option(
      '--spreadsheet',
      'CSV for spreadsheets: marked as UTF-8, with an apostrophe before texts that would run as formulas or lose digits, symbols for control characters, and texts that fit into cells',
    )
    .option('--company <id>', 'only the rows of one company, by its id', uuid)
    .option('--external-id <id>', 'only the rows of one company, by the id that you gave it')
    .action(async (view, options) => (await import('./commands/analysis.ts')).exportCommand(view, options));
  add(
    program,
    'sites',
    'List sites, or set their time zones, floor areas and emission regions',
    'metersync sites --file sites.csv',
  )
    .option(
      '--file <csv>',
      'set the values of this file, which metersync export analytics.sites --out sites.csv wrote',
    )
    .option(
      '--accept-proposals',
      'set the time zone that the address proposes, for sites without a time zone',
    )
    .option('--company <id>', 'only one company, by its id', uuid)
    .option('--external-id <id>', 'only one company, by the id that you gave it')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/analysis.ts')).sites(options));
  addChecks(program);
}

function addTry(program: Command): void {
  add(
    program,
    'demo',
    'See everything at work: a service, a backfill, live changes, an audit',
    'metersync demo --keep',
  )
    .option('--companies <n>', 'companies to generate', atLeastOne, 10)
    .option('--documents <n>', 'documents for each company', count, 150)
    .option('--interval-days <n>', 'days of interval readings', count, 7)
    .option('--events <n>', 'live changes', count, 1_000)
    .option('--keep', 'keep everything running at the end', false)
    .option('--temporal-ui', "with --keep: serve Temporal's web page, which has no login", false)
    .addHelpText(
      'after',
      '\nIt starts its own service, Postgres and Temporal, whatever SERVICE_URL, DATABASE_URL and TEMPORAL_ADDRESS say.',
    )
    .action(async (options) => (await import('./commands/demo.ts')).demo(options));
  add(
    program,
    'sandbox',
    'Run a stand-in for the service with generated data, to develop and test against',
    'metersync sandbox --companies 3 --live 10',
  )
    .option('--companies <n>', 'companies to generate', count, 10)
    .option('--documents <n>', 'documents for each company', count, 100)
    .option('--interval-days <n>', 'days of interval readings', count, 14)
    .option(
      '--seed <n>',
      'number from which every generated id, value and time is derived, but not the API key',
      count,
    )
    .option('--until <day>', 'last day of the generated history, YYYY-MM-DD', 'today')
    .option('--live <n>', 'plausible changes per minute', count)
    .option(
      '--irregular <share>',
      'share of irregular bills (superseded, sent twice, overlapping, …), 0 to 1',
      share,
    )
    .option('--host <address>', 'address to listen on; loopback by default')
    .option('--port <n>', 'port to listen on; a free port by default', count)
    .option(
      '--deliver-to <networks>',
      'also send webhooks to these networks, such as 172.16.0.0/12; by default only to this machine and public addresses',
    )
    .addHelpText(
      'after',
      '\nSANDBOX_DATABASE_URL names its own Postgres database. Without it an embedded Postgres starts.',
    )
    .action(async (options) => (await import('./sandbox.ts')).sandboxCommand(options));
}
