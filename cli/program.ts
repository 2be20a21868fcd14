import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../app/schedule-times.ts';
import { readVersion } from '../app/version.ts';
import { failureTypes, parkingCodes } from '../contract/failures.ts';
import { uuid as uuidPattern } from '../contract/ids.ts';
import {
  auditResources,
  eventOutcomes,
  exportFormats,
  runKinds,
  severities,
  tracedKinds,
} from '../contract/names.ts';

function count(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('has to be a whole number.');
  return Number(text);
}

function share(text: string): number {
  if (/^(0(\.\d+)?|1(\.0+)?)$/.test(text)) return Number(text);
  throw new InvalidArgumentError('has to be from 0 to 1, for example 0.2.');
}

function uuid(text: string): string {
  if (uuidPattern.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError('has to be a UUID.');
}

function issueId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('has to be the number of an issue.');
}

function apiVersion(text: string): string {
  if (/^v\d+(\.\d+)*$/.test(text)) return text;
  throw new InvalidArgumentError('has to be a version as SERVICE_URL ends with, for example v2.2.');
}

function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError('has to be a number and s, m, h or d, for example 15m.');
}

function atLeastOne(text: string): number {
  const many = count(text);
  if (many === 0) throw new InvalidArgumentError('has to be 1 or more.');
  return many;
}

/** A time, or how long ago: `90m`, `24h`, `7d`. */
function timeOrAgo(text: string): string {
  const agoMs = parseDuration(text);
  if (agoMs !== undefined && agoMs < Date.now()) return new Date(Date.now() - agoMs).toISOString();
  const [day] = /^\d{4}-\d\d-\d\d/.exec(text) ?? [];
  if (day !== undefined && isDay(day) && !Number.isNaN(Date.parse(text))) return text;
  throw new InvalidArgumentError(
    'has to be a time such as 2026-05-01T12:00:00Z, or 90m, 24h, 7d for so long ago.',
  );
}

/** Whether the month has that day: a Date takes 30 February for 2 March. */
function isDay(day: string): boolean {
  const at = Date.parse(day);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day);
}

/** Options that choose events of the journal. */
function choosingEvents(command: Command): Command {
  return command
    .option('--type <type>', 'of this type, for example document.created.v2')
    .addOption(new Option('--outcome <outcome>', 'with this outcome').choices(eventOutcomes))
    .addOption(new Option('--code <code>', 'with this failure').choices(Object.keys(failureTypes)))
    .option('--record <id>', 'about this document, connection or meter')
    .option('--company <id>', 'of this company', uuid)
    .option('--since <time>', 'received at this time or later; or so long ago: 90m, 24h, 7d', timeOrAgo)
    .option('--until <time>', 'received before this time', timeOrAgo)
    .option('--json', 'as JSON');
}

function addEvents(program: Command): void {
  const events = program.command('events').description('look into the journal of events, and replay it');
  choosingEvents(events.command('list').description('events of the journal, newest first'))
    .option('--limit <n>', 'at most so many', atLeastOne, 50)
    .option('--before <event>', 'the page after that which ended with this event')
    .action(async (options) => (await import('./commands/events.ts')).eventsList(options));
  events
    .command('show')
    .description('everything about one event, with what was signed')
    .argument('<event>', 'its id')
    .option('--json', 'as JSON')
    .action(async (id, options) => (await import('./commands/events.ts')).eventsShow(id, options));
  choosingEvents(
    events
      .command('replay')
      .description('have kept events applied again, the way they came; what was applied stays unless forced')
      .argument('[events...]', 'their ids'),
  )
    .option('--force', 'also what was applied: its record is read again')
    .action(async (ids, options) => (await import('./commands/events.ts')).eventsReplay(ids, options));
}

function addChecks(program: Command): void {
  const checks = program.command('checks').description('what is wrong, odd or missing in the data itself');
  checks
    .command('list')
    .description('issues that the checks found, the gravest and latest first')
    .option('--company <id>', 'of this company', uuid)
    .option('--check <name>', 'found by this check')
    .addOption(new Option('--severity <severity>', 'of this severity').choices(severities))
    .option('--closed', 'those that are closed, not those that are open')
    .option('--unacknowledged', 'without those that somebody acknowledged')
    .option('--limit <n>', 'at most so many', atLeastOne, 50)
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/checks.ts')).checksList(options));
  checks
    .command('describe')
    .description('what each check looks for, and how many issues of it are open')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/checks.ts')).checksDescribe(options));
  checks
    .command('acknowledge')
    .description('say that an open issue is known: it stays open, and counts apart')
    .argument('<issue>', 'its id, as metersync checks list shows it', issueId)
    .option('--note <text>', 'what there is to say to it')
    .option('--undo', 'it is not known after all')
    .option('--json', 'as JSON')
    .action(async (id, options) => (await import('./commands/checks.ts')).checksAcknowledge(id, options));
  checks
    .command('run')
    .description('look now, as the worker does after each backfill and reconcile')
    .option('--company <id>', 'at this company', uuid)
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/checks.ts')).checksRun(options));
}

