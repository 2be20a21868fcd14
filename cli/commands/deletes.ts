import { countedRows, nameInWords } from '../../contract/words.ts';
import type { Database } from '../../db/connection/connect.ts';
import { type InferredDeletes, readDeletes } from '../../db/deletes/decide.ts';
import { type DeletedRow, listDeletedRows, sumDeletedRows } from '../../db/deletes/list-rows.ts';
import { type Decision, decideDeletes, describeDecided } from '../../operations/decide-deletes.ts';
import { deletionState, describeSum, serviceSays } from '../../operations/describe-deletes.ts';
import { recorded } from '../../operations/recorded.ts';
import { amount } from '../../operations/report/amounts.ts';
import { asOperation } from '../as-operation.ts';
import { asJson, print } from '../print.ts';
import { paragraph } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface DeletesOptions {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** `metersync deletes list`: lists the rows that runs found gone from the service, one by one for one run. */
export async function deletesList(run: string | undefined, options: DeletesOptions): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) =>
    print(...(run === undefined ? await list(db, options) : await listOf(db, run, options))),
  );
}

/** `metersync deletes approve`, `reject` and `undo`: decides on such rows. */
export async function deletesDecide(
  decision: Decision,
  run: string,
  options: { note?: string; json?: boolean },
): Promise<void> {
  const { note, json } = options;
  await withWarehouse({ temporal: false }, async ({ db, context }) => {
    const done = await recorded(
      db,
      asOperation(context.settings, `deletes ${decision}`, { run }),
      () => decideDeletes(db, decision, run),
      (done) => describeDecided(done, note),
    );
    print(json ? asJson(done) : describeDecided(done, note));
  });
}

async function listOf(db: Database, run: string, { json }: DeletesOptions): Promise<string[]> {
  const rows = await listDeletedRows(db, run);
  const sums = await sumDeletedRows(db, run);
  if (json) return [asJson({ deletes: await readDeletes(db, { all: true, run }), rows, sums })];
  if (rows.length === 0) return [`Run ${run} found no deletion.`];
  const cost = (row: DeletedRow) =>
    row.cost === null ? '' : `${amount(row.cost)} ${row.currency ?? ''}`.trim();
  return [
    ...rows.flatMap((row) => {
      const { company, companyId, resource, provider, name, date, state, id } = row;
      const what = [provider, name, date, cost(row), serviceSays(row.listedAsDeleted)].filter((part) => part);
      return paragraph(
        '',
        `${company ?? companyId ?? 'no company'}: ${nameInWords(resource)} ${id} (${deletionState(state)}): ${what.join(', ')}`,
      );
    }),
    ...sums.map(describeSum),
    ...(rows.some(({ state }) => state === 'quarantined')
      ? [`To decide: metersync deletes approve ${run}, or metersync deletes reject ${run}`]
      : []),
  ];
}

/** Lists deletions that wait for a decision, by run, company and resource; `--all` adds decided ones. */
async function list(db: Database, { all = false, json }: DeletesOptions): Promise<string[]> {
  const found = await readDeletes(db, { all });
  if (json) return [asJson({ deletes: found })];
  if (found.length === 0) return [all ? 'No run found any deletion.' : 'No deletion waits for a decision.'];
  return [
    ...found.flatMap(({ runId, company, companyId, resource, state, reason, rows, ...of }) => {
      const whose = companyId === null ? '' : `, ${company ?? companyId}`;
      return paragraph(
        '',
        `run ${runId}${whose}: ${countedRows(rows, resource)}, ${serviceSays(reason === 'listed')}, ${deletionState(state)}; for example ${examplesOf(of).join(', ')}`,
      );
    }),
    'To see each row with its cost: metersync deletes list RUN',
  ];
}

const examplesOf = ({ examples, names }: Pick<InferredDeletes, 'examples' | 'names'>): string[] =>
  examples.map((id, at) => (names[at] ? `${names[at]} (${id})` : id));
