/** Writes what follows from the schema of the configuration file: the fields that have flags, the schema of the chart's values, and the table in its README. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { flagFieldsJson } from '../src/cli/config/schema.ts';
import { chartReadme, chartSchema, CHART_README_FILE, CHART_SCHEMA_FILE } from './chart-values.ts';

writeFileSync(join(import.meta.dirname, '..', 'src', 'cli', 'config', 'flag-fields.json'), flagFieldsJson());
writeFileSync(CHART_SCHEMA_FILE, chartSchema());
writeFileSync(CHART_README_FILE, chartReadme());
