import module from 'node:module';
import { join } from 'node:path';

/** Has a process load its code in less time. Imported for that alone, and before the rest. */

// Each start after the first finds its code compiled. Beside the code: in a folder that others can write to it could be replaced.
module.enableCompileCache(join(import.meta.dirname, '../.metersync/compiled'));

/**
 * Node parses what a package exports again for each import of one of its files, to learn whether that is a module. Drizzle
 * exports some hundred paths and has as many files: told that they are modules, each start takes 0.6 s of CPU less.
 */
const drizzle = '/node_modules/drizzle-orm/';

/** Where a path of the package leads: to the same file, whoever imports it. */
const found = new Map<string, module.ResolveFnOutput>();

module.registerHooks({
  resolve: (specifier, context, next) => {
    // What is required has files of its own.
    if (!context.conditions.includes('import')) return next(specifier, context);
    const { parentURL = '' } = context;
    if (specifier.startsWith('.') && specifier.endsWith('.js') && parentURL.includes(drizzle)) {
      return { url: new URL(specifier, parentURL).href, format: 'module', shortCircuit: true };
    }
    if (specifier !== 'drizzle-orm' && !specifier.startsWith('drizzle-orm/')) return next(specifier, context);
    const known = found.get(specifier) ?? next(specifier, context);
    found.set(specifier, known);
    return { ...known, shortCircuit: true };
  },
});
