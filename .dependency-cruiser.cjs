/** Which top-level folders each top-level folder may import. ARCHITECTURE.md gives the reasons. */
const rooms = {
  contract: [],
  health: ['contract'],
  receiver: ['contract'],
  workflows: ['contract'],
  service: ['contract'],
  db: ['contract', 'health'],
  http: [],
  activities: ['contract', 'health', 'service', 'db', 'http'],
  embedded: ['http'],
  web: [],
  sandbox: ['web', 'http'],
  app: ['contract', 'health', 'receiver', 'workflows', 'activities', 'service', 'db', 'embedded', 'http'],
  operations: [
    'contract',
    'health',
    'receiver',
    'workflows',
    'activities',
    'service',
    'db',
    'app',
    'web',
    'http',
  ],
  console: ['contract', 'health', 'web', 'db', 'app', 'operations'],
  cli: ['operations', 'app', 'contract', 'health', 'db', 'embedded', 'sandbox', 'console', 'http'],
};

const all = Object.keys(rooms);
const arrows = all.map((room) => ({
  name: `${room}-knows-only-its-neighbours`,
  comment: `${room}/ may import ${rooms[room].join(', ') || 'no other folder'}: see "Rooms and arrows" in ARCHITECTURE.md`,
  severity: 'error',
  from: { path: `^${room}/` },
  to: {
    path: `^(${[...all, 'test', 'bench', 'verify'].filter((other) => other !== room && !rooms[room].includes(other)).join('|')})/`,
    ...(room === 'workflows' ? { pathNot: '^activities/' } : {}),
  },
}));

/** Who may import a folder of `db/`, besides the folder itself. The folders are layers: nothing below imports `read`. */
const importersInDb = { read: '', 'watch|checks': 'read' };
/** What the lower folders of `db/` import there: only folders before them, and files of `db/` itself. */
const lowerInDb = ['connection', 'schema', 'queue', 'records', 'readings', 'events', 'deletes', 'backfill'];

const layers = [
  ...Object.entries(importersInDb).map(([folder, importers]) => ({
    from: { path: '^db/', pathNot: `^db/(${folder}|${importers || folder})/` },
    to: { path: `^db/(${folder})/` },
  })),
  ...lowerInDb.map((folder, at) => ({
    from: { path: `^db/${folder}/` },
    to: { path: '^db/.+/', pathNot: `^db/(${lowerInDb.slice(0, at + 1).join('|')})/` },
  })),
  { from: { path: '^db/(connection|schema)/' }, to: { path: '^db/[^/]+$' } },
].map((rule, at) => ({
  name: `folders-of-db-are-layers-${at}`,
  comment:
    'The folders of db/ import one another in one direction: see "Rooms and arrows" in ARCHITECTURE.md',
  severity: 'error',
  ...rule,
}));

module.exports = {
  forbidden: [
    ...arrows,
    ...layers,
    {
      name: 'workflows-know-only-the-types-of-activities',
      comment:
        'Workflow code is replayed: it may import the types of activities, never their code. See ARCHITECTURE.md',
      severity: 'error',
      from: { path: '^workflows/' },
      to: { path: '^activities/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'only-db-talks-to-postgres',
      comment:
        'Statements belong in db/, next to the schema. Only exports use Postgres themselves, with COPY. See ARCHITECTURE.md',
      severity: 'error',
      from: {
        path: `^(${all.filter((room) => !['db', 'embedded', 'sandbox'].includes(room)).join('|')})/`,
        pathNot: '^operations/export/',
      },
      to: { path: '(^|node_modules/)(drizzle-orm|pg|pg-copy-streams)(/|$)' },
    },
    {
      name: 'requests-go-through-http-or-service',
      comment:
        'http/ask.ts bounds what it reads of an answer, and service/ is the client of the service. Others only set up proxies and pools. See ARCHITECTURE.md',
      severity: 'error',
      from: {
        path: `^(${all.join('|')})/`,
        pathNot: '^(http|service)/|^sandbox/delivery/|^embedded/temporal.ts$',
      },
      to: { path: '(^|node_modules/)undici(/|$)', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-cycles',
      comment:
        'Files that import one another cannot be understood or changed separately. See ARCHITECTURE.md',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'packages-are-declared',
      severity: 'error',
      from: { pathNot: '^(test|bench|verify)/|^[^/]+$' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-dev', 'unknown'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(dist|\\.metersync)/' },
    tsPreCompilationDeps: true,
    parser: 'swc',
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
