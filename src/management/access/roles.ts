/** The managed permissions that a scope can name. */

/** What the command-line client needs of the management API. */
export const PLATFORM_CLI = 'platformCLI';

/** As they are written, upper and lower case included; the second is the older name of the first. */
export const ROLE_NAMES: readonly string[] = [PLATFORM_CLI, 'loft-cli'];