/** The command, with each subcommand's code loaded when it is called. docs/command.md is made from it. */
export function buildProgram(): Command {
  const program = new Command('metersync')
    .description('Keeps your own Postgres equal to a Utility Data Service, and proves it.')
    .version(readVersion());

  program
    .command('start')
    .description('run receiver and worker in one process, with embedded stand-ins for what is not configured')
    .action(async () => (await import('./commands/start.ts')).start(['worker', 'receiver']));
  program
    .command('receiver')
    .description('run the receiver of webhooks alone')
    .action(async () => (await import('./commands/start.ts')).start(['receiver']));
  program
    .command('worker')
    .description('run the worker alone')
    .action(async () => (await import('./commands/start.ts')).start(['worker']));
  program
    .command('migrate')
    .description("bring the warehouse's schema up to date")
    .action(async () => (await import('./commands/migrate.ts')).migrateCommand());
  program
    .command('backfill')
    .description('read everything that the service has, of all companies or of one')
    .argument('[scope]', 'all')
    .option('--company <id>', 'one company, by its id', uuid)
    .option('--external-id <id>', 'one company, by the id that you gave it')
    .option(
      '--companies-file <file>',
      'any number of companies, by their ids, one a line; - is standard input',
    )
    .option('--follow', 'show progress and wait for the end: 0 complete, 1 partial, suspect or failed')
    .option('--run <id>', 'follow this run, which was started before, and start none', uuid)
    .action(async (scope, options) => (await import('./commands/backfill.ts')).backfill(scope, options));
  program
    .command('schedule')
    .description(
      'show or change when everything is read again; set keeps what it does not name, reset goes back to the default',
    )
    .addArgument(
      new Argument('<action>', 'what to do').choices([
        ...['set', 'reset', 'show', 'pause', 'resume', 'trigger', 'remove'],
      ]),
    )
    .addArgument(
      new Argument(
        '[schedule]',
        'full, the backfill of everything (when not given), or reconcile, what was updated lately',
      ).choices(runKinds),
    )
    .addOption(new Option('--cron <expression>', 'set: for example "0 3 * * *"').conflicts('every'))
    .option('--every <duration>', 'set: for example 15m, 6h, 1d', duration)
    .option('--time-zone <zone>', 'set: zone of the cron expression; UTC at first')
    .option('--jitter <duration>', 'set: random part by which each start is put off', duration)
    .option('--catch-up <duration>', 'set: how late a start may be that Temporal missed', duration)
    .option('--reason <text>', 'pause: why, for show to tell')
    .option('--json', 'as JSON')
    .action(async (action, name, options) =>
      (await import('./commands/schedule.ts')).schedule(action, name, options),
    );
  program
    .command('status')
    .description(
      'show a verdict, what is not well and what to do about it; what has been applied, what waits and why',
    )
    .option(
      '--exit-code',
      'for monitors: 0 in sync or catching up, 3 needs you, 4 broken, 5 unknown; 1 and 2 are errors of the command',
    )
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/status.ts')).status(options));
  program
    .command('doctor')
    .description('check what a sync rests on: key, version, webhooks, receiver, clocks, warehouse, Temporal')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/doctor.ts')).doctor(options));
  program
    .command('audit')
    .description(
      'compare the warehouse with the service and print each difference, in flat memory; changes nothing unless told to',
    )
    .option('--company <id>', 'one company, by its id', uuid)
    .addOption(new Option('--resource <names...>', 'these resources alone').choices(auditResources))
    .option('--since <time>', 'what changed at this time or later; or so long ago: 90m, 24h, 7d', timeOrAgo)
    .option('--repair', 'write what differs again as the service has it, and compare once more')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/audit.ts')).auditCommand(options));
  program
    .command('versions')
    .description('show what differs between versions of the API: status 1 where anything does')
    .addArgument(new Argument('<action>', 'diff: read the same records in both').choices(['diff']))
    .requiredOption('--from <version>', 'for example v2', apiVersion)
    .requiredOption('--to <version>', 'for example v2.2', apiVersion)
    .option('--company <id>', 'records of this company alone; of as many as it takes when not given', uuid)
    .option('--records <n>', 'at most so many of each resource, readings of a few meters', atLeastOne, 500)
    .option('--json', 'as JSON')
    .action(async (_action, options) => (await import('./commands/versions.ts')).versionsDiff(options));
  program
    .command('views')
    .description('make the typed views of what the service sends again, in schema analytics')
    .addArgument(
      new Argument('<action>', 'refresh: make them again from the fields that were seen').choices([
        'refresh',
      ]),
    )
    .option('--json', 'as JSON')
    .action(async (_action, options) => (await import('./commands/views.ts')).viewsRefresh(options));
  program
    .command('resume')
    .description('try again at once what is parked, and read again what backfills could not')
    .addOption(
      new Option('--code <code>', 'only what this failure parked').choices([
        ...parkingCodes,
        'UNKNOWN_TO_SERVICE',
      ]),
    )
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/resume.ts')).resume(options));
  addEvents(program);
  program
    .command('trace')
    .description('tell the story of one record: events, workflows, runs, versions and times')
    .addArgument(new Argument('<kind>', 'what it is').choices(tracedKinds))
    .argument('<id>', 'its id')
    .option('--json', 'as JSON')
    .action(async (kind, id, options) => (await import('./commands/trace.ts')).trace(kind, id, options));
  program
    .command('deletes')
    .description('review deletions that backfills and reconciles found; approve or reject those held back')
    .addArgument(new Argument('<action>', 'what to do').choices(['list', 'approve', 'reject', 'undo']))
    .addArgument(new Argument('[run]', 'the run that found them').argParser(uuid))
    .option('--all', 'list decided ones too')
    .option('--json', 'as JSON')
    .action(async (action, run, options) =>
      (await import('./commands/deletes.ts')).deletes(action, run, options),
    );
  addChecks(program);
  program
    .command('webhooks')
    .description("turn the service's webhook events on or off, and open its portal")
    .addArgument(new Argument('<action>', 'what to do').choices(['enable', 'disable', 'portal', 'status']))
    .option('--yes', 'disable: without asking, for the whole organization')
    .option('--json', 'as JSON')
    .action(async (action, options) => (await import('./commands/webhooks.ts')).webhooks(action, options));
  program
    .command('export')
    .description('write a table or view of the warehouse as a file: exact, streamed, times in UTC')
    .argument('<view>', 'for example bills, or with its schema: analytics.bills, utility.documents')
    .addOption(new Option('--format <format>', 'of the file').choices(exportFormats).default('csv'))
    .option('--out <file>', 'where to; standard output when not given')
    .option(
      '--spreadsheet',
      'CSV to open in Excel or the like: texts that it would run as formulas begin with an apostrophe',
    )
    .option('--company <id>', 'the rows of one company, by its id', uuid)
    .option('--external-id <id>', 'the rows of one company, by the id that you gave it')
    .action(async (view, options) => (await import('./commands/export.ts')).exportCommand(view, options));
  program
    .command('report')
    .description(
      'report cost, usage, load, coverage, corrections and what needs somebody: in figures, or as a page with charts',
    )
    .option('--company <id>', 'of one company, by its id', uuid)
    .option('--external-id <id>', 'of one company, by the id that you gave it')
    .option('--html <file>', 'write one page that needs no network and no script')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/report.ts')).report(options));
  program
    .command('sandbox')
    .description('run the service itself, with generated data, to try and test against')
    .option('--companies <n>', 'companies to generate', count, 10)
    .option('--documents <n>', 'documents for each company', count, 100)
    .option('--interval-days <n>', 'days of interval readings', count, 14)
    .option('--seed <n>', 'decides every generated id, value and time', count)
    .option('--until <day>', 'last day of the generated history, YYYY-MM-DD', 'today')
    .option('--live <n>', 'plausible changes a minute', count)
    .option('--irregular <share>', 'bills that are superseded, sent twice, overlapping, …: 0 to 1', share)
    .option('--host <address>', 'address to listen on; loopback when not given')
    .option('--port <n>', 'port to listen on; a free one when not given', count)
    .option(
      '--deliver-to <networks>',
      'send webhooks to addresses of these too, as 172.16.0.0/12; to this machine and public ones when not given',
    )
    .addHelpText(
      'after',
      '\nSANDBOX_DATABASE_URL names its own Postgres database; an embedded one stands in when it is not set.',
    )
    .action(async (options) => (await import('./commands/sandbox.ts')).sandboxCommand(options));
  program
    .command('demo')
    .description('see it all work: a service, a backfill, live changes, an audit')
    .option('--companies <n>', 'companies to generate', atLeastOne, 10)
    .option('--documents <n>', 'documents for each company', count, 150)
    .option('--interval-days <n>', 'days of interval readings', count, 7)
    .option('--events <n>', 'live changes', count, 2_000)
    .option('--keep', 'keep everything running at the end', false)
    .action(async (options) => (await import('./commands/demo.ts')).demo(options));
  hint(program, 'metersync');
  for (const command of program.commands) command.helpGroup(groupOf(command.name()));
  return program;
}

/** What a command is for, in the order of the help. */
const groups: Readonly<Record<string, readonly string[]>> = {
  'Run:': ['start', 'receiver', 'worker', 'migrate', 'schedule', 'webhooks'],
  'Look:': ['status', 'doctor', 'trace', 'events', 'versions'],
  'Load and repair:': ['backfill', 'audit', 'resume', 'deletes', 'views'],
  'Analyse:': ['report', 'export', 'checks'],
  'Try:': ['demo', 'sandbox'],
};

const groupOf = (name: string): string =>
  Object.entries(groups).find(([, names]) => names.includes(name))?.[0] ?? 'Commands:';

/** After wrong usage each command points to its own help. */
function hint(command: Command, name: string): void {
  command.showHelpAfterError(`(${name} --help tells more)`);
  for (const one of command.commands) hint(one, `${name} ${one.name()}`);
}
