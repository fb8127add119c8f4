/** The worker thread that parses YAML: each message is a text, and each reply its outcome. */

import { parentPort } from 'node:worker_threads';
import { readYaml } from './read-yaml.ts';

parentPort?.on('message', (text: string) => parentPort?.postMessage(readYaml(text)));
