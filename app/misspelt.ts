import leven from 'leven';

/** Variables that Temporal's library reads, and with them settings. */
const ofTemporal = [
  'TEMPORAL_NAMESPACE',
  'TEMPORAL_API_KEY',
  'TEMPORAL_PROFILE',
  'TEMPORAL_CONFIG_FILE',
  'TEMPORAL_TLS',
  'TEMPORAL_TLS_CLIENT_CERT_PATH',
  'TEMPORAL_TLS_CLIENT_CERT_DATA',
  'TEMPORAL_TLS_CLIENT_KEY_PATH',
  'TEMPORAL_TLS_CLIENT_KEY_DATA',
  'TEMPORAL_TLS_SERVER_CA_CERT_PATH',
  'TEMPORAL_TLS_SERVER_CA_CERT_DATA',
  'TEMPORAL_TLS_SERVER_NAME',
  'TEMPORAL_TLS_DISABLE_HOST_VERIFICATION',
] as const;

/**
 * Says of each variable that is no setting, but nearly the name of one that is not set, which was probably
 * meant. It quotes no value.
 * @param given the variables that are set, with those of files
 * @param settings names of settings
 */
export function misspelt(
  given: Readonly<Record<string, string>>,
  settings: readonly string[],
): readonly string[] {
  const names = [...settings, ...ofTemporal];
  const unset = names.filter((name) => !isSet(given, name));
  return Object.keys(given)
    .filter((name) => !names.includes(name))
    .flatMap((name) => {
      const meant = unset.find((other) => isNear(name, other));
      return meant === undefined ? [] : [`${name} is no setting; ${meant} is not set: was it meant?`];
    });
}

/** Whether a setting has a value, from a file or not. */
function isSet(given: Readonly<Record<string, string>>, name: string): boolean {
  const own = name.replace(/_FILE$/, '');
  return given[own] !== undefined || given[`${own}_FILE`] !== undefined;
}

/** From this many letters on two may be wrong: shorter names of other programs are as near to ours. */
const longName = 14;

/** Whether few letters differ; two neighbours that changed places count as one. */
function isNear(name: string, other: string): boolean {
  const [one, two] = [lettersOf(name), lettersOf(other)];
  const distance = leven(one, two, { maxDistance: 3 });
  if (distance === 2) return two.length >= longName || sorted(one) === sorted(two);
  return distance < 2;
}

const lettersOf = (name: string): string => name.toUpperCase().replace(/[^A-Z0-9]/g, '');
const sorted = (letters: string): string => [...letters].sort().join('');
