import { counted } from '../../contract/words.ts';
import { sqlMessage, sqlState } from '../../db/connection/failures.ts';
import {
  type AppliedTypedViews,
  applyTypedViews,
  type BlockedView,
  typedViewsSql,
} from '../../db/fields/typed-views.ts';
import { recorded } from '../../operations/recorded.ts';
import { asOperation } from '../as-operation.ts';
import { print, printJson } from '../print.ts';
import { withWarehouse } from '../warehouse.ts';

const [notAllowed, locked] = ['42501', '55P03'];

/** `metersync views apply`: ends with status 1 if a view cannot be replaced because something depends on it. */
export async function viewsApply(options: { json?: boolean; print?: boolean }): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db, context }) => {
    if (options.print) {
      const statements = await typedViewsSql(db);
      if (options.json) printJson(statements);
      else print(...statements.map((statement) => `${statement};`));
      return;
    }
    const done = await recorded(
      db,
      asOperation(context.settings, 'views apply', {}),
      () => applyTypedViews(db).catch(explain),
      (done) => [inWords(done), ...done.blocked.map(describeBlocked)].join('; '),
    );
    if (options.json) printJson(done);
    else print(...done.applied, inWords(done), ...done.blocked.map(describeBlocked));
    if (done.blocked.length > 0) process.exitCode = 1;
  });
}

function explain(error: unknown): never {
  if (sqlState(error) === locked)
    throw new Error('another session is reading or changing a view: try again', { cause: error });
  if (sqlState(error) !== notAllowed) throw error;
  throw new Error(
    `only the owner of the warehouse can change its views (${sqlMessage(error)}): run this as the user that runs metersync migrate, or give the output of metersync views apply --print to the owner`,
    { cause: error },
  );
}

const inWords = ({ applied }: AppliedTypedViews): string =>
  applied.length === 0 ? 'No view had to change.' : `Applied ${counted(applied.length, 'view')}.`;

export function describeBlocked({ view, by, error }: BlockedView): string {
  if (by.length === 0) return `${view} could not be applied: ${error}`;
  const built = by.length === 1 ? 'depends on it. Drop that view' : 'depend on it. Drop those views';
  return `${view} was not changed, because ${by.join(', ')} ${built}, run metersync views apply, and recreate what you dropped.`;
}
