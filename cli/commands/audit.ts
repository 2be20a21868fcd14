import { type AuditReport, audit } from '../../app/audit.ts';
import { requireSchema } from '../../app/prepare.ts';
import { openWarehouse } from '../../app/warehouse.ts';
import { openContext } from '../context.ts';
import { createProgress, table } from '../terminal.ts';

/** `metersync audit`: reads the service again and prints each difference; changes nothing. */
export async function auditCommand(options: { company?: string; json?: boolean }): Promise<void> {
  const context = await openContext({ temporal: false, service: true, quiet: true });
  const { settings, stack, log } = context;
  const access = context.access();
  try {
    await requireSchema(settings, stack.databaseUrl, log);
    const warehouse = openWarehouse(settings, stack.databaseUrl, log, 4);
    const progress = createProgress();
    try {
      const report = await audit({
        warehouse,
        service: access.client,
        companyId: options.company,
        onProgress: ({ companies, compared }) =>
          progress.show([`audit: ${companies} companies, ${compared.toLocaleString('en')} records compared`]),
      });
      progress.done();
      console.log(options.json ? JSON.stringify(report) : describeAudit(report));
      if (report.differences > 0) process.exitCode = 1;
    } finally {
      await warehouse.close();
    }
  } finally {
    await access.client.close();
    await context.stop();
  }
}

export function describeAudit(report: AuditReport): string {
  const rows = Object.entries(report.resources).map(([name, r]) => [
    name,
    r.compared,
    r.missing,
    r.extra,
    r.different,
  ]);
  const lines = [table(['audit', 'compared', 'missing', 'extra', 'different'], rows)];
  for (const example of report.examples) lines.push(`${example.state}: ${example.resource} ${example.id}`);
  if (report.differences > report.examples.length && report.examples.length > 0) lines.push('…');
  lines.push(`${report.differences} differences in ${report.compared.toLocaleString('en')} records`);
  return lines.join('\n');
}
