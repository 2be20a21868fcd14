import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  isCancellation,
  uuid4,
} from '@temporalio/workflow';
import { checkKinds, type RunKind, type RunState } from '../contract/names.ts';
import { noting, reading, starting } from './activity-options.ts';
import { startChecks } from './checks.ts';

/** The warehouse says which companies to read: those chosen for the run; all of them if none are chosen. */
export interface BackfillInput {
  /** Absent when a schedule starts it. */
  readonly runId?: string;
}

/** Reads everything of companies; returns how the run ended. */
export async function backfill(input: BackfillInput = {}): Promise<RunState> {
  return await readCompanies('full', input);
}

/** Reads recent updates of all companies; returns how the run ended. */
export async function backfillUpdates(input: BackfillInput = {}): Promise<RunState> {
  return await readCompanies('reconcile', input);
}

/** Reads companies in lanes. Each takes the next company when it has read one, so a large one delays no other. */
async function readCompanies(kind: RunKind, { runId = uuid4() }: BackfillInput): Promise<RunState> {
  try {
    const { lanes, ...run } = await starting.beginRun({ runId, kind });
    const lane = (number: number) => reading.readCompanies({ runId, kind, lane: number, ...run });
    await Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)));
    const state = await noting.concludeRun({ runId });
    await startChecks({ runId, kinds: kind === 'full' ? checkKinds : ['bills', 'connections'] });
    return state;
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => fail(runId, kind, 'cancelled'));
    else if (error instanceof ActivityFailure) return await fail(runId, kind, reasonOf(error));
    throw error;
  }
}

async function fail(runId: string, kind: RunKind, error: string): Promise<RunState> {
  await noting.failRun({ runId, kind, error });
  return 'failed';
}

function reasonOf({ cause, message }: ActivityFailure): string {
  if (cause instanceof ApplicationFailure) return `${cause.type}: ${cause.message}`;
  return cause instanceof CancelledFailure ? 'cancelled' : String(cause ?? message);
}
