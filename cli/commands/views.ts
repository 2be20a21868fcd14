import { describeBlocked, refreshNow } from '../../app/typed-views.ts';
import { counted } from '../../contract/words.ts';
import type { RefreshedViews } from '../../db/fields/refresh-views.ts';
import { print, printJson } from '../print.ts';
import { withWarehouse } from '../warehouse.ts';

/**
 * `metersync views refresh`: makes the typed views again; status 1 if a view of the user's own blocks one.
 */
export async function viewsRefresh(options: { json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const refreshed = await refreshNow(db);
    if (options.json) printJson(refreshed);
    else print(...describe(refreshed));
    if (refreshed.blocked.length > 0) process.exitCode = 1;
  });
}

function describe({ made, unchanged, blocked, warnings }: RefreshedViews): string[] {
  const lines = made.map((view) => `fields.${view}`);
  lines.push(`${counted(made.length, 'view')} made, ${unchanged} as they were`);
  return [...lines, ...blocked.map(describeBlocked), ...warnings];
}
