/** The worker thread that parses YAML: each message is a text, and the replies are its start and its outcome. */

import { parentPort } from 'node:worker_threads';
import { readYaml, type YamlOutcome } from './read-yaml.ts';

export type YamlMessage = 'started' | YamlOutcome;

parentPort?.on('message', (text: string) => {
  reply('started');
  reply(readYaml(text));
});

function reply(message: YamlMessage): void {
  parentPort?.postMessage(message);
}
