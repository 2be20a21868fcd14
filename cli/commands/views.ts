import { describeBlocked, refreshNow } from '../../app/typed-views.ts';
import { counted } from '../../contract/words.ts';
import type { RefreshedViews } from '../../db/fields/refresh-views.ts';
import { recorded } from '../../operations/recorded.ts';
import { asOperation } from '../as-operation.ts';
import { print, printJson } from '../print.ts';
import { withWarehouse } from '../warehouse.ts';

/**
 * `metersync views refresh`: makes the typed views again; status 1 if a view of the user's own blocks one.
 */
export async function viewsRefresh(options: { json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db, context }) => {
    const refreshed = await recorded(
      db,
      asOperation(context.settings, 'views refresh', {}),
      () => refreshNow(db),
      (done) => [inWords(done), ...done.blocked.map(describeBlocked)].join('; '),
    );
    if (options.json) printJson(refreshed);
    else print(...describe(refreshed));
    if (refreshed.blocked.length > 0) process.exitCode = 1;
  });
}

function describe(refreshed: RefreshedViews): string[] {
  const { made, blocked, warnings } = refreshed;
  const lines = made.map((view) => `fields.${view}`);
  return [...lines, inWords(refreshed), ...blocked.map(describeBlocked), ...warnings];
}

const inWords = ({ made, unchanged }: RefreshedViews): string =>
  `${counted(made.length, 'view')} made, ${unchanged} as they were`;
