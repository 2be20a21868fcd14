import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { chooseCompanies } from '../../db/backfill/run-companies.ts';
import { approveDeletes, readDeletes, rejectDeletes, undoDeletes } from '../../db/deletes/decide.ts';
import type { TestWarehouse } from '../support/warehouse.ts';
import { asTold, type Change, change, type Forgery, forgery, type Records } from './changes.ts';
import { applyEvents, backfill, Job, sweep } from './jobs.ts';
import type { Backup, Circumstances, Habits, Service } from './service.ts';
import { Timeline } from './timeline.ts';
import {
  type Deployment,
  type Turns,
  toItsEnd,
  type UsageSource,
  usageSources,
  type Worker,
} from './worker.ts';

/** A step of a history. Steps come in any order, and a step that is not possible does nothing. */
export type Command =
  | { readonly do: 'change'; readonly change: Change }
  | { readonly do: 'forge'; readonly of: Forgery }
  /** Delivers events of the service in this order, possibly again. */
  | { readonly do: 'deliver'; readonly picks: readonly number[]; readonly turns: Turns }
  | { readonly do: 'begin'; readonly work: 'sweep' | 'backfill' | 'reconcile'; readonly turns: Turns }
  /** Lets work go on that waits for its turn: a job, or a worker that Temporal believes to be dead. */
  | { readonly do: 'move'; readonly pick: number; readonly turns: Turns }
  | { readonly do: 'crash'; readonly pick: number; readonly freezes: boolean }
  | { readonly do: 'lose'; readonly pick: number; readonly what: 'request' | 'commit' }
  | { readonly do: 'refuse'; readonly what: 'key' | 'outage' }
  /** Answers of a path show the present state until the service is calm. */
  | { readonly do: 'lag'; readonly path: string }
  | { readonly do: 'calm' }
  | { readonly do: 'back up' }
  | { readonly do: 'restore' }
  | { readonly do: 'decide'; readonly how: 'approve' | 'reject' | 'undo'; readonly pick: number }
  | { readonly do: 'pass'; readonly minutes: number };

export interface History extends Circumstances {
  /** How far the receiver's clock is ahead of the warehouse's. */
  readonly receiverAheadHours: number;
  /** Whether the service tells all changes by events, and shows them at once. */
  readonly told: boolean;
  readonly usageFrom: UsageSource;
  /** Whether a person decides about almost every deletion. */
  readonly capped: boolean;
  readonly commands: readonly Command[];
}

const turns: fc.Arbitrary<Turns> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.constantFrom('/document/', '/usage/', '/connection/', '/meter/', '/interval/', '/company?'),
  },
  { weight: 3, arbitrary: fc.constant(toItsEnd) },
  { weight: 2, arbitrary: fc.nat(12) },
  { weight: 1, arbitrary: fc.nat(60) },
);
const pick = fc.nat(5);
const step = <T extends object>(
  what: string,
  fields: { [Name in keyof T]: fc.Arbitrary<T[Name]> } = {} as never,
) => fc.record({ do: fc.constant(what), ...fields }) as unknown as fc.Arbitrary<Command>;

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 12, arbitrary: step('change', { change }) },
  { weight: 1, arbitrary: step('forge', { of: forgery }) },
  {
    weight: 7,
    arbitrary: step('deliver', { picks: fc.array(fc.nat(19), { minLength: 1, maxLength: 5 }), turns }),
  },
  {
    weight: 8,
    arbitrary: step('begin', {
      work: fc.constantFrom('sweep', 'sweep', 'backfill', 'backfill', 'reconcile'),
      turns,
    }),
  },
  { weight: 8, arbitrary: step('move', { pick, turns }) },
  { weight: 2, arbitrary: step('crash', { pick, freezes: fc.boolean() }) },
  { weight: 1, arbitrary: step('lose', { pick, what: fc.constantFrom('request', 'commit') }) },
  { weight: 1, arbitrary: step('refuse', { what: fc.constantFrom('key', 'outage') }) },
  {
    weight: 1,
    arbitrary: step('lag', { path: fc.constantFrom('/', '/document', '/usage', '/connection', '/interval') }),
  },
  { weight: 2, arbitrary: step('calm') },
  { weight: 1, arbitrary: step('back up') },
  { weight: 1, arbitrary: step('restore') },
  { weight: 2, arbitrary: step('decide', { how: fc.constantFrom('approve', 'reject', 'undo'), pick }) },
  { weight: 3, arbitrary: step('pass', { minutes: fc.constantFrom(1, 20, 180) }) },
);

