/** Settings of earlier versions, and what to do instead of setting them. */
const removed: Readonly<Record<string, string>> = {
  MAKE_SCHEDULES: 'set BACKFILL_CRON and RECONCILE_EVERY to none for no schedules',
};

/** Names each variable that is set but no longer has an effect. */
export function removedSettings(given: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.entries(removed)
    .filter(([name]) => given[name] !== undefined)
    .map(([name, instead]) => `${name} no longer has an effect: ${instead}`);
}
