import '../../cli/quick-start.ts';
import { epochVariable, hurriedClock, hurriedHealth } from './pace.ts';

/** Runs `metersync worker` with a clock on which a second is a minute for its looks. */
const wallClock = hurriedClock(Number(process.env[epochVariable]));
const { start } = await import('../../cli/commands/start.ts');
await start(['worker'], {
  overrides: ({ readHealth }) => ({
    dependencies: { wallClock, readHealth: async (db) => hurriedHealth(await readHealth(db)) },
  }),
});
process.exit();
