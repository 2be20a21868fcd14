import { createHash } from 'node:crypto';

/** Where notifications go. */
export interface NotifyTarget {
  readonly kind: 'slack' | 'pagerduty' | 'alertmanager' | 'json';
  /** Kind, host and a digest of the address, which may hold a secret. */
  readonly name: string;
  readonly url: string;
  /** The key of PagerDuty. */
  readonly key?: string;
  /** No error contains any of them. */
  readonly secrets: readonly string[];
}

const addressed = /^(slack|alertmanager|json)\+(https?:\/\/\S+)$/;
const pagerDuty = /^pagerduty(?:\+(https?))?:\/\/([\w-]+)(?:@([\w.:[\]-]+))?$/;

/** Reads an entry of NOTIFY_URLS; undefined if it is none. */
export function parseTarget(text: string): NotifyTarget | undefined {
  const [, kind, address] = addressed.exec(text) ?? [];
  if (kind !== undefined && address !== undefined && URL.canParse(address))
    return addressedTarget(kind as NotifyTarget['kind'], text, new URL(address));
  const [whole, scheme = 'https', key = '', host = 'events.pagerduty.com'] = pagerDuty.exec(text) ?? [];
  const url = `${scheme}://${host}/v2/enqueue`;
  if (whole === undefined || !URL.canParse(url)) return undefined;
  return { kind: 'pagerduty', name: nameOf('pagerduty', host, text), url, key, secrets: [key] };
}

function addressedTarget(kind: NotifyTarget['kind'], text: string, url: URL): NotifyTarget {
  const path = kind === 'alertmanager' ? `${url.pathname.replace(/\/$/, '')}/api/v2/alerts` : url.pathname;
  const secrets = [
    url.username,
    url.password,
    url.search,
    ...(kind === 'alertmanager' ? [] : [url.pathname]),
  ];
  return {
    kind,
    name: nameOf(kind, url.host, text),
    url: new URL(`${path}${url.search}`, url).href,
    secrets: [url.href, ...secrets].filter((secret) => secret.length > 1),
  };
}

const nameOf = (kind: string, host: string, text: string): string =>
  `${kind} ${host} ${createHash('sha256').update(text).digest('hex').slice(0, 6)}`;
