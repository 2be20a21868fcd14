/** Settings of earlier versions, and what to do instead of setting them. */
const removed: Readonly<Record<string, string>> = {
  SERVICE_MAX_PER_SECOND:
    'lower SERVICE_MAX_CONCURRENCY; a worker slows down by itself when the service answers 429',
};

/** Names each variable that is set but no longer has an effect. */
export function removedSettings(given: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(removed)
    .filter(([name]) => given[name] !== undefined)
    .map(([name, instead]) => `${name} no longer has an effect: ${instead}`);
}
