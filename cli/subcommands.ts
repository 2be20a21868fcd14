import { Argument, type Command, Option } from 'commander';
import { checkNames } from '../contract/check-names.ts';
import { failureTypes } from '../contract/failures.ts';
import { eventOutcomes, runKinds, severities } from '../contract/names.ts';
import { alarmNames } from '../health/findings.ts';
import type { Decision } from '../operations/decisions.ts';
import { add, atLeastOne, issueId, timeOrAgo, uuid } from './command-line.ts';
import type { ScheduleAction, WebhooksAction } from './commands/switches.ts';

function choosingEvents(command: Command): Command {
  return command
    .option('--type <type>', 'events of this type, for example document.created.v2')
    .addOption(new Option('--outcome <outcome>', 'events with this outcome').choices(eventOutcomes))
    .addOption(new Option('--code <code>', 'events with this failure').choices(Object.keys(failureTypes)))
    .option('--record <id>', 'events about this document, connection or meter')
    .option('--company <id>', 'events of this company', uuid)
    .option(
      '--since <time>',
      'events received at this time or later, or within the last 90m, 24h, 7d, …',
      timeOrAgo,
    )
    .option('--until <time>', 'events received before this time', timeOrAgo)
    .option('--json', 'as JSON');
}

export function addEvents(program: Command): void {
  const events = program.command('events').description('List, show and replay events of the journal');
  choosingEvents(add(events, 'list', 'List events', 'metersync events list --outcome dead --since 7d'))
    .option('--limit <n>', 'at most this many', atLeastOne, 50)
    .option('--before <place>', 'the next page: the value that the previous page printed')
    .action(async (options) => (await import('./commands/events.ts')).eventsList(options));
  add(
    events,
    'show',
    'Show everything about one event, with its signed body',
    'metersync events show msg_2Lh9KRb0pzN4LePd3XiA4v12Axj',
  )
    .argument('<event>', 'its id')
    .option('--json', 'as JSON')
    .action(async (id, options) => (await import('./commands/events.ts')).eventsShow(id, options));
  choosingEvents(
    add(
      events,
      'replay',
      'Replay events from the journal; without --force, applied events are skipped',
      'metersync events replay --outcome dead',
    ).argument('[events...]', 'their ids'),
  )
    .option('--force', 'also replay applied events: their records are read again')
    .action(async (ids, options) => (await import('./commands/events.ts')).eventsReplay(ids, options));
}

export function addChecks(program: Command): void {
  const checks = program
    .command('checks')
    .description('Show problems in the data itself, such as missing bills');
  add(
    checks,
    'list',
    'List issues that the checks found, the most severe and newest first',
    'metersync checks list --severity error --unacknowledged',
  )
    .argument('[issue]', 'only this issue, by its id, with its evidence and the keys of its records', issueId)
    .option('--company <id>', 'issues of this company', uuid)
    .addOption(new Option('--check <name>', 'issues found by this check').choices(checkNames))
    .addOption(new Option('--severity <severity>', 'issues of this severity').choices(severities))
    .option('--closed', 'closed issues instead of open issues')
    .option('--unacknowledged', 'only issues that nobody acknowledged')
    .option('--limit <n>', 'at most this many', atLeastOne, 50)
    .option('--json', 'as JSON')
    .action(async (id, options) => (await import('./commands/decisions.ts')).checksList(id, options));
  add(
    checks,
    'acknowledge',
    'Acknowledge an open issue: it stays open and is counted separately',
    'metersync checks acknowledge 17 --note "the utility corrects it in May"',
  )
    .argument('<issue>', 'its id, as metersync checks list shows it', issueId)
    .option('--note <text>', 'a note')
    .option('--undo', 'withdraw the acknowledgement')
    .option('--json', 'as JSON')
    .action(async (id, options) => (await import('./commands/decisions.ts')).checksAcknowledge(id, options));
}

export function addAlerts(program: Command): void {
  const alerts = program.command('alerts').description('Acknowledge findings');
  add(
    alerts,
    'acknowledge',
    'Acknowledge a finding that needs you: the verdict leaves it out until its count rises or it is over',
    'metersync alerts acknowledge ChangesMissed --note "the proxy was down until nine"',
  )
    .addArgument(
      new Argument('<name>', 'name of its alarm, as metersync status shows it').choices(alarmNames),
    )
    .option('--key <key>', 'only the finding with this key, for example schedule=full')
    .option('--note <text>', 'a note')
    .option('--undo', 'withdraw the acknowledgement')
    .option('--json', 'as JSON')
    .action(async (name, options) =>
      (await import('./commands/decisions.ts')).alertsAcknowledge(name, options),
    );
}

