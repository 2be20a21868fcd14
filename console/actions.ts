import type { Client } from '@temporalio/client';
import { html } from 'hono/html';
import { startBackfill } from '../app/backfill.ts';
import { withClient } from '../app/temporal/client.ts';
import { pauseSchedule, readSchedule, resumeSchedule } from '../app/temporal/schedules.ts';
import { parkingCodes } from '../contract/failures.ts';
import { limits } from '../contract/limits.ts';
import { type OperationAction, type RunKind, runKinds, type taskQueues } from '../contract/names.ts';
import { canonicalUuid } from '../contract/values.ts';
import { agreeing, counted } from '../contract/words.ts';
import { acknowledgeIssue } from '../db/checks/check-data.ts';
import { readDeletes } from '../db/deletes/decide.ts';
import { unknownCode } from '../db/queue/postpone.ts';
import { readCompany } from '../db/read/companies.ts';
import { type CountedEvents, countEvents, type EventFilter } from '../db/read/events.ts';
import { listDataIssues } from '../db/read/issues.ts';
import { isAlarmName } from '../health/findings.ts';
import {
  acknowledge,
  canDecide,
  type Decision,
  decideDeletes,
  describeDecided,
} from '../operations/decisions.ts';
import { describeReplay, replayEvents, wasReplayed } from '../operations/events.ts';
import { NotBegun } from '../operations/recorded.ts';
import { describeResumed, requireWorker, resumeParked } from '../operations/runs.ts';
import {
  type Ask,
  type Asking,
  asked,
  type GivenValues,
  givenWord,
  isGiven,
  oneOf,
  type Question,
  wrongOf,
} from './asking.ts';
import { givenEvents } from './pages/events.ts';
import { text } from './parts.ts';

/** Actions by the names that the log of operations uses. In addresses, hyphens replace the spaces. */
export const actions = {
  resume: askResume,
  replay: askReplay,
  backfill: askBackfill,
  'schedule pause': askPause,
  'schedule resume': askResumeSchedule,
  'deletes approve': (asking) => askDecision(asking, 'approve'),
  'deletes reject': (asking) => askDecision(asking, 'reject'),
  'deletes undo': (asking) => askDecision(asking, 'undo'),
  'alerts acknowledge': (asking) => askFinding(asking, false),
  'alerts unacknowledge': (asking) => askFinding(asking, true),
  'issue acknowledge': (asking) => askAcknowledge(asking, false),
  'issue unacknowledge': (asking) => askAcknowledge(asking, true),
} satisfies Partial<Record<OperationAction, Ask>>;

export const isAction = (name: string): name is keyof typeof actions => Object.hasOwn(actions, name);

async function withTemporal<T>(
  { deps }: Asking,
  work: (client: Client) => Promise<T>,
  queue?: keyof typeof taskQueues,
): Promise<T> {
  return await withClient(deps.temporal, async (client) => {
    if (queue !== undefined) await requireWorker(client, queue);
    return await work(client);
  });
}

async function askResume(asking: Asking): Promise<Question> {
  const { deps, query, health } = asking;
  const given = givenWord(query, 'code', [...parkingCodes, unknownCode]);
  requireUsable({ code: given });
  const code = given.value;
  if ('away' in health.warehouse) throw new NotBegun(health.warehouse.away);
  const parked = health.warehouse.parked.filter((one) => code === undefined || one.code === code);
  const events = parked.reduce((sum, one) => sum + one.events, 0);
  const parts = parked.reduce((sum, one) => sum + one.parts, 0);
  return {
    title: `Try parked work again${code === undefined ? '' : `: ${code}`}`,
    says: `${counted(events, 'event')} ${events === 1 ? 'becomes' : 'become'} due at once. The companies of ${counted(parts, 'part')} of backfills are read again in a new run. If the cause is not fixed, the work is parked again.`,
    button: 'Try again',
    act: () =>
      withTemporal(asking, async (client) =>
        describeResumed(await resumeParked({ client, db: deps.writer, code })).join('; '),
      ),
  };
}

/** Refuses an unusable value: without it, the action would apply to more than asked for. */
function requireUsable(values: GivenValues): void {
  const [wrong] = wrongOf(values);
  if (wrong !== undefined) throw new NotBegun(wrong);
}

