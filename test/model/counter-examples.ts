import { isDeepStrictEqual } from 'node:util';
import { asTold, type Change } from './changes.ts';
import { toItsEnd } from './worker.ts';
import type { Command, History } from './world.ts';

/** Histories that failed once, or that a rule of the registers exists for, each with what happens in it. */

type Of<Kind extends Change['of']> = Extract<Change, { of: Kind }>;

const document = (how: Of<'document'>['how'], pick = 0, silent = false): Command => ({
  do: 'change',
  change: { of: 'document', how, pick, silent },
});
const connection = (how: Of<'connection'>['how'], pick = 0, silent = false): Command => ({
  do: 'change',
  change: { of: 'connection', how, pick, silent },
});
const meter = (how: Of<'meter'>['how'], pick = 0): Command => ({
  do: 'change',
  change: { of: 'meter', how, pick, silent: true },
});
const company = (how: Of<'company'>['how'], pick = 0): Command => ({
  do: 'change',
  change: { of: 'company', how, pick },
});
const readings = (how: Of<'readings'>['how'], from = 0, slots = 6, pick = 0): Command => ({
  do: 'change',
  change: { of: 'readings', how, pick, from, slots, units: 'kWh' },
});
const forge = (of: Extract<Command, { do: 'forge' }>['of']): Command => ({ do: 'forge', of });
const deliver = (...picks: number[]): Command => ({ do: 'deliver', picks, turns: toItsEnd });
const begin = (work: 'sweep' | 'backfill' | 'reconcile', turns: number | string = toItsEnd): Command => ({
  do: 'begin',
  work,
  turns,
});
const move = (pick = 0, turns: number | string = toItsEnd): Command => ({ do: 'move', pick, turns });
const freeze: Command = { do: 'crash', pick: 0, freezes: true };
const pass = (minutes: number): Command => ({ do: 'pass', minutes });
const decide = (how: 'approve' | 'reject' | 'undo'): Command => ({ do: 'decide', how, pick: 0 });
const lag = (path: string): Command => ({ do: 'lag', path });
const calm: Command = { do: 'calm' };
const all = [0, 1, 2, 3, 4, 5];