export const history: fc.Arbitrary<History> = fc.record({
  aheadHours: fc.constantFrom(0, -48, 1),
  receiverAheadHours: fc.constantFrom(0, -1, 1),
  pageSize: fc.constantFrom(1, 2, 2, 100),
  habits: fc.record({
    ...{ listsSites: fc.boolean(), readingsHaveUpdated: fc.boolean() },
    ...{ readingsHaveIds: fc.boolean(), newestFirst: fc.boolean() },
  }),
  told: fc.boolean(),
  usageFrom: fc.constantFrom('endpoints', 'endpoints', 'records'),
  capped: fc.boolean(),
  commands: fc.array(command, { maxLength: 24, size: 'max' }),
});

/** With it, a person decides about almost every deletion. */
export const tightCap = { rows: 1, percent: 1 } as const;

const jobsMax = 4;

/** A service, a deployment, and what is under way between them. */
export class World {
  readonly service: Service;
  readonly records: Records;
  readonly warehouse: TestWarehouse;
  readonly timeline: Timeline;
  readonly usageFrom: UsageSource;
  readonly capped: boolean;
  readonly told: boolean;
  readonly habits: Habits;
  /** Ids of the events that were delivered, and so acknowledged. */
  readonly acknowledged = new Set<string>();
  readonly #receiverAheadHours: number;
  readonly #deployment: Deployment;
  readonly #jobs: Job[] = [];
  readonly #frozen: Worker[] = [];
  #backup: Backup | undefined;
  #runs = 0;

