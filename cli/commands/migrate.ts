import { migrate } from '../../app/prepare.ts';
import { describeBlocked } from '../../app/typed-views.ts';
import { counted } from '../../contract/words.ts';
import { openContext } from '../context.ts';
import { print, say } from '../print.ts';

/** `metersync migrate`: migrates the warehouse's schema to the newest version. */
export async function migrateCommand(): Promise<void> {
  const context = await openContext({ temporal: false, service: false, quiet: true });
  try {
    const { settings, stack, log, insecure } = context;
    for (const { saw, todo } of insecure) say(`Warning: ${saw}. ${todo}`);
    const { applied, blocked, warnings, rolesMissing } = await migrate(settings, stack.databaseUrl, log);
    print(applied === 0 ? 'The warehouse is up to date.' : `Applied ${counted(applied, 'migration')}.`);
    for (const view of blocked) print(describeBlocked(view));
    for (const warning of warnings) print(warning);
    if (rolesMissing.length > 0) {
      print(
        `This user may not make roles, so ${rolesMissing.join(' and ')} are not there. To have them, let a user that may`,
        `run "${rolesMissing.map((role) => `create role ${role};`).join(' ')}", then migrate again. Nothing else needs them.`,
      );
    }
  } finally {
    await context.stop();
  }
}
