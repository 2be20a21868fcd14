import { describeBlocked, type RefreshedViews, refreshNow } from '../../app/typed-views.ts';
import { withWarehouse } from '../warehouse.ts';

/** `metersync views refresh`: 1 when a view of the user's own keeps one from holding every value. */
export async function viewsRefresh(options: { json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const refreshed = await refreshNow(db);
    console.log(options.json ? JSON.stringify(refreshed) : describe(refreshed));
    if (refreshed.blocked.length > 0) process.exitCode = 1;
  });
}

function describe({ made, unchanged, blocked }: RefreshedViews): string {
  const lines = made.map((view) => `analytics.${view}`);
  lines.push(`${made.length} views made, ${unchanged} as they were`);
  return [...lines, ...blocked.map(describeBlocked)].join('\n');
}
