/** What tells deployments of one Prometheus apart. */
const deployment = ['job', 'namespace'] as const;

const aggregated =
  (how: 'max' | 'min' | 'sum') =>
  (series: string, ...labels: readonly string[]): string =>
    `${how} by (${[...deployment, ...labels].join(', ')}) (${series})`;

/** Aggregate the series of a deployment, by labels that tell its facts apart. */
export const max = aggregated('max');
export const min = aggregated('min');
export const sum = aggregated('sum');

export const increase = (series: string, minutes: number): string => sum(`increase(${series}[${minutes}m])`);

/** Share of a counter's increase that has some labels; nothing while there is none at all. */
export const share = (name: string, labels: string, minutes: number): string =>
  `${increase(`${name}{${labels}}`, minutes)} / (${increase(name, minutes)} > 0)`;

/** Whether nobody has reported a series for a day. Until then the alarm names the deployment. */
export const nobodyReports = (series: string): string => `absent_over_time(${series}[1d])`;

/** Whether no process of a part is ready. One that is gone counts for a day: then only others may be left. */
export const noneReady = (part: string): string => {
  const series = `metersync_ready{part="${part}"}`;
  return `${max(`${series} or 0 * last_over_time(${series}[1d])`)} < 1 or ${nobodyReports(series)}`;
};

/** Series whose names other programs of a Prometheus have, too: only those of our processes. */
export const ofOurs = (series: string): string =>
  `${series} and on (${deployment.join(', ')}, instance) metersync_build_info`;

export const ourIncrease = (series: string, minutes: number): string =>
  sum(ofOurs(`increase(${series}[${minutes}m])`));
