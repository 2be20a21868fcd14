import type { Metrics } from '../../health/registry.ts';
import type { WatchedPart } from '../process/private-port.ts';
import { readVersion } from '../process/version.ts';

export interface Build {
  /** How many migrations this process knows; empty if it needs none. */
  readonly schema: string;
  /** The build id of its workers; empty before they run, and if there are none. */
  buildId(): string;
}

/** Measures what every process has: its parts, their version, and whether they are ready. */
export function observeProcess(metrics: Metrics, parts: readonly WatchedPart[], build: Build): void {
  const version = readVersion();
  metrics.read('metersync_build_info', () =>
    parts.map(({ name }) => ({
      value: 1,
      part: name,
      version,
      schema: name === 'worker' ? build.schema : '',
      build_id: name === 'worker' ? build.buildId() : '',
    })),
  );
  metrics.read('metersync_ready', () =>
    Promise.all(
      parts.map(async ({ name, ready }) => ({ value: (await ready()) === undefined ? 1 : 0, part: name })),
    ),
  );
}
