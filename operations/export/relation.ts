import type { Executor } from '../../db/connection/connect.ts';
import { listRelations, type Relation, readColumns, readSchemas } from '../../db/read/relations.ts';

/** A name matches no table or view, several, or one without companies; the message says what there is. */
export class UnknownRelation extends Error {}

/**
 * Finds a table or view by its name, which needs its schema if several have it, unless analytics is one.
 * @throws UnknownRelation that lists the tables and views of that name
 */
export async function findRelation(db: Executor, wanted: string): Promise<Relation> {
  const relations = await listRelations(db);
  const found = relations.filter(
    (relation) => relation.name === wanted || qualifiedName(relation) === wanted,
  );
  // The views for analysts go first. Other tables of the same name hold records, or belong to the pipeline.
  const ofAnalysts = found.filter(({ schema }) => schema === 'analytics');
  const [only, ...more] = ofAnalysts.length > 0 ? ofAnalysts : found;
  if (more.length > 0)
    throw new UnknownRelation(
      `several tables or views have the name ${wanted}: ${found.map(qualifiedName).join(', ')}`,
    );
  if (only !== undefined) return { ...only, columns: await readColumns(db, only) };
  throw new UnknownRelation(
    `there is no table or view ${wanted} in ${readSchemas.join(', ')}; docs/reference/dictionary.md describes all`,
  );
}

export const qualifiedName = ({ schema, name }: Pick<Relation, 'schema' | 'name'>): string =>
  `${schema}.${name}`;
