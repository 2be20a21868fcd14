import leven from 'leven';
import type { Executor } from '../../db/connection/connect.ts';
import { listRelations, type Relation, readColumns, readSchemas } from '../../db/read/relations.ts';

/** A name matches no table or view, or several, or one without companies; the message says what there is. */
export class UnknownRelation extends Error {}

const nearMax = 5;

/**
 * Finds a table or view by its name. Where several schemas have it, that of analytics is meant, else it needs the
 * schema.
 * @throws UnknownRelation that lists those of that name, or similar names
 */
export async function findRelation(db: Executor, wanted: string): Promise<Relation> {
  const relations = await listRelations(db);
  const found = relations.filter(
    (relation) => relation.name === wanted || qualifiedName(relation) === wanted,
  );
  // The views for analysts go first: others of their name are records, or of the pipeline.
  const ofAnalysts = found.filter(({ schema }) => schema === 'analytics');
  const [only, ...more] = ofAnalysts.length > 0 ? ofAnalysts : found;
  if (more.length > 0)
    throw new UnknownRelation(
      `several tables or views have the name ${wanted}: ${found.map(qualifiedName).join(', ')}`,
    );
  if (only !== undefined) return { ...only, columns: await readColumns(db, only) };
  const near = nearest(wanted, relations.map(qualifiedName));
  const hint = near.length === 0 ? '' : ` Similar names: ${near.join(', ')}.`;
  throw new UnknownRelation(
    `there is no table or view ${wanted} in ${readSchemas.join(', ')}.${hint} docs/reference/dictionary.md describes all`,
  );
}

/** Writes a relation's name with its schema: `analytics.bills`. */
export const qualifiedName = ({ schema, name }: Pick<Relation, 'schema' | 'name'>): string =>
  `${schema}.${name}`;

/** Lists names that contain the wanted one or differ in at most a third of its letters, the nearest first. */
function nearest(wanted: string, names: readonly string[]): string[] {
  const bare = wanted.replace(/^.*\./, '').toLowerCase();
  if (bare === '') return [];
  return names
    .map((name) => {
      const own = name.replace(/^.*\./, '');
      return { name, own, distance: own.includes(bare) ? 1 : leven(bare, own) };
    })
    .filter(({ distance }) => distance <= Math.max(1, bare.length / 3))
    .sort((a, b) => a.distance - b.distance || a.own.length - b.own.length)
    .slice(0, nearMax)
    .map(({ name }) => name);
}
