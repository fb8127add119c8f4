/** Writes the JSON Schema of the chart's values, which includes the schema of the configuration file, and the table in the chart's README. */

import { writeFileSync } from 'node:fs';
import { chartReadme, chartSchema, CHART_README_FILE, CHART_SCHEMA_FILE } from './chart-values.ts';

writeFileSync(CHART_SCHEMA_FILE, chartSchema());
writeFileSync(CHART_README_FILE, chartReadme());
