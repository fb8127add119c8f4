/** Writes the JSON Schema of the chart's values, which includes the schema of the configuration file. */

import { writeFileSync } from 'node:fs';
import { chartSchema, CHART_SCHEMA_FILE } from './chart-values.ts';

writeFileSync(CHART_SCHEMA_FILE, chartSchema());
