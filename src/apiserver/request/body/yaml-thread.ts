/** The thread that parses YAML: one text in, one outcome out. */

import { parentPort } from 'node:worker_threads';
import { readYaml } from './read-yaml.ts';

parentPort?.on('message', (text: string) => parentPort?.postMessage(readYaml(text)));
