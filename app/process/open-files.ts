import { httpLimits } from '../../receiver/http-limits.ts';

/**
 * Files that a receiver or worker needs besides the sockets of strangers: some 60 for a worker's connections
 * to Postgres, Temporal and the service, as many for its threads, and a reserve. With fewer, Node aborts
 * without mentioning files when it starts a thread, or resets sockets without a notice.
 */
const filesOfOurs = 256;

/** Files with which a receiver may have all the sockets that it takes. */
const filesEnough = filesOfOurs + httpLimits.connectionsMax;

/**
 * Returns how many files and sockets this process may open; Infinity if there is no limit, or it is not
 * known. Node has raised the limit as far as it can.
 */
export function openFilesMax(): number {
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft?: number | 'unlimited' } };
  };
  const max = userLimits?.open_files?.soft;
  return typeof max === 'number' ? max : Number.POSITIVE_INFINITY;
}

/**
 * Judges how many files a receiver or worker may open.
 * @returns the bound of a receiver's sockets; a warning if it is lower than usual; or why neither can run
 */
export function judgeOpenFiles(max: number): {
  readonly connectionsMax: number;
  readonly warning?: string;
  readonly refusal?: string;
} {
  const raise = 'Raise it: ulimit -n, LimitNOFILE of systemd, or ulimits of a container.';
  if (max < filesOfOurs) {
    const refusal = `This process may open ${max} files and sockets, and needs at least ${filesOfOurs}. ${raise}`;
    return { connectionsMax: 0, refusal };
  }
  if (max >= filesEnough) return { connectionsMax: httpLimits.connectionsMax };
  const connectionsMax = Math.max(max - filesOfOurs, filesOfOurs / 4);
  const warning = `This process may open ${max} files and sockets, so the receiver accepts ${connectionsMax} connections at once instead of ${httpLimits.connectionsMax}. For all of them it needs ${filesEnough}. ${raise}`;
  return { connectionsMax, warning };
}
