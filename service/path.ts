import type { Endpoint, ListingFilter } from '../contract/endpoints.ts';
import { Failure } from '../contract/failures.ts';

const placeholder = /\{(\w+)\}/g;

export interface PathRequest {
  readonly endpoint: Endpoint;
  /** Values of the placeholders: companyId, meterId, id, start, end, … */
  readonly params: Readonly<Record<string, string>>;
  /** Filters of the catalogue to apply; a filter that the endpoint lacks is ignored. */
  readonly filters?: readonly ListingFilter[] | undefined;
  /** 1-indexed (service.md 8); left out for a single record. */
  readonly page?: number | undefined;
}

/**
 * Builds the path and query of a request, relative to the versioned base address. Leaves out a query
 * parameter if its placeholder has no value.
 * @throws Failure SERVICE_REQUEST_REFUSED when a placeholder of the path has no usable value
 */
export function requestPath({ endpoint, params, filters = [], page }: PathRequest): string {
  const path = endpoint.path.replace(placeholder, (_, name: string) =>
    segment(params[name], name, endpoint.path),
  );
  const parameters = new Map<string, string>();
  const templates = Object.assign({}, endpoint.query, ...filters.map((filter) => endpoint[filter]));
  for (const [name, template] of Object.entries<string>(templates)) {
    const value = filled(template, params);
    if (value !== undefined) parameters.set(name, value);
  }
  if (page !== undefined) parameters.set('page', String(page));
  const search = [...parameters].map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&');
  return search === '' ? path : `${path}?${search}`;
}

/** Encodes a value as one segment. Refuses "." and "..", which would lead to another resource. */
function segment(value: string | undefined, name: string, path: string): string {
  if (value === undefined || value === '' || value === '.' || value === '..') {
    throw new Failure(
      'SERVICE_REQUEST_REFUSED',
      `${path} needs a value for {${name}}, not ${value === undefined ? 'none' : JSON.stringify(value)}`,
    );
  }
  return encode(value);
}

function filled(template: string, params: Readonly<Record<string, string>>): string | undefined {
  const names = [...template.matchAll(placeholder)].map((match) => match[1] ?? '');
  if (names.some((name) => params[name] === undefined)) return undefined;
  return template.replace(placeholder, (_, name: string) => params[name] ?? '');
}

function encode(value: string): string {
  // encodeURIComponent throws at a lone surrogate, which no id of the service can contain.
  return encodeURIComponent(value.toWellFormed());
}
