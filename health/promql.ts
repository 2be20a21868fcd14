/** The labels that distinguish the deployments of one Prometheus. */
const deployment = ['job', 'namespace'] as const;

const aggregated =
  (how: 'max' | 'min' | 'sum') =>
  (series: string, ...labels: readonly string[]): string =>
    `${how} by (${[...deployment, ...labels].join(', ')}) (${series})`;

/** Aggregate the series of a deployment by labels. */
export const max = aggregated('max');
export const min = aggregated('min');
const sum = aggregated('sum');

export const increase = (series: string, minutes: number): string => sum(`increase(${series}[${minutes}m])`);

/** The share of a counter's increase that has these labels. Without any increase there is no value. */
export const share = (name: string, labels: string, minutes: number): string =>
  `${increase(`${name}{${labels}}`, minutes)} / (${increase(name, minutes)} > 0)`;

/** Whether no process has reported a series for a day. Within a day the alarm can still name the deployment. */
export const nobodyReports = (series: string): string => `absent_over_time(${series}[1d])`;

/** Whether no process of a part is ready. A process that has ended counts as not ready for a day. */
export const noneReady = (part: string): string => {
  const series = `metersync_ready{part="${part}"}`;
  return `${max(`${series} or 0 * last_over_time(${series}[1d])`)} < 1 or ${nobodyReports(series)}`;
};

/** Like `increase`, for a series that other programs export, too. It includes only metersync's processes. */
export const ourIncrease = (series: string, minutes: number): string =>
  sum(`increase(${series}[${minutes}m]) and on (${deployment.join(', ')}, instance) metersync_build_info`);