export function addSchedule(program: Command): void {
  const schedule = program
    .command('schedule')
    .description('Show or pause the schedules of backfills and reconciles');
  const addAction = (action: ScheduleAction, description: string, example: string): Command =>
    add(schedule, action, description, example)
      .addArgument(
        new Argument(
          action === 'show' ? '[schedule]' : '<schedule>',
          'full (the backfill of everything) or reconcile (recent updates)',
        ).choices(runKinds),
      )
      .option('--json', 'as JSON')
      .action(async (name, options) =>
        (await import('./commands/switches.ts')).schedule(action, name, options),
      );
  addAction(
    'show',
    'Show when runs start (BACKFILL_CRON and RECONCILE_EVERY), and the last runs',
    'metersync schedule show',
  );
  addAction(
    'pause',
    'Pause a schedule: it starts no runs until it is resumed',
    'metersync schedule pause full --reason "the service moves"',
  ).option('--reason <text>', 'the reason; metersync schedule show prints it');
  addAction('resume', 'Resume a paused schedule', 'metersync schedule resume full');
}

export function addDeletes(program: Command): void {
  const deletes = program
    .command('deletes')
    .description(
      'Review deletions that backfills and reconciles found; approve or reject the deletions that are held back',
    );
  add(deletes, 'list', 'List deletions that wait for a decision', 'metersync deletes list --all')
    .addArgument(new Argument('[run]', 'only deletions that this run found').argParser(uuid))
    .option('--all', 'also show deletions that were decided')
    .option('--json', 'as JSON')
    .action(async (run, options) => (await import('./commands/decisions.ts')).deletesList(run, options));
  const addAction = (action: Decision, description: string): void => {
    add(deletes, action, description, `metersync deletes ${action} 0b7c1f5e-2d7a-4b7e-9c61-0a1b2c3d4e5f`)
      .argument('<run>', 'id of the run that found them, as metersync deletes list shows it', uuid)
      .option('--note <text>', 'a note for the log: why')
      .option('--json', 'as JSON')
      .action(async (run, options) =>
        (await import('./commands/decisions.ts')).deletesDecide(action, run, options),
      );
  };
  addAction('approve', 'Delete the rows that a run held back');
  addAction('reject', 'Keep the rows that a run held back');
  addAction('undo', 'Bring back the rows that a run deleted');
}

export function addWebhooks(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description("Turn the service's webhook events on or off, and open its portal");
  const addAction = (action: WebhooksAction, description: string, example: string): Command =>
    add(webhooks, action, description, example)
      .option('--json', 'as JSON')
      .action(async (options) => (await import('./commands/switches.ts')).webhooks(action, options));
  addAction('enable', 'Turn events on for the whole organization', 'metersync webhooks enable');
  addAction(
    'disable',
    'Turn events off for the whole organization',
    'metersync webhooks disable --yes',
  ).option('--yes', 'confirm that no endpoint of the organization will get events');
  addAction(
    'portal',
    'Print an address of the portal that is valid for 7 days',
    'open "$(metersync webhooks portal)"',
  );
}

export function addUpgrade(program: Command): void {
  const upgrade = program.command('upgrade').description('Check an upgrade before it begins');
  add(
    upgrade,
    'check',
    'Check whether this version can take over, by its migrations and by replaying running workflows; status 0 or 1',
    'metersync upgrade check',
  )
    .option('--temporal', 'Temporal will be replaced, too: also check that no group of events is open')
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/upgrade.ts')).upgradeCheck(options));
}

export function addViews(program: Command): void {
  const views = program.command('views').description('Manage the typed views of fields');
  add(
    views,
    'apply',
    'Give each field that the service sent a column in the views of the schema fields; status 1 if a view cannot be replaced',
    'metersync views apply',
  )
    .option('--json', 'as JSON')
    .action(async (options) => (await import('./commands/schema.ts')).viewsApply(options));
}