/** Reads which events an address names, by id or filter. */
async function eventsOf(asking: Asking): Promise<{ id: string | undefined; filter: EventFilter }> {
  const id = asked(asking.query, 'id');
  const { values, filter } = await givenEvents(asking);
  requireUsable(values);
  if (id === undefined && !isGiven(values))
    throw new NotBegun('choose events: an action cannot apply to the whole journal');
  return { id, filter: { ...filter, ...(id === undefined ? {} : { ids: [id] }) } };
}

function matching({ events, isAll }: CountedEvents): string {
  const count = Math.min(events, limits.countMax);
  return `${isAll ? '' : 'At least '}${counted(count, 'event')} ${events === 1 ? 'matches' : 'match'}.`;
}

async function askReplay(asking: Asking): Promise<Question> {
  const { deps } = asking;
  const { id, filter } = await eventsOf(asking);
  return {
    title: id === undefined ? 'Replay events' : 'Replay an event',
    says: `${matching(await countEvents(deps.db, filter, limits.countMax))} The current code processes the signed body again; ${id === undefined ? 'applied events are left out' : 'the record is read again, even if the event was applied'}.`,
    button: 'Replay',
    act: (_form, operation) =>
      withTemporal(
        asking,
        async (client) => {
          const report = await replayEvents({
            client,
            db: deps.writer,
            filter,
            replay: id === undefined ? 'unapplied' : 'all',
            operation,
          });
          const { replayed, refused } = report;
          if (replayed === 0 && refused[0] !== undefined) throw new NotBegun(refused[0].reason);
          const [done, first] = describeReplay(report);
          const words = `${done}${first === undefined ? '' : `; ${refused.length} refused, the first: ${first}`}`;
          if (!wasReplayed(report)) throw new Error(words);
          return words;
        },
        'events',
      ),
  };
}

async function askBackfill(asking: Asking): Promise<Question> {
  const { deps, query } = asking;
  const id = canonicalUuid(asked(query, 'company') ?? '');
  const company = id === undefined ? undefined : await readCompany(deps.db, id);
  if (query.has('company') && company === undefined) throw new NotBegun('there is no such company');
  const what = company === undefined ? 'every company' : text(company.name ?? company.id);
  return {
    title: `Backfill ${what}`,
    says: `A new run reads everything that the service has of ${what}. It changes only what differs.`,
    button: 'Backfill',
    act: () =>
      withTemporal(
        asking,
        async (client) => {
          const runId = await startBackfill(
            client,
            id === undefined ? undefined : { db: deps.writer, companies: [id] },
          );
          return `backfill ${runId} started`;
        },
        'backfill',
      ),
  };
}

const kindOf = ({ query }: Asking): RunKind => {
  const kind = oneOf(query, 'kind', runKinds);
  if (kind === undefined) throw new NotBegun(`choose a schedule: ${runKinds.join(' or ')}`);
  return kind;
};

async function askPause(asking: Asking): Promise<Question> {
  const { deps, identity } = asking;
  const kind = kindOf(asking);
  const next = await withTemporal(asking, (client) => readSchedule(client, kind));
  if (next.state !== 'active') throw new NotBegun(`the schedule ${kind} is ${next.state}`);
  return {
    title: `Pause the schedule ${kind}`,
    says: `No ${kind} run starts by itself until somebody resumes it. ${counted(next.running.length, 'run')} under way ${next.running.length === 1 ? 'continues' : 'continue'}.`,
    fields: html`<label for="note">Reason</label><input id="note" name="note" maxlength="500" autocomplete="off" required>`,
    button: 'Pause',
    act: (form) =>
      withTemporal(asking, async (client) => {
        const reason = noteOf(form);
        if (reason === undefined) throw new NotBegun('give a reason: others will see it');
        await pauseSchedule(client, kind, { by: identity.name, reason, at: new Date(deps.now()) });
        return `paused: ${reason}`;
      }),
  };
}

async function askResumeSchedule(asking: Asking): Promise<Question> {
  const kind = kindOf(asking);
  return {
    title: `Resume the schedule ${kind}`,
    says: `${kind === 'full' ? 'Full' : 'Reconcile'} runs start by themselves again, the next one at its usual time.`,
    button: 'Resume',
    act: () =>
      withTemporal(asking, async (client) => {
        await resumeSchedule(client, kind);
        return 'resumed';
      }),
  };
}

