interface Removed {
  readonly instead: string;
  /** Whether a start is refused, because something that must not change unnoticed depended on the setting. */
  readonly refused?: true;
}

const notify =
  'set NOTIFY_URL for Slack or an address that accepts JSON; use Alertmanager for others, with deploy/prometheus/rules.yml';
const signIn =
  'put a proxy that asks for passwords before the console, and set CONSOLE_USER_HEADER and CONSOLE_TRUSTED_PROXIES';
const retention = 'set RETENTION_DAYS for bodies of events and parts of runs';

const removed: Readonly<Record<string, Removed>> = {
  MAKE_SCHEDULES: { instead: 'set BACKFILL_CRON and RECONCILE_EVERY to none for no schedules' },
  RECONCILE_DAYS: {
    instead:
      'a reconcile reads the updates of today and the two days before, and the backfill of each night reads the rest',
  },
  SERVICE_MAX_PER_SECOND: {
    instead: 'lower SERVICE_MAX_CONCURRENCY; a worker slows down by itself when the service answers 429',
  },
  // Without an error, bodies that should be kept would be dropped.
  JOURNAL_PAYLOAD_DAYS: { instead: retention, refused: true },
  RUNS_DAYS: { instead: retention, refused: true },
  // Without an error, the users of the file could not sign in.
  CONSOLE_PASSWORDS_FILE: { instead: signIn, refused: true },
  // Without an error, alarms would reach nobody.
  NOTIFY_URLS: { instead: notify, refused: true },
  NOTIFY_URLS_FILE: { instead: notify, refused: true },
  // Without an error, hosts that it names would be refused, or other hosts accepted.
  PLAINTEXT_HOSTS: {
    instead:
      'set STRICT_TLS to outside if Postgres and Temporal are on your own networks; all other connections need TLS',
    refused: true,
  },
  // Without an error, an embedded Postgres would silently take the place of the warehouse.
  SECRETS_DIR: {
    instead: 'name each file, for example DATABASE_URL_FILE=/run/secrets/DATABASE_URL',
    refused: true,
  },
};

/** Names each variable that is set but no longer has an effect. */
export function removedSettings(given: Readonly<Record<string, string | undefined>>): {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
} {
  const set = Object.entries(removed).filter(([name]) => given[name] !== undefined);
  const sentence = ([name, { instead }]: (typeof set)[number]): string =>
    `${name} no longer has an effect: ${instead}`;
  return {
    problems: set.filter(([, { refused }]) => refused).map(sentence),
    warnings: set.filter(([, { refused }]) => !refused).map(sentence),
  };
}
