import '../../cli/quick-start.ts';
import { epochVariable, hurriedClock, hurriedHealth } from './pace.ts';

/** `metersync worker`, for whose looks a second is a minute. */
const wallClock = hurriedClock(Number(process.env[epochVariable]));
const { start } = await import('../../cli/commands/start.ts');
await start(['worker'], {
  overrides: ({ readHealth }) => ({
    dependencies: { wallClock, readHealth: async (db) => hurriedHealth(await readHealth(db)) },
  }),
});
process.exit();
