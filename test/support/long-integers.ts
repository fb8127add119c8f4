/** As the program does when it starts. */

import { writeLongIntegers } from '../../src/base/json.ts';

writeLongIntegers();