const histories: Readonly<Record<string, readonly Command[]>> = {
  'a page inserts a usage row that a later read of its document could not remove, because it was not there yet':
    [
      document('more rows'),
      begin('backfill', '/usage/company'),
      document('fewer rows'),
      deliver(...all),
      begin('sweep'),
    ],
  'a document is read before its event comes': [document('more rows'), begin('backfill'), deliver(0)],
  'a connection is read before its event comes': [connection('sites'), begin('backfill'), deliver(0)],
  'a page has a value that the service replaces by the one before until the page is written': [
    begin('backfill'),
    { do: 'back up' },
    readings('add'),
    begin('backfill', '/interval'),
    { do: 'restore' },
    readings('remove', 3, 2),
    deliver(...all),
    begin('sweep'),
  ],
  'a page has the state of a record between two states that are the same': [
    begin('backfill'),
    connection('status', 1, true),
    begin('backfill', '/connection'),
    connection('status', 2, true),
    connection('status', 1, true),
    begin('reconcile'),
  ],
  'a page of documents is written before an earlier read of one of them': [
    begin('backfill'),
    document('more rows'),
    { do: 'deliver', picks: [0], turns: '/usage/document' },
    document('fewer rows'),
    begin('backfill'),
  ],
  'the reads that events cause still show the old state': [
    begin('backfill'),
    lag('/'),
    document('more rows'),
    connection('status', 3),
    deliver(...all),
    pass(20),
    begin('sweep'),
  ],
  'the service hides a record until its events are given up, and shows it after other events': [
    document('more rows'),
    document('lose'),
    deliver(0),
    ...Array.from({ length: 9 }, () => [pass(20), begin('sweep')]).flat(),
    document('return'),
    document('more rows'),
  ],
  'a company lists a newer state than the owner, and later the same one': [
    document('list twice', 0),
    document('move without its name', 1),
    begin('backfill'),
    document('correct', 1),
    document('list twice', 0),
    begin('backfill'),
  ],
  'a frozen worker lacks a record that a later listing shows': [
    begin('backfill'),
    document('lose', 0),
    begin('backfill', '/document/company'),
    document('return', 0),
    freeze,
    begin('backfill'),
    move(1),
    pass(20),
  ],
  'a person approves deletions of records that were listed again unchanged': [
    begin('backfill'),
    document('lose', 0),
    document('lose', 1),
    begin('backfill'),
    document('return', 0),
    document('return', 1),
    begin('backfill'),
    decide('approve'),
  ],
  'a late answer brings usage back to the document that it left': [
    begin('backfill'),
    document('more rows', 0),
    { do: 'deliver', picks: [0], turns: '/usage/document' },
    document('fewer rows', 0),
    deliver(1),
    move(),
    begin('backfill'),
  ],
  'readings of a meter are imported again with another length while a backfill reads them': [
    begin('backfill'),
    begin('backfill', '/interval'),
    readings('import as hours', 0, 4),
    deliver(0),
    pass(1),
    begin('sweep'),
    move(),
  ],
  'a read that began before another one brings back readings that it did not show': [
    begin('backfill'),
    readings('add', 0, 8),
    deliver(0),
    pass(1),
    begin('sweep', '/interval'),
    readings('remove', 2, 4),
    deliver(1),
    pass(1),
    begin('sweep'),
    move(),
  ],
  'the service restores a deleted bill without another `updated`': [
    begin('backfill'),
    document('delete', 0),
    deliver(0),
    begin('sweep'),
    pass(180),
    document('return', 0, true),
    begin('backfill'),
  ],
  'a bill is deleted again with the same payload after the service took the deletion back': [
    begin('backfill'),
    document('delete', 0, true),
    document('return', 0, true),
    document('delete', 0),
    deliver(0),
  ],
  'the service is restored from its backup': [
    begin('backfill'),
    { do: 'back up' },
    document('correct'),
    connection('status', 1),
    meter('lose'),
    begin('backfill'),
    { do: 'restore' },
    pass(180),
    begin('backfill'),
  ],
  'a company leaves and comes back, and events of its records come in between': [
    begin('backfill'),
    company('leave'),
    begin('backfill'),
    document('correct', 0),
    deliver(...all),
    begin('sweep'),
    company('return'),
  ],
  'forged events name records of others and what nobody has': [
    begin('backfill'),
    forge('move'),
    forge('future deletion'),
    forge('connection'),
    forge('readings'),
    deliver(...all),
    begin('sweep'),
  ],
  'the answer to a commit is lost, and the event is recorded again': [
    document('correct'),
    { do: 'deliver', picks: [0], turns: 0 },
    { do: 'lose', pick: 0, what: 'commit' },
    move(),
  ],
  'an outage and a refused key keep events until both are over': [
    begin('backfill'),
    document('correct'),
    connection('status', 2),
    { do: 'refuse', what: 'outage' },
    deliver(...all),
    pass(20),
    begin('sweep'),
    { do: 'refuse', what: 'key' },
    pass(20),
    begin('sweep'),
    begin('backfill'),
    calm,
  ],
  'an event tells a range that begins and ends within readings': [
    begin('backfill'),
    readings('import as hours', 0, 5),
    deliver(0),
    pass(1),
    begin('sweep'),
    readings('add', 2, 4),
    deliver(1),
    pass(1),
    begin('sweep'),
  ],
};

function isTold(command: Command): boolean {
  if (command.do === 'lag' || command.do === 'restore') return false;
  return command.do !== 'change' || isDeepStrictEqual(asTold(command.change), command.change);
}

/** Each with other circumstances. */
export const counterExamples: readonly { readonly what: string; readonly of: History }[] = Object.entries(
  histories,
).map(([what, commands], at) => ({
  what,
  of: {
    aheadHours: [0, -48, 1][at % 3] as number,
    receiverAheadHours: [0, 1, -1, 1][at % 4] as number,
    pageSize: at % 4 === 1 ? 100 : 2,
    habits: {
      ...{ listsSites: at % 2 === 0, readingsHaveUpdated: at % 3 !== 0 },
      ...{ readingsHaveIds: at % 2 === 1, newestFirst: at % 5 === 0 },
    },
    told: commands.every(isTold),
    usageFrom: at % 4 === 3 ? 'records' : 'endpoints',
    capped: at % 2 === 0,
    commands,
  },
}));