const decisions: Readonly<
  Record<Decision, { title: string; effect: string; button: string; danger: boolean }>
> = {
  approve: {
    title: 'Delete what the run found missing',
    effect: 'deleted here; the service no longer lists them. This can be undone.',
    button: 'Delete them',
    danger: true,
  },
  reject: {
    title: 'Keep what the run found missing',
    effect: 'kept until the service lists them again. This can be undone.',
    button: 'Keep them',
    danger: false,
  },
  undo: {
    title: 'Undo the decision on what the run found missing',
    effect: 'restored, and kept until the service lists them again.',
    button: 'Undo',
    danger: false,
  },
};

async function askDecision({ deps, query }: Asking, decision: Decision): Promise<Question> {
  const run = canonicalUuid(asked(query, 'run') ?? '');
  if (run === undefined) throw new NotBegun('choose a run');
  const found = (await readDeletes(deps.db, { all: true, run })).filter(({ state }) =>
    canDecide(decision, state),
  );
  const applied = found.filter(({ state }) => state === 'applied');
  const of = applied.length > 0 ? applied : found;
  const rows = of.reduce((sum, one) => sum + one.rows, 0);
  if (rows === 0) throw new NotBegun(`run ${run} has nothing left to decide`);
  const { title, button, danger, ...decided } = decisions[decision];
  const effect =
    decision === 'undo' && applied.length === 0 ? 'to wait for a decision again.' : decided.effect;
  return {
    title,
    says: `${counted(rows, 'row')} of run ${run} ${agreeing(rows, 'is', 'are')} ${effect}`,
    fields: noteField,
    button,
    danger,
    act: async (form) => describeDecided(await decideDeletes(deps.writer, decision, run), noteOf(form)),
  };
}

const noteField = html`<label for="note">Note</label><input id="note" name="note" maxlength="500" autocomplete="off">`;

const noteOf = (form: URLSearchParams): string | undefined => asked(form, 'note');

async function askFinding({ deps, query, identity, verdict }: Asking, undo: boolean): Promise<Question> {
  const name = asked(query, 'id') ?? '';
  if (!isAlarmName(name)) throw new NotBegun(`there is no finding ${name}`);
  const named = { name, key: query.get('key') ?? '' };
  const finding = verdict.findings.find(({ alarm, key }) => alarm === name && key === named.key);
  if (finding === undefined) throw new NotBegun(`there is no finding ${name} now`);
  return {
    title: undo ? 'Withdraw the acknowledgement' : 'Acknowledge the finding',
    says: undo
      ? `The verdict counts it again: ${text(finding.saw)}`
      : `The verdict leaves it out until its count rises or it is over: ${text(finding.saw)}`,
    ...(undo ? {} : { fields: noteField }),
    button: undo ? 'Withdraw acknowledgement' : 'Acknowledge',
    act: async (form) => {
      const note = noteOf(form);
      await acknowledge(
        deps.writer,
        verdict,
        named,
        undo ? undefined : { by: identity.name, note: note ?? null },
      );
      return undo ? 'no longer acknowledged' : note === undefined ? 'acknowledged' : `acknowledged: ${note}`;
    },
  };
}

async function askAcknowledge({ deps, query }: Asking, undo: boolean): Promise<Question> {
  const id = /^\d{1,9}$/.exec(query.get('id') ?? '')?.[0];
  const [issue] = id === undefined ? [] : await listDataIssues(deps.db, { id: Number(id) }, 1);
  if (issue === undefined || issue.closedAt !== null) throw new NotBegun('no such issue is open');
  return {
    title: undo ? 'Withdraw the acknowledgement' : 'Acknowledge the issue',
    says: undo
      ? `1 issue is no longer acknowledged: ${text(issue.sentence)}`
      : `1 issue stays open and is counted separately: ${text(issue.sentence)}`,
    ...(undo ? {} : { fields: noteField }),
    button: undo ? 'Withdraw acknowledgement' : 'Acknowledge',
    act: async (form) => {
      const note = noteOf(form);
      if (!(await acknowledgeIssue(deps.writer, issue.id, { note: undo ? undefined : note, undo })))
        throw new NotBegun('no such issue is open');
      return undo ? 'no longer acknowledged' : note === undefined ? 'acknowledged' : `acknowledged: ${note}`;
    },
  };
}
