import { migrate } from '../../app/prepare.ts';
import { openContext } from '../context.ts';

/** `metersync migrate`: brings the warehouse's schema up to date. */
export async function migrateCommand(): Promise<void> {
  const context = await openContext({ temporal: false, service: false, quiet: true });
  try {
    const { applied } = await migrate(context.settings, context.stack.databaseUrl, context.log);
    console.log(applied === 0 ? 'The warehouse is up to date.' : `Applied ${applied} migrations.`);
  } finally {
    await context.stop();
  }
}
