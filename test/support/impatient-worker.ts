import '../../cli/quick-start.ts';

/** `metersync worker`, whose next poll has to begin within POLL_WITHIN_MS. */
const pollWithinMs = Number(process.env.POLL_WITHIN_MS);
const { start } = await import('../../cli/commands/start.ts');
await start(['worker'], { overrides: () => ({ pollWithinMs }) });
process.exit();
