import { nameInWords } from '../../contract/words.ts';
import type { Database } from '../../db/connection/connect.ts';
import { type InferredDeletes, readDeletes } from '../../db/deletes/decide.ts';
import { type Decision, decideDeletes, describeDecided } from '../../operations/decide-deletes.ts';
import { recorded } from '../../operations/recorded.ts';
import { asOperation } from '../as-operation.ts';
import { asJson, print } from '../print.ts';
import { tableOf } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface DeletesOptions {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** `metersync deletes list`: lists the rows that runs found gone from the service. */
export async function deletesList(run: string | undefined, options: DeletesOptions): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => print(...(await list(db, run, options))));
}

/** `metersync deletes approve`, `reject` and `undo`: decides on such rows. */
export async function deletesDecide(
  decision: Decision,
  run: string,
  options: { json?: boolean },
): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db, context }) => {
    const done = await recorded(
      db,
      asOperation(context.settings, `deletes ${decision}`, { run }),
      () => decideDeletes(db, decision, run),
      describeDecided,
    );
    print(options.json ? asJson(done) : describeDecided(done));
  });
}

/** Lists deletions that wait for a decision; decided ones too of one run or with `--all`. */
async function list(
  db: Database,
  run: string | undefined,
  { all = false, json }: DeletesOptions,
): Promise<string[]> {
  const deletes = await readDeletes(db, { all: all || run !== undefined });
  const found = run === undefined ? deletes : deletes.filter(({ runId }) => runId === run.toLowerCase());
  if (json) return [asJson({ deletes: found })];
  if (found.length === 0 && run !== undefined) return [`Run ${run} inferred no deletion.`];
  if (found.length === 0)
    return [all ? 'No run inferred any deletion.' : 'No deletion waits for a decision.'];
  const wide = ({ runId, company, companyId, resource, state, reason, rows, ...of }: InferredDeletes) => [
    runId,
    company ?? companyId ?? '',
    nameInWords(resource),
    state,
    reason,
    rows,
    examplesOf(of).join(', '),
  ];
  const narrow = ({ runId, company, companyId, resource, state, reason, rows, ...of }: InferredDeletes) => [
    [`run ${runId}`, ...(companyId === null ? [] : [`company ${company ?? companyId}`]), ...examplesOf(of)],
    [nameInWords(resource), state, reason],
    rows,
  ];
  return tableOf([
    {
      head: ['run', 'company', 'resource', 'state', 'reason', 'rows', 'for example'],
      rows: found.map(wide),
    },
    { head: ['of', 'what', 'rows'], rows: found.map(narrow) },
  ]);
}

/** Names the examples, each with the id that other commands take. */
const examplesOf = ({ examples, names }: Pick<InferredDeletes, 'examples' | 'names'>): string[] =>
  examples.map((id, at) => (names[at] ? `${names[at]} (${id})` : id));