  constructor(service: Service, records: Records, warehouse: TestWarehouse, of: History) {
    this.service = service;
    this.records = records;
    this.warehouse = warehouse;
    this.usageFrom = of.usageFrom;
    this.capped = of.capped;
    this.told = of.told;
    this.habits = of.habits;
    this.#receiverAheadHours = of.receiverAheadHours;
    this.timeline = new Timeline(service, records);
    // To a clock that is behind, all states are of the future.
    this.timeline.goesBack = of.aheadHours > 0;
    this.#deployment = {
      warehouse,
      service,
      endpoints: usageSources[of.usageFrom],
      deletesCap: of.capped ? tightCap : { rows: 1_000, percent: 100 },
      backfillFirst: async (companyId) => {
        await chooseCompanies(warehouse.db, companyId, [companyId]);
        this.#jobs.push(new Job(this.#deployment, backfill('full', companyId), this.#frozen));
      },
    };
  }

  async do(command: Command): Promise<void> {
    switch (command.do) {
      case 'change':
        return await this.#change(this.told ? asTold(command.change) : command.change);
      case 'forge':
        return await this.records.forge(command.of);
      case 'deliver':
        return await this.#deliver(command.picks, command.turns);
      case 'begin':
        return await this.#begin(command.work, command.turns);
      case 'move':
        return await this.#move(command.pick, command.turns);
      case 'crash':
        return this.#jobAt(command.pick)?.crash(command.freezes);
      case 'lose':
        return this.#jobAt(command.pick)?.lose(command.what);
      case 'refuse':
        this.service.refuses = command.what;
        return;
      case 'lag':
        if (this.told) return;
        this.timeline.isOrdered = false;
        return await this.service.freeze(command.path === '/' ? undefined : command.path);
      case 'calm':
        return this.service.calm();
      case 'back up':
        this.#backup = await this.service.backup();
        return;
      case 'restore':
        if (this.#backup === undefined || this.told) return;
        this.timeline.isOrdered = false;
        this.timeline.goesBack = true;
        await this.service.restore(this.#backup);
        return await this.timeline.note();
      case 'decide':
        return await this.#decide(command.how, command.pick);
      case 'pass':
        if (this.service.lags) this.timeline.goesBack = true;
        return await this.#pass(command.minutes);
    }
  }

  async #change(change: Change | undefined): Promise<void> {
    if (change === undefined) return;
    await this.records.change(change);
    await this.timeline.note(change);
  }

  /** Delivers what was not delivered, and lets everything end until no event waits. */
  async settle(): Promise<void> {
    this.service.calm();
    await this.#finish();
    const left = this.records.events.flatMap(({ event }, at) =>
      this.acknowledged.has(event.id) ? [] : [at],
    );
    if (left.length > 0) await this.#deliver(left.toReversed(), toItsEnd);
    // Forged events use up all attempts.
    for (let looks = 0; looks <= recordPolicy.olderStateAttemptsMax + 2; looks++) {
      await this.#pass(recordPolicy.waitMaxSeconds / 60 + 1);
      await this.#begin('sweep', toItsEnd);
      await this.#finish();
      if (!(await this.#isPending())) break;
    }
  }

  /** Reads everything, and approves what waits for a person. */
  async conclude(): Promise<void> {
    await this.#pass(180);
    await this.backfill();
    const held = await readDeletes(this.warehouse.db, { all: false });
    for (const { runId } of held) await approveDeletes(this.warehouse.db, runId);
    // Rows that an approval spares are judged again.
    if (held.length > 0) await this.backfill();
  }

  /** Reads everything. */
  async backfill(): Promise<void> {
    await this.#begin('backfill', toItsEnd);
    await this.#finish();
  }

  async #deliver(picks: readonly number[], turns: Turns): Promise<void> {
    const { events } = this.records;
    if (events.length === 0) return;
    const receivedAt = new Date(Date.now() + this.#receiverAheadHours * 3_600_000).toISOString();
    const group = picks.flatMap((pick) => {
      const event = events[pick % events.length]?.event;
      return event === undefined ? [] : [{ ...event, receivedAt }];
    });
    for (const { id } of group) this.acknowledged.add(id);
    // A group has each event once.
    const once = [...new Map(group.map((event) => [event.id, event])).values()];
    await this.#start(new Job(this.#deployment, applyEvents(once), this.#frozen, true), turns);
  }

  async #begin(work: 'sweep' | 'backfill' | 'reconcile', turns: Turns): Promise<void> {
    if (this.#jobs.length >= jobsMax) return;
    const runId = `00000000-0000-4000-9000-${String(++this.#runs).padStart(12, '0')}`;
    const workflow = {
      sweep: sweep(),
      backfill: backfill('full', runId),
      reconcile: backfill('reconcile', runId),
    }[work];
    await this.#start(new Job(this.#deployment, workflow, this.#frozen), turns);
  }

  async #start(job: Job, turns: Turns): Promise<void> {
    this.#jobs.push(job);
    await this.#moveJob(job, turns);
  }

  async #moveJob(job: Job, turns: Turns): Promise<void> {
    if (await job.move(turns)) this.#jobs.splice(this.#jobs.indexOf(job), 1);
  }

  async #move(pick: number, turns: Turns): Promise<void> {
    const all = [...this.#jobs, ...this.#frozen];
    const one = all[pick % Math.max(1, all.length)];
    if (one instanceof Job) await this.#moveJob(one, turns);
    else if ((await one?.move(turns)) === 'done') this.#frozen.splice(this.#frozen.indexOf(one as Worker), 1);
  }

  /** Lets everything end that is under way, and what it begins. Frozen workers write last. */
  async #finish(): Promise<void> {
    for (let rounds = 0; this.#jobs.length > 0; rounds++) {
      if (rounds > 20) throw new Error(`${this.#jobs.length} jobs do not end`);
      for (const job of [...this.#jobs]) await this.#moveJob(job, toItsEnd);
    }
    for (const worker of this.#frozen.splice(0)) await worker.move(toItsEnd);
  }

  #jobAt = (pick: number): Job | undefined => this.#jobs[pick % Math.max(1, this.#jobs.length)];

  async #decide(how: 'approve' | 'reject' | 'undo', pick: number): Promise<void> {
    const { db } = this.warehouse;
    const wanted = how === 'undo' ? 'applied' : 'quarantined';
    const found = (await readDeletes(db, { all: true })).filter(({ state }) => state === wanted);
    const runId = found[pick % Math.max(1, found.length)]?.runId;
    if (runId === undefined) return;
    if (how === 'approve') await approveDeletes(db, runId);
    else if (how === 'reject') await rejectDeletes(db, runId);
    else await undoDeletes(db, runId);
  }

  async #isPending(): Promise<boolean> {
    const { rowCount } = await this.warehouse.db.execute(
      sql`select from metersync.journal where outcome = 'pending' limit 1`,
    );
    return rowCount !== 0;
  }

  /**
   * Lets time pass: everything that the warehouse has noted by its clock is so much older. Work under way has
   * noted when it began, and has to stay older than what was noted later, so only waits end while there is any.
   */
  async #pass(minutes: number): Promise<void> {
    const isIdle = this.#jobs.length + this.#frozen.length === 0;
    await this.warehouse.db.transaction(async (tx) => {
      await tx.execute(sql`set local session_replication_role = replica`);
      await tx.execute(sql`select model.pass(make_interval(mins => ${minutes}), ${isIdle})`);
    });
  }
}
