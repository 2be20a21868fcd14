/** A step of a path: a field by its name, or `any`: any element of an array, any field of a map. */
export type PathStep = { readonly field: string } | 'any';

/** Escapes a step of a JSON Pointer (RFC 6901). The step `*` means any, so an asterisk in a name is `~2`. */
export const stepOf = (field: string): string =>
  field.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('*', '~2');

export const anyStep = '*';

/** Returns the steps of a path; no step for a record itself, whose path is ''. */
export function stepsOf(path: string): PathStep[] {
  return path
    .split('/')
    .slice(1)
    .map((step) => (step === anyStep ? 'any' : { field: nameOf(step) }));
}

const nameOf = (step: string): string =>
  step.replaceAll('~2', '*').replaceAll('~1', '/').replaceAll('~0', '~');
