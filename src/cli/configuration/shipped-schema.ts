/** The JSON Schema file of this installation. */

export const SHIPPED_SCHEMA = new URL('../../../config/schema.json', import.meta.url);

/** The first line of a configuration file, wherever the file is. */
export const SCHEMA_MODELINE = `# yaml-language-server: $schema=${SHIPPED_SCHEMA.href}\n`;
