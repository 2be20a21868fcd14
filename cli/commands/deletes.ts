import { nameInWords } from '../../contract/words.ts';
import type { Database } from '../../db/connection/connect.ts';
import { type InferredDeletes, readDeletes } from '../../db/deletes/decide.ts';
import { type DeletedRow, listDeletedRows, sumDeletedRows } from '../../db/deletes/list-rows.ts';
import { type Decision, decideDeletes, describeDecided } from '../../operations/decide-deletes.ts';
import { describeSum } from '../../operations/describe-deletes.ts';
import { recorded } from '../../operations/recorded.ts';
import { amount } from '../../operations/report/amounts.ts';
import { asOperation } from '../as-operation.ts';
import { asJson, print } from '../print.ts';
import { tableOf } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface DeletesOptions {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** `metersync deletes list`: lists the rows that runs found gone from the service; of one run each of them. */
export async function deletesList(run: string | undefined, options: DeletesOptions): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) =>
    print(...(run === undefined ? await list(db, options) : await listOf(db, run, options))),
  );
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

/** Lists all rows that a run found gone, and what they add up to. */
async function listOf(db: Database, run: string, { json }: DeletesOptions): Promise<string[]> {
  const rows = await listDeletedRows(db, run);
  const sums = await sumDeletedRows(db, run);
  if (json) return [asJson({ deletes: await readDeletes(db, { all: true, run }), rows, sums })];
  if (rows.length === 0) return [`Run ${run} found no deletion.`];
  const says = ({ listedAsDeleted }: DeletedRow) => (listedAsDeleted ? 'deleted' : 'not listed');
  const cost = (row: DeletedRow) =>
    row.cost === null ? '' : `${amount(row.cost)} ${row.currency ?? ''}`.trim();
  return [
    ...tableOf([
      {
        head: ['company', 'resource', 'provider', 'name', 'date', 'cost', 'service says', 'state', 'id'],
        rows: rows.map((row) => [
          row.company ?? row.companyId ?? '',
          nameInWords(row.resource),
          row.provider ?? '',
          row.name ?? '',
          row.date ?? '',
          cost(row),
          says(row),
          row.state,
          row.id,
        ]),
      },
      {
        head: ['what', 'date and cost', 'service says'],
        rows: rows.map((row) => [
          [
            [row.provider, row.name ?? row.id].filter((part) => part !== null).join(' '),
            row.company ?? row.companyId ?? '',
          ],
          [row.date ?? '', cost(row)],
          [says(row), row.state],
        ]),
      },
    ]),
    ...sums.map(describeSum),
    ...(rows.some(({ state }) => state === 'quarantined')
      ? [`To decide: metersync deletes approve ${run}, or metersync deletes reject ${run}`]
      : []),
  ];
}

/** Lists deletions that wait for a decision, by run, company and resource; with `--all` decided ones too. */
async function list(db: Database, { all = false, json }: DeletesOptions): Promise<string[]> {
  const found = await readDeletes(db, { all });
  if (json) return [asJson({ deletes: found })];
  if (found.length === 0) return [all ? 'No run found any deletion.' : 'No deletion waits for a decision.'];
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
  return [
    ...tableOf([
      {
        head: ['run', 'company', 'resource', 'state', 'reason', 'rows', 'for example'],
        rows: found.map(wide),
      },
      { head: ['of', 'what', 'rows'], rows: found.map(narrow) },
    ]),
    'To see each row with its cost: metersync deletes list RUN',
  ];
}

/** Names the examples, each with the id that other commands take. */
const examplesOf = ({ examples, names }: Pick<InferredDeletes, 'examples' | 'names'>): string[] =>
  examples.map((id, at) => (names[at] ? `${names[at]} (${id})` : id));
