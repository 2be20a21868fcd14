import { migrate } from '../../app/prepare.ts';
import { describeBlocked } from '../../app/typed-views.ts';
import { openContext } from '../context.ts';

/** `metersync migrate`: brings the warehouse's schema up to date. */
export async function migrateCommand(): Promise<void> {
  const context = await openContext({ temporal: false, service: false, quiet: true });
  try {
    const { settings, stack, log } = context;
    const { applied, blocked, rolesMissing } = await migrate(settings, stack.databaseUrl, log);
    console.log(applied === 0 ? 'The warehouse is up to date.' : `Applied ${applied} migrations.`);
    for (const view of blocked) console.log(describeBlocked(view));
    if (rolesMissing.length > 0) {
      console.log(
        `This user may not make roles, so ${rolesMissing.join(' and ')} are not there. To have them, let a user that may\nrun "${rolesMissing.map((role) => `create role ${role};`).join(' ')}", then migrate again. Nothing else needs them.`,
      );
    }
  } finally {
    await context.stop();
  }
}
